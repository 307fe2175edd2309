import {
  done,
  fanOut,
  type GuardHook,
  pipeline,
  type SluiceEvent,
  type State,
  stage,
  withJsonSchema,
} from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore } from "@sluice/core/host";
import { type ResolvedModel, replayRun } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { handClock } from "../support/hand-clock.ts";
import {
  caller,
  completed,
  dataOf,
  eventsOf,
  eventually,
  noModel,
  phasesOf,
  quiet,
  session,
  type TestSession,
  tool,
  twoHosts,
  work,
  workExecutor,
} from "../support/run-kit.ts";

const input = z.object({ task: z.string() });
const task = { task: "t" };
const never = new Promise<never>(() => undefined);

/** A promise that hangs, and one that resolves when someone waits for it. */
function reached(): { readonly here: Promise<void>; readonly hang: () => Promise<never> } {
  let arrive = (): void => undefined;
  const here = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  return {
    here,
    hang: () => {
      arrive();
      return never;
    },
  };
}

function one<I>(state: State<unknown, I>) {
  return pipeline({ id: "one", input, stages: { one: state }, initial: "one", next: { one: () => done("done") } });
}

/** Cancels and turns the clock by no more than 100 ms; the run has to end in that. */
async function cancelAt(live: TestSession, pipe: ReturnType<typeof one>, here: () => unknown) {
  const handle = live.start(pipe, task);
  await here();
  const ended = handle.cancel("enough");
  let over = false;
  void ended.then(() => {
    over = true;
  });
  for (let ms = 0; ms < 100 && !over; ms += 10) {
    await quiet();
    if (!over) live.clock.turn(10);
  }
  await eventually(() => over, "the end of the run within 100 ms");
  const result = await handle;
  return { result, events: await eventsOf(live.host, handle.runId) };
}

