import {
  defineTool,
  done,
  fanOut,
  type Json,
  pipeline,
  stage,
  type Tool,
  type ToolCall,
  type ToolResult,
  to,
} from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { router, script } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { ask, gatewayRun, leave, pipelineOf } from "../../support/gateway.ts";
import { tempFolder } from "../../support/tools.ts";

const task = z.object({ task: z.string() });
const note = z.object({ note: z.string() });

describe("a phase with a completion tool of its own", () => {
  const states = {
    plan: stage({
      prompt: "Plan it.",
      allowedTools: ["Read"],
      completionTool: "submit_plan",
      completionSchema: note,
      turnCap: 9,
    }),
    build: stage({
      prompt: "Build it.",
      allowedTools: ["Write"],
      completionTool: "submit_build",
      completionSchema: note,
      turnCap: 9,
    }),
  };
  const two = pipeline({
    id: "two",
    input: task,
    stages: states,
    initial: "plan",
    next: { plan: () => to("build"), build: ({ output }) => done(output) },
  });

  test("is completed by a transition with the tool's name and its arguments as data", async () => {
    const run = gatewayRun({ pipeline: two, root: tempFolder().root });
    const state = await ask(run, "get_state");
    expect(state.text).toContain('{"event": "submit_plan", "data": <its arguments>}');
    const wrong = await leave(run, "READY", {});
    expect(wrong.text).toContain("submit_plan");
    const invalid = await leave(run, "submit_plan", { text: 1 });
    expect(invalid).toMatchObject({ ok: false, output: { code: "completion_schema_invalid" } });
    expect((await leave(run, "submit_plan", { note: "a" })).text).toContain("Build it.");
    expect((await ask(run, "submit_build", { note: "b" })).ok).toBe(false);
    await leave(run, "submit_build", { note: "b" });
    expect(await run.ended).toMatchObject({ status: "completed", output: { note: "b" } });
  });
});

describe("the limits of a phase", () => {
  const limited = {
    id: "limited",
    initial: "look",
    states: {
      look: {
        instructions: "Look.",
        allowed_tools: ["Read", "Write"],
        max_iterations: 3,
        max_files_per_state: 1,
        max_edit_lines: 2,
        on: { READY: "done" },
      },
      done: { type: "final" },
    },
  };

  test("deny a call beyond them with the reason", async () => {
    const folder = tempFolder();
    const run = gatewayRun({ pipeline: await pipelineOf(limited), root: folder.root });
    expect(await ask(run, "Write", { file_path: "a.txt", content: "1\n2\n3\n" })).toMatchObject({
      ok: false,
      output: { cause: "limit" },
    });
    expect((await ask(run, "Write", { file_path: "a.txt", content: "1\n" })).ok).toBe(true);
  });

  test("turns run out: the last one says so, and then the phase fails", async () => {
    const folder = tempFolder();
    folder.put("a.txt", "one\n");
    const run = gatewayRun({ pipeline: await pipelineOf(limited), root: folder.root });
    await ask(run, "Read", { file_path: "a.txt" });
    await ask(run, "Read", { file_path: "a.txt", offset: 1 });
    const third = await ask(run, "Read", { file_path: "a.txt", limit: 1 });
    expect(third.text).toContain("one");
    expect(third.text).toContain("Only transition is available now, for 3 turns");
    for (const limit of [2, 3]) await ask(run, "Read", { file_path: "a.txt", limit });
    const last = await ask(run, "Read", { file_path: "a.txt", limit: 4 });
    expect(last.text).toContain("is over: failed");
    expect(await run.ended).toMatchObject({ status: "failed" });
  });
});

