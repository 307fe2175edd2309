import { expect, test } from "vitest";
import { z } from "zod";
import { z as z3 } from "zod-v3";
import { stage } from "../../packages/core/src/definition/agents/stage.ts";
import { checkPipeline, checkSession } from "../../packages/core/src/definition/check/check.ts";
import { done, fail, fanOut, route, to } from "../../packages/core/src/definition/choice.ts";
import { pipeline } from "../../packages/core/src/definition/pipeline.ts";
import type { PipelineDefinition } from "../../packages/core/src/definition/read.ts";
import { focusedStage as focused, plainStage as plain, problemLines, problemsOf } from "../support/definition.ts";

const SUBMIT = { completionTool: "submit", completionSchema: { type: "object", properties: {} }, turnCap: 3 } as const;
const sound: PipelineDefinition = {
  id: "sound",
  input: { type: "object", properties: { task: { type: "string" } } },
  stages: { plan: plain, review: plain },
  initial: "plan",
  next: { plan: () => to("review"), review: () => done(null) },
};

/** The problems of a definition that differs from a sound one as an untyped caller might make it differ. */
function problems(changes: object): readonly string[] {
  return problemLines(checkPipeline({ ...sound, ...changes }));
}
/** The problems of one stage's options, likewise. */
function stageProblems(changes: object): readonly string[] {
  const one = stage({ prompt: "Work.", ...SUBMIT, ...changes });
  return problems({ stages: { plan: one, review: plain } });
}

test("a sound definition has no problems, and neither has what was made of it", () => {
  expect(checkPipeline(sound)).toEqual([]);
  expect(
    checkPipeline(
      pipeline({ id: "p", input: z.object({}), stages: { plain }, initial: "plain", next: { plain: () => done(1) } })
        .spec,
    ),
  ).toEqual([]);
});

test.each<readonly [object, string]>([
  [{ id: "" }, 'id | "" is not an id'],
  [{ id: "2nd" }, 'id | "2nd" is not an id'],
  [{ id: "a".repeat(65) }, "is not an id"],
  [{ id: 7 }, "id | an id must be a string, not number"],
  [{ stage: {} }, 'stage | is not a known option | did you mean "stages"?'],
  [{ transition: [] }, 'did you mean "transitions"?'],
  [{ initial: "plam" }, 'initial | there is no state "plam" | did you mean "plan"?'],
  [{ input: { type: "objct" } }, "input | not a valid JSON Schema"],
  [{ limits: { maxHops: 0 } }, "limits.maxHops | must be a whole number from 1"],
  [{ limits: { maxVisits: 1.5 } }, "limits.maxVisits | must be a whole number from 1"],
  [{ limits: { timeoutMs: -1 } }, "limits.timeoutMs | must be a whole number from 1"],
  [{ limits: { maxTokens: Number.NaN } }, "limits.maxTokens | must be a whole number from 1"],
  [{ limits: { maxHop: 1 } }, 'limits.maxHop | is not a known option | did you mean "maxHops"?'],
  [{ context: { _mine: 1 } }, 'context | the context cannot hold "_mine"'],
  [{ context: JSON.parse('{"__proto__":1}') }, 'context | the context cannot hold "__proto__"'],
  [{ context: { constructor: 1 } }, 'context | the context cannot hold "constructor"'],
  [{ context: [] }, "context | the context must be an object"],
  [{ context: { at: new Date() } }, "context | the context is not JSON: $.at"],
  [{ onCall: "no" }, "onCall | must be a function"],
  [{ next: undefined }, "next | is missing: it routes each state"],
  [{ transitions: [] }, "transitions | cannot be used with next"],
  [{ stages: {} }, "stages | has no states"],
  [{ stages: { plan: plain, review: { prompt: "x" } } }, "stages.review | is not a state | make it with stage({ … })"],
  [{ stages: { plan: plain, "a b": plain } }, 'stages.a b | "a b" is not an id'],
  [{ stages: { plan: plain, interrupted: plain } }, 'stages.interrupted | "interrupted" is reserved'],
  [{ stages: { plan: plain, $end: plain } }, 'stages.$end | "$end" is reserved'],
  [{ stages: { plan: plain, toString: plain } }, '"toString" is a name every object has'],
  [
    { next: { plan: () => 0, reviw: () => 0 } },
    'next.reviw | is not a state of this pipeline | did you mean "review"?',
  ],
  [{ next: { plan: "review" } }, "next.plan | must be a function, or an object with completed"],
  [{ next: { plan: { failed: () => 0 } } }, "next.plan | has no route for success | add completed"],
  [
    { next: { plan: { completed: () => 0, complete: () => 0 } } },
    'next.plan.complete | is not a known option | did you mean "completed"?',
  ],
  [{ next: { plan: { completed: () => 0, failed: "x" } } }, "next.plan.failed | must be a function"],
  [{ next: { review: () => 0 } }, "next.plan | is a dead end"],
])("%j is reported: %s", (changes, problem) => {
  expect(problems(changes).join("\n")).toContain(problem);
});

