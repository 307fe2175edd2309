import {
  type Answer,
  callbackInteractor,
  final,
  type Json,
  type OpenRequest,
  type PersonRequest,
  pipeline,
  type State,
} from "@sluice/core";
import { describe, expect, test } from "vitest";
import { type KilledRun, killedEverywhere } from "../support/killed-runs.ts";
import {
  completed,
  dataOf,
  eventsOf,
  eventually,
  failed,
  json,
  noModel,
  quiet,
  session,
  type TestSession,
  twoHosts,
  work,
} from "../support/run-kit.ts";

// Moves that a person has to approve: of an event, of a result, and of a failed fan-out.

const input = { type: "object" } as const;

/** Sends one event, and completes if it is accepted; the answers are kept. */
function deploying(outcomes: Json[] = [], tries = 1): State<Json, unknown> {
  const { kind, spec } = work({
    act: async (scope) => {
      for (let turn = 1; turn <= tries; turn += 1) {
        const { accepted, output } = await scope.accept({ turn, event: "DEPLOY", data: { to: "production" } });
        outcomes.push(json({ accepted, output }));
        if (accepted) return completed(output);
      }
      return failed("not deployed");
    },
  });
  return { kind, spec: { ...spec, completesByEvents: true } };
}
function guarded(first: State<Json, unknown> = deploying()) {
  return pipeline({
    id: "guarded",
    input,
    stages: { first, deployed: final("completed"), stopped: final("failed") },
    initial: "first",
    transitions: [
      { from: "first", on: { event: "DEPLOY" }, to: "deployed", approval: { message: "Deploy to production?" } },
      { from: "first", on: "failure", to: "stopped" },
    ],
  });
}
/** The same by the result of a state. */
function routed() {
  return pipeline({
    id: "routed",
    input,
    stages: { first: work({ act: () => completed("built") }), deployed: final("completed") },
    initial: "first",
    transitions: [{ from: "first", on: "success", to: "deployed", approval: { message: "Deploy?" } }],
  });
}

const answering = (answer: Answer, shown: PersonRequest[] = []) =>
  callbackInteractor("person", (request) => {
    shown.push(request);
    return answer;
  });

