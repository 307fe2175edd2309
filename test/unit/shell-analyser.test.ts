// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings are shell
import { describe, expect, test } from "vitest";
import { analyseShell, DYNAMIC_MARK } from "../../packages/stages/src/tools/shell/analyse.ts";
import { assignmentsOf, commandsOf, nestedOf, onlyReads, pathsOf, refusal } from "../support/shell.ts";

describe("every command in a line is found", () => {
  test.each<[string, ...string[]]>([
    ["aa b c", "aa b c"],
    ["aa; bb && cc || dd & ee", "aa", "bb", "cc", "dd", "ee"],
    ["aa | bb |& cc", "aa", "bb", "cc"],
    ["aa\nbb\n\n# cc\ndd", "aa", "bb", "dd"],
    ["(aa; (bb))", "aa", "bb"],
    ["{ aa; bb; }", "aa", "bb"],
    ["! aa", "aa"],
    ["time -p aa", "aa"],
    ["if aa; then bb; elif cc; then dd; else ee; fi", "aa", "bb", "cc", "dd", "ee"],
    ["for f in a b; do aa; done", "aa"],
    ["for f do aa; done", "aa"],
    ["for ((;;)); do aa; done", "<for_((…))>", "aa"],
    ["while aa; do bb; done", "aa", "bb"],
    ["until aa; do bb; done", "aa", "bb"],
    ["case a in (b|c) aa;; *) bb;& d) cc; esac", "aa", "bb", "cc"],
    ["select f in a; do aa; done", "aa"],
    ["f() { aa; }; f x", "aa", "<f> x"],
    ["function f { aa; }", "aa"],
    ["f() for i in a; do aa; done", "aa"],
    ["aa > f $(bb)", "bb", "aa <$(bb)>"],
    ['aa "x $(bb "$(cc)")"', "cc", "bb <$(cc)>", 'aa <x_$(bb_"$(cc)")>'],
    ["aa `bb`", "bb", "aa <`bb`>"],
    ["$(aa)", "aa", "<$(aa)>"],
    ["aa <(bb) >(cc)", "bb", "cc", "aa <<(bb)> <>(cc)>"],
    ["x=$(aa) y=`bb`", "aa", "bb"],
    ["x=(a $(aa) [2]=$(bb))", "aa", "bb"],
    ["x=$(aa) bb", "aa", "bb"],
    ["aa > $(bb)", "bb", "aa"],
    ["aa < <(bb)", "bb", "aa"],
    ['aa <<< "$(bb)"', "bb", "aa"],
    ["aa <<E\n$(bb) `cc` ${x:-$(dd)}\nE", "bb", "cc", "dd", "aa"],
    ["aa <<'E'\n$(bb)\nE", "aa"],
    ["aa <<-\\E\n\t$(bb)\n\tE\ncc", "aa", "cc"],
    ["aa <<E; bb\n$(cc)\nE\ndd", "cc", "aa", "bb", "dd"],
    ["aa ${x:-$(bb)}", "bb", "aa <${x:-$(bb)}>"],
    ["aa \"${x:-'$(bb)'}\"", "bb", "aa <${x:-'$(bb)'}>"],
    ["aa ${x#$(bb)} ${y/a/$(cc)}", "bb", "cc", "aa <${x#$(bb)}> <${y/a/$(cc)}>"],
    ["[[ -n $(aa) && ! x == $(bb) ]]", "aa", "bb"],
    ["[[ $(aa) ]] || [[ (-f $(bb)) ]]", "aa", "bb"],
    ["for ((i = $(aa); 1; 1)); do bb; done", "<for_((…))>", "aa", "bb"],
    ["case $(aa) in $(bb)) ;; esac", "aa", "bb"],
    ["aa {b,$(cc)}", "cc", "aa <{b,$(cc)}>"],
    ["aa $(cat <<'E'\n) ' \"\nE\n)", "cat", "aa <$(cat_<<'E'_)_'_\"_E_)>"],
    ["aa $(bb # it's )\n)", "bb", "aa <$(bb_#_it's_)_)>"],
    ["aa $(case x in a) bb;; esac)", "bb", "aa <$(case_x_in_a)_bb;;_esac)>"],
    ["> f", ...[]],
    ["x=1", ...[]],
  ])("%j", (line, ...commands) => {
    expect(commandsOf(line)).toEqual(commands);
  });
});

