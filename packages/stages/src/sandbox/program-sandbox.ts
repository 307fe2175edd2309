import type { Clock } from "@sluice/core";
import { programPaths, projectOf, type ServerProcess } from "../tools/mcp/transport/server-wall.ts";
import type { SandboxedProgram, SandboxMode } from "../tools/sandbox.ts";
import { lazySandbox } from "./session-sandbox.ts";

/** What a long-lived program may see and change besides its code and the workspace, which it may read. Absolute paths. */
export interface ProgramReach {
  /** The workspace: links resolved. */
  readonly root: string;
  readonly mode: SandboxMode;
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  /** Hidden paths. */
  readonly absent: readonly string[];
  readonly clock: Clock;
}

/**
 * The command that starts a program in a sandbox with a read-only workspace and the machine's network. Undefined in mode `off`, and
 * in mode `try` where no sandbox can be built. Throws Environment `sandbox_missing` in mode `require`, and Error for a program
 * that does not exist.
 */
export async function sandboxedProgram(
  process: ServerProcess,
  { root, mode, reads, writes, absent, clock }: ProgramReach,
): Promise<SandboxedProgram | undefined> {
  if (mode === "off") return undefined;
  const sandbox = lazySandbox({ mode, root, absent: () => absent, clock });
  await sandbox.prove();
  if (sandbox.wall === undefined) return undefined;
  const { code } = programPaths(process, root);
  return await sandbox.wrap(process, {
    root,
    reads: ["", ...code.map(projectOf), ...reads],
    writes,
    scratch: [],
    network: true,
    absent,
    readOnly: code,
  });
}
