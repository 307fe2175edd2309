import type { Answer, OpenRequest, SignalOutcome } from "@sluice/core";
import { cleanInline } from "@sluice/view/text";
import { ARM_MS, type Key } from "../app/keys.ts";
import { type Editor, EMPTY_EDITOR } from "../composer/editing/editor.ts";
import type { Form } from "./form.ts";

/** One open request and how it can be answered. */
export interface Card {
  /** Names the card: unique among all runs and all that was ever asked. */
  readonly key: string;
  readonly request: OpenRequest;
  readonly form: Form;
  /** Why it cannot be approved here; undefined when it can. */
  readonly fault: string | undefined;
  /** Put off: shown again only when somebody asks for it. */
  readonly deferred: boolean;
  /** Its answer is on its way. */
  readonly sending: boolean;
}

/** The one card that is on the screen. */
export interface OpenCard {
  readonly key: string;
  /** When it was first drawn, epoch milliseconds; undefined until then. */
  readonly shownAt: number | undefined;
  /** Whether keys are its own. */
  readonly focused: boolean;
  /** Whether it may be acted on: set by the first key after the wait, never back. */
  readonly armed: boolean;
  /** Place among the form's options. */
  readonly selected: number | undefined;
  /** Whether the line for a reason or an answer has the keys. */
  readonly writing: boolean;
  readonly editor: Editor;
  /** First line of the body that is shown. */
  readonly scroll: number;
  /** Lines of the body, and up to which of them it was shown; as of the last frame. */
  readonly lines: number;
  readonly rows: number;
  readonly seen: number;
  /** Whether arguments as JSON, the whole digest and the ids are shown too. */
  readonly all: boolean;
  /** Why the last key did nothing. */
  readonly hint: string;
}

/** All open requests of the runs that are watched, and the one that is before the person. */
export interface CardStack {
  readonly cards: readonly Card[];
  readonly open: OpenCard | undefined;
  /** The last key that anybody got, epoch milliseconds. */
  readonly lastKeyAt: number | undefined;
  /** A focused card went away by itself: keys that were meant for it are for nobody. */
  readonly bereft: boolean;
  /** Keys of the last cards that were answered here: a request takes one answer, so they do not come back. */
  readonly answered: readonly string[];
}

/** Which lines of a card's body a frame showed: `from` up to, not with, `to`, of `lines`. */
export interface ShownLines {
  readonly from: number;
  readonly to: number;
  readonly lines: number;
}

/** Who closed a request, where that is known from the run's events. */
export interface ClosedRequest {
  readonly runId: string;
  readonly requestId: string;
  readonly why: string;
}

export type CardAction =
  /** What is open now, oldest first. */
  | {
      readonly kind: "requests";
      readonly open: readonly OpenRequest[];
      readonly closed?: readonly ClosedRequest[];
    }
  /** A frame with the card was drawn. */
  | { readonly kind: "shown"; readonly key: string; readonly shown: ShownLines }
  /** The card is not on the screen now: something else covers it, or the terminal is somebody else's. */
  | { readonly kind: "hidden" }
  /** Every key there is, also those that others took. */
  | { readonly kind: "key"; readonly key: Key; readonly taken: boolean }
  /** Answered in words, where no card is drawn. */
  | { readonly kind: "answer"; readonly key: string; readonly answer: Answer }
  | { readonly kind: "sent"; readonly key: string; readonly answer: Answer; readonly outcome: SignalOutcome }
  /** The answer could not be sent: the card comes back. */
  | { readonly kind: "failed"; readonly key: string; readonly message: string };

export interface CardUpdate {
  readonly desk: CardStack;
  /** Whether the key was for the desk; otherwise it is for the composer. */
  readonly taken: boolean;
  /** An answer to send, once. */
  readonly send?: { readonly key: string; readonly request: OpenRequest; readonly answer: Answer };
  /** What became of a card, for the log. */
  readonly told?: string;
  /** What is told is that something went as it was meant. */
  readonly good?: boolean;
}

export function createCardStack(): CardStack {
  return { cards: [], open: undefined, lastKeyAt: undefined, bereft: false, answered: [] };
}

export function none(desk: CardStack): CardUpdate {
  return { desk, taken: false };
}

export function cardOf(desk: CardStack, key: string): Card | undefined {
  return desk.cards.find((card) => card.key === key);
}

/** The card on the screen, with its request. */
export function openCardOf(desk: CardStack): { readonly card: Card; readonly open: OpenCard } | undefined {
  const card = desk.open === undefined ? undefined : cardOf(desk, desk.open.key);
  return card === undefined || desk.open === undefined ? undefined : { card, open: desk.open };
}

/** Cards that wait for an answer. */
export function waitingCards(desk: CardStack): readonly Card[] {
  return desk.cards.filter((card) => !card.sending);
}

/** A card as it comes up: whatever was done on one before, it is unfocused, unarmed, and at its first choice. */
export function fresh(key: string, card: Card | undefined): OpenCard {
  return {
    key,
    shownAt: undefined,
    focused: false,
    armed: false,
    selected: card?.form.start,
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

/** Puts up another card, or the first that nobody put off. */
export function showNext(desk: CardStack, key?: string): CardStack {
  const waiting = waitingCards(desk);
  const next = waiting.find((card) => (key === undefined ? !card.deferred : card.key === key));
  return { ...desk, open: next === undefined ? undefined : fresh(next.key, next) };
}

/** What a card is about, in a word or two. */
export function cardTitle({ request }: Card): string {
  const { runId, requestId, kind, body } = request;
  const tool = body.tool;
  const about = kind === "grantStageTool" && typeof tool === "string" ? tool.slice(0, 80) : KIND_NAMES[kind];
  return cleanInline(`${about} (${runId.slice(0, 80)} ${requestId.slice(0, 200)})`);
}

export const KIND_NAMES: Readonly<Record<OpenRequest["kind"], string>> = {
  grantStageTool: "Grant",
  approveTransition: "Transition",
  askUser: "Question",
  humanState: "Task for a person",
};

/**
 * Whether the desk is to be asked about a key before anybody else: a card has the focus, or one that had it has just gone, so
 * that a key on its way to it must not reach the composer.
 */
export function wantsKeys(desk: CardStack, now: number): boolean {
  if (desk.open?.focused === true) return true;
  return desk.bereft && desk.lastKeyAt !== undefined && now - desk.lastKeyAt < ARM_MS;
}
