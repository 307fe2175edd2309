import { readFileSync } from "node:fs";
import { type Clock, messageOf } from "@sluice/core";
import { render } from "ink";
import type { CommandContext } from "../../work/context.ts";
import { App } from "../app.ts";
import type { AppFlags } from "../flags.ts";
import { greeting, modelHelp } from "../greeting.ts";
import type { Line } from "../text/line.ts";
import { createPalette, paint } from "../text/paint.ts";
import { Screen, type SuspendTerminal } from "./screen.tsx";
import { catchStrayOutput } from "./stray-output.ts";
import { createSurface } from "./surface.ts";
import { createTerminalStream } from "./terminal-stream.ts";

export interface Surroundings {
  readonly clock: Clock;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
}

const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
const SIGNAL_NAMES = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const BELL = "\u0007";

/** Draws the app until it is quit, and leaves the terminal as it was. Returns the exit code. */
export async function showApp(flags: AppFlags, context: CommandContext, around: Surroundings): Promise<number> {
  const { clock, stdin, stdout } = around;
  const fullscreen = flags.fullscreen === true;
  const palette = createPalette({ colour: hasColour(context.env) });
  const written = (lines: readonly Line[]): string => lines.map((line) => `${paint(line, palette)}\n`).join("");
  let suspend: SuspendTerminal | undefined;
  let app: App | undefined;
  const stream = createTerminalStream(stdout, {
    stdin,
    clock,
    fullscreen,
    // Nobody sees anything any more: what runs is suspended, and can be taken up elsewhere.
    onLost: () => app?.quit(SIGNALS.SIGHUP),
  });
  app = new App({
    flags,
    context,
    clock,
    size: { width: stream.columns, height: stream.rows },
    terminal: {
      append: (lines) => stream.append(written(lines)),
      alert: () => void stdout.write(BELL),
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
  const surface = createSurface(app, { palette, setCursor: (cell) => stream.setCursor(cell) });
  const release = catchStrayOutput((text) => app.say(text, "notice"));
  stream.append(written(greeting(ownVersion(), context.here)));
  const instance = render(
    <Screen
      surface={surface}
      onSuspend={(given) => {
        suspend = given;
      }}
    />,
    {
      stdout: stream,
      stdin,
      exitOnCtrlC: false,
      patchConsole: false,
      interactive: true,
      // Whole frames: what becomes of them on the screen is the stream's.
      debug: true,
    },
  );
  const stops = SIGNAL_NAMES.map((signal) => ({ signal, stop: () => app.quit(SIGNALS[signal]) }));
  for (const { signal, stop } of stops) process.on(signal, stop);
  const onExit = (): void => stream.restore();
  process.on("exit", onExit);
  void app.perform(async () => {
    await app.open();
    const help = await modelHelp(app.engine, context);
    if (help !== undefined) stream.append(written(help));
  });
  try {
    const { exitCode, lines } = await app.quitted;
    instance.unmount();
    release();
    stream.restore();
    for (const line of lines) context.terminal.out(`${line}\n`);
    return exitCode;
  } catch (thrown) {
    stream.restore();
    context.terminal.err(`sluice: ${messageOf(thrown)}\n`);
    return 1;
  } finally {
    release();
    for (const { signal, stop } of stops) process.off(signal, stop);
    process.off("exit", onExit);
  }
}

async function lent<T>(suspend: SuspendTerminal, work: () => Promise<T>): Promise<T> {
  const suspension = await suspend();
  try {
    return await work();
  } finally {
    await suspension.resume();
  }
}

/** NO_COLOR counts when it is set to anything; Ink does not look at it. */
function hasColour({ NO_COLOR, FORCE_COLOR, TERM }: CommandContext["env"]): boolean {
  if (NO_COLOR !== undefined && NO_COLOR !== "") return false;
  return FORCE_COLOR !== "0" && TERM !== "dumb";
}

function ownVersion(): string {
  const { version }: { readonly version: string } = JSON.parse(
    readFileSync(new URL("../../../package.json", import.meta.url), "utf8"),
  );
  return version;
}
