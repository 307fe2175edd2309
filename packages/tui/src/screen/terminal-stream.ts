import { Writable } from "node:stream";
import type { ReadStream, WriteStream } from "node:tty";
import { type Clock, systemClock } from "@sluice/core";
import { erase, eraseDown, nothingPainted, place, printed, repaint, up, withCursor } from "./frame-bytes.ts";
import { afterResize, type Cell, type CursorRule, cursorRuleOf, type Painted, rowsAt, type Size } from "./reflow.ts";
import { askSize, sizeOf, writeWhole } from "./terminal-device.ts";

export interface TerminalStreamOptions {
  /** Taken out of raw mode by `restore`. */
  readonly stdin?: ReadStream;
  readonly clock?: Clock;
  /** The alternate screen: no scrollback, and nothing is printed above the frame. */
  readonly fullscreen?: boolean;
  /** Where the terminal leaves the cursor when it breaks rows; read from the environment when omitted. */
  readonly cursorRule?: CursorRule;
  /** Called once, when the terminal went away (EIO, EPIPE). Nothing is written after that. */
  readonly onLost?: (error: Error) => void;
}

/** Frames are painted this far apart, in milliseconds. */
const FRAME_MS = 33;
/** A new size is taken once no other came for so long: a window that is dragged sends dozens a second. */
const SETTLE_MS = 50;
/** But no later than this after the first of them. */
const SETTLE_AT_MOST_MS = 250;
/** How long nothing is painted before the cursor goes to where is typed. */
const REST_MS = 150;
/** The cursor leaves the first row only for frames that would have room on a terminal of this size, down to the cursor. */
const SMALL: Size = { columns: 60, rows: 15 };

const ESC = "\x1b";
// A terminal that knows these shows nothing of what is between them before its end; others ignore them.
const beginUpdate = "\x1b[?2026h";
const endUpdate = "\x1b[?2026l";
const hideCursor = "\x1b[?25l";
const showCursor = "\x1b[?25h";
const enterAlternate = "\x1b[?1049h\x1b[H\x1b[J";
const leaveAlternate = "\x1b[?1049l";
const home = "\x1b[H";
/** What Ink sends besides frames: modes set and reset, and questions. No frame consists of them alone. */
const modes = new RegExp(`^(?:${ESC}\\[[<>=?]?[0-9;]*[hlu])+$`);

/**
 * The stdout that Ink is given, with `debug: true`: so Ink writes each frame as a whole and nothing else, and what is on
 * the screen is known here and only here. Ink's own way counts rows upwards from below the frame, which is wrong as soon as
 * the terminal breaks rows for a new width, and then parts of frames stay in the scrollback.
 *
 * Between two writes the cursor stands on the first cell of the frame. All of the frame is below it, so whatever a
 * terminal does to these rows, erasing from the cursor down takes them away, also when it read a frame that was made for
 * another size. When a new size is told, the frame is erased at once and painted again when the size has settled.
 */
export class TerminalStream extends Writable {
  readonly isTTY = true;
  readonly #stdout: WriteStream;
  readonly #stdin: ReadStream | undefined;
  readonly #send: (bytes: string) => boolean;
  readonly #clock: Clock;
  readonly #rule: CursorRule;
  readonly #fullscreen: boolean;
  readonly #onLost: ((error: Error) => void) | undefined;
  /** What the app is told: the last size that settled. */
  #size: Size;
  /** What the terminal has now. */
  #actual: Size;
  #painted: Painted = nothingPainted;
  /** The row of the screen on which the frame begins, as far as it is known, and the least it can be. */
  #top: number | undefined = 0;
  #topAtLeast = 0;
  #frame: readonly string[] = [];
  /** How many of its upper rows the terminal has no room for. */
  #cut = 0;
  #cursor: Cell | undefined;
  #above: string[] = [];
  /** The terminal is in the state that frames need. */
  #begun = false;
  /** Something was painted. */
  #started = false;
  #lost = false;
  #released = false;
  #kittyLevels = 0;
  #paintedAt = 0;
  #settleBy: number | undefined;
  #stopSettling = (): void => undefined;
  #stopPainting: (() => void) | undefined;
  #stopResting = (): void => undefined;

