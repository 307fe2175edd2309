import type { BoundaryItem, CommandView, ExecutionView, TranscriptItem, TurnView } from "../projection/run-view.ts";
import { isAgentModel, modelText } from "../words/fields.ts";
import { count, milliseconds, spending } from "../words/words.ts";
import { callMarkup } from "./call.ts";
import { answerMarkup, attemptsMarkup, commandMarkup } from "./kind-items.ts";
import { exact, html, joined, type Markup, NOTHING } from "./markup/markup.ts";
import { prose } from "./markup/prose.ts";
import { cutNote, shortText, textBlock } from "./markup/texts.ts";

/** UTF-16 units of one text. */
const LONGEST_TEXT = 20_000;
const LONGEST_NOTE = 1_000;
/** The share of the room for the beginning; the rest is for the end. */
const BEGINNING = 0.7;

/** The attempts of a poll are one table. */
type ShownItem = TranscriptItem | { readonly kind: "attempts"; readonly attempts: readonly CommandView[] };

function withAttempts(items: Iterable<TranscriptItem>): readonly ShownItem[] {
  const shown: ShownItem[] = [];
  let attempts: CommandView[] = [];
  for (const item of items) {
    if (item.kind !== "command" || !item.isPoll) shown.push(item);
    else {
      if (attempts.length === 0 || shown.at(-1)?.kind !== "attempts") {
        attempts = [];
        shown.push({ kind: "attempts", attempts });
      }
      attempts.push(item);
    }
  }
  return shown;
}

/** A transcript in about `most` UTF-16 units of HTML: of a longer one, the beginning and the end. */
export function transcript({ key, items: all, turnLog }: ExecutionView, most: number): Markup {
  const items = withAttempts(all);
  const turns = new Map(turnLog.map((turn) => [turnKey(turn), turn]));
  const firstOf = new Map<ShownItem, string>();
  let current = "";
  for (const item of items) {
    // Notes belong to no turn, and what comes before the first turn needs no heading.
    if (!("turn" in item) || turnKey(item) === current) continue;
    current = turnKey(item);
    if (item.turn > 0) firstOf.set(item, current);
  }
  const part = (index: number): Markup => {
    const item = items[index];
    if (item === undefined) return NOTHING;
    const turn = firstOf.get(item);
    const head = turn === undefined || !("turn" in item) ? NOTHING : turnHead(item.turn, turns.get(turn));
    return html`${head}${itemMarkup(item, key)}`;
  };
  const head: Markup[] = [];
  let used = 0;
  let next = 0;
  for (; next < items.length && used < most * BEGINNING; next += 1) {
    const one = part(next);
    used += one.length;
    head.push(one);
  }
  const tail: Markup[] = [];
  let end = items.length;
  for (; end > next && used < most; end -= 1) {
    const one = part(end - 1);
    used += one.length;
    tail.unshift(one);
  }
  return html`${head}${leftOut(items.slice(next, end))}${tail}`;
}

function leftOut(items: readonly ShownItem[]): Markup {
  if (items.length === 0) return NOTHING;
  const calls = items.filter(({ kind }) => kind === "call").length;
  const turns = new Set(items.flatMap((item) => ("turn" in item ? [turnKey(item)] : []))).size;
  const parts = [
    count(turns, "turn"),
    count(calls, "call"),
    count(items.length - calls, "other entry", "other entries"),
  ];
  return html`<p>${cutNote(`${parts.join(", ")} of this stage, to keep the page small; the journal has them`)}</p>\n`;
}

function turnKey({ attempt, turn }: { readonly attempt: number; readonly turn: number }): string {
  return `${attempt}.${turn}`;
}

/** The heading above the first item of a turn. */
function turnHead(number: number, turn: TurnView | undefined): Markup {
  const facts = [
    modelText(turn?.model ?? ""),
    turn !== undefined && turn.tries > 1 ? `try ${turn.tries}` : "",
    turn !== undefined && turn.to === undefined ? "not finished" : "",
    turn?.to === undefined ? "" : milliseconds(turn.to - turn.from - turn.restMs),
    turn?.usage === undefined || isAgentModel(turn.model) ? "" : spending(turn.usage),
  ].filter((fact) => fact !== "");
  return html`<h5>Turn ${number} <span class="faint">${facts.join(" · ")}</span></h5>\n`;
}

function itemMarkup(item: ShownItem, executionKey: string): Markup {
  switch (item.kind) {
    case "attempts":
      return attemptsMarkup(item.attempts);
    case "command":
      return commandMarkup(item);
    case "answer":
      return answerMarkup(item);
    case "text":
      return html`${prose(item.text, LONGEST_TEXT)}\n`;
    case "reasoning":
      return html`<details class="thought"><summary>thinking <span class="faint">${count(item.text.length, "character")}</span></summary>${textBlock(item.text, LONGEST_TEXT)}</details>\n`;
    case "message":
      return html`<div class="message"><b>${exact(item.by)}</b> to the run:${textBlock(item.text, LONGEST_TEXT)}</div>\n`;
    case "call":
      return callMarkup(item, executionKey);
    case "boundary":
      return boundary(item);
  }
}

const SIGNS: Readonly<Record<BoundaryItem["tone"], readonly [sign: string, tone: string]>> = {
  plain: ["·", "faint"],
  good: ["✔", "good"],
  bad: ["✖", "bad"],
  notice: ["!", "notice"],
};

function boundary({ rank, text, tone }: BoundaryItem): Markup {
  const [sign, name] = SIGNS[tone];
  if (rank === "attempt") return html`<h4>${shortText(text, LONGEST_NOTE)}</h4>\n`;
  return html`<p class="note ${name}">${joined([html`${sign}`, shortText(text, LONGEST_NOTE)], html` `)}</p>\n`;
}
