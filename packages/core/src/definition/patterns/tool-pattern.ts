import { messageOf, SluiceError } from "../../base/errors.ts";
import type { AllowedTool } from "../state-rules.ts";
import { type CommandScope, readCommandScope } from "./command-scope.ts";
import { compileGlob, type Glob } from "./glob.ts";
import { type PathScope, readPathScope, type ScopeReading } from "./path-scope.ts";

/** One entry of allowedTools, compiled. Ask it through `matchesName`, `matchesPath` and `matchesArgv`. */
export interface ToolPattern {
  /** As its author wrote it. */
  readonly text: string;
  readonly name: Glob;
  /** Whether the name spells exactly one tool. */
  readonly literal: boolean;
  /** What stood in the parentheses. */
  readonly scope?: string;
  readonly path?: PathScope;
  readonly command?: CommandScope;
  /** It may match no live tool. */
  readonly optional?: true;
}

const MAX_PATTERN = 512;
/** The one tool whose scope is never a path: a command that happens to look like one must not open a file. */
const COMMAND_TOOL = "Bash";

/** Compiles one entry of allowedTools, once per definition. Throws SluiceError `pattern_invalid`. */
export function parsePattern(entry: AllowedTool): ToolPattern {
  const reading = readPattern(entry);
  if (reading.ok) return reading.value;
  const hint = reading.suggestion === undefined ? "" : ` (${reading.suggestion})`;
  throw new SluiceError("Validation", "pattern_invalid", `${reading.message}${hint}`);
}

/** Like `parsePattern`, with the fault as a value, for checks that gather all of them. */
export function readPattern(entry: AllowedTool): ScopeReading<ToolPattern> {
  const text = textOf(entry);
  if (text === undefined) return { ok: false, message: "a tool pattern is a text, or { tool, optional: true }" };
  const refused = refusal(text);
  if (refused !== undefined) return refused;
  const open = text.indexOf("(");
  const name = readName(open < 0 ? text : text.slice(0, open));
  if (!name.ok) return name;
  const optional = typeof entry === "string" ? {} : { optional: true as const };
  const literal = !text.slice(0, open < 0 ? undefined : open).includes("*");
  if (open < 0) return { ok: true, value: { text, name: name.value, literal, ...optional } };
  const scope = text.slice(open + 1, -1);
  if (!literal && name.value(COMMAND_TOOL)) {
    return {
      ok: false,
      message: `${text}: the scope would be a path for some tools and a command for ${COMMAND_TOOL}`,
      suggestion: "list one pattern for each tool",
    };
  }
  const scopes = readScope(text.slice(0, open), scope);
  if (!scopes.ok) return { ...scopes, message: `${text}: ${scopes.message}` };
  return { ok: true, value: { text, name: name.value, literal, scope, ...scopes.value, ...optional } };
}

/** Undefined for what is neither a text nor exactly `{ tool, optional: true }`: a misspelt key must not drop a mark. */
function textOf(entry: AllowedTool): string | undefined {
  if (typeof entry === "string") return entry;
  if (typeof entry !== "object" || entry === null) return undefined;
  const known = Object.keys(entry).every((key) => key === "tool" || key === "optional");
  return known && entry.optional === true && typeof entry.tool === "string" ? entry.tool : undefined;
}

/** Whether the pattern's name covers this tool. `*` does not cross a slash. */
export function matchesName(pattern: ToolPattern, tool: string): boolean {
  return pattern.name(tool);
}

/**
 * Whether the pattern's scope covers a path relative to the workspace, with `/` between folders; the workspace itself is "".
 * `**` also stands for no folder at all, so `src/**` covers src. Files that start with a dot are like any other. True when
 * the pattern has no scope; false for the command scopes of Bash, and for paths that are absolute or climb.
 */
export function matchesPath(pattern: ToolPattern, relativePath: string): boolean {
  return pattern.scope === undefined || pattern.path?.(relativePath) === true;
}

/**
 * Whether the pattern's scope covers a command's words. A word marked dynamic, or not marked at all, fits only a trailing
 * `*`. True when the pattern has no scope: what plain `Bash` opens is for the gate to say.
 */
export function matchesArgv(pattern: ToolPattern, argv: readonly string[], dynamic: readonly boolean[]): boolean {
  return pattern.scope === undefined || pattern.command?.covers(argv, dynamic) === true;
}

function refusal(text: string): Extract<ScopeReading<never>, { ok: false }> | undefined {
  if (text === "")
    return { ok: false, message: "a tool pattern is empty", suggestion: "name a tool, or use [] for none" };
  if (text.length > MAX_PATTERN)
    return { ok: false, message: `a tool pattern is longer than ${MAX_PATTERN} characters` };
  if (/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(text))
    return { ok: false, message: "a tool pattern holds an invisible character" };
  if (text.startsWith("!") || text.includes("!(") || text.includes("(!")) {
    return {
      ok: false,
      message: `${text}: a list of what is allowed cannot hold a negation`,
      suggestion: "list the tools the stage may use",
    };
  }
  if (text.trim() !== text)
    return { ok: false, message: `"${text}" begins or ends with a space`, suggestion: `write "${text.trim()}"` };
  return parenthesesFault(text);
}

/** One pair at the end holds the scope; pairs inside it are characters of a path and must close. */
function parenthesesFault(text: string): Extract<ScopeReading<never>, { ok: false }> | undefined {
  let depth = 0;
  for (const [index, character] of [...text].entries()) {
    if (character === "(") depth += 1;
    if (character === ")") depth -= 1;
    const closedEarly = character === ")" && depth === 0 && index < [...text].length - 1;
    if (depth < 0 || closedEarly) break;
    if (index === [...text].length - 1 && depth === 0) return undefined;
  }
  return { ok: false, message: `${text}: its parentheses do not match`, suggestion: "write Tool or Tool(scope)" };
}

function readName(name: string): ScopeReading<Glob> {
  if (name === "")
    return { ok: false, message: "a scope needs a tool in front of it", suggestion: "write Tool(scope)" };
  if (!/^[A-Za-z0-9_.:/*-]+$/.test(name)) {
    return {
      ok: false,
      message: `${name}: a tool's name has letters, digits, _ . : / and -; only * stands for others`,
      suggestion: "list one pattern for each tool",
    };
  }
  try {
    return { ok: true, value: compileGlob(name) };
  } catch (thrown) {
    return { ok: false, message: `${name}: ${messageOf(thrown)}` };
  }
}

function readScope(
  tool: string,
  scope: string,
): ScopeReading<{ readonly path?: PathScope; readonly command?: CommandScope }> {
  if (scope.trim() === "")
    return { ok: false, message: "an empty scope allows nothing", suggestion: `write ${tool} for all of it` };
  const command = readCommandScope(scope);
  if (tool === COMMAND_TOOL) return command.ok ? { ok: true, value: { command: command.value } } : command;
  if (scope.trim() !== scope) return { ok: false, message: "the scope begins or ends with a space" };
  const path = readPathScope(scope);
  if (!path.ok) return path;
  // A command tool of somebody's own takes its scope as words; where they do not read as words it is a path only.
  return { ok: true, value: { path: path.value, ...(command.ok ? { command: command.value } : {}) } };
}
