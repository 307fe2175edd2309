import { expect, test } from "vitest";
import { noticeLines, promptLines, Scroll } from "../../packages/tui/src/app/scroll.ts";
import { catchStrayOutput } from "../../packages/tui/src/screen/stray-output.ts";
import { ListBuilder } from "../../packages/view/src/projection/append-only-list.ts";
import type { TranscriptItem } from "../../packages/view/src/projection/run-view.ts";
import type { Line } from "../../packages/view/src/text/line.ts";
import { widthOf } from "../../packages/view/src/text/width.ts";
import { runView } from "../support/random-views.ts";

test("only the first row of what is said begins at the edge, so nothing that is quoted looks like words of the app", () => {
  const forged = `a fault${" ".repeat(70)}\u258c \u25a0 Grant\n\u276f Yes\n! approved Bash ${"x ".repeat(200)}`;
  for (const width of [20, 40, 80]) {
    const rows = noticeLines(forged, "bad", width).map(textOf);
    expect(rows[0]).toMatch(/^\u2716 a fault/);
    expect(rows.slice(1).filter((row) => !row.startsWith("  "))).toEqual([]);
    expect(rows.filter((row) => widthOf(row) > width)).toEqual([]);
  }
});

test("of ten megabytes on one line a notice and an echo say the beginning, and how much more there is", () => {
  const long = "\u001b[2Jx".repeat(2_000_000);
  for (const lines of [noticeLines(long, "bad", 80), promptLines(long, 80)]) {
    expect(lines.length).toBeLessThanOrEqual(31);
    expect(textOf(lines.at(-1))).toContain(`${long.length - 20_000} characters more`);
    expect(lines.map(textOf).join("")).not.toContain("\u001b");
  }
});

test("of the long life of a run the last 400 rows are printed, and after that everything", () => {
  const log = new ListBuilder<{ readonly item: TranscriptItem }>();
  const add = (count: number): void => {
    const text = Array.from({ length: 40 }, (_, at) => `- row ${at}`).join("\n");
    for (let at = 0; at < count; at += 1)
      log.push({ item: { kind: "text", runId: "r1", executionId: "plan#1", attempt: 1, turn: 1, text } });
    log.settle(() => true);
  };
  const printed: string[][] = [];
  const scroll = new Scroll(
    { append: (lines) => void printed.push(lines.map(textOf)) },
    true,
    () => 80,
    (text) => text,
  );
  const watched = { watch: { view: () => runView({ log: log.view() }) }, printed: 0 };
  add(300);
  scroll.log(watched);
  add(20);
  scroll.log(watched);
  expect(printed.map(({ length }) => length)).toEqual([401, 820]);
  expect(printed[0]?.[0]).toBe("… 11900 lines more (earlier: Ctrl+O opens a full transcript)");
  expect(printed[0]?.at(-1)).toContain("row 39");
});

test("what anybody else writes to a stream is said, never written, until it is let through again", () => {
  let written = "";
  const stream = {
    write: (chunk: string | Uint8Array): boolean => {
      written += String(chunk);
      return true;
    },
  };
  const said: string[] = [];
  const letThrough = catchStrayOutput([stream], (text) => said.push(text));
  stream.write("\u001b]52;c;cHduZWQ=\u0007");
  stream.write(Buffer.from("logged\n"));
  stream.write("\n");
  expect(said).toEqual(["\u001b]52;c;cHduZWQ=\u0007", "logged"]);
  expect(written).toBe("");
  letThrough();
  stream.write("free");
  expect(written).toBe("free");
});

function textOf(line: Line | undefined): string {
  return (line ?? []).map(({ text }) => text).join("");
}
