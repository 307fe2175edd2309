import { inspect } from "node:util";
import type { RunHost } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { replayRun } from "@sluice/stages";
import { expect, test } from "vitest";
import { handClock } from "../support/hand-clock.ts";
import { dataOf, eventsOf, session, tool } from "../support/run-kit.ts";
import { calling, failingAt, working } from "../support/stopped-runs.ts";

// A pipeline whose author wrote a key into a tool pattern, and that is another when its run goes on or is forked.

const SECRET = "k9f3k2l1m8n7b6v5";
const model = calling([["Note", { turn: 0 }]]);

function pipelineOf(pattern: string) {
  return working({ id: "changed", allowedTools: ["Note", pattern] });
}

test("what changed in a pipeline: never carries a known secret into the record", async () => {
  const clock = handClock();
  const memory = createMemoryJournals();
  const living = (host: RunHost) =>
    session({
      env: { MY_TOKEN: SECRET },
      model,
      clock,
      cwd: import.meta.dirname,
      tools: [tool("Note")],
      host: () => host,
    });
  const first = living(createHost(failingAt(memory.connect(), /\/call$/), { clock }));
  const handle = first.start(pipelineOf("Bash(curl *)"), { task: "x" });
  await expect(handle).rejects.toMatchObject({ code: "store_io" });
  await first.host.close();

  const second = living(createHost(memory.connect(), { clock }));
  const changed = pipelineOf(`Bash(curl ${SECRET} *)`);
  const refused: unknown = await second.resume(changed, handle.runId).then(
    () => expect.fail(),
    (thrown: unknown) => thrown,
  );
  expect(refused).toMatchObject({ code: "pipeline_changed", message: expect.stringContaining("[redacted:MY_TOKEN]") });
  expect(inspect(refused)).not.toContain(SECRET);
  expect((await second.resume(changed, handle.runId, { allowChanged: true, by: `me ${SECRET}` })).status).toBe(
    "completed",
  );
  const fork = await second.fork(pipelineOf(`Bash(wget ${SECRET})`), handle.runId, {
    from: "work#1",
    allowChanged: true,
  });
  const journals = [handle.runId, fork.runId].map((runId) => second.host.journal(runId));
  expect(JSON.stringify(await Promise.all(journals))).not.toContain(SECRET);
  const [resumed] = dataOf(await eventsOf(second.host, handle.runId), "run.resumed");
  expect(JSON.stringify(resumed?.changed)).toContain("Bash(curl [redacted:MY_TOKEN] *)");

  const report = await replayRun(pipelineOf(`Bash(rm ${SECRET})`), await second.host.journal(handle.runId), {
    env: { MY_TOKEN: SECRET },
  });
  expect(report.changes.join()).toContain("Bash(rm [redacted:MY_TOKEN])");
  expect(inspect(report, { depth: 9 })).not.toContain(SECRET);
});

test("what a run starts with, in whatever place: never carries a known secret into the record", async () => {
  const live = session({ env: { MY_TOKEN: SECRET }, model, tools: [tool("Note")] });
  const pipe = working({ id: "p", allowedTools: ["Note"] });
  const run = live.start(
    pipe,
    { task: `input ${SECRET}` },
    { from: { state: "work", input: { note: `from ${SECRET}` } }, settings: { note: `settings ${SECRET}` } },
  );
  expect((await run).status).toBe("completed");
  const fork = await live.fork(pipe, run.runId, { from: "work#1", settings: { note: `fork ${SECRET}` } });
  const journals = [run.runId, fork.runId].map((runId) => live.host.journal(runId));
  expect(JSON.stringify(await Promise.all(journals))).not.toContain(SECRET);
  const [started] = dataOf(await eventsOf(live.host, run.runId), "run.started");
  expect(started).toMatchObject({
    from: { state: "work", input: { note: "from [redacted:MY_TOKEN]" } },
    settings: { note: "settings [redacted:MY_TOKEN]" },
  });
});
