import { done, pipeline, SluiceError, type StageContext, to } from "@sluice/core";
import { expect } from "vitest";
import {
  calls,
  decided,
  drive,
  fact,
  finish,
  input,
  noting,
  one,
  saying,
  task,
  tools,
  typesOf,
  worker,
} from "../support/facts.ts";
import { dataOf, eventually, phasesOf, quiet, session, tool } from "../support/run-kit.ts";
import { talker } from "../support/talker.ts";

const PHASES = ["setup", "init", "gate", "act", "assert", "exit", "next"];

fact(1, "the phases run in order, each with an event before and after", async () => {
  const { events } = await drive(worker(), saying());
  const walk = phasesOf(events).filter((phase) => phase.startsWith("stage."));
  expect(walk).toEqual(PHASES.flatMap((phase) => [`stage.${phase} entered`, `stage.${phase} left`]));
});

decided(2, "ctx is frozen in every phase, setup included; what setup returns is ctx.setup", async () => {
  const write = (ctx: StageContext): void => void Object.assign(ctx, { task: "other" });
  const hooks = [
    {
      setup: (ctx: StageContext) => {
        write(ctx);
        return null;
      },
    },
    {
      precondition: (ctx: StageContext) => {
        write(ctx);
        return "proceed" as const;
      },
    },
    {
      assert: (_result: unknown, ctx: StageContext) => {
        write(ctx);
        return "ok" as const;
      },
    },
    { exit: (_result: unknown, ctx: StageContext) => write(ctx) },
  ];
  for (const hook of hooks) {
    const { result } = await drive(worker(hook), saying());
    expect(result).toMatchObject({ status: "failed", error: { code: "hook" } });
  }
  const { heard } = await drive(
    worker({ setup: () => "from setup", prompt: ({ setup }) => `Got ${String(setup)}.` }),
    saying(),
  );
  expect(JSON.stringify(heard[0]?.messages[0])).toContain("Got from setup.");
});

fact(3, "what a hook throws is a failure that names the state and the hook, and keeps what was said", async () => {
  const state = worker({
    precondition: () => {
      throw new RangeError("the gate is broken");
    },
  });
  const { result } = await drive(state, saying());
  expect(result).toMatchObject({
    status: "failed",
    error: { code: "hook", message: expect.stringContaining("precondition threw: the gate is broken") },
    stages: [{ executionId: "one#1", status: "failed", code: "hook" }],
  });
});

fact(4, "a typed error keeps its code up to the result", async () => {
  const model = talker(() => {
    throw new SluiceError("ProviderCapability", "script_exhausted", "nothing left to say");
  });
  const { result } = await drive(worker(), model);
  expect(result).toMatchObject({
    error: { code: "model", message: expect.stringContaining("nothing left to say") },
    stages: [{ code: "model", detail: { code: "script_exhausted" } }],
  });
});

fact(5, "a session without a model refuses the run with a typed error, before anything is kept", async () => {
  const live = session({ tools });
  await expect(live.run(one(worker()), task)).rejects.toMatchObject({ class: "Session", code: "no_model" });
  expect(await live.host.list()).toEqual([]);
});

fact(6, "a run cancelled before its state has a place runs none of the state's code", async () => {
  const asked: string[] = [];
  const model = talker(({ stage }) => (stage === "first" ? new Promise(() => undefined) : finish()));
  const live = session({ tools, model, maxParallel: 1 });
  const first = live.start(
    pipeline({ id: "a", input, stages: { first: worker() }, initial: "first", next: { first: () => done(1) } }),
    task,
  );
  await eventually(() => model.heard.length === 1);
  const second = live.start(
    one(
      worker({
        setup: () => asked.push("setup"),
        prompt: () => noting(asked, "prompt", "p"),
        exit: () => void asked.push("exit"),
      }),
    ),
    task,
  );
  await quiet();
  await second.cancel("not any more");
  expect((await second).status).toBe("cancelled");
  expect(asked.filter((what) => what !== "exit")).toEqual([]);
  expect(model.heard).toHaveLength(1);
  await first.cancel("over");
});

fact(7, "a run cancelled while its model is at work is cancelled, not failed", async () => {
  const model = talker(() => new Promise(() => undefined));
  const { result } = await drive(worker(), model, {
    during: async (handle) => {
      await eventually(() => model.heard.length === 1);
      await handle.cancel("enough");
    },
  });
  expect(result).toMatchObject({ status: "cancelled", stages: [{ status: "cancelled", reason: "enough" }] });
});

fact(
  8,
  "a cancelled stage is drained: what a tool that listens says last is recorded before the result is there",
  async () => {
    let drained = false;
    let begun = false;
    const slow = tool("Change", {
      execute: async (_input, { signal }) => {
        begun = true;
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        await quiet();
        drained = true;
        return { ok: false, output: "stopped in order" };
      },
    });
    const state = worker({ allowedTools: ["Change"] });
    const { events } = await drive(state, saying(calls("Change")), {
      tools: [slow],
      during: async (handle) => {
        await eventually(() => begun);
        await handle.cancel("enough");
        expect(drained).toBe(true);
      },
    });
    const types = typesOf(events, /^(call\.finished|run\.finished)$/);
    expect(types).toEqual(["call.finished", "run.finished"]);
  },
);

fact(
  9,
  "a gate that says skip, or never lets in, keeps the model out and is the result; assert cannot overturn it",
  async () => {
    const assert = () => "ok" as const;
    const skipped = await drive(worker({ precondition: () => "skip", assert }), saying());
    expect(skipped.result).toMatchObject({ status: "completed", output: "skipped", stages: [{ status: "skipped" }] });
    const gate = worker({ precondition: () => ({ retryAfterMs: 0 }), assert, retryPolicy: { maxAttempts: 2 } });
    const shut = await drive(gate, saying());
    expect(shut.result).toMatchObject({ status: "failed", error: { code: "precondition" } });
    expect([...skipped.heard, ...shut.heard]).toEqual([]);
  },
);

fact(10, "exit runs before the route, once for each execution", async () => {
  const log: string[] = [];
  const pipe = pipeline({
    id: "p",
    input,
    stages: {
      one: worker({
        exit: async () => {
          await quiet();
          log.push("exit");
        },
      }),
    },
    initial: "one",
    next: { one: (_result, { visit }) => noting(log, "route", visit < 2 ? to("one") : done(1)) },
  });
  await drive(pipe, saying());
  expect(log).toEqual(["exit", "route", "exit", "route"]);
});

fact(11, "whatever begins in the record has its end there, with an outcome", async () => {
  const broken = tool("Change", { execute: () => Promise.reject(new Error("no")) });
  const state = worker({ allowedTools: ["Look", "Change"], turnCap: 3, assert: () => ({ fail: "not good" }) });
  const { events } = await drive(state, saying(calls("Look", "Change"), calls("Nope")), {
    tools: [...tools.slice(0, 1), broken],
  });
  for (const [begins, ends] of [
    ["attempt.started", "attempt.finished"],
    ["turn.started", "turn.finished"],
    ["call.started", "call.finished"],
    ["run.started", "run.finished"],
  ] as const) {
    expect(typesOf(events, new RegExp(`^${ends}$`))).toHaveLength(typesOf(events, new RegExp(`^${begins}$`)).length);
  }
  for (const phase of PHASES) expect(phasesOf(events)).toContain(`stage.${phase} left`);
  expect(dataOf(events, "call.finished").map(({ outcome }) => outcome)).toEqual(["ok", "error"]);
  expect(dataOf(events, "run.finished")).toMatchObject([{ status: "failed" }]);
});
