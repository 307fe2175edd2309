import type { JsonObject } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { createReport } from "@sluice/core/runtime";
import { authoredExecutor } from "@sluice/workflows";
import { describe, expect, test } from "vitest";
import { commandOf } from "../../packages/stages/src/kinds/commands/command.ts";
import { READERS } from "../../packages/stages/src/tools/bash/readers/reader-table.ts";
import { readAllow } from "../../packages/workflows/src/authored/allow.ts";
import { checkDocument } from "../../packages/workflows/src/authored/check-document.ts";
import { isCovered } from "../../packages/workflows/src/authored/covers.ts";
import { asking, feedbackOf, submit, write, writes } from "../support/authored.ts";
import { handClock } from "../support/hand-clock.ts";
import { eventually, session, tool } from "../support/run-kit.ts";
import { talker } from "../support/talker.ts";

// Pipelines that a hostile model writes. None of them may run, and no person may be asked about one.

const final = { type: "final" };
const on = { success: "done" };
const of = (state: unknown, more: object = {}) => ({
  id: "w",
  initial: "a",
  states: { a: state, done: final },
  ...more,
});
const agent = (more: object) => of({ allowed_tools: [], on: { DONE: "done" }, ...more });
const now = 1_000;
const everything = ["agent", "human", "timer", "router", "script", "poll", "pipeline"] as const;
const tools = ["Read", "Edit(src/**)", "Grep(docs/*.md)", "Bash(npm test *)"];
const commands = [["npm", "test"]];

/** What the model reads about its document, which is refused three times. */
async function refusedWith(document: unknown, allow: JsonObject = { tools, commands, kinds: [...everything] }) {
  const given = JSON.parse(JSON.stringify(allow));
  const made = await write([document, document, document], { allow: given });
  expect(made.asked).toEqual([]);
  expect(made.output).toMatchObject({ code: "authored", detail: { cause: "design" } });
  expect(await made.live.host.tree(made.runId)).toHaveLength(2);
  return feedbackOf(made);
}
async function runs(document: unknown): Promise<boolean> {
  const made = await write(
    [document, document, document],
    {
      allow: { tools, commands, kinds: everything },
      approval: "always",
    },
    { person: () => ({ kind: "value", value: "reject" }) },
  );
  return made.asked.length === 1;
}

describe("kinds that are not allowed", () => {
  test.each<readonly [what: string, document: unknown]>([
    ["a script", of({ script: { command: ["npm", "test"] }, on })],
    ["a poll", of({ poll: { command: ["npm", "test"], every: "1h" }, on })],
    ["a script beside an agent's fields", agent({ script: { command: ["npm", "test"] } })],
    ["a script behind an allowed kind", of({ timer: { for: "1h" }, script: { command: ["npm", "test"] }, on })],
    ["a script in a final state", of({ type: "final", script: { command: ["npm", "test"] } })],
    ["another pipeline", of({ pipeline: { workflow: "w" }, on })],
    ["a kind by name", of({ kind: "script", command: ["npm", "test"], on })],
    [
      "a Flujo machine",
      {
        kind: "StateMachine",
        start_state: "a",
        end_states: ["b"],
        states: { a: [{ name: "x", script: { command: ["id"] } }] },
      },
    ],
    ["a list of steps", [{ name: "x", script: { command: ["id"] } }]],
  ])("%s", async (_what, document) => {
    await refusedWith(document, { tools, commands });
  });
});

