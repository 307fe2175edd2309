import fc from "fast-check";
import { expect, test } from "vitest";
import { type Part, stack } from "../../packages/tui/src/screen/frame.ts";
import type { Line } from "../../packages/view/src/text/line.ts";

test("parts are drawn in their order, each with the rows it likes where there is room", () => {
  const frame = stack([part("log", 1, 3), part("input", 1, 2)], ["input", "log"], 10);
  expect(textOf(frame.rows)).toEqual(["log 0", "log 1", "log 2", "input 0", "input 1"]);
});

test("who comes first in the order keeps its rows when there are few", () => {
  const parts = [part("log", 1, 8), part("card", 3, 6), part("input", 1, 2)];
  expect(textOf(stack(parts, ["input", "card", "log"], 9).rows)).toEqual([
    "log 0",
    "card 0",
    "card 1",
    "card 2",
    "card 3",
    "card 4",
    "card 5",
    "input 0",
    "input 1",
  ]);
  expect(textOf(stack(parts, ["input", "card", "log"], 2).rows)).toEqual(["log 0", "input 0"]);
});

test("the cursor counts from the top of the frame", () => {
  const input: Part = { ...part("input", 1, 1), cursor: () => ({ row: 0, column: 7 }) };
  expect(stack([part("log", 2, 2), input], ["input", "log"], 5).cursor).toEqual({ row: 2, column: 7 });
});

test("a frame is never taller than the height, whatever its parts want and make", () => {
  const parts = fc.array(fc.record({ least: fc.nat(6), more: fc.nat(9), makes: fc.nat(30) }), { maxLength: 6 });
  fc.assert(
    fc.property(parts, fc.integer({ min: 1, max: 40 }), (given, height) => {
      const made = given.map(({ least, more, makes }, at) => part(`p${at}`, least, least + more, makes));
      const frame = stack(
        made,
        made.map(({ name }) => name),
        height,
      );
      expect(frame.rows.length).toBeLessThanOrEqual(height);
    }),
  );
});

function part(name: string, least: number, most: number, makes?: number): Part {
  return {
    name,
    least,
    most,
    lines: (room) => Array.from({ length: makes ?? room }, (_, at): Line => [{ text: `${name} ${at}` }]),
  };
}

function textOf(rows: readonly Line[]): readonly string[] {
  return rows.map((row) => row.map(({ text }) => text).join(""));
}
