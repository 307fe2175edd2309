import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pathProducer } from "../../packages/stages/src/tools/bash/language/xargs.ts";
import { readCommand } from "../../packages/stages/src/tools/bash/readers/readers.ts";
import type { CommandPlace, Reading } from "../../packages/stages/src/tools/bash/readers/reading.ts";
import { missingProgram } from "../support/programs.ts";

// What a command may do by its words alone; the dangers are real ones: each is shown to happen with the real program.

/** Words apart by spaces, with single quotes; `¶` stands for a newline. */
function words(line: string): readonly string[] {
  const found = [...line.matchAll(/(?:'([^']*)'|[^\s'])+/g)].map(([word]) => word.replaceAll("'", ""));
  return found.map((word) => word.replaceAll("¶", "\n"));
}

interface Scene {
  readonly base: string;
  readonly root: string;
  readonly path: (name: string) => string;
  readonly put: (name: string, text: string) => void;
  readonly run: (argv: readonly string[], cwd?: string) => string;
  readonly judge: (argv: readonly string[], cwd?: string) => Reading | undefined;
}

const bases: string[] = [];

function emptyScene(): Scene {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "specs-")));
  bases.push(base);
  const root = join(base, "ws");
  mkdirSync(root);
  const path = (name: string): string => join(root, name);
  const put = (name: string, text: string): void => {
    mkdirSync(dirname(path(name)), { recursive: true });
    writeFileSync(path(name), text);
  };
  const env = {
    PATH: process.env.PATH,
    HOME: base,
    TOKEN: "SECRET",
    LC_ALL: "C.UTF-8",
    GIT_CONFIG_NOSYSTEM: "1",
    PAGER: "cat",
  };
  const run = ([program = "", ...args]: readonly string[], cwd = root): string => {
    const done = spawnSync(program, args, {
      cwd,
      env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      timeout: 60_000,
    });
    return `${done.stdout}${done.stderr}`;
  };
  const judge = (argv: readonly string[], cwd = root): Reading | undefined => {
    const place: CommandPlace = {
      cwd,
      workspace: { root, store: join(root, ".sluice/store") },
      inner: (inner) => readCommand(inner, place) ?? { kind: "unknown", why: `${inner[0]} is not on the list` },
    };
    return readCommand(argv, place);
  };
  return { base, root, path, put, run, judge };
}

function git(scene: Scene, ...lines: readonly string[]): void {
  for (const line of lines) {
    const env = { PATH: process.env.PATH, HOME: scene.base, GIT_CONFIG_NOSYSTEM: "1" };
    execFileSync("git", words(line), { cwd: scene.root, env, stdio: "ignore" });
  }
}

/** A repository with a store, links that lead out, and scripts that leave PWN. */
function template(): Scene {
  const here = emptyScene();
  git(here, "init -q -b main", "config user.name a", "config user.email a@b");
  here.put("a.txt", "apple\nbanana\n");
  here.put("b.txt", "apple\n");
  git(here, "add .", "commit -qm one");
  here.put("a.txt", "apple\nbanana\ncherry\n");
  git(here, "commit -qam two");
  here.put(".gitignore", "");
  writeFileSync(join(here.base, "outside.txt"), "SECRET\n");
  mkdirSync(join(here.base, "out"));
  writeFileSync(join(here.base, "out/secret.txt"), "SECRET\n");
  here.put(".sluice/store/journal.txt", "SECRET\n");
  here.put("evil.sh", "#!/bin/sh\ntouch PWN\ncat\n");
  chmodSync(here.path("evil.sh"), 0o755);
  here.put("folder/x.txt", "x\n");
  here.put("folder2/x.txt", "x\n");
  here.put("empty/x.txt", "x\n");
  symlinkSync("../outside.txt", here.path("link"));
  symlinkSync("../../out", here.path("folder/linked"));
  symlinkSync("../../outside.txt", here.path("folder/y.txt"));
  here.put("folder2/y.txt", "y\n");
  here.put("folder2/linked/secret.txt", "z\n");
  here.put("script.sed", "w PWN\n");
  here.put("prog.awk", 'BEGIN { system("touch PWN") }\n');
  here.put("rules", "0 string x y\n");
  here.put("hex", "00000000: 6162\n");
  here.put("options", "-f ../outside.txt\n");
  here.put("starts0", "../out\0");
  here.put("big.txt", Array.from({ length: 40_000 }, (_, at) => `${at}\n`).join(""));
  here.put("m.jq", "def x: env;\n");
  writeFileSync(join(here.base, "outside.json"), '"SECRET"\n');
  symlinkSync("../outside.json", here.path("m.json"));
  return here;
}

let made: Scene | undefined;

function scene(): Scene {
  made ??= template();
  const here = emptyScene();
  rmSync(here.base, { recursive: true });
  cpSync(made.base, here.base, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
  return here;
}

/** Every file with a hash of what is in it. */
function snapshot(folder: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath, entry.name);
    found.set(
      path,
      entry.isFile() ? createHash("sha1").update(readFileSync(path)).digest("hex") : entry.isDirectory() ? "" : "-",
    );
  }
  return found;
}

/** Whether a run changed a file anywhere or showed what is not to be shown. */
function effect(here: Scene, argv: readonly string[]): string | undefined {
  const before = snapshot(here.base);
  const output = here.run(argv);
  const after = snapshot(here.base);
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
    (path) => before.get(path) !== after.get(path),
  );
  if (changed.length > 0) return `changed ${changed.map((path) => path.slice(here.base.length)).join(" ")}`;
  return output.includes("SECRET") ? "showed SECRET" : undefined;
}

beforeAll(() => {
  expect(process.platform).not.toBe("win32");
});
afterAll(() => {
  for (const base of bases) rmSync(base, { recursive: true, force: true });
});

