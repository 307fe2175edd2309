import { replayRun } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { ASKING, FAILING, play, SMOOTH, ship, TROUBLED } from "../support/run-scenes.ts";

describe("a replay of a recorded run", () => {
  test.each([
    ["one in which nothing goes wrong", SMOOTH, "approve"],
    ["one whose calls are granted", ASKING, "approve"],
    ["one whose calls are denied", ASKING, "deny"],
    ["one whose calls are put off", ASKING, "defer"],
    ["one that is sent back, retried and corrected", TROUBLED, "approve"],
    ["one that fails", FAILING, "approve"],
  ])("%s is identical", async (_what, script, answer) => {
    const { live, runId } = await play(script, answer);
    const report = await replayRun(ship, await live.host.journal(runId), { env: {} });
    expect(report.divergence?.message).toBeUndefined();
    expect(report).toMatchObject({ identical: true, changes: [] });
  });
});
