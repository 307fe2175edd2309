import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { type Clock, systemClock } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { coveredDescriptors } from "../files/descriptors.ts";
import { fault, systemCode, withFallback } from "../files/results.ts";
import { type ProcessLimits, statOf, type UsageLimit, watchUsage, workingThread } from "./process-usage.ts";

/** Between SIGTERM and SIGKILL. */
const GRACE_MS = 2_000;
/** For a killed process to disappear, and for its last output. */
const SETTLE_MS = 1_000;
const POLL_MS = 20;
/** Names the call of a process, so that recovery finds processes that outlived their run. */
export const CALL_VARIABLE = "SLUICE_CALL";
/** Names the run of a process; in it the command refuses to answer, cancel and resume. */
export const RUN_VARIABLE = "SLUICE_RUN";
/** Not looked up in PATH, which a workspace may extend. Another shell would not read a line as the gate did. */
export const SHELLS: readonly string[] = [
  "/bin/bash",
  "/usr/bin/bash",
  "/usr/local/bin/bash",
  "/opt/homebrew/bin/bash",
  "/run/current-system/sw/bin/bash",
];

export interface ProcessOptions {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** An open file to read from, or the text itself; empty when omitted. */
  readonly stdin?: number | string;
  /** Stops the whole process group. */
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** Receives decoded pieces in order. Returning false stops the process. */
  readonly stdout: (text: string) => boolean;
  readonly stderr: (text: string) => boolean;
  readonly limits?: ProcessLimits;
  /** Receives what the process writes to descriptor 3, which exists only if this is given. */
  readonly status?: (text: string) => void;
  /**
   * For a process that creates a sandbox: the first process inside, once it exists. It leads a session of its own and receives
   * SIGTERM for everything inside, which ends with the outer process in any case.
   */
  readonly inside?: () => number | undefined;
  readonly clock?: Clock;
}

/** How a process ended, and what stopped it. */
export interface ProcessEnd {
  readonly by: "itself" | "timeout" | "abort" | "reader" | "output" | UsageLimit;
  readonly exitCode: number | null;
  /** The signal that killed it. */
  readonly killed: string | null;
  /** Whether other processes of its group were still running; they were stopped. */
  readonly leftOthers: boolean;
}

/**
 * Runs a process as the leader of its own group and waits for its end. Remaining processes of the group are stopped, so none
 * keeps the call open or outlives it. Throws `spawn_failed` if it cannot be started.
 */
export async function runProcess(options: ProcessOptions): Promise<ProcessEnd> {
  const clock = options.clock ?? systemClock;
  if (options.signal.aborted) return { by: "abort", exitCode: null, killed: null, leftOthers: false };
  const child = await start(options);
  const pid = child.pid;
  if (pid === undefined) throw fault("spawn_failed", `${options.file} could not be started.`);
  let by: ProcessEnd["by"] = "itself";
  let ending: Promise<void> | undefined;
  const exit = Promise.withResolvers<{ readonly exitCode: number | null; readonly killed: string | null }>();
  child.once("exit", (exitCode, killed) => exit.resolve({ exitCode, killed }));
  const end = (reason: ProcessEnd["by"]): void => {
    if (ending !== undefined) return;
    by = reason;
    // A process that fills the memory gets no grace.
    const ended = reason === "memory" ? killGroup(pid, clock) : endGroup(pid, clock, options.inside?.() ?? pid);
    ending = whileProcessLives(pid, ended);
    // A process that is stuck in the kernel cannot be killed and is abandoned.
    const giveUp = (): void => exit.resolve({ exitCode: null, killed: "SIGKILL" });
    void ending.then(() => within(SETTLE_MS, exit.promise, clock)).then(giveUp, giveUp);
  };
  if (typeof options.stdin === "string") write(child.stdin, options.stdin);
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  let bytesLeft = options.limits?.outputBytes ?? Number.POSITIVE_INFINITY;
  const counted = (bytes: number): boolean => {
    bytesLeft -= bytes;
    if (bytesLeft < 0) end("output");
    return bytesLeft >= 0;
  };
  listen(child.stdout, options.stdout, () => end("reader"), counted);
  listen(child.stderr, options.stderr, () => end("reader"), counted);
  if (options.status !== undefined) listenToStatus(child.stdio[3], options.status);
  const stopWatching = watchUsage({ pid, inside: options.inside, limits: options.limits ?? {}, clock, over: end });
  const onAbort = (): void => end("abort");
  options.signal.addEventListener("abort", onAbort, { once: true });
  if (options.signal.aborted) onAbort();
  const cancelTimeout = clock.after(options.timeoutMs, () => end("timeout"));
  try {
    const how = await exit.promise;
    cancelTimeout();
    stopWatching();
    const remain = ending === undefined && signalGroup(pid, 0);
    const leftOthers = remain && groupLives(pid);
    await (remain ? endGroup(pid, clock) : ending);
    // A process that left the group may keep the pipes open.
    await within(SETTLE_MS, closed, clock);
    return { by, ...how, leftOthers };
  } finally {
    cancelTimeout();
    stopWatching();
    options.signal.removeEventListener("abort", onAbort);
    child.stdin?.destroy();
    child.stdout?.destroy();
    child.stderr?.destroy();
  }
}

