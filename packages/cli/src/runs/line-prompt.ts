import { createInterface } from "node:readline";
import { type Clock, systemClock } from "@sluice/core";
import type { Terminal } from "../output/terminal.ts";

/** Ignores lines that arrive before a user can have read the question. */
const ARM_MS = 300;

/** Lets lines that were just written appear before the question. */
const PAUSE_MS = 50;

export interface LinePrompt {
  /** Waits for pending output, so that a question follows it. */
  pause(): Promise<void>;
  /** Shows a question and waits for a line; undefined if the input ends or the signal aborts. */
  ask(question: string, signal?: AbortSignal): Promise<string | undefined>;
}

interface LinePromptOptions {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  readonly clock: Clock;
}

export function linePromptOf({ input, prompts }: Terminal): LinePrompt {
  return createLinePrompt({ input, output: prompts, clock: systemClock });
}

/** Asks questions on a terminal, which edits the line itself, so that Ctrl-C stays a signal. */
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
          signal?.removeEventListener("abort", cancel);
          lines.removeAllListeners();
          lines.close();
          resolve(line);
        };
        const cancel = (): void => {
          output.write("\n");
          end(undefined);
        };
        lines.on("line", (line) => {
          if (armed) end(line);
          else output.write(question);
        });
        lines.once("close", cancel);
        signal?.addEventListener("abort", cancel, { once: true });
        output.write(question);
      }),
  };
}
