import { done, type Json, pipeline, type StageContext, to } from "@sluice/core";
import { expect, test } from "vitest";
import { z } from "zod";
import {
  cancelled,
  completed,
  dataOf,
  eventsOf,
  eventually,
  failed,
  noModel,
  phasesOf,
  quiet,
  session,
  twoHosts,
  type WorkOptions,
  work,
} from "../support/run-kit.ts";

const input = z.object({ task: z.string() });
const start = ["attempt.started", "stage.setup entered", "stage.setup left", "stage.init entered", "stage.init left"];
const gate = ["stage.precondition entered", "stage.precondition left"];
const act = ["stage.act entered", "stage.act left"];
const assert = ["stage.assert entered", "stage.assert left"];
const exit = ["attempt.finished", "stage.exit entered", "stage.exit left"];
const next = ["stage.next entered", "stage.next left"];
const walk = [...start, ...gate, ...act, ...assert];
const whole = [...walk, ...exit, ...next];

/** A pipeline of one state that ends as the state does. */
function one(state: ReturnType<typeof work>) {
  return pipeline({
    id: "one",
    input,
    stages: { one: state },
    initial: "one",
    next: { one: { completed: ({ output }) => done(output), skipped: () => done("skipped") } },
  });
}

async function run(state: ReturnType<typeof work>) {
  const live = session({ model: noModel });
  const result = await live.run(one(state), { task: "t" });
  return { result, events: await eventsOf(live.host, result.runId) };
}

test("a state walks through its phases in order, each with an event before and after", async () => {
  const asked: string[] = [];
  const { result, events } = await run(
    work({
      setup: () => {
        asked.push("setup");
        return null;
      },
      init: () => {
        asked.push("init");
        return "prompt";
      },
      precondition: () => {
        asked.push("gate");
        return "proceed";
      },
      act: (_scope, init) => {
        asked.push(`act on ${String(init)}`);
        return completed("made");
      },
      assert: () => {
        asked.push("assert");
        return "ok";
      },
      exit: () => {
        asked.push("exit");
      },
    }),
  );
  expect(result).toMatchObject({ status: "completed", output: "made" });
  expect(asked).toEqual(["setup", "init", "gate", "act on prompt", "assert", "exit"]);
  expect(phasesOf(events)).toEqual(whole);
  expect(events[0]?.type).toBe("run.started");
  expect(events.at(-1)).toMatchObject({ type: "run.finished", data: { status: "completed" } });
});

test("what setup returns is in the context of everything after it, as a copy of its own", async () => {
  const made = { files: ["a.ts"] };
  const seen: Json[] = [];
  const see = (ctx: StageContext): void => void seen.push(ctx.setup);
  await run(
    work({
      setup: (ctx) => {
        see(ctx);
        return made;
      },
      init: (ctx) => {
        see(ctx);
        return null;
      },
      precondition: (ctx) => {
        see(ctx);
        return "proceed";
      },
      act: ({ ctx }) => {
        see(ctx);
        return completed(null);
      },
      assert: (_result, ctx) => {
        see(ctx);
        return "ok";
      },
      exit: (_result, ctx) => see(ctx),
    }),
  );
  expect(seen).toEqual([null, made, made, made, made, made]);
  made.files.push("b.ts");
  expect(seen[1]).toEqual({ files: ["a.ts"] });
});

test("contexts and results are frozen to the bottom: a hook that writes to them fails its state and changes nothing", async () => {
  const writes: ((ctx: StageContext) => void)[] = [
    (ctx) => Object.assign(ctx, { task: "other" }),
    (ctx) => Object.assign(ctx.context, { admin: true }),
    (ctx) => Object.assign(ctx.run.input ?? {}, { task: "other" }),
    (ctx) => Object.assign(ctx.upstream, { plan: "other" }),
  ];
  for (const write of writes) {
    const { result } = await run(
      work({
        setup: (ctx) => {
          write(ctx);
          return null;
        },
      }),
    );
    expect(result).toMatchObject({ status: "failed", error: { code: "hook" } });
  }
  const { result } = await run(
    work({
      act: () => completed({ steps: ["a"] }),
      assert: (made) => {
        if (made.status === "completed") Object.assign(made.output ?? {}, { steps: [] });
        return "ok";
      },
    }),
  );
  expect(result).toMatchObject({ status: "failed", error: { code: "hook" } });
});

