import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { isJsonObject, type Json, type Subject, type ToolCall, type ToolResult, type ToolSpec } from "@sluice/core";
import { onTestFinished } from "vitest";

/** A workspace in a temporary folder, gone when the test is. */
export interface TestWorkspace {
  readonly root: string;
  path(name: string): string;
  put(name: string, content: string | Uint8Array): string;
  text(name: string): string;
}

export function tempFolder(): TestWorkspace {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "sluice-tools-")));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const path = (name: string): string => join(root, name);
  return {
    root,
    path,
    put: (name, content) => {
      mkdirSync(dirname(path(name)), { recursive: true });
      writeFileSync(path(name), content);
      return path(name);
    },
    text: (name) => readFileSync(path(name), "utf8"),
  };
}

/** One execution as tools see it: what it read is remembered from call to call. */
export interface TestStage {
  /** Judges, prepares and runs a call, as the run loop does. */
  use<I>(tool: ToolSpec<I>, input: I): Promise<ToolResult>;
  /** The same in steps, to change the world in between. */
  judge<I>(tool: ToolSpec<I>, input: I): JudgedCall;
  readonly notes: Record<string, Json>;
}
export interface JudgedCall {
  readonly subjects: readonly Subject[];
  prepare(): Promise<Json | undefined>;
  run(intent?: Json): Promise<ToolResult>;
  readonly call: ToolCall;
}

export function stageIn(
  workspace: { readonly root: string; readonly store?: string },
  options: Partial<ToolCall> = {},
): TestStage {
  const notes: Record<string, Json> = {};
  let calls = 0;
  const judge = <I>(tool: ToolSpec<I>, input: I): JudgedCall => {
    const place =
      workspace.store === undefined ? { root: workspace.root } : { root: workspace.root, store: workspace.store };
    const env = options.env ?? { PATH: process.env.PATH ?? "/usr/bin:/bin" };
    const mayWrite = options.mayWrite ?? true;
    const subjects = tool.subjects(input, place, { env, mayWrite });
    calls += 1;
    const call: ToolCall = {
      runId: "r1",
      executionId: "work#1",
      attempt: 1,
      proposalId: `t1.c${calls}`,
      idempotencyKey: `test-${process.pid}-${workspace.root}-${calls}`,
      workspace: place,
      signal: new AbortController().signal,
      env,
      notes,
      mayWrite,
      reach: { reads: [""], writes: mayWrite ? [""] : [], scratch: [], network: false, readOnly: [] },
      anyLine: mayWrite,
      othersAtWork: () => false,
      startsUnwalled: () => undefined,
      judged: subjects,
      ...options,
    };
    return {
      subjects,
      call,
      prepare: async () => tool.prepare?.(input, call),
      run: async (intent) => {
        const result = await tool.execute(input, intent === undefined ? call : { ...call, intent });
        Object.assign(notes, result.notes);
        return result;
      },
    };
  };
  return {
    notes,
    judge,
    use: async (tool, input) => {
      const call = judge(tool, input);
      return call.run(await call.prepare());
    },
  };
}

/** The code of a typed error, or undefined when the call went well. */
export function codeOf(result: ToolResult): string | undefined {
  const code = isJsonObject(result.output) ? result.output.code : undefined;
  return !result.ok && typeof code === "string" ? code : undefined;
}

export function textOf(result: ToolResult): string {
  if (typeof result.output !== "string") throw new Error(`expected text, got ${JSON.stringify(result.output)}`);
  return result.output;
}

/** Runs as a user whom permissions bind, also where the tests run as root. */
export async function unprivileged<T>(work: () => Promise<T>): Promise<T> {
  const { geteuid, seteuid } = process;
  if (geteuid === undefined || seteuid === undefined || geteuid() !== 0) return work();
  seteuid(65_534);
  try {
    return await work();
  } finally {
    seteuid(0);
  }
}
