import { done, fanOut, type Json, pipeline, type SluiceEvent, type StageContext } from "@sluice/core";
import { expect, test } from "vitest";
import { decided, drive, fact, finish, input, noting, worker } from "../support/facts.ts";
import { dataOf, eventually, json, quiet, work } from "../support/run-kit.ts";
import { type Heard, talker } from "../support/talker.ts";

type Hooks = Parameters<typeof worker>[0];
/** `plan` forks into a, b and c, and `join` joins them. */
function forked(join: Hooks = {}, siblings: Hooks = {}) {
  return pipeline({
    id: "forked",
    input,
    context: { shared: ["before"] },
    stages: { plan: worker(), a: worker(siblings), b: worker(siblings), c: worker(siblings), join: worker(join) },
    initial: "plan",
    next: {
      plan: () => fanOut(["a", "b", "c"], { join: "join" }),
      join: ({ output }, ctx) => done({ output, upstream: json(ctx.upstream) }),
    },
  });
}
const SIBLINGS = ["a", "b", "c"];
const isSibling = ({ stage }: Heard): boolean => SIBLINGS.includes(stage);

/** Siblings wait at their model until `open` is called; the most that were there at once is counted. */
function gathering() {
  let at = 0;
  let most = 0;
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const model = talker(async (heard) => {
    if (!isSibling(heard)) return finish(heard.stage);
    at += 1;
    most = Math.max(most, at);
    await released;
    at -= 1;
    return finish(heard.stage);
  });
  return { model, open: release, at: () => at, most: () => most };
}

fact(40, "siblings work side by side", async () => {
  const gate = gathering();
  const { result } = await drive(forked(), gate.model, {
    during: async () => {
      await eventually(() => gate.at() === 3);
      gate.open();
    },
  });
  expect([gate.most(), result.status]).toEqual([3, "completed"]);
});

fact(41, "no more siblings work at once than the session's cap", async () => {
  const gate = gathering();
  const { result } = await drive(forked(), gate.model, {
    maxParallel: 2,
    during: async () => {
      await eventually(() => gate.at() === 2);
      await quiet();
      gate.open();
    },
  });
  expect([gate.most(), result.status]).toEqual([2, "completed"]);
});

fact(42, "each sibling has the frozen context of the moment of the fork, and sees nothing of the others", async () => {
  const seen: Json[] = [];
  const setup = (ctx: StageContext): Json => {
    expect(Object.isFrozen(ctx.context.shared)).toBe(true);
    seen.push(json({ context: ctx.context, upstream: ctx.upstream }));
    return null;
  };
  await drive(
    forked({}, { setup }),
    talker(({ stage }) => finish(stage)),
  );
  expect(seen).toEqual(
    SIBLINGS.map(() => ({ context: { shared: ["before"] }, upstream: { plan: { summary: "plan" } } })),
  );
});

decided(
  43,
  "a fork is one pair of events in its parent's record; each sibling's turns are in a record of its own",
  async () => {
    const { events, result } = await drive(
      forked(),
      talker(({ stage }) => finish(stage)),
    );
    const own = events.filter(({ runId }) => runId === result.runId);
    expect(own.filter(({ type }) => type.startsWith("fanOut.")).map(({ type }) => type)).toEqual([
      "fanOut.started",
      "fanOut.joined",
    ]);
    expect(own.filter(({ type }) => type === "turn.started").map(({ executionId }) => executionId)).toEqual([
      "plan#1",
      "join#1",
    ]);
    expect(new Set(events.map(({ runId }) => runId)).size).toBe(4);
  },
);

test("a follower of a run gets its siblings' events before the join, and the run's end last", async () => {
  const seen: SluiceEvent[] = [];
  let following: Promise<void> | undefined;
  const { events, result } = await drive(
    forked(),
    talker(({ stage }) => finish(stage)),
    {
      during: async (handle) => {
        following = (async () => {
          for await (const event of handle.events) seen.push(event);
        })();
      },
    },
  );
  await following;
  for (const all of [seen, events]) {
    const joined = all.findIndex(({ type }) => type === "fanOut.joined");
    expect(all.findLastIndex(({ runId }) => runId !== result.runId)).toBeLessThan(joined);
    expect([all.at(-1)?.runId, all.at(-1)?.type]).toEqual([result.runId, "run.finished"]);
  }
  const sorted = (all: readonly SluiceEvent[]) => all.map(({ id }) => id).sort();
  expect(sorted(seen)).toEqual(sorted(events));
});

fact(44, "a parallel list of fewer than two stages is refused", async () => {
  const pipe = pipeline({
    id: "p",
    input,
    stages: { plan: worker(), a: worker(), join: worker() },
    initial: "plan",
    next: { plan: () => ({ stages: ["a"], execution: "parallel", join: "join" }), join: () => done(1) },
  });
  const { result, events, heard } = await drive(
    pipe,
    talker(() => finish()),
  );
  expect([result.status, heard.map(({ stage }) => stage)]).toEqual(["failed", ["plan"]]);
  expect(dataOf(events, "route.rejected")).toHaveLength(1);
});

