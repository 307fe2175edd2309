import {
  backToInterrupted,
  done,
  fail,
  fanOut,
  final,
  forEach,
  fork,
  invoke,
  pipeline,
  pipelineShape,
  route,
  stage,
  to,
} from "@sluice/core";
import { compilePipeline, type PipelineDefinition } from "@sluice/core/host";
import { checkSession } from "@sluice/core/runtime";
import { expect, test } from "vitest";
import { pipelinesWithin } from "../../packages/core/src/definition/graph.ts";
import { problemLines } from "../support/definition.ts";
import { byEvents, compiled, type Definition, guard, problemsIn } from "../support/machine-kit.ts";

type Rows = NonNullable<Definition["transitions"]>;
const plain = stage({ prompt: "Work.", completionTool: "submit", completionSchema: { type: "object" }, turnCap: 3 });
const ok = final("completed");
const GO: Rows = [{ from: "a", on: { event: "GO" }, to: "ok" }];

// Stages without a completion tool

test("a stage without a completion tool and with a row for an event is sound", () => {
  const { spec, problems } = compiled({ stages: { a: byEvents(), ok }, transitions: GO });
  expect(problems).toEqual([]);
  expect(spec.states.get("a")).toMatchObject({ kind: "agent", completesByEvents: true });
  expect(spec.states.get("a")?.output).toBeUndefined();
  expect(spec.fingerprint).toMatch(/^[0-9a-f]{64}$/);
});

test("a row of * is enough, and so is one for all states", () => {
  for (const row of [
    { from: "a", on: { event: "*" }, to: "ok" },
    { from: "*", on: { event: "GO" }, to: "ok" },
  ] as const)
    expect(problemsIn({ stages: { a: byEvents(), ok }, transitions: [row] })).toEqual([]);
});

test("a stage with neither a completion tool nor a row for an event cannot complete", () => {
  const neither = "stages.a | has neither a completionTool nor a row for an event, so it cannot complete";
  const transitions: Rows = [{ from: "a", on: "success", to: "ok" }];
  expect(problemsIn({ stages: { a: byEvents(), ok }, transitions })[0]).toContain(neither);
  expect(problemsIn({ stages: { a: byEvents() }, next: { a: () => done(1) } })).toEqual([
    `${neither} | add a completionTool; only a table of transitions has rows for events`,
  ]);
});

test("a stage with a completion tool has no rows for events", () => {
  const transitions: Rows = [...GO, { from: "a", on: "success", to: "ok" }];
  expect(problemsIn({ stages: { a: plain, ok }, transitions })).toEqual([
    "transitions[0].on | a completes with submit, so it sends no events | leave out its completionTool, or route its success",
  ]);
});

test("a completion tool and its schema come together", () => {
  const half = { prompt: "Work.", turnCap: 3 };
  const noSchema: Parameters<typeof stage>[0] = JSON.parse(JSON.stringify({ ...half, completionTool: "submit" }));
  expect(problemsIn({ stages: { a: stage(noSchema), ok }, transitions: GO })).toContain(
    "stages.a.completionSchema | is missing: it describes the arguments of completionTool",
  );
  const noTool: Parameters<typeof stage>[0] = JSON.parse(
    JSON.stringify({ ...half, completionSchema: { type: "object" } }),
  );
  expect(problemsIn({ stages: { a: stage(noTool), ok }, transitions: GO })).toContain(
    "stages.a.completionTool | is missing: completionSchema describes its arguments",
  );
});

// Rows

test.each<readonly [string, Record<string, unknown>, string]>([
  ["an unknown trigger", { on: "done" }, 'on | must be one of success, failure, skipped, pause, or { event: "NAME" }'],
  ["no trigger", { on: null }, 'on | must be one of success, failure, skipped, pause, or { event: "NAME" }'],
  ["an event without a name", { on: {} }, "on.event | must be the name of an event"],
  ["an empty event", { on: { event: "" } }, "on.event | must have at least one character"],
  ["an event with spaces around it", { on: { event: " GO" } }, "on.event | must have at least one character"],
  ["a long event", { on: { event: "x".repeat(201) } }, "on.event | has more than 200 characters"],
  ["an event with an invisible character", { on: { event: "G\u200bO" } }, "on.event | holds an invisible character"],
  ["a misspelled trigger", { on: { evnt: "GO" } }, 'on.evnt | is not a known option | did you mean "event"?'],
  ["an unknown target", { to: "okk" }, 'to | to: there is no state "okk"; did you mean "ok"?'],
  ["an unknown source", { from: "aa" }, 'from | there is no state "aa" | did you mean "a"?'],
  ["a guard that is none", { when: { text: "x" } }, "when | must be a function, or a guard: { text, evaluate }"],
  ["an approval that is none", { approval: true }, "approval | must be an object"],
  ["an approval with an unknown option", { approval: { mesage: "x" } }, "approval.mesage | is not a known option"],
  ["a message that is no text", { approval: { message: 1 } }, "approval.message | must be a text"],
  ["a label that is no text", { label: 1 }, "label | must be a text"],
])("a row with %s is reported", (_name, changes, problem) => {
  const row: Rows[number] = { from: "a", on: { event: "GO" }, to: "ok", ...changes };
  const problems = problemsIn({ stages: { a: byEvents(), ok }, transitions: [row, ...GO] });
  expect(problems.join("\n")).toContain(`transitions[0].${problem}`);
});

