import { readFileSync } from "node:fs";
import type { RowSpec, StateSpec } from "@sluice/core";
import { type LoadedWorkflow, loadWorkflow } from "@sluice/workflows";
import { describe, expect, test } from "vitest";
import { loadTexts, ruleLines } from "../support/workflows.ts";

const fixtures = new URL("../fixtures/workflows/flujo/", import.meta.url);

const agent = (name: string, more = ""): string => `- { name: ${name}, prompt: Work., tools: []${more} }`;

/** A machine whose states are `a` and `b`, with these rows; `states` replaces them. */
function machine(
  rows: string,
  { states, more = "" }: { readonly states?: string; readonly more?: string } = {},
): string {
  return `kind: StateMachine
name: m
start_state: a
end_states: [done, failed]
${more}
states:
${states ?? `  a: [{ name: work_a, prompt: Work., tools: [] }]\n  b: { steps: [{ name: work_b, prompt: Work., tools: [] }] }`}
transitions:
${rows}
`;
}

const ROWS = `  - { from: a, on: success, to: b }
  - { from: b, on: success, to: done }
  - { from: "*", on: failure, to: failed }
`;

const load = async (text: string, others: Readonly<Record<string, string>> = {}): Promise<LoadedWorkflow> =>
  await loadTexts("w/m.yaml", { "w/m.yaml": text, "w/o.yaml": `steps:\n  ${agent("inside")}\n`, ...others });

async function loaded(text: string, others: Readonly<Record<string, string>> = {}) {
  const { pipeline, diagnostics } = await load(text, others);
  if (pipeline === undefined) throw new Error(JSON.stringify(diagnostics, null, 2));
  return pipeline.spec;
}

async function rowsOf(text: string): Promise<readonly RowSpec[]> {
  const { routes } = await loaded(text);
  if (routes.kind !== "table") throw new Error("no rows");
  return routes.rows;
}

async function stateOf(text: string, id: string): Promise<StateSpec> {
  const state = (await loaded(text)).states.get(id);
  if (state === undefined) throw new Error(`no state ${id}`);
  return state;
}

const targetOf = ({ to }: RowSpec): unknown => ("state" in to ? to.state : to);
/** What a diagnostic is about: the characters at its position. */
function at(
  text: string,
  { line, column, length }: { readonly line: number; readonly column: number; readonly length: number },
): string {
  return (text.split("\n")[line - 1] ?? "").slice(column - 1, column - 1 + length);
}