type Hostile = readonly [line: string, setup?: (here: Scene) => void];

const touched = (here: Scene): void => {
  const later = statSync(here.path("a.txt")).mtimeMs / 1_000 + 100;
  utimesSync(here.path("a.txt"), later, later);
};
const hooked = (here: Scene): void => {
  here.put(".git/hooks/post-index-change", "#!/bin/sh\ntouch PWN\n");
  chmodSync(here.path(".git/hooks/post-index-change"), 0o755);
  touched(here);
};
const configured =
  (...settings: readonly string[]) =>
  (here: Scene): void => {
    git(here, ...settings.map((setting) => `config ${setting}`));
    here.put(".gitattributes", "*.txt diff=evil filter=evil\n");
    here.put("a.txt", "changed\n");
  };

/** A folder with files that git keeps is a link now. */
const linkedAway = (here: Scene): void => {
  here.put("kept/deep/secret.txt", "x\n");
  git(here, "add kept", "commit -qm kept");
  rmSync(here.path("kept/deep"), { recursive: true });
  symlinkSync("../../out", here.path("kept/deep"));
};

/** A packed secret beside the workspace, to which a name leads that gzip tries. */
const packed = (here: Scene): void => {
  execFileSync("gzip", ["-k", join(here.base, "outside.txt")]);
  symlinkSync("../outside.txt.gz", here.path("z.gz"));
};

const HOSTILE: readonly Hostile[] = [
  ["gzip a.txt"],
  ["gzip -k a.txt"],
  ["gunzip -f a.txt.gz", (here) => void execFileSync("gzip", ["-k", here.path("a.txt")])],
  ["gzip -df a.txt.gz", (here) => void execFileSync("gzip", ["-k", here.path("a.txt")])],
  ["zcat z", packed],
  ["gunzip -c ./z", packed],
  ["sort -o PWN a.txt"],
  ["sort --output=PWN a.txt"],
  ["sort --outp=PWN a.txt"],
  ["sort a.txt -o PWN"],
  ["sort -uoPWN a.txt"],
  ["sort -S 16 --compress-program=./evil.sh big.txt"],
  ["sort --files0-from=../outside.txt"],
  ["wc --files0-from=../outside.txt"],
  ["du --files0-from=../outside.txt"],
  ["uniq a.txt PWN"],
  ["uniq -c -- a.txt PWN"],
  ["file -C -m rules"],
  ["file -f ../outside.txt"],
  ["strings @options"],
  ["strings -a @options"],
  ["xxd a.txt PWN"],
  ["xxd -r hex PWN"],
  ["xxd --revert hex PWN"],
  ["xxd -c 16 a.txt PWN"],
  ["sed -n 'w PWN' a.txt"],
  ["sed -n 'W PWN' a.txt"],
  ["sed 's/a/b/w PWN' a.txt"],
  ["sed 's/a/b/gw PWN' a.txt"],
  ["sed '1e touch PWN' a.txt"],
  ["sed 's/.*/touch PWN/e' a.txt"],
  ["sed '1s/.*/touch PWN/;1e' a.txt"],
  ["sed -f script.sed a.txt"],
  ["sed -n --file=script.sed a.txt"],
  ["sed -i s/a/b/ a.txt"],
  ["sed -Ei.PWN s/a/b/ a.txt"],
  ["sed --in-p s/a/b/ a.txt"],
  ["sed 'r ../outside.txt' a.txt"],
  ["sed 'R ../outside.txt' a.txt"],
  ["sed -e 'a\\' -e x -e 'w PWN' a.txt"],
  ["sed '1{p;w PWN¶}' a.txt"],
  ["sed 'y/abc/xyz/;w PWN' a.txt"],
  ["sed ':x;w PWN' a.txt"],
  ["awk 'BEGIN{system(\"touch PWN\")}'"],
  ['awk \'BEGIN{print "x" > "PWN"}\''],
  ['awk \'BEGIN{print "x" >> "PWN"}\''],
  ['awk \'BEGIN{printf("x") > "PWN"}\''],
  ["awk 'BEGIN{print 1,¶2 > \"PWN\"}'"],
  ['awk \'BEGIN{if (1) print "x" >"PWN"}\''],
  ["awk 'BEGIN{print (1)(2) > \"PWN\"}'"],
  ['awk \'BEGIN{print "touch PWN" | "sh"}\''],
  ["awk 'BEGIN{\"touch PWN\" | getline}'"],
  ["awk 'BEGIN{while ((getline line < \"../outside.txt\") > 0) print line}'"],
  ["awk 'BEGIN{print ENVIRON[\"TOKEN\"]}'"],
  ["awk 'BEGIN{ARGV[1]=\"../outside.txt\"} {print}' a.txt"],
  ["awk -f prog.awk a.txt"],
  ["awk 'function f() { system(\"touch PWN\") } BEGIN{f()}'"],
  ['awk \'BEGIN{x = 4 / 2; print "/" > "PWN"}\''],
  ["jq -n env"],
  ["jq -n '$ENV.TOKEN'"],
  ["jq -n '$ ENV'"],
  ["jq -n '\"\\(env)\"'"],
  ["jq -nf ../outside.txt"],
  ["jq -n --from-file ../outside.txt"],
  ['jq -n \'import "m" as $m {search:"./"}; $m\''],
  ['jq -n \'include"m"{search:"./"}; x\''],
  ["find . -name b.txt -delete"],
  ["find . -name b.txt -fprint PWN"],
  ["find . -name b.txt -fls PWN"],
  ["find . -name b.txt -fprintf PWN x"],
  ["find . -name b.txt -exec touch PWN ;"],
  ["find . -name b.txt -execdir touch PWN ;"],
  ["find . -name b.txt -exec sort -o PWN {} ;"],
  ["find . -name b.txt -exec uniq {} PWN ;"],
  ["find . -name '[ab].txt' -exec uniq {} +"],
  ["find -L folder -name secret.txt -exec cat {} ;"],
  ["find folder -follow -name secret.txt -exec cat {} +"],
  ["find -files0-from starts0 -name secret.txt -exec cat {} +"],
  ["find . -name link -exec cat {} ;"],
  ["find . -name 'l*k' -exec head -1 {} +"],
  ["find . -type f -exec grep -h SECRET {} +"],
  ["find . -path '*journal*' -exec cat {} ;"],
  ["find . -maxdepth 0 -exec grep -r SECRET {} +"],
  ["grep -r SECRET ."],
  ["grep -rh SECRET"],
  ["grep -R SECRET folder"],
  ["grep --dereference-recursive SECRET folder"],
  ["grep SECRET . -r"],
  ["grep -d recurse SECRET ."],
  ["grep --directories=recurse SECRET ."],
  ["rg -uuu SECRET"],
  ["rg -uuu SECRET .sluice"],
  ["find . -name '.s*' -exec rg -uuu SECRET {} +"],
  ["rg --hidden SECRET ."],
  ["rg -. -g '*' SECRET"],
  ["rg -. --iglob '.SLUICE' --iglob '*.txt' SECRET"],
  ["rg SECRET", (here) => here.put(".ignore", "!.sluice/\n")],
  ["rg -L SECRET folder"],
  ["rg --pre ./evil.sh x a.txt"],
  ["rg --pre=./evil.sh x a.txt"],
  ["rg x a.txt --pre ./evil.sh"],
  ["diff -r folder folder2"],
  ["diff folder folder2"],
  ["diff -rN . empty"],
  ["git -c core.fsmonitor=./evil.sh status"],
  ["git -c diff.external=./evil.sh diff HEAD~1"],
  ["git -c 'alias.x=!touch PWN' x"],
  ["git diff --output=PWN HEAD~1"],
  ["git log -1 --output=PWN"],
  ["git grep --open-files-in-pager=./evil.sh apple"],
  ["git grep -O./evil.sh apple"],
  ["git grep --no-index SECRET"],
  ["git grep --untracked SECRET"],
  ["git diff --no-index a.txt ../outside.txt"],
  ["git blame --contents ../outside.txt a.txt"],
  ["git branch PWN"],
  ["git branch -m PWN"],
  ["git branch --force PWN HEAD"],
  ["git tag PWN"],
  ["git stash", configured("x.y z")],
  ["git stash push", configured("x.y z")],
  ["git stash -- a.txt", configured("x.y z")],
  ["git config a.b c"],
  ["git config --local a.b c"],
  ["git config --global a.b c"],
  ["git symbolic-ref HEAD refs/heads/x"],
  ["git remote add x y"],
  ["git reflog expire --expire=now --all"],
  ["git reflog delete HEAD@{1}"],
  ["git archive --output=PWN HEAD"],
  ["git checkout HEAD~1 -- a.txt"],
  ["git worktree add PWN"],
  ["git describe --always --dirty", touched],
  ["git diff HEAD", touched],
  ["git diff", touched],
  ["git diff --stat", touched],
  ["git diff --compact-summary", touched],
  ["git diff", hooked],
  ["git diff --quiet HEAD", hooked],
  ["git status", touched],
  ["git status", hooked],
  ["git diff", configured("diff.evil.textconv ./evil.sh")],
  ["git diff", configured("diff.evil.command ./evil.sh")],
  ["git diff", configured("filter.evil.clean ./evil.sh")],
  ["git status", configured("filter.evil.clean ./evil.sh")],
  ["git diff", configured("diff.external ./evil.sh")],
  ["git status", configured("core.fsmonitor ./evil.sh")],
  ["git grep -h SECRET", linkedAway],
  ["git grep -h SECRET -- kept", linkedAway],
  [
    "git -C sub status",
    (here) => {
      configured("filter.evil.clean ./evil.sh")(here);
      mkdirSync(here.path("sub/.git"), { recursive: true });
    },
  ],
  ["git --git-dir=.git -c core.fsmonitor=./evil.sh status"],
];

