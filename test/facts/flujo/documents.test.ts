import { expect } from "vitest";
import {
  differs,
  errorsOf,
  fact,
  loadFlujo,
  machine,
  pipelineOf,
  ROWS,
  rowsOf,
  runFlujo,
  targetOf,
  textAt,
} from "../../support/flujo.ts";
import { ruleLines } from "../../support/workflows.ts";

// What a document says, and where its mistakes are.

const two = `  - { from: a, on: success, to: b, when: context.x }
  - { from: a, on: success, to: done }
  - { from: b, on: success, to: done }
`;

fact(1, "rows are read in the order of the document", async () => {
  expect((await rowsOf(machine(two))).map((row) => [row.from, targetOf(row)])).toEqual([
    ["a", "b"],
    ["a", "done"],
    ["b", "done"],
  ]);
});

fact(2, "from names the state that a row is for", async () => {
  const ran = await runFlujo(machine(ROWS), { outputs: { a: [{ result: "x" }], b: [{ result: "y" }] } });
  expect(ran.routes).toEqual(["a -> b", "b -> done"]);
});

fact(3, "a target that does not exist is an error at the name", async () => {
  expect(await errorsOf(machine(ROWS.replace("to: done", "to: dine")))).toEqual(["unknown-target: dine"]);
});

fact(4, "from: * is a row for every state", async () => {
  for (const state of ["a", "b"]) {
    const outputs = { a: [state === "a" ? { no: 1 } : { result: "x" }], b: [{ no: 1 }] };
    const ran = await runFlujo(machine(ROWS), { outputs });
    expect(ran.routes.at(-1)).toBe(`${state} -> failed`);
  }
  // It is a row like any other: what stands first decides.
  const first = await runFlujo(machine(`  - { from: "*", on: success, to: done }\n${ROWS}`), {
    outputs: { a: [{ result: "x" }] },
  });
  expect(first.routes).toEqual(["a -> done"]);
});

fact(5, "a trigger that does not exist is an error at the word", async () => {
  expect(await errorsOf(machine(ROWS.replace("on: failure", "on: fails")))).toEqual(["wrong-type: fails"]);
});

fact(6, "the text of a condition is kept", async () => {
  expect((await rowsOf(machine(two))).map(({ when }) => when?.text)).toEqual(["context.x", undefined, undefined]);
});

fact(7, "a source that does not exist is an error at the name", async () => {
  expect(await errorsOf(machine(ROWS.replace("from: b", "from: zz")))).toEqual(["unknown-target: zz"]);
});

fact(8, "a condition that does not parse is an error where it stops making sense", async () => {
  const text = machine(ROWS.replace("to: b }", 'to: b, when: "context.a ? && 1" }'));
  expect(await errorsOf(text)).toEqual(["expression-syntax: &&"]);
});

fact(9, "a row without a trigger is an error", async () => {
  expect(await errorsOf(machine(ROWS.replace("on: success, to: b", "to: b")))).toEqual([
    "missing-field: { from: a, to: b }",
  ]);
});

differs(10, "a blank condition is an error, not a row without a condition", async () => {
  for (const blank of ['""', '"  "', "''"])
    expect(await errorsOf(machine(ROWS.replace("to: b }", `to: b, when: ${blank} }`)))).toHaveLength(1);
});

differs(11, "an unknown key of a row is an error with a suggestion, not a row without a condition", async () => {
  const text = machine(ROWS.replace("to: b }", "to: b, whenn: context.x }"));
  expect(await errorsOf(text)).toEqual(["unknown-key: whenn"]);
  expect((await loadFlujo(text)).diagnostics[0]?.suggestion).toBe('did you mean "when"?');
});

fact(12, "on needs no quotes, and with quotes it is the same", async () => {
  const text = machine(ROWS);
  for (const form of [text, text.replaceAll("on: ", '"on": ')])
    expect((await rowsOf(form)).map(({ on }) => on)).toEqual(["success", "success", "failure"]);
});

differs(
  13,
  "a start that does not exist, or is not given, is an error when the file loads, and nothing runs",
  async () => {
    const text = machine(ROWS);
    const unknown = text.replace("start_state: a", "start_state: aa");
    expect(await errorsOf(unknown)).toEqual(["unknown-target: aa"]);
    expect((await loadFlujo(unknown)).pipeline).toBeUndefined();
    expect(await errorsOf(text.replace("start_state: a\n", ""))).toEqual(["missing-field: kind: StateMachine"]);
  },
);

