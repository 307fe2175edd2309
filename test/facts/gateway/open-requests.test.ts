import type { RunHost, ToolResult } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { describe, expect, test } from "vitest";
import { ask, gatewayRun, leave, PLAN_FIRST, pipelineOf } from "../../support/gateway.ts";
import { handClock } from "../../support/hand-clock.ts";
import { until } from "../../support/mcp.ts";
import { quiet, tool } from "../../support/run-kit.ts";
import { tempFolder } from "../../support/tools.ts";

const EDIT = { file_path: "a.txt", content: "two\n" };

async function opened(wait: true | number = true) {
  const folder = tempFolder();
  folder.put("a.txt", "one\n");
  const clock = handClock();
  const host = createHost(createMemoryJournals().connect(), { clock });
  const run = gatewayRun({ pipeline: await pipelineOf(PLAN_FIRST), root: folder.root, host, wait, clock });
  await ask(run, "get_state");
  await ask(run, "Read", { file_path: "a.txt" });
  const write = run.call({ tool: "Write", input: EDIT });
  await until(() => run.now().status === "waiting");
  return { folder, clock, host, run, write };
}

async function approve(host: RunHost): Promise<void> {
  const [request] = await host.requests();
  if (request === undefined) throw new Error("no request is open");
  const { runId, requestId, digest } = request;
  await host.signal(runId, { name: `request/${requestId}`, payload: { kind: "approve", digest }, digest, by: "test" });
}

describe("a call that needs a person", () => {
  test("runs once it is approved, and its caller gets the result", async () => {
    const { folder, host, write } = await opened();
    await approve(host);
    expect(await write.answer).toMatchObject({ ok: true });
    expect(folder.text("a.txt")).toBe("two\n");
  });

  test("is answered with the open request when patience ends, and the same call made again takes the answer", async () => {
    const { folder, clock, host, run, write } = await opened();
    clock.turn(45_000);
    const waiting = await write.answer;
    expect(waiting.waiting?.requestId).toBe("plan#1/a1/t2.c0");
    expect(waiting.text).toContain(`sluice answer ${run.runId} plan#1/a1/t2.c0`);
    expect(folder.text("a.txt")).toBe("one\n");
    await approve(host);
    const again = run.call({ tool: "Write", input: EDIT });
    expect(await again.answer).toMatchObject({ ok: true });
    expect(folder.text("a.txt")).toBe("two\n");
    const third = run.call({ tool: "Write", input: EDIT });
    await until(() => run.now().status === "waiting");
    expect((await host.requests()).map(({ requestId }) => requestId)).toEqual(["plan#1/a1/t3.c0"]);
    clock.turn(45_000);
    expect((await third.answer).waiting).toBeDefined();
  });

  test("lets no other call pass: its answer says what is open", async () => {
    const { clock, run } = await opened();
    const other = run.call({ tool: "Read", input: { file_path: "a.txt" } });
    await new Promise((resolve) => setImmediate(resolve));
    clock.turn(45_000);
    expect((await other.answer).text).toContain("a person has to decide");
    expect((await ask(run, "get_state")).text).toContain("sluice answer");
  });

  test("suspends its run when nobody has answered for as long as the run waits", async () => {
    const { clock, run, write } = await opened(60_000);
    clock.turn(45_000);
    expect((await write.answer).waiting).toBeDefined();
    clock.turn(15_000);
    expect(await run.ended).toMatchObject({ status: "suspended", reason: "waiting" });
    expect((await ask(run, "get_state")).text).toContain("is suspended");
  });

  test("is answered when the gateway closes, and its request stays open", async () => {
    const { host, run, write } = await opened();
    await run.close();
    expect((await write.answer).text).toContain("is suspended");
    expect(await run.ended).toMatchObject({ status: "suspended" });
    expect((await host.requests()).map(({ requestId }) => requestId)).toEqual(["plan#1/a1/t2.c0"]);
  });

  test("is denied with the person's reason", async () => {
    const { host, write, run } = await opened();
    const [request] = await host.requests();
    if (request === undefined) throw new Error("no request is open");
    await run.answer(request, { kind: "deny", reason: "not in this phase" }, "reviewer");
    const denied = await write.answer;
    expect(denied.ok).toBe(false);
    expect(denied.text).toContain("not in this phase");
    expect((await leave(run, "READY")).ok).toBe(true);
  });

  test("that is approved after its agent got an answer runs, and the next answer says so", async () => {
    const { folder, clock, host, run, write } = await opened();
    clock.turn(45_000);
    await write.answer;
    await approve(host);
    await until(() => folder.text("a.txt") === "two\n");
    await until(() => run.now().status === "working");
    const next = await ask(run, "Read", { file_path: "a.txt" });
    expect(next.text).toContain('Your earlier call of Write {"file_path":"a.txt","content":"two\\n"} has ended');
  });
});

test("a call that takes long is answered with its own result, not with that of a call of an earlier state", async () => {
  const clock = handClock();
  const finish = Promise.withResolvers<ToolResult>();
  const look = tool("Look", { effect: "read", execute: async () => ({ ok: true, output: "all is well" }) });
  const slow = tool("Test", { execute: () => finish.promise });
  const pipeline = await pipelineOf({
    id: "look-then-test",
    initial: "look",
    states: {
      look: { instructions: "Look.", allowed_tools: ["Look"], on: { READY: "test" } },
      test: { instructions: "Test.", allowed_tools: ["Test"], on: { TESTED: "done" } },
      done: { type: "final" },
    },
  });
  const run = gatewayRun({ pipeline, root: tempFolder().root, wait: true, clock, session: { tools: [look, slow] } });
  expect((await ask(run, "Look")).text).toContain("all is well");
  await leave(run, "READY");
  const long = run.call({ tool: "Test", input: {} });
  await until(() => run.now().status === "busy");
  clock.turn(45_000);
  await quiet();
  clock.turn(45_000);
  finish.resolve({ ok: false, output: "the tests fail" });
  expect(await long.answer).toMatchObject({ ok: false, output: "the tests fail" });
});
