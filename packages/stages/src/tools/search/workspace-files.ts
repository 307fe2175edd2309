import type { Workspace } from "@sluice/core";
import { displayPath } from "../files/paths.ts";
import { walk } from "./walk.ts";

/** Bounds the work in a huge tree. */
const MAX_ENTRIES = 300_000;

/** The files of a workspace, for a person to choose from. */
export interface WorkspaceFiles {
  /** Relative to the workspace, with `/`, in path order. */
  readonly files: readonly string[];
  /** Whether the listing is incomplete. */
  readonly cut: boolean;
}
/**
 * At most `most` files and links of a workspace, without what git ignores, `.git`, `node_modules` and the run store. Links are
 * listed, never followed. Rejects with `aborted` once the signal aborts.
 */
export async function workspaceFiles(
  workspace: Workspace,
  options: { readonly most: number; readonly signal: AbortSignal },
): Promise<WorkspaceFiles> {
  const files: string[] = [];
  let seen = 0;
  for await (const entry of walk({ workspace, start: workspace.root, nodeModules: false, signal: options.signal })) {
    seen += 1;
    if (seen > MAX_ENTRIES || files.length > options.most) break;
    if (entry.kind === "file" || entry.kind === "link") files.push(displayPath(entry.path, workspace));
  }
  return { files: files.slice(0, options.most), cut: seen > MAX_ENTRIES || files.length > options.most };
}
