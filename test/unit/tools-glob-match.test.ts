import { expect, test } from "vitest";
import { compileGlob } from "../../packages/stages/src/tools/search/glob-match.ts";

function matches(pattern: string, path: string): boolean {
  const compiled = compileGlob(pattern);
  if (!compiled.ok) throw new Error(compiled.reason);
  return compiled.match(path.split("/"));
}

test.each([
  ["*.ts", "a.ts", true],
  ["*.ts", ".ts", true],
  ["*.ts", "src/a.ts", false],
  ["**/*.ts", "a.ts", true],
  ["**/*.ts", "a/b/c.ts", true],
  ["src/**/a.ts", "src/a.ts", true],
  ["src/**/x/**/a.ts", "src/1/x/2/3/a.ts", true],
  ["src/**/x/**/a.ts", "src/1/2/3/a.ts", false],
  ["src/**", "src", false],
  ["src/", "src/a/b", true],
  ["./src/*.ts", "src/a.ts", true],
  ["a?c", "abc", true],
  ["a?c", "ac", false],
  ["?", "🙂", true],
  ["[a-c]x", "bx", true],
  ["[!a-c]x", "bx", false],
  ["[^a-c]x", "dx", true],
  ["[]x]", "]", true],
  ["[a", "[a", true],
  ["[\\]]", "]", true],
  ["\\*", "*", true],
  ["\\*", "a", false],
  ["a{b,c{d,e}}f", "acef", true],
  ["a{b,c{d,e}}f", "acf", false],
  ["{a}", "{a}", true],
  ["v{1..3}", "v{1..3}", true],
  ["a\\{b,c\\}", "a{b,c}", true],
  ["A", "a", false],
  ["**", "a/b", true],
  ["a**b", "axyb", true],
  ["a**b", "a/b", false],
] as const)("%j on %j: %j", (pattern, path, expected) => {
  expect(matches(pattern, path)).toBe(expected);
});

test("patterns that ruin backtracking matchers are answered at once", () => {
  const name = "a".repeat(250);
  expect(matches(`${"*a".repeat(100)}b`, name)).toBe(false);
  expect(matches(`${"**/".repeat(100)}b`, Array.from({ length: 500 }, () => "a").join("/"))).toBe(false);
  expect(matches(`${"[a-z]*".repeat(80)}9`, name)).toBe(false);
});

test.each(["{a,b}{c,d}{e,f}{g,h}{i,j}{k,l}{m,n}", `${"{a,".repeat(200)}b${"}".repeat(200)}`])(
  "braces that stand for too much are refused: %s",
  (pattern) => {
    expect(compileGlob(pattern).ok).toBe(false);
  },
);

test("thousands of opening braces do not take thousands of passes", () => {
  expect(compileGlob("{".repeat(1_000)).ok).toBe(true);
});
