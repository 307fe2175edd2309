import { type JsonObject, pipeline } from "@sluice/core";
import { scriptedModel } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { completed, dataOf, eventsOf, failed, session, work } from "../support/run-kit.ts";

const input = z.object({ task: z.string() });
const files = z.object({ files: z.array(z.string()).min(1) });
const stages = {
  plan: work<JsonObject>({ act: () => completed({ plan: "the plan" }) }),
  fix: work<JsonObject, { files: string[] }>({
    inputSchema: files,
    act: ({ ctx }) => completed({ fixed: JSON.stringify(ctx.input) }),
  }),
  broken: work({ act: () => failed("no network") }),
};
const settings = { instructions: "Direct the work." };

function orchestrated(own: object = {}, more: object = {}) {
  return pipeline({ id: "orchestrated", input, stages, orchestrator: { ...settings, ...own }, ...more });
}

/** One turn with the call of `select_state` that has these arguments. */
const select = (state: string, input?: unknown, reason?: string, more: object = {}) => ({
  calls: [{ tool: "select_state", input: JSON.parse(JSON.stringify({ state, input, reason, ...more })) }],
});
const bye = { text: "All done." };

async function run(turns: readonly object[], own: object = {}, more: object = {}) {
  const prompts: string[] = [];
  const script = scriptedModel({ stages: { orchestrator: turns } });
  const model = {
    ...script,
    at: (place: Parameters<typeof script.at>[0]) => {
      const at = script.at(place);
      return {
        ...at,
        doStream: (call: Parameters<typeof at.doStream>[0]) => {
          prompts.push(JSON.stringify(call.prompt));
          return at.doStream(call);
        },
      };
    },
  };
  const live = session({ model });
  const result = await live.run(orchestrated(own, more), { task: "T" });
  const events = await eventsOf(live.host, result.runId);
  return {
    live,
    prompts,
    result,
    events,
    routes: dataOf(events, "route.decided"),
    rejected: dataOf(events, "route.rejected"),
  };
}

describe("an orchestrated run", () => {
  test("goes where its model chooses, after each state, in one transcript", async () => {
    const { result, routes, prompts } = await run([
      select("plan", undefined, "first a plan"),
      select("fix", { files: ["a"] }, "now fix"),
      select("completed", { ok: true }),
      bye,
    ]);
    expect(result).toMatchObject({
      status: "completed",
      output: { ok: true },
      acknowledgement: { text: "All done." },
    });
    expect(routes.map(({ from, to: target, choice }) => `${from} ${choice} ${target ?? ""}`)).toEqual([
      "orchestrator to plan",
      "plan to orchestrator",
      "orchestrator to fix",
      "fix to orchestrator",
      "orchestrator done ",
    ]);
    expect(routes[0]).toMatchObject({ why: { by: "model", reason: "first a plan" } });
    expect(prompts.at(-1)).toContain("first a plan");
    expect(prompts.at(-1)).toContain("the plan");
    expect(prompts.at(-1)).toContain("The run has ended as completed");
  });
});

test("the orchestrator's choices are no outputs that states read", async () => {
  const { result } = await run([select("plan"), select("completed", 1), bye]);
  expect(result.stages.map(({ executionId }) => executionId)).toEqual([
    "orchestrator#1",
    "plan#1",
    "orchestrator#2",
    "orchestrator#3",
  ]);
});
