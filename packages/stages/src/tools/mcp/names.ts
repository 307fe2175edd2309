import type { PipelineSpec, StateSpec } from "@sluice/core";
import { matchWildcards, statesWithin } from "@sluice/core/runtime";

/** The longest name that every provider accepts. */
const LONGEST_NAME = 64;

/**
 * Why a server cannot have this name. The first `__` of a tool's name ends the server's name, so tools of different servers
 * never share a name.
 */
export function serverNameFault(name: string): string | undefined {
  if (!/^[A-Za-z][A-Za-z0-9_-]{0,63}$/.test(name))
    return "is not a valid name: use a letter, then up to 63 letters, digits, _ or -";
  return name.includes("__") || name.endsWith("_") ? "must not contain __ or end with _" : undefined;
}

export function prefixOf(server: string): string {
  return `mcp__${server}__`;
}

/** Why a tool cannot be offered under its name. Names are never changed, so that two tools cannot become one. */
export function toolNameFault(server: string, tool: string): string | undefined {
  if (!/^[A-Za-z0-9_-]+$/.test(tool)) return "its name contains characters other than letters, digits, _ and -";
  const { length } = `${prefixOf(server)}${tool}`;
  return length <= LONGEST_NAME
    ? undefined
    : `its name would have ${length} characters, and some models accept at most ${LONGEST_NAME}; give the server a shorter name`;
}

/** Whether any stage of the pipeline could call a tool of the server. */
export function mayNeed(spec: PipelineSpec, server: string): boolean {
  return statesWithin(spec).some((state) => mayCall(state, prefixOf(server)));
}

function mayCall({ allowedTools, visibility }: StateSpec, prefix: string): boolean {
  if (allowedTools === undefined || visibility === "session") return true;
  return allowedTools.some((entry) => couldCover(typeof entry === "string" ? entry : entry.tool, prefix));
}

function couldCover(pattern: string, prefix: string): boolean {
  const [name = ""] = pattern.split("(", 1);
  const star = name.indexOf("*");
  if (star < 0) return name.startsWith(prefix);
  const head = name.slice(0, star);
  return head.startsWith(prefix) || prefix.startsWith(head);
}

/** Whether a name matches a pattern in which `*` matches any characters. */
export function matchesName(pattern: string, name: string): boolean {
  return matchWildcards(
    pattern.length,
    name.length,
    (at) => pattern[at] === "*",
    (at, index) => pattern[at] === name[index],
  );
}
