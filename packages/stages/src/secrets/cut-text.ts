// Cutting texts without leaving half of a secret, which no later masking would find.

import type { TextMask } from "@sluice/core";

/** For where no secrets are known. */
export const NO_MASK: TextMask = Object.freeze({ text: (text: string) => text, begun: () => 0 });

/** At most the first `longest` characters of a whole text, masked before the cut. Never ends in half of a surrogate pair. */
export function maskedHead(text: string, longest: number, secrets: Pick<TextMask, "text">): string {
  const clean = secrets.text(text);
  if (clean.length <= longest) return clean;
  const last = clean.charCodeAt(longest - 1);
  return clean.slice(0, last >= 0xd800 && last <= 0xdbff ? longest - 1 : longest);
}

/** A text whose end is missing, masked. Leaves out its own end if that may be the beginning of a secret. */
export function maskedCut(text: string, secrets: TextMask): string {
  return secrets.text(text.slice(0, endOfWhole(text, secrets)));
}

/**
 * At most the last `longest` characters of a text that still grows, masked before the cut. Its end stays as it is, beyond `longest`, while
 * it may be the beginning of a secret.
 */
export function maskedTail(text: string, longest: number, secrets: TextMask): string {
  const end = endOfWhole(text, secrets);
  return secrets.text(text.slice(0, end)).slice(-longest) + text.slice(end);
}

/** Where a text that continues can be split, so that neither the end, which may begin a secret, nor a secret before it is split. */
function endOfWhole(text: string, secrets: TextMask): number {
  const end = text.length - secrets.begun(text);
  if (end === text.length) return end;
  const whole = secrets.text(text);
  if (whole === text) return end;
  // Every place is tried only behind one where the text can be split: masking all of a long text for each would take minutes.
  let from = end;
  for (let back = NEAR; from > 0 && !canSplit(text, from, whole, secrets); back *= 2) from = Math.max(0, end - back);
  const near = text.slice(from);
  const nearWhole = secrets.text(near);
  for (let at = end; at > from; at -= 1)
    if (canSplit(near, at - from, nearWhole, secrets) && canSplit(text, at, whole, secrets)) return at;
  return from;
}

/** Characters before the end of a text where the search for a place to split it begins. */
const NEAR = 64;

/** Whether the two parts of a text are masked as all of it is: `whole`. */
function canSplit(text: string, at: number, whole: string, secrets: TextMask): boolean {
  return secrets.text(text.slice(0, at)) + secrets.text(text.slice(at)) === whole;
}

/** Masks secrets in streamed text. A suffix that may be the beginning of a secret is held back. */
export class LiveText {
  readonly #secrets: TextMask;
  readonly #show: (text: string) => void;
  readonly #hasListener: () => boolean;
  #held = "";

  constructor(secrets: TextMask, show: (text: string) => void, hasListener: () => boolean = () => true) {
    this.#secrets = secrets;
    this.#show = show;
    this.#hasListener = hasListener;
  }

  push(delta: string): void {
    this.#held += delta;
    // Without a listener all text is held, so that a later listener receives it from the beginning.
    if (!this.#hasListener()) return;
    this.#release(endOfWhole(this.#held, this.#secrets));
  }

  /** The text is complete: shows the held suffix. */
  end(): void {
    this.#release(this.#held.length);
  }

  /** The text was cut: drops the held suffix, which may be the beginning of a secret. */
  drop(): void {
    this.#held = "";
  }

  #release(end: number): void {
    if (end <= 0 || !this.#hasListener()) return;
    this.#show(this.#secrets.text(this.#held.slice(0, end)));
    this.#held = this.#held.slice(end);
  }
}