describe("a state machine loads", () => {
  test("the machine of the specification, with the states and imports that it leaves out", async () => {
    const found = await loadWorkflow(new URL("orchestrate.yaml", fixtures).pathname);
    expect(found.diagnostics).toEqual([]);
    expect(found.format).toBe("flujo");
    expect(found.id).toBe("orchestrate");
    expect(found.files.map(({ path }) => path.slice(path.lastIndexOf("/") + 1))).toEqual([
      "orchestrate.yaml",
      "clarification.yaml",
      "concept_discovery.yaml",
    ]);
    const { routes, states } = found.pipeline?.spec ?? {};
    expect(states?.get("review")?.kind).toBe("agent");
    if (routes?.kind !== "table") throw new Error("no rows");
    expect(routes.rows.map((row) => [row.from, row.on, targetOf(row), row.when?.text])).toEqual([
      ["clarification", "pause", "clarification", undefined],
      ["clarification", "success", "concept_discovery", "context.scratchpad.cohort_definition"],
      ["concept_discovery", "pause", "concept_discovery", undefined],
      ["concept_discovery", "success", "review", undefined],
      ["review", "success", "done", 'output.verdict == "approve"'],
      ["*", "failure", "failed", undefined],
    ]);
  });

  test("as a document, as the only item of a list, and as the only step of a file", async () => {
    const text = machine(ROWS);
    const item = text
      .split("\n")
      .map((line, index) => (index === 0 ? `- ${line}` : `  ${line}`))
      .join("\n");
    const step = `version: 1\nsteps:\n${item
      .split("\n")
      .map((line) => `  ${line}`)
      .join("\n")}`;
    for (const form of [text, item, step]) {
      const spec = await loaded(form);
      expect([...spec.states.keys()]).toEqual(["a", "b", "done", "failed"]);
      expect(spec.initial).toBe("a");
    }
    expect((await load(step)).id).toBe("m");
  });

  test("keys may be in camelCase", async () => {
    const text = machine(ROWS).replace("start_state", "startState").replace("end_states", "endStates");
    expect((await rowsOf(text)).map(({ on }) => on)).toEqual(["success", "success", "failure"]);
  });

  test("a state with several steps, a question or an import is a state of steps", async () => {
    const states = `  a: [${"{ name: one, prompt: Work., tools: [] }, { name: two, prompt: Work., tools: [] }"}]
  b: [{ kind: hitl, name: ask, message: Ready? }]`;
    expect((await stateOf(machine(ROWS, { states }), "a")).kind).toBe("steps");
    expect((await stateOf(machine(ROWS, { states }), "b")).kind).toBe("steps");
  });

  test("with a session's tools, also if only steps inside of states are agents", async () => {
    const states = `  a: [${"{ name: one, prompt: Work., tools: [Read], sink_to: scratchpad.one }"}]\n  b: []`;
    const text = machine(ROWS, { states });
    const { pipeline, diagnostics } = await loadWorkflow("m.yaml", { read: async () => text, tools: ["Read"] });
    expect(diagnostics).toEqual([]);
    expect([...(pipeline?.spec.states.values() ?? [])].map(({ kind }) => kind)).not.toContain("agent");
  });

  test("one end state may be a text", async () => {
    const text = machine(`  - { from: a, on: success, to: b }\n  - { from: b, on: success, to: done }\n`);
    expect((await loaded(text.replace("[done, failed]", "done"))).states.get("done")?.final).toBeDefined();
  });

  test("names that are no ids get one, and rows follow them", async () => {
    const text = machine(
      `  - { from: a, on: success, to: "phase two!" }\n  - { from: "phase two!", on: success, to: done }\n`,
      {
        states: `  a: []\n  "phase two!": []`,
      },
    );
    const rows = await rowsOf(text);
    expect(rows.map((row) => [row.from, targetOf(row)])).toEqual([
      ["a", "phase-two"],
      ["phase-two", "done"],
    ]);
  });

  test("an outcome may be written for an end state", async () => {
    const states = `  a: []\n  b: []\n  done: { outcome: cancelled }`;
    const rows = `${ROWS}  - { from: a, on: success, to: good, when: context.x }\n`;
    expect((await stateOf(machine(rows, { states }).replace("[done,", "[done, good,"), "done")).final).toEqual({
      outcome: "cancelled",
    });
  });

  test("with the tools of a session, which are those of every agent inside", async () => {
    const states = `  a: [{ name: x, prompt: P, tools: [Read], sink_to: y }]\n  b: []`;
    const withTools = async (tools: readonly string[]) =>
      await loadTexts("w/m.yaml", { "w/m.yaml": machine(ROWS, { states }) }, { tools });
    expect((await withTools(["Read"])).diagnostics).toEqual([]);
    expect(ruleLines(await withTools(["Grep"]))).toEqual(["unknown-tool states.a[0].tools[0]"]);
  });

  test("a list of steps is a sequence of states", async () => {
    const spec = await loaded(`name: two\nsteps:\n  ${agent("first")}\n  ${agent("second")}\n`);
    expect([...spec.states.keys()]).toEqual(["first", "second", "done"]);
    expect(spec.initial).toBe("first");
  });
});

