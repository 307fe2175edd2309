import { type ActScope, backToInterrupted, done, final, type Json, type JsonObject, pipeline, to } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { byEvents, completed, dataOf, eventsOf, json, noModel, session, tool, work } from "../support/run-kit.ts";

// What merges into the shared context, when its record says so, and which context the routes of a state read.

const input = { type: "object" } as const;
const sending = (event: string, data: JsonObject) =>
  byEvents(async (scope) => completed((await scope.accept({ turn: 1, event, data })).output));

describe("the record of a changed context", () => {
  test("has the data of the event and what its row sets, which stands above it", async () => {
    const live = session({ model: noModel });
    const rows = pipeline({
      id: "rows",
      input,
      context: { k: 0 },
      stages: {
        plan: sending("GO", { k: 1, l: 1 }),
        end: work<Json, unknown>({ act: ({ ctx }) => completed(json(ctx.context)) }),
      },
      initial: "plan",
      transitions: [
        { from: "plan", on: { event: "GO" }, to: to("end", null, { context: { l: 2 } }) },
        { from: "end", on: "success", to: { stages: [], execution: "sequential" } },
      ],
    });
    const run = live.start(rows, {});
    expect(await run).toMatchObject({ output: { k: 1, l: 2 } });
    expect(dataOf(await eventsOf(live.host, run.runId), "context.changed")).toEqual([{ patch: { k: 1, l: 2 } }]);
  });

  test("has what a completed state adds", async () => {
    const live = session({ model: noModel });
    const adding = pipeline({
      id: "adding",
      input,
      context: {},
      stages: {
        plan: work<Json, unknown>({
          act: () => ({ ...completed("planned"), adds: { context: { scratchpad: { n: 1 } } } }),
        }),
        end: final("completed"),
      },
      initial: "plan",
      transitions: [{ from: "plan", on: "success", to: "end" }],
    });
    const run = live.start(adding, {});
    await run;
    expect(dataOf(await eventsOf(live.host, run.runId), "context.changed")).toEqual([
      { patch: { scratchpad: { n: 1 } } },
    ]);
  });

  test("is not written where a cap of the run stops the move", async () => {
    const live = session({ model: noModel });
    const common = { id: "capped", input, context: {}, limits: { maxVisits: 1 }, initial: "a" } as const;
    const otherwise = { from: "a", on: "failure", to: done(null) } as const;
    const byEvent = pipeline({
      ...common,
      stages: { a: sending("GO", { k: 1 }) },
      transitions: [{ from: "a", on: { event: "GO" }, to: "a" }, otherwise],
    });
    const byResult = pipeline({
      ...common,
      stages: { a: work<Json, unknown>({}) },
      transitions: [{ from: "a", on: "success", to: to("a", null, { context: { k: 1 } }) }, otherwise],
    });
    for (const capped of [byEvent, byResult]) {
      const run = live.start(capped, {});
      expect(await run).toMatchObject({ status: "failed", error: { code: "limit_visits" } });
      const events = await eventsOf(live.host, run.runId);
      expect(dataOf(events, "route.decided")).toMatchObject([{ from: "a", to: "a" }]);
      expect(dataOf(events, "context.changed")).toEqual([]);
    }
  });
});

