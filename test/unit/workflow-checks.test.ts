import { backToInterrupted, done, fail, final, fork, type Guard, pipeline, route, stage, to } from "@sluice/core";
import { allOf, checkWorkflow, type OperatorCondition, operatorGuard } from "@sluice/workflows";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { loadDocument, loadTexts, ruleLines } from "../support/workflows.ts";

const END = { done: { type: "final" }, failed: { type: "final" } };
const READ = { allowed_tools: ["Read"] };

/** A document of states; the first one is the initial one. Final states are `done` and `failed`. */
function documentOf(states: object, more: object = {}): object {
  return { id: "w", initial: Object.keys(states)[0], states: { ...states, ...END }, ...more };
}
/** The rules that a document breaks, with their places. All are warnings. */
async function warnings(states: object, more?: object): Promise<readonly string[]> {
  const loaded = await loadDocument(documentOf(states, more));
  expect(loaded.diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
  expect(loaded.pipeline).toBeDefined();
  return ruleLines(loaded).map((line) => line.replace(" (warning)", ""));
}
async function messages(states: object, more?: object): Promise<readonly string[]> {
  return (await loadDocument(documentOf(states, more))).diagnostics.map(({ message }) => message);
}

describe("guards that can never hold", () => {
  const guarded = (conditions: Readonly<Record<string, OperatorCondition>>, on: object = {}) =>
    [
      {
        a: { ...READ, on: { GO: { target: "b" } } },
        b: { ...READ, on: { X: { target: "done", guards: Object.keys(conditions) }, ...on, FAIL: "failed" } },
      },
      { guards: conditions },
    ] as const;

  test.each<[string, OperatorCondition, OperatorCondition]>([
    ["two values", { field: "x", op: "eq", value: 1 }, { field: "x", op: "eq", value: 2 }],
    ["a value and its negation", { field: "x", op: "eq", value: "a" }, { field: "x", op: "neq", value: "a" }],
    ["a value and its absence", { field: "x", op: "exists" }, { field: "x", op: "not_exists" }],
    ["null and a number", { field: "x", op: "eq", value: null }, { field: "x", op: "gt", value: 3 }],
    ["an empty range", { field: "x", op: "gt", value: 5 }, { field: "x", op: "lte", value: 5 }],
    ["a list without the value", { field: "x", op: "in", value: ["a", "b"] }, { field: "x", op: "eq", value: "c" }],
    ["a number and a part of a text", { field: "x", op: "lt", value: 5 }, { field: "x", op: "contains", value: "a" }],
  ])("%s", async (_name, one, other) => {
    expect(await warnings(...guarded({ one, other }))).toEqual([
      "guard-contradiction states.b.on.X.guards[0]",
      "never-entered states.done",
    ]);
  });

  test.each<[string, OperatorCondition, OperatorCondition]>([
    ["a range", { field: "x", op: "gte", value: 5 }, { field: "x", op: "lte", value: 5 }],
    ["two fields", { field: "x", op: "eq", value: 1 }, { field: "y", op: "eq", value: 2 }],
    ["a list with the value", { field: "x", op: "in", value: ["a", 1] }, { field: "x", op: "eq", value: 1 }],
    ["two parts of a text", { field: "x", op: "contains", value: "a" }, { field: "x", op: "contains", value: "b" }],
    ["two values that are not there", { field: "x", op: "neq", value: 1 }, { field: "x", op: "neq", value: 2 }],
  ])("%s can hold", async (_name, one, other) => {
    expect(await warnings(...guarded({ one, other }))).toEqual([]);
  });

  test("an empty list has no element", async () => {
    const [line] = await messages(...guarded({ none: { field: "x", op: "in", value: [] } }));
    expect(line).toBe("No value satisfies the condition x is one of [].");
  });

  test("a field that is set nowhere before cannot be tested, even by the event that carries it", async () => {
    const a = { ...READ, on: { OK: { target: "done", guard: "passed" }, FAIL: "failed" } };
    const guards = { passed: { field: "result", op: "eq", value: "pass" } };
    expect(await warnings({ a }, { guards, context: { result: null } })).toEqual([
      "guard-never states.a.on.OK.guard",
      "never-entered states.done",
    ]);
    expect((await messages({ a }, { guards }))[0]).toBe(
      'The condition of OK in a can never hold: it needs result equals "pass", but result is always missing in a: no transition before it can change that, since the data of a transition is added only after its condition held.',
    );
  });

  test("a field that an earlier transition may send, or that the context has, can be tested", async () => {
    const a = { ...READ, on: { OK: { target: "done", guard: "passed" }, FAIL: "failed" } };
    const guards = { passed: { field: "result", op: "eq", value: "pass" } };
    expect(await warnings({ a }, { guards, context: { result: "pass" } })).toEqual([]);
    const again = { ...READ, on: { ...a.on, AGAIN: "a" } };
    expect(await warnings({ a: again }, { guards })).toEqual([]);
    const before = { ...READ, on: { READY: "a" } };
    expect(await warnings({ before, a }, { guards })).toEqual([]);
  });

  test("data cannot be merged under a key that is reserved", async () => {
    const states = {
      a: { ...READ, on: { GO: "b" } },
      b: { ...READ, on: { X: { target: "done", guard: "own" }, FAIL: "failed" } },
    };
    const guards = { own: { field: "_secret.value", op: "exists" } };
    expect(await warnings(states, { guards })).toEqual([
      "guard-never states.b.on.X.guard",
      "never-entered states.done",
    ]);
  });

  test("what an interrupt's handler sends counts", async () => {
    const a = { allowed_tools: ["Edit"], on: { OK: { target: "review", guard: "passed" }, FAIL: "failed" } };
    const review = { ...READ, on: { OK: "done" } };
    const audit = { ...READ, on: { OK: "$return", FAIL: "failed" } };
    const more = {
      guards: { passed: { field: "result", op: "eq", value: "pass" } },
      interrupts: { changed: { trigger: { file_pattern: "src/**" }, target: "audit" } },
    };
    expect(await warnings({ a, review, audit }, more)).toEqual([]);
  });

  test("a branch reads the context of its fork, and what it sends does not come back", async () => {
    const branch = { initial: "work", terminal: "worked" };
    const a = { ...READ, on: { GO: { fork: { branches: { one: branch }, on_complete: "b", on_fail: "failed" } } } };
    const work = { ...READ, on: { OK: "worked" } };
    const b = { ...READ, on: { X: { target: "done", guard: "seen" }, FAIL: "failed" } };
    const guards = { seen: { field: "seen", op: "exists" } };
    const worked = { type: "final", outcome: "completed" };
    expect(await warnings({ a, work, worked, b }, { guards })).toEqual([]);
  });
});

describe("rows that never apply", () => {
  test("behind one without a condition", async () => {
    const a = { ...READ, on: { X: [{ target: "done" }, { target: "failed" }] } };
    expect(await warnings({ a })).toEqual(["shadowed-row states.a.on.X[1]", "never-entered states.failed"]);
    expect((await messages({ a }))[0]).toBe(
      "This transition of a never applies: X[0] comes first and has no condition.",
    );
  });

  test("behind one with the same condition or a weaker one", async () => {
    const guards = {
      big: { field: "n", op: "gt", value: 1 },
      large: { field: "n", op: "gt", value: 1 },
      named: { field: "m", op: "exists" },
    };
    const x = [
      { target: "done", guard: "big" },
      { target: "failed", guards: ["named", "large"] },
      { target: "failed" },
    ];
    const start = { ...READ, on: { GO: "a" } };
    expect(await warnings({ start, a: { ...READ, on: { X: x } } }, { guards })).toEqual([
      "shadowed-row states.a.on.X[1]",
    ]);
    const turned = [x[1], x[0], x[2]];
    expect(await warnings({ start, a: { ...READ, on: { X: turned } } }, { guards })).toEqual([]);
  });

  test("a row for every state is reported only if it applies in none", () => {
    const o = z.object({ ok: z.boolean() });
    const stages = {
      a: stage({ prompt: "A", completionTool: "submit", completionSchema: o, turnCap: 1, allowedTools: [] }),
      b: stage({ prompt: "B", completionTool: "submit", completionSchema: o, turnCap: 1, allowedTools: [] }),
    };
    const own = { id: "p", input: z.object({}), stages, initial: "a" } as const;
    const some = pipeline({
      ...own,
      transitions: [
        { from: "a", on: "success", to: "b" },
        { from: "*", on: "success", to: done(1) },
      ],
    });
    expect(checkWorkflow(some.spec)).toEqual([]);
    const none = pipeline({
      ...own,
      transitions: [
        { from: "a", on: "success", to: "b" },
        { from: "b", on: "success", to: done(1) },
        { from: "*", on: "success", to: fail("no") },
      ],
    });
    expect(checkWorkflow(none.spec).map(({ rule, path }) => [rule, path])).toEqual([
      ["shadowed-row", "transitions[2]"],
    ]);
  });
});

describe("ways out", () => {
  test("states that lead only to each other", async () => {
    const states = {
      a: { ...READ, on: { GO: "b", OK: "done", FAIL: "failed" } },
      b: { ...READ, on: { NEXT: "c" } },
      c: { ...READ, on: { BACK: "b", AGAIN: "c" } },
    };
    expect(await warnings(states)).toEqual(["endless-loop states.b"]);
    expect((await messages(states))[0]).toBe(
      "b and c lead only to each other, so a run that comes there never ends by itself: it fails when a state is entered 10 times.",
    );
  });

  test("a loop whose only way out has a condition that can never hold", async () => {
    const guards = { never: { field: "_x", op: "exists" } };
    const states = {
      a: { ...READ, on: { GO: "b", OK: "done", FAIL: "failed" } },
      b: { ...READ, on: { AGAIN: "b", OK: { target: "done", guard: "never" } } },
    };
    expect(await warnings(states, { guards })).toEqual(["endless-loop states.b", "guard-never states.b.on.OK.guard"]);
  });

  test("a loop of a branch that its terminal state ends has a way out", async () => {
    const branch = { initial: "work", terminal: "check" };
    const a = { ...READ, on: { GO: { fork: { branches: { one: branch }, on_complete: "done", on_fail: "failed" } } } };
    const work = { ...READ, on: { OK: "check", AGAIN: "work" } };
    const check = { ...READ, on: { OK: "work" } };
    expect(await warnings({ a, work, check })).toEqual([]);
  });

  test("an agent that may change something has a way to say that it failed", async () => {
    const states = { a: { allowed_tools: ["Bash"], on: { OK: "done" } }, done: { type: "final" } };
    const loaded = await loadDocument({ id: "w", initial: "a", states });
    expect(ruleLines(loaded)).toEqual(["no-failure-path states.a (warning)"]);
    const reads = { ...states, a: { ...READ, on: { OK: "done" } } };
    expect(ruleLines(await loadDocument({ id: "w", initial: "a", states: reads }))).toEqual([]);
  });

  test("a state of which no transition applies is a dead end", async () => {
    const guards = { never: { field: "_x", op: "exists" } };
    const states = {
      a: { ...READ, on: { GO: "b", OK: "done", FAIL: "failed" } },
      b: { ...READ, on: { OK: { target: "done", guard: "never" } } },
    };
    expect(await warnings(states, { guards })).toEqual(["dead-end states.b", "guard-never states.b.on.OK.guard"]);
  });
});

describe("interrupts", () => {
  const interrupts = { changed: { trigger: { file_pattern: "src/**" }, target: "audit" } };
  const work = { ...READ, on: { OK: "done", FAIL: "failed" } };

  test("a return from a state that handles no interrupt", async () => {
    const audit = { ...READ, on: { OK: "$return", MORE: "more" } };
    const more = { ...READ, on: { BACK: "$return", FAIL: "failed" } };
    expect(await warnings({ work, audit, more }, { interrupts })).toEqual([
      "return-outside-interrupt states.more.on.BACK",
    ]);
  });

  test("a handler that never returns", async () => {
    const audit = { ...READ, on: { OK: "failed" } };
    expect(await warnings({ work, audit }, { interrupts })).toEqual([
      "interrupt-without-return interrupts.changed.target",
    ]);
  });
});

describe("permissions", () => {
  const all = ["Read", "Edit", "Bash"];
  const check = { allowed_tools: ["Read", "Bash"], on: { OK: "done", FAIL: "failed" } };

  test("a state that only reads leads to one that writes and runs any command", async () => {
    const work = { allowed_tools: all, on: { OK: "check" } };
    const plan = { ...READ, on: { GO: "work" } };
    expect(await warnings({ plan, work, check })).toEqual(["privilege-jump states.plan.on.GO"]);
    const asked = { ...READ, on: { GO: { target: "work", requires_approval: true } } };
    expect(await warnings({ plan: asked, work, check })).toEqual([]);
    const commands = { ...work, allowed_commands: ["npm test"] };
    expect(await warnings({ plan, work: commands, check })).toEqual([]);
    const planned = { ...READ, on: { GO: "review" } };
    const review = { ...READ, on: { OK: "work" } };
    expect(await warnings({ plan: planned, review, work, check })).toEqual([]);
  });

  test("changes that no one looks at before the run completes", async () => {
    const work = { allowed_tools: ["Edit"], on: { OK: "polish", FAIL: "failed" } };
    const polish = { allowed_tools: ["Edit"], on: { OK: "check" } };
    expect(await warnings({ work, polish, check })).toEqual([]);
    const last = { ...polish, on: { OK: "done" } };
    expect(await warnings({ work, polish: last })).toEqual([
      "write-without-review states.work",
      "write-without-review states.polish",
    ]);
    const asked = { ...polish, on: { OK: { target: "done", requires_approval: true } } };
    expect(await warnings({ work, polish: asked })).toEqual([]);
  });
});

test("branches that only read are a review, and so is a pipeline that does", async () => {
  const branches = { lint: { initial: "lint", terminal: "linted" } };
  const states = {
    work: { allowed_tools: ["Edit"], on: { OK: { fork: { branches, on_complete: "done", on_fail: "failed" } } } },
    lint: { allowed_tools: ["Bash"], on: { OK: "linted" } },
    linted: { type: "final", outcome: "completed" },
  };
  expect(await warnings(states)).toEqual([]);
  const fixing = { ...states, lint: { allowed_tools: ["Bash", "Edit"], on: { OK: "linted" } } };
  expect(await warnings(fixing)).toContain("write-without-review states.work");
});

test("changes in a branch are looked at after its fork, where the run continues", async () => {
  const branches = { docs: { initial: "write", terminal: "written" } };
  const states = {
    work: { ...READ, on: { OK: { fork: { branches, on_complete: "check", on_fail: "failed" } } } },
    write: { allowed_tools: ["Edit"], on: { OK: "written", FAIL: "failed" } },
    written: { type: "final", outcome: "completed" },
  };
  const check = { ...READ, on: { OK: "done", FAIL: "failed" } };
  expect(await warnings({ ...states, check })).toEqual([]);
  const unread = {
    ...states,
    work: { ...READ, on: { OK: { fork: { branches, on_complete: "done", on_fail: "failed" } } } },
  };
  expect(await warnings(unread)).toContain("write-without-review states.write");
  const joined = { ...states, check: { allowed_tools: ["Edit"], on: { OK: "done", FAIL: "failed" } } };
  expect(await warnings(joined)).toContain("write-without-review states.write");
});

test("a state that runs pipelines may do what they do", async () => {
  const flow = `kind: StateMachine
start_state: plan
end_states: [done, failed]
states:
  plan:
    - { name: think, prompt: Plan., tools: [Read] }
  work:
    - { name: edit, prompt: Work., tools: [Edit, Bash] }
    - { name: polish, prompt: Polish., tools: [Edit] }
transitions:
  - { from: plan, on: success, to: work }
  - { from: work, on: success, to: done }
  - { from: "*", on: failure, to: failed }
`;
  const loaded = await loadTexts("w.yaml", { "w.yaml": flow });
  expect(loaded.format).toBe("flujo");
  expect(ruleLines(loaded)).toEqual([
    "write-without-review states.work (warning)",
    "privilege-jump transitions[0] (warning)",
  ]);
});

test("pipelines in TypeScript are checked, and a bare function may lead anywhere", () => {
  const o = z.object({ ok: z.boolean() });
  const agent = (prompt: string, allowedTools: readonly string[]) =>
    stage({ prompt, completionTool: "submit", completionSchema: o, turnCap: 1, allowedTools: [...allowedTools] });
  const stages = { a: agent("A", ["Edit"]), b: agent("B", ["Read"]) };
  const own = { id: "p", input: z.object({}), stages, initial: "a" } as const;
  const bare = pipeline({ ...own, next: { a: () => to("b"), b: () => done(1) } });
  expect(checkWorkflow(bare.spec)).toEqual([]);
  const declared = pipeline({ ...own, next: { a: route(["b"], () => to("b")), b: route([], () => done(1)) } });
  expect(checkWorkflow(declared.spec)).toEqual([]);
  const table = pipeline({
    ...own,
    transitions: [
      {
        from: "a",
        on: "success",
        when: operatorGuard("g", { field: "x", op: "exists" }),
        to: to("b", undefined, { context: { x: 1 } }),
      },
      { from: "a", on: "success", to: done(1) },
      { from: "b", on: "success", to: done(2) },
    ],
  });
  expect(checkWorkflow(table.spec).map(({ rule, path }) => [rule, path])).toEqual([
    ["guard-never", "transitions[0].when"],
    ["never-entered", "stages.b"],
    ["write-without-review", "stages.a"],
  ]);
});

test("a handler that is routed by a function may return", () => {
  const o = z.object({ ok: z.boolean() });
  const agent = stage({ prompt: "A", completionTool: "submit", completionSchema: o, turnCap: 1, allowedTools: [] });
  const { spec } = pipeline({
    id: "p",
    input: z.object({}),
    stages: { a: agent, audit: agent },
    initial: "a",
    interrupts: { changed: { files: "**", target: "audit" } },
    next: { a: route([], () => done(1)), audit: route([], () => backToInterrupted()) },
  });
  expect(checkWorkflow(spec)).toEqual([]);
});

test("guards whose texts are cut alike are different guards", () => {
  const work = stage({ prompt: "A", turnCap: 1, allowedTools: ["Read"] });
  const isRight: Guard = { text: "right", evaluate: () => ({ fires: true, why: "" }) };
  const asking = (end: string) =>
    allOf([operatorGuard("long", { field: "x", op: "eq", value: "a".repeat(100) + end }), isRight]);
  const rulesOf = (one: string, other: string) =>
    checkWorkflow(
      pipeline({
        id: "p",
        input: z.object({}),
        stages: { a: work, b: work, end: final("completed") },
        initial: "a",
        transitions: [
          { from: "a", on: { event: "GO" }, to: "b" },
          { from: "b", on: { event: "X" }, when: asking(one), to: "end" },
          { from: "b", on: { event: "X" }, when: asking(other), to: "end" },
        ],
      }).spec,
    ).map(({ rule }) => rule);
  expect(rulesOf("1", "2")).toEqual([]);
  expect(rulesOf("1", "1")).toEqual(["shadowed-row"]);
});

test("what a state of another kind adds when it completes counts as set", () => {
  const o = z.object({ ok: z.boolean() });
  const agent = stage({ prompt: "A", completionTool: "submit", completionSchema: o, turnCap: 1, allowedTools: [] });
  const events = stage({ prompt: "B", turnCap: 1, allowedTools: [] });
  const made = pipeline({
    id: "p",
    input: z.object({}),
    stages: { a: agent, b: events, audit: events, back: agent, end: final("completed") },
    initial: "a",
    interrupts: { changed: { files: "src/**", target: "audit" } },
    transitions: [
      { from: "a", on: "success", to: fork({ one: { initial: "back", terminal: "end" } }, { onComplete: "b" }) },
      { from: "back", on: "success", to: "end" },
      { from: "b", on: { event: "X" }, to: "end" },
      { from: "audit", on: { event: "OK" }, to: backToInterrupted() },
    ],
  });
  expect(checkWorkflow(made.spec)).toEqual([]);
});

describe("outputs that may be missing", () => {
  const finish = { completionTool: "finish", completionSchema: z.object({ ok: z.boolean() }), turnCap: 2 };
  const first = stage({ prompt: "First.", allowedTools: [], ...finish });
  const plan = stage({ prompt: "Plan.", allowedTools: [], ...finish });
  const build = stage({ reads: { plan }, prompt: "Build.", allowedTools: [], ...finish });
  const shared = { id: "p", input: z.object({}), stages: { first, plan, build }, initial: "first" } as const;
  const missing = (spec: Parameters<typeof checkWorkflow>[0]): readonly string[] =>
    checkWorkflow(spec).flatMap(({ rule, path, message }) => (rule === "reads-missing" ? [`${path}: ${message}`] : []));

  test("are reported where declared routes lead past the state that makes them, with the path", () => {
    const past = pipeline({
      ...shared,
      next: {
        first: route(["plan", "build"], ({ output }) => (output.ok ? to("build") : to("plan"))),
        plan: route(["build"], () => to("build")),
        build: route([], () => done(1)),
      },
    });
    expect(missing(past.spec)).toEqual([
      "stages.build.reads: build reads the output of plan, and a run can enter build without plan: start in first, then its route to build.",
    ]);
    const table = pipeline({
      ...shared,
      transitions: [
        { from: "first", on: "success", to: "plan" },
        { from: "first", on: "failure", to: "build" },
        { from: "plan", on: "success", to: "build" },
        { from: "build", on: "success", to: done(1) },
      ],
    });
    expect(missing(table.spec)).toHaveLength(1);
  });

  test("are not reported where every path leads through it, nor where a bare function decides", () => {
    const through = pipeline({
      ...shared,
      next: {
        first: route(["plan"], () => to("plan")),
        plan: route(["build"], () => to("build")),
        build: route(["plan"], ({ output }) => (output.ok ? done(1) : to("plan"))),
      },
    });
    const bare = pipeline({
      ...shared,
      next: { first: () => to("plan"), plan: () => to("build"), build: () => done(1) },
    });
    expect([missing(through.spec), missing(bare.spec)]).toEqual([[], []]);
  });

  test("a state that does not exist is a problem of a table, with the nearest name", () => {
    const astray = stage({ reads: { plam: plan }, prompt: "Build.", allowedTools: [], ...finish });
    const define = () =>
      pipeline({
        ...shared,
        stages: { first, plan, build: astray },
        transitions: [{ from: "*", on: "success", to: "build" }],
      });
    expect(define).toThrow(/stages\.build\.reads: there is no state "plam".*plan/s);
  });
});
