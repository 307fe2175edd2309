import { join } from "node:path";
import { loadWorkflow } from "@sluice/workflows";
import { expect } from "vitest";
import { billedModel } from "../../support/billed-model.ts";
import { differs, fact, loadFlujo, machine, type Outputs, pipelineOf, ROWS, runFlujo } from "../../support/flujo.ts";
import { killedEverywhere } from "../../support/killed-runs.ts";
import { dataOf } from "../../support/run-kit.ts";
import { talker } from "../../support/talker.ts";

// Where a machine goes, what its states pass on, and how it ends.

const BOTH: Outputs = { a: [{ result: "x" }], b: [{ result: "y" }] };
/** What makes an agent fail: an output that does not fit, and no second one. */
const BAD = [{ wrong: 1 }];
const level = (value: unknown): string => `context: { scratchpad: { level: ${JSON.stringify(value)} } }`;

differs(15, "an output does not name the next state; the rows that say the same drive a to b, once", async () => {
  const schema = (field: string): string =>
    `{ type: object, properties: { ${field}: { type: string, enum: [b, done] } }, required: [${field}] }`;
  const states = (field: string): string =>
    `  a: [{ name: x, prompt: P, tools: [], output_schema: ${schema(field)} }]\n  b: []`;
  const { diagnostics } = await loadFlujo(machine(ROWS, { states: states("next_state") }));
  expect(diagnostics.map(({ rule, suggestion }) => [rule, suggestion])).toEqual([
    [
      "next-state",
      `call it "choice", and write a transition for each state: { from: …, on: success, when: 'output.choice == "b"', to: b }, { from: …, on: success, when: 'output.choice == "done"', to: done }`,
    ],
  ]);
  const rows = `  - { from: a, on: success, when: 'output.choice == "b"', to: b }
  - { from: a, on: success, when: 'output.choice == "done"', to: done }
  - { from: b, on: success, to: done }
`;
  const ran = await runFlujo(machine(rows, { states: states("choice") }), { outputs: { a: [{ choice: "b" }] } });
  expect(ran.routes).toEqual(["a -> b", "b -> done"]);
  const other = await runFlujo(machine(rows, { states: states("choice") }), { outputs: { a: [{ choice: "done" }] } });
  expect(other.routes).toEqual(["a -> done"]);
});

fact(16, "the history has one entry for each state that ran, and none for the end state", async () => {
  const ran = await runFlujo(machine("  - { from: a, on: success, to: done }\n"), {
    outputs: { a: [{ result: "x" }] },
  });
  expect(ran.walk).toEqual(["a#1 completed"]);
});

fact(17, "a row for the success moves the machine, and an end state stops it: its body never runs", async () => {
  const states =
    "  a: [{ name: x, prompt: P, tools: [] }]\n  b: []\n  done: [{ name: never, prompt: Never., tools: [] }]";
  const ran = await runFlujo(machine(ROWS, { states }), { outputs: { a: [{ result: "x" }] } });
  expect(ran).toMatchObject({ status: "completed", state: "done", prompts: ["a: P"] });
});

fact(18, "the state of a machine that ended is its end state", async () => {
  const ran = await runFlujo(machine(ROWS), { outputs: BOTH });
  expect(ran.state).toBe("done");
  expect(dataOf(ran.events, "run.finished")).toMatchObject([{ state: "done" }]);
});

fact(19, "a failure and a row for * lead to failed", async () => {
  const ran = await runFlujo(machine(ROWS), { outputs: { a: BAD } });
  expect([ran.routes, ran.state]).toEqual([["a -> failed"], "failed"]);
});

