import { expect, test } from "vitest";
import { createComposer, replaceText } from "../../packages/tui/src/composer/composer.ts";
import { render } from "../../packages/tui/src/composer/editing/render.ts";
import { widthOf } from "../../packages/view/src/text/width.ts";
import { pasteOf, press } from "../support/composer.ts";

function screen(state: ReturnType<typeof createComposer>, width = 40, maxRows = 6): readonly string[] {
  const { lines, cursor } = render(state, { width, maxRows, placeholder: "What shall be done?" });
  return [...lines.map((line) => line.map((span) => span.text).join("")), `cursor ${cursor.row},${cursor.column}`];
}

test("without a text the placeholder stands behind the prompt", () => {
  expect(screen(createComposer())).toEqual(["❯ What shall be done?", "cursor 0,2"]);
});

test("lines stand below each other, the cursor behind what was typed", () => {
  expect(screen(press(undefined, [{ type: "one" }, "ctrl+j", { type: "two" }]).state)).toEqual([
    "❯ one",
    "  two",
    "cursor 1,5",
  ]);
  expect(screen(press(undefined, [{ type: "one" }, "ctrl+j"]).state)).toEqual(["❯ one", "  ", "cursor 1,2"]);
});

test("rows are broken behind blanks, and inside a word only when it is longer than a row", () => {
  const { state } = press(undefined, [{ type: "some words that wrap andaverylongwordindeed" }]);
  expect(screen(state, 17)).toEqual(["❯ some words ", "  that wrap ", "  andaverylongwo", "  rdindeed", "cursor 3,10"]);
});

test("a full last row leaves the cursor a column", () => {
  expect(screen(press(undefined, [{ type: "x".repeat(14) }]).state, 17)).toEqual([
    `❯ ${"x".repeat(14)}`,
    "cursor 0,16",
  ]);
});

test("the cursor's column counts wide characters as two and marks as none", () => {
  expect(screen(press(undefined, [{ type: "漢字e\u0301👍" }]).state).at(-1)).toBe("cursor 0,9");
  expect(screen(press(undefined, [{ type: "漢字e\u0301👍" }, "left", "left"]).state).at(-1)).toBe("cursor 0,6");
});

test("more rows than fit scroll with the cursor, with a mark where there are more", () => {
  const { state } = press(undefined, [pasteOf("1\n2\n3\n4\n5"), "up", "up"]);
  expect(screen(state, 40, 3)).toEqual(["↑ 2", "  3", "↓ 4", "cursor 1,3"]);
  expect(screen(press(state, ["up", "up"]).state, 40, 3)).toEqual(["❯ 1", "  2", "↓ 3", "cursor 0,3"]);
  expect(screen(state, 40, 1)).toEqual(["↑ 3", "cursor 0,3"]);
});

test("what is unseen in a pasted text is named, and no escape reaches the screen", () => {
  const { state } = press(undefined, [pasteOf("a\u200bb\u001b[2Jc\u202ed\te")]);
  expect(screen(state, 60).slice(0, -1)).toEqual(["❯ a·U+200Bb·U+001B[2Jc·U+202Ed    e"]);
});

test("what hides behind a letter is named, what belongs to an emoji is not", () => {
  expect(screen(press(undefined, [pasteOf("a\u{e0041}b")]).state)[0]).toBe("❯ a·U+E0041b");
  expect(screen(press(undefined, [pasteOf("👩\u200d👧 ❤\ufe0f")]).state)[0]).not.toContain("U+");
});

test("a letter under a thousand marks takes its one column", () => {
  const { state } = press(undefined, [pasteOf(`a${"\u0301".repeat(900)}b`)]);
  const [row = ""] = screen(state);
  expect(row.length).toBeLessThan(400);
});

test("a search shows what it found, and where the query is typed", () => {
  const start = createComposer(["fix the parser"]);
  const { state } = press(start, ["ctrl+r", { type: "pars" }]);
  expect(screen(state, 60)).toEqual(["❯ fix the parser", "search earlier inputs: pars", "cursor 1,27"]);
  expect(screen(press(state, [{ type: "x" }]).state, 60)[1]).toBe("no earlier input contains: parsx");
  expect(screen(state, 60, 1)).toEqual(["search earlier inputs: pars", "cursor 0,27"]);
});

test("a palette leaves the text its row, however little room there is", () => {
  const { state } = press(undefined, [{ type: "/" }]);
  expect(screen(state, 40, 12)).toHaveLength(8);
  expect(screen(state, 40, 3)).toEqual(["❯ /", "❯ /run   start a pipeline  1/6", "  /runs  list runs", "cursor 0,3"]);
  expect(screen(state, 40, 1)).toEqual(["❯ /", "cursor 0,3"]);
});

test("a text of a megabyte from an editor of one's own stands as one unit", () => {
  const long = replaceText(createComposer(), "line of text\n".repeat(70_000));
  expect(screen(long)[0]).toBe("❯ [paste 1: 70001 lines]");
});

test("of a text that grew long by and by the rows around the cursor are shown as if all were", () => {
  const lines = Array.from({ length: 3_000 }, (_, line) => `line number ${line}`);
  const pastes = Array.from({ length: 750 }, (_, part) =>
    pasteOf(`${lines.slice(part * 4, part * 4 + 4).join("\n")}\n`),
  );
  const { state } = press(undefined, [...pastes, { type: "end" }]);
  expect(screen(state, 40, 4)).toEqual([
    "↑ line number 2997",
    "  line number 2998",
    "  line number 2999",
    "  end",
    "cursor 3,5",
  ]);
  const up = press(state, Array(1_500).fill("up")).state;
  expect(screen(up, 40, 3)).toEqual(["↑ line number 1499", "  line number 1500", "↓ line number 1501", "cursor 1,5"]);
  expect(screen(press(up, ["ctrl+home"]).state, 40, 2)).toEqual(["❯ line number 0", "↓ line number 1", "cursor 0,2"]);
});

test("on one endless line too the cursor stands behind what is in front of it", () => {
  const pastes = Array.from({ length: 50 }, () => pasteOf("漢e".repeat(400)));
  const { state } = press(undefined, [...pastes, { type: "X" }, "left", "left"]);
  for (const at of [state, press(state, Array(20).fill("up")).state]) {
    const { lines, cursor } = render(at, { width: 31, maxRows: 3, placeholder: "" });
    const row = lines[cursor.row]?.map((span) => span.text).join("") ?? "";
    const after = at.editor.text.slice(at.editor.cursor, at.editor.cursor + 1);
    let column = 0;
    const shown = Array.from(row).find((letter) => {
      if (column === cursor.column) return true;
      column += widthOf(letter);
      return false;
    });
    expect(shown).toBe(after);
  }
});
