import { readFileSync } from "node:fs";
import {
  type AnyChoice,
  type AnyState,
  backToInterrupted,
  done,
  type EventStageOptions,
  final,
  fork,
  type Guard,
  invoke,
  type PipelineSpec,
  type Problem,
  stage,
  to,
} from "@sluice/core";
import { compilePipeline, type PipelineDefinition } from "@sluice/core/host";
import {
  allOf,
  loadWorkflow,
  operatorGuard,
  runInput,
  type WrittenWorkflow,
  writeStatewright,
} from "@sluice/workflows";
import { expect, test } from "vitest";
import { z } from "zod";
import { loadDocument, loadTexts } from "../support/workflows.ts";

const fixtures = new URL("../fixtures/workflows/statewright/", import.meta.url);

/** A pipeline that a document can say, made in TypeScript. */
const SAYABLE: PipelineDefinition = {
  id: "release",
  input: runInput,
  stages: {
    plan: stage({ prompt: "Plan {{ctx.task}}.", turnCap: 50, allowedTools: ["Read"] }),
    build: stage({ prompt: "Build.", turnCap: 9, limits: { maxToolCalls: 3 }, env: { set: { CI: "1" } } }),
    released: final("completed"),
  },
  initial: "plan",
  context: { tested: false },
  transitions: [
    { from: "plan", on: { event: "GO" }, to: "build" },
    {
      from: "build",
      on: { event: "DONE" },
      when: operatorGuard("tested", { field: "tested", op: "eq", value: true }),
      approval: { message: "Release it?" },
      to: "released",
    },
    { from: "build", on: { event: "DONE" }, to: "plan" },
    { from: "build", on: { event: "*" }, to: "plan" },
  ],
};

function specOf(changes: Partial<PipelineDefinition>): PipelineSpec {
  const { spec, problems } = compilePipeline({ ...SAYABLE, ...changes });
  if (problems.length > 0) throw new Error(JSON.stringify(problems));
  return spec;
}
function write(changes: Partial<PipelineDefinition>): WrittenWorkflow {
  const spec = specOf(changes);
  return writeStatewright({ id: spec.id, spec });
}
const textOf = (written: WrittenWorkflow): string => ("text" in written ? written.text : JSON.stringify(written));
const problemsOf = (written: WrittenWorkflow): readonly Problem[] => ("problems" in written ? written.problems : []);
/** With one more way out of `build`. */
const leading = (choice: AnyChoice, more: Partial<PipelineDefinition> = {}): Partial<PipelineDefinition> => ({
  ...more,
  transitions: [...(SAYABLE.transitions ?? []).slice(0, 3), { from: "build", on: { event: "MORE" }, to: choice }],
});

test("a pipeline of TypeScript becomes the document that a person would write", async () => {
  const text = textOf(write({}));
  expect(JSON.parse(text)).toEqual({
    id: "release",
    initial: "plan",
    context: { tested: false },
    states: {
      plan: { allowed_tools: ["Read"], instructions: "Plan {{ctx.task}}.", on: { GO: "build" } },
      build: {
        instructions: "Build.",
        turn_cap: 9,
        max_iterations: 3,
        env_overrides: { CI: "1" },
        on: {
          DONE: [
            { target: "released", guard: "tested", requires_approval: true, approval_message: "Release it?" },
            { target: "plan" },
          ],
        },
        safe_next: "plan",
      },
      released: { type: "final", outcome: "completed" },
    },
    guards: { tested: { field: "tested", op: "eq", value: true } },
  });
  const { pipeline } = await loadTexts("w.json", { "w.json": text });
  expect(pipeline?.spec.fingerprint).toBe(specOf({}).fingerprint);
});

