import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client as NewClient, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Desk, desk } from "../support/command.ts";

const BIN = join(import.meta.dirname, "../../packages/cli/bin/sluice.js");
const WORKFLOW = `
id: three-phases
initial: plan
states:
  plan:
    instructions: Plan it. Edit nothing.
    allowed_tools: [Read]
    on: { READY: build }
  build:
    instructions: Build it.
    allowed_tools: [Read, Write]
    on: { BUILT: check }
  check:
    instructions: Check it.
    allowed_tools: [Read]
    on: { GOOD: done, BAD: failed }
  done: { type: final }
  failed: { type: final, outcome: failed }
`;

type Call = (tool: string, args?: Record<string, unknown>) => Promise<{ ok: boolean; text: string }>;
interface Agent {
  readonly call: Call;
  close(): Promise<void>;
}

function ownEnv({ folder }: Pick<Desk, "folder">): Record<string, string> {
  return {
    PATH: process.env.PATH ?? "",
    HOME: join(folder, "../home"),
    XDG_STATE_HOME: join(folder, "../state"),
  };
}

/** An official client of the older line, which starts the built command. */
async function overStdio({ folder }: Desk, args: readonly string[]): Promise<Agent> {
  const client = new OldClient({ name: "agent", version: "1.0.0" });
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [BIN, "gateway", ...args],
      cwd: folder,
      env: ownEnv({ folder }),
      stderr: "ignore",
    }),
  );
  onTestFinished(() => client.close());
  return {
    call: async (name, input = {}) => resultOf(await client.callTool({ name, arguments: input })),
    close: () => client.close(),
  };
}

