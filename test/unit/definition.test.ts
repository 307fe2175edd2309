import { expect, test } from "vitest";
import { z } from "zod";
import { isSluiceError } from "../../packages/core/src/base/errors.ts";
import { stage } from "../../packages/core/src/definition/agents/stage.ts";
import { cancel, done, fail, fanOut, route, to } from "../../packages/core/src/definition/choice.ts";
import { pipeline } from "../../packages/core/src/definition/pipeline.ts";
import { readAgent } from "../../packages/stages/src/agent/agent-spec.ts";
import { CONTEXT, plainStage } from "../support/definition.ts";

const input = z.object({ task: z.string() });

test("a stage leaves what the run loop and its executor read", () => {
  const setup = () => ({ files: 3 });
  const { kind, spec } = stage({
    inputSchema: z.object({ focus: z.string() }),
    prompt: "Review {{ctx.input.focus}} with {{ctx.setup.files}} files.",
    allowedTools: ["Read", { tool: "mcp__docs__*", optional: true }],
    visibility: "session",
    model: "scripted:model.json",
    temperature: 0,
    maxOutputTokens: 500,
    completionTool: "submit_review",
    completionSchema: z.object({ verdict: z.enum(["approve", "reject"]) }),
    turnCap: 7,
    retryPolicy: { maxAttempts: 2 },
    limits: { maxTokens: 1000, timeoutMs: 60_000 },
    setup,
  });
  expect(kind).toBe("agent");
  expect(spec).toMatchObject({
    kind: "agent",
    allowedTools: ["Read", { tool: "mcp__docs__*", optional: true }],
    retryPolicy: { maxAttempts: 2 },
    limits: { maxTokens: 1000, timeoutMs: 60_000 },
    setup,
    visibility: "session",
    completionTool: "submit_review",
    shape: { turnCap: 7 },
    templates: {
      prompt: [
        { path: ["input", "focus"], place: { offset: 7, length: 19 } },
        { path: ["setup", "files"], place: { offset: 32, length: 19 } },
      ],
    },
  });
  const agent = readAgent(spec);
  expect(agent).toMatchObject({
    visibility: "session",
    model: "scripted:model.json",
    temperature: 0,
    maxOutputTokens: 500,
    completionTool: "submit_review",
    turnCap: 7,
  });
  expect(spec).not.toHaveProperty("problems");
  expect(agent.prompt({ ...CONTEXT, input: { focus: "auth" }, setup: { files: 3 } })).toBe("Review auth with 3 files.");
  expect(agent.completionSchema?.jsonSchema).toMatchObject({
    properties: { verdict: { enum: ["approve", "reject"] } },
  });
});

test("what is not given is not there, so that an omitted envelope is not an empty one", () => {
  expect(plainStage.spec).not.toHaveProperty("allowedTools");
  for (const option of ["model", "temperature", "maxOutputTokens"])
    expect(plainStage.spec.options).not.toHaveProperty(option);
  expect(readAgent(plainStage.spec).visibility).toBe("allowed");
  const closed = stage({
    prompt: "x",
    allowedTools: [],
    completionTool: "s",
    completionSchema: z.object({}),
    turnCap: 1,
  });
  expect(closed.spec.allowedTools).toEqual([]);
});

test("changing the options afterwards does not change what was checked", () => {
  const allowedTools = ["Read"];
  const state = stage({ prompt: "x", allowedTools, completionTool: "s", completionSchema: z.object({}), turnCap: 1 });
  allowedTools.push("Bash");
  expect(state.spec.allowedTools).toEqual(["Read"]);
});

test("a prompt that is a function gets the context", () => {
  const state = stage({
    prompt: (ctx) => `${ctx.task}#${ctx.attempt}`,
    completionTool: "s",
    completionSchema: z.object({}),
    turnCap: 1,
  });
  expect(readAgent(state.spec).prompt({ ...CONTEXT, task: "t" })).toBe("t#1");
  expect(state.spec.templates).toEqual({ prompt: [] });
});

