import { defineTool, done, type Json, type Pipeline, pipeline, stage, to } from "@sluice/core";
import { forkPointsOf } from "@sluice/core/host";
import {
  interruptRun,
  type ResolvedModel,
  type RunHandle,
  replayRun,
  type ScriptedTurn,
  subPipeline,
} from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { answerFrom } from "../support/people-kit.ts";
import { dataOf, eventsOf, eventually, session } from "../support/run-kit.ts";
import { finish, modelFrom, part } from "../support/stream-model.ts";
import { type Heard, talker } from "../support/talker.ts";

const task = { task: "Fix the parser." };
const submit: ScriptedTurn = { calls: [{ tool: "finish", input: { summary: "ok" } }] };
const worker = (allowedTools: readonly string[] = []) =>
  stage({
    prompt: "You fix parsers.",
    allowedTools: [...allowedTools],
    completionTool: "finish",
    turnCap: 5,
    completionSchema: z.object({ summary: z.string() }),
  });
const one = (allowedTools: readonly string[] = []) =>
  pipeline({
    id: "one",
    input: z.object({ task: z.string() }),
    stages: { one: worker(allowedTools) },
    initial: "one",
    next: { one: ({ output }) => done(output) },
  });
const two: Pipeline<{ task: string }, Json> = pipeline({
  id: "two",
  input: z.object({ task: z.string() }),
  stages: { plan: worker(), build: worker() },
  initial: "plan",
  next: { plan: () => to("build"), build: () => done("built") },
});
/** What the model reads first. */
function opening({ messages }: Heard): string {
  return JSON.stringify(messages[1]);
}

