import {
  type AnyState,
  callbackInteractor,
  done,
  fanOut,
  field,
  type Json,
  pipeline,
  type RunHost,
} from "@sluice/core";
import { describe, expect, test } from "vitest";
import { calls, finish, input, one, saying, task, tools, worker } from "../support/facts.ts";
import { answerFrom, HOSTS, person, type Stores, soon } from "../support/people-kit.ts";
import {
  dataOf,
  eventsOf,
  quiet,
  session,
  type TestSession,
  type TestSessionOptions,
  tool,
  work,
} from "../support/run-kit.ts";
import { lastResults, type Talker, talker } from "../support/talker.ts";

/** A session on a store, with a tool outside every envelope that notes what it really did. */
function office(store: RunHost, options: TestSessionOptions = {}) {
  const ran: Json[] = [];
  const deploy = tool("Deploy", {
    execute: async (given) => ({ ok: true, output: ran.push(field(given, "n") ?? null) }),
  });
  const faults: string[] = [];
  const live = session({
    tools: [...tools, deploy],
    host: store,
    onFault: ({ by }) => void faults.push(by),
    ...options,
  });
  return { live, ran, faults };
}
const deploy = (n = 1) => calls(["Deploy", { n }]);
const denial = (model: Talker, turn = 1): unknown => lastResults(model.heard[turn] ?? fail());
function fail(): never {
  throw new Error("the model was not asked again");
}
/** Nothing waits any more: no request, no timer of the session. */
async function expectCalm(live: TestSession): Promise<void> {
  await quiet();
  expect([await live.host.requests(), live.clock.waiting()]).toEqual([[], 0]);
}

/** What becomes of an answer that came too late; unknown once the run has ended. */
const REFUSED = ["already_answered", "unknown"];
const COUNT = 100;
/** Siblings that each need one grant, and how each ended. */
function crowd() {
  const names = Array.from({ length: COUNT }, (_, n) => `s${n}`);
  const stages: Record<string, AnyState> = { start: work(), join: work() };
  for (const name of names) stages[name] = worker();
  const pipe = pipeline({
    id: "crowd",
    input,
    stages,
    initial: "start",
    next: { start: () => fanOut(names, { join: "join" }), join: () => done("joined") },
  });
  const model = talker(({ stage, turn }) => (turn === 0 ? deploy(Number(stage.slice(1))) : finish(stage)));
  return { pipe, model };
}
const numberOf = ({ runId }: { readonly runId: string }): number => Number(/s(\d+)$/.exec(runId)?.[1]);