describe("what has an effect when it runs as it was written", () => {
  for (const [line, setup] of HOSTILE) {
    test.skipIf(missingProgram(line) !== undefined)(line, () => {
      const argv = words(line);
      const bare = scene();
      setup?.(bare);
      expect(effect(bare, argv)).toBeDefined();
      const here = scene();
      setup?.(here);
      const reading = here.judge(argv);
      // Either it needs a grant, or what runs instead has no effect.
      if (reading?.kind === "reads") expect(effect(here, reading.argv)).toBeUndefined();
      else expect(reading?.why).not.toBe("");
    });
  }

  test.skipIf(missingProgram("rg") !== undefined)("ripgrep from a folder beside the store", () => {
    const here = scene();
    const reading = here.judge(words("rg -uuu SECRET .."), here.path("folder"));
    if (reading?.kind !== "reads") throw new Error(reading?.why);
    expect(here.run(words("rg -uuu SECRET .."), here.path("folder"))).toContain("SECRET");
    expect(here.run(reading.argv, here.path("folder"))).not.toContain("SECRET");
  });

  test("enough of them run in a form that has none", () => {
    const here = scene();
    const read = HOSTILE.filter(([line, setup]) => setup === undefined && here.judge(words(line))?.kind === "reads");
    expect(read.length).toBeGreaterThan(15);
  });
});

