import { createInterface } from "node:readline";
import type { Clock } from "@sluice/core";

/** Lines that came before a question could have been read were typed for something else. */
const ARM_MS = 300;

/** What was said just before a question is shown before it. */
const PAUSE_MS = 50;

export interface LinePrompt {
  /** Waits for lines on their way to the terminal, so that a question comes after them. */
  pause(): Promise<void>;
  /** Shows a question and waits for a line. Undefined when the input ended or the signal aborted. */
  ask(question: string, signal?: AbortSignal): Promise<string | undefined>;
}

export interface LinePromptOptions {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  readonly clock: Clock;
}

/** Questions on a terminal, one line each. The terminal itself edits the line, so Ctrl-C stays a signal. */
export function createLinePrompt({ input, output, clock }: LinePromptOptions): LinePrompt {
  return {
    pause: () => new Promise((resolve) => void clock.after(PAUSE_MS, resolve)),
    ask: (question, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted === true) {
          resolve(undefined);
          return;
        }
        const lines = createInterface({ input, terminal: false });
        let armed = false;
        const disarm = clock.after(ARM_MS, () => {
          armed = true;
        });
        const end = (line: string | undefined): void => {
          disarm();
          signal?.removeEventListener("abort", giveUp);
          lines.removeAllListeners();
          lines.close();
          resolve(line);
        };
        const giveUp = (): void => {
          output.write("\n");
          end(undefined);
        };
        lines.on("line", (line) => {
          if (armed) end(line);
          else output.write(question);
        });
        lines.once("close", giveUp);
        signal?.addEventListener("abort", giveUp, { once: true });
        output.write(question);
      }),
  };
}
