import { expect, test } from "vitest";
import { keysOf } from "../../packages/tui/src/screen/press.ts";

const NONE = {
  ...{ upArrow: false, downArrow: false, leftArrow: false, rightArrow: false, pageDown: false, pageUp: false },
  ...{ home: false, end: false, return: false, escape: false, ctrl: false, shift: false, tab: false, backspace: false },
  ...{ delete: false, meta: false, super: false, hyper: false, capsLock: false, numLock: false },
};

test("a piece that ends in Enter is text and Enter, a line break in the middle makes it a paste", () => {
  expect(described(keysOf("abc\r", NONE))).toEqual(["text abc", "enter"]);
  expect(described(keysOf("\r", { ...NONE, return: true }))).toEqual(["enter"]);
  expect(described(keysOf("one\rtwo\r", NONE))).toEqual(["paste one\rtwo\r"]);
});

test("a line feed by itself is Ctrl+J", () => {
  expect(described(keysOf("\n", NONE))).toEqual(["ctrl+text j"]);
});

test("keys that were read together are keys, each by itself, and never text with control characters in it", () => {
  expect(described(keysOf("\t\t", NONE))).toEqual(["tab", "tab"]);
  expect(described(keysOf("\u0017\u0017", NONE))).toEqual(["ctrl+text w", "ctrl+text w"]);
  expect(described(keysOf("ab\u0015c", NONE))).toEqual(["text ab", "ctrl+text u", "text c"]);
});

test("a key that is let go is none", () => {
  expect(keysOf("a", { ...NONE, eventType: "release" })).toEqual([]);
});

function described(keys: ReturnType<typeof keysOf>): readonly string[] {
  return keys.map(({ name, text, ctrl }) => `${ctrl ? "ctrl+" : ""}${name}${text === "" ? "" : ` ${text}`}`);
}
