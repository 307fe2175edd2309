import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import { field, type Json, type JsonObject, parseJson, type RunHost } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { type GatewayRun, hookAdapter, hookRoutes, nativeTools, serveStdio } from "@sluice/gateway";
import { expect, onTestFinished, test } from "vitest";
import { ask, type GatewaySetUp, gatewayRun, leave } from "../../support/gateway.ts";
import { connect, gateway } from "../../support/gateway-clients.ts";
import { eventsOf } from "../../support/run-kit.ts";
import { documentOf, fact, oneState, ours, pipelineOf } from "../../support/statewright.ts";
import { tempFolder } from "../../support/tools.ts";
import { loadDocument, loadTexts } from "../../support/workflows.ts";

// What a gateway does for an agent of another program, by the numbers of the list of facts about Statewright.

const denied = { ok: false, output: { code: "tool_call_denied" } };

interface Opened {
  readonly run: GatewayRun;
  readonly host: RunHost;
  readonly folder: ReturnType<typeof tempFolder>;
}

async function opened(document: object, more: Partial<GatewaySetUp> = {}): Promise<Opened> {
  const folder = tempFolder();
  folder.put("a.txt", "some text\n");
  const host = createHost(createMemoryJournals().connect());
  const pipeline = more.pipeline ?? pipelineOf(await loadDocument(document));
  return { run: gatewayRun({ root: folder.root, host, ...more, pipeline }), host, folder };
}

const readOf = (file_path: string) => ["Read", { file_path }] as const;

fact(52, "a tool that the phase lists runs, and one that it does not list is denied", async () => {
  const { run, folder } = await opened(oneState({ allowed_tools: ["Read"] }));
  expect((await ask(run, ...readOf("a.txt"))).text).toContain("some text");
  expect(await ask(run, "Write", { file_path: "b.txt", content: "x" })).toMatchObject(denied);
  expect(existsSync(join(folder.root, "b.txt"))).toBe(false);
});

ours(53, "a phase without a list of tools is as open as the session's mode", async () => {
  const document = oneState({ allowed_tools: undefined });
  const open = await opened(document, { session: { mode: "yolo" } });
  expect(await ask(open.run, "Write", { file_path: "b.txt", content: "x" })).toMatchObject({ ok: true });
  const asked = await opened(document, { session: { mode: "ask" } });
  expect(await ask(asked.run, "Write", { file_path: "b.txt", content: "x" })).toMatchObject(denied);
});

ours(54, "at a final state the run is over, and no tool does anything", async () => {
  const { run, folder } = await opened(oneState({ allowed_tools: ["Read", "Write"] }));
  await leave(run, "DONE");
  const late = await ask(run, "Write", { file_path: "b.txt", content: "x" });
  expect(late).toMatchObject({ output: { code: "run_ended", status: "completed" } });
  expect(existsSync(join(folder.root, "b.txt"))).toBe(false);
});

ours(55, "a run whose phase the workflow has lost is not continued, and no tool runs", async () => {
  const first = await opened(oneState({ allowed_tools: ["Read"] }));
  await ask(first.run, ...readOf("a.txt"));
  await first.run.close();
  const other = documentOf({ b: { allowed_tools: ["Read"], on: { DONE: "done" } } }, { initial: "b" });
  const resume = first.run.runId ?? "";
  const { run } = await opened(other, { host: first.host, root: first.folder.root, resume });
  expect(await ask(run, ...readOf("a.txt"))).toMatchObject({ ok: false, output: { code: "run_not_started" } });
});

fact(56, "a denial names the tool, the phase and the tools that are allowed", async () => {
  const { run } = await opened(oneState({ allowed_tools: ["Read", "Grep"] }));
  const { output } = await ask(run, "Write", { file_path: "b.txt", content: "x" });
  expect(output).toMatchObject({
    tool: "Write",
    state: "a",
    allowedTools: ["Read", "Grep"],
    completionTool: "transition",
    events: [expect.stringContaining("DONE"), expect.stringContaining("FAIL")],
  });
});

ours(57, "a tool that only the next phase lists is denied, and moves nothing", async () => {
  const states = {
    a: { allowed_tools: ["Read"], on: { READY: "b", FAIL: "failed" } },
    b: { allowed_tools: ["Write"], on: { DONE: "done", FAIL: "failed" } },
  };
  const { run } = await opened(documentOf(states));
  expect(await ask(run, "Write", { file_path: "b.txt", content: "x" })).toMatchObject(denied);
  expect(run.now().state).toBe("a");
});

