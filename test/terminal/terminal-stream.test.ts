import { join } from "node:path";
import { expect, test } from "vitest";
import type { TerminalProcess } from "../support/terminal.ts";
import { terminalPlace } from "../support/terminal-kit.ts";

const APP = join(import.meta.dirname, "fixtures", "streaming-app.ts");
const RUN = `"${process.execPath}" "${APP}"`;

/** The end of a synchronized update. */
const END_OF_FRAME = "\x1b[?2026l";

function streaming(settings: object, size: { readonly columns: number; readonly rows: number }): TerminalProcess {
  return terminalPlace().node(APP, [JSON.stringify(settings)], size);
}

/** Each line that was printed, in order; what is left of frames. */
function found(terminal: TerminalProcess): { readonly lines: readonly number[]; readonly frames: readonly string[] } {
  const all = terminal.lines();
  return {
    lines: all.flatMap((line) => /^line (\d+);/.exec(line)?.slice(1).map(Number) ?? []),
    frames: all.filter((line) => /frame|==|typed|held/.test(line)),
  };
}

async function quit(terminal: TerminalProcess): Promise<void> {
  terminal.type("q");
  expect(await terminal.end()).toEqual({ code: 0, signal: undefined });
}

function expectWhole(terminal: TerminalProcess, least: number): void {
  const { lines, frames } = found(terminal);
  expect(frames).toEqual([]);
  expect(lines.length).toBeGreaterThanOrEqual(least);
  expect(lines).toEqual(Array.from({ length: lines.length }, (_, at) => at));
  expect([terminal.bytes.scrollbackWiped(), terminal.bytes.screenCleared(), terminal.bytes.reset()]).toEqual([0, 0, 0]);
  expect(terminal.bytes.left()).toEqual([]);
}

// The app is held at each size: what is written for the old size and read at the new one leaves rows that no process knows of.
test("sizes that change between lines and frames leave each line once and no row of a frame", async () => {
  const terminal = streaming({ height: 7, width: 100, lineWidth: 150, linesPerTick: 2 }, { columns: 200, rows: 50 });
  let line = 4;
  await terminal.waitForLine(`line ${line};`);
  const sizes = ["60x15", "200x50", "61x16", "200x15", "80x24", "60x50", "120x40", "60x15", "200x50"];
  for (const size of sizes) {
    const [columns = 0, rows = 0] = size.split("x").map(Number);
    terminal.type("h");
    await terminal.waitFor(
      (screen) => screen.includes("held") && terminal.bytes.text().endsWith(END_OF_FRAME),
      "the last frame of a size",
    );
    await terminal.resize(columns, rows);
    line += 8;
    await terminal.waitForLine(`line ${line};`);
    await terminal.waitFor("typed:");
  }
  await quit(terminal);
  expectWhole(terminal, line);
});

test("a window that is dragged narrower and wider again leaves nothing behind", async () => {
  const terminal = streaming({ height: 7, width: 70 }, { columns: 100, rows: 30 });
  await terminal.waitForLine("line 5;");
  for (let step = 0; step < 30; step += 1) await terminal.resize(100 - 2 * Math.min(step, 30 - step), 30 - (step % 7));
  await terminal.waitForLine("line 40;");
  await quit(terminal);
  expectWhole(terminal, 40);
});

test("rows as wide as the terminal are broken by none", async () => {
  const terminal = streaming({ height: 6 }, { columns: 80, rows: 24 });
  await terminal.waitForLine("line 30;");
  expect(
    terminal
      .screen()
      .filter((row) => row.startsWith("frame"))
      .every((row) => row.length === 80),
  ).toBe(true);
  await quit(terminal);
  expectWhole(terminal, 30);
});

test("a frame that is higher than the terminal keeps its lowest rows, and none scrolls away", async () => {
  const terminal = streaming({ height: 40, tickMs: 0 }, { columns: 80, rows: 10 });
  await terminal.waitFor("typed:");
  terminal.type("abc");
  await terminal.waitFor("typed: abc");
  expect(terminal.lines().filter((line) => line.startsWith("frame"))).toHaveLength(9);
  await quit(terminal);
  expect(found(terminal).frames).toEqual([]);
});

test("what is typed and pasted stands on the last row of the screen", async () => {
  const terminal = streaming({ height: 9, tickMs: 0 }, { columns: 80, rows: 24 });
  await terminal.waitFor("typed:");
  terminal.paste("qe");
  await terminal.waitFor((screen) => screen.includes("|qe"));
  expect(terminal.screen().at(-1)).toBe("typed: |qe");
  await quit(terminal);
});

