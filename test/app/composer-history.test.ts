import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createComposer } from "../../packages/tui/src/composer/composer.ts";
import { appendHistory, readHistory } from "../../packages/tui/src/composer/history/history-file.ts";
import { context, press, shown } from "../support/composer.ts";

const start = createComposer(["first", "second line\nof two", "third"]);

test("up goes to earlier inputs, down comes back to the draft", () => {
  const draft = press(start, [{ type: "draft" }]).state;
  expect(shown(press(draft, ["up"]).state)).toBe("third|");
  expect(shown(press(draft, ["up", "up"]).state)).toBe("|second line\nof two");
  expect(shown(press(draft, ["up", "up", "up"]).state)).toBe("first|");
  expect(shown(press(draft, ["up", "up", "up", "down", "down", "down", "down"]).state)).toBe("draft|");
});

test("Ctrl+P and Ctrl+N are up and down", () => {
  expect(shown(press(start, ["ctrl+p", "ctrl+p", "ctrl+n", "ctrl+n"]).state)).toBe("third|");
});

test("beyond the oldest and the draft the key is given back", () => {
  expect(press(start, ["up", "up", "up", "up"]).handled).toBe(false);
  expect(press(start, ["down"]).handled).toBe(false);
});

test("what is changed in an earlier input stays there until something is submitted", () => {
  const changed = press(start, ["up", { type: "!" }, "up", "down", "down"]).state;
  expect(shown(changed)).toBe("third!|");
  const { state, effects } = press(changed, ["enter"]);
  expect(effects).toEqual([{ kind: "submit", text: "third!" }]);
  expect(shown(press(state, ["up", "up"]).state)).toBe("third|");
});

test("in a text of several rows up and down move in it first", () => {
  const { state } = press(start, ["up", "up", "down"]);
  expect(shown(state)).toBe("second line\n|of two");
  const narrow = { ...context, width: 14 };
  const wrapped = press(start, [{ type: "words that wrap" }], narrow).state;
  expect(shown(press(wrapped, ["up"], narrow).state)).not.toBe("third|");
});

test("the same text submitted twice is one entry", () => {
  const { state } = press(createComposer(), [{ type: "a" }, "enter", { type: "a" }, "enter"]);
  expect(state.history.entries).toEqual(["a"]);
});

test("a recalled command opens no palette that would take the arrow keys", () => {
  const { state } = press(createComposer(["x", "/help"]), ["up", "up"]);
  expect(shown(state)).toBe("x|");
});

const searched = createComposer(["fix the parser", "run tests", "fix the Lexer", "fix the Lexer", "quit"]);

test("Ctrl+R searches backwards while it is typed, Enter takes the match without submitting it", () => {
  const { state, effects } = press(searched, ["ctrl+r", { type: "fix" }, "ctrl+r", "enter"]);
  expect(shown(state)).toBe("|fix the parser");
  expect(effects).toEqual([]);
  expect(press(state, ["enter"]).effects).toEqual([{ kind: "submit", text: "fix the parser" }]);
});

test("a search passes over the same text and stays at the last match", () => {
  expect(shown(press(searched, ["ctrl+r", { type: "fix" }, "enter"]).state)).toBe("|fix the Lexer");
  expect(shown(press(searched, ["ctrl+r", { type: "fix" }, "ctrl+r", "ctrl+r", "ctrl+s", "enter"]).state)).toBe(
    "|fix the Lexer",
  );
});

test("case counts only where a capital letter was typed", () => {
  expect(shown(press(searched, ["ctrl+r", { type: "lexer" }, "tab"]).state)).toBe("fix the |Lexer");
  expect(shown(press(searched, ["ctrl+r", { type: "LEXER" }, "tab"]).state)).toBe("|");
});

test.each(["down", "ctrl+s"])("%s at the newest match stays there", (key) => {
  expect(shown(press(searched, ["ctrl+r", { type: "quit" }, key, "enter"]).state)).toBe("|quit");
});