describe("a mistake is reported where it is", () => {
  const cases: readonly (readonly [what: string, text: string, rule: string, at: string])[] = [
    [
      "a condition that is no CEL",
      machine(ROWS.replace("to: b }", "to: b, when: context.a == }")),
      "expression-syntax",
      " ",
    ],
    [
      "a condition in Python",
      machine(ROWS.replace("to: b }", "to: b, when: context.a and context.b }")),
      "expression-syntax",
      "and",
    ],
    [
      "a variable that does not exist",
      machine(ROWS.replace("to: b }", "to: b, when: ctx.foo }")),
      "expression-name",
      "ctx",
    ],
    [
      "a method of a value",
      machine(ROWS.replace("to: b }", "to: b, when: context.json() }")),
      "expression-name",
      "context.json()",
    ],
    [
      "a prototype",
      machine(ROWS.replace("to: b }", "to: b, when: context.__proto__ }")),
      "expression-banned",
      "__proto__",
    ],
    ["a row from an end state", machine(`${ROWS}  - { from: done, on: success, to: a }\n`), "final-body", "done"],
    ["a pause that leads to an end", machine(`${ROWS}  - { from: a, on: pause, to: done }\n`), "definition", "done"],
    [
      "an import that is not listed",
      machine(ROWS, { states: "  a: [{ name: x, uses: imports.nope }]\n  b: []" }),
      "unknown-import",
      "imports.nope",
    ],
    [
      "an agent that is not listed",
      machine(ROWS, { states: "  a: [{ name: x, uses: agents.nope }]\n  b: []" }),
      "unknown-agent",
      "agents.nope",
    ],
    [
      "a function",
      machine(ROWS, { states: "  a: [{ name: x, uses: pkg.mod.fn }]\n  b: []" }),
      "unknown-agent",
      "pkg.mod.fn",
    ],
    [
      "a question without a message",
      machine(ROWS, { states: "  a: [{ kind: hitl, name: x }]\n  b: []" }),
      "missing-field",
      "{ kind: hitl, name: x }",
    ],
    [
      "a field of another kind of step",
      machine(ROWS, { states: "  a: [{ kind: hitl, name: x, message: m, turn_cap: 3 }]\n  b: []" }),
      "unknown-key",
      "turn_cap",
    ],
    [
      "two steps of one name",
      machine(ROWS, {
        states: "  a: [{ kind: hitl, name: x, message: m }, { kind: hitl, name: x, message: n }]\n  b: []",
      }),
      "duplicate-step",
      "x",
    ],
    [
      "a step that does not exist in a template",
      machine(ROWS, { states: '  a: [{ name: x, prompt: "See {{ steps.nope.y }}.", tools: [] }]\n  b: []' }),
      "bad-template",
      "{{ steps.nope.y }}",
    ],
    [
      "a step that does not exist in an import's input",
      machine(ROWS, {
        states: '  a: [{ name: x, uses: imports.o, input: { t: "{{ steps.nope }}" } }]\n  b: []',
        more: "imports: { o: ./o.yaml }",
      }),
      "bad-template",
      "{{ steps.nope }}",
    ],
    [
      "a template deep in an import's input",
      machine(ROWS, {
        states: '  a: [{ name: x, uses: imports.o, input: { t: ["{{ context.a }}"] } }]\n  b: []',
        more: "imports: { o: ./o.yaml }",
      }),
      "bad-template",
      '["{{ context.a }}"]',
    ],
    [
      "an output that is no object",
      machine(ROWS, { states: "  a: [{ name: x, prompt: P, tools: [], output_schema: { type: string } }]\n  b: []" }),
      "wrong-type",
      "string",
    ],
    [
      "an output of an agent that is no object",
      machine(ROWS, {
        states: "  a: [{ name: x, uses: agents.y }]\n  b: []",
        more: "agents: { y: { system_prompt: S, tools: [], output_schema: { type: array } } }",
      }),
      "wrong-type",
      "array",
    ],
    [
      "an agent of a prototype's name",
      machine(ROWS, { states: "  a: [{ name: x, uses: agents.constructor, prompt: P, tools: [] }]\n  b: []" }),
      "unknown-agent",
      "agents.constructor",
    ],
    [
      "a machine that cannot end",
      machine(ROWS).replace("end_states: [done, failed]", "end_states: []"),
      "no-final",
      "kind: StateMachine",
    ],
    ["a machine that cannot complete", machine(ROWS.replace("to: done", "to: failed")), "no-final", "transitions"],
    [
      "an outcome of a state that is no end",
      machine(ROWS, { states: "  a: { steps: [], outcome: failed }\n  b: []" }),
      "wrong-type",
      "outcome",
    ],
    [
      "a next state by output",
      machine(ROWS, {
        states:
          "  a: [{ name: x, prompt: P, tools: [], output_schema: { type: object, properties: { next_state: { enum: [b, done] } } } }]\n  b: []",
      }),
      "next-state",
      "next_state",
    ],
    [
      "a next state in the context",
      machine(ROWS, { states: "  a: [{ name: x, prompt: P, tools: [], sink_to: scratchpad.next_state }]\n  b: []" }),
      "next-state",
      "scratchpad.next_state",
    ],
  ];
  test.each(cases)("%s", async (_what, text, rule, where) => {
    const { diagnostics, pipeline } = await load(text);
    const errors = diagnostics.filter(({ severity }) => severity === "error");
    expect(errors.map((one) => [one.rule, at(text, one)])).toContainEqual([rule, where]);
    expect(pipeline).toBeUndefined();
  });

  test("a next state is answered with the rows that say the same", async () => {
    const states = `  a: [{ name: x, prompt: P, tools: [], output_schema: { type: object, properties: { next_state: { enum: [b, done] } } } }]
  b: []`;
    const { diagnostics } = await load(machine(ROWS, { states }));
    expect(diagnostics[0]?.suggestion).toBe(
      `call it "choice", and write a transition for each state: { from: …, on: success, when: 'output.choice == "b"', to: b }, { from: …, on: success, when: 'output.choice == "done"', to: done }`,
    );
  });

  test("an unknown field of an output that has a schema, also inside folded text", async () => {
    const states = `  a: [{ name: x, prompt: P, tools: [], output_schema: { type: object, properties: { coverage: { type: number } } } }]
  b: []`;
    const text = machine(
      `  - from: a
    on: success
    to: b
    when: >-
      output.coverage > 80 &&
      output.covrage < 90
  - { from: b, on: success, to: done }
  - { from: b, on: failure, to: failed }
`,
      { states },
    );
    const { diagnostics } = await load(text);
    expect(diagnostics.map((one) => [one.rule, one.message, one.suggestion, one.line, at(text, one)])).toEqual([
      ["expression-name", 'There is no field "covrage".', 'did you mean "coverage"?', 15, "covrage"],
    ]);
  });

  test.each([
    ["plain", "when: output.coverage > 1 && output.covrage < 90"],
    ["in single quotes", "when: 'output.name == ''ü'' && output.covrage < 90'"],
    ["in double quotes", String.raw`when: "output.name == \"\u00fc\t\" && output.covrage < 90"`],
    ["in several lines", "when: |\n      output.coverage > 1 &&\n        output.covrage < 90"],
    ["folded", "when: >-\n      output.coverage > 1\n      && output.covrage < 90"],
    ["plain in two lines", "when: output.coverage > 1\n      && output.covrage < 90"],
  ])("a mistake of a condition at its word: %s", async (_style, when) => {
    const schema = "{ type: object, properties: { coverage: { type: number }, name: { type: string } } }";
    const states = `  a: [{ name: x, prompt: P, tools: [], output_schema: ${schema} }]\n  b: []`;
    const text = machine(`  - from: a\n    on: success\n    to: b\n    ${when}\n${ROWS}`, { states });
    const { diagnostics } = await load(text);
    expect(diagnostics.filter(({ severity }) => severity === "error").map((one) => at(text, one))).toEqual(["covrage"]);
  });

  test.each([
    ["output.name > 5", "output.name > 5"],
    ["output.coverage > 1 && output.name == 5", "output.name == 5"],
    ["output.name.startsWith(5)", "output.name.startsWith(5)"],
    ["output.name", undefined],
    ["output.name + 'a'", "output.name + 'a'"],
    ["size(output.name)", "size(output.name)"],
    ["output.coverage > 'a'", undefined],
  ])("a type that does not fit, from its first character: %s", async (when, wrong) => {
    const schema = "{ type: object, properties: { coverage: { type: number }, name: { type: string } } }";
    const states = `  a: [{ name: x, prompt: P, tools: [], output_schema: ${schema} }]\n  b: []`;
    const text = machine(`  - { from: a, on: success, to: b, when: ${JSON.stringify(when)} }\n${ROWS}`, { states });
    const errors = (await load(text)).diagnostics.filter(({ severity }) => severity === "error");
    expect(errors.map((one) => [one.rule, at(text, one)])).toEqual(
      wrong === undefined ? [] : [["expression-type", expect.stringMatching(/^(output|size)/u)]],
    );
    for (const { line, column } of errors)
      expect((text.split("\n")[line - 1] ?? "").slice(column - 1).startsWith(wrong ?? "")).toBe(true);
  });

  test("an unknown field of the context, if the file has its schema", async () => {
    const more = "context_schema: { type: object, properties: { retries: { type: number } } }";
    const text = machine(ROWS.replace("to: b }", "to: b, when: context.retrys > 1 }"), { more });
    expect((await load(text)).diagnostics.map(({ message, suggestion }) => [message, suggestion])).toEqual([
      ['There is no field "retrys".', 'did you mean "retries"?'],
    ]);
    expect((await load(machine(ROWS.replace("to: b }", "to: b, when: context.retrys > 1 }")))).diagnostics).toEqual([]);
  });

  test("an unknown step in a condition", async () => {
    const text = machine(ROWS.replace("to: b }", "to: b, when: steps.work_aa.result }"));
    expect((await load(text)).diagnostics.map(({ message }) => message)).toEqual(['There is no field "work_aa".']);
  });

  test("a mistake in an imported file is reported in that file", async () => {
    const states = "  a: [{ name: go, uses: imports.other }]\n  b: []";
    const text = machine(ROWS, { states, more: "imports: { other: ./other.yaml }" });
    const { diagnostics, pipeline } = await load(text, { "w/other.yaml": "steps:\n  - { name: x, promt: y }\n" });
    expect(pipeline).toBeUndefined();
    expect(diagnostics.map(({ file, rule, line }) => [file, rule, line])).toContainEqual([
      "w/other.yaml",
      "unknown-key",
      2,
    ]);
  });

  test("a row that leads a question inside an import or a machine to another state", async () => {
    const asking = "steps:\n  - { name: w, prompt: P, tools: [] }\n  - { kind: hitl, name: ask, message: M }\n";
    const imported = "  a: [{ name: go, uses: imports.other }]\n  b: []";
    const nested = `  a:
    - kind: StateMachine
      name: go
      start_state: x
      end_states: [done]
      states: { x: [{ kind: hitl, name: ask, message: M }] }
      transitions: [{ from: x, on: success, to: done }]
  b: []`;
    const more = "imports: { other: ./other.yaml }";
    const found = async (from: string, to: string, states: string, other = asking) => {
      const text = machine(`${ROWS}  - { from: ${from}, on: pause, to: ${to} }\n`, { states, more });
      const { diagnostics } = await load(text, { "w/other.yaml": other });
      return diagnostics.map((one) => [one.severity, one.rule, at(text, one)]);
    };
    for (const states of [imported, nested]) {
      expect(await found("a", "b", states)).toEqual([["error", "event-row", "b"]]);
      expect(await found('"*"', "b", states)).toEqual([["error", "event-row", "b"]]);
      expect(await found("a", "a", states)).toEqual([]);
    }
    const silent = "steps:\n  - { name: w, prompt: P, tools: [] }\n";
    expect(await found("a", "b", imported, silent)).toEqual([["warning", "event-row", "pause"]]);
    expect(await found('"*"', "b", imported, silent)).toEqual([]);
  });

  test("files that import each other", async () => {
    const states = "  a: [{ name: go, uses: imports.other }]\n  b: []";
    const text = machine(ROWS, { states, more: "imports: { other: ./other.yaml }" });
    const other = "imports: { back: ./m.yaml }\nsteps:\n  - { name: x, uses: imports.back }\n";
    const { diagnostics } = await load(text, { "w/other.yaml": other });
    expect(diagnostics.map(({ rule }) => rule)).toContain("invoke-cycle");
  });

  test("an import that is not there", async () => {
    const states = "  a: [{ name: go, uses: imports.other }]\n  b: []";
    const text = machine(ROWS, { states, more: "imports: { other: ./other.yaml }" });
    expect((await load(text)).diagnostics.map(({ rule, path }) => [rule, path])).toEqual([
      ["invoke-unknown", "imports.other"],
    ]);
  });

  test("a tool pattern, a schema and a template, each at its field", async () => {
    const states = `  a:
    - name: x
      prompt: "Use {{ ctx.nope }}."
      tools: ["Bash("]
      output_schema: { type: strng }
  b: []`;
    const { diagnostics } = await load(machine(ROWS, { states }));
    expect(diagnostics.map(({ path, severity }) => [path, severity])).toEqual([
      ["states.a[0].prompt", "error"],
      ["states.a[0].tools[0]", "error"],
      ["states.a[0].output_schema.type", "error"],
    ]);
  });
});