const READS: readonly (readonly [line: string, paths: string])[] = [
  ["cat a.txt b.txt", "a.txt b.txt"],
  ["less a.txt", "a.txt"],
  ["less -N -R -5 a.txt b.txt", "a.txt b.txt"],
  ["less", ""],
  ["more -", ""],
  ["gzip -dc z.gz", "z.gz"],
  ["gzip --list z.tgz", "z.tgz"],
  ["gzip -9c", ""],
  ["zcat -f z.gz", "z.gz"],
  ["gunzip -c z.gz", "z.gz"],
  ["join -t, -1 2 -a 1 a.txt b.txt", "a.txt b.txt"],
  ["expr 7 - 3", ""],
  ["expr a.txt : 'a\\(.*\\)'", ""],
  ["git whatchanged -1", ""],
  ["git whatchanged -p -1 -- a.txt", "a.txt"],
  ["cat -n a.txt -", "a.txt"],
  ["head -20 a.txt", "a.txt"],
  ["head -n -5 a.txt", "a.txt"],
  ["tail -n 50 a.txt", "a.txt"],
  ["tail -n +5 a.txt", "a.txt"],
  ["wc -l a.txt", "a.txt"],
  ["ls", "."],
  ["ls -la folder", "folder"],
  ["ls -R", "."],
  ["grep -n apple a.txt", "a.txt"],
  ["grep -rn --include=*.txt apple folder", "folder"],
  ["grep -rnE 'cherry|x$' .", "."],
  ["grep -e -x a.txt", "a.txt"],
  ["grep -c apple", ""],
  ["rg apple", "."],
  ["rg -n -g '*.txt' apple folder", "folder"],
  ["rg --files", "."],
  ["rg -e apple -A3 a.txt", "a.txt"],
  ["find . -name '*.txt' -not -path './node_modules/*'", "."],
  ["find folder folder2 -type f -newer a.txt -maxdepth 2", "folder folder2 a.txt"],
  ["find . -type f -exec wc -l {} +", "."],
  ["find . -name '*.txt' -exec grep -l apple {} ;", "."],
  ["find . -type f -printf '%s %p\\n'", "."],
  ["sed -n 1,20p a.txt", "a.txt"],
  ["sed -n -e 1p -e '$p' a.txt", "a.txt"],
  ["sed 's/a/b/g; /x/d' a.txt", "a.txt"],
  ["sed ':a;N;$!ba;s/\\n/ /g' a.txt", "a.txt"],
  ["sed -n '/a/,/b/{/c/p}' a.txt", "a.txt"],
  ["sed 's|[/]|-|' a.txt", "a.txt"],
  ["sed 's/[^/]*$//' a.txt", "a.txt"],
  ["sed 's/[^/]*$/x/;s/a/b/' a.txt", "a.txt"],
  ["sed 's/.*[/]//g' a.txt", "a.txt"],
  ["sed '1i head' a.txt", "a.txt"],
  ["sed '1!G;h;$!d' a.txt", "a.txt"],
  ["sed 10q a.txt", "a.txt"],
  ["awk '{print $1}' a.txt", "a.txt"],
  ["awk -F: '{print $1, $NF}' a.txt", "a.txt"],
  ["awk '{sum+=$1} END {print sum}' a.txt", "a.txt"],
  ["awk '{c[$1]++} END {for (k in c) print c[k], k}' a.txt", "a.txt"],
  ["awk '/apple/ && NR > 1 {print NR\": \"$0}' a.txt", "a.txt"],
  ["awk 'NR==FNR {seen[$1]=1; next} !($1 in seen)' a.txt b.txt", "a.txt b.txt"],
  ["awk -v n=3 'NR<=n {printf \"%s %d\\n\", $1, length($2) / 2}' a.txt", "a.txt"],
  ['awk \'{print ($1 > 3 ? "big" : "small")}\' a.txt', "a.txt"],
  ["awk '$3 > 100' a.txt", "a.txt"],
  ["awk '{s += $1} END {print s / NR}' a.txt", "a.txt"],
  ["awk 'length > 120' a.txt", "a.txt"],
  ["awk '{gsub(/\\/x/, \"y\"); print toupper($0)}' a.txt", "a.txt"],
  ["jq . a.json", "a.json"],
  ["jq -r .compilerOptions.include[] tsconfig.json", "tsconfig.json"],
  ["jq '.scripts | keys' package.json", "package.json"],
  ["jq -n --arg a b '$a'", ""],
  ["jq .NODE_ENV a.json", "a.json"],
  ["jq .env.ENV a.json", "a.json"],
  ["jq '.[\"env\"]' a.json", "a.json"],
  ['jq \'.exports["."]["import"]\' a.json', "a.json"],
  ["jq '{include, name}' a.json", "a.json"],
  ["jq '{name, env: .env, ENV}' a.json", "a.json"],
  ["jq '[.[] | {import: .a, b: {env}}]' a.json", "a.json"],
  ["jq '.a | if . == \"env\" then {env} else . end' a.json", "a.json"],
  ["jq -r '.scripts | to_entries[] | \"\\(.key)=\\(.value.env)\"' a.json", "a.json"],
  ['jq \'.a."ENV" // "a \\"env\\" \\\\(env)"\' a.json', "a.json"],
  ["jq --arg env x '.[$env]' a.json", "a.json"],
  ["jq '.a # the env\n| .b' a.json", "a.json"],
  ["jq '.a | @sh' a.json", "a.json"],
  ["jq 'to_entries | map(select(.value >= 1.5e3)) | .[-1:] | .[]?' a.json", "a.json"],
  ["jq --slurpfile x a.json . b.json", "a.json b.json"],
  ["sort -t: -k2,2n a.txt", "a.txt"],
  ["sort -u", ""],
  ["uniq -c a.txt", "a.txt"],
  ["cut -d - -f 1 a.txt", "a.txt"],
  ["tr a-z A-Z", ""],
  ["diff a.txt b.txt", "a.txt b.txt"],
  ["diff -u a.txt b.txt", "a.txt b.txt"],
  ["diff -rq folder folder2", "folder folder2"],
  ["stat -c %s a.txt", "a.txt"],
  ["file a.txt", "a.txt"],
  ["du -sh folder", "folder"],
  ["df -h", ""],
  ["date +%F", ""],
  ["date -u -r a.txt", "a.txt"],
  ["seq 1 10", ""],
  ["xxd -l 64 a.txt", "a.txt"],
  ["tree -L 2 -I node_modules folder", "folder"],
  ["tree --gitignore", "."],
  ["ls --help", ""],
  ["rg --help", ""],
  ["shuf -n 1 a.txt", "a.txt"],
  ["expand -t 4 a.txt", "a.txt"],
  ["unexpand -a a.txt", "a.txt"],
  ["which node", ""],
  ["node --version", ""],
  ["npm -v", ""],
  ["basename a/b .txt", ""],
  ["realpath a.txt", "a.txt"],
  ["git --version", ""],
  ["git status", ""],
  ["git status --short -- folder", "folder"],
  ["git log --oneline -5", ""],
  ["git log --since=1.week --author=a --format='%h %an %s'", ""],
  ["git log --stat main..HEAD", ""],
  ["git log -p", "@"],
  ["git log -p -- a.txt", "a.txt"],
  ["git log -p a.txt", "a.txt"],
  ["git log --follow --oneline a.txt", "a.txt"],
  ["git log -S apple", "@"],
  ["git log -L1,2:a.txt", "@ a.txt"],
  ["git show", "@"],
  ["git show HEAD~1", "@"],
  ["git show --stat HEAD", "@"],
  ["git show HEAD:b.txt", "@/b.txt"],
  ["git show main@{1}:./a.txt", "@/a.txt"],
  ["git diff", "@"],
  ["git diff --stat", ""],
  ["git diff --name-only main...HEAD", ""],
  ["git diff --cached a.txt b.txt", "a.txt b.txt"],
  ["git diff HEAD -- 'folder/*.txt'", "folder/"],
  ["git diff HEAD -- 'folder/*/../../b.txt'", "@/b.txt"],
  ["git diff HEAD -- . ':!b.txt'", "."],
  ["git diff -- ':!b.txt'", "@"],
  ["git diff HEAD:a.txt HEAD:b.txt", "@/a.txt @/b.txt"],
  ["git diff HEAD^ HEAD^{commit} -U5", "@"],
  ["git -C folder log -1", ""],
  ["git -C folder diff -- ../a.txt", "@/a.txt"],
  ["git --no-pager log", ""],
  ["git -c color.ui=never diff --stat", ""],
  ["git blame -L 1,3 a.txt", "a.txt"],
  ["git blame HEAD~1 -- a.txt", "a.txt"],
  ["git grep -n apple", "@"],
  ["git grep -n apple -- folder", "folder"],
  ["git grep apple HEAD~1 -- a.txt", "a.txt"],
  ["git ls-files '*.txt'", "."],
  ["git ls-tree -r --name-only HEAD", ""],
  ["git rev-parse --abbrev-ref HEAD", ""],
  ["git rev-parse --abbrev-ref @{u}", ""],
  ["git rev-list --count HEAD", ""],
  ["git merge-base main HEAD", ""],
  ["git cherry -v main", ""],
  ["git show-branch --list main HEAD", ""],
  ["git check-attr -a a.txt", "a.txt"],
  ["git describe --tags --always", ""],
  ["git branch", ""],
  ["git branch -vv", ""],
  ["git branch --list 'm*'", ""],
  ["git branch --merged", ""],
  ["git branch --show-current", ""],
  ["git tag -l 'v*'", ""],
  ["git tag --sort=-creatordate", ""],
  ["git remote -v", ""],
  ["git config user.name", ""],
  ["git config --get remote.origin.url", ""],
  ["git config --local --list", "@/.git/config"],
  ["git cat-file -t HEAD", ""],
  ["git cat-file -p HEAD:a.txt", "@/a.txt"],
  ["git shortlog -sn HEAD", ""],
  ["git reflog -5", ""],
  ["git stash list", ""],
  ["git stash show", ""],
  ["git stash show -p stash@{0}", "@"],
  ["git for-each-ref --format='%(refname:short) %(objectname)' refs/heads", ""],
  ["git show-ref --heads", ""],
  ["git check-ignore -v a.txt", "a.txt"],
  ["git worktree list", ""],
  ["git symbolic-ref --short HEAD", ""],
];

