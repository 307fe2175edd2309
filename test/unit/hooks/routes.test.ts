import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { field, type Json, type JsonObject, parseJson } from "@sluice/core";
import { expect, test } from "vitest";
import { PLAN_FIRST } from "../../support/gateway.ts";
import { handClock } from "../../support/hand-clock.ts";
import { hookServer, nativeRun, send } from "../../support/hooks.ts";
import { tempFolder } from "../../support/tools.ts";

/** Claude Code's payloads in a folder. */
function claudeIn(root: string, session = "s1") {
  const base = { session_id: session, transcript_path: "/t.jsonl", cwd: root, permission_mode: "default" };
  let calls = 0;
  const toolId = (): string => {
    calls += 1;
    return `toolu_${calls}`;
  };
  return {
    pre: (tool: string, input: JsonObject, more: JsonObject = {}): JsonObject => ({
      ...base,
      hook_event_name: "PreToolUse",
      tool_name: tool,
      tool_input: input,
      tool_use_id: toolId(),
      ...more,
    }),
    post: (pre: JsonObject, response: Json): JsonObject => ({
      ...pre,
      hook_event_name: "PostToolUse",
      tool_response: response,
    }),
    permission: (pre: JsonObject): JsonObject => {
      const { tool_use_id: _id, ...rest } = pre;
      return { ...rest, hook_event_name: "PermissionRequest" };
    },
    event: (name: string, more: JsonObject = {}): JsonObject => ({ ...base, hook_event_name: name, ...more }),
  };
}

const decisionOf = (answer: Json): Json | undefined =>
  field(field(answer, "hookSpecificOutput") ?? null, "permissionDecision");
const reasonOf = (answer: Json): string =>
  String(field(field(answer, "hookSpecificOutput") ?? null, "permissionDecisionReason"));
const behaviorOf = (answer: Json): Json | undefined =>
  field(field(field(answer, "hookSpecificOutput") ?? null, "decision") ?? null, "behavior");

async function planFirst(document: unknown = PLAN_FIRST) {
  const folder = tempFolder();
  mkdirSync(join(folder.root, "src"));
  writeFileSync(join(folder.root, "src/a.ts"), "one\n");
  const clock = handClock();
  const run = await nativeRun(document, { root: folder.root, clock });
  const server = await hookServer(run, ["claude"], { clock });
  const claude = claudeIn(folder.root);
  const ask = (payload: Json): Promise<JsonObject> => send(server, "claude", payload);
  return { folder, clock, run, server, claude, ask };
}

const leave = (run: Awaited<ReturnType<typeof nativeRun>>, event: string) =>
  run.call({ tool: "transition", input: { event, data: { rationale: "done" } } }).answer;

test("a call inside the phase is allowed, its result becomes the run's, and the next call follows", async () => {
  const { folder, run, claude, ask } = await planFirst();
  await ask(claude.event("UserPromptSubmit", { prompt: "Fix it." }));
  const read = claude.pre("Read", { file_path: join(folder.root, "src/a.ts") });
  expect(await ask(read)).toEqual({
    hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "allow" },
  });
  expect(await ask(claude.post(read, "one"))).toEqual({});
  expect(decisionOf(await ask(claude.pre("Glob", { pattern: "**/*.ts" })))).toBe("allow");
  expect(run.now().state).toBe("plan");
});

test("an edit outside the phase is denied with the gate's reason", async () => {
  const { folder, claude, ask } = await planFirst();
  const edit = claude.pre("Edit", { file_path: join(folder.root, "src/a.ts"), old_string: "one", new_string: "two" });
  const answer = await ask(edit);
  expect(decisionOf(answer)).toBe("deny");
  expect(reasonOf(answer)).toContain("Edit");
  expect(reasonOf(answer)).toContain("allowedTools");
});

test("a prompt and the start of a session tell the agent its phase; the first prompt is the run's task", async () => {
  const { run, claude, ask } = await planFirst();
  const start = await ask(claude.event("SessionStart", { source: "startup" }));
  expect(field(field(start, "hookSpecificOutput") ?? null, "additionalContext")).toContain("has not started");
  const prompt = await ask(claude.event("UserPromptSubmit", { prompt: "Rename one to two." }));
  const context = String(field(field(prompt, "hookSpecificOutput") ?? null, "additionalContext"));
  expect(context).toContain("plan");
  expect(context).toContain("Rename one to two.");
  expect(run.now().state).toBe("plan");
});

