import {
  type ActScope,
  type AnyState,
  done,
  fanOut,
  forEach,
  invoke,
  type JournalRecord,
  type Json,
  type Pipeline,
  pipeline,
  type RunHost,
  type RunLimits,
  type StateLimits,
  type StepCall,
  stage,
  to,
  type Usage,
} from "@sluice/core";
import { createHost, createMemoryJournals, readCost } from "@sluice/core/host";
import { recordedCosts } from "@sluice/core/runtime";
import { subPipeline } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { costInValue } from "../../packages/stages/src/agent/agent-steps.ts";
import { billedModel } from "../support/billed-model.ts";
import { handClock } from "../support/hand-clock.ts";
import {
  completed,
  eventually,
  json,
  noModel,
  quiet,
  session,
  tool,
  twoHosts,
  type WorkOptions,
  work,
} from "../support/run-kit.ts";
import { failingAt } from "../support/stopped-runs.ts";

const task = { task: "t" };
const ignore = (): void => undefined;
/** Until the process is stopped. */
const stopped = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
type Hang = (call: StepCall) => Promise<void>;
const pause = ({ steps }: ActScope, hang: Hang): Promise<null> =>
  steps.run("pause", (call) => hang(call).then(() => null));
const tokens = (inputTokens: number): Usage => ({ inputTokens, outputTokens: 0 });

function one(only: WorkOptions, limits: RunLimits = {}) {
  return pipeline({
    id: "one",
    input: z.object({ task: z.string() }),
    limits,
    stages: { one: work(only) },
    initial: "one",
    next: { one: ({ output }) => done(output) },
  });
}

const anyInput = { type: "object" } as const;
type Plain = Pipeline<Json, unknown>;
type Limited = (limits: RunLimits) => Plain;

/** A pipeline with a state that runs another one. */
function called(inner: Plain, limits: RunLimits = {}, ofState: StateLimits = {}): Plain {
  return pipeline({
    id: `calls-${inner.spec.id}`,
    input: anyInput,
    limits,
    pipelines: { inner },
    stages: { call: subPipeline({ pipeline: "inner", input: {}, limits: ofState }) },
    initial: "call",
    next: { call: () => done("ok") },
  });
}

/** A pipeline with a route that invokes another one. */
function invoked(inner: Plain, limits: RunLimits = {}): Plain {
  return pipeline({
    id: `invokes-${inner.spec.id}`,
    input: anyInput,
    limits,
    pipelines: { inner },
    stages: { start: work(), end: work() },
    initial: "start",
    transitions: [
      { from: "start", on: "success", to: invoke("inner", { onComplete: "end", onFail: "end" }) },
      { from: "end", on: "success", to: { stages: [], execution: "sequential" } },
    ],
  });
}

/** Spends tokens in one step, in the way that docs/extending.md shows. Returns the cap that was in its way. */
async function spends({ steps, budget }: ActScope, id: string, most: number, work?: Hang): Promise<string> {
  const spend = async (call: StepCall): Promise<readonly [string, number]> => {
    if (call.opened?.incarnation !== steps.incarnation) return ["lost", 0];
    const hit = budget.reserve(tokens(most));
    if (hit !== undefined) return [hit.limit, 0];
    await work?.(call);
    return ["spent", most];
  };
  const [outcome] = await steps.run(id, spend, {
    open: { events: [], cost: tokens(most) },
    cost: ([, used]) => tokens(used),
  });
  return outcome;
}

/** A run of a first process that hangs at the place where `act` calls `hang`; a second one resumes it. */
async function resumed(
  act: (scope: ActScope, hang: Hang) => Promise<Json>,
  { state = {}, run = {} }: { readonly state?: StateLimits; readonly run?: RunLimits },
): Promise<Json> {
  const { clock, first, second } = twoHosts();
  let isHanging = false;
  const hang: Hang = async ({ signal }) => {
    isHanging = true;
    await stopped(signal);
  };
  const of = (stop: Hang) => one({ limits: state, act: async (scope) => completed(await act(scope, stop)) }, run);
  const here = session({ model: noModel, clock, host: first });
  const handle = here.start(of(hang), task);
  await eventually(() => isHanging);
  await handle.suspend();
  const there = session({ model: noModel, clock, host: second });
  const result = await there.resume(
    of(async () => undefined),
    handle.runId,
  );
  return result.status === "completed" ? result.output : result.status;
}

