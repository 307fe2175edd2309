import { defineTool, type Tool, type ToolSpec } from "@sluice/core";
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
    lazyTool(EDIT_FACTS, async () => (await import("./files/edit.ts")).editTool, { edits: true }),
    lazyTool(WRITE_FACTS, async () => (await import("./files/write.ts")).writeTool, { edits: true }),
    lazyTool(BASH_FACTS, async () => (await import("./bash/bash-tool.ts")).bashTool(bash)),
    defineTool(askUserTool),
    lazyTool(READ_SKILL_FACTS, async () => (await import("./skills/read-skill.ts")).readSkillTool),
  ];
}

/**
 * A tool whose code is loaded with its first call. `edits` says that it measures, prepares and recovers its calls: the gate has
 * to know that before.
 */
function lazyTool<I>(
  facts: ToolFacts<I>,
  load: () => Promise<ToolSpec<I>>,
  { edits = false }: { readonly edits?: boolean } = {},
): Tool {
  let loaded: ToolSpec<I> | undefined;
  const code = async (): Promise<ToolSpec<I>> => (loaded ??= await load());
  const part = <K extends keyof ToolSpec<I>>(spec: ToolSpec<I>, key: K): NonNullable<ToolSpec<I>[K]> => {
    const found = spec[key];
    if (found === undefined || found === null) throw new Error(`the tool ${facts.name} has no ${key}`);
    return found;
  };
  const editing: Pick<ToolSpec<I>, "measure" | "prepare" | "recover"> = {
    measure: async (input, scene) => await part(await code(), "measure")(input, scene),
    prepare: async (input, call) => await part(await code(), "prepare")(input, call),
    recover: async (intent, call) => await part(await code(), "recover")(intent, call),
  };
  return defineTool<I>({
    ...facts,
    ready: async () => await (await code()).ready?.(),
    subjects: (input, workspace, scene) => {
      if (loaded === undefined) throw new Error("its code is not loaded");
      return loaded.subjects(input, workspace, scene);
    },
    execute: async (input, call) => await (await code()).execute(input, call),
    ...(edits ? editing : {}),
  });
}
