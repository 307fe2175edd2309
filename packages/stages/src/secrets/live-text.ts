import type { TextMask } from "@sluice/core";

/** A text that was cut, without secrets. Leaves out the end if it may be the beginning of one. */
export function cutText(text: string, secrets: TextMask): string {
  return secrets.text(text.slice(0, cutBefore(text, text.length - secrets.begun(text), secrets)));
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
    this.#release(cutBefore(this.#held, this.#held.length - this.#secrets.begun(this.#held), this.#secrets));
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

/** The last index up to `end` at which a text can be split without splitting a secret. */
function cutBefore(text: string, end: number, secrets: TextMask): number {
  if (end <= 0) return 0;
  const whole = secrets.text(text);
  if (whole === text) return end;
  let cut = end;
  while (cut > 0 && secrets.text(text.slice(0, cut)) + secrets.text(text.slice(cut)) !== whole) cut -= 1;
  return cut;
}
