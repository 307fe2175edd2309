import { join } from "node:path";
import {
  backToInterrupted,
  fork,
  invoke,
  type Json,
  pipeline,
  type RunCopy,
  type RunHost,
  type Subject,
} from "@sluice/core";
import { createHost, createMemoryJournals, forkPointsOf, verifyJournal } from "@sluice/core/host";
import { replayRun, subPipeline } from "@sluice/stages";
import { expect, test } from "vitest";
import { completed, eventually, json, noModel, session, tool, work, workExecutor } from "../support/run-kit.ts";

// A run is forked before any execution of its children: in branches, in branches of branches, in other pipelines, in handlers.

const input = { type: "object" } as const;
const cwd = import.meta.dirname;
const touch = tool("Touch", {
  subjects: (): readonly Subject[] => [{ kind: "path", real: join(cwd, "a.sql"), access: "write" }],
  prepare: () => null,
  recover: () => "not_started",
});

/** What worked, in order, as `<run> <execution>` without the root's id. */
function scene() {
  const worked: string[] = [];
  const step = (touches = false) =>
    work<Json, unknown>({
      act: async ({ ctx, executionId, steps, calls }) => {
        if (touches) await calls(1, [{ id: "t1.c0", tool: "Touch", input: {} }]);
        const output = await steps.run("work", () => {
          worked.push(`${ctx.runId.replace(/^[^/]+/, "")} ${executionId}`.trim());
          return json({ at: executionId, up: ctx.upstream });
        });
        return completed(output);
      },
    });
  const suite = pipeline({
    id: "suite",
    input,
    stages: { unit: step(), smoke: step() },
    initial: "unit",
    transitions: [
      { from: "unit", on: "success", to: "smoke" },
      { from: "smoke", on: "success", to: { stages: [], execution: "sequential" } },
    ],
  });
  const all = pipeline({
    id: "all",
    input,
    interrupts: { SQL: { files: "*.sql", target: "audit" } },
    stages: {
      start: step(),
      lint: step(),
      format: step(true),
      types: step(),
      deep: step(),
      deeper: step(),
      audit: step(),
      join: step(),
      after: step(),
    },
    initial: "start",
    pipelines: { suite },
    transitions: [
      {
        from: "start",
        on: "success",
        to: fork(
          { style: { initial: "lint", terminal: "join" }, types: { initial: "types", terminal: "join" } },
          { onComplete: "join" },
        ),
      },
      { from: "lint", on: "success", to: "format" },
      { from: "format", on: "success", to: "join" },
      { from: "audit", on: "success", to: backToInterrupted() },
      {
        from: "types",
        on: "success",
        to: fork({ inner: { initial: "deep", terminal: "join" } }, { onComplete: "join" }),
      },
      { from: "deep", on: "success", to: "deeper" },
      { from: "deeper", on: "success", to: "join" },
      { from: "join", on: "success", to: invoke("suite", { key: "suite", onComplete: "after" }) },
      {
        from: "after",
        on: "success",
        when: (_result, { visit }) => visit === 1,
        to: invoke("suite", { key: "suite", onComplete: "after" }),
      },
      { from: "after", on: "success", to: { stages: [], execution: "sequential" } },
    ],
  });
  const live = session({ model: noModel, cwd, mode: "yolo", tools: [touch], maxParallel: 1 });
  return { all, live, worked };
}

const SECOND = ["/fan-3/suite unit#1", "/fan-3/suite smoke#1", "after#2"];
const FIRST = ["/fan-2/suite unit#1", "/fan-2/suite smoke#1", "after#1", ...SECOND];
const STYLE = ["/fan-1/style audit#1", "/fan-1/style format#1", "join#1", ...FIRST];
const TYPES = ["/fan-1/types/fan-1/inner deep#1", "/fan-1/types/fan-1/inner deeper#1", "join#1", ...FIRST];
/** Each execution, and what works in a fork before it. The branches of the first fan-out work side by side. */
const FORKS: readonly (readonly [from: string, works: readonly string[]])[] = [
  ["lint#1", ["/fan-1/style lint#1", ...STYLE]],
  ["format#1:style", STYLE],
  ["audit#1:style", STYLE],
  ["types#1", ["/fan-1/types types#1", ...TYPES]],
  ["deep#1:types/inner", TYPES],
  ["deeper#1:types/inner", TYPES.slice(1)],
  ["join#1", ["join#1", ...FIRST]],
  ["unit#1", FIRST],
  ["smoke#1:suite", FIRST.slice(1)],
  ["after#1", FIRST.slice(2)],
  ["unit#1:suite", SECOND],
  ["smoke#1:fan-3/suite", SECOND.slice(1)],
  ["after#2", SECOND.slice(2)],
];

test("a run has a fork point before each of its executions, those of its children included, each with its own name", async () => {
  const { all, live } = scene();
  const { runId } = await live.run(all, {});
  const points = forkPointsOf(await live.host.journal(runId));
  expect(points.map(({ executionId }) => executionId)).toEqual(["start#1", ...FORKS.map(([from]) => from)]);
});