test("the cursor rests where text is typed, unseen, and one that is seen is painted", async () => {
  const terminal = streaming({ height: 5, tickMs: 0 }, { columns: 80, rows: 24 });
  await terminal.waitFor("typed:");
  terminal.type("abc");
  await terminal.waitFor(() => terminal.cursor().row === 23 && terminal.cursor().column === 10, "the cursor at rest");
  expect(terminal.styleOf("|").inverse).toBe(true);
  expect(terminal.bytes.text()).not.toContain("\x1b[?25h");
  await quit(terminal);
});

test("a size that changes while the cursor rests below other rows leaves nothing behind", async () => {
  const terminal = streaming({ height: 5, tickMs: 0 }, { columns: 100, rows: 24 });
  await terminal.waitFor("typed:");
  for (const size of [60, 100, 60]) {
    await terminal.waitFor(() => terminal.cursor().row === 23 && terminal.cursor().column === 7, "the cursor at rest");
    await terminal.resize(size, 24);
    await terminal.waitFor((screen) => screen.includes("=".repeat(size - 40)), "a frame of the new width");
  }
  expect(terminal.lines().filter((line) => line.startsWith("frame"))).toHaveLength(4);
  await quit(terminal);
  expectWhole(terminal, 0);
});

test("what the shell showed before stays in the scrollback, and what it shows after stands below", async () => {
  const terminal = terminalPlace().shell(`seq -f 'shell %g' 1 40; ${RUN} '{"height":4}'; echo done`, {
    columns: 80,
    rows: 20,
  });
  await terminal.waitForLine("line 12;");
  terminal.type("q");
  await terminal.end();
  const lines = terminal.lines().filter((line) => line !== "");
  expect(lines.slice(0, 40)).toEqual(Array.from({ length: 40 }, (_, at) => `shell ${at + 1}`));
  expect(lines.at(-2)).toMatch(/^the end at tick/);
  expect(lines.at(-1)).toBe("done");
});

test("another program gets the terminal, and the frame comes back below what it wrote", async () => {
  const terminal = streaming({ height: 4, tickMs: 0 }, { columns: 80, rows: 20 });
  await terminal.waitFor("typed:");
  terminal.type("e");
  await terminal.waitFor("another program");
  await terminal.waitFor("typed:");
  await quit(terminal);
  expect(terminal.lines().filter((line) => line === "another program")).toHaveLength(1);
  expectWhole(terminal, 0);
});

test("fullscreen leaves the primary screen as it was", async () => {
  const terminal = terminalPlace().shell(`echo before; ${RUN} '{"fullscreen":true,"height":100}'; echo after`, {
    columns: 80,
    rows: 20,
  });
  await terminal.waitFor("of tick 5");
  for (const [columns, rows] of [
    [60, 15],
    [100, 30],
  ] as const) {
    await terminal.resize(columns, rows);
    await terminal.waitFor((screen) => screen.split("\n")[0]?.length === columns, "a frame of the new width");
  }
  terminal.type("q");
  await terminal.end();
  expect(terminal.lines().filter((line) => line !== "")).toEqual([
    "before",
    expect.stringMatching(/^the end/),
    "after",
  ]);
  expect([terminal.bytes.set(1049), terminal.bytes.left()]).toEqual([1, []]);
});

test.each([
  ["it is quit", (terminal: TerminalProcess) => terminal.type("q"), "ended with 0"],
  ["SIGTERM comes", (terminal: TerminalProcess) => terminal.type("T"), "ended with 143"],
  ["an error is thrown that nobody catches", (terminal: TerminalProcess) => terminal.type("!"), "ended with 1"],
])("the terminal is as it was found when %s", async (_when, end, how) => {
  const terminal = terminalPlace().shell(
    `stty -a > before; ${RUN} '{"height":4,"keys":true}'; echo "ended with $?"; stty -a > after; diff before after && echo same`,
    { columns: 80, rows: 20 },
  );
  await terminal.waitForLine("line 2;");
  end(terminal);
  await terminal.end();
  expect(terminal.bytes.left()).toEqual([]);
  expect(terminal.lines()).toContain(how);
  expect(terminal.lines()).toContain("same");
  expect(found(terminal).frames).toEqual([]);
});

test("a terminal that goes away ends it without a word", async () => {
  const terminal = streaming({ height: 4, lost: 3 }, { columns: 80, rows: 20 });
  await terminal.waitForLine("line 2;");
  terminal.hangUp();
  expect(await terminal.end()).toEqual({ code: 3, signal: undefined });
});