differs(14, "a machine that starts in an end state has nothing to do: an error when the file loads", async () => {
  const { pipeline, diagnostics } = await loadFlujo(machine(ROWS).replace("start_state: a", "start_state: done"));
  expect(pipeline).toBeUndefined();
  expect(diagnostics.filter(({ severity }) => severity === "error").map(({ rule, path }) => [rule, path])).toEqual([
    ["definition", "start_state"],
  ]);
});

fact(34, "a state may have an empty list of steps: it succeeds", async () => {
  const text = machine(ROWS.replace("to: b }", "to: b, when: output == null }"), {
    states: "  a: []\n  b: { steps: [] }\n  done: {}\n  failed: { steps: [] }",
  });
  expect((await loadFlujo(text)).diagnostics).toEqual([]);
  expect(await runFlujo(text)).toMatchObject({
    status: "completed",
    state: "done",
    output: null,
    walk: ["a#1 completed", "b#1 completed"],
  });
});

fact(35, "a step is the same, however its prompt and its input are written", async () => {
  const forms = [
    '{ name: x, prompt: "Do {{ ctx.task }}.", tools: [] }',
    '{ name: x, instructions: "Do {{ ctx.task }}.", allowed_tools: [] }',
    '{ name: x, kind: step, system_prompt: "Do {{ ctx.task }}.", tools: [] }',
    '{ name: x, input: "Do {{ ctx.task }}.", tools: [] }',
    "{ name: x, uses: agents.doer }",
  ];
  const more = 'agents: { doer: { system_prompt: "Do {{ ctx.task }}.", tools: [] } }';
  for (const form of forms) {
    const text = machine(ROWS, { states: `  a: [${form}]\n  b: []`, more });
    const ran = await runFlujo(text, { outputs: { a: [{ result: "x" }] } });
    expect([form, ran.prompts]).toEqual([form, ["a: Do the task."]]);
  }
});

fact(39, "uses: imports.x is a step that runs the other file", async () => {
  const states = "  a: [{ name: go, uses: imports.other }]\n  b: []";
  const text = machine(ROWS, { states, more: "imports: { other: ./other.yaml }" });
  const files = { "w/other.yaml": "steps:\n  - { name: inside, prompt: Inside., tools: [] }\n" };
  const { spec } = await pipelineOf(text, files);
  expect(spec.states.get("a")?.options).toMatchObject({ steps: [{ kind: "run", name: "go", pipeline: "other" }] });
  const ran = await runFlujo(text, { files, outputs: { inside: [{ result: "x" }] } });
  expect([ran.state, ran.prompts]).toEqual(["done", ["inside: Inside."]]);
});

fact(41, "a step that uses an import needs no agent and no prompt of its own", async () => {
  const states = "  a: [{ name: go, uses: imports.other }]\n  b: []";
  const text = machine(ROWS, { states, more: "imports: { other: other.yaml }" });
  const files = { "w/other.yaml": "steps:\n  - { name: inside, prompt: Inside., tools: [] }\n" };
  expect((await loadFlujo(text, files)).diagnostics).toEqual([]);
});

fact(42, "a state may be the list of its steps", async () => {
  const steps = "[{ name: one, prompt: One., tools: [] }, { name: two, prompt: Two., tools: [] }]";
  const outputs = { one: [{ result: "1" }], two: [{ result: "2" }] };
  const forms = [steps, `{ steps: ${steps} }`];
  const runs = await Promise.all(
    forms.map((form) => runFlujo(machine(ROWS, { states: `  a: ${form}\n  b: []` }), { outputs })),
  );
  for (const { state, prompts } of runs) expect([state, prompts]).toEqual(["done", ["one: One.", "two: Two."]]);
});

fact(43, "a mistake is reported at its line, at any depth", async () => {
  const nested = (step: string): string =>
    `  a:\n    steps:\n      - kind: StateMachine\n        name: inner\n        start_state: x\n        end_states: [done]\n        states:\n          x:\n            - ${step}\n        transitions: [{ from: x, on: success, to: done }]\n  b: []`;
  const bad = "{ name: x, promt: P }";
  const texts: readonly string[] = [
    machine(ROWS, { states: `  a: [${bad}]\n  b: []` }),
    machine(ROWS, { states: `  a: { steps: [${bad}] }\n  b: []` }),
    machine(ROWS, { states: nested(bad) }),
    machine(ROWS, { states: nested(`{ kind: hitl, name: ask, message: m, promt: P }`) }),
    `steps:\n  - ${bad}\n`,
    machine(ROWS, { more: "agents: { one: { system_prompt: S, promt: P } }" }),
  ];
  for (const text of texts) {
    const found = (await loadFlujo(text)).diagnostics.find(({ rule }) => rule === "unknown-key");
    expect(found === undefined ? text : [found.line, textAt(text, found)]).toEqual([
      text.split("\n").findIndex((line) => line.includes("promt")) + 1,
      "promt",
    ]);
  }
  const states = "  a: [{ name: go, uses: imports.other }]\n  b: []";
  const importing = machine(ROWS, { states, more: "imports: { other: ./other.yaml }" });
  const { diagnostics } = await loadFlujo(importing, { "w/other.yaml": `steps:\n  - ${bad}\n` });
  expect(diagnostics.map(({ file, rule, line, column }) => [file, rule, line, column])).toContainEqual([
    "w/other.yaml",
    "unknown-key",
    2,
    16,
  ]);
});

