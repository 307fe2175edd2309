import type { TextMask, ToolEffect } from "@sluice/core";
import { digestOf, messageOf } from "@sluice/core/runtime";
import { maskedHead } from "../../secrets/cut-text.ts";
import type { McpSettings } from "./config.ts";
import { definitionDigest, type ListedTool, readDefinition, type ToolDefinition } from "./definition.ts";
import { matchesName, prefixOf, toolNameFault } from "./names.ts";

/** Characters that the schemas and descriptions of a server may add to every model request. */
const MOST_CHARACTERS = 400_000;

/** A server's tool as a session offers it. */
export interface OfferedTool extends ToolDefinition {
  /** `mcp__<server>__<tool>`. */
  readonly name: string;
  /** The server's own name of it. */
  readonly own: string;
  readonly effect: ToolEffect;
  /** Recorded with a run: changes if a resumed run would get a different tool. */
  readonly pin: string;
}

/** The tools that can be offered unchanged, and why the others cannot. */
export function offeredOf(
  { name: server, reads }: McpSettings,
  listed: readonly ListedTool[],
  secrets: Pick<TextMask, "text">,
): { readonly tools: readonly OfferedTool[]; readonly faults: readonly string[] } {
  const tools: OfferedTool[] = [];
  const faults: string[] = [];
  let characters = 0;
  for (const tool of listed) {
    const own = tool.name;
    try {
      if (listed.filter(({ name }) => name === own).length > 1)
        throw new Error("the server has several tools of this name");
      const fault = toolNameFault(server, own);
      if (fault !== undefined) throw new Error(fault);
      const definition = readDefinition(tool, secrets);
      characters += definition.description.length + JSON.stringify(definition.shown).length;
      if (characters > MOST_CHARACTERS)
        throw new Error("the descriptions of this server's tools are too long in total");
      const effect = reads.some((pattern) => matchesName(pattern, own)) ? "read" : "write";
      const pin = digestOf([definition.digest, effect]);
      tools.push({ ...definition, name: `${prefixOf(server)}${own}`, own, effect, pin });
    } catch (thrown) {
      faults.push(`its tool ${JSON.stringify(maskedHead(own, 100, secrets))} is excluded: ${messageOf(thrown)}`);
    }
  }
  for (const pattern of reads)
    if (!listed.some(({ name }) => matchesName(pattern, name)))
      faults.push(`${JSON.stringify(pattern)} of reads matches none of its tools`);
  return { tools, faults };
}

/** How offered tools differ from a later list, to complete a sentence, by the server's names. */
export function differences(
  tools: readonly OfferedTool[],
  listed: readonly ListedTool[],
): readonly (readonly [own: string, how: string])[] {
  return tools.flatMap(({ own, digest }) => {
    const how = difference(own, digest, listed);
    return how === undefined ? [] : [[own, how] as const];
  });
}

function difference(own: string, digest: string, listed: readonly ListedTool[]): string | undefined {
  const [tool, twin] = listed.filter(({ name }) => name === own);
  if (tool === undefined) return "was removed";
  if (twin !== undefined) return "was listed twice";
  try {
    if (definitionDigest(tool) === digest) return undefined;
  } catch {
    // Without a digest it differs from a tool that had one.
  }
  return "changed its description or schema";
}