describe("after an interrupt's handler has returned", () => {
  const touched = tool("Touch", {
    subjects: () => [{ kind: "path", real: `${import.meta.dirname}/a.sql`, access: "write" }],
  });
  const touch = (scope: ActScope) => scope.calls(1, [{ id: "t1.c0", tool: "Touch", input: {} }]);
  const now = (_result: unknown, { context, upstream, setup }: ActScope["ctx"]): boolean =>
    context.ok === true && "check" in upstream && setup === "own";
  const FIRST = ["plan", "talk", "broken", "idle"] as const;
  const detour = () =>
    pipeline({
      id: "detour",
      input,
      context: {},
      interrupts: { SQL: { files: "*.sql", target: "check" } },
      stages: {
        start: work<Json, unknown>({}),
        plan: work<Json, unknown>({
          setup: () => "own",
          act: async (scope) => completed(json(await touch(scope))),
        }),
        broken: work<Json, unknown>({
          setup: () => "own",
          act: async (scope) => {
            await touch(scope);
            return { ...completed(null), status: "failed", code: "tool", message: "broken" };
          },
        }),
        idle: work<Json, unknown>({
          setup: () => "own",
          act: async (scope) => {
            await touch(scope);
            return { ...completed(null), status: "paused", request: { answer: "yes" } };
          },
        }),
        talk: byEvents(
          async (scope) => {
            await touch(scope);
            return completed((await scope.accept({ turn: 2, event: "GO", data: {} })).output);
          },
          { setup: () => "own" },
        ),
        check: sending("GO", { ok: true }),
        last: work<Json, unknown>({}),
      },
      initial: "start",
      transitions: [
        ...FIRST.map((first) => ({
          from: "start" as const,
          on: "success" as const,
          when: (_result: unknown, { task }: ActScope["ctx"]) => task === first,
          to: first,
        })),
        { from: "check", on: { event: "GO" }, to: backToInterrupted() },
        { from: "plan", on: "success", when: now, to: done("read") },
        { from: "broken", on: "failure", when: now, to: done("read") },
        { from: "idle", on: "pause", when: now, to: "last" },
        { from: "talk", on: { event: "GO" }, when: now, to: done("read") },
        { from: "last", on: "success", to: done("read") },
        { from: "*", on: "success", to: done("not read") },
      ],
    });

  test.each(FIRST)(
    "the rows of %s read what the handler left, beside the facts of their own attempt",
    async (first) => {
      const live = session({ model: noModel, mode: "yolo", cwd: import.meta.dirname, tools: [touched] });
      expect(await live.run(detour(), { task: first })).toMatchObject({ status: "completed", output: "read" });
    },
  );

  test("the executor and its hooks read what the handler left, too", async () => {
    const seen: Json[] = [];
    const see = (what: string, { context, visit, input: own }: ActScope["ctx"]): void =>
      void seen.push(json({ what, ok: context.ok, visit, own }));
    const returned = pipeline({
      id: "returned",
      input,
      context: {},
      interrupts: { SQL: { files: "*.sql", target: "check" } },
      stages: {
        plan: work<Json, unknown>({
          onCall: (_call, ctx) => {
            see("guard", ctx);
            return undefined;
          },
          act: async (scope) => {
            await touch(scope);
            see("executor", scope.ctx);
            await scope.calls(2, [{ id: "t2.c0", tool: "Look", input: {} }]);
            return completed(null);
          },
          assert: (_result, ctx) => {
            see("assert", ctx);
            return "ok";
          },
          exit: (_result, ctx) => see("exit", ctx),
        }),
        check: sending("GO", { ok: true }),
      },
      initial: "plan",
      transitions: [
        { from: "check", on: { event: "GO" }, to: backToInterrupted() },
        { from: "plan", on: "success", to: done(null) },
      ],
    });
    const tools = [touched, tool("Look", { effect: "read" })];
    const live = session({ model: noModel, mode: "yolo", cwd: import.meta.dirname, tools });
    await live.run(returned, { task: "t" });
    const own = { visit: 1, own: { task: "t" } };
    expect(seen).toEqual([
      { what: "guard", ...own },
      ...["executor", "guard", "assert", "exit"].map((what) => ({ what, ok: true, ...own })),
    ]);
  });

  test("rows read its output, even if it changed no context", async () => {
    const quiet = pipeline({
      id: "quiet",
      input,
      context: {},
      interrupts: { SQL: { files: "*.sql", target: "check" } },
      stages: {
        plan: work<Json, unknown>({ act: async (scope) => completed(json(await touch(scope))) }),
        check: sending("GO", {}),
      },
      initial: "plan",
      transitions: [
        { from: "check", on: { event: "GO" }, to: backToInterrupted() },
        { from: "plan", on: "success", when: (_result, { upstream }) => "check" in upstream, to: done("read") },
        { from: "plan", on: "success", to: done("not read") },
      ],
    });
    const live = session({ model: noModel, mode: "yolo", cwd: import.meta.dirname, tools: [touched] });
    expect(await live.run(quiet, {})).toMatchObject({ output: "read" });
  });

  test("an exit hook reads its own state's entry, even if a handler of the handler changed the run", async () => {
    const seen: Json[] = [];
    const note = tool("Note", {
      subjects: () => [{ kind: "path", real: `${import.meta.dirname}/a.lock`, access: "write" }],
    });
    const nested = pipeline({
      id: "nested",
      input,
      context: {},
      interrupts: { SQL: { files: "*.sql", target: "check" }, LOCK: { files: "*.lock", target: "audit" } },
      stages: {
        plan: work<Json, unknown>({
          act: async (scope) => completed(json(await touch(scope))),
          exit: (_result, { context, visit, input: own }) => void seen.push(json({ context, visit, own })),
        }),
        check: work<Json, unknown>({
          act: async (scope) => completed(json(await scope.calls(1, [{ id: "t1.c0", tool: "Note", input: {} }]))),
        }),
        audit: sending("GO", { ok: true }),
      },
      initial: "plan",
      transitions: [
        { from: "audit", on: { event: "GO" }, to: backToInterrupted() },
        { from: "check", on: "success", to: done("elsewhere") },
        { from: "plan", on: "success", to: done(null) },
      ],
    });
    const tools = [touched, note];
    const live = session({ model: noModel, mode: "yolo", cwd: import.meta.dirname, tools });
    expect(await live.run(nested, { task: "t" })).toMatchObject({ output: "elsewhere" });
    expect(seen).toEqual([{ context: {}, visit: 1, own: { task: "t" } }]);
  });

  test("the exit hook of a state that it did not return to reads what that state entered with", async () => {
    const seen: Json[] = [];
    const left = pipeline({
      id: "left",
      input,
      context: {},
      interrupts: { SQL: { files: "*.sql", target: "check" } },
      stages: {
        plan: work<Json, unknown>({
          act: async (scope) => completed(json(await touch(scope))),
          exit: (_result, { context, visit, input: own }) => void seen.push(json({ context, visit, own })),
        }),
        check: sending("GO", { ok: true }),
      },
      initial: "plan",
      transitions: [
        { from: "check", on: { event: "GO" }, to: done("elsewhere") },
        { from: "plan", on: "success", to: done(null) },
      ],
    });
    const live = session({ model: noModel, mode: "yolo", cwd: import.meta.dirname, tools: [touched] });
    expect(await live.run(left, { task: "t" })).toMatchObject({ output: "elsewhere" });
    expect(seen).toEqual([{ context: {}, visit: 1, own: { task: "t" } }]);
  });
});
