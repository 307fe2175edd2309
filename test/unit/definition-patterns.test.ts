import { expect, test } from "vitest";
import { isSluiceError } from "../../packages/core/src/base/errors.ts";
import {
  matchesArgv,
  matchesName,
  matchesPath,
  parsePattern,
} from "../../packages/core/src/definition/patterns/tool-pattern.ts";

function refusalOf(text: string): string {
  try {
    parsePattern(text);
    return "accepted";
  } catch (thrown) {
    return isSluiceError(thrown, "pattern_invalid") && thrown.class === "Validation"
      ? thrown.message
      : `another error: ${String(thrown)}`;
  }
}
/** Whether a rule covers a command; words that begin with $ are only known when it runs. */
function covers(rule: string, command: string): boolean {
  const argv = command.split(" ");
  return matchesArgv(
    parsePattern(rule),
    argv,
    argv.map((word) => word.startsWith("$")),
  );
}

test.each([
  ["Read", "Read", true],
  ["Read", "read", false],
  ["Read", "ReadAll", false],
  ["Read", "xRead", false],
  ["mcp__github__*", "mcp__github__list_issues", true],
  ["mcp__github__*", "mcp__gitlab__list_issues", false],
  ["mcp__github__*", "mcp__github_", false],
  ["mcp__*__search", "mcp__docs__search", true],
  ["*", "Bash", true],
  ["Edit(src/**)", "Edit", true],
  ["Edit(src/**)", "Write", false],
])("the pattern %s covers the tool %s: %s", (pattern, tool, wanted) => {
  expect(matchesName(parsePattern(pattern), tool)).toBe(wanted);
});

test.each([
  ["Edit(src/**)", "src/a.ts", true],
  ["Edit(src/**)", "src/deep/er/a.ts", true],
  ["Edit(src/**)", "src", true],
  ["Edit(src/**)", "srcs/a.ts", false],
  ["Edit(src/**)", "lib/src/a.ts", false],
  ["Edit(src/**)", "src/.env", true],
  ["Edit(src/**)", "Src/a.ts", false],
  ["Edit(src/*)", "src/a.ts", true],
  ["Edit(src/*)", "src/.env", true],
  ["Edit(src/*)", "src/a/b.ts", false],
  ["Edit(src/*)", "src", false],
  ["Edit(**/*.test.ts)", "a.test.ts", true],
  ["Edit(**/*.test.ts)", "x/y/a.test.ts", true],
  ["Edit(**/*.test.ts)", "x/y/a.ts", false],
  ["Edit(src/**/test/**)", "src/a/b/test/c", true],
  ["Edit(src/**/test/**)", "src/test", true],
  ["Edit(*.{ts,tsx})", "a.tsx", true],
  ["Edit(*.{ts,tsx})", "a.js", false],
  ["Edit(a?.ts)", "ab.ts", true],
  ["Edit(a?.ts)", "a/.ts", false],
  ["Edit(app/(group)/[slug]/page.tsx)", "app/(group)/[slug]/page.tsx", true],
  ["Edit(app/(group)/[slug]/page.tsx)", "app/group/s/page.tsx", false],
  ["Edit(docs/a b.md)", "docs/a b.md", true],
  ["Read(**)", "", true],
  ["Read(**)", ".", true],
  ["Read(**)", "any/thing", true],
  ["Read(*)", "", false],
  ["Read(**)", "/etc/passwd", false],
  ["Read(**)", "../secret", false],
  ["Read(**)", "a/../../secret", false],
  ["Read", "any/thing", true],
  ["Bash(npm test *)", "npm test a", false],
])("the scope of %s covers the path %s: %s", (pattern, path, wanted) => {
  expect(matchesPath(parsePattern(pattern), path)).toBe(wanted);
});

