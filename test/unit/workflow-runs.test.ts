import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { callbackInteractor, type Json, type JsonObject } from "@sluice/core";
import type { ScriptedTurn } from "@sluice/stages";
import { type LoadedWorkflow, loadWorkflow } from "@sluice/workflows";
import { expect, test } from "vitest";
import { dataOf, eventsOf, session, type TestSessionOptions } from "../support/run-kit.ts";
import { lastResults, type Talker, talker } from "../support/talker.ts";
import { tempFolder } from "../support/tools.ts";
import { loadDocument, loadTexts } from "../support/workflows.ts";

// Whole documents with a scripted model in a real session.

const fixtures = new URL("../fixtures/workflows/statewright/", import.meta.url);

const send = (event: string, data?: JsonObject): ScriptedTurn => ({
  calls: [{ tool: "transition", input: data === undefined ? { event } : { event, data } }],
});
const call = (tool: string, input: Json): ScriptedTurn => ({ calls: [{ tool, input }] });

/** What the model says, by state, in the order in which the state's turns come. */
function script(turns: Readonly<Record<string, readonly ScriptedTurn[]>>): Talker {
  const next = new Map<string, number>();
  return talker(({ stage }) => {
    const at = next.get(stage) ?? 0;
    next.set(stage, at + 1);
    return turns[stage]?.[at] ?? {};
  });
}

function pipelineOf({ pipeline, diagnostics }: LoadedWorkflow) {
  if (pipeline === undefined) throw new Error(JSON.stringify(diagnostics));
  return pipeline;
}

async function run(loaded: LoadedWorkflow, model: Talker, options: TestSessionOptions = {}) {
  const cwd = tempFolder().root;
  const live = session({ model, cwd, ...options });
  const result = await live.run(pipelineOf(loaded), { task: "Deploy it." });
  return { result, events: await eventsOf(live.host, result.runId) };
}

const fixture = async (name: string): Promise<LoadedWorkflow> => await loadWorkflow(new URL(name, fixtures).pathname);

test("the minimal example runs to its final state", async () => {
  const { result } = await run(await fixture("review.json"), script({ reading: [send("DONE", { note: "fine" })] }));
  expect(result).toMatchObject({ status: "completed", output: { event: "DONE", data: { note: "fine" } } });
});

const approver = (kind: "approve" | "deny") => callbackInteractor("person", () => ({ kind }));
const WALK = {
  planning: [send("GO", { test_result: "fail", rationale: "the tests fail" })],
  testing: [send("EVALUATE"), send("EVALUATE")],
  fixing: [send("DONE", { test_result: "pass" })],
  deploying: [send("DONE"), send("FAIL")],
};

test("the complete reference example runs through every kind of transition that it has", async () => {
  const model = script(WALK);
  const { result, events } = await run(await fixture("deploy-full.json"), model, {
    interactors: [approver("approve")],
  });
  expect(result).toMatchObject({ status: "completed" });
  const walked = result.stages.map(({ executionId }) => executionId);
  expect(walked).toEqual(["planning#1", "testing#1", "fixing#1", "testing#2", "deploying#1"]);
  const [first] = dataOf(events, "route.decided");
  expect(first).toMatchObject({ to: "testing", why: { by: "safe_next", event: "GO", rationale: "the tests fail" } });
  const phase = JSON.stringify(model.heard[1]?.messages[0]);
  for (const words of ["Phase: testing", "EVALUATE", "tests_failed", "test_result", "PROD_DB_URL", "15 tool calls"])
    expect(phase).toContain(words);
});

test("a transition that a person denies is rejected, and the agent stays and takes another way", async () => {
  const model = script(WALK);
  const { result } = await run(await fixture("deploy-full.json"), model, { interactors: [approver("deny")] });
  expect(result).toMatchObject({ status: "failed", error: { code: "failed" } });
  expect(JSON.stringify(model.heard.flatMap(lastResults))).toContain("transition_rejected");
});

test("guards see the context as it was before the data of the transition", async () => {
  const model = script({ testing: [send("DEPLOY", { test_result: "pass" }), send("FAIL")] });
  const { result } = await run(await fixture("deploy.json"), model);
  expect(result).toMatchObject({ status: "failed" });
  expect(JSON.stringify(model.heard[1]?.messages.at(-1))).toContain("test_result is null");
});

test("a change of a matching file detours to the handler, and $return continues the same execution", async () => {
  const loaded = await loadDocument({
    id: "w",
    initial: "working",
    states: {
      working: { allowed_tools: ["Read", "Edit"], on: { DONE: "done", FAIL: "failed" } },
      checking: { allowed_tools: [], on: { VALIDATED: "$return", FAIL: "failed" } },
      done: { type: "final" },
      failed: { type: "final" },
    },
    interrupts: { pb_check: { trigger: { file_pattern: "site/pb/**/*.js" }, target: "checking" } },
  });
  const cwd = tempFolder().root;
  mkdirSync(join(cwd, "site/pb"), { recursive: true });
  writeFileSync(join(cwd, "site/pb/a.js"), "old\n");
  const edit = { file_path: "site/pb/a.js", old_string: "old", new_string: "new" };
  const model = script({
    working: [call("Read", { file_path: "site/pb/a.js" }), call("Edit", edit), send("DONE")],
    checking: [send("VALIDATED")],
  });
  const { result } = await run(loaded, model, { cwd });
  expect(result).toMatchObject({ status: "completed" });
  expect(model.heard.map(({ stage }) => stage)).toEqual(["working", "working", "checking", "working"]);
  expect(readFileSync(join(cwd, "site/pb/a.js"), "utf8")).toBe("new\n");
});