differs(59, "a field of the context that is none is an error when the file loads", async () => {
  for (const field of ["a..b", ".a", "__proto__.b", "a b", "scratchpad.constructor", "0.a"]) {
    const states = `  a: [{ kind: hitl, name: x, message: m, sink_to: "${field}" }]\n  b: []`;
    expect(await errorsOf(machine(ROWS, { states }))).toEqual([`context-key: "${field}"`]);
  }
});

fact("L11", "an unknown key anywhere is an error", async () => {
  const step = (fields: string): string => machine(ROWS, { states: `  a: [{ name: x, ${fields} }]\n  b: []` });
  const texts: readonly string[] = [
    machine(ROWS, { more: "zzz: 1" }),
    machine(ROWS.replace("to: b }", "to: b, zzz: 1 }")),
    machine(ROWS, { states: "  a: { zzz: 1 }\n  b: []" }),
    machine(ROWS, { more: "limits: { zzz: 1 }" }),
    machine(ROWS, { more: "agents: { one: { system_prompt: S, zzz: 1 } }" }),
    step("prompt: P, tools: [], zzz: 1"),
    step("kind: hitl, message: m, zzz: 1"),
    "steps:\n  - { name: x, prompt: P, tools: [] }\nzzz: 1\n",
  ];
  for (const text of texts) expect([text, await errorsOf(text)]).toEqual([text, ["unknown-key: zzz"]]);
});

fact("L12", "an unknown field in a condition is an error at the field, with the one that is meant", async () => {
  const schema = "{ type: object, properties: { coverage: { type: number } }, required: [coverage] }";
  const states = `  a: [{ name: x, prompt: P, tools: [], output_schema: ${schema} }]\n  b: []`;
  const more = "context_schema: { type: object, properties: { retries: { type: number } } }";
  const cases = [
    ["output.covrage > 80", "covrage", "coverage"],
    ["output.last_output.covrage > 80", "covrage", "coverage"],
    ["previous_step.covrage > 80", "covrage", "coverage"],
    ["steps.x.covrage > 80", "covrage", "coverage"],
    ["upstream.a.covrage > 80", "covrage", "coverage"],
    ["context.retrys > 1", "retrys", "retries"],
    ["output.last_step.succes", "succes", "success"],
  ] as const;
  for (const [when, wrong, meant] of cases) {
    const text = machine(ROWS.replace("to: b }", `to: b, when: ${when} }`), { states, more });
    expect(await errorsOf(text)).toEqual([`expression-name: ${wrong}`]);
    expect((await loadFlujo(text)).diagnostics[0]?.suggestion).toBe(`did you mean "${meant}"?`);
  }
  // Without types there is nothing to compare with, and no false alarm.
  const open = machine(ROWS.replace("to: b }", "to: b, when: context.anything.at.all }"));
  expect(ruleLines(await loadFlujo(open))).toEqual([]);
});

differs(26, "a machine without transitions cannot end, which is an error; a list of steps needs none", async () => {
  const text = machine("").replace(/transitions:\n+$/u, "");
  expect((await loadFlujo(text)).pipeline).toBeUndefined();
  const steps = "steps:\n  - { name: one, prompt: One., tools: [] }\n  - { name: two, prompt: Two., tools: [] }\n";
  const ran = await runFlujo(steps, { outputs: { one: [{ result: "1" }], two: [{ result: "2" }] } });
  expect(ran).toMatchObject({ status: "completed", output: { result: "2" } });
  expect(ran.walk).toEqual(["one#1 completed", "two#1 completed"]);
});

differs(
  60,
  "steps of other kinds are refused at the word, so that no branches exist whose contexts could conflict",
  async () => {
    for (const kind of ["parallel", "conditional", "map", "loop", "dynamic_router", "agentic_loop", "cache"]) {
      const text = machine(ROWS, { states: `  a: [{ kind: ${kind}, name: x }]\n  b: []` });
      expect(await errorsOf(text)).toContainEqual(`wrong-type: ${kind}`);
      expect((await loadFlujo(text)).pipeline).toBeUndefined();
    }
  },
);
