// What must compile and what must not. Checked by `tsc -b`; definition.test.ts runs the compiler over it, too.
import { z } from "zod";
import type { Json } from "../../packages/core/src/base/json.ts";
import { stage } from "../../packages/core/src/definition/agents/stage.ts";
import {
  backToInterrupted,
  done,
  fail,
  fanOut,
  forEach,
  fork,
  invoke,
  route,
  to,
} from "../../packages/core/src/definition/choice.ts";
import { pipeline } from "../../packages/core/src/definition/pipeline.ts";
import { final, state } from "../../packages/core/src/definition/state.ts";
import type { ChoosingState, EventOutput, In, Out, Pipeline } from "../../packages/core/src/definition/types.ts";

declare const pick: ChoosingState<"plan" | "over", undefined>;
declare const astray: ChoosingState<"plam", undefined>;

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function holds<_Fact extends true>(): void;
/** A session's run, seen from its types. */
declare function run<I, O>(p: Pipeline<I, O>, input: NoInfer<I>): O;

const plan = stage({
  prompt: "Plan: {{ctx.task}}",
  allowedTools: ["Read", { tool: "mcp__docs__*", optional: true }],
  completionTool: "submit_plan",
  completionSchema: z.object({ summary: z.string(), steps: z.array(z.string()).min(1) }),
  turnCap: 20,
});
const execute = stage({
  reads: { plan },
  prompt: (ctx) => ctx.upstream.plan?.steps.join() ?? "",
  completionTool: "submit_diff",
  completionSchema: z.object({ diff: z.string() }),
  turnCap: 9,
  setup: (ctx) => ({ steps: ctx.upstream.plan?.steps.length ?? 0 }),
  assert: (result, ctx) =>
    result.status === "failed" || result.output.diff.length > (ctx.upstream.plan?.steps.length ?? 0)
      ? "ok"
      : { retry: "more" },
  exit: (result) => {
    if (result.status === "completed") result.output.diff.trim();
  },
});
const test = stage({
  prompt: "Test.",
  completionTool: "submit_test",
  completionSchema: z.object({ passed: z.boolean() }),
  turnCap: 9,
});
const lint = stage({
  prompt: "Lint.",
  completionTool: "submit_lint",
  completionSchema: z.object({ warnings: z.number() }),
  turnCap: 9,
});
const review = stage({
  inputSchema: z.object({ focus: z.string() }),
  prompt: (ctx) => ctx.input.focus,
  completionTool: "submit_review",
  completionSchema: z.object({ verdict: z.enum(["approve", "reject"]) }),
  turnCap: 9,
});
const join = stage({
  prompt: "Join.",
  completionTool: "submit_join",
  completionSchema: z.object({ ok: z.boolean() }),
  turnCap: 9,
});
holds<Equal<Out<typeof plan>, { summary: string; steps: string[] }>>();
holds<Equal<In<typeof review>, { focus: string }>>();
holds<Equal<In<typeof plan>, undefined>>();

const codeReview = pipeline({
  id: "codeReview",
  input: z.object({ task: z.string() }),
  stages: { plan, execute, test, lint, join, review },
  initial: "plan",
  context: { tested: false },
  limits: { maxVisits: 3, maxHops: 20, maxTokens: 100_000, timeoutMs: 60_000 },
  onCall: (call) => (call.tool === "Bash" ? { veto: "no shell here" } : undefined),
  next: {
    plan: ({ output }, ctx) => (output.steps.length > 9 ? fail(ctx.run.input.task) : to("execute")),
    execute: () => fanOut(["test", to("lint", undefined)], { join: "join", onFailure: "settle" }),
    join: (_result, ctx) =>
      ctx.upstream.test?.passed && (ctx.upstream.lint?.warnings ?? 1) === 0
        ? to("review", { focus: ctx.upstream.plan?.summary ?? "" }, { context: { tested: true } })
        : to("execute"),
    review: {
      completed: ({ output }) => done(output),
      failed: (result) => (result.code === "turn_cap" ? done({ verdict: "none" as const }) : fail(result.message)),
      skipped: () => fail("nobody reviewed it"),
    },
  },
});
const verdict: "approve" | "reject" | "none" = run(codeReview, { task: "x" }).verdict;
void verdict;
holds<Equal<typeof codeReview extends Pipeline<infer I, unknown> ? I : never, { task: string }>>();