test("an approval that cannot be read still asks", () => {
  const broken: { message: string } = JSON.parse("1");
  const row: Rows[number] = { from: "a", on: { event: "GO" }, to: "ok", approval: broken };
  const { spec } = compiled({ stages: { a: byEvents(), ok }, transitions: [row] });
  expect(spec.routes).toMatchObject({ rows: [{ approval: {} }] });
});

test("a state that completes by events cannot be a sibling or run a list, since no row routes it there", () => {
  const stages = { a: byEvents(), b: byEvents(), c: plain, ok };
  const rows = (choice: Rows[number]["to"]): Rows => [
    { from: "a", on: { event: "GO" }, to: choice },
    { from: "b", on: { event: "X" }, to: "ok" },
    { from: "c", on: "success", to: "ok" },
  ];
  for (const choice of [
    fanOut(["b"], { join: "c" }),
    fanOut([to("b")], { join: "c" }),
    forEach("b", [1], { join: "c" }),
  ])
    expect(problemsIn({ stages, transitions: rows(choice) })[0]).toContain(
      "b completes by events, which only a branch of fork() routes",
    );
});

// Forks and invoked pipelines

const FORK: Definition = {
  stages: { a: byEvents(), b: plain, end: plain, join: plain, ok },
  transitions: [
    { from: "a", on: { event: "GO" }, to: fork({ one: { initial: "b", terminal: "end" } }, { onComplete: "join" }) },
    { from: "b", on: "success", to: "end" },
    { from: "join", on: "success", to: "ok" },
  ],
};

test("the states of a branch are reachable, and its terminal state needs no route", () => {
  const { spec, problems } = compiled(FORK);
  expect(problems).toEqual([]);
  expect(pipelineShape(spec).states[0]).toMatchObject({ id: "a", targets: ["b", "end", "join"] });
});

test("a branch's own states need routes, and lead to a completed end only outside it", () => {
  const [start, , last] = FORK.transitions ?? [];
  if (start === undefined || last === undefined) throw new Error("the rows of FORK");
  expect(problemsIn({ ...FORK, transitions: [start, last] })).toEqual([
    "stages.b | is a dead end: no route handles the success of b | add a route to a state or to done(…)",
  ]);
  const transitions: Rows = [
    start,
    { from: "b", on: "success", to: "end" },
    { from: "b", on: "failure", to: "ok" },
    { from: "join", on: "success", to: fail("no") },
  ];
  expect(problemsIn({ ...FORK, transitions })).toEqual([
    "transitions | no route leads to a completed end | add done(…)",
  ]);
});

test("a terminal state that the run also enters needs a route", () => {
  const transitions: Rows = [...(FORK.transitions ?? []), { from: "a", on: { event: "SKIP" }, to: "end" }];
  expect(problemsIn({ ...FORK, transitions })).toEqual([
    "stages.end | is a dead end: no route handles the success of end | add a route to a state or to done(…)",
  ]);
});

const branch = { initial: "b", terminal: "end" };
test.each<readonly [string, unknown, string]>([
  ["no branches", { branches: {} }, "fork() needs at least one branch"],
  ["branches that are none", { branches: [] }, "fork() needs at least one branch"],
  ["a branch that is none", { branches: { one: "b" } }, 'the branch "one" must be { initial, terminal }'],
  ["a key that is no id", { branches: { "a b": branch } }, "the key of a branch: "],
  ["the key of a prototype", { branches: { constructor: branch } }, "the key of a branch: "],
  [
    "an unknown start",
    { branches: { one: { ...branch, initial: "x" } } },
    'the start of the branch "one": there is no state "x"',
  ],
  [
    "an unknown end",
    { branches: { one: { ...branch, terminal: "x" } } },
    'the end of the branch "one": there is no state "x"',
  ],
  ["a start that is its end", { branches: { one: { ...branch, initial: "end" } } }, "starts where it ends"],
  ["a final start", { branches: { one: { ...branch, initial: "ok" } } }, "ok is a final state, which does not run"],
  ["an unknown option of a branch", { branches: { one: { ...branch, end: "x" } } }, 'a choice has no "end"'],
  ["an unknown join", { join: "first" }, 'the join of fork() must be "all" or "any"'],
  ["an unknown onComplete", { onComplete: "x" }, 'onComplete: there is no state "x"'],
  ["no onComplete", { onComplete: undefined }, "onComplete names no state"],
  ["an unknown onFail", { onFail: "x" }, 'onFail: there is no state "x"'],
  ["an unknown option", { onDone: "x" }, 'a choice has no "onDone"'],
])("a fork with %s is refused", (_name, changes, problem) => {
  const choice = Object.assign(fork({ one: { initial: "b", terminal: "end" } }, { onComplete: "join" }), changes);
  const rows: Rows = [{ from: "a", on: { event: "GO" }, to: choice }, ...(FORK.transitions ?? []).slice(1)];
  expect(problemsIn({ ...FORK, transitions: rows }).join("\n")).toContain(`transitions[0].to | `);
  expect(problemsIn({ ...FORK, transitions: rows }).join("\n")).toContain(problem);
});

