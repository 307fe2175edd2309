import { basename } from "node:path";
import type { ToolSpec } from "@sluice/core";
import { z } from "zod";
import { withFolder } from "../files/open.ts";
import { displayPath, fileSubjects, judgedPath } from "../files/paths.ts";
import { asResult, count, failure, withRemarks } from "../files/results.ts";
import { compileGlob } from "./glob-match.ts";
import { findFiles, MAX_ENTRIES } from "./walk.ts";

const MAX_RESULTS = 1_000;

const input = z.strictObject({
  pattern: z.string().min(1).describe("For example **/*.ts, src/**/*.{ts,tsx} or docs/[a-m]*.md. Relative to path."),
  path: z
    .string()
    .min(1)
    .optional()
    .describe("The folder to search, absolute or relative to the workspace. Default: the workspace."),
});
type GlobInput = z.infer<typeof input>;

export const globTool: ToolSpec<GlobInput> = {
  name: "Glob",
  description: `Lists files whose path matches a glob pattern, relative to the workspace and sorted by path.
- * and ? match within one name, ** any number of folders, {a,b} alternatives, [a-z] one character. Hidden files are included. Case matters.
- Excluded: paths ignored by .gitignore, .git, and node_modules unless pattern or path names it. Links are listed, not followed.
- Lists at most ${MAX_RESULTS} files and says if there are more. Absolute patterns, .. and negation fail with invalid_pattern: use path instead.`,
  input,
  effect: "read",
  subjects: (glob, workspace) => fileSubjects(glob.path ?? ".", "read", workspace),
  execute: (glob, call) =>
    asResult(async () => {
      const start = judgedPath(glob.path ?? ".", "read", call);
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
        most: MAX_RESULTS,
        links: true,
        glob: compiled,
      });
      const remarks = [
        ...(more ? [`Only the first ${MAX_RESULTS} files are listed. Use a narrower pattern or path.`] : []),
        ...(stopped ? [`The search stopped after ${MAX_ENTRIES} entries. Use a narrower path.`] : []),
        ...(unreadable > 0 ? [`${count(unreadable, "folder")} could not be read.`] : []),
      ];
      const listing = files.map(({ path }) => displayPath(path, call.workspace)).join("\n");
      const none = `No file below ${basename(displayPath(start, call.workspace))} matches.`;
      const output = withRemarks(listing || none, remarks);
      return { ok: true, output, facts: { files: files.length, cut: more || stopped } };
    }),
};