function opened(reading: Reading | undefined): readonly string[] {
  return reading?.kind === "reads" ? [...reading.trees, ...reading.paths] : [];
}

describe("what only reads, and which paths it opens", () => {
  let here: Scene;
  beforeAll(() => {
    here = scene();
    git(here, "tag v1");
  });
  test.each(READS)("%s", (line, paths) => {
    const reading = here.judge(words(line));
    expect(reading).toMatchObject({ kind: "reads" });
    const named = opened(reading).map((path) => path.replace(here.root, "@"));
    expect(named.join(" ")).toBe(paths);
    if (reading?.kind === "reads" && !/^(?:npm|tree|node)$/.test(reading.argv[0] ?? "") && !line.includes("@{u}")) {
      const wrong = /unknown option|unrecognized|invalid option|usage:|ambiguous argument|not a valid|fatal: bad/i;
      if (!/stash show|jq|--help/.test(line)) expect(here.run(reading.argv)).not.toMatch(wrong);
    }
  });
});

describe("which paths are opened with all below them", () => {
  let here: Scene;
  beforeAll(() => {
    here = scene();
  });
  test.each([
    ["grep -r x folder a.txt", "folder a.txt"],
    ["grep -R x folder", "folder"],
    ["grep -d recurse x folder", "folder"],
    ["grep -rf a.txt folder", "folder"],
    ["grep x folder", ""],
    ["rg x folder", "folder"],
    ["rg --files", "."],
    ["find folder -newer a.txt", "folder"],
    ["find folder -exec grep -r x {} folder2 ;", "folder folder2"],
    ["diff -r folder folder2", "folder folder2"],
    ["diff folder a.txt", "folder a.txt"],
    ["ls folder", ""],
    ["ls -R folder", "folder"],
    ["ls --recursive", "."],
    ["du -s folder", "folder"],
    ["tree -L 2 folder", "folder"],
    ["cat a.txt folder/x.txt", ""],
    ["stat folder", ""],
    ["git log -p -- folder", "folder"],
    ["git log -- folder", ""],
    ["git log --stat -- folder", ""],
    ["git show HEAD -- folder", "folder"],
    ["git show HEAD:folder", ""],
    ["git diff -- folder a.txt", "folder a.txt"],
    ["git diff -- 'folder*'", "."],
    ["git diff", "@"],
    ["git diff --stat -- folder", ""],
    ["git diff --numstat", ""],
    ["git diff --numstat -I ^a", "@"],
    ["git diff --numstat --ignore-matching-lines=^a -- folder", "folder"],
    ["git log --numstat -I ^a", "@"],
    ["git log --name-only -S a", "@"],
    ["git stash show --numstat -I ^a", "@"],
    ["git diff HEAD:folder HEAD:folder2", "@/folder @/folder2"],
    ["git grep x -- folder", "folder"],
    ["git grep x HEAD:folder", "@/folder"],
    ["git blame a.txt", ""],
    ["git ls-files folder", ""],
    ["git stash show -p", "@"],
  ])("%s: %s", (line, trees) => {
    const reading = here.judge(words(line));
    const given = reading?.kind === "reads" ? reading.trees : [`not known to read: ${reading?.why}`];
    expect(given.map((path) => path.replace(here.root, "@")).join(" ")).toBe(trees);
  });
});

