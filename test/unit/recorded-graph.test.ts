import { final, fork, type Guard, pipeline, type SluiceEvent, stage } from "@sluice/core";
import { compilePipeline, type PipelineDefinition } from "@sluice/core/host";
import { recordedGraph } from "@sluice/core/runtime";
import { eventSchema } from "@sluice/core/schemas";
import { expect, test } from "vitest";
import { z } from "zod";
import { playRelease } from "../support/release-run.ts";
import { dataOf, eventsOf } from "../support/run-kit.ts";

// What a run records of its pipeline for people who read it later.

const input = z.looseObject({});
const common = { allowedTools: [], turnCap: 3, prompt: "Work." };
const guard = (text: string): Guard => ({ text, evaluate: () => ({ fires: true, why: "" }) });

function problemsOf(meta: unknown): readonly string[] {
  const definition = {
    id: "p",
    input,
    stages: { work: stage(common), done: final("completed") },
    initial: "work",
    transitions: [{ from: "work", on: { event: "GO" }, to: "done" }],
    meta,
  };
  const given: unknown = definition;
  return isDefinition(given) ? compilePipeline(given).problems.map(({ path, message }) => `${path} ${message}`) : [];
}

function isDefinition(value: unknown): value is PipelineDefinition {
  return typeof value === "object" && value !== null;
}

test("a run records the rows of its table, its interrupts and what its author says, and a child those of its own pipeline", async () => {
  const { live, runId } = await playRelease();
  const events = await eventsOf(live.host, runId);
  const started = dataOf(events, "run.started");
  expect(started[0]?.rows).toHaveLength(13);
  expect(started[0]).toMatchObject({
    interrupts: [{ name: "migrations", files: "db/**", target: "checking" }],
    meta: { dangerLevel: "dangerous" },
  });
  expect(Reflect.get(Object(started[0]?.rows), 11)).toEqual({
    from: "deciding",
    on: { event: "DEPLOY" },
    when: "tested is true",
    to: "complete",
    approval: true,
    label: "DEPLOY[1]",
  });
  const child = started.find(({ pipeline: name }) => name === "scan");
  expect(child).toMatchObject({ key: "SCAN", shape: { initial: "scanning" }, meta: { dangerLevel: "moderate" } });
  expect(child?.rows).toEqual([{ from: "scanning", on: { event: "CLEAN" }, to: "clean" }]);
  const branches = started.filter(({ key }) => key === "tests" || key === "style");
  expect(branches.map((data) => Object.hasOwn(data, "shape"))).toEqual([false, false]);
  for (const event of events) expect(() => eventSchema.parse(event)).not.toThrow();
});

test("a fork and an invoked pipeline record what their children are, in the route and in the fan-out", async () => {
  const { live, runId } = await playRelease();
  const events = await eventsOf(live.host, runId);
  const of = (type: SluiceEvent["type"]) => dataOf(events, type).filter(({ children }) => children !== undefined);
  const expected = [
    {
      join: "deciding",
      onFail: "broken",
      children: [
        { key: "tests", state: "unit", terminal: "tested" },
        { key: "style", state: "lint", terminal: "styled" },
      ],
    },
    { join: "deciding", children: [{ key: "SCAN", pipeline: "scan" }] },
  ];
  expect(of("fanOut.started")).toMatchObject(expected);
  expect(of("route.decided")).toMatchObject(expected);
});

test("of a long table the first 200 rows are recorded, and of a long condition its beginning", () => {
  const long = "x".repeat(1_000);
  const { spec } = pipeline({
    id: "long",
    input,
    stages: { work: stage(common), done: final("completed") },
    initial: "work",
    transitions: Array.from({ length: 300 }, () => ({
      from: "work" as const,
      on: { event: "GO" },
      when: guard(long),
      to: "done" as const,
    })),
  });
  const { rows } = recordedGraph(spec);
  expect(rows).toHaveLength(200);
  expect(JSON.stringify(rows).length).toBeLessThan(60_000);
});

test("the level of danger is the highest of all pipelines, and one that keeps contents out of reports is enough", () => {
  const made = (id: string, meta: object, pipelines = {}) =>
    pipeline({
      id,
      input,
      stages: { work: stage(common), other: stage(common), done: final("completed") },
      initial: "work",
      pipelines,
      transitions: [
        {
          from: "work",
          on: { event: "GO" },
          to: fork({ a: { initial: "other", terminal: "done" } }, { onComplete: "done" }),
        },
        { from: "other", on: { event: "GO" }, to: "done" },
      ],
      meta,
    });
  const inner = made("inner", { dangerLevel: "dangerous", captureOutput: false });
  expect(recordedGraph(made("outer", { dangerLevel: "safe" }, { inner }).spec).meta).toEqual({
    dangerLevel: "dangerous",
    captureOutput: false,
  });
  expect(recordedGraph(made("plain", { captureOutput: true }).spec).meta).toBeUndefined();
});

test("what a pipeline says about itself is checked", () => {
  expect(problemsOf({ dangerLevel: "moderate", captureOutput: true })).toEqual([]);
  expect(problemsOf({ dangerLevel: "wild", captureOutput: "no", dangrLevel: "safe" })).toEqual([
    "meta.dangrLevel is not a known option",
    "meta.dangerLevel must be one of safe, moderate, dangerous",
    "meta.captureOutput must be true or false",
  ]);
  expect(problemsOf("dangerous")).toEqual(['meta must be an object: { dangerLevel: "moderate" }']);
});
