import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { constants, hostname } from "node:os";
import { basename, dirname, join } from "node:path";
import { type Clock, SluiceError, systemClock } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import type { LaunchPlan } from "./host.ts";

export interface StartedHost {
  /** The exit code; 128 plus the signal's number if a signal ended the host. */
  readonly ended: Promise<number>;
  /** Ends the host: asks it first, and kills it after the grace period. */
  stop(): Promise<void>;
}

export interface StartOptions {
  readonly env: NodeJS.ProcessEnv;
  /** The private folder of the run. */
  readonly folder: string;
  /** Default: the terminal of this process. */
  readonly stdio?: "inherit" | "ignore";
}

/** Milliseconds between asking a host to end and killing it. */
const GRACE = 5_000;

/** Names the private folder in a host's processes, since a program may replace its arguments that name it. */
const FOLDER_VARIABLE = "SLUICE_HOST_FOLDER";

/** How long the folder of a dead gateway stays where the system does not say whether its host still uses it. */
const KEPT_MS = 86_400_000;

/**
 * A private folder for the files of one run. Codex refuses one below the system's temporary folder, so it is made in `state`. Those that
 * killed processes left there are removed, once no host that has outlived its gateway uses them.
 */
export function privateFolder(state: string, clock: Clock = systemClock): { readonly path: string; remove(): void } {
  const parent = join(state, "hosts");
  mkdirSync(parent, { recursive: true, mode: 0o700 });
  removeLeftFolders(parent, clock);
  const path = mkdtempSync(join(parent, `run-${processSpace()}-${process.pid}-`));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** They hold the token of a gateway that is gone. */
function removeLeftFolders(parent: string, clock: Clock): void {
  const space = processSpace();
  for (const entry of readdirSync(parent, { withFileTypes: true })) {
    const [, where, pid] = /^run-([0-9a-f]{12})-(\d+)-\w{6}$/.exec(entry.name) ?? [];
    // The same number may be another process in a container that shares this folder.
    if (!entry.isDirectory() || where !== space || isRunning(Number(pid))) continue;
    const path = join(parent, entry.name);
    if (!mayBeUsed(path, clock)) rmSync(path, { recursive: true, force: true });
  }
}

/** Whether a process may still need what a gateway wrote: a host runs its calls without a hook whose file is missing. */
function mayBeUsed(folder: string, clock: Clock): boolean {
  if (!existsSync("/proc/self/environ")) {
    // Another gateway may remove it at the same time.
    const { mtimeMs = 0 } = statSync(folder, { throwIfNoEntry: false }) ?? {};
    return clock.now() - mtimeMs < KEPT_MS;
  }
  const name = basename(folder);
  const files = readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((pid) => [`/proc/${pid}/cmdline`, `/proc/${pid}/environ`]);
  return files.some((file) => contentOf(file).includes(name));
}

/** Empty for a process of another user, and for one that has ended. */
function contentOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (thrown) {
    if (!(thrown instanceof Error && "code" in thrown)) throw thrown;
    return Buffer.alloc(0);
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return !(thrown instanceof Error && "code" in thrown && thrown.code === "ESRCH");
  }
}

/** Where a process id names one process: a machine, and on Linux its namespace. */
function processSpace(): string {
  const namespace = process.platform === "linux" ? readlinkSync("/proc/self/ns/pid") : "";
  return createHash("sha256").update(`${hostname()}\n${namespace}`).digest("hex").slice(0, 12);
}

/** Writes the files of a plan. Only the user can read them. */
export function writePlan({ files, links }: Pick<LaunchPlan, "files" | "links">): void {
  for (const { path, text } of files) {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(path, text, { mode: 0o600, flag: "wx" });
  }
  for (const { path, target } of links) {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    // A link to nothing is harmless: the host then finds no login, as without the gateway.
    symlinkSync(target, path);
  }
}

/** In a process that has it, the command refuses what only people may do: to answer requests, to resume runs. */
const INSIDE_RUN = { SLUICE_RUN: "gateway" } as const;

/** The environment of a host: the given one with the plan's variables. */
export function hostEnvironment(plan: Pick<LaunchPlan, "env" | "cwd">, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  // Some hosts work in the folder that PWD names, wherever they were started.
  const all = { ...env, PWD: plan.cwd, ...plan.env, ...INSIDE_RUN };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

/** Starts a host as planned. Rejects with Host `host_missing` if there is no such program. */
export async function startHost(
  plan: LaunchPlan,
  { env, folder, stdio = "inherit" }: StartOptions,
): Promise<StartedHost> {
  writePlan(plan);
  const child = spawn(plan.command, [...plan.args], {
    cwd: plan.cwd,
    env: { ...hostEnvironment(plan, env), [FOLDER_VARIABLE]: folder },
    stdio,
  });
  const ended = new Promise<number>((resolve) => {
    child.once("close", (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (cause) => {
      const text = `${plan.command} cannot be started: ${messageOf(cause)}`;
      reject(new SluiceError("Host", "host_missing", text, { cause }));
    });
  });
  return {
    ended,
    async stop() {
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), GRACE);
      await ended;
      clearTimeout(timer);
    },
  };
}
