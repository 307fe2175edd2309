import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Clock } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import type { NotifyOption } from "../project/fields/notify-option.ts";

export interface TargetOptions {
  /** The workspace, in which programs are started. */
  readonly cwd: string;
  /** The environment of programs. */
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
  /** Called with the first failure. */
  readonly onFault: (message: string) => void;
}

/** A program or an address. It gets one notification after the other, each at most once. */
export interface Target {
  send(body: string): void;
  /** Waits for what is being sent, for so long. A request is then aborted, and a program is left to its end. */
  close(ms: number): Promise<void>;
}

/** Of one notification. */
const TIMEOUT_MS = 10_000;
/** Notifications that wait for earlier ones; further ones are dropped. */
const MOST_WAITING = 100;

export function createTarget({ command, url }: NotifyOption, { cwd, env, clock, onFault }: TargetOptions): Target {
  const closing = new AbortController();
  const [file = "", ...args] = command ?? [];
  // An address may hold a secret in its path.
  const name = url === undefined ? file : new URL(url).host;
  let reported = false;
  const failed = (why: string): void => {
    if (reported) return;
    reported = true;
    onFault(`a notification to ${name} failed: ${why}; later failures are not reported`);
  };
  const deliver = async (body: string): Promise<void> => {
    const late = new AbortController();
    const disarm = clock.after(TIMEOUT_MS, () => late.abort());
    try {
      if (url === undefined) await start(file, args, { cwd, env, body, late: late.signal, left: closing.signal });
      else await post(url, body, AbortSignal.any([late.signal, closing.signal]));
    } catch (thrown) {
      failed(late.signal.aborted ? `no end within ${TIMEOUT_MS / 1_000} s` : messageOf(thrown));
    } finally {
      disarm();
    }
  };

  let waiting = 0;
  let last = Promise.resolve();
  return {
    send: (body) => {
      if (waiting >= MOST_WAITING) {
        failed(`${MOST_WAITING} notifications wait already`);
        return;
      }
      waiting += 1;
      last = last.then(async () => {
        if (closing.signal.aborted) failed("the run ended before it was sent");
        else await deliver(body);
        waiting -= 1;
      });
    },
    close: async (ms) => {
      const { promise: over, resolve } = Promise.withResolvers<void>();
      const disarm = clock.after(ms, resolve);
      await Promise.race([last, over]);
      disarm();
      closing.abort(new Error("the run ended before it was sent"));
    },
  };
}

async function post(url: string, body: string, signal: AbortSignal): Promise<void> {
  const headers = { "content-type": "application/json", "user-agent": "sluice" };
  const response = await fetch(url, { method: "POST", body, headers, signal, redirect: "manual" });
  await response.body?.cancel();
  if (response.status >= 300 && response.status < 400)
    throw new Error(`it answered ${response.status}, and redirects are not followed`);
  if (!response.ok) throw new Error(`it answered ${response.status}`);
}

interface Start {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly body: string;
  /** Ends the program. */
  readonly late: AbortSignal;
  /** Leaves the program to its end. */
  readonly left: AbortSignal;
}

/** Starts a program in a process group of its own, and waits for its end. */
async function start(file: string, args: readonly string[], { cwd, env, body, late, left }: Start): Promise<void> {
  const child = spawn(file, args, { cwd, env, stdio: ["pipe", "ignore", "ignore"], detached: true });
  // It may end without reading.
  child.stdin.on("error", () => undefined);
  child.stdin.end(body);
  const leave = (): void => child.unref();
  const end = (): void => {
    if (child.pid !== undefined) killGroup(child.pid);
  };
  left.addEventListener("abort", leave, { once: true });
  late.addEventListener("abort", end, { once: true });
  try {
    await once(child, "exit");
    const { exitCode, signalCode } = child;
    if (exitCode !== 0)
      throw new Error(signalCode === null ? `it ended with exit code ${exitCode}` : `${signalCode} ended it`);
  } finally {
    left.removeEventListener("abort", leave);
    late.removeEventListener("abort", end);
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch (thrown) {
    // It has ended by itself.
    if (!(thrown instanceof Error && "code" in thrown && thrown.code === "ESRCH")) throw thrown;
  }
}
