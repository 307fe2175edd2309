import { done, fail, fanOut, pipeline, pipelineShape, route, stage, to } from "@sluice/core";
import { eventData } from "@sluice/core/schemas";
import { expect, test } from "vitest";
import { z } from "zod";
import { dataOf, eventsOf, noModel, session, work } from "../support/run-kit.ts";

const input = z.object({ task: z.string() });
const agent = (turnCap: number) =>
  stage({
    prompt: "Work.",
    allowedTools: [],
    completionTool: "finish",
    completionSchema: z.object({}),
    turnCap,
  });

test("the shape has every state in declared order, with its kind, its turns and the ways that are declared", () => {
  const { spec } = pipeline({
    id: "p",
    input,
    stages: { plan: agent(20), execute: work(), lint: agent(5), review: agent(9), last: work() },
    initial: "plan",
    next: {
      plan: () => to("execute"),
      execute: {
        completed: route(["lint", "last", "review"], () => fanOut(["lint", "last"], { join: "review" })),
        failed: route(["plan", "review"], () => to("plan")),
      },
      review: route([], () => done(null)),
    },
  });
  expect(pipelineShape(spec)).toEqual({
    initial: "plan",
    states: [
      { id: "plan", kind: "agent", turnCap: 20 },
      { id: "execute", kind: "work", targets: ["lint", "last", "review", "plan"] },
      { id: "lint", kind: "agent", turnCap: 5 },
      { id: "review", kind: "agent", turnCap: 9, targets: [] },
      { id: "last", kind: "work" },
    ],
  });
});

test("of a table it has what the rows say: siblings, joins, and rows for every state", () => {
  const { spec } = pipeline({
    id: "p",
    input,
    stages: { plan: work(), lint: work(), check: work(), review: work() },
    initial: "plan",
    transitions: [
      { from: "plan", on: "success", to: fanOut(["lint", "check"], { join: "review" }) },
      { from: "review", on: "success", to: done(null) },
      { from: "review", on: "failure", to: "plan" },
      { from: "*", on: "failure", to: fail("no") },
    ],
  });
  expect(pipelineShape(spec).states).toEqual([
    { id: "plan", kind: "work", targets: ["lint", "check", "review"] },
    { id: "lint", kind: "work" },
    { id: "check", kind: "work" },
    { id: "review", kind: "work", targets: ["plan"] },
  ]);
});

test("run.started of a root holds it, whatever its states are called, and a sibling's does not", async () => {
  const pipe = pipeline({
    id: "p",
    input,
    stages: { secret: work(), accessToken: work(), left: work(), right: work(), last: work() },
    initial: "secret",
    next: {
      secret: () => to("accessToken"),
      accessToken: () => fanOut(["left", "right"], { join: "last" }),
      last: () => done(null),
    },
  });
  const live = session({ model: noModel });
  const { runId } = await live.run(pipe, { task: "t" });
  const [root, ...siblings] = dataOf(await eventsOf(live.host, runId), "run.started");
  expect(root?.shape).toEqual(pipelineShape(pipe.spec));
  expect(siblings).toHaveLength(2);
  for (const sibling of siblings) expect(sibling).not.toHaveProperty("shape");
  // A journal from before has none.
  const { shape: _shape, ...older } = root ?? {};
  expect(eventData["run.started"].safeParse(older).success).toBe(true);
});

test("of two hundred states it stays small", () => {
  const ids = Array.from({ length: 200 }, (_, at) => `state${at}`);
  const { spec } = pipeline({
    id: "p",
    input,
    stages: Object.fromEntries(ids.map((id) => [id, agent(20)])),
    initial: "state0",
    transitions: ids.map((from, at) => {
      const next = ids[at + 1];
      return { from, on: "success" as const, to: next === undefined ? done(null) : to(next) };
    }),
  });
  const shape = pipelineShape(spec);
  expect(shape.states).toHaveLength(200);
  expect(JSON.stringify(shape).length).toBeLessThan(200 * 80);
});
