import { expect, test } from "vitest";
import { type Composer, createComposer, filesFound } from "../../packages/tui/src/composer/composer.ts";
import { render } from "../../packages/tui/src/composer/editing/render.ts";
import { context, press, shown } from "../support/composer.ts";

function palette(state: Composer): readonly string[] {
  const { lines } = render(state, { width: 80, maxRows: 12, placeholder: "" });
  return lines.slice(1).map((line) =>
    line
      .map((span) => span.text)
      .join("")
      .trimEnd(),
  );
}

const files = [
  "src/parser.ts",
  "src/lexer.ts",
  "docs/my notes.md",
  "README.md",
  'odd"name.ts',
  "line\nbreak.ts",
  "end.",
];
const found = (state: Composer, query: string, answer: readonly string[] = files): Composer =>
  filesFound(state, { query, files: answer }, context);

test("a slash at the beginning lists the commands with what they do", () => {
  const { state } = press(undefined, [{ type: "/r" }]);
  expect(palette(state)).toEqual(["❯ /run     start a pipeline", "  /runs    list runs", "  /resume  take a run up"]);
});

test("a slash anywhere else lists nothing", () => {
  expect(palette(press(undefined, [{ type: "a /r" }]).state)).toEqual([]);
  expect(palette(press(undefined, [{ type: "/usr/bin" }]).state)).toEqual([]);
  expect(palette(press(undefined, [{ type: "/ r" }]).state)).toEqual([]);
});

test("the best fit comes first: the beginning, then a part, then the letters in order", () => {
  expect(palette(press(undefined, [{ type: "/e" }]).state)[0]).toMatch(/resume|help/);
  expect(palette(press(undefined, [{ type: "/md" }]).state)).toEqual(["❯ /mode  for later runs"]);
  expect(palette(press(undefined, [{ type: "/RUN" }]).state)[0]).toContain("/run ");
});

test("Tab completes, and what the command takes is offered next", () => {
  const { state } = press(undefined, [{ type: "/ru" }, "tab"]);
  expect(shown(state)).toBe("/run |");
  expect(palette(state)).toEqual(["❯ codeReview  plan, execute, review", "  fixTests    until they pass"]);
  const next = press(state, ["down", "tab", { type: "now" }]).state;
  expect(shown(next)).toBe("/run fixTests now|");
  expect(palette(next)).toEqual([]);
});

test("Enter completes where something is still missing and never submits that", () => {
  const { state, effects } = press(undefined, [{ type: "/mo" }, "enter", { type: "yo" }, "enter"]);
  expect(effects).toEqual([]);
  expect(shown(state)).toBe("/mode yolo |");
  expect(press(state, ["enter"]).effects).toEqual([{ kind: "submit", text: "/mode yolo " }]);
});

test("Enter on a command that needs no more submits it", () => {
  expect(press(undefined, [{ type: "/hel" }, "enter"]).effects).toEqual([{ kind: "submit", text: "/help" }]);
  expect(press(undefined, [{ type: "/help" }, "enter"]).effects).toEqual([{ kind: "submit", text: "/help" }]);
  expect(press(undefined, [{ type: "/resume" }, "enter"]).effects).toEqual([{ kind: "submit", text: "/resume" }]);
});

test("a whole word of an argument is submitted as it stands", () => {
  expect(press(undefined, [{ type: "/mode ask" }, "enter"]).effects).toEqual([{ kind: "submit", text: "/mode ask" }]);
});

test("up and down move around the ends of the palette, and leave the text alone", () => {
  const { state } = press(undefined, [{ type: "/mode " }, "up"]);
  expect(palette(state)).toEqual(["  ask", "  allowlist", "❯ yolo"]);
  expect(palette(press(state, ["down"]).state)[0]).toBe("❯ ask");
  expect(shown(state)).toBe("/mode |");
});

test("Escape closes only the palette, which stays closed for that word; Tab opens it again", () => {
  const { state, handled } = press(undefined, [{ type: "/mode a" }, "escape", { type: "s" }]);
  expect(handled).toBe(true);
  expect(palette(state)).toEqual([]);
  expect(shown(state)).toBe("/mode as|");
  expect(press(state, ["escape"]).handled).toBe(false);
  expect(palette(press(state, ["tab"]).state)).toEqual(["❯ ask", "  allowlist"]);
  expect(press(state, ["enter"]).effects).toEqual([{ kind: "submit", text: "/mode as" }]);
});