differs(20, "a run that ends in failed has failed, whatever got it there", async () => {
  for (const name of ["failed", "error", "Failed"]) {
    const rows = `  - { from: a, on: success, to: ${name}, when: context.scratchpad.level == 2 }\n  - { from: a, on: success, to: done }\n`;
    const text = machine(rows, { more: level(2) }).replace("[done, failed]", `[done, ${name}]`);
    expect(await runFlujo(text, { outputs: BOTH })).toMatchObject({
      status: "failed",
      error: { message: expect.stringContaining("ended in state") },
    });
  }
  const text = machine(ROWS, {
    states: "  a: []\n  b: []\n  done: { outcome: failed }\n  failed: { outcome: completed }",
  });
  expect((await runFlujo(text)).status).toBe("failed");
  const cancelled = machine(ROWS.replace("to: done", "to: cancelled"), { states: "  a: []\n  b: []" });
  expect((await loadFlujo(cancelled.replace("[done,", "[cancelled, done,"))).pipeline).toBeUndefined();
});

differs(
  24,
  "a row that does not match is followed by no guess: the run fails, and each row's reason is recorded",
  async () => {
    const rows = "  - { from: a, on: success, to: b, when: context.never }\n  - { from: b, on: success, to: done }\n";
    const ran = await runFlujo(machine(rows), { outputs: { a: [{ result: "x", next_state: "b" }] } });
    expect(ran).toMatchObject({ status: "failed", walk: ["a#1 failed"] });
    // `next_state` is no field of an agent without a schema of its own; without it, no row matches.
    const other = await runFlujo(machine(rows), { outputs: { a: [{ result: "x" }] } });
    expect(other).toMatchObject({ status: "failed", state: undefined, walk: ["a#1 completed"] });
    expect(dataOf(other.events, "route.decided")).toMatchObject([
      { why: { rejectedRows: [{ row: 0, why: "context.never is missing or empty" }] } },
    ]);
  },
);

fact(25, "a condition on a field that is missing does not match, and the next row decides", async () => {
  const rows = `  - { from: a, on: success, to: failed, when: 'context.nope.deeper.startsWith("a")' }
  - { from: a, on: success, to: failed, when: context.nope }
  - { from: a, on: success, to: done }
`;
  const ran = await runFlujo(machine(rows, { states: "  a: []\n  b: []" }));
  expect(ran).toMatchObject({ status: "completed", state: "done" });
});

fact(27, "tokens and cost of the states add up", async () => {
  const spent = new Map([
    ["one", { input: 10, output: 3 }],
    ["two", { input: 5, output: 2 }],
    ["b", { input: 100, output: 20 }],
  ]);
  const model = billedModel(({ stage }) => {
    const used = spent.get(stage);
    return { kind: "answer", tool: "submit", input: { result: "x" }, ...(used === undefined ? {} : { used }) };
  });
  const states = `  a: [{ name: one, prompt: P, tools: [] }, { name: two, prompt: P, tools: [] }]\n  b: [{ name: three, prompt: P, tools: [] }]`;
  const prices = { "billed/model": { input: 500_000, output: 1_000_000 } };
  const ran = await runFlujo(machine(ROWS, { states }), { options: { model, prices } });
  expect(ran.result.usage).toMatchObject({ inputTokens: 115, outputTokens: 25, costUsd: 82.5 });
});

differs(28, "a cap is no outcome of a state: no row is for it, also not * on failure", async () => {
  const rows = `  - { from: a, on: success, to: b }
  - { from: b, on: success, to: done, when: context.never }
  - { from: b, on: success, to: a }
  - { from: "*", on: failure, to: failed }
`;
  const text = machine(rows, { states: "  a: []\n  b: []", more: "limits: { max_hops: 3 }" });
  const ran = await runFlujo(text);
  expect(ran).toMatchObject({ status: "failed", state: undefined, error: { code: "limit_hops" } });
  expect(ran.routes).not.toContain("b -> failed");
});

const CHOICE = `  - { from: a, on: success, to: b, when: context.scratchpad.level == 2 }
  - { from: a, on: success, to: failed }
  - { from: b, on: success, to: done }
`;
fact(30, "a condition that is true takes its row", async () => {
  const ran = await runFlujo(machine(CHOICE, { more: level(2) }), { outputs: BOTH });
  expect(ran.routes).toEqual(["a -> b", "b -> done"]);
});

