import fc from "fast-check";
import { expect, test } from "vitest";
import {
  matchesArgv,
  matchesName,
  matchesPath,
  parsePattern,
} from "../../packages/core/src/definition/patterns/tool-pattern.ts";

/** Characters that a matcher or a regular expression would read as something else, among plain ones. */
const tricky = fc.constantFrom(..."ab.-_+@!^$|&;'\"[]()#~%:,=<> é\u{1f600}".split(""), "\u{1f600}");
const piece = fc.array(tricky, { minLength: 1, maxLength: 6 }).map((characters) => characters.join(""));
const path = fc.array(piece, { minLength: 1, maxLength: 4 }).map((pieces) => pieces.join("/"));
const toolName = fc.stringMatching(/^[A-Za-z][A-Za-z0-9_.:-]{0,12}$/);

function parsed(text: string) {
  try {
    return parsePattern(text);
  } catch {
    // A pattern that is refused matches nothing; the property is about those that are not.
    return undefined;
  }
}

/** The oracle: what `*`, `?` and `**` mean, by hand. */
function covers(rules: readonly string[], pieces: readonly string[]): boolean {
  const [rule, ...rest] = rules;
  if (rule === undefined) return pieces.length === 0;
  if (rule === "**") return covers(rest, pieces) || (pieces.length > 0 && covers(rules, pieces.slice(1)));
  const [first, ...more] = pieces;
  return first !== undefined && coversPiece(rule, first) && covers(rest, more);
}
function coversPiece(rule: string, text: string): boolean {
  if (rule === "") return text === "";
  if (rule[0] === "*") return coversPiece(rule.slice(1), text) || (text !== "" && coversPiece(rule, text.slice(1)));
  return text !== "" && (rule[0] === "?" || rule[0] === text[0]) && coversPiece(rule.slice(1), text.slice(1));
}

test("a name without a star matches itself and nothing else", () => {
  fc.assert(
    fc.property(toolName, toolName, (name, other) => {
      const pattern = parsePattern(name);
      expect(matchesName(pattern, name)).toBe(true);
      expect(matchesName(pattern, other)).toBe(name === other);
    }),
  );
});

test("no text at all, read as a pattern without a star, matches a name it does not spell", () => {
  const anyText = fc.oneof(fc.string(), piece, fc.stringMatching(/^[RGe?{}[\]|+@!^$.,ad-]{1,8}$/));
  fc.assert(
    fc.property(
      anyText.filter((text) => !text.includes("*")),
      toolName,
      (text, name) => {
        const pattern = parsed(text);
        if (pattern === undefined || pattern.scope !== undefined) return;
        expect(matchesName(pattern, name)).toBe(text === name);
        expect(matchesName(pattern, "Read")).toBe(text === "Read");
      },
    ),
    { numRuns: 1000 },
  );
});

test("a star in a name stands for any run of characters and for nothing beyond that", () => {
  const withStars = fc
    .array(fc.constantFrom("*", "a", "b", "_", "."), { minLength: 1, maxLength: 6 })
    .map((all) => all.join(""));
  const name = fc.array(fc.constantFrom("a", "b", "_", "."), { minLength: 1, maxLength: 8 }).map((all) => all.join(""));
  fc.assert(
    fc.property(withStars, name, (text, tool) => {
      const pattern = parsed(text);
      if (pattern === undefined || tool === "." || tool === "..") return;
      expect(matchesName(pattern, tool)).toBe(coversPiece(text, tool));
    }),
    { numRuns: 2000 },
  );
});

test("a path scope without * ? { is that path and no other, whatever its characters", () => {
  fc.assert(
    fc.property(path, path, (scope, other) => {
      const pattern = parsed(`Edit(${scope})`);
      if (pattern === undefined) return;
      expect(matchesPath(pattern, scope)).toBe(true);
      expect(matchesPath(pattern, other)).toBe(scope === other);
    }),
    { numRuns: 2000 },
  );
});

test("a path scope with stars covers exactly what its pieces say", () => {
  const rule = fc.oneof(
    fc.constant("**"),
    fc
      .array(fc.constantFrom("*", "?", "a", "b", ".", "[", "(", "|", "+"), { minLength: 1, maxLength: 4 })
      .map((all) => all.join("")),
  );
  const name = fc
    .array(fc.constantFrom("a", "b", ".", "[", "|", "+"), { minLength: 1, maxLength: 4 })
    .map((all) => all.join(""));
  const pieces = fc.array(
    name.filter((text) => text !== "." && text !== ".."),
    { minLength: 0, maxLength: 4 },
  );
  fc.assert(
    fc.property(fc.array(rule, { minLength: 1, maxLength: 4 }), pieces, pieces, (rules, wanted, below) => {
      const pattern = parsed(`Edit(${rules.join("/")})`);
      if (pattern === undefined) return;
      expect(matchesPath(pattern, wanted.join("/"))).toBe(covers(rules, wanted));
      if (matchesPath(pattern, wanted.join("/"), true)) expect(covers(rules, [...wanted, ...below])).toBe(true);
    }),
    { numRuns: 5000 },
  );
});

test("no scope covers a path that is absolute or climbs", () => {
  const outside = fc.oneof(
    path.map((inside) => `/${inside}`),
    path.map((inside) => `../${inside}`),
    fc.tuple(path, path).map(([a, b]) => `${a}/../${b}`),
    fc.tuple(path, path).map(([a, b]) => `${a}//${b}`),
  );
  fc.assert(
    fc.property(fc.constantFrom("**", "**/*", "*/**", "**/**"), outside, (scope, real) => {
      expect(matchesPath(parsePattern(`Read(${scope})`), real)).toBe(false);
    }),
  );
});

test("a command rule without a star covers exactly its words, each of them known", () => {
  const word = fc.stringMatching(/^[a-z0-9./=-]{1,6}$/);
  const words = fc.array(word, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(words, words, fc.infiniteStream(fc.boolean()), (rule, argv, unknown) => {
      // A variable in front is refused.
      fc.pre(!/^[a-z]\w*=/.test(rule[0] ?? "") || rule.length === 1);
      const pattern = parsePattern(`Bash(${rule.join(" ")})`);
      const known = argv.map(() => false);
      expect(
        matchesArgv(
          pattern,
          rule,
          rule.map(() => false),
        ),
      ).toBe(true);
      expect(matchesArgv(pattern, argv, known)).toBe(argv.join(" ") === rule.join(" "));
      const dynamic = rule.map(() => unknown.next().value === true);
      expect(matchesArgv(pattern, rule, dynamic)).toBe(!dynamic.includes(true));
    }),
  );
});

test("a trailing star lets any further words follow, and changes nothing before them", () => {
  const word = fc.constantFrom("npm", "test", "run", "*", "a b", "$(x)");
  const words = fc.array(word, { maxLength: 4 });
  fc.assert(
    fc.property(words, words, (argv, rest) => {
      const pattern = parsePattern("Bash(npm test *)");
      const all = [...argv, ...rest];
      const dynamic = [...argv.map(() => false), ...rest.map(() => true)];
      const fits = all.length >= 2 && argv.length >= 2 && argv[0] === "npm" && argv[1] === "test";
      expect(matchesArgv(pattern, all, dynamic)).toBe(fits);
    }),
  );
});
