import { expect, test } from "vitest";
import {
  createViewer,
  fixedRows,
  topOf,
  updateViewer,
  type Viewer,
} from "../../packages/tui/src/app/overlay/viewer.ts";
import type { Key } from "../../packages/tui/src/composer/keys.ts";
import type { Line } from "../../packages/view/src/text/line.ts";

const size = { width: 20, height: 5 };

test("arrows and pages move, and never past the beginning or the end", () => {
  let viewer = createViewer("twenty", numbered(20));
  viewer = press(viewer, "up");
  expect(topOf(viewer, size)).toBe(0);
  viewer = press(press(viewer, "pageDown"), "down");
  expect(topOf(viewer, size)).toBe(5);
  for (let times = 0; times < 30; times += 1) viewer = press(viewer, "pageDown");
  expect(topOf(viewer, size)).toBe(15);
  expect(topOf(press(viewer, "home"), size)).toBe(0);
});

test("who is at the end sees what comes next, and who went up stays where they are", () => {
  const lines: Line[] = Array.from({ length: 10 }, (_, at) => [{ text: `row ${at}` }]);
  const rows = { count: () => lines.length, slice: (from: number, to: number) => lines.slice(from, to) };
  const atEnd = createViewer("growing", rows, { atEnd: true });
  const wentUp = press(atEnd, "up");
  const cameBack = press(press(wentUp, "pageDown"), "pageDown");
  lines.push([{ text: "row 10" }]);
  expect(topOf(atEnd, size)).toBe(6);
  expect(topOf(wentUp, size)).toBe(4);
  expect(topOf(cameBack, size)).toBe(6);
});

test("a search goes to the rows that hold the text, whatever the case, on and back, and says when there is none", () => {
  const lines = ["alpha", "Beta", "gamma", "beta again", "delta", "e", "f", "g", "h", "i"];
  let viewer = createViewer(
    "words",
    fixedRows(() => lines.map((text): Line => [{ text }])),
    { selectable: true },
  );
  viewer = type(viewer, "/beta");
  viewer = press(viewer, "enter");
  expect(viewer.chosen).toBe(1);
  viewer = type(viewer, "n");
  expect(viewer.chosen).toBe(3);
  viewer = type(viewer, "n");
  expect([viewer.chosen, viewer.search?.missed]).toEqual([3, true]);
  viewer = type(viewer, "N");
  expect([viewer.chosen, viewer.search?.missed]).toEqual([1, false]);
});

test("letters that are typed into a search close nothing, and Esc there ends only the search", () => {
  let viewer = type(createViewer("twenty", numbered(20)), "/q");
  expect(viewer.search?.text).toBe("q");
  viewer = press(viewer, "escape");
  expect(viewer.search).toBeUndefined();
  expect(updateViewer(viewer, key("escape"), size).effect).toBe("close");
});

test("Enter opens the chosen row, and the chosen row is always in sight", () => {
  let viewer = createViewer("twenty", numbered(20), { selectable: true });
  for (let times = 0; times < 12; times += 1) viewer = press(viewer, "down");
  expect(updateViewer(viewer, key("enter"), size)).toMatchObject({ effect: "open", viewer: { chosen: 12 } });
  const top = topOf(viewer, size);
  expect(top <= 12 && 12 < top + size.height).toBe(true);
  const lower = topOf(viewer, { width: 20, height: 2 });
  expect(lower <= 12 && 12 < lower + 2).toBe(true);
});

test("a page that has fewer rows than the window stays at its beginning", () => {
  const viewer = press(press(createViewer("three", numbered(3)), "pageDown"), "end");
  expect(topOf(viewer, size)).toBe(0);
});

function numbered(count: number): ReturnType<typeof fixedRows> {
  return fixedRows(() => Array.from({ length: count }, (_, at): Line => [{ text: `row ${at}` }]));
}

function key(name: Key["name"], text = ""): Key {
  return { name, text, ctrl: false, alt: false, shift: false };
}

function press(viewer: Viewer, name: Key["name"]): Viewer {
  return updateViewer(viewer, key(name), size).viewer;
}

function type(viewer: Viewer, text: string): Viewer {
  return [...text].reduce((next, letter) => updateViewer(next, key("text", letter), size).viewer, viewer);
}
