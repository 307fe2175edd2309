import { callbackInteractor, checkPipeline, done, field, pipeline, type StateLimits } from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore } from "@sluice/core/host";
import { script } from "@sluice/stages";
import { authored, authoredExecutor, runInput } from "@sluice/workflows";
import { describe, expect, test } from "vitest";
import { agrees, asking, feedbackOf, submit, write, writes, writesOf } from "../support/authored.ts";
import { billedModel } from "../support/billed-model.ts";
import { handClock } from "../support/hand-clock.ts";
import { type KilledRun, killedEverywhere } from "../support/killed-runs.ts";
import { dataOf, eventsOf, json, noModel, session, tool } from "../support/run-kit.ts";
import { failingAt } from "../support/stopped-runs.ts";
import { talker } from "../support/talker.ts";

// States in which a model writes a pipeline.

const final = { type: "final" };
const working = (state: object = {}) => ({
  id: "working",
  initial: "work",
  states: { work: { allowed_tools: [], on: { DONE: "done" }, ...state }, done: final },
});
const send = (event: string) => ({ calls: [{ tool: "transition", input: { event } }] });

describe("a pipeline that a model writes", () => {
  test("is shown to a person, runs as a child, and its output is in the state's", async () => {
    const { output, asked, live, runId } = await write([asking]);
    expect(output).toEqual({
      pipeline: "asking",
      fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/),
      output: "yes",
    });
    expect(asked.map(({ body }) => body.question)).toEqual([
      `A model wrote the pipeline "asking". It starts in "ask".
Tools without asking: none
Commands: none
At most: 50 transitions, 5 visits of a state
States:
- "ask": asks a person: "Ready for {{ctx.task}}?"
    success -> "done"
Ends: "done" (completed)

Run it?`,
      "Ready for the release?",
    ]);
    const runs = (await live.host.tree(runId)).map((one) => one.runId.replace(runId, ""));
    expect(runs).toEqual(["", "/auto#1:a1:design/design", "/auto#1:a1:run/run"]);
  });

  test("runs agents with the tools that it narrows", async () => {
    const names: unknown[] = [];
    const touch = tool("touch", {
      effect: "write",
      execute: async (input) => {
        names.push(input);
        return { ok: true, output: null };
      },
    });
    const { output, model, asked } = await write(
      [working({ allowed_tools: ["touch"], instructions: "Touch it." })],
      { allow: { tools: ["touch", "Read"] } },
      {
        tools: [touch],
        say: ({ turn }) => (turn === 0 ? { calls: [{ tool: "touch", input: {} }] } : send("DONE")),
      },
    );
    expect(output).toMatchObject({ pipeline: "working" });
    expect(names).toHaveLength(1);
    expect(asked).toHaveLength(1);
    expect(asked[0]?.body.question).toContain('Tools without asking: "touch"\n');
    const [, working1] = model.heard;
    expect(working1?.tools).toEqual(["touch", "get_state", "transition"]);
  });

  test("is written again with what was wrong with it, at most three times", async () => {
    const wrong = working({ on: { DONE: "dnoe" } });
    const found = await write([wrong, asking]);
    expect(found.output).toMatchObject({ pipeline: "asking" });
    expect(found.model.heard).toHaveLength(2);
    const feedback = feedbackOf(found);
    for (const part of ["pipeline.json:8:17", "unknown-target", "did you mean", "dnoe"])
      expect(feedback).toContain(part);

    const never = await write([wrong, wrong, wrong, asking]);
    expect(never.model.heard).toHaveLength(3);
    expect(never.asked).toEqual([]);
    expect(never.output).toMatchObject({ code: "authored", detail: { cause: "design", code: "assert" } });
  });

  test.each([
    ["rejects it", { kind: "value", value: "reject" }, "authored", "rejected"],
    ["denies it", { kind: "deny", reason: "no" }, "authored", "rejected"],
    ["defers it", { kind: "defer" }, "unanswered", "deferred"],
  ] as const)("does not run where a person %s", async (_what, answer, code, cause) => {
    const { output, live, runId } = await write([asking], {}, { person: () => answer });
    expect(output).toMatchObject({ code, detail: { cause } });
    expect(await live.host.tree(runId)).toHaveLength(2);
  });

  test("does not run where no one can be asked", async () => {
    const live = session({ model: talker(() => submit(asking)), executors: [authoredExecutor] });
    expect(await live.run(writes(), { task: "T" })).toMatchObject({
      output: { code: "unanswered", detail: { cause: "no_interactor" } },
    });
  });

  test.each([
    ["always", "yolo", 2],
    ["mode", "ask", 2],
    ["mode", "allowlist", 2],
    ["mode", "yolo", 1],
    ["never", "ask", 1],
  ] as const)("with approval %s in mode %s asks %i times", async (approval, mode, times) => {
    const { asked, output } = await write([asking], { approval }, { mode });
    expect(asked).toHaveLength(times);
    expect(output).toMatchObject({ output: "yes" });
  });

  test("that fails is a failure of the state, which a route can lead on from", async () => {
    const person = (request: Parameters<typeof agrees>[0]) =>
      String(request.body.question).endsWith("Run it?") ? agrees(request) : ({ kind: "deny" } as const);
    const { output, runId } = await write([asking], {}, { person });
    expect(output).toMatchObject({
      code: "pipeline",
      message: "the pipeline asking failed: ask failed (unanswered): ask: no one answered the question (denied)",
      detail: { code: "unanswered", runId: `${runId}/auto#1:a1:run/run` },
    });
  });

  test("may run a pipeline that its author allows, under its name", async () => {
    const other = pipeline({
      id: "other",
      input: runInput,
      stages: { only: script({ command: ["/bin/echo", "{{ctx.task}}"] }) },
      initial: "only",
      next: { only: ({ output }) => done(output.stdout) },
    });
    const nested = {
      id: "nested",
      initial: "inner",
      states: { inner: { pipeline: { workflow: "other" }, on: { success: "done" } }, done: final },
    };
    const allow = { tools: [], kinds: ["pipeline"], pipelines: { other } } as const;
    expect((await write([nested], { allow })).output).toMatchObject({ output: "the release" });
  });

  test("is capped by the limits of its author", async () => {
    const looping = {
      id: "looping",
      initial: "a",
      states: { a: { human: { question: "Again?" }, on: { success: "a", failure: "done" } }, done: final },
    };
    const { output, asked } = await write([looping], { allow: { tools: [], limits: { maxVisits: 3 } } });
    expect(asked).toHaveLength(4);
    expect(output).toMatchObject({ code: "pipeline", detail: { code: "limit_visits" } });
  });

  test.each([
    ["tokens", { maxTokens: 25_000 }],
    ["money", { maxCostUsd: 0.025 }],
    ["time", { timeoutMs: 30_000 }],
  ])(
    "is capped in %s by the limits of its author, however often the run is killed and resumed",
    async (_what, limits) => {
      const looking = working({ allowed_tools: ["Look"], turn_cap: 40 });
      const looks = async (dies: (store: JournalStore, looked: number) => JournalStore) => {
        const memory = createMemoryJournals();
        const clock = handClock();
        let looked = 0;
        const model = billedModel(({ stage, turn }) => {
          if (stage === "design") return { kind: "answer", tool: "create_pipeline", input: { document: looking } };
          looked += 1;
          clock.turn(6_000);
          return { kind: "answer", tool: "Look", input: { turn }, used: { input: 3_000, output: 10 } };
        });
        const capped = writes({ approval: "never", allow: { tools: ["Look"], limits } });
        const life = () =>
          session({
            model,
            clock,
            tools: [tool("Look", { effect: "read" })],
            executors: [authoredExecutor],
            prices: { [model.id]: { input: 1, output: 1 } },
            host: createHost(dies(memory.connect(), looked), { clock }),
          });
        const handle = life().start(capped, { task: "t" });
        let result = await handle.then(json, () => null);
        let resumes = 0;
        for (; result === null; resumes += 1)
          result = await life()
            .resume(capped, handle.runId)
            .then(json, () => null);
        return { looked, resumes, output: field(result, "output") };
      };
      const inOneLife = await looks((store) => store);
      expect(inOneLife).toMatchObject({ looked: 5, resumes: 0, output: { code: "pipeline" } });
      const inMany = await looks((store, looked) =>
        looked < 4 ? failingAt(store, new RegExp(`turn/${looked + 2}/.*verdicts`)) : store,
      );
      expect(inMany).toMatchObject({ looked: 5, resumes: 2, output: { code: "pipeline" } });
    },
  );

  test("is capped by the limits of its state, which cover the writing of it, too", async () => {
    const used = { input: 3_000, output: 10 };
    const run = async (limits: StateLimits) => {
      const model = billedModel(({ stage, turn }) =>
        stage === "design"
          ? { kind: "answer", tool: "create_pipeline", input: { document: turn === 0 ? {} : looking }, used }
          : { kind: "answer", tool: "Look", input: { turn }, used },
      );
      const looking = working({ allowed_tools: ["Look"], turn_cap: 6 });
      const capped = writes({ approval: "never", allow: { tools: ["Look"] }, limits });
      const live = session({ model, tools: [tool("Look", { effect: "read" })], executors: [authoredExecutor] });
      const { output } = await live.run(capped, { task: "t" }).then((result) => ({ output: null, ...result }));
      return { asked: model.asked.map(({ stage }) => stage), output };
    };
    const message = expect.stringContaining("the state that runs this pipeline may use 22000 tokens: 12040 used");
    expect((await run({})).asked).toEqual(["design", "design", ...Array.from({ length: 6 }, () => "work")]);
    expect(await run({ maxTokens: 22_000 })).toMatchObject({
      asked: ["design", "design", "work", "work"],
      output: { message },
    });
  });

  test("reads its brief, and may look at the project while it is written", async () => {
    const allow = { tools: ["Read"] };
    const { model } = await write([asking], { allow, brief: "Publish {{ctx.task}}.", designTools: ["Read"] });
    const [first] = model.heard;
    expect(JSON.stringify(first?.messages)).toContain("Publish the release.");
    expect(first?.tools).toEqual(["Read", "create_pipeline"]);
  });
});

