import { basename } from "node:path";
import type { ToolSpec } from "@sluice/core";
import { GLOB_FACTS, GLOB_FILES, type GlobInput } from "../builtin-facts.ts";
import { withFolder } from "../files/open.ts";
import { displayPath, judgedPath, treeSubjects } from "../files/paths.ts";
import { asResult, failure } from "../files/results.ts";
import { count, withRemarks } from "../files/text.ts";
import { compileGlob } from "./glob-match.ts";
import { findFiles, MAX_ENTRIES } from "./walk.ts";

export const globTool: ToolSpec<GlobInput> = {
  ...GLOB_FACTS,
  subjects: (glob, workspace) => treeSubjects(glob.path ?? ".", "read", workspace),
  execute: (glob, call) =>
    asResult(async () => {
      const start = judgedPath(glob.path ?? ".", "read", call, treeSubjects);
      const compiled = compileGlob(glob.pattern);
      if (!compiled.ok)
        return failure("invalid_pattern", `Glob cannot use ${JSON.stringify(glob.pattern)}: ${compiled.reason}.`);
      // Reports a problem with the folder itself; unreadable folders below it are only counted.
      await withFolder(start, () => Promise.resolve());
      const { files, more, stopped, unreadable } = await findFiles({
        workspace: call.workspace,
        start,
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
