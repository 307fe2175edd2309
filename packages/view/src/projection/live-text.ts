import { field, type Json } from "@sluice/core";
import { redactText } from "@sluice/core/runtime";
import { numberAt, textAt } from "../words/fields.ts";
import type { LiveView } from "./run-view.ts";

/** UTF-16 units kept of streamed text; the transcript has all of it when the turn ends. */
const LONGEST = 48_000;

/** The model call that streams; later ones compare as greater. */
type ModelCall = readonly [attempt: number, turn: number, tries: number];

/** The text of the current model call, from chunks that can be late or belong to an ended call. */
export class LiveText {
  #lastEnded: ModelCall = [0, 0, 0];
  #current: ModelCall | undefined;
  #text = "";
  #reasoning = "";
  #cut = 0;

  /** Returns whether anything changed. */
  add(channel: string, chunk: Json): boolean {
    const text = textAt(chunk, "text");
    if ((channel !== "text" && channel !== "reasoning") || text === "" || field(chunk, "turn") === undefined)
      return false;
    const call: ModelCall = [numberAt(chunk, "attempt"), numberAt(chunk, "turn"), numberAt(chunk, "try")];
    if (!isAfter(call, this.#lastEnded)) return false;
    if (this.#current === undefined || isAfter(call, this.#current)) this.#begin(call);
    else if (isAfter(this.#current, call)) return false;
    if (channel === "text") this.#text = this.#limited(this.#text + text);
    else this.#reasoning = this.#limited(this.#reasoning + text);
    return true;
  }

  /** Ends a call and all calls before it: later chunks of theirs are ignored. Returns whether anything changed. */
  end(attempt: number, turn: number, tries = Number.POSITIVE_INFINITY): boolean {
    const call: ModelCall = [attempt, turn, tries];
    if (isAfter(call, this.#lastEnded)) this.#lastEnded = call;
    return this.#current !== undefined && !isAfter(this.#current, call) && this.drop();
  }

  /** Drops the text; the same call may stream again. Returns whether anything changed. */
  drop(): boolean {
    if (this.#current === undefined) return false;
    this.#begin(undefined);
    return true;
  }

  view(): LiveView | undefined {
    if (this.#current === undefined) return undefined;
    // A secret can be split over chunks, so the whole text is redacted.
    const [text, reasoning] = [redactText(this.#text), redactText(this.#reasoning)];
    return { turn: this.#current[1], text, reasoning, cut: this.#cut };
  }

  #begin(call: ModelCall | undefined): void {
    this.#current = call;
    this.#text = "";
    this.#reasoning = "";
    this.#cut = 0;
  }

  #limited(text: string): string {
    if (text.length <= LONGEST * 1.5) return text;
    const from = beginningOf(text, text.length - LONGEST);
    this.#cut += from;
    return text.slice(from).toWellFormed();
  }
}

/** How many places a text is tried to begin at. */
const MOST_PLACES = 20;

/** Where the rest of a text can begin, at a line or a word, and is redacted as in the whole text; its end if nowhere. */
function beginningOf(text: string, least: number): number {
  const whole = redactText(text);
  const line = text.indexOf("\n", least);
  const places = line === -1 ? [least] : [line + 1];
  const blank = /\s/g;
  blank.lastIndex = least;
  while (places.length < MOST_PLACES && blank.test(text)) places.push(blank.lastIndex);
  return places.find((at) => whole.endsWith(redactText(text.slice(at).toWellFormed()))) ?? text.length;
}

function isAfter(one: ModelCall, other: ModelCall): boolean {
  for (const [index, value] of one.entries()) {
    const against = other[index] ?? 0;
    if (value !== against) return value > against;
  }
  return false;
}
