import { checkPipeline, final, type Json, pipeline, stage } from "@sluice/core";
import { human, router, type ScriptedTurn, scriptedModel, timer } from "@sluice/stages";
import { expect } from "vitest";
import { z } from "zod";
import { decided, fact } from "../../support/facts.ts";
import { bye, direct, directed, noting, select, task, textsOf } from "../../support/orchestrated.ts";
import { completed, dataOf, eventsOf, eventually, failed, quiet, session, work } from "../../support/run-kit.ts";

// A model that chooses what follows: definitions, choices, overrides, transitions, replacements, messages.

const HOUR = 3_600_000;
const typed = z.strictObject({ file: z.string().min(1), lines: z.number().optional() });
const states = () => ({
  plan: work<Json>({ act: () => completed({ plan: "fix a.ts" }) }),
  fix: work<Json, { file: string }>({
    inputSchema: typed,
    act: ({ ctx }) => completed(ctx.input === null ? null : "fixed"),
  }),
  broken: work({ act: () => failed("no network") }),
});
const say = () =>
  stage({ allowedTools: [], prompt: "Say A.", completionTool: "say", completionSchema: z.object({}), turnCap: 2 });
const said: ScriptedTurn = { calls: [{ tool: "say" }] };
const end = [select("completed", 1), bye];

/** What the model reads of a selection that cannot be followed. */
async function refused(turn: ScriptedTurn, options: Parameters<typeof directed>[1] = {}): Promise<string> {
  const { rejected, hops } = await direct(directed({ ...states(), say: say() }, options), [turn, ...end]);
  expect(hops).toEqual(["orchestrator done"]);
  return String(rejected[0]?.reason);
}

fact(1, "a definition names the state that its runs start in, or leaves it to the orchestrator", async () => {
  const named = await direct(directed(states(), {}, { initial: "plan" }), end);
  expect(named.hops).toEqual(["plan orchestrator", "orchestrator done"]);
  const chosen = await direct(directed(states()), [select("plan"), ...end]);
  expect(chosen.hops[0]).toBe("orchestrator plan");
});

fact(2, "a run can always end as failed and as cancelled, with a reason", async () => {
  const over = await direct(directed(states()), [select("failed", undefined, "no way"), bye]);
  expect(over.result).toMatchObject({ status: "failed", error: { message: "no way" } });
  const stopped = await direct(directed(states()), [select("cancelled", undefined, "not wanted"), bye]);
  expect(stopped.result).toMatchObject({ status: "cancelled", error: { message: "not wanted" } });
});

fact(3, "the author's own final state of such a name takes its place", async () => {
  const { result } = await direct(directed({ ...states(), cancelled: final("cancelled") }), [select("cancelled"), bye]);
  expect(result).toMatchObject({ status: "cancelled", state: "cancelled" });
  expect(() => directed({ ...states(), failed: states().plan })).toThrow("is how a run ends");
});

decided(
  4,
  "an orchestrated run can always complete; with routes, a pipeline without a completed end is refused",
  async () => {
    expect((await direct(directed(states()), end)).result.status).toBe("completed");
    const problems = checkPipeline({
      id: "endless",
      input: task,
      stages: { plan: states().plan },
      initial: "plan",
      transitions: [{ from: "plan", on: "success", to: "plan" }],
    });
    expect(problems.map(({ message }) => message)).toContain("no route leads to a completed end");
  },
);

fact(5, "an input schema that is none is refused when the pipeline is defined", () => {
  const broken = stage({ ...plain(), inputSchema: { type: "object", properties: { a: { type: "strng" } } } });
  expect(() => directed({ broken })).toThrow("stages.broken.inputSchema");
});

fact(6, "and so is one that is broken deep inside", () => {
  const nested = { type: "object", properties: { a: { type: "array", items: { enum: [] } } } } as const;
  expect(() => directed({ broken: stage({ ...plain(), inputSchema: nested }) })).toThrow("stages.broken.inputSchema");
});

function plain() {
  return { allowedTools: [], prompt: "p", completionTool: "say", completionSchema: z.object({}), turnCap: 1 };
}

