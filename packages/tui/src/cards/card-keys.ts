import type { Answer } from "@sluice/core";
import { type Editor, insertTyped } from "../composer/editing/editor.ts";
import { wholeText } from "../composer/editing/pastes.ts";
import { editByKey } from "../composer/keymap.ts";
import { ARM_MS, type Key, QUIET_MS } from "../composer/keys.ts";
import { typedValue } from "../user/send-answer.ts";
import {
  type Card,
  type CardStack,
  type CardUpdate,
  newlyOpen,
  type OpenCard,
  openCardOf,
  refusalFor,
  sendAnswer,
  showNext,
  unfocused,
  waitingCards,
} from "./card-stack.ts";

/** An Enter sooner than this after the previous key is part of a paste, also without bracketed paste. */
const PASTE_MS = 50;
/** UTF-16 units of a reason or an answer. */
const MAX_WRITTEN = 20_000;

export interface KeyUpdate extends CardUpdate {
  /** Otherwise the key goes to the composer. */
  readonly handled: boolean;
}

interface KeyPress {
  readonly stack: CardStack;
  readonly card: Card;
  readonly open: OpenCard;
  readonly key: Key;
  /** Milliseconds since the previous key. */
  readonly idle: number;
}

/** What a key does. `now` is epoch milliseconds, `idle` the milliseconds since the previous key. Only keys answer cards. */
export function pressKey(before: CardStack, key: Key, now: number, idle: number): KeyUpdate {
  if (before.focusLost && !isTyping(key) && !key.ctrl && !key.alt) return { stack: before, handled: true };
  const stack: CardStack = { ...before, focusLost: false };
  const current = openCardOf(stack);
  if (current === undefined) return showDeferred(stack, key, idle);
  const { card, open } = current;
  const age = open.shownAt === undefined ? -1 : now - open.shownAt;
  // The clock was set back: the wait starts again.
  if (open.shownAt !== undefined && age < 0)
    return unfocusedKey({ ...stack, open: { ...open, shownAt: now } }, key, false);
  const armed = open.armed || (age >= ARM_MS && idle >= ARM_MS);
  if (!open.focused) return unfocusedKey(stack, key, armed);
  return focusedKey({ stack, card, open: { ...open, armed, hint: "" }, key, idle });
}

function showDeferred(stack: CardStack, key: Key, idle: number): KeyUpdate {
  const [first] = waitingCards(stack);
  if (!isTab(key) || first === undefined || idle < ARM_MS) return { stack, handled: false };
  return { stack: showNext(stack, first.key), handled: true };
}

/** Tab and Esc focus an armed card; before that they have no effect. */
function unfocusedKey(stack: CardStack, key: Key, armed: boolean): KeyUpdate {
  const { open } = stack;
  if (open === undefined || !(isTab(key) || key.name === "escape")) return { stack, handled: false };
  return { stack: armed ? { ...stack, open: { ...open, armed, focused: true, hint: "" } } : stack, handled: true };
}

function focusedKey(press: KeyPress): KeyUpdate {
  const { stack, open, key } = press;
  if (key.ctrl || key.alt) return chord(press);
  if (!open.armed) return isTyping(key) ? leave(press, false) : { stack, handled: true };
  if (open.writing) return writingKey(press);
  switch (key.name) {
    case "text":
    case "paste":
      return leave(press, false);
    case "tab":
      return leave(press, true);
    case "up":
      return select(press, -1);
    case "down":
      return select(press, 1);
    case "pageUp":
      return page(press, -1);
    case "pageDown":
      return page(press, 1);
    case "home":
      return scroll(press, 0);
    case "end":
      return scroll(press, open.lines);
    case "enter":
      return choose(press);
    case "escape":
      return answer(press, { kind: "deny" });
    default:
      return changed(press, {});
  }
}

/** Ctrl+N and Ctrl+P show another card, focused but not armed. Other chords of letters belong to the app. */
function chord(press: KeyPress): KeyUpdate {
  const { stack, open, key } = press;
  if (open.writing) return open.armed ? writingKey(press) : { stack, handled: true };
  if (key.name !== "text") return changed(press, {});
  const step = key.ctrl && !key.alt ? { n: 1, p: -1 }[key.text] : undefined;
  if (step === undefined) return { stack: { ...stack, open }, handled: false };
  const waiting = waitingCards(stack);
  const index = waiting.findIndex((card) => card.key === open.key);
  const next = waiting[(index + step + waiting.length) % waiting.length];
  if (next === undefined || next.key === open.key) return changed(press, {});
  return { stack: { ...stack, open: { ...newlyOpen(next), focused: true } }, handled: true };
}

