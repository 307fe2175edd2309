import type { Clock } from "@sluice/core";
import { messageOf, visible } from "@sluice/core/runtime";
import { createPalette, type Line, wrap } from "@sluice/view/text";
import { render } from "ink";
import { App } from "../app/app.ts";
import type { AppOptions } from "../app/app-state.ts";
import type { AppContext, AppFlags } from "../app/engine.ts";
import { greeting, modelHelp } from "../app/greeting.ts";
import { COMMANDS, PLAIN_COMMANDS } from "../commands/registry.ts";
import { type FirstFrame, type TerminalIo, written } from "./first-frame.ts";
import { createPlainLines } from "./plain.ts";
import { Screen, type SuspendTerminal } from "./screen.tsx";
import { createScreenModel } from "./screen-model.ts";
import { catchStrayOutput, OwnOutput } from "./stray-output.ts";

/** What both kinds of screen pass on to the app. */
type AppStart = Pick<AppOptions, "flags" | "context" | "createEngine" | "clock">;

/** The app on a terminal. */
interface MountedApp {
  readonly app: App;
  /** Restores the terminal; a second call has no effect. */
  end(): void;
}

const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
const SIGNAL_NAMES = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const BELL = "\u0007";
/** The bell rings at most once in this time, in milliseconds. */
const BELL_MS = 2_000;

/** Runs the app until it quits and restores the terminal. Returns the exit code. */
export async function showApp(
  flags: AppFlags,
  context: AppContext,
  createEngine: AppOptions["createEngine"],
  io: TerminalIo,
  first?: FirstFrame,
): Promise<number> {
  const start: AppStart = { flags, context, createEngine, clock: io.clock };
  const { app, end } = first === undefined ? mountLines(start, io) : mountFrames(start, io, first);
  // Never removed: a Ctrl-C while the process exits must not change the exit code.
  for (const signal of SIGNAL_NAMES) process.on(signal, () => app.stopped(SIGNALS[signal]));
  process.on("exit", end);
  // The first frame already printed the greeting to the scrollback.
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

function mountFrames(
  start: AppStart,
  { clock, stdin, stdout }: TerminalIo,
  { stream, palette, lost }: FirstFrame,
): MountedApp {
  const { env } = start.context;
  const own = new OwnOutput(stdout);
  let suspend: SuspendTerminal | undefined;
  const app = new App({
    ...start,
    commands: COMMANDS,
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
  // Without a terminal, the app suspends its runs.
  const onLost = (): void => app.quit(SIGNALS.SIGHUP);
  if (lost.aborted) onLost();
  else lost.addEventListener("abort", onLost, { once: true });
  // Before Ink's own listener, so that its next frame has the new size.
  stream.on("resize", () => app.resize({ width: stream.columns, height: stream.rows }));
  const model = createScreenModel(app, { palette, env, setCursor: (cell) => stream.setCursor(cell) });
  const onSuspend = (suspendTerminal: SuspendTerminal): void => {
    suspend = suspendTerminal;
  };
  const instance = render(<Screen model={model} onSuspend={onSuspend} />, {
    stdout: stream,
    stdin,
    exitOnCtrlC: false,
    patchConsole: false,
    interactive: true,
    // Ink writes whole frames; the stream paints them.
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

/** The app as lines, for screen readers. */
function mountLines(start: AppStart, { clock, stdin, stdout }: TerminalIo): MountedApp {
  const { env } = start.context;
  const palette = createPalette({ colour: false });
  const width = (): number => stdout.columns || 80;
  const own = new OwnOutput(stdout);
  const plain = createPlainLines({ input: stdin, output: own, width, clock, env });
  const print = (lines: readonly Line[]): void => {
    const rows = lines.flatMap((line) => wrap(line, width()));
    plain.print(written(rows, palette));
  };
  const app = new App({
    ...start,
    commands: PLAIN_COMMANDS,
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
