import { defineTool, type Tool } from "@sluice/core";
import { lazyTool } from "@sluice/core/runtime";
import { askUserTool } from "./ask-user.ts";
import type { BashOptions } from "./bash/bash-tool.ts";
import {
  BASH_FACTS,
  EDIT_FACTS,
  GLOB_FACTS,
  GREP_FACTS,
  READ_FACTS,
  READ_SKILL_FACTS,
  WRITE_FACTS,
} from "./builtin-facts.ts";

/** New instances of the built-in tools, one set per session. */
export function builtinTools(bash: BashOptions = {}): readonly Tool[] {
  return [
    lazyTool(READ_FACTS, async () => (await import("./files/read.ts")).readTool),
    lazyTool(GREP_FACTS, async () => (await import("./search/grep.ts")).grepTool()),
    lazyTool(GLOB_FACTS, async () => (await import("./search/glob.ts")).globTool),
    lazyTool(EDIT_FACTS, async () => (await import("./files/edit.ts")).editTool),
    lazyTool(WRITE_FACTS, async () => (await import("./files/write.ts")).writeTool),
    lazyTool(BASH_FACTS, async () => (await import("./bash/bash-tool.ts")).bashTool(bash)),
    defineTool(askUserTool),
    lazyTool(READ_SKILL_FACTS, async () => (await import("./skills/read-skill.ts")).readSkillTool),
  ];
}
