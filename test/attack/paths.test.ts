import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { sqliteHost } from "@sluice/sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  approving,
  attack,
  attacks,
  bash,
  edit,
  glob,
  grep,
  INSIDE,
  nothingRan,
  read,
  type Scene,
  scene,
  write,
} from "../support/attack.ts";

const FILES = { allowedTools: ["Read", "Write", "Edit", "Grep", "Glob"], interactors: [approving()] } as const;

describe("a path that leads out, where everything asked is approved", () => {
  attacks(FILES, [
    {
      name: "..",
      never: "reads or writes outside",
      calls: [read("../outside.txt"), write("../new.txt"), grep({ pattern: "S", path: ".." }), glob("*", "..")],
      outcomes: ["limit", "limit", "limit", "limit"],
      look: nothingRan,
    },
    { name: ".. behind a folder", never: "reads outside", calls: [read("src/../../outside.txt")], outcomes: ["limit"] },
    {
      name: ".. behind a file",
      never: "is taken out as text",
      calls: [read("a.txt/../../outside.txt"), write("a.txt/../new.txt")],
      outcomes: ["limit", "limit"],
    },
    {
      name: ".. behind a folder that does not exist",
      never: "is taken out as text",
      calls: [read("nope/../../outside.txt"), write("nope/../new.txt")],
      outcomes: ["limit", "limit"],
    },
    {
      name: "an absolute path",
      never: "is one of the workspace",
      made: (here) => ({
        calls: [
          read(join(here.outer, "outside.txt")),
          write(join(here.outer, "new.txt")),
          edit(join(here.outer, "outside.txt"), "OUT"),
        ],
      }),
      outcomes: ["limit", "limit", "limit"],
    },
    {
      name: "the workspace's own path with more letters",
      never: "passes for the workspace",
      place: (here) => mkdirSync(`${here.root}-evil`),
      made: (here) => ({ calls: [write(`${here.root}-evil/new.txt`)] }),
      outcomes: ["limit"],
    },
    {
      name: "the workspace's folder itself",
      never: "is replaced by a file",
      calls: [write("."), write("./"), write("src/..")],
      outcomes: ["is_folder", "is_folder", "is_folder"],
      look: (_after, here) => expect(here.text("a.txt")).toBe("alpha\n"),
    },
    {
      name: "two slashes, dots and slashes at the end",
      never: "change where a path leads",
      calls: [read(".//.././/outside.txt"), read("src/./.././../outside.txt/"), read("//etc//passwd")],
      outcomes: ["limit", "limit", "limit"],
    },
    {
      name: "a home folder",
      never: "is expanded",
      calls: [write("~/new.txt"), write("~root/new.txt"), write("$HOME/new.txt")],
      look: (_after, here) => expect(existsSync(here.path("~"))).toBe(true),
    },
    {
      name: "a URL",
      never: "is opened as a file outside",
      made: (here) => ({ calls: [read(`file://${here.outer}/outside.txt`), read("file:///etc/passwd")] }),
      outcomes: ["not_found", "not_found"],
    },
    {
      name: "backslashes and drives",
      never: "climb",
      calls: [read("..\\outside.txt"), read("C:\\outside.txt"), read("\\\\host\\share")],
      outcomes: ["not_found", "not_found", "not_found"],
    },
    {
      name: "percent signs",
      never: "are decoded",
      calls: [read("%2e%2e/outside.txt"), read("..%2foutside.txt"), read("..%00/outside.txt")],
    },
    {
      name: "letters that look like dots and slashes",
      never: "climb",
      calls: [read("‥/outside.txt"), read("..∕outside.txt"), read("．．/outside.txt")],
      outcomes: ["not_found", "not_found", "not_found"],
    },
    {
      name: "five thousand letters",
      never: "are cut to another path",
      calls: [read(`${"a".repeat(5_000)}/../../outside.txt`), read(`${"./".repeat(3_000)}../outside.txt`)],
      outcomes: ["limit", "limit"],
    },
    {
      name: "a line break in a name",
      never: "is two paths",
      calls: [write("src/x\n../../new.txt"), read("a.txt\n../outside.txt")],
    },
    {
      name: "ripgrep's own glob",
      never: "opens files outside",
      calls: [
        grep({ pattern: "SECRET", glob: "../**" }),
        grep({ pattern: "SECRET", glob: "/../outside.txt" }),
        grep({ pattern: "SECRET", path: "src/../.." }),
      ],
    },
    {
      name: "a glob that climbs, is absolute or is negated",
      never: "lists files outside",
      made: (here) => ({
        calls: [
          glob("../*"),
          glob(`${here.outer}/*`),
          glob("{..,src}/*"),
          glob("src/../../*"),
          glob("!src/**"),
          glob("[.][.]/*"),
        ],
      }),
      look: (after) => expect(JSON.stringify(after.outputs)).not.toContain("outside"),
    },
  ]);
});

