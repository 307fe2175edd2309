import { closeSync, constants, openSync, write } from "node:fs";
import { styleText } from "node:util";
import type { Tone } from "@sluice/view/words";

const STYLES = {
  plain: [],
  strong: ["bold"],
  faint: ["dim"],
  good: ["green"],
  bad: ["red"],
  notice: ["yellow"],
  name: ["cyan"],
} as const satisfies Readonly<Record<Tone, readonly string[]>>;

/** What the process's streams are. */
export interface TerminalFacts {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  /** Of stdout; undefined where it is no terminal. */
  readonly columns: number | undefined;
  readonly rows: number | undefined;
  /** Bits of colour that stdout takes, by its own account and the environment; 1 is none. */
  readonly colourBits: number;
}

/** The process's three streams, as the command uses them: the result goes out, everything else is said aside. */
export interface Terminal {
  /** For the result, and nothing else. */
  out(text: string): void;
  /** For diagnostics and prompts. */
  err(text: string): void;
  /** Text in a colour, where the stream is a terminal and nobody asked for none. */
  paint(stream: "out" | "err", tone: Tone, text: string): string;
  /** Whether a person sits here: all three streams are terminals. */
  readonly interactive: boolean;
  /** Columns of stdout; undefined where it is not a terminal. */
  readonly columns: number | undefined;
  readonly input: NodeJS.ReadableStream;
  readonly prompts: NodeJS.WritableStream;
  /** The terminal of this process, past its streams; undefined where it has none. */
  controlling(): ControllingTerminal | undefined;
  /** What the streams are, for `sluice doctor`. */
  facts(): TerminalFacts;
  /** Waits until what was written has left. Returns why the result could not be written, if so. */
  flush(): Promise<string | undefined>;
}

/** The terminal that this process belongs to, whatever its streams are: what is said there is in no file and no pipe. */
export interface ControllingTerminal {
  say(text: string): void;
  close(): void;
}

interface Streams {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
}

/** A reader that went away (`| head`) is no failure: the run goes on, its output is dropped. A full disk is one. */
export function createTerminal({ stdin, stdout, stderr }: Streams): Terminal {
  const lost = new Set<NodeJS.WriteStream>();
  let fault: string | undefined;
  for (const stream of [stdout, stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      lost.add(stream);
      if (stream === stdout && error.code !== "EPIPE") fault ??= error.message;
    });
  }
  const write = (stream: NodeJS.WriteStream, text: string): void => {
    if (!lost.has(stream)) stream.write(text);
  };
  const drained = (stream: NodeJS.WriteStream): Promise<void> =>
    new Promise((resolve) => {
      if (lost.has(stream)) resolve();
      else stream.write("", () => resolve());
    });
  return {
    out: (text) => write(stdout, text),
    err: (text) => write(stderr, text),
    paint: (stream, tone, text) =>
      tone === "plain" ? text : styleText([...STYLES[tone]], text, { stream: stream === "out" ? stdout : stderr }),
    interactive: stdin.isTTY === true && stdout.isTTY === true && stderr.isTTY === true,
    columns: stdout.isTTY ? stdout.columns : undefined,
    input: stdin,
    controlling: openControllingTerminal,
    facts: () => ({
      stdin: stdin.isTTY === true,
      stdout: stdout.isTTY === true,
      stderr: stderr.isTTY === true,
      columns: stdout.isTTY ? stdout.columns : undefined,
      rows: stdout.isTTY ? stdout.rows : undefined,
      colourBits: stdout.isTTY ? stdout.getColorDepth() : 1,
    }),
    prompts: stderr,
    async flush() {
      await Promise.all([drained(stdout), drained(stderr)]);
      return fault;
    },
  };
}

/** Undefined where the process has none, as in CI, under cron or in a process of its own session. */
function openControllingTerminal(): ControllingTerminal | undefined {
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
