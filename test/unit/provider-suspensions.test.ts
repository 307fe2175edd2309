import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { done, fanOut, invoke, memoryHost, pipeline, stage } from "@sluice/core";
import {
  playbackTraffic,
  type ResolvedModel,
  recordTraffic,
  replayRun,
  type ScriptedTurn,
  scriptedModel,
} from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { bye, directed, select } from "../support/orchestrated.ts";
import {
  completed,
  dataOf,
  eventsOf,
  eventually,
  failed,
  session,
  type TestSessionOptions,
  tool,
  twoHosts,
  work,
} from "../support/run-kit.ts";
import { tempFolder } from "../support/tools.ts";

const input = z.object({ task: z.string() });
const task = { task: "fix" };
const refused = { status: 401, message: "invalid key" };
const finish: ScriptedTurn = { calls: [{ tool: "finish", input: { text: "done" } }] };

function worker(
  options: { readonly onProviderFault?: "suspend" | "fail"; readonly fallbackModels?: readonly string[] } = {},
) {
  return stage({
    prompt: "Work.",
    allowedTools: ["Look"],
    completionTool: "finish",
    completionSchema: z.object({ text: z.string() }),
    turnCap: 3,
    ...options,
  });
}
const looks: ScriptedTurn = { calls: [{ tool: "Look", input: {} }] };

function suspending(model: ResolvedModel) {
  return session({ model, tools: [tool("Look")], host: memoryHost(), onProviderFault: "suspend" });
}

describe("a pipeline inside another one", () => {
  const inner = pipeline({
    id: "inner",
    input: z.object({ task: z.string().optional() }),
    stages: { part: worker() },
    initial: "part",
    next: { part: ({ output }) => done(output) },
  });
  const outer = (options: { readonly onProviderFault?: "suspend" | "fail" } = {}) =>
    pipeline({
      id: "outer",
      input,
      stages: { begin: work({ act: () => completed(null) }), end: work({ act: () => completed("end") }) },
      initial: "begin",
      pipelines: { inner },
      ...options,
      next: {
        begin: () => invoke("inner", { onComplete: "end", onFail: "end" }),
        end: ({ output }) => done(output),
      },
    });
  const script = { stages: { part: [looks, { ...finish, errors: [refused] }] } };

  test("is suspended with the run, and continues in its middle", async () => {
    const live = suspending(scriptedModel(script));
    const suspended = await live.run(outer(), task);
    expect(suspended).toMatchObject({
      status: "suspended",
      suspended: { code: "unauthorized", faults: [{ runId: `${suspended.runId}/fan-1/inner`, executionId: "part#1" }] },
    });
    expect(await live.resume(outer(), suspended.runId)).toMatchObject({ status: "completed", output: "end" });
    const events = await eventsOf(live.host, suspended.runId);
    expect(dataOf(events, "call.finished")).toHaveLength(1);
    expect(dataOf(events, "fanOut.joined")).toMatchObject([{ outcomes: [{ status: "completed" }] }]);
  });

  test("does what the one around it says, where it says nothing itself", async () => {
    const live = suspending(scriptedModel(script));
    const result = await live.run(outer({ onProviderFault: "fail" }), task);
    expect(result).toMatchObject({ status: "completed", output: "end" });
    const events = await eventsOf(live.host, result.runId);
    expect(dataOf(events, "fanOut.joined")).toMatchObject([{ outcomes: [{ status: "failed" }] }]);
  });
});

test("an orchestrator that its provider refuses suspends the run, and chooses when it is resumed", async () => {
  const pipe = directed({ work: worker() });
  const orchestrator = [{ ...select("work"), errors: [refused] }, select("completed"), bye];
  const live = suspending(scriptedModel({ stages: { orchestrator, work: [finish] } }));
  const suspended = await live.run(pipe, task);
  expect(suspended).toMatchObject({ suspended: { faults: [{ executionId: "orchestrator#1" }] } });
  expect(await live.resume(pipe, suspended.runId)).toMatchObject({ status: "completed" });
});

test("an orchestrator whose last words are refused does not suspend a run that has ended", async () => {
  const pipe = directed({ work: worker() });
  const orchestrator = [select("work"), select("completed"), { ...bye, errors: [refused, refused] }];
  const live = suspending(scriptedModel({ stages: { orchestrator, work: [finish] } }));
  expect(await live.run(pipe, task)).toMatchObject({ status: "completed" });
});

const one = (options: Parameters<typeof worker>[0] = {}) =>
  pipeline({
    id: "one",
    input,
    stages: { work: worker(options) },
    initial: "work",
    next: { work: ({ output }) => done(output) },
  });

