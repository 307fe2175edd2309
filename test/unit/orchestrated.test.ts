import {
  done,
  fail,
  final,
  type Json,
  type JsonObject,
  type Pipeline,
  pipeline,
  type State,
  stage,
  to,
} from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { handClock } from "../support/hand-clock.ts";
import { killedEverywhere } from "../support/killed-runs.ts";
import { bye, direct, directed, noting, select, task, textsOf } from "../support/orchestrated.ts";
import { completed, dataOf, eventsOf, eventually, failed, session, work } from "../support/run-kit.ts";
import { failingAt } from "../support/stopped-runs.ts";

const files = z.object({ files: z.array(z.string()).min(1) });
const fixFiles = { files: ["a.ts"] };
const fix = (): State<Json, { files: string[] }> =>
  work<Json, { files: string[] }>({
    inputSchema: files,
    act: ({ ctx }) => completed({ fixed: ctx.input === null ? [] : ["a.ts"] }),
  });
const states = () => ({
  plan: work<JsonObject>({ act: () => completed({ plan: "fix a.ts" }) }),
  fix: fix(),
  broken: work({ act: () => failed("no network") }),
});

describe("an orchestrated run", () => {
  test("goes where its model chooses after each state, in one transcript over the whole run", async () => {
    const { result, hops, routes, prompts } = await direct(directed(states()), [
      select("plan", undefined, "first a plan"),
      select("fix", fixFiles, "now fix it"),
      select("completed", { ok: true }),
      bye,
    ]);
    expect(result).toMatchObject({ status: "completed", output: { ok: true } });
    expect(hops).toEqual([
      "orchestrator plan",
      "plan orchestrator",
      "orchestrator fix",
      "fix orchestrator",
      "orchestrator done",
    ]);
    expect(routes[0]?.why).toEqual({
      by: "model",
      reason: "first a plan",
      considered: [{ to: "plan" }, { to: "fix" }, { to: "broken" }],
    });
    const last = textsOf(prompts.at(-1)).join("\n");
    for (const part of ["Direct the work.", "first a plan", "fix a.ts", "now fix it", "The run has ended as completed"])
      expect(last).toContain(part);
    expect(prompts.every((prompt, index) => prompt.startsWith((prompts[index - 1] ?? "").slice(0, -1)))).toBe(true);
  });

  test("starts in the initial state of its pipeline, with the run's input, if it names one", async () => {
    const { hops, prompts } = await direct(directed(states(), {}, { initial: "plan" }), [select("completed", 1), bye]);
    expect(hops).toEqual(["plan orchestrator", "orchestrator done"]);
    expect(prompts[0]).toContain("plan#1 completed");
    expect(prompts[0]).toContain("Task:");
  });

  test("shows its orchestrator a failure with code, message and detail", async () => {
    const { result, prompts } = await direct(directed(states()), [
      select("broken"),
      select("failed", undefined, "the network is down"),
      bye,
    ]);
    expect(textsOf(prompts[1]).at(-1)).toContain("broken#1 failed. Code tool: ");
    expect(textsOf(prompts[1]).at(-1)).toContain("no network");
    expect(result).toMatchObject({ status: "failed", error: { code: "failed", message: "the network is down" } });
  });

  test("keeps the transcripts of states apart: a stage sees its input and outputs, never the conversation", async () => {
    const prompts: string[] = [];
    const ask = stage({
      allowedTools: [],
      prompt: "Say it.",
      inputSchema: z.object({ what: z.string() }),
      completionTool: "say",
      completionSchema: z.object({ said: z.string() }),
      turnCap: 2,
    });
    const { model } = noting([select("ask", { what: "hello" }, "a secret reason"), select("completed"), bye], {
      ask: [{ calls: [{ tool: "say", input: { said: "hello" } }] }],
    });
    const listening = {
      ...model,
      at: (place: Parameters<typeof model.at>[0]) => {
        const at = model.at(place);
        return {
          ...at,
          doStream: (call: Parameters<typeof at.doStream>[0]) => {
            if (place.stage === "ask") prompts.push(JSON.stringify(call.prompt));
            return at.doStream(call);
          },
        };
      },
    };
    const live = session({ model: listening });
    expect(await live.run(directed({ ask }), { task: "T" })).toMatchObject({ status: "completed" });
    expect(prompts[0]).toContain("hello");
    expect(prompts[0]).not.toContain("a secret reason");
    expect(prompts[0]).not.toContain("Direct the work.");
  });

  test("gives no state the orchestrator's choices as an upstream output", async () => {
    const seen: unknown[] = [];
    const look = work({
      act: ({ ctx }) => {
        seen.push(Object.keys(ctx.upstream));
        return completed(null);
      },
    });
    await direct(directed({ look, plan: states().plan }), [select("plan"), select("look"), select("completed"), bye]);
    expect(seen).toEqual([["plan"]]);
  });

  test("lets the orchestrator read where the run is, and more of an output, without a choice", async () => {
    const { prompts, hops } = await direct(directed(states(), {}, { limits: { maxVisits: 3 } }), [
      select("plan"),
      { calls: [{ tool: "get_state" }, { tool: "get_state", input: { state: "plan" } }] },
      select("completed"),
      bye,
    ]);
    expect(hops).toHaveLength(3);
    expect(prompts[2]).toContain('\\"state\\":\\"plan\\",\\"visitsLeft\\":2'.replaceAll("\\", ""));
    expect(prompts[2]).toContain("fix a.ts");
  });

  test("ends in a final state of its pipeline, which takes the place of the end of that name", async () => {
    const { result, prompts } = await direct(directed({ ...states(), failed: final("failed") }), [
      select("failed"),
      bye,
    ]);
    expect(result).toMatchObject({ status: "failed", state: "failed" });
    expect(textsOf(prompts[0])[0]).toContain("To end the run, select completed, cancelled.");
  });

  test("a hop through the orchestrator counts as one, and it may be entered as often as needed", async () => {
    const twice = directed(states(), {}, { limits: { maxHops: 2, maxVisits: 2 } });
    const turns = [select("plan"), select("plan"), select("fix", fixFiles), select("failed", undefined, "enough"), bye];
    const { result, hops, rejected } = await direct(twice, turns);
    expect(hops).toEqual([
      "orchestrator plan",
      "plan orchestrator",
      "orchestrator plan",
      "plan orchestrator",
      "orchestrator fail",
    ]);
    expect(result).toMatchObject({ status: "failed", error: { message: "enough" } });
    expect(rejected).toMatchObject([
      { from: "orchestrator", to: "fix", reason: expect.stringContaining("the run has taken all its routes") },
    ]);
  });
});