describe("a cancelled run ends within 100 ms", () => {
  test.each(["setup", "precondition", "assert"] as const)("while its %s hook hangs; exit still runs", async (phase) => {
    const at = reached();
    const exits: string[] = [];
    const state = work({ [phase]: () => at.hang(), exit: ({ status }) => void exits.push(status) });
    const live = session({ model: noModel });
    const { result, events } = await cancelAt(live, one(state), () => at.here);
    expect(result).toMatchObject({ status: "cancelled", error: { code: "cancelled", message: "enough" } });
    expect(exits).toEqual(["cancelled"]);
    const walk = phasesOf(events);
    expect(walk.filter((name) => name.endsWith("entered")).length).toBe(
      walk.filter((name) => name.endsWith("left")).length,
    );
    expect(walk).not.toContain("stage.next entered");
  });

  test("while its route hangs", async () => {
    const at = reached();
    const hang = (): never => unsettled(at.hang());
    const pipe = pipeline({ id: "one", input, stages: { one: work() }, initial: "one", next: { one: hang } });
    const live = session({ model: noModel });
    const { result } = await cancelAt(live, pipe, () => at.here);
    expect(result).toMatchObject({ status: "cancelled", stages: [{ status: "completed" }] });
  });

  test("while the schema of its first input hangs: it enters no state, and replays", async () => {
    const at = reached();
    let checks = 0;
    // The session checks the input before the run begins, and the run does in its first step.
    const standard = {
      version: 1,
      vendor: "own",
      types: undefined,
      validate: (value: unknown) => {
        checks += 1;
        return checks === 2 ? at.hang() : { value };
      },
    };
    const inputSchema = withJsonSchema({ "~standard": standard }, {});
    const pipe = one(work({ inputSchema }));
    const live = session({ model: noModel });
    const { result, events } = await cancelAt(live, pipe, () => at.here);
    expect(result).toMatchObject({ status: "cancelled", error: { message: "enough" }, stages: [] });
    expect(phasesOf(events)).toEqual([]);
    const journals = await live.host.journal(result.runId);
    expect(await replayRun(pipe, journals, { env: {}, executors: [workExecutor] })).toMatchObject({ identical: true });
  });

  test("while it waits at its gate", async () => {
    const live = session({ model: noModel });
    const state = work({ precondition: () => ({ retryAfterMs: 3_600_000 }) });
    const { result } = await cancelAt(live, one(state), () => eventually(() => live.clock.waiting() === 1));
    expect(result).toMatchObject({ status: "cancelled", stages: [{ status: "cancelled", reason: "enough" }] });
    expect(live.clock.waiting()).toBe(0);
  });

  test("while its model hangs and ignores the abort", async () => {
    const at = reached();
    const hanging: ResolvedModel = {
      id: "hanging",
      secrets: [],
      at: () => ({
        specificationVersion: "v4",
        provider: "hanging",
        modelId: "hanging",
        supportedUrls: {},
        doGenerate: () => never,
        doStream: () => at.hang(),
      }),
    };
    const state = stage({
      prompt: "Work.",
      completionTool: "finish",
      completionSchema: z.object({}),
      turnCap: 3,
      allowedTools: [],
    });
    const { result } = await cancelAt(session({ model: hanging }), one(state), () => at.here);
    expect(result).toMatchObject({ status: "cancelled", stages: [{ status: "cancelled", reason: "enough" }] });
  });

  test.each(["read", "write"] as const)(
    "while a %s tool that ignores its abort signal is at work; its lock is kept until the tool ends",
    async (effect) => {
      let settle = (): void => undefined;
      const at = reached();
      const stuck = tool("Stuck", {
        effect,
        execute: () => {
          void at.hang();
          return new Promise((resolve) => {
            settle = () => resolve({ ok: true, output: "too late" });
          });
        },
      });
      const outputs: unknown[] = [];
      const state = work({
        allowedTools: ["Stuck"],
        act: async (scope) => {
          outputs.push(await caller(scope)("Stuck"));
          return completed(null);
        },
      });
      const memory = createMemoryJournals();
      const clock = handClock();
      const live = session({ model: noModel, tools: [stuck], clock, host: createHost(memory.connect(), { clock }) });
      const owner = async (runId: string) => (await memory.connect().run(runId))?.owner;
      const { result, events } = await cancelAt(live, one(state), () => at.here);
      expect(result.status).toBe("cancelled");
      expect(outputs).toMatchObject([{ code: "call_aborted" }]);
      expect(dataOf(events, "call.finished")).toMatchObject([{ tool: "Stuck", outcome: "abandoned" }]);
      expect(await owner(result.runId)).toMatchObject({ live: true });
      settle();
      await eventually(async () => (await owner(result.runId)) === undefined, "the lock was let go");
      expect(dataOf(await eventsOf(live.host, result.runId), "call.finished")).toHaveLength(1);
    },
  );

  test("while a tool that listens is at work: what it says is its result", async () => {
    const at = reached();
    const polite = tool("Polite", {
      execute: async (_input, { signal }) => {
        void at.hang();
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        return { ok: false, output: "stopped in time" };
      },
    });
    const state = work({ allowedTools: ["Polite"], act: async (scope) => completed(await caller(scope)("Polite")) });
    const { result, events } = await cancelAt(session({ model: noModel, tools: [polite] }), one(state), () => at.here);
    expect(result.status).toBe("cancelled");
    expect(dataOf(events, "call.finished")).toMatchObject([{ outcome: "error" }]);
  });

  test("while a grant prompt is open: the prompt is withdrawn, the request expires, the call never runs", async () => {
    const at = reached();
    let withdrawn = false;
    const ran: string[] = [];
    const live = session({
      model: noModel,
      tools: [tool("Deploy", { execute: async () => ({ ok: true, output: ran.push("Deploy") }) })],
      interactors: [
        {
          name: "screen",
          answer: async (_request, signal) => {
            signal.addEventListener("abort", () => {
              withdrawn = true;
            });
            return await at.hang();
          },
        },
      ],
    });
    const state = work({ allowedTools: [], act: async (scope) => completed(await caller(scope)("Deploy")) });
    const { result, events } = await cancelAt(live, one(state), () => at.here);
    expect(result).toMatchObject({ status: "cancelled", denied: [] });
    expect(withdrawn).toBe(true);
    expect(ran).toEqual([]);
    expect(dataOf(events, "grant.expired")).toMatchObject([{ cause: "cancelled" }]);
    expect(dataOf(events, "grant.answered")).toEqual([]);
    expect(await live.host.requests()).toEqual([]);
  });

  test("while a question to a person is open", async () => {
    const at = reached();
    const live = session({ model: noModel, interactors: [{ name: "screen", answer: () => at.hang() }] });
    const state = work({
      allowedTools: ["AskUser"],
      act: async (scope) => completed(await caller(scope)("AskUser", { question: "Why?" })),
    });
    const { result, events } = await cancelAt(live, one(state), () => at.here);
    expect(result.status).toBe("cancelled");
    expect(dataOf(events, "request.expired")).toMatchObject([{ cause: "cancelled" }]);
    expect(await live.host.requests()).toEqual([]);
  });

  test("while a guard hook hangs: the call it was asked about never runs", async () => {
    const at = reached();
    const ran: string[] = [];
    const hang: GuardHook = () => at.hang();
    const live = session({
      model: noModel,
      onCall: hang,
      tools: [tool("Edits", { execute: async () => ({ ok: true, output: ran.push("Edits") }) })],
    });
    const state = work({ allowedTools: ["Edits"], act: async (scope) => completed(await caller(scope)("Edits")) });
    const { result } = await cancelAt(live, one(state), () => at.here);
    expect(result.status).toBe("cancelled");
    expect(ran).toEqual([]);
  });

  test("while a tool prepares for ever", async () => {
    const at = reached();
    const ran: string[] = [];
    const slow = tool("Slow", {
      prepare: () => at.hang(),
      execute: async () => ({ ok: true, output: ran.push("Slow") }),
    });
    const state = work({ allowedTools: ["Slow"], act: async (scope) => completed(await caller(scope)("Slow")) });
    const { result } = await cancelAt(session({ model: noModel, tools: [slow] }), one(state), () => at.here);
    expect(result.status).toBe("cancelled");
    expect(ran).toEqual([]);
  });

  test("while reads wait for their turn: those never begin, and each call has its outcome", async () => {
    const at = reached();
    let begun = 0;
    const slow = tool("Slow", {
      effect: "read",
      execute: async (_input, { signal }) => {
        begun += 1;
        if (begun === 8) void at.hang();
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
        return { ok: false, output: "stopped" };
      },
    });
    const outcomes: unknown[] = [];
    const state = work({
      allowedTools: ["Slow"],
      act: async (scope) => {
        const calls = Array.from({ length: 12 }, (_, n) => ({ id: `t1.c${n}`, tool: "Slow", input: { n } }));
        outcomes.push(...(await scope.calls(1, calls)).map(({ id, output }) => [id, output]));
        return completed(null);
      },
    });
    const { result } = await cancelAt(session({ model: noModel, tools: [slow] }), one(state), () => at.here);
    expect(result.status).toBe("cancelled");
    expect(begun).toBe(8);
    expect(outcomes).toHaveLength(12);
    expect(outcomes.slice(8)).toMatchObject([8, 9, 10, 11].map((n) => [`t1.c${n}`, { code: "call_aborted" }]));
  });

  test("while it waits for a place", async () => {
    const at = reached();
    const live = session({ model: noModel, maxParallel: 1 });
    const first = live.start(one(work({ act: () => at.hang() })), task);
    await at.here;
    const { result } = await cancelAt(live, one(work({ setup: () => "never" })), quiet);
    expect(result).toMatchObject({ status: "cancelled" });
    expect(phasesOf(await eventsOf(live.host, result.runId))).not.toContain("stage.act entered");
    await first.suspend();
  });

  test("while its executor ignores its abort signal; what it still asks for is refused", async () => {
    const at = reached();
    let go = (): void => undefined;
    const late: unknown[] = [];
    const state = work({
      act: async ({ steps }) => {
        void at.hang();
        await new Promise<void>((resolve) => {
          go = resolve;
        });
        await steps.run("late", () => null).catch((thrown: unknown) => late.push(thrown));
        return completed("too late");
      },
    });
    const live = session({ model: noModel });
    const { result } = await cancelAt(live, one(state), () => at.here);
    expect(result).toMatchObject({ status: "cancelled", stages: [{ status: "cancelled", reason: "enough" }] });
    go();
    await eventually(() => late.length === 1);
    expect(late).toMatchObject([{ code: "attempt_over" }]);
    await eventsOf(live.host, result.runId);
  });

  test("with all its siblings, each of them in another phase", async () => {
    const setup = reached();
    const prompt = reached();
    const stuck = reached();
    const live = session({
      model: noModel,
      maxParallel: 8,
      tools: [tool("Deploy"), tool("Stuck", { execute: () => stuck.hang() })],
      interactors: [{ name: "screen", answer: () => prompt.hang() }],
    });
    const pipe = pipeline({
      id: "p",
      input,
      stages: {
        one: work(),
        a: work({ setup: () => setup.hang() }),
        b: work({ allowedTools: [], act: async (scope) => completed(await caller(scope)("Deploy")) }),
        c: work({ allowedTools: ["Stuck"], act: async (scope) => completed(await caller(scope)("Stuck")) }),
        d: work({ act: () => completed("done before") }),
        join: work(),
      },
      initial: "one",
      next: { one: () => fanOut(["a", "b", "c", "d"], { join: "join" }), join: () => done("done") },
    });
    const { result } = await cancelAt(live, pipe, () => Promise.all([setup.here, prompt.here, stuck.here]));
    expect(result).toMatchObject({ status: "cancelled" });
    expect(result.stages.map(({ executionId, status }) => `${executionId} ${status}`)).toEqual([
      "one#1 completed",
      "a#1 cancelled",
      "b#1 cancelled",
      "c#1 cancelled",
      "d#1 completed",
    ]);
  });
});