test.each([
  ["setup", { setup: () => Promise.reject(new Error("no disk")) }, ["attempt.started", ...start.slice(1, 3)]],
  ["init", { init: () => brokenPrompt() }, start],
  ["precondition", { precondition: () => brokenPrompt() }, [...start, ...gate]],
])("%s that throws fails the state with code hook; its phase still has both events", async (_hook, hooks, begun) => {
  let exited = 0;
  const { result, events } = await run(work({ ...hooks, exit: () => void exited++ }));
  expect(result).toMatchObject({
    status: "failed",
    error: { code: "hook", message: expect.stringContaining("no disk") },
  });
  expect(phasesOf(events)).toEqual([...begun, ...assert, ...exit, ...next]);
  expect(exited).toBe(1);
});

function brokenPrompt(): never {
  throw new Error("no disk");
}

const hostileHooks: readonly (readonly [string, WorkOptions])[] = [
  ["setup returns a function", { setup: () => hostile(() => 1) }],
  ["setup returns a date", { setup: () => hostile(new Date(0)) }],
  ["init returns what is not JSON", { init: () => hostile(Number.NaN) }],
  ["precondition returns nothing", { precondition: () => hostile(undefined) }],
  ["precondition returns a word it does not know", { precondition: () => hostile("later") }],
  ["precondition waits for no number", { precondition: () => hostile({ retryAfterMs: "soon" }) }],
  ["precondition waits for ever", { precondition: () => hostile({ retryAfterMs: Number.POSITIVE_INFINITY }) }],
  ["assert returns nothing", { assert: () => hostile(undefined) }],
  ["assert returns null", { assert: () => hostile(null) }],
  ["assert asks for a retry without feedback", { assert: () => hostile({ retry: true }) }],
  ["act completes with what is not JSON", { act: () => completed(hostile({ big: 1n })) }],
];
test.each(hostileHooks)("%s: the state fails with code hook, and the run ends", async (_what, hooks) => {
  const { result } = await run(work(hooks));
  expect(result).toMatchObject({ status: "failed", error: { code: "hook" } });
});

/** A value whose type is a lie, as user code in JavaScript may return. */
function hostile<T>(value: unknown): T {
  const holder: { value: T } = JSON.parse('{"value":null}');
  Object.assign(holder, { value });
  return holder.value;
}

test("a gate that says skip skips the work and the assert, and routes as skipped", async () => {
  const { result, events } = await run(
    work({
      precondition: () => "skip",
      act: () => failed("never here"),
      assert: () => ({ fail: "never here" }),
    }),
  );
  expect(result).toMatchObject({ status: "completed", output: "skipped", stages: [{ status: "skipped", turns: 0 }] });
  expect(phasesOf(events)).toEqual([...start, ...gate, ...exit, ...next]);
});

test("a gate that asks for later is asked again after its wait, by the recorded clock", async () => {
  const live = session({ model: noModel });
  let asked = 0;
  const state = work({
    precondition: () => {
      asked += 1;
      return asked < 3 ? { retryAfterMs: 60_000 } : "proceed";
    },
  });
  const handle = live.start(one(state), { task: "t" });
  for (const times of [1, 2]) {
    await eventually(() => live.clock.waiting() === 1);
    expect(asked).toBe(times);
    live.clock.turn(59_999);
    await quiet();
    expect(asked).toBe(times);
    live.clock.turn(1);
  }
  const result = await handle;
  expect(result).toMatchObject({ status: "completed", stages: [{ attempts: 1, ms: 120_000 }] });
  const events = await eventsOf(live.host, handle.runId);
  expect(dataOf(events, "stage.precondition").map((data) => data.answer ?? data.phase)).toEqual([
    "entered",
    "retry",
    "entered",
    "retry",
    "entered",
    "proceed",
  ]);
});

test("a gate that never proceeds fails the state with code gate after as many tries as it has attempts", async () => {
  const live = session({ model: noModel });
  let asked = 0;
  const state = work({
    retryPolicy: { maxAttempts: 2 },
    precondition: () => {
      asked += 1;
      return { retryAfterMs: 1_000 };
    },
  });
  const handle = live.start(one(state), { task: "t" });
  await eventually(() => live.clock.waiting() === 1);
  live.clock.turn(1_000);
  expect(await handle).toMatchObject({ status: "failed", error: { code: "precondition" } });
  expect(asked).toBe(2);
});