test("a pipeline by functions keeps its states, routes, context and limits", () => {
  const p = pipeline({
    id: "two",
    input,
    stages: { plan: plainStage, review: plainStage },
    initial: "plan",
    context: { tested: false },
    limits: { maxHops: 5 },
    next: {
      plan: route(["review"], () => to("review")),
      review: { completed: route([], ({ output }) => done(output)), failed: route(["plan"], () => to("plan")) },
    },
  });
  expect(p.id).toBe("two");
  expect([...p.spec.states.keys()]).toEqual(["plan", "review"]);
  expect(p.spec).toMatchObject({ initial: "plan", context: { tested: false }, limits: { maxHops: 5 } });
  if (p.spec.routes.kind !== "functions") throw new Error("not by functions");
  expect(p.spec.routes.next.get("plan")?.targets).toEqual(["review"]);
  expect(p.spec.routes.next.get("review")?.targets).toEqual(["plan"]);
});

test("where a state may go is unknown as soon as one of its routes is a bare function", () => {
  const p = pipeline({
    id: "two",
    input,
    stages: { plan: plainStage },
    initial: "plan",
    next: { plan: { completed: route([], () => done(1)), failed: () => fail("no") } },
  });
  if (p.spec.routes.kind !== "functions") throw new Error("not by functions");
  expect(p.spec.routes.next.get("plan")).not.toHaveProperty("targets");
});

test("a pipeline by table keeps its rows, names turned into choices and conditions into guards", () => {
  const isReady = () => true;
  const p = pipeline({
    id: "table",
    input,
    stages: { plan: plainStage, review: plainStage },
    initial: "plan",
    transitions: [
      { from: "plan", on: "success", when: isReady, to: "review" },
      { from: "plan", on: "success", to: cancel("not needed") },
      { from: "review", on: "success", to: done({ ok: true }) },
      { from: "*", on: "failure", to: fail("broken") },
    ],
  });
  const when = { text: "isReady", opaque: true, evaluate: expect.any(Function) };
  expect(p.spec.routes).toEqual({
    kind: "table",
    rows: [
      { from: "plan", on: "success", when, to: to("review") },
      { from: "plan", on: "success", to: cancel("not needed") },
      { from: "review", on: "success", to: done({ ok: true }) },
      { from: "*", on: "failure", to: fail("broken") },
    ],
  });
});

test("choices are plain data", () => {
  expect(to("a", { n: 1 }, { context: { seen: true } })).toEqual({
    kind: "to",
    state: "a",
    input: { n: 1 },
    context: { seen: true },
  });
  expect(fanOut(["a", to("b", 1)], { join: "c", onFailure: "settle" })).toEqual({
    kind: "fanOut",
    siblings: ["a", { kind: "to", state: "b", input: 1 }],
    join: "c",
    onFailure: "settle",
  });
  expect([done(1), fail("f"), cancel("c")]).toEqual([
    { kind: "done", output: 1 },
    { kind: "fail", reason: "f" },
    { kind: "cancel", reason: "c" },
  ]);
});

test("an invalid definition throws one error that holds every problem", () => {
  const define = () =>
    pipeline({
      id: "1st",
      input,
      stages: {
        plan: stage({
          prompt: "{{input.x}}",
          allowedTools: ["!Read", "submit"],
          completionTool: "submit",
          completionSchema: z.object({}),
          turnCap: 0,
        }),
      },
      initial: "plan",
      limits: { maxHops: 0 },
      next: { plan: () => done(1) },
    });
  try {
    define();
    expect.unreachable();
  } catch (thrown) {
    if (!isSluiceError(thrown, "definition_invalid")) throw thrown;
    expect(thrown.class).toBe("Validation");
    const places = [
      "id",
      "stages.plan.prompt",
      "stages.plan.allowedTools[0]",
      "stages.plan.completionTool",
      "stages.plan.turnCap",
      "limits.maxHops",
    ];
    for (const place of places) expect(thrown.message).toContain(`\n  ${place}: `);
    expect(thrown.message).toContain("write {{ctx.input.x}}");
  }
});

