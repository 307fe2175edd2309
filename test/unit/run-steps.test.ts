import {
  callbackInteractor,
  checkPipeline,
  final,
  type Json,
  type JsonObject,
  pipeline,
  stage,
  to,
} from "@sluice/core";
import { type Step, stepsState } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { completed, json, noModel, session, work } from "../support/run-kit.ts";

// States of steps, what a completed state adds to its run, and inputs that rows compute.

const input = { type: "object" } as const;
const output = { stages: [], execution: "sequential" } as const;

/** A pipeline that completes with what a function makes of its input and context. */
function child(id: string, make: (given: JsonObject, context: JsonObject) => Json) {
  const act = ({
    ctx,
  }: {
    readonly ctx: { readonly run: { readonly input: unknown }; readonly context: JsonObject };
  }) => {
    const given = json(ctx.run.input);
    return completed(
      make(
        typeof given === "object" && given !== null && !Array.isArray(given) ? (given as JsonObject) : {},
        ctx.context,
      ),
    );
  };
  return pipeline({
    id,
    input,
    stages: { only: work({ act }) },
    initial: "only",
    transitions: [{ from: "only", on: "success", to: output }],
  });
}

/** Steps, and a state that completes with what it reads afterwards. */
function stepped(steps: readonly Step[], context: JsonObject = {}) {
  return pipeline({
    id: "stepped",
    input,
    context,
    stages: {
      steps: stepsState({ steps }),
      after: work({ act: ({ ctx }) => completed(json({ up: ctx.upstream, context: ctx.context, input: ctx.input })) }),
      stopped: final("failed"),
    },
    initial: "steps",
    transitions: [
      { from: "steps", on: "success", to: "after", input: (result) => ({ from: result.status }) },
      { from: "steps", on: "failure", to: "stopped" },
      { from: "after", on: "success", to: output },
    ],
    pipelines: {
      echo: child("echo", (given, own) => ({ given, own })),
      fails: pipeline({
        id: "fails",
        input,
        stages: { only: work({ act: () => ({ ...completed(null), status: "cancelled", reason: "no more" }) }) },
        initial: "only",
        transitions: [{ from: "only", on: "success", to: output }],
      }),
    },
  });
}

const live = (answer?: Json) =>
  session({
    model: noModel,
    ...(answer === undefined
      ? {}
      : { interactors: [callbackInteractor("ann", () => ({ kind: "value", value: answer }))] }),
  });

describe("a state of steps", () => {
  test("hands each step what the steps before gave, and adds all outputs and changes at its end", async () => {
    const steps: readonly Step[] = [
      { kind: "ask", name: "ask", message: "Which {{ctx.task}}?", save: [{ from: [], to: ["notes", "answer"] }] },
      {
        kind: "run",
        name: "one",
        pipeline: "echo",
        input: { extra: 1 },
        save: [{ from: ["given", "extra"], to: ["notes", "extra"] }],
      },
      { kind: "run", name: "two", pipeline: "echo", save: [{ from: ["own"], to: ["copied"], merge: true }] },
    ];
    const result = await live("red").run(stepped(steps, { notes: { kept: true } }), { task: "color", more: 2 });
    const given = { task: "color", more: 2, answer: "red" };
    const notes = { kept: true, answer: "red" };
    const one = {
      given: { ...given, extra: 1, previous_step: "red", steps: { ask: "red" } },
      own: { notes },
    };
    const two = {
      given: { ...given, previous_step: one, steps: { ask: "red", one } },
      own: { notes: { ...notes, extra: 1 } },
    };
    expect(result).toMatchObject({
      status: "completed",
      output: {
        up: { ask: "red", one, two, steps: two },
        context: { notes: { ...notes, extra: 1 }, copied: two.own },
        input: { from: "completed" },
      },
    });
  });

  test("without steps completes with nothing", async () => {
    expect(await live().run(stepped([]), {})).toMatchObject({ output: { up: { steps: null }, context: {} } });
  });

  test("fails with the step that fails, and changes nothing", async () => {
    const steps: readonly Step[] = [
      { kind: "run", name: "one", pipeline: "echo", save: [{ from: [], to: ["one"] }] },
      { kind: "ask", name: "ask", message: "Well?" },
    ];
    const result = await live().run(stepped(steps), {});
    expect(result).toMatchObject({
      status: "failed",
      stages: [{ code: "unanswered", detail: { step: "ask", cause: "no_interactor" } }],
    });
  });

  test("refuses names that are taken, names that are no ids, questions without text and schemas that are none", () => {
    const steps: readonly Step[] = [
      { kind: "ask", name: "a", message: " " },
      { kind: "ask", name: "a", message: "{{ctx.nope}}" },
      { kind: "ask", name: "a b", message: "x", answer: { type: "strng" } },
    ];
    const problems = checkPipeline(stepped(steps.slice(0, 0)).spec);
    expect(problems).toEqual([]);
    const found = stepsState({ steps }).spec.problems ?? [];
    expect(found.map(({ path }) => path)).toEqual([
      "steps[0].message",
      "steps[1].name",
      "steps[1].message",
      "steps[2].name",
      "steps[2].answer",
    ]);
  });

  test("lets templates of other states read the outputs of its steps, and of no others", () => {
    const reading = (prompt: string) =>
      checkPipeline({
        id: "p",
        input,
        stages: {
          steps: stepsState({ steps: [{ kind: "ask", name: "color", message: "Which?" }] }),
          use: stage({
            prompt,
            completionTool: "submit",
            completionSchema: { type: "object" },
            turnCap: 1,
            allowedTools: [],
          }),
        },
        initial: "steps",
        transitions: [
          { from: "steps", on: "success", to: "use" },
          { from: "use", on: "success", to: output },
        ],
      });
    expect(reading("{{ctx.upstream.color}}")).toEqual([]);
    expect(reading("{{ctx.upstream.colour}}")).toMatchObject([{ path: "stages.use.prompt" }]);
  });
});

