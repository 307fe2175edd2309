import { expect } from "vitest";
import { dataOf, eventsOf, eventually, session, twoHosts } from "../../support/run-kit.ts";
import {
  calls,
  documentOf,
  fact,
  oneState,
  ours,
  pipelineOf,
  play,
  script,
  send,
  systemOf,
} from "../../support/statewright.ts";
import { talker } from "../../support/talker.ts";
import { loadDocument, loadTexts } from "../../support/workflows.ts";

// Runs as a whole: approvals, other workflows, branches, and what an agent cannot do to its run.

const approved = { DONE: { target: "done", requires_approval: true, approval_message: "Ship it?" }, FAIL: "failed" };

fact(
  60,
  "a transition that waits for a person leaves the state, is shown as open, and takes no second one",
  async () => {
    const both = { calls: [send("DONE"), send("FAIL")].flatMap((turn) => turn.calls ?? []) };
    const model = script({ a: [both] });
    const live = session({ model, wait: true });
    const handle = live.start(pipelineOf(await loadDocument(oneState({ on: approved }))), { task: "Do it." });
    await eventually(async () => (await live.host.requests()).length === 1);
    const [request] = await live.host.requests();
    if (request === undefined) throw new Error("nothing is asked");
    expect(request.body).toMatchObject({ from: "a", to: "done", event: "DONE", message: "Ship it?" });
    expect(dataOf(await eventsOf(live.host, handle.runId), "route.decided")).toEqual([]);
    const { requestId, digest } = request;
    const payload = { kind: "approve", digest };
    expect(await live.host.signal(handle.runId, { name: `request/${requestId}`, payload, digest, by: "me" })).toBe(
      "accepted",
    );
    const result = await handle;
    expect(result).toMatchObject({ status: "completed", output: { event: "DONE" } });
    const events = await eventsOf(live.host, result.runId);
    expect(dataOf(events, "transition.accepted").map(({ event }) => event)).toEqual(["DONE"]);
  },
);

ours(72, "a call of a tool that does not exist is answered with an error, and the state continues", async () => {
  const turn = calls(["Raed", { file_path: "a.txt" }], ["force_state", { state: "done" }]);
  const { results, result } = await play(oneState({ allowed_tools: ["Read"] }), { a: [turn, send("DONE")] });
  expect(results[0]).toMatchObject([
    { code: "unknown_tool", reason: expect.stringContaining('"Read"') },
    { code: "unknown_tool", tool: "force_state" },
  ]);
  expect(result.status).toBe("completed");
});

fact(
  73,
  "a document that is loaded a second time is the same pipeline, and continues the run where it was",
  async () => {
    const document = oneState({ on: { AGAIN: "a", DONE: "done" } }, { context: { round: 0 } });
    const { clock, first, second } = twoHosts();
    const load = async () => pipelineOf(await loadDocument(document));
    const stuck = talker(({ messages }) => {
      if (JSON.stringify(messages).includes("visit 2")) return new Promise<never>(() => undefined);
      return send("AGAIN", { round: 1 });
    });
    const handle = session({ model: stuck, clock, host: first }).start(await load(), { task: "Do it." });
    await eventually(() => stuck.heard.length === 2);
    await handle.suspend();
    const other = talker(() => send("DONE"));
    const result = await session({ model: other, clock, host: second }).resume(await load(), handle.runId);
    expect((await load()).spec.fingerprint).toBe((await load()).spec.fingerprint);
    expect(result).toMatchObject({ runId: handle.runId, status: "completed" });
    expect(systemOf(other.heard[0])).toContain('"round": 1');
    expect(result.stages.map(({ executionId }) => executionId)).toEqual(["a#1", "a#2"]);
  },
);

