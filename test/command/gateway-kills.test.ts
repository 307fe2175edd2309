import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import type { JsonObject } from "@sluice/core";
import { expect, onTestFinished, test, vi } from "vitest";
import { COMMAND, createPlace, type Place, reportOf } from "../support/command-process.ts";
import { silent } from "../support/silent-transport.ts";

// `sluice gateway` with an official client, in processes that are killed.

const WORKFLOW = {
  id: "plan-first",
  initial: "plan",
  states: {
    plan: { instructions: "Look.", allowed_tools: ["Read"], on: { READY: "build", STOP: "stopped" } },
    build: {
      instructions: "Build.",
      allowed_tools: ["Read", "Write", "Bash"],
      on: { BUILT: { target: "done", requires_approval: true, approval_message: "Ship it?" } },
    },
    done: { type: "final" },
    stopped: { type: "final", outcome: "failed" },
  },
};

interface Agent {
  call(tool: string, args?: JsonObject): Promise<string>;
  close(): Promise<void>;
}

const WAIT = { timeout: 60_000 };
const OPTIONS = ["--trust", "--wait"];

function placeOf(): Place {
  const place = createPlace("http://127.0.0.1:1");
  writeFileSync(join(place.workspace, "plan.json"), JSON.stringify(WORKFLOW));
  writeFileSync(join(place.workspace, "a.txt"), "one\n");
  return place;
}

const begin = (place: Place): readonly string[] => [
  "gateway",
  "--workflow",
  join(place.workspace, "plan.json"),
  "--task",
  "Do it.",
  ...OPTIONS,
];
const resume = (runId: string): readonly string[] => ["gateway", "--resume", runId, ...OPTIONS];

function agentOf(client: Client): Agent {
  onTestFinished(() => client.close());
  return {
    call: async (name, args = {}) => {
      const result = CallToolResultSchema.parse(await client.callTool({ name, arguments: args }));
      return result.content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
    },
    close: () => client.close(),
  };
}

/** A gateway over stdio, which the client starts. */
async function overStdio(place: Place, args: readonly string[]): Promise<Agent & { readonly kill: () => void }> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [COMMAND, ...args],
    cwd: place.workspace,
    env: { ...place.env },
    stderr: "ignore",
  });
  const client = new Client({ name: "agent", version: "1.0.0" });
  await client.connect(silent(transport));
  const { pid } = transport;
  return { ...agentOf(client), kill: () => void (pid !== null && process.kill(pid, "SIGKILL")) };
}

/** A gateway over HTTP, started by itself. */
async function overHttp(place: Place, args: readonly string[]) {
  const running = place.start([...args, "--http"]);
  const printed = await running.printed(/^MCP +(\S+)\ntoken +(\S+)$/m);
  const [, url = "", token = ""] = /MCP +(\S+)\ntoken +(\S+)/.exec(printed) ?? [];
  const client = new Client({ name: "agent", version: "1.0.0" });
  const headers = { Authorization: `Bearer ${token}` };
  await client.connect(silent(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })));
  return { ...agentOf(client), running };
}

async function onlyRun(place: Place): Promise<string> {
  const [run, ...others] = await place.look((host) => host.list());
  if (run === undefined || others.length > 0) throw new Error("there is not one run");
  return run.runId;
}

const WRITE = { file_path: "b.txt", content: "two\n" };
const NOTE = { rationale: "done" };
const logOf = (place: Place): string => {
  const file = join(place.workspace, "log.txt");
  return existsSync(file) ? readFileSync(file, "utf8") : "";
};

test("over stdio, a gateway that is killed in the middle of a command is resumed, and the agent reads that its outcome is unknown", async () => {
  const place = placeOf();
  const first = await overStdio(place, begin(place));
  await first.call("get_state");
  expect(await first.call("Read", { file_path: "a.txt" })).toContain("one");
  expect(await first.call("transition", { event: "READY", data: NOTE })).toContain("phase build");
  const runId = await onlyRun(place);
  const line = { command: "echo ran >> log.txt; sleep 60" };
  const lost = first.call("Bash", line).catch((thrown: unknown) => String(thrown));
  await vi.waitFor(() => expect(logOf(place)).toBe("ran\n"), WAIT);
  first.kill();
  expect(await lost).toContain("Connection closed");

  const second = await overStdio(place, resume(runId));
  // The agent makes the call again, which is the same one: it does not run twice.
  expect(await second.call("Bash", line)).toContain("outcome_unknown");
  expect(logOf(place)).toBe("ran\n");
  expect(await second.call("get_state")).toContain("phase build");
  expect(await second.call("Write", WRITE)).toContain("b.txt");
  await second.close();
  await vi.waitFor(async () => expect((await place.look((host) => host.get(runId)))?.status).toBe("suspended"), WAIT);
  const { stdout: shown } = await place.run(["show", runId]);
  expect(shown).toContain("agent      mcp (class advisory)");
  expect(shown).toContain("usage      the agent's own");
  expect(shown).toContain(`resume with: sluice gateway --resume ${runId}`);
  expect(await place.run(["runs"])).toMatchObject({ stdout: expect.stringContaining("plan-first (agent mcp)") });
  const resumed = await place.run(["resume", runId]);
  expect(resumed.code).not.toBe(0);
  expect(resumed.stderr).toContain(`sluice gateway --resume ${runId}`);
  expect(await place.run(["audit", runId, "--verify"])).toMatchObject({ code: 0 });
  const replayed = await place.run(["replay", runId, "--trust"]);
  expect(replayed).toMatchObject({ code: 0, stdout: expect.stringContaining("recorded calls of mcp") });
});

test("over HTTP, a request stays open while the gateway is dead; the answer is for the agent that makes its call again", async () => {
  const place = placeOf();
  const first = await overHttp(place, begin(place));
  await first.call("transition", { event: "READY", data: NOTE });
  await first.call("Write", WRITE);
  const runId = await onlyRun(place);
  const ship = { event: "BUILT", data: NOTE };
  const lost = first.call("transition", ship).catch((thrown: unknown) => String(thrown));
  const requests = () => place.look((host) => host.requests(runId));
  await vi.waitFor(async () => expect(await requests()).toHaveLength(1), WAIT);
  await first.running.kill();
  void lost;

  // The next one finds the request open, and is refused.
  const second = await overHttp(place, resume(runId));
  void second.call("transition", ship).catch(() => undefined);
  await vi.waitFor(async () => expect((await place.look((host) => host.get(runId)))?.owner).toBeDefined(), WAIT);
  second.running.signal("SIGTERM");
  await second.running.ended;
  const [request] = await requests();
  const answer = ["answer", runId, request?.requestId ?? "", "--digest", request?.digest ?? "", "approve"];
  expect(await place.run(answer)).toMatchObject({ code: 0 });
  // It is due now, but no other process continues a run that an agent works on.
  const woken = await place.run(["wake"]);
  expect(woken.stdout + woken.stderr).toContain(`sluice gateway --resume ${runId}`);
  expect((await place.look((host) => host.get(runId)))?.end).toBeUndefined();

  const third = await overHttp(place, resume(runId));
  expect(await third.call("transition", ship)).toContain("is over: completed");
  expect((await third.running.ended).code).toBe(0);
  expect(reportOf(await place.run(["show", runId, "--output-format", "json"]))).toMatchObject({
    status: "completed",
    agent: { name: "mcp", class: "advisory" },
    usage: { inputTokens: 0, outputTokens: 0 },
  });
});
