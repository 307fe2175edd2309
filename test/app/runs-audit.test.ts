import type { Json, SluiceEvent } from "@sluice/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { costLines } from "../../packages/tui/src/run/cost.ts";
import { timeline, timelineLine } from "../../packages/tui/src/run/timeline.ts";
import { table } from "../../packages/view/src/text/columns.ts";
import { describeEvent } from "../../packages/view/src/words/describe-event.ts";
import { execution, expectToFit, hostileText, randomView, runView } from "../support/random-views.ts";
import { eventsOf } from "../support/run-kit.ts";
import { ASKING, play, SMOOTH, TROUBLED } from "../support/run-scenes.ts";
import { readRecords, textOf, viewOf } from "../support/run-views.ts";

async function eventsOfRun(script: Parameters<typeof play>[0], answer?: string) {
  const { live, runId } = await play(script, answer);
  return { runId, events: await eventsOf(live.host, runId), records: await readRecords(live.host, runId) };
}

test("every event has a row, those of siblings behind the fork that started them", async () => {
  const { runId, events } = await eventsOfRun(SMOOTH);
  const rows = timeline(events);
  expect(rows).toHaveLength(events.length);
  expect(rows.every(({ what }) => what !== "")).toBe(true);
  const at = (type: string) => rows.findIndex((row) => row.type === type);
  const test = rows.findIndex(({ key }) => key === `${runId}/fan-1/test:test#1`);
  expect(at("fanOut.started")).toBeLessThan(test);
  expect(test).toBeLessThan(at("fanOut.joined"));
  expect(rows[test]?.depth).toBe(1);
  expect(rows.at(-1)?.type).toBe("run.finished");
  expect(rows.at(-1)?.depth).toBe(0);
});

test("a join says what each sibling came to, whatever it is called, and nothing of what it cannot read", () => {
  const joined = (outcomes: Json): string => {
    const event: SluiceEvent = { id: "r1/1/0", runId: "r1", at: 0, type: "fanOut.joined", data: { outcomes } };
    return describeEvent(event).more;
  };
  const outcomes = [
    { name: "cookie", status: "completed" },
    { name: "lint", status: "failed" },
  ];
  expect(joined(outcomes)).toBe("cookie completed, lint failed");
  expect(joined({ lint: "failed" })).toBe("");
});

test("a row tells who decided and why", async () => {
  const { events } = await eventsOfRun(ASKING, "deny");
  const rows = timeline(events);
  const decided = rows.filter(({ type }) => type === "call.decided");
  expect(decided.find(({ tool }) => tool === "look")).toMatchObject({
    what: "approved",
    by: "the envelope",
    verdict: "approved",
  });
  expect(decided.find(({ tool }) => tool === "change")).toMatchObject({
    what: "denied",
    by: "a person",
    why: "denied by ann: not now",
    verdict: "refused",
  });
  expect(rows.find(({ type }) => type === "grant.answered")).toMatchObject({ by: "ann", why: "not now" });
  expect(rows.find(({ type }) => type === "route.decided")).toMatchObject({ by: "its route's function" });
  const { events: troubled } = await eventsOfRun(TROUBLED);
  expect(timeline(troubled).find(({ type, by }) => type === "attempt.finished" && by !== "")).toMatchObject({
    by: "assert",
    why: "only half of it",
  });
  expect(timeline(troubled).find(({ type }) => type === "completion.rejected")?.why).toContain("$.summary");
});

test("a filter leaves what is asked for: a stage, a tool, a verdict, decisions, words", async () => {
  const { events } = await eventsOfRun(ASKING, "deny");
  const all = timeline(events);
  const lint = timeline(events, { stage: "lint" });
  expect(lint.length).toBeGreaterThan(0);
  expect(lint).toEqual(all.filter(({ stage }) => stage === "lint"));
  expect(timeline(events, { tool: "change" }).every(({ tool }) => tool === "change")).toBe(true);
  const refused = timeline(events, { verdict: "refused", tool: "change" });
  expect(refused.map(({ type }) => type)).toEqual(["call.decided", "call.decided", "call.decided"]);
  expect(timeline(events, { text: "ANN not" }).map(({ type }) => type)).toContain("grant.answered");
  expect(timeline(events, { text: "no such thing anywhere" })).toEqual([]);
});