test("a run that waits at its gate is resumed by another process without asking for the wait again", async () => {
  const { clock, ...hosts } = twoHosts();
  let asked = 0;
  const pipe = one(
    work({
      precondition: () => {
        asked += 1;
        return asked === 1 ? { retryAfterMs: 5_000 } : "proceed";
      },
    }),
  );
  const first = session({ model: noModel, host: hosts.first, clock });
  const handle = first.start(pipe, { task: "t" });
  await eventually(() => clock.waiting() === 1);
  await handle.suspend();
  expect(await handle).toMatchObject({ status: "suspended", reason: "interrupted" });
  clock.turn(4_000);
  const second = session({ model: noModel, host: hosts.second, clock });
  const resumed = second.resume(pipe, handle.runId);
  await eventually(() => clock.waiting() === 1);
  expect(asked).toBe(1);
  clock.turn(1_000);
  expect(await resumed).toMatchObject({ status: "completed" });
  expect(asked).toBe(2);
});

test("assert may send an attempt back, with feedback and everything fresh, until no attempt is left", async () => {
  const seen: Json[] = [];
  let exited = 0;
  const { result, events } = await run(
    work({
      setup: (ctx) => `setup ${ctx.attempt}`,
      act: ({ ctx }) => {
        seen.push({ attempt: ctx.attempt, feedback: ctx.feedback ?? null, setup: ctx.setup });
        return completed(ctx.attempt);
      },
      assert: (made) => ({ retry: `${made.status === "completed" ? String(made.output) : ""} is not enough` }),
      exit: () => void exited++,
    }),
  );
  expect(seen).toEqual([
    { attempt: 1, feedback: null, setup: "setup 1" },
    { attempt: 2, feedback: "1 is not enough", setup: "setup 2" },
    { attempt: 3, feedback: "2 is not enough", setup: "setup 3" },
  ]);
  expect(result).toMatchObject({
    status: "failed",
    error: { code: "assert", message: expect.stringContaining("no attempt is left: 3 is not enough") },
    stages: [{ attempts: 3, executionId: "one#1" }],
  });
  expect(exited).toBe(1);
  expect(phasesOf(events)).toEqual([...walk, "attempt.finished", ...walk, "attempt.finished", ...whole]);
  expect(dataOf(events, "attempt.finished").map((data) => data.outcome)).toEqual(["retry", "retry", "failed"]);
});

test("assert decides how often by retryPolicy, and what it lets through is the result", async () => {
  const { result } = await run(
    work({
      retryPolicy: { maxAttempts: 5 },
      act: ({ ctx }) => completed(ctx.attempt),
      assert: (_made, ctx) => (ctx.attempt < 4 ? { retry: "more" } : "ok"),
    }),
  );
  expect(result).toMatchObject({ status: "completed", output: 4, stages: [{ attempts: 4 }] });
});

test("assert may fail what was completed", async () => {
  const { result } = await run(work({ assert: () => ({ fail: "the diff is empty" }) }));
  expect(result).toMatchObject({
    status: "failed",
    error: { code: "assert", message: expect.stringContaining("the diff is empty") },
  });
});

test("ok cannot turn a failure into a completed state", async () => {
  const { result } = await run(work({ act: () => failed("it broke"), assert: () => "ok" }));
  expect(result).toMatchObject({
    status: "failed",
    error: { code: "tool" },
    stages: [{ status: "failed", message: "it broke" }],
  });
});

test("a failure that assert sends back until the end keeps what failed first in its detail", async () => {
  const { result } = await run(work({ act: () => failed("it broke"), assert: () => ({ retry: "again" }) }));
  expect(result).toMatchObject({
    stages: [{ code: "assert", attempts: 3, detail: { failed: { code: "tool", message: "it broke" } } }],
  });
});

test("assert that throws fails the state with code hook", async () => {
  const { result } = await run(work({ assert: () => brokenPrompt() }));
  expect(result).toMatchObject({
    status: "failed",
    error: { code: "hook", message: expect.stringContaining("no disk") },
  });
});