// route() sees what its state gives, and what it may return is checked like any route's.
const declared = pipeline({
  id: "declared",
  input: z.object({ task: z.string() }),
  stages: { plan, review },
  initial: "plan",
  next: {
    plan: route(["review"], (result, ctx) =>
      result.output.steps.length === 0 ? fail(ctx.run.input.task) : to("review", { focus: result.output.summary }),
    ),
    review: route(["plan"], ({ output }) => (output.verdict === "approve" ? done(output.verdict) : to("plan"))),
  },
});
const approved: "approve" | "reject" = run(declared, { task: "x" });
void approved;

// The literal list of stages is a choice, too; an empty one ends with the state's own output, which is Json here.
const listed = pipeline({
  id: "listed",
  input: z.object({ task: z.string() }),
  stages: { plan, test, lint, join },
  initial: "plan",
  next: {
    plan: () => ({ stages: ["test", "lint"], execution: "parallel", join: "join" }),
    join: () => ({ stages: [], execution: "sequential" }),
  },
});
void listed;

const plain = stage({
  prompt: "Plain.",
  completionTool: "submit_plain",
  completionSchema: { type: "object", properties: { ok: { type: "boolean" } } },
  turnCap: 1,
});
const table = pipeline({
  id: "table",
  input: { type: "object", properties: {} },
  stages: { plan, plain },
  initial: "plan",
  transitions: [
    { from: "plan", on: "success", when: (_result, ctx) => ctx.upstream.plan?.steps.length === 1, to: "plain" },
    { from: "plan", on: "success", to: to("plain") },
    { from: "*", on: "failure", to: fail("no") },
    { from: "plain", on: "success", to: done({}) },
  ],
});
run(table, {});
holds<Equal<typeof table, Pipeline<unknown, Json>>>();