test("a row is one line of any width, whatever was written into the journal", () => {
  fc.assert(
    fc.property(hostileText, hostileText, fc.integer({ min: 1, max: 120 }), (name, text, width) => {
      const event = (type: SluiceEvent["type"], data: SluiceEvent["data"]): SluiceEvent => ({
        id: "r1/0/0",
        runId: "r1",
        at: 5,
        type,
        executionId: name,
        attempt: 1,
        data,
      });
      const events = [
        event("call.decided", {
          callId: "t1.c0",
          tool: text,
          args: text,
          verdict: "refused",
          cause: "denied",
          result: { reason: text },
        }),
        event("grant.answered", { requestId: text, answer: text, by: name, reason: text }),
        event("limit.near", { limit: text, message: text }),
        event("context.changed", { patch: { [name]: text } }),
        event("stage.setup", { phase: text, tools: [text] }),
      ];
      expectToFit(
        timeline(events).map((row) => timelineLine(row, { width, startedAt: 0 })),
        width,
      );
    }),
    { numRuns: 100 },
  );
});

test("what a run cost stands by stage and by model, and adds up to the whole", async () => {
  const { runId, records } = await eventsOfRun(TROUBLED);
  const view = viewOf(runId, records);
  const text = textOf(costLines(view, { width: 120, now: 0 }));
  for (const { executionId } of view.executions) expect(text).toContain(executionId);
  expect(text).toMatch(/scripted +12 /);
  expect(text).toContain(`total  ${view.usage.inputTokens.toLocaleString("en-US")} tokens in`);
});

test("caps that came near or were reached, and unpriced usage, are shown", () => {
  const view = runView({
    executions: [
      execution("plan", {
        usage: { inputTokens: 5, outputTokens: 1, costUsd: 0.5, unpricedCalls: 2 },
        spent: [{ model: "m", turns: 1, usage: { inputTokens: 5, outputTokens: 1 } }],
      }),
    ],
    usage: { inputTokens: 5, outputTokens: 1, costUsd: 0.5, unpricedCalls: 2 },
    caps: [
      { key: "r1:plan#1", limit: "state.maxTokens", message: "almost", reached: false, used: 90, max: 100 },
      { limit: "run.maxCostUsd", message: "over", reached: true },
    ],
  });
  const text = textOf(costLines(view, { width: 120, now: 0 }));
  expect(text).toContain("plan#1 state.maxTokens: almost (90 of 100)");
  expect(text).toContain("✖ cap reached  run.maxCostUsd: over");
  expect(text).toContain("2 calls of unknown price");
  expect(text).toContain("$0.5+");
});

test("the columns of a run's cost are aligned in any script, numbers at their right, and signs have their colours", () => {
  const view = runView({
    executions: [
      execution("計画", { endedAt: 5_000 }),
      execution("a", { status: "failed", endedAt: 65_000, usage: { inputTokens: 5, outputTokens: 1, costUsd: 12 } }),
    ],
  });
  const lines = costLines(view, { width: 120, now: 0 });
  expect(textOf(lines.slice(1, 4))).toBe(
    [
      "   STAGE   TURNS   IN  OUT     COST   TIME",
      "✔  計画#1      3  12k  345  $0.1234     5s",
      "✖  a#1         3    5    1   $12.00  1m05s",
    ].join("\n"),
  );
  expect(lines.slice(2, 4).map(([sign]) => sign?.style)).toEqual(["good", "bad"]);
});

test("a table is aligned in any script, and no row ends in spaces", () => {
  expect(
    table([
      ["NAME", "TASK"],
      ["設計", "b"],
      ["a", ""],
    ]),
  ).toEqual(["NAME  TASK", "設計  b", "a"]);
});

test("the cost of any run fits where it is drawn", () => {
  fc.assert(
    fc.property(randomView, fc.integer({ min: 1, max: 130 }), (view, width) => {
      expectToFit(costLines(view, { width, now: 9_000_000 }), width);
    }),
    { numRuns: 60 },
  );
});