/** An official client of the newer line, of revision 2026-07-28, which connects to the built command. */
async function overHttp(
  at: Desk,
  args: readonly string[],
): Promise<Agent & { readonly ended: Promise<number | null> }> {
  const running = at.start(["gateway", "--http", ...args]);
  const [, url = "", token = ""] = await running.said("stdout", /^MCP +(\S+)\ntoken +(\S+)$/m);
  const client = new NewClient(
    { name: "agent", version: "1.0.0" },
    { versionNegotiation: { mode: { pin: "2026-07-28" } } },
  );
  const requestInit = { headers: { Authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  onTestFinished(() => client.close());
  return {
    call: async (name, input = {}) => resultOf(await client.callTool({ name, arguments: input })),
    close: () => client.close(),
    ended: running.ended.then(({ code }) => code),
  };
}

function resultOf(result: unknown): { ok: boolean; text: string } {
  const { content, isError } = CallToolResultSchema.parse(result);
  return { ok: isError !== true, text: content.map((part) => (part.type === "text" ? part.text : "")).join("\n") };
}

const event = (call: Call, name: string) => call("transition", { event: name, data: { rationale: "done" } });

describe("sluice gateway", () => {
  test("serves a run to an MCP client on stdin and stdout, which is a run like any other", async () => {
    const at = desk();
    at.write("flow.yaml", WORKFLOW);
    const { call, close } = await overStdio(at, ["--workflow", "flow.yaml", "--task", "write it", "--no-wait"]);
    expect((await call("get_state")).text).toContain("Edit nothing.");
    const denied = await call("Write", { file_path: "a.txt", content: "one\n" });
    expect(denied.ok).toBe(false);
    expect(existsSync(join(at.folder, "a.txt"))).toBe(false);
    expect((await event(call, "READY")).text).toContain("Build it.");
    expect((await call("Write", { file_path: "a.txt", content: "one\n" })).ok).toBe(true);
    expect((await event(call, "BUILT")).text).toContain("Check it.");
    expect((await event(call, "GOOD")).text).toContain("is over: completed");
    await close();

    const runs = await at.sluice(["runs"]);
    const [, run = ""] = /^(r\w+) +completed/m.exec(runs.stdout) ?? [];
    expect(run).not.toBe("");
    expect((await at.sluice(["show", run])).stdout).toContain("build");
    expect((await at.sluice(["audit", run, "--verify"])).code).toBe(0);
    expect((await at.sluice(["replay", run])).stdout).toContain("the replay matches the record");
    expect((await at.sluice(["report", run])).code).toBe(0);
  });

  test("waits for sluice answer, and ends when the run does", async () => {
    const at = desk();
    at.write("flow.yaml", WORKFLOW);
    const { call, ended } = await overHttp(at, ["--workflow", "flow.yaml", "--task", "write it"]);
    const state = await call("get_state");
    expect(state.text).toContain("Edit nothing.");
    const [, run = ""] = /^(r\w+) +\w+/m.exec((await at.sluice(["runs"])).stdout.split("\n").slice(1).join("\n")) ?? [];
    const write = call("Write", { file_path: "a.txt", content: "one\n" });
    let answered = await at.sluice(["answer", run, "plan#1/a1/t1.c0", "approve"]);
    for (let times = 0; answered.code !== 0 && times < 20; times += 1) {
      answered = await at.sluice(["answer", run, "plan#1/a1/t1.c0", "approve"]);
    }
    expect(answered.stderr).toBe("");
    expect((await write).ok).toBe(true);
    expect(existsSync(join(at.folder, "a.txt"))).toBe(true);
    await event(call, "READY");
    await event(call, "BUILT");
    expect((await event(call, "GOOD")).text).toContain("is over: completed");
    expect(await ended).toBe(0);
  });

  test("suspends the run of an agent that leaves, and continues it for the next one", async () => {
    const at = desk();
    at.write("flow.yaml", WORKFLOW);
    const first = await overStdio(at, ["--workflow", "flow.yaml", "--task", "write it", "--no-wait"]);
    await first.call("get_state");
    await event(first.call, "READY");
    await first.close();
    const [, run = ""] = /^(r\w+) +suspended/m.exec((await at.sluice(["runs"])).stdout) ?? [];
    expect(run).not.toBe("");

    const next = await overStdio(at, ["--resume", run]);
    expect((await next.call("get_state")).text).toContain("Build it.");
    await event(next.call, "BUILT");
    expect((await event(next.call, "GOOD")).text).toContain("is over: completed");
    await next.close();
    expect((await at.sluice(["audit", run, "--verify"])).code).toBe(0);
  });

  test("ends with the exit code of its run: 0 without one, 3 if it is suspended, 1 if it was cancelled", async () => {
    const at = desk();
    at.write("flow.yaml", WORKFLOW);
    const codeAfter = async (work: (ask: (method: string, params: object) => Promise<void>) => Promise<void>) => {
      const args = [BIN, "gateway", "--workflow", "flow.yaml", "--task", "write it"];
      const child = spawn(process.execPath, args, {
        cwd: at.folder,
        env: ownEnv(at),
        stdio: ["pipe", "pipe", "ignore"],
      });
      onTestFinished(() => void child.kill("SIGKILL"));
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      let id = 0;
      await work(async (method, params) => {
        id += 1;
        child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
        for (;;) {
          const { value, done } = await lines.next();
          if (done === true) throw new Error("it ended without an answer");
          if (value.includes(`"id":${id}`)) return;
        }
      });
      child.stdin.end();
      const [code]: unknown[] = await once(child, "close");
      return code;
    };
    const connect = (ask: (method: string, params: object) => Promise<void>): Promise<void> => {
      const clientInfo = { name: "raw", version: "1" };
      return ask("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
    };
    const getState = { name: "get_state", arguments: {} };
    expect(await codeAfter(connect)).toBe(0);
    const left = await codeAfter(async (ask) => {
      await connect(ask);
      await ask("tools/call", getState);
    });
    expect(left).toBe(3);
    const cancelled = await codeAfter(async (ask) => {
      await connect(ask);
      await ask("tools/call", getState);
      const [, run = ""] = /^(r\w+) +running/m.exec((await at.sluice(["runs"])).stdout) ?? [];
      expect((await at.sluice(["cancel", run])).code).toBe(0);
    });
    expect(cancelled).toBe(1);
  });

  test("says in words that another process has its run, and how an agent continues it", async () => {
    const at = desk();
    at.write("flow.yaml", WORKFLOW);
    const first = await overStdio(at, ["--workflow", "flow.yaml", "--task", "write it"]);
    await first.call("get_state");
    const [, run = ""] = /^(r\w+) +running/m.exec((await at.sluice(["runs"])).stdout) ?? [];
    const second = at.start(["gateway", "--resume", run]);
    const ended = await second.ended;
    expect([ended.code, ended.stderr]).toEqual([4, expect.stringContaining(`run ${run} is active in`)]);
    // What stops it says how an agent continues it.
    const stopped = await at.sluice(["interrupt", run]);
    expect([stopped.code, stopped.stdout]).toEqual([0, expect.stringContaining(`gateway --resume ${run}`)]);
    expect((await at.sluice(["show", run])).stdout).toContain(`gateway --resume ${run}`);
    await first.close();
  });

  test("starts no run for a client that only connects", async () => {
    const at = desk();
    at.write("flow.yaml", WORKFLOW);
    const { close } = await overStdio(at, ["--workflow", "flow.yaml"]);
    await close();
    expect((await at.sluice(["runs"])).stdout).not.toMatch(/^r\w+ +(completed|suspended|active)/m);
  });
});