test.each(FORKS)("a fork before %s does what follows again, and nothing else, and ends alike", async (from, works) => {
  const { all, live, worked } = scene();
  const { runId, ...whole } = await live.run(all, {});
  expect(whole.status).toBe("completed");
  worked.length = 0;
  const forked = await live.fork(all, runId, { from });
  expect(worked).toEqual(works);
  expect(forked).toMatchObject({ status: "completed", output: "output" in whole ? whole.output : undefined });
  const journals = await live.host.journal(forked.runId);
  expect(verifyJournal(journals).faults).toEqual([]);
  const report = await replayRun(all, journals, { env: {}, executors: [workExecutor], tools: [touch] });
  expect([report.divergence?.message, report.status]).toEqual([undefined, "completed"]);
});

test.each([
  ["format#1:style", false],
  ["join#1", true],
])(
  "the replay of a fork before %s decides again what its children did since, and nothing that was copied: %s",
  async (from, same) => {
    const { all, live } = scene();
    const { runId } = await live.run(all, {});
    const forked = await live.fork(all, runId, { from });
    const hooked = { env: {}, executors: [workExecutor], tools: [touch], onCall: () => ({ veto: "not now" }) };
    const { identical } = await replayRun(all, await live.host.journal(forked.runId), hooked);
    expect(identical).toBe(same);
  },
);

test("an execution inside a child that is named without its key is refused with its whole name", async () => {
  const { all, live } = scene();
  const { runId } = await live.run(all, {});
  await expect(live.fork(all, runId, { from: "format#1" })).rejects.toMatchObject({
    code: "execution_unknown",
    message: expect.stringContaining("Did you mean format#1:style?"),
  });
});

test("a fork of a fork begins inside a child that the first one copied in part", async () => {
  const { all, live, worked } = scene();
  const { runId } = await live.run(all, {});
  const forked = await live.fork(all, runId, { from: "deeper#1:types/inner" });
  worked.length = 0;
  const again = await live.fork(all, forked.runId, { from: "deep#1:types/inner" });
  expect(worked).toEqual(TYPES);
  expect(again.status).toBe("completed");
});

test("a child that completes while the fork is prepared is not copied, since it was not compared", async () => {
  const visits: string[] = [];
  const asking = work({
    act: async (scope) => {
      visits.push(`${scope.ctx.runId.replace(/^[^/]+/, "")} ${scope.executionId}`);
      await scope.ask({ name: "ok", question: { question: scope.executionId, answer: { type: "string" } } });
      return completed(null);
    },
  });
  const inner = pipeline({
    id: "inner",
    input,
    stages: { plan: work(), one: asking, two: asking, join: work() },
    initial: "plan",
    transitions: [
      { from: "plan", on: "success", to: { stages: ["one", "two"], execution: "parallel", join: "join" } },
      { from: "join", on: "success", to: { stages: [], execution: "sequential" } },
    ],
  });
  const outer = pipeline({
    id: "outer",
    input,
    pipelines: { inner },
    stages: { start: work(), left: subPipeline({ pipeline: "inner", input: {} }), right: asking, join: work() },
    initial: "start",
    transitions: [
      { from: "start", on: "success", to: { stages: ["left", "right"], execution: "parallel", join: "join" } },
      { from: "join", on: "success", to: { stages: [], execution: "sequential" } },
    ],
  });
  const host = createHost(createMemoryJournals().connect());
  const live = session({ host, wait: true });
  const run = live.start(outer, {});
  await eventually(async () => (await host.requests(run.runId)).length === 3);
  const endRight = async (): Promise<void> => {
    for (const request of await host.requests(run.runId))
      if (/^(?:right|two)#1/.test(request.requestId)) await live.answer(request, { kind: "value", value: "yes" }, "me");
    await eventually(async () => {
      const ended = (await host.journal(run.runId)).filter(({ end }) => end !== undefined);
      return ended.length === 2;
    });
  };
  const copying: RunHost = Object.assign(Object.create(host), {
    copy: async (copy: RunCopy) => {
      await endRight();
      await host.copy(copy);
    },
  });
  const forking = session({ host: copying, wait: true });
  visits.length = 0;
  const forked = forking.fork(outer, run.runId, { from: "one#1:left/inner/one" });
  await eventually(() => visits.length === 3);
  expect(visits.sort()).toEqual([
    "/fan-1/left/left#1:a1:run/inner/fan-1/one one#1",
    "/fan-1/left/left#1:a1:run/inner/fan-1/two two#1",
    "/fan-1/right right#1",
  ]);
  await forked.suspend();
  await run.suspend();
});

test("a copy that would leave a step of a child open is refused", async () => {
  const { all, live } = scene();
  const { runId } = await live.run(all, {});
  const journals = await live.host.journal(runId);
  const point = forkPointsOf(journals).find(({ executionId }) => executionId === "format#1:style");
  const { inside = { key: "style", before: 0 } } = point ?? {};
  const child = journals.find((journal) => journal.runId === `${runId}/fan-1/style`);
  const open = child?.records.findIndex(({ seq, phase }) => seq >= inside.before && phase === "open") ?? -1;
  expect(open).toBeGreaterThan(0);
  const copy = {
    of: runId,
    before: point?.before ?? 0,
    inside: { ...inside, before: open + 1 },
    started: [],
    forked: [],
  };
  await expect(live.host.copy({ ...copy, runId: "copied" })).rejects.toMatchObject({ code: "copy_point" });
});