describe("what is recorded of it", () => {
  test("a run comes to the same end after a kill at any record, and the model is asked once", async () => {
    const document = {
      id: "all",
      initial: "work",
      states: {
        work: { allowed_tools: [], on: { DONE: "ask" } },
        ask: { human: { question: "Ready?" }, on: { success: "done" } },
        done: final,
      },
    };
    let designs = 0;
    const make = (): KilledRun => ({
      pipeline: writesOf({ type: "object" }, { tools: [] }),
      input: { task: "T" },
      options: {
        executors: [authoredExecutor],
        interactors: [callbackInteractor("Ada", agrees)],
        model: talker(({ stage }) => {
          if (stage !== "design") return send("DONE");
          designs += 1;
          return submit(document);
        }),
      },
    });
    const { whole, killed } = await killedEverywhere(make);
    expect(whole).toMatchObject({ status: "completed", output: { pipeline: "all" } });
    for (const facts of killed) expect({ ...facts, events: [] }).toEqual({ ...whole, events: [] });
    // Once a run, and once more where the process died before the answer was recorded.
    expect(designs).toBeLessThanOrEqual(killed.length + 3);
  });

  test("has the document and its fingerprint", async () => {
    const { live, runId, output } = await write([asking]);
    const { records } = (await live.host.journal(runId))[0] ?? { records: [] };
    const step = records.find(({ stepId }) => stepId.endsWith("/document"));
    expect(JSON.parse(String(step?.value))).toEqual({
      document: asking,
      fingerprint: Reflect.get(Object(output), "fingerprint"),
    });
    const started = dataOf(await eventsOf(live.host, runId), "run.started");
    expect(started.find(({ made }) => made === Reflect.get(Object(output), "fingerprint"))).toMatchObject({
      pipeline: "asking",
      shape: { initial: "ask" },
    });
  });
});

