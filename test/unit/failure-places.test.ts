import { resolve } from "node:path";
import { done, pipeline } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { caller, completed, dataOf, eventsOf, session, tool, type WorkOptions, work } from "../support/run-kit.ts";

const HERE = /^test\/unit\/failure-places\.test\.ts:\d+:\d+$/;
const at = expect.stringMatching(HERE);
const input = z.object({ task: z.string() });
const cwd = resolve(import.meta.dirname, "../..");

function broken(): never {
  throw new TypeError("no list");
}

/** A run of one state, whose journal is read as well. */
async function ranWith(options: WorkOptions, next: () => ReturnType<typeof done> = () => done(null)) {
  const made = session({ cwd, tools: [tool("Count", { execute: () => broken() })] });
  const one = pipeline({ id: "p", input, stages: { one: work(options) }, initial: "one", next: { one: next } });
  const result = await made.run(one, { task: "x" });
  return { result, events: await eventsOf(made.host, result.runId) };
}

describe("the journal has the file, line and column of code that threw, relative to the workspace:", () => {
  test.each(["setup", "precondition", "assert", "exit"] as const)("%s", async (hook) => {
    const { result, events } = await ranWith({ [hook]: async () => broken() });
    expect(result).toMatchObject({ status: "failed", error: { code: "hook", at }, stages: [{ detail: { at } }] });
    expect(dataOf(events, "run.finished")).toMatchObject([{ error: { at } }]);
  });

  test("init, which renders a prompt", async () => {
    const { result } = await ranWith({ init: () => broken() });
    expect(result).toMatchObject({ status: "failed", error: { code: "hook", at } });
  });

  test("a route", async () => {
    const { result, events } = await ranWith({}, () => broken());
    expect(result).toMatchObject({ status: "failed", error: { at } });
    expect(dataOf(events, "route.decided")).toMatchObject([{ why: { at } }]);
  });

  test("the condition of a row, without which no row is left", async () => {
    const made = session({ cwd });
    const table = pipeline({
      id: "p",
      input,
      stages: { one: work() },
      initial: "one",
      transitions: [
        { from: "one", on: "success", when: () => broken(), to: done(null) },
        { from: "one", on: "success", when: (_result, { visit }) => visit > 1, to: done(null) },
      ],
    });
    const result = await made.run(table, { task: "x" });
    expect(result).toMatchObject({ status: "failed", error: { at } });
  });

  test("a tool, and the model that called it reads only the message", async () => {
    let output: unknown;
    const { events } = await ranWith({
      allowedTools: ["Count"],
      act: async (scope) => {
        output = await caller(scope)("Count");
        return completed(null);
      },
    });
    expect(dataOf(events, "call.finished")).toMatchObject([{ outcome: "error", at }]);
    expect(output).toEqual({ code: "tool_failed", message: "the tool failed: no list" });
  });
});

test("what is thrown without being an error has no place", async () => {
  const { result } = await ranWith({
    setup: () => {
      const notAnError: unknown = "no list";
      throw notAnError;
    },
  });
  expect(result).toMatchObject({ status: "failed", error: { message: expect.stringContaining("no list") } });
  expect(JSON.stringify(result)).not.toContain('"at"');
});
