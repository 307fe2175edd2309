import { expect, test } from "vitest";
import { noticeLines, promptLines } from "../../packages/tui/src/app/scroll.ts";
import { catchStrayOutput } from "../../packages/tui/src/screen/stray-output.ts";
import type { Line } from "../../packages/view/src/text/line.ts";
import { widthOf } from "../../packages/view/src/text/width.ts";

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
