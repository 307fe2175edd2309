import type { RunHost } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import type { RunResult } from "@sluice/stages";
import { expect, test } from "vitest";
import { handClock } from "../support/hand-clock.ts";
import { dataOf, eventsOf, session, tool } from "../support/run-kit.ts";
import { calling, failingAt, working } from "../support/stopped-runs.ts";

// Between reading a run and taking it up lies what a session prepares, and that may take seconds: another process fits in.

/** Tokens of each turn. */
const SPENT = 20_000;
const USAGE = {
  inputTokens: { total: SPENT, noCache: SPENT, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 0, text: 0, reasoning: 0 },
};

/** Calls a tool three times; each turn costs the same. */
const model = calling(
  [0, 1, 2].map((turn) => ["Note", { turn }] as const),
  USAGE,
);

function pipelineOf(prompt: string, maxTokens?: number) {
  return working({ id: "moved", prompt, maxTokens, allowedTools: ["Note"] });
}

/** A run of which one process recorded a turn, and another a second one while a third prepared to take it up. */
async function overtaken(meanwhile: string, limit?: number) {
  const clock = handClock();
  const memory = createMemoryJournals();
  const living = (host: RunHost) =>
    session({ model, clock, cwd: import.meta.dirname, tools: [tool("Note")], host: () => host });
  const dying = (step: RegExp): RunHost => createHost(failingAt(memory.connect(), step), { clock });
  const one = pipelineOf("One.", limit);

  const first = living(dying(/turn\/1\/0\/call$/));
  const handle = first.start(one, { task: "x" });
  await expect(handle).rejects.toMatchObject({ code: "store_io" });
  await first.host.close();

  const own = createHost(memory.connect(), { clock });
  let others = 0;
  const third = living({
    ...own,
    resume: async (runId, program, options) => {
      others += 1;
      if (others === 1) {
        const second = living(dying(/turn\/2\/0\/call$/));
        const going = second.resume(pipelineOf(meanwhile, limit), runId, { allowChanged: true });
        await expect(going).rejects.toMatchObject({ code: "store_io" });
        await second.host.close();
      }
      return await own.resume(runId, program, options);
    },
  });
  const resumed = (async (): Promise<RunResult<string>> => await third.resume(one, handle.runId))();
  return { resumed, events: () => eventsOf(own, handle.runId), runId: handle.runId };
}

test("a run that went on with another pipeline meanwhile: never continues unasked with the one it was compared with", async () => {
  const { resumed, events } = await overtaken("Two.");
  await expect(resumed).rejects.toMatchObject({ code: "pipeline_changed" });
  expect(dataOf(await events(), "run.resumed")).toHaveLength(1);
});

test("a run that went on with the same pipeline meanwhile is read again and continues", async () => {
  const { resumed, events } = await overtaken("One.");
  expect((await resumed).status).toBe("completed");
  expect(dataOf(await events(), "run.resumed")).toHaveLength(2);
});

test("what another process spent meanwhile: never is forgotten by the cap", async () => {
  // What is set aside for a turn is what the one before took and the most that may come: with three of them before it is too
  // much, with two it is not.
  const { resumed } = await overtaken("One.", 3.5 * SPENT);
  expect(await resumed).toMatchObject({ status: "failed", error: { code: "budget" } });
});