describe("tools that are wider than those of the author", () => {
  test.each([
    "Bash",
    "Bash(npm *)",
    "Bash(*)",
    "Bash(npm test)x",
    "Bash(npm test; id *)",
    "Bash(npm test $(id) *)",
    "Bash(npm testing *)",
    "Edit",
    "Edit(**)",
    "Edit(src)",
    "Edit(src/../**)",
    "Edit(src/{a,../../etc}/**)",
    "Edit(srcs/**)",
    "Edit(/**)",
    "Grep",
    "Grep(docs/**)",
    "Write(src/**)",
    "*",
    "R*",
    "Read*",
    "mcp__*",
    "Edit(src/**)|Bash",
    "edit(src/**)",
  ])("%s", async (pattern) => {
    await refusedWith(agent({ allowed_tools: [pattern] }));
  });

  test("an agent that lists none", async () => {
    expect(await refusedWith(of({ on: { DONE: "done" } }))).toContain("authored-tool");
  });

  // The gate takes these for a call under the rule of the author only if the stage may write, or in a sandbox.
  test.each([
    ["Bash(make *)", "Bash(make -fdocs/m.mk check)"],
    ["Bash(make *)", "Bash(make SHELL=./docs/x)"],
    ["Bash(make *)", "Bash(make check -f docs/m.mk *)"],
    ["Bash(npm test *)", "Bash(npm test --reporter=./docs/evil.mjs)"],
    ["Bash(npm test *)", "Bash(npm test --prefix=docs *)"],
    ["Bash(npm test *)", "Bash(npm test --run)"],
    ["Bash(npm test *)", "Bash(npm test deploy)"],
    ["Bash(npm run *)", "Bash(npm run unit deploy *)"],
    ["Bash(mvn test *)", "Bash(mvn test deploy)"],
    ["Bash(pytest *)", "Bash(pytest @docs/args.txt *)"],
    ["Bash(git log *)", "Bash(git log --output=x)"],
    ["Bash(git branch *)", "Bash(git branch)"],
    ["Bash(git branch *)", "Bash(git branch evil)"],
    ["Bash(git branch *)", "Bash(git branch evil *)"],
    ["Bash(/usr/bin/git branch *)", "Bash(/usr/bin/git branch evil)"],
    ["Bash(uniq *)", "Bash(uniq a b)"],
    ["Bash(sed *)", "Bash(sed wout a.txt)"],
    ["Bash(node -v *)", "Bash(node -v x.js)"],
  ])("within %s: %s", async (wide, narrow) => {
    const document = agent({ allowed_tools: [narrow] });
    expect(await refusedWith(document, { tools: [wide] })).toContain("authored-tool");
  });

  test.each([
    ["Bash(pytest tests/unit *)", "Bash(pytest *)"],
    ["Bash(npm run unit)", "Bash(npm run *)"],
    ["Bash(make check)", "Bash(make *)"],
  ])("but %s is within %s", (narrow, wide) => {
    expect(isCovered(narrow, [wide])).toBe(true);
  });

  test("more words for a program that counts as reading", () => {
    for (const name of [...READERS.keys(), "awk", "find", "git", "jq", "sed", "tree", "xxd"])
      expect([name, isCovered(`Bash(${name} a b)`, [`Bash(${name} *)`])]).toEqual([name, false]);
  });

  test("Bash without the rule for Read that limits what it reads", async () => {
    const allow = { tools: ["Bash", "Read(docs/**)"] };
    expect(await refusedWith(agent({ allowed_tools: ["Bash"] }), allow)).toContain("would read every file");
  });

  test.each(["Read", "Read(docs/**)", "Edit(src/**)", "Edit(src/a/*.ts)", "Bash(npm test *)", "Grep(docs/*.md)"])(
    "but %s is narrower",
    async (pattern) => {
      expect(await runs(agent({ allowed_tools: [pattern] }))).toBe(true);
    },
  );

  test.each([
    ["allowed_commands", { allowed_tools: ["Bash"], allowed_commands: ["rm -rf"] }],
    ["variables", { env_overrides: { NODE_OPTIONS: "--require /tmp/x.js" } }],
    ["variables by their alias", { env: { PATH: "/tmp" } }],
    ["fewer variables", { blocked_env: ["HOME"] }],
    ["another model", { model: "expensive" }],
    ["another model when the first one fails", { fallback_models: ["expensive"] }],
    ["options of the provider", { provider_options: { anthropic: { speed: "fast" } } }],
    ["more reasoning", { reasoning: "xhigh" }],
    ["a forced call", { tool_choice: "required" }],
    ["more retries", { retry: { max_elapsed_ms: 1e9 } }],
    ["a failure instead of a suspension", { on_provider_fault: "fail" }],
    ["more turns", { turn_cap: 5000 }],
  ])("%s", async (_what, state) => {
    await refusedWith(agent(state));
  });

  test.each([
    ["an answer", { human: { question: "Go?", answer: { type: "string", pattern: "^(a+)+$" } } }],
    ["a part of an answer", { human: { question: "Go?", answer: { properties: { a: { pattern: "^(a+)+$" } } } } }],
    ["names in an answer", { human: { question: "Go?", answer: { patternProperties: { "^(a+)+$": {} } } } }],
    ["an output", { script: { command: ["npm", "test"], output: { items: [{ pattern: "^(a+)+$" }] } } }],
  ])("a regular expression for %s", async (_what, state) => {
    await refusedWith(of({ ...state, on }));
  });

  test.each([
    ["$ref", { $ref: "#/$defs/a", $defs: { a: { type: "string" } } }],
    ["$dynamicRef", { anyOf: [{ $dynamicRef: "#a" }] }],
    ["$recursiveRef", { items: { $recursiveRef: "#" } }],
  ])("%s in the schema of an answer", async (name, answer) => {
    const feedback = await refusedWith(of({ human: { question: "Go?", answer }, on }));
    expect(feedback).toContain(`${name}\\" is not part of what a model may write`);
  });

  test("but a property may have the name of a reference", async () => {
    const answer = { type: "object", properties: { $ref: { type: "string" }, pattern: { type: "string" } } };
    expect(await runs(of({ human: { question: "Go?", answer }, on }))).toBe(true);
  });

  describe("a condition on an answer that no one can give", () => {
    const asking = (condition: object, answer: object = { enum: ["yes", "no thanks"] }) => ({
      ...of({
        human: { question: "Go?", answer },
        on: { success: [{ target: "failed", guard: "refused" }, { target: "done" }] },
      }),
      guards: { refused: { field: "output", ...condition } },
    });
    test.each([
      { op: "eq", value: "n\u043e thanks" },
      { op: "eq", value: "no  thanks" },
      { op: "neq", value: "Yes" },
      { op: "in", value: ["no thanks", "n\u043e"] },
    ])("is refused: %j", async (condition) => {
      expect(await refusedWith(asking(condition))).toContain("is no answer to the question");
    });

    test.each([{ type: "boolean" }, { const: "yes" }])("is refused where %j is the answer", async (answer) => {
      expect(await refusedWith(asking({ op: "eq", value: "no" }, answer))).toContain("is no answer to the question");
    });

    test.each([
      { op: "eq", value: "no thanks" },
      { op: "in", value: ["no thanks"] },
      { op: "contains", value: "no" },
    ])("but not on one that a person can give: %j", async (condition) => {
      expect(await runs(asking(condition))).toBe(true);
    });
  });

  test("more words than a person can be shown", async () => {
    const question = "\u00a0".repeat(10_000);
    const document = of({ human: { question: "Go?", answer: { type: "string", description: question } }, on });
    await refusedWith(document);
  });

  test("a router that tries more often than an agent has turns", async () => {
    await refusedWith(of({ router: { targets: ["done"], prompt: "Choose.", tries: 51 } }));
  });

  test("a call of a tool that it did not list is denied, in every mode", async () => {
    const calls: unknown[] = [];
    const touch = tool("touch", {
      effect: "write",
      execute: async (input) => {
        calls.push(input);
        return { ok: true, output: null };
      },
    });
    const say = ({ turn }: { readonly turn: number }) =>
      turn === 0
        ? { calls: [{ tool: "touch", input: {} }] }
        : { calls: [{ tool: "transition", input: { event: "DONE" } }] };
    for (const mode of ["ask", "yolo"] as const) {
      const { output } = await write(
        [agent({})],
        { allow: { tools: ["touch"] }, approval: "never" },
        { mode, tools: [touch], say },
      );
      expect(output).toMatchObject({ pipeline: "w" });
    }
    expect(calls).toEqual([]);
  });
});