test.each([
  ["Read", "docs", true],
  ["Read(**)", "", true],
  ["Read(**)", "docs", true],
  ["Read(**/*)", "docs", true],
  ["Read(docs/**)", "docs", true],
  ["Read(docs/**)", "docs/private", true],
  ["Read(docs/**/*)", "docs", false],
  ["Read(docs/**/*)", "docs/private", true],
  ["Read(docs/*/**)", "docs/private", true],
  ["Read(docs/*/**)", "docs", false],
  ["Read(*/**/**)", "docs", true],
  ["Read(docs)", "docs", false],
  ["Read(docs/*)", "docs/private", false],
  ["Read(*)", "docs", false],
  ["Read(*/*)", "docs/private", false],
  ["Read(**/private)", "docs/private", false],
  ["Read(docs/**/private)", "docs/private", false],
  ["Read(docs/*.md)", "docs/d.md", false],
  ["Read(**/*.md)", "docs/d.md", false],
  ["Read(**/*?)", "docs", false],
  ["Read(src/**)", "docs", false],
  ["Read(**)", "../docs", false],
])("the scope of %s covers all below the path %s: %s", (pattern, path, wanted) => {
  expect(matchesPath(parsePattern(pattern), path, true)).toBe(wanted);
});

test.each([
  ["Bash(npm test *)", "npm test", true],
  ["Bash(npm test *)", "npm test --watch unit", true],
  ["Bash(npm test *)", "npm run test", false],
  ["Bash(npm test *)", "npm", false],
  ["Bash(npm test *)", "npm tests", false],
  ["Bash(npm test *)", "npm test $FILES", true],
  ["Bash(npm test *)", "npm $TARGET", false],
  ["Bash(npm test *)", "$NPM test", false],
  ["Bash(npm test)", "npm test", true],
  ["Bash(npm test)", "npm test --watch", false],
  ["Bash(git * --stat)", "git diff --stat", true],
  ["Bash(git * --stat)", "git diff HEAD --stat", false],
  ["Bash(git * --stat)", "git $ARGS --stat", false],
  ["Bash(echo '*')", "echo *", true],
  ["Bash(echo '*')", "echo x", false],
  ["Bash(rg 'a|b' *)", "rg a|b src", true],
  ["Bash", "rm -rf .", true],
  ["Shell(npm test *)", "npm test a", true],
  ["Edit(src/**)", "src/** x", false],
])("the rule %s covers the command %s: %s", (pattern, command, wanted) => {
  expect(covers(pattern, command)).toBe(wanted);
});

test.each(["timeout -k ", "timeout -k -k ", "env A= ", "stdbuf -o ", "nice -5 "])(
  "a rule of many %sis read, although no command stands behind them",
  (piece) => {
    const rule = parsePattern(`Bash(${piece.repeat(500 / piece.length).trim()})`);
    expect(matchesArgv(rule, ["make"], [false])).toBe(false);
  },
);

test("quoted words of a rule may hold spaces", () => {
  const pattern = parsePattern(`Bash(git commit -m "a b" *)`);
  expect(matchesArgv(pattern, ["git", "commit", "-m", "a b"], [false, false, false, false])).toBe(true);
  expect(matchesArgv(pattern, ["git", "commit", "-m", "a", "b"], [false, false, false, false, false])).toBe(false);
});