describe("an event whose row needs an approval", () => {
  test("is accepted when a person approves it, who sees where it leads and what it sends", async () => {
    const shown: PersonRequest[] = [];
    const live = session({ model: noModel, interactors: [answering({ kind: "approve" }, shown)] });
    const run = live.start(guarded(), {});
    expect(await run).toMatchObject({ status: "completed", state: "deployed" });
    expect(shown).toMatchObject([
      {
        kind: "approveTransition",
        requestId: "first#1/a1/turn/1/accept/0",
        body: {
          from: "first",
          to: "deployed",
          event: "DEPLOY",
          message: "Deploy to production?",
          data: { to: "production" },
          executionId: "first#1",
          attempt: 1,
        },
      },
    ]);
    const events = await eventsOf(live.host, run.runId);
    expect(dataOf(events, "request.answered")).toMatchObject([{ answer: "approve", by: "person", proof: "session" }]);
    expect(dataOf(events, "route.decided")).toMatchObject([{ to: "deployed", why: { approved: true } }]);
  });

  test.each([
    ["a denial", { kind: "deny", reason: "not on a Friday" }, "not on a Friday"],
    ["a deferral", { kind: "defer" }, "deferred"],
  ] as const)("stays after %s, and the answer says why", async (_name, answer, why) => {
    const outcomes: Json[] = [];
    const live = session({ model: noModel, interactors: [answering(answer)] });
    expect(await live.run(guarded(deploying(outcomes)), {})).toMatchObject({ status: "failed", state: "stopped" });
    expect(outcomes).toMatchObject([
      { accepted: false, output: { code: "transition_rejected", reason: expect.stringContaining(why) } },
    ]);
  });

  test("is refused at once, and never approved, where no one can answer", async () => {
    const outcomes: Json[] = [];
    const live = session({ model: noModel, mode: "yolo" });
    const run = live.start(guarded(deploying(outcomes)), {});
    expect(await run).toMatchObject({ status: "failed", state: "stopped" });
    expect(outcomes).toMatchObject([{ accepted: false, output: { reason: expect.stringContaining("no one") } }]);
    const answered = dataOf(await eventsOf(live.host, run.runId), "request.answered");
    expect(answered).toMatchObject([{ answer: "none", cause: "no_interactor", by: "headless" }]);
  });

  test("asks again for each try: an approval covers one", async () => {
    const answers: Answer[] = [{ kind: "deny" }, { kind: "approve" }];
    const shown: PersonRequest[] = [];
    const live = session({
      model: noModel,
      interactors: [
        callbackInteractor("person", (request) => {
          shown.push(request);
          return answers.shift();
        }),
      ],
    });
    expect(await live.run(guarded(deploying([], 2)), {})).toMatchObject({ status: "completed" });
    expect(shown.map(({ requestId }) => requestId)).toEqual([
      "first#1/a1/turn/1/accept/0",
      "first#1/a1/turn/2/accept/1",
    ]);
  });

  test("holds no concurrency slot while it waits", async () => {
    const live = session({ model: noModel, wait: true, maxParallel: 1 });
    const waiting = live.start(guarded(), {});
    await eventually(async () => (await live.host.requests(waiting.runId)).length === 1);
    expect(await live.run(routedWithoutApproval(), {})).toMatchObject({ status: "completed" });
    await waiting.cancel("enough");
    expect(await waiting).toMatchObject({ status: "cancelled", error: { message: "enough" } });
    expect(dataOf(await eventsOf(live.host, waiting.runId), "request.expired")).toMatchObject([{ cause: "cancelled" }]);
  });

  test("whose attempt does not complete voids the approval", async () => {
    const live = session({ model: noModel, interactors: [answering({ kind: "approve" })] });
    const { kind, spec } = work({
      act: async (scope) => {
        await scope.accept({ turn: 1, event: "DEPLOY", data: {} });
        return failed("changed its mind");
      },
    });
    const run = live.start(guarded({ kind, spec: { ...spec, completesByEvents: true } }), {});
    expect(await run).toMatchObject({ status: "failed", state: "stopped" });
    expect(dataOf(await eventsOf(live.host, run.runId), "request.expired")).toMatchObject([
      { requestId: "first#1/a1/turn/1/accept/0", cause: "attempt_finished" },
    ]);
  });
});

function routedWithoutApproval() {
  return pipeline({
    id: "plain",
    input,
    stages: { only: work(), over: final("completed") },
    initial: "only",
    transitions: [{ from: "only", on: "success", to: "over" }],
  });
}

describe("a result whose row needs an approval", () => {
  test("moves when a person approves it", async () => {
    const shown: PersonRequest[] = [];
    const live = session({ model: noModel, interactors: [answering({ kind: "approve" }, shown)] });
    expect(await live.run(routed(), {})).toMatchObject({ status: "completed", state: "deployed", output: "built" });
    expect(shown).toMatchObject([{ requestId: "first#1/a1/approval", body: { from: "first", to: "deployed" } }]);
  });

  test("ends the run as failed with code approval_denied when it is denied", async () => {
    const live = session({ model: noModel, interactors: [answering({ kind: "deny", reason: "no" })] });
    const run = live.start(routed(), {});
    expect(await run).toMatchObject({ status: "failed", error: { code: "approval_denied" } });
    // The move was not made, so no event says that it was.
    expect(dataOf(await eventsOf(live.host, run.runId), "route.decided")).toMatchObject([{ choice: "fail" }]);
  });

  test("ends the run so, too, where no one can answer", async () => {
    const live = session({ model: noModel, mode: "yolo" });
    expect(await live.run(routed(), {})).toMatchObject({ status: "failed", error: { code: "approval_denied" } });
  });

  test("is answered after a failed fan-out, under the id of the fan-out", async () => {
    const shown: PersonRequest[] = [];
    const live = session({ model: noModel, interactors: [answering({ kind: "approve" }, shown)] });
    const fanned = pipeline({
      id: "fanned",
      input,
      stages: {
        start: work(),
        good: work(),
        bad: work({ act: () => failed("bad") }),
        join: work(),
        over: final("completed"),
      },
      initial: "start",
      transitions: [
        { from: "start", on: "success", to: { kind: "fanOut", siblings: ["good", "bad"], join: "join" } },
        { from: "start", on: "failure", to: "over", approval: {} },
        { from: "join", on: "success", to: "over" },
      ],
    });
    expect(await live.run(fanned, {})).toMatchObject({ status: "completed", state: "over" });
    expect(shown).toMatchObject([{ requestId: "fan-1/approval", body: { executionId: "start#1", to: "over" } }]);
  });
});