describe("what an executor of any kind spent in an earlier process", () => {
  test.each([
    ["state.maxTokens", { state: { maxTokens: 100 } }],
    ["run.maxTokens", { run: { maxTokens: 100 } }],
  ])("counts against %s after a resume", async (limit, caps) => {
    const act = async (scope: ActScope, hang: Hang): Promise<Json> => {
      await spends(scope, "first", 60);
      await pause(scope, hang);
      return [await spends(scope, "second", 41), await spends(scope, "third", 40)];
    };
    expect(await resumed(act, caps)).toEqual([limit, "spent"]);
  });

  test("keeps a cap that was reached reached", async () => {
    const act = async (scope: ActScope, hang: Hang): Promise<Json> => {
      await spends(scope, "first", 100);
      await pause(scope, hang);
      return await spends(scope, "second", 1);
    };
    expect(await resumed(act, { run: { maxTokens: 100 } })).toBe("run.maxTokens");
  });

  test.each([
    ["state.maxTokens", { state: { maxTokens: 100 } }],
    ["run.maxTokens", { run: { maxTokens: 100 } }],
  ])("counts against %s in full if its process was lost in the middle", async (limit, caps) => {
    const act = async (scope: ActScope, hang: Hang): Promise<Json> => [
      await spends(scope, "first", 60, hang),
      await spends(scope, "second", 41),
      await spends(scope, "third", 40),
    ];
    expect(await resumed(act, caps)).toEqual(["lost", limit, "spent"]);
  });

  test("counts if a process without caps finished the step that was lost", async () => {
    const { clock, first, second } = twoHosts();
    const hanging: string[] = [];
    const act = (stop: string) => async (scope: ActScope) => {
      const hang =
        (place: string): Hang =>
        async ({ signal }) => {
          if (place !== stop) return;
          hanging.push(place);
          await stopped(signal);
        };
      const lost = await spends(scope, "first", 60, hang("in the call"));
      await pause(scope, hang("after it"));
      return completed([lost, await spends(scope, "second", 41)]);
    };
    const until = async (host: RunHost, stop: string, limits: RunLimits, runId?: string): Promise<string> => {
      const live = session({ model: noModel, clock, host });
      const pipe = one({ act: act(stop) }, limits);
      const handle = runId === undefined ? live.start(pipe, task) : live.resume(pipe, runId, { allowChanged: true });
      await eventually(() => hanging.at(-1) === stop);
      await handle.suspend();
      return handle.runId;
    };
    const runId = await until(first, "in the call", { maxTokens: 100 });
    await until(second, "after it", {}, runId);
    const last = session({ model: noModel, clock, host: first });
    const result = await last.resume(one({ act: act("nowhere") }, { maxTokens: 100 }), runId, { allowChanged: true });
    expect(result).toMatchObject({ output: ["lost", "run.maxTokens"] });
  });

  test("of five siblings is known to each of them before it spends again", async () => {
    const { clock, first, second } = twoHosts();
    const keys = ["a", "b", "c", "d", "e"];
    let hanging = 0;
    const sibling = (hang: Hang) =>
      work({
        act: async (scope) => {
          await spends(scope, "first", 10);
          await pause(scope, hang);
          return completed(await spends(scope, "second", 10, quiet));
        },
      });
    const of = (hang: Hang) => {
      const siblings = Object.fromEntries(keys.map((key) => [key, sibling(hang)]));
      const stages: Record<string, AnyState> = { ...siblings, start: work(), join: work() };
      return pipeline({
        id: "five",
        input: z.object({ task: z.string() }),
        limits: { maxTokens: 70 },
        stages,
        initial: "start",
        next: { start: () => fanOut(keys, { join: "join" }), join: () => done("ok") },
      });
    };
    const here = session({ model: noModel, clock, host: first, maxParallel: 5 });
    const handle = here.start(
      of(async ({ signal }) => {
        hanging += 1;
        await stopped(signal);
      }),
      task,
    );
    await eventually(() => hanging === 5);
    await handle.suspend();
    const there = session({ model: noModel, clock, host: second, maxParallel: 5 });
    const result = await there.resume(
      of(async () => undefined),
      handle.runId,
    );
    const outcomes = result.stages.flatMap((stage) =>
      "output" in stage && stage.output !== null ? [stage.output] : [],
    );
    // Fifty are spent, so ten fit twice.
    expect(outcomes.filter((outcome) => outcome === "spent")).toHaveLength(2);
    expect(outcomes.filter((outcome) => outcome === "run.maxTokens")).toHaveLength(3);
  });

  test.each([
    ["state.timeoutMs", { limits: { timeoutMs: 10_000 } }, {}],
    ["run.timeoutMs", {}, { timeoutMs: 10_000 }],
  ])("of %s counts too, without the time between the processes", async (limit, own, limits) => {
    const { clock, first, second } = twoHosts();
    let at = "";
    const act: WorkOptions["act"] = async ({ steps, deadline }) => {
      const sleep = (id: string) =>
        steps.run(id, (call) =>
          deadline.timed(call.signal, async (timed) => {
            at = id;
            await new Promise<void>((resolve) => {
              clock.after(6_000, resolve);
              timed.addEventListener("abort", () => resolve(), { once: true });
            });
            return deadline.exceeded()?.limit ?? "slept";
          }),
        );
      return completed([await sleep("first"), await sleep("second")]);
    };
    const pipe = one({ ...own, act }, limits);
    const handle = session({ model: noModel, clock, host: first }).start(pipe, task);
    await eventually(() => at === "first");
    clock.turn(6_000);
    await eventually(() => at === "second");
    await handle.suspend();
    clock.turn(1_000_000);
    at = "";
    const result = session({ model: noModel, clock, host: second }).resume(pipe, handle.runId);
    await eventually(() => at === "second");
    clock.turn(3_999);
    await quiet();
    expect(await second.get(handle.runId)).toMatchObject({ status: "running" });
    clock.turn(1);
    await quiet();
    // The sleep is over by itself after six seconds.
    clock.turn(2_000);
    expect(await result).toMatchObject({ status: "failed", stages: [{ code: "timeout", detail: { limit } }] });
  });

  const minute = { timeoutMs: 60_000 };
  test.each<readonly [string, limit: string, around: (list: Limited) => Plain]>([
    ["the run", "run", (list) => list(minute)],
    ["a pipeline that a state runs", "run", (list) => called(list(minute))],
    ["a pipeline that a route invokes", "run", (list) => invoked(list(minute))],
    ["a pipeline in another one", "run", (list) => called(called(list(minute)))],
    ["a pipeline around the one that has the items", "run", (list) => called(called(list({}), minute))],
    ["a pipeline that invokes the one that has the items", "run", (list) => called(invoked(list({}), minute))],
    ["a state that runs the pipeline", "caller", (list) => called(list({}), {}, minute)],
    ["a state around two pipelines", "caller", (list) => called(called(list({})), {}, minute)],
    ["a state in another pipeline", "caller", (list) => called(called(list({}), {}, minute))],
  ])("in time of items in parallel counts once for %s", async (_which, limit, around) => {
    const { clock, first, second } = twoHosts();
    const allWork = Promise.withResolvers<void>();
    let working = 0;
    const item = work({
      act: async ({ steps }) => {
        await steps.run("work", async () => {
          working += 1;
          if (working === 4) {
            clock.turn(20_000);
            allWork.resolve();
          }
          await allWork.promise;
          return null;
        });
        return completed(null);
      },
    });
    const reached: (string | undefined)[] = [];
    const last = (hang: Hang) =>
      work({
        act: async (scope) => {
          const { steps, deadline } = scope;
          await pause(scope, hang);
          const passes = (id: string, ms: number) =>
            steps.run(id, ({ signal }) =>
              deadline.timed(signal, async () => {
                clock.turn(ms);
                reached.push(deadline.exceeded()?.limit);
                return null;
              }),
            );
          await passes("within", 39_999);
          await passes("over", 1);
          return completed(null);
        },
      });
    const list = (hang: Hang) => (limits: RunLimits) =>
      pipeline({
        id: "list",
        input: anyInput,
        limits,
        stages: { start: work(), item, last: last(hang) },
        initial: "start",
        next: { start: () => forEach("item", [1, 2, 3, 4], { join: "last" }), last: () => done("ok") },
      });
    const of = (hang: Hang) => around(list(hang));
    let isHanging = false;
    const hanging = of(async ({ signal }) => {
      isHanging = true;
      await stopped(signal);
    });
    const here = session({ model: noModel, clock, host: first, maxParallel: 4 });
    const handle = here.start(hanging, {});
    await eventually(() => isHanging);
    await handle.suspend();
    await session({ model: noModel, clock, host: second }).resume(
      of(async () => undefined),
      handle.runId,
    );
    expect(reached).toEqual([undefined, `${limit}.timeoutMs`]);
  });
});