const UNKNOWN: readonly string[] = [
  "constructor",
  "toString a",
  "less -o PWN a.txt",
  "less -NoPWN a.txt",
  "less -- a.txt",
  "less '+!touch PWN' a.txt",
  "less -t tag",
  "less --log-file=PWN a.txt",
  "more +/x a.txt",
  "gzip -rc folder",
  "gzip -dc a.txt",
  "gzip -S .x -dc a.x",
  "gunzip z.gz",
  "zcat a",
  "expr --x",
  "join --x a.txt b.txt",
  "git whatchanged --output=PWN",
  "git whatchanged --ext-diff",
  "tar tf z.tar",
  "unzip -l z.zip",
  "git submodule status",
  "tail -f a.txt",
  "tail --follow a.txt",
  "tail +5f a.txt",
  "tail -5f a.txt",
  "date -s 10:00",
  "date 01010101",
  "date --set=x",
  "hostname x",
  "hostname -f",
  "seq 99999999",
  "seq 1 0.0000001 9",
  "seq -f %999999f 3",
  "tree -o PWN",
  "tree -aRo PWN",
  "tree -Po x PWN",
  "tree -l",
  "du -L folder",
  "rg -z x",
  "rg --search-zip x",
  "rg -g --pre=./evil.sh x",
  "ls --constructor",
  "sort --__proto__",
  "sort --help a.txt",
  "jq",
  "jq -L . .a",
  "jq '. as $x | input_filename'",
  "jq -n '$__prog_args'",
  "jq -n modulemeta",
  "find . -ok rm {} ;",
  "find . -exec {} ;",
  "find . -exec cat x{} ;",
  "find . -exec cat {} {} +",
  "find . -exec cat {}",
  "find . -constructor",
  "find -H link",
  "find . -printf '%9999999p'",
  "find . -exec awk {} ;",
  "sed --expression p -e p a.txt",
  "sed",
  "sed -s -n '$p' -i a.txt",
  "sed 's/[/]/g;s:w PWN:x:' a.txt",
  "sed '/[/]/p;s:w PWN:x:' a.txt",
  "sed 's/[^/]*$/w PWN/' a.txt",
  "sed 's/[/]x/e/' a.txt",
  "sed 's/[/]a/;w PWN/' a.txt",
  "sed 's/[/]a/ w PWN/' a.txt",
  "sed 's/[/]a/}w PWN/' a.txt",
  "sed 's/[/]//w PWN/' a.txt",
  "sed 's/[]/]*$//' a.txt",
  "sed 's/[[:alpha:]/]*$//' a.txt",
  "sed 'y/[/]/abc/' a.txt",
  "shuf -o PWN a.txt",
  "shuf -r a.txt",
  "shuf a.txt b.txt",
  "shuf -e a",
  "expand -t 99999999 a.txt",
  "git check-attr diff a.txt",
  "git check-attr --stdin -a",
  "git show-branch -g",
  "git diff-tree -p HEAD~1 HEAD",
  "git diff-tree --name-only -r HEAD",
  "git range-diff HEAD~1 HEAD HEAD",
  "less --help",
  "git --help",
  "sed 'ba#x w PWN' a.txt",
  "sed '{p' a.txt",
  "sed 'v' a.txt",
  "awk",
  "awk '{print}' x=1 a.txt",
  "awk '{print}' -f prog.awk",
  'awk \'{print "a" > "/dev/stderr"}\' a.txt',
  'awk \'BEGIN{for (print "x" > "PWN"; 0;) ;}\'',
  "awk 'if (x) /a\"/ {y} /\"b/' a.txt",
  "awk -v ENVIRON=1 '{print}'",
  "awk --file=prog.awk",
  "awk '@include \"x\"'",
  "awk '{print |& \"sh\"}'",
  "awk '/[/]/ {print}' a.txt",
  "node a.js",
  "npm test",
  "tsc --noEmit",
  "python3 -c x",
  "git",
  "git constructor",
  "git commit",
  "git -C .. log",
  "git -C link log",
  "git -C .git log",
  "git --git-dir=x log",
  "git --work-tree=/ status",
  "git -p log",
  "git -c core.pager=./evil.sh log",
  "git log --format=%G?",
  "git log --pretty=%+GG",
  "git log '--format=%(trailers)'",
  "git log --show-signature",
  "git log --remerge-diff",
  "git log --diff-merges=remerge",
  "git log --diff-merges r",
  "git log --ext-diff -p",
  "git log --textconv -p",
  "git log --full-diff -p -- a.txt",
  "git log --stdin",
  "git log HEAD:a.txt",
  "git show :/two",
  "git show HEAD^{/two}",
  "git show HEAD@{yesterday}",
  "git show :a.txt",
  "git show HEAD:a.txt:b",
  "git show -- :/a.txt",
  "git diff -- ':(top)a.txt'",
  "git diff -- ':(attr:x)a.txt'",
  "git diff -- :/",
  "git diff -O order",
  "git diff --submodule=diff",
  "git diff --ignore-submodules=none",
  "git diff HEAD^{tree} -- a.txt",
  "git diff HEAD HEAD:a.txt",
  "git log -L1,2:x:a.txt",
  "git blame",
  "git blame -S a.txt b.txt",
  // Abbreviated.
  "sort --numeric-s a.txt",
  "git log --onelin",
  // A dash among the letters of a program without long options.
  "hexdump -C- -x",
  "which -a-",
  "git grep -f",
  "git grep --recurse-submodules x",
  "git grep --textconv x",
  "git grep --no-exclude-standard x",
  "git ls-files --recurse-submodules",
  "git ls-files -X x",
  "git cat-file --batch",
  "git cat-file --textconv HEAD:a.txt",
  "git cat-file --filters HEAD:a.txt",
  "git branch -d main",
  "git branch -l x",
  "git branch --edit-description",
  "git branch -u x",
  "git branch --column",
  "git tag -d v1",
  "git tag -v v1",
  "git tag -a v2",
  "git for-each-ref --format=%(signature)",
  "git for-each-ref --format=%(raw)",
  "git for-each-ref --sort=signature",
  "git remote show origin",
  "git remote update",
  "git config --edit",
  "git config --global --list",
  "git config --file=/etc/passwd --list",
  "git config --unset a.b",
  "git config get",
  "git reflog expire",
  "git reflog exists x",
  "git reflog drop x",
  "git stash",
  "git stash list x",
  "git stash show --include-untracked",
  "git stash -p",
  "git stash -- list",
  "git symbolic-ref -d HEAD",
  "git rev-parse --git-path x",
  "git fetch",
  "git submodule foreach ls",
  "git bisect run ls",
  "git help log",
  "git --help",
];