const bad = { id: "bad", input: z.object({ task: z.string() }), stages: { plan, execute, review } } as const;
// @ts-expect-error unknown state in a row
pipeline({ ...bad, initial: "plan", transitions: [{ from: "plan", on: "success", to: "plam" }] });
// @ts-expect-error unknown event in a row
pipeline({ ...bad, initial: "plan", transitions: [{ from: "plan", on: "sucess", to: "review" }] });
// @ts-expect-error routes by function and by table at once
pipeline({ ...bad, initial: "plan", next: { plan: () => to("execute") }, transitions: [] });
// @ts-expect-error unknown target
pipeline({ ...bad, initial: "plan", next: { plan: () => to("exceute") } });
// @ts-expect-error unknown sibling
pipeline({ ...bad, initial: "plan", next: { plan: () => fanOut(["test", "plan"], { join: "review" }) } });
// @ts-expect-error unknown join
pipeline({ ...bad, initial: "plan", next: { plan: () => fanOut(["plan"], { join: "nope" }) } });
// A list's items are the inputs of its state, and its join reads their outputs by type.
pipeline({ ...bad, initial: "plan", next: { plan: () => forEach("review", [{ focus: "x" }], { join: "execute" }) } });
pipeline({
  ...bad,
  initial: "plan",
  transitions: [{ from: "plan", on: "success", to: forEach("review", [{ focus: "x" }], { join: "execute" }) }],
});
stage({
  reads: { review },
  prompt: (ctx) => ctx.items?.review?.map(({ key, output }) => `${key} ${output?.verdict ?? "none"}`).join() ?? "",
  completionTool: "submit_all",
  completionSchema: z.object({ ok: z.boolean() }),
  turnCap: 9,
});
stage({
  reads: { review },
  // @ts-expect-error wrong field of an item's output
  prompt: (ctx) => ctx.items?.review?.map(({ output }) => output?.nope).join() ?? "",
  completionTool: "submit_all",
  completionSchema: z.object({ ok: z.boolean() }),
  turnCap: 9,
});
// @ts-expect-error an item that does not fit
pipeline({ ...bad, initial: "plan", next: { plan: () => forEach("review", [{ focus: 3 }], { join: "execute" }) } });
// @ts-expect-error an unknown state of a list
pipeline({ ...bad, initial: "plan", next: { plan: () => forEach("test", [{}], { join: "execute" }) } });
// @ts-expect-error an unknown join of a list
pipeline({ ...bad, initial: "plan", next: { plan: () => forEach("review", [{ focus: "x" }], { join: "nope" }) } });
// @ts-expect-error wrong payload
pipeline({ ...bad, initial: "plan", next: { plan: () => to("review", { focus: 3 }) } });
// @ts-expect-error payload missing
pipeline({ ...bad, initial: "plan", next: { plan: () => to("review") } });
// @ts-expect-error unknown initial
pipeline({ ...bad, initial: "plam", next: { plan: () => to("execute") } });
// @ts-expect-error unknown key in next
pipeline({ ...bad, initial: "plan", next: { plan: () => to("execute"), plam: () => to("execute") } });
// @ts-expect-error upstream name
pipeline({ ...bad, initial: "plan", next: { plan: (_r, ctx) => (ctx.upstream.nope ? to("execute") : fail("")) } });
// @ts-expect-error wrong field of output
pipeline({ ...bad, initial: "plan", next: { plan: (res) => (res.output.nope ? to("execute") : fail("")) } });
// @ts-expect-error a route declared for other states
pipeline({ ...bad, initial: "plan", next: { plan: route(["review"], () => to("execute")) } });
// @ts-expect-error a declared route with a wrong payload
pipeline({ ...bad, initial: "plan", next: { plan: route(["review"], () => to("review", { focus: 3 })) } });
// @ts-expect-error a literal list with an unknown stage
pipeline({ ...bad, initial: "plan", next: { plan: () => ({ stages: ["exceute"], execution: "sequential" }) } });
// @ts-expect-error a route must choose
pipeline({ ...bad, initial: "plan", next: { plan: () => undefined } });
// @ts-expect-error a context patch is JSON
pipeline({ ...bad, initial: "plan", next: { plan: () => to("execute", undefined, { context: { at: new Date() } }) } });
// @ts-expect-error wrong run input
run(codeReview, { tsk: "x" });
// @ts-expect-error no completion schema
stage({ prompt: "x", completionTool: "x", turnCap: 1 });
// @ts-expect-error a misspelt option
stage({ prompt: "x", completionTool: "x", completionSchema: z.object({}), turnCap: 1, allowedTool: ["Read"] });
stage({
  reads: { plan },
  // @ts-expect-error reads types upstream
  prompt: (ctx) => ctx.upstream.plan?.summry ?? "",
  completionTool: "x",
  completionSchema: z.object({}),
  turnCap: 1,
});

// Stages written where they are used are typed as those held in a constant.
const inline = pipeline({
  id: "inline",
  input: z.object({ task: z.string() }),
  stages: {
    one: stage({ prompt: "1", completionTool: "a", completionSchema: z.object({ n: z.number() }), turnCap: 1 }),
    two: stage({ prompt: "2", completionTool: "b", completionSchema: z.object({ m: z.string() }), turnCap: 1 }),
    three: state({ kind: "k", output: z.object({ k: z.boolean() }), inputSchema: z.object({ q: z.string() }) }),
  },
  initial: "one",
  next: {
    one: ({ output }) => (output.n > 1 ? to("two") : to("three", { q: "" })),
    two: ({ output }) => done(output.m),
    three: ({ output }) => done(output.k),
  },
});
run(inline, { task: "" }) satisfies string | boolean;