decided(
  14,
  "a run has one definition from its start to its end: no tool of its orchestrator makes another one",
  async () => {
    const create = { calls: [{ tool: "create_state_machine_definition", input: { definition: {} } }] };
    const { hops, prompts } = await direct(directed(states()), [create, ...end]);
    expect(hops).toEqual(["orchestrator done"]);
    expect(prompts[1]).toContain("there is no tool create_state_machine_definition");
  },
);

decided(15, "only a person ends a run early, and the reason is recorded", async () => {
  const { handle } = await asleep([bye]);
  await handle.cancel("superseded");
  expect(await handle).toMatchObject({ status: "cancelled", error: { message: "superseded" } });
});

decided(16, "after its end, an orchestrator may ask for another run, which is linked to it", async () => {
  const own = directed(states());
  const wish = { text: "More.", calls: [{ tool: "start_follow_up", input: { input: { task: "Next." } } }] };
  const { live, result } = await direct(own, [select("completed", 1), wish]);
  const next = await live.followUp(own, result.runId);
  const [started] = dataOf(await eventsOf(live.host, next.runId), "run.started");
  expect(started).toMatchObject({ input: { task: "Next." }, follows: { runId: result.runId, number: 1 } });
});

fact(17, "the orchestrator's only tools are get_state and select_state, whatever the session has", async () => {
  const { tools } = await direct(directed(states()), [select("plan"), ...end], { mode: "yolo" });
  expect(tools).toEqual(["get_state select_state", "get_state select_state", "start_follow_up"]);
});

fact(18, "an unknown state is refused with the names that exist", async () => {
  expect(await refused(select("deploy"))).toBe(
    '$.state there is no target "deploy"; the targets are plan, fix, broken, say',
  );
});

fact(19, "a router refuses it in the same way", async () => {
  const routed = pipeline({
    id: "routed",
    input: task,
    stages: { pick: router({ targets: ["over"], prompt: "Choose." }), over: final("completed") },
    initial: "pick",
    next: {},
  });
  const choose = (to: string): ScriptedTurn => ({ calls: [{ tool: "choose", input: { choice: { to } } }] });
  const live = session({ model: scriptedModel({ stages: { pick: [choose("deploy"), choose("over")] } }) });
  const { runId, status } = await live.run(routed, { task: "T" });
  expect(status).toBe("completed");
  expect(dataOf(await eventsOf(live.host, runId), "route.rejected")).toMatchObject([
    { reason: '$.choice.to there is no target "deploy"; the targets are over' },
  ]);
});

decided(20, "a choice overrides no field of a state: not its kind, its command, its model or its tools", async () => {
  for (const field of ["kind", "command", "model", "allowedTools", "override", "intervalMs"])
    expect(await refused(select("plan", undefined, "x", { [field]: "other" }), { allowPromptOverride: true })).toBe(
      `$.${field} is not an argument`,
    );
});

fact(21, "an input that fits the state's schema is accepted", async () => {
  const { hops } = await direct(directed(states()), [select("fix", { file: "a.ts" }), ...end]);
  expect(hops[0]).toBe("orchestrator fix");
});
fact(22, "an input of another type is refused, with its path", async () => {
  expect(await refused(select("fix", { file: 7 }))).toContain("$.input.file");
});
fact(23, "an input without a required field is refused", async () => {
  expect(await refused(select("fix", {}))).toContain("$.input.file");
});
fact(24, "an input with a field that the schema does not have is refused", async () => {
  expect(await refused(select("fix", { file: "a.ts", more: 1 }))).toContain("$.input");
});

decided(25, "an input is checked against the definition's schema, since a choice cannot bring its own", async () => {
  const own = { inputSchema: { type: "object", properties: { file: { type: "number" } } } };
  expect(await refused(select("fix", { file: 7 }, "x", own))).toBe("$.inputSchema is not an argument");
});
decided(26, "so a schema that is none cannot arrive with a choice", async () => {
  expect(await refused(select("fix", { file: "a" }, "x", { inputSchema: { type: "strng" } }))).toBe(
    "$.inputSchema is not an argument",
  );
});