/** A route is typed as synchronous; JavaScript may return a promise all the same. */
function unsettled(promise: Promise<never>): never {
  const holder: { value: never } = JSON.parse('{"value":null}');
  Object.assign(holder, { value: promise });
  return holder.value;
}

test("an exit hook of a cancelled state has its five seconds", async () => {
  const at = reached();
  const exit = reached();
  const live = session({ model: noModel });
  const handle = live.start(one(work({ setup: () => at.hang(), exit: () => exit.hang() })), task);
  await at.here;
  const ended = handle.cancel("enough");
  await exit.here;
  live.clock.turn(4_999);
  await quiet();
  expect(await live.host.get(handle.runId)).toMatchObject({ status: "running" });
  live.clock.turn(1);
  await ended;
  expect(await handle).toMatchObject({ status: "cancelled" });
});

test("after a cancel nothing more is judged and nothing more runs", async () => {
  const ran: string[] = [];
  const live = session({
    model: noModel,
    tools: [
      tool("First", {
        execute: async (_input, { runId }) => {
          ran.push("First");
          await live.host.cancel(runId, "enough", "test");
          return { ok: true, output: "done" };
        },
      }),
      tool("Second", { execute: async () => ({ ok: true, output: ran.push("Second") }) }),
    ],
  });
  const outcomes: unknown[] = [];
  const state = work({
    allowedTools: ["First", "Second"],
    act: async (scope) => {
      outcomes.push(
        ...(await scope.calls(1, [
          { id: "t1.c0", tool: "First", input: {} },
          { id: "t1.c1", tool: "Second", input: {} },
        ])),
      );
      return completed(null);
    },
  });
  const handle = live.start(one(state), task);
  expect(await handle).toMatchObject({ status: "cancelled" });
  expect(ran).toEqual(["First"]);
  // One outcome for each call, whatever became of it.
  expect(outcomes).toMatchObject([
    { id: "t1.c0", ok: true },
    { id: "t1.c1", ok: false, output: { code: "call_not_run" } },
  ]);
  expect(dataOf(await eventsOf(live.host, handle.runId), "call.decided").map((data) => data.tool)).toEqual(["First"]);
});

