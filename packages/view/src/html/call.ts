import { field, isJsonObject, type Json } from "@sluice/core";
import type { CallView } from "../projection/run-view.ts";
import { CALL_MARKS, type CallMark, mainArgument, reasonOf } from "../words/call-words.ts";
import { milliseconds } from "../words/words.ts";
import { changeOf, changeTable } from "./change.ts";
import { classOf, lineMarkup } from "./markup/lines.ts";
import { html, type Markup, NOTHING } from "./markup/markup.ts";
import { exactLines, shortText, textBlock } from "./markup/texts.ts";
import { value } from "./markup/values.ts";

/** Nobody who reads a page can wait for what had not ended when it was made. */
const NOT_ENDED: Partial<Readonly<Record<CallView["state"], Pick<CallMark, "word" | "style">>>> = {
  proposed: { word: "not decided", style: "dim" },
  asking: { word: "waits for an answer", style: "notice" },
  running: { word: "has not ended", style: "notice" },
};

/** UTF-16 units of arguments, of a result, and of a command. */
const LONGEST_INPUT = 8_000;
const LONGEST_OUTPUT = 8_000;
const LONGEST_NAME = 80;
const LONGEST_REASON = 2_000;
/** The same beside a call that is folded. */
const LONGEST_TOLD = 160;

/** A call folded to one line: what was called, how it went, for how long; inside its arguments, why, and its result. */
export function callMarkup(call: CallView, executionKey: string): Markup {
  const { sign, word, style } = { ...CALL_MARKS[call.state], ...NOT_ENDED[call.state] };
  const tone = classOf(style);
  const reason = reasonOf(call);
  const change = changeOf(call.tool, call.input, call.output);
  // What was changed is what most readers look for.
  const open = change !== undefined && call.state === "ok" ? html` open` : NOTHING;
  const took = call.ms === undefined ? NOTHING : html` <span class="faint">${milliseconds(call.ms)}</span>`;
  const approved =
    call.approvedBy === undefined
      ? NOTHING
      : html` <span class="faint">approved by ${shortText(call.approvedBy, LONGEST_NAME)}</span>`;
  return html`<details class="call" data-call="${executionKey} ${call.attempt} ${call.callId}"${open}>
<summary><span class="${tone}">${sign}</span> <b>${shortText(call.tool, LONGEST_NAME)}</b> <code>${lineMarkup(mainArgument(call))}</code> <span class="${tone}">${word}</span>${exitOf(call)}${took}${approved}${refusalOf(call, reason)}</summary>
${reason === "" ? NOTHING : html`<p class="${tone}"><span class="label">why</span> ${shortText(reason, LONGEST_REASON)}</p>`}
${change === undefined ? given(call) : changeTable(change)}
${result(call)}
</details>
`;
}

/** What was refused says why without being unfolded. */
function refusalOf({ state }: CallView, reason: string): Markup {
  if (state !== "refused" || reason === "") return NOTHING;
  return html` <span class="faint">${shortText(reason, LONGEST_TOLD)}</span>`;
}

function exitOf({ facts }: CallView): Markup {
  const exit = facts?.exitCode;
  return typeof exit === "number" && exit !== 0 ? html` <span class="bad">exit ${exit}</span>` : NOTHING;
}

function given({ tool, input }: CallView): Markup {
  if (input === undefined) return html`<p class="notice">its arguments could not be read</p>`;
  const command = field(input, "command");
  if (tool === "Bash" && isJsonObject(input) && typeof command === "string") {
    const { command: _, ...others } = input;
    const more = Object.keys(others).length === 0 ? NOTHING : value(others, LONGEST_INPUT);
    return html`<p class="label">command</p>${textBlock(command, LONGEST_INPUT, exactLines)}${more}`;
  }
  return html`<p class="label">arguments</p>${value(input, LONGEST_INPUT)}`;
}

function result({ output, state }: CallView): Markup {
  if (output === undefined || output === null) return NOTHING;
  return html`<p class="label">${state === "ok" ? "result" : "what the model read"}</p>${resultOf(output)}`;
}

function resultOf(output: Json): Markup {
  if (typeof output === "string") return textBlock(output, LONGEST_OUTPUT);
  if (!isJsonObject(output)) return value(output, LONGEST_OUTPUT);
  // What a command printed is text, beside what is said of it.
  const { output: printed, ...rest } = output;
  if (typeof printed !== "string" || printed === "") return value(output, LONGEST_OUTPUT);
  return html`${Object.keys(rest).length === 0 ? NOTHING : value(rest, LONGEST_OUTPUT)}${textBlock(printed, LONGEST_OUTPUT)}`;
}
