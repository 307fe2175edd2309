import type { RunWatch } from "@sluice/view/records";
import { fold, type Line, moreLine, type Span, type Style, spanOf, wrap } from "@sluice/view/text";
import { type FrameAt, logLines } from "../run/log.ts";
import { textBlock } from "../run/text-block.ts";
import { NOTE_SIGNS } from "../run/transcript.ts";
import type { AppTerminal } from "./app-state.ts";
import type { NoticeTone } from "./command.ts";
import type { Viewer } from "./overlay/viewer.ts";

/** Rows printed of a run's earlier log, and of a viewer. */
const MAX_HISTORY = 400;
/** Rows of notices that fullscreen shows, which has no scrollback. */
const NOTICE_ROWS = 4;

/** A watched run, and the items of its log that are printed. */
interface Printed {
  readonly watch: Pick<RunWatch, "view">;
  printed: number;
}

/** Final output: the scrollback, or what replaces it in fullscreen. */
export class Scroll {
  readonly #terminal: Pick<AppTerminal, "append">;
  readonly #hasScrollback: boolean;
  readonly #width: () => number;
  readonly #withoutSecrets: (text: string) => string;
  readonly #frameAt: FrameAt;
  #notices: readonly Line[] = [];
  #welcome: readonly Line[] = [];

  constructor(
    terminal: Pick<AppTerminal, "append">,
    hasScrollback: boolean,
    width: () => number,
    withoutSecrets: (text: string) => string,
    frameAt: FrameAt = () => undefined,
  ) {
    this.#terminal = terminal;
    this.#hasScrollback = hasScrollback;
    this.#width = width;
    this.#withoutSecrets = withoutSecrets;
    this.#frameAt = frameAt;
  }

  get notices(): readonly Line[] {
    return this.#notices;
  }

  get welcome(): readonly Line[] {
    return this.#welcome;
  }

  greet(lines: readonly Line[]): void {
    this.#append(lines);
    if (!this.#hasScrollback) this.#welcome = [...this.#welcome, ...lines];
  }

  say(text: string, tone: NoticeTone): void {
    const lines = noticeLines(this.#withoutSecrets(text), tone, this.#width());
    this.#append(lines);
    if (!this.#hasScrollback) this.#notices = [...this.#notices, ...lines].slice(-NOTICE_ROWS);
  }

  /** Shows a submitted input and drops the notices before it. */
  echo(text: string): void {
    this.#append([[], ...promptLines(this.#withoutSecrets(text), this.#width())]);
    this.#notices = [];
  }

  /** Prints what became final in a run since the last call. */
  log(watched: Printed): void {
    const { lines, printed } = logLines(watched.watch.view(), watched.printed, this.#width(), this.#frameAt);
    const hidden = watched.printed === 0 ? lines.length - MAX_HISTORY : 0;
    watched.printed = printed;
    const shown =
      hidden > 0 ? [moreLine(hidden, "earlier: Ctrl+O opens a full transcript"), ...lines.slice(hidden)] : lines;
    if (shown.length > 0) this.#terminal.append(shown);
  }

  /** Prints a viewer where no frame is drawn. */
  print({ title, rows, follows }: Viewer): void {
    const width = this.#width();
    const first = follows ? Math.max(0, rows.count(width) - MAX_HISTORY) : 0;
    this.#terminal.append([[spanOf(title, "heading")], ...rows.slice(first, first + MAX_HISTORY, width)]);
  }

  /** Wraps between words; a terminal breaks anywhere. */
  #append(lines: readonly Line[]): void {
    this.#terminal.append(lines.flatMap((line) => wrap(line, this.#width())));
  }
}

/** Rows of one notice. */
const MAX_LINES = 30;
/** UTF-16 units of a notice that are laid out. */
const MAX_TEXT = 20_000;

/** A notice of the app; only its first row begins at the edge. */
export function noticeLines(text: string, tone: NoticeTone, width: number): readonly Line[] {
  const [sign, style] = NOTE_SIGNS[tone];
  return marked({ text: `${sign} `, style }, text, tone === "plain" ? "dim" : "plain", width);
}

/** A submitted input. */
export function promptLines(text: string, width: number): readonly Line[] {
  return marked({ text: "❯ ", style: "accent" }, text, "strong", width);
}

function marked(mark: Span, text: string, style: Style, width: number): readonly Line[] {
  const rows = fold(textBlock(text, { width, style, most: MAX_TEXT }), MAX_LINES);
  return rows.map((row, index): Line => [index === 0 ? mark : { text: "  " }, ...row]);
}