describe("what stands for processes and devices", () => {
  attacks(FILES, [
    {
      name: "/proc/self/cwd",
      never: "is a way around",
      calls: [read("/proc/self/cwd/../outside.txt"), write("/proc/self/cwd/new.txt")],
      outcomes: ["limit", "limit"],
    },
    {
      name: "/proc/self/root",
      never: "is a way around, except to the workspace itself",
      made: (here) => ({
        calls: [read(`/proc/self/root${here.outer}/outside.txt`), read(`/proc/self/root${here.root}/a.txt`)],
      }),
      outcomes: ["limit", "ok"],
    },
    {
      name: "the environment of this process",
      never: "is read",
      calls: [
        read("/proc/self/environ"),
        read(`/proc/${process.pid}/environ`),
        read("/proc/thread-self/environ"),
        grep({ pattern: "PATH", path: "/proc/self/environ" }),
      ],
      outcomes: ["limit", "limit", "limit", "limit"],
    },
    {
      name: "open files of this process",
      never: "are read or written",
      calls: [read("/proc/self/fd/0"), write("/proc/self/fd/1"), read("/dev/fd/0"), write("/dev/stdout")],
      outcomes: ["limit", "limit", "limit", "limit"],
    },
    {
      name: "its memory",
      never: "is written",
      calls: [write("/proc/self/mem"), write("/proc/self/oom_score_adj", "1000"), write("/proc/self/comm")],
      outcomes: ["limit", "limit", "limit"],
    },
    {
      name: "endless devices",
      never: "are read",
      calls: [read("/dev/zero"), read("/dev/urandom"), grep({ pattern: "x", path: "/dev" })],
      outcomes: ["limit", "limit", "limit"],
    },
    {
      name: "shared memory and settings of the kernel",
      never: "are written",
      calls: [write("/dev/shm/new"), write("/sys/kernel/new"), glob("*", "/sys")],
      outcomes: ["limit", "limit", "limit"],
    },
    {
      name: "the workspace below /proc in a listing",
      never: "lists it",
      calls: [glob("**", "/proc/self/cwd"), glob("**", "/proc/self/root")],
      outcomes: ["limit", "limit"],
    },
  ]);
});

describe("a protected name, where everything asked is approved", () => {
  attacks(FILES, [
    {
      name: "git's settings and hooks",
      never: "are written",
      calls: [
        write(".git/config"),
        write(".git/hooks/pre-commit"),
        write("src/../.git/HEAD"),
        write("./.git/../.git/config"),
      ],
      outcomes: ["limit", "limit", "limit", "limit"],
    },
    {
      name: "git's settings in other letters",
      never: "are written",
      calls: [write(".GIT/config"), write(".Git/config"), write(".gıt/config"), write(".gi\u0307t/config")],
      look: (after) => expect(after.outcomes.slice(0, 2)).toEqual(["limit", "limit"]),
    },
    {
      name: "names that other file systems take for .git",
      never: "are written",
      calls: [
        write(".git./config"),
        write(".git /config"),
        write(".git::$INDEX_ALLOCATION/config"),
        write("GIT~1/config"),
        write(".g\u200cit/config"),
        write(".git\ufeff/config"),
      ],
      outcomes: ["limit", "limit", "limit", "limit", "limit", "limit"],
    },
    {
      name: "the settings of a repository further down",
      never: "are written",
      calls: [write("vendor/x/.git/config"), write("vendor/.git")],
      outcomes: ["limit", "limit"],
    },
    {
      name: "Sluice's own settings",
      never: "are written",
      calls: [
        write("sluice.config.ts"),
        write("sluice.config.mjs"),
        write("SLUICE.CONFIG.js"),
        write("packages/a/sluice.config.ts"),
        edit("sluice.config.ts", "config"),
      ],
      outcomes: ["limit", "limit", "limit", "limit", "limit"],
    },
    {
      name: "Sluice's own pipelines",
      never: "are written",
      calls: [
        write(".sluice/pipelines/mine.ts"),
        write(".sluice/pipelines/new.ts"),
        write(".Sluice/x"),
        write("src/.sluice/x"),
        write("SLUICE~1/x"),
      ],
      outcomes: ["limit", "limit", "limit", "limit", "limit"],
    },
    {
      name: "a file in the place of a protected folder",
      never: "is written",
      calls: [write(".sluice"), write(".git"), write(".git/")],
      outcomes: ["limit", "limit", "limit"],
    },
    {
      name: "paths that the session protects",
      never: "are written, nor what they lie in",
      made: (here) => ({
        protectedPaths: [here.path("src/b.ts"), here.path("docs/later")],
        calls: [edit("src/b.ts", "1"), write("SRC/B.TS"), write("docs/later/x"), write("docs/later")],
      }),
      outcomes: ["limit", "limit", "limit", "limit"],
      look: (_after, here) => expect(here.text("src/b.ts")).toContain("b = 1"),
    },
  ]);
});

