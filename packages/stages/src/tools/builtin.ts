import { defineTool, type Tool } from "@sluice/core";
import { askUserTool } from "./ask-user.ts";
import { type BashOptions, bashTool } from "./bash/bash-tool.ts";
import { editTool } from "./files/edit.ts";
import { readTool } from "./files/read.ts";
import { writeTool } from "./files/write.ts";
import { globTool } from "./search/glob.ts";
import { grepTool } from "./search/grep.ts";

/** The tools that come with Sluice. Made anew, so that a session owns its own. */
export function builtinTools(bash: BashOptions = {}): readonly Tool[] {
  return [
    defineTool(readTool),
    defineTool(grepTool()),
    defineTool(globTool),
    defineTool(editTool),
    defineTool(writeTool),
    defineTool(bashTool(bash)),
    defineTool(askUserTool),
  ];
}
