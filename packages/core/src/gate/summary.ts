import { isDeepStrictEqual } from "node:util";
import { isJsonObject, type Json, type JsonObject } from "../base/json.ts";
import type { Proposal } from "./grants.ts";
import type { Subject } from "./subjects.ts";

/**
 * What a terminal would act on or an eye would miss: control and format characters (bidirectional and zero-width ones among
 * them), other invisible ones, spaces that are not a space, line separators, private use, lone surrogates.
 */
const UNSEEN = /(?!\n)[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu;

/** Text as a person may safely be shown it: line breaks stay, everything else unseen is written out as `\u{…}`. */
export function visible(text: string): string {
  return replaceUnseen(text, (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ""}}`);
}

/** What `visible` does, with writing of your own for each unseen character and where it stands, counted in UTF-16 units. */
export function replaceUnseen(text: string, written: (character: string, at: number) => string): string {
  return text.replaceAll(UNSEEN, (character, at: number) => written(character, at));
}

/** JSON text that is as safe to show: what `visible` would write out stands as the string escapes of JSON, so it parses to the same value. */
export function visibleJson(value: Json, indent?: number): string {
  const escaped = (character: string): string =>
    Array.from(
      { length: character.length },
      (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`,
    ).join("");
  return JSON.stringify(value, null, indent).replaceAll(UNSEEN, escaped);
}

/** Characters of one argument, and arguments, in a summary. */
const LONGEST_ARGUMENT = 200;
const MOST_ARGUMENTS = 8;

/** One line for people: `Edit(path: "src/a.ts", old: "…")`. Long arguments lose their middle and say how much. */
export function argsSummary(tool: string, input: Json): string {
  const name = visible(middleCut(tool, LONGEST_ARGUMENT));
  if (!isJsonObject(input)) return `${name}(${argument(input)})`;
  const entries = Object.entries(input);
  const shown = entries
    .slice(0, MOST_ARGUMENTS)
    .map(([key, value]) => `${visible(middleCut(key, 40))}: ${argument(value)}`);
  if (entries.length > shown.length) shown.push(`and ${entries.length - shown.length} more`);
  return oneLine(`${name}(${shown.join(", ")})`);
}

/** One call outside its envelope, as it was judged. */
export interface PromptedCall {
  readonly proposal: Proposal;
  /** What would run: the arguments as the tool's schema accepted them. */
  readonly input: Json;
  /** The call in one line, as `argsSummary` makes it of arguments that may stand in an event. */
  readonly summary: string;
  /** What put it outside. */
  readonly why: string;
  readonly subjects: readonly Subject[];
}

/**
 * What a person is asked about a call outside its envelope. `input` is what would run; `proposed` is there where that is not
 * what the digest was taken of, so that whoever shows it can compare; `touches` are the paths it was judged by, after links.
 */
export function grantRequestBody({ proposal, input, summary, why, subjects }: PromptedCall): JsonObject {
  const { executionId, attempt, id, tool, argsDigest } = proposal;
  const filled = proposal.input !== undefined && !isDeepStrictEqual(input, proposal.input);
  const touches = pathsOf(subjects);
  return {
    executionId,
    attempt,
    proposalId: id,
    tool,
    input,
    ...(filled ? { proposed: proposal.input } : {}),
    argsSummary: summary,
    argsDigest,
    ...(touches.length === 0 ? {} : { touches }),
    why: visible(why),
  };
}

/** Each once: a command may name a file more than once. */
function pathsOf(subjects: readonly Subject[]): readonly JsonObject[] {
  const paths = subjects.filter((subject) => subject.kind === "path");
  const once = new Map(paths.map(({ real, access }) => [JSON.stringify([access, real]), { access, path: real }]));
  return [...once.values()];
}

function argument(value: Json): string {
  return visible(middleCut(JSON.stringify(value), LONGEST_ARGUMENT));
}

/** The end is where a command hides what matters, so it stays. */
function middleCut(text: string, longest: number): string {
  if (text.length <= longest) return text;
  const tail = Math.floor(longest / 3);
  const head = longest - tail;
  return `${text.slice(0, head)} … ${text.length - longest} characters … ${text.slice(-tail)}`;
}

function oneLine(text: string): string {
  return text.replaceAll("\n", "\\n");
}