describe("an agent that a person interrupts", () => {
  test("leaves the text that its model was writing, which the next visit reads", async () => {
    let isWriting = false;
    let calls = 0;
    const openings: string[] = [];
    const streamed = modelFrom(async ({ prompt, abortSignal }) => {
      calls += 1;
      openings.push(JSON.stringify(prompt[1]));
      return new ReadableStream({
        start(controller) {
          controller.enqueue(part({ type: "stream-start", warnings: [] }));
          if (calls > 1) {
            const call = { toolCallId: "c1", toolName: "finish", input: '{"summary":"ok"}' };
            controller.enqueue(part({ type: "tool-call", ...call }));
            controller.enqueue(finish("tool-calls"));
            controller.close();
            return;
          }
          controller.enqueue(part({ type: "text-start", id: "t" }));
          controller.enqueue(part({ type: "text-delta", id: "t", delta: "I have fixed " }));
          controller.enqueue(part({ type: "text-delta", id: "t", delta: "the lexer so far" }));
          isWriting = true;
          abortSignal?.addEventListener("abort", () => controller.error(abortSignal.reason), { once: true });
        },
      });
    });
    const model: ResolvedModel = { id: "fake-1", secrets: [], at: () => streamed };
    const live = session({ model });
    const handle = live.start(one(), task);
    let heard = "";
    handle.onLive(({ channel, chunk }) => {
      if (channel === "text") heard += JSON.stringify(chunk);
    });
    await eventually(() => isWriting && heard.includes("so far"));
    await handle.interrupt("only the lexer");
    expect(await live.resume(one(), handle.runId)).toMatchObject({
      status: "completed",
      stages: [
        { executionId: "one#1", status: "cancelled", partial: "I have fixed the lexer so far" },
        { executionId: "one#2", status: "completed" },
      ],
    });
    expect(openings[1]).toContain(
      "interrupted the previous execution of this state, one#1, with this reason: only the lexer",
    );
    expect(openings[1]).toContain("I have fixed the lexer so far");
    expect(openings[1]).not.toContain("was rejected");
    const journal = await live.host.journal(handle.runId);
    expect(await replayRun(one(), journal, { env: {} })).toMatchObject({ identical: true });
  });

  test("has its tool call stopped, whose teardown ends before the run is suspended", async () => {
    const order: string[] = [];
    let isRunning = false;
    const slow = defineTool<Json>({
      name: "Slow",
      description: "Slow.",
      input: { type: "object" },
      effect: "write",
      subjects: () => [],
      execute: async (_input, { signal }) => {
        isRunning = true;
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
        order.push("stopped");
        return { ok: false, output: "stopped" };
      },
    });
    const model = talker(({ turn, messages }) =>
      turn === 0 && !JSON.stringify(messages).includes("interrupted")
        ? { text: "Starting.", calls: [{ tool: "Slow", input: {} }] }
        : submit,
    );
    const live = session({ model, tools: [slow] });
    const handle = live.start(one(["Slow"]), task);
    await eventually(() => isRunning);
    await handle.interrupt();
    order.push((await handle).status);
    expect(order).toEqual(["stopped", "suspended"]);
    const events = await eventsOf(live.host, handle.runId);
    expect(dataOf(events, "call.started")).toHaveLength(1);
    expect(dataOf(events, "call.finished")).toHaveLength(1);
    expect(await live.resume(one(["Slow"]), handle.runId)).toMatchObject({
      status: "completed",
      stages: [{ status: "cancelled", partial: "Starting." }, { status: "completed" }],
    });
  });

  test("in a child that has ended since is not interrupted again by the same person's word, whatever the run waits for", async () => {
    const inner = one();
    const outer = pipeline({
      id: "outer",
      input: z.object({ task: z.string() }),
      pipelines: { one: inner },
      stages: { sub: subPipeline({ pipeline: "one", of: inner, input: task }), ask: worker(["AskUser"]) },
      initial: "sub",
      next: { sub: () => to("ask"), ask: () => done("ok") },
    });
    let isFirst = true;
    const model = talker(async ({ stage: name, turn }) => {
      if (name === "ask" && turn === 0) return { calls: [{ tool: "AskUser", input: { question: "Which one?" } }] };
      if (!isFirst) return submit;
      isFirst = false;
      await handle.interrupt();
      return await new Promise(() => undefined);
    });
    const live = session({ model, wait: 1_000 });
    const handle = live.start(outer, task);
    expect(await handle).toMatchObject({ status: "suspended", reason: "interrupted" });
    const waiting = live.resume(outer, handle.runId);
    await eventually(() => live.clock.waiting() === 1);
    live.clock.turn(1_000);
    expect(await waiting).toMatchObject({ status: "suspended", reason: "waiting" });
    const [request] = await live.host.requests(handle.runId);
    if (request === undefined) throw new Error("nothing is asked");
    await answerFrom(live.host, request, { kind: "value", value: "this one" });
    expect(await live.resume(outer, handle.runId)).toMatchObject({ status: "completed" });
    expect(dataOf(await eventsOf(live.host, handle.runId), "execution.interrupted")).toHaveLength(1);
  });

  test("while its run waits without a process does not get the answer that came since", async () => {
    const ran: string[] = [];
    const deploy = defineTool<Json>({
      name: "Deploy",
      description: "Deploy.",
      input: { type: "object" },
      effect: "write",
      subjects: () => [],
      execute: async () => ({ ok: true, output: ran.push("Deploy") }),
    });
    const model = talker(({ turn }) => (turn === 0 ? { calls: [{ tool: "Deploy", input: {} }] } : submit));
    const live = session({ model, tools: [deploy], wait: true });
    const handle = live.start(one(), task);
    await eventually(async () => (await live.host.requests(handle.runId)).length === 1);
    await handle.suspend();
    await interruptRun(live.host, handle.runId, "stop", "me");
    const [request] = await live.host.requests(handle.runId);
    if (request === undefined) throw new Error("nothing is asked");
    await answerFrom(live.host, request, { kind: "approve" });
    expect(await live.resume(one(), handle.runId)).toMatchObject({ status: "suspended", reason: "interrupted" });
    expect(ran).toEqual([]);
  });

  test("in a fork that begins inside a child stops, however often that child was interrupted before", async () => {
    const outer = pipeline({
      id: "outer",
      input: z.object({ task: z.string() }),
      pipelines: { two },
      stages: { sub: subPipeline({ pipeline: "two", of: two, input: { task: "t" } }) },
      initial: "sub",
      next: { sub: () => done("ok") },
    });
    let interrupts: RunHandle<unknown> | undefined;
    const model = talker(async ({ stage: name, runId = "" }) => {
      const now = interrupts;
      if (now === undefined || !runId.startsWith(now.runId) || name !== (now === first ? "plan" : "build"))
        return submit;
      interrupts = undefined;
      await now.interrupt();
      return await new Promise(() => undefined);
    });
    const live = session({ model });
    const first = live.start(outer, task);
    interrupts = first;
    expect(await first).toMatchObject({ status: "suspended" });
    expect(await live.resume(outer, first.runId)).toMatchObject({ status: "completed" });
    const points = forkPointsOf(await live.host.journal(first.runId)).map(({ executionId }) => executionId);
    const forked = live.fork(outer, first.runId, { from: points.find((point) => point.startsWith("build#1")) ?? "" });
    interrupts = forked;
    expect(await forked).toMatchObject({ status: "suspended" });
  });

  test("that waits for a person loses its open request with the interruption", async () => {
    const model = talker(({ messages }) =>
      JSON.stringify(messages).includes("interrupted")
        ? submit
        : { calls: [{ tool: "AskUser", input: { question: "Which one?" } }] },
    );
    const live = session({ model, wait: true });
    const handle = live.start(one(["AskUser"]), task);
    await eventually(async () => (await live.host.requests(handle.runId)).length === 1);
    await handle.interrupt("never mind");
    expect(await live.host.requests(handle.runId)).toEqual([]);
    expect(await live.resume(one(["AskUser"]), handle.runId)).toMatchObject({ status: "completed" });
  });
});

