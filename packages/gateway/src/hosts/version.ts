import { execFile } from "node:child_process";

/** Milliseconds. Some hosts unpack themselves at their first start. */
const VERSION_TIMEOUT = 60_000;

/** The version that a host reports; undefined if it is not installed or reports none. */
export function readVersion(command: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile(command, ["--version"], { env, timeout: VERSION_TIMEOUT, maxBuffer: 64 * 1024 }, (_error, stdout) => {
      resolve(versionIn(stdout));
    });
  });
}

export function versionIn(text: string): string | undefined {
  return /(?:^|[^\d.])(\d{1,9}\.\d{1,9}\.\d{1,9})(?![\d.]*\d)/.exec(text)?.[1];
}

/** Whether a version is within the measured ones, both ends included. */
export function isMeasured(version: string | undefined, [from, to]: readonly [from: string, to: string]): boolean {
  return version !== undefined && compare(from, version) <= 0 && compare(version, to) <= 0;
}

function compare(a: string, b: string): number {
  const [left, right] = [a, b].map((one) => one.split(".").map(Number));
  for (const [index, number] of (left ?? []).entries()) {
    const difference = number - (right?.[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