async function start({ file, args, cwd, env, stdin, status, inside }: ProcessOptions): Promise<ChildProcess> {
  const own: readonly ("ignore" | "pipe" | number)[] = [
    typeof stdin === "string" ? "pipe" : (stdin ?? "ignore"),
    "pipe",
    "pipe",
    ...(status === undefined ? [] : (["pipe"] as const)),
  ];
  try {
    return await spawnLeader(file, args, { cwd, env, stdio: own, covers: inside !== undefined });
  } catch (thrown) {
    throw fault("spawn_failed", `${file} could not be started: ${systemCode(thrown) ?? messageOf(thrown)}.`);
  }
}

interface LeaderOptions extends Pick<ProcessOptions, "cwd" | "env"> {
  readonly stdio: readonly ("ignore" | "pipe" | number)[];
  /** Whether it gets no further descriptor of this process. */
  readonly covers: boolean;
}

/** Starts a process as the leader of its own group. Rejects with the system's error if it cannot be started. */
export async function spawnLeader(
  file: string,
  args: readonly string[],
  { cwd, env, stdio, covers }: LeaderOptions,
): Promise<ChildProcess> {
  const covered = covers ? coveredDescriptors(stdio.length) : undefined;
  const started = Promise.withResolvers<ChildProcess>();
  try {
    const child = spawn(file, args, {
      cwd,
      env,
      detached: process.platform !== "win32",
      stdio: [...stdio, ...(covered?.stdio ?? [])],
      windowsHide: true,
    });
    child.on("error", started.reject);
    child.once("spawn", () => started.resolve(child));
  } finally {
    covered?.close();
  }
  return await started.promise;
}

function listen(
  stream: ChildProcess["stdout"],
  onText: (text: string) => boolean,
  enough: () => void,
  counted: (bytes: number) => boolean,
): void {
  const decoder = new TextDecoder();
  let open = true;
  const give = (text: string): void => {
    if (!open || text === "") return;
    open = onText(text);
    if (!open) enough();
  };
  stream?.on("data", (chunk: Buffer) => {
    if (counted(chunk.length)) give(decoder.decode(chunk, { stream: true }));
  });
  stream?.once("end", () => give(decoder.decode()));
  // A broken pipe only ends the output.
  stream?.on("error", () => give(decoder.decode()));
}

function write(stream: ChildProcess["stdin"], text: string): void {
  // A process need not read what it gets, or all of it.
  stream?.on("error", () => undefined);
  stream?.end(text);
}

function listenToStatus(stream: ChildProcess["stdio"][3], onText: (text: string) => void): void {
  stream?.on("data", (chunk: Buffer) => onText(chunk.toString()));
  // The end of the process reports more than a broken pipe.
  stream?.on("error", () => undefined);
}

/** Kills a group that ignores SIGTERM even if this process exits before the grace is over. */
async function whileProcessLives(pid: number, ending: Promise<void>): Promise<void> {
  const onExit = (): void => void signalGroup(pid, "SIGKILL");
  // One listener per concurrent call is not a leak.
  process.setMaxListeners(process.getMaxListeners() + 1);
  process.on("exit", onExit);
  try {
    await ending;
  } finally {
    process.off("exit", onExit);
    process.setMaxListeners(process.getMaxListeners() - 1);
  }
}

/** Sends SIGTERM to a group, or to the process that represents it, and SIGKILL after the grace. */
export async function endGroup(pid: number, clock: Clock, asked = pid): Promise<void> {
  // A sandbox that does not exist yet has no process inside.
  if (!signalGroup(asked, "SIGTERM") && asked !== pid) return await killGroup(pid, clock);
  await gone(watchGroup(pid), GRACE_MS, clock);
  // Also if it is gone: a process that was being forked may have been missed.
  await killGroup(pid, clock);
}