test.each<readonly [where: string, of: (inner: Plain, limits: RunLimits) => Plain]>([
  ["the run", (inner, limits) => called(inner, limits)],
  ["the state that runs a pipeline", (inner, limits) => called(inner, {}, limits)],
])("the time of processes without caps counts once %s has one", async (_where, of) => {
  const { clock, first, second } = twoHosts();
  let [process, isHanging] = [1, false];
  // Each process works for a minute, and hangs in its second step.
  const minutes = async ({ steps }: ActScope): Promise<Json> => {
    for (let minute = 1; minute <= 3; minute += 1) {
      await steps.run(`minute/${minute}`, async ({ signal }) => {
        isHanging = minute > process;
        if (isHanging) return await stopped(signal).then(() => null);
        clock.turn(60_000);
        return null;
      });
    }
    return "worked";
  };
  const inner = pipeline({
    id: "inner",
    input: anyInput,
    stages: { unit: work({ act: async (scope) => completed(await minutes(scope)) }) },
    initial: "unit",
    next: { unit: ({ output }) => done(output) },
  });
  const limited = (limits: RunLimits): Plain => of(inner, limits);
  const here = session({ model: noModel, clock, host: first });
  const handle = here.start(limited({}), {});
  await eventually(() => isHanging);
  await handle.suspend();
  process = 2;
  isHanging = false;
  const again = here.resume(limited({}), handle.runId);
  await eventually(() => isHanging);
  await again.suspend();
  process = 3;
  const there = session({ model: noModel, clock, host: second });
  const capped = there.resume(limited({ timeoutMs: 150_000 }), handle.runId, { allowChanged: true });
  expect(await capped).toMatchObject({ stages: [{ status: "failed", detail: { code: "timeout" } }] });
});