describe("the run store, where everything asked is approved", () => {
  attacks(FILES, [
    {
      name: "the journal by its path",
      never: "is read or written by a tool",
      made: (here) => ({
        host: () => sqliteHost(here.path(".sluice/store")),
        calls: [
          read(".sluice/store/journal.db"),
          write(".sluice/store/journal.db"),
          read(".sluice/../.sluice/STORE/journal.db"),
          grep({ pattern: "run", path: ".sluice/store" }),
          glob("**", ".sluice/store"),
        ],
      }),
      outcomes: ["limit", "limit", "limit", "limit", "limit"],
    },
    {
      name: "a search of everything",
      never: "looks into the journal",
      made: (here) => ({
        host: () => sqliteHost(here.path("data/runs")),
        calls: [
          grep({ pattern: "attacked", output_mode: "files_with_matches" }),
          grep({ pattern: "run.started", path: "data", output_mode: "files_with_matches" }),
          glob("**"),
        ],
      }),
      look: (after) => expect(JSON.stringify(after.outputs)).not.toContain("journal.db"),
    },
    {
      name: "commands that read a folder and all in it",
      never: "show the journal",
      allowedTools: ["Bash"],
      interactors: [],
      made: (here) => ({
        host: () => sqliteHost(here.path(".sluice/store")),
        calls: [
          "grep -ra attacked .",
          "grep -r attacked .sluice",
          "grep -a attacked .sluice/*/*",
          "cat .sluice/s*/*",
          "cat .sluice/[rst]tore/journal.db-wal",
          "head -c 9999 .s*/*/*.db*",
          "rg -uuua attacked",
          "diff -a --no-such .sluice/store src",
          "git grep --untracked --no-exclude-standard attacked",
          "strings .sluice/store/journal.db",
          "cd .sluice && cat store/*",
          "find .sluice -type f -exec cat {} +",
          "cat < .sluice/store/journal.db-wal",
          "grep -r --include='*.db*' -a attacked",
        ].map(bash),
      }),
      look: (after) => {
        // Some run, with the store left out.
        expect(JSON.stringify(after.outputs)).not.toContain("run.started");
      },
    },
  ]);
});

