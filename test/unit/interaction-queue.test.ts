import type { JsonObject } from "@sluice/core";
import { describe, expect, test } from "vitest";
import {
  type Answer,
  callbackInteractor,
  type Interactor,
  type PersonRequest,
  type Resolution,
} from "../../packages/core/src/people/interactor.ts";
import {
  createRequestQueue,
  type InteractionFault,
  type RequestQueue,
  type RequestQueueOptions,
  type SubmitOutcome,
} from "../../packages/core/src/people/request-queue.ts";
import { type HandClock, handClock } from "../support/hand-clock.ts";

function request(requestId: string, more: Partial<PersonRequest> = {}): PersonRequest {
  return { requestId, runId: "r1", kind: "grantStageTool", digest: "d", body: {}, openedAt: 0, ...more };
}

/** Lets everything that can go on without a timer or an answer go on. */
async function calm(): Promise<void> {
  await new Promise(setImmediate);
}

interface Shown {
  readonly requestId: string;
  readonly signal: AbortSignal;
  answer(answer: Answer | undefined): void;
  fail(error: Error): void;
}
/** A person at a screen: sees requests, and answers when the test says so. */
function person(name: string): Interactor & { readonly seen: Shown[] } {
  const seen: Shown[] = [];
  const answer = (asked: PersonRequest, signal: AbortSignal): Promise<Answer | undefined> =>
    new Promise((resolve, reject) => {
      seen.push({ requestId: asked.requestId, signal, answer: resolve, fail: reject });
    });
  return { name, seen, answer };
}

interface Bench {
  readonly queue: RequestQueue;
  readonly clock: HandClock;
  readonly submitted: { readonly requestId: string; readonly resolution: Resolution; readonly by: string }[];
  readonly faults: InteractionFault[];
  readonly leftOpen: string[];
}
function bench(options: Partial<RequestQueueOptions> & { readonly outcome?: SubmitOutcome } = {}): Bench {
  const { outcome = "accepted", ...rest } = options;
  const clock = handClock();
  const submitted: Bench["submitted"][number][] = [];
  const faults: InteractionFault[] = [];
  const leftOpen: string[] = [];
  const queue = createRequestQueue({
    clock,
    whenNobody: () => "answer",
    onLeftOpen: ({ requestId }) => void leftOpen.push(requestId),
    onFault: (fault) => void faults.push(fault),
    submit: async ({ requestId }, resolution, by) => {
      submitted.push({ requestId, resolution, by });
      return outcome;
    },
    ...rest,
  });
  return { queue, clock, submitted, faults, leftOpen };
}
function ids(list: readonly { readonly requestId: string }[]): readonly string[] {
  return list.map(({ requestId }) => requestId);
}
const approve: Answer = { kind: "approve" };

describe("order", () => {
  test("100 waiting requests of many runs are shown one at a time, in the order they came", async () => {
    const ann = person("ann");
    const { queue, submitted, clock } = bench({ interactors: [ann], timeoutMs: 60_000 });
    const names = Array.from({ length: 100 }, (_, at) => `q${at}`);
    for (const [at, name] of names.entries()) queue.add(request(name, { runId: `r${at % 7}` }));
    for (const [at, name] of names.entries()) {
      await calm();
      expect(ids(ann.seen)).toEqual(names.slice(0, at + 1));
      expect(queue.pending()).toHaveLength(100 - at);
      ann.seen[at]?.answer(at % 2 === 0 ? approve : { kind: "deny", reason: name });
    }
    await calm();
    expect(ids(submitted)).toEqual(names);
    expect(queue.pending()).toEqual([]);
    expect(clock.waiting()).toBe(0);
  });

  test("a request that is here already is not shown twice; the same id in another run is another request", async () => {
    const ann = person("ann");
    const { queue, clock } = bench({ interactors: [ann], timeoutMs: 1_000 });
    queue.add(request("q"));
    queue.add(request("q"));
    queue.add(request("q", { runId: "r2" }));
    expect(clock.waiting()).toBe(2);
    expect(queue.pending().map(({ runId }) => runId)).toEqual(["r1", "r2"]);
    ann.seen[0]?.answer(approve);
    await calm();
    expect(queue.pending().map(({ runId }) => runId)).toEqual(["r2"]);
    ann.seen[1]?.answer(approve);
    await calm();
    expect([ann.seen.length, queue.pending()]).toEqual([2, []]);
  });

  test("the next request is shown only when the host has taken the answer", async () => {
    let commit: ((outcome: SubmitOutcome) => void) | undefined;
    const ann = person("ann");
    const { queue } = bench({ interactors: [ann], submit: () => new Promise((resolve) => (commit = resolve)) });
    queue.add(request("q1"));
    queue.add(request("q2"));
    ann.seen[0]?.answer(approve);
    await calm();
    expect(ids(ann.seen)).toEqual(["q1"]);
    commit?.("accepted");
    await calm();
    expect(ids(ann.seen)).toEqual(["q1", "q2"]);
  });
});

