import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { isJsonObject, type JsonObject, parseJson, type RunHost } from "@sluice/core";
import { onTestFinished } from "vitest";
import { lookAt } from "./look-at.ts";

export const COMMAND = join(import.meta.dirname, "..", "..", "packages", "cli", "bin", "sluice.js");
const FIXTURES = join(import.meta.dirname, "..", "fixtures", "crash");
const COMPILED = join(import.meta.dirname, "..", "..", "node_modules", ".cache", "compiled");
/** A process that says nothing for so long hangs. */
const PATIENCE_MS = 90_000;

/** How a process of the command ended. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The command at work. */
interface Running {
  readonly pid: number;
  readonly ended: Promise<Ended>;
  /** The first event of a `stream-json` output that fits, also one that came before. */
  event(fits: (event: JsonObject) => boolean): Promise<JsonObject>;
  /** Waits for a line on stderr. */
  said(pattern: RegExp): Promise<string>;
  /** Waits for lines on stdout. */
  printed(pattern: RegExp): Promise<string>;
  signal(name: NodeJS.Signals): void;
  /** SIGKILL, and the process is gone. */
  kill(): Promise<void>;
}

/** A workspace with a home of its own, and the built command in it. */
export interface Place {
  readonly workspace: string;
  readonly store: string;
  /** What the model server knows this place by. */
  readonly key: string;
  readonly env: Readonly<Record<string, string>>;
  start(args: readonly string[], options?: StartOptions): Running;
  run(args: readonly string[], options?: StartOptions): Promise<Ended>;
  /** Looks at the store from this process. */
  look<T>(look: (host: RunHost) => Promise<T>): Promise<T>;
}

interface StartOptions {
  readonly cwd?: string;
  /** `before:3` kills the process with SIGKILL just before its third commit, `after:3` just after it. */
  readonly dieAt?: string;
  /** The program, with its arguments, that starts the command and watches it: a tracer. */
  readonly under?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

let places = 0;

/** In the folder, which goes with the test: in a temporary one when omitted. */
export function createPlace(modelUrl: string, within = tmpdir()): Place {
  const folder = realpathSync(mkdtempSync(join(within, "sluice-crash-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const workspace = join(folder, "workspace");
  mkdirSync(workspace);
  places += 1;
  const key = `sk-crash-${process.pid}-${places}`;
  const env = {
    PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
    HOME: folder,
    ANTHROPIC_API_KEY: key,
    ANTHROPIC_BASE_URL: modelUrl,
    SLUICE_MODEL: "anthropic/test-model",
    // Dozens of processes load the same modules.
    NODE_COMPILE_CACHE: COMPILED,
  };
  const start: Place["start"] = (args, { cwd = workspace, dieAt, under = [], env: more = {} } = {}) => {
    const preload = dieAt === undefined ? [] : [`--import=${join(FIXTURES, "die-at.mjs")}`];
    const dies = dieAt === undefined ? {} : { DIE_AT: dieAt };
    const words = [...under, process.execPath, ...preload, COMMAND, ...args];
    return startProcess(words, cwd, { ...env, ...dies, ...more });
  };
  const store = join(workspace, ".sluice", "store");
  return {
    workspace,
    store,
    key,
    env,
    start,
    run: (args, options) => start(args, options).ended,
    look: (look) => lookAt(store, look),
  };
}

/** A pipeline file of the fixtures. */
export function pipelineFile(name: string): string {
  return join(FIXTURES, name);
}

function startProcess(words: readonly string[], cwd: string, env: Readonly<Record<string, string>>): Running {
  const [file = process.execPath, ...args] = words;
  const child = spawn(file, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  const events: JsonObject[] = [];
  const watchers = new Set<() => void>();
  let stdout = "";
  let stderr = "";
  let over = false;
  const notify = (): void => {
    for (const watcher of [...watchers]) watcher();
  };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
    notify();
  });
  createInterface({ input: child.stdout }).on("line", (line) => {
    const parsed = parseJson(line);
    if (parsed.ok && isJsonObject(parsed.value)) events.push(parsed.value);
    notify();
  });
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      over = true;
      notify();
      resolve({ code, signal, stdout, stderr });
    });
  });
  ended.catch(() => undefined); // the caller that waits for it sees it

  const until = <T>(what: string, look: () => T | undefined): Promise<T> =>
    new Promise((resolve, reject) => {
      const fail = (why: string): void => {
        stop();
        reject(new Error(`${what}: ${why}\nstdout: ${stdout.slice(-2_000)}\nstderr: ${stderr}`));
      };
      const timer = setTimeout(() => fail("it did not come in time"), PATIENCE_MS);
      const stop = (): void => {
        clearTimeout(timer);
        watchers.delete(check);
      };
      const check = (): void => {
        const found = look();
        if (found !== undefined) {
          stop();
          resolve(found);
        } else if (over) fail("the process ended");
      };
      watchers.add(check);
      check();
    });

  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
  };
  onTestFinished(kill);
  return {
    pid: child.pid ?? 0,
    ended,
    event: (fits) => until("an event", () => events.find(fits)),
    said: (pattern) => until(`a line like ${pattern}`, () => pattern.exec(stderr)?.[0]),
    printed: (pattern) => until(`output like ${pattern}`, () => pattern.exec(stdout)?.[0]),
    signal: (name) => void child.kill(name),
    kill,
  };
}

/** What `--output-format json` printed. */
export function reportOf({ stdout, stderr }: Ended): JsonObject {
  const parsed = parseJson(stdout);
  if (!parsed.ok || !isJsonObject(parsed.value)) throw new Error(`no report on stdout: ${stdout}\n${stderr}`);
  return parsed.value;
}