describe("a stage that may see one folder only", () => {
  const narrow = {
    allowedTools: ["Read(src/**)", "Edit(src/**)", "Write(src/**)", "Grep(src/**)", "Glob(src/**)", "Bash"],
  } as const;
  attacks(narrow, [
    {
      name: "another file by its path",
      never: "is shown",
      calls: [read("secret.txt"), read("src/../secret.txt"), read("SRC/../secret.txt"), read("src/")],
      look: (after) => expect(after.sent).not.toContain(INSIDE),
    },
    {
      name: "a search around the folder",
      never: "shows what is in others",
      calls: [
        grep({ pattern: "SECRET", output_mode: "content" }),
        grep({ pattern: "SECRET", path: "src/..", output_mode: "content" }),
        glob("**"),
        glob("../*", "src"),
      ],
      look: (after) => expect(after.sent).not.toContain(INSIDE),
    },
    {
      name: "the folder's name in another case",
      never: "is that folder",
      place: (here) => mkdirSync(here.path("SRC")),
      calls: [write("SRC/x.ts"), write("Src/x.ts")],
      outcomes: ["no_interactor", "no_interactor"],
    },
    {
      name: "a folder whose name begins the same",
      never: "is inside",
      calls: [write("src2/x.ts"), write("src.bak"), write("src\n/x")],
      outcomes: ["no_interactor", "no_interactor", "no_interactor"],
    },
    {
      name: "commands",
      never: "show what Read may not",
      calls: [
        "cat secret.txt",
        "cat src/../secret.txt",
        "cat s*t.txt",
        "head ./secre[t].txt",
        "grep -r INSIDE",
        "cat<secret.txt",
        "git diff --no-index /dev/null secret.txt",
      ].map(bash),
      look: (after) => expect(after.sent).not.toContain(INSIDE),
    },
  ]);
});

describe.each(["off", "try"] as const)("a scope that ends in a name, with sandbox %s", (mode) => {
  const withGit = (here: Scene): void => {
    rmSync(here.path(".git"), { recursive: true });
    here.put("docs/private/secret.txt", `${INSIDE}\n`);
    here.put("docs/d.md/secret.txt", `${INSIDE}\n`);
    const git = (...args: readonly string[]): void => {
      execFileSync("git", ["-c", "user.name=n", "-c", "user.email=a@b", ...args], { cwd: here.root, stdio: "ignore" });
    };
    git("init", "-qb", "main");
    git("add", ".");
    git("commit", "-qm", "m");
    git("rm", "-rq", "--cached", "docs/private");
    here.put("docs/private/secret.txt", `${INSIDE} changed\n`);
    git("add", ".");
  };
  const lines = (folder: string): readonly string[] => [
    `cat ${folder}/secret.txt`,
    `grep -r . ${folder}`,
    `grep -R . ${folder}/`,
    `rg . ${folder}`,
    `find ${folder} -type f -exec cat {} +`,
    `find ${folder} -type f | xargs cat`,
    `rg -l . ${folder} | xargs cat`,
    `diff -r ${folder} docs/c.md`,
    `diff ${folder} src`,
    `git grep . -- ${folder}`,
    `git grep . HEAD -- ${folder}`,
    `git grep . HEAD:${folder}`,
    `git log -p -- ${folder}`,
    `git diff HEAD -- ${folder}`,
    `git diff HEAD:src HEAD:${folder}`,
    `git show HEAD -- ${folder}`,
    `cd ${folder} && grep -r .`,
    `ls -R ${folder} | xargs -I{} cat ${folder}/{}`,
  ];
  test.each([
    ["Read(docs/*)", "docs/private"],
    ["Read(docs/*)", "docs/d.md"],
    ["Read(docs/*.md)", "docs/d.md"],
    ["Read(**/*.md)", "docs/d.md"],
    ["Read(docs/private)", "docs/private"],
    ["Read(docs)", "docs"],
    ["Read(*)", "docs"],
  ])("%s: never shows what is below the folder %s", async (rule, folder) => {
    const here = scene();
    withGit(here);
    const tools = ["Bash", rule, rule.replace("Read", "Grep"), rule.replace("Read", "Glob")];
    const searches = [
      read(`${folder}/secret.txt`),
      grep({ pattern: ".", path: folder, output_mode: "content" }),
      glob("**/*", folder),
    ];
    const after = await attack(here, {
      sandbox: mode,
      allowedTools: tools,
      calls: [...lines(folder).map(bash), ...searches],
    });
    expect(after.sent).not.toContain(INSIDE);
    expect(after.outcomes.slice(-3)).toEqual(["no_interactor", "no_interactor", "no_interactor"]);
  });

  test("next to a listed command: never shows what is below a folder", async () => {
    const here = scene();
    withGit(here);
    const calls = lines("docs/private").map((line) => bash(`pwd; echo; ${line}`));
    const after = await attack(here, { sandbox: mode, allowedTools: ["Bash(pwd)", "Read(docs/*)"], calls });
    expect(after.sent).not.toContain(INSIDE);
  });

  test("of Edit or Write: never covers what is below the folder", async () => {
    const here = scene();
    withGit(here);
    const calls = ["rm -r docs/private", "mv docs/private docs/x", "cp -r src docs/private", "touch docs/private/new"];
    await attack(here, {
      sandbox: mode,
      allowedTools: ["Bash", "Edit(docs/private)", "Write(docs)"],
      calls: calls.map(bash),
    });
    expect(readdirSync(here.path("docs/private"))).toEqual(["secret.txt"]);
    expect(readdirSync(here.path("docs")).toSorted()).toEqual(["c.md", "d.md", "private"]);
  });

  test("covers a file, also for a command that could search a folder", async () => {
    const here = scene();
    withGit(here);
    const ordinary = ["grep -rn C docs/c.md", "rg C docs/c.md", "git diff -- docs/c.md", "git log -p -- docs/c.md"];
    const calls = [
      ...[...ordinary, "find docs/c.md", "diff docs/c.md docs/c.md", "ls docs/private"].map(bash),
      grep({ pattern: "C", path: "docs/c.md" }),
      read("docs/c.md"),
    ];
    const after = await attack(here, {
      sandbox: mode,
      allowedTools: ["Bash", "Read(docs/*)", "Grep(docs/*)"],
      calls,
    });
    expect(after.outcomes).toEqual(calls.map(() => "ok"));
  });
});

