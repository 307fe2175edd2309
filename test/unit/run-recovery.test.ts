import {
  type ActScope,
  callbackInteractor,
  done,
  fanOut,
  forEach,
  invoke,
  type Json,
  type Pipeline,
  pipeline,
  SluiceError,
  type State,
  to,
} from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore } from "@sluice/core/host";
import { subPipeline } from "@sluice/stages";
import { expect, test } from "vitest";
import { z } from "zod";
import { handClock } from "../support/hand-clock.ts";
import { counted, type KilledRun, killedEverywhere } from "../support/killed-runs.ts";
import { caller, completed, eventually, json, noModel, quiet, session, tool, work } from "../support/run-kit.ts";
import { failingAt } from "../support/stopped-runs.ts";

// Children of a resumed or forked run that read their records: none continues before all have read theirs.

const input = { type: "object" } as const;
/** The steps that were executed, in order. */
type Worked = string[];

/** A list in another pipeline beside a state that asks and calls. A step of `changed` has another name than in its records. */
function tree(worked: Worked, changed?: string): Pipeline<Json, unknown> {
  const steps = async (name: string, { steps }: ActScope): Promise<void> => {
    for (let step = 1; step <= 3; step += 1)
      await steps.run(name === changed && step === 2 ? "renamed" : `step${step}`, () => worked.push(name));
  };
  const inner = pipeline({
    id: "inner",
    input,
    stages: {
      before: work({
        act: async (scope) => {
          await steps("before", scope);
          return completed(null);
        },
      }),
      item: work<Json, string>({
        inputSchema: z.string(),
        act: async (scope) => {
          await steps(String(scope.ctx.input), scope);
          return completed(String(scope.ctx.input));
        },
      }),
      after: work({ act: ({ ctx }) => completed(json(ctx.items)) }),
    },
    initial: "before",
    next: {
      before: () => forEach("item", ["a", "b", "c"], { key: (item) => item, join: "after" }),
      after: ({ output }) => done(output),
    },
  });
  return pipeline({
    id: "tree",
    input,
    pipelines: { inner },
    stages: {
      start: work(),
      list: subPipeline({ pipeline: "inner", input: {} }),
      person: work({
        allowedTools: ["Deploy"],
        act: async (scope) => {
          for (const name of ["first", "second", "third"]) {
            await steps("person", scope);
            await scope.ask({ name, question: { question: "now?", answer: { type: "string" } } });
          }
          return completed(await caller(scope)("Deploy"));
        },
      }),
      end: work({ act: ({ ctx }) => completed(json(ctx.upstream)) }),
    },
    initial: "start",
    next: {
      start: () => fanOut(["list", "person"], { join: "end" }),
      list: () => to("end"),
      person: () => to("end"),
      end: ({ output }) => done(output),
    },
  });
}

const interactors = [
  callbackInteractor("ann", ({ kind }) =>
    kind === "approveTransition" ? { kind: "approve" } : { kind: "value", value: "yes" },
  ),
];
const deploys = (worked: Worked) =>
  tool("Deploy", {
    prepare: () => null,
    recover: () => "not_started",
    execute: async () => ({ ok: true, output: worked.push("Deploy") > 0 }),
  });

const LIST = /\/list$/;

/** A store with the processes that work on it, all with so many slots. */
function scene(maxParallel: number) {
  const memory = createMemoryJournals();
  const clock = handClock();
  const worked: Worked = [];
  const life = (store: JournalStore = memory.connect(), isAnswered = true) =>
    session({
      ...{ model: noModel, clock, maxParallel, tools: [deploys(worked)], wait: true },
      interactors: isAnswered ? interactors : [],
      host: createHost(store, { clock }),
    });
  return { memory, clock, worked, life };
}

/** The records of a run and its children, without those of the root's lives. */
async function recorded({ host }: ReturnType<typeof session>, runId: string): Promise<unknown> {
  const journals = await host.journal(runId);
  return journals.map((journal) => [
    journal.runId,
    journal.records.filter(({ phase }) => phase !== "lifecycle" || journal.runId !== runId).map(({ hash }) => hash),
  ]);
}

