import { defineTool, type Json, type Tool, type ToolCall, type ToolSpec } from "@sluice/core";
import { askUserTool } from "./ask-user.ts";
import type { BashOptions } from "./bash/bash-tool.ts";
import {
  BASH_FACTS,
  EDIT_FACTS,
  GLOB_FACTS,
  GREP_FACTS,
  READ_FACTS,
  READ_SKILL_FACTS,
  type ToolFacts,
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

/** A tool whose code is loaded with its first call. */
function lazyTool<I>(facts: ToolFacts<I>, load: () => Promise<ToolSpec<I>>): Tool {
  const notLoaded = (): never => {
    throw new Error(`the code of ${facts.name} is not loaded`);
  };
  const { bind: _bind, ...described } = defineTool<I>({ ...facts, subjects: notLoaded, execute: notLoaded });
  let loading: Promise<Tool> | undefined;
  const loaded = (): Promise<Tool> => (loading ??= load().then(defineTool));
  return Object.freeze({
    ...described,
    bind: async (input: Json) => (await loaded()).bind(input),
    recover: async (intent: Json, call: ToolCall) => (await loaded()).recover?.(intent, call) ?? "unknown",
  });
}
