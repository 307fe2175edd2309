import type { ToolSpec } from "@sluice/core";
import { z } from "zod";
import { executeChange, measureChange, prepareChange, type Rewrite } from "./change.ts";
import { filePath, fileSubjects } from "./paths.ts";
import { recoverWrite } from "./replace-file.ts";
import { count } from "./results.ts";
import { isCrlf, splitLines, toCrlf } from "./text.ts";

const input = z.strictObject({
  file_path: filePath,
  content: z.string().describe("The complete new content."),
});
type WriteInput = z.infer<typeof input>;

export const writeTool: ToolSpec<WriteInput> = {
  name: "Write",
  description: `Writes a complete text file (UTF-8, at most 10 MB): creates it, with missing parent folders, or replaces it. To change a part, use Edit.
- To replace an existing file, Read it first in this stage. If you have not, or if it has changed since, the call fails with stale_file.
- An existing file keeps its mode, byte order mark and CR LF line endings. The write is atomic.
- content must not contain a "[redacted:" marker (redacted_content), which replaces a secret in the file.`,
  input,
  effect: "write",
  subjects: (write, workspace) => fileSubjects(write.file_path, "write", workspace),
  measure: (write, scene) => measureChange(write.file_path, rewriting(write.content), scene),
  prepare: (write, call) => prepareChange(write.file_path, rewriting(write.content), call),
  execute: (write, call) => executeChange(write.file_path, rewriting(write.content), call),
  recover: recoverWrite,
};

function rewriting(content: string): Rewrite {
  return (before, shown) => {
    const text = before !== undefined && isCrlf(before.text) ? toCrlf(content) : content;
    const lines = count(splitLines(text).length, "line");
    return {
      after: { text, bom: before?.bom ?? false },
      report: ({ added, removed }) =>
        before === undefined
          ? `Created ${shown} (${lines}).`
          : `Replaced ${shown} (${lines}; ${count(added, "line")} added, ${count(removed, "line")} removed).`,
    };
  };
}
