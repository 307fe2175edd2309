import { shortened } from "../base/cut-texts.ts";
import { SluiceError, type TextPlace } from "../base/errors.ts";
import type { TemplatePath } from "../schema/schema-path.ts";
import type { StageContext } from "./result.ts";

/** A compiled template. */
export interface CompiledTemplate {
  /** Its distinct paths, such as `ctx.upstream.plan.steps[0]`. */
  readonly paths: readonly string[];
  /** Every one of them as it is written, in order. */
  readonly references: readonly TemplateReference[];
  /** The text with every path replaced. Throws Validation `prompt_unresolved` for a path that does not exist. */
  render(ctx: object): string;
}
/** A path in a template. */
export interface TemplateReference {
  /** Its pieces, without `ctx`. */
  readonly path: TemplatePath;
  /** The characters of the template, braces included. */
  readonly place: TextPlace;
}
export interface TemplateFault {
  readonly message: string;
  readonly suggestion?: string;
  readonly place: TextPlace;
}
export type ParsedTemplate =
  | { readonly ok: true; readonly value: CompiledTemplate }
  | { readonly ok: false; readonly faults: readonly TemplateFault[] };

/** The fields of a context that a template may use. */
const TEMPLATE_ROOTS: ReadonlySet<string> = new Set<keyof StageContext>([
  "runId",
  "workspace",
  "task",
  "run",
  "input",
  "upstream",
  "context",
  "project",
  "setup",
  "attempt",
  "visit",
  "fork",
  "items",
]);
const PIECE = /\.([A-Za-z_$][A-Za-z0-9_$-]*)|\[(\d{1,9})\]|\["((?:[^"\\]|\\.)*)"\]/y;

/**
 * Reads a text with templates: `{{ctx.path.to[0].value}}` (or `["a key"]`) is replaced by that value, a string as it is and
 * anything else as JSON. Inserted text is never read as a template. `\{{` is two braces. Returns all faults.
 */
export function readTemplate(text: string): ParsedTemplate {
  const parts: (string | TemplateReference)[] = [];
  const faults: TemplateFault[] = [];
  let literal = "";
  let at = 0;
  for (;;) {
    const open = text.indexOf("{{", at);
    if (open < 0) break;
    if (text[open - 1] === "\\" && open > at) {
      literal += `${text.slice(at, open - 1)}{{`;
      at = open + 2;
      continue;
    }
    literal += text.slice(at, open);
    const close = text.indexOf("}}", open + 2);
    if (close < 0) {
      faults.push({
        message: `"${shortened(text.slice(open), 60)}" is never closed`,
        suggestion: "write \\{{ for two braces",
        place: { offset: open, length: 2 },
      });
      at = text.length;
      break;
    }
    const reading = readPath(text.slice(open + 2, close));
    const place = { offset: open, length: close + 2 - open };
    if ("message" in reading) faults.push({ ...reading, place });
    else {
      parts.push(literal, { path: reading.path, place });
      literal = "";
    }
    at = close + 2;
  }
  parts.push(literal + text.slice(at));
  if (faults.length > 0) return { ok: false, faults };
  return { ok: true, value: compiled(parts) };
}

function compiled(parts: readonly (string | TemplateReference)[]): CompiledTemplate {
  const references = parts.filter((part) => typeof part !== "string");
  return {
    paths: [...new Set(references.map(({ path }) => pathText(path)))],
    references,
    render: (ctx) => parts.map((part) => (typeof part === "string" ? part : textAt(ctx, part.path))).join(""),
  };
}

type PathFault = Omit<TemplateFault, "place">;