test("a search that xargs starts without a name: never reads the current folder instead", async () => {
  const here = scene();
  here.put("src/store/x.ts", "y\n");
  const nothing = [
    "find src -name nothing",
    "find src -name nothing -print0",
    "rg -l nothing src",
    "grep -rl nothing src",
  ];
  const lines = nothing.flatMap((line) =>
    ["grep -r .", "grep -r -e .", "-n1 grep -r .", "nice grep -r .", "ls -R", "du -a", "ls"].map(
      (command) => `${line} | xargs ${line.endsWith("0") ? "-0 " : ""}${command}`,
    ),
  );
  const after = await attack(here, {
    allowedTools: ["Bash", "Read(src/**)"],
    sandbox: "off",
    calls: [...lines, "find src -name nothing | xargs wc -l", "find src -name b.ts | xargs grep -rn b"].map(bash),
  });
  expect(after.sent).not.toContain(INSIDE);
  expect(JSON.stringify(after.outputs)).not.toContain("docs");
  expect(after.outputs.slice(-2)).toEqual(["0\n", "1:export const b = 1;\n"]);
});

describe("what a write leaves behind", () => {
  attacks(FILES, [
    {
      name: "a write that fails half-way",
      never: "leaves a temporary file",
      place: (here) => mkdirSync(here.path("src/folder")),
      calls: [write("src/folder"), edit("src/b.ts", "nope"), write("src/b.ts")],
      look: (_after, here) => expect(readdirSync(here.path("src")).sort()).toEqual(["b.ts", "folder"]),
    },
    {
      name: "a marker of a secret",
      never: "is written back in its place",
      calls: [write("src/new.ts", "key = [redacted:API_KEY]")],
      outcomes: ["redacted_content"],
      look: (_after, here) => expect(existsSync(here.path("src/new.ts"))).toBe(false),
    },
    {
      name: "a file the stage has not read",
      never: "is overwritten",
      calls: [write("a.txt"), edit("docs/c.md", "C")],
      outcomes: ["stale_file", "stale_file"],
      look: (_after, here) => expect(here.text("a.txt") + here.text("docs/c.md")).toBe("alpha\n# C\n"),
    },
  ]);
});

test("the code of Sluice itself, where that lies in the workspace: never is written", async () => {
  const clone = join(import.meta.dirname, "../..");
  const names = [
    "bin/attack",
    "packages/stages/src/attack.ts",
    "packages/core/dist/attack.js",
    "node_modules/attack.js",
  ];
  const own: Scene = { ...scene(), root: clone, path: (name) => join(clone, name) };
  onTestFinished(() => {
    for (const name of names) rmSync(own.path(name), { force: true });
  });
  const after = await attack(own, { ...FILES, calls: names.map((name) => write(name)) });
  expect(after.outcomes).toEqual(["limit", "limit", "limit", "limit"]);
  expect(names.filter((name) => existsSync(own.path(name)))).toEqual([]);
});
