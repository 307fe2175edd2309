import { expect, test } from "vitest";
import { keysOf } from "../../packages/tui/src/screen/press.ts";
import { press, shown } from "../support/composer.ts";

const NONE: Parameters<typeof keysOf>[1] = {
  upArrow: false,
  downArrow: false,
  leftArrow: false,
  rightArrow: false,
  pageDown: false,
  pageUp: false,
  home: false,
  end: false,
  return: false,
  escape: false,
  ctrl: false,
  shift: false,
  tab: false,
  backspace: false,
  delete: false,
  meta: false,
  super: false,
  hyper: false,
  capsLock: false,
  numLock: false,
};

test("a line feed by itself is Ctrl+J and makes a line break; a carriage return submits", () => {
  const broken = press(undefined, [{ type: "a" }, ...keysOf("\n", NONE)]);
  expect([shown(broken.state), broken.effects]).toEqual(["a\n|", []]);
  expect(press(broken.state, keysOf("\r", { ...NONE, return: true })).effects).toMatchObject([{ kind: "submit" }]);
});

test("Ctrl+_ and Alt+Shift+Z as terminals send them undo and redo", () => {
  const typed = press(undefined, [{ type: "word" }]).state;
  const undone = press(typed, keysOf("_", { ...NONE, ctrl: true })).state;
  expect(shown(undone)).toBe("|");
  expect(shown(press(undone, keysOf("Z", { ...NONE, meta: true, shift: true })).state)).toBe("word|");
});