describe("the definition of such a state", () => {
  const problemsOf = (options: Parameters<typeof authored>[0]): readonly string[] =>
    (authored(options).spec.problems ?? []).map(({ path }) => path);

  test.each([
    ["an unknown kind", { allow: { tools: [], kinds: ["shell"] } }, ["allow.kinds"]],
    ["tools that are none", { allow: { tools: "Read" } }, ["allow.tools"]],
    ["an empty command", { allow: { tools: [], commands: [[]] } }, ["allow.commands"]],
    ["a floor below thirty seconds", { allow: { tools: [], floor: "29s" } }, ["allow.floor"]],
    ["a limit that is none", { allow: { tools: [], limits: { maxHops: 0 } } }, ["allow.limits.maxHops"]],
    ["a limit that does not exist", { allow: { tools: [], limits: { hops: 3 } } }, ["allow.limits.hops"]],
    ["a floor that is none", { allow: { tools: [], floor: "soon" } }, ["allow.floor"]],
    [
      "tools for writing that the pipeline cannot have",
      { allow: { tools: [] }, designTools: ["Read"] },
      ["designTools[0]"],
    ],
    ["a template that is none", { allow: { tools: [] }, brief: "{{ctx.}}" }, ["brief"]],
    ["an approval that is none", { allow: { tools: [] }, approval: "maybe" }, ["approval"]],
  ])("has a problem: %s", (_what, options, paths) => {
    expect(problemsOf(JSON.parse(JSON.stringify(options)))).toEqual(paths);
  });

  test("needs an executor in the session", async () => {
    await expect(session({ model: noModel }).run(writes(), {})).rejects.toMatchObject({ code: "session_invalid" });
  });

  test("has the tools that it may give as its own", () => {
    const made = writes({ allow: { tools: ["Read", "Edit(src/**)"] } });
    expect(made.spec.states.get("auto")?.allowedTools).toEqual(["Read", "Edit(src/**)"]);
    expect(checkPipeline(made.spec)).toEqual([]);
  });

  test("is part of the fingerprint", () => {
    const prints = [{}, { allow: { tools: ["Read"] } }, { approval: "never" }, { brief: "x" }].map(
      (options) => writes(JSON.parse(JSON.stringify(options))).spec.fingerprint,
    );
    expect(new Set(prints).size).toBe(4);
  });
});

test("the output of the state has its type", async () => {
  const typed = pipeline({
    id: "typed",
    input: runInput,
    stages: { auto: authored({ allow: { tools: [] }, approval: "never" }) },
    initial: "auto",
    next: { auto: ({ output }) => done(`${output.pipeline.toUpperCase()} ${JSON.stringify(output.output)}`) },
  });
  const live = session({
    model: talker(() => submit(asking)),
    executors: [authoredExecutor],
    interactors: [callbackInteractor("Ada", agrees)],
  });
  expect(json(Reflect.get(await live.run(typed, {}), "output"))).toBe('ASKING "yes"');
});