test("of journals of earlier versions is read from the values of their model steps, lost calls included", async () => {
  const model = billedModel(({ turn }) =>
    turn < 2 ? { kind: "answer", tool: "Look", input: { turn }, used: { input: 100, output: 10 } } : { kind: "hang" },
  );
  const prices = { [model.id]: { input: 1_000, output: 10_000 } };
  const capped = stage({
    prompt: "p",
    allowedTools: ["Look"],
    completionTool: "finish",
    completionSchema: z.object({}),
    turnCap: 9,
    maxOutputTokens: 1_000,
  });
  const { spec, ...pipe } = pipeline({
    id: "older",
    input: z.object({ task: z.string() }),
    limits: { maxTokens: 100_000 },
    stages: { capped },
    initial: "capped",
    next: { capped: () => done("ok") },
  });
  const live = session({ model, prices, tools: [tool("Look", { effect: "read" })] });
  const handle = live.start({ spec, ...pipe }, task);
  await eventually(() => model.asked.length === 3);
  live.clock.turn(7);
  await handle.suspend();
  const journals = await live.host.journal(handle.runId);
  const costs = recordedCosts(journals, () => undefined);
  expect(costs.spent.tokens.spent).toBeGreaterThan(2 * 110 + 1_000);

  const older = journals.map(({ records, ...journal }) => ({
    ...journal,
    records: records.map((record): JournalRecord => {
      const cost = readCost(record);
      if (cost === undefined) return record;
      const events = JSON.stringify(JSON.parse(record.events).slice(1));
      const { stateMs = 0, runMs = 0, ...usage } = cost;
      const value = record.phase === "open" ? usage : { ...JSON.parse(record.value), elapsed: { stateMs, runMs } };
      return { ...record, events, value: JSON.stringify(value) };
    }),
  }));
  expect(recordedCosts(older, () => undefined).spent.tokens.spent).toBe(0);
  const { spent, runMs } = recordedCosts(older, costInValue);
  expect({ spent, runMs }).toEqual({ spent: costs.spent, runMs: costs.runMs });
});

