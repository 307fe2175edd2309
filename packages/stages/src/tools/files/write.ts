import type { ToolSpec } from "@sluice/core";
import { WRITE_FACTS, type WriteInput } from "../builtin-facts.ts";
import { executeChange, measureChange, prepareChange, type Rewrite } from "./change.ts";
import { fileSubjects } from "./paths.ts";
import { recoverWrite } from "./replace-file.ts";
import { count, isCrlf, splitLines, toCrlf } from "./text.ts";

export const writeTool: ToolSpec<WriteInput> = {
  ...WRITE_FACTS,
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
