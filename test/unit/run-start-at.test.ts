import { done, final, type Json, pipeline, stage, to } from "@sluice/core";
import { replayRun } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { reduceRun } from "../../packages/view/src/index.ts";
import { completed, eventsOf, json, noModel, session, twoHosts, work, workExecutor } from "../support/run-kit.ts";

/** What the states saw, by execution. */
function traced(act?: (state: string) => void) {
  const seen: Json[] = [];
  const state = (name: string, inputSchema?: z.ZodType) =>
    work<Json, unknown>({
      ...(inputSchema === undefined ? {} : { inputSchema }),
      act: ({ ctx }) => {
        seen.push({ state: name, input: json(ctx.input), upstream: json(ctx.upstream), visit: ctx.visit });
        act?.(name);
        return completed(name);
      },
    });
  const three = pipeline({
    id: "three",
    input: z.object({ task: z.string() }),
    stages: {
      plan: state("plan"),
      review: state("review", z.object({ files: z.array(z.string()).max(3) })),
      fix: state("fix"),
      done: final("completed"),
    },
    initial: "plan",
    transitions: [
      { from: "plan", on: "success", to: to("review", { files: [] }) },
      { from: "review", on: "success", to: to("fix") },
      { from: "fix", on: "success", to: "done" },
    ],
  });
  return { three, seen };
}
const task = { task: "Fix it." };

describe("a run that starts in a state in the middle", () => {
  test("enters that state with its own input and an empty upstream, and continues along the routes", async () => {
    const { three, seen } = traced();
    const live = session({ model: noModel });
    const handle = live.start(three, task, { from: { state: "review", input: { files: ["a.ts"] } } });
    expect(await handle).toMatchObject({ status: "completed", state: "done" });
    expect(seen).toEqual([
      { state: "review", input: { files: ["a.ts"] }, upstream: {}, visit: 1 },
      { state: "fix", input: null, upstream: { review: "review" }, visit: 1 },
    ]);
  });

  test("says so in run.started, in words, and in its view", async () => {
    const { three } = traced();
    const live = session({ model: noModel });
    const handle = live.start(three, task, { from: { state: "fix" } });
    await handle;
    const events = await eventsOf(live.host, handle.runId);
    expect(events[0]).toMatchObject({ type: "run.started", data: { from: { state: "fix" }, input: task } });
    const view = reduceRun(handle.runId, events).view();
    expect(view).toMatchObject({ initial: "fix", origin: "started in state fix" });
  });

  test("resumes, replays and forks as a run that started there", async () => {
    const { first, second } = twoHosts();
    const { three } = traced((state) => {
      if (state === "fix") void handle.suspend();
    });
    const live = session({ model: noModel, host: first });
    const from = { state: "review", input: { files: ["a.ts"] } };
    const handle = live.start(three, task, { from });
    await handle;
    const calm = traced();
    const later = session({ model: noModel, host: second });
    expect(await later.resume(calm.three, handle.runId)).toMatchObject({ status: "completed" });
    expect(
      await replayRun(calm.three, await second.journal(handle.runId), { env: {}, executors: [workExecutor] }),
    ).toMatchObject({ identical: true });
    const fork = later.fork(calm.three, handle.runId, { from: "review#1" });
    expect(await fork).toMatchObject({ status: "completed" });
    const events = await eventsOf(second, fork.runId);
    expect(events[0]).toMatchObject({ data: { from, forkedFrom: { execution: "review#1" } } });
    expect(calm.seen.map((one) => json(one))).toContainEqual(
      expect.objectContaining({ state: "review", input: { files: ["a.ts"] } }),
    );
  });

  test("starts there even if it was killed before its first state", async () => {
    const { first, second } = twoHosts();
    const { three, seen } = traced();
    const live = session({ model: noModel, host: first });
    const handle = live.start(three, task, { from: { state: "fix" } });
    await handle.suspend();
    await session({ model: noModel, host: second }).resume(three, handle.runId);
    expect(seen).toEqual([{ state: "fix", input: null, upstream: {}, visit: 1 }]);
  });

  test("is refused with the path where its input does not fit the state's schema", async () => {
    const { three } = traced();
    const live = session({ model: noModel });
    await expect(
      live.start(three, task, { from: { state: "review", input: { files: "a.ts" } } }),
    ).rejects.toMatchObject({
      code: "input_invalid",
      message: expect.stringMatching(/input of state review of pipeline three[\s\S]*files: /),
    });
    await expect(live.start(three, task, { from: { state: "review" } })).rejects.toMatchObject({
      code: "input_invalid",
    });
    expect(await live.host.list()).toEqual([]);
  });

  test("is refused for an unknown state with the nearest name, and for a final one", async () => {
    const { three } = traced();
    const live = session({ model: noModel });
    await expect(live.start(three, task, { from: { state: "reviw" } })).rejects.toMatchObject({
      code: "start_invalid",
      message: expect.stringContaining('there is no state "reviw" (did you mean "review"?)'),
    });
    await expect(live.start(three, task, { from: { state: "done" } })).rejects.toMatchObject({
      code: "start_invalid",
      message: expect.stringContaining("done is a final state"),
    });
  });

  test("is refused with the templates that lead nowhere", async () => {
    const submit = { allowedTools: [], completionTool: "submit", turnCap: 2 } as const;
    const written = pipeline({
      id: "written",
      input: z.object({ task: z.string() }),
      stages: {
        plan: stage({ ...submit, prompt: "Plan.", completionSchema: z.object({ steps: z.array(z.string()) }) }),
        build: stage({
          ...submit,
          inputSchema: z.object({ branch: z.string().optional() }),
          prompt: "Build {{ctx.upstream.plan.steps}} on {{ctx.input.branch}} for {{ctx.task}}.",
          completionSchema: z.object({}),
        }),
      },
      initial: "plan",
      next: { plan: () => to("build", {}), build: () => done("built") },
    });
    const live = session({ model: noModel });
    const refused = await live.start(written, task, { from: { state: "build", input: {} } }).then(String, String);
    expect(refused).toContain("{{ctx.upstream.plan.steps}}");
    expect(refused).toContain("{{ctx.input.branch}}");
    expect(refused).not.toContain("{{ctx.task}}");
  });
});
