import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { celGuard } from "../../packages/workflows/src/expressions/cel-guard.ts";
import { VARIABLES } from "../../packages/workflows/src/expressions/variables.ts";
import {
  machineDocumentSchema,
  stateSchema,
  stepSchema,
  stepsDocumentSchema,
} from "../../packages/workflows/src/flujo/schema.ts";
import { call, turn } from "../support/command.ts";
import { errorsOf, FILE, loadFlujo, machine, type Outputs, ROWS, runFlujo } from "../support/flujo.ts";
import { loadTexts } from "../support/workflows.ts";
import { type Block, blocksOf, codesIn, readPage, sectionOf, sluice, tableOf } from "./pages.ts";

// The pages on Flujo: every block runs, every fragment is tried in a document, and every claim of a table holds.

const formatPage = readPage("docs/workflow-flujo.md");
const migrationPage = readPage("docs/migrate-flujo.md");
const PAGES = [formatPage, migrationPage];
const blocks = PAGES.flatMap(blocksOf);
const nameOf = (block: Block): string => {
  const own = blocks.filter(({ page }) => page === block.page);
  return `${block.page} ${own.indexOf(block) + 1}: ${block.language}`;
};
function blockCalled(name: string): Block {
  const block = blocks.find((one) => nameOf(one) === name);
  if (block === undefined) throw new Error(`there is no block ${name}`);
  return block;
}

