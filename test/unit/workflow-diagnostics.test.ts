import { type Diagnostic, type LoadedWorkflow, RULES, renderJson, renderSarif, renderText } from "@sluice/workflows";
import { expect, test } from "vitest";
import { loadTexts } from "../support/workflows.ts";

// Every mistake has a word of its own, so that the test finds by itself where each has to be reported.

/** A mistake: its rule, the word that is reported, and whether the word is inside a longer text. */
type Mistake = readonly [rule: string, word: string, inside?: "inside"];

const MISTAKES: readonly Mistake[] = [
  ["unknown-target", "nowhere0"],
  ["unknown-key", "max_iteration"],
  ["wrong-type", "three"],
  ["alias-twice", "blockedEnv"],
  ["variable-name", "BASH_ENV"],
  ["bad-template", "{{wrong}}", "inside"],
  ["template-in-command", "{{", "inside"],
  ["tool-pattern", "Bash(rm"],
  ["unknown-key", "gaurd"],
  ["unknown-guard", "tests_pased"],
  ["unknown-target", "nowhere1"],
  ["missing-field", "INVOKE"],
  ["unknown-target", "nowhere2"],
  ["unknown-target", "nowhere3"],
  ["dead-end", "stuck"],
  ["guard-operand", "high"],
  ["guard-operand", "superfluous"],
  ["wrong-type", "equals"],
  ["unknown-target", "nowhere4"],
  ["context-key", "_secret"],
];

const document = {
  id: "w",
  initial: "nowhere0",
  context: { _secret: 1, fine: 2 },
  states: {
    working: {
      allowed_tools: ["Read", "Bash(rm"],
      instructions: 'First the "plan".\nThen read {{wrong}} and stop.\n',
      max_iteration: 3,
      max_files_per_state: "three",
      deny_env: ["A"],
      blockedEnv: ["B"],
      env: { BASH_ENV: "x" },
      on: {
        DONE: { target: "done", gaurd: "fine" },
        NEXT: { target: "testing", guard: "tests_pased" },
        FORK: { fork: { branches: { one: { initial: "nowhere2", terminal: "done" } }, on_complete: "testing" } },
        INVOKE: { invoke: "other" },
      },
      safe_next: "nowhere3",
    },
    testing: {
      allowed_tools: ["Bash"],
      allowed_commands: ["npm test", "pytest {{ctx.task}}"],
      on: { LIST: [{ target: "done" }, { target: "nowhere1" }], STOP: "stuck" },
    },
    stuck: { allowed_tools: [] },
    done: { type: "final" },
  },
  guards: {
    fine: { field: "fine", op: "exists" },
    numeric: { field: "n", op: "gte", value: "high" },
    plain: { field: "n", op: "exists", value: "superfluous" },
    other: { field: "n", op: "equals", value: 1 },
  },
  interrupts: { files: { trigger: { file_pattern: "**" }, target: "nowhere4" } },
};

const block = `# A comment with nowhere words.
id: w
initial: nowhere0
context:
  _secret: 1
  fine: 2
states:
  working:
    allowed_tools:
      - Read
      - Bash(rm
    instructions: |
      First the "plan".

        Then read {{wrong}} and stop.
    max_iteration: 3
    max_files_per_state: three
    deny_env: [A]
    blockedEnv: [B]
    env:
      BASH_ENV: x
    on:
      DONE:
        target: done
        gaurd: fine
      NEXT: { target: testing, guard: 'tests_pased' }
      FORK:
        fork:
          branches: {one: {initial: "nowhere2", terminal: done}}
          on_complete: testing
      INVOKE:
        invoke: other
    safe_next: nowhere3
  testing:
    allowed_tools: [Bash]
    allowed_commands:
      - npm test
      - pytest {{ctx.task}}
    on:
      LIST:
        - target: done
        - target: nowhere1
      STOP: stuck
  stuck:
    allowed_tools: []
  done:
    type: final
guards:
  fine: {field: fine, op: exists}
  numeric: {field: n, op: gte, value: high}
  plain: {field: n, op: exists, value: superfluous}
  other: {field: n, op: equals, value: 1}
interrupts:
  files: {trigger: {file_pattern: "**"}, target: nowhere4}
`;

const folded = block
  .replace("instructions: |\n", "instructions: >-\n")
  .replace("      - pytest {{ctx.task}}", '      - "pytest \\\n          {{ctx.task}}"')
  .replace("max_files_per_state: three", "max_files_per_state: >\n      three");