describe("what may do more", () => {
  let here: Scene;
  beforeAll(() => {
    here = scene();
  });
  test.each(UNKNOWN)("%s", (line) => {
    const reading = here.judge(words(line));
    expect(reading?.kind ?? "unknown").toBe("unknown");
    if (reading?.kind === "unknown") expect(reading.why).toMatch(/^\S.*\S$/);
  });

  test("git outside of any repository", () => {
    const bare = emptyScene();
    bare.put("a.txt", "a\n");
    for (const line of ["git diff a.txt b.txt", "git grep x", "git status", "git log"])
      expect(bare.judge(words(line))).toMatchObject({ kind: "unknown", why: "git in no repository" });
  });

  test("a folder that is shaped like a repository", () => {
    const bare = emptyScene();
    git(bare, "init -q --bare evil.git");
    expect(bare.judge(words("git -C evil.git log"))).toMatchObject({ kind: "unknown" });
    mkdirSync(bare.path("evil.git/sub"));
    expect(bare.judge(words("git log"), bare.path("evil.git/sub"))).toMatchObject({ kind: "unknown" });
  });
});

describe("a workspace below the top of its repository", () => {
  const outer = (): Scene => {
    const here = emptyScene();
    const top = { ...here, root: here.base };
    git(top, "init -q -b main", "config user.name a", "config user.email a@b");
    writeFileSync(join(here.base, "secret.txt"), "SECRET one\n");
    here.put("a.txt", "a\n");
    git(top, "add secret.txt ws", "commit -qm one");
    writeFileSync(join(here.base, "secret.txt"), "SECRET two\n");
    here.put("a.txt", "b\n");
    git(top, "commit -qam two");
    writeFileSync(join(here.base, "secret.txt"), "SECRET three\n");
    here.put("a.txt", "c\n");
    here.put("deep/x.txt", "x\n");
    return here;
  };

  test.each([
    "git diff",
    "git diff HEAD~1",
    "git diff HEAD~1 HEAD",
    "git diff HEAD~1..HEAD -U0",
    "git log -p",
    "git log -p --all",
    "git show",
    "git show HEAD~1",
    "git show --stat HEAD:ws HEAD",
    "git grep -h SECRET HEAD",
    "git grep -h -e SECRET",
    "git diff -- ':!x'",
    "git stash list -p",
    "git diff BLOB HEAD",
    "git diff BLOB",
    "git show BLOB",
    "git show BLOB -- a.txt",
    "git diff BLOB BLOB2 -- a.txt",
    "git grep SECRET BLOB",
    "git grep SECRET BLOB -- a.txt",
    "git cat-file -p BLOB",
    "git log -p -L1,1:a.txt",
    "git log -p --follow a.txt",
    "git stash show -p",
  ])("%s shows nothing from above", (line) => {
    const here = outer();
    const [blob = "", blob2 = ""] = ["HEAD", "HEAD~1"].map((name) =>
      here.run(["git", "rev-parse", `${name}:secret.txt`]).trim(),
    );
    const argv = words(line.replace("BLOB2", blob2).replace("BLOB", blob));
    for (const cwd of [here.root, here.path("deep")]) {
      const reading = here.judge(argv, cwd);
      if (reading?.kind === "reads") expect(here.run(reading.argv, cwd)).not.toContain("SECRET");
      else expect(reading?.why).toMatch(/workspace|commit|taken|file/);
    }
  });

  test.each(["git show HEAD:secret.txt", "git show HEAD~1:./../secret.txt", "git diff -- ../secret.txt"])(
    "%s names what lies outside",
    (line) => {
      const here = outer();
      const reading = here.judge(words(line));
      expect(opened(reading)).toEqual([join(here.base, "secret.txt")]);
    },
  );
});