test("an interrupt takes the agent to its handler, and back where it was", async () => {
  const folder = tempFolder();
  const document = {
    id: "guarded",
    initial: "build",
    interrupts: { schema: { trigger: { file_pattern: "db/**" }, target: "review" } },
    states: {
      build: { instructions: "Build.", allowed_tools: ["Write"], on: { BUILT: "done" } },
      review: { instructions: "Review the schema.", allowed_tools: ["Read"], on: { OK: "$return" } },
      done: { type: "final" },
    },
  };
  const run = gatewayRun({ pipeline: await pipelineOf(document), root: folder.root });
  const changed = await ask(run, "Write", { file_path: "db/a.sql", content: "select 1;\n" });
  expect(changed.ok).toBe(true);
  expect(changed.text).toContain("Review the schema.");
  expect((await ask(run, "Write", { file_path: "b.txt", content: "b" })).ok).toBe(false);
  const back = await leave(run, "OK");
  expect(back.text).toContain("You are back in build");
  expect(run.now()).toMatchObject({ state: "build", tools: ["Write"] });
  expect((await ask(run, "Write", { file_path: "b.txt", content: "b" })).ok).toBe(true);
  await leave(run, "BUILT");
  expect(await run.ended).toMatchObject({ status: "completed" });
});

test("the agent works on the states of a fan-out one after the other", async () => {
  const states = {
    a: stage({
      prompt: "Review the style.",
      allowedTools: [],
      completionTool: "report",
      completionSchema: note,
      turnCap: 9,
    }),
    b: stage({
      prompt: "Review the tests.",
      allowedTools: [],
      completionTool: "report",
      completionSchema: note,
      turnCap: 9,
    }),
    join: stage({ prompt: "Join.", allowedTools: [], completionTool: "report", completionSchema: note, turnCap: 9 }),
    start: stage({ prompt: "Start.", allowedTools: [], completionTool: "report", completionSchema: note, turnCap: 9 }),
  };
  const wide = pipeline({
    id: "wide",
    input: task,
    stages: states,
    initial: "start",
    next: {
      start: () => fanOut(["a", "b"], { join: "join" }),
      join: (_result, { upstream }) => done({ a: upstream.a, b: upstream.b }),
    },
  });
  const run = gatewayRun({ pipeline: wide, root: tempFolder().root });
  await ask(run, "get_state");
  const first = await leave(run, "report", { note: "go" });
  expect(first.text).toContain("Review the style.");
  const second = await leave(run, "report", { note: "style" });
  expect(second.text).toContain("Review the tests.");
  expect((await leave(run, "report", { note: "tests" })).text).toContain("Join.");
  await leave(run, "report", { note: "joined" });
  expect(await run.ended).toMatchObject({ output: { a: { note: "style" }, b: { note: "tests" } } });
});

test("a router lets the agent choose, and scripts run without it", async () => {
  const folder = tempFolder();
  const states = {
    count: script({ command: ["sh", "-c", "echo '{\"n\":3}'"] }),
    choose: router({ targets: ["work", "stop"], prompt: "Choose what follows." }),
    work: stage({ prompt: "Work.", allowedTools: [], completionTool: "finish", completionSchema: note, turnCap: 9 }),
    stop: script({ command: ["true"] }),
  };
  const routed = pipeline({
    id: "routed",
    input: task,
    stages: states,
    initial: "count",
    next: { count: () => to("choose"), work: ({ output }) => done(output), stop: () => done({}) },
  });
  const run = gatewayRun({ pipeline: routed, root: folder.root });
  expect((await ask(run, "get_state")).text).toContain("Choose what follows.");
  const chosen = await leave(run, "choose", { choice: { to: "work", input: {}, reason: "there is work" } });
  expect(chosen.text).toContain("Work.");
  await leave(run, "finish", { note: "ok" });
  expect(await run.ended).toMatchObject({ status: "completed", output: { note: "ok" } });
});

test("the agent directs an orchestrated run, and works on the states that it selects", async () => {
  const states = {
    plan: stage({ prompt: "Plan it.", allowedTools: [], completionTool: "finish", completionSchema: note, turnCap: 9 }),
    build: stage({
      prompt: "Build it.",
      allowedTools: [],
      completionTool: "finish",
      completionSchema: note,
      turnCap: 9,
    }),
  };
  const directed = pipeline({
    id: "directed",
    input: task,
    stages: states,
    orchestrator: { instructions: "Direct it." },
  });
  const run = gatewayRun({ pipeline: directed, root: tempFolder().root });
  expect((await ask(run, "get_state")).text).toContain("Direct it.");
  const refused = await leave(run, "select_state", { state: "nowhere", input: {} });
  expect(refused.ok).toBe(false);
  expect((await leave(run, "select_state", { state: "build", input: {}, reason: "small" })).text).toContain(
    "Build it.",
  );
  const back = await leave(run, "finish", { note: "built" });
  expect(back.text).toContain("built");
  expect(run.now().state).toBe("orchestrator");
  const again = await leave(run, "select_state", { state: "plan", input: {}, reason: "more" });
  expect(again).toMatchObject({ ok: true, output: { to: "plan" } });
  await leave(run, "finish", { note: "planned" });
  await leave(run, "select_state", { state: "completed", input: { note: "all" }, reason: "done" });
  expect(await run.ended).toMatchObject({ status: "completed", output: { note: "all" } });
});