test.each([1, 2, 9])(
  "a run that is killed before any record and whose item does not match its records does nothing and continues with the old steps (%i slots)",
  async (maxParallel) => {
    let refused = 0;
    for (let killed = 2, isWhole = false; !isWhole; killed += 1) {
      const { memory, worked, life } = scene(maxParallel);
      let written = 0;
      const dying = counted(memory.connect(), () => {
        written += 1;
        if (written >= killed) throw new SluiceError("Host", "store_io", "the process was killed");
      });
      const run = life(dying).start(tree(worked), {}, { answers: "any" });
      isWhole = await run.then(
        () => true,
        () => false,
      );
      if (isWhole) break;
      const next = life();
      const before = await recorded(next, run.runId);
      worked.length = 0;
      const changed = await next.resume(tree(worked, "b"), run.runId).then(
        ({ status }) => status,
        ({ code }) => String(code),
      );
      if (changed === "completed") continue;
      expect([changed, worked]).toEqual(["journal_mismatch", []]);
      expect(await recorded(next, run.runId)).toEqual(before);
      expect(await life().resume(tree(worked), run.runId)).toMatchObject({ status: "completed" });
      refused += 1;
    }
    expect(refused).toBeGreaterThan(2);
  },
);

test.each([1, 2, 9])(
  "a fork whose child does not match its records starts none of the siblings (%i slots)",
  async (maxParallel) => {
    const { worked, life } = scene(maxParallel);
    const first = life(undefined, false);
    const run = first.start(tree(worked), {});
    // The list is done, and the person is asked: that state starts over in the fork.
    const isListDone = async () =>
      (await first.host.journal(run.runId)).some(({ runId, end }) => end && LIST.test(runId));
    await eventually(async () => (await isListDone()) && (await first.host.requests(run.runId)).length === 1);
    await run.suspend();
    worked.length = 0;
    const next = life();
    const forked = next.fork(tree(worked, "before"), run.runId, { from: "after#1:list/inner" });
    await expect(forked).rejects.toMatchObject({ code: "journal_mismatch" });
    expect(worked).toEqual([]);
    expect(await next.resume(tree(worked), forked.runId)).toMatchObject({ status: "completed" });
  },
);

test.each([1, 2, 9])(
  "children that are killed before any record come to the same end (%i slots)",
  async (maxParallel) => {
    const make = (): KilledRun => {
      const worked: Worked = [];
      return { pipeline: tree(worked), input: {}, options: { maxParallel, interactors, tools: [deploys(worked)] } };
    };
    const { whole, killed } = await killedEverywhere(make);
    const { events: _whole, ...expected } = whole;
    for (const { events: _events, ...facts } of killed) expect(facts).toEqual(expected);
  },
);

test.each([
  ["the session", { session: 1 }],
  ["their list", { list: 1 }],
] as const)(
  "an item that continues at once does not keep one that still reads its records from the only slot of %s",
  async (_whose, { session: slots = 4, list }: { readonly session?: number; readonly list?: number }) => {
    const memory = createMemoryJournals();
    const clock = handClock();
    const asked = { early: ["once"], late: ["first", "second", "third"] };
    const item = work<Json, string>({
      inputSchema: z.string(),
      act: async ({ ctx, ask, steps }) => {
        for (const name of ctx.input === "early" ? asked.early : asked.late)
          await ask({ name, question: { question: name, answer: { type: "string" } } });
        for (const step of ["step1", "step2"]) await steps.run(step, () => null);
        return completed(null);
      },
    });
    const items = pipeline({
      id: "items",
      input,
      stages: { start: work(), item, end: work({ act: ({ ctx }) => completed(json(ctx.items)) }) },
      initial: "start",
      next: {
        start: () =>
          forEach("item", ["early", "late"], {
            ...(list === undefined ? {} : { maxParallel: list }),
            key: (key) => key,
            join: "end",
          }),
        end: ({ output }) => done(output),
      },
    });
    const life = (store: JournalStore) =>
      session({ model: noModel, clock, maxParallel: slots, wait: true, host: createHost(store, { clock }) });
    const answer = async ({ host }: ReturnType<typeof session>, runId: string, question: string): Promise<void> => {
      const open = async () => (await host.requests(runId)).find(({ body }) => body.question === question);
      await eventually(async () => (await open().catch(() => undefined)) !== undefined, question);
      const request = await open();
      const payload = { kind: "value", value: "yes", digest: request?.digest ?? "" };
      await host.signal(request?.runId ?? "", { name: `request/${request?.requestId}`, payload, by: "ann" });
    };

    const first = life(failingAt(memory.connect(), /step2$/));
    const run = first.start(items, {}, { answers: "any" });
    for (const question of ["first", "second"]) await answer(first, run.runId, question);
    await eventually(async () => (await first.host.requests(run.runId)).some(({ body }) => body.question === "third"));
    // Now the early item works, and the late one has two recorded answers to read back.
    await answer(first, run.runId, "once");
    await expect(run).rejects.toMatchObject({ code: "store_io" });
    const second = life(memory.connect());
    const resumed = second.resume(items, run.runId);
    await answer(second, run.runId, "third");
    expect(await resumed).toMatchObject({ status: "completed" });
  },
);

