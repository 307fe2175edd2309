// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings are shell
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { decide, type Verdict } from "../../packages/core/src/gate/decide.ts";
import { compileEnvelope } from "../../packages/core/src/gate/envelope.ts";

import { lineIn, printedLine } from "../support/lines.ts";
import { tempFolder } from "../support/tools.ts";

/** Each line tries to leave a file PWN, to read a file outside the workspace, or to read secret.txt where only src may be read. */
const ATTACKS: readonly string[] = [
  "awk 'BEGIN{ARGV[1]=\"../outside.txt\"; ARGC=2} {print}'",
  "awk '{print}' FS=x ../outside.txt",
  "awk 'BEGIN{while((getline l < \"../outside.txt\")>0) print l}'",
  "awk 'BEGIN{f=\"../outside.txt\"; while((getline l<f)>0) print l}'",
  "awk 'BEGIN{\"touch PWN\"|getline}'",
  'awk \'BEGIN{printf "x" > "PWN"}\'',
  "sed 'r../outside.txt' a.txt",
  "sed '$!N;r ../outside.txt' a.txt",
  "sed '1e touch PWN' a.txt",
  "sed 's/a/touch PWN/e' a.txt",
  "sed ':a;e touch PWN' a.txt",
  "sed -e 'a\\' -e '1e touch PWN' -e 'e touch PWN' a.txt",
  "sed 's/[/]/x/;s/a/touch PWN/e' a.txt",
  "sed 'seaetouch PWNee' a.txt",
  "sed 'bx;:x;e touch PWN' a.txt",
  "sed -s -ne1p -i a.txt",
  "sed 'F;z;e' a.txt",
  "cat sub/*/../../../outside.txt",
  "cat s*/../../outside.txt",
  "cat sub/{deep,../../outside.txt}",
  "cat {sub/..,..}/outside.txt",
  "cat s?b/../../outside.txt",
  "cat sub/.*/../outside.txt",
  "cat .?/outside.txt",
  "cat .[.]/outside.txt",
  "cat sub/d*/.[.]/.[.]/.[.]/outside.txt",
  "cat */.[.]/../outside.txt",
  "ls -d .*/outside.txt",
  "cat $'\\x2e\\x2e/outside.txt'",
  "cat ..\\/outside.txt",
  'cat "$PWD/../outside.txt"',
  "cat ~/outside.txt",
  "cat ~+/../outside.txt",
  "cd sub && cat ../../outside.txt",
  "cd sub; cd -; cat ../outside.txt",
  "cd sub/deep && cd ../.. && cat ../outside.txt",
  "cd -P sub && cat ../../outside.txt",
  "diff --from-file=../outside.txt a.txt",
  "diff a.txt -X ../outside.txt",
  "grep -f ../outside.txt a.txt",
  "grep -rf../outside.txt a.txt",
  'grep --reg "" ../outside.txt',
  "tail --byt 5 ../outside.txt",
  "sort --outp PWN a.txt",
  "sort -S1 --compress-program=touch a.txt",
  "uniq a.txt PWN",
  "find . -fprint PWN",
  "find . -ok touch PWN ';'",
  "find -files0-from ../outside.txt",
  "find . -D exec -exec touch PWN +",
  "tree -o PWN",
  "file -C -m a.txt",
  "echo x >| PWN",
  "echo x &> PWN",
  "echo x >& PWN",
  "exec {x}> PWN",
  "cat <> PWN",
  "x='$(touch PWN)'; echo ${x@P}",
  "x='a[$(touch PWN)]'; echo $((x))",
  "x='a[$(touch PWN)]'; [[ x -eq 0 ]]",
  "x='a[$(touch PWN)]'; [[ $x -eq 0 ]]",
  "x='a[$(touch PWN)]'; [[ -v $x ]]",
  "x='a[$(touch PWN)]'; test -v \"$x\"",
  "x='a[$(touch PWN)]'; echo ${!x}",
  "x='a[$(touch PWN)]'; echo ${a:x}",
  "x='a[$(touch PWN)]'; echo ${a[x]}",
  "x='a[$(touch PWN)]'; a[x]=1",
  "x='a[$(touch PWN)]'; a=([x]=1); ls",
  "x='a[$(touch PWN)]'; echo ${a[@]:x}",
  "x='a[$(touch PWN)]'; : $[x]",
  "declare -n r='a[$(touch PWN)]'; echo $r",
  "OPTIND='a[$(touch PWN)]'; getopts a b",
  "RANDOM='a[$(touch PWN)]'; ls",
  "SECONDS='a[$(touch PWN)]'; ls",
  "HISTCMD='a[$(touch PWN)]'; ls",
  "LINENO='a[$(touch PWN)]'; ls",
  "TMOUT='a[$(touch PWN)]'; ls",
  "BASHPID='x'; ls",
  "BASH_ARGV0='a[$(touch PWN)]'; ls",
  "printf -v 'a[$(touch PWN)]' x",
  "PATH=.; ls",
  "for PATH in .; do ls; done",
  "read PATH <<< .; ls",
  ": ${PATH:=.}; ls",
  "PS4='$(touch PWN)'; set -x; ls",
  "PS4='$(touch PWN)' ls",
  "ls() { touch PWN; }; ls",
  "command_not_found_handle() { touch PWN; }; nosuchcmd",
  "command touch PWN",
  "time touch PWN",
  "case $(touch PWN) in *) ;; esac",
  "case x in $(touch PWN)) ;; esac",
  "echo $[$(touch PWN)1]",
  "cat <(touch PWN)",
  "[[ a =~ $(touch PWN) ]]",
  "[[ a -ef ../outside.txt ]] && echo a",
  "xargs touch PWN < /dev/null",
  "xargs cat <<< ../outside.txt",
  "echo ../outside.txt | xargs -d '\\n' grep ''",
  "echo sub | xargs -I{} cat {}/../../outside.txt",
  "env -S 'touch PWN'",
  "git diff --no-index a.txt ../outside.txt",
  "git config --get-all --file ../outside.txt x",
  "git branch --list -D main",
  "git branch --list --edit-description",
  "git show --ext-diff",
  "git show --textconv",
  "git log --show-signature",
  "git log --format=%GG",
  "git log --pretty='%(trailers:key=a)'",
  "git cat-file --textconv HEAD:a",
  "git log -p",
  "git diff",
  "git rev-parse --git-dir",
  "git log ../outside.txt",
  "rg --pre=touch a",
  "rg '' ../outside.txt",
  "jq -n '\"\\(env)\"'",
  "jq -n '$ENV'",
  "jq -n 'input_filename'",
  "jq -Rn 'input' ../outside.txt",
  "jq -n '[limit(1;inputs)]' --rawfile x ../outside.txt",
  "jq -nr '@sh \"\\(env.HOME)\"'",
  "stat ../outside.txt",
  "echo ../*.txt",
  "printf '%s\\n' ../*",
  "[ -e ../outside.txt ]",
  "[[ a == ../* ]]",
  "[[ -e ../out* ]]",
  'for f in ../*; do echo "$f"; done',
  'a=(../*); echo "${a[@]}"',
  'echo "$(<../outside.txt)"',
  "read x < ../outside.txt; echo $x",
  "cat /dev/fd/3 3< ../outside.txt",
  "cat /proc/self/environ",
  'cat <<< "$(cat ../outside.txt)"',
  "echo x > /dev/tcp/127.0.0.1/9",
  "echo a#$(touch PWN)",
  "IFS=/; cat ..$IFSoutside.txt",
  "cat a.txt/../../outside.txt",
  "cat nope/../../outside.txt",
  "head -n 1 -- ../outside.txt",
  "tail -n+1 ../outside.txt",
  "shopt -s dotglob; cat *",
  "shopt -s nocaseglob; cat A*",
  "shopt -s globstar; cat **",
  "cat s*t.txt",
  "cat [s]ecret.txt",
  "cat ?ecret.txt",
  "grep -r INSIDE",
  "grep -r INSIDE .",
  "grep INSIDE *",
  "grep -h INSIDE -r --include=secret.txt src/..",
  "cat src/../secret.txt",
  "cat src/../s*.txt",
  "cat ./s*.txt",
  "head ./secre[t].txt",
  "git grep INSIDE",
  "git diff --no-index /dev/null secret.txt",
  "diff /dev/null secret.txt",
  "cat<secret.txt",
  "cat - <secret.txt",
  "sort < secret.txt",
  'while read l; do echo "$l"; done < secret.txt',
  'mapfile -t x < secret.txt; echo "${x[@]}"',
  'echo "$(<secret.txt)"',
  "printf '%s' \"$(<secret.txt)\"",
  "find . -name secret.txt -newer a.txt -printf '%p'",
  "find . -type f -printf '%h'",
  "tree",
  "ls -R",
  "du -a",
  "tail -n5 *",
  "awk 1 *",
  "sed -n p *",
  "jq -R . *",
  "wc -w s*",
  "od -c s*t*",
  "strings secret.txt",
  "xxd secret.txt",
  "less secret.txt",
  "more secret.txt",
  "tee < secret.txt",
  "paste secret.txt",
  "dd if=secret.txt",
  "cp secret.txt src/x",
  "ln secret.txt src/x",
  "test secret.txt -ef a.txt",
];

