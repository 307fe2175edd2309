import { join } from "node:path";
import {
  backToInterrupted,
  final,
  fork,
  type Guard,
  type GuardScope,
  invoke,
  type Pipeline,
  type PipelineMeta,
  pipeline,
  type Subject,
  stage,
} from "@sluice/core";
import type { RunHandle, Script } from "@sluice/stages";
import { z } from "zod";
import { type HandClock, handClock } from "./hand-clock.ts";
import { eventually, type TestSession, tool } from "./run-kit.ts";
import { answerAll, scripted } from "./run-views.ts";

const cwd = import.meta.dirname;
const stateOf = (allowedTools: readonly string[] = []) =>
  stage({ allowedTools: [...allowedTools], turnCap: 9, prompt: "Work on {{ctx.task}}." });
const guard = (text: string, holds: (context: unknown) => boolean): Guard => ({
  text,
  evaluate: ({ ctx }: GuardScope) => ({ fires: holds(ctx.context), why: `${text} does not hold` }),
});
const isTested = guard("tested is true", (context) => Reflect.get(Object(context), "tested") === true);
const isBroken = guard("tested is false", (context) => Reflect.get(Object(context), "tested") === false);
const input = z.looseObject({ task: z.string() });

const scanOf = (meta: PipelineMeta) =>
  pipeline({
    id: "scan",
    input: z.looseObject({}),
    stages: { scanning: stateOf(), clean: final("completed") },
    initial: "scanning",
    transitions: [{ from: "scanning", on: { event: "CLEAN" }, to: "clean" }],
    meta,
  });

/**
 * Plans by any event; works, where a changed file of db/ is an interrupt; forks into two branches; invokes another pipeline; and
 * deploys after an approval, into a final state.
 */
function release(
  meta: PipelineMeta = { dangerLevel: "dangerous" },
  scanMeta: PipelineMeta = { dangerLevel: "moderate" },
): Pipeline<{ task: string }, unknown> {
  return pipeline({
    id: "release",
    input,
    stages: {
      planning: stateOf(),
      working: stateOf(["change"]),
      checking: stateOf(["change"]),
      unit: stateOf(),
      integration: stateOf(),
      tested: stateOf(),
      lint: stateOf(),
      styled: stateOf(),
      deciding: stateOf(),
      complete: final("completed"),
      broken: final("failed"),
    },
    initial: "planning",
    interrupts: { migrations: { files: "db/**", target: "checking" } },
    pipelines: { scan: scanOf(scanMeta) },
    transitions: [
      { from: "planning", on: { event: "*" }, to: "working", label: "safe_next" },
      {
        from: "working",
        on: { event: "CHECK" },
        to: fork(
          { tests: { initial: "unit", terminal: "tested" }, style: { initial: "lint", terminal: "styled" } },
          { onComplete: "deciding", onFail: "broken" },
        ),
      },
      { from: "checking", on: { event: "OK" }, to: backToInterrupted() },
      { from: "checking", on: { event: "BAD" }, to: "broken" },
      { from: "unit", on: { event: "NEXT" }, to: "integration" },
      { from: "integration", on: { event: "NEXT" }, to: "tested" },
      { from: "tested", on: { event: "NEXT" }, to: "deciding" },
      { from: "lint", on: { event: "NEXT" }, to: "styled" },
      { from: "styled", on: { event: "NEXT" }, to: "deciding" },
      { from: "deciding", on: { event: "SCAN" }, to: invoke("scan", { key: "SCAN", onComplete: "deciding" }) },
      { from: "deciding", on: { event: "DEPLOY" }, when: isBroken, to: "broken", label: "DEPLOY[0]" },
      {
        from: "deciding",
        on: { event: "DEPLOY" },
        when: isTested,
        to: "complete",
        label: "DEPLOY[1]",
        approval: { message: "Deploy it?" },
      },
      { from: "deciding", on: { event: "DEPLOY" }, to: "broken", label: "DEPLOY[2]" },
    ],
    meta,
  });
}

const send = (event: string, data: { readonly [key: string]: string | boolean } = {}) => ({
  calls: [{ tool: "transition", input: { event, data } }],
});

/** What models say in a run of `release` that comes to its end. */
export const RELEASED: Script["stages"] = {
  planning: [send("LOOKS_GOOD", { rationale: "the change is small" })],
  working: [
    {
      text: "Working.",
      calls: [
        { tool: "change", input: { path: "db/001.sql" } },
        { tool: "change", input: {} },
      ],
    },
    send("CHECK"),
  ],
  checking: [send("OK", { rationale: "the migration is safe" })],
  unit: [send("NEXT")],
  integration: [send("NEXT")],
  lint: [send("NEXT")],
  deciding: [send("SCAN", { tested: true }), send("NOPE"), send("DEPLOY", { rationale: "all green" })],
  scanning: [send("CLEAN")],
};

/** Writes the path of its input, and says what it wrote. */
const change = tool("change", {
  effect: "write",
  subjects: (given): readonly Subject[] => {
    const path: unknown = Reflect.get(Object(given), "path");
    return typeof path === "string" ? [{ kind: "path", real: join(cwd, path), access: "write" }] : [];
  },
  prepare: () => null,
  recover: () => "not_started",
  execute: async () => ({ ok: true, output: "the file is changed" }),
});

export interface ReleaseRun {
  readonly live: TestSession;
  readonly runId: string;
  readonly handle: RunHandle<unknown>;
  readonly clock: HandClock;
}

/** Begins a run of `release`, whose requests stay open. */
export function beginRelease(
  script: Script["stages"] = RELEASED,
  meta?: PipelineMeta,
  scanMeta?: PipelineMeta,
): ReleaseRun {
  const clock = handClock();
  const live = scripted(script, { tools: [change], clock, cwd });
  const handle = live.start(release(meta, scanMeta), { task: "ship the change" });
  return { live, runId: handle.runId, handle, clock };
}

/** A run of `release` to its end; every request gets the same answer. */
export async function playRelease(
  script: Script["stages"] = RELEASED,
  {
    answer = "approve",
    meta,
    scanMeta,
  }: { readonly answer?: "approve" | "deny"; readonly meta?: PipelineMeta; readonly scanMeta?: PipelineMeta } = {},
): Promise<ReleaseRun> {
  const run = beginRelease(script, meta, scanMeta);
  const ended = { value: false };
  const result = run.handle.then(() => {
    ended.value = true;
  });
  await eventually(async () => {
    run.clock.turn(1_000);
    if (!ended.value)
      await answerAll(
        run.live,
        run.runId,
        answer === "deny" ? { kind: "deny", reason: "not today" } : { kind: answer },
      );
    return ended.value;
  }, "the run's end");
  await result;
  return run;
}