fact(31, "a condition that is false leaves the decision to the next row", async () => {
  const ran = await runFlujo(machine(CHOICE, { more: level(3) }), { outputs: BOTH });
  expect(ran.routes).toEqual(["a -> failed"]);
});

fact(32, "conditions read the context that the document begins with", async () => {
  for (const [value, when] of [
    ["ready", 'context.scratchpad.level == "ready"'],
    [["x"], 'context.scratchpad.level[0] == "x"'],
    [{ deep: { er: true } }, "context.scratchpad.level.deep.er"],
  ] as const) {
    const rows = CHOICE.replace("context.scratchpad.level == 2", `'${when}'`);
    expect((await runFlujo(machine(rows, { more: level(value) }), { outputs: BOTH })).state).toBe("done");
  }
});

fact(33, "a file with imports, questions and rows runs from its start to its end", async () => {
  const { pipeline } = await loadWorkflow(join(import.meta.dirname, "../../fixtures/workflows/flujo/orchestrate.yaml"));
  if (pipeline === undefined) throw new Error("it does not load");
  const ran = await runFlujo(pipeline, {
    outputs: {
      draft_question: [{ question: "Which cohort?" }],
      discover: [{ concepts: ["age"] }],
      review: [{ verdict: "approve" }],
    },
    answers: ["adults"],
  });
  expect(ran).toMatchObject({ status: "completed", state: "done", output: { verdict: "approve" } });
  expect(ran.walk).toEqual(["clarification#1 completed", "concept_discovery#1 completed", "review#1 completed"]);
  expect(ran.asked).toEqual(["Which cohort?"]);
});

fact(36, "what one state puts into the context, the next ones read: in prompts, conditions and imports", async () => {
  const states = `  a: [{ name: x, prompt: P, tools: [], sink_to: scratchpad.found }]
  b: [{ name: y, prompt: "{{ context.scratchpad.found.result }}", tools: [] }, { name: z, uses: imports.other }]`;
  const rows = ROWS.replace("to: b }", "to: b, when: 'context.scratchpad.found.result == \"it\"' }");
  const text = machine(rows, { states, more: "imports: { other: ./other.yaml }" });
  const files = {
    "w/other.yaml": 'steps:\n  - { name: inner, prompt: "in {{ context.scratchpad.found.result }}", tools: [] }\n',
  };
  const outputs = { x: [{ result: "it" }], y: [{ result: "y" }], inner: [{ result: "i" }] };
  const ran = await runFlujo(text, { files, outputs });
  expect([ran.state, ran.prompts]).toEqual(["done", ["x: P", "y: it", "inner: in it"]]);
});

fact(37, "three states follow each other by their rows", async () => {
  const states = "  a: []\n  b: []\n  c: []";
  const rows = `  - { from: a, on: success, to: b }\n  - { from: b, on: success, to: c }\n  - { from: c, on: success, to: done }\n`;
  expect((await runFlujo(machine(rows, { states }))).routes).toEqual(["a -> b", "b -> c", "c -> done"]);
});

const SEQUENCE = `name: outer
steps:
  - kind: StateMachine
    name: first
    start_state: x
    end_states: [done, failed]
    states:
      x: [{ name: deep, prompt: "Deep of {{ ctx.task }}.", tools: [], sink_to: scratchpad.deep }]
    transitions:
      - { from: x, on: success, to: done, when: 'context.scratchpad.deep.result == "d"' }
      - { from: x, on: success, to: failed }
  - { name: after, prompt: "{{ steps.first.result }} {{ context.scratchpad.deep.result }}", tools: [] }
`;