test.each(["review", "deploy", "deploy-full"])("the document %s is written as the same workflow", async (name) => {
  const first = await loadWorkflow(new URL(`${name}.json`, fixtures).pathname);
  if (first.pipeline === undefined) throw new Error("it does not load");
  const written = writeStatewright(first.pipeline, first);
  const again = await loadTexts("w.json", { "w.json": textOf(written) });
  expect(again.pipeline?.spec.fingerprint).toBe(first.pipeline.spec.fingerprint);
  const original: unknown = JSON.parse(readFileSync(new URL(`${name}.json`, fixtures), "utf8"));
  expect(Object.keys(Object(Object(JSON.parse(textOf(written))).states))).toEqual(
    Object.keys(Object(Object(original).states)),
  );
});

const custom: Guard = { text: "custom", evaluate: () => ({ fires: true, why: "" }) };
const common = { prompt: "Work.", turnCap: 3, allowedTools: [] };
const unsayable: readonly (readonly [what: string, changes: Partial<PipelineDefinition>, path: string])[] = [
  ["another input", { input: z.object({ task: z.string() }) }, "input"],
  ["limits of runs", { limits: { maxVisits: 3 } }, "limits.maxVisits"],
  ["a hook of the pipeline", { onCall: () => undefined }, "onCall"],
  ["a prompt that is a function", withPlan({ prompt: () => "Plan." }), "stages.plan.prompt"],
  ["a hook of a stage", withPlan({ assert: () => "ok" }), "stages.plan.assert"],
  ["a schema of the input", withPlan({ inputSchema: z.any() }), "stages.plan.inputSchema"],
  ["a retry policy", withPlan({ retryPolicy: { maxAttempts: 2 } }), "stages.plan.retryPolicy"],
  ["a temperature", withPlan({ temperature: 1 }), "stages.plan.temperature"],
  ["a cap in dollars", withPlan({ limits: { maxCostUsd: 1 } }), "stages.plan.limits.maxCostUsd"],
  ["an optional tool", withPlan({ allowedTools: [{ tool: "X", optional: true }] }), "stages.plan.allowedTools[0]"],
  ["a function as a guard", guarded(() => true), "transitions[0].when"],
  ["a guard of one's own", guarded(custom), "transitions[0].when"],
  [
    "a guard of one's own beside others",
    guarded(allOf([operatorGuard("g", { field: "a", op: "exists" }), custom])),
    "transitions[0].when",
  ],
  ["an input for a state", leading(to("plan", "now")), "transitions[3].to"],
  ["a change of the context", leading(to("plan", undefined, { context: { a: 1 } })), "transitions[3].to"],
  ["an end with an output", leading(done("over")), "transitions[3].to"],
  [
    "an input for a branch",
    leading(fork({ a: { initial: "plan", terminal: "released", input: 1 } }, { onComplete: "released" })),
    "transitions[3].to",
  ],
  [
    "a key of a child",
    leading(invoke("other", { key: "mine", onComplete: "released" }), { pipelines: { other: other() } }),
    "transitions[3].to",
  ],
  ["a row for a result", rows({ from: "plan", on: "failure", to: "released" }), "transitions[4].on"],
  ["a row for every state", rows({ from: "*", on: { event: "X" }, to: "released" }), "transitions[4].from"],
  ["a second row for any event", rows({ from: "build", on: { event: "*" }, to: "released" }), "transitions[4].on"],
  ["a pipeline that no row invokes", { pipelines: { other: other() } }, "pipelines.other"],
  ["a row that is out of place", rows({ from: "plan", on: { event: "LATE" }, to: "released" }), "transitions[4]"],
];

function withPlan(options: Partial<EventStageOptions<Record<string, AnyState>, unknown>>): Partial<PipelineDefinition> {
  return { stages: { ...SAYABLE.stages, plan: stage({ ...common, ...options }) } };
}
function rows(row: NonNullable<PipelineDefinition["transitions"]>[number]): Partial<PipelineDefinition> {
  return { transitions: [...(SAYABLE.transitions ?? []), row] };
}
function guarded(
  when: NonNullable<NonNullable<PipelineDefinition["transitions"]>[number]["when"]>,
): Partial<PipelineDefinition> {
  const [first, ...others] = SAYABLE.transitions ?? [];
  return first === undefined ? {} : { transitions: [{ ...first, when }, ...others] };
}
function other() {
  const spec = specOf({ id: "other" });
  return { id: spec.id, spec };
}

