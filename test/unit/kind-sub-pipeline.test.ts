import { cancel, done, fail, type Pipeline, pipeline, type State, to } from "@sluice/core";
import { human, subPipeline, timer } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { asWritten } from "../support/as-written.ts";
import { completed, dataOf, eventsOf, eventually, noModel, session, tool, twoHosts, work } from "../support/run-kit.ts";

const input = z.object({ task: z.string() });
const review = pipeline({
  id: "review",
  input: z.object({ task: z.string(), depth: z.number().int().default(1) }),
  stages: { look: work({ act: ({ ctx }) => completed({ task: ctx.task, depth: Number(Object(ctx.input).depth) }) }) },
  initial: "look",
  next: { look: ({ output }) => done({ ok: true, seen: output }) },
});

/** Runs a state that runs `review`, or the pipelines given, and ends with what it makes of it. */
function runs<O>(
  reviewing: State<O, undefined>,
  pipelines: Readonly<Record<string, Pipeline<never, unknown>>> = { review },
) {
  return pipeline({
    id: "runs",
    input,
    stages: { reviewing },
    initial: "reviewing",
    pipelines,
    next: {
      reviewing: {
        completed: ({ output }) => done({ output }),
        failed: ({ code, message, detail = null }) => done({ code, message, detail }),
      },
    },
  });
}
const task = { task: "fix it" };

