import { matchesArgv, matchesName, matchesPath, readPattern } from "@sluice/core/gate";
import fc from "fast-check";
import { expect, test } from "vitest";
import { compileEnvelope, whyOutside } from "../../packages/core/src/gate/envelope.ts";
import { isCovered } from "../../packages/workflows/src/authored/covers.ts";
import { lineIn } from "../support/lines.ts";
import { tempFolder } from "../support/tools.ts";

// A pattern that counts as narrower than another one allows nothing that the other one does not.

const piece = fc.constantFrom(
  "src",
  "src",
  "src*",
  "a",
  "b.ts",
  "*",
  "**",
  "*.ts",
  "..",
  ".",
  "{a,..}",
  "",
  "s?c",
  "[ab]",
  "src*",
);
const pathScope = fc.array(piece, { minLength: 1, maxLength: 4 }).map((pieces) => pieces.join("/"));
/** Scopes of folders, which others can be within. */
const folderScope = fc.constantFrom("src/**", "src/a/**", "a/**", "src.a/**", "**", "src/*", "src");
const path = fc
  .array(fc.constantFrom("src", "a", "b.ts", "c", "..", "srcs", ".git"), { minLength: 1, maxLength: 4 })
  .map((pieces) => pieces.join("/"));
const word = fc.constantFrom("npm", "npm", "test", "testing", "run", "*", "unit", "te*", "--", "-x", "a;b", "$(id)");
const commandScope = fc.array(word, { minLength: 1, maxLength: 4 }).map((words) => words.join(" "));
const argv = fc.array(fc.constantFrom("npm", "test", "run", "unit", "testing", "--", "-x", "id"), {
  minLength: 1,
  maxLength: 5,
});

function patternOf(text: string) {
  const reading = readPattern(text);
  return reading.ok ? reading.value : undefined;
}

test("of paths", () => {
  let covered = 0;
  const tool = fc.constantFrom("Edit", "Edit", "E*", "*", "Write");
  const pattern = fc
    .tuple(tool, fc.option(fc.oneof(pathScope, folderScope)))
    .map(([name, scope]) => (scope === null ? name : `${name}(${scope})`));
  fc.assert(
    fc.property(pattern, pattern, fc.array(path, { minLength: 8, maxLength: 8 }), (narrow, wide, paths) => {
      if (!isCovered(narrow, [wide])) return;
      const [inner, outer] = [patternOf(narrow), patternOf(wide)];
      if (inner === undefined || outer === undefined) return;
      covered += 1;
      for (const name of ["Edit", "Write", "Read"])
        if (matchesName(inner, name)) {
          expect(matchesName(outer, name)).toBe(true);
          for (const one of paths)
            if (matchesPath(inner, one)) expect([one, matchesPath(outer, one)]).toEqual([one, true]);
        }
    }),
    { numRuns: 60_000 },
  );
  expect(covered).toBeGreaterThan(300);
});

test("of commands", () => {
  let covered = 0;
  const pattern = fc
    .option(fc.oneof(commandScope, fc.constantFrom("npm *", "npm test *", "npm run te *", "*")))
    .map((scope) => (scope === null ? "Bash" : `Bash(${scope})`));
  fc.assert(
    fc.property(pattern, pattern, fc.array(argv, { minLength: 8, maxLength: 8 }), (narrow, wide, lines) => {
      if (!isCovered(narrow, [wide])) return;
      const [inner, outer] = [patternOf(narrow), patternOf(wide)];
      if (inner === undefined || outer === undefined) return;
      covered += 1;
      // And the command that the narrower one names.
      const own = (inner.scope ?? "npm").split(" ").map((part) => part.replace("*", "id"));
      for (const words of [...lines, own]) {
        const known = words.map(() => false);
        if (matchesArgv(inner, words, known)) expect([words, matchesArgv(outer, words, known)]).toEqual([words, true]);
      }
    }),
    { numRuns: 60_000 },
  );
  expect(covered).toBeGreaterThan(300);
});

test("of what the gate allows in a stage that may not write", () => {
  let covered = 0;
  const program = fc.constantFrom("make", "npm", "npm test", "git log", "git branch", "uniq", "sed", "node -v", "sort");
  const next = fc.constantFrom(
    "test",
    "check",
    "evil",
    "a.txt",
    "wout",
    "-f",
    "-o",
    "-v",
    "--run",
    "--output=x",
    "A=b",
    "*",
  );
  const scope = fc.tuple(program, fc.array(next, { maxLength: 2 })).map(([name, more]) => [name, ...more].join(" "));
  const wide = fc.oneof(
    program.map((name) => `${name} *`),
    scope,
  );
  const root = tempFolder().root;
  fc.assert(
    fc.property(scope, wide, fc.array(next, { maxLength: 2 }), (narrow, other, more) => {
      const [own, allowed] = [`Bash(${narrow})`, `Bash(${other})`];
      if (patternOf(own) === undefined || !isCovered(own, [allowed])) return;
      covered += 1;
      const line = [narrow.replace(/ \*$/, ""), ...(narrow.endsWith(" *") ? more : [])].join(" ");
      const subjects = lineIn(root, line);
      const why = (rule: string) => whyOutside(compileEnvelope([rule]), "Bash", subjects, { root });
      if (why(own) === undefined) expect([line, own, allowed, why(allowed)]).toEqual([line, own, allowed, undefined]);
    }),
    { numRuns: 8_000 },
  );
  expect(covered).toBeGreaterThan(100);
});

test.each([
  ["mvn test deploy", "mvn test *"],
  ["gradle test publish", "gradle test *"],
  ["npx mocha inspect a.js", "npx mocha *"],
  ["vitest init browser", "vitest *"],
  ["just test a;b", "just test *"],
])("a rule for %s is not within %s, whose star does not cover it", (own, wide) => {
  expect(isCovered(`Bash(${own})`, [`Bash(${wide})`])).toBe(false);
});