test("a permission is given only for a call that was approved, and once", async () => {
  const { folder, claude, ask } = await planFirst();
  const read = claude.pre("Read", { file_path: join(folder.root, "src/a.ts") });
  expect(behaviorOf(await ask(claude.permission(read)))).toBe("deny");
  expect(decisionOf(await ask(read))).toBe("allow");
  const other = claude.pre("Read", { file_path: join(folder.root, "README.md") });
  expect(behaviorOf(await ask(claude.permission(other)))).toBe("deny");
  expect(behaviorOf(await ask(claude.permission(read)))).toBe("allow");
  expect(behaviorOf(await ask(claude.permission(read)))).toBe("deny");
});

test("a permission of another session is refused", async () => {
  const { folder, claude, ask } = await planFirst();
  const read = claude.pre("Read", { file_path: join(folder.root, "src/a.ts") });
  expect(decisionOf(await ask(read))).toBe("allow");
  const stranger = claudeIn(folder.root, "s2");
  expect(behaviorOf(await ask({ ...stranger.permission(read), session_id: "s2" }))).toBe("deny");
  const answer = await ask(stranger.pre("Read", { file_path: join(folder.root, "src/a.ts") }));
  expect(reasonOf(answer)).toContain("Another agent works on this run");
});

test("a command runs as the line that was judged", async () => {
  const { run, claude, ask } = await planFirst();
  await ask(claude.event("UserPromptSubmit", { prompt: "Fix it." }));
  await leave(run, "READY");
  await leave(run, "BUILT");
  const cat = claude.pre("Bash", { command: "cat src/*.ts", description: "look" });
  const answer = field(await ask(cat), "hookSpecificOutput") ?? null;
  expect(answer).toEqual({
    hookEventName: "PreToolUse",
    permissionDecision: "allow",
    updatedInput: { command: expect.stringMatching(/^'[^']*cat' 'src\/a\.ts'$/), description: "look" },
  });
  expect(behaviorOf(await ask(claude.permission({ ...cat, tool_input: { command: "cat src/*.ts" } })))).toBe("deny");
  const approved = { ...cat, tool_input: field(answer, "updatedInput") ?? null };
  expect(behaviorOf(await ask(claude.permission(approved)))).toBe("allow");
  await ask(claude.post(cat, { stdout: "one\n" }));
  expect(decisionOf(await ask(claude.pre("Bash", { command: "rm src/a.ts" })))).toBe("deny");
});

test("a command is judged in the folder of the agent's shell, and runs there", async () => {
  const { folder, run, claude, ask } = await planFirst();
  await ask(claude.event("UserPromptSubmit", { prompt: "Fix it." }));
  await leave(run, "READY");
  await leave(run, "BUILT");
  const cat = claude.pre("Bash", { command: "cat a.ts" }, { cwd: join(folder.root, "src") });
  const input = field(field(await ask(cat), "hookSpecificOutput") ?? null, "updatedInput") ?? null;
  expect(field(input, "command")).toMatch(/^\{ cd -- '.*\/src' \|\| exit 1; \} && '.*cat' 'a\.ts'$/);
  await ask(claude.post(cat, "one"));
  const outside = claude.pre("Bash", { command: "cat passwd" }, { cwd: "/etc" });
  expect(decisionOf(await ask(outside))).toBe("deny");
});

test("a call whose report is missing is settled when the agent makes its next call", async () => {
  const { folder, run, clock, claude, ask } = await planFirst();
  const path = join(folder.root, "src/a.ts");
  expect(decisionOf(await ask(claude.pre("Read", { file_path: path })))).toBe("allow");
  const next = ask(claude.pre("Read", { file_path: path, offset: 1 }));
  while (clock.waiting() === 0) await new Promise(setImmediate);
  clock.turn(5_000);
  expect(decisionOf(await next)).toBe("allow");
  expect(run.now().state).toBe("plan");
});

test("the end of a turn is refused while the workflow is not at its end, as often as the host takes it", async () => {
  const { folder, run, claude, ask } = await planFirst();
  await ask(claude.event("UserPromptSubmit", { prompt: "Fix it." }));
  const stop = claude.event("Stop", { stop_hook_active: false });
  let reason = "";
  for (let time = 1; time <= 8; time += 1) {
    const answer = await ask(stop);
    expect(answer.decision).toBe("block");
    expect(answer.reason).toContain("READY");
    reason = String(answer.reason);
    const read = claude.pre("Read", { file_path: join(folder.root, "src/a.ts"), offset: time });
    expect(decisionOf(await ask(read))).toBe("allow");
    await ask(claude.post(read, "one"));
    // Some hosts give the reason to their agent as a prompt.
    expect(await ask(claude.event("UserPromptSubmit", { prompt: reason }))).toEqual({});
  }
  expect(await ask(stop)).toEqual({});
  await leave(run, "READY");
  expect((await ask(stop)).decision).toBe("block");
});

test("the end of a turn is accepted once the workflow is at its end", async () => {
  const { run, claude, ask } = await planFirst();
  await ask(claude.event("UserPromptSubmit", { prompt: "Fix it." }));
  await leave(run, "READY");
  await leave(run, "BUILT");
  await leave(run, "GOOD");
  expect(await ask(claude.event("Stop"))).toEqual({});
  expect(reasonOf(await ask(claude.pre("Read", { file_path: "/x" })))).toContain("is over");
});

test("a question of an MCP server is never answered, and a change of the configuration is refused", async () => {
  const { claude, ask } = await planFirst();
  expect(await ask(claude.event("Elicitation", { message: "Grant?" }))).toEqual({});
  expect((await ask(claude.event("ConfigChange", { source: "project_settings" }))).decision).toBe("block");
});

test("what cannot be read is refused in the host's own form", async () => {
  const { server, claude, ask } = await planFirst();
  expect(decisionOf(await ask([1]))).toBe("deny");
  expect(decisionOf(await ask({ ...claude.pre("Read", {}), session_id: null }))).toBe("deny");
  const raw = async (event: string, body: string | Uint8Array<ArrayBuffer>): Promise<Json> => {
    const response = await fetch(`${server.url}/hook/claude?event=${event}`, { method: "POST", body });
    expect(response.status).toBe(200);
    const answer = parseJson(await response.text());
    if (!answer.ok) throw new Error(answer.fault);
    return answer.value;
  };
  for (const body of ["", "{", "\u0000", new Uint8Array([0xff, 0xfe]), "[".repeat(50_000)]) {
    expect(decisionOf(await raw("PreToolUse", body))).toBe("deny");
    expect(behaviorOf(await raw("PermissionRequest", body))).toBe("deny");
  }
});

test("a call that cannot be judged is denied and recorded", async () => {
  const { run, claude, ask } = await planFirst();
  const answer = await ask(claude.pre("Bash", { command: "ls", dangerouslyDisableSandbox: true }));
  expect(reasonOf(answer)).toContain("dangerouslyDisableSandbox");
  expect(reasonOf(await ask(claude.pre("CronCreate", { cron: "* * * * *" })))).toContain("CronCreate");
  expect(run.now().state).toBe("plan");
});

test("an agent started by the agent does not hold up the run", async () => {
  const document = {
    ...PLAN_FIRST,
    states: { ...PLAN_FIRST.states, plan: { ...PLAN_FIRST.states.plan, allowed_tools: ["Read", "Agent"] } },
  };
  const { folder, claude, ask } = await planFirst(document);
  const agent = claude.pre("Agent", { description: "d", prompt: "look", subagent_type: "general" });
  expect(decisionOf(await ask(agent))).toBe("allow");
  expect(behaviorOf(await ask(claude.permission(agent)))).toBe("allow");
  expect(behaviorOf(await ask(claude.permission(agent)))).toBe("deny");
  const inner = claude.pre("Read", { file_path: join(folder.root, "src/a.ts") }, { agent_id: "a1" });
  expect(decisionOf(await ask(inner))).toBe("allow");
  expect(await ask(claude.post(inner, "one"))).toEqual({});
  expect(await ask(claude.post(agent, "done"))).toEqual({});
});

test("Qwen Code gets no rewritten line, so a line that needs one is refused with what to write", async () => {
  const folder = tempFolder();
  writeFileSync(join(folder.root, "a.ts"), "one\n");
  const { check, done } = PLAN_FIRST.states;
  const run = await nativeRun(
    { id: "checks", initial: "check", states: { check: { ...check, on: { GOOD: "done" } }, done } },
    { root: folder.root },
  );
  const server = await hookServer(run, ["qwen"]);
  const pre = (command: string, id: string): JsonObject => ({
    session_id: "q1",
    cwd: folder.root,
    hook_event_name: "PreToolUse",
    tool_name: "run_shell_command",
    tool_input: { command, is_background: false },
    tool_use_id: id,
  });
  const refused = await send(server, "qwen", pre("cat *.ts", "c1"));
  expect(decisionOf(refused)).toBe("deny");
  expect(reasonOf(refused)).toMatch(/'.*cat' 'a\.ts'$/);
  const plain = pre("cat a.ts", "c2");
  expect(await send(server, "qwen", plain)).toEqual({
    hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "allow" },
  });
  await send(server, "qwen", { ...plain, hook_event_name: "PostToolUse", tool_response: "one" });
});

