import { mkdirSync } from "node:fs";
import { type Clock, SluiceError, systemClock } from "@sluice/core";
import { type HostName, hookFolder } from "@sluice/gateway";
import { type ProcessLock, takeLock } from "@sluice/sqlite";

/** How long an earlier gateway may take to end: it waits for its last answers and suspends its run. */
const ENDS_WITHIN_MS = 5_000;
const LOOK_AGAIN_MS = 100;

/** The folder whose hooks are answered, and the user's folder for Sluice's state. */
export interface HookedFolder {
  readonly workspace: string;
  readonly stateFolder: string;
}

/**
 * Takes the right to answer the hooks of a host in a folder, which one gateway has at a time: a second one would take the calls of the
 * first one's session. Throws Host `hooks_served` while another gateway has it.
 */
export async function holdHooks(
  host: HostName,
  { workspace, stateFolder }: HookedFolder,
  clock: Clock = systemClock,
): Promise<ProcessLock> {
  const folder = hookFolder(stateFolder, workspace);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (let left = ENDS_WITHIN_MS; ; left -= LOOK_AGAIN_MS) {
    const taken = takeLock(folder, host);
    if (typeof taken !== "string") return taken;
    if (left <= 0) {
      const message = `${taken} answers the hooks of ${host} in ${workspace} already; end that gateway or its session first, or work in another folder, such as a worktree`;
      throw new SluiceError("Host", "hooks_served", message);
    }
    await new Promise<void>((resolve) => void clock.after(LOOK_AGAIN_MS, resolve));
  }
}
