import { readSource } from "@sluice/workflows";
import { expect, test } from "vitest";

const lines = (...text: readonly string[]): string => text.join("\n");

const document = lines(
  "plain: some text here",
  'quoted: "an \\u0041, a \\"quote\\" and the end"',
  "single: 'it''s here'",
  "literal: |",
  "  first line",
  "    indented line",
  "",
  "  last line",
  "folded: >-",
  "  one part",
  "  other part",
  "several: starts",
  "  continues",
  "flow: [one, {deep: 'the value'}]",
);

test("characters inside a scalar of any style are found behind escapes, folds and indentation", () => {
  const { source, diagnostics } = readSource("w.yaml", document);
  expect(diagnostics).toEqual([]);
  const find = (path: readonly (string | number)[], word: string): string => {
    let value: unknown = source?.value;
    for (const step of path) value = Object(value)[step];
    const at = source?.at(path, "value", String(value).indexOf(word), word.length);
    const line = document.split("\n")[(at?.line ?? 0) - 1] ?? "";
    return line.slice((at?.column ?? 0) - 1, (at?.column ?? 0) - 1 + (at?.length ?? 0));
  };
  for (const [path, word] of [
    [["plain"], "text"],
    [["quoted"], "and the"],
    [["single"], "here"],
    [["literal"], "indented"],
    [["literal"], "last"],
    [["folded"], "other"],
    [["several"], "continues"],
    [["flow", 1, "deep"], "value"],
  ] as const) {
    expect(find(path, word), path.join(".")).toBe(word);
  }
});

test("keys, values and missing parts have positions", () => {
  const { source } = readSource("w.yaml", document);
  expect(source?.at(["flow", 1, "deep"], "key")).toEqual({ line: 14, column: 14, length: 4 });
  expect(source?.at(["flow", 1, "deep"])).toEqual({ line: 14, column: 20, length: 11 });
  expect(source?.at(["flow", 1, "missing"])).toEqual({ line: 14, column: 13, length: 19 });
  expect(source?.at([])).toMatchObject({ line: 1, column: 1 });
});

test("JSON with tabs, escapes and Windows line ends is read as JSON reads it", () => {
  const text = '{\r\n\t"a": [\r\n\t\t"\\ud83d\\ude00\\/",\r\n\t\t1e3\r\n\t]\r\n}\r\n';
  const { source, diagnostics } = readSource("w.json", `\uFEFF${text}`);
  expect(diagnostics).toEqual([]);
  expect(source?.value).toEqual(JSON.parse(text));
  expect(source?.at(["a", 1])).toEqual({ line: 4, column: 3, length: 3 });
});

test("YAML 1.2 words are texts: yes, on and no are not booleans", () => {
  expect(readSource("w.yaml", "on: yes\nx: no\n").source?.value).toEqual({ on: "yes", x: "no" });
});

test("a repeated part is read where it is repeated", () => {
  const { source } = readSource("w.yaml", "a: &tools [Read, Grep]\nb: *tools\n");
  expect(source?.value).toEqual({ a: ["Read", "Grep"], b: ["Read", "Grep"] });
  expect(source?.at(["b"])).toEqual({ line: 2, column: 4, length: 6 });
});

const letters = "bcdef".split("");
const bomb = ["a: &a [x,x,x,x,x,x,x,x,x]"];
for (const [index, letter] of letters.entries()) {
  const before = index === 0 ? "a" : (letters[index - 1] ?? "");
  bomb.push(`${letter}: &${letter} [${Array(9).fill(`*${before}`).join(",")}]`);
}

const hostile: Readonly<Record<string, readonly [text: string, rule: string]>> = {
  "20,000 open brackets": ["[".repeat(20_000), "nesting-depth"],
  "20,000 closed brackets": ["[".repeat(20_000) + "]".repeat(20_000), "nesting-depth"],
  "dashes in a row": ["- ".repeat(40_000), "nesting-depth"],
  "keys in a row": ["? ".repeat(40_000), "nesting-depth"],
  "65 levels of indentation": [
    Array.from({ length: 65 }, (_, level) => `${" ".repeat(level)}a:`).join("\n"),
    "nesting-depth",
  ],
  "an alias bomb": [bomb.join("\n"), "yaml-alias"],
  "an alias inside its anchor": ["a: &a [*a]", "yaml-alias"],
  "levels made of aliases": [
    "a: &a [[[[[[[[[[[[[[[[[[[[x]]]]]]]]]]]]]]]]]]]]\nb: &b [[[[[[[[[[[[[[[[[[[[*a]]]]]]]]]]]]]]]]]]]]\nc: [[[[[[[[[[[[[[[[[[[[[[[[[*b]]]]]]]]]]]]]]]]]]]]]]]]]",
    "nesting-depth",
  ],
  "50 MB": ["a".repeat(50_000_000), "file-size"],
  "a list of 130,000 empty entries": ["-\n".repeat(130_000), "file-size"],
  "130,000 strings without a comma": ['"'.repeat(260_000), "file-size"],
  "a NUL": ["a: \0", "control-character"],
  "an escape sequence": ["a: \u001b[2J", "control-character"],
  "the key __proto__": ['{"a":{"__proto__":{"x":1}}}', "prototype-key"],
  "the key constructor": ["constructor: {prototype: {x: 1}}", "prototype-key"],
  "a key that is there twice": ['{"a":1,"b":2,"a":3}', "duplicate-key"],
  "a tag of a language": ['a: !!js/function "x"', "yaml-tag"],
  "binary data": ["a: !!binary aGk=", "yaml-tag"],
  "a directive": ["%YAML 1.1\n---\non: yes\n", "syntax"],
  "two documents": ["a: 1\n---\nb: 2", "syntax"],
  "an infinite number": ["a: .inf", "syntax"],
  "a lone surrogate": ['{"a":"\\ud800"}', "syntax"],
  "a list as a key": ["? [a]\n: b", "syntax"],
  "tabs as indentation": ["a:\n\tb: 1", "syntax"],
  "an open bracket": ['{"a": [1, 2', "syntax"],
  "nothing but a comment": ["# nothing\n", "syntax"],
  nothing: ["", "syntax"],
};

for (const [what, [text, rule]] of Object.entries(hostile)) {
  test(`${what}: one error`, () => {
    const { source, diagnostics } = readSource("w.yaml", text);
    expect(source).toBeUndefined();
    expect(diagnostics.map((found) => found.rule)).toEqual([rule]);
    expect(diagnostics[0]?.message.length).toBeLessThan(300);
  });
}

test("a reading never reaches the prototype of objects", () => {
  readSource("w.json", '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}');
  expect(Object.keys(Object.prototype)).toEqual([]);
});

test("64 levels, 250 KB of text and many keys are read", () => {
  const deep = Array.from({ length: 64 }, (_, level) => `${" ".repeat(level)}a:`).join("\n");
  expect(readSource("w.yaml", deep).diagnostics).toEqual([]);
  const long = `a: |\n${"  a line of a prompt with words ((([[[{{{\n".repeat(5_500)}`;
  expect(readSource("w.yaml", long).diagnostics).toEqual([]);
  const many = Array.from({ length: 9_000 }, (_, index) => `key${index}: value`).join("\n");
  expect(readSource("w.yaml", many).diagnostics).toEqual([]);
});
