import type { Answer, OpenRequest, SignalOutcome } from "@sluice/core";
import { isQuestion } from "@sluice/core/runtime";
import type { RunRequest } from "@sluice/view";
import { cleanInline } from "@sluice/view/text";
import { type Editor, EMPTY_EDITOR } from "../composer/editing/editor.ts";
import { approvalFault } from "../user/approval-check.ts";
import { pastTense, refusalOf } from "../user/send-answer.ts";
import { type Form, formOf } from "./form.ts";

/** An open request and how it can be answered. */
export interface Card {
  /** Unique among all runs and requests. */
  readonly key: string;
  readonly request: OpenRequest;
  readonly form: Form;
  /** Why it cannot be approved here, or a question not be answered; undefined if it can. */
  readonly fault: string | undefined;
  /** The user chose to decide later: it opens again only on request. */
  readonly deferred: boolean;
  /** Its answer is being sent. */
  readonly sending: boolean;
}

/** The card on the screen. */
export interface OpenCard {
  readonly key: string;
  /** When it was first drawn, epoch milliseconds; undefined until then. */
  readonly shownAt: number | undefined;
  /** Whether it gets keys first. */
  readonly focused: boolean;
  /** Whether a focused card acts on keys; once set, it stays set until the card loses the focus. */
  readonly armed: boolean;
  /** Index among the form's options. */
  readonly selected: number | undefined;
  /** Whether keys edit a reason or an answer. */
  readonly writing: boolean;
  readonly editor: Editor;
  /** First body line that is shown. */
  readonly scroll: number;
  /** Lines of the body, lines that fit, and how far the body was shown, as of the last frame. */
  readonly lines: number;
  readonly rows: number;
  readonly seen: number;
  /** Whether the arguments as JSON, the whole digest and the ids are shown too. */
  readonly all: boolean;
  /** Why the last key had no effect. */
  readonly hint: string;
}

/** The open requests of all watched runs, and the card on the screen. */
export interface CardStack {
  readonly cards: readonly Card[];
  readonly open: OpenCard | undefined;
  /** A focused card closed: keys that were meant for it must not reach the composer. */
  readonly focusLost: boolean;
  /** Keys of the last cards answered here: a list of requests that was read before the answer must not reopen them. */
  readonly answered: readonly string[];
}

/** The body lines that a frame showed: `from` to `to` (exclusive) of `lines`. */
export interface ShownLines {
  readonly from: number;
  readonly to: number;
  readonly lines: number;
}

export interface CardUpdate {
  readonly stack: CardStack;
  /** An answer to send, once. */
  readonly send?: { readonly key: string; readonly request: OpenRequest; readonly answer: Answer };
  /** What happened to a card, for the log. */
  readonly notice?: { readonly text: string; readonly tone: "plain" | "notice" };
}

const MAX_ANSWERED = 200;

export const KIND_NAMES: Readonly<Record<OpenRequest["kind"], string>> = {
  grantStageTool: "Grant",
  approveTransition: "Transition",
  askUser: "Question",
  humanState: "Task for a person",
};

export function createCardStack(): CardStack {
  return { cards: [], open: undefined, focusLost: false, answered: [] };
}

/** The card on the screen, with its request. */
export function openCardOf(stack: CardStack): { readonly card: Card; readonly open: OpenCard } | undefined {
  const { cards, open } = stack;
  const card = cards.find(({ key }) => key === open?.key);
  return card === undefined || open === undefined ? undefined : { card, open };
}

/** Cards that wait for an answer. */
export function waitingCards(stack: CardStack): readonly Card[] {
  return stack.cards.filter((card) => !card.sending);
}

/** A card as it opens: unfocused, unarmed, with its first selection. */
export function newlyOpen({ key, form }: Card): OpenCard {
  return {
    key,
    shownAt: undefined,
    focused: false,
    armed: false,
    selected: form.start,
    writing: false,
    editor: EMPTY_EDITOR,
    scroll: 0,
    lines: 0,
    rows: 0,
    seen: 0,
    all: false,
    hint: "",
  };
}

/** A card that loses the focus: its selection is reset; what was written and read is not. */
export function unfocused(card: Card, open: OpenCard): OpenCard {
  const { shownAt, editor, scroll, lines, rows, seen, all } = open;
  return { ...newlyOpen(card), shownAt, editor, scroll, lines, rows, seen, all };
}

/** Opens a card, or the first that is not deferred. */
export function showNext(stack: CardStack, key?: string): CardStack {
  const next = waitingCards(stack).find((card) => (key === undefined ? !card.deferred : card.key === key));
  return { ...stack, open: next === undefined ? undefined : newlyOpen(next) };
}

/** Why a card takes no approval and no value, or undefined. It can always be denied. */
export function refusalFor({ request, fault }: Card, { kind }: Answer): string | undefined {
  if (fault === undefined || kind === "deny" || kind === "defer") return undefined;
  return `it cannot be ${isQuestion(request) ? "answered" : "approved"} here: ${fault}`;
}

