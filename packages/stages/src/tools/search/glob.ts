import { lstatSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import type { ToolSpec, Workspace } from "@sluice/core";
import { GLOB_FACTS, GLOB_FILES, type GlobInput } from "../builtin-facts.ts";
import { withFolder } from "../files/open.ts";
import { displayPath, judgedPath, resolveReal, treeSubjects } from "../files/paths.ts";
import { asResult, failure, withFallback } from "../files/results.ts";
import { count, withRemarks } from "../files/text.ts";
import { compileGlob } from "./glob-match.ts";
import { findFiles, MAX_ENTRIES } from "./walk.ts";

export const globTool: ToolSpec<GlobInput> = {
  ...GLOB_FACTS,
  subjects: (glob, workspace) => treeSubjects(searchedFolder(glob, workspace).path, "read", workspace),
  execute: (glob, call) =>
    asResult(async () => {
      const { path, folders } = searchedFolder(glob, call.workspace);
      const within = judgedPath(path, "read", call, treeSubjects);
      // The walk begins where the pattern does, so that what git ignores on the way is left out.
      const start = resolve(within, ...folders.map(() => ".."));
      const compiled = compileGlob(glob.pattern);
      if (!compiled.ok)
        return failure("invalid_pattern", `Glob cannot use ${JSON.stringify(glob.pattern)}: ${compiled.reason}.`);
      // Reports a problem with the folder itself; unreadable folders below it are only counted.
      await withFolder(start, () => Promise.resolve());
      const { files, more, stopped, unreadable } = await findFiles({
        workspace: call.workspace,
        start,
        within,
        nodeModules: `${glob.path ?? ""}/${glob.pattern}`.includes("node_modules"),
        signal: call.signal,
        most: GLOB_FILES,
        links: true,
        glob: compiled,
      });
      const remarks = [
        ...(more ? [`Only the first ${GLOB_FILES} files are listed. Use a narrower pattern or path.`] : []),
        ...(stopped ? [`The search stopped after ${MAX_ENTRIES} entries. Use a narrower path.`] : []),
        ...(unreadable > 0 ? [`${count(unreadable, "folder")} could not be read.`] : []),
      ];
      const listing = files.map(({ path }) => displayPath(path, call.workspace)).join("\n");
      const none = `No file below ${basename(displayPath(start, call.workspace))} matches.`;
      const output = withRemarks(listing || none, remarks);
      return { ok: true, output, facts: { files: files.length, cut: more || stopped } };
    }),
};

/** What a call searches: its path, with the folders that the pattern begins with. Links are not followed, so the first one ends them. */
function searchedFolder({ path = ".", pattern }: GlobInput, { root }: Workspace): SearchedFolder {
  const folders: string[] = [];
  const base = resolveReal(path, root);
  if (!base.ok || pattern.startsWith("/")) return { path, folders };
  const names = pattern.split("/").filter((name) => name !== "" && name !== ".");
  let current = base.real;
  for (const name of pattern.endsWith("/") ? names : names.slice(0, -1)) {
    current = join(current, name);
    if (name === ".." || /[*?[{\\]/.test(name) || !isRealFolder(current)) break;
    folders.push(name);
  }
  return { path: [path, ...folders].join("/"), folders };
}

interface SearchedFolder {
  readonly path: string;
  readonly folders: readonly string[];
}

function isRealFolder(path: string): boolean {
  return withFallback(() => lstatSync(path).isDirectory(), false);
}