describe("words are what bash makes of them", () => {
  test.each([
    ["'aa' \"bb\" c\\c d'd'\"d\"", "aa bb cc ddd"],
    ['a\\\\b \'a\\b\' "a\\b" "a\\\\b"', "a\\b a\\b a\\b a\\b"],
    ["aa '' \"\"", "aa '' ''"],
    ["aa \"a'b\" 'a\"b'", "aa a'b a\"b"],
    ['aa "\\$x \\`b\\` \\""', 'aa $x_`b`_"'],
    ["aa \\$x \\* \\~ '$x' '*'", "aa $x * ~ $x *"],
    ["aa $'b\\'c\\n'", "aa b'c_"],
    ["aa a#b #c", "aa a#b"],
    ["aa {b} {} HEAD@{1} @{u}", "aa {b} {} HEAD@{1} @{u}"],
    ["aa HEAD~2 a~ x=y", "aa HEAD~2 a~ x=y"],
    ["aa \\\n  b", "aa b"],
    ["aa\tb", "aa b"],
    ["'if' aa", "if aa"],
    ["aa if then fi", "aa if then fi"],
    ["aa é 日本", "aa é 日本"],
    ["aa a=$'\\x41'", "aa <a=$'\\x41'>"],
    ["aa $x ${x} $1 $@ $?", "aa <$x> <${x}> <$1> <$@> <$?>"],
    ["aa *.ts a?b [ab]c", "aa <*.ts> <a?b> <[ab]c>"],
    ["aa ~ ~/b ~root a=~/b", "aa <~> <~/b> <~root> <a=~/b>"],
    ["aa {b,c} a{1..3}", "aa <{b,c}> <a{1..3}>"],
    ["aa $((1 + 2))", "aa <$((1_+_2))>"],
    ["$x aa", "<$x> aa"],
    ['"$x" aa', "<$x> aa"],
    ["{rm,a}", "<{rm,a}>"],
    ["r* a", "<r*> a"],
    ["$'\\x72m' a", "<$'\\x72m'> a"],
    ["export A=$x", "export <A=$x>"],
  ])("%j", (line, command) => {
    expect(commandsOf(line)).toEqual([command]);
  });

  test("a dynamic word equals no literal word", () => {
    const found = analyseShell("npm $x");
    expect(found.ok && found.commands[0]?.argv).toEqual(["npm", `${DYNAMIC_MARK}$x`]);
    expect(refusal(`npm '${DYNAMIC_MARK}$x'`)).toBe("unsupported");
  });
});

describe("what bash evaluates at run time is a command nobody knows", () => {
  test.each([
    "aa $((x + 1))",
    "aa $(($(bb)))",
    "((x = 1))",
    "aa $[x]",
    "[[ $x -gt 1 ]]",
    "[[ -v a[$x] ]]",
    "aa ${!x}",
    "aa ${x@P}",
    "aa ${a[$x]}",
    "aa ${x:$y:1}",
    "a[$x]=1",
    "a=([$x]=1)",
    "let x=y",
    "read 'a[$(bb)]'",
    "printf -v 'a[$(bb)]' x",
    "declare -i x=y",
    "declare -n x=y",
    "unset $x",
    "eval $x",
    'sh -c "$x"',
    "trap $x EXIT",
    "mapfile -C bb a",
    "xargs sh -c 'aa {}' -I{}; find . -exec sh -c $x \\;",
    "sh -c 'aa $(('",
    "zsh -c 'aa'",
    "sh -c 'aa <<< b'",
    "bash -i -c aa",
    "bash -O extglob -c aa",
    "watch $x",
    "parallel aa ::: b",
    "env -S 'aa b'",
    "timeout $x aa",
    "sed 's/a/b/e' f",
    "sed '1e aa' f",
    "sed 'w out' f",
    "awk 'BEGIN { system(\"aa\") }'",
    "awk -f prog f",
    "git $x",
    'aa $"b"',
    "RANDOM=x",
    "for OPTIND in $x; do y=1; done",
  ])("%j", (line) => {
    const found = analyseShell(line);
    expect(found.ok && found.commands.some((command) => command.dynamic[0] === true && !command.readOnly)).toBe(true);
  });

  test("but numbers are only numbers", () => {
    expect(commandsOf("aa $((1 + 0x1f)) $(($# - 1)) ${x:1:2} ${a[0]} ${a[@]}")).toHaveLength(1);
    expect(commandsOf("[[ $? -eq 0 && $# -gt 1 ]] && aa")).toEqual(["aa"]);
  });
});

