import { defineTool, type Tool, type ToolSpec } from "@sluice/core";
import type { ToolFacts } from "./builtin-facts.ts";

/**
 * A tool whose code is loaded with its first call. `edits` says that it measures, prepares and recovers its calls: the gate has
 * to know that before.
 */
export function lazyTool<I>(
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
