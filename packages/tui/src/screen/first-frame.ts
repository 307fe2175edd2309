import type { Clock } from "@sluice/core";
import { createPalette, type Line, type Palette, paint, wrap } from "@sluice/view/text";
import type { AppContext, AppFlags } from "../app/engine.ts";
import { greeting } from "../app/greeting.ts";
import { createComposer } from "../composer/composer.ts";
import { render } from "../composer/editing/render.ts";
import { TerminalStream } from "./terminal-stream.ts";

export interface TerminalIo {
  readonly clock: Clock;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
}

/** The terminal after the first frame, which is drawn before slow modules are loaded. */
export interface FirstFrame {
  readonly stream: TerminalStream;
  readonly palette: Palette;
  /** Aborted when the terminal is gone. */
  readonly lost: AbortSignal;
}

/** Shown in an empty composer without a run. */
export const PLACEHOLDER = "/run codeReview <task>, or / for commands";

/** Draws the greeting and the composer. Input is buffered until the app has started. */
export async function firstFrame(
  flags: AppFlags,
  context: AppContext,
  { clock, stdin, stdout }: TerminalIo,
): Promise<FirstFrame> {
  const lost = new AbortController();
  const fullscreen = flags.fullscreen === true;
  const palette = createPalette({ colour: hasColour(context.env) });
  const stream = new TerminalStream(stdout, { stdin, clock, fullscreen, onLost: () => lost.abort() });
  stdin.setRawMode(true);
  const { columns: width } = stream;
  const rows = greeting(context).flatMap((line) => wrap(line, width));
  stream.append(written(rows, palette));
  const { lines, cursor } = render(createComposer(), { width, maxRows: 1, placeholder: PLACEHOLDER });
  stream.write([...lines, []].map((line) => paint(line, palette)).join("\n"));
  stream.setCursor(cursor);
  await new Promise<void>((resolve) => void clock.after(1, resolve));
  return { stream, palette, lost: lost.signal };
}

export function written(lines: readonly Line[], palette: Palette): string {
  return lines.map((line) => `${paint(line, palette)}\n`).join("");
}

/** Any non-empty NO_COLOR counts; Ink ignores it. */
function hasColour({ NO_COLOR, FORCE_COLOR, TERM }: AppContext["env"]): boolean {
  if (NO_COLOR !== undefined && NO_COLOR !== "") return false;
  return FORCE_COLOR !== "0" && TERM !== "dumb";
}