describe("a state that runs another pipeline", () => {
  test("completes with the output of its run, whose type it has", async () => {
    const live = session({ model: noModel });
    const made = pipeline({
      id: "typed",
      input,
      stages: { reviewing: subPipeline({ pipeline: "review", of: review, input: ({ task }) => ({ task, depth: 3 }) }) },
      initial: "reviewing",
      pipelines: { review },
      next: { reviewing: ({ output }) => done(output.ok ? output.seen : null) },
    });
    const run = live.start(made, task);
    expect(await run).toMatchObject({ status: "completed", output: { task: "fix it", depth: 3 } });
    expect((await live.host.tree(run.runId)).map(({ runId }) => runId.replace(run.runId, ""))).toEqual([
      "",
      "/reviewing#1:a1:run/review",
    ]);
    await eventsOf(live.host, run.runId);
  });

  test("gives its own input where it names none, as the schema of the pipeline reads it", async () => {
    const live = session({ model: noModel });
    expect(await live.run(runs(subPipeline({ pipeline: "review" })), task)).toMatchObject({
      output: { output: { seen: { task: "fix it", depth: 1 } } },
    });
  });

  test("fills in the templates of its input, and nothing that a template gives is one", async () => {
    const live = session({ model: noModel });
    const given = { task: "first {{ctx.task}}", depth: 2 };
    const made = runs(subPipeline({ pipeline: "review", input: given }));
    expect(await live.run(made, { task: "{{ctx.runId}}" })).toMatchObject({
      output: { output: { seen: { task: "first {{ctx.runId}}", depth: 2 } } },
    });
  });

  test("gives the value of a text that is one template, and text for any other", async () => {
    const live = session({ model: noModel });
    const made = pipeline({
      id: "values",
      input: z.object({ depth: z.number(), tasks: z.array(z.string()) }),
      stages: {
        reviewing: subPipeline({
          pipeline: "review",
          input: { task: "{{ctx.run.input.tasks}} at {{ctx.run.input.depth}}", depth: "{{ctx.run.input.depth}}" },
        }),
      },
      initial: "reviewing",
      pipelines: { review },
      next: { reviewing: ({ output }) => done(output) },
    });
    expect(await live.run(made, { depth: 4, tasks: ["a"] })).toMatchObject({
      output: { seen: { task: '["a"] at 4', depth: 4 } },
    });
  });

  test("fails when its input does not fit, before anything of the pipeline runs", async () => {
    const live = session({ model: noModel });
    const made = runs(subPipeline({ pipeline: "review", input: { task: "x", depth: "deep" } }));
    const run = live.start(made, task);
    expect(await run).toMatchObject({
      output: { code: "pipeline", message: expect.stringContaining("depth"), detail: { message: expect.any(String) } },
    });
    const states = (await eventsOf(live.host, run.runId)).flatMap(({ type, executionId }) =>
      type === "attempt.started" ? [executionId] : [],
    );
    expect(states).toEqual(["reviewing#1"]);
  });

  test.each([
    ["fails", fail("not today"), { code: "failed", message: "not today" }],
    ["is cancelled by a route of its own", cancel("no need"), { code: "cancelled", message: "no need" }],
  ] as const)(
    "fails when the pipeline %s, with its code and its run, and a route can lead on",
    async (_n, end, detail) => {
      const ends = pipeline({
        id: "ends",
        input,
        stages: { only: work() },
        initial: "only",
        next: { only: () => end },
      });
      const live = session({ model: noModel });
      const run = live.start(runs(subPipeline({ pipeline: "ends" }), { ends }), task);
      expect(await run).toMatchObject({
        status: "completed",
        output: { code: "pipeline", detail: { ...detail, runId: `${run.runId}/reviewing#1:a1:run/ends` } },
      });
    },
  );

  test("fails with code schema when the output does not fit its own", async () => {
    const live = session({ model: noModel });
    const made = runs(subPipeline({ pipeline: "review", output: z.object({ verdict: z.string() }) }));
    expect(await live.run(made, task)).toMatchObject({ output: { code: "schema" } });
  });

  test("runs it again when assert asks for another attempt", async () => {
    const live = session({ model: noModel });
    let attempts = 0;
    const made = runs(
      subPipeline({
        pipeline: "review",
        assert: () => {
          attempts += 1;
          return attempts < 2 ? { retry: "once more" } : "ok";
        },
      }),
    );
    const run = live.start(made, task);
    expect(await run).toMatchObject({ status: "completed" });
    expect((await live.host.tree(run.runId)).slice(1).map(({ runId }) => runId.replace(`${run.runId}/`, ""))).toEqual([
      "reviewing#1:a1:run/review",
      "reviewing#1:a2:run/review",
    ]);
  });

  test("is cancelled with the run, and so is the run of the pipeline", async () => {
    const slow = pipeline({
      id: "slow",
      input,
      stages: { wait: timer({ for: "1d" }) },
      initial: "wait",
      next: { wait: () => done(null) },
    });
    const live = session({ model: noModel });
    const run = live.start(runs(subPipeline({ pipeline: "slow" }), { slow }), task);
    await eventually(async () => live.clock.waiting() === 1);
    await run.cancel("enough");
    expect(await run).toMatchObject({ status: "cancelled", error: { message: "enough" } });
    const finished = dataOf(await eventsOf(live.host, run.runId), "run.finished");
    expect(finished.map(({ status }) => status)).toEqual(["cancelled", "cancelled"]);
  });

  test("sleeps and asks as deep as it is, and another process goes on there", async () => {
    const inner = pipeline({
      id: "inner",
      input,
      stages: { wait: timer({ for: "1h" }), ask: human({ question: "Go on?" }) },
      initial: "wait",
      next: { wait: () => to("ask"), ask: ({ output }) => done(output) },
    });
    const outer = pipeline({
      id: "outer",
      input,
      stages: { run: subPipeline({ pipeline: "inner" }) },
      initial: "run",
      pipelines: { inner },
      next: { run: ({ output }) => done(output) },
    });
    const made = runs(subPipeline({ pipeline: "outer" }), { outer });
    const { clock, first, second } = twoHosts();
    const before = session({ model: noModel, wait: true, clock, host: first });
    const run = before.start(made, task);
    await eventually(async () => clock.waiting() === 1);
    await first.close();
    clock.turn(3_600_000);
    const after = session({ model: noModel, wait: true, clock, host: second });
    const resumed = after.resume(made, run.runId);
    await eventually(async () => (await second.requests(run.runId)).length === 1);
    const [request] = await second.requests(run.runId);
    expect(request?.runId).toBe(`${run.runId}/reviewing#1:a1:run/outer/run#1:a1:run/inner`);
    await after.answer(request ?? expect.fail(), { kind: "value", value: "yes" }, "Ada");
    expect(await resumed).toMatchObject({ output: { output: "yes" } });
    await eventsOf(second, run.runId);
  });

  test("adds the denied calls of the pipeline to those of the run", async () => {
    const denied = pipeline({
      id: "denied",
      input,
      stages: {
        only: work({
          allowedTools: [],
          act: async (scope) => {
            await scope.calls(1, [{ id: "t1.c0", tool: "Touch", input: {} }]);
            return completed(null);
          },
        }),
      },
      initial: "only",
      next: { only: () => done(null) },
    });
    const live = session({ model: noModel, tools: [tool("Touch")] });
    const result = await live.run(runs(subPipeline({ pipeline: "denied" }), { denied }), task);
    expect(result.denied).toMatchObject([{ tool: "Touch" }]);
  });

  test.each([
    ["a pipeline that is not there", { pipeline: "reveiw" }, "review"],
    ["another pipeline than that of the key", { pipeline: "review", of: runs(timer({ for: 1 })) }, "the same"],
    ["a template that leads nowhere", { pipeline: "review", input: { task: "{{ctx.nothing}}" } }, "ctx has"],
    ["no pipeline", {}, "pipelines"],
  ])("with %s is refused before a run", (_name, options, hint) => {
    expect(() => runs(asWritten<State<unknown, undefined>>(subPipeline, options))).toThrow(
      expect.objectContaining({ code: "definition_invalid", message: expect.stringContaining(hint) }),
    );
  });

  test("nests eight deep and no deeper", () => {
    let deep: Pipeline<z.infer<typeof input>, unknown> = pipeline({
      id: "p0",
      input,
      stages: { only: work() },
      initial: "only",
      next: { only: () => done(null) },
    });
    const around = (level: number) =>
      pipeline({
        id: `p${level}`,
        input,
        stages: { run: subPipeline({ pipeline: "below" }) },
        initial: "run",
        pipelines: { below: deep },
        next: { run: () => done(null) },
      });
    for (let level = 1; level <= 8; level += 1) deep = around(level);
    expect(() => around(9)).toThrow("nest at most 8 deep");
  });
});
