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
import {
  completed,
  eventsOf,
  json,
  noModel,
  quiet,
  session,
  type TestSession,
  tool,
  work,
  workExecutor,
} from "../support/run-kit.ts";
import { failingAt } from "../support/stopped-runs.ts";

// A process without a sandbox can answer the requests of its run. It may outlive the process of Sluice that started it.

/** A run that starts something, then asks for `Deploy`, which another process approves without a proof after a restart. */
async function afterRestart(
  start: (scope: ActScope) => Promise<unknown>,
  { killed = false, declared = true, kind = false }: { killed?: boolean; declared?: boolean; kind?: boolean } = {},
) {
  const memory = createMemoryJournals();
  const clock = handClock();
  const ran: Json[] = [];
  const execute = async (_: unknown, call: { startsUnwalled(): void }) => {
    call.startsUnwalled();
    return { ok: true, output: "started" };
  };
  const tools = [
    ...(declared ? [tool("Escape", { execute, startsProcesses: true })] : [tool("Escape", { execute })]),
    ...(declared ? [tool("Look", { effect: "read", execute, startsProcesses: true })] : [tool("Look")]),
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
  const executors = kind ? [{ ...workExecutor, startsProcesses: true as const }] : [];
  const opened = (host: () => RunHost): TestSession =>
    session({ model: noModel, clock, tools, executors, wait: true, host });
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
    // It waits then: what came before is asked again.
    await quiet();
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

const MISSING = [[], [["deny", "elsewhere", "missing"]]];

test.each<[string, (scope: ActScope) => Promise<unknown>]>([
  [
    "in a recorded step",
    ({ steps, startsUnwalled }) =>
      steps.run("start", () => {
        startsUnwalled();
        return 1;
      }),
  ],
  ["between its steps", async ({ startsUnwalled }) => startsUnwalled()],
  ["that it does not report", async () => undefined],
])(
  "after a restart, an approval without a proof never counts if a kind may have started a process without a sandbox %s",
  async (_, start) => {
    const { ran, answers } = await afterRestart(start, { kind: true, declared: false });
    expect([ran, answers]).toEqual(MISSING);
  },
);

test.each([
  ["a writing tool", "Escape", true],
  ["a reading tool", "Look", true],
  ["a writing tool, without a kill", "Escape", false],
  ["a tool that was not called", "Stay", false],
])(
  "after a restart, an approval without a proof never counts if %s may have started a process without a sandbox",
  async (_, name, killed) => {
    const { ran, events, answers } = await afterRestart(call(name), { killed });
    expect([ran, answers]).toEqual(MISSING);
    // Of a run that another process executes, its process says for itself what it has started.
    if (killed) expect([startedUnsandboxed(events, false), startedUnsandboxed(events, true)]).toEqual([true, false]);
  },
);

test.each([true, false])(
  "after a restart, an approval from another process counts where no tool and no kind starts processes (killed: %s)",
  async (killed) => {
    const { ran, answers } = await afterRestart(call("Stay"), { killed, declared: false });
    expect([ran, answers]).toEqual([[{}], [["approve", "elsewhere", "sandboxed"]]]);
  },
);

test("a tool and a kind that have not declared it cannot say that they start a process", async () => {
  const said: unknown[] = [];
  await afterRestart(
    async ({ calls, startsUnwalled }) => {
      const [outcome] = await calls(1, [{ id: "first", tool: "Escape", input: {} }]);
      said.push(outcome?.ok, JSON.stringify(outcome?.output));
      try {
        startsUnwalled();
      } catch (thrown) {
        said.push(Object(thrown).code);
      }
    },
    { declared: false },
  );
  expect(said.slice(0, 3)).toEqual([false, expect.stringContaining("startsProcesses: true"), "process_undeclared"]);
});

test("a run that starts an agent of class advisory takes no approval without a proof from its start on", () => {
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
  const seen = [{}, { agents: [hard] }, { agent: advisory }, { agents: [hard, advisory] }].map((facts) =>
    startedUnsandboxed([started(facts)], true),
  );
  expect(seen).toEqual([false, false, false, true]);
});
