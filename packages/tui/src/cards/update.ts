import type { Answer, OpenRequest, SignalOutcome } from "@sluice/core";
import { approvalFault } from "../user/approval-check.ts";
import { pastTense, refusalOf } from "../user/send-answer.ts";
import {
  type Card,
  type CardAction,
  type CardStack,
  type CardUpdate,
  type ClosedRequest,
  cardOf,
  cardTitle,
  fresh,
  none,
  type OpenCard,
  openCardOf,
  type ShownLines,
  showNext,
} from "./desk.ts";
import { formOf } from "./form.ts";
import { keyPressed, send } from "./keys.ts";

/** Lists of open requests that were read before an answer arrived come in after it; they are never that old. */
const MOST_ANSWERED = 200;

/** The desk after something happened. `now` is epoch milliseconds. */
export function updateCards(desk: CardStack, action: CardAction, now: number): CardUpdate {
  switch (action.kind) {
    case "requests":
      return requestsChanged(desk, action.open, action.closed ?? []);
    case "shown":
      return none(shown(desk, action.key, action.shown, now));
    case "hidden":
      return none(hidden(desk));
    case "key":
      return keyPressed(desk, action.key, action.taken, now);
    case "answer": {
      const card = cardOf(desk, action.key);
      return card === undefined ? none(desk) : send(desk, card, action.answer);
    }
    case "sent":
      return sent(desk, action.key, action.answer, action.outcome);
    case "failed":
      return failed(desk, action.key, action.message);
  }
}

function requestsChanged(desk: CardStack, open: readonly OpenRequest[], closed: readonly ClosedRequest[]): CardUpdate {
  const now = new Map(open.map((request) => [keyOf(request), request]));
  // What is on its way stays until it is known to have arrived.
  const kept = desk.cards.filter((card) => card.sending || now.has(card.key));
  const known = new Set([...kept.map((card) => card.key), ...desk.answered]);
  const added = [...now].filter(([key]) => !known.has(key)).map(([key, request]) => newCard(key, request));
  if (added.length === 0 && kept.length === desk.cards.length) return none(desk);
  const gone = desk.cards.filter((card) => !kept.includes(card));
  const next: CardStack = { ...desk, cards: [...kept, ...added] };
  const told = gone.map((card) => `${cardTitle(card)}: ${whyGone(card, closed)}`).join("; ");
  const lost = gone.some((card) => card.key === desk.open?.key);
  const up = next.open === undefined || lost ? showNext(next) : next;
  const after = lost && desk.open?.focused === true ? { ...up, bereft: true } : up;
  return { desk: after, taken: false, ...(told === "" ? {} : { told }) };
}

/** With its digest: the same id about something else is another card. */
function keyOf({ runId, requestId, digest }: OpenRequest): string {
  return JSON.stringify([runId, requestId, digest]);
}

function newCard(key: string, request: OpenRequest): Card {
  const form = formOf(request);
  const fault = form.options.some(({ kind }) => kind === "approve") ? approvalFault(request) : undefined;
  return { key, request, form, fault, deferred: false, sending: false };
}

function whyGone({ request }: Card, closed: readonly ClosedRequest[]): string {
  const known = closed.find(({ runId, requestId }) => runId === request.runId && requestId === request.requestId);
  return known?.why ?? "answered elsewhere, or not needed any more";
}

function shown(desk: CardStack, key: string, { from, to, lines }: ShownLines, now: number): CardStack {
  const { open } = desk;
  if (open === undefined || open.key !== key) return desk;
  // Laid out anew, as after a resize: what had been read to its end still has.
  const before = open.lines === lines ? open.seen : open.lines > 0 && open.seen >= open.lines ? lines : 0;
  // Whoever jumps to the end has had it all within reach.
  const seen = Math.max(before, to);
  const next: OpenCard = {
    ...open,
    shownAt: open.shownAt ?? now,
    lines,
    rows: to - from,
    seen,
    scroll: Math.min(open.scroll, Math.max(0, lines - (to - from))),
  };
  const parts = ["shownAt", "lines", "rows", "seen", "scroll"] as const;
  return parts.every((part) => next[part] === open[part]) ? desk : { ...desk, open: next };
}

/** When it comes back it is new to the eye; only what was written and read stays. */
function hidden(desk: CardStack): CardStack {
  const at = openCardOf(desk);
  if (at === undefined || (at.open.shownAt === undefined && !at.open.focused)) return desk;
  const { editor, scroll, lines, rows, seen, all } = at.open;
  return { ...desk, open: { ...fresh(at.card.key, at.card), editor, scroll, lines, rows, seen, all } };
}

function sent(desk: CardStack, key: string, answer: Answer, outcome: SignalOutcome): CardUpdate {
  const card = cardOf(desk, key);
  if (card === undefined) return none(desk);
  const cards = desk.cards.filter((one) => one !== card);
  const answered = [...desk.answered, key].slice(-MOST_ANSWERED);
  const good = outcome === "accepted";
  const told = good ? `${pastTense(answer)} ${cardTitle(card)}` : refusalOf(outcome, cardTitle(card));
  return { desk: { ...desk, cards, answered }, taken: false, told, good };
}

function failed(desk: CardStack, key: string, message: string): CardUpdate {
  const card = cardOf(desk, key);
  if (card === undefined) return none(desk);
  const cards = desk.cards.map((one) => (one === card ? { ...one, sending: false } : one));
  const back: CardStack = { ...desk, cards };
  const told = `${cardTitle(card)}: the answer could not be sent: ${message}`;
  return { desk: back.open === undefined ? showNext(back) : back, taken: false, told };
}
