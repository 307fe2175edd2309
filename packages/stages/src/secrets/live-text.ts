import type { TextMask } from "@sluice/core";
import { endOfWhole } from "./cut-text.ts";

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