test.each<readonly [object, string]>([
  [{ turnCap: 0 }, "turnCap | must be a whole number from 1"],
  [{ turnCap: 1.5 }, "turnCap | must be a whole number from 1"],
  [{ turnCap: undefined }, "turnCap | must be a whole number from 1"],
  [{ prompt: "" }, "prompt | must be a text or a function"],
  [{ prompt: 3 }, "prompt | must be a text or a function"],
  [{ prompt: "\ud800" }, "prompt | holds a lone surrogate"],
  [{ prompt: "{{ctx.taks}}" }, 'prompt | {{ctx.taks}}: ctx has no "taks"'],
  [{ prompt: "{{ input.x }}" }, "prompt | {{ input.x }} does not start with ctx | write {{ctx.input.x}}"],
  [{ prompt: "{{ctx.setup.x}}" }, "prompt | {{ctx.setup}} is the result of the setup hook, and there is none"],
  [{ completionTool: "submit plan" }, 'completionTool | "submit plan" is not an id'],
  [{ completionTool: "Read", allowedTools: ["Read"] }, "completionTool | Read is listed in allowedTools"],
  [{ completionTool: "Edit", allowedTools: ["Edit(src/**)"] }, "completionTool | Edit is listed in allowedTools"],
  [{ completionSchema: z.string() }, "completionSchema | must describe an object"],
  [{ completionSchema: { type: "array" } }, "completionSchema | must describe an object"],
  [{ completionSchema: {} }, "completionSchema | must describe an object"],
  [{ completionSchema: z.object({ at: z.date() }) }, "completionSchema | Date cannot be represented"],
  [{ completionSchema: undefined }, "completionSchema | is missing: it describes the arguments of completionTool"],
  [{ inputSchema: { type: "object", properties: { a: { $ref: "#/x" } } } }, "inputSchema | can't resolve reference"],
  [{ allowedTools: "Read" }, "allowedTools | must be a list of tool patterns | [] allows none"],
  [{ allowedTools: ["Read", "!Edit"] }, "allowedTools[1] | !Edit: a list of what is allowed cannot hold a negation"],
  [{ allowedTools: [{ tool: "Edit(../x)", optional: true }] }, "allowedTools[0] | Edit(../x): a scope cannot climb"],
  [{ allowedTools: [7] }, "allowedTools[0] | a tool pattern must be a text, or { tool, optional: true }"],
  [{ allowedTools: [null] }, "allowedTools[0] | a tool pattern must be a text, or { tool, optional: true }"],
  [
    { allowedTools: [{ tool: "Read", optional: false }] },
    "allowedTools[0] | a tool pattern must be a text, or { tool, optional: true }",
  ],
  [
    { allowedTools: [{ tool: "Read", optinal: true }] },
    "allowedTools[0] | a tool pattern must be a text, or { tool, optional: true }",
  ],
  [{ visibility: "all" }, 'visibility | must be "allowed" or "session"'],
  [{ model: "" }, "model | must be the id of a model"],
  [{ temperature: -1 }, "temperature | must be a number from 0"],
  [{ maxOutputTokens: 0 }, "maxOutputTokens | must be a whole number from 1"],
  [{ retryPolicy: { maxAttempts: 0 } }, "retryPolicy.maxAttempts | must be a whole number from 1"],
  [{ retryPolicy: { maxAttempts: 2, backoff: "none" } }, "retryPolicy.backoff | is not a known option"],
  [{ limits: { maxTokens: 0 } }, "limits.maxTokens | must be a whole number from 1"],
  [{ limits: { maxHops: 3 } }, "limits.maxHops | is not a known option"],
  [{ setup: "x" }, "setup | must be a function"],
  [{ asert: () => "ok" }, 'asert | is not a known option | did you mean "assert"?'],
])("a stage with %j is reported: %s", (changes, problem) => {
  expect(stageProblems(changes).join("\n")).toContain(`stages.plan.${problem}`);
});