const texts: Readonly<Record<string, string>> = {
  "JSON on many lines": JSON.stringify(document, null, 2),
  "JSON on one line": JSON.stringify(document),
  "JSON with tabs and Windows line ends": JSON.stringify(document, null, "\t").replaceAll("\n", "\r\n"),
  "YAML in blocks": block,
  "YAML with folded and continued texts": folded,
};

async function load(text: string): Promise<LoadedWorkflow> {
  return await loadTexts("w.yaml", { "w.yaml": text });
}

/** Where a word is, by counting lines. A text in quotes starts at its quote, one in a block at the mark of the block. */
function positionOf(text: string, word: string, inside: boolean): string {
  const before = word === "{{" ? text.indexOf("pytest") : 0;
  let index = word === "stuck" ? text.lastIndexOf(word) : text.indexOf(word, before);
  if (word === "three" && text.includes(">\n      three")) index = text.indexOf(">\n      three");
  const quote = text[index - 1];
  if (!inside && (quote === '"' || quote === "'")) index -= 1;
  const lines = text.slice(0, index).split("\n");
  return `${lines.length}:${(lines.at(-1)?.length ?? 0) + 1}`;
}

for (const [form, text] of Object.entries(texts)) {
  test(`20 mistakes in ${form} are exactly 20 diagnostics, each at its line and column`, async () => {
    const { diagnostics, pipeline } = await load(text);
    const expected = MISTAKES.map(
      ([rule, word, inside]) => `${positionOf(text, word, inside === "inside")} ${rule}`,
    ).toSorted(byPosition);
    expect(diagnostics.map(({ line, column, rule }) => `${line}:${column} ${rule}`)).toEqual(expected);
    expect(diagnostics.every(({ severity, file }) => severity === "error" && file === "w.yaml")).toBe(true);
    expect(pipeline).toBeUndefined();
  });
}

function byPosition(one: string, other: string): number {
  const [a = 0, b = 0] = one.split(/[: ]/u).map(Number);
  const [c = 0, d = 0] = other.split(/[: ]/u).map(Number);
  return a - c || b - d;
}

test("what a diagnostic marks is the word that is wrong", async () => {
  const { diagnostics } = await load(block);
  const marked = diagnostics.map(({ line, column, length }) =>
    block.split("\n")[line - 1]?.slice(column - 1, column - 1 + length),
  );
  expect(marked).toEqual(
    expect.arrayContaining(["nowhere0", "max_iteration", "{{wrong}}", "'tests_pased'", '"nowhere2"', "Bash(rm"]),
  );
});

const diagnostic: Diagnostic = {
  severity: "error",
  rule: "unknown-guard",
  message: 'There is no guard "tests_pased".',
  suggestion: 'did you mean "tests_passed"?',
  path: "states.a.on.GO.guard",
  file: "flows/my flow.yaml",
  line: 2,
  column: 10,
  length: 11,
};

test("text shows file, line and column, the line with a caret, the rule and the suggestion", () => {
  expect(renderText([diagnostic], () => "on:\n  guard: tests_pased # x\n")).toBe(
    `flows/my flow.yaml:2:10: error: There is no guard "tests_pased". [unknown-guard]
  2 |   guard: tests_pased # x
    |          ^^^^^^^^^^^
    = did you mean "tests_passed"?
`,
  );
});

test("text without the file's text has no excerpt, and no diagnostics are no text", () => {
  expect(renderText([diagnostic], () => undefined)).toBe(
    `flows/my flow.yaml:2:10: error: There is no guard "tests_pased". [unknown-guard]\n    = did you mean "tests_passed"?\n`,
  );
  expect(renderText([], () => undefined)).toBe("");
});

test("a caret is under its word behind tabs, in long lines and behind characters that are shown escaped", () => {
  const caretOf = (line: string, column: number, length: number): string => {
    const [, shown = "", caret = ""] = renderText([{ ...diagnostic, line: 1, column, length }], () => line).split("\n");
    return shown.slice(caret.indexOf("^"), caret.lastIndexOf("^") + 1);
  };
  expect(caretOf("\t\tguard: wrong", 10, 5)).toBe("wrong");
  expect(renderText([{ ...diagnostic, line: 1 }], () => "\tx")).toContain("  1 |  x\n");
  expect(caretOf(`${"x".repeat(5000)} wrong ${"y".repeat(5000)}`, 5002, 5)).toBe("wrong");
  expect(caretOf("\u202eabc wrong", 6, 5)).toBe("wrong");
});

test("what a file holds cannot act on a terminal or forge lines of the report", () => {
  const message = "bad\u001b[2J\nw.yaml:1:1: error: forged";
  const text = renderText(
    [{ ...diagnostic, message, suggestion: "a\nb", file: "a\nb" }],
    () => "x\n\u001b]0;y\u0007\n",
  );
  expect(text).not.toContain("\u001b");
  expect(text.split("\n").filter((line) => line.startsWith("w.yaml"))).toEqual([]);
});