describe("an approval from another process", () => {
  const open = async (live: TestSession, runId: string): Promise<OpenRequest> => {
    await eventually(async () => (await live.host.requests(runId)).length === 1);
    const [request] = await live.host.requests(runId);
    return request ?? expect.fail();
  };

  test.each([
    ["an event", guarded],
    ["a result", routed],
  ] as const)("of %s counts with the digest of what was shown", async (_name, make) => {
    const { clock, first, second } = twoHosts();
    const live = session({ model: noModel, wait: true, clock, host: first });
    const run = live.start(make(), {});
    const { requestId, digest } = await open(live, run.runId);
    const send = (given: string) =>
      second.signal(run.runId, {
        name: `request/${requestId}`,
        payload: { kind: "approve", digest: given },
        digest: given,
        by: "elsewhere",
      });
    expect(await send("0".repeat(64))).toBe("digest_mismatch");
    await quiet();
    expect(await send(digest)).toBe("accepted");
    expect(await run).toMatchObject({ status: "completed", state: "deployed" });
    expect(await send(digest)).toBe("unknown");
  });

  test("that names another digest in its payload approves nothing", async () => {
    const { clock, first, second } = twoHosts();
    const live = session({ model: noModel, wait: true, clock, host: first });
    const run = live.start(routed(), {});
    const { requestId, digest } = await open(live, run.runId);
    const payload = { kind: "approve", digest: "1".repeat(64) };
    await second.signal(run.runId, { name: `request/${requestId}`, payload, digest, by: "elsewhere" });
    expect(await run).toMatchObject({ status: "failed", error: { code: "approval_denied" } });
  });

  test("after the process that asked was stopped is found by the one that resumes", async () => {
    const { clock, first, second } = twoHosts();
    const before = session({ model: noModel, wait: true, clock, host: first });
    const events = guarded();
    const run = before.start(events, {});
    const { requestId, digest } = await open(before, run.runId);
    await run.suspend();
    const payload = { kind: "approve", digest };
    await second.signal(run.runId, { name: `request/${requestId}`, payload, digest, by: "elsewhere" });
    const after = session({ model: noModel, wait: true, clock, host: second });
    expect(await after.resume(events, run.runId)).toMatchObject({ status: "completed", state: "deployed" });
    const recorded = await eventsOf(second, run.runId);
    expect(dataOf(recorded, "request.opened")).toHaveLength(1);
    expect(dataOf(recorded, "request.answered")).toMatchObject([{ by: "elsewhere", answer: "approve" }]);
  });
});

describe("a run with approvals that is killed before any record", () => {
  const withAnswer = (make: () => ReturnType<typeof routed>, answer: Answer) => (): KilledRun => ({
    pipeline: make(),
    input: {},
    options: { interactors: [answering(answer)] },
  });
  test.each([
    ["approved event", withAnswer(guarded, { kind: "approve" })],
    ["denied event", withAnswer(() => guarded(deploying([], 2)), { kind: "deny" })],
    ["approved result", withAnswer(routed, { kind: "approve" })],
    ["denied result", withAnswer(routed, { kind: "deny", reason: "no" })],
  ])("comes to the same end: %s", async (_name, make) => {
    const { whole, killed } = await killedEverywhere(make);
    for (const facts of killed) expect(facts).toEqual(whole);
  });
});
