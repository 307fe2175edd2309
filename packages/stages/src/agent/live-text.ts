import type { SecretFilter } from "@sluice/core";

/** Streamed text with secrets taken out: the end is held back where a secret may have begun. */
export class LiveText {
  readonly #secrets: SecretFilter;
  readonly #show: (text: string) => void;
  readonly #heard: () => boolean;
  #held = "";

  constructor(secrets: SecretFilter, show: (text: string) => void, heard: () => boolean = () => true) {
    this.#secrets = secrets;
    this.#show = show;
    this.#heard = heard;
  }

  push(delta: string): void {
    this.#held += delta;
    // Held back as a whole while nobody listens: whoever comes later hears it from the beginning.
    if (!this.#heard()) return;
    this.#release(cutBefore(this.#held, this.#held.length - this.#secrets.begun(this.#held), this.#secrets));
  }

  /** The text is complete: what was held back is shown. */
  end(): void {
    this.#release(this.#held.length);
  }

  /** The text was cut: what was held back may be the beginning of a secret, and is dropped. */
  drop(): void {
    this.#held = "";
  }

  #release(end: number): void {
    if (end <= 0 || !this.#heard()) return;
    this.#show(this.#secrets.text(this.#held.slice(0, end)));
    this.#held = this.#held.slice(end);
  }
}

/** The last place up to `end` where a text can be parted with no secret across it. */
function cutBefore(text: string, end: number, secrets: SecretFilter): number {
  if (end <= 0) return 0;
  const whole = secrets.text(text);
  // Without a secret in it there is nothing to part; with one, it stays whole on one side.
  if (whole === text) return end;
  let cut = end;
  while (cut > 0 && secrets.text(text.slice(0, cut)) + secrets.text(text.slice(cut)) !== whole) cut -= 1;
  return cut;
}
