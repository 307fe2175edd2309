import { isJsonObject, type Json } from "@sluice/core";
import type { CallView } from "../projection/run-view.ts";
import { changeOf } from "../text/diff.ts";
import { mainArgument, reasonOf } from "../words/call-words.ts";
import { CALL_SYMBOLS, type StatusSymbol } from "../words/symbols.ts";
import { milliseconds } from "../words/words.ts";
import { changeTable } from "./change.ts";
import { classOf, html, lineMarkup, type Markup, NOTHING } from "./markup/markup.ts";
import { commandBlock, shortText, textBlock } from "./markup/texts.ts";
import { value } from "./markup/values.ts";

/** The words of unfinished calls: a page does not change any more. */
const UNFINISHED: Partial<Readonly<Record<CallView["state"], Pick<StatusSymbol, "word" | "style">>>> = {
  proposed: { word: "not decided", style: "dim" },
  asking: { word: "waiting for an answer", style: "notice" },
  running: { word: "not finished", style: "notice" },
};

/** UTF-16 units. */
const LONGEST_INPUT = 8_000;
const LONGEST_OUTPUT = 8_000;
const LONGEST_NAME = 80;
const LONGEST_REASON = 2_000;
/** UTF-16 units of the reason on a folded call. */
const LONGEST_FOLDED = 160;

/** A call, folded to one line with its state and duration; unfolded with its arguments, reason and result. */
export function callMarkup(call: CallView, executionKey: string): Markup {
  const { sign, word, style } = { ...CALL_SYMBOLS[call.state], ...UNFINISHED[call.state] };
  const tone = classOf(style);
  const reason = reasonOf(call);
  const change = changeOf(call.tool, call.input);
  const open = change !== undefined && call.state === "ok" ? html` open` : NOTHING;
  const duration = call.ms === undefined ? NOTHING : html` <span class="faint">${milliseconds(call.ms)}</span>`;
  const approved =
    call.approvedBy === undefined
      ? NOTHING
      : html` <span class="faint">approved by ${shortText(call.approvedBy, LONGEST_NAME)}</span>`;
  return html`<details class="call" data-call="${executionKey} ${call.attempt} ${call.callId}"${open}>
<summary><span class="${tone}">${sign}</span> <b>${shortText(call.tool, LONGEST_NAME)}</b> <code>${lineMarkup(mainArgument(call))}</code> <span class="${tone}">${word}</span>${exitOf(call)}${duration}${approved}${refusalOf(call, reason)}</summary>
${reason === "" ? NOTHING : html`<p class="${tone}"><span class="label">why</span> ${shortText(reason, LONGEST_REASON)}</p>`}
${call.isWithheld === true ? html`<p class="faint">Its arguments and its result are left out.</p>` : change === undefined ? argumentsOf(call) : changeTable(change)}
${result(call)}
</details>
`;
}

/** A refused call shows its reason while folded. */
function refusalOf({ state }: CallView, reason: string): Markup {
  if (state !== "refused" || reason === "") return NOTHING;
  return html` <span class="faint">${shortText(reason, LONGEST_FOLDED)}</span>`;
}

function exitOf({ facts }: CallView): Markup {
  const exit = facts?.exitCode;
  return typeof exit === "number" && exit !== 0 ? html` <span class="bad">exit ${exit}</span>` : NOTHING;
}

function argumentsOf({ tool, input }: CallView): Markup {
  if (input === undefined) return html`<p class="notice">the arguments could not be parsed</p>`;
  const { text, rest } = split(input, "command");
  if (tool !== "Bash" || text === "") return html`<p class="label">arguments</p>${value(input, LONGEST_INPUT)}`;
  return html`<p class="label">command</p>${commandBlock(text, LONGEST_INPUT)}${rest}`;
}

/** A text member, and the other members as markup; an empty text if there is none. */
function split(json: Json, key: string): { readonly text: string; readonly rest: Markup } {
  const { [key]: text, ...rest } = isJsonObject(json) ? json : {};
  if (typeof text !== "string") return { text: "", rest: NOTHING };
  return { text, rest: Object.keys(rest).length === 0 ? NOTHING : value(rest, LONGEST_INPUT) };
}

function result({ output, state }: CallView): Markup {
  if (output === undefined || output === null) return NOTHING;
  return html`<p class="label">${state === "ok" ? "result" : "result for the model"}</p>${resultOf(output)}`;
}

function resultOf(output: Json): Markup {
  if (typeof output === "string") return textBlock(output, LONGEST_OUTPUT);
  const { text, rest } = split(output, "output");
  return text === "" ? value(output, LONGEST_OUTPUT) : html`${rest}${textBlock(text, LONGEST_OUTPUT)}`;
}
