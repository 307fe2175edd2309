import type { Answer } from "@sluice/core";
import { ARM_MS, type Key, QUIET_MS } from "../app/keys.ts";
import { typedValue } from "../user/send-answer.ts";
import {
  type Card,
  type CardStack,
  type CardUpdate,
  fresh,
  none,
  type OpenCard,
  openCardOf,
  showNext,
  waitingCards,
} from "./desk.ts";
import { writeKey } from "./field.ts";

/** The same for Enter behind words that were typed: what is pasted without being called so comes sooner. */
const PASTE_MS = 50;

/** A card with the key before this one; `pause` is the time since, in milliseconds. */
interface Pressed {
  readonly desk: CardStack;
  readonly card: Card;
  readonly open: OpenCard;
  readonly key: Key;
  readonly pause: number;
}

/** What a key does. Only here is anything answered. */
export function keyPressed(before: CardStack, key: Key, taken: boolean, now: number): CardUpdate {
  const pause = before.lastKeyAt === undefined ? Number.POSITIVE_INFINITY : now - before.lastKeyAt;
  const desk: CardStack = { ...before, lastKeyAt: now };
  if (taken) return none({ ...desk, bereft: before.bereft && pause < ARM_MS });
  if (before.bereft && pause < ARM_MS && !isTyping(key) && !key.ctrl && !key.alt) return { desk, taken: true };
  const at = openCardOf({ ...desk, bereft: false });
  if (at === undefined) return parked({ ...desk, bereft: false }, key, pause);
  const { card, open } = at;
  const clear: CardStack = { ...desk, bereft: false };
  // A clock that was put back starts the wait again.
  const stood = open.shownAt === undefined ? -1 : now - open.shownAt;
  if (open.shownAt !== undefined && stood < 0)
    return unfocusedKey({ ...clear, open: { ...open, shownAt: now } }, key, false);
  const armed = open.armed || (stood >= ARM_MS && pause >= ARM_MS);
  if (!open.focused) return unfocusedKey(clear, key, armed);
  return focusedKey({ desk: clear, card, open: { ...open, armed, hint: "" }, key, pause });
}

/** Nothing is up, but something may have been put off. */
function parked(desk: CardStack, key: Key, pause: number): CardUpdate {
  const [first] = waitingCards(desk);
  if (!isTab(key) || first === undefined || pause < ARM_MS) return none(desk);
  return { desk: showNext(desk, first.key), taken: true };
}

/** Tab and Esc go to the card: Esc, too, first has to be meant for it. Before it is armed they are for nobody. */
function unfocusedKey(desk: CardStack, key: Key, armed: boolean): CardUpdate {
  const { open } = desk;
  if (open === undefined || !(isTab(key) || key.name === "escape")) return none(desk);
  return { desk: armed ? { ...desk, open: { ...open, armed, focused: true, hint: "" } } : desk, taken: true };
}

function focusedKey(at: Pressed): CardUpdate {
  const { desk, open, key } = at;
  if (key.ctrl || key.alt) return chord(at);
  if (!open.armed) return isTyping(key) ? leave(at, false) : { desk, taken: true };
  if (open.writing) return writingKey(at);
  switch (key.name) {
    case "text":
    case "paste":
      // Whoever types means the composer.
      return leave(at, false);
    case "tab":
      return leave(at, true);
    case "up":
      return select(at, -1);
    case "down":
      return select(at, 1);
    case "pageUp":
      return scroll(at, open.scroll - Math.max(1, open.rows - 1));
    case "pageDown":
      return scroll(at, open.scroll + Math.max(1, open.rows - 1));
    case "home":
      return scroll(at, 0);
    case "end":
      return scroll(at, open.lines);
    case "enter":
      return choose(at);
    case "escape":
      return answer(at, { kind: "deny" });
    default:
      return taken(at, {});
  }
}

/**
 * Ctrl+N and Ctrl+P look through the cards; the focus goes along, but the card that comes up is not armed. Other chords of
 * letters are the app's.
 */
function chord(at: Pressed): CardUpdate {
  const { desk, open, key } = at;
  if (open.writing) return open.armed ? writingKey(at) : { desk, taken: true };
  if (key.name !== "text") return taken(at, {});
  const step = key.ctrl && !key.alt ? { n: 1, p: -1 }[key.text] : undefined;
  if (step === undefined) return none({ ...desk, open });
  const waiting = waitingCards(desk);
  const here = waiting.findIndex((card) => card.key === open.key);
  const next = waiting[(here + step + waiting.length) % waiting.length];
  if (next === undefined || next.key === open.key) return taken(at, {});
  return { desk: { ...desk, open: { ...fresh(next.key, next), focused: true } }, taken: true };
}