describe("several interactors", () => {
  test("all see the head at once; the first answer wins, the others' requests are withdrawn and their late answers dropped", async () => {
    const [ann, bob] = [person("ann"), person("bob")];
    const { queue, submitted, faults } = bench({ interactors: [ann, bob] });
    queue.add(request("q1"));
    expect([ids(ann.seen), ids(bob.seen)]).toEqual([["q1"], ["q1"]]);
    bob.seen[0]?.answer({ kind: "deny", reason: "no" });
    await calm();
    expect(ann.seen[0]?.signal.aborted).toBe(true);
    expect(bob.seen[0]?.signal.aborted).toBe(false);
    ann.seen[0]?.answer(approve);
    await calm();
    expect(submitted).toEqual([{ requestId: "q1", resolution: { kind: "deny", reason: "no" }, by: "bob" }]);
    expect(faults).toEqual([]);
  });

  test("two answers at the same moment are one answer", async () => {
    const [ann, bob] = [person("ann"), person("bob")];
    const { queue, submitted } = bench({ interactors: [ann, bob] });
    queue.add(request("q1"));
    ann.seen[0]?.answer(approve);
    bob.seen[0]?.answer({ kind: "deny" });
    await calm();
    expect(submitted.map(({ by }) => by)).toEqual(["ann"]);
  });

  test("no opinion leaves the request to the others", async () => {
    const ann = person("ann");
    const { queue, submitted } = bench({ interactors: [callbackInteractor("rule", () => undefined), ann] });
    queue.add(request("q1"));
    await calm();
    expect(submitted).toEqual([]);
    ann.seen[0]?.answer(approve);
    await calm();
    expect(submitted).toMatchObject([{ by: "ann" }]);
  });

  test("one that rejects or throws at once does not void the request, and is reported", async () => {
    const ann = person("ann");
    const throwing: Interactor = {
      name: "throwing",
      answer: () => {
        throw new Error("at once");
      },
    };
    const rejecting: Interactor = { name: "rejecting", answer: () => Promise.reject(new Error("later")) };
    const { queue, submitted, faults } = bench({ interactors: [throwing, rejecting, ann] });
    queue.add(request("q1"));
    await calm();
    expect(faults.map(({ by, message }) => `${by}: ${message}`).sort()).toEqual([
      "rejecting: later",
      "throwing: at once",
    ]);
    expect(ids(ann.seen)).toEqual(["q1"]);
    ann.seen[0]?.answer(approve);
    await calm();
    expect(submitted).toMatchObject([{ by: "ann", resolution: approve }]);
  });

  test("one that leaves while it is being asked does not hide the request from the others", async () => {
    const ann = person("ann");
    const { queue, submitted } = bench({ whenNobody: () => "wait" });
    let leave = (): void => undefined;
    leave = queue.attach(
      callbackInteractor("hasty", () => {
        leave();
        return undefined;
      }),
    );
    queue.attach(ann);
    queue.add(request("q1"));
    await calm();
    expect(ids(ann.seen)).toEqual(["q1"]);
    ann.seen[0]?.answer(approve);
    await calm();
    expect(submitted).toHaveLength(1);
  });
});