describe("commands", () => {
  const script = (fields: object) => of({ script: { command: ["npm", "test"], ...fields }, on });
  test.each<readonly [what: string, document: unknown]>([
    ["another program", of({ script: { command: ["rm", "-rf", "."] }, on })],
    ["a shorter command", of({ script: { command: ["npm"] }, on })],
    ["a word that only begins like the allowed one", of({ script: { command: ["npm", "test;id"] }, on })],
    ["a program of that name elsewhere", of({ script: { command: ["./npm", "test"] }, on })],
    ["words in one text", of({ script: { command: ["npm test"] }, on })],
    ["a shell line", of({ script: { shell: "npm test" }, on })],
    ["a shell line beside it", script({ shell: "id" })],
    ["a template in an argument", of({ script: { command: ["npm", "test", "{{ctx.upstream.a.x}}"] }, on })],
    ["variables", script({ env: { NODE_OPTIONS: "--require /tmp/x.js" } })],
    ["a folder", script({ cwd: "/tmp" })],
    ["a secret", script({ secrets: ["NPM_TOKEN"] })],
    ["a second run", script({ repeat: true })],
    ["the network", script({ sandbox: { write: true, network: true } })],
    ["a sandbox that is none", script({ sandbox: null })],
    ["one that runs for a day", script({ timeout: "1d" })],
    ["too long to read", of({ script: { command: ["npm", "test", "x".repeat(600)] }, on })],
    ["one that a poll runs", of({ poll: { command: ["id"], every: "1h" }, on })],
  ])("%s", async (_what, document) => {
    await refusedWith(document);
  });

  test("without a list of commands none is allowed", async () => {
    await refusedWith(script({}), { tools, kinds: ["script"] });
  });

  test("but the words of an allowed one with further arguments are", async () => {
    expect(await runs(of({ script: { command: ["npm", "test", "--", "unit"], timeout: "5m" }, on }))).toBe(true);
  });
});

