import { digestOf, messageOf, type ToolEffect } from "@sluice/core";
import type { McpSettings } from "./config.ts";
import { definitionDigest, type ListedTool, readDefinition, type ToolDefinition } from "./definition.ts";
import { nameMatcher, prefixOf, toolNameFault } from "./names.ts";

/** What the schemas and descriptions of one server may take of every request to a model, in characters. */
const MOST_CHARACTERS = 400_000;

/** A server's tool as a session offers it. */
export interface OfferedTool extends ToolDefinition {
  /** `mcp__<server>__<tool>`. */
  readonly name: string;
  /** What the server calls it. */
  readonly own: string;
  readonly effect: ToolEffect;
  /** For the record of a run: differs when a run that is resumed would have another tool. */
  readonly pin: string;
}

/** The tools that can be offered, and why the others cannot. A tool is offered as it is or not at all. */
export function offeredOf(
  { name: server, reads }: McpSettings,
  listed: readonly ListedTool[],
): { readonly tools: readonly OfferedTool[]; readonly faults: readonly string[] } {
  const tools: OfferedTool[] = [];
  const faults: string[] = [];
  const drop = (own: string, why: string): void => {
    faults.push(`its tool ${JSON.stringify(own.slice(0, 100))} is left out: ${why}`);
  };
  const times = countNames(listed);
  const isReader = nameMatcher(reads);
  let characters = 0;
  for (const tool of listed) {
    const own = tool.name;
    const fault = times.get(own) === 1 ? toolNameFault(server, own) : "the server has several tools of this name";
    if (fault !== undefined) {
      drop(own, fault);
      continue;
    }
    try {
      const definition = readDefinition(tool);
      characters += definition.description.length + JSON.stringify(definition.shown).length;
      if (characters > MOST_CHARACTERS)
        throw new Error("the descriptions of this server's tools are too long together");
      const effect = isReader(own) ? "read" : "write";
      const pin = digestOf([definition.digest, effect]);
      tools.push({ ...definition, name: `${prefixOf(server)}${own}`, own, effect, pin });
    } catch (thrown) {
      drop(own, messageOf(thrown));
    }
  }
  for (const pattern of reads) {
    const matches = nameMatcher([pattern]);
    if (!listed.some(({ name }) => matches(name)))
      faults.push(`${JSON.stringify(pattern)} of reads names none of its tools`);
  }
  return { tools, faults };
}

function countNames(listed: readonly ListedTool[]): ReadonlyMap<string, number> {
  const times = new Map<string, number>();
  for (const { name } of listed) times.set(name, (times.get(name) ?? 0) + 1);
  return times;
}

/** Which tools are not any more what they were when a session first saw them. Once changed, a tool stays so. */
export interface Pins {
  /** How the tool differs, for a sentence; undefined when it does not. */
  difference(own: string): string | undefined;
  compare(listed: readonly ListedTool[]): void;
}

export function createPins(tools: readonly OfferedTool[], onChanged: (own: string, how: string) => void): Pins {
  const differences = new Map<string, string>();
  return {
    difference: (own) => differences.get(own),
    compare: (listed) => {
      const times = countNames(listed);
      const present = new Map(listed.map((tool) => [tool.name, tool]));
      for (const { own, digest } of tools) {
        if (differences.has(own)) continue;
        const tool = present.get(own);
        const how = tool === undefined ? "is gone" : differs(tool, digest, times.get(own) === 1);
        if (how === undefined) continue;
        differences.set(own, how);
        onChanged(own, how);
      }
    },
  };
}

function differs(tool: ListedTool, digest: string, once: boolean): string | undefined {
  if (!once) return "has a double";
  try {
    if (definitionDigest(tool) === digest) return undefined;
  } catch {
    // What has no digest is not what had one.
  }
  return "has another description or schema";
}
