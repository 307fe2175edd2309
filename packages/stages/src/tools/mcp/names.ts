import type { PipelineSpec, StateSpec } from "@sluice/core";

/** The longest name that every provider takes. */
const LONGEST_NAME = 64;

/**
 * Why a server cannot have this name. It ends where the first `__` of a tool's name stands, so it holds none and does not end
 * with `_`: then no tool of one server can have the name of another's.
 */
export function serverNameFault(name: string): string | undefined {
  if (!/^[A-Za-z][A-Za-z0-9_-]{0,63}$/.test(name))
    return "is not a name: a letter, then up to 63 letters, digits, _ or -";
  return name.includes("__") || name.endsWith("_")
    ? "a server's name has no __ in it and does not end with _"
    : undefined;
}

/** What the names of a server's tools begin with. */
export function prefixOf(server: string): string {
  return `mcp__${server}__`;
}

/** Why a tool cannot be offered by its name. Nothing is cut or replaced: two tools must never become one. */
export function toolNameFault(server: string, tool: string): string | undefined {
  if (!/^[A-Za-z0-9_-]+$/.test(tool)) return "its name has other characters than letters, digits, _ and -";
  const { length } = `${prefixOf(server)}${tool}`;
  return length <= LONGEST_NAME
    ? undefined
    : `its name would have ${length} characters, and not every model takes more than ${LONGEST_NAME}; give the server a shorter name`;
}

/** Whether a stage of the pipeline could call a tool of the server, whatever tools that has. */
export function mayNeed({ states }: PipelineSpec, server: string): boolean {
  return [...states.values()].some((state) => mayCall(state, prefixOf(server)));
}

function mayCall({ allowedTools, agent }: StateSpec, prefix: string): boolean {
  if (allowedTools === undefined || agent?.visibility === "session") return true;
  return allowedTools.some((entry) => couldCover(typeof entry === "string" ? entry : entry.tool, prefix));
}

function couldCover(pattern: string, prefix: string): boolean {
  const [name = ""] = pattern.split("(", 1);
  const star = name.indexOf("*");
  if (star < 0) return name.startsWith(prefix);
  const head = name.slice(0, star);
  return head.startsWith(prefix) || prefix.startsWith(head);
}

/** A test for names against patterns in which `*` stands for any characters. */
export function nameMatcher(patterns: readonly string[]): (name: string) => boolean {
  const tests = patterns.map((pattern) => {
    const parts = pattern.split(/\*+/).map((part) => part.replaceAll(/[^A-Za-z0-9_]/g, "\\$&"));
    return new RegExp(`^${parts.join("[^]*")}$`);
  });
  return (name) => tests.some((test) => test.test(name));
}