fact(38, "a machine that is a step is one entry of the history around it, and has one of its own", async () => {
  const ran = await runFlujo(SEQUENCE, { outputs: { deep: [{ result: "d" }], after: [{ result: "a" }] } });
  expect(ran.walk).toEqual(["first#1 completed", "after#1 completed"]);
  const inner = ran.events.filter(({ runId, type }) => type === "route.decided" && runId.endsWith("/first-first"));
  expect(inner.map(({ data }) => [data.from, data.to])).toEqual([["x", "done"]]);
});

fact(40, "outputs takes fields of an import's context or output to fields of this one, and nothing else", async () => {
  const child = `context: { scratchpad: { kept: inside } }
steps:
  - { name: find, prompt: P, tools: [], sink_to: scratchpad.found, output_schema: { type: object, properties: { n: { type: number } } } }
`;
  const states = (outputs: string): string => `  a: [{ name: go, uses: imports.other${outputs} }]\n  b: []`;
  const cases = [
    ["", "context.scratchpad.found.n == 7 && context.scratchpad.kept == 'inside'"],
    [", outputs: [{ child: scratchpad.found.n, parent: result.n }]", "context.result.n == 7 && !context.scratchpad"],
    [", outputs: { scratchpad.found.n: result.n, n: direct }", "context.result.n == 7 && context.direct == 7"],
    [", outputs: [{ child: scratchpad.nope, parent: result.n }]", "!context.result"],
    [", outputs: []", "!context.scratchpad && steps.go.n == 7"],
  ] as const;
  for (const [outputs, when] of cases) {
    const rows = `  - { from: a, on: success, to: done, when: "${when}" }\n  - { from: a, on: success, to: failed }\n`;
    const text = machine(rows, { states: states(outputs), more: "imports: { other: ./other.yaml }" });
    const ran = await runFlujo(text, { files: { "w/other.yaml": child }, outputs: { find: [{ n: 7 }] } });
    expect([outputs, ran.state, ran.error]).toEqual([outputs, "done", undefined]);
  }
});

fact("L3", "a cap that is reached is an error: of hops, also the one of each machine, and of visits", async () => {
  const rows = `  - { from: a, on: success, to: b }
  - { from: b, on: success, to: done, when: context.never }
  - { from: b, on: success, to: a }
`;
  const states = "  a: []\n  b: []";
  const none = await runFlujo(machine(rows, { states, more: "limits: { max_visits: 100 }" }));
  expect(none).toMatchObject({ status: "failed", state: undefined, error: { code: "limit_hops" } });
  const hops = await runFlujo(machine(rows, { states, more: "limits: { max_hops: 5 }" }));
  expect([hops.error?.code, hops.walk.length]).toEqual(["limit_hops", 6]);
  const visits = await runFlujo(machine(rows, { states, more: "limits: { max_visits: 2 }" }));
  expect([visits.error?.code, visits.walk.length]).toEqual(["limit_visits", 4]);
});

fact("L4", "what decided before decides nothing later: a state is not left by an earlier row's target", async () => {
  const rows = `  - { from: a, on: success, to: b, when: !context.scratchpad.seen }
  - { from: b, on: success, to: a }
`.replace("!context.scratchpad.seen", '"!context.scratchpad.seen"');
  const states = `  a: []\n  b: [{ name: x, prompt: P, tools: [], sink_to: scratchpad.seen }]`;
  const text = machine(`${rows}  - { from: a, on: failure, to: done }\n`, { states });
  const ran = await runFlujo(text, { outputs: { x: [{ result: "x" }] } });
  expect(ran.walk).toEqual(["a#1 completed", "b#1 completed", "a#2 completed"]);
  expect(ran).toMatchObject({ status: "failed", state: undefined });
});

