import { expect, test } from "vitest";
import { type Composer, clearText, createComposer, replaceText } from "../../packages/tui/src/composer/composer.ts";
import { MAX_TEXT } from "../../packages/tui/src/composer/editing/editor.ts";
import { render } from "../../packages/tui/src/composer/editing/render.ts";
import { context, keyOf, pasteOf, press, shown } from "../support/composer.ts";

function after(...keys: Parameters<typeof press>[1]): string {
  return shown(press(undefined, keys).state);
}

test("letters are typed where the cursor is", () => {
  expect(after({ type: "hello" })).toBe("hello|");
  expect(after({ type: "hllo" }, "home", "right", { type: "e" })).toBe("he|llo");
});

test("the cursor moves by graphemes, not by code units", () => {
  expect(after({ type: "a👨‍👩‍👧e\u0301" }, "left")).toBe("a👨‍👩‍👧|e\u0301");
  expect(after({ type: "a👨‍👩‍👧e\u0301" }, "left", "left")).toBe("a|👨‍👩‍👧e\u0301");
  expect(after({ type: "a👨‍👩‍👧e\u0301" }, "left", "backspace")).toBe("a|e\u0301");
});

test.each([
  ["alt+left", "one two|.three", "one |two.three"],
  ["ctrl+left", "one |two.three", "|one two.three"],
  ["alt+b", "one two.|three", "one |two.three"],
  ["alt+f", "one |two.three", "one two|.three"],
  ["alt+right", "one two|.three", "one two.three|"],
  ["ctrl+a", "one\ntwo|", "one\n|two"],
  ["ctrl+e", "o|ne\ntwo", "one|\ntwo"],
  ["home", "one\ntwo|", "one\n|two"],
  ["end", "o|ne\ntwo", "one|\ntwo"],
  ["ctrl+home", "one\ntwo|", "|one\ntwo"],
  ["ctrl+end", "o|ne\ntwo", "one\ntwo|"],
  ["ctrl+b", "on|e", "o|ne"],
  ["ctrl+f", "o|ne", "on|e"],
  ["ctrl+w", "one two.three|", "one |"],
  ["alt+backspace", "one two.three|", "one two.|"],
  ["alt+d", "one| two three", "one| three"],
  ["alt+delete", "|one two", "| two"],
  ["ctrl+u", "one\ntwo three|", "one\n|"],
  ["ctrl+u", "one\n|two", "one|two"],
  ["ctrl+k", "o|ne\ntwo", "o|\ntwo"],
  ["ctrl+k", "one|\ntwo", "one|two"],
  ["ctrl+h", "one|", "on|"],
  ["ctrl+d", "|one", "|ne"],
  ["delete", "one|\ntwo", "one|two"],
])("%s makes of %j %j", (key, from, to) => {
  const at = from.indexOf("|");
  const start = press(undefined, [pasteOf(from.replace("|", "")), "ctrl+home", ...Array(at).fill("right")]);
  expect(shown(start.state)).toBe(from);
  const next = press(start.state, [key]);
  expect(shown(next.state)).toBe(to);
  expect(next.handled).toBe(true);
});

test("a word ends where its last grapheme does", () => {
  expect(after({ type: "a\u200d b" }, "home", "alt+f")).toBe("a\u200d| b");
});

test("Alt+Enter, Shift+Enter, Ctrl+J and a backslash before Enter make a line break", () => {
  expect(after({ type: "a" }, "alt+enter", { type: "b" }, "ctrl+j", { type: "c" })).toBe("a\nb\nc|");
  expect(after({ type: "a" }, "shift+enter")).toBe("a\n|");
  expect(after({ type: "a\\" }, "enter", { type: "b" })).toBe("a\nb|");
});

test("a backslash inside a line does not keep Enter from submitting", () => {
  const { effects } = press(undefined, [{ type: "a\\b" }, "left", "enter"]);
  expect(effects).toEqual([{ kind: "submit", text: "a\\b" }]);
});

test("up and down keep the column over a shorter line", () => {
  const lines = press(undefined, [pasteOf("a long line\nx\nanother line")]).state;
  expect(shown(press(lines, ["up"]).state)).toBe("a long line\nx|\nanother line");
  expect(shown(press(lines, ["up", "up"]).state)).toBe("a long line|\nx\nanother line");
  expect(shown(press(lines, ["left", "left", "left", "left", "up", "up", "down", "down"]).state)).toBe(
    "a long line\nx\nanother |line",
  );
});

test("up and down go by the rows that are shown, wide characters counted as two columns", () => {
  const narrow = { ...context, width: 13 };
  const { state } = press(undefined, [{ type: "漢字漢字漢字漢" }], narrow);
  expect(shown(press(state, ["up"], narrow).state)).toBe("漢字|漢字漢字漢");
});

