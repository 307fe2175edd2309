import { field, type Json, redactText } from "@sluice/core";
import { numberAt, textAt } from "../words/fields.ts";
import type { LiveView } from "./run-view.ts";

/** More than a screen shows of what streams: the whole of it stands in the transcript when the turn is over. */
const LONGEST = 48_000;

/** Where streamed text belongs: later ones compare as greater. */
type Place = readonly [attempt: number, turn: number, tries: number];

/** The text of the model call that streams now, from pieces that may come late or for a call that is over. */
export class LiveText {
  /** The last call that is over. */
  #over: Place = [0, 0, 0];
  #at: Place | undefined;
  #text = "";
  #reasoning = "";
  #cut = 0;

  /** Whether anything changed. */
  add(channel: string, chunk: Json): boolean {
    const text = textAt(chunk, "text");
    if ((channel !== "text" && channel !== "reasoning") || text === "" || field(chunk, "turn") === undefined)
      return false;
    const place: Place = [numberAt(chunk, "attempt"), numberAt(chunk, "turn"), numberAt(chunk, "try")];
    if (!isAfter(place, this.#over)) return false;
    if (this.#at === undefined || isAfter(place, this.#at)) this.#begin(place);
    else if (isAfter(this.#at, place)) return false;
    if (channel === "text") this.#text = this.#kept(this.#text + text);
    else this.#reasoning = this.#kept(this.#reasoning + text);
    return true;
  }

  /** A call is over, and all before it: nothing of them is shown or taken any more. Whether anything changed. */
  end(attempt: number, turn: number, tries = Number.POSITIVE_INFINITY): boolean {
    const place: Place = [attempt, turn, tries];
    if (isAfter(place, this.#over)) this.#over = place;
    return this.#at !== undefined && !isAfter(this.#at, place) && this.drop();
  }

  /** What streams was cut off; the same call may stream anew. Whether anything changed. */
  drop(): boolean {
    if (this.#at === undefined) return false;
    this.#begin(undefined);
    return true;
  }

  view(): LiveView | undefined {
    if (this.#at === undefined) return undefined;
    // Over the whole text: what looks like a secret may have come in pieces.
    const [text, reasoning] = [redactText(this.#text), redactText(this.#reasoning)];
    return { turn: this.#at[1], text, reasoning, cut: this.#cut };
  }

  #begin(place: Place | undefined): void {
    this.#at = place;
    this.#text = "";
    this.#reasoning = "";
    this.#cut = 0;
  }

  #kept(text: string): string {
    if (text.length <= LONGEST * 1.5) return text;
    const line = text.indexOf("\n", text.length - LONGEST);
    const from = line === -1 ? text.length - LONGEST : line + 1;
    this.#cut += from;
    return text.slice(from).toWellFormed();
  }
}

function isAfter(one: Place, other: Place): boolean {
  for (const [index, value] of one.entries()) {
    const against = other[index] ?? 0;
    if (value !== against) return value > against;
  }
  return false;
}
