import { parseJson } from "@sluice/core";
import { didYouMean } from "@sluice/core/runtime";
import { readOutcomes } from "@sluice/workflows";
import { expect, test } from "vitest";
import { loadDocument, loadTexts, ruleLines } from "../support/workflows.ts";

// Documents that would do more than they seem to.

const working = (state: object) => ({
  id: "w",
  initial: "working",
  states: {
    working: { on: { DONE: "complete", FAIL: "failed" }, ...state },
    complete: { type: "final" },
    failed: { type: "final" },
  },
});

test.each([[["*"]], [["B*"]], [["Bash", "B*"]], [["*sh", "Read"]]])(
  "allowed_commands do not seem to limit Bash where %j allows all of it",
  async (tools) => {
    const loaded = await loadDocument(working({ allowed_tools: tools, allowed_commands: ["npm test"] }));
    expect(loaded.pipeline).toBeUndefined();
    expect(ruleLines(loaded)).toContain("commands-without-tools states.working.allowed_commands");
  },
);

test("a blank command does not stand for every command", async () => {
  const loaded = await loadDocument(working({ allowed_tools: ["Bash"], allowed_commands: ["npm test", " "] }));
  expect(ruleLines(loaded)).toContain("tool-pattern states.working.allowed_commands[1]");
});

test("a mistaken name is compared with few of the names that a file makes up", () => {
  const made = function* () {
    for (let number = 0; ; number += 1) yield `state number ${number}`;
  };
  expect(didYouMean("reviewing", made())).toBeUndefined();
  expect(didYouMean("state number 3x", made())).toBe("state number 3");
});

test("outcomes of a simulation that are nested too deep are refused, and nothing overflows", () => {
  const deep = parseJson(`[{"event":"A"},{"event":"B","data":${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}}]`);
  if (!deep.ok) throw new Error(deep.fault);
  expect(readOutcomes(deep.value)).toEqual({ outcomes: [], faults: [{ path: "[1]", message: "is nested too deep" }] });
});

const guarded = (guards: object, named: readonly string[] = Object.keys(guards)) => ({
  ...working({ allowed_tools: [], on: { DONE: { target: "complete", guards: named }, FAIL: "failed" } }),
  guards,
});
const equals = (field: string, value: unknown) => ({ field, op: "eq", value });

test.each([
  ["a long value", { g: equals("a", `${"x".repeat(200)}1`) }, { g: equals("a", `${"x".repeat(200)}2`) }],
  ["a name like a condition", { g: equals("a", 1), h: equals("b", 2) }, { "g (a equals 1) and h": equals("b", 2) }],
  ["a field like a condition", { g: equals("a", 1), h: equals("b", 2) }, { g: equals("a equals 1) and h (b", 2) }],
])("guards that read the same because of %s have other fingerprints", async (_, one, other) => {
  const [first, second] = await Promise.all([one, other].map((guards) => loadDocument(guarded(guards))));
  if (first?.pipeline === undefined || second?.pipeline === undefined) throw new Error("they do not load");
  expect(first.pipeline.spec.fingerprint).not.toBe(second.pipeline.spec.fingerprint);
});

test("steps in another order have another fingerprint: a question before the work is none after it", async () => {
  const ask = { kind: "hitl", name: "ask", message: "Deploy it?", input_schema: { type: "boolean" } };
  const deploy = { name: "deploy", prompt: "Deploy it.", tools: ["Bash"], sink_to: "scratchpad.deployed" };
  const machine = (steps: readonly object[]) => ({
    kind: "StateMachine",
    name: "release",
    start_state: "release",
    end_states: ["done", "failed"],
    states: { release: steps },
    transitions: [
      { from: "release", on: "success", to: "done" },
      { from: "release", on: "failure", to: "failed" },
    ],
  });
  const [first, second] = await Promise.all(
    [
      [ask, deploy],
      [deploy, ask],
    ].map((steps) => loadDocument(machine(steps))),
  );
  if (first?.pipeline === undefined || second?.pipeline === undefined) throw new Error("they do not load");
  expect(first.pipeline.spec.fingerprint).not.toBe(second.pipeline.spec.fingerprint);
});

test.each(["'Read*'", "'*'", "'ReadSkill(**)'", "{ tool: ReadSkill, optional: true }"])(
  "skills do not seem to limit a stage that may read all of them by %s",
  async (other) => {
    const stage = `allowedTools: [ReadSkill, ${other}]\nskills: [pdf]\ncompletionTool: finish\ncompletionSchema: {}`;
    const loaded = await loadTexts("w", {
      "w/pipeline.yaml": "id: w\ninitial: working\ntransitions: [{ from: working, to: done }]\n",
      "w/working.md": `---\n${stage}\n---\nWork.\n`,
    });
    expect(loaded.pipeline).toBeUndefined();
    expect(ruleLines(loaded)).toContain("skills-without-tool allowedTools[1]");
  },
);

test.each([
  ["reverses", "\u202e", "U+202E"],
  ["isolates", "\u2066", "U+2066"],
  ["tags", "\u{e0041}", "U+E0041"],
])("invisible text is refused in a file that a user trusts: %s", async (_, hidden, code) => {
  const yaml = `id: w\ninitial: working\nstates:\n  working: { allowed_tools: [], on: { DONE: complete } } # ${hidden}\n  complete: { type: final }\n`;
  const stage = `---\nallowedTools: []\ncompletionTool: finish\ncompletionSchema: {}\n---\nWork${hidden}.\n`;
  const folder = { "w/pipeline.yaml": "id: w\ninitial: working\ntransitions: [{ from: working, to: done }]\n" };
  for (const loaded of [
    await loadTexts("w.yaml", { "w.yaml": yaml }),
    await loadTexts("w", { ...folder, "w/working.md": stage }),
  ]) {
    expect(loaded.pipeline).toBeUndefined();
    expect(loaded.diagnostics.map(({ message }) => message)).toContainEqual(expect.stringContaining(code));
  }
  const escaped = yaml
    .replace(`# ${hidden}`, "")
    .replace("[]", `[], instructions: "\\U${code.slice(2).padStart(8, "0")}"`);
  expect((await loadTexts("w.yaml", { "w.yaml": escaped })).pipeline).toBeDefined();
});

const withPrompt = (prompt: string) => ({
  kind: "StateMachine",
  name: "w",
  start_state: "working",
  end_states: ["done"],
  states: { working: [{ name: "work", prompt, tools: [] }] },
  transitions: [{ from: "working", on: "success", to: "done" }],
});

// Each of these took minutes, which the limit of the test does not allow.
test.each([
  ["templates that are never closed", withPrompt("{{ steps".repeat(25_000))],
  ["mistaken templates", working({ allowed_tools: [], instructions: "{{x}} ".repeat(40_000) })],
  [
    "words of another language",
    {
      ...withPrompt("Work."),
      transitions: Array.from({ length: 60 }, () => ({
        from: "working",
        on: "success",
        to: "done",
        when: "and ".repeat(1_000),
      })),
    },
  ],
])("a document of %s is refused at once", async (_, document) => {
  const loaded = await loadDocument(document);
  expect(loaded.pipeline).toBeUndefined();
});