const inner = pipeline({
  id: "inner",
  input: { type: "object" },
  stages: { a: byEvents(), ok },
  initial: "a",
  transitions: [{ from: "a", on: { event: "GO" }, to: "ok" }],
});
const INVOKE: Rows = [{ from: "a", on: { event: "RUN" }, to: invoke("inner", { onComplete: "ok" }) }];

test("an invoked pipeline is one of pipelines", () => {
  expect(problemsIn({ stages: { a: byEvents(), ok }, pipelines: { inner }, transitions: INVOKE })).toEqual([]);
  expect(problemsIn({ stages: { a: byEvents(), ok }, pipelines: { iner: inner }, transitions: INVOKE })).toEqual([
    'transitions[0].to | there is no pipeline "inner" | did you mean "iner"?',
  ]);
  expect(problemsIn({ stages: { a: byEvents(), ok }, transitions: INVOKE })).toEqual([
    'transitions[0].to | there is no pipeline "inner" | add it to pipelines',
  ]);
});

test.each<readonly [string, unknown, string]>([
  ["a key that is no id", { key: "a b" }, "the key of invoke(): "],
  ["an input that is no object", { input: [1] }, "the input of invoke(): the context must be an object"],
  ["an input with a reserved name", { input: { _fork: 1 } }, 'the context cannot hold "_fork"'],
  ["an unknown onFail", { onFail: "x" }, 'onFail: there is no state "x"'],
  ["a pipeline that is no name", { pipeline: 1 }, "invoke() names no pipeline"],
])("an invoke with %s is refused", (_name, changes, problem) => {
  const choice = Object.assign(invoke("inner", { onComplete: "ok" }), changes);
  const transitions: Rows = [{ from: "a", on: { event: "RUN" }, to: choice }];
  const problems = problemsIn({ stages: { a: byEvents(), ok }, pipelines: { inner }, transitions });
  expect(problems.join("\n")).toContain(problem);
});

test("pipelines are pipelines, by names that can be keys", () => {
  const notOne: typeof inner = JSON.parse('{ "id": "x" }');
  const problems = problemsIn({
    stages: { a: byEvents(), ok },
    transitions: GO,
    pipelines: { "a b": inner, x: notOne },
  });
  expect(problems[0]).toContain('pipelines.a b | "a b" is not an id');
  expect(problems[1]).toBe("pipelines.x | is not a pipeline | make it with pipeline({ … })");
});

/** Pipelines of which each invokes the next. */
function chainOf(length: number) {
  let last = inner;
  for (let count = 1; count < length; count += 1)
    last = pipeline({
      id: `level-${count}`,
      input: { type: "object" },
      stages: { a: byEvents(), ok },
      initial: "a",
      pipelines: { last },
      transitions: [{ from: "a", on: { event: "RUN" }, to: invoke("last", { onComplete: "ok" }) }],
    });
  return last;
}

test("pipelines nest eight deep at most", () => {
  const of = (length: number) =>
    problemsIn({ stages: { a: byEvents(), ok }, transitions: GO, pipelines: { inner: chainOf(length) } });
  expect(of(8)).toEqual([]);
  expect(of(9)).toEqual(["pipelines.inner | pipelines nest at most 8 deep"]);
});

test("a pipeline cannot invoke itself, by whatever way", () => {
  const of = (id: string) =>
    problemsIn({ id, stages: { a: byEvents(), ok }, transitions: GO, pipelines: { inner: chainOf(3) } });
  for (const id of ["inner", "level-1", "level-2"])
    expect(of(id)[0]).toContain(`pipelines.inner | ${id} would invoke itself`);
});

