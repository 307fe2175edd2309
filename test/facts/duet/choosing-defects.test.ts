import { checkPipeline, type Json, pipeline, stage } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { human, router } from "@sluice/stages";
import { expect, test } from "vitest";
import { z } from "zod";
import { bye, direct, directed, noting, select, task } from "../../support/orchestrated.ts";
import { completed, dataOf, eventsOf, eventually, failed, session, work } from "../../support/run-kit.ts";
import { failingAt } from "../../support/stopped-runs.ts";

// Defects of machines that a model directs, each with what Sluice does instead.

const typed = z.strictObject({ file: z.string() });
const states = () => ({
  plan: work<Json>({ act: () => completed("planned") }),
  fix: work<Json, { file: string }>({ inputSchema: typed, act: () => completed("fixed") }),
});
const end = [select("completed", 1), bye];

test("D4: a first state that does not exist is refused, and its input is checked before the run starts", async () => {
  const problems = checkPipeline({
    id: "p",
    input: task,
    stages: states(),
    initial: "nowhere",
    orchestrator: { instructions: "x" },
  });
  expect(problems.map(({ path, message }) => `${path} ${message}`)).toEqual(['initial there is no state "nowhere"']);
  const typedStart = checkPipeline({
    id: "p",
    input: task,
    stages: states(),
    initial: "fix",
    orchestrator: { instructions: "x" },
  });
  expect(typedStart.map(({ path }) => path)).toEqual(["stages.fix.inputSchema"]);
});

test("D5: a state cannot be listed twice, not even as a target, and takes no name that the run needs", () => {
  const twice = checkPipeline({
    id: "p",
    input: task,
    stages: { pick: router({ targets: ["plan", "plan"], prompt: "Choose." }), plan: states().plan },
    initial: "pick",
    next: { plan: () => ({ kind: "done", output: 1 }) },
  });
  expect(twice.map(({ message }) => message)).toEqual(["plan is listed twice"]);
  expect(() => directed({ orchestrator: states().plan })).toThrow("is the name of the orchestrator");
});

test("D6: a choice changes neither the kind nor the command nor the model of a state", async () => {
  const hostile = [
    select("plan", undefined, "x", { override: { kind: "script", command: "id", model: "opus" } }),
    select("plan", undefined, "x", { kind: "script", command: "id" }),
  ];
  const own = directed(states(), { allowPromptOverride: true });
  const before = JSON.stringify([...own.spec.states.keys()]);
  const { rejected, hops } = await direct(own, [...hostile, ...end]);
  expect(rejected).toHaveLength(2);
  expect(hops).toEqual(["orchestrator done"]);
  expect(JSON.stringify([...own.spec.states.keys()])).toBe(before);
});

test("D7: no choice sets an interval, a timeout or a limit, so no floor can be passed by", async () => {
  const tries = ["intervalMs", "every", "timeoutMs", "wakeAfterMs", "limits"].map((field) =>
    select("plan", undefined, "x", { [field]: 1 }),
  );
  const { rejected } = await direct(directed(states()), [...tries, ...end]);
  expect(rejected).toHaveLength(5);
});

test("D8: what is wrong with an input is reported with its path", async () => {
  const { rejected } = await direct(directed(states()), [select("fix", { file: { name: 1 } }), ...end]);
  expect(rejected[0]?.reason).toMatch(/^\$\.input\.file /);
});

test("D12: after a crash in the middle of a state, the run continues there, and each start has one end", async () => {
  const memory = createMemoryJournals();
  const { model } = noting([select("plan"), ...end]);
  const own = directed(states());
  const first = session({ model, host: createHost(failingAt(memory.connect(), /^plan#1\/a1\/leave$/)) });
  const handle = first.start(own, { task: "T" });
  await expect(handle.then((ended) => ended)).rejects.toThrow("the disk failed");
  const second = session({ model, host: createHost(memory.connect()) });
  expect(await second.resume(own, handle.runId)).toMatchObject({ status: "completed" });
  const events = await eventsOf(second.host, handle.runId);
  const ofPlan = events.filter(({ executionId }) => executionId === "plan#1").map(({ type }) => type);
  expect(ofPlan.filter((type) => type === "attempt.started")).toHaveLength(1);
  expect(ofPlan.filter((type) => type === "attempt.finished")).toHaveLength(1);
});

test("D13: a state that failed is reported as failed, to the orchestrator, in its events and in the result", async () => {
  const broken = work({ act: () => failed("no network") });
  const { result, events, prompts } = await direct(directed({ broken }), [select("broken"), ...end]);
  expect(prompts[1]).toContain("broken#1 failed");
  expect(result.stages[1]).toMatchObject({ executionId: "broken#1", status: "failed", message: "no network" });
  const finished = events.find(({ type, executionId }) => type === "attempt.finished" && executionId === "broken#1");
  expect(finished?.data).toMatchObject({ outcome: "failed", code: "tool" });
});

test("D14: a question is a state of its own, so a run that asks waits, and continues with the answer", async () => {
  const { model, prompts } = noting([select("ask"), ...end]);
  const live = session({ model, wait: true });
  const handle = live.start(directed({ ask: human({ question: "Go?" }) }), { task: "T" });
  await eventually(async () => (await live.host.requests()).length === 1);
  await live.message(handle.runId, "By the way: thank you.");
  const [request] = await live.host.requests();
  if (request === undefined) throw new Error("nothing is asked");
  await live.answer(request, { kind: "value", value: "yes" }, "me");
  expect(await handle).toMatchObject({ status: "completed", output: 1 });
  expect(prompts[1]).toContain("yes");
  expect(prompts[1]).toContain("thank you");
});

test("D17: a definition is checked in the same way, whatever chooses its routes", () => {
  const broken = stage({
    prompt: "",
    allowedTools: ["!"],
    completionTool: "say",
    completionSchema: z.object({}),
    turnCap: 0,
  });
  const orchestrated = checkPipeline({ id: "p", input: task, stages: { broken }, orchestrator: { instructions: "x" } });
  const routed = checkPipeline({
    id: "p",
    input: task,
    stages: { broken },
    initial: "broken",
    next: { broken: () => ({ kind: "done", output: 1 }) },
  });
  expect(orchestrated).toEqual(routed);
  expect(orchestrated.length).toBeGreaterThan(2);
  expect(() => pipeline({ id: "p", input: task, stages: states(), orchestrator: { instructions: " " } })).toThrow(
    "orchestrator.instructions",
  );
  expect(() =>
    pipeline({
      id: "p",
      input: task,
      stages: states(),
      orchestrator: { instructions: "x", fallback: { to: "fix", input: {} } },
    }),
  ).toThrow("orchestrator.fallback.input");
});

test("what the orchestrator chooses is an event of the run, so that nothing is decided in prose", async () => {
  const { routes } = await direct(directed(states()), [select("fix", { file: "a" }, "it is short"), ...end]);
  expect(routes[0]).toMatchObject({ from: "orchestrator", to: "fix", why: { by: "model", reason: "it is short" } });
  expect(dataOf((await direct(directed(states()), end)).events, "route.decided")).toHaveLength(1);
});