describe("lines that cannot be read with certainty are refused", () => {
  test.each([
    ["aa 'b", "syntax"],
    ["aa )", "syntax"],
    ["if aa", "syntax"],
    ["aa $(bb", "syntax"],
    ["aa <<E\nb", "unsupported"],
    ["aa\0b", "nul_byte"],
    [`aa ${"b".repeat(17_000)}`, "too_long"],
    [`aa '${"é".repeat(9_000)}'`, "too_long"],
    ["aa;".repeat(300), "too_complex"],
    [`${"aa $(".repeat(20)}b${")".repeat(20)}`, "too_complex"],
    ["aa\r\nbb", "unsupported"],
    ["aa\u00a0b", "unsupported"],
    ["aa\u200bb", "unsupported"],
    ["aa '\u202eb'", "unsupported"],
    ["aa \u3000b", "unsupported"],
    ["aa \ud800", "unsupported"],
    ["aa \u001b[31m", "unsupported"],
    ["-c aa", "unsupported"],
    ["aa @(b|c)", "unsupported"],
    ["$((aa); bb)", "unsupported"],
    ["((aa); bb)", "unsupported"],
    ["${ aa; }", "unsupported"],
    ["aa `bb \\`cc\\``", "unsupported"],
    ["coproc aa", "unsupported"],
    ["aa b<(cc)", "unsupported"],
    ["x=<(aa) bb", "unsupported"],
    ["aa >&-b", "unsupported"],
    ["aa >&'f'", "unsupported"],
    ["aa 2\\\n>&1", "unsupported"],
    ["ca\\\nt f", "unsupported"],
    ["cat <<E\n${x:-'$(aa)'}\nE", "unsupported"],
    ["aa ${x:-<(bb)}", "unsupported"],
    ["aa ${x:-{b}", "unsupported"],
    ["shopt -s expand_aliases\nalias aa=bb\naa", "unsupported"],
    ["shopt -s extglob", "unsupported"],
    ["shopt -s $x", "unsupported"],
    ["set -o posix", "unsupported"],
    ["set -k", "unsupported"],
    ["set -H", "unsupported"],
    ["builtin shopt -s extglob", "unsupported"],
  ])("%j", (line, code) => {
    expect(refusal(line)).toBe(code);
  });

  test("a line at the limits is still read", () => {
    expect(refusal("aa;".repeat(256))).toBe("ok");
    expect(refusal(`aa ${"b".repeat(16 * 1024 - 3)}`)).toBe("ok");
  });
});