fact(58, "after as many calls as max_iterations, and not before, only the transition is left", async () => {
  const { run, folder } = await opened(oneState({ allowed_tools: ["Read"], max_iterations: 5 }));
  for (const at of [1, 2, 3, 4, 5]) folder.put(`${at}.txt`, "x");
  for (const at of [1, 2, 3, 4]) expect((await ask(run, ...readOf(`${at}.txt`))).text).not.toContain("Only transition");
  expect((await ask(run, ...readOf("5.txt"))).text).toContain("Only transition is available now");
  expect((await ask(run, ...readOf("a.txt"))).ok).toBe(false);
  expect((await leave(run, "DONE")).ok).toBe(true);
});

fact(59, "a transition starts the counters of the phase over", async () => {
  const states = { a: { allowed_tools: ["Read"], max_iterations: 2, on: { AGAIN: "a", DONE: "done" } } };
  const { run } = await opened(documentOf(states));
  await ask(run, ...readOf("a.txt"));
  expect((await ask(run, "Read", { file_path: "a.txt", limit: 1 })).text).toContain("Only transition");
  await leave(run, "AGAIN");
  expect((await ask(run, ...readOf("a.txt"))).text).toContain("some text");
});

fact(
  60,
  "a transition that waits for approval leaves the phase as it is, get_state shows it, and no second one passes",
  async () => {
    const states = {
      a: {
        allowed_tools: ["Read"],
        on: { SHIP: { target: "done", requires_approval: true, approval_message: "Ship it?" }, FAIL: "failed" },
      },
    };
    const { run, host } = await opened(documentOf(states), { wait: true });
    const patience = { patienceMs: 1 };
    const data = { rationale: "ready" };
    const parked = await run.call({ tool: "transition", input: { event: "SHIP", data }, ...patience }).answer;
    expect(parked.waiting?.question).toContain("Ship it?");
    expect(run.now()).toMatchObject({ status: "waiting", state: "a" });
    expect((await ask(run, "get_state")).text).toContain("Ship it?");
    const second = await run.call({ tool: "transition", input: { event: "FAIL", data }, ...patience }).answer;
    expect(second).toMatchObject({ ok: false, output: { code: "request_open" } });
    const [request] = await host.requests();
    if (request === undefined) throw new Error("no request is open");
    await run.answer(request, { kind: "deny", reason: "not on a Friday" }, "Ada");
    const again = await run.call({ tool: "transition", input: { event: "SHIP", data } }).answer;
    expect(again.text).toContain("not on a Friday");
    expect(run.now().state).toBe("a");
  },
);

fact(61, "a final state cannot be left", async () => {
  const { run } = await opened(oneState({ on: { DONE: "done" } }));
  await leave(run, "DONE");
  const late = await leave(run, "DONE");
  expect(late.text).toContain("is over: completed");
  expect(await run.ended).toMatchObject({ status: "completed", state: "done" });
});

ours(71, "the list of tools is the same in every phase, at the last turn and after the end", async () => {
  const states = {
    a: { allowed_tools: ["Read"], max_iterations: 1, on: { READY: "b" } },
    b: { allowed_tools: ["Write"], on: { DONE: "done" } },
  };
  const { run } = await opened(documentOf(states));
  const client = await connect("sdk 1 over HTTP", await gateway(run));
  const names = async () => (await client.tools()).map(({ name }) => name);
  const all = await names();
  expect(all).toEqual(expect.arrayContaining(["Read", "Write", "get_state", "transition"]));
  await client.call("Read", { file_path: "a.txt" });
  expect(await names()).toEqual(all);
  await client.call("transition", { event: "READY", data: { rationale: "x" } });
  expect(await names()).toEqual(all);
  await client.call("transition", { event: "DONE", data: { rationale: "x" } });
  expect([await names(), run.now().status]).toEqual([all, "ended"]);
});

