import { type JsonObject, messageOf, SluiceError, type ToolResult } from "@sluice/core";

/** A failure the model is told about: what is wrong and what to do. */
export function fault(code: string, message: string, detail: JsonObject = {}): SluiceError {
  return new SluiceError("ToolTerminal", code, message, { detail });
}

/** The typed error a model reads. */
export function failure(code: string, message: string, detail: JsonObject = {}): ToolResult {
  return { ok: false, output: { code, message, ...detail } };
}

/** Runs a tool's work; what went wrong in the domain comes back as a value, as the seam asks. */
export async function asResult(work: () => Promise<ToolResult>): Promise<ToolResult> {
  try {
    return await work();
  } catch (thrown) {
    const known = asFault(thrown);
    return failure(known.code, known.message, known.detail);
  }
}

/** Any failure of a tool as a typed one: what the system said becomes a code of ours. */
export function asFault(thrown: unknown, what = "this path"): SluiceError {
  if (thrown instanceof SluiceError) return thrown;
  const code = systemCode(thrown);
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
      return fault("not_found", `There is nothing at ${what}. Use Glob to find the right path.`);
    case "EACCES":
    case "EPERM":
      return fault("permission_denied", `The system does not permit access to ${what}.`);
    case "EISDIR":
      return fault("is_folder", `${what} is a folder. Use Glob to list it.`);
    case "ELOOP":
      return fault("path_changed", `${what} became a link after it was judged. Make the call again.`);
    case "ENOSPC":
    case "EDQUOT":
      return fault("disk_full", "The disk is full: nothing was written.");
    case "EROFS":
      return fault("permission_denied", `${what} is on a file system that cannot be written.`);
    default:
      return fault("io_error", `The system could not do it: ${code ?? messageOf(thrown)}.`);
  }
}

/** The `code` of a system error (ENOENT, …), or undefined. */
export function systemCode(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !("code" in thrown)) return undefined;
  return typeof thrown.code === "string" ? thrown.code : undefined;
}

/** Refuses to begin when the run was stopped meanwhile. */
export function checkAborted(signal: AbortSignal): void {
  if (signal.aborted) throw fault("cancelled", "The call was stopped before it finished.");
}