describe("names that mean something else are never harmless", () => {
  test.each([
    "ls() { rm x; }; ls",
    "function cat { rm x; }; cat f",
    "alias ls=rm; ls",
    "alias 'ls=rm x;'; ls",
    "hash -p ./evil ls; ls",
    "enable -n echo; echo a",
    "enable -f ./evil.so ls; ls",
    ". ./defs; ls",
    "source ./defs; ls",
    'eval "$x"; ls',
    "$x; ls",
    "PATH=. ls",
    "PATH=.; ls",
    "export PATH=.; ls",
    "declare -x PATH=.; ls",
    "readonly PATH=.; ls",
    "for PATH in .; do ls; done",
    "select LD_PRELOAD in a; do ls; done",
    ": ${PATH:=.}; ls",
    ": ${GIT_PAGER=x}; git log",
    "exec {PATH}>f; ls",
    "IFS=/; ls",
    "LD_PRELOAD=./x.so ls",
    "GIT_EXTERNAL_DIFF=./x git diff",
    "npm_config_x=1; node --version",
    "https_proxy=x; ls",
    "env PATH=. ls",
    "env -i ls",
    "env -u HOME ls",
    "export $x; ls",
    "./ls",
    "/bin/ls",
    "LS",
    "ｌs",
    "lѕ",
    "'l s'",
    "'' ls",
    "trap 'rm x' EXIT",
  ])("%j", (line) => {
    expect(onlyReads(line)).toBe(false);
  });

  test("a called function's name is no literal word, and its body is reported", () => {
    expect(commandsOf("npm() { rm x; }; npm test")).toEqual(["rm x", "<npm> test"]);
    expect(commandsOf("alias npm='rm x'\nnpm test")).toEqual(["alias npm=rm_x", "rm x", "<npm> test"]);
  });

  test("a line's own variables change nothing", () => {
    expect(onlyReads("x=1; file=$(ls); echo $x; for f in a b; do echo $f; done")).toBe(true);
  });
});

describe("changes of the environment are told with each command they reach", () => {
  test.each<[string, string, readonly string[]]>([
    ["NODE_OPTIONS=x npm test", "npm test", ["NODE_OPTIONS"]],
    ["A=1 B=2 npm test", "npm test", ["A", "B"]],
    ["A+=1 npm test", "npm test", ["A"]],
    ["env A=1 npm test", "npm test", ["A"]],
    ["env -u A npm test", "npm test", ["A"]],
    ["env -i npm test", "npm test", ["*"]],
    ["exec -c npm test", "npm test", ["*"]],
    ["sudo A=1 npm test", "npm test", ["A"]],
    ["A=1 timeout 5 npm test", "npm test", ["A"]],
    ["A=1 sh -c 'npm test'", "npm test", ["A"]],
    ["A=1 eval npm test", "npm test", ["A"]],
    ["A=1; npm test", "npm test", ["A"]],
    ["export a=1; npm test", "npm test", ["a"]],
    ["read A; npm test", "npm test", ["A"]],
    ["printf -v A x; npm test", "npm test", ["A"]],
    ["unset A; npm test", "npm test", ["A"]],
    ["printf A; npm test", "npm test", []],
    ["export $a; npm test", "npm test", ["*"]],
    ["f() { npm test; }; A=1 f", "npm test", ["A"]],
    ["a=1; npm test", "npm test", []],
  ])("%j", (line, command, names) => {
    expect(assignmentsOf(line)[command]).toEqual(names);
  });
});

describe("paths of redirections", () => {
  test.each<[string, ...string[]]>([
    ["aa > f", "write f"],
    ["aa >> f 2> g", "write f", "write g"],
    ["aa &> f", "write f"],
    ["aa &>> f", "write f"],
    ["aa >| f", "write f"],
    ["aa <> f", "write f"],
    ["aa >& f", "write f"],
    ["> f", "write f"],
    ["> f aa", "write f"],
    ["{ aa; } > f", "write f"],
    ["if aa; then bb; fi < f", "read f"],
    ["f() { aa; } > g", "write g"],
    ["aa < f", "read f"],
    ['echo "$(< f)"', "read f"],
    ["exec 3<> /dev/tcp/host/80", "write /dev/tcp/host/80"],
    ["aa {fd}> f", "write f"],
    ["aa > \"a b\" 2> 'c'\\ d", "write a b", "write c d"],
    ["aa > $x", "write? $x"],
    ['aa > "$x/f"', "write? $x/f"],
    ["aa > ~/f", "write? ~/f"],
    ["aa > /dev/sda", "write /dev/sda"],
    ["aa 2>&1 >&2 3>&- < /dev/null > /dev/null 2> /dev/stderr", ...[]],
    ["aa <<< f", ...[]],
    ["aa > >(bb) < <(cc)", ...[]],
    ["aa <<E\n> f\nE", ...[]],
    ["aa '> f' \\> f", ...[]],
    ["$(aa > f)", "write f"],
    ["sh -c 'aa > f'", "write f"],
  ])("%j", (line, ...paths) => {
    expect(pathsOf(line)).toEqual(paths);
  });
});