test.each([
  ["completed", work({}), "completed"],
  ["failed", work({ act: () => failed("no") }), "failed"],
  ["skipped", work({ precondition: () => "skip" }), "skipped"],
  ["cancelled", work({ act: () => cancelled("enough") }), "cancelled"],
])("the exit hook runs once for a %s state and sees its result", async (_status, state, status) => {
  const seen: string[] = [];
  const spec = { ...state.spec, exit: (result: { status: string }) => void seen.push(result.status) };
  const live = session({ model: noModel });
  const result = await live.run(one({ kind: state.kind, spec }), { task: "t" });
  expect(seen).toEqual([status]);
  expect(result.stages).toMatchObject([{ status }]);
});

test("an exit hook that throws fails a completed state, and leaves a failed one as it failed", async () => {
  const exit = (): never => brokenPrompt();
  expect((await run(work({ exit }))).result).toMatchObject({ status: "failed", error: { code: "hook" } });
  const { result, events } = await run(work({ act: () => failed("it broke"), exit }));
  expect(result).toMatchObject({ status: "failed", error: { code: "tool" } });
  expect(dataOf(events, "stage.exit").at(-1)).toMatchObject({
    phase: "left",
    outcome: "failed",
    fault: expect.stringContaining("no disk"),
  });
});

test("an exit hook that hangs is given up after five seconds", async () => {
  const live = session({ model: noModel });
  const handle = live.start(one(work({ exit: () => new Promise(() => undefined) })), { task: "t" });
  await eventually(() => live.clock.waiting() === 1);
  live.clock.turn(4_999);
  await quiet();
  expect(live.clock.waiting()).toBe(1);
  live.clock.turn(1);
  expect(await handle).toMatchObject({
    status: "failed",
    error: { code: "hook", message: expect.stringContaining("5000 ms") },
  });
});

test("the context names the run, its task and input, the state's own input, and where it works", async () => {
  const seen: StageContext[] = [];
  const live = session({ model: noModel });
  const keep = work({
    act: ({ ctx }) => {
      seen.push(ctx);
      return completed(`out of ${ctx.visit}`);
    },
  });
  const two = work<string, { focus: string }>({
    inputSchema: z.object({ focus: z.string() }),
    act: ({ ctx }) => {
      seen.push(ctx);
      return completed("end");
    },
  });
  const pipe = pipeline({
    id: "two",
    input: z.object({ task: z.string(), depth: z.number() }),
    context: { round: 0 },
    stages: { keep, two },
    initial: "keep",
    next: {
      keep: ({ output }) => to("two", { focus: String(output) }, { context: { round: 1 } }),
      two: ({ output }) => done(output),
    },
  });
  const result = await live.run(pipe, { task: "look", depth: 2 });
  expect(result).toMatchObject({ status: "completed", output: "end" });
  const base = {
    runId: result.runId,
    task: "look",
    run: { input: { task: "look", depth: 2 } },
    workspace: import.meta.dirname.replace(/unit$/, "support"),
  };
  expect(seen).toEqual([
    {
      ...base,
      input: { task: "look", depth: 2 },
      upstream: {},
      context: { round: 0 },
      setup: null,
      attempt: 1,
      visit: 1,
    },
    {
      ...base,
      input: { focus: "out of 1" },
      upstream: { keep: "out of 1" },
      context: { round: 1 },
      setup: null,
      attempt: 1,
      visit: 1,
    },
  ]);
});

test("the initial state's input is the run's, as its own schema takes it", async () => {
  const first = work<Json, { task: string; depth: number }>({
    inputSchema: z.object({ task: z.string(), depth: z.number().default(7) }),
    act: ({ ctx }) => completed(JSON.stringify(ctx.input)),
  });
  const pipe = pipeline({
    id: "p",
    input: z.object({ task: z.string(), depth: z.number().optional() }),
    stages: { first },
    initial: "first",
    next: { first: ({ output }) => done(output) },
  });
  const live = session({ model: noModel });
  expect(await live.run(pipe, { task: "t" })).toMatchObject({ output: '{"task":"t","depth":7}' });

  const picky = work<Json, { task: string }>({ inputSchema: z.object({ task: z.string().max(3) }) });
  const other = pipeline({ id: "p", input, stages: { picky }, initial: "picky", next: { picky: () => done(1) } });
  await expect(live.run(other, { task: "too long" })).rejects.toMatchObject({ code: "input_invalid" });
});
