import { isJsonObject, type Json, type JsonObject } from "../base/json.ts";
import type { Proposal } from "./grants.ts";

/**
 * What a terminal would act on or an eye would miss: control and format characters (bidirectional and zero-width ones among
 * them), other invisible ones, spaces that are not a space, line separators, private use, lone surrogates.
 */
const UNSEEN = /(?!\n)[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/gu;

/** Text as a person may safely be shown it: line breaks stay, everything else unseen is written out as `\u{…}`. */
export function visible(text: string): string {
  return text.replaceAll(UNSEEN, (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ""}}`);
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

/** What a person is asked about a call outside its envelope. `input` is what would run, `why` says what put it outside. */
export function grantBody(proposal: Proposal, input: Json, why: string): JsonObject {
  const { executionId, attempt, id, tool, argsDigest } = proposal;
  return {
    executionId,
    attempt,
    proposalId: id,
    tool,
    input,
    argsSummary: argsSummary(tool, input),
    argsDigest,
    why: visible(why),
  };
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
