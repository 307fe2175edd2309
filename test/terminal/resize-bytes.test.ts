import xterm from "@xterm/headless";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  erase,
  eraseDown,
  nothingPainted,
  place,
  printed,
  repaint,
  up,
} from "../../packages/tui/src/screen/frame-bytes.ts";
import { afterResize, type Painted, rowsAt, type Size } from "../../packages/tui/src/screen/reflow.ts";

const { Terminal } = xterm;

/** A terminal that reads what is written at once. */
function createScreen({ columns, rows }: Size) {
  const terminal = new Terminal({ cols: columns, rows, scrollback: 10_000, allowProposedApi: true });
  return {
    terminal,
    /** Follows a row through resizes; counted from the cursor's up. */
    follow(above: number) {
      const marker = terminal.registerMarker(-above);
      return () => {
        const { baseY, cursorY } = terminal.buffer.active;
        const line = marker?.line ?? Number.NaN;
        return { above: baseY + cursorY - line, top: line - baseY };
      };
    },
    write: (text: string) => new Promise<void>((resolve) => terminal.write(text, resolve)),
    lines(): readonly string[] {
      const { active } = terminal.buffer;
      const joined: string[] = [];
      for (let row = 0; row < active.length; row += 1) {
        const line = active.getLine(row);
        const text = line?.translateToString(active.getLine(row + 1)?.isWrapped !== true) ?? "";
        if (line?.isWrapped === true) joined.push(`${joined.pop() ?? ""}${text}`);
        else joined.push(text);
      }
      return joined;
    },
  };
}

const size = fc.record({ columns: fc.integer({ min: 20, max: 200 }), rows: fc.integer({ min: 10, max: 50 }) });
const step = fc.record({
  size,
  /** Lengths of the lines that are printed. */
  lines: fc.array(fc.integer({ min: 1, max: 150 }), { maxLength: 12 }),
  /** Widths of the frame's rows, as parts of the terminal's. */
  frame: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 8 }),
  wide: fc.boolean(),
  /** Where the cursor rests, when it does. */
  rest: fc.option(fc.record({ row: fc.nat({ max: 7 }), column: fc.nat({ max: 19 }) })),
});

function row(width: number, wide: boolean): string {
  const text = wide ? "\u6f22".repeat(Math.floor(width / 2)) : "=".repeat(width);
  return text === "" ? "" : `\x1b[7m${text}\x1b[27m`;
}

/** The terminal leaves the second row of this frame whole, and breaks those above and below. */
const ONE_ROW_UNBROKEN = {
  size: { columns: 60, rows: 10 },
  lines: Array.from({ length: 12 }, () => 5),
  frame: [1, 1, 1, 0.1],
  wide: false,
  rest: null,
};

/** The terminal drops the row of this frame that it would have to break. */
const WIDE_ROW_DROPPED = { size: { columns: 20, rows: 10 }, lines: [23], frame: [0.96], wide: false, rest: null };

test("after any sizes it is known where a frame begins: no row of it is left, and each line stands there once", async () => {
  await fc.assert(
    fc.asyncProperty(size, fc.array(step, { minLength: 1, maxLength: 8 }), async (first, steps) => {
      const screen = createScreen(first);
      let now = first;
      let top = 0;
      let painted: Painted = nothingPainted;
      let count = 0;
      // A shell has been at work before.
      await screen.write("\n".repeat(200 + now.rows) + up(now.rows));
      for (const { size: next, lines, frame, wide, rest } of steps) {
        const texts = lines.map((width) => `<${count++}>`.padEnd(width, "."));
        top += texts.reduce((sum, text) => sum + rowsAt(now.columns, text), 0);
        const rows = frame.slice(0, now.rows).map((part) => row(Math.floor(part * now.columns), wide));
        top = Math.min(top, now.rows - rows.length);
        const all = [...Array.from({ length: now.rows - top - rows.length }, () => ""), ...rows];
        let bytes = "";
        if (texts.length > 0) {
          bytes = erase(painted) + texts.map(printed).join("");
          painted = nothingPainted;
        }
        bytes += repaint(painted, all);
        painted = { rows: all, cursor: { row: 0, column: 0 } };
        if (rest !== null) {
          const cursor = { row: all.length - rows.length + Math.min(rest.row, rows.length - 1), column: rest.column };
          bytes += place(cursor);
          painted = { rows: all, cursor };
        }
        await screen.write(bytes);
        // What is broken must have room: what a terminal scrolls away cannot be taken back. A higher one adds blank rows below
        // before it breaks others, and then scrolls; only with the cursor on its last row it takes rows back instead.
        const broken = all.reduce((sum, text) => sum + rowsAt(next.columns, text), 0);
        const onLast = painted.cursor.row === all.length - 1;
        if (broken > (onLast ? next.rows : Math.min(now.rows, next.rows))) continue;
        const begin = screen.follow(painted.cursor.row);
        screen.terminal.resize(next.columns, next.rows);
        const left = afterResize(painted, top, now, next, "from-bottom");
        expect(left).toEqual(begin());
        await screen.write(up(left.above) + eraseDown);
        top = left.top ?? 0;
        painted = nothingPainted;
        now = next;
      }
      await screen.write(erase(painted));
      const shown = screen.lines();
      screen.terminal.dispose();
      expect(shown.filter((line) => /[=\u6f22]/.test(line))).toEqual([]);
      expect(shown.filter((line) => line.startsWith("<")).map((line) => Number(/\d+/.exec(line)?.[0]))).toEqual(
        Array.from({ length: count }, (_, at) => at),
      );
    }),
    {
      numRuns: 80,
      examples: [
        [{ columns: 100, rows: 10 }, [ONE_ROW_UNBROKEN, ONE_ROW_UNBROKEN]],
        [{ columns: 22, rows: 11 }, [WIDE_ROW_DROPPED]],
      ],
    },
  );
});