/** Sends an answer, unless one is being sent already or the card takes none. */
export function sendAnswer(stack: CardStack, card: Card, answer: Answer): CardUpdate {
  if (card.sending || refusalFor(card, answer) !== undefined) return { stack };
  const { key, request } = card;
  const cards = stack.cards.map((one) => (one === card ? { ...one, sending: true } : one));
  return { stack: { ...showNext({ ...stack, cards }), focusLost: true }, send: { key, request, answer } };
}

/** The stack with all open requests, oldest first. */
export function requestsChanged(stack: CardStack, open: readonly RunRequest[]): CardUpdate {
  const requests = new Map(open.map((request) => [keyOf(request), request]));
  // A card whose answer is being sent stays until the outcome is known.
  const remaining = stack.cards.filter((card) => card.sending || requests.has(card.key));
  const known = new Set([...remaining.map(({ key }) => key), ...stack.answered]);
  const added = [...requests].filter(([key]) => !known.has(key)).map(([key, request]) => newCard(key, request));
  if (added.length === 0 && remaining.length === stack.cards.length) return { stack };
  const removed = stack.cards.filter((card) => !remaining.includes(card));
  const next: CardStack = { ...stack, cards: [...remaining, ...added] };
  const isClosed = removed.some(({ key }) => key === stack.open?.key);
  const reopened = next.open === undefined || isClosed ? showNext(next) : next;
  const focusLost = isClosed && stack.open?.focused === true;
  const text = removed.map((card) => `${cardTitle(card)}: answered elsewhere, or no longer needed`).join("; ");
  return {
    stack: focusLost ? { ...reopened, focusLost } : reopened,
    ...(text === "" ? {} : { notice: { text, tone: "notice" } }),
  };
}

/** Includes the digest: a request that reuses an id for other content gets its own card. */
function keyOf({ runId, requestId, digest }: OpenRequest): string {
  return JSON.stringify([runId, requestId, digest]);
}

function newCard(key: string, request: RunRequest): Card {
  const form = formOf(request);
  const fault = isQuestion(request) ? request.fault : approvalFault(request);
  return { key, request, form, fault, deferred: false, sending: false };
}

/** How far a body of that many lines was shown. After a new layout, one that was shown whole still counts as shown. */
export function seenOf({ lines: before, seen }: OpenCard, lines: number): number {
  if (before === lines) return seen;
  return before > 0 && seen >= before ? lines : 0;
}

/** The stack after a frame with the card was drawn at `now`, epoch milliseconds. */
export function cardShown(stack: CardStack, key: string, { from, to, lines }: ShownLines, now: number): CardStack {
  const { open } = stack;
  if (open === undefined || open.key !== key) return stack;
  const rows = to - from;
  const next: OpenCard = {
    ...open,
    shownAt: open.shownAt ?? now,
    lines,
    rows,
    // A jump to the end counts as reading: all lines were within reach.
    seen: Math.max(seenOf(open, lines), to),
    scroll: Math.min(open.scroll, Math.max(0, lines - rows)),
  };
  const changing = ["shownAt", "lines", "rows", "seen", "scroll"] as const;
  return changing.every((name) => next[name] === open[name]) ? stack : { ...stack, open: next };
}

/** The stack while the card is covered, or another program has the terminal: it has to be drawn and armed again. */
export function cardHidden(stack: CardStack): CardStack {
  const current = openCardOf(stack);
  if (current === undefined || (current.open.shownAt === undefined && !current.open.focused)) return stack;
  return { ...stack, open: { ...unfocused(current.card, current.open), shownAt: undefined } };
}

/** The stack once the outcome of an answer is known. */
export function answerSent(stack: CardStack, key: string, answer: Answer, outcome: SignalOutcome): CardUpdate {
  const card = stack.cards.find((one) => one.key === key);
  if (card === undefined) return { stack };
  const title = cardTitle(card);
  return {
    stack: {
      ...stack,
      cards: stack.cards.filter((one) => one !== card),
      answered: [...stack.answered, card.key].slice(-MAX_ANSWERED),
    },
    notice:
      outcome === "accepted"
        ? { text: `${pastTense(answer)} ${title}`, tone: "plain" }
        : { text: refusalOf(outcome, title), tone: "notice" },
  };
}

/** An answer could not be sent: its card returns. */
export function answerFailed(stack: CardStack, key: string, message: string): CardUpdate {
  const card = stack.cards.find((one) => one.key === key);
  if (card === undefined) return { stack };
  const next = { ...stack, cards: stack.cards.map((one) => (one === card ? { ...one, sending: false } : one)) };
  return {
    stack: next.open === undefined ? showNext(next) : next,
    notice: { text: `${cardTitle(card)}: the answer could not be sent: ${message}`, tone: "notice" },
  };
}

function cardTitle({ request }: Card): string {
  const { runId, requestId, kind, body } = request;
  const subject =
    kind === "grantStageTool" && typeof body.tool === "string" ? body.tool.slice(0, 80) : KIND_NAMES[kind];
  return cleanInline(`${subject} (${runId.slice(0, 80)} ${requestId.slice(0, 200)})`);
}