fact(74, "an invoked workflow runs to its end, and the run then continues where the edge says", async () => {
  const edge = { invoke: "suite", on_complete: "b", on_fail: "failed" };
  const parent = documentOf({
    a: { allowed_tools: [], on: { RUN: edge } },
    b: { allowed_tools: [], on: { DONE: "done" } },
  });
  const child = {
    id: "suite",
    initial: "testing",
    states: {
      testing: { allowed_tools: [], on: { PASS: "passed", FAIL: "rejected" } },
      passed: { type: "final" },
      rejected: { type: "final", outcome: "failed" },
    },
  };
  const texts = { "w.json": JSON.stringify(parent), "suite.json": JSON.stringify(child) };
  const loaded = await loadTexts("w.json", texts, { find: async () => "suite.json" });
  const turns = (event: string) => ({ a: [send("RUN")], testing: [send(event)], b: [send("DONE")] });
  const passed = await play(loaded, turns("PASS"));
  expect([passed.result.status, passed.heard.map(({ stage }) => stage)]).toEqual(["completed", ["a", "testing", "b"]]);
  // Success is the outcome of the child's end, whatever that is called.
  const failed = await play(loaded, turns("FAIL"));
  expect([failed.result.status, failed.heard.map(({ stage }) => stage)]).toEqual(["failed", ["a", "testing"]]);
});

ours(76, "no agent can replace or leave the workflow of its run, in a branch as little as elsewhere", async () => {
  const branch = (terminal: string) => ({ allowed_tools: [], on: { OK: terminal } });
  const fork = {
    branches: { one: { initial: "b", terminal: "b_over" }, two: { initial: "c", terminal: "c_over" } },
    on_complete: "done",
  };
  const document = documentOf({
    a: { allowed_tools: [], on: { GO: { fork } } },
    b: branch("b_over"),
    c: branch("c_over"),
    b_over: { type: "final" },
    c_over: { type: "final" },
  });
  const load = calls(["load_workflow", { name: "other" }]);
  const { heard, result } = await play(document, {
    a: [send("GO")],
    b: [load, send("BRANCH_DONE:one"), send("OK")],
    c: [send("OK")],
  });
  expect(new Set(heard.flatMap(({ tools }) => tools))).toEqual(new Set(["transition", "get_state"]));
  expect(heard.filter(({ stage }) => stage === "b")).toHaveLength(3);
  expect(result.status).toBe("completed");
});

ours(
  78,
  "a state is forced only by a person, in a new run that records which run and which execution it forks",
  async () => {
    const document = documentOf({
      a: { allowed_tools: [], on: { READY: "b" } },
      b: { allowed_tools: [], on: { DONE: "done", FAIL: "failed" } },
    });
    const forced = await play(document, {
      a: [send("force_state", { state: "done" }), send("READY")],
      b: [send("FAIL"), send("DONE")],
    });
    expect(forced.results[0]).toMatchObject([{ code: "transition_rejected" }]);
    const { live, result: before } = forced;
    const pipeline = pipelineOf(await loadDocument(document));
    const gone = live.fork(pipeline, before.runId, { from: "gone#1" });
    await expect(async () => await gone).rejects.toMatchObject({ message: expect.stringContaining("gone#1") });
    const again = await live.fork(pipeline, before.runId, { from: "b#1" });
    expect([again.status, before.status]).toEqual(["completed", "failed"]);
    const [forked] = dataOf(await eventsOf(live.host, again.runId), "run.forked");
    expect(forked).toMatchObject({ from: before.runId, execution: "b#1" });
  },
);

ours(80, "a reply without a call is answered with the way out, until the turns of the state are used up", async () => {
  const { heard, result } = await play(oneState({ turn_cap: 4 }), { a: [{ text: "Done." }, { text: "Really." }] });
  expect(heard).toHaveLength(4);
  for (const { messages } of heard.slice(1)) {
    const last = JSON.stringify(messages.at(-1));
    expect(last).toContain("no tool call");
    expect(last).toContain("call transition with an event");
  }
  expect(result).toMatchObject({ status: "failed", stages: [{ code: "turn_cap" }] });
  const late = await play(oneState({ turn_cap: 4 }), { a: [{ text: "Done." }, send("DONE")] });
  expect(late.result.status).toBe("completed");
});