test("up and down stay on a wrapped row that is shorter than the column they keep", () => {
  const narrow = { ...context, width: 17 };
  const { state } = press(undefined, [{ type: "short averyveryverylong tailing-off" }], narrow);
  expect(shown(press(state, ["up"], narrow).state)).toBe("short averyveryverylong| tailing-off");
  expect(shown(press(state, ["up", "up"], narrow).state)).toBe("short averyveryve|rylong tailing-off");
  expect(shown(press(state, ["up", "up", "up"], narrow).state)).toBe("short| averyveryverylong tailing-off");
  const back = press(state, ["up", "up", "up", "down", "down", "down"], narrow).state;
  expect(shown(back)).toBe("short averyveryverylong tailing-off|");
});

test("cuts in a row are yanked together, as often as wanted", () => {
  expect(after({ type: "one two three" }, "ctrl+w", "ctrl+w", "ctrl+y")).toBe("one two three|");
  expect(after({ type: "one two" }, "ctrl+w", "left", "ctrl+w", "ctrl+y", "ctrl+y")).toBe("oneone| ");
});

test("what was cut is still there after a submit", () => {
  expect(after({ type: "one two" }, "ctrl+w", "enter", "ctrl+y")).toBe("two|");
});

test("undo goes back word by word, redo forward again", () => {
  const typed = press(undefined, [{ type: "one two" }]).state;
  expect(shown(press(typed, ["ctrl+_"]).state)).toBe("one |");
  expect(shown(press(typed, ["ctrl+_", "ctrl+_"]).state)).toBe("|");
  expect(shown(press(typed, ["ctrl+_", "ctrl+_", "alt+_"]).state)).toBe("one |");
  expect(shown(press(typed, ["alt+z", "alt+Z"]).state)).toBe("one two|");
});

test("typing after an undo forgets what could have been redone", () => {
  expect(after({ type: "one two" }, "ctrl+_", { type: "x" }, "alt+_")).toBe("one x|");
});

test("a short paste is text; line breaks of every kind are kept as one kind, and nothing is submitted", () => {
  const { state, effects } = press(undefined, [pasteOf("a\r\nb\rc\n")]);
  expect(shown(state)).toBe("a\nb\nc\n|");
  expect(effects).toEqual([]);
});

test("several lines that come as typed text are a paste", () => {
  const { state, effects } = press(undefined, [{ ...keyOf("x"), text: "a\rb\r" }]);
  expect(shown(state)).toBe("a\nb\n|");
  expect(effects).toEqual([]);
});

test("a long paste stands as one unit and is submitted whole", () => {
  const log = Array.from({ length: 214 }, (_, line) => `line ${line}`).join("\n");
  const { state } = press(undefined, [{ type: "see " }, pasteOf(log), { type: " and" }]);
  const text = render(state, { width: 80, maxRows: 5, placeholder: "" }).lines.map((line) =>
    line.map((s) => s.text).join(""),
  );
  expect(text).toEqual(["❯ see [paste 1: 214 lines] and"]);
  expect(press(state, ["enter"]).effects).toEqual([{ kind: "submit", text: `see ${log} and` }]);
  expect(shown(press(state, ["alt+left", "alt+left"]).state)).toBe(`see |${log} and`);
  expect(shown(press(state, ["left", "left", "left", "left", "left"]).state)).toBe(`see |${log} and`);
  expect(shown(press(state, ["left", "left", "left", "left", "backspace"]).state)).toBe("see | and");
  expect(shown(press(state, ["home", "ctrl+k"]).state)).toBe("|");
});

test("five lines are shown whole, six are not; nor is one long line", () => {
  const rows = (text: string): string =>
    JSON.stringify(render(press(undefined, [pasteOf(text)]).state, { width: 80, maxRows: 30, placeholder: "" }).lines);
  expect(rows("1\n2\n3\n4\n5")).not.toContain("[paste");
  expect(rows("1\n2\n3\n4\n5\n6")).toContain("[paste 1: 6 lines]");
  expect(rows("x".repeat(1_000))).not.toContain("[paste");
  expect(rows("x".repeat(1_001))).toContain("[paste 1: 1001 characters]");
});

test("a deleted paste comes back with undo, a cut one with yank under a number of its own", () => {
  const log = "x\n".repeat(20);
  const { state } = press(undefined, [pasteOf(log)]);
  expect(shown(press(state, ["backspace", "ctrl+_"]).state)).toBe(`${log}|`);
  const yanked = press(state, ["ctrl+w", "ctrl+y", "ctrl+y"]).state;
  expect(shown(yanked)).toBe(`${log}${log}|`);
  const [row = []] = render(yanked, { width: 80, maxRows: 5, placeholder: "" }).lines;
  expect(row.map(({ text }) => text).join("")).toBe("❯ [paste 2: 21 lines][paste 3: 21 lines]");
});

function rowsOf(state: Composer): readonly string[] {
  const { lines } = render(state, { width: 80, maxRows: 30, placeholder: "" });
  return lines.map((line) => line.map(({ text }) => text).join(""));
}