function readPath(inside: string): { readonly path: TemplatePath } | PathFault {
  const source = inside.trim();
  const shown = `{{${shortened(inside, 60)}}}`;
  const root = /^[A-Za-z_$][A-Za-z0-9_$]*/.exec(source)?.[0];
  if (root !== undefined && root !== "ctx" && TEMPLATE_ROOTS.has(root)) {
    return { message: `${shown} does not start with ctx`, suggestion: `write {{ctx.${source}}}` };
  }
  if (root !== "ctx") {
    return { message: `${shown} is not a path`, suggestion: "write {{ctx.…}}, or \\{{ for two braces" };
  }
  const path: (string | number)[] = [];
  let at = 3;
  while (at < source.length) {
    PIECE.lastIndex = at;
    const piece = PIECE.exec(source);
    if (piece === null)
      return {
        message: `${shown} is not a path after "${source.slice(0, at)}"`,
        suggestion: 'pieces are .name, [0] or ["a key"]',
      };
    const [all, name, index, quoted] = piece;
    const key = quoted === undefined ? name : unquoted(quoted);
    if (key === undefined && index === undefined) return { message: `${shown} holds a key that is not a JSON string` };
    path.push(key ?? Number(index));
    at += all.length;
  }
  return rootFault(path, shown) ?? { path };
}

function rootFault(path: TemplatePath, shown: string): PathFault | undefined {
  const root = path[0];
  if (root === undefined)
    return { message: `${shown} names no field`, suggestion: "write {{ctx.task}}, {{ctx.input.…}} or another" };
  if (root === "feedback") {
    return {
      message: `${shown} is not there on the first attempt`,
      suggestion: "remove it: feedback is added to the first message automatically",
    };
  }
  if (typeof root === "string" && TEMPLATE_ROOTS.has(root)) return undefined;
  return {
    message: `${shown}: ctx has no ${JSON.stringify(root)}`,
    suggestion: `ctx has ${[...TEMPLATE_ROOTS].join(", ")}`,
  };
}

function unquoted(inside: string): string | undefined {
  try {
    const value: unknown = JSON.parse(`"${inside}"`);
    return typeof value === "string" ? value : undefined;
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return undefined;
    throw thrown;
  }
}

function textAt(ctx: object, path: TemplatePath): string {
  const value = templateValue(ctx, path);
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The value that a path of a template leads to. Throws Validation `prompt_unresolved` for a path that does not exist. */
export function templateValue(ctx: object, path: TemplatePath): unknown {
  let value: unknown = ctx;
  for (const [index, key] of path.entries()) {
    const inside = memberOf(value, key);
    if (inside === undefined) throw unresolved(path, index, value);
    value = inside;
  }
  return value;
}

/** Whether the path leads to a value. */
export function hasPath(ctx: object, path: TemplatePath): boolean {
  let value: unknown = ctx;
  for (const key of path) {
    value = memberOf(value, key);
    if (value === undefined) return false;
  }
  return true;
}

/** Own members only. */
function memberOf(value: unknown, key: string | number): unknown {
  if (Array.isArray(value)) return typeof key === "number" ? value[key] : undefined;
  if (typeof value !== "object" || value === null) return undefined;
  return Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
}

function unresolved(path: TemplatePath, at: number, value: unknown): SluiceError {
  const wanted = pathText(path);
  const here = pathText(path.slice(0, at));
  const message = `{{${wanted}}} leads nowhere: ${here} ${whatIsThere(value)}`;
  return new SluiceError("Validation", "prompt_unresolved", message, { detail: { path: wanted, at: here } });
}

function whatIsThere(value: unknown): string {
  if (Array.isArray(value)) return `has ${value.length} element${value.length === 1 ? "" : "s"}`;
  if (typeof value !== "object" || value === null) return `is ${value === null ? "null" : `a ${typeof value}`}`;
  const keys = Object.keys(value);
  if (keys.length === 0) return "is empty";
  return `has ${keys
    .slice(0, 20)
    .map((key) => shortened(key, 60))
    .join(", ")}${keys.length > 20 ? ", …" : ""}`;
}

/** `ctx.upstream.plan.steps[0]`. */
export function pathText(path: TemplatePath): string {
  const pieces = path.map((key) => {
    if (typeof key === "number") return `[${key}]`;
    return /^[A-Za-z_$][A-Za-z0-9_$-]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
  });
  return `ctx${pieces.join("")}`;
}