test.each([[1n], [undefined], [Symbol("plan")]])(
  "an initial state %s is a mistake with a place, whatever it is",
  (initial) => {
    const plan = stage({ prompt: "p", completionTool: "c", completionSchema: z.object({}), turnCap: 1 });
    const loose = { id: "p", input, stages: { plan }, initial: initial as never, next: { plan: () => done(1) } };
    expect(() => pipeline(loose)).toThrow(`there is no state "${String(initial)}"`);
  },
);

const facts = {
  id: "print",
  input,
  stages: { plan: plainStage, review: plainStage },
  initial: "plan",
} as const;
const routes = { plan: () => to("review"), review: () => done(1) };
const print = pipeline({ ...facts, next: routes }).spec.fingerprint;
const stageOf = (changes: object) =>
  stage({
    prompt: "Work.",
    completionTool: "submit",
    completionSchema: { type: "object", properties: { ok: { type: "boolean" } } },
    turnCap: 3,
    ...changes,
  });

test("the fingerprint is a SHA-256 that other function bodies and another order of states leave alone", () => {
  expect(print).toMatch(/^[0-9a-f]{64}$/);
  expect(pipeline({ ...facts, next: { review: () => done(2), plan: () => to("plan") } }).spec.fingerprint).toBe(print);
  const turned = { review: plainStage, plan: plainStage };
  expect(pipeline({ ...facts, stages: turned, next: routes }).spec.fingerprint).toBe(print);
  const byText = pipeline({
    ...facts,
    stages: { plan: stageOf({ prompt: () => "a" }), review: plainStage },
    next: routes,
  });
  const byOther = pipeline({
    ...facts,
    stages: { plan: stageOf({ prompt: () => "b" }), review: plainStage },
    next: routes,
  });
  expect(byText.spec.fingerprint).toBe(byOther.spec.fingerprint);
});

test.each<readonly [string, object]>([
  ["a prompt", { prompt: "Work harder." }],
  ["a prompt that becomes a function", { prompt: () => "Work." }],
  ["an envelope", { allowedTools: [] }],
  ["an envelope with one more tool", { allowedTools: ["Read"] }],
  ["a completion schema", { completionSchema: { type: "object", properties: { ok: { type: "string" } } } }],
  ["a completion tool", { completionTool: "finish" }],
  ["a turn cap", { turnCap: 4 }],
  ["an input schema", { inputSchema: { type: "object" } }],
  ["a hook that is there", { setup: () => null }],
  ["a guard hook", { onCall: () => undefined }],
  ["a limit", { limits: { maxTokens: 5 } }],
  ["a model", { model: "other" }],
  ["a retry policy", { retryPolicy: { maxAttempts: 1 } }],
])("%s changes the fingerprint", (_name, changes) => {
  const changed = pipeline({ ...facts, stages: { plan: stageOf(changes), review: plainStage }, next: routes });
  expect(changed.spec.fingerprint).not.toBe(print);
});

test("edges, context and the id change the fingerprint", () => {
  const prints = [
    print,
    pipeline({ ...facts, id: "other", next: routes }).spec.fingerprint,
    pipeline({ ...facts, context: { a: 1 }, next: routes }).spec.fingerprint,
    pipeline({ ...facts, limits: { maxHops: 3 }, next: routes }).spec.fingerprint,
    pipeline({ ...facts, next: { ...routes, plan: { completed: routes.plan, failed: () => fail("x") } } }).spec
      .fingerprint,
    pipeline({ ...facts, next: { ...routes, plan: route(["review"], () => to("review")) } }).spec.fingerprint,
    pipeline({
      ...facts,
      transitions: [
        { from: "*", on: "success", to: done(1) },
        { from: "plan", on: "success", to: "review" },
      ],
    }).spec.fingerprint,
    pipeline({
      ...facts,
      transitions: [
        { from: "plan", on: "success", to: "review" },
        { from: "*", on: "success", to: done(1) },
      ],
    }).spec.fingerprint,
  ];
  expect(new Set(prints).size).toBe(prints.length);
});