describe("what Flujo accepts and Sluice does not", () => {
  test.each([
    ["a start that is an end", machine(ROWS).replace("start_state: a", "start_state: done")],
    ["no transitions, and so no way to an end", machine("").replace(/transitions:\n$/u, "")],
    ["a start that is missing", machine(ROWS).replace("start_state: a\n", "")],
    [
      "an unquoted template language",
      machine(ROWS, { states: '  a: [{ name: x, prompt: "{{ context.a | upper }}", tools: [] }]\n  b: []' }),
    ],
  ])("%s", async (_what, text) => {
    const { pipeline, diagnostics } = await load(text);
    expect(diagnostics.some(({ severity }) => severity === "error")).toBe(true);
    expect(pipeline).toBeUndefined();
  });
});

describe("what may not be meant is a warning", () => {
  test("a state that cannot be reached, and what only it reaches", async () => {
    const rows = "  - { from: a, on: success, to: done }\n  - { from: b, on: success, to: failed }\n";
    const found = await load(machine(rows));
    expect(ruleLines(found)).toEqual(["unreachable end_states[1] (warning)", "unreachable states.b (warning)"]);
    expect([...(found.pipeline?.spec.states.keys() ?? [])]).toEqual(["a", "done"]);
  });

  test("a state whose success leads nowhere", async () => {
    const rows =
      "  - { from: a, on: success, to: done, when: context.x }\n  - { from: b, on: failure, to: failed }\n  - { from: a, on: failure, to: b }\n";
    expect(ruleLines(await load(machine(rows)))).toEqual(["dead-end states.b (warning)"]);
  });

  test("an end state with a body, and one whose outcome is not plain", async () => {
    const text = machine(ROWS.replaceAll("done", "shipped"), {
      states: `  a: []\n  b: []\n  shipped: [{ name: x, prompt: P, tools: [] }]`,
    }).replace("[done,", "[shipped,");
    expect(ruleLines(await load(text))).toEqual([
      "final-outcome end_states[0] (warning)",
      "final-body states.shipped (warning)",
    ]);
    expect(ruleLines(await load(machine(ROWS.replaceAll("done", "passed")).replace("[done,", "[passed,")))).toEqual([]);
  });

  test("an agent without a list of tools", async () => {
    const states = "  a: [{ name: x, prompt: P }]\n  b: []";
    expect(ruleLines(await load(machine(ROWS, { states })))).toEqual(["no-envelope states.a[0] (warning)"]);
  });
});

test("what has to hold on every path is proven when the file loads", async () => {
  const text = (property: string) => machine(ROWS, { more: `properties: [{ never: "${property}" }]` });
  expect((await load(text("a after b"))).diagnostics).toEqual([]);
  const { diagnostics, pipeline } = await load(text("b after a"));
  expect(diagnostics.map(({ severity, path }) => [severity, path])).toEqual([["error", "properties[0]"]]);
  expect(pipeline).toBeUndefined();
});

test("the example of the documentation loads as it is", async () => {
  const page = readFileSync(new URL("../../docs/workflow-flujo.md", import.meta.url), "utf8");
  const [, example = ""] = /```yaml\n([\s\S]*?)```/u.exec(page) ?? [];
  const found = await load(example, { "w/audit.yaml": `steps:\n  ${agent("look")}\n` });
  expect(found.diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
  expect(found.pipeline?.id).toBe("release");
});
