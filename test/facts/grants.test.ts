import { callbackInteractor, type Interactor, type Json, stage } from "@sluice/core";
import { expect } from "vitest";
import {
  calls,
  completionSchema,
  drive,
  fact,
  finish,
  noting,
  one,
  saying,
  task,
  tools,
  worker,
} from "../support/facts.ts";
import { dataOf, eventsOf, eventually, session, tool } from "../support/run-kit.ts";
import { talker } from "../support/talker.ts";

const yes: Interactor = callbackInteractor("me", () => ({ kind: "approve" }));
const no: Interactor = callbackInteractor("me", () => ({ kind: "deny", reason: "not today" }));
/** Notes what really ran, with its arguments. */
function watched(name: string) {
  const ran: Json[] = [];
  const made = tool(name, { execute: async (input) => noting([], name, { ok: true, output: ran.push(input) }) });
  return { ran, tool: made };
}
const deploy = (to: string) => calls(["Deploy", { to }]);

fact(
  51,
  "a grant covers one proposal: an answer that names another digest is refused, and approves nothing",
  async () => {
    const { ran, tool: made } = watched("Deploy");
    const live = session({ tools: [...tools, made], model: saying(deploy("test")), wait: true });
    const handle = live.start(one(worker()), task);
    await eventually(async () => (await live.host.requests()).length === 1);
    const [request] = await live.host.requests();
    if (request === undefined) throw new Error("nothing is asked");
    const name = `request/${request.requestId}`;
    const answer = (requestName: string, digest: string) =>
      live.host.signal(handle.runId, { name: requestName, payload: { kind: "approve", digest }, digest, by: "me" });
    expect(request).toMatchObject({
      requestId: "one#1/a1/t1.c0",
      body: { executionId: "one#1", attempt: 1, proposalId: "t1.c0", tool: "Deploy" },
    });
    expect(await answer(name, "0".repeat(64))).toBe("digest_mismatch");
    for (const other of ["one#1/a2/t1.c0", "one#2/a1/t1.c0", "one#1/a1/t1.c1", "two#1/a1/t1.c0"]) {
      expect(await answer(`request/${other}`, request.digest)).toBe("unknown");
    }
    expect(ran).toEqual([]);
    expect(await answer(name, request.digest)).toBe("accepted");
    await handle;
    expect(ran).toEqual([{ to: "test" }]);
  },
);

fact(52, "a grant is consumed once: the same call in a later turn is asked about again", async () => {
  const { ran, tool: made } = watched("Deploy");
  const asked: string[] = [];
  const me = callbackInteractor("me", ({ requestId }) => noting(asked, requestId, { kind: "approve" as const }));
  const { events } = await drive(worker(), saying(deploy("test"), deploy("test")), {
    tools: [...tools, made],
    interactors: [me],
  });
  expect([asked, ran.length]).toEqual([["one#1/a1/t1.c0", "one#1/a1/t2.c0"], 2]);
  expect(dataOf(events, "grant.consumed").map(({ requestId }) => requestId)).toEqual(asked);
});

fact(
  53,
  "a grant that is open when its attempt ends expires, its answer comes too late, and another run's stays open",
  async () => {
    const { ran, tool: made } = watched("Deploy");
    const live = session({
      tools: [...tools, made],
      model: talker(({ turn }) => (turn === 0 ? deploy("test") : finish())),
      wait: true,
    });
    const [ended, other] = [live.start(one(worker()), task), live.start(one(worker()), task)];
    await eventually(async () => (await live.host.requests()).length === 2);
    const answer = async (runId: string) => {
      const [request] = await live.host.requests(runId);
      const digest = request?.digest ?? "0".repeat(64);
      return live.host.signal(runId, {
        name: "request/one#1/a1/t1.c0",
        payload: { kind: "approve", digest },
        digest,
        by: "me",
      });
    };
    await ended.cancel("enough");
    expect(dataOf(await eventsOf(live.host, ended.runId), "grant.expired")).toMatchObject([
      { requestId: "one#1/a1/t1.c0" },
    ]);
    expect(await answer(ended.runId)).not.toBe("accepted");
    expect(await answer(other.runId)).toBe("accepted");
    expect((await other).status).toBe("completed");
    expect(ran).toHaveLength(1);
  },
);

fact(54, "a grant's request, answer and use are in the record, with who answered and the digest", async () => {
  const { tool: made } = watched("Deploy");
  const { events } = await drive(worker(), saying(deploy("test")), { tools: [...tools, made], interactors: [yes] });
  const [requested] = dataOf(events, "grant.requested");
  const { digest: argsDigest, requestId } = requested ?? {};
  expect(argsDigest).toMatch(/^[0-9a-f]{64}$/);
  expect(dataOf(events, "grant.answered")).toMatchObject([{ requestId, argsDigest, answer: "approve", by: "me" }]);
  expect(dataOf(events, "grant.consumed")).toMatchObject([{ requestId, argsDigest }]);
  expect(dataOf(events, "call.decided")).toMatchObject([{ verdict: "approved", by: "grant", argsDigest }]);
});

fact(55, "a call inside the envelope asks nobody in any mode, and the guard hooks are still asked", async () => {
  for (const mode of ["ask", "allowlist", "yolo"] as const) {
    const guarded: string[] = [];
    const onCall = () => noting(guarded, "guarded", undefined);
    const me = callbackInteractor("me", () => noting(guarded, "asked", { kind: "deny" as const }));
    const { results } = await drive(worker(), saying(calls("Look")), { mode, interactors: [me], onCall });
    expect([guarded, results(0)]).toEqual([["guarded"], ["saw {}"]]);
  }
});