describe("a run store that was committed", () => {
  test.each([
    "git log -p",
    "git log -p -3 --all",
    "git show",
    "git diff HEAD~1",
    "git grep -h SECRET",
    "git grep -h SECRET HEAD",
    "git diff",
  ])("%s leaves it out", (line) => {
    const here = scene();
    git(here, "add -f .sluice", "commit -qm store");
    here.put(".sluice/store/journal.txt", "SECRET again\n");
    const reading = here.judge(words(line));
    if (reading?.kind !== "reads") throw new Error(reading?.why);
    expect(here.run(words(line))).toContain("SECRET");
    expect(here.run(reading.argv)).not.toContain("SECRET");
  });
});

describe("a revision of a blob beside a path that may be read", () => {
  test.each(["git show BLOB -- a.txt", "git diff BLOB BLOB2 -- a.txt", "git grep apple BLOB -- a.txt"])(
    "%s",
    (line) => {
      const here = scene();
      const [blob = "", blob2 = ""] = ["HEAD:b.txt", "HEAD~1:a.txt"].map((name) =>
        here.run(["git", "rev-parse", name]).trim(),
      );
      const reading = here.judge(words(line.replace("BLOB2", blob2).replace("BLOB", blob)));
      if (reading?.kind !== "reads") throw new Error(reading?.why);
      expect(here.run(reading.argv)).not.toContain("+apple");
      expect(here.run(reading.argv)).not.toMatch(/^apple|:apple/m);
    },
  );
});

describe("lists of paths for xargs", () => {
  const producer = (
    here: Scene,
    line: string,
  ): { readonly output: string; readonly starts: readonly string[] } | undefined => {
    const place: CommandPlace = {
      cwd: here.root,
      workspace: { root: here.root, store: here.path(".sluice/store") },
      inner: () => ({ kind: "unknown", why: "no" }),
    };
    const found = pathProducer(words(line), place);
    return found === undefined ? undefined : { output: here.run(found.argv), starts: found.starts };
  };

  const lists = [
    "find .",
    "find . -name '*.txt'",
    "find . -name '*.txt' -print",
    "find . -name folder -prune -o -name '*t*' -print",
    "find . -type f -print0",
    "find folder ./empty -type f -o -type l",
    "rg -l .",
    "rg -luuu .",
    "rg --files --hidden",
    "rg -l0 .",
    "grep -rl .",
    "grep -rlZ . folder empty",
    "grep -Rl . folder",
  ];
  test.each(lists.filter((line) => missingProgram(line) === undefined))(
    "%s prints no link, nothing of the store and no broken line",
    (line) => {
      const here = scene();
      here.put("bad\n-rf", "SECRET x\n");
      here.put("-rf", "x\n");
      const made = producer(here, line);
      expect(made).toBeDefined();
      const { output = "", starts = [] } = made ?? {};
      const paths = output.split(/print0|Z|-l0/.test(line) ? "\0" : "\n").filter((path) => path !== "");
      expect(paths.length).toBeGreaterThan(0);
      expect(paths.filter((path) => /journal|link$|linked$|y\.txt$/.test(path) && !path.includes("folder2/"))).toEqual(
        [],
      );
      expect(
        paths.filter(
          (path) => !starts.some((start) => path === start || path.startsWith(`${start.replace(/\/$/, "")}/`)),
        ),
      ).toEqual([]);
      // By its whole name: a hash of git may hold these letters, too.
      if (!output.includes("\0")) expect(output).not.toMatch(/(?:^|\/)bad$/m);
    },
  );

  test.each([
    "find . -ls",
    "find . -printf %p",
    "find . -exec cat {} ;",
    "find . -print -o -print",
    "find . -print -name x",
    "find -L .",
    "rg -c x",
    "rg x",
    "rg -l x link",
    "rg --json -l x",
    "grep -l x a.txt",
    "grep -rl x link",
    "grep -rlc x",
    "ls",
    "git ls-files -o",
    "git ls-files -s",
    "git ls-files --full-name",
    "git ls-files /etc",
    "git ls-files ../ws",
    "git -C folder ls-files",
    "git ls-tree -r --name-only HEAD",
    "git grep -l x HEAD",
    "git grep -lc x",
    "git grep x",
    "git grep -l --full-name x",
    "git grep -L -3 x",
    "git diff",
    "git diff --name-status",
    "git diff --name-only -p",
    "git diff --name-only --line-prefix=/",
    "git diff --name-only --relative=folder",
    "git diff --name-only HEAD:folder HEAD:folder2",
    "git log --name-only",
    "cat a.txt",
  ])("%s does not", (line) => {
    expect(producer(scene(), line)).toBeUndefined();
  });
});
