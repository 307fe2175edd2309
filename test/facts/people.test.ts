import { type Answer, callbackInteractor, type Interactor } from "@sluice/core";
import { expect } from "vitest";
import { calls, drive, fact, noting, saying, tools, worker } from "../support/facts.ts";
import { person } from "../support/people-kit.ts";
import { dataOf, eventually, quiet, tool } from "../support/run-kit.ts";

const outside = [...tools, tool("Deploy")];
/** Three calls that each need a grant. */
const three = saying;
const deploys = calls(["Deploy", { n: 1 }], ["Deploy", { n: 2 }], ["Deploy", { n: 3 }]);

fact(63, "requests are shown one at a time, in the order they came", async () => {
  const me = person("me");
  await drive(worker(), three(deploys), {
    tools: outside,
    interactors: [me],
    during: async () => {
      for (let shown = 1; shown <= 3; shown += 1) {
        await eventually(() => me.seen.length === shown);
        await quiet();
        expect(me.seen).toHaveLength(shown);
        me.seen[shown - 1]?.answer({ kind: "approve" });
      }
    },
  });
  expect(me.seen.map(({ request }) => request.requestId)).toEqual([
    "one#1/a1/t1.c0",
    "one#1/a1/t1.c1",
    "one#1/a1/t1.c2",
  ]);
});

fact(64, "the first answer wins, the others are notified, and what they say later is refused", async () => {
  const [fast, slow] = [person("fast"), person("slow")];
  const { events, result } = await drive(worker(), three(calls("Deploy")), {
    tools: outside,
    interactors: [slow, fast],
    during: async (handle, live) => {
      await eventually(() => slow.seen.length === 1 && fast.seen.length === 1);
      const [request] = await live.host.requests();
      fast.seen[0]?.answer({ kind: "approve" });
      await eventually(() => slow.seen[0]?.signal.aborted === true);
      slow.seen[0]?.answer({ kind: "deny" });
      const digest = request?.digest ?? "";
      const late = { name: "request/one#1/a1/t1.c0", payload: { kind: "deny" }, digest, by: "elsewhere" };
      expect(await live.host.signal(handle.runId, late)).toBe("already_answered");
    },
  });
  expect(dataOf(events, "grant.answered")).toMatchObject([{ answer: "approve", by: "fast" }]);
  expect([result.denied, fast.seen[0]?.signal.aborted]).toEqual([[], false]);
});

fact(
  65,
  "a request that nobody answers in time is denied with cause timeout, a later answer is dropped, no timer stays",
  async () => {
    const me = person("me");
    const { results, live, events } = await drive(worker(), three(calls("Deploy")), {
      tools: outside,
      interactors: [me],
      requestTimeoutMs: 5_000,
      during: async (_handle, { clock }) => {
        await eventually(() => me.seen.length === 1);
        clock.turn(4_999);
        await quiet();
        expect(me.seen[0]?.signal.aborted).toBe(false);
        clock.turn(1);
        await eventually(() => me.seen[0]?.signal.aborted === true);
        me.seen[0]?.answer({ kind: "approve" });
      },
    });
    expect(results(0)).toMatchObject([{ code: "tool_call_denied", cause: "timeout" }]);
    expect([dataOf(events, "grant.answered").length, live.clock.waiting()]).toEqual([1, 0]);
  },
);

fact(66, "with nobody there, a typed result says so to the model, for a grant and for a question", async () => {
  const asking = calls("Deploy", ["AskUser", { question: "Which?" }]);
  const { results } = await drive(worker({ allowedTools: ["Look", "AskUser"] }), three(asking), { tools: outside });
  expect(results(0)).toMatchObject([{ code: "tool_call_denied", cause: "no_interactor" }, { code: "no_interactor" }]);
});

fact(67, "the queue goes on after a refusal, a crash, an answer that is none and a request taken back", async () => {
  const answers: (() => unknown)[] = [
    () => ({ kind: "deny" }),
    () => {
      throw new Error("crashed");
    },
    () => ({ kind: "perhaps" }),
    () => ({ kind: "approve" }),
  ];
  const ran: string[] = [];
  const made = tool("Deploy", {
    execute: async (input) => noting(ran, JSON.stringify(input), { ok: true, output: 1 }),
  });
  const faults: string[] = [];
  const me: Interactor = callbackInteractor("me", () => {
    const held: { answer: Answer } = { answer: { kind: "deny" } };
    return Object.assign(held, { answer: answers.shift()?.() }).answer;
  });
  const four = calls(["Deploy", { n: 1 }], ["Deploy", { n: 2 }], ["Deploy", { n: 3 }], ["Deploy", { n: 4 }]);
  const { results } = await drive(worker(), three(four), {
    tools: [...tools, made],
    interactors: [me],
    onFault: ({ message }) => void faults.push(message),
  });
  expect(results(0).map((result) => Object(result).cause)).toEqual([
    "denied",
    "no_interactor",
    "no_interactor",
    undefined,
  ]);
  expect([ran, faults.length]).toEqual([['{"n":4}'], 2]);
});

fact(68, "an interactor that crashes does not void the request for the others", async () => {
  const crashing = callbackInteractor("crashing", () => Promise.reject(new Error("crashed")));
  const faults: string[] = [];
  const me = person("me");
  const { events, result } = await drive(worker(), three(calls("Deploy")), {
    tools: outside,
    interactors: [crashing, me],
    onFault: ({ by }) => void faults.push(by),
    during: async () => {
      await eventually(() => me.seen.length === 1 && faults.length === 1);
      me.seen[0]?.answer({ kind: "approve" });
    },
  });
  expect([faults, result.denied]).toEqual([["crashing"], []]);
  expect(dataOf(events, "grant.answered")).toMatchObject([{ answer: "approve", by: "me" }]);
});
