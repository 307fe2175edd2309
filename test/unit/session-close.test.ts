import { done, pipeline, type RunHost, stage } from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore } from "@sluice/core/host";
import { createSession, type Session, type SessionOptions } from "@sluice/stages";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { handClock } from "../support/hand-clock.ts";
import { eventually, quiet } from "../support/run-kit.ts";
import { talker } from "../support/talker.ts";

const task = { task: "t" };
const pipe = pipeline({
  id: "one",
  input: z.object({ task: z.string() }),
  stages: {
    one: stage({
      prompt: "Work.",
      allowedTools: [],
      completionTool: "finish",
      completionSchema: z.object({}),
      turnCap: 2,
    }),
  },
  initial: "one",
  next: { one: () => done("end") },
});

/** A model that answers when `answer` is called. */
function slow() {
  const answer = Promise.withResolvers<void>();
  const model = talker(async () => {
    await answer.promise;
    return { calls: [{ tool: "finish", input: {} }] };
  });
  return { model, answer: answer.resolve };
}
function sessionOn(store: NonNullable<SessionOptions["host"]> | undefined, options: SessionOptions): Session {
  const session = createSession({
    env: {},
    cwd: import.meta.dirname,
    clock: handClock(),
    ...(store === undefined ? {} : { host: store }),
    ...options,
  });
  onTestFinished(() => session.close());
  return session;
}
const opened = (store: JournalStore = createMemoryJournals().connect()): RunHost =>
  createHost(store, { clock: handClock() });

describe("a host that two sessions were given", () => {
  test("stays open when one is closed: its runs are suspended, the other's continue, and can take them up", async () => {
    const host = opened();
    const [mine, other] = [slow(), slow()];
    const [leaving, staying] = [sessionOn(host, { model: mine.model }), sessionOn(host, { model: other.model })];
    const [left, stays] = [leaving.start(pipe, task), staying.start(pipe, task)];
    await eventually(() => mine.model.heard.length === 1 && other.model.heard.length === 1);
    await leaving.close();
    expect(await left).toMatchObject({ status: "suspended", reason: "interrupted" });
    expect(await host.get(stays.runId)).toMatchObject({ status: "running" });
    other.answer();
    expect(await stays).toMatchObject({ status: "completed", output: "end" });
    expect(await staying.resume(pipe, left.runId)).toMatchObject({ status: "completed", output: "end" });
    await staying.close();
    expect((await host.list()).map(({ status }) => status)).toEqual(["completed", "completed"]);
    await host.close();
  });

  test("keeps no run that was being started when its session was closed", async () => {
    const memory = createMemoryJournals().connect();
    const going = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    const store: JournalStore = {
      ...memory,
      create: async (run, commit) => {
        reached.resolve();
        await going.promise;
        return await memory.create(run, commit);
      },
    };
    const host = opened(store);
    const { model } = slow();
    const session = sessionOn(host, { model });
    const run = session.start(pipe, task);
    await reached.promise;
    const closing = session.close();
    await quiet();
    going.resolve();
    await closing;
    expect(await run).toMatchObject({ status: "suspended" });
    expect(await host.get(run.runId)).toMatchObject({ status: "suspended" });
  });
});

describe("what a session opened itself", () => {
  test.each([
    ["by a function", (host: RunHost) => () => host],
    ["in memory", () => undefined],
  ])("%s is closed with it", async (_how, store) => {
    const { model, answer } = slow();
    answer();
    const session = sessionOn(store(opened()), { model });
    const { runId } = await session.run(pipe, task);
    const { host } = session;
    expect(await host.get(runId)).toMatchObject({ status: "completed" });
    await session.close();
    await expect(host.get(runId)).rejects.toMatchObject({ code: "store_closed" });
  });
});

test("a closed session starts and resumes nothing, and opens no store", async () => {
  let calls = 0;
  const { model } = slow();
  const session = sessionOn(
    () => {
      calls += 1;
      return opened();
    },
    { model },
  );
  const early = session.start(pipe, task);
  await session.close();
  await session.close();
  for (const work of [early, session.start(pipe, task), session.run(pipe, task), session.resume(pipe, "r1")])
    await expect(work).rejects.toMatchObject({ class: "Session", code: "session_closed" });
  expect(() => session.host).toThrow(expect.objectContaining({ code: "session_closed" }));
  expect([calls, model.heard.length]).toEqual([0, 0]);
});