describe("a choice that cannot be followed", () => {
  test("is fed back, recorded and shown among what was considered", async () => {
    const { result, rejected, routes } = await direct(directed(states()), [
      select("deploy"),
      select("fix", { files: [] }),
      select("fix", fixFiles),
      select("completed"),
      bye,
    ]);
    expect(result.status).toBe("completed");
    expect(rejected).toMatchObject([
      {
        from: "orchestrator",
        to: "deploy",
        reason: '$.state there is no target "deploy"; the targets are plan, fix, broken',
      },
      { from: "orchestrator", to: "fix", reason: expect.stringContaining("$.input.files") },
    ]);
    expect(routes[0]).toMatchObject({
      to: "fix",
      why: {
        considered: [
          { to: "deploy", refused: expect.any(String) },
          { to: "fix", refused: expect.any(String) },
          { to: "plan" },
          { to: "fix" },
          { to: "broken" },
        ],
      },
    });
  });

  test("three numbered reminders follow a turn without a choice, then the fallback, once, then the run fails", async () => {
    const text = { text: "I think we should plan." };
    const silent = [text, text, text, text];
    const own = directed(states(), { fallback: { to: "plan" } });
    const { result, hops, routes, prompts } = await direct(own, [...silent, ...silent, bye]);
    expect(hops).toEqual(["orchestrator plan", "plan orchestrator", "orchestrator fail"]);
    expect(routes[0]).toMatchObject({ why: { by: "fallback" } });
    for (const [index, number] of [1, 2, 3].entries())
      expect(prompts[index + 1]).toContain(`This is reminder ${number} of 3`);
    expect(prompts[3]).not.toContain("reminder 4");
    expect(result).toMatchObject({
      status: "failed",
      error: {
        code: "orchestrator",
        message: expect.stringContaining("it selected no state within 4 turns and 3 reminders"),
      },
    });
  });

  test("a fault of the model leads to the fallback, too", async () => {
    const cut = { errors: [{ status: 400, message: "bad request" }] };
    const { hops } = await direct(directed(states(), { fallback: { to: "plan" } }), [cut, select("completed"), bye]);
    expect(hops).toEqual(["orchestrator plan", "plan orchestrator", "orchestrator done"]);
  });

  test("only the first choice of a turn counts, and the others are answered as not run", async () => {
    const both = {
      calls: [...(select("plan").calls ?? []), ...(select("fix", fixFiles).calls ?? []), { tool: "Bash" }],
    };
    const { hops, prompts } = await direct(directed(states()), [both, select("completed"), bye]);
    expect(hops).toEqual(["orchestrator plan", "plan orchestrator", "orchestrator done"]);
    expect(prompts[1]).toContain("a state was selected before");
  });
});

