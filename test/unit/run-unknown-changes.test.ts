import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { backToInterrupted, defineTool, done, type Json, pipeline, systemClock, type ToolResult } from "@sluice/core";
import { describe, expect, onTestFinished, test } from "vitest";
import { reportingChanges } from "../../packages/stages/src/tools/bash/workspace-diff.ts";
import { handClock } from "../support/hand-clock.ts";
import {
  caller,
  cancelled,
  completed,
  dataOf,
  eventsOf,
  eventually,
  json,
  noModel,
  quiet,
  session,
  work,
} from "../support/run-kit.ts";

function workspace(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "sluice-unknown-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "src"));
  writeFileSync(join(folder, "src", "old.ts"), "old\n");
  return folder;
}

/** One execution whose call may change files of two interrupts; their handlers return. */
function watching(handled: Json[], act?: (scope: Parameters<typeof caller>[0]) => Promise<Json>) {
  const handler = work<Json, unknown>({
    act: ({ ctx }) => {
      handled.push(json(ctx.input));
      return completed(null);
    },
  });
  return pipeline({
    id: "watching",
    input: { type: "object" },
    interrupts: { SOURCES: { files: "src/**", target: "sources" }, LOCKS: { files: "*.lock", target: "locks" } },
    stages: {
      work: work<Json, unknown>({
        act: async (scope) => {
          const output = scope.ctx.visit === 1 ? await (act ?? ((one) => caller(one)("Change")))(scope) : "again";
          return scope.signal.aborted ? cancelled("stopped") : completed(output);
        },
      }),
      sources: handler,
      locks: handler,
    },
    initial: "work",
    transitions: [
      { from: "work", on: "success", to: done("worked") },
      { from: "sources", on: "success", to: backToInterrupted() },
      { from: "locks", on: "success", to: backToInterrupted() },
    ],
  });
}
function changing(result: Partial<ToolResult>, effect: "read" | "write" = "write") {
  return defineTool<Json>({
    name: "Change",
    description: "Change.",
    input: { type: "object" },
    effect,
    subjects: () => [],
    execute: async () => ({ ok: true, output: "changed", ...result }),
  });
}
async function startedBy(result: Partial<ToolResult>, effect?: "read" | "write") {
  const handled: Json[] = [];
  const live = session({ model: noModel, mode: "yolo", tools: [changing(result, effect)] });
  const run = live.start(watching(handled), {});
  expect(await run).toMatchObject({ status: "completed" });
  const started = dataOf(await eventsOf(live.host, run.runId), "interrupt.started");
  return { handled, started: started.map(({ interrupt, files }) => [interrupt, files]) };
}

describe("a call that may have changed files that it does not name", () => {
  test("starts every interrupt, with the files that are known", async () => {
    const { handled, started } = await startedBy({ changed: ["src/a.ts"], changesUnknown: true });
    expect(started).toEqual([
      ["SOURCES", ["src/a.ts"]],
      ["LOCKS", []],
    ]);
    expect(handled).toEqual([
      { interrupt: "SOURCES", files: ["src/a.ts"] },
      { interrupt: "LOCKS", files: [] },
    ]);
  });

  test("starts every interrupt also if it failed", async () => {
    expect((await startedBy({ ok: false, changed: [], changesUnknown: true })).started).toHaveLength(2);
  });

  test("starts none if it knows what it changed, or only reads", async () => {
    expect((await startedBy({ changed: ["other.txt"] })).started).toEqual([]);
    expect((await startedBy({ ok: false })).started).toEqual([]);
    expect((await startedBy({ changesUnknown: true }, "read")).started).toEqual([]);
  });

  test("starts every interrupt if it ignores its abort signal, in the visit after the interruption by a person", async () => {
    const handled: Json[] = [];
    let isRunning = false;
    let release = (): void => undefined;
    const stuck = defineTool<Json>({
      name: "Change",
      description: "Change.",
      input: { type: "object" },
      effect: "write",
      subjects: () => [],
      execute: async () => {
        isRunning = true;
        return await new Promise<ToolResult>((resolve) => {
          release = () => resolve({ ok: true, output: "late" });
        });
      },
    });
    const clock = handClock();
    const live = session({ model: noModel, mode: "yolo", tools: [stuck], clock });
    const piped = watching(handled);
    const run = live.start(piped, {});
    await eventually(() => isRunning);
    const over = run.interrupt("stop");
    await eventually(async () => {
      clock.turn(100);
      return await Promise.race([over.then(() => true), quiet().then(() => false)]);
    });
    expect(handled).toEqual([]);
    release();
    await quiet();
    expect(await live.resume(piped, run.runId)).toMatchObject({ status: "completed" });
    expect(handled).toEqual([
      { interrupt: "SOURCES", files: [] },
      { interrupt: "LOCKS", files: [] },
    ]);
    const order = (await eventsOf(live.host, run.runId)).flatMap(({ type, executionId = "" }) =>
      type === "attempt.started" ? executionId : [],
    );
    expect(order).toEqual(["work#1", "work#2", "sources#1", "locks#1"]);
  });
});

describe("a call that compares the workspace", () => {
  const act = async (): Promise<ToolResult> => ({ ok: true, output: "done" });
  const watched = { matches: () => true, mayHold: () => true };

  test("knows what it changed", async () => {
    const root = workspace();
    const signal = new AbortController().signal;
    const result = await reportingChanges({ workspace: { root }, watched, signal }, systemClock, async () => {
      writeFileSync(join(root, "src", "new.ts"), "new");
      return await act();
    });
    expect(result).toEqual({ ok: true, output: "done", changed: ["src/new.ts"] });
  });

  test("reports unknown changes once it was aborted", async () => {
    const root = workspace();
    const controller = new AbortController();
    const { signal } = controller;
    const result = await reportingChanges({ workspace: { root }, watched, signal }, systemClock, async () => {
      writeFileSync(join(root, "src", "new.ts"), "new");
      controller.abort(new Error("killed"));
      return await act();
    });
    expect(result).toEqual({ ok: true, output: "done", changed: [], changesUnknown: true });
  });

  test("reports unknown changes beside the known ones where it cannot read all folders", async () => {
    const root = workspace();
    const signal = new AbortController().signal;
    // Deeper than the longest path that the system takes.
    const line = `n=${"d".repeat(200)}; for i in $(seq 25); do mkdir "$n" && cd "$n" || exit 1; done`;
    execFileSync("bash", ["-c", line], { cwd: root });
    onTestFinished(() => void execFileSync("rm", ["-rf", root]));
    const result = await reportingChanges({ workspace: { root }, watched, signal }, systemClock, act);
    expect(result).toMatchObject({ changed: [], changesUnknown: true });
  });
});