  constructor(stdout: WriteStream, options: TerminalStreamOptions = {}) {
    super({ decodeStrings: false });
    const { stdin, clock = systemClock, fullscreen = false, cursorRule, onLost } = options;
    this.#stdout = stdout;
    this.#stdin = stdin;
    // Bound now: what others write to stdout may be caught by then.
    this.#send = stdout.write.bind(stdout);
    this.#clock = clock;
    this.#rule = cursorRule ?? cursorRuleOf(process.env);
    this.#fullscreen = fullscreen;
    this.#onLost = onLost;
    this.#size = sizeOf(stdout);
    this.#actual = this.#size;
    stdout.on("resize", this.#resized);
    stdout.on("error", this.#fail);
  }

  get columns(): number {
    return this.#size.columns;
  }

  get rows(): number {
    return this.#size.rows;
  }

  /** Prints lines above the frame, into the scrollback. They are final; one longer than the terminal is wide is broken by it. */
  append(text: string): void {
    if (text === "" || this.#fullscreen) return;
    this.#above.push(text);
    this.#schedule();
  }

  /**
   * Where text is typed. The cursor there is painted, as a part of the frame. The terminal's own is never shown, but input
   * methods show at its cell what is being composed: it goes to the painted one while nothing changes. Elsewhere than on its
   * first cell a frame that is just being painted could leave rows behind when the terminal changes its size.
   */
  setCursor(cell: Cell | undefined): void {
    if (cell?.row === this.#cursor?.row && cell?.column === this.#cursor?.column) return;
    this.#cursor = cell;
    this.#schedule();
  }

  /** Takes the frame away and leaves the terminal to another program, whose frames are kept for later. */
  release(): void {
    this.#flush();
    this.#stopResting();
    this.#write(erase(this.#painted) + (this.#fullscreen ? leaveAlternate : "") + showCursor);
    this.#painted = nothingPainted;
    this.#released = true;
    this.#begun = false;
  }

  /** Takes the terminal back from another program. */
  reclaim(): void {
    this.#released = false;
    this.#schedule();
  }

  /** Paints everything anew: somebody else has written on the screen. */
  redraw(): void {
    this.#write(this.#fullscreen ? home : erase(this.#painted));
    this.#painted = nothingPainted;
    this.#schedule();
  }

  /**
   * Leaves the terminal as it was found: the frame is taken away, and the cursor, the modes and the screen are put back. All
   * of it is written before this returns, so it is also for signals and for errors that nobody caught. Nothing is painted
   * after that. A second call does nothing.
   */
  restore(): void {
    if (this.destroyed) return;
    const bytes = this.#begun
      ? [
          erase(this.#painted),
          ...this.#above.map(printed),
          this.#fullscreen ? leaveAlternate : "",
          "\x1b[<u".repeat(this.#kittyLevels),
          `\x1b[m\x1b[?7h${endUpdate}\x1b[?2004l${showCursor}`,
        ].join("")
      : "";
    this.destroy();
    const fd = "fd" in this.#stdout && typeof this.#stdout.fd === "number" ? this.#stdout.fd : 1;
    if (!this.#lost) writeWhole(fd, bytes);
    this.#stdin?.setRawMode?.(false);
  }

  override _write(chunk: unknown, _encoding: BufferEncoding, done: () => void): void {
    const text = String(chunk);
    if (modes.test(text)) this.#setModes(text);
    else if (text !== "") {
      // The lowest rows are what is typed in; and a frame that is higher than the terminal would scroll away.
      const rows = text.split("\n");
      this.#cut = Math.max(0, rows.length - this.#size.rows);
      this.#frame = rows.slice(this.#cut);
      this.#schedule();
    }
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#stopSettling();
    this.#stopPainting?.();
    this.#stopResting();
    this.#stdout.off("resize", this.#resized);
    this.#stdout.off("drain", this.#flush);
    done(error);
  }

  #setModes(text: string): void {
    if (text.includes("\x1b[>")) this.#kittyLevels += 1;
    if (text.includes("\x1b[<")) this.#kittyLevels -= 1;
    this.#begin();
    this.#write(text);
  }

  #begin(): void {
    if (this.#begun || this.#released) return;
    this.#begun = true;
    const { rows } = this.#actual;
    if (this.#fullscreen) {
      this.#setTop(0);
      this.#write(enterAlternate);
    } else if (!this.#started) {
      // What is on the screen moves into the scrollback. So it is known where the frame begins, and it has all of the screen:
      // what is typed in stays at its bottom.
      this.#setTop(0);
      this.#write("\n".repeat(rows) + up(rows));
    } else this.#setTop(undefined);
    this.#started = true;
    this.#write(hideCursor);
  }

  #setTop(top: number | undefined): void {
    this.#top = top;
    this.#topAtLeast = top ?? 0;
  }

  #schedule(): void {
    if (this.#stopPainting !== undefined || this.#settleBy !== undefined || this.#released || this.destroyed) return;
    // Never at once: what is appended and the frame that follows from it are often written one after the other.
    const wait = Math.max(0, this.#paintedAt + FRAME_MS - this.#clock.now());
    this.#stopPainting = this.#clock.after(wait, this.#flush);
  }

  readonly #flush = (): void => {
    this.#stopPainting?.();
    this.#stopPainting = undefined;
    if (this.#lost || this.#released || this.destroyed) return;
    askSize(this.#stdout);
    if (this.#settleBy !== undefined) return;
    // Only the last frame is kept for a terminal that is behind.
    if (this.#stdout.writableNeedDrain) {
      this.#stdout.once("drain", this.#flush);
      return;
    }
    this.#paint();
  };

  #paint(): void {
    this.#begin();
    this.#stopResting();
    let bytes = "";
    if (this.#above.length > 0) {
      bytes += erase(this.#painted) + this.#above.map(printed).join("");
      this.#topAtLeast += this.#rowsOf(this.#above);
      this.#above = [];
      this.#painted = nothingPainted;
    }
    const rows = this.#rowsToPaint();
    bytes += repaint(this.#painted, rows);
    this.#painted = { rows, cursor: nothingPainted.cursor };
    this.#paintedAt = this.#clock.now();
    if (bytes !== "") this.#write(beginUpdate + bytes + endUpdate);
    this.#stopResting = this.#clock.after(REST_MS, this.#rest);
  }

  /** The frame with its cursor, moved down to the end of the screen. */
  #rowsToPaint(): readonly string[] {
    const frame = this.#frame;
    const room = this.#actual.rows;
    this.#topAtLeast = Math.min(this.#topAtLeast, Math.max(0, room - frame.length));
    if (this.#top !== undefined || this.#topAtLeast === room - frame.length) this.#top = this.#topAtLeast;
    const blank = this.#top === undefined ? 0 : Math.max(0, room - this.#top - frame.length);
    const cell = this.#cursorCell();
    const rows = frame.map((row, at) => (at === cell?.row ? withCursor(row, cell.column) : row));
    return [...Array.from({ length: blank }, () => ""), ...rows];
  }

  #rowsOf(texts: readonly string[]): number {
    const { columns } = this.#actual;
    const rows = (text: string): number =>
      (text.endsWith("\n") ? text.slice(0, -1) : text)
        .split("\n")
        .reduce((sum, line) => sum + rowsAt(columns, line), 0);
    return texts.reduce((sum, text) => sum + rows(text), 0);
  }

  #cursorCell(): Cell | undefined {
    const cell = this.#cursor;
    const row = (cell?.row ?? 0) - this.#cut;
    if (cell === undefined || row < 0 || row >= this.#frame.length) return undefined;
    return { row, column: Math.min(cell.column, this.#size.columns - 1) };
  }

  readonly #rest = (): void => {
    const cell = this.#cursorCell();
    if (cell === undefined || this.#settleBy !== undefined || this.#released) return;
    // What is above the cursor scrolls away where a terminal gets too low for it.
    const above = this.#frame.slice(0, cell.row).reduce((sum, row) => sum + rowsAt(SMALL.columns, row), 0);
    if (above >= SMALL.rows) return;
    const { rows } = this.#painted;
    const cursor = { row: rows.length - this.#frame.length + cell.row, column: cell.column };
    this.#write(place(cursor));
    this.#painted = { rows, cursor };
  };

  readonly #resized = (): void => {
    if (this.destroyed) return;
    const size = sizeOf(this.#stdout);
    if (size.columns === this.#actual.columns && size.rows === this.#actual.rows) return;
    this.#stopPainting?.();
    this.#stopPainting = undefined;
    this.#stopResting();
    if (this.#begun && !this.#released) {
      const { above, top } = afterResize(this.#painted, this.#top, this.#actual, size, this.#rule);
      this.#write(`${this.#fullscreen ? home : up(above)}${eraseDown}`);
      this.#setTop(top);
      this.#painted = nothingPainted;
    }
    this.#actual = size;
    const now = this.#clock.now();
    this.#settleBy ??= now + SETTLE_AT_MOST_MS;
    this.#stopSettling();
    this.#stopSettling = this.#clock.after(Math.min(SETTLE_MS, this.#settleBy - now), this.#settled);
  };

  readonly #settled = (): void => {
    this.#settleBy = undefined;
    this.#size = this.#actual;
    // What was made for another width is not painted: Ink answers with a frame.
    this.#frame = [];
    this.emit("resize");
    this.#schedule();
  };

  readonly #fail = (error: Error): void => {
    if (this.#lost) return;
    this.#lost = true;
    this.#onLost?.(error);
  };

  #write(bytes: string): void {
    if (!this.#lost && bytes !== "") this.#send(bytes);
  }
}

export function createTerminalStream(stdout: WriteStream, options?: TerminalStreamOptions): TerminalStream {
  return new TerminalStream(stdout, options);
}