test("a session checks invoked pipelines, and asks no executor for final states", () => {
  const { spec } = compiled({ stages: { a: byEvents(), ok }, transitions: INVOKE, pipelines: { inner } });
  expect(checkSession(spec, { tools: [], kinds: ["agent"] })).toEqual([]);
  expect(problemLines(checkSession(spec, { tools: [], kinds: [] }))).toEqual([
    "stages.a | this session has no executor for states of kind agent",
    "pipelines.inner.stages.a | this session has no executor for states of kind agent",
  ]);
  expect(pipelinesWithin(spec).map(({ id }) => id)).toEqual(["p", "inner"]);
});

// Interrupt handlers and functions

test("what a handler leads to is reachable", () => {
  const transitions: Rows = [
    ...GO,
    { from: "h", on: { event: "BACK" }, to: backToInterrupted() },
    { from: "h", on: { event: "FIX" }, to: "fix" },
    { from: "fix", on: "success", to: "ok" },
  ];
  const stages = { a: byEvents(), h: byEvents(), fix: plain, ok };
  expect(problemsIn({ stages, transitions, interrupts: { i: { files: "**", target: "h" } } })).toEqual([]);
  expect(problemsIn({ stages, transitions })).toEqual([
    "stages.h | cannot be reached from a | route to it, or remove it",
    "stages.fix | cannot be reached from a | route to it, or remove it",
  ]);
});

test("a declared route may lead to a final state", () => {
  const next = { a: route(["ok"], () => to("ok")) };
  expect(problemsIn({ stages: { a: plain, ok }, next })).toEqual([]);
});

// Templates

test("templates may read the outputs of branches and invoked pipelines, and no others", () => {
  const reader = (path: string) =>
    stage({
      prompt: `Read {{ctx.${path}}}`,
      completionTool: "submit",
      completionSchema: { type: "object" },
      turnCap: 3,
    });
  const of = (path: string) =>
    problemsIn({
      ...FORK,
      stages: { ...FORK.stages, join: reader(path) },
      pipelines: { inner },
      transitions: [
        ...(FORK.transitions ?? []),
        { from: "a", on: { event: "TESTS" }, to: invoke("inner", { onComplete: "join" }) },
      ],
    });
  for (const path of ["upstream.one.text", "fork.one.status", "upstream.TESTS", "upstream.a.data.x"])
    expect(of(path)).toEqual([]);
  expect(of("upstream.two")[0]).toContain('there is no state "two"');
  expect(of("items.one")[0]).toContain('there is no state "one"');
});

// The fingerprint

test("a fingerprint covers what decides about the route, and not what only names it", () => {
  const of = (row: Partial<Rows[number]>, more: Partial<Definition> = {}) =>
    compiled({
      stages: { a: byEvents(), b: byEvents(), ok },
      transitions: [
        { from: "a", on: { event: "GO" }, to: "ok", ...row },
        { from: "a", on: { event: "B" }, to: "b" },
        { from: "b", on: { event: "X" }, to: "ok" },
      ],
      ...more,
    }).spec.fingerprint;
  const base = of({});
  expect(of({ label: "GO[0]" })).toBe(base);
  const others = [
    of({ on: { event: "GOO" } }),
    of({ approval: {} }),
    of({ approval: { message: "x" } }),
    of({ when: guard(true) }),
    of({ when: guard(false) }),
    of({ when: () => true }),
    of({}, { interrupts: { i: { files: "**", target: "b" } } }),
    of({}, { interrupts: { i: { files: "src/**", target: "b" } } }),
    of({}, { pipelines: { inner } }),
    of({}, { pipelines: { inner: chainOf(2) } }),
    of({}, { stages: { a: byEvents(), b: byEvents(), ok: final("completed"), bad: final("failed") } }),
  ];
  expect(new Set([base, ...others]).size).toBe(others.length + 1);
});

test("two functions as conditions look alike, and two guards with other texts do not", () => {
  const of = (when: NonNullable<Rows[number]["when"]>) =>
    compiled({
      stages: { a: byEvents(), ok },
      transitions: [{ ...GO[0], from: "a", on: { event: "GO" }, to: "ok", when }],
    }).spec.fingerprint;
  expect(of(() => true)).toBe(of(() => false));
  expect(of(guard(true))).not.toBe(of(guard(false)));
});

test("compilePipeline tells what pipeline() throws, and compiles all the same", () => {
  const bad: PipelineDefinition = {
    id: "p",
    input: { type: "object" },
    stages: { a: byEvents() },
    initial: "b",
    transitions: [],
  };
  const { spec, problems } = compilePipeline(bad);
  expect(spec.states.has("a")).toBe(true);
  expect(problems.map(({ path }) => path)).toEqual(["stages.a", "initial"]);
});