fact("L5", "a state that fails without a row for it fails the run, with its code", async () => {
  const rows = "  - { from: a, on: success, to: b }\n  - { from: b, on: success, to: done }\n";
  const ran = await runFlujo(machine(rows), { outputs: { a: BAD } });
  expect(ran).toMatchObject({ status: "failed", state: undefined, walk: ["a#1 failed"] });
  expect(ran.error).toMatchObject({ code: expect.stringMatching(/\w/), message: expect.stringMatching(/\w/) });
  const success = await runFlujo(
    machine("  - { from: a, on: failure, to: b }\n  - { from: b, on: success, to: done }\n"),
    {
      outputs: { a: [{ result: "x" }] },
    },
  );
  expect(success).toMatchObject({
    status: "failed",
    error: { message: "a completed, and no transition leads on from it" },
  });
});

fact("L6", "a step that fails ends its state as failed: no step after it runs, and nothing is merged", async () => {
  const states = `  a:
    - { name: first, prompt: First., tools: [], updates_context: true }
    - { name: bad, prompt: Bad., tools: [] }
    - { name: after, prompt: After., tools: [] }
  b: []`;
  const rows = `  - { from: a, on: success, to: done }
  - { from: a, on: failure, to: failed, when: 'output.last_step.feedback.startsWith("bad failed") && !context.scratchpad && !output.last_step.success' }
`;
  const ran = await runFlujo(machine(rows, { states }), { outputs: { first: [{ result: "1" }], bad: BAD } });
  expect(ran).toMatchObject({ status: "failed", state: "failed", walk: ["a#1 failed"] });
  expect(ran.prompts.some((prompt) => prompt.startsWith("after"))).toBe(false);
});

fact("L7", "machines are inside each other and follow each other, each with states of its own", async () => {
  const ran = await runFlujo(SEQUENCE, { outputs: { deep: [{ result: "d" }], after: [{ result: "a" }] } });
  expect(ran).toMatchObject({
    status: "completed",
    output: { result: "a" },
    prompts: ["deep: Deep of the task.", "after: d d"],
  });
  const failing = await runFlujo(SEQUENCE, { outputs: { deep: [{ result: "other" }] } });
  expect(failing).toMatchObject({ status: "failed", walk: ["first#1 failed"] });

  const inner = `kind: StateMachine
          name: inner
          start_state: x
          end_states: [done]
          states: { x: [{ name: deep, prompt: Deep., tools: [], sink_to: scratchpad.deep }] }
          transitions: [{ from: x, on: success, to: done }]`;
  const text = `steps:
  - kind: StateMachine
    name: first
    start_state: x
    end_states: [done]
    states:
      x:
        - ${inner}
    transitions: [{ from: x, on: success, to: done, when: context.scratchpad.deep }]
  - kind: StateMachine
    name: second
    start_state: x
    end_states: [done]
    states:
      x: [{ name: last, prompt: "{{ context.scratchpad.deep.result }}", tools: [] }]
    transitions: [{ from: x, on: success, to: done }]
`;
  const nested = await runFlujo(text, { outputs: { deep: [{ result: "d" }], x: [{ result: "l" }] } });
  expect(nested).toMatchObject({ status: "completed", output: { result: "l" } });
  expect(nested.prompts.at(-1)).toMatch(/: d$/);
});

fact(
  "L8",
  "each state gets the output of the one before, and an output and the context reach all that follow",
  async () => {
    const states = `  a: [{ name: one, prompt: "One of {{ ctx.task }}.", tools: [] }]
  b:
    - { name: two, prompt: "After {{ previous_step.result }}.", tools: [], sink_to: scratchpad.two }
    - { name: three, prompt: "{{ previous_step.result }} {{ steps.one.result }} {{ context.scratchpad.two.result }}", tools: [] }
  c: [{ name: four, prompt: "{{ steps.one.result }} {{ steps.two.result }} {{ previous_step.result }}", tools: [] }]`;
    const rows = `  - { from: a, on: success, to: b, when: 'output.result == "1" && steps.one.result == "1"' }
  - { from: b, on: success, to: c, when: 'output.result == "3" && steps.two.result == "2" && upstream.a.result == "1"' }
  - { from: c, on: success, to: done }
`;
    const outputs = { a: [{ result: "1" }], two: [{ result: "2" }], three: [{ result: "3" }], c: [{ result: "4" }] };
    const ran = await runFlujo(machine(rows, { states }), { outputs });
    expect(ran.prompts).toEqual(["a: One of the task.", "two: After 1.", "three: 2 1 2", "c: 1 2 3"]);
    expect(ran).toMatchObject({ status: "completed", output: { result: "4" } });
  },
);