test("a run that is closed while a host works on a call does not wait for its report", async () => {
  const { folder, run, claude, ask } = await planFirst();
  await ask(claude.event("UserPromptSubmit", { prompt: "Fix it." }));
  await leave(run, "READY");
  const write = claude.pre("Write", { file_path: join(folder.root, "b.ts"), content: "x" });
  expect(decisionOf(await ask(write))).toBe("allow");
  await run.close();
  expect(reasonOf(await ask(claude.pre("Read", { file_path: join(folder.root, "src/a.ts") })))).toContain(
    "is suspended",
  );
});

test("Copilot CLI asks for permission to write a file by its path: it is given once, for a call that was approved", async () => {
  const folder = tempFolder();
  const { build, done } = PLAN_FIRST.states;
  const run = await nativeRun(
    { id: "builds", initial: "build", states: { build: { ...build, on: { BUILT: "done" } }, done } },
    { root: folder.root },
  );
  const server = await hookServer(run, ["copilot"]);
  const base = { sessionId: "c1", cwd: folder.root };
  const path = join(folder.root, "a.ts");
  const pre = { ...base, toolName: "create", toolArgs: { path, file_text: "x" } };
  const permission = (file_path: string) =>
    send(server, "copilot", { ...base, toolName: "edit", toolInput: { file_path, diff: "" } }, "permissionRequest");
  expect(await permission(path)).toMatchObject({ behavior: "deny" });
  expect(await send(server, "copilot", pre, "preToolUse")).toEqual({ permissionDecision: "allow" });
  expect(await permission(join(folder.root, "b.ts"))).toMatchObject({ behavior: "deny" });
  expect(await permission(path)).toEqual({ behavior: "allow" });
  expect(await permission(path)).toMatchObject({ behavior: "deny" });
  await send(server, "copilot", { ...pre, toolResult: { resultType: "success", textResultForLlm: "" } }, "postToolUse");
});

