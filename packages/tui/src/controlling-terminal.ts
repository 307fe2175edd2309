import { closeSync, constants, openSync, write } from "node:fs";

/** The terminal that this process belongs to, whatever its streams are: what is said there is in no file and no pipe. */
export interface ControllingTerminal {
  say(text: string): void;
  close(): void;
}

/** Undefined where the process has none, as in CI, under cron or in a process of its own session. */
export function openControllingTerminal(): ControllingTerminal | undefined {
  const opened = openTerminal();
  if (opened === undefined) return undefined;
  return {
    // A terminal that stands still must not hold the run, and one that is gone shows nothing: there is nobody to say it to.
    say: (text) => write(opened, text, () => undefined),
    close: () => closeSync(opened),
  };
}

function openTerminal(): number | undefined {
  try {
    return openSync("/dev/tty", constants.O_RDWR | constants.O_NOCTTY);
  } catch {
    // Whatever the reason, nobody can be shown anything there.
    return undefined;
  }
}
