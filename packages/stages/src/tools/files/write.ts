import type { ToolSpec } from "@sluice/core";
import { z } from "zod";
import { executeChange, prepareChange, type Rewrite } from "./change.ts";
import { count } from "./output.ts";
import { fileSubjects } from "./paths.ts";
import { recoverWrite } from "./replace-file.ts";
import { isCrlf, splitLines, toCrlf } from "./text.ts";

const input = z.strictObject({
  file_path: z.string().min(1).describe("The file, absolute or relative to the workspace."),
  content: z.string().describe("The whole new content."),
});
type WriteInput = z.infer<typeof input>;

export const writeTool: ToolSpec<WriteInput> = {
  name: "Write",
  description: `Writes a whole text file (UTF-8, at most 10 MB). Creates it and missing folders above it, or replaces all of it. To change a part, use Edit.
- To replace an existing file, Read it first in this stage; otherwise, or if it changed since, the error is stale_file.
- An existing file keeps its mode, its byte order mark and its CR LF line endings. The file is written whole or not at all.
- content must not hold a "[redacted:" marker (redacted_content): it stands for a secret in the file.`,
  input,
  effect: "write",
  subjects: (write, workspace) => fileSubjects(write.file_path, "write", workspace),
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