/** A workspace with a neighbour outside of it. */
function scene(): { readonly outer: string; readonly root: string } {
  const outer = tempFolder().root;
  const root = join(outer, "ws");
  mkdirSync(join(root, "sub", "deep"), { recursive: true });
  mkdirSync(join(root, "src"));
  writeFileSync(join(outer, "outside.txt"), "OUTSIDE-SECRET\n");
  writeFileSync(join(root, "a.txt"), "a\n");
  writeFileSync(join(root, "secret.txt"), "INSIDE-SECRET\n");
  writeFileSync(join(root, "src", "b.txt"), "b\n");
  return { outer, root };
}

function verdictOn(line: string, root: string, allowedTools: readonly string[]): Verdict["kind"] {
  const bound = { ok: true, subjects: lineIn(root, line) } as const;
  const tool = { effect: "write", builtin: true, bound } as const;
  const state = { workspace: { root }, mode: "ask", allow: compileEnvelope([]), tool } as const;
  return decide({ tool: "Bash" }, compileEnvelope(allowedTools), state).kind;
}

/** What bash does with a line that needs no grant: what runs is what was written from it. */
function effectOf(line: string, allowedTools: readonly string[]) {
  const { outer, root } = scene();
  if (verdictOn(line, root, allowedTools) !== "allow") return undefined;
  const env = { PATH: process.env.PATH ?? "/usr/bin:/bin", HOME: outer, PWD: root, GIT_OPTIONAL_LOCKS: "0" };
  const { stdout } = spawnSync(
    "/bin/bash",
    ["--noprofile", "--norc", "-c", printedLine(lineIn(root, line)) ?? "false"],
    {
      cwd: root,
      env,
      encoding: "utf8",
      timeout: 60_000,
    },
  );
  return { stdout, files: [...readdirSync(outer), ...readdirSync(root)].sort(), made: existsSync(join(root, "PWN")) };
}