test("a star in allowedTools may cover the completion tool's name: it lists tools that exist", () => {
  expect(stageProblems({ allowedTools: ["*", "sub*"] })).toEqual([]);
});

test("a completion schema may be a union of objects", () => {
  const schema = z.discriminatedUnion("kind", [z.object({ kind: z.literal("a") }), z.object({ kind: z.literal("b") })]);
  expect(stageProblems({ completionSchema: schema })).toEqual([]);
});

// What routes say

const table = (transitions: readonly unknown[], stages: object = { plan: plain, review: plain }): readonly string[] =>
  problems({ next: undefined, transitions, stages });

test("a table that leads on and ends has no problems", () => {
  const rows = [
    { from: "plan", on: "success", to: "review" },
    { from: "review", on: "success", to: done(1) },
    { from: "*", on: "failure", to: fail("x") },
  ];
  expect(table(rows)).toEqual([]);
});

test.each<readonly [string, readonly unknown[], string]>([
  [
    "an unknown from",
    [{ from: "plam", on: "success", to: "review" }],
    'transitions[0].from | there is no state "plam" | did you mean "plan"?',
  ],
  [
    "an unknown to",
    [{ from: "plan", on: "success", to: "reveiw" }],
    'transitions[0].to | to: there is no state "reveiw"; did you mean "review"?',
  ],
  [
    "an unknown event",
    [{ from: "plan", on: "completed", to: "review" }],
    "transitions[0].on | must be one of success, failure, skipped",
  ],
  [
    "an unknown key",
    [{ from: "plan", on: "success", whenn: () => true, to: "review" }],
    'transitions[0].whenn | is not a known option | did you mean "when"?',
  ],
  [
    "a condition that is no function",
    [{ from: "plan", on: "success", when: "x", to: "review" }],
    "transitions[0].when | must be a function",
  ],
  ["no target", [{ from: "plan", on: "success" }], "transitions[0].to | undefined is not a choice"],
  ["no row", [null], "transitions[0] | must be a row"],
  [
    "a join that is a sibling",
    [{ from: "plan", on: "success", to: fanOut(["review"], { join: "review" }) }],
    "transitions[0].to | the join review is also a sibling",
  ],
  [
    "no way on",
    [
      { from: "plan", on: "success", to: "review" },
      { from: "plan", on: "failure", to: done(1) },
    ],
    "stages.review | is a dead end",
  ],
  ["no end", [{ from: "*", on: "success", to: "plan" }], "transitions | no route leads to a completed end"],
  [
    "a state nobody enters",
    [{ from: "plan", on: "success", to: done(1) }],
    "stages.review | cannot be reached from plan",
  ],
  [
    "a bad patch",
    [{ from: "plan", on: "success", to: to("review", null, { context: { _a: 1 } }) }],
    'transitions[0].to | the context cannot hold "_a"',
  ],
])("a table with %s is reported", (_name, rows, problem) => {
  expect(table(rows).join("\n")).toContain(problem);
});

test("a wildcard row says what comes after every state", () => {
  const rows = [
    { from: "plan", on: "success", to: "review" },
    { from: "*", on: "success", to: done(1) },
  ];
  expect(table(rows)).toEqual([]);
});

test("siblings of a table's fan-out are reached and need no row of their own", () => {
  const rows = [
    { from: "plan", on: "success", to: fanOut(["test", "lint"], { join: "review" }) },
    { from: "review", on: "success", to: done(1) },
  ];
  expect(table(rows, { plan: plain, test: plain, lint: plain, review: plain })).toEqual([]);
  expect(
    table([...rows, { from: "test", on: "success", to: "after" }], {
      plan: plain,
      test: plain,
      lint: plain,
      review: plain,
      after: plain,
    }),
  ).toEqual(["stages.after | cannot be reached from plan | route to it, or remove it"]);
});

