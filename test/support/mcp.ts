import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { type ActScope, done, type Json, pipeline, type SluiceEvent } from "@sluice/core";
import type { McpServers, McpStdioServer, RunResult, SessionOptions } from "@sluice/stages";
import { z } from "zod";
import {
  caller,
  completed,
  eventsOf,
  json,
  noModel,
  session,
  type TestSession,
  type TestSessionOptions,
  work,
} from "./run-kit.ts";
import { tempFolder } from "./tools.ts";

const root = join(import.meta.dirname, "../..");
const packages = join(root, "node_modules/@modelcontextprotocol");
export const EVERYTHING = join(packages, "server-everything/dist/index.js");
export const FILESYSTEM = join(packages, "server-filesystem/dist/index.js");

/** What a child process needs to start Node, and nothing of this machine's. */
export const BARE_ENV = { PATH: process.env.PATH ?? "/usr/bin:/bin" };

/** A server that misbehaves in one way, and what it wrote down about what happened to it. */
export interface Misbehaving {
  readonly config: McpStdioServer;
  noted(): readonly string[];
  /** Adds a line, for a server that waits for one. */
  note(line: string): void;
}
export function misbehaving(way: string, options: Partial<McpStdioServer> = {}): Misbehaving {
  const log = tempFolder().put("log", "");
  const args = [join(root, "test/fixtures/mcp/server.ts"), way, log];
  return {
    config: { command: process.execPath, args, ...options },
    note: (line) => appendFileSync(log, `${line}\n`),
    noted: () =>
      readFileSync(log, "utf8")
        .split("\n")
        .filter((line) => line !== ""),
  };
}

/** Waits for what another process does, which takes its time. */
export async function until(holds: () => boolean, what = "what was waited for"): Promise<void> {
  for (let times = 0; times < 2_000; times += 1) {
    if (holds()) return;
    await setTimeout(5);
  }
  throw new Error(`${what} did not happen`);
}

export function untilNoted({ noted }: Misbehaving, text: string): Promise<void> {
  return until(() => noted().some((line) => line.startsWith(text)), text);
}

export type Call = (tool: string, input?: Json) => Promise<Json>;

/** A pipeline of one stage that makes calls and hands back what `act` returns. */
export function callingPipeline(
  act: (call: Call, scope: ActScope) => Promise<unknown>,
  allowedTools?: readonly string[],
) {
  const use = work({
    ...(allowedTools === undefined ? {} : { allowedTools }),
    act: async (scope) => completed(json(await act(caller(scope), scope))),
  });
  return pipeline({
    id: "calling",
    input: z.object({}),
    stages: { use },
    initial: "use",
    next: { use: ({ output }) => done(output) },
  });
}

export interface Used {
  readonly live: TestSession;
  readonly run: RunResult<unknown>;
  readonly output: Json;
  readonly events: readonly SluiceEvent[];
  readonly faults: readonly string[];
}

/** A session with MCP servers. */
export function mcpSession(
  mcpServers: McpServers,
  options: TestSessionOptions = {},
): { readonly live: TestSession; readonly faults: string[] } {
  const faults: string[] = [];
  const onFault: SessionOptions["onFault"] = ({ by, message }) => void faults.push(`${by}: ${message}`);
  const live = session({ model: noModel, env: BARE_ENV, onFault, mcpServers, ...options });
  return { live, faults };
}

/** Runs one stage that makes calls, in a session with these servers. */
export async function useServers(
  mcpServers: McpServers,
  act: (call: Call, scope: ActScope) => Promise<unknown>,
  options: TestSessionOptions & { readonly allowedTools?: readonly string[] } = {},
): Promise<Used> {
  const { allowedTools = ["mcp__*"], ...rest } = options;
  const { live, faults } = mcpSession(mcpServers, rest);
  const run = await live.run(callingPipeline(act, allowedTools), {});
  const output = run.status === "completed" ? json(run.output) : null;
  return { live, run, output, faults, events: await eventsOf(live.host, run.runId) };
}