fact(72, "an unknown method is answered with -32601, and a notification with nothing", async () => {
  const { run } = await opened(oneState({ allowed_tools: ["Read"] }));
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const server = serveStdio(run, { version: "0.0.0", stdin, stdout });
  onTestFinished(() => server.close());
  const answers = createInterface(stdout)[Symbol.asyncIterator]();
  const send = (message: JsonObject) => stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const next = async (): Promise<Json> => {
    const read = parseJson(String((await answers.next()).value));
    return read.ok ? read.value : null;
  };
  const clientInfo = { name: "raw", version: "1" };
  send({ id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo } });
  expect(await next()).toMatchObject({ id: 1, result: { protocolVersion: "2025-11-25" } });
  send({ method: "notifications/initialized" });
  send({ method: "notifications/unheard_of" });
  send({ id: 2, method: "workflow/force_state", params: { state: "done" } });
  expect(await next()).toMatchObject({ id: 2, error: { code: -32601 } });
  expect(run.now().status).not.toBe("ended");
});

ours(73, "an agent that connects again finds the run of its token where it left it", async () => {
  const states = {
    a: { allowed_tools: ["Read"], on: { READY: "b" } },
    b: { allowed_tools: ["Read"], on: { DONE: "done" } },
  };
  const { run, host } = await opened(documentOf(states));
  const server = await gateway(run);
  const first = await connect("client 2, handshake, HTTP", server, { name: "agent" });
  await first.call("transition", { event: "READY", data: { rationale: "x" } });
  const { runId } = run;
  await first.close();
  const second = await connect("client 2, 2026-07-28, HTTP", server, { name: "agent" });
  expect((await second.call("get_state")).text).toContain("phase b");
  expect([run.runId, (await host.list()).length]).toEqual([runId, 1]);
});

fact(74, "an invoked workflow runs to its end, and the agent is then back where the edge says", async () => {
  const edge = { invoke: "suite", on_complete: "b", on_fail: "failed" };
  const parent = documentOf({
    a: { allowed_tools: [], on: { RUN: edge } },
    b: { allowed_tools: [], on: { DONE: "done" } },
  });
  const child = {
    id: "suite",
    initial: "testing",
    states: {
      testing: { allowed_tools: ["Read"], on: { PASS: "passed" } },
      passed: { type: "final" },
    },
  };
  const texts = { "w.json": JSON.stringify(parent), "suite.json": JSON.stringify(child) };
  const pipeline = pipelineOf(await loadTexts("w.json", texts, { find: async () => "suite.json" }));
  const { run } = await opened({}, { pipeline });
  expect((await leave(run, "RUN")).text).toContain("phase testing");
  expect((await ask(run, ...readOf("a.txt"))).ok).toBe(true);
  expect((await leave(run, "PASS")).text).toContain("phase b");
  await leave(run, "DONE");
  expect(await run.ended).toMatchObject({ status: "completed" });
});

fact(75, "an agent's data cannot set the markers of a return or a fork, nor a prototype", async () => {
  const { run } = await opened(documentOf({ a: { allowed_tools: [], on: { AGAIN: "a", DONE: "done" } } }));
  for (const key of ["_interrupt_return", "_fork", "__proto__", "constructor"]) {
    const read = parseJson(`{"${key}":"done","rationale":"x"}`);
    const rejected = await leave(run, "AGAIN", read.ok ? read.value : {});
    expect([rejected.ok, rejected.text.includes(key)], key).toEqual([false, true]);
  }
  expect(run.now().state).toBe("a");
});

ours(76, "no agent can load another workflow, in a branch as little as elsewhere", async () => {
  const branch = (terminal: string) => ({ allowed_tools: [], on: { OK: terminal } });
  const fork = {
    branches: { one: { initial: "b", terminal: "b_over" }, two: { initial: "c", terminal: "c_over" } },
    on_complete: "done",
  };
  const document = documentOf({
    a: { allowed_tools: [], on: { GO: { fork } } },
    b: branch("b_over"),
    c: branch("c_over"),
    b_over: { type: "final" },
    c_over: { type: "final" },
  });
  const { run } = await opened(document);
  expect((await leave(run, "GO")).text).toContain("phase b");
  for (const tool of ["load_workflow", "statewright_load_workflow"])
    expect(await ask(run, tool, { name: "other" })).toMatchObject({ ok: false, output: { code: "unknown_tool" } });
  expect((await leave(run, "OK")).text).toContain("phase c");
  await leave(run, "OK");
  expect(await run.ended).toMatchObject({ status: "completed" });
});