fact(
  27,
  "get_state shows the run in short: how the last state ended, visits left, and which outputs there are",
  async () => {
    const big = work({ act: () => completed({ text: "x".repeat(100_000) }) });
    const { prompts } = await direct(directed({ big }), [select("big"), { calls: [{ tool: "get_state" }] }, ...end]);
    const [view = ""] = textsOf(prompts[2]).slice(-1);
    expect(view.length).toBeLessThan(1_000);
    for (const part of ["big#1", "completed", "visitsLeft", "outputs"]) expect(view).toContain(part);
  },
);

fact(28, "every property of the orchestrator's tools has a description", async () => {
  const schemas: object[] = [];
  const { model } = noting([select("completed", 1), bye]);
  const listening = {
    ...model,
    at: (place: Parameters<typeof model.at>[0]) => {
      const at = model.at(place);
      return {
        ...at,
        doStream: (call: Parameters<typeof at.doStream>[0]) => {
          for (const one of call.tools ?? []) if (one.type === "function") schemas.push(one.inputSchema);
          return at.doStream(call);
        },
      };
    },
  };
  await session({ model: listening }).run(directed(states(), { allowPromptOverride: true }), { task: "T" });
  const properties = schemas.flatMap((schema) =>
    "properties" in schema ? Object.values(schema.properties ?? {}) : [],
  );
  expect(properties.length).toBeGreaterThan(4);
  for (const property of properties) expect(property).toMatchObject({ description: expect.any(String) });
});

fact(29, "the first choice of a turn counts; a second one is answered as an error", async () => {
  const both = { calls: [...(select("plan").calls ?? []), ...(select("broken").calls ?? [])] };
  const { hops, prompts } = await direct(directed(states()), [both, ...end]);
  expect(hops[0]).toBe("orchestrator plan");
  expect(prompts[1]).toContain("a state was selected before, so this call was not run");
});

decided(
  43,
  "a state never inherits the conversation: its transcript is fresh, and its input is what it is given",
  async () => {
    const { result, live } = await direct(
      directed({ say: say() }),
      [select("say", undefined, "a private reason"), ...end],
      {
        others: { say: [said] },
      },
    );
    const entered = (await live.host.journal(result.runId))
      .flatMap(({ records }) => records)
      .filter(({ stepId }) => stepId === "say#1/a1/enter");
    expect(entered.map(({ value }) => value.includes("private") || value.includes("Direct the work."))).toEqual([
      false,
    ]);
  },
);

fact(44, "a state has no tool that chooses or asks for the run, and a call of one does nothing", async () => {
  const tries = [select("completed", 1), said];
  const { result, hops } = await direct(directed({ say: say() }), [select("say"), ...end], { others: { say: tries } });
  expect(hops).toEqual(["orchestrator say", "say orchestrator", "orchestrator done"]);
  expect(result.stages[1]).toMatchObject({ executionId: "say#1", status: "completed", turns: 2 });
});

fact(45, "events name the execution they belong to, and a state that fails has its usage counted", async () => {
  const silent = [{ text: "?" }, { text: "?" }];
  const { result, events } = await direct(directed({ say: say() }), [select("say"), ...end], {
    others: { say: silent },
  });
  expect(result.stages[1]).toMatchObject({ status: "failed", code: "turn_cap" });
  const { usage } = result.stages[1] ?? {};
  expect(usage?.inputTokens).toBeGreaterThan(0);
  expect(result.usage.inputTokens).toBe(result.stages.reduce((sum, stage) => sum + stage.usage.inputTokens, 0));
  expect(events.filter(({ type }) => type === "turn.started").map(({ executionId }) => executionId)).toContain("say#1");
});

fact(46, "a state without a model of its own uses the session's", async () => {
  const { events } = await direct(directed({ say: say() }), [select("say"), ...end], { others: { say: [said] } });
  const ofStage = events.filter(({ type, executionId }) => type === "turn.started" && executionId === "say#1");
  expect(ofStage.map(({ data }) => data.model)).toEqual(["scripted"]);
});

fact(47, "the orchestrator is asked once after each state, right after it has ended", async () => {
  const { prompts } = await direct(directed(states()), [select("plan"), ...end]);
  expect(prompts).toHaveLength(3);
  expect((prompts[2] ?? "").split("plan#1 completed").length - 1).toBe(1);
});