test("commands run in the sandbox, whether they are scripts or polls", () => {
  const document = {
    ...of({ script: { command: ["npm", "test"] }, on: { success: "b" } }),
    states: {
      a: { script: { command: ["npm", "test"] }, on: { success: "b" } },
      b: { poll: { command: ["npm", "test"], every: "1h" }, on: { success: "done" } },
      done: final,
    },
  };
  const rules = readAllow(createReport(), { tools: [], commands, kinds: ["script", "poll"] });
  const { spec, diagnostics } = checkDocument(document, { rules, tools: [], now });
  expect(diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
  const states = [...(spec?.states.values() ?? [])].filter(({ kind }) => kind === "script" || kind === "poll");
  expect(states.map(({ options }) => commandOf(options)?.sandbox)).toEqual([{ write: true }, { write: true }]);
});

describe("schedules below the floor", () => {
  const timer = (fields: object) => of({ timer: fields, on });
  const iso = (ms: number) => new Date(ms).toISOString();
  test.each<readonly [what: string, document: unknown]>([
    ["14 minutes", timer({ for: "14m" })],
    ["899 seconds", timer({ for: "899s" })],
    ["a part of an hour", timer({ for: "0.24h" })],
    ["milliseconds", timer({ for: 899_999 })],
    ["milliseconds with a unit", timer({ for: "899999ms" })],
    ["a unit that does not exist", timer({ for: "15M" })],
    ["a number that is none", timer({ for: "1e9s" })],
    ["below zero", timer({ for: -1 })],
    ["a time that is past", timer({ until: 1 })],
    ["a time that is near", timer({ until: iso(now + 899_000) })],
    ["a near time as a text of milliseconds", timer({ until: String(now + 899_000) })],
    ["a time of a template", timer({ until: "{{ctx.context.at}}" })],
    ["a time that is none", timer({ until: "tomorrow" })],
    ["between attempts", of({ poll: { command: ["npm", "test"], every: "1m" }, on })],
    ["the deadline of a question", of({ human: { question: "Go?", deadline: "14m" }, on })],
    [
      "a deadline with an answer",
      of({ human: { question: "Go?", deadline: "1s", on_deadline: { answer: "yes" } }, on }),
    ],
    ["between attempts, in milliseconds", of({ poll: { command: ["npm", "test"], every: 1 }, on })],
  ])("%s", async (_what, document) => {
    await refusedWith(document);
  });

  test.each<readonly [what: string, document: unknown]>([
    ["15 minutes", timer({ for: "15m" })],
    ["900 seconds", timer({ for: "900s" })],
    ["a later time", timer({ until: iso(now + 900_000) })],
    ["a day to answer", of({ human: { question: "Go?", deadline: "1d" }, on })],
    ["an hour between attempts", of({ poll: { command: ["npm", "test"], every: "1h", max_attempts: 3 }, on })],
  ])("but not %s", async (_what, document) => {
    expect(await runs(document)).toBe(true);
  });
});

describe("what else a file may say", () => {
  test.each<readonly [what: string, document: unknown]>([
    ["an invoked workflow", agent({ on: { DONE: { invoke: "other", on_complete: "done" } } })],
    ["an invoked file", agent({ on: { DONE: { invoke: "../../secret.json", on_complete: "done" } } })],
    ["a workflow of a state", of({ pipeline: { workflow: "../../secret.json" }, on })],
    ["a pipeline that every object has", of({ pipeline: { workflow: "toString" }, on })],
    [
      "branches",
      agent({ on: { DONE: { fork: { branches: { x: { initial: "a", terminal: "done" } }, on_complete: "done" } } } }),
    ],
    [
      "interrupts",
      of(
        { allowed_tools: [], on: { DONE: "done" } },
        { interrupts: { x: { trigger: { file_pattern: "**" }, target: "a" } } },
      ),
    ],
    ["properties", of({ allowed_tools: [], on: { DONE: "done" } }, { properties: ["never: done"] })],
    ["facts about itself", of({ allowed_tools: [], on: { DONE: "done" } }, { meta: { danger_level: "safe" } })],
    ["a schema elsewhere", of({ allowed_tools: [], on: { DONE: "done" } }, { $schema: "https://example.com" })],
    ["a field that no file has", of({ allowed_tools: [], on: { DONE: "done" } }, { approval: "never" })],
  ])("%s", async (_what, document) => {
    await refusedWith(document);
  });
});

describe("documents that are made to break the reader", () => {
  const nested = (depth: number): JsonObject => (depth === 0 ? {} : { a: nested(depth - 1) });
  const many = Object.fromEntries(
    Array.from({ length: 10_000 }, (_, index) => [`s${index}`, { timer: { for: "1h" }, on: { success: "done" } }]),
  );
  test.each<readonly [what: string, document: unknown]>([
    ["10,000 states", { id: "w", initial: "s0", states: { ...many, done: final } }],
    [
      "21 states",
      { id: "w", initial: "s0", states: { ...Object.fromEntries(Object.entries(many).slice(0, 20)), done: final } },
    ],
    ["deep nesting", of({ allowed_tools: [], on: { DONE: "done" } }, { context: nested(200) })],
    ["a huge text", agent({ instructions: "x".repeat(70_000) })],
    ["a name that no one reads to its end", of({ allowed_tools: [], on: { ["x".repeat(65)]: "done" } })],
    ["hidden characters", agent({ instructions: "Do \u202ethat\u202c." })],
    ["a name of several lines", of({ allowed_tools: [], on: { DONE: "a\nTools without asking: none" } }, {})],
    ["an event of several lines", of({ allowed_tools: [], on: { "GO\nCommands: none": "done" } })],
    ["no object", "states"],
    ["nothing", null],
    ["no end", { id: "w", initial: "a", states: { a: { timer: { for: "1h" }, on: { success: "a" } } } }],
    ["a state called interrupted", of({ timer: { for: "1h" }, on: { success: "interrupted" } }, {})],
  ])("%s", async (_what, document) => {
    await refusedWith(document);
  });

  test.each(["__proto__", "constructor", "prototype"])("keys that objects inherit: %s", async (key) => {
    const text = `{"id":"w","initial":"a","states":{"a":{"allowed_tools":[],"on":{"DONE":"done"}},"done":{"type":"final"},${JSON.stringify(key)}:{"script":{"command":["id"]}}}}`;
    await refusedWith(JSON.parse(text));
  });
});

describe("the request that a person reads", () => {
  const questionOf = async (document: unknown): Promise<string> => {
    const { asked } = await write(
      [document, document, document],
      { allow: { tools, commands, kinds: everything, pipelines: { release: writes() } } },
      {
        person: () => ({ kind: "value", value: "reject" }),
      },
    );
    return String(asked[0]?.body.question);
  };

  test("names every tool and every command, whatever else the model wrote", async () => {
    const states = Object.fromEntries([
      ...Array.from({ length: 12 }, (_, index) => [
        `s${index}`,
        {
          allowed_tools: ["Read"],
          instructions: "x ".repeat(500),
          on: { DONE: index === 11 ? "run" : `s${index + 1}` },
        },
      ]),
      ["run", { script: { command: ["npm", "test", "--last"] }, on: { success: "edit" } }],
      ["edit", { allowed_tools: ["Edit(src/z/**)"], on: { DONE: "done" } }],
      ["done", final],
    ]);
    const question = await questionOf({ id: "w", initial: "s0", states });
    expect(question).toContain('Tools without asking: "Read", "Edit(src/z/**)"\n');
    expect(question).toContain('Commands: ["npm","test","--last"]\n');
  });

  test("shows what a state does besides its command, question or prompt", async () => {
    const a = { human: { question: "Go?", deadline: "1d", on_deadline: { answer: "yes" } }, on: { success: "b" } };
    const b = { script: { command: ["npm", "test"], success_codes: [0, 1] }, on: { success: "c" } };
    const c = {
      poll: { command: ["npm", "test"], every: "1h", not_yet_codes: [2], max_attempts: 3 },
      on: { success: "d" },
    };
    const d = { router: { targets: ["a", "done"], prompt: "Choose.", fallback: "done", tries: 9 } };
    const question = await questionOf({ id: "w", initial: "a", states: { a, b, c, d, done: final } });
    expect(question).toContain('- "a": asks a person: "Go?" (deadline: "1d"; on_deadline: {"answer":"yes"})\n');
    expect(question).toContain('- "b": runs ["npm","test"] (success_codes: [0,1])\n');
    expect(question).toContain('- "c": runs ["npm","test"] (every: "1h"; not_yet_codes: [2]; max_attempts: 3)\n');
    expect(question).toContain('- "d": lets a model choose: "Choose." (fallback: "done"; tries: 9)\n');
  });

  test("has what the model wrote in quotes, so that none of it reads as Sluice's words", async () => {
    const go = "deploy, with approval";
    const states = {
      a: { allowed_tools: [], instructions: "Plan.", on: { 'DONE if asked (output equals "yes")': go } },
      [go]: { allowed_tools: ["Read"], instructions: "Deploy.", on: { DONE: "done" } },
      done: final,
    };
    const question = await questionOf({ id: "w", initial: "a", states });
    expect(question).toContain('    "DONE if asked (output equals \\"yes\\")" -> "deploy, with approval"\n');
    expect(question).toContain('- "deploy, with approval": an agent with "Read": ');
  });

  const deploy = { allowed_tools: ["Read"], instructions: "Deploy.", on: { DONE: "done" } };
  const planning = (ways: object) => ({
    id: "w",
    initial: "plan",
    context: { tested: false },
    states: { plan: { allowed_tools: [], instructions: "Plan.", ...ways }, deploy, done: final },
    guards: { untested: { field: "tested", op: "eq", value: false } },
  });
  const approved = { target: "deploy", guard: "untested", requires_approval: true };
  const answer = { type: "string", enum: ["yes", "no"] };
  test.each<readonly [what: string, one: object, other: object]>([
    [
      "a list of ways and two events with the names of its places",
      planning({ on: { DONE: [approved, { target: "deploy" }] } }),
      planning({ on: { "DONE[0]": approved, "DONE[1]": { target: "deploy" } } }),
    ],
    [
      "the way of all other events and an event with its name",
      planning({ on: { DONE: "deploy" }, safe_next: "done" }),
      planning({ on: { DONE: "deploy", safe_next: "done" } }),
    ],
    [
      "the schema of an answer and a question with its words",
      of({ human: { question: "Go?", answer }, on }),
      of({ human: { question: `Go? (answer: ${JSON.stringify(answer)})` }, on }),
    ],
    [
      "the deadline of a question and a question with its words",
      of({ human: { question: "Go?", deadline: "1d" }, on }),
      of({ human: { question: 'Go? (deadline: "1d")' }, on }),
    ],
    [
      "the fallback of a router and a prompt with its words",
      of({ router: { targets: ["done"], prompt: "Choose.", fallback: "done" } }),
      of({ router: { targets: ["done"], prompt: 'Choose. (fallback: "done")' } }),
    ],
  ])("has other words for %s", async (_what, one, other) => {
    expect(await questionOf(one)).not.toBe(await questionOf(other));
  });

  test("names the state that a router falls back to as its document does", async () => {
    const states = {
      a: { router: { targets: ["x y", "x-y"], prompt: "Choose.", fallback: "x y" } },
      "x y": { type: "final" },
      "x-y": { type: "final" },
    };
    expect(await questionOf({ id: "w", initial: "a", states })).toContain('"Choose." (fallback: "x y")\n');
  });

  test.each(["no  thanks", "no\u00a0thanks", "no\u2003thanks"])(
    "shows the blanks of a condition: %j",
    async (value) => {
      const guards = { refused: { field: "output", op: "eq", value } };
      const success = [{ target: "failed", guard: "refused" }, { target: "done" }];
      const question = await questionOf({ ...of({ human: { question: "Go?" }, on: { success } }), guards });
      expect(question).not.toContain('"no thanks"');
      expect(question).toMatch(/output equals "no(?: {2}|\\u\w{4})thanks"/);
    },
  );

  const asks = { human: { question: "Go?", answer }, on: { success: "plan" } };
  const sends = { allowed_tools: [], on: { NOTE: "plan", GO: { target: "done", guard: "said no" } } };
  test.each([
    ["output", 'context.output equals "no"'],
    ["\u043eutput", 'context."\u043eutput" equals "no"'],
    ["a b.output", 'context."a b.output" equals "no"'],
    ["review.score", 'context.review.score equals "no"'],
  ])("says that a condition reads the context: %j", async (field, words) => {
    const guards = { "said no": { field, op: "eq", value: "no" } };
    const states = { a: asks, plan: sends, done: final };
    const question = await questionOf({ id: "w", initial: "a", states, guards });
    expect(question).toContain(`    "GO" if "said no" (${words}) -> "done"\n`);
  });

  test.each([
    ["output", "output exists"],
    ["output.code", "output.code exists"],
    ["output.a b", '"output.a b" exists'],
  ])("says that a condition reads what the state gave: %j", async (field, words) => {
    const guards = { if: { field, op: "exists" } };
    const success = [{ target: "done", guard: "if" }, { target: "failed" }];
    const question = await questionOf({ ...of({ human: { question: "Go?" }, on: { success } }), guards });
    expect(question).toContain(`    success[0] if "if" (${words}) -> "done"\n`);
  });

  test("names the model and the limits of an agent", async () => {
    const limits = { turn_cap: 3, max_iterations: 2, max_edit_lines: 5, max_files_per_state: 1 };
    const { asked } = await write(
      [agent({ instructions: "Go.", model: "expensive", ...limits, context_budget_bytes: 9 })],
      { allow: { tools: [], models: ["expensive"] } },
      { person: () => ({ kind: "value", value: "reject" }) },
    );
    expect(String(asked[0]?.body.question)).toContain(
      '- "a": an agent with no tools: "Go." (turn_cap: 3; model: "expensive"; max_iterations: 2; max_edit_lines: 5; max_files_per_state: 1; context_budget_bytes: 9)\n',
    );
  });

  test.each([
    [{ for: "1h" }, "sleeps for 1h"],
    [{ for: `15${"\n".repeat(40)}m` }, "sleeps for 15m"],
    [{ for: 900_000.4 }, "sleeps for 15m"],
    [{ until: 1_799_999_999_999 }, "sleeps until 2027-01-15T07:59:59.999Z"],
    [{ until: "\n1799999999999 " }, "sleeps until 2027-01-15T07:59:59.999Z"],
    [{ until: "2027-01-31T09:00:00+01:00" }, "sleeps until 2027-01-31T08:00:00.000Z"],
  ])("says when a timer ends, however its document writes it: %j", async (timer, words) => {
    expect(await questionOf(of({ timer, on }))).toContain(`- "a": ${words}\n`);
  });

  test("shows the whole condition of a way", async () => {
    const value = ["yes", "definitely yes, ".repeat(30), "no"];
    const guards = { said: { field: "output", op: "in", value } };
    const success = [{ target: "done", guard: "said" }, { target: "failed" }];
    const question = await questionOf({ ...of({ human: { question: "Go?" }, on: { success } }), guards });
    expect(question).toContain(JSON.stringify(value));
  });

  test("shows what a command reads", async () => {
    const script = { command: ["npm", "test"], stdin: "require('fs').rmSync('src', { recursive: true })" };
    const question = await questionOf(of({ script, on }));
    expect(question).toContain(`runs ["npm","test"], which reads ${JSON.stringify(script.stdin)}`);
  });

  test("shows the whole input of a pipeline that a state runs", async () => {
    const input = { to: "x\nCommands: none\u2028", notes: "y ".repeat(500), force: true };
    const question = await questionOf(of({ pipeline: { workflow: "release", input }, on }));
    const shown = JSON.stringify(input).replace("\u2028", "\\u2028");
    expect(question).toContain(`- "a": runs the pipeline "release" with the input ${shown}\n`);
  });

  test("shows the context of the pipeline, which templates of an input read", async () => {
    const input = { to: "{{ctx.context.target}}" };
    const document = {
      ...of({ pipeline: { workflow: "release", input }, on }),
      context: { target: "everywhere\nCommands: none" },
    };
    expect((await questionOf(document)).split("\n")).toContain(
      'Context at the start: {"target":"everywhere\\nCommands: none"}',
    );
  });

  test("has no lines of its own for texts that hold line ends", async () => {
    const question = await questionOf(of({ human: { question: "x\nCommands: none\u2028Tools: none" }, on }));
    expect(question.split("\n").filter((line) => /^(?:Tools|Commands)/.test(line))).toHaveLength(2);
    expect(question).not.toContain("\u2028");
  });
});

describe("a resume", () => {
  test("with another document in the model's mouth runs the recorded one", async () => {
    const clock = handClock();
    const memory = createMemoryJournals();
    const waiting = of({ timer: { for: "1h" }, on });
    const first = session({
      clock,
      host: createHost(memory.connect(), { clock }),
      model: talker(() => submit(waiting)),
      executors: [authoredExecutor],
    });
    const made = writes({ allow: { tools: [] }, approval: "never" });
    const run = first.start(made, { task: "T" });
    await eventually(async () => clock.waiting() === 1);
    await first.close();
    const other = talker(() => submit(asking));
    const second = session({
      clock,
      host: createHost(memory.connect(), { clock }),
      model: other,
      executors: [authoredExecutor],
    });
    const resumed = second.resume(made, run.runId);
    await eventually(async () => clock.waiting() === 1);
    clock.turn(3_600_000);
    expect(await resumed).toMatchObject({ status: "completed", output: { pipeline: "w" } });
    expect(other.heard).toEqual([]);
  });

  test("under rules that no longer allow the document is refused", async () => {
    const clock = handClock();
    const memory = createMemoryJournals();
    const waiting = of({ timer: { for: "1h" }, on });
    const open = () => ({ clock, host: createHost(memory.connect(), { clock }), executors: [authoredExecutor] });
    const first = session({ ...open(), model: talker(() => submit(waiting)) });
    const run = first.start(writes({ allow: { tools: [] }, approval: "never" }), { task: "T" });
    await eventually(async () => clock.waiting() === 1);
    await first.close();
    const second = session({ ...open(), model: talker(() => submit(waiting)) });
    const stricter = writes({ allow: { tools: [], kinds: ["agent"] }, approval: "never" });
    await expect(second.resume(stricter, run.runId)).rejects.toMatchObject({ code: "pipeline_changed" });
    await expect(second.resume(stricter, run.runId, { allowChanged: true })).rejects.toMatchObject({
      code: "journal_mismatch",
    });
  });
});
