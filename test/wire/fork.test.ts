import { existsSync, rmSync } from "node:fs";
import { done, fanOut, type Pipeline, pipeline, type RunHost, route, stage, to } from "@sluice/core";
import { forkPointsOf, verifyJournal } from "@sluice/core/host";
import { sqliteHost } from "@sluice/sqlite";
import { type Script, scriptedModel, sendMessage } from "@sluice/stages";
import { expect, test } from "vitest";
import { z } from "zod";
import { approving, type Scene, scene } from "../support/attack.ts";
import {
  dataOf,
  eventsOf,
  eventually,
  session,
  type TestSession,
  type TestSessionOptions,
} from "../support/run-kit.ts";

const textSchema = z.object({ text: z.string() });
const says = (tool: string, text: string) => ({ calls: [{ tool, input: { text } }] });
const script = (more: Script["stages"] = {}): Script => ({
  stages: {
    plan: [says("submit_plan", "the plan")],
    execute: [
      { calls: [{ tool: "Write", input: { file_path: "out.txt", content: "written" } }] },
      says("submit_execute", "the work"),
    ],
    lint: [says("submit_lint", "no findings")],
    test: [says("submit_test", "all green")],
    review: [says("submit_review", "good")],
    ...more,
  },
});

function step(id: string, allowedTools: readonly string[] = [], prompt = `Do ${id}.`) {
  return stage({ prompt, allowedTools, completionTool: `submit_${id}`, completionSchema: textSchema, turnCap: 4 });
}

/** Plan, execute, two siblings, review; the review sends back to execute once. */
function flow(prompt = "Do review.", writes: readonly string[] = ["Write"]): Pipeline<{ task: string }, unknown> {
  return pipeline({
    id: "flow",
    input: z.object({ task: z.string() }),
    stages: {
      plan: step("plan"),
      execute: step("execute", writes),
      lint: step("lint"),
      test: step("test"),
      review: step("review", [], prompt),
    },
    initial: "plan",
    next: {
      plan: () => to("execute"),
      execute: route(["lint", "test", "review"], () => fanOut(["lint", "test"], { join: "review" })),
      review: ({ output }, ctx) =>
        output.text === "again" && ctx.visit === 1
          ? to("execute")
          : done({ said: output.text, up: Object.keys(ctx.upstream), run: ctx.visit }),
    },
  });
}

const store = (here: Scene): RunHost => sqliteHost(here.path(".sluice/store"));
function process(here: Scene, model: Script, more: TestSessionOptions = {}): TestSession {
  return session({ cwd: here.root, host: () => store(here), model: scriptedModel(model), ...more });
}

const whole = async (host: RunHost, runId: string) =>
  expect(verifyJournal(await host.journal(runId)).faults).toEqual([]);

test("a finished run is forked before any of its executions, siblings too, and comes to the same end", async () => {
  const here = scene();
  const first = process(here, script());
  const { runId, ...result } = await first.run(flow(), { task: "x" });
  expect(result.status).toBe("completed");
  const journals = await first.host.journal(runId);
  const boundaries = forkPointsOf(journals);
  expect(boundaries.map(({ executionId }) => executionId)).toEqual([
    "plan#1",
    "execute#1",
    "lint#1",
    "test#1",
    "review#1",
  ]);

  for (const { executionId } of boundaries) {
    const handle = first.fork(flow(), runId, { from: executionId });
    const forked = await handle;
    expect([executionId, forked]).toMatchObject([executionId, { status: "completed", output: Object(result).output }]);
    const events = await eventsOf(first.host, handle.runId);
    expect(events[0]).toMatchObject({ type: "run.started", data: { forkedFrom: { runId, execution: executionId } } });
    expect(dataOf(events, "run.forked")).toMatchObject([{ from: runId, execution: executionId }]);
    // Siblings, also those that came along, say whose they are now.
    expect(dataOf(events, "run.started").slice(1)).toMatchObject([{ parent: handle.runId }, { parent: handle.runId }]);
    await whole(first.host, handle.runId);
  }
  expect(await first.host.journal(runId)).toEqual(journals);
});

test("models and tools work again from the boundary on, and before it nothing does", async () => {
  const here = scene();
  const first = process(here, script());
  const { runId } = await first.run(flow(), { task: "x" });
  rmSync(here.path("out.txt"));
  await first.close();
  // Plan is not asked again: its script would fail.
  const other = process(here, script({ plan: [], review: [says("submit_review", "better")] }));
  const atReview = await other.fork(flow(), runId, { from: "review#1" });
  expect(atReview).toMatchObject({
    status: "completed",
    output: { said: "better", up: ["plan", "execute", "lint", "test"] },
  });
  expect(existsSync(here.path("out.txt"))).toBe(false);
  const atExecute = await other.fork(flow(), runId, { from: "execute#1" });
  expect(atExecute.status).toBe("completed");
  expect(here.text("out.txt")).toBe("written");
});