test("a table's target whose inputSchema its row cannot satisfy is reported", () => {
  const stages = { plan: plain, review: focused };
  const rows = (target: unknown) => [
    { from: "plan", on: "success", to: target },
    { from: "review", on: "success", to: done(1) },
  ];
  expect(table(rows("review"), stages)).toEqual([
    expect.stringContaining("transitions[0].to | its input does not fit the inputSchema of review: $"),
  ]);
  expect(table(rows(to("review", { focus: 3 })), stages)).toEqual([expect.stringContaining("$.focus must be string")]);
  expect(table(rows(to("review", { focus: "x" })), stages)).toEqual([]);
});

test.each([
  ["a rule", z.object({ focus: z.string().refine((focus) => focus !== "") })],
  ["a rule of Zod 3", z3.object({ focus: z3.string().refine((focus) => focus !== "") })],
])("also if its schema has %s, which is asked at once", (_what, inputSchema) => {
  const stages = { plan: plain, review: stage({ prompt: "Review.", ...SUBMIT, inputSchema }) };
  const rows = (focus: unknown) => [
    { from: "plan", on: "success", to: { ...to("review"), input: { focus } } },
    { from: "review", on: "success", to: done(1) },
  ];
  for (const wrong of [3, ""])
    expect(table(rows(wrong), stages)).toEqual([expect.stringContaining("does not fit the inputSchema of review")]);
  expect(table(rows("x"), stages)).toEqual([]);
});

test("an initial state that needs what the run's input never has is reported", () => {
  expect(problems({ stages: { plan: focused, review: plain } })).toEqual([
    expect.stringContaining(
      "stages.plan.inputSchema | it cannot be satisfied: the run starts here, and its input has no focus",
    ),
  ]);
  expect(problems({ stages: { plan: focused, review: plain }, input: z.object({ focus: z.string() }) })).toEqual([]);
  expect(problems({ stages: { plan: focused, review: plain }, input: z.looseObject({}) })).toEqual([]);
});

test("a bare function may go anywhere, so nothing is called unreachable", () => {
  expect(problems({ stages: { plan: plain, review: plain, other: plain } })).toEqual([]);
});

test("declared routes make reachability certain", () => {
  const next = { plan: route(["review"], () => to("review")), review: route([], () => done(1)) };
  expect(problems({ next })).toEqual([]);
  expect(problems({ next, stages: { plan: plain, review: plain, other: plain } })).toEqual([
    "stages.other | cannot be reached from plan | route to it, or remove it",
  ]);
});

test("a declared route to no state, or to a state without a way out, is reported", () => {
  const review = () => done(1);
  expect(problems({ next: { plan: route(["reviw"], () => to("reviw")), review } })).toContain(
    'next.plan | route() declares reviw, which is not a state | did you mean "review"?',
  );
  expect(problems({ next: { plan: route(["review"], () => to("review")) } }).join("\n")).toContain(
    "next.review | is a dead end",
  );
});

test("a declared target may be a sibling, which needs no route", () => {
  const next = {
    plan: route(["test", "lint", "review"], () => fanOut(["test", "lint"], { join: "review" })),
    review: route([], () => done(1)),
  };
  expect(problems({ next, stages: { plan: plain, test: plain, lint: plain, review: plain } })).toEqual([]);
});

// What prompts name

const zodPlan = stage({
  prompt: "x",
  completionTool: "submit",
  completionSchema: z.object({
    summary: z.string(),
    steps: z.array(z.object({ title: z.string() })),
    notes: z.record(z.string(), z.string()),
  }),
  turnCap: 1,
});
const prompting = (prompt: string, extra: object = {}) => {
  const review = stage({ prompt, ...SUBMIT, ...extra });
  return problems({ stages: { plan: zodPlan, review }, input: z.object({ task: z.string() }) });
};

test.each([
  "{{ctx.task}} {{ctx.runId}} {{ctx.workspace}} {{ctx.attempt}} {{ctx.visit}}",
  "{{ctx.upstream}} {{ctx.upstream.plan}} {{ctx.upstream.plan.steps[3].title}}",
  "{{ctx.upstream.plan.notes.anything}}",
  "{{ctx.run.input.task}} {{ctx.context.whatever.it.is}}",
  "{{ctx.input.from.anyone}} {{ctx.fork.plan.status}}",
])("a prompt may name %s", (prompt) => {
  expect(prompting(prompt)).toEqual([]);
});