describe.each(HOSTS)("people, %s", (_name, make) => {
  /** A run of one stage that asks for one grant. */
  const asking = (options: TestSessionOptions = {}, stores: Stores = make()) => {
    const model = saying(deploy());
    const made = office(stores.host(), { model, ...options });
    return { ...made, stores, model, handle: made.live.start(one(worker()), task) };
  };

  test(`${COUNT} requests of siblings wait at once, are shown one by one in the order they came, and each answer counts for its own call`, async () => {
    const me = person("me");
    const { pipe, model } = crowd();
    const { live, ran } = office(make().host(), { model, interactors: [me] });
    const handle = live.start(pipe, task);
    await soon(async () => (await live.host.requests()).length === COUNT);
    const order = (await live.host.requests()).map(({ runId }) => runId);
    expect(new Set(order).size).toBe(COUNT);
    for (let at = 0; at < COUNT; at += 1) {
      await soon(() => me.seen.length > at);
      expect(me.seen).toHaveLength(at + 1);
      me.seen[at]?.answer({ kind: at % 2 === 0 ? "approve" : "deny" });
    }
    const result = await handle;
    expect(me.seen.map(({ request }) => request.runId)).toEqual(order);
    const approved = order.filter((_, at) => at % 2 === 0).map((runId) => numberOf({ runId }));
    expect([ran.length, new Set(ran)]).toEqual([COUNT / 2, new Set(approved)]);
    expect([result.status, result.denied.length]).toEqual(["completed", COUNT / 2]);
    await expectCalm(live);
  });

  test(`${COUNT} requests of siblings are answered elsewhere, oldest first, and no answer is taken twice`, async () => {
    const stores = make();
    const { pipe, model } = crowd();
    const { live, ran } = office(stores.host(), { model, wait: true });
    const handle = live.start(pipe, task);
    await soon(async () => (await live.host.requests()).length === COUNT);
    const open = await live.host.requests();
    expect(await stores.answerElsewhere(COUNT)).toEqual(open.map(({ runId }) => [runId, "accepted"]));
    const result = await handle;
    const approved = open.filter((_, at) => at % 2 === 0).map(numberOf);
    expect([ran.length, new Set(ran)]).toEqual([COUNT / 2, new Set(approved)]);
    expect([result.status, result.denied.length]).toEqual(["completed", COUNT / 2]);
    const [first] = open;
    expect(REFUSED).toContain(first && (await answerFrom(live.host, first, { kind: "deny" })));
    const answered = dataOf(await eventsOf(live.host, handle.runId), "grant.answered");
    expect(answered.map(({ by }) => by)).toEqual(Array(COUNT).fill("elsewhere"));
    await expectCalm(live);
  });

  test("the first of two answers wins, the slow interactor is notified, and what it says later is dropped and refused", async () => {
    const [fast, slow] = [person("fast"), person("slow")];
    const { live, ran, faults, handle, stores } = asking({ interactors: [slow, fast] });
    await soon(() => slow.seen.length === 1 && fast.seen.length === 1);
    const [shown] = slow.seen;
    fast.seen[0]?.answer({ kind: "approve" });
    await soon(() => shown?.signal.aborted === true);
    expect(fast.seen[0]?.signal.aborted).toBe(false);
    shown?.answer({ kind: "deny" });
    const late = shown === undefined ? undefined : await answerFrom(stores.host(), shown.request, { kind: "deny" });
    expect(REFUSED).toContain(late);
    expect((await handle).denied).toEqual([]);
    expect([ran, faults]).toEqual([[1], []]);
    const answers = dataOf(await eventsOf(live.host, handle.runId), "grant.answered");
    expect(answers).toMatchObject([{ answer: "approve", by: "fast" }]);
    await expectCalm(live);
  });

  test("an interactor that crashes, at once or later, leaves the request to the others", async () => {
    const [me, falls] = [person("me"), person("falls")];
    const throws = callbackInteractor("throws", () => {
      throw new Error("crashed");
    });
    const { live, ran, faults, handle } = asking({ interactors: [throws, falls, me] });
    await soon(() => falls.seen.length === 1 && me.seen.length === 1);
    falls.seen[0]?.fail(new Error("crashed, too"));
    await soon(() => faults.length === 2);
    expect([faults, me.seen[0]?.signal.aborted, await live.host.requests()]).toMatchObject([
      ["throws", "falls"],
      false,
      [{}],
    ]);
    me.seen[0]?.answer({ kind: "approve" });
    await handle;
    expect(ran).toEqual([1]);
    await expectCalm(live);
  });

  test("when all have crashed no one is there: denied, and the run continues", async () => {
    const broken = ["a", "b"].map((name) => callbackInteractor(name, () => Promise.reject(new Error("crashed"))));
    const { live, ran, handle, model } = asking({ interactors: broken });
    expect(await handle).toMatchObject({ status: "completed", denied: [{ cause: "no_interactor" }] });
    expect([ran, denial(model)]).toMatchObject([[], [{ code: "tool_call_denied", cause: "no_interactor" }]]);
    await expectCalm(live);
  });

  test("a request that no one answers in time is denied with cause timeout; later answers are refused, here and elsewhere", async () => {
    const me = person("me");
    const { live, ran, handle, model, stores } = asking({ interactors: [me], requestTimeoutMs: 60_000 });
    await soon(() => me.seen.length === 1);
    live.clock.turn(59_999);
    await quiet();
    expect(me.seen[0]?.signal.aborted).toBe(false);
    live.clock.turn(1);
    await soon(() => me.seen[0]?.signal.aborted === true);
    me.seen[0]?.answer({ kind: "approve" });
    const [shown] = me.seen;
    const late = shown && (await answerFrom(stores.host(), shown.request, { kind: "approve" }));
    expect(REFUSED).toContain(late);
    expect((await handle).denied).toMatchObject([{ cause: "timeout" }]);
    expect([ran, denial(model)]).toMatchObject([[], [{ code: "tool_call_denied", cause: "timeout" }]]);
    await expectCalm(live);
  });

  test("an answer from elsewhere and the timeout of the same moment are one answer, whichever it is", async () => {
    const me = person("me");
    const { live, ran, handle, stores } = asking({ interactors: [me], requestTimeoutMs: 60_000 });
    await soon(() => me.seen.length === 1);
    const [shown] = me.seen;
    if (shown === undefined) return;
    const elsewhere = answerFrom(stores.host(), shown.request, { kind: "approve" });
    live.clock.turn(60_000);
    const outcome = await elsewhere;
    const { denied } = await handle;
    const answers = dataOf(await eventsOf(live.host, handle.runId), "grant.answered");
    expect(answers).toMatchObject([{ answer: outcome === "accepted" ? "approve" : "none" }]);
    expect([ran.length, denied.length]).toEqual(outcome === "accepted" ? [1, 0] : [0, 1]);
    await expectCalm(live);
  });

  test("defer is a denial for now that says so", async () => {
    const me = callbackInteractor("me", () => ({ kind: "defer" }));
    const { live, ran, handle, model } = asking({ interactors: [me] });
    expect((await handle).denied).toMatchObject([{ cause: "deferred" }]);
    expect([ran, denial(model)]).toMatchObject([[], [{ code: "tool_call_denied", cause: "deferred" }]]);
    await expectCalm(live);
  });

  test("defer leaves the request open for a later answer where the run waits", async () => {
    const me = person("me");
    const { live, ran, handle, stores } = asking({ interactors: [me], wait: true });
    await soon(() => me.seen.length === 1);
    const [shown] = me.seen;
    shown?.answer({ kind: "defer" });
    await quiet();
    expect([ran, await stores.host().requests()]).toMatchObject([[], [{ kind: "grantStageTool" }]]);
    expect(shown && (await answerFrom(stores.host(), shown.request, { kind: "approve" }))).toBe("accepted");
    await handle;
    expect(ran).toEqual([1]);
    await expectCalm(live);
  });

  test("with no one there a grant is denied and a question says no_interactor; the run continues", async () => {
    const model = saying(calls("Deploy", ["AskUser", { question: "Which?" }]));
    const { live, ran } = office(make().host(), { model });
    const result = await live.run(one(worker({ allowedTools: ["AskUser"] })), task);
    expect([result.status, ran, denial(model)]).toMatchObject([
      "completed",
      [],
      [{ code: "tool_call_denied", cause: "no_interactor" }, { code: "no_interactor" }],
    ]);
    await expectCalm(live);
  });

  test("a run that waits only so long is suspended, and an answer that comes later lets another host continue", async () => {
    const stores = make();
    const pipe = one(worker());
    const here = office(stores.host(), { model: saying(deploy()), wait: 30_000 });
    const handle = here.live.start(pipe, task);
    await soon(() => here.live.clock.waiting() === 1);
    here.live.clock.turn(30_000);
    const suspended = await handle;
    expect(suspended).toMatchObject({
      status: "suspended",
      reason: "waiting",
      waitingFor: [{ kind: "grantStageTool" }],
    });
    const there = office(stores.host(), { model: saying(deploy()), wait: true });
    const [request] = await there.live.host.requests(handle.runId);
    expect(request && (await answerFrom(there.live.host, request, { kind: "approve" }))).toBe("accepted");
    expect(await there.live.resume(pipe, handle.runId)).toMatchObject({ status: "completed", denied: [] });
    expect([here.ran, there.ran]).toEqual([[], [1]]);
    await expectCalm(there.live);
  });

  test("a run that waits only so long is not suspended while an interactor that joined is asked", async () => {
    const { live, ran } = office(make().host(), { model: saying(deploy()), wait: 30_000 });
    const handle = live.start(one(worker()), task);
    await soon(() => live.clock.waiting() === 1);
    live.clock.turn(20_000);
    const me = person("me");
    live.attach(me);
    await soon(() => me.seen.length === 1);
    expect(live.clock.waiting()).toBe(0);
    live.clock.turn(20_000);
    me.seen[0]?.answer({ kind: "approve" });
    expect(await handle).toMatchObject({ status: "completed", denied: [] });
    expect(ran).toEqual([1]);
    await expectCalm(live);
  });

  test("a run that waits only so long begins anew when the interactor that joined leaves", async () => {
    const { live } = office(make().host(), { model: saying(deploy()), wait: 30_000 });
    const handle = live.start(one(worker()), task);
    await soon(() => live.clock.waiting() === 1);
    live.clock.turn(20_000);
    const me = person("me");
    const leave = live.attach(me);
    await soon(() => me.seen.length === 1);
    leave();
    live.clock.turn(20_000);
    await quiet();
    expect(live.clock.waiting()).toBe(1);
    live.clock.turn(10_000);
    expect(await handle).toMatchObject({ status: "suspended", reason: "waiting" });
  });

  test("an approval counts for the exact digest it names, and for no other", async () => {
    const { live, ran, handle, model } = asking({ wait: true });
    await soon(async () => (await live.host.requests()).length === 1);
    const [request] = await live.host.requests();
    if (request === undefined) return;
    expect(await answerFrom(live.host, request, { kind: "approve" }, "0".repeat(64))).toBe("digest_mismatch");
    expect(await live.host.requests()).toHaveLength(1);
    // Right at the door, and wrong inside: it closes the request and approves nothing.
    const payload = { kind: "approve", digest: "0".repeat(64) };
    const { runId, requestId, digest } = request;
    const name = `request/${requestId}`;
    expect(await live.host.signal(runId, { name, payload, digest, by: "elsewhere" })).toBe("accepted");
    expect((await handle).denied).toMatchObject([{ cause: "denied" }]);
    expect([ran, denial(model)]).toMatchObject([[], [{ reason: expect.stringContaining("different arguments") }]]);
    await expectCalm(live);
  });

  test("a question takes the first answer that fits it", async () => {
    const wrong = callbackInteractor("wrong", () => ({ kind: "value", value: "the third" }));
    const me = person("me");
    const question = ["AskUser", { question: "Which?", options: ["one", "two"] }] as const;
    const model = saying(calls(question));
    const { live, faults } = office(make().host(), { model, interactors: [wrong, me] });
    const handle = live.start(one(worker({ allowedTools: ["AskUser"] })), task);
    await soon(() => me.seen.length === 1 && faults.length === 1);
    me.seen[0]?.answer({ kind: "value", value: "two" });
    await handle;
    expect([faults, denial(model)]).toEqual([["wrong"], ["two"]]);
    await expectCalm(live);
  });

  test("a request of a cancelled run is taken back from everybody, and its answer comes too late", async () => {
    const [a, b] = [person("a"), person("b")];
    const { live, ran, handle, stores } = asking({ interactors: [a, b], requestTimeoutMs: 60_000 });
    await soon(() => a.seen.length === 1 && b.seen.length === 1);
    await handle.cancel("not any more");
    expect([a, b].map(({ seen }) => seen[0]?.signal.aborted)).toEqual([true, true]);
    const [shown] = a.seen;
    expect(REFUSED).toContain(shown && (await answerFrom(stores.host(), shown.request, { kind: "approve" })));
    expect([ran, (await handle).status]).toEqual([[], "cancelled"]);
    await expectCalm(live);
  });
});