function changed({ stack, open }: KeyPress, change: Partial<OpenCard>): KeyUpdate {
  return { stack: { ...stack, open: { ...open, ...change } }, handled: true };
}

function leave({ stack, card, open }: KeyPress, handled: boolean): KeyUpdate {
  return { stack: { ...stack, open: unfocused(card, open) }, handled };
}

/** Does not wrap around, so a held key cannot reach Approve from below. */
function select(press: KeyPress, by: 1 | -1): KeyUpdate {
  const { selected } = press.open;
  const last = press.card.form.options.length - 1;
  const next = selected === undefined ? (by > 0 ? 0 : last) : Math.max(0, Math.min(last, selected + by));
  return changed(press, { selected: next });
}

function page(press: KeyPress, by: 1 | -1): KeyUpdate {
  return scroll(press, press.open.scroll + by * Math.max(1, press.open.rows - 1));
}

function scroll(press: KeyPress, to: number): KeyUpdate {
  const { lines, rows } = press.open;
  return changed(press, { scroll: Math.max(0, Math.min(to, lines - rows)) });
}

function choose(press: KeyPress): KeyUpdate {
  const { card, open } = press;
  const option = open.selected === undefined ? undefined : card.form.options[open.selected];
  if (option === undefined) return changed(press, { hint: "select a choice with the arrow keys first" });
  switch (option.kind) {
    case "approve":
    case "deny":
      return answer(press, { kind: option.kind });
    case "value":
      return answer(press, { kind: "value", value: option.value });
    case "reason":
    case "write":
      return changed(press, { writing: true });
    case "all":
      return changed(press, { all: !open.all, scroll: 0 });
    case "defer":
      return defer(press);
  }
}

/** Every answer without text goes through here. */
function answer(press: KeyPress, given: Answer): KeyUpdate {
  if (press.idle < QUIET_MS)
    return changed(press, { hint: "that key came very soon after the last one; press it again" });
  return send(press, given);
}

/** What is approved or answered has to have been on the screen as a whole. */
function send(press: KeyPress, given: Answer): KeyUpdate {
  const { stack, card, open } = press;
  const refused = refusalFor(card, given);
  if (refused !== undefined) return changed(press, { hint: refused });
  if (given.kind !== "deny" && (open.lines === 0 || open.seen < open.lines))
    return changed(press, { hint: "not all of it was shown: PageDown reads on, End jumps to the end" });
  return { ...sendAnswer(stack, card, given), handled: !card.sending };
}

function defer({ stack, card }: KeyPress): KeyUpdate {
  const cards = [...stack.cards.filter((one) => one !== card), { ...card, deferred: true }];
  return { stack: { ...showNext({ ...stack, cards }), focusLost: true }, handled: true };
}

function writingKey(press: KeyPress): KeyUpdate {
  const { stack, card, open, key, idle } = press;
  if (key.name === "escape") return changed(press, { writing: false });
  if (key.name === "pageUp") return page(press, -1);
  if (key.name === "pageDown") return page(press, 1);
  if (key.name !== "enter" || key.alt || idle < PASTE_MS) {
    const written = writeKey(open.editor, key);
    return written === undefined ? { stack: { ...stack, open }, handled: false } : changed(press, written);
  }
  const text = wholeText(open.editor).trim();
  if (text === "") return changed(press, { hint: "nothing is written yet; Esc goes back" });
  if (card.form.options[open.selected ?? -1]?.kind !== "write") return send(press, { kind: "deny", reason: text });
  const typed = typedValue(card.request, text);
  return typed.ok ? send(press, typed.answer) : changed(press, { hint: typed.fault });
}

/** What a key does to the text, as in the composer; undefined if it does not edit. */
function writeKey(editor: Editor, key: Key): Pick<OpenCard, "editor" | "hint"> | undefined {
  // An Enter that does not send is part of a paste.
  const edited = key.name === "enter" ? insertTyped(editor, "\n") : editByKey(editor, key);
  if (edited === undefined) return (key.ctrl || key.alt) && key.name === "text" ? undefined : { editor, hint: "" };
  if (!edited.ok) return { editor, hint: edited.why };
  if (wholeText(edited.editor).length <= MAX_WRITTEN) return { editor: edited.editor, hint: "" };
  return { editor, hint: `not inserted: the limit is ${MAX_WRITTEN.toLocaleString("en")} characters` };
}

function isTyping({ name }: Key): boolean {
  return name === "text" || name === "paste";
}

function isTab({ name, shift, ctrl, alt }: Key): boolean {
  return name === "tab" && !shift && !ctrl && !alt;
}
