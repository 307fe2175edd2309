import { type Line, moreLine, spanOf, wrap } from "@sluice/view/text";
import type { NoticeTone } from "../commands/command.ts";
import { logLines } from "../run/log.ts";
import type { AppTerminal } from "./app-state.ts";
import { noticeLines, promptLines } from "./notices.ts";
import type { Viewer } from "./overlay/viewer.ts";
import type { Watched } from "./watched.ts";

/** Rows of what had happened before a run was turned to. */
const MOST_HISTORY = 400;
/** Notices on a screen of its own, where there is no scrollback to keep them. */
const KEPT_NOTICES = 4;

/** Everything that is written once and stays: the scrollback, or what stands in for it on a screen of its own. */
export class Scroll {
  readonly #terminal: Pick<AppTerminal, "append">;
  readonly #hasScrollback: boolean;
  readonly #width: () => number;
  readonly #withoutSecrets: (text: string) => string;
  #notices: readonly Line[] = [];
  #welcome: readonly Line[] = [];

  constructor(
    terminal: Pick<AppTerminal, "append">,
    hasScrollback: boolean,
    width: () => number,
    withoutSecrets: (text: string) => string,
  ) {
    this.#terminal = terminal;
    this.#hasScrollback = hasScrollback;
    this.#width = width;
    this.#withoutSecrets = withoutSecrets;
  }

  get notices(): readonly Line[] {
    return this.#notices;
  }

  /** What stands there before there is a run, on a screen of its own. */
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
    if (!this.#hasScrollback) this.#notices = [...this.#notices, ...lines].slice(-KEPT_NOTICES);
  }

  /** What was submitted; what was said before has been read. */
  echo(text: string): void {
    this.#append([[], ...promptLines(this.#withoutSecrets(text), this.#width())]);
    this.#notices = [];
  }

  /** What of a run became final since it was printed last. */
  log(watched: Watched): void {
    const { lines, printed } = logLines(watched.watch.view(), watched.printed, this.#width());
    const left = watched.printed === 0 ? lines.length - MOST_HISTORY : 0;
    watched.printed = printed;
    const shown = left > 0 ? [moreLine(left, "earlier: Ctrl+O shows a stage whole"), ...lines.slice(left)] : lines;
    if (shown.length > 0) this.#terminal.append(shown);
  }

  /** What would be opened over the frame, where there is none. */
  print({ title, rows, follows }: Viewer): void {
    const width = this.#width();
    const first = follows ? Math.max(0, rows.count(width) - MOST_HISTORY) : 0;
    this.#terminal.append([[spanOf(title, "heading")], ...rows.slice(first, first + MOST_HISTORY, width)]);
  }

  /** Broken between words: a terminal would break them anywhere. */
  #append(lines: readonly Line[]): void {
    this.#terminal.append(lines.flatMap((line) => wrap(line, this.#width())));
  }
}
