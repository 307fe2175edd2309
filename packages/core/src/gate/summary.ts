import { wholeWords } from "../base/cut-texts.ts";
import { isJsonObject, isSameJson, type Json, type JsonObject } from "../base/json.ts";
import type { Subject } from "./subjects.ts";

/**
 * Characters that a terminal interprets or a reader cannot see: control, format (bidirectional, zero-width) and other invisible
 * characters, unusual spaces, line separators, private use, lone surrogates.
 */
const UNSEEN = /(?!\n)[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu;

/** Text that is safe to show: invisible characters except line breaks are written as `\u{…}`. */
export function visible(text: string): string {
  return text.replaceAll(UNSEEN, (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ""}}`);
}

/** Characters of a source line that are shown. */
const WIDTH = 160;

/** The part of a source line around a column, counted from 0, and the carets under what is meant. Safe to show. */
export function excerptOf(
  source: string,
  at: number,
  length: number,
): { readonly shown: string; readonly caret: string } {
  const from = at < WIDTH - 20 ? 0 : at - 40;
  const before = source.slice(from, at);
  const meant = source.slice(at, Math.min(at + length, from + WIDTH));
  const after = source.slice(at + meant.length, from + WIDTH);
  const cutBefore = from === 0 ? "" : "…";
  const cutAfter = source.length > from + WIDTH ? "…" : "";
  const clean = (text: string): string => visible(text.replaceAll("\t", " "));
  return {
    shown: `${cutBefore}${clean(before)}${clean(meant)}${clean(after)}${cutAfter}`,
    caret: `${" ".repeat(cutBefore.length + clean(before).length)}${"^".repeat(Math.max(1, clean(meant).length))}`,
  };
}

/** Like `visible`, with a custom replacement for each character. `at` is its index in UTF-16 units. */
export function replaceUnseen(text: string, written: (character: string, at: number) => string): string {
  return text.replaceAll(UNSEEN, (character, at: number) => written(character, at));
}

/** JSON text that is safe to show and parses to the same value: invisible characters are JSON string escapes. */
export function visibleJson(value: Json, indent?: number): string {
  const escaped = (character: string): string =>
    Array.from(
      { length: character.length },
      (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`,
    ).join("");
  return JSON.stringify(value, null, indent).replaceAll(UNSEEN, escaped);
}

/** In characters. */
const LONGEST_ARGUMENT = 200;
const LONGEST_KEY = 40;
const MOST_ARGUMENTS = 8;

/** One line for people: `Edit(path: "src/a.ts", old: "…")`. Long arguments are cut in the middle, a long name at its end. */
export function argsSummary(tool: string, input: Json): string {
  const shown: string[] = [];
  const entries = isJsonObject(input) ? Object.entries(input) : [[undefined, input] as const];
  for (const [key, value] of entries.slice(0, MOST_ARGUMENTS)) {
    const argument = middleCut(JSON.stringify(value), LONGEST_ARGUMENT);
    shown.push(key === undefined ? argument : `${middleCut(key, LONGEST_KEY)}: ${argument}`);
  }
  if (entries.length > shown.length) shown.push(`and ${entries.length - shown.length} more`);
  const name = tool.length <= LONGEST_ARGUMENT ? tool : wholeWords(tool, LONGEST_ARGUMENT);
  return visible(`${name}(${shown.join(", ")})`).replaceAll("\n", "\\n");
}

/** A call outside its envelope, as a person is shown it. */
export interface ShownCall {
  readonly executionId: string;
  readonly attempt: number;
  readonly id: string;
  readonly tool: string;
  readonly argsDigest: string;
  /** The arguments as the model sent them. */
  readonly given: Json;
  /** The arguments as returned by the tool's schema, which is what would run. */
  readonly input: Json;
  /** The `argsSummary` of redacted arguments. */
  readonly summary: string;
  /** Why the call is outside. */
  readonly why: string;
  readonly subjects: readonly Subject[];
}

/**
 * The request for a grant, as shown to a person. `input` is what would run, `proposed` the model's arguments if they differ from it,
 * and `touches` the paths that the gate checked, after links are resolved.
 */
export function grantRequestBody(call: ShownCall): JsonObject {
  const { executionId, attempt, id, tool, argsDigest, given, input, summary, why, subjects } = call;
  const touches = pathsOf(subjects);
  return {
    executionId,
    attempt,
    proposalId: id,
    tool,
    input,
    ...(isSameJson(input, given) ? {} : { proposed: given }),
    argsSummary: summary,
    argsDigest,
    ...(touches.length === 0 ? {} : { touches }),
    why: visible(why),
  };
}

/** Without duplicates, since a command may name a file more than once. */
function pathsOf(subjects: readonly Subject[]): readonly JsonObject[] {
  const paths = subjects.filter((subject) => subject.kind === "path");
  const once = new Map(paths.map(({ real, access }) => [JSON.stringify([access, real]), { access, path: real }]));
  return [...once.values()];
}

/** Keeps the end, where a command may hide what matters. */
function middleCut(text: string, longest: number): string {
  if (text.length <= longest) return text;
  const tail = Math.floor(longest / 3);
  return `${text.slice(0, longest - tail)} … ${text.length - longest} characters … ${text.slice(-tail)}`;
}