/** A folder with these files; gone when the test is. */
function folderOf(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "sluice-docs-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

const AUDIT = "steps:\n  - { name: look, prompt: P, tools: [], sink_to: scratchpad.findings }\n";

const TRIES: Readonly<Record<string, () => Promise<void> | void>> = {
  "docs/workflow-flujo.md 1: yaml": async () => {
    const { text } = blockCalled("docs/workflow-flujo.md 1: yaml");
    const files = { "w/audit.yaml": AUDIT };
    expect((await loadFlujo(text, files)).diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
    const outputs: Outputs = {
      plan: [{ risk: "high", steps: ["one"] }],
      look: [{ result: "fine" }],
      build: [{ result: "built" }],
      review: [{ result: "good" }],
    };
    const yes = await runFlujo(text, { files, outputs, answers: [true] });
    expect([yes.state, yes.routes]).toEqual([
      "done",
      ["plan -> confirm", "confirm -> confirm", "confirm -> build", "build -> review", "review -> done"],
    ]);
    expect((await runFlujo(text, { files, outputs, answers: [false] })).state).toBe("failed");
    const low = await runFlujo(text, { files, outputs: { ...outputs, plan: [{ risk: "low", steps: [] }] } });
    expect(low.routes).toEqual(["plan -> build", "build -> review", "review -> done"]);
  },
  "docs/migrate-flujo.md 1: yaml": async () => {
    const { text } = blockCalled("docs/migrate-flujo.md 1: yaml");
    const outputs = { discovery: [{ result: "found" }] };
    const ran = await runFlujo(text, { outputs, answers: ["adults"] });
    expect([ran.state, ran.asked]).toEqual(["done", ["What does the task mean here?"]]);
    expect(ran.prompts).toEqual(["discovery: Find what fits adults."]);
    expect((await runFlujo(text, { outputs, answers: [""] })).state).toBe("failed");
  },
  "docs/migrate-flujo.md 2: sh": () => {
    const { text, note } = blockCalled("docs/migrate-flujo.md 1: yaml");
    const folder = folderOf({ [note.replace("file: ", "")]: text });
    const [, ...args] = blockCalled("docs/migrate-flujo.md 2: sh").text.trim().split(" ");
    const { status, stdout } = sluice(args, folder);
    expect([status, stdout]).toEqual([0, blockCalled("docs/migrate-flujo.md 3: text").text]);
  },
  "docs/migrate-flujo.md 3: text": () => undefined,
};

describe("every block of the pages", () => {
  test.each(Object.entries(TRIES))("%s", async (_name, attempt) => await attempt());
  test("is one of those", () => {
    expect(blocks.map(nameOf)).toEqual(Object.keys(TRIES));
  });
});

const step = (fields: string): string =>
  machine(ROWS, { states: `  a: [{ name: x, ${fields} }]\n  b: []`, more: MORE });
const row = (fields: string): string => machine(`  - { ${fields}, to: done }\n${ROWS}`, { states: "  a: []\n  b: []" });
const when = (condition: string): string =>
  machine(`  - { from: a, on: success, to: done, when: ${JSON.stringify(condition)} }\n${ROWS}`, {
    states: "  a: [{ name: x, prompt: P, tools: [] }]\n  b: []",
  });
const MORE = "imports: { other: ./other.yaml }\nagents: { doer: { system_prompt: S, tools: [] } }";
const OTHER = { "w/other.yaml": AUDIT };

/** Fragments that a document may have: in which one. A placeholder has a name there. */
const FRAGMENTS: Readonly<Record<string, string>> = {
  "[]": step("prompt: P, tools: []"),
  "model: openai:gpt-4o": step("prompt: P, tools: [], model: openai:gpt-4o"),
  "openai/gpt-4o": step("prompt: P, tools: [], model: openai/gpt-4o"),
  "uses: agents.<name>": step("uses: agents.doer"),
  "uses: imports.<alias>": step("uses: imports.other"),
  "outputs: []": step("uses: imports.other, outputs: []"),
  "kind: hitl": step("kind: hitl, message: M"),
  "{ name: test, script: { command: [npm, test] } }": step("script: { command: [npm, test] }").replace(
    "name: x",
    "name: test",
  ),
  "sink_to: scratchpad.plan": step("prompt: P, tools: [], sink_to: scratchpad.plan"),
  "updates_context: true": step("prompt: P, tools: [], updates_context: true"),
  "{{ context.… }}": step('prompt: "{{ context.a }}", tools: []'),
  "{{ steps.<name>.… }}": step('prompt: "{{ steps.x.result }}", tools: []'),
  "{{ previous_step.… }}": step('prompt: "{{ previous_step.result }}", tools: []'),
  "{{ resume_input }}": step('prompt: "{{ resume_input }}", tools: []'),
  "{{ctx.input.answer}}": step('prompt: "{{ctx.input.answer}}", tools: []'),
  'from: "*"': row('from: "*", on: success'),
  "*": row('from: "*", on: success'),
  "shipped: { outcome: completed }": machine(ROWS.replace("to: done", "to: shipped"), {
    states: "  a: []\n  b: []\n  shipped: { outcome: completed }",
  }).replace("[done,", "[shipped,"),
  "kind: StateMachine": machine(ROWS),
  StateMachine: machine(ROWS),
  "on: pause": machine(`  - { from: a, on: pause, to: a }\n${ROWS}`, {
    states: "  a: [{ kind: hitl, name: x, message: M }]\n  b: []",
  }),
  "limits.max_hops": machine(ROWS, { more: "limits: { max_hops: 3 }" }),
  "limits.max_visits": machine(ROWS, { more: "limits: { max_visits: 3 }" }),
  "context.scratchpad": when("context.scratchpad"),
  "context.scratchpad.ready": when("context.scratchpad.ready"),
  "output.last_output": when("output.last_output"),
  "output.last_step": when("output.last_step"),
  "has(context.x)": when("has(context.x)"),
  "context.?x.orValue(0)": when("context.?x.orValue(0) == 0"),
  "context.?x.orValue(null)": when("context.?x.orValue(null) == null"),
  "a && b": when("context.a && context.b"),
  "a || b": when("context.a || context.b"),
  "!a": when("!context.a"),
  "x.lowerAscii()": when('context.x.lowerAscii() == "a"'),
  "x.trim()": when('context.x.trim() == "a"'),
  'x.startsWith("a")': when('context.x.startsWith("a")'),
  "int(x) == 5": when("int(context.x) == 5"),
  hitl: step("kind: hitl, message: M"),
  null: when("context.a == null"),
  true: when("context.a == true"),
  false: when("context.a == false"),
  "0": when("context.a == 0"),
  '""': when('context.a == ""'),
  "{}": when("context.a == {}"),
};
/** Fragments that are mistakes: in which document, and how they are reported. */
const MISTAKES: Readonly<Record<string, readonly [string, string]>> = {
  whenn: [row("from: a, on: success, whenn: x"), "unknown-key: whenn"],
  next_state: [step("prompt: P, tools: [], sink_to: next_state"), "next-state: next_state"],
  and: [when("context.a and context.b"), "expression-syntax: and"],
  or: [when("context.a or context.b"), "expression-syntax: or"],
  not: [when("not context.a"), "expression-syntax: not"],
  None: [when("context.a == None"), "expression-syntax: None"],
  True: [when("context.a == True"), "expression-syntax: True"],
  False: [when("context.a == False"), "expression-syntax: False"],
  "=": [when("context.a = 1"), "expression-syntax: ="],
  "a and b": [when("context.a and context.b"), "expression-syntax: and"],
  "a or b": [when("context.a or context.b"), "expression-syntax: or"],
  "not a": [when("not context.a"), "expression-syntax: not"],
  'context.get("x")': [when("context.get('x') == 1"), "expression-name: context.get('x')"],
  "x.lower()": [when("context.x.lower() == 'a'"), "expression-name: context.x.lower()"],
  "x.strip()": [when("context.x.strip() == 'a'"), "expression-name: context.x.strip()"],
  'x.startswith("a")': [when("context.x.startswith('a')"), "expression-name: context.x.startswith('a')"],
  "'5' == 5": [when("'5' == 5"), "expression-type: '5' == 5"],
};
/** Words that are no fragments of a document. */
const WORDS: readonly string[] = [
  // Of the API, of events, of codes and of outputs.
  "loadWorkflow",
  "unanswered",
  "{ result }",
  "{ name, success, feedback }",
  "route.decided",
  "NaN",
  // Values of fields, which the fields' tests have.
  "success",
  "failure",
  "pause",
  "failed",
  "error",
  "cancelled",
  "scratchpad",
  // Commands, which test/docs/command.test.ts knows, and the one of Flujo.
  'sluice run pipeline.yaml "<the task>"',
  "sluice check pipeline.yaml",
  "sluice answer",
  "sluice audit",
  "sluice run",
  "check",
  "runs",
  "show",
  "resume",
  "answer",
  "replay",
  "--wait",
  "flujo",
];
const FIELDS: ReadonlySet<string> = new Set([
  ...[machineDocumentSchema, stepsDocumentSchema, stateSchema, stepSchema].flatMap(({ shape }) => Object.keys(shape)),
  ...["from", "on", "when", "to", "max_hops", "max_visits", "max_tokens", "max_cost_usd", "timeout_s", "instructions"],
]);
/** The functions and methods that the page lists for conditions. */
const [, functions = ""] = /- Functions: ([\s\S]*?)\n/u.exec(formatPage.text) ?? [];

describe("every fragment of the pages", () => {
  test.each(Object.entries(FRAGMENTS))("%s can be written", async (fragment, text) => {
    const words = fragment.replaceAll(/<\w+>/gu, "").match(/\w{2,}/gu) ?? [];
    expect(words.filter((word) => !text.includes(word))).toEqual([]);
    expect(await errorsOf(text, OTHER)).toEqual([]);
  });

  test.each(Object.entries(MISTAKES))("%s is reported", async (_fragment, [text, mistake]) => {
    expect(await errorsOf(text, OTHER)).toEqual([mistake]);
  });

  test("is one of those, a field of a document, a variable or a function, or a word of the list", () => {
    const known = new Set([
      ...Object.keys(FRAGMENTS),
      ...Object.keys(MISTAKES),
      ...WORDS,
      ...FIELDS,
      ...VARIABLES,
      ...codesIn(functions),
    ]);
    const codes = PAGES.flatMap(({ text }) => codesIn(text.replace(/```[\s\S]*?```/gu, "").replaceAll("\\|", "|")));
    expect(codes.filter((code) => !known.has(code))).toEqual([]);
  });

  test("a function of the list can be called, and any other is refused", () => {
    const calls: Readonly<Record<string, string>> = {
      has: "has(context.a)",
      contains: "context.a.contains('b')",
      indexOf: "context.a.indexOf('b') == 1",
      lastIndexOf: "context.a.lastIndexOf('b') == 1",
      startsWith: "context.a.startsWith('b')",
      endsWith: "context.a.endsWith('b')",
      substring: "context.a.substring(1) == 'b'",
      size: "size(context.a) == 1 && context.a.size() == 1",
      orValue: "context.?a.orValue(true)",
      hasValue: "context.?a.hasValue()",
      value: "context.?a.value()",
      lowerAscii: "context.a.lowerAscii() == 'b'",
      upperAscii: "context.a.upperAscii() == 'b'",
      trim: "context.a.trim() == 'b'",
      ...Object.fromEntries(
        ["int", "double", "string", "bool", "dyn"].map((name) => [name, `${name}(context.a) == 1`]),
      ),
      string: "string(context.a) == 'b'",
      bool: "bool(context.a)",
      ...Object.fromEntries(["all", "exists", "exists_one"].map((name) => [name, `context.a.${name}(x, x > 1)`])),
      filter: "context.a.filter(x, x > 1).size() == 1",
      map: "context.a.map(x, x + 1).size() == 1",
    };
    const listed = codesIn(functions);
    expect(Object.keys(calls).toSorted()).toEqual([...new Set(listed)].toSorted());
    for (const [name, condition] of Object.entries(calls))
      expect([name, celGuard(condition).problems]).toEqual([name, undefined]);
    for (const name of ["matches", "type", "timestamp", "duration", "split", "join", "replace", "bytes"])
      expect([name, celGuard(`context.a.${name}('b') == 1`).problems?.length]).toEqual([name, 1]);
  });
});

/** The claims of a table, by its first column. */
const claimsOf = (section: string): readonly string[] => tableOf(section).map(([claim = ""]) => claim);
type Claims = Readonly<Record<string, () => Promise<void>>>;
async function allHold(section: string, claims: Claims): Promise<void> {
  expect(Object.keys(claims)).toEqual(claimsOf(section));
  for (const [claim, holds] of Object.entries(claims)) {
    try {
      await holds();
    } catch (thrown) {
      throw new Error(`it does not hold: ${claim}`, { cause: thrown });
    }
  }
}

const BAD = [{ wrong: 1 }];
const GOOD = [{ result: "x" }];
const NO_FAILURE = ROWS.split("\n").slice(0, 2).join("\n");
const EMPTY = "  a: []\n  b: []";
const LOOP =
  "  - { from: a, on: success, to: b }\n  - { from: b, on: success, to: a }\n  - { from: b, on: failure, to: done }\n";

test("what is stricter than in Flujo is so", async () => {
  await allHold(sectionOf(migrationPage, "## What is stricter"), {
    "a state that fails": async () => {
      expect(await runFlujo(machine(NO_FAILURE), { outputs: { a: BAD } })).toMatchObject({
        status: "failed",
        state: undefined,
      });
      expect((await runFlujo(machine(ROWS), { outputs: { a: BAD } })).state).toBe("failed");
    },
    "a step that fails": async () => {
      const states = "  a: [{ name: one, prompt: P, tools: [] }, { name: two, prompt: P, tools: [] }]\n  b: []";
      const ran = await runFlujo(machine(ROWS, { states }), { outputs: { one: BAD } });
      expect([ran.state, ran.prompts.some((prompt) => prompt.startsWith("two"))]).toEqual(["failed", false]);
    },
    "an end state called `failed` or `error`": async () => {
      const to = (name: string, states = EMPTY) =>
        machine(`${ROWS.replace("to: done", `to: ${name}`)}  - { from: b, on: failure, to: done }\n`, { states });
      expect((await runFlujo(to("failed"))).status).toBe("failed");
      expect((await runFlujo(to("error").replace("[done,", "[done, error,"))).status).toBe("failed");
      expect((await runFlujo(to("failed", `${EMPTY}\n  failed: { outcome: completed }`))).status).toBe("completed");
    },
    "a cap": async () => {
      const ran = await runFlujo(machine(LOOP, { states: EMPTY, more: "limits: { max_hops: 4 }" }));
      expect(ran.error?.code).toBe("limit_hops");
    },
    "a state that is entered more than 10 times": async () => {
      const visits = async (more: string) => {
        const { walk, error } = await runFlujo(machine(LOOP, { states: EMPTY, more }));
        return [error?.code, walk.length];
      };
      expect(await visits("")).toEqual(["limit_visits", 20]);
      expect(await visits("limits: { max_visits: 12 }")).toEqual(["limit_visits", 24]);
      expect(await visits("limits: { max_visits: 99 }")).toEqual(["limit_hops", 31]);
    },
    "a state without a row for its success": async () => {
      const text = machine("  - { from: a, on: failure, to: b }\n  - { from: b, on: success, to: done }\n", {
        states: EMPTY,
      });
      expect((await runFlujo(text)).status).toBe("failed");
      expect((await loadFlujo(text)).diagnostics.map(({ rule, severity }) => [rule, severity])).toContainEqual([
        "dead-end",
        "warning",
      ]);
    },
    "a machine inside a state": async () => {
      const states = `  a:
    - kind: StateMachine
      name: inner
      start_state: a
      end_states: [done]
      states: { a: [{ name: x, prompt: P, tools: [] }] }
      transitions: [{ from: a, on: success, to: done }]
  b: []`;
      const ran = await runFlujo(machine(ROWS, { states }), { outputs: { a: GOOD } });
      expect([ran.state, ran.routes, ran.prompts.length]).toEqual(["done", ["a -> b", "b -> done"], 1]);
    },
    "an unknown key": async () => {
      const { diagnostics } = await loadFlujo(row("from: a, on: success, whenn: x"));
      expect(diagnostics[0]).toMatchObject({ severity: "error", suggestion: 'did you mean "when"?' });
    },
    "`start_state`, `from`, `to`, `imports` and agents": async () => {
      const texts = [
        machine(ROWS).replace("start_state: a", "start_state: x"),
        machine(ROWS.replace("from: b", "from: x")),
        machine(ROWS.replace("to: done", "to: x")),
        machine(ROWS, { more: "imports: { other: ./nowhere.yaml }" }),
        step("uses: imports.nope"),
        step("uses: agents.nope"),
      ];
      for (const text of texts) expect(await errorsOf(text, OTHER)).toHaveLength(1);
    },
    "`model: openai:gpt-4o`": async () => {
      const started = (model: string) => {
        const { folder, run } = commandRun(`[], model: "${model}"`, []);
        return sluice(run, folder).stderr;
      };
      expect(started("openai:gpt-4o")).toContain("Did you mean openai/<model>?");
      expect(started("openai/gpt-4o")).toContain("OPENAI_API_KEY");
    },
    "an agent's `output_schema`": async () => {
      const schema = (type: string) => step(`prompt: P, tools: [], output_schema: { type: ${type} }`);
      expect(await errorsOf(schema("object"), OTHER)).toEqual([]);
      expect(await errorsOf(schema("string"), OTHER)).toEqual(["wrong-type: string"]);
    },
    "`next_state` in a step's output": async () => {
      const schema = "{ type: object, properties: { next_state: { enum: [b] } } }";
      const { diagnostics } = await loadFlujo(step(`prompt: P, tools: [], output_schema: ${schema}`), OTHER);
      expect(diagnostics.find(({ rule }) => rule === "next-state")?.suggestion).toContain(
        "on: success, when: 'output.choice == \"b\"', to: b",
      );
    },
    tools: async () => {
      const { folder, run } = commandRun("[Read]", [
        turn(call("Write", { file_path: "a.md", content: "x" })),
        turn(call("submit", { result: "x" })),
      ]);
      const { status, stdout } = sluice(run, folder);
      expect([status, JSON.parse(stdout)]).toMatchObject([
        0,
        { status: "completed", denied: [{ cause: "no_interactor" }] },
      ]);
    },
  });
});

/** A machine with one agent in a folder, and the arguments that run it. */
function commandRun(tools: string, turns: readonly object[]) {
  const text = machine(ROWS, { states: `  a: [{ name: x, prompt: P, tools: ${tools} }]\n  b: []` });
  const folder = folderOf({ "m.yaml": text, "s.json": JSON.stringify({ stages: { a: turns } }) });
  return { folder, run: ["run", "m.yaml", "the task", "--model", "scripted:s.json", "--output-format", "json"] };
}

const ASKING = `  a: [{ name: one, prompt: P, tools: [] }, { kind: hitl, name: ask, message: M, sink_to: said }, { name: two, prompt: "{{ resume_input }}", tools: [] }]
  b: [{ name: three, prompt: "{{ctx.input.answer}}", tools: [] }]`;
const pausing = (rows: string) => machine(`${rows}${ROWS}`, { states: ASKING });
const given = { one: GOOD, two: GOOD, b: GOOD };

test("questions to people lead where the page says", async () => {
  await allHold(sectionOf(migrationPage, "## Questions to people"), {
    none: async () => {
      const ran = await runFlujo(pausing(""), { outputs: given, answers: ["yes"] });
      expect(ran.walk).toEqual(["a#1 completed", "b#1 completed"]);
    },
    "from the state to itself": async () => {
      const ran = await runFlujo(pausing("  - { from: a, on: pause, to: a }\n"), { outputs: given, answers: ["yes"] });
      expect(ran.walk).toEqual(["a#1 paused", "a#2 completed", "b#1 completed"]);
      expect(ran.prompts).toEqual(["one: P", "two: yes", "b: yes"]);
    },
    "to another state": async () => {
      const text = pausing("  - { from: a, on: pause, to: b }\n").replace(
        "to: done }",
        "to: done, when: '!context.said' }",
      );
      const ran = await runFlujo(text, { outputs: given, answers: ["yes"] });
      expect([ran.state, ran.walk, ran.prompts]).toEqual([
        "done",
        ["a#1 paused", "b#1 completed"],
        ["one: P", "b: yes"],
      ]);
    },
    "to an end state": async () => {
      expect(await errorsOf(pausing("  - { from: a, on: pause, to: done }\n"))).toEqual(["definition: done"]);
    },
  });
  const silent = await runFlujo(pausing(""), { outputs: given });
  expect([silent.state, silent.result.stages[0]]).toMatchObject(["failed", { code: "unanswered" }]);
});

test("conditions of Flujo mean what the page says", async () => {
  const holds = async (condition: string) =>
    (
      await runFlujo(
        when(condition).replace(
          "name: m",
          "name: m\ncontext: { scratchpad: { ready: [1] }, x: ' Ab ', five: '5', n: 5 }",
        ),
        {
          outputs: { a: GOOD },
        },
      )
    ).routes[0] === "a -> done";
  const suggests = async (condition: string) => (await loadFlujo(when(condition))).diagnostics[0]?.suggestion;
  await allHold(sectionOf(migrationPage, "## Conditions"), {
    "`context.scratchpad.ready`": async () => {
      expect(await holds("context.scratchpad.ready")).toBe(true);
      expect(await holds("context.scratchpad.none || context.nope.ready")).toBe(false);
    },
    "`a and b`, `a or b`, `not a`": async () => {
      expect(await suggests("context.a and context.b")).toContain("context.a && context.b");
      expect(await suggests("context.a or context.b")).toContain("context.a || context.b");
      expect(await suggests("not context.a")).toContain("!context.a");
    },
    "`None`, `True`, `False`": async () => {
      for (const word of ["None", "True", "False"])
        expect(await suggests(`context.a == ${word}`)).toContain(
          `context.a == ${word === "None" ? "null" : word.toLowerCase()}`,
        );
    },
    '`context.get("x")`': async () => {
      expect(await suggests("context.get('x') == 1")).toBe("write x.?key.orValue(y)");
      expect(await holds("context.?nope.orValue(null) == null")).toBe(true);
    },
    '`x.lower()`, `x.strip()`, `x.startswith("a")`': async () => {
      expect(await suggests("context.x.lower() == 'a'")).toBe("write x.lowerAscii()");
      expect(await suggests("context.x.strip() == 'a'")).toBe("write x.trim()");
      expect(await suggests("context.x.startswith('a')")).toBe("write x.startsWith(y)");
      expect(await holds("context.x.trim().lowerAscii() == 'ab' && context.x.trim().startsWith('A')")).toBe(true);
    },
    "`'5' == 5` is true": async () => {
      expect(await holds("context.five == 5")).toBe(false);
      expect(await holds("context.five == context.n")).toBe(false);
      expect(await holds("int(context.five) == 5")).toBe(true);
    },
  });
});

test("what the page says stays does, and what it says is missing is refused", async () => {
  for (const kind of ["conditional", "parallel", "map", "loop"]) {
    expect(migrationPage.text).toContain(kind);
    expect(await errorsOf(step(`kind: ${kind}`), OTHER)).toContain(`wrong-type: ${kind}`);
  }
  expect(await errorsOf(step("uses: package.module.function"), OTHER)).toEqual([
    "unknown-agent: package.module.function",
  ]);
  const asStep = `steps:\n${machine(ROWS, { states: EMPTY })
    .trimEnd()
    .split("\n")
    .map((line, index) => `${index === 0 ? "  - " : "    "}${line}`)
    .join("\n")}\n`;
  expect((await runFlujo(asStep)).state).toBe("done");
  const hops = await runFlujo(machine(LOOP, { states: EMPTY, more: "limits: { max_visits: 99 }" }));
  expect([hops.error?.code, hops.walk.length]).toEqual(["limit_hops", 31]);
  const several = await loadTexts(FILE, { [FILE]: row("from: a, on: success, whenn: x, whn: y") });
  expect(several.diagnostics.map(({ line }) => line)).toEqual([10, 10]);
});

test("sluice audit shows why the rows before the chosen one did not match", () => {
  const text = machine(`  - { from: a, on: success, to: failed, when: context.never }\n${ROWS}`, { states: EMPTY });
  const folder = folderOf({ "m.yaml": text, "s.json": '{"stages":{}}' });
  const run = sluice(["run", "m.yaml", "x", "--model", "scripted:s.json", "--output-format", "json"], folder);
  const { runId }: { readonly runId: string } = JSON.parse(run.stdout);
  expect(sluice(["audit", runId], folder).stdout).toContain("context.never is missing or empty");
});