fact(56, "outside the envelope a denial or a deferral blocks the call, also in mode yolo", async () => {
  for (const [kind, cause] of [
    ["deny", "denied"],
    ["defer", "deferred"],
  ] as const) {
    const { ran, tool: made } = watched("Deploy");
    const me = callbackInteractor("me", () => ({ kind }));
    const { results } = await drive(worker(), saying(deploy("test")), {
      mode: "yolo",
      tools: [...tools, made],
      interactors: [me],
    });
    expect([ran, results(0)]).toMatchObject([[], [{ code: "tool_call_denied", cause }]]);
  }
});

fact(57, "a guard's veto stands against a grant", async () => {
  const { ran, tool: made } = watched("Deploy");
  const guarded: string[] = [];
  const onCall = ({ approvedBy }: { readonly approvedBy: string }) =>
    noting(guarded, approvedBy, { veto: "never on a Friday" });
  const { results, events } = await drive(worker({ onCall }), saying(deploy("test")), {
    tools: [...tools, made],
    interactors: [yes],
  });
  expect([ran, guarded, results(0)]).toMatchObject([
    [],
    ["grant"],
    [{ cause: "hook", reason: expect.stringContaining("Friday") }],
  ]);
  expect(dataOf(events, "hook.vetoed")).toHaveLength(1);
});

fact(58, "without an envelope the session's mode decides", async () => {
  const verdict = async (mode: "ask" | "allowlist" | "yolo", allow: readonly string[] = []) => {
    const { ran, tool: made } = watched("Deploy");
    const state = stage({ prompt: "Work.", completionTool: "finish", completionSchema, turnCap: 4 });
    const { results } = await drive(one(state), saying(deploy("test")), { mode, allow, tools: [...tools, made] });
    return ran.length === 1 ? "ran" : Object(results(0)[0]).cause;
  };
  expect([
    await verdict("yolo"),
    await verdict("ask"),
    await verdict("allowlist"),
    await verdict("allowlist", ["Deploy"]),
  ]).toEqual(["ran", "no_interactor", "mode", "ran"]);
});

fact(59, "a call's digest does not depend on the order of its arguments' keys, and on all else", async () => {
  const raw = ['{"a":1,"ä":{"x":1,"B":2}}', '{ "ä": {"B":2.0,"x":1}, "a":1 }', '{"a":1,"ä":{"x":1,"b":2}}'];
  const model = saying(...raw.map((rawInput) => ({ calls: [{ tool: "Look", rawInput }] })));
  const { events } = await drive(worker(), model);
  const [first, second, third] = dataOf(events, "call.decided").map(({ argsDigest }) => argsDigest);
  expect(first).toBe(second);
  expect(third).not.toBe(first);
});

fact(
  60,
  "the same tool with other arguments is another request; a denied proposal is not asked about again",
  async () => {
    const { ran, tool: made } = watched("Deploy");
    const asked: Json[] = [];
    const me = callbackInteractor("me", ({ body }) => {
      asked.push(body.input ?? null);
      return asked.length === 1 ? { kind: "deny" } : { kind: "approve" };
    });
    await drive(worker(), saying(deploy("live"), deploy("test")), { tools: [...tools, made], interactors: [me] });
    expect([asked, ran]).toEqual([[{ to: "live" }, { to: "test" }], [{ to: "test" }]]);
  },
);

fact(61, "with nobody there the call is denied and the stage goes on", async () => {
  const { ran, tool: made } = watched("Deploy");
  const { results, result } = await drive(worker(), saying(deploy("test")), { tools: [...tools, made] });
  expect([ran, results(0), result.status]).toMatchObject([
    [],
    [{ code: "tool_call_denied", cause: "no_interactor" }],
    "completed",
  ]);
  expect(result.denied).toMatchObject([{ tool: "Deploy", cause: "no_interactor" }]);
});

fact(
  62,
  "every proposal leaves one verdict in the record: approved, refused, wrong, vetoed, and cut off by a cancel",
  async () => {
    const { tool: made } = watched("Deploy");
    const onCall = ({ input }: { readonly input: Json }) =>
      JSON.stringify(input).includes("veto") ? { veto: "no" } : undefined;
    const throwing = ({ input }: { readonly input: Json }) => {
      if (JSON.stringify(input).includes("throw")) throw new Error("a guard's bug");
      return undefined;
    };
    const turn = calls("Look", "Nope", ["Look", { veto: 1 }], ["Look", { throw: 1 }], ["Deploy", { to: "live" }]);
    const mixed = await drive(worker({ onCall }), saying(turn), {
      tools: [...tools, made],
      interactors: [no],
      onCall: throwing,
    });
    expect(dataOf(mixed.events, "call.decided").map(({ callId, verdict }) => [callId, verdict])).toEqual([
      ["t1.c0", "approved"],
      ["t1.c1", "refused"],
      ["t1.c2", "refused"],
      ["t1.c3", "refused"],
      ["t1.c4", "refused"],
    ]);
    const cut = await drive(worker(), saying(deploy("test")), {
      tools: [...tools, made],
      wait: true,
      during: async (handle, live) => {
        await eventually(async () => (await live.host.requests()).length === 1);
        await handle.cancel("enough");
      },
    });
    expect(dataOf(cut.events, "call.decided")).toMatchObject([{ callId: "t1.c0", verdict: "refused" }]);
  },
);