/** `a` fails while the others hang. */
const failing = () =>
  talker(({ stage }) => {
    if (stage === "b" || stage === "c") return new Promise(() => undefined);
    return stage === "a" ? { errors: [{ status: 400, message: "no" }] } : finish(stage);
  });

fact(45, "the first failure cancels the other siblings, and the error names the one that failed", async () => {
  const { result } = await drive(forked(), failing());
  expect(result).toMatchObject({ status: "failed", error: { message: expect.stringMatching(/fan_out.*a: /) } });
  const ended = result.stages.map(({ executionId, status }) => `${executionId} ${status}`);
  expect(ended).toEqual(["plan#1 completed", "a#1 failed", "b#1 cancelled", "c#1 cancelled"]);
});

fact(46, "after a failure the join is not entered", async () => {
  const asked: string[] = [];
  const { heard } = await drive(forked({ setup: () => noting(asked, "join", null) }), failing());
  expect([asked, heard.filter(({ stage }) => stage === "join")]).toEqual([[], []]);
});

fact(47, "a run cancelled from outside is cancelled in every sibling, and each of them hears it", async () => {
  const seen: string[] = [];
  const sibling = work({
    act: async ({ signal }) => {
      seen.push("started");
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      seen.push("aborted");
      return { status: "cancelled", reason: "aborted", turns: 0, usage: { inputTokens: 0, outputTokens: 0 } };
    },
  });
  const pipe = pipeline({
    id: "p",
    input,
    stages: { plan: worker(), a: sibling, b: sibling, c: sibling, join: worker() },
    initial: "plan",
    next: { plan: () => fanOut(["a", "b", "c"], { join: "join" }), join: () => done(1) },
  });
  const { result } = await drive(
    pipe,
    talker(() => finish()),
    {
      during: async (handle) => {
        await eventually(() => seen.length === 3);
        await handle.cancel("from outside");
      },
    },
  );
  expect(seen.filter((one) => one === "aborted")).toHaveLength(3);
  expect(result.stages.map(({ status }) => status)).toEqual(["completed", "cancelled", "cancelled", "cancelled"]);
});

fact(48, "the join reads the siblings' outputs in declared order, in each of its phases", async () => {
  const seen: (readonly string[])[] = [];
  const see =
    <T>(value: T) =>
    (...given: readonly unknown[]): T => {
      seen.push(Object.keys(Object(given.at(-1)).upstream));
      return value;
    };
  const join = {
    setup: see(null),
    prompt: see("Join."),
    precondition: see("proceed" as const),
    assert: see("ok" as const),
    exit: see(undefined),
  };
  const order: string[] = [];
  const model = talker(async ({ stage }) => {
    for (let turn = 0; turn < 20 * Math.max(0, 2 - SIBLINGS.indexOf(stage)); turn += 1) await new Promise(setImmediate);
    return noting(order, stage, finish(stage));
  });
  const { result } = await drive(forked(join), model);
  expect(order).toEqual(["plan", "c", "b", "a", "join"]);
  expect(seen).toEqual([1, 2, 3, 4, 5].map(() => ["plan", ...SIBLINGS]));
  expect(result).toMatchObject({
    output: { upstream: { a: { summary: "a" }, b: { summary: "b" }, c: { summary: "c" } } },
  });
});

fact(49, "a join that fails is a failure with its own code", async () => {
  const { result } = await drive(
    forked({ assert: () => ({ fail: "they disagree" }) }),
    talker(({ stage }) => finish(stage)),
  );
  expect(result).toMatchObject({
    status: "failed",
    error: { code: "assert", message: expect.stringContaining("they disagree") },
  });
  expect(result.stages.at(-1)).toMatchObject({ executionId: "join#1", status: "failed" });
});

fact(
  50,
  "a join that is no state, or one of the siblings, is refused: in a table with the definition, from a function when it is routed",
  async () => {
    const stages = { plan: worker(), a: worker(), b: worker() };
    for (const join of ["nowhere", "a"] as const) {
      const fork = Object.assign(fanOut(["a", "b"], { join: "b" }), { join });
      const table = (): unknown =>
        pipeline({ id: "p", input, stages, initial: "plan", transitions: [{ from: "plan", on: "success", to: fork }] });
      expect(table).toThrow(expect.objectContaining({ code: "definition_invalid" }));
      const pipe = pipeline({ id: "p", input, stages, initial: "plan", next: { plan: () => fork } });
      const { result, heard } = await drive(
        pipe,
        talker(() => finish()),
      );
      expect([result.status, heard.map(({ stage }) => stage)]).toEqual(["failed", ["plan"]]);
    }
  },
);
