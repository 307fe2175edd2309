import type { SecretFilter } from "@sluice/core";

/** Streamed text with secrets taken out: as much is held back as the longest secret could still be growing in. */
export interface LiveText {
  push(delta: string): void;
  end(): void;
}

export function createLiveText(secrets: SecretFilter, show: (text: string) => void): LiveText {
  let held = "";
  return {
    push(delta) {
      if (secrets.longest === 0) {
        show(delta);
        return;
      }
      held = secrets.text(held + delta);
      const ready = held.length - (secrets.longest - 1);
      if (ready <= 0) return;
      show(held.slice(0, ready));
      held = held.slice(ready);
    },
    end() {
      if (held !== "") show(held);
      held = "";
    },
  };
}