const FILES = ["a.txt", "outside.txt", "secret.txt", "src", "sub", "ws"];

describe("a line that runs without a grant where nothing may be written", () => {
  test.each(ATTACKS)("neither writes nor reads outside the workspace: %s", (line) => {
    const effect = effectOf(line, ["Bash"]);
    if (effect === undefined) return;
    expect(effect.made).toBe(false);
    expect(effect.files).toEqual(FILES);
    expect(effect.stdout).not.toContain("OUTSIDE-SECRET");
  });

  test.each(ATTACKS)("shows no file that Read may not open: %s", (line) => {
    const effect = effectOf(line, ["Bash", "Read(src/**)"]);
    expect(effect?.stdout ?? "").not.toContain("INSIDE-SECRET");
  });

  test("most of these lines need a grant or are refused", () => {
    const { root } = scene();
    const free = ATTACKS.filter((line) => verdictOn(line, root, ["Bash", "Read(src/**)"]) === "allow");
    expect(free.length).toBeLessThan(ATTACKS.length / 10);
  });
});

describe("a run that tries to answer itself where every command is allowed", () => {
  test.each([
    "sluice answer r1 q approve",
    "sluice --store x answer r1 q approve",
    "CI=1 npx sluice answer r1 q approve",
    "npm exec sluice -- answer r1 q approve",
    "node_modules/.bin/sluice resume r1",
    "SLUICE cancel r1",
  ])("is refused with a reason, and nobody can grant it: %s", (line) => {
    expect(verdictOn(line, scene().root, ["Bash", "Edit", "Write"])).toBe("deny");
  });
});