/** A store whose commits wait for the test: `hold()` before, the returned function lets them go. */
function slowStore(store: JournalStore): {
  readonly store: JournalStore;
  hold(stepId: RegExp): { readonly here: Promise<void>; go(): void };
} {
  let held: { stepId: RegExp; arrive: () => void; gone: Promise<void> } | undefined;
  return {
    store: {
      ...store,
      append: async (commit) => {
        if (held?.stepId.test(commit.record.stepId) === true && commit.record.phase === "done") {
          held.arrive();
          await held.gone;
        }
        await store.append(commit);
      },
    },
    hold: (stepId) => {
      let arrive = (): void => undefined;
      let go = (): void => undefined;
      const here = new Promise<void>((resolve) => {
        arrive = resolve;
      });
      const gone = new Promise<void>((resolve) => {
        go = resolve;
      });
      held = { stepId, arrive, gone };
      return { here, go };
    },
  };
}

test.each([/\/leave$/, /^fan-1$/, /\/enter$/])(
  "a run that is suspended while %s is being written is suspended, never cancelled, and goes on elsewhere",
  async (stepId) => {
    const clock = handClock();
    const memory = createMemoryJournals();
    const slow = slowStore(memory.connect());
    const exits: string[] = [];
    const state = work({ exit: ({ status }) => void exits.push(status) });
    const pipe = pipeline({
      id: "p",
      input,
      stages: { one: state, a: state, b: state, two: state },
      initial: "one",
      next: { one: () => fanOut(["a", "b"], { join: "two" }), two: () => done("done") },
    });
    const first = session({ model: noModel, clock, host: createHost(slow.store, { clock }) });
    const at = slow.hold(stepId);
    const handle = first.start(pipe, task);
    await at.here;
    const suspending = handle.suspend();
    at.go();
    await suspending;
    expect(await handle).toMatchObject({ status: "suspended" });
    const second = session({ model: noModel, clock, host: createHost(memory.connect(), { clock }) });
    const result = await second.resume(pipe, handle.runId);
    expect(result).toMatchObject({ status: "completed", output: "done" });
    expect(exits).not.toContain("cancelled");
    const finished = (await eventsOf(second.host, handle.runId)).filter(isRootEnd(handle.runId));
    expect(finished).toHaveLength(1);
  },
);

