import { Writable } from "node:stream";
import type { ReadStream, WriteStream } from "node:tty";
import { type Clock, systemClock } from "@sluice/core";
import { erase, eraseDown, nothingPainted, place, printed, repaint, up, withCursor } from "./frame-bytes.ts";
import { afterResize, type Cell, cursorRuleOf, type Painted, rowsAt, type Size } from "./reflow.ts";
import { askSize, sizeOf, writeWhole } from "./terminal-device.ts";

export interface TerminalStreamOptions {
  /** `restore` ends its raw mode. */
  readonly stdin?: ReadStream;
  readonly clock?: Clock;
  /** Uses the alternate screen, which has no scrollback. */
  readonly fullscreen?: boolean;
  /** Called once when the terminal is gone (EIO, EPIPE). Nothing is written after that. */
  readonly onLost?: (error: Error) => void;
}

/** Minimum time between frames, in milliseconds. */
const FRAME_MS = 33;
/** A new size is used once it was stable for this time, in milliseconds: a dragged window sends dozens a second. */
const SETTLE_MS = 50;
/** Maximum wait for a stable size, in milliseconds. */
const SETTLE_AT_MOST_MS = 250;
/** Idle time before the cursor moves to the input, in milliseconds. */
const REST_MS = 150;
/** The cursor leaves the first row only if the rows above it would fit a terminal of this size. */
const SMALL: Size = { columns: 60, rows: 15 };

const ESC = "\x1b";
// Synchronized updates: the terminal shows the output between them at once, or ignores them.
const beginUpdate = "\x1b[?2026h";
const endUpdate = "\x1b[?2026l";
const hideCursor = "\x1b[?25l";
const showCursor = "\x1b[?25h";
const enterAlternate = "\x1b[?1049h\x1b[H\x1b[J";
const leaveAlternate = "\x1b[?1049l";
const home = "\x1b[H";
/** What Ink writes besides frames: mode changes and queries. */
const modes = new RegExp(`^(?:${ESC}\\[[<>=?]?[0-9;]*[hlu])+$`);

/**
 * The stdout of Ink, which with `debug: true` writes whole frames. Ink's own updates count rows upwards from below the frame,
 * which is wrong once the terminal rewraps rows: parts of frames would stay in the scrollback.
 *
 * Between writes the cursor is on the first cell of the frame, so erasing from the cursor down removes the whole frame,
 * whatever the terminal did to its rows. On a resize, the frame is erased at once and painted again once the size is stable.
 */
export class TerminalStream extends Writable {
  readonly isTTY = true;
  readonly #stdout: WriteStream;
  readonly #stdin: ReadStream | undefined;
  readonly #send: (bytes: string) => boolean;
  readonly #clock: Clock;
  readonly #rule = cursorRuleOf(process.env);
  readonly #fullscreen: boolean;
  readonly #onLost: ((error: Error) => void) | undefined;
  /** The last stable size, which the app uses. */
  #size: Size;
  #actual: Size;
  #painted: Painted = nothingPainted;
  /** The screen row of the frame's first row, if known, and its minimum. */
  #top: number | undefined = 0;
  #topAtLeast = 0;
  #frame: readonly string[] = [];
  /** Upper rows that do not fit the terminal. */
  #cut = 0;
  #cursor: Cell | undefined;
  #above: string[] = [];
  /** The terminal's modes are set for frames. */
  #begun = false;
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
    const { stdin, clock = systemClock, fullscreen = false, onLost } = options;
    this.#stdout = stdout;
    this.#stdin = stdin;
    // Bound now: stdout.write may be redirected later.
    this.#send = stdout.write.bind(stdout);
    this.#clock = clock;
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

  /** Prints final lines above the frame, into the scrollback. */
  append(text: string): void {
    if (text === "" || this.#fullscreen) return;
    this.#above.push(text);
    this.#schedule();
  }

  /**
   * Sets the input cursor, which is painted into the frame. The terminal's own cursor is hidden, but input methods show their
   * composition at it, so it moves there while the frame is idle.
   */
  setCursor(cell: Cell | undefined): void {
    if (cell?.row === this.#cursor?.row && cell?.column === this.#cursor?.column) return;
    this.#cursor = cell;
    this.#schedule();
  }

  /** Erases the frame and gives the terminal to another program. */
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

  /** Erases the frame and restores the terminal, synchronously, so it also works on signals and uncaught errors. Idempotent. */
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
      // Keeps the lowest rows, which have the input: a frame higher than the terminal would scroll away.
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
      // Moves the screen into the scrollback, so that the frame begins on the first row.
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
    // Never at once: appended lines and their frame are often written one after the other.
    const wait = Math.max(0, this.#paintedAt + FRAME_MS - this.#clock.now());
    this.#stopPainting = this.#clock.after(wait, this.#flush);
  }

  readonly #flush = (): void => {
    this.#stopPainting?.();
    this.#stopPainting = undefined;
    if (this.#lost || this.#released || this.destroyed) return;
    askSize(this.#stdout);
    if (this.#settleBy !== undefined) return;
    // A slow terminal gets only the last frame.
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

  /** The frame with its cursor, padded down to the end of the screen. */
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
    // Rows above the cursor scroll away if the terminal gets too low for them.
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
    // Ink draws a frame for the new size.
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
