import type { BoundaryItem, ExecutionView, TranscriptItem } from "../projection/run-view.ts";
import { count, milliseconds, spending } from "../words/words.ts";
import { callMarkup } from "./call.ts";
import { exact, html, joined, type Markup, NOTHING } from "./markup/markup.ts";
import { prose } from "./markup/prose.ts";
import { cutNote, shortText, textBlock } from "./markup/texts.ts";
import { type Times, turnKey } from "./timeline/spans.ts";

/** UTF-16 units of one text. */
const LONGEST_TEXT = 20_000;
const LONGEST_NOTE = 1_000;
/** What of a transcript's room its beginning may take; the rest is kept for its end. */
const BEGINNING = 0.7;

/** A transcript in at most about `most` UTF-16 units of HTML: of a longer one its beginning and its end. */
export function transcript(execution: ExecutionView, turns: Times["turns"], most: number): Markup {
  const items = [...execution.items];
  const part = (at: number): Markup => {
    const item = items[at];
    if (item === undefined) return NOTHING;
    return html`${turnHead(execution, item, saidBefore(items, at), turns)}${itemMarkup(item, execution.key)}`;
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

function leftOut(items: readonly TranscriptItem[]): Markup {
  if (items.length === 0) return NOTHING;
  const calls = items.filter(({ kind }) => kind === "call").length;
  const turns = new Set(items.flatMap((item) => (item.kind === "boundary" ? [] : [`${item.attempt} ${item.turn}`])))
    .size;
  const what = [
    count(turns, "turn"),
    count(calls, "call"),
    count(items.length - calls, "other entry", "other entries"),
  ];
  return html`<p>${cutNote(`${what.join(", ")} of this stage, to keep the page small: the record has them`)}</p>\n`;
}

type Said = Exclude<TranscriptItem, BoundaryItem>;

/** The last thing that was said or called before this one: notes belong to no turn. */
function saidBefore(items: readonly TranscriptItem[], at: number): Said | undefined {
  for (let before = at - 1; before >= 0; before -= 1) {
    const item = items[before];
    if (item !== undefined && item.kind !== "boundary") return item;
  }
  return undefined;
}

/** What stands above the first thing of a turn. */
function turnHead(
  { key }: ExecutionView,
  item: TranscriptItem,
  before: Said | undefined,
  turns: Times["turns"],
): Markup {
  if (item.kind === "boundary" || item.turn === 0) return NOTHING;
  const { attempt, turn } = item;
  if (before?.attempt === attempt && before.turn === turn) return NOTHING;
  const facts = turns.get(turnKey(key, attempt, turn));
  const said =
    facts === undefined
      ? []
      : [
          facts.model,
          facts.tries > 1 ? `try ${facts.tries}` : "",
          facts.to === undefined ? "not ended" : milliseconds(facts.to - facts.from),
          facts.usage === undefined ? "" : spending(facts.usage),
        ].filter((one) => one !== "");
  return html`<h5>Turn ${turn} <span class="faint">${said.join(" · ")}</span></h5>\n`;
}

function itemMarkup(item: TranscriptItem, executionKey: string): Markup {
  switch (item.kind) {
    case "text":
      return html`${prose(item.text, LONGEST_TEXT)}\n`;
    case "reasoning":
      return html`<details class="thought"><summary>thinking <span class="faint">${count(item.text.length, "character")}</span></summary>${textBlock(item.text, LONGEST_TEXT)}</details>\n`;
    case "message":
      return html`<div class="message"><b>${exact(item.by)}</b> said to the run:${textBlock(item.text, LONGEST_TEXT)}</div>\n`;
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