test.each([1, 2, 4])(
  "a run that is resumed with %i slots has no more executions at work at once",
  async (maxParallel) => {
    const memory = createMemoryJournals();
    const clock = handClock();
    let [working, most, begun] = [0, 0, 0];
    const item = work<Json, string>({
      inputSchema: z.string(),
      act: async ({ steps }) => {
        await steps.run("one", () => null);
        await steps.run("two", async () => {
          begun += 1;
          working += 1;
          most = Math.max(most, working);
          if (begun <= 4) await eventually(() => begun === 4);
          else await quiet();
          working -= 1;
          return null;
        });
        return completed(null);
      },
    });
    const items = pipeline({
      id: "items",
      input,
      stages: { start: work(), item, end: work() },
      initial: "start",
      next: { start: () => forEach("item", ["a", "b", "c", "d"], { join: "end" }), end: () => done(null) },
    });
    const life = (store: JournalStore, slots: number) =>
      session({ model: noModel, clock, maxParallel: slots, host: createHost(store, { clock }) });
    const run = life(failingAt(memory.connect(), /two$/), 4).start(items, {});
    await expect(run).rejects.toMatchObject({ code: "store_io" });
    expect(most).toBe(4);
    await eventually(() => working === 0);
    most = 0;
    const next = life(memory.connect(), maxParallel);
    expect(await next.resume(items, run.runId)).toMatchObject({ status: "completed" });
    expect(most).toBe(maxParallel);
  },
);

/** Two parallel states, which may run these pipelines. */
function branches(
  first: State<Json, unknown>,
  second: State<Json, unknown>,
  pipelines: Readonly<Record<string, Pipeline<Json, unknown>>> = {},
  id = "branches",
) {
  return pipeline({
    id,
    input,
    pipelines,
    stages: { start: work(), first, second, end: work() },
    initial: "start",
    next: {
      start: () => fanOut(["first", "second"], { join: "end" }),
      first: () => to("end"),
      second: () => to("end"),
      end: () => done(null),
    },
  });
}
const running = (name = "inner") =>
  subPipeline<Record<never, never>, Pipeline<Json, unknown>, Json, unknown>({ pipeline: name, input: {} });
const deploying = () =>
  work({ allowedTools: ["Deploy"], act: async (scope) => completed(await caller(scope)("Deploy")) });
const asking = () =>
  work({
    allowedTools: ["Deploy"],
    act: async (scope) => {
      await scope.ask({ name: "now", question: { question: "now?", answer: { type: "string" } } });
      return completed(await caller(scope)("Deploy"));
    },
  });
const stepping = (...names: readonly string[]) =>
  work({
    limits: { timeoutMs: 1_000 },
    act: async ({ steps }) => {
      for (const name of names) await steps.run(name, () => null);
      return completed(null);
    },
  });

/** A store whose process dies when both branches have come to a record that they do not write. */
function dyingAt(store: JournalStore, isUnwritten: (runId: string, stepId: string) => boolean): JournalStore {
  let stopped = 0;
  return {
    ...store,
    append: async (commit) => {
      if (!isUnwritten(commit.runId, commit.record.stepId)) return await store.append(commit);
      stopped += 1;
      await eventually(() => stopped === 2);
      throw new SluiceError("Host", "store_io", "the process was killed");
    },
  };
}

/** A store that cannot create one child. */
function fullAt(store: JournalStore, child: string): JournalStore {
  return {
    ...store,
    create: (seed, commit) => {
      if (seed.runId.endsWith(child)) throw new SluiceError("Host", "store_io", "the disk is full");
      return store.create(seed, commit);
    },
  };
}

/** A store that takes a while to read the records of the second branch. */
function slowOfSecond(store: JournalStore, reads = (): void => undefined): JournalStore {
  return {
    ...store,
    records: async (runId, ...range) => {
      if (!runId.endsWith("/second")) return await store.records(runId, ...range);
      await quiet();
      reads();
      return await store.records(runId, ...range);
    },
  };
}