test("calls that arrive together run together if they only read, and what follows a transition belongs to the next phase", async () => {
  const folder = tempFolder();
  folder.put("a.txt", "one\n");
  folder.put("b.txt", "two\n");
  const memory = createMemoryJournals();
  const host = createHost(memory.connect());
  const document = {
    id: "w",
    initial: "plan",
    states: {
      plan: { allowed_tools: ["Read"], on: { READY: "build" } },
      build: { allowed_tools: ["Write"], on: { BUILT: "done" } },
      done: { type: "final" },
    },
  };
  const run = gatewayRun({ pipeline: await pipelineOf(document), root: folder.root, host });
  await ask(run, "get_state");
  const calls = [
    run.call({ tool: "Read", input: { file_path: "a.txt" } }),
    run.call({ tool: "Read", input: { file_path: "b.txt" } }),
    run.call({ tool: "transition", input: { event: "READY", data: { rationale: "read" } } }),
    run.call({ tool: "Write", input: { file_path: "c.txt", content: "three" } }),
  ];
  const [a, b, moved, written] = await Promise.all(calls.map(({ answer }) => answer));
  expect(a?.text).toContain("one");
  expect(b?.text).toContain("two");
  expect(moved?.ok).toBe(true);
  expect(written?.ok).toBe(true);
  const executions = [];
  for await (const event of host.events(run.runId ?? "", { children: true }))
    if (event.type === "call.finished") executions.push(`${event.executionId} ${String(event.data.tool)}`);
  expect(executions).toEqual(["plan#1 Read", "plan#1 Read", "build#1 Write"]);
});

describe("native calls, which the agent's own program runs", () => {
  const document = {
    id: "native",
    initial: "build",
    meta: {},
    states: { build: { allowed_tools: ["Write"], on: { BUILT: "done" } }, done: { type: "final" } },
  };
  const native = (handOver: (call: ToolCall, input: Json) => Promise<ToolResult>): readonly Tool[] => [
    defineTool({
      name: "Write",
      description: "Writes.",
      input: z.object({ file_path: z.string(), content: z.string() }),
      effect: "write",
      subjects: ({ file_path }, { root }) => [{ kind: "path", real: `${root}/${file_path}`, access: "write" }],
      execute: (input, call) => handOver(call, input),
    }),
  ];
  const WRITE = { tool: "Write", input: { file_path: "a.txt", content: "a" }, native: true } as const;

  test("are allowed or denied, and recorded as the program reports them", async () => {
    const host = createHost(createMemoryJournals().connect());
    const run = gatewayRun({ pipeline: await pipelineOf(document), root: tempFolder().root, host, native });
    const allowed = run.call(WRITE);
    expect(await allowed.verdict).toEqual({ kind: "allow", input: WRITE.input });
    allowed.report({ ok: true, output: "written" });
    expect(await allowed.answer).toMatchObject({ ok: true, output: "written" });
    const denied = run.call({ ...WRITE, tool: "Edit" });
    expect(await denied.verdict).toMatchObject({ kind: "deny" });
    expect((await run.tools()).map(({ name }) => name)).toEqual(["get_state", "transition"]);
  });

  test.each([
    ["refused", {}, "deny"],
    ["free, if the workflow says so", { on_final: "release" }, "allow"],
  ] as const)("after the end of the run they are %s", async (_how, meta, verdict) => {
    const run = gatewayRun({ pipeline: await pipelineOf({ ...document, meta }), root: tempFolder().root, native });
    await leave(run, "BUILT");
    await run.ended;
    expect(await run.call(WRITE).verdict).toMatchObject({ kind: verdict });
  });
});