describe("a message", () => {
  test("that is a follow-up waits for the next state with an agent, and is read there once", async () => {
    const model = talker(async ({ stage: name, turn }) => {
      if (name === "plan" && turn === 0) {
        await live.message(handle.runId, "Build it small.", { kind: "followUp", by: "ann" });
        await live.message(handle.runId, "Plan it small.", { by: "ann" });
        return { text: "Thinking." };
      }
      return submit;
    });
    const live = session({ model });
    const handle = live.start(two, task);
    expect(await handle).toMatchObject({ status: "completed" });
    const read = model.heard.map((heard) => [
      heard.stage,
      JSON.stringify(heard.messages).includes("Plan it small."),
      JSON.stringify(heard.messages).includes("Build it small."),
    ]);
    expect(read).toEqual([
      ["plan", false, false],
      ["plan", true, false],
      ["build", false, true],
    ]);
    const received = dataOf(await eventsOf(live.host, handle.runId), "message.received");
    expect(received).toEqual([
      expect.objectContaining({ by: "ann", text: "Plan it small." }),
      expect.objectContaining({ by: "ann", text: "Build it small.", kind: "followUp" }),
    ]);
  });

  test("to a suspended run waits until it continues, whichever kind it is", async () => {
    const model = talker(({ stage: name }) => {
      if (name === "plan") void handle.suspend();
      return submit;
    });
    const live = session({ model });
    const handle = live.start(two, task);
    await handle;
    await live.message(handle.runId, "steered");
    await live.message(handle.runId, "followed", { kind: "followUp" });
    const after = talker(() => submit);
    const later = session({ model: after, host: live.host });
    expect(await later.resume(two, handle.runId)).toMatchObject({ status: "completed" });
    const all = after.heard.map(opening).join("\n") + JSON.stringify(after.heard);
    expect(all).toContain("steered");
    expect(all).toContain("followed");
    expect(dataOf(await eventsOf(live.host, handle.runId), "message.received")).toHaveLength(2);
  });
});
