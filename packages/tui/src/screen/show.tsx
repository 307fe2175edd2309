import { type Clock, messageOf, visible } from "@sluice/core";
import { createPalette, type Line, wrap } from "@sluice/view/text";
import { render } from "ink";
import { App } from "../app/app.ts";
import type { AppOptions } from "../app/app-state.ts";
import type { AppContext, AppFlags } from "../app/engine.ts";
import { greeting, modelHelp } from "../app/greeting.ts";
import { type FirstFrame, type TerminalIo, written } from "./first-frame.ts";
import { createPlainLines } from "./plain.ts";
import { Screen, type SuspendTerminal } from "./screen.tsx";
import { catchStrayOutput, OwnOutput } from "./stray-output.ts";
import { createScreenModel } from "./surface.ts";

type CreateEngine = AppOptions["createEngine"];

/** The app on a terminal. */
interface Showing {
  readonly app: App;
  /** Leaves the terminal as it was found; a second call does nothing. */
  end(): void;
}

const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
const SIGNAL_NAMES = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const BELL = "\u0007";
/** Requests that come one after another ring once. */
const BELL_MS = 2_000;

/** Shows the app until it is quit, and leaves the terminal as it was. Returns the exit code. */
export async function showApp(
  flags: AppFlags,
  context: AppContext,
  createEngine: CreateEngine,
  around: TerminalIo,
  first?: FirstFrame,
): Promise<number> {
  const { app, end } =
    first === undefined
      ? inLines(flags, context, createEngine, around)
      : drawn(flags, context, createEngine, around, first);
  // Until the process is gone: one more Ctrl-C while it ends must not change its exit code.
  for (const signal of SIGNAL_NAMES) process.on(signal, () => app.stopped(SIGNALS[signal]));
  process.on("exit", end);
  // Above a first frame it stands in the scrollback already.
  if (first === undefined || flags.fullscreen === true) app.welcome(greeting(context));
  void app.perform(async () => {
    await app.open();
    const help = await modelHelp(app.engine);
    if (help !== undefined) app.welcome(help);
  });
  try {
    const { exitCode, lines } = await app.quitted;
    end();
    for (const line of lines) context.terminal.out(`${visible(line)}\n`);
    return exitCode;
  } catch (thrown) {
    end();
    context.terminal.err(`sluice: ${messageOf(thrown)}\n`);
    return 1;
  } finally {
    process.off("exit", end);
  }
}

/** Frames over the native scrollback, or on a screen of its own. */
function drawn(
  flags: AppFlags,
  context: AppContext,
  createEngine: CreateEngine,
  { clock, stdin, stdout }: TerminalIo,
  { stream, palette, lost }: FirstFrame,
): Showing {
  const own = new OwnOutput(stdout);
  let suspend: SuspendTerminal | undefined;
  const app = new App({
    flags,
    context,
    createEngine,
    clock,
    size: { width: stream.columns, height: stream.rows },
    terminal: {
      append: (lines) => stream.append(written(lines, palette)),
      alert: bellOf(own, clock),
      lend: async (work) => {
        stream.release();
        try {
          return suspend === undefined ? await work() : await lent(suspend, work);
        } finally {
          stream.reclaim();
        }
      },
    },
  });
  const release = catchStrayOutput([stdout, process.stderr], (text) => app.say(text, "notice"));
  // Nobody sees anything any more: what runs is suspended, and can be taken up elsewhere.
  const onLost = (): void => app.quit(SIGNALS.SIGHUP);
  if (lost.aborted) onLost();
  else lost.addEventListener("abort", onLost, { once: true });
  // Before Ink hears of it, so that its first frame of a new size is one of that size.
  stream.on("resize", () => app.resize({ width: stream.columns, height: stream.rows }));
  const surface = createScreenModel(app, { palette, env: context.env, setCursor: (cell) => stream.setCursor(cell) });
  const onSuspend = (given: SuspendTerminal): void => {
    suspend = given;
  };
  const instance = render(<Screen surface={surface} onSuspend={onSuspend} />, {
    stdout: stream,
    stdin,
    exitOnCtrlC: false,
    patchConsole: false,
    interactive: true,
    // Whole frames: what becomes of them on the screen is the stream's.
    debug: true,
  });
  return {
    app,
    end: () => {
      instance.unmount();
      release();
      stream.restore();
    },
  };
}

/** Lines that are written once, for whoever has the screen read out. */
function inLines(
  flags: AppFlags,
  context: AppContext,
  createEngine: CreateEngine,
  { clock, stdin, stdout }: TerminalIo,
): Showing {
  const palette = createPalette({ colour: false });
  const width = (): number => stdout.columns || 80;
  const own = new OwnOutput(stdout);
  const plain = createPlainLines({ input: stdin, output: own, width, clock, env: context.env });
  const print = (lines: readonly Line[]): void => {
    const rows = lines.flatMap((line) => wrap(line, width()));
    plain.print(written(rows, palette));
  };
  const app = new App({
    flags,
    context,
    createEngine,
    clock,
    size: { width: width(), height: stdout.rows || 24 },
    terminal: {
      append: print,
      alert: bellOf(own, clock),
      lend: (work) => work(),
    },
  });
  const release = catchStrayOutput([stdout, process.stderr], (text) => app.say(text, "notice"));
  const leave = plain.serve(app, print);
  return {
    app,
    end: () => {
      leave();
      release();
    },
  };
}

function bellOf(output: NodeJS.WritableStream, clock: Clock): () => void {
  let rungAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = clock.now();
    if (now - rungAt < BELL_MS) return;
    rungAt = now;
    output.write(BELL);
  };
}

async function lent<T>(suspend: SuspendTerminal, work: () => Promise<T>): Promise<T> {
  const suspension = await suspend();
  try {
    return await work();
  } finally {
    await suspension.resume();
  }
}
