import {
  type ActScope,
  done,
  type Json,
  type JsonObject,
  pipeline,
  type RunHost,
  type SluiceEvent,
} from "@sluice/core";
import { startedUnsandboxed } from "@sluice/core/gate";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { expect, test } from "vitest";
import { z } from "zod";
import { answersIn, open, sent } from "../support/answers-kit.ts";
import { handClock } from "../support/hand-clock.ts";
import { completed, eventsOf, json, noModel, session, type TestSession, tool, work } from "../support/run-kit.ts";
import { failingAt } from "../support/stopped-runs.ts";

// A process without a sandbox can answer the requests of its run. It may outlive the process of Sluice that started it.

/** A run that starts something, then asks for `Deploy`, which another process approves without a proof after a restart. */
async function afterRestart(start: (scope: ActScope) => Promise<unknown>, killed = false) {
  const memory = createMemoryJournals();
  const clock = handClock();
  const ran: Json[] = [];
  const execute = async (_: unknown, call: { startsUnwalled(): void }) => {
    call.startsUnwalled();
    return { ok: true, output: "started" };
  };
  const tools = [
    tool("Escape", { execute }),
    tool("Look", { effect: "read", execute }),
    tool("Stay"),
    tool("Deploy", { execute: async (given) => ({ ok: true, output: ran.push(given) }) }),
  ];
  const state = work({
    allowedTools: ["Escape", "Look", "Stay"],
    act: async (scope) => {
      await start(scope);
      const [outcome] = await scope.calls(2, [{ id: "deploy", tool: "Deploy", input: {} }]);
      return completed(json(outcome?.output));
    },
  });
  const pipe = pipeline({
    id: "deploying",
    input: z.object({}),
    stages: { state },
    initial: "state",
    next: { state: ({ output }) => done(output) },
  });
  const opened = (host: () => RunHost): TestSession => session({ model: noModel, clock, tools, wait: true, host });
  const store = killed ? failingAt(memory.connect(), /turn\/1\/0\/call$/, "done") : memory.connect();
  const first = opened(() => createHost(store, { clock }));
  const run = first.start(pipe, {});
  const elsewhere = createHost(memory.connect(), { clock });
  if (killed) await expect(run).rejects.toMatchObject({ code: "store_io" });
  else {
    await open(elsewhere);
    await run.suspend();
    await run;
    await first.close();
  }
  await first.host.close();
  const events = await eventsOf(elsewhere, run.runId);
  // In the second process the call ends, and in the third one nothing else shows that it was cut short.
  for (const stops of killed ? [true, false] : [false]) {
    const next = opened(() => createHost(memory.connect(), { clock }));
    const resumed = next.resume(pipe, run.runId);
    const request = await open(elsewhere);
    if (stops) await resumed.suspend();
    else await sent(elsewhere, request);
    await resumed;
    await next.close();
    await next.host.close();
  }
  return { ran, events, answers: await answersIn({ host: elsewhere }, run.runId) };
}

const call =
  (name: string) =>
  (scope: ActScope): Promise<unknown> =>
    scope.calls(1, [{ id: "first", tool: name, input: {} }]);

test("after a restart, an approval without a proof never counts if a kind started a process without a sandbox in a recorded step", async () => {
  const { ran, answers } = await afterRestart(({ steps, startsUnwalled }) =>
    steps.run("start", () => {
      startsUnwalled();
      return 1;
    }),
  );
  expect([ran, answers]).toEqual([[], [["deny", "elsewhere", "missing"]]]);
});

test("after a restart, an approval without a proof never counts if a kind started a process without a sandbox between its steps", async () => {
  const { ran, answers } = await afterRestart(async ({ startsUnwalled }) => startsUnwalled());
  expect([ran, answers]).toEqual([[], [["deny", "elsewhere", "missing"]]]);
});

test.each([
  ["started a process without a sandbox", "Escape", true],
  ["did not say what it started", "Stay", true],
  ["did not say what it started, without a kill", "Stay", false],
])("after a restart, an approval without a proof never counts if a tool of one's own %s", async (_, name, killed) => {
  const { ran, events, answers } = await afterRestart(call(name), killed);
  expect([ran, answers]).toEqual([[], [["deny", "elsewhere", "missing"]]]);
  // Its process says for itself what it has started.
  expect([startedUnsandboxed(events, false), startedUnsandboxed(events, true)]).toEqual([true, false]);
});

test("an answer that a process left behind never counts for a sibling that takes it before the tool says again what it starts", async () => {
  const { ran, answers } = await afterRestart(async ({ calls, steps }) => {
    await steps.run("first", () => 1);
    await calls(1, [{ id: "first", tool: "Look", input: {} }]);
  }, true);
  expect([ran, answers]).toEqual([[], [["deny", "elsewhere", "missing"]]]);
});

test("a run in which an agent of class advisory works takes no approval without a proof from its start on", () => {
  const started = (facts: JsonObject): SluiceEvent => ({
    ...{
      type: "run.started",
      id: "r/1/0",
      runId: "r",
      at: 0,
      data: { pipeline: "p", sandbox: { mode: "try" }, ...facts },
    },
  });
  const advisory = { name: "x", class: "advisory" };
  const hard = { name: "x", class: "hard" };
  const seen = [{}, { agent: hard }, { agent: advisory }, { agents: [hard, advisory] }].map((facts) =>
    startedUnsandboxed([started(facts)], true),
  );
  expect(seen).toEqual([false, false, true, true]);
});