test("one that is sent away by another's answer is not asked any more", async () => {
  const bob = person("bob");
  const { queue } = bench({ whenNobody: () => "wait" });
  let bobLeaves = (): void => undefined;
  queue.attach(
    callbackInteractor("bouncer", () => {
      bobLeaves();
      return undefined;
    }),
  );
  bobLeaves = queue.attach(bob);
  queue.add(request("q1"));
  await calm();
  expect(bob.seen).toEqual([]);
});

describe("no one there", () => {
  const none = { kind: "none", cause: "no_interactor" };

  test("without interactors a request is resolved with no_interactor, unless it may wait", async () => {
    const { queue, submitted, leftOpen } = bench({
      whenNobody: ({ kind }) => (kind === "humanState" ? "wait" : "answer"),
    });
    queue.add(request("q1"));
    queue.add(request("q2", { kind: "humanState" }));
    queue.add(request("q3"));
    await calm();
    expect(submitted).toMatchObject([
      { requestId: "q1", resolution: none },
      { requestId: "q3", resolution: none },
    ]);
    expect(leftOpen).toEqual(["q2"]);
    expect(ids(queue.pending())).toEqual(["q2"]);
  });

  test("when all have declined or crashed the request falls to no one", async () => {
    const rules = [
      callbackInteractor("a", () => undefined),
      callbackInteractor("b", () => Promise.reject(new Error("x"))),
    ];
    const { queue, submitted } = bench({ interactors: rules });
    queue.add(request("q1"));
    await calm();
    expect(submitted).toMatchObject([{ requestId: "q1", resolution: none }]);
  });

  test("a request no one here answers is left open and keeps none of the others waiting", async () => {
    const rule = callbackInteractor("rule", ({ requestId }) => (requestId === "q1" ? undefined : approve));
    const { queue, submitted, leftOpen } = bench({ interactors: [rule], whenNobody: () => "wait" });
    for (const id of ["q1", "q2", "q3"]) queue.add(request(id));
    await calm();
    expect(ids(submitted)).toEqual(["q2", "q3"]);
    expect(leftOpen).toEqual(["q1"]);
  });

  test("an interactor that only watches sees every request, and does not count as one that can answer", async () => {
    const watcher = { ...person("watcher"), observes: true } as const;
    const ann = person("ann");
    const { queue, leftOpen } = bench({ interactors: [watcher], whenNobody: () => "wait" });
    for (const id of ["q1", "q2"]) queue.add(request(id));
    await calm();
    expect(ids(watcher.seen)).toEqual(["q1", "q2"]);
    expect(leftOpen).toEqual(["q1", "q2"]);
    queue.attach(ann);
    expect(ids(ann.seen)).toEqual(["q1"]);
    ann.seen[0]?.answer(approve);
    await calm();
    expect(ids(ann.seen)).toEqual(["q1", "q2"]);
    expect(watcher.seen.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    queue.withdraw("r1", "q2");
    expect(watcher.seen.map(({ signal }) => signal.aborted)).toEqual([true, true]);

    const denying = bench({ interactors: [watcher] });
    denying.queue.add(request("q3"));
    await calm();
    expect(denying.submitted).toMatchObject([
      { requestId: "q3", resolution: { kind: "none", cause: "no_interactor" } },
    ]);
  });

  test("an interactor that joins later is shown what was left open, oldest first", async () => {
    const { queue, submitted } = bench({ whenNobody: () => "wait" });
    for (const id of ["q1", "q2"]) queue.add(request(id));
    const ann = person("ann");
    queue.attach(ann);
    expect(ids(ann.seen)).toEqual(["q1"]);
    ann.seen[0]?.answer(approve);
    await calm();
    expect(ids(ann.seen)).toEqual(["q1", "q2"]);
    expect(ids(submitted)).toEqual(["q1"]);
  });

  test("a request that an interactor joined for and has no answer to is left open again", async () => {
    const { queue, leftOpen } = bench({ whenNobody: () => "wait" });
    queue.add(request("q1"));
    const ann = person("ann");
    queue.attach(ann);
    ann.seen[0]?.answer(undefined);
    await calm();
    expect(leftOpen).toEqual(["q1", "q1"]);
    expect(ids(queue.pending())).toEqual(["q1"]);
  });

  test("the host learns that a request that was left open has someone who can answer it, also before it is shown", async () => {
    const askedAgain: string[] = [];
    const { queue, leftOpen } = bench({
      whenNobody: () => "wait",
      onAskedAgain: ({ requestId }) => void askedAgain.push(requestId),
    });
    for (const id of ["q1", "q2"]) queue.add(request(id));
    const ann = person("ann");
    const leave = queue.attach(ann);
    expect(ids(ann.seen)).toEqual(["q1"]);
    expect(askedAgain).toEqual(["q1", "q2"]);
    queue.attach({ ...person("watching"), observes: true });
    queue.attach(person("bob"));
    leave();
    expect([leftOpen, askedAgain]).toEqual([
      ["q1", "q2"],
      ["q1", "q2"],
    ]);
  });

  test("a request is left open again when the one who joined leaves unasked, while another holds what is shown", async () => {
    const { queue, leftOpen } = bench({ whenNobody: () => "wait" });
    const ann = person("ann");
    queue.attach(ann);
    queue.add(request("q1"));
    ann.seen[0]?.answer(undefined);
    await calm();
    queue.add(request("q2"));
    await calm();
    expect([ids(ann.seen), leftOpen]).toEqual([["q1", "q2"], ["q1"]]);
    const leave = queue.attach(person("bob"));
    leave();
    await calm();
    expect(leftOpen).toEqual(["q1", "q1"]);
  });

  test("one that only watches does not count as someone who can answer", () => {
    const askedAgain: string[] = [];
    const { queue } = bench({
      whenNobody: () => "wait",
      onAskedAgain: ({ requestId }) => void askedAgain.push(requestId),
    });
    queue.add(request("q1"));
    queue.attach({ ...person("watching"), observes: true });
    expect(askedAgain).toEqual([]);
  });

  test("defer is an answer, and where the run waits it leaves the request open", async () => {
    const later = callbackInteractor("later", () => ({ kind: "defer" }));
    const now = bench({ interactors: [later] });
    now.queue.add(request("q1"));
    await calm();
    expect(now.submitted).toMatchObject([{ resolution: { kind: "defer" }, by: "later" }]);
    const waiting = bench({ interactors: [later], whenNobody: () => "wait" });
    waiting.queue.add(request("q1"));
    await calm();
    expect(waiting.submitted).toEqual([]);
    expect(waiting.leftOpen).toEqual(["q1"]);
  });
});

describe("coming and going", () => {
  test("an interactor that joins sees the request that is being shown", async () => {
    const [ann, bob] = [person("ann"), person("bob")];
    const { queue, submitted } = bench({ interactors: [ann] });
    queue.add(request("q1"));
    queue.attach(bob);
    bob.seen[0]?.answer(approve);
    await calm();
    expect(submitted).toMatchObject([{ by: "bob" }]);
    expect(ann.seen[0]?.signal.aborted).toBe(true);
  });

  test("when the last one leaves, what was shown falls to no one, and their answer is dropped", async () => {
    const ann = person("ann");
    const { queue, submitted } = bench();
    const leave = queue.attach(ann);
    queue.add(request("q1"));
    leave();
    expect(ann.seen[0]?.signal.aborted).toBe(true);
    ann.seen[0]?.answer(approve);
    await calm();
    expect(submitted).toMatchObject([{ resolution: { kind: "none", cause: "no_interactor" } }]);
  });

  test("one that left and comes back is asked again, and its old answer does not count", async () => {
    const ann = person("ann");
    const { queue, submitted, leftOpen } = bench({ whenNobody: () => "wait" });
    queue.attach(ann)();
    const leave = queue.attach(ann);
    queue.add(request("q1"));
    leave();
    queue.attach(ann);
    expect(ids(ann.seen)).toEqual(["q1", "q1"]);
    ann.seen[0]?.answer({ kind: "deny" });
    await calm();
    expect(leftOpen).toEqual(["q1"]);
    ann.seen[1]?.answer(approve);
    await calm();
    expect(submitted).toMatchObject([{ resolution: approve }]);
  });

  test("attaching twice is attaching once", async () => {
    const ann = person("ann");
    const { queue } = bench({ interactors: [ann] });
    queue.attach(ann);
    queue.add(request("q1"));
    expect(ids(ann.seen)).toEqual(["q1"]);
  });
});

describe("settled elsewhere", () => {
  test("a request answered by another process is withdrawn and the next one shown", async () => {
    const ann = person("ann");
    const { queue, submitted } = bench({ interactors: [ann] });
    for (const id of ["q1", "q2", "q3"]) queue.add(request(id));
    queue.withdraw("r1", "q2");
    queue.withdraw("r1", "q1");
    queue.withdraw("r2", "q3");
    await calm();
    expect(ann.seen[0]?.signal.aborted).toBe(true);
    expect(ids(ann.seen)).toEqual(["q1", "q3"]);
    expect(submitted).toEqual([]);
  });

  test.each(["already_answered", "unknown", "digest_mismatch"] as const)(
    "an answer the host calls %s ends the request here",
    async (outcome) => {
      const ann = person("ann");
      const { queue, faults } = bench({ interactors: [ann], outcome });
      queue.add(request("q1"));
      ann.seen[0]?.answer(approve);
      await calm();
      expect(queue.pending()).toEqual([]);
      expect(faults).toHaveLength(outcome === "digest_mismatch" ? 1 : 0);
    },
  );

  test("when the host cannot take an answer, the request stays open for the others", async () => {
    const [ann, bob] = [person("ann"), person("bob")];
    let calls = 0;
    const { queue, faults } = bench({
      interactors: [ann, bob],
      submit: async () => {
        calls += 1;
        if (calls === 1) throw new Error("disk full");
        return "accepted";
      },
    });
    queue.add(request("q1"));
    ann.seen[0]?.answer(approve);
    await calm();
    expect(faults).toMatchObject([{ by: "ann", message: "disk full" }]);
    expect(bob.seen[0]?.signal.aborted).toBe(false);
    bob.seen[0]?.answer(approve);
    await calm();
    expect([calls, queue.pending()]).toEqual([2, []]);
  });
});

describe("time", () => {
  test("a request expires by an answer of its own, which competes like any other", async () => {
    const ann = person("ann");
    const { queue, submitted, clock } = bench({ interactors: [ann], timeoutMs: 1_000 });
    queue.add(request("q1"));
    clock.turn(999);
    await calm();
    expect(submitted).toEqual([]);
    clock.turn(1);
    await calm();
    expect(submitted).toEqual([{ requestId: "q1", resolution: { kind: "none", cause: "timeout" }, by: "queue" }]);
    expect(ann.seen[0]?.signal.aborted).toBe(true);
    ann.seen[0]?.answer(approve);
    await calm();
    expect(submitted).toHaveLength(1);
  });

  test("an answer in time stops the clock, and so does every other end", async () => {
    const ann = person("ann");
    const { queue, clock } = bench({ interactors: [ann], timeoutMs: 1_000 });
    for (const id of ["q1", "q2", "q3"]) queue.add(request(id));
    expect(clock.waiting()).toBe(3);
    ann.seen[0]?.answer(approve);
    await calm();
    queue.withdraw("r1", "q2");
    expect(clock.waiting()).toBe(1);
    queue.close();
    expect(clock.waiting()).toBe(0);
  });
});

test("closing takes everything back, resolves nothing and lets nothing more in", async () => {
  const ann = person("ann");
  const { queue, submitted } = bench({ interactors: [ann] });
  for (const id of ["q1", "q2"]) queue.add(request(id));
  queue.close();
  expect(ann.seen[0]?.signal.aborted).toBe(true);
  ann.seen[0]?.answer(approve);
  queue.add(request("q3"));
  queue.attach(person("bob"));
  await calm();
  expect([ids(ann.seen), submitted, queue.pending()]).toEqual([["q1"], [], []]);
});

describe("answers that are none", () => {
  const question: JsonObject = { question: "How many?", answer: { type: "integer", minimum: 1 } };

  async function submittedFor(
    given: string,
    more: Partial<PersonRequest>,
  ): Promise<{ readonly resolutions: readonly Resolution[]; readonly fault?: string }> {
    const hostile = callbackInteractor("hostile", () => JSON.parse(given));
    const { queue, submitted, faults } = bench({ interactors: [hostile] });
    queue.add(request("q1", more));
    await calm();
    const resolutions = submitted.filter(({ by }) => by === "hostile").map(({ resolution }) => resolution);
    return { resolutions, ...(faults[0] === undefined ? {} : { fault: faults[0].message }) };
  }

  test.each([
    ['"approve"', {}],
    ["null", {}],
    ["[]", {}],
    ['{ "kind": "yes" }', {}],
    ['{ "approve": true }', {}],
    ['{ "kind": "deny", "reason": 5 }', {}],
    ['{ "kind": "value", "value": 1 }', {}],
    ['{ "kind": "value", "value": 1 }', { kind: "approveTransition" }],
    ['{ "kind": "approve" }', { kind: "askUser", body: question }],
    ['{ "kind": "approve" }', { kind: "humanState", body: question }],
    ['{ "kind": "value" }', { kind: "askUser", body: question }],
    ['{ "kind": "value", "value": 0 }', { kind: "askUser", body: question }],
    ['{ "kind": "value", "value": "3" }', { kind: "humanState", body: question }],
    ['{ "kind": "value", "value": 3 }', { kind: "askUser", body: { answer: { type: "nonsense" } } }],
    ['{ "kind": "value", "value": 3 }', { kind: "askUser", body: { answer: "integer" } }],
  ] as const)("%s to %j is refused with a fault", async (given, more) => {
    const { resolutions, fault } = await submittedFor(given, more);
    expect(resolutions).toEqual([]);
    expect(fault).toEqual(expect.any(String));
  });

  test.each([
    ['{ "kind": "approve", "extra": 1 }', {}, { kind: "approve" }],
    ['{ "kind": "deny", "reason": "later" }', { kind: "approveTransition" }, { kind: "deny", reason: "later" }],
    ['{ "kind": "deny" }', { kind: "askUser", body: question }, { kind: "deny" }],
    ['{ "kind": "defer" }', { kind: "humanState", body: question }, { kind: "defer" }],
    ['{ "kind": "value", "value": 3 }', { kind: "askUser", body: question }, { kind: "value", value: 3 }],
    ['{ "kind": "value", "value": [1] }', { kind: "askUser", body: { question: "?" } }, { kind: "value", value: [1] }],
  ] as const)("%s to %j is taken, and only what an answer holds", async (given, more, expected) => {
    expect(await submittedFor(given, more)).toEqual({ resolutions: [expected] });
  });

  test("a value that is not JSON is refused", async () => {
    const odd = callbackInteractor("odd", () => ({ kind: "value", value: Number.NaN }));
    const { queue, faults } = bench({ interactors: [odd] });
    queue.add(request("q1", { kind: "askUser" }));
    await calm();
    expect(faults).toHaveLength(1);
  });
});