describe("paths after cd are told from where the line starts", () => {
  test.each<[string, ...string[]]>([
    ["cd src && cat a", "read src", "read src/a"],
    ["cd src; cat a", "read src", "read a", "read src/a"],
    ["cd src || cat a", "read src", "read a"],
    ["cd a && cd b && cat c", "read a", "read a/b", "read a/b/c"],
    ["cd src && cat /etc/x", "read src", "read /etc/x"],
    ["cd src && aa > f", "read src", "write src/f"],
    ["cd src > f", "write f", "read src"],
    ["(cd src && cat a); cat b", "read src", "read src/a", "read b"],
    ["x=$(cd src && cat a); cat b", "read src", "read src/a", "read b"],
    ["cd src & cat b", "read src", "read b"],
    ["! cd src || cat a", "read src", "read src/a"],
    ["if cd src; then cat a; else cat b; fi", "read src", "read src/a", "read b"],
    ["command cd src && cat a", "read src", "read src/a"],
    ["cd src && cat *.ts", "read src", "read? src/*.ts in src"],
    ["cd .. && cat a", "read ..", "read ../a"],
    ["cd /ws/src && cat a", "read /ws/src", "read /ws/src/a"],
    ["cd /ws/ && cat a", "read a"],
    ["cd src && cat ../a", "read src", "read? src/../a"],
    ["cd src/.. && cat a", "read? src/..", "read? a"],
    ["cd src && cd .. && cat a", "read src", "read? src/..", "read? a"],
    ["cd && cat a", "read? ~", "read? a"],
    ["cd - && cat a", "read? -", "read? a"],
    ["cd $x && cat a /b", "read? $x", "read? a", "read /b"],
    ["cd -P src && cat a", "read? -P", "read? a"],
    ["pushd src; cat a", "read? a", "read a"],
    ["eval 'cd src'; cat a", "read src", "read? a", "read a"],
    ["while aa; do cd src; cat a; done", "read? src", "read? a"],
    ["f() { cat a; }; cd src; f", "read? src", "read? a"],
    ["sh -c 'cd src'; cat a", "read src", "read a"],
    ["env -C src cat a", "read src", "read? a"],
  ])("%j", (line, ...paths) => {
    expect(pathsOf(line, { root: "/ws" }).toSorted()).toEqual(paths.toSorted());
  });

  test("cd itself only reads when it is known where it leads", () => {
    expect(onlyReads("cd src && ls")).toBe(true);
    expect(onlyReads("cd /ws && git status", { root: "/ws" })).toBe(true);
    expect(onlyReads("cd src && git status", { root: "/ws" })).toBe(false);
    expect(onlyReads("cd && ls")).toBe(false);
    expect(onlyReads("cd $x")).toBe(false);
    expect(onlyReads("CDPATH=/ cd etc")).toBe(false);
  });
});

test("what a command was found inside is told outermost first", () => {
  expect(nestedOf("aa $(xargs env sh -c 'bb | cc')")).toEqual([
    "$() > xargs env sh -c bb_|_cc",
    "$() > xargs > env sh -c bb_|_cc <{…}>",
    "$() > xargs > env > sh -c bb_|_cc <{…}>",
    "$() > xargs > env > sh -c > bb",
    "$() > xargs > env > sh -c > cc",
    "aa <$(xargs_env_sh_-c_'bb_|_cc')>",
  ]);
});
