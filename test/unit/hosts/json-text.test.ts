import { describe, expect, test } from "vitest";
import {
  editJsonText,
  jsonValue,
  parseJsonText,
  removeFromJsonText,
} from "../../../packages/gateway/src/hosts/install/json-text.ts";

const COMMENTED = `{
    // the theme
    "theme": "dark", /* kept */
    "hooks": {
        "PreToolUse": [
            { "matcher": "Bash", "hooks": [] }
        ]
    },
}
`;

describe("an edit keeps everything that it is not about", () => {
  test.each([
    ["an empty object", "{}", { hooks: { A: ["x"] } }],
    ["an empty object on lines", "{\n}\n", { hooks: { A: ["x"] } }],
    ["an object without hooks", '{"a":1}', { a: 1, hooks: { A: ["x"] } }],
    ["a list that exists", '{"hooks":{"A":["y"]}}', { hooks: { A: ["y", "x"] } }],
    ["trailing commas", '{"hooks":{"A":["y",],},}', { hooks: { A: ["y", "x"] } }],
    ["windows line ends", '{\r\n\t"a": 1\r\n}\r\n', { a: 1, hooks: { A: ["x"] } }],
  ])("in %s", (_name, text, expected) => {
    const edited = editJsonText(text, { path: ["hooks", "A"], value: "x", append: true });
    expect(jsonValue(parseJsonText(edited))).toEqual(expected);
  });

  test("comments, order and indentation stay", () => {
    const edited = editJsonText(COMMENTED, { path: ["hooks", "PreToolUse"], value: { ours: true }, append: true });
    expect(edited).toBe(
      COMMENTED.replace(
        '"hooks": [] }\n',
        '"hooks": [] },\n            {\n                "ours": true\n            }\n',
      ),
    );
  });

  test("a removal restores the text that was there before", () => {
    for (const text of [
      COMMENTED,
      '{\n  "a": 1\n}\n',
      '{"a":{"b":[1,2]}}',
      '{\n  "hooks": {\n    "B": [\n      1\n    ]\n  }\n}\n',
    ]) {
      const once = editJsonText(text, { path: ["hooks", "A"], value: { ours: true }, append: true });
      const twice = editJsonText(once, { path: ["hooks", "PreToolUse"], value: { ours: true }, append: true });
      const removed = removeFromJsonText(twice, (_path, value) => JSON.stringify(value) === '{"ours":true}');
      expect(removed).toBe(text);
    }
  });

  test("a value that exists is replaced in its place", () => {
    const edited = editJsonText('{ "a": 1, "b": 2 }', { path: ["a"], value: [3] });
    expect(jsonValue(parseJsonText(edited))).toEqual({ a: [3], b: 2 });
    expect(edited.endsWith(', "b": 2 }')).toBe(true);
  });
});

describe("a file that cannot be edited is refused", () => {
  test.each([
    ["", /line 1: a value was expected/],
    ['{\n"a" 1}', /line 2: a colon/],
    ["{]", /a string was expected/],
    ['{"a":1} x', /nothing was expected/],
    ['{"a":01}', /expected/],
    ["[".repeat(200), /nested too deeply/],
    ['{"a":"\u0001"}', /a value was expected|a string was expected/],
  ])("%j", (text, fault) => {
    expect(() => parseJsonText(text)).toThrow(fault);
  });

  test.each([
    ['{"hooks":[]}', /hooks is not an object/],
    ['{"hooks":{"A":{}}}', /hooks.A is not a list/],
    ["[]", /the file is not an object/],
  ])("%s has something else in the way", (text, fault) => {
    expect(() => editJsonText(text, { path: ["hooks", "A"], value: 1, append: true })).toThrow(fault);
  });
});

test("keys of the prototype are data", () => {
  const value = jsonValue(parseJsonText('{"__proto__":{"x":1},"constructor":2}'));
  expect(Object.keys(value ?? {})).toEqual(["__proto__", "constructor"]);
});