test.each(unsayable)("%s is a problem with its place", (_what, changes, path) => {
  const problems = problemsOf(write(changes));
  expect(problems.map((problem) => problem.path)).toContain(path);
  expect(problems.length).toBeLessThanOrEqual(2);
});

test("two guards of one name that ask for different things are a problem", () => {
  const [a, b] = [1, 2].map((value) => operatorGuard("same", { field: "n", op: "eq", value }));
  if (a === undefined || b === undefined) throw new Error("no guards");
  expect(problemsOf(write(guarded(allOf([a, b]))))).toMatchObject([{ path: "transitions[0].when" }]);
});

test("what no document may hold is a problem, although the writer has a field for it", () => {
  const control = withPlan({ prompt: "Control: \u0085." });
  expect(problemsOf(write(control))).toMatchObject([{ message: expect.stringContaining("U+0085") }]);
  const large = withPlan({ prompt: "x".repeat(300_000) });
  expect(problemsOf(write(large))).toMatchObject([{ message: expect.stringContaining("256 KB") }]);
});

test("pipelines that it invokes are written by key, or as the references say", () => {
  const pipelines = { other: other() };
  const spec = specOf(leading(invoke("other", { key: "MORE", onComplete: "released" }), { pipelines }));
  const invoked = (references?: Record<string, string>): unknown => {
    const written = writeStatewright({ id: spec.id, spec }, references === undefined ? {} : { references });
    return "text" in written ? JSON.parse(written.text).states.build.on.MORE.invoke : written.problems[0]?.path;
  };
  expect(invoked()).toBe("other");
  expect(invoked({ other: "./else.json" })).toBe("references.other");
  expect(invoked({ others: "./other.json" })).toBe("references.others");
});

test("a way back from an interrupt, and the interrupt, are written", async () => {
  const interrupts = { changed: { files: "db/**", target: "plan" } };
  const text = textOf(write({ ...leading(backToInterrupted()), interrupts }));
  const { pipeline } = await loadTexts("w.json", { "w.json": text });
  expect(pipeline?.spec.interrupts).toEqual([{ name: "changed", files: "db/**", target: "plan" }]);
});

test("guards that differ only behind the words that people read have different fingerprints", () => {
  const long = (end: string) => operatorGuard("g", { field: "a", op: "eq", value: `${"x".repeat(100)}${end}` });
  const prints = [long("a"), long("b")].map((guard) => specOf(guarded(guard)).fingerprint);
  expect(new Set(prints).size).toBe(2);
});

test("a guard cannot be named so that it reads like others", () => {
  const one = operatorGuard("a (x exists) and b", { field: "y", op: "exists" });
  const two = allOf([
    operatorGuard("a", { field: "x", op: "exists" }),
    operatorGuard("b", { field: "y", op: "exists" }),
  ]);
  expect(one.text).not.toBe(two.text);
});

test("a document with names that are not ids is written with these names", async () => {
  const first = await loadDocument({
    id: "w",
    initial: "in progress",
    states: {
      "in progress": { allowed_tools: [], on: { "all done": "the end" } },
      "the end": { type: "final", outcome: "completed" },
    },
  });
  if (first.pipeline === undefined) throw new Error("it does not load");
  const document: unknown = JSON.parse(textOf(writeStatewright(first.pipeline)));
  expect(document).toMatchObject({
    initial: "in progress",
    states: { "in progress": { on: { "all done": "the end" } } },
  });
});

test("the facts of a pipeline for reports are written, and those that are given stand in their place", () => {
  const spec = specOf({ meta: { dangerLevel: "moderate", captureOutput: false } });
  const metaOf = (options?: Parameters<typeof writeStatewright>[1]): unknown =>
    JSON.parse(textOf(writeStatewright({ id: spec.id, spec }, options))).meta;
  expect(metaOf()).toEqual({ danger_level: "moderate", capture_output: false });
  expect(metaOf({ meta: { dangerLevel: "safe" } })).toEqual({ danger_level: "safe", capture_output: false });
});