test("the time of another pipeline in journals of earlier versions is that of its executions together", async () => {
  const clock = handClock();
  const passing = work({
    act: async ({ steps }) => {
      await steps.run("pass", () => {
        clock.turn(1_000);
        return null;
      });
      return completed(null);
    },
  });
  const inner = pipeline({
    id: "inner",
    input: anyInput,
    limits: { timeoutMs: 60_000 },
    stages: { one: passing, two: passing },
    initial: "one",
    next: { one: () => to("two"), two: () => done("ok") },
  });
  const outer = called(inner);
  const live = session({ model: noModel, clock });
  const { runId } = await live.run(outer, {});
  const journals = await live.host.journal(runId);
  const older = journals.map(({ records, ...journal }) => ({
    ...journal,
    records: records.map((record) => ({ ...record, events: record.events.replace(/,"aroundMs":\[[^\]]*\]/, "") })),
  }));
  expect(older).not.toEqual(journals);
  for (const read of [journals, older]) {
    const { ms } = recordedCosts(read, costInValue).tree(`${runId}/call#1:a1:run/inner`, 1);
    expect(ms).toBe(2_000);
  }
});

test("what a child spends after its run was read, and before the run is taken over, counts against the caps", async () => {
  const memory = createMemoryJournals();
  const clock = handClock();
  const [dying, going] = [Promise.withResolvers<null>(), { on: false }];
  const hang: Hang = ({ signal }) => (going.on ? Promise.resolve() : stopped(signal));
  const pipe = pipeline({
    id: "taken",
    input: z.object({}),
    limits: { maxTokens: 100 },
    stages: {
      start: work(),
      first: work({
        act: async (scope) => {
          if (!going.on) await dying.promise;
          const outcome = await spends(scope, "first", 60);
          await scope.steps.run("die", () => null);
          return completed(outcome);
        },
      }),
      second: work({
        act: async (scope) => {
          await pause(scope, hang);
          return completed(await spends(scope, "second", 41));
        },
      }),
      join: work({ act: ({ ctx }) => completed(json([ctx.upstream.first, ctx.upstream.second])) }),
    },
    initial: "start",
    next: { start: () => fanOut(["first", "second"], { join: "join" }), join: ({ output }) => done(output) },
  });
  const owner = createHost(failingAt(memory.connect(), /\/die$/), { clock });
  const handle = session({ model: noModel, clock, host: owner }).start(pipe, {});
  handle.then(ignore, ignore);
  const next = createHost(memory.connect(), { clock });
  await eventually(async () => (await next.tree(handle.runId)).length === 3, "the fan-out");
  let resumes = 0;
  const resume: RunHost["resume"] = async (...given) => {
    resumes += 1;
    if (resumes === 1) {
      // The journals were read; the owner goes on for a moment and dies without a record of its root.
      dying.resolve(null);
      await expect(handle).rejects.toMatchObject({ code: "store_io" });
      await owner.close();
      going.on = true;
    }
    return await next.resume(...given);
  };
  const result = await session({ model: noModel, clock, host: { ...next, resume } }).resume(pipe, handle.runId);
  expect(result).toMatchObject({ status: "completed", output: ["spent", "run.maxTokens"] });
  expect(resumes).toBe(2);
});