test("typed lines that are cut and yanked stay lines", () => {
  const lines = Array.from({ length: 7 }, (_, at) => [{ type: `line ${at}` }, "alt+enter"]).flat();
  const { state } = press(undefined, [...lines, ...Array(14).fill("ctrl+u"), "ctrl+y"]);
  expect(rowsOf(state)).toHaveLength(8);
  expect(rowsOf(state)[3]).toBe("  line 3");
});

test("a paste inside a cut text comes back as a paste, also after a submit", () => {
  const log = "x\n".repeat(20);
  const keys = [{ type: "see " }, pasteOf(log), { type: " and" }, "ctrl+u"];
  const { state } = press(undefined, [...keys, "ctrl+y"]);
  expect(rowsOf(state)).toEqual(["❯ see [paste 2: 21 lines] and"]);
  expect(press(state, ["enter"]).effects).toEqual([{ kind: "submit", text: `see ${log} and` }]);
  const next = press(undefined, [...keys, { type: "x" }, "enter", "ctrl+y"]).state;
  expect(rowsOf(next)).toEqual(["❯ see [paste 1: 21 lines] and"]);
  expect(shown(next)).toBe(`see ${log} and|`);
});

test("pastes cut one after the other come back in their order", () => {
  const [one, two] = ["1\n".repeat(20), "2\n".repeat(20)];
  const { state } = press(undefined, [pasteOf(one), pasteOf(two), "ctrl+w", "ctrl+w", "ctrl+y"]);
  expect(shown(state)).toBe(`${one}${two}|`);
});

test.each([
  ["undone", "ctrl+_"],
  ["deleted", "backspace"],
  ["cut", "ctrl+w"],
])("pastes that were %s take a bounded memory, and the newest can be brought back", (_, key) => {
  const pastes = Array.from({ length: 60 }, (_, at) => `${at}\n`.padEnd(900_000, "x"));
  const { state } = press(
    undefined,
    pastes.flatMap((text) => [pasteOf(text), key]),
  );
  const held = [...state.editor.pastes, ...state.editor.killed.pastes].join("").length;
  expect(held).toBeLessThan(7_000_000);
  expect(shown(state)).toBe("|");
  const back = press(state, [key === "ctrl+_" ? "alt+_" : "ctrl+_"]).state;
  expect(shown(back) === `${pastes[59]}|`).toBe(true);
});

test("a paste beyond the cap is refused with a reason, and nothing is lost", () => {
  const before = press(undefined, [{ type: "keep" }]).state;
  const { state, handled } = press(before, [pasteOf("x".repeat(MAX_TEXT))]);
  expect(handled).toBe(true);
  expect(state.editor).toBe(before.editor);
  expect(state.notice).toMatch(/the limit is 1,000,000/);
  expect(press(state, [{ type: "s" }]).state.notice).toBeUndefined();
});

test("Enter submits exactly the text and leaves an empty composer", () => {
  const { state, effects } = press(undefined, [{ type: " a  b " }, "enter"]);
  expect(effects).toEqual([{ kind: "submit", text: " a  b " }]);
  expect(shown(state)).toBe("|");
});

test("Ctrl+G asks for an editor of one's own with the whole text; what comes back can be undone", () => {
  const { state, effects } = press(undefined, [{ type: "draft" }, "ctrl+g"]);
  expect(effects).toEqual([{ kind: "edit-outside", text: "draft" }]);
  const edited = replaceText(state, "better\ndraft");
  expect(shown(edited)).toBe("better\ndraft|");
  expect(shown(press(edited, ["ctrl+_"]).state)).toBe("draft|");
  expect(replaceText(state, "x".repeat(MAX_TEXT + 1))).toMatchObject({
    editor: state.editor,
    notice: expect.stringMatching(/the limit is 1,000,000/),
  });
});

test("clearing can be undone", () => {
  const cleared = clearText(press(undefined, [{ type: "a text" }]).state);
  expect(shown(cleared)).toBe("|");
  expect(shown(press(cleared, ["ctrl+_"]).state)).toBe("a text|");
});

test.each([
  "tab",
  "escape",
  "enter",
  "pageUp",
  "pageDown",
  "ctrl+c",
  "ctrl+d",
  "ctrl+o",
  "ctrl+l",
  "alt+x",
  "up",
  "down",
  "left",
  "right",
  "home",
  "end",
  "backspace",
  "ctrl+_",
  "ctrl+y",
  "\u001b",
])("on an empty line %j is given back", (key) => {
  const start = createComposer();
  const { state, handled } = press(start, [key]);
  expect(handled).toBe(false);
  expect(state).toBe(start);
});

test.each(["tab", "escape", "pageUp", "ctrl+c", "ctrl+o", "ctrl+t"])("with a text %j is given back too", (key) => {
  const { state } = press(undefined, [{ type: "text" }]);
  expect(press(state, [key])).toMatchObject({ handled: false, state });
});