fact("L9", "a machine that is killed before any of its records resumes where it was, and repeats nothing", async () => {
  const states = `  a: [{ name: one, prompt: P, tools: [], sink_to: scratchpad.one }, { name: two, prompt: P, tools: [] }]
  b: [{ name: three, prompt: P, tools: [] }]
  c: []`;
  const rows = `  - { from: a, on: success, to: b, when: context.scratchpad.one }
  - { from: b, on: success, to: c }
  - { from: c, on: success, to: done }
`;
  const pipeline = await pipelineOf(machine(rows, { states }));
  let calls = 0;
  const { whole, killed } = await killedEverywhere(() => ({
    pipeline: { id: pipeline.id, spec: pipeline.spec },
    input: { task: "the task" },
    options: {
      model: talker(() => {
        calls += 1;
        return { calls: [{ tool: "submit", input: { result: "x" } }] };
      }),
    },
  }));
  expect(whole).toMatchObject({ status: "completed", state: "done" });
  expect(whole.stages).toEqual(["a#1 completed", "b#1 completed", "c#1 completed"]);
  for (const facts of killed) expect(facts).toEqual(whole);
  // Each run needs three answers; one that was killed before it was recorded is asked for again.
  expect(killed.length).toBeGreaterThan(15);
  expect(calls).toBeLessThanOrEqual(3 * (killed.length + 1) + killed.length);
});

fact(
  "L10",
  "every hop is a record: from where to where, by which row, and why the rows before it did not match",
  async () => {
    const rows = `  - { from: a, on: success, to: failed, when: context.scratchpad.level > 2 }
  - { from: a, on: failure, to: failed }
  - { from: a, on: success, to: b }
  - { from: b, on: success, to: done }
`;
    const ran = await runFlujo(machine(rows, { more: level(2) }), { outputs: BOTH });
    expect(dataOf(ran.events, "route.decided")).toMatchObject([
      {
        from: "a",
        to: "b",
        why: {
          by: "table",
          row: 2,
          rejectedRows: [{ row: 0, why: "context.scratchpad.level > 2 is false" }, { row: 1 }],
        },
      },
      { from: "b", to: "done", why: { by: "table", row: 3 } },
    ]);
  },
);

fact(
  "L13",
  "an error in a condition is recorded with the condition and its cause, and its row does not match",
  async () => {
    const cases = [
      ["context.nope.deeper == 1", "there is no nope"],
      ["context.scratchpad.level.contains('a')", ""],
      ["context.scratchpad.list[5] == 1", "index out of bounds"],
      ["int(context.scratchpad.text) == 1", ""],
      ["1 / context.scratchpad.zero > 0", "divides by zero"],
    ] as const;
    for (const [when, cause] of cases) {
      const rows = `  - { from: a, on: success, to: failed, when: "${when}" }\n  - { from: a, on: success, to: done }\n`;
      const more = "context: { scratchpad: { level: 2, list: [1], text: none, zero: 0 } }";
      const ran = await runFlujo(machine(rows, { states: "  a: []\n  b: []", more }));
      const [decided] = dataOf(ran.events, "route.decided");
      expect([when, ran.state]).toEqual([when, "done"]);
      expect(JSON.stringify(decided?.why)).toContain("cannot be evaluated");
      expect(JSON.stringify(decided?.why)).toContain(cause);
    }
  },
);