test("calls that a host starts only together do not wait for each other's results, and keep their permissions", async () => {
  const folder = tempFolder();
  const { build, done } = PLAN_FIRST.states;
  const clock = handClock();
  const run = await nativeRun(
    { id: "builds", initial: "build", states: { build: { ...build, on: { BUILT: "done" } }, done } },
    { root: folder.root, clock },
  );
  const server = await hookServer(run, ["copilot"], { clock });
  const base = { sessionId: "c1", cwd: folder.root };
  const pre = (name: string) =>
    send(
      server,
      "copilot",
      { ...base, toolName: "create", toolArgs: { path: join(folder.root, name), file_text: "x" } },
      "preToolUse",
    );
  const permission = (name: string) =>
    send(
      server,
      "copilot",
      { ...base, toolName: "edit", toolInput: { file_path: join(folder.root, name), diff: "" } },
      "permissionRequest",
    );
  let answered = 0;
  const all = Promise.all(
    ["a.ts", "b.ts", "c.ts"].map(async (name) => {
      expect(await pre(name)).toEqual({ permissionDecision: "allow" });
      answered += 1;
    }),
  );
  while (answered < 3) {
    await new Promise(setImmediate);
    clock.turn(1);
  }
  await all;
  for (const name of ["a.ts", "b.ts", "c.ts"]) expect(await permission(name)).toEqual({ behavior: "allow" });
  expect(await permission("a.ts")).toMatchObject({ behavior: "deny" });
});