test("a cancelled run is forked, not resumed; so are a failed one, a suspended one, and a fork", async () => {
  const here = scene();
  const first = process(here, script({ review: [] }), { wait: true });
  const failed = await first.run(flow(), { task: "x" });
  expect(failed.status).toBe("failed");
  const waiting = first.start(flow("Do review.", []), { task: "x" });
  await eventually(async () => (await first.host.requests(waiting.runId).catch(() => [])).length > 0);
  await waiting.suspend();
  await first.close();

  const other = process(here, script(), { interactors: [approving()] });
  const suspended = await other.fork(flow("Do review.", []), waiting.runId, { from: "execute#1" });
  expect(suspended.status).toBe("completed");
  await other.host.cancel(waiting.runId, "enough", "ann");
  expect(
    await other.resume(flow("Do review.", []), waiting.runId).then(undefined, (thrown: unknown) => thrown),
  ).toMatchObject({ code: "run_finished" });
  expect((await other.fork(flow("Do review.", []), waiting.runId, { from: "execute#1" })).status).toBe("completed");
  const again = await other.fork(flow(), failed.runId, { from: "review#1" });
  expect(again.status).toBe("completed");
  expect((await other.fork(flow(), again.runId, { from: "lint#1" })).status).toBe("completed");
});

test("what was granted in the past is asked again in the fork, and an answer to the one is none to the other", async () => {
  const here = scene();
  const asking = flow("Do review.", []);
  const first = process(here, script(), { interactors: [approving()] });
  const { runId } = await first.run(asking, { task: "x" });
  await first.close();
  const other = process(here, script(), { wait: true });
  const handle = other.fork(asking, runId, { from: "execute#1" });
  await eventually(async () => (await other.host.requests(handle.runId).catch(() => [])).length > 0);
  const name = "request/execute#1/a1/t1.c0";
  expect(await other.host.signal(runId, { name, payload: { kind: "approve" }, by: "ann" })).toBe("unknown");
  expect((await other.host.requests(handle.runId)).map(({ requestId }) => requestId)).toEqual(["execute#1/a1/t1.c0"]);
  const [request] = await other.host.requests(handle.runId);
  await other.host.signal(handle.runId, {
    name,
    payload: { kind: "deny", digest: request?.digest ?? "" },
    digest: request?.digest ?? "",
    by: "ann",
  });
  expect((await handle).denied).toMatchObject([{ cause: "denied" }]);
  // From behind it, the call of the past is part of the past: it ran once, there.
  const behind = await other.fork(asking, runId, { from: "review#1" });
  expect(behind).toMatchObject({ status: "completed", denied: [] });
});

test("a changed pipeline is reported and needs leave, only as far as the past goes; the new run is that of the new one", async () => {
  const here = scene();
  const first = process(here, script());
  const { runId } = await first.run(flow(), { task: "x" });
  const changed = flow("Review with care.");
  const refused = await first.fork(changed, runId, { from: "review#1" }).then(undefined, (thrown: unknown) => thrown);
  expect(refused).toMatchObject({
    code: "pipeline_changed",
    detail: { changes: ["state review: prompt changed"] },
  });
  const handle = first.fork(changed, runId, { from: "review#1", allowChanged: true, by: "ann" });
  expect((await handle).status).toBe("completed");
  const events = await eventsOf(first.host, handle.runId);
  expect(dataOf(events, "run.forked")).toMatchObject([
    { changed: { by: "ann", changes: ["state review: prompt changed"] } },
  ]);
  expect(dataOf(events, "run.started")[0]).toMatchObject({ fingerprint: changed.spec.fingerprint });
  // Forked again, it is the changed pipeline that needs no leave.
  expect((await first.fork(changed, handle.runId, { from: "review#1" })).status).toBe("completed");

  const lacking = pipeline({
    id: "flow",
    input: z.object({ task: z.string() }),
    stages: { plan: step("plan"), other: step("other") },
    initial: "plan",
    next: { plan: () => to("other"), other: () => done("other") },
  });
  const gone = await first
    .fork(lacking, runId, { from: "review#1", allowChanged: true })
    .then(undefined, (thrown: unknown) => thrown);
  expect(gone).toMatchObject({ code: "state_unknown", detail: { states: ["execute", "lint", "test"] } });
  await first.close();
  const early = process(here, script({ other: [says("submit_other", "x")] }));
  expect(
    await early
      .fork(lacking, runId, { from: "execute#1", allowChanged: true })
      .then(undefined, (thrown: unknown) => thrown),
  ).toMatchObject({ code: "state_unknown" });
});

test("an execution that does not exist is reported with those that exist", async () => {
  const here = scene();
  const first = process(here, script());
  const { runId } = await first.run(flow(), { task: "x" });
  const thrown = await first.fork(flow(), runId, { from: "reviw#1" }).then(undefined, (error: unknown) => error);
  expect(thrown).toMatchObject({
    code: "execution_unknown",
    detail: { executions: ["plan#1", "execute#1", "lint#1", "test#1", "review#1"] },
  });
  expect(String(thrown)).toContain("Did you mean review#1?");
  expect((await first.host.list()).length).toBe(1);
});