test("the palette belongs to the word at the cursor and closes when the cursor leaves it", () => {
  const { state } = press(undefined, [{ type: "/run code" }]);
  expect(palette(state)).toHaveLength(1);
  expect(palette(press(state, ["home"]).state)).toEqual([]);
});

test("a cursor that walks into a word opens no palette; Tab does", () => {
  const { state } = press(undefined, [{ type: "/mode yolo now" }, "left", "left", "left", "left"]);
  expect(palette(state)).toEqual([]);
  expect(palette(press(state, ["tab"]).state)).toEqual(["❯ yolo"]);
});

test("a word is completed in place, without a second blank", () => {
  const { state } = press(undefined, [
    { type: "/run co the task" },
    "home",
    "alt+right",
    "alt+right",
    "backspace",
    { type: "o" },
    "tab",
  ]);
  expect(shown(state)).toBe("/run codeReview |the task");
});

test("behind @ files are asked for, and late answers to another query are passed over", () => {
  const { state, effects } = press(undefined, [{ type: "see @le" }]);
  expect(effects).toEqual([
    { kind: "find-files", query: "" },
    { kind: "find-files", query: "l" },
    { kind: "find-files", query: "le" },
  ]);
  expect(palette(found(state, "l"))).toEqual([]);
  expect(palette(found(state, "le", ["src/lexer.ts"]))).toEqual(["❯ src/lexer.ts"]);
});

test("until the answer is there, what still fits of the one before is offered", () => {
  const { state } = press(undefined, [{ type: "@" }]);
  const { state: next } = press(found(state, ""), [{ type: "parser" }]);
  expect(palette(next)).toEqual(["❯ src/parser.ts"]);
});

test.each([
  ["README.md", "@README.md |"],
  ["docs/my notes.md", '@"docs/my notes.md" |'],
  ['odd"name.ts', '@"odd\\"name.ts" |'],
  ["line\nbreak.ts", '@"line\\nbreak.ts" |'],
  ["end.", '@"end." |'],
])("the true name of %j goes into the text", (name, text) => {
  const { state } = press(found(press(undefined, [{ type: "@" }]).state, "", [name]), ["tab"]);
  expect(shown(state)).toBe(text);
});

test("a fault in finding files is shown once, below the text", () => {
  const asked = press(undefined, [{ type: "@" }]).state;
  const state = filesFound(asked, { query: "", files: [], fault: "files cannot be listed: no" }, context);
  expect(palette(state)).toEqual(["! files cannot be listed: no"]);
  const again = press(state, [{ type: "a" }]).state;
  expect(palette(filesFound(again, { query: "a", files: [], fault: "files cannot be listed: no" }, context))).toEqual(
    [],
  );
});

test("hostile names are shown harmless and inserted as they are", () => {
  const name = "a\u001b[2J\u202egnp.ts";
  const state = found(press(undefined, [{ type: "@" }]).state, "", [name]);
  expect(palette(state).join("")).toBe("❯ agnp.ts");
  expect(press(state, ["tab"]).state.editor.text).toBe(`@${JSON.stringify(name)} `);
});

test("of many choices eight are shown, the chosen one among them, with how many there are", () => {
  const many = Array.from({ length: 40 }, (_, at) => `file-${at}.ts`);
  const { state } = press(found(press(undefined, [{ type: "@" }]).state, "", many), Array(20).fill("down"));
  const rows = palette(state);
  expect(rows).toHaveLength(8);
  expect(rows.filter((row) => row.startsWith("❯"))).toEqual(["❯ file-20.ts  21/40"]);
});

test("the end of a long path is what is shown of it", () => {
  const long = `${"folder/".repeat(30)}the-file.ts`;
  const [row = ""] = palette(found(press(undefined, [{ type: "@" }]).state, "", [long]));
  expect(row).toMatch(/^❯ ….*\/the-file\.ts$/);
  expect(row.length).toBeLessThanOrEqual(80);
});

test("a search for files opens nothing after the text was submitted", () => {
  const { state } = press(undefined, [{ type: "@le" }, "enter"]);
  expect(palette(found(state, "le"))).toEqual([]);
  expect(state.editor.text).toBe("");
  expect(createComposer().palette).toBeUndefined();
});