test("a branch whose recorded route leads to a state that is gone starts none of the siblings", async () => {
  const { memory, worked, life } = scene(4);
  const going = (next: "last" | "renamed") => {
    const common = { id: "inner", input, initial: "one" } as const;
    const inner =
      next === "last"
        ? pipeline({
            ...common,
            stages: { one: work(), last: work() },
            next: { one: () => to("last"), last: () => done(null) },
          })
        : pipeline({
            ...common,
            stages: { one: work(), renamed: work() },
            next: { one: () => to("renamed"), renamed: () => done(null) },
          });
    return branches(running(), deploying(), { inner });
  };
  const dying = dyingAt(memory.connect(), (_runId, stepId) => /^(?:last#1|second#1.*call$)/.test(stepId));
  const run = life(dying).start(going("last"), {});
  await expect(run).rejects.toMatchObject({ code: "store_io" });
  const next = life();
  const before = await recorded(next, run.runId);
  const changed = next.resume(going("renamed"), run.runId, { allowChanged: true });
  await expect(changed).rejects.toMatchObject({ code: "state_unknown" });
  expect([worked, await recorded(next, run.runId)]).toEqual([[], before]);
  expect(await next.resume(going("last"), run.runId)).toMatchObject({ status: "completed" });
});

test.each(["a state", "siblings"])(
  "a branch that waits for the approval of a transition to %s that the pipeline no longer has starts none of the siblings",
  async (where) => {
    const { memory, worked, life } = scene(4);
    const going = (next: "last" | "renamed") => {
      const to = where === "a state" ? next : fanOut(["two", next], { join: "three" });
      const inner = pipeline({
        id: "inner",
        input,
        stages: { one: work(), two: work(), [next]: work(), three: work() },
        initial: "one",
        transitions: [
          { from: "one", on: "success", to, approval: { message: "the last part" } },
          { from: next, on: "success", to: where === "a state" ? "two" : "three" },
          { from: "two", on: "success", to: "three" },
          { from: "three", on: "success", to: done(null) },
        ],
      });
      return branches(asking(), running(), { inner });
    };
    const first = life(memory.connect(), false);
    const run = first.start(going("last"), {}, { answers: "any" });
    await eventually(async () => (await first.host.requests()).length === 2);
    await run.suspend();
    const next = life();
    const before = await recorded(next, run.runId);
    const changed = next.resume(going("renamed"), run.runId, { allowChanged: true });
    await expect(changed).rejects.toMatchObject({ code: "state_unknown", detail: { states: ["last"] } });
    expect([worked, await recorded(next, run.runId)]).toEqual([[], before]);
    expect(await next.resume(going("last"), run.runId)).toMatchObject({ status: "completed" });
  },
);

/** A pipeline whose last state is entered when a person has approved that. */
const endingIn = (last: string, id = "inner") =>
  pipeline({
    id,
    input,
    stages: { one: work(), [last]: work() },
    initial: "one",
    transitions: [
      { from: "one", on: "success", to: last, approval: { message: "the last part" } },
      { from: last, on: "success", to: done(null) },
    ],
  });

test("a transition to a state that is gone whose answer is there and not decided about leaves the run as it was", async () => {
  const { memory, life } = scene(4);
  const run = life(failingAt(memory.connect(), /approval\/answer$/)).start(endingIn("last"), {}, { answers: "any" });
  await expect(run).rejects.toMatchObject({ code: "store_io" });
  const next = life();
  const before = await recorded(next, run.runId);
  const changed = next.resume(endingIn("renamed"), run.runId, { allowChanged: true });
  await expect(changed).rejects.toMatchObject({ code: "state_unknown", detail: { states: ["last"] } });
  expect(await recorded(next, run.runId)).toEqual(before);
  expect(await next.resume(endingIn("last"), run.runId)).toMatchObject({ status: "completed" });
});

test.each([
  ["lacks a state now and has another id", { inner: endingIn("last", "renamed") }, "end"],
  [
    "lacks a state now, and another one with its id has it",
    { inner: endingIn("last", "deep"), other: endingIn("end") },
    "end",
  ],
  ["has another name now", { other: endingIn("end") }, "inner"],
] as const)("a branch whose pipeline %s starts none of the siblings", async (_what, pipelines, missing) => {
  const { memory, worked, life } = scene(4);
  // The root has a state of the same name.
  const was = branches(asking(), running(), { inner: endingIn("end") });
  const first = life(memory.connect(), false);
  const run = first.start(was, {}, { answers: "any" });
  await eventually(async () => (await first.host.requests()).length === 2);
  await run.suspend();
  const next = life();
  const before = await recorded(next, run.runId);
  const is = branches(asking(), running("inner" in pipelines ? "inner" : "other"), pipelines);
  await expect(next.resume(is, run.runId, { allowChanged: true })).rejects.toMatchObject({
    code: "state_unknown",
    detail: { states: [missing] },
  });
  expect([worked, await recorded(next, run.runId)]).toEqual([[], before]);
  expect(await next.resume(was, run.runId)).toMatchObject({ status: "completed" });
});

test("the wait for runs that still read their records is no active time of one that has read its own", async () => {
  const { memory, clock, life } = scene(4);
  const both = branches(stepping("one", "two"), stepping("one", "two"));
  const run = life(failingAt(memory.connect(), /two$/)).start(both, {});
  await expect(run).rejects.toMatchObject({ code: "store_io" });
  const slow = slowOfSecond(memory.connect(), () => clock.turn(60_000));
  expect(await life(slow).resume(both, run.runId)).toMatchObject({ status: "completed" });
});

test("nor of one that had begun and recorded nothing", async () => {
  const { memory, clock, life } = scene(4);
  const both = branches(stepping("one"), stepping("one", "two"));
  const isUnwritten = (_runId: string, stepId: string): boolean => /^first#1.*enter$|two$/.test(stepId);
  const run = life(dyingAt(memory.connect(), isUnwritten)).start(both, {});
  await expect(run).rejects.toMatchObject({ code: "store_io" });
  const slow = slowOfSecond(memory.connect(), () => clock.turn(60_000));
  expect(await life(slow).resume(both, run.runId)).toMatchObject({ status: "completed" });
});

test("a sibling that had not begun and is gone starts none of the others, and the run continues with the old pipeline", async () => {
  const { memory, worked, life } = scene(4);
  const both = branches(deploying(), work());
  const alone = pipeline({
    id: "branches",
    input,
    // Neither a pipeline of the same name is that state, nor one that it has.
    pipelines: {
      second: pipeline({
        id: "other",
        input,
        stages: { second: work() },
        initial: "second",
        next: { second: () => done(null) },
      }),
    },
    stages: { start: work(), first: deploying(), end: work() },
    initial: "start",
    next: { start: () => to("first"), first: () => to("end"), end: () => done(null) },
  });
  const run = life(fullAt(memory.connect(), "/second")).start(both, {});
  await expect(run).rejects.toMatchObject({ code: "store_io" });
  worked.length = 0;
  const next = life();
  const before = await recorded(next, run.runId);
  await expect(next.resume(alone, run.runId, { allowChanged: true })).rejects.toMatchObject({
    code: "state_unknown",
    detail: { states: ["second"] },
  });
  expect([worked, await recorded(next, run.runId)]).toEqual([[], before]);
  expect(await next.resume(both, run.runId)).toMatchObject({ status: "completed" });
});

test("a pipeline that was invoked, had not begun and is gone leaves the run as it was", async () => {
  const { memory, life } = scene(4);
  const suite = pipeline({
    id: "suite",
    input,
    stages: { unit: work() },
    initial: "unit",
    next: { unit: () => done(null) },
  });
  const going = (hasSuite: boolean) =>
    pipeline({
      id: "going",
      input,
      pipelines: hasSuite ? { suite } : {},
      stages: { start: work(), end: work() },
      initial: "start",
      transitions: [
        { from: "start", on: "success", to: hasSuite ? invoke("suite", { key: "suite", onComplete: "end" }) : "end" },
        { from: "end", on: "success", to: { stages: [], execution: "sequential" } },
      ],
    });
  const run = life(fullAt(memory.connect(), "/suite")).start(going(true), {});
  await expect(run).rejects.toMatchObject({ code: "store_io" });
  const next = life();
  const before = await recorded(next, run.runId);
  await expect(next.resume(going(false), run.runId, { allowChanged: true })).rejects.toMatchObject({
    code: "state_unknown",
    detail: { states: ["suite"] },
  });
  expect(await recorded(next, run.runId)).toEqual(before);
  expect(await next.resume(going(true), run.runId)).toMatchObject({ status: "completed" });
});

test("a branch whose next step is a fan-out starts none of its children before another one has read its records", async () => {
  const { memory, life } = scene(4);
  const inner = branches(work(), work(), {}, "inner");
  const going = (second: string) => branches(running(), stepping("first", second, "third"), { inner });
  const isUnwritten = (runId: string, stepId: string): boolean =>
    stepId.endsWith("third") || (runId.endsWith("/inner") && stepId.startsWith("fan-"));
  const run = life(dyingAt(memory.connect(), isUnwritten)).start(going("second"), {});
  await expect(run).rejects.toMatchObject({ code: "store_io" });
  const next = life(slowOfSecond(memory.connect()));
  const before = await recorded(next, run.runId);
  await expect(next.resume(going("renamed"), run.runId)).rejects.toMatchObject({ code: "journal_mismatch" });
  expect(await recorded(next, run.runId)).toEqual(before);
});

test("a branch whose last record is about another call than it makes now starts none of the siblings", async () => {
  const { memory, worked, life } = scene(4);
  const going = (id: string) =>
    branches(
      deploying(),
      work({
        allowedTools: ["Deploy"],
        act: async ({ calls }) => completed(json(await calls(1, [{ id, tool: "Deploy", input: {} }]))),
      }),
    );
  const dying = dyingAt(memory.connect(), (_runId, stepId) => stepId.endsWith("call"));
  const run = life(dying).start(going("one"), {});
  await expect(run).rejects.toMatchObject({ code: "store_io" });
  const next = life();
  const before = await recorded(next, run.runId);
  await expect(next.resume(going("two"), run.runId)).rejects.toMatchObject({ code: "journal_mismatch" });
  expect([worked, await recorded(next, run.runId)]).toEqual([[], before]);
  expect(await next.resume(going("one"), run.runId)).toMatchObject({ status: "completed" });
});

test("no one is asked about a request that was answered meanwhile, however long another branch reads its records", async () => {
  const { memory, clock } = scene(4);
  const asks = () =>
    work({
      act: async ({ ask }) =>
        completed(json(await ask({ name: "ask", question: { question: "now?", answer: { type: "string" } } }))),
    });
  const both = branches(asks(), asks());
  const asked: string[] = [];
  const onlooker = callbackInteractor("onlooker", ({ runId }) => {
    asked.push(runId);
    return undefined;
  });
  const watched = (store: JournalStore) =>
    session({ model: noModel, clock, wait: true, interactors: [onlooker], host: createHost(store, { clock }) });
  const first = watched(memory.connect());
  const run = first.start(both, {}, { answers: "any" });
  await eventually(async () => (await first.host.requests(run.runId)).length === 2);
  const requests = await first.host.requests(run.runId);
  await run.suspend();
  for (const { runId, requestId, digest } of requests) {
    const payload = { kind: "value", value: "yes", digest };
    await first.host.signal(runId, { name: `request/${requestId}`, payload, by: "ann" });
  }
  await first.host.close();
  asked.length = 0;
  expect(await watched(slowOfSecond(memory.connect())).resume(both, run.runId)).toMatchObject({ status: "completed" });
  expect(asked).toEqual([]);
});

test("a resumed attempt that ends while its first new step waits for a slot leaves the slot to others", async () => {
  const { promise: busy, resolve: finish } = Promise.withResolvers<void>();
  const { memory, life } = scene(1);
  const single = (act: (scope: ActScope) => Promise<ReturnType<typeof completed>>) =>
    pipeline({
      id: "single",
      input,
      stages: { only: work({ act }) },
      initial: "only",
      next: { only: () => done(null) },
    });
  let lives = 0;
  const hasty = single(async ({ steps }) => {
    lives += 1;
    await steps.run("one", () => null);
    const second = steps.run("two", () => null);
    if (lives === 1) await second;
    return completed(null);
  });
  let isBusy = false;
  const blocking = single(async () => {
    isBusy = true;
    await busy;
    return completed(null);
  });
  const run = life(failingAt(memory.connect(), /two$/)).start(hasty, {});
  await expect(run).rejects.toMatchObject({ code: "store_io" });
  const next = life();
  const other = next.start(blocking, {});
  await eventually(() => isBusy);
  const resumed = next.resume(hasty, run.runId);
  await quiet();
  finish();
  expect([(await resumed).status, (await other).status]).toEqual(["completed", "completed"]);
  expect(
    await next.run(
      single(async () => completed(null)),
      {},
    ),
  ).toMatchObject({ status: "completed" });
});