function isRootEnd(runId: string): (event: SluiceEvent) => boolean {
  return (event) => event.type === "run.finished" && event.runId === runId;
}

test("suspending runs no exit hook and decides nothing: an open request stays open, and its answer is taken elsewhere", async () => {
  const { clock, first, second } = twoHosts();
  const log: string[] = [];
  const deploy = tool("Deploy", { execute: async () => ({ ok: true, output: log.push("Deploy ran") }) });
  const pipe = one(
    work({
      allowedTools: [],
      setup: () => log.push("setup"),
      act: async (scope) => completed(await caller(scope)("Deploy", { to: "staging" })),
      exit: () => void log.push("exit"),
    }),
  );
  const here = session({ model: noModel, clock, host: first, wait: true, tools: [deploy] });
  const handle = here.start(pipe, task);
  await eventually(async () => (await second.requests()).length === 1);
  await handle.suspend();
  const suspended = await handle;
  expect(suspended).toMatchObject({ status: "suspended", waitingFor: [{ kind: "grantStageTool" }] });
  expect(log).toEqual(["setup"]);
  const [request] = await second.requests(handle.runId);
  const name = `request/${request?.requestId}`;
  const payload = { kind: "approve", digest: request?.digest ?? "" };
  expect(await second.signal(handle.runId, { name, payload, by: "a colleague" })).toBe("accepted");
  const there = session({ model: noModel, clock, host: second, wait: true, tools: [deploy] });
  expect(await there.resume(pipe, handle.runId)).toMatchObject({ status: "completed" });
  expect(log).toEqual(["setup", "Deploy ran", "exit"]);
  const events = await eventsOf(second, handle.runId);
  expect(dataOf(events, "grant.answered")).toMatchObject([{ answer: "approve", by: "a colleague" }]);
  expect(dataOf(events, "grant.consumed")).toHaveLength(1);
});

