import { type JsonObject, SluiceError, type ToolResult } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";

/** A failure that the model reads: what is wrong and what to do. */
export function fault(code: string, message: string, detail: JsonObject = {}): SluiceError {
  return new SluiceError("ToolTerminal", code, message, { detail });
}

/** The same as a result. */
export function failure(code: string, message: string, detail: JsonObject = {}): ToolResult {
  return { ok: false, output: { code, message, ...detail } };
}

/** Runs a tool's work and returns its failure as a value. */
export async function asResult(work: () => Promise<ToolResult>): Promise<ToolResult> {
  try {
    return await work();
  } catch (thrown) {
    return asFailure(thrown);
  }
}

/** What a tool's work threw, as its result; `what` names the file that it is about. */
export function asFailure(thrown: unknown, what?: string): ToolResult {
  const { code, message, detail } = asFault(thrown, what);
  return failure(code, message, detail);
}

/** Converts a failure of a tool or the system into one with a code and a message. */
export function asFault(thrown: unknown, what = "this path"): SluiceError {
  if (thrown instanceof SluiceError) return thrown;
  const code = systemCode(thrown);
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
      return fault("not_found", `${what} does not exist. Use Glob to find the right path.`);
    case "EACCES":
    case "EPERM":
      return fault("permission_denied", `The system denied access to ${what}.`);
    case "EISDIR":
      return fault("is_folder", `${what} is a folder. Use Glob to list it.`);
    case "ELOOP":
      return fault("path_changed", `${what} became a link after the call was checked. Make the call again.`);
    case "ENOSPC":
    case "EDQUOT":
      return fault("disk_full", "The disk is full. Nothing was written.");
    case "EROFS":
      return fault("permission_denied", `${what} is on a read-only file system.`);
    default:
      return fault("io_error", `The system reported an error: ${code ?? messageOf(thrown)}.`);
  }
}

/** The `code` of a system error such as ENOENT; undefined for other errors. */
export function systemCode(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !("code" in thrown)) return undefined;
  return typeof thrown.code === "string" ? thrown.code : undefined;
}

/** The result of `work`, or `fallback` if the system reports an error such as ENOENT. Other errors are rethrown. */
export function withFallback<T, F>(work: () => T, fallback: F): T | F {
  try {
    return work();
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    return fallback;
  }
}

/** Throws `cancelled` if the signal is aborted. */
export function checkAborted(signal: AbortSignal): void {
  if (signal.aborted) throw cancelled();
}

export function cancelled(): SluiceError {
  return fault("cancelled", "The call was cancelled before it finished.");
}