test.each([
  ["Bash(cd docs && make check)", "docs", "make check", true],
  ["Bash(timeout 60 npm test *)", "", "npm test", true],
  ["Bash(timeout -v --kill-after=5 1.5m nice -n 10 env CI=1 A= nohup stdbuf -oL -e0 npm test)", "", "npm test", true],
  ["Bash(cd docs && nice make check)", "docs", "make check", true],
  ["Bash(timeout 60 npm test)", "", "timeout 60 npm test", false],
  ["Bash(timeout *)", "", "timeout 60", true],
  ["Bash(timeout 60 *)", "", "make check", false],
  ["Bash(nicer make check)", "", "make check", false],
  ["Bash(env)", "", "env", true],
  ["Bash(env make check)", "", "make check", true],
  ["Bash(env -i make check)", "", "make check", false],
  ["Bash(timeout -s KILL -k 5 60 make check)", "", "make check", true],
  ["Bash(timeout --signal=KILL 60 make check)", "", "make check", true],
  ["Bash(nice -5 make check)", "", "make check", true],
  ["Bash(nice -n5 make check)", "", "make check", true],
  ["Bash(stdbuf -o L -e0 make check)", "", "make check", true],
  ["Bash(stdbuf make check)", "", "make check", false],
  ["Bash(cd ./docs/ && make *)", "docs", "make check all", true],
  ["Bash(cd docs && make check)", "", "make check", false],
  ["Bash(cd docs && make check)", "docs/sub", "make check", false],
  ["Bash(cd docs && make check)", "docs", "make", false],
  ["Bash(cd 'my docs' && make check)", "my docs", "make check", true],
  ["Bash(cd docs && ./a/run.sh)", "docs", "./docs/a/run.sh", true],
  ["Bash(cd docs && ../run.sh)", "docs", "./run.sh", true],
  ["Bash(cd docs && /bin/ls)", "docs", "/bin/ls", true],
  ["Bash(make check)", "docs", "make check", true],
  ["Bash(cd *)", "docs", "make check", false],
  ["Bash(cd packages/* && make check)", "packages/a", "make check", true],
  ["Bash(cd ./packages/*/ && make *)", "packages/a", "make check", true],
  ["Bash(cd packages/* && make check)", "packages/a/b", "make check", false],
  ["Bash(cd packages/* && make check)", "packages", "make check", false],
  ["Bash(cd packages/* && make check)", "packages/a", "make", false],
  ["Bash(cd packages/{a,b} && make check)", "packages/b", "make check", true],
  ["Bash(cd packages/{a,b} && make check)", "packages/c", "make check", false],
  ["Bash(cd packages/? && ./a/run.sh)", "packages/a", "./packages/a/a/run.sh", true],
  ["Bash(cd packages/? && ./a/run.sh)", "packages/a", "./a/run.sh", false],
  ["Bash(cd packages/* && ../run.sh)", "packages/a", "./packages/run.sh", true],
  ["Bash(cd * && make check)", "docs", "make check", true],
  ["Bash(cd ** && make check)", "docs/a/b", "make check", true],
  ["Bash(cd ** && make check)", "", "make check", true],
  ["Bash(cd ** && make check)", "/etc", "make check", false],
  ["Bash(cd ** && make check)", "/ws2/docs", "make check", false],
  ["Bash(cd 'doc*' && make check)", "doc*", "make check", true],
  ["Bash(cd 'doc*' && make check)", "docs", "make check", false],
])("the rule %s covers, in the folder %j, the command %s: %s", (pattern, folder, command, wanted) => {
  const argv = command.split(" ");
  const known = argv.map(() => false);
  expect(matchesArgv(parsePattern(pattern), argv, known, folder)).toBe(wanted);
});

test.each([
  "cd */.. && make",
  "cd 'a b'/* && make",
  "cd .. && make",
  "cd docs/../.. && make",
  "cd /etc && make",
  "cd ~ && make",
  "cd . && make",
  "cd docs &&",
])("a rule of %s does not name a folder of the workspace and a command, and is refused", (scope) =>
  expect(refusalOf(`Bash(${scope})`)).toContain("a scope with cd names a folder of the workspace and a command"),
);

test("a word no one called known counts as unknown, and no command falls under no rule", () => {
  expect(matchesArgv(parsePattern("Bash(npm test)"), ["npm", "test"], [false])).toBe(false);
  expect(matchesArgv(parsePattern("Bash(*)"), [], [])).toBe(false);
});

