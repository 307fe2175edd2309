import {
  done,
  type Json,
  type Pipeline,
  pipeline,
  type RunLimits,
  type SluiceEvent,
  type Stage,
  stage,
} from "@sluice/core";
import type { RunHandle, RunResult, ScriptedTurn } from "@sluice/stages";
import { test } from "vitest";
import { z } from "zod";
import { eventsOf, session, type TestSession, type TestSessionOptions, tool } from "./run-kit.ts";
import { type Heard, lastResults, type Talker, talker } from "./talker.ts";

// What a test of a fact is made of: a stage, a model that says one turn after another, and what came of the run.

/** A fact of the list these tests work through, as Sluice keeps it. */
export function fact(number: number, says: string, body: () => Promise<void> | void): void {
  test(`fact ${number}: ${says}`, body);
}
/** A fact that Sluice's design decides otherwise: what it says instead. */
export function decided(number: number, says: string, body: () => Promise<void> | void): void {
  test(`fact ${number}, decided otherwise: ${says}`, body);
}

export const input = z.object({ task: z.string() });
export const task = { task: "Fix the parser." };
export const completionSchema = z.object({ summary: z.string() });
export const finish = (summary = "ok"): ScriptedTurn => ({ calls: [{ tool: "finish", input: { summary } }] });
/** A turn of calls: a name, or a name and its arguments. */
export const calls = (...made: readonly (string | readonly [string, Json])[]): ScriptedTurn => ({
  calls: made.map((one) => (typeof one === "string" ? { tool: one, input: {} } : { tool: one[0], input: one[1] })),
});

type Options = Omit<Parameters<typeof stage>[0], "prompt" | "completionTool" | "completionSchema" | "turnCap"> & {
  readonly turnCap?: number;
  readonly prompt?: Parameters<typeof stage>[0]["prompt"];
};
/** A stage that ends with `finish {summary}`; it may look, and nothing else. */
export function worker(options: Options = {}) {
  return stage({
    prompt: "You fix parsers.",
    allowedTools: ["Look"],
    completionTool: "finish",
    completionSchema,
    turnCap: 6,
    ...options,
  });
}

/** A pipeline of one stage that ends as the stage does. */
export function one<O, I>(state: Stage<O, I>, limits: RunLimits = {}) {
  return pipeline({
    id: "one",
    input,
    limits,
    stages: { one: state },
    initial: "one",
    next: { one: { completed: ({ output }) => done(output), skipped: () => done("skipped") } },
  });
}

/** `Look` reads, `Change` writes. */
export const tools = [
  tool("Look", { effect: "read", execute: async (given) => ({ ok: true, output: `saw ${JSON.stringify(given)}` }) }),
  tool("Change"),
];

/** Says each turn of its stage in order, then finishes. */
export function saying(...turns: readonly ScriptedTurn[]): Talker {
  return talker(({ turn }) => turns[turn] ?? finish());
}

export interface Driven {
  readonly result: RunResult<unknown>;
  readonly events: readonly SluiceEvent[];
  readonly heard: readonly Heard[];
  /** The results that the model was shown after its nth turn. */
  results(turn: number): readonly unknown[];
  readonly live: TestSession;
}

/** Runs a stage, or a pipeline, with a model that says these turns, to its end. */
export async function drive(
  what: Stage<unknown, unknown> | Pipeline<typeof task, unknown>,
  model: Talker,
  options: TestSessionOptions & {
    readonly during?: (handle: RunHandle<unknown>, live: TestSession) => Promise<void>;
  } = {},
): Promise<Driven> {
  const { during, ...rest } = options;
  const live = session({ tools, ...rest, model });
  const handle = live.start("kind" in what ? one(what) : what, task);
  await during?.(handle, live);
  const result = await handle;
  const results = (turn: number): readonly unknown[] => {
    const next = model.heard[turn + 1];
    return next === undefined ? [] : lastResults(next);
  };
  return { result, events: await eventsOf(live.host, result.runId), heard: model.heard, results, live };
}

export function typesOf(events: readonly SluiceEvent[], pattern: RegExp): readonly string[] {
  return events.map(({ type }) => type).filter((type) => pattern.test(type));
}

/** The value, noted as having been asked for. */
export function noting<T>(log: string[], what: string, value: T): T {
  log.push(what);
  return value;
}
