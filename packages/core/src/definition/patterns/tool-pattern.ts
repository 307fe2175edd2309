import { messageOf, SluiceError } from "../../base/errors.ts";
import type { AllowedTool } from "../state-rules.ts";
import { type CommandScope, readCommandScope } from "./command-scope.ts";
import { compileGlob, type Glob } from "./glob.ts";
import { type PathScope, readPathScope, type ScopeReading } from "./path-scope.ts";

/** A compiled entry of allowedTools, for `matchesName`, `matchesPath` and `matchesArgv`. */
export interface ToolPattern {
  /** The source text. */
  readonly text: string;
  readonly name: Glob;
  /** Whether the name has no `*`. */
  readonly literal: boolean;
  /** The text in parentheses. */
  readonly scope?: string;
  readonly path?: PathScope;
  readonly command?: CommandScope;
  /** Whether it may match no tool of the session. */
  readonly optional?: true;
}

const MAX_PATTERN = 512;
/** The tool whose scope is never a path, even if a command looks like one. */
const COMMAND_TOOL = "Bash";

/** Compiles an entry of allowedTools. Throws Validation `pattern_invalid`. */
export function parsePattern(entry: AllowedTool): ToolPattern {
  const reading = readPattern(entry);
  if (reading.ok) return reading.value;
  const hint = reading.suggestion === undefined ? "" : ` (${reading.suggestion})`;
  throw new SluiceError("Validation", "pattern_invalid", `${reading.message}${hint}`);
}

/** Like `parsePattern`, but returns the fault as a value. */
export function readPattern(entry: AllowedTool): ScopeReading<ToolPattern> {
  const text = textOf(entry);
  if (text === undefined) return { ok: false, message: "a tool pattern must be a text, or { tool, optional: true }" };
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

/** Undefined for anything but a text or exactly `{ tool, optional: true }`. */
function textOf(entry: AllowedTool): string | undefined {
  if (typeof entry === "string") return entry;
  if (typeof entry !== "object" || entry === null) return undefined;
  const known = Object.keys(entry).every((key) => key === "tool" || key === "optional");
  return known && entry.optional === true && typeof entry.tool === "string" ? entry.tool : undefined;
}

/** Whether the pattern's name matches this tool. `*` does not match a slash. */
export function matchesName(pattern: ToolPattern, tool: string): boolean {
  return pattern.name(tool);
}

/**
 * Whether the pattern's scope covers a path relative to the workspace, with `/` between folders; the workspace itself is "".
 * `**` also matches no folder, so `src/**` covers src. A leading dot is not special. With `tree`, the scope must cover every path
 * below it too, as `src/**` does and `src/*` does not. True for a pattern without a scope; false for command scopes of Bash and
 * for paths that are absolute or contain `..`.
 */
export function matchesPath(pattern: ToolPattern, relativePath: string, tree = false): boolean {
  return pattern.scope === undefined || pattern.path?.(relativePath, tree) === true;
}

/**
 * Whether the pattern's scope covers a command's words. A word that is not marked static (`dynamic[i] === false`) matches only a
 * trailing `*`. `folder` is where the command runs, relative to the workspace, with `/` between folders: a scope such as
 * `cd docs && make` covers commands of that folder only. True for a pattern without a scope; the gate limits plain `Bash`.
 */
export function matchesArgv(
  pattern: ToolPattern,
  argv: readonly string[],
  dynamic: readonly boolean[],
  folder = "",
): boolean {
  return pattern.scope === undefined || pattern.command?.covers(argv, dynamic, folder) === true;
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

/** Checks that parentheses match and that the outer pair ends the text. */
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
  // A custom command tool uses the scope as words, if it can be read as words.
  return { ok: true, value: { path: path.value, ...(command.ok ? { command: command.value } : {}) } };
}