// A stage without a completion tool completes by the events of its rows.
const deploy = stage({
  prompt: "Deploy.",
  turnCap: 9,
  reads: { plan },
  setup: (ctx) => ctx.upstream.plan?.summary ?? "",
});
const ok = final("completed");
holds<Equal<Out<typeof deploy>, EventOutput>>();
holds<Equal<In<typeof deploy>, undefined>>();
const machine = { ...bad, stages: { plan, review, deploy, ok }, initial: "plan" } as const;
const events = pipeline({
  ...machine,
  interrupts: { security: { files: "src/auth/**", target: "plan" } },
  pipelines: { codeReview },
  transitions: [
    { from: "plan", on: "success", to: "deploy", label: "plan", approval: { message: "Go on?" } },
    { from: "plan", on: "pause", to: backToInterrupted() },
    { from: "deploy", on: { event: "DONE" }, when: (_result, ctx) => ctx.upstream.plan !== undefined, to: "ok" },
    {
      from: "deploy",
      on: { event: "*" },
      when: { text: "never", evaluate: () => ({ fires: false, why: "never" }) },
      to: to("ok"),
    },
    {
      from: "deploy",
      on: { event: "SPLIT" },
      to: fork({ one: { initial: "plan", terminal: "deploy" } }, { onComplete: "ok" }),
    },
    { from: "deploy", on: { event: "REVIEW" }, to: invoke("codeReview", { onComplete: "ok", onFail: "plan" }) },
  ],
});
void events;
// @ts-expect-error an unknown target of an interrupt
pipeline({ ...machine, transitions: [], interrupts: { i: { files: "**", target: "plam" } } });
// @ts-expect-error an unknown target of an event
pipeline({ ...machine, transitions: [{ from: "deploy", on: { event: "X" }, to: "okk" }] });
// @ts-expect-error an event without a name
pipeline({ ...machine, transitions: [{ from: "deploy", on: {}, to: "ok" }] });
const left = { initial: "plan", terminal: "ok" } as const;
const strayed = { initial: "plam", terminal: "ok" } as const;
const row = { from: "plan", on: "success" } as const;
// @ts-expect-error an unknown state of a branch
pipeline({ ...machine, transitions: [{ ...row, to: fork({ strayed }, { onComplete: "ok" }) }] });
// @ts-expect-error an unknown state after a fork
pipeline({ ...machine, transitions: [{ ...row, to: fork({ left }, { onComplete: "o" }) }] });
// @ts-expect-error an unknown state after another pipeline
pipeline({ ...machine, transitions: [{ ...row, to: invoke("codeReview", { onComplete: "o" }) }] });
// @ts-expect-error an unknown outcome
final("done");
// @ts-expect-error a completion schema without its tool
stage({ prompt: "x", completionSchema: z.object({}), turnCap: 1 });

// A state that chooses what follows.
const choosing = {
  id: "choosing",
  input: z.object({ task: z.string() }),
  stages: { pick, plan, over: final("completed") },
} as const;
pipeline({ ...choosing, initial: "pick", next: { plan: () => done(1) } });
pipeline({ ...choosing, initial: "pick", next: { pick: { failed: () => to("plan") }, plan: () => done(1) } });
// @ts-expect-error it has no route for success
pipeline({ ...choosing, initial: "pick", next: { pick: () => to("plan"), plan: () => done(1) } });
// @ts-expect-error a target that is no state
pipeline({ ...choosing, stages: { astray, plan }, initial: "plan", next: { plan: () => done(1) } });

// A model that chooses what follows every state.
const orchestrator = { instructions: "Direct it." };
const directed = { id: "directed", input: z.object({ task: z.string() }), stages: { plan, execute } };
holds<Equal<ReturnType<typeof run<{ task: string }, Json>>, Json>>();
pipeline({ ...directed, orchestrator });
pipeline({ ...directed, orchestrator, initial: "execute" });
// @ts-expect-error an unknown initial state
pipeline({ ...directed, orchestrator, initial: "exekute" });
// @ts-expect-error routes beside an orchestrator
pipeline({ ...directed, orchestrator, initial: "plan", next: { plan: () => done(1) } });
// @ts-expect-error an initial state is needed without an orchestrator
pipeline({ ...directed, next: { plan: () => done(1) } });
// @ts-expect-error an option that does not exist
pipeline({ ...directed, orchestrator: { ...orchestrator, tools: ["Bash"] } });