test.each([
  ["{{ctx.upstream.plam.summary}}", 'there is no state "plam" | did you mean "plan"?'],
  ["{{ctx.upstream.plan.sumary}}", "ctx.upstream.plan has summary, steps, notes"],
  ["{{ctx.upstream.plan.summary.text}}", "ctx.upstream.plan.summary is a string"],
  ["{{ctx.upstream.plan.steps.title}}", "ctx.upstream.plan.steps is a list"],
  ["{{ctx.upstream.plan.steps[0].titel}}", "ctx.upstream.plan.steps[0] has title"],
  ["{{ctx.run.input.tsk}}", "ctx.run.input has task"],
  ["{{ctx.run.task}}", "ctx.run has input"],
  ["{{ctx.task.length}}", "ctx.task has no parts"],
  ["{{ctx.fork.nobody.status}}", 'there is no state "nobody"'],
])("a prompt that names %s is reported", (prompt, reason) => {
  expect(prompting(prompt)).toEqual([
    expect.stringContaining(`stages.review.prompt | ${prompt} leads nowhere: ${reason}`),
  ]);
});

test("a prompt is held to its own inputSchema, and to what a schema makes of a value", () => {
  const inputSchema = z.object({ focus: z.string() });
  expect(prompting("{{ctx.input.focus}}", { inputSchema })).toEqual([]);
  expect(prompting("{{ctx.input.focsu}}", { inputSchema })).toEqual([expect.stringContaining("ctx.input has focus")]);
  const turned = z.object({ text: z.string() }).transform(({ text }) => ({ length: text.length }));
  expect(prompting("{{ctx.input.length}}", { inputSchema: turned })).toEqual([]);
});

test("all mistakes are reported at once, each with its place", () => {
  const found = problemsOf(() =>
    pipeline({
      id: "many",
      input: z.object({}),
      stages: { plan: stage({ prompt: "{{nope}}", ...SUBMIT, turnCap: 0, allowedTools: ["Re?d"] }), review: plain },
      initial: "plan",
      limits: { maxVisits: 0 },
      transitions: [{ from: "plan", on: "success", to: fanOut(["plan"], { join: "plan" }) }],
    }),
  );
  expect(found.map((problem) => problem.split(" | ")[0])).toEqual([
    "limits.maxVisits",
    "stages.plan.prompt",
    "stages.plan.turnCap",
    "stages.plan.allowedTools[0]",
    "transitions[0].to",
    "stages.review",
    "transitions",
  ]);
});

// What a session must have

const tools = ["Read", "Grep", "mcp__docs__search"];
const session = (changes: object, live: object = {}) => {
  const one = stage({ prompt: "Work.", ...SUBMIT, ...changes });
  const { spec } = pipeline({
    id: "p",
    input: z.object({}),
    stages: { one },
    initial: "one",
    next: { one: () => done(1) },
  });
  return problemLines(checkSession(spec, { tools, kinds: ["agent"], ...live }));
};

test("patterns that match live tools, or are optional, are no problem", () => {
  expect(
    session({ allowedTools: ["Read", "Grep(src/**)", "mcp__docs__*", { tool: "mcp__gone__*", optional: true }] }),
  ).toEqual([]);
  expect(session({})).toEqual([]);
});

test("a pattern that matches no live tool is reported with the closest one", () => {
  expect(session({ allowedTools: ["Read", "Gerp(src/**)"] })).toEqual([
    'stages.one.allowedTools[1] | Gerp(src/**) matches no tool of this session | did you mean "Grep"?; or { tool: "Gerp(src/**)", optional: true }',
  ]);
});

test("a completion tool named like a live tool is reported", () => {
  expect(session({ completionTool: "Grep" })).toEqual([
    "stages.one.completionTool | Grep is also a tool of this session | choose another name",
  ]);
});

test("a kind that nothing here runs is reported", () => {
  expect(session({}, { kinds: ["human", "agents"] })).toEqual([
    'stages.one | this session has no executor for states of kind agent | did you mean "agents"?',
  ]);
});
