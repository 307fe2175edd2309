import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { field, isJsonObject, type Json, type JsonObject, parseJson } from "@sluice/core";
import { onTestFinished } from "vitest";

const BIN = join(import.meta.dirname, "../../packages/cli/bin/sluice.js");
const COMPILED = join(import.meta.dirname, "../../node_modules/.cache/compiled");
export const PIPELINES = join(import.meta.dirname, "../fixtures/command/pipelines.ts");

/** A folder for one test: a workspace, the scripts of its models, and the state of its user. */
export interface Desk {
  readonly folder: string;
  /** Where `sluice` keeps runs when nobody says otherwise. */
  readonly store: string;
  write(path: string, content: string): string;
  /** Writes a script and returns its model id. */
  script(stages: Readonly<Record<string, readonly JsonObject[]>>): string;
  /** Runs the built command to its end. */
  sluice(args: readonly string[], options?: SluiceOptions): Promise<Ended>;
  /** Starts the built command. */
  start(args: readonly string[], options?: SluiceOptions): Running;
}
export interface SluiceOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** What is written to stdin, which is then closed. */
  readonly input?: string;
  /** Arguments of Node itself. */
  readonly node?: readonly string[];
}
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}
export interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Waits until a stream has said this; fails when the process ends without. */
  said(stream: "stdout" | "stderr", pattern: RegExp): Promise<RegExpExecArray>;
}

/** The environment of the command in a folder: its user's home and state are beside that. */
export function surroundingsOf(folder: string): Readonly<Record<string, string>> {
  const base = dirname(folder);
  return {
    PATH: process.env.PATH ?? "",
    HOME: join(base, "home"),
    XDG_STATE_HOME: join(base, "state"),
    // Not the Ollama that may run on this machine: nobody listens here.
    OLLAMA_HOST: "http://127.0.0.1:9",
  };
}

export function desk(): Desk {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "sluice-command-")));
  const folder = join(base, "work");
  mkdirSync(folder);
  // Dozens of processes load the same modules.
  const surroundings = { ...surroundingsOf(folder), NODE_COMPILE_CACHE: COMPILED };
  const children = new Set<ChildProcess>();
  onTestFinished(async () => {
    for (const child of children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill("SIGKILL");
      await once(child, "close");
    }
    rmSync(base, { recursive: true, force: true });
  });
  let scripts = 0;
  const made: Desk = {
    folder,
    store: join(folder, ".sluice", "store"),
    write(path, content) {
      const file = join(folder, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content);
      return file;
    },
    script(stages) {
      scripts += 1;
      const file = join(base, `script-${scripts}.json`);
      writeFileSync(file, JSON.stringify({ stages }));
      return `scripted:${file}`;
    },
    sluice: (args, options) => made.start(args, options).ended,
    start(args, { env = {}, cwd = folder, input = "", node = [] } = {}) {
      const child = spawn(process.execPath, [...node, BIN, ...args], {
        cwd,
        env: { ...surroundings, ...env },
        stdio: ["pipe", "pipe", "pipe"],
      });
      children.add(child);
      child.stdin.on("error", () => undefined); // the command may end without reading
      child.stdin.end(input);
      return watched(child);
    },
  };
  return made;
}

function watched(child: ChildProcess): Running {
  const text = { stdout: "", stderr: "" };
  const listeners = new Set<() => void>();
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream]?.setEncoding("utf8");
    child[stream]?.on("data", (chunk: string) => {
      text[stream] += chunk;
      for (const listener of listeners) listener();
    });
  }
  let over = false;
  const ended = once(child, "close").then((): Ended => {
    over = true;
    for (const listener of listeners) listener();
    return { code: child.exitCode, ...text };
  });
  return {
    child,
    ended,
    said: (stream, pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(text[stream]);
          if (match === null && !over) return;
          listeners.delete(look);
          if (match === null) reject(new Error(`it ended without ${String(pattern)}:\n${text.stdout}\n${text.stderr}`));
          else resolve(match);
        };
        listeners.add(look);
        look();
      }),
  };
}

/** The one JSON object that was printed. */
export function printed(ended: Ended): JsonObject {
  const json = parseJson(ended.stdout);
  if (!json.ok || !isJsonObject(json.value)) throw new Error(`no JSON object:\n${ended.stdout}\n${ended.stderr}`);
  return json.value;
}

/** The objects that were printed, one a line. */
export function lines(ended: Ended): readonly JsonObject[] {
  const all = ended.stdout.split("\n");
  if (all.pop() !== "") throw new Error(`the last line is not ended:\n${ended.stdout}`);
  return all.map((line) => {
    const json = parseJson(line);
    if (!json.ok || !isJsonObject(json.value)) throw new Error(`no JSON object: ${line}`);
    return json.value;
  });
}

export function at(value: Json | undefined, ...path: readonly (string | number)[]): Json | undefined {
  let found = value;
  for (const step of path) found = Array.isArray(found) ? found[Number(step)] : field(found, String(step));
  return found;
}

export function textAt(value: Json | undefined, ...path: readonly (string | number)[]): string {
  const found = at(value, ...path);
  if (typeof found !== "string") throw new Error(`no text at ${path.join(".")}`);
  return found;
}

/** A turn that calls tools: `call("Read", {…})` beside others. */
export function call(tool: string, input: JsonObject): JsonObject {
  return { tool, input };
}
export function turn(...calls: readonly JsonObject[]): JsonObject {
  return { calls };
}
/** The turn that ends a stage of the test pipelines. */
export function finishes(text = "done"): JsonObject {
  return turn(call("finish", { text }));
}