test("JSON has the counts and every field", () => {
  expect(renderJson([diagnostic, { ...diagnostic, severity: "warning" }])).toEqual({
    errors: 1,
    warnings: 1,
    diagnostics: [diagnostic, { ...diagnostic, severity: "warning" }],
  });
});

test("SARIF names the rule, the place in the file and the part of the document", () => {
  const log = renderSarif([diagnostic, { ...diagnostic, rule: "of-another", severity: "warning", path: "" }], "1.2.3");
  expect(log).toMatchObject({
    version: "2.1.0",
    runs: [
      {
        tool: { driver: { name: "sluice", version: "1.2.3", rules: [{ id: "of-another" }, { id: "unknown-guard" }] } },
        columnKind: "utf16CodeUnits",
        results: [
          {
            ruleId: "unknown-guard",
            ruleIndex: 1,
            level: "error",
            message: { text: 'There is no guard "tests_pased". (did you mean "tests_passed"?)' },
            locations: [
              {
                physicalLocation: {
                  artifactLocation: { uri: "flows/my%20flow.yaml" },
                  region: { startLine: 2, startColumn: 10, endLine: 2, endColumn: 21 },
                },
                logicalLocations: [{ fullyQualifiedName: "states.a.on.GO.guard" }],
              },
            ],
          },
          { ruleId: "of-another", ruleIndex: 0, level: "warning" },
        ],
      },
    ],
  });
});

test("every rule of the mistakes is described", () => {
  expect(MISTAKES.filter(([rule]) => RULES[rule] === undefined)).toEqual([]);
});

/** The suggestions for a document of one working state with these fields, and what else it has. */
async function suggestionsFor(state: object, more: object = {}): Promise<readonly (string | undefined)[]> {
  const working = { allowed_tools: ["Read"], on: { DONE: "done" }, ...state };
  const states = { working, done: { type: "final" } };
  const text = JSON.stringify({ id: "w", initial: "working", states, ...more });
  const { diagnostics } = await loadTexts("w.json", { "w.json": text }, { tools: ["Read", "Grep"] });
  return diagnostics.map(({ suggestion }) => suggestion);
}

test.each([
  [
    "a word of another format is answered with the field that is meant",
    { prompt: "Work." },
    {},
    'did you mean "instructions"?',
  ],
  ["so is one in camelCase", { maxTurns: 3 }, {}, 'did you mean "turn_cap"?'],
  ["a field that is missing is explained", {}, { guards: { g: { field: "a" } } }, "add it: how the field is compared"],
  [
    "a tool that does not exist, in the form that a file can have",
    { allowed_tools: ["Grepp"] },
    {},
    'did you mean "Grep"?',
  ],
  ["an outcome of a state that is not final", { on: undefined, outcome: "completed" }, {}, 'add "type": "final"'],
  ["a state like no other, with all states", { on: { DONE: "zebra" } }, {}, "use one of working, done"],
  [
    "an expression as a guard, with how guards are defined",
    { on: { DONE: { target: "done", guard: "tests == 1" } } },
    {},
    'define it under "guards", as in { field: tests, op: eq, value: pass }, and write its name here',
  ],
  [
    "a workflow that is not found by its name, with the path of a file beside",
    { on: { DONE: { invoke: "suite", on_complete: "done" } } },
    {},
    'for a file beside this one, write its path, such as "./suite.json"',
  ],
  [
    "a field that the context does not start with, as an agent may forget to send it",
    { instructions: "The cause: {{ctx.context.cause}}" },
    {},
    'add "cause": null to "context"',
  ],
  [
    "one that is close to another field",
    { instructions: "The cause: {{ ctx.context.couse.line }}" },
    { context: { cause: null } },
    'did you mean "cause"?',
  ],
])("%s", async (_what, state, more, suggestion) => {
  expect(await suggestionsFor(state, more)).toContain(suggestion);
});

test("a line that is indented otherwise is shown itself, with what to do", async () => {
  const text = "id: w\ninitial: a\nstates:\n  a:\n    allowed_tools: []\non: { DONE: b }\n\n  b: { type: final }\n";
  const { diagnostics } = await loadTexts("w.yaml", { "w.yaml": text });
  expect(
    renderText(diagnostics, () => text),
  ).toBe(`w.yaml:6:1: error: The file is neither YAML nor JSON here: All mapping items must start at the same column. [syntax]
  6 | on: { DONE: b }
    | ^^^^^^^^^^^^^^^
    = indent it as the lines beside it, and close every bracket before it
`);
});