describe("what an executor adds", () => {
  const adding = (adds: unknown) =>
    pipeline({
      id: "adding",
      input,
      context: { a: 1, b: { c: 1 } },
      stages: {
        one: work({
          act: () => {
            const outcome = completed("done");
            // As plain JavaScript may return it.
            Reflect.set(outcome, "adds", adds);
            return outcome;
          },
        }),
        two: work({ act: ({ ctx }) => completed(json({ context: ctx.context, up: ctx.upstream })) }),
      },
      initial: "one",
      transitions: [
        { from: "one", on: "success", to: to("two", null, { context: { a: 3 } }) },
        { from: "two", on: "success", to: output },
      ],
    });

  test("is merged when a route leads on, under what the route sets", async () => {
    const result = await live().run(adding({ context: { a: 2, b: { d: 1 } }, upstream: { part: [1] } }), {});
    expect(result).toMatchObject({ output: { context: { a: 3, b: { d: 1 } }, up: { part: [1], one: "done" } } });
  });

  test.each([
    ["a reserved field", { context: { _own: 1 } }],
    ["a prototype", { context: JSON.parse('{"__proto__": 1}') as unknown }],
    ["a name that is no id", { upstream: { "a b": 1 } }],
    ["something else", { output: 1 }],
    ["no object", "context"],
    ["a function", { context: { f: () => 1 } }],
  ])("fails the state if it is %s", async (_what, adds) => {
    expect(await live().run(adding(adds), {})).toMatchObject({ status: "failed", stages: [{ code: "hook" }] });
  });
});

describe("the input of a row", () => {
  const rows = (fn: () => unknown, target: string | object = "two") => ({
    id: "rows",
    input,
    stages: {
      one: work({ act: () => completed({ n: 1 }) }),
      two: work({ act: ({ ctx }) => completed(json(ctx.input)) }),
    },
    initial: "one",
    transitions: [
      { from: "one", on: "success", to: target, input: fn },
      { from: "two", on: "success", to: output },
    ],
  });

  test("that throws, or is no JSON, fails the run with the reason", async () => {
    const broken = rows(() => {
      throw new Error("not today");
    });
    expect(await live().run(pipeline(broken as never), {})).toMatchObject({
      status: "failed",
      error: { message: expect.stringContaining("not today") },
    });
    expect(await live().run(pipeline(rows(() => 1n) as never), {})).toMatchObject({ status: "failed" });
  });

  test("is for a row that leads to one state and gives it none", () => {
    const problems = (target: string | object, fn: unknown = () => 1) =>
      checkPipeline(rows(fn as () => unknown, target) as never).filter(({ path }) => path === "transitions[0].input");
    expect(problems("two")).toEqual([]);
    expect(problems(to("two", 1))).toHaveLength(1);
    expect(problems({ kind: "done", output: 1 })).toHaveLength(1);
    expect(problems("two", { n: 1 })).toHaveLength(1);
  });
});