test("recorded traffic has the failures of each model, and plays them back with the same fallbacks", async () => {
  const folder = tempFolder();
  const busy = { status: 503, message: "busy" };
  writeFileSync(join(folder.root, "spare.json"), JSON.stringify({ stages: { work: [looks, finish] } }));
  const pipe = one({ fallbackModels: ["scripted:spare.json"] });
  const file = join(folder.root, "traffic.jsonl");
  const asked = async (options: TestSessionOptions) => {
    const live = session({ tools: [tool("Look")], cwd: folder.root, ...options });
    const result = await live.run(pipe, task);
    const events = await eventsOf(live.host, result.runId);
    return {
      status: result.status,
      fallbacks: dataOf(events, "model.fallback"),
      turns: dataOf(events, "turn.started"),
    };
  };
  const model = scriptedModel({ stages: { work: [{ ...looks, errors: [busy] }] } });
  const recorded = await asked({ model, traffic: recordTraffic(file) });
  expect(recorded).toMatchObject({
    status: "completed",
    fallbacks: [{ to: "scripted:spare.json", code: "overloaded" }],
  });
  const played = await asked({ model, traffic: playbackTraffic(file) });
  expect([played.status, played.fallbacks.length, played.turns.length]).toEqual([
    "completed",
    1,
    recorded.turns.length,
  ]);
});

describe("a replay", () => {
  test("is identical to a run that was suspended and resumed, with another setting too", async () => {
    const live = suspending(scriptedModel({ stages: { work: [looks, { ...finish, errors: [refused] }] } }));
    const { runId } = await live.run(one(), task);
    await live.resume(one(), runId);
    const journals = await live.host.journal(runId);
    for (const pipe of [one(), one({ onProviderFault: "fail" })])
      expect(await replayRun(pipe, journals, { env: {}, tools: [tool("Look")] })).toMatchObject({ identical: true });
  });

  test("is identical to a run that is still suspended", async () => {
    const live = suspending(scriptedModel({ stages: { work: [{ ...finish, errors: [refused] }] } }));
    const { runId } = await live.run(one(), task);
    const journals = await live.host.journal(runId);
    expect(await replayRun(one(), journals, { env: {}, tools: [tool("Look")] })).toMatchObject({ identical: true });
  });
});

describe("a kind of its own", () => {
  const kindOf = (retryAt?: number) =>
    work({
      act: async (scope) => {
        const isUp = await scope.steps.run("ask", () => scope.steps.incarnation !== "");
        await scope.suspend({
          reason: "provider",
          code: "down",
          message: "the service of zq81-aaXX77-pp03-kd is down",
          ...(retryAt === undefined ? {} : { retryAt }),
        });
        if (scope.signal.aborted) return { status: "cancelled", reason: "cancelled", turns: 0, usage: NONE };
        const { onProviderFault } = scope.providerFaults();
        return isUp ? completed(onProviderFault) : failed("down");
      },
    });
  const NONE = { inputTokens: 0, outputTokens: 0 };
  const pipe = (retryAt?: number) =>
    pipeline({
      id: "own",
      input,
      stages: { work: kindOf(retryAt) },
      initial: "work",
      next: { work: ({ output }) => done(output) },
    });

  test("suspends the run too, and its message is masked", async () => {
    const env = { SERVICE_TOKEN: "zq81-aaXX77-pp03-kd" };
    const { first, second, clock } = twoHosts();
    const suspended = await session({ env, host: first, clock }).run(pipe(), task);
    expect(suspended).toMatchObject({
      status: "suspended",
      suspended: { code: "down", message: "the service of [redacted:SERVICE_TOKEN] is down" },
    });
    const live = session({ env, host: second, clock, onProviderFault: "suspend" });
    expect(await live.resume(pipe(), suspended.runId)).toMatchObject({ status: "completed", output: "suspend" });
  });

  test("holds no concurrency slot while it waits, and continues at its time if the run still works", async () => {
    let isAtWork = false;
    let isDone = false;
    const other = work({
      act: async (scope) => {
        isAtWork = true;
        await scope.steps.run("long", () => eventually(() => isDone).then(() => null));
        return completed("worked");
      },
    });
    const live = session({ maxParallel: 1, onProviderFault: "suspend" });
    const two = pipeline({
      id: "two",
      input,
      stages: { begin: work(), slow: kindOf(live.clock.now() + 60_000), other, end: work() },
      initial: "begin",
      next: { begin: () => fanOut(["slow", "other"], { join: "end" }), end: () => done("end") },
    });
    const handle = live.start(two, task);
    await eventually(() => isAtWork && live.clock.waiting() > 0);
    live.clock.turn(60_000);
    isDone = true;
    expect(await handle).toMatchObject({ status: "completed" });
    const events = await eventsOf(live.host, handle.runId);
    expect(dataOf(events, "execution.continued")).toEqual([{ by: "time" }]);
  });
});
