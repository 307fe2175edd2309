import { done, type Json, pipeline, type Stage, type StageContext, type StageResult, to } from "@sluice/core";
import { apply, initialState, transition } from "@sluice/core/machine";
import { z } from "zod";
import type { Workload, WorkloadOptions } from "../measure.ts";
import type { Review } from "../review.ts";
import { reviewStage } from "./stages.ts";

const STATES = 10;
const states = Array.from({ length: STATES }, (_, at) => `state-${at}`);
type Guard = (result: unknown, ctx: StageContext) => boolean;
const isUrgent: Guard = (_result, ctx) => ctx.task === "urgent";
const isFresh: Guard = (_result, ctx) => ctx.visit > 0;
const result: StageResult<Json> = {
  status: "completed",
  executionId: "state-0#1",
  attempts: 1,
  turns: 1,
  usage: { inputTokens: 1, outputTokens: 1 },
  ms: 1,
  output: { verdict: "approve" },
};
const context: StageContext = {
  runId: "r1",
  task: "",
  workspace: "/work",
  run: { input: null },
  input: null,
  upstream: {},
  context: {},
  setup: null,
  attempt: 1,
  visit: 1,
};

/** Routing by a table of two guarded rows per state, of which the second applies. */
export async function tableTransitions({ quick }: WorkloadOptions): Promise<Workload> {
  const units = quick ? 2_000 : 100_000;
  const stages: Record<string, Stage<Review, undefined>> = {};
  for (const state of states) stages[state] = reviewStage();
  const { spec } = pipeline({
    id: "table",
    input: z.object({ task: z.string() }),
    stages,
    initial: "state-0",
    limits: { maxVisits: units, maxHops: units },
    transitions: states.flatMap((from, at) => [
      { from, on: "success", when: isUrgent, to: done("urgent") } as const,
      { from, on: "success", when: isFresh, to: to(states[(at + 1) % STATES] ?? from) } as const,
    ]),
  });
  return {
    warmUps: quick ? 1 : 5,
    slice: async () => {
      const state = initialState(spec, { input: { task: "" } });
      apply(state, (await transition(spec, state, { kind: "start" })).patch);
      for (let hop = 0; hop < units; hop += 1) {
        const { effect, patch } = await transition(spec, state, { kind: "result", result, ctx: context });
        if (effect.kind !== "enter") throw new Error(`the table ended with ${effect.kind}`);
        apply(state, patch);
      }
      return { units, facts: {} };
    },
  };
}

/** Minimal code for the same: the rows of a state in a map, their guards in order, one log entry per hop. */
export async function bareTransitions({ quick }: WorkloadOptions): Promise<Workload> {
  const units = quick ? 2_000 : 100_000;
  const table = new Map(
    states.map((from, at) => [
      from,
      [
        { when: isUrgent, to: undefined },
        { when: isFresh, to: states[(at + 1) % STATES] },
      ],
    ]),
  );
  return {
    warmUps: quick ? 1 : 5,
    slice: async () => {
      const audit: { readonly from: string; readonly to: string; readonly row: number }[] = [];
      let state = "state-0";
      for (let hop = 0; hop < units; hop += 1) {
        const rows = table.get(state) ?? [];
        for (const [row, rule] of rows.entries()) {
          if (!rule.when(result, context)) continue;
          if (rule.to === undefined) throw new Error("the table ended");
          audit.push({ from: state, to: rule.to, row });
          state = rule.to;
          break;
        }
      }
      return { units: audit.length, facts: {} };
    },
  };
}