fact(77, "a rationale is recorded with its first 2,000 characters", async () => {
  const { run, host } = await opened(oneState({}));
  await leave(run, "DONE", { rationale: "x".repeat(5_000) });
  const [move] = (await eventsOf(host, run.runId ?? "")).filter(({ type }) => type === "route.decided");
  expect(move?.data.why).toMatchObject({ rationale: "x".repeat(2_000) });
});

ours(78, "no tool of an agent forces a state; a person forks the run instead", async () => {
  const { run } = await opened(oneState({}));
  for (const tool of ["force_state", "cancel", "grant", "resume", "deactivate"])
    expect(await ask(run, tool, { state: "done" })).toMatchObject({ ok: false, output: { code: "unknown_tool" } });
  expect(await leave(run, "DONE", { state: "failed", rationale: "x" })).toMatchObject({ ok: true });
  expect(await run.ended).toMatchObject({ state: "done" });
});

/** The hooks of an agent's program, as it calls them: the answer to a payload. */
async function hooked(state: object): Promise<{
  readonly run: GatewayRun;
  readonly folder: Opened["folder"];
  hook(event: string, payload: JsonObject): Promise<Json>;
}> {
  const { run, folder } = await opened(oneState(state), {
    native: (handOver) => nativeTools({ handOver }),
  });
  const server = await gateway(run, { routes: [...hookRoutes({ run, adapters: [hookAdapter("claude")] })] });
  const hook = async (event: string, payload: JsonObject): Promise<Json> => {
    const response = await fetch(`${server.url}/hook/claude?event=${event}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${server.token}`, "Content-Type": "application/json" },
      body: JSON.stringify({ session_id: "s1", cwd: folder.root, hook_event_name: event, ...payload }),
    });
    const read = parseJson(await response.text());
    return read.ok ? read.value : null;
  };
  return { run, folder, hook };
}

fact(
  79,
  "through hooks, commands that look like writes inside of quotes run, and every way to write is denied",
  async () => {
    const { folder, hook } = await hooked({ allowed_tools: ["Read", "Bash"] });
    folder.put("src/b.txt", "x");
    const lines = {
      allow: ["grep 'sed -i' src/b.txt", "grep '>' src/b.txt 2>&1", "grep 'rm -rf' a.txt"],
      deny: [
        "sed -i s/a/b/ a.txt",
        "tee a.txt",
        "dd if=a.txt of=b.txt",
        "cp a.txt b.txt",
        "mv a.txt b.txt",
        "ln -s a.txt b.txt",
        "install a.txt b.txt",
        "rsync a.txt b.txt",
        "mkdir new",
        "touch new",
        "chmod +x a.txt",
        "chown root a.txt",
      ],
    };
    for (const [decision, commands] of Object.entries(lines))
      for (const [at, command] of commands.entries()) {
        const call = { tool_name: "Bash", tool_input: { command }, tool_use_id: `${decision}${at}` };
        const answer = await hook("PreToolUse", call);
        expect(field(answer, "hookSpecificOutput"), command).toMatchObject({ permissionDecision: decision });
        if (decision === "allow") await hook("PostToolUse", { ...call, tool_response: { stdout: "", stderr: "" } });
      }
  },
);

ours(
  80,
  "the agent is kept from stopping before the end as often as its program allows, and not once more",
  async () => {
    const { run, hook } = await hooked({ allowed_tools: ["Read"] });
    await hook("UserPromptSubmit", { prompt: "Do it." });
    const allowed = hookAdapter("claude").refusedStops;
    expect(allowed).toBeGreaterThan(0);
    for (let refused = 0; refused < allowed; refused += 1) {
      const answer = await hook("Stop", { stop_hook_active: refused > 0 });
      expect(answer).toMatchObject({ decision: "block", reason: expect.stringContaining("DONE") });
    }
    expect(await hook("Stop", { stop_hook_active: true })).toEqual({});
    await hook("UserPromptSubmit", { prompt: "Go on." });
    await leave(run, "DONE");
    expect(await hook("Stop", {})).toEqual({});
  },
);

test("each of the facts 52 to 61 and 71 to 80 has one test, named by its number", () => {
  const source = readFileSync(import.meta.filename, "utf8");
  const numbers = [...source.matchAll(/^(?:fact|ours)\(\s*(\d+),/gm)].map(([, number]) => Number(number));
  const from = (first: number) => Array.from({ length: 10 }, (_, at) => first + at);
  expect(numbers).toEqual([...from(52), ...from(71)]);
});