fact(48, "a turn without a choice is followed by three numbered reminders, then the run fails", async () => {
  const text = { text: "Let me think." };
  const { result, prompts } = await direct(directed(states()), [text, text, text, text, bye]);
  for (const number of [1, 2, 3]) expect(prompts[number]).toContain(`This is reminder ${number} of 3`);
  expect(result).toMatchObject({ status: "failed", error: { code: "orchestrator" } });
});

decided(49, "an override of a prompt lasts for one execution, and is recorded with the choice", async () => {
  const turns = [select("say", undefined, "x", { prompt: "Say B." }), select("say"), ...end];
  const { routes } = await direct(directed({ say: say() }, { allowPromptOverride: true }), turns, {
    others: { say: [said, said] },
  });
  expect(routes.map(({ prompt }) => prompt)).toEqual(["Say B.", undefined, undefined, undefined, undefined]);
});
fact(50, "and leaves the definition as it is", async () => {
  const own = directed({ say: say() }, { allowPromptOverride: true });
  const before = own.spec.fingerprint;
  const turns = [select("say", undefined, "x", { prompt: "Say B." }), select("say"), ...end];
  const { live, result } = await direct(own, turns, { others: { say: [said, said] } });
  const entered = (await live.host.journal(result.runId))
    .flatMap(({ records }) => records)
    .filter(({ stepId }) => /^say#\d\/a1\/enter$/.test(stepId));
  expect(entered.map(({ value }) => value.includes("Say B."))).toEqual([true, false]);
  expect(own.spec.fingerprint).toBe(before);
});

/** A run that sleeps in its first state, for three hours. */
async function asleep(turns: readonly ScriptedTurn[]) {
  const exits: string[] = [];
  const wait = timer({ for: "3h", exit: ({ status }) => void exits.push(status) });
  const fix = work({
    act: () => {
      exits.push("fix begins");
      return completed("fixed");
    },
  });
  const { model, prompts } = noting([select("wait"), ...turns]);
  const live = session({ model });
  const handle = live.start(directed({ wait, fix }), { task: "T" });
  const slept = (times: number): Promise<void> =>
    eventually(async () => {
      if ((await live.host.get(handle.runId)) === undefined) return false;
      return dataOf(await eventsOf(live.host, handle.runId), "sleep.started").length === times;
    }, "a sleep");
  await slept(1);
  return { live, handle, prompts, exits, slept };
}

fact(51, "a question while a state sleeps is answered, and the state stays as it is", async () => {
  const { live, handle, prompts, slept } = await asleep([{ text: "It is Monday." }, ...end]);
  await live.message(handle.runId, "Which day is it?");
  await slept(2);
  expect(prompts[1]).toContain("Which day is it?");
  live.clock.turn(3 * HOUR);
  const { stages } = await handle;
  expect(stages.map(({ executionId }) => executionId)).toContain("wait#1");
  expect(stages.filter(({ executionId }) => executionId.startsWith("wait"))).toHaveLength(1);
});

fact(52, "an answer in text needs no choice, and no reminder follows it", async () => {
  const { live, handle, prompts, slept } = await asleep([{ text: "Hello." }, ...end]);
  await live.message(handle.runId, "Hello.");
  await slept(2);
  await quiet();
  expect(prompts).toHaveLength(2);
  live.clock.turn(3 * HOUR);
  expect((await handle).status).toBe("completed");
});

fact(53, "a state that is replaced has ended, with its exit hook, before the next one begins", async () => {
  const { live, handle, exits } = await asleep([select("fix"), ...end]);
  await live.message(handle.runId, "Fix it now.");
  await handle;
  expect(exits).toEqual(["cancelled", "fix begins"]);
});

fact(54, "and neither fails the run nor writes anything afterwards", async () => {
  const { live, handle } = await asleep([select("fix"), ...end]);
  await live.message(handle.runId, "Fix it now.");
  expect(await handle).toMatchObject({ status: "completed", output: 1 });
  const events = await eventsOf(live.host, handle.runId);
  const last = events.findLastIndex(({ executionId }) => executionId === "wait#1");
  const next = events.findIndex(({ executionId }) => executionId === "fix#1");
  expect(last).toBeLessThan(next);
  expect(events.filter(({ executionId, type }) => executionId === "wait#1" && type === "stage.exit")).toHaveLength(2);
});

fact(55, "a state may be replaced again and again, each time as a new execution", async () => {
  const { live, handle, slept } = await asleep([select("wait"), select("wait"), select("fix"), ...end]);
  for (const times of [2, 3]) {
    await live.message(handle.runId, "Wait again.");
    await slept(times);
  }
  await live.message(handle.runId, "Fix it now.");
  const { stages } = await handle;
  const waits = stages.filter(({ executionId }) => executionId.startsWith("wait"));
  expect(waits.map(({ executionId, status }) => `${executionId} ${status}`)).toEqual([
    "wait#1 cancelled",
    "wait#2 cancelled",
    "wait#3 cancelled",
  ]);
});

fact(62, "a state that waits for a person starts nothing, and the orchestrator is not asked meanwhile", async () => {
  const { model, prompts } = noting([select("ask"), ...end]);
  const live = session({ model, wait: true });
  const handle = live.start(directed({ ask: human({ question: "Go on?" }) }), { task: "T" });
  await eventually(async () => (await live.host.requests()).length === 1);
  await quiet();
  expect(prompts).toHaveLength(1);
  const [request] = await live.host.requests();
  if (request === undefined) throw new Error("nothing is asked");
  await live.answer(request, { kind: "value", value: "yes" }, "me");
  expect((await handle).status).toBe("completed");
  expect(prompts[1]).toContain("yes");
});

decided(63, "a state that is chosen again and again reaches its visit cap, and is then refused by name", async () => {
  const turns = [...Array.from({ length: 4 }, () => select("plan")), ...end];
  const { rejected, hops } = await direct(directed(states(), {}, { limits: { maxVisits: 3 } }), turns);
  expect(hops.filter((hop) => hop === "orchestrator plan")).toHaveLength(3);
  expect(rejected).toMatchObject([{ to: "plan", reason: expect.stringContaining("plan cannot be chosen") }]);
});

fact(74, "messages during a run keep their order, and the run ends once", async () => {
  const { live, handle, prompts } = await asleep([{ text: "Noted." }, ...end]);
  for (const text of ["first", "second", "third"]) await live.message(handle.runId, text);
  await eventually(() => prompts.length >= 2);
  await quiet();
  live.clock.turn(3 * HOUR);
  await handle;
  const events = await eventsOf(live.host, handle.runId);
  expect(dataOf(events, "message.received").map(({ text }) => text)).toEqual(["first", "second", "third"]);
  expect(dataOf(events, "run.finished")).toHaveLength(1);
});

fact(75, "a message while a state sleeps reaches the orchestrator first, which may replace the state", async () => {
  const { live, handle, prompts } = await asleep([select("fix"), ...end]);
  await live.message(handle.runId, "Do not wait.");
  await handle;
  expect(prompts[1]).toContain("Do not wait.");
  expect(prompts[2]).toContain("fix#1 completed");
});

decided(76, "only states ask people; the orchestrator is asked again once the answer is there", async () => {
  const { model, prompts, tools } = noting([select("ask"), ...end]);
  const live = session({ model, wait: true });
  const own = directed({ ask: human({ question: "Which file?", answer: z.object({ file: z.string() }) }) });
  const handle = live.start(own, { task: "T" });
  await eventually(async () => (await live.host.requests()).length === 1);
  const [request] = await live.host.requests();
  if (request === undefined) throw new Error("nothing is asked");
  await live.answer(request, { kind: "value", value: { file: "a.ts" } }, "me");
  await handle;
  expect(tools[0]).not.toContain("ask");
  expect(prompts[1]).toContain("a.ts");
});

fact(77, "a fault of the orchestrator's model ends the run once, as failed, and the next run works", async () => {
  const broken = { errors: [{ status: 400, message: "bad request" }] };
  const first = await direct(directed(states()), [broken, bye]);
  expect(first.result).toMatchObject({ status: "failed", error: { code: "model" } });
  expect(dataOf(first.events, "run.finished")).toHaveLength(1);
  expect((await direct(directed(states()), end)).result.status).toBe("completed");
});
