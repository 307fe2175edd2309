import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { field, isJsonObject, type Json, type JsonObject, parseJson, SluiceError } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";

/** Codex skips hooks that are not trusted, without a word. */
export type CodexTrust = "trusted" | "not trusted" | "no hooks";

export interface CodexTrustOptions {
  readonly workspace: string;
  readonly env: NodeJS.ProcessEnv;
  readonly command?: string;
  /** Milliseconds for one answer. */
  readonly timeoutMs?: number;
}

const ANSWER_TIMEOUT = 30_000;

/** Trusts the hooks that contain `marker`, with Codex's own program. Throws Host `codex_trust` if that fails. */
export async function trustCodexHooks(options: CodexTrustOptions, marker: string): Promise<CodexTrust> {
  return await withAppServer(options, async (ask) => {
    const found = await hooksIn(ask, options.workspace, marker);
    const open = found.filter(({ trusted }) => !trusted);
    if (open.length > 0) {
      const value = Object.fromEntries(open.map(({ key, hash }) => [key, { trusted_hash: hash }]));
      await ask("config/batchWrite", { edits: [{ keyPath: "hooks.state", mergeStrategy: "upsert", value }] });
    }
    return trustOf(await hooksIn(ask, options.workspace, marker));
  });
}

/** Whether Codex would run the hooks that contain `marker`. Throws Host `codex_trust`. */
export async function codexTrust(options: CodexTrustOptions, marker: string): Promise<CodexTrust> {
  return await withAppServer(options, async (ask) => trustOf(await hooksIn(ask, options.workspace, marker)));
}

interface CodexHook {
  readonly key: string;
  readonly hash: string;
  readonly trusted: boolean;
}

function trustOf(hooks: readonly CodexHook[]): CodexTrust {
  if (hooks.length === 0) return "no hooks";
  return hooks.every(({ trusted }) => trusted) ? "trusted" : "not trusted";
}

type Ask = (method: string, params: JsonObject) => Promise<Json>;

async function hooksIn(ask: Ask, workspace: string, marker: string): Promise<readonly CodexHook[]> {
  const found = await ask("hooks/list", { cwds: [workspace] });
  return objectsIn(found).flatMap((hook): readonly CodexHook[] => {
    const { key, currentHash, trustStatus } = hook;
    if (typeof key !== "string" || typeof currentHash !== "string") return [];
    if (!JSON.stringify(hook).includes(marker)) return [];
    return [{ key, hash: currentHash, trusted: trustStatus === "trusted" || trustStatus === "managed" }];
  });
}

/** Every object in a value, since the list is grouped by folder. */
function objectsIn(value: Json): readonly JsonObject[] {
  if (Array.isArray(value)) return value.flatMap(objectsIn);
  return isJsonObject(value) ? [value, ...Object.values(value).flatMap(objectsIn)] : [];
}

async function withAppServer<T>(options: CodexTrustOptions, work: (ask: Ask) => Promise<T>): Promise<T> {
  const { workspace, env, command = "codex", timeoutMs = ANSWER_TIMEOUT } = options;
  const child = spawn(command, ["app-server"], {
    cwd: workspace,
    env: { ...env, PWD: workspace },
    stdio: ["pipe", "pipe", "ignore"],
  });
  const waiting = new Map<number, PromiseWithResolvers<Json>>();
  const failAll = (text: string): void => {
    for (const { reject } of waiting.values()) reject(new SluiceError("Host", "codex_trust", text));
    waiting.clear();
  };
  child.once("error", (thrown) => failAll(`codex cannot be started: ${messageOf(thrown)}`));
  child.once("close", () => failAll("codex app-server ended"));
  child.stdin.on("error", (thrown) => failAll(messageOf(thrown)));
  createInterface({ input: child.stdout }).on("line", (line) => {
    const parsed = parseJson(line);
    const id = parsed.ok ? field(parsed.value, "id") : undefined;
    if (!parsed.ok || typeof id !== "number") return;
    const waiter = waiting.get(id);
    waiting.delete(id);
    const error = field(parsed.value, "error");
    if (error === undefined) waiter?.resolve(field(parsed.value, "result") ?? null);
    else waiter?.reject(new SluiceError("Host", "codex_trust", `codex app-server: ${JSON.stringify(error)}`));
  });
  let count = 0;
  const ask: Ask = async (method, params) => {
    count += 1;
    const waiter = Promise.withResolvers<Json>();
    waiting.set(count, waiter);
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: count, method, params })}\n`);
    const timer = setTimeout(
      () => waiter.reject(new SluiceError("Host", "codex_trust", `codex app-server does not answer ${method}`)),
      timeoutMs,
    );
    try {
      return await waiter.promise;
    } finally {
      clearTimeout(timer);
    }
  };
  try {
    await ask("initialize", { clientInfo: { name: "sluice", version: "0.1.0" } });
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", method: "initialized" })}\n`);
    return await work(ask);
  } finally {
    child.kill();
  }
}
