import type { Workspace } from "@sluice/core";
import { displayPath } from "../files/paths.ts";
import { walk } from "./walk.ts";

/** Entries looked at, so that a huge tree cannot keep a listing busy for ever. */
const MAX_ENTRIES = 300_000;

/** What is in a workspace, for people to choose from. */
export interface WorkspaceFiles {
  /** Relative to the workspace, with `/`, in path order. */
  readonly files: readonly string[];
  /** Whether there are more than were asked for, or too many to look at. */
  readonly cut: boolean;
}

/**
 * Files and links of a workspace, at most `most`, without what git ignores, `.git`, `node_modules` and the run store. Links
 * are named, never followed. Rejects with `aborted` once the signal is.
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