test.each([
  ["!Read", "negation"],
  ["!(Read)", "negation"],
  ["Edit(!src/**)", "negation"],
  ["Edit(!(src)/**)", "negation"],
  ["Edit(src/!(a|b))", "negation"],
  ["Edit(src/@(a|b))", "groups"],
  ["Edit(src/+(a))", "groups"],
  ["Re?d", "only * stands for others"],
  ["[RE]ead", "only * stands for others"],
  ["{Read,Edit}", "only * stands for others"],
  ["Read|Edit", "only * stands for others"],
  ["mcp__github__**", "**"],
  ["", "empty"],
  [" Read", 'write "Read"'],
  ["Read\n", "invisible"],
  ["Re\u200bad", "invisible"],
  ["Read\u0000", "invisible"],
  ["(src/**)", "needs a tool"],
  ["Edit(", "parentheses do not match"],
  ["Edit)", "parentheses do not match"],
  ["Edit(src/**", "parentheses do not match"],
  ["Edit(src/**)x", "parentheses do not match"],
  ["Edit(a)(b)", "parentheses do not match"],
  ["Edit(a)b)", "parentheses do not match"],
  ["Edit()", "write Edit for all of it"],
  ["Bash( )", "write Bash for all of it"],
  ["Edit(/etc/**)", "relative to the workspace"],
  ["Edit(~/x)", "relative to the workspace"],
  ["Edit(C:/x)", "relative to the workspace"],
  ["Edit(../x)", "climb"],
  ["Edit(src/../../x)", "climb"],
  ["Edit({src,..}/x)", "climb"],
  ["Edit(./src/**)", "src/** instead of ./src/**"],
  ["Edit(src/)", "write src/**"],
  ["Edit(src//a)", "empty pieces"],
  ["Edit(src\\a)", "backslash"],
  ["Edit(src/**.ts)", "whole piece"],
  ["Edit({a/b,c}/x)", "one pattern for each folder"],
  ["Edit({a}/x)", "lists no alternatives"],
  ["Edit({a,{b,c}})", "nested"],
  ["Edit({a,b)", "do not close"],
  ["Edit({1..9}.ts)", "lists no alternatives"],
  ["Edit({1..9,a}.ts)", "ranges"],
  [`Edit(${"{a,?}".repeat(7)})`, "more than 64 alternatives"],
  ["*(src/**)", "one pattern for each tool"],
  ["Bash(npm run test:*)", "npm run test:*"],
  ["Bash(npm 'test)", "quote is not closed"],
  ["Bash(a\\ b)", "use quotes"],
  ["Bash(npm test && npm run lint)", "&& is an operator of Bash"],
  ["Bash(npm test; ls)", "; is an operator of Bash"],
  ["Bash(npm test | tee log)", "| is an operator of Bash"],
  ["Bash(npm test 2>&1 *)", ">& is an operator of Bash"],
  ["Bash(cd docs && make && ls)", "&& is an operator of Bash"],
  ["Bash(cd docs; make)", "; is an operator of Bash"],
  ["Bash(cd a&&b && make)", "&& is an operator of Bash"],
  ["Bash(cd a** && make)", "must be a whole piece"],
  ["Bash(NODE_ENV=test npm test)", "NODE_ENV=test sets one"],
  ["Bash(cd web && CI=1 npm test *)", "CI=1 sets one"],
  ["Bash(cd {a,..}/x && make)", "climb"],
  ["Bash(rg a|b *)", "quote the word if the character is part of it"],
  [`Read(${"a".repeat(600)})`, "longer than 512"],
])("the pattern %j is refused: %s", (text, reason) => {
  expect(refusalOf(text)).toContain(reason);
});

test("a star inside a word of a rule is refused with the form that says it", () => {
  expect(refusalOf("Bash(npm run test:*)")).toContain('write "test *"');
});

test("a long hostile path is judged at once, whatever the pattern", () => {
  const pattern = parsePattern("Read(**/a/**/b/**/c/**/d)");
  expect(matchesPath(pattern, `${"a/b/c/".repeat(20_000)}x`)).toBe(false);
  const stars = parsePattern("Read(*a*a*a*b)");
  expect(matchesPath(stars, "a".repeat(100_000))).toBe(false);
});
