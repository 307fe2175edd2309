// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings are shell
import { chmodSync, symlinkSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { lineIn, printedLine } from "../support/lines.ts";
import { tempFolder } from "../support/tools.ts";

function workspace() {
  const folder = tempFolder();
  for (const name of ["a.txt", "b.txt", "src/a.ts", "src/b.ts", "sub/c"]) folder.put(name, "x\n");
  return folder;
}

/** The commands of a line with what they run in: `xargs > wc -l {…}`; what is not known to only read begins with `!`. */
function commands(root: string, line: string, env?: Readonly<Record<string, string>>): readonly string[] {
  return lineIn(root, line, env).flatMap((subject) =>
    subject.kind === "command"
      ? [`${subject.readOnly ? "" : "!"}${[...subject.via, subject.argv.join(" ")].join(" > ")}`]
      : [],
  );
}

/** What keeps a line from being read. */
function outside(root: string, line: string): string {
  const [first] = lineIn(root, line);
  return first?.kind === "opaque" ? first.reason : "";
}

describe("what is not of the plain language is outside of it", () => {
  test.each([
    ["echo $(id)", "substitution"],
    ["echo `id`", "substitution"],
    ['echo "`id`"', "substitution"],
    ["cat <(id)", "process substitution"],
    ["id & id", "background"],
    ["cat <<EOF\nx\nEOF", "here-document"],
    ["cat <<< x", "here-document"],
    ["for f in a; do id; done", "keyword for"],
    ["while id; do id; done", "keyword while"],
    ["case x in x) id;; esac", "keyword case"],
    ["{ id; }", "keyword {"],
    ["[[ -f a.txt ]]", "keyword [["],
    ["f() { id; }", "parenthesis"],
    ["((1))", "arithmetic"],
    ["echo $((1))", "substitution"],
    ["echo ${HOME:-x}", "parameter expansion"],
    ["echo $'x'", "$'"],
    ['echo $"x"', '$"'],
    ["echo $1 $@", "$1"],
    ["a=(1 2)", "a parenthesis"],
    ["echo ../*", "a glob that leaves the workspace"],
    ["cat /etc/*.conf", "a glob that leaves the workspace"],
    ["exec ls", "builtin exec"],
    ["eval ls", "builtin eval"],
    [". ./x", "builtin ."],
    ["printf -v x y", "builtin printf"],
    ["printf '%n' PATH", "builtin printf"],
    ["printf '%99999d' 1", "builtin printf"],
    ["test -v x", "builtin test"],
    ["set -o allexport", "builtin set"],
    ["PATH=. ls", "a setting of PATH"],
    ["LD_PRELOAD=x ls", "a setting of LD_PRELOAD"],
    ["LC_ALL=zh_TW.BIG5 ls", "a setting of LC_ALL"],
    ["TZ=:/etc/passwd date", "a setting of TZ"],
    ["PAGER=./x git log", "a setting of PAGER"],
    ["export NODE_OPTIONS=x", "a setting of NODE_OPTIONS"],
    ["env NODE_OPTIONS=x node -v", "a setting of NODE_OPTIONS"],
    ["cat > a.txt > {a,b}", "expansion"],
    ["cd ..", "a cd out of the workspace"],
    ["cd nowhere", "which is not a folder"],
    ["id || cd sub; ls", "a cd that may not happen"],
    ["cd sub | ls", "a cd inside a pipeline"],
    ["ls 3> x", "redirection of an unusual form"],
    ["ls 80000000> x", "redirection of an unusual form"],
    ["ls <> x", "redirection"],
    ["ls >& x", "redirection of an unusual form"],
    ["echo $UNSET", "known only when the line runs"],
    ["echo $RANDOM", "known only when the line runs"],
    ["CI=1; echo $CI", "known only when the line runs"],
    ["cat ~/x", "a tilde"],
    ["cat --x=~/x", "a tilde"],
    ["ls\u00a0-l", "U+00A0"],
    ["ls \u202e", "U+202E"],
    ["ls\r\n", "U+000D"],
    ["echo {1..1000000}", "a range"],
    ["ls [[:alpha:]]*", "a bracket"],
  ])("%j: %s", (line, why) => {
    const folder = workspace();
    expect(outside(folder.root, line)).toContain(why);
    expect(printedLine(lineIn(folder.root, line))).toBeUndefined();
  });
});

describe("a line is written from what was judged", () => {
  test.each<readonly [line: string, written: RegExp]>([
    ["ls *.txt", /^'\S+\/ls' 'a\.txt' 'b\.txt'$/],
    ["cat {a,b}.txt | wc -l", /^'\S+\/cat' 'a\.txt' 'b\.txt' \| '\S+\/wc' '-l'$/],
    ["echo 'it'\"'\"'s'", /^echo 'it'\\''s'$/],
    ["cat a.txt 2>/dev/null || true", /^'\S+\/cat' 'a\.txt' 2> '\/dev\/null' \|\| true$/],
    ["ls |& cat", /^'\S+\/ls' 2>&1 \| '\S+\/cat'$/],
    ["ls &> /dev/null", /^'\S+\/ls' > '\/dev\/null' 2>&1$/],
    ["! ls && CI=1 ls", /^! '\S+\/ls' && CI='1' '\S+\/ls'$/],
    ["(cd sub && ls); ls", /^\( \{ cd -- '\S+\/sub' \|\| exit 1; \} && '\S+\/ls' \); '\S+\/ls'$/],
    ['ls; echo "exit $?"', /^'\S+\/ls'; echo 'exit '"\$\?"''$/],
    ["timeout 5 ls", /^'\S+\/timeout' '5' '\S+\/ls'$/],
    ["bash -lc 'ls && cat a.txt'", /^'\S+\/bash' '--noprofile' '--norc' '-c' '.*ls.* && .*cat.*'$/],
  ])("%s", (line, written) => {
    expect(printedLine(lineIn(workspace().root, line))).toMatch(written);
  });

  test("where a glob matches a name that begins with a dash it is not, since that would be an option", () => {
    const folder = workspace();
    folder.put("--output=victim", "");
    expect(outside(folder.root, "sort *")).toContain("begins with -");
    expect(commands(folder.root, "cat ./*.txt")).toEqual(["cat ./a.txt ./b.txt"]);
  });

  test("with values of the child's environment, as one word each", () => {
    const { root } = workspace();
    expect(commands(root, 'cat "$FILE" $FILE', { FILE: "a.txt" })).toEqual(["cat a.txt a.txt"]);
    expect(commands(root, 'cat "$FILE"', { FILE: "a b" })).toEqual(["cat a b"]);
    expect(outside(root, "cat $FILE")).toContain("known only when the line runs");
    expect(lineIn(root, "cat $FILE", { FILE: "a b" })[0]).toMatchObject({ kind: "opaque" });
  });
});

describe("commands that run others are judged with what they run", () => {
  test.each([
    ["timeout 5 npm test", ["!timeout > npm test"]],
    ["nice -n 5 cat a.txt", ["nice > cat a.txt"]],
    ["env CI=1 npm test", ["!env > npm test"]],
    ["sh -c 'cat a.txt; touch x'", ["sh -c > cat a.txt", "!sh -c > touch x"]],
    ["find . -name '*.ts' | xargs wc -l", expect.arrayContaining(["xargs > wc -l {…}"])],
    ["find src -type f | grep -v b | xargs -I{} head -1 {}", expect.arrayContaining(["xargs > head -1 {…}"])],
    ["ls | xargs sort", ["ls", "!xargs > sort {…}"]],
    ["cat a.txt | xargs rm", ["cat a.txt", "!xargs > rm {…}"]],
    ["find . | sed s/a/b/ | xargs cat", expect.arrayContaining(["!xargs > cat {…}"])],
    ["find . -exec rm {} +", ["!find . -exec rm {} +"]],
    ["npm test 2>&1 | tail -50", ["!npm test", "tail -50"]],
  ])("%s", (line, expected) => {
    expect(commands(workspace().root, line)).toEqual(expected);
  });
});

describe("what xargs is fed is known only where a search feeds it, and nothing else", () => {
  test.each([
    "echo \"x'; id > PWN #\" | xargs -d '\\n' -I {} sh -c 'echo {}'",
    "find . | xargs -I {} sh -c 'echo {}'",
    "find . | xargs -I% find % -type f -exec cat '{}' +",
    "find . | xargs sh -c 'cat a.txt'",
    "find . | sort < list.txt | xargs sort",
    "find . | xargs cat < list.txt",
    "find . |& xargs cat",
    "find . | grep '^/etc' -rh | xargs cat",
    "find . | grep /etc/hostname -o | xargs cat",
    "find . | grep -c x | xargs cat",
  ])("%s", (line) => {
    const subjects = lineIn(workspace().root, line);
    expect(subjects.some((one) => one.kind === "opaque" || (one.kind === "command" && !one.readOnly))).toBe(true);
  });

  test("also where errors go nowhere", () => {
    expect(commands(workspace().root, "find . -name '*.ts' 2>/dev/null | xargs wc -l")).toContain("xargs > wc -l {…}");
  });
});

test("a search that runs readers stays off links whatever stands in front of them", () => {
  const line = printedLine(lineIn(workspace().root, "find . ! -exec cat {} ';'"));
  expect(line).toMatch(/'!' '\(' '!' '-type' 'l' .*'-exec' .* ';' '\)'$/);
});

test("names that hold what stands for something else are not shown by a glob", () => {
  const folder = workspace();
  folder.put("d\u0002/x", "");
  expect(outside(folder.root, "cat d*/x")).toContain("not plain text");
});

test("a shell without the keyword `time` is not given it", () => {
  const { root } = workspace();
  expect(outside(root, "sh -c 'time cat a.txt'")).toContain("time");
  expect(commands(root, "bash -c 'time cat a.txt'")).toEqual(["bash -c > cat a.txt"]);
});

describe("a program", () => {
  test("of the workspace is never the one that is known, whatever PATH says", () => {
    const folder = workspace();
    chmodSync(folder.put("bin/cat", "#!/bin/sh\ntouch PWN\n"), 0o755);
    chmodSync(folder.put("bin/own", "#!/bin/sh\n"), 0o755);
    const PATH = `${folder.path("bin")}:/usr/bin:/bin`;
    expect(printedLine(lineIn(folder.root, "cat a.txt", { PATH }))).toMatch(/^'\/(?:usr\/)?bin\/cat'/);
    expect(commands(folder.root, "./bin/cat a.txt", { PATH })).toEqual(["!./bin/cat a.txt"]);
    expect(commands(folder.root, "cd sub && ../bin/cat x", { PATH })).toEqual(["!./bin/cat x"]);
    expect(commands(folder.root, "own", { PATH })).toEqual(["!own"]);
  });

  test("that is not there is said to be missing", () => {
    expect(lineIn(workspace().root, "nosuchprogram x")[0]).toMatchObject({
      readOnly: false,
      why: "no such program is on PATH",
    });
  });
});

test("a cd through a link is outside, since bash climbs back by the link's name", () => {
  const folder = workspace();
  symlinkSync("sub", folder.path("link"));
  expect(outside(folder.root, "cd link && ls ..")).toContain("through a link");
});
