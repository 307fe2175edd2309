import { final, type GuardScope, pipeline, type SluiceEvent, stage } from "@sluice/core";
import { expect, test } from "vitest";
import { z } from "zod";
import { timeline } from "../../packages/tui/src/run/timeline.ts";
import { describeEvent } from "../../packages/view/src/words/describe-event.ts";
import { eventsOf } from "../support/run-kit.ts";
import { readRecords, scripted, viewOf } from "../support/run-views.ts";

const never = { text: "it is Friday", evaluate: (_scope: GuardScope) => ({ fires: false, why: "it is Monday" }) };

async function played() {
  const common = { allowedTools: [], turnCap: 5 };
  const pipe = pipeline({
    id: "flow",
    input: z.object({ task: z.string() }),
    stages: { testing: stage({ ...common, prompt: "Test." }), complete: final("completed") },
    initial: "testing",
    transitions: [
      { from: "testing", on: { event: "DEPLOY" }, when: never, to: "complete" },
      { from: "testing", on: { event: "*" }, to: "complete" },
    ],
  });
  const send = (event: string) => ({ tool: "transition", input: { event, data: {} } });
  const live = scripted({
    testing: [
      { calls: [{ tool: "get_state" }, { tool: "transition", input: {} }, send("DEPLOY")] },
      { calls: [send("SKIP")] },
    ],
  });
  const { runId } = await live.run(pipe, { task: "x" });
  return { events: await eventsOf(live.host, runId), view: viewOf(runId, await readRecords(live.host, runId)) };
}

test("a transition ends in the transcript as the machine decided about it", async () => {
  const { view } = await played();
  const calls = [...(view.executions[0]?.items ?? [])].filter(({ kind }) => kind === "call");
  expect(calls).toMatchObject([
    { tool: "get_state", state: "ok" },
    { tool: "transition", state: "error", why: "$.event: is not the name of an event" },
    { tool: "transition", state: "error", why: expect.stringContaining("it is Monday") },
    { tool: "transition", state: "ok" },
  ]);
});

test("the timeline says which events the machine decided about, and by which row", async () => {
  const { events } = await played();
  const rows = timeline(events);
  expect(rows.find(({ type }) => type === "transition.rejected")).toMatchObject({
    what: "rejected",
    more: expect.stringContaining("it is Monday"),
    by: "the machine",
    verdict: "refused",
  });
  expect(rows.find(({ type }) => type === "transition.accepted")).toMatchObject({
    more: "SKIP, to complete",
    by: "the machine",
    verdict: "approved",
  });
  expect(rows.find(({ type }) => type === "route.decided")?.by).toBe("the row for any other event");
});

test("an interrupt and an approval say in words what they are about", () => {
  const said = (type: SluiceEvent["type"], data: SluiceEvent["data"]): string => {
    const { what, more } = describeEvent({ id: "r1/1/0", runId: "r1", at: 0, type, data });
    return `${what} ${more}`;
  };
  const started = { interrupt: "migrations", files: ["db/001.sql"], to: "checking" };
  expect(said("interrupt.started", started)).toBe("interrupt migrations: db/001.sql, to checking");
  expect(said("interrupt.returned", { interrupt: "migrations", by: "checking#1" })).toContain("checking#1");
  const body = { from: "testing", to: "deploying", message: "Deploy to production?" };
  expect(said("request.opened", { body })).toBe("asks testing -> deploying: Deploy to production?");
});