async function killGroup(pid: number, clock: Clock): Promise<void> {
  if (signalGroup(pid, "SIGKILL")) await gone(watchGroup(pid), SETTLE_MS, clock);
}

/** Whether any process of the group works. */
export function groupLives(pid: number): boolean {
  return !watchGroup(pid)();
}

/**
 * Says whether the group is gone. A process that only waits to be reaped is: in many containers none reaps those whose parent ended.
 * Where that cannot be read, it still counts.
 */
function watchGroup(pid: number): () => boolean {
  const canRead = statOf("/proc/self").length > 1;
  let known = pid;
  const works = (each: number): boolean => {
    const folder = `/proc/${each}`;
    return statOf(folder)[2] === String(pid) && workingThread(folder) !== undefined;
  };
  return () => {
    if (!signalGroup(pid, 0)) return true;
    if (!canRead || works(known)) return false;
    const found = processNames().find((name) => works(Number(name)));
    known = Number(found ?? pid);
    return found === undefined;
  };
}

/** Returns whether there was a process to signal. */
export function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  // Windows has no process groups: only the leader is signalled.
  return sendSignal(process.platform === "win32" ? pid : -pid, signal);
}

function sendSignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (thrown) {
    const code = systemCode(thrown);
    // EPERM: the number now belongs to another user's process.
    if (code === "ESRCH" || code === "EPERM") return false;
    throw thrown;
  }
}

async function gone(isGone: () => boolean | Promise<boolean>, ms: number, clock: Clock): Promise<boolean> {
  for (let left = ms; ; left -= POLL_MS) {
    if (await isGone()) return true;
    if (left <= 0) return false;
    await new Promise<void>((resolve) => clock.after(Math.min(POLL_MS, left), resolve));
  }
}

/** Waits for `done`, at most this long. */
export async function within(ms: number, done: Promise<unknown>, clock: Clock): Promise<void> {
  let cancel = (): void => undefined;
  const late = new Promise<void>((resolve) => {
    cancel = clock.after(ms, resolve);
  });
  await Promise.race([done, late]);
  cancel();
}

/**
 * Stops every process whose environment names this call: children that left their group, or outlived a killed run. Linux only.
 */
export function endSurvivors(idempotencyKey: string, clock: Clock = systemClock): Promise<void> {
  const mark = marked(CALL_VARIABLE, idempotencyKey);
  return endAll((environment) => environment.includes(`${mark}\0`), clock);
}

/** The same for a run and its child runs, after their process has ended. */
export function endProcessesOf(runId: string): Promise<void> {
  const mark = marked(RUN_VARIABLE, runId);
  return endAll((environment) => [`${mark}\0`, `${mark}/`].some((own) => environment.includes(own)), systemClock);
}

/** Like `endSurvivors`, but at once, for when this process exits. */
export function killSurvivors(idempotencyKey: string): void {
  if (process.platform !== "linux") return;
  const mark = `${marked(CALL_VARIABLE, idempotencyKey)}\0`;
  for (const name of processNames()) if (`\0${environmentOf(name)}`.includes(mark)) sendSignal(Number(name), "SIGKILL");
}

async function endAll(isMeant: (environment: string) => boolean, clock: Clock): Promise<void> {
  const first = await survivors(isMeant);
  if (first.length === 0) return;
  for (const pid of first) sendSignal(pid, "SIGTERM");
  if (await gone(async () => (await survivors(isMeant)).length === 0, GRACE_MS, clock)) return;
  // Repeated, since a process may start another while it is being killed.
  await gone(
    async () => {
      const left = await survivors(isMeant);
      for (const pid of left) sendSignal(pid, "SIGKILL");
      return left.length === 0;
    },
    SETTLE_MS,
    clock,
  );
}

async function survivors(isMeant: (environment: string) => boolean): Promise<readonly number[]> {
  if (process.platform !== "linux") return [];
  const found: number[] = [];
  for (const [index, name] of processNames().entries()) {
    if (index % 200 === 199) await setImmediate();
    if (isMeant(`\0${environmentOf(name)}`)) found.push(Number(name));
  }
  return found;
}

function processNames(): readonly string[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
}

/** A variable as the bytes of /proc show it. */
function marked(variable: string, value: string): string {
  return Buffer.from(`\0${variable}=${value}`).toString("latin1");
}

/** Empty for another user's process and one that has ended. */
function environmentOf(pid: string): string {
  return withFallback(() => readFileSync(`/proc/${pid}/environ`, "latin1"), "");
}