function taken({ desk, open }: Pressed, change: Partial<OpenCard>): CardUpdate {
  return { desk: { ...desk, open: { ...open, ...change } }, taken: true };
}

/** Back to the composer. What was chosen is forgotten, what was written is not. */
function leave({ desk, card, open }: Pressed, swallow: boolean): CardUpdate {
  const { shownAt, editor, scroll: top, lines, rows, seen, all } = open;
  const again = { ...fresh(open.key, card), shownAt, editor, scroll: top, lines, rows, seen, all };
  return { desk: { ...desk, open: again }, taken: swallow };
}

/** Without going around: Approve is reached by wanting to, not by holding a key down. */
function select(at: Pressed, by: number): CardUpdate {
  const { selected } = at.open;
  const last = at.card.form.options.length - 1;
  const to = selected === undefined ? (by > 0 ? 0 : last) : Math.max(0, Math.min(last, selected + by));
  return taken(at, { selected: to });
}

function scroll(at: Pressed, to: number): CardUpdate {
  const { lines, rows } = at.open;
  return taken(at, { scroll: Math.max(0, Math.min(to, lines - rows)) });
}

function choose(at: Pressed): CardUpdate {
  const { card, open } = at;
  const option = open.selected === undefined ? undefined : card.form.options[open.selected];
  if (option === undefined) return taken(at, { hint: "choose with the arrow keys first" });
  switch (option.kind) {
    case "approve":
      return approve(at);
    case "deny":
      return answer(at, { kind: "deny" });
    case "value":
      return answer(at, { kind: "value", value: option.value });
    case "reason":
    case "write":
      return taken(at, { writing: true });
    case "all":
      return taken(at, { all: !open.all, scroll: 0 });
    case "defer":
      return defer(at);
  }
}

function approve(at: Pressed): CardUpdate {
  const { card, open } = at;
  if (card.fault !== undefined) return taken(at, { hint: `it cannot be approved here: ${card.fault}` });
  if (open.lines === 0 || open.seen < open.lines) {
    return taken(at, { hint: "not all of it was shown: PageDown reads on, End goes to its end" });
  }
  return answer(at, { kind: "approve" });
}

/** Every answer that ends a card goes through here. */
function answer(at: Pressed, given: Answer): CardUpdate {
  const { desk, card, pause } = at;
  if (pause < QUIET_MS) return taken(at, { hint: "that key came very soon after the last one; press it again" });
  return send(desk, card, given);
}

/** Once: what is on its way is not sent again. */
export function send(desk: CardStack, card: Card, given: Answer): CardUpdate {
  if (card.sending) return none(desk);
  const cards = desk.cards.map((one) => (one === card ? { ...one, sending: true } : one));
  const { key, request } = card;
  return {
    desk: { ...showNext({ ...desk, cards }), bereft: true },
    taken: true,
    send: { key, request, answer: given },
  };
}

function defer({ desk, card }: Pressed): CardUpdate {
  const cards = [...desk.cards.filter((one) => one !== card), { ...card, deferred: true }];
  return { desk: { ...showNext({ ...desk, cards }), bereft: true }, taken: true };
}

function writingKey(at: Pressed): CardUpdate {
  const { card, open, key, pause } = at;
  if (key.name === "escape") return taken(at, { writing: false });
  if (key.name === "pageUp" || key.name === "pageDown") {
    const page = Math.max(1, open.rows - 1);
    return scroll(at, open.scroll + (key.name === "pageDown" ? page : -page));
  }
  if (key.name !== "enter" || key.alt || pause < PASTE_MS) {
    const written = writeKey(open.editor, key);
    return written === undefined ? none({ ...at.desk, open }) : taken(at, written);
  }
  const text = open.editor.text.trim();
  if (text === "") return taken(at, { hint: "nothing is written yet; Esc goes back" });
  if (card.form.options[open.selected ?? -1]?.kind !== "write")
    return send(at.desk, card, { kind: "deny", reason: text });
  const typed = typedValue(card.request, text);
  return typed.ok ? send(at.desk, card, typed.answer) : taken(at, { hint: typed.fault });
}

function isTyping({ name }: Key): boolean {
  return name === "text" || name === "paste";
}

function isTab({ name, shift, ctrl, alt }: Key): boolean {
  return name === "tab" && !shift && !ctrl && !alt;
}