describe("the prompt of a stage", () => {
  const say = () =>
    stage({ allowedTools: [], prompt: "Say A.", completionTool: "say", completionSchema: z.object({}), turnCap: 2 });
  const spoken = { say: [{ calls: [{ tool: "say" }] }, { calls: [{ tool: "say" }] }] };

  test("can be replaced for one execution where the pipeline allows it, and that is recorded", async () => {
    const turns = [
      select("say", undefined, "another one", { prompt: "Say B." }),
      select("say"),
      select("completed"),
      bye,
    ];
    const { live, result, routes } = await direct(directed({ say: say() }, { allowPromptOverride: true }), turns, {
      others: spoken,
    });
    expect(routes[0]).toMatchObject({ to: "say", prompt: "Say B." });
    const systems = (await live.host.journal(result.runId))
      .flatMap(({ records }) => records)
      .filter(({ stepId }) => /^say#\d\/a1\/enter$/.test(stepId))
      .map(({ value }) => (value.includes("Say B.") ? "B" : "A"));
    expect(systems).toEqual(["B", "A"]);
  });

  test("cannot be replaced by default, nor that of a state without one, nor anything else", async () => {
    const { result, rejected } = await direct(directed({ say: say() }), [
      select("say", undefined, "x", { prompt: "Say B." }),
      select("failed", undefined, "no"),
      bye,
    ]);
    expect(rejected).toMatchObject([{ reason: "$.prompt cannot be replaced: the pipeline does not allow it" }]);
    expect(result.status).toBe("failed");
    const allowed = directed(states(), { allowPromptOverride: true });
    const tries = [
      select("plan", undefined, "x", { prompt: "Run id." }),
      select("plan", undefined, "x", { override: { kind: "script", command: "id" } }),
      select("plan", undefined, "x", { model: "other" }),
      select("failed", undefined, "no"),
      bye,
    ];
    const second = await direct(allowed, tries);
    expect(second.rejected.map(({ reason }) => reason)).toEqual([
      "$.prompt plan has no prompt that could be replaced",
      "$.override is not an argument",
      "$.model is not an argument",
    ]);
  });
});

describe("an acknowledgement", () => {
  test("is one turn of text after the end, in the result and in the last event", async () => {
    const { result, events, tools } = await direct(directed(states()), [select("completed", 7), { text: "I did it." }]);
    expect(result).toMatchObject({ status: "completed", output: 7, acknowledgement: { text: "I did it." } });
    expect(tools).toEqual(["get_state select_state", "start_follow_up"]);
    expect(events.at(-1)).toMatchObject({ type: "run.finished", data: { acknowledgement: { text: "I did it." } } });
  });

  test("names the input of a run that follows", async () => {
    const wish = { text: "More to do.", calls: [{ tool: "start_follow_up", input: { input: { task: "Next." } } }] };
    const { result } = await direct(directed(states()), [select("completed"), wish]);
    expect(result.acknowledgement).toEqual({ text: "More to do.", followUp: { input: { task: "Next." } } });
  });

  test("may lead to a run that follows, once and linked, and to at most three in a row", async () => {
    const wish = { text: "More.", calls: [{ tool: "start_follow_up", input: { input: { task: "Next." } } }] };
    const turns = [select("completed"), wish];
    const own = directed(states());
    const { model, prompts } = noting(turns);
    const live = session({ model });
    let { runId } = await live.run(own, { task: "T" });
    for (const number of [1, 2, 3]) {
      const before = runId;
      const next = await live.followUp(own, before);
      runId = next.runId;
      expect(dataOf(await eventsOf(live.host, runId), "run.started")[0]).toMatchObject({
        follows: { runId: before, number },
      });
      expect(prompts.at(-2)).toContain("Next.");
      await expect(live.followUp(own, before).then((ended) => ended)).rejects.toThrow("already exists");
    }
    await expect(live.followUp(own, runId).then((ended) => ended)).rejects.toThrow("already follows 3 runs in a row");
    const none = await direct(own, [select("completed"), bye]);
    await expect(none.live.followUp(own, none.result.runId).then((ended) => ended)).rejects.toThrow("asks for no run");
  });

  test("changes no outcome when it fails, and can be switched off", async () => {
    const broken = { errors: [{ status: 400, message: "bad request" }] };
    const { result } = await direct(directed(states()), [select("completed", 7), broken]);
    expect(result).toMatchObject({ status: "completed", output: 7 });
    expect(result.acknowledgement).toBeUndefined();
    const off = await direct(directed(states(), { acknowledges: false }), [select("completed", 7)]);
    expect(off.result.stages).toHaveLength(1);
  });

  test("comes after a failed and after a cancelled run, too", async () => {
    const crashed = directed({ plan: states().plan }, { maxTurnsPerChoice: 1 });
    const { result } = await direct(crashed, [{ text: "hm" }, { text: "It failed." }]);
    expect(result).toMatchObject({
      status: "failed",
      error: { code: "orchestrator" },
      acknowledgement: { text: "It failed." },
    });

    const { model } = noting([select("wait"), { text: "You stopped it." }]);
    const live = session({ model });
    let entered = false;
    const wait = work({
      act: ({ signal }) => {
        entered = true;
        return new Promise((resolve) => {
          signal.addEventListener("abort", () =>
            resolve({ status: "cancelled", reason: "stop", turns: 0, usage: { inputTokens: 0, outputTokens: 0 } }),
          );
        });
      },
    });
    const handle = live.start(directed({ wait }), { task: "T" });
    await eventually(() => entered);
    await handle.cancel("enough");
    expect(await handle).toMatchObject({
      status: "cancelled",
      error: { message: "stop" },
      acknowledgement: { text: "You stopped it." },
    });
  });

  test("is not repeated after its process ended in the middle of it", async () => {
    const clock = handClock();
    const memory = createMemoryJournals();
    const { model, prompts } = noting([select("completed", 7), { text: "Bye." }]);
    const own = directed(states());
    const dying = failingAt(memory.connect(), /^orchestrator#2\/a1\/turn\/1\/model$/, "done");
    const first = session({ model, clock, host: createHost(dying, { clock }) });
    const handle = first.start(own, { task: "T" });
    await expect(handle.then((ended) => ended)).rejects.toThrow("the disk failed");
    expect(prompts).toHaveLength(2);
    const second = session({ model, clock, host: createHost(memory.connect(), { clock }) });
    const result = await second.resume(own, handle.runId);
    expect(result).toMatchObject({ status: "completed", output: 7 });
    expect([result.acknowledgement, prompts.length]).toEqual([undefined, 2]);
  });
});

test("a long run leaves out what earlier states returned, so that the conversation fits the model", async () => {
  const long = work({ act: ({ ctx }) => completed(`${ctx.visit} ${"x".repeat(3_000)}`) });
  const turns = [...Array.from({ length: 6 }, () => select("long")), select("completed"), bye];
  const { result, prompts, events } = await direct(directed({ long }), turns, {
    prices: { scripted: { contextWindow: 6_000 } },
  });
  expect(result.status).toBe("completed");
  expect(Math.max(...prompts.map(({ length }) => length))).toBeLessThan(18_000);
  expect(prompts.at(-2)).toContain("Its output was left out here");
  expect(dataOf(events, "limit.near").length).toBeGreaterThan(0);
});

test("a fork of an orchestrated run has the conversation up to its point, and continues with its own", async () => {
  const own = directed(states());
  const first = await direct(own, [select("plan", undefined, "as in the first run"), select("completed", 1), bye]);
  const { model, prompts } = noting([bye, select("fix", fixFiles), select("completed", 2), bye]);
  const live = session({ model, host: first.live.host });
  const result = await live.fork(own, first.result.runId, { from: "orchestrator#2" });
  expect(result).toMatchObject({ status: "completed", output: 2 });
  expect(prompts[0]).toContain("as in the first run");
  expect(prompts[0]).toContain("plan#1 completed");
});

test("a run that is started in the middle asks its orchestrator after that state", async () => {
  const { model, prompts } = noting([select("completed", 1), bye]);
  const live = session({ model });
  const result = await live.start(directed(states()), { task: "T" }, { from: { state: "fix", input: fixFiles } });
  expect(result.stages.map(({ executionId }) => executionId)).toEqual(["fix#1", "orchestrator#1", "orchestrator#2"]);
  expect(prompts[0]).toContain("fix#1 completed");
  expect(prompts[0]).toContain("Task:");
});

test("an orchestrated run that is killed before any of its records ends as one that was not", async () => {
  const turns = [
    select("plan"),
    select("nowhere"),
    select("fix", fixFiles),
    select("broken"),
    { text: "?" },
    select("completed", { ok: 1 }),
    bye,
  ];
  const { whole, killed } = await killedEverywhere(() => ({
    pipeline: anyInput(directed(states(), { fallback: { to: "plan" }, acknowledges: false })),
    input: { task: "T" },
    options: { model: noting(turns).model },
  }));
  expect(whole.status).toBe("completed");
  expect(killed.length).toBeGreaterThan(15);
  for (const facts of killed) expect(facts).toEqual(whole);
});

/** Its input is not checked by the compiler. */
function anyInput({ id, spec }: ReturnType<typeof directed>): Pipeline<Json, unknown> {
  return { id, spec };
}

/** The events of the states themselves and of their routes, without what says who decided. */
function comparable(events: Awaited<ReturnType<typeof eventsOf>>) {
  return events
    .filter(({ executionId }) => executionId !== undefined && !executionId.startsWith("orchestrator"))
    .map(({ type, executionId, data }) => {
      const { why: _why, to: _target, choice: _choice, reason: _reason, ...fields } = data;
      return { type, executionId, fields: Object.keys(fields).toSorted() };
    });
}

test("its events are those of the same pipeline with a table, except for who decided", async () => {
  const table = pipeline({
    id: "directed",
    input: task,
    stages: states(),
    initial: "plan",
    transitions: [
      { from: "plan", on: "success", to: to("broken") },
      { from: "broken", on: "failure", to: to("fix", fixFiles) },
      { from: "fix", on: "success", to: done({ ok: true }) },
      { from: "broken", on: "success", to: fail("it cannot complete") },
      { from: "*", on: "failure", to: fail("failed") },
    ],
  });
  const live = session({ model: noting([]).model });
  const routed = await live.run(table, { task: "T" });
  const silent = { text: "?" };
  const { result, events, hops, rejected, routes } = await direct(
    directed(states(), { fallback: { to: "fix", input: fixFiles } }),
    [
      select("plan"),
      select("deploy"),
      select("broken"),
      ...[silent, silent, silent, silent],
      select("completed", { ok: true }),
      bye,
    ],
  );
  expect([routed.status, result.status]).toEqual(["completed", "completed"]);
  expect(hops.filter((hop) => hop.startsWith("orchestrator"))).toEqual([
    "orchestrator plan",
    "orchestrator broken",
    "orchestrator fix",
    "orchestrator done",
  ]);
  expect(rejected).toHaveLength(1);
  expect(
    routes.filter(({ from }) => from === "orchestrator").map(({ why }) => JSON.parse(JSON.stringify(why)).by),
  ).toEqual(["model", "model", "fallback", "model"]);
  const fromTable = await eventsOf(live.host, routed.runId);
  expect(comparable(events)).toEqual(comparable(fromTable));
  const fieldsOf = (all: typeof events): readonly string[] =>
    [...new Set(dataOf(all, "route.decided").map((data) => Object.keys(data).toSorted().join(" ")))].toSorted();
  expect(fieldsOf(events)).toEqual(fieldsOf(fromTable));
});