test("a writing call has five seconds when its run is suspended; one that continues keeps the run owned until it ends", async () => {
  const { clock, first, second } = twoHosts();
  const at = reached();
  let settle = (): void => undefined;
  const stubborn = tool("Stubborn", {
    execute: () => {
      void at.hang();
      return new Promise((resolve) => {
        settle = () => resolve({ ok: true, output: "done at last" });
      });
    },
    prepare: () => ({ before: 1 }),
    recover: () => "done",
  });
  const pipe = one(
    work({ allowedTools: ["Stubborn"], act: async (scope) => completed(await caller(scope)("Stubborn")) }),
  );
  const here = session({ model: noModel, clock, host: first, tools: [stubborn] });
  const handle = here.start(pipe, task);
  await at.here;
  const suspending = handle.suspend();
  await quiet();
  clock.turn(4_999);
  await quiet();
  expect(await second.get(handle.runId)).toMatchObject({ status: "running" });
  for (let ms = 0; ms < 100; ms += 10) {
    clock.turn(10);
    await quiet();
  }
  await suspending;
  const there = session({ model: noModel, clock, host: second, tools: [stubborn] });
  await expect(there.resume(pipe, handle.runId)).rejects.toMatchObject({ code: "run_owned" });
  settle();
  await eventually(async () => (await second.get(handle.runId))?.status === "suspended");
  expect(await there.resume(pipe, handle.runId)).toMatchObject({ status: "completed" });
  expect(dataOf(await eventsOf(second, handle.runId), "call.finished")).toMatchObject([{ outcome: "recovered" }]);
});

test("a writing call that ends within its grace is recorded, and not repeated", async () => {
  const { clock, first, second } = twoHosts();
  const at = reached();
  let settle = (): void => undefined;
  let runs = 0;
  const quick = tool("Quick", {
    execute: () => {
      runs += 1;
      void at.hang();
      return new Promise((resolve) => {
        settle = () => resolve({ ok: true, output: "done" });
      });
    },
  });
  const pipe = one(work({ allowedTools: ["Quick"], act: async (scope) => completed(await caller(scope)("Quick")) }));
  const here = session({ model: noModel, clock, host: first, tools: [quick] });
  const handle = here.start(pipe, task);
  await at.here;
  const suspending = handle.suspend();
  await quiet();
  settle();
  await suspending;
  const there = session({ model: noModel, clock, host: second, tools: [quick] });
  expect(await there.resume(pipe, handle.runId)).toMatchObject({ status: "completed", stages: [{ output: "done" }] });
  expect(runs).toBe(1);
});

test("a token or a call does not outlive its attempt: what an executor kept is refused", async () => {
  const live = session({ model: noModel, tools: [tool("Deploy")] });
  const kept: (() => Promise<unknown>)[] = [];
  const state = work({
    allowedTools: ["Deploy"],
    act: async (scope) => {
      kept.push(() => scope.calls(9, [{ id: "t9.c0", tool: "Deploy", input: {} }]));
      return completed(null);
    },
  });
  expect(await live.run(one(state), task)).toMatchObject({ status: "completed" });
  await expect(kept[0]?.()).rejects.toMatchObject({ code: "attempt_over" });
});