test.each(["escape", "ctrl+g", "ctrl+c"])("%s gives the search up and leaves the draft as it was", (key) => {
  const { state, handled } = press(searched, [{ type: "draft" }, "left", "ctrl+r", { type: "fix" }, key]);
  expect(shown(state)).toBe("draf|t");
  expect(handled).toBe(true);
});

test("any other key takes the match and acts on it; the draft is below it", () => {
  const { state } = press(searched, [{ type: "draft" }, "ctrl+r", { type: "parser" }, "ctrl+e"]);
  expect(shown(state)).toBe("fix the parser|");
  expect(shown(press(state, ["down", "down", "down", "down", "down"]).state)).toBe("draft|");
});

test("taking a letter of the query back finds what it found before", () => {
  const { state } = press(searched, ["ctrl+r", { type: "fix the px" }, "backspace", "enter"]);
  expect(shown(state)).toBe("|fix the parser");
});

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "sluice-history-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const env = (): { XDG_STATE_HOME: string } => ({ XDG_STATE_HOME: home });
const file = (): string => join(home, "sluice", "history.jsonl");

test("what was appended is read back, for the owner's eyes only", () => {
  expect(readHistory(env())).toEqual({ entries: [] });
  expect(appendHistory(env(), "first")).toBeUndefined();
  expect(appendHistory(env(), "second\nline \u001b[2J")).toBeUndefined();
  expect(readHistory(env()).entries).toEqual(["first", "second\nline \u001b[2J"]);
  expect(statSync(file()).mode & 0o777).toBe(0o600);
  expect(statSync(join(home, "sluice")).mode & 0o777).toBe(0o700);
});

test("a file that others could read is closed to them", () => {
  appendHistory(env(), "first");
  chmodSync(file(), 0o644);
  appendHistory(env(), "second");
  expect(statSync(file()).mode & 0o777).toBe(0o600);
});

test("damage costs the damaged lines only, also the cut-off last one", () => {
  appendHistory(env(), "first");
  appendFileSync(file(), '{"no": "text"}\n\u0000garbage\n42\n"cut o');
  appendHistory(env(), "second");
  expect(readHistory(env()).entries).toEqual(["first", "second"]);
});

test("what looks like a secret is not written, nor what is known to be one", () => {
  appendHistory(env(), "use sk-abcdefghijklmnopqrstuvwxyz123456");
  appendHistory({ ...env(), CASTLE_TOKEN: "K3y-0f-the-c4stle" }, "use K3y-0f-the-c4stle");
  appendHistory(env(), "   ");
  appendHistory(env(), "x".repeat(40_000));
  expect(readHistory(env()).entries).toEqual([]);
});

test("the newest thousand are kept, and a file that has grown long is cut", () => {
  mkdirSync(join(home, "sluice"));
  writeFileSync(file(), Array.from({ length: 2_500 }, (_, at) => `"${at}"\n`).join(""));
  const { entries } = readHistory(env());
  expect([entries.length, entries[0], entries.at(-1)]).toEqual([1_000, "1500", "2499"]);
  expect(readFileSync(file(), "utf8").trim().split("\n")).toHaveLength(1_000);
  expect(statSync(file()).mode & 0o777).toBe(0o600);
});

test("what cannot be read or kept is reported and stops nothing", () => {
  mkdirSync(file(), { recursive: true });
  expect(readHistory(env())).toMatchObject({
    entries: [],
    fault: expect.stringMatching(/earlier inputs cannot be read/),
  });
  expect(appendHistory(env(), "x")).toMatch(/not saved for later sessions/);
});

test("a link in the file's place is not written through", () => {
  mkdirSync(join(home, "sluice"));
  writeFileSync(join(home, "elsewhere"), "");
  symlinkSync(join(home, "elsewhere"), file());
  expect(appendHistory(env(), "x")).toMatch(/not saved/);
  expect(readFileSync(join(home, "elsewhere"), "utf8")).toBe("");
});