test("a sibling is no run to fork or to resume by itself, and the run it is a part of is named", async () => {
  const first = process(scene(), script());
  const { runId } = await first.run(flow(), { task: "x" });
  const [, sibling] = await first.host.journal(runId);
  const refused = { code: "run_is_child", message: expect.stringContaining(`a sibling in run ${runId};`) };
  const of = sibling?.runId ?? "";
  await expect(first.fork(flow(), of, { from: "lint#1" })).rejects.toMatchObject(refused);
  await expect(first.resume(flow(), of)).rejects.toMatchObject(refused);
});

test("what the past spent counts against the caps of the fork", async () => {
  const here = scene();
  const capped = (maxTokens: number) =>
    pipeline({
      id: "capped",
      input: z.object({ task: z.string() }),
      stages: { plan: step("plan"), review: step("review") },
      initial: "plan",
      limits: { maxTokens },
      next: { plan: () => to("review"), review: ({ output }) => done(output.text) },
    });
  const first = process(here, script());
  const { runId, usage, stages } = await first.run(capped(1_000_000), { task: "x" });
  const spent = usage.inputTokens + usage.outputTokens;
  const forked = first.fork(capped(spent), runId, { from: "review#1", allowChanged: true });
  expect(await forked).toMatchObject({ status: "failed", error: { code: "budget" } });
  const [plan] = stages;
  const past = (plan?.usage.inputTokens ?? 0) + (plan?.usage.outputTokens ?? 0);
  const reached = dataOf(await eventsOf(first.host, forked.runId), "limit.reached");
  expect(reached).toMatchObject([{ used: past }]);
});

test("a message to the fork is heard, whatever the past heard", async () => {
  const here = scene();
  const heard = async (host: RunHost, runId: string) =>
    dataOf(await eventsOf(host, runId), "message.received").map(({ text }) => text);
  /** Sends a message while the run waits for leave to write, and refuses that. */
  const speak = async (host: RunHost, runId: string, text: string): Promise<void> => {
    await eventually(async () => (await host.requests(runId).catch(() => [])).length > 0);
    const [request] = await host.requests(runId);
    const { requestId = "", digest = "" } = request ?? {};
    await sendMessage(host, runId, text, "ann");
    await host.signal(runId, { name: `request/${requestId}`, payload: { kind: "deny" }, digest, by: "ann" });
  };
  const again = { calls: [{ tool: "Write", input: { file_path: "more.txt", content: "more" } }] };
  const waiting = process(here, script({ review: [again, says("submit_review", "good")] }), { wait: true });
  const first = waiting.start(flow("Do review.", []), { task: "x" });
  await speak(waiting.host, first.runId, "to execute");
  await speak(waiting.host, first.runId, "to review");
  await first;
  expect(await heard(waiting.host, first.runId)).toEqual(["to execute", "to review"]);
  const fork = waiting.fork(flow("Do review.", []), first.runId, { from: "review#1" });
  await speak(waiting.host, fork.runId, "to the fork");
  expect((await fork).status).toBe("completed");
  expect(await heard(waiting.host, fork.runId)).toEqual(["to execute", "to the fork"]);
});

test("a fork of a run that went on with a changed pipeline is compared with what it began with itself", async () => {
  const here = scene();
  const asking = flow("Do review.", []);
  const first = process(here, script(), { wait: true });
  const begun = first.start(asking, { task: "x" });
  await eventually(async () => (await first.host.requests(begun.runId).catch(() => [])).length > 0);
  await begun.suspend();
  const [request] = await first.host.requests(begun.runId);
  const { requestId = "", digest = "" } = request ?? {};
  const deny = { name: `request/${requestId}`, payload: { kind: "deny" }, digest, by: "ann" };
  await first.host.signal(begun.runId, deny);
  const second = flow("Review again.", []);
  expect((await first.resume(second, begun.runId, { allowChanged: true })).status).toBe("completed");

  // Before execute was changed nothing of this past was made with the second pipeline; behind it all was.
  const early = await first
    .fork(second, begun.runId, { from: "execute#1" })
    .then(undefined, (thrown: unknown) => thrown);
  expect(early).toMatchObject({ code: "pipeline_changed" });
  expect((await first.fork(second, begun.runId, { from: "review#1" })).status).toBe("completed");

  const third = flow("Review once more.", []);
  const fork = await first.fork(third, begun.runId, { from: "review#1", allowChanged: true });
  expect((await first.fork(third, fork.runId, { from: "review#1" })).status).toBe("completed");
  const other = await first.fork(second, fork.runId, { from: "review#1" }).then(undefined, (thrown: unknown) => thrown);
  expect(other).toMatchObject({ code: "pipeline_changed" });
});
