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

/** The properties of the process's streams. */
export interface TerminalFacts {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  /** Of stdout; undefined if it is not a terminal. */
  readonly columns: number | undefined;
  readonly rows: number | undefined;
  /** Colour depth of stdout in bits; 1 is no colour. */
  readonly colourBits: number;
}

/** The process's three streams: stdout for results, stderr for everything else. */
export interface Terminal {
  /** Writes results, to stdout. */
  out(text: string): void;
  /** Writes diagnostics and prompts, to stderr. */
  err(text: string): void;
  /** Colours text if the stream is a terminal and colours are not turned off. */
  paint(stream: "out" | "err", tone: Tone, text: string): string;
  /** Whether all three streams are terminals. */
  readonly interactive: boolean;
  readonly input: NodeJS.ReadableStream;
  readonly prompts: NodeJS.WritableStream;
  /** Opens the terminal of this process, whatever its streams are; undefined without one. */
  controlling(): ControllingTerminal | undefined;
  facts(): TerminalFacts;
  /** Waits until all output is written. Returns the error message if the result could not be written. */
  flush(): Promise<string | undefined>;
}

/** The terminal of this process. Unlike its streams, it cannot be redirected to a file or a pipe. */
export interface ControllingTerminal {
  say(text: string): void;
  close(): void;
}

interface Streams {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
}

/** A closed pipe (`| head`) is not a failure: the run continues and its output is dropped. A full disk is a failure. */
export function createTerminal({ stdin, stdout, stderr }: Streams): Terminal {
  const isTerminal = { stdin: stdin.isTTY === true, stdout: stdout.isTTY === true, stderr: stderr.isTTY === true };
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
    interactive: isTerminal.stdin && isTerminal.stdout && isTerminal.stderr,
    input: stdin,
    controlling: openControllingTerminal,
    facts: () => ({
      ...isTerminal,
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

/** Undefined without a terminal, as in CI, under cron or after setsid. */
function openControllingTerminal(): ControllingTerminal | undefined {
  try {
    const opened = openSync("/dev/tty", constants.O_RDWR | constants.O_NOCTTY);
    return {
      // A stopped terminal must not block the run, and a closed one cannot report the error.
      say: (text) => write(opened, text, () => undefined),
      close: () => closeSync(opened),
    };
  } catch {
    // Whatever the reason, there is no terminal to write to.
    return undefined;
  }
}