test("branches of a fork run by themselves, and the join goes where the document says", async () => {
  const branch = (terminal: string) => ({ allowed_tools: [], on: { OK: terminal, BAD: "failed" } });
  const document = (join: string) => ({
    id: "w",
    initial: "building",
    states: {
      building: {
        allowed_tools: [],
        on: {
          BUILT: {
            fork: {
              branches: {
                lint: { initial: "lint_run", terminal: "lint_done" },
                types: { initial: "types_run", terminal: "types_done" },
              },
              join,
              on_complete: "done",
              on_fail: "failed",
            },
          },
        },
      },
      lint_run: branch("lint_done"),
      types_run: branch("types_done"),
      lint_done: { type: "final" },
      types_done: { type: "final" },
      done: { type: "final" },
      failed: { type: "final" },
    },
  });
  const end = async (join: string, types: string) =>
    (
      await run(
        await loadDocument(document(join)),
        script({ building: [send("BUILT")], lint_run: [send("OK")], types_run: [send(types)] }),
      )
    ).result.status;
  expect(await end("all", "OK")).toBe("completed");
  expect(await end("all", "BAD")).toBe("failed");
  expect(await end("any", "BAD")).toBe("completed");
});

test("an invoked workflow runs with its input in its context, and its outcome decides", async () => {
  const child = (end: string) => ({
    id: "suite",
    initial: "testing",
    context: { suite: "unit", retries: 1 },
    states: {
      testing: { allowed_tools: [], on: { OVER: end, NEVER: "done", NOR: "rejected" } },
      rejected: { type: "final", outcome: "failed" },
      done: { type: "final" },
    },
  });
  const parent = {
    id: "w",
    initial: "start",
    states: {
      start: {
        allowed_tools: [],
        on: { RUN: { invoke: "test-suite", on_complete: "after", on_fail: "failed", input: { suite: "integration" } } },
      },
      after: { allowed_tools: [], instructions: "The tests say {{ctx.upstream.RUN}}.", on: { DONE: "done" } },
      done: { type: "final" },
      failed: { type: "final" },
    },
  };
  const play = async (end: string) => {
    const texts = { "w.json": JSON.stringify(parent), "suite.json": JSON.stringify(child(end)) };
    const loaded = await loadTexts("w.json", texts, { find: async () => "suite.json" });
    const model = script({ start: [send("RUN")], testing: [send("OVER", { count: 12 })], after: [send("DONE")] });
    return { ...(await run(loaded, model)), model };
  };
  const good = await play("done");
  expect(good.result).toMatchObject({ status: "completed" });
  const systemOf = (state: string): string =>
    JSON.stringify(good.model.heard.find(({ stage }) => stage === state)?.messages[0]);
  expect(systemOf("testing")).toContain("integration");
  expect(systemOf("testing")).toContain("retries");
  expect(systemOf("after")).toContain("count");
  expect((await play("rejected")).result).toMatchObject({ status: "failed" });
});

test("tools, commands and limits of a state hold", async () => {
  const loaded = await loadDocument({
    id: "w",
    initial: "working",
    states: {
      working: {
        allowed_tools: ["Bash", "Write"],
        allowed_commands: ["node"],
        max_iterations: 2,
        blocked_env: ["OTHER"],
        env_overrides: { GREETING: "hello" },
        on: { DONE: "done" },
      },
      done: { type: "final" },
    },
  });
  const cwd = tempFolder().root;
  const model = script({
    working: [
      call("Bash", { command: "rm -rf ." }),
      call("Bash", { command: 'node -p "process.env.GREETING + process.env.OTHER"' }),
      call("Write", { file_path: "b.txt", content: "1\n" }),
      call("Write", { file_path: "c.txt", content: "1\n" }),
      send("DONE"),
    ],
  });
  const { result } = await run(loaded, model, { cwd, env: { OTHER: "secret", PATH: process.env.PATH } });
  expect(result).toMatchObject({ status: "completed" });
  expect(["b.txt", "c.txt"].map((name) => existsSync(join(cwd, name)))).toEqual([true, false]);
  const results = model.heard.map((heard) => JSON.stringify(lastResults(heard)));
  expect(results[1]).toContain("tool_call_denied");
  expect(results[2]).toContain("helloundefined");
  expect(model.heard.at(-1)?.tools).toEqual(["transition"]);
});
