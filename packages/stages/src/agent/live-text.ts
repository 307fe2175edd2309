import type { SecretFilter } from "@sluice/core";

/** Streamed text with secrets taken out: as much is held back as the longest secret could still be growing in. */
export interface LiveText {
  push(delta: string): void;
  /** The text is complete: what was held back is shown. */
  end(): void;
  /** The text was cut: what was held back may be the beginning of a secret, and is dropped. */
  drop(): void;
}

export function createLiveText(
  secrets: SecretFilter,
  show: (text: string) => void,
  heard: () => boolean = () => true,
): LiveText {
  let held = "";
  const release = (end: number): void => {
    if (end <= 0 || !heard()) return;
    show(secrets.text(held.slice(0, end)));
    held = held.slice(end);
  };
  return {
    push(delta) {
      held += delta;
      // Held back as a whole while nobody listens: whoever comes later hears it from the beginning.
      if (!heard()) return;
      release(secrets.longest === 0 ? held.length : cutBefore(held, held.length - (secrets.longest - 1), secrets));
    },
    end: () => release(held.length),
    drop: () => {
      held = "";
    },
  };
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
