// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings are shell
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { sqliteHost } from "@sluice/sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { approving, attack, attacks, bash, INSIDE, OUTSIDE, type Row, type Scene, scene } from "../support/attack.ts";

const READING = { allowedTools: ["Bash"] } as const;
/** Every command of the built-in list that could be made to do something else. */
const LINES = [
  "git status",
  "git diff",
  "git log -p -1",
  "git show",
  "git blame f.x",
  "git grep 1",
  "git ls-files -o",
  "git stash list",
  "git branch",
  "git diff HEAD",
  "git rev-parse HEAD",
];

const shell = (folder: string, line: string): string =>
  execFileSync(
    "/bin/bash",
    [
      "-c",
      `export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=a@b; ${line}`,
    ],
    { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] },
  );
const commit = (folder: string): string =>
  shell(folder, "git init -qb main . && git add . && git commit -qm m && git rev-parse HEAD").trim();

/** Repositories as they are made once, to be copied. */
const templates = realpathSync(mkdtempSync(join(tmpdir(), "sluice-attack-git-")));
afterAll(() => rmSync(templates, { recursive: true, force: true }));
beforeAll(() => {
  const plain = join(templates, "plain");
  const files = {
    "f.x": "1\n",
    ".gitattributes": "* diff=x filter=x\n",
    "secret.txt": `${INSIDE}\n`,
    "src/b.ts": "export const b = 1;\n",
  };
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(plain, name)), { recursive: true });
    writeFileSync(join(plain, name), content);
  }
  commit(plain);
  const source = join(templates, "source");
  mkdirSync(source);
  writeFileSync(join(source, "f.x"), "1\n");
  commit(source);
  const submodule = join(templates, "submodule");
  cpSync(plain, submodule, { recursive: true });
  shell(submodule, `git -c protocol.file.allow=always submodule -q add ${source} sub && git commit -qm s`);
});
function copied(here: Scene, template: string): void {
  rmSync(here.path(".git"), { recursive: true });
  cpSync(join(templates, template), here.root, { recursive: true });
  // A copy has other times than its index holds, which `git diff` would fix there.
  for (const folder of template === "submodule" ? [here.root, here.path("sub")] : [here.root])
    shell(folder, "git update-index -q --refresh");
}

/** A repository with a change, every file of which has the attribute x, and a program that leaves the canary. */
function repository(here: Scene, template = "plain"): void {
  copied(here, template);
  here.put("f.x", "2\n");
  evil(here);
}
function evil(here: Scene): void {
  here.put("evil.sh", `#!/bin/sh\ntouch ${here.path("PWN")}\ncat "$@"\n`);
  chmodSync(here.path("evil.sh"), 0o755);
}
function setting(here: Scene, text: string, file = ".git/config"): void {
  here.put(file, `${existsSync(here.path(file)) ? here.text(file) : ""}\n${text}\n`);
}
/** A repository outside that holds the secret in its history. */
function outside(here: Scene): string {
  const folder = join(here.outer, "private");
  mkdirSync(folder);
  writeFileSync(join(folder, "f.x"), `${OUTSIDE}\n`);
  return commit(folder);
}

const hostile = (name: string, settings: string): Row => ({
  name,
  never: "runs the program",
  place: (here) => {
    repository(here);
    setting(here, settings);
  },
  calls: LINES.map(bash),
});

describe("settings that name a program", () => {
  attacks(READING, [
    hostile("diff.external", "[diff]\n\texternal = ./evil.sh"),
    hostile("an external command of a driver", '[diff "x"]\n\tcommand = ./evil.sh'),
    hostile("textconv", '[diff "x"]\n\ttextconv = ./evil.sh'),
    hostile("clean and smudge", '[filter "x"]\n\tclean = ./evil.sh\n\tsmudge = ./evil.sh'),
    hostile("a filter's process", '[filter "x"]\n\tprocess = ./evil.sh\n\trequired'),
    hostile("core.fsmonitor", "[core]\n\tfsmonitor = ./evil.sh"),
    hostile("core.hooksPath and hooks", "[core]\n\thooksPath = ."),
    hostile("a pager", "[core]\n\tpager = ./evil.sh\n[pager]\n\tlog = ./evil.sh"),
    hostile("a program for signatures", "[log]\n\tshowSignature = true\n[gpg]\n\tprogram = ./evil.sh"),
    hostile("a signature format", "[format]\n\tpretty = %G?\n[gpg]\n\tprogram = ./evil.sh"),
    hostile("an alias of a built-in", "[alias]\n\tstatus = !./evil.sh\n\tlg = !./evil.sh"),
    hostile(
      "a promisor remote",
      '[remote "o"]\n\turl = ext::./evil.sh\n\tpromisor = true\n[extensions]\n\tpartialClone = o\n[protocol "ext"]\n\tallow = always',
    ),
    hostile("status.submoduleSummary", "[status]\n\tsubmoduleSummary = true"),
    hostile("keys in other letters and on one line", "[DIFF] External=./evil.sh\n[Core]\n\tFSMONITOR\t=\t./evil.sh"),
    hostile("a value over several lines", "[diff]\n\texternal = \\\n./evil.sh"),
  ]);
  test("hooks: never run in a reading command", async () => {
    const here = scene();
    repository(here);
    for (const hook of [
      "post-index-change",
      "reference-transaction",
      "fsmonitor-watchman",
      "pre-auto-gc",
      "post-checkout",
    ]) {
      here.put(`.git/hooks/${hook}`, here.text("evil.sh"));
      chmodSync(here.path(`.git/hooks/${hook}`), 0o755);
    }
    const after = await attack(here, { ...READING, calls: LINES.map(bash) });
    expect(after.outcomes.filter((outcome) => outcome === "ok").length).toBeGreaterThan(8);
  });
});

describe("settings elsewhere", () => {
  const elsewhere = (name: string, place: (here: Scene) => void): Row => ({
    name,
    never: "are obeyed",
    place: (here) => {
      repository(here);
      place(here);
    },
    calls: LINES.map(bash),
  });
  const external = "[diff]\n\texternal = ./evil.sh\n[core]\n\tfsmonitor = ./evil.sh";
  attacks(READING, [
    elsewhere("an included file", (here) => {
      here.put("more", external);
      setting(here, "[include]\n\tpath = ../more");
    }),
    elsewhere("a file included on a condition", (here) => {
      here.put("more", external);
      setting(here, '[includeIf "gitdir:**"]\n\tpath = ../more');
    }),
    elsewhere("settings of the work tree", (here) => {
      setting(here, "[extensions]\n\tworktreeConfig = true");
      setting(here, external, ".git/config.worktree");
    }),
    elsewhere("settings too large to be looked at", (here) => setting(here, `${"# x\n".repeat(400_000)}${external}`)),
    elsewhere("settings that are a link", (here) => {
      here.put("more", `${here.text(".git/config")}\n${external}`);
      rmSync(here.path(".git/config"));
      symlinkSync("../more", here.path(".git/config"));
    }),
    elsewhere("a folder that is shaped like a repository", (here) => {
      renameSync(here.path(".git"), here.path("x.git"));
      for (const name of ["HEAD", "objects", "refs", "config"]) renameSync(here.path(`x.git/${name}`), here.path(name));
      setting(here, external, "config");
    }),
    {
      ...elsewhere("a bare repository in a folder", (here) => {
        shell(here.root, "git clone -q --bare . inner.git");
        setting(here, external, "inner.git/config");
      }),
      calls: [
        "cd inner.git && git log",
        "cd inner.git; git show",
        "git -C inner.git log -p",
        "git --git-dir=inner.git log -p",
        "GIT_DIR=inner.git git log -p",
      ].map(bash),
    },
    {
      ...elsewhere("a repository in a folder", (here) => {
        here.put("nested/f.x", "1");
        commit(here.path("nested"));
        setting(here, external, "nested/.git/config");
        here.put("nested/f.x", "2");
      }),
      calls: [
        ...LINES,
        "cd nested && git status",
        "cd nested; git diff",
        "(cd nested && git diff)",
        "pushd nested && git diff",
      ].map(bash),
    },
  ]);
});

describe("the user's own settings, where the workspace holds them", () => {
  const hostileSettings = (here: Scene): string => {
    const program = here.path("evil.sh");
    return `[core]\n\tfsmonitor = ${program}\n[filter "x"]\n\tclean = ${program}\n[diff "x"]\n\ttextconv = ${program}\n`;
  };
  /** Where the settings are, and the variables with which git finds them. */
  const places: readonly (readonly [string, (here: Scene, settings: string) => Record<string, string>])[] = [
    ["a home", (here, settings) => ({ HOME: dirname(here.put(".gitconfig", settings)) })],
    [
      "a home below it",
      (here, settings) => {
        here.put("src/.config/git/config", settings);
        return { HOME: here.path("src") };
      },
    ],
    [
      "the folder of XDG",
      (here, settings) => {
        here.put("config/git/config", settings);
        return { HOME: here.outer, XDG_CONFIG_HOME: here.path("config") };
      },
    ],
    [
      "a file that a variable names",
      (here, settings) => ({
        HOME: here.outer,
        GIT_CONFIG_GLOBAL: here.put("my.conf", settings),
      }),
    ],
    [
      "those of the system",
      (here, settings) => ({ HOME: here.outer, GIT_CONFIG_SYSTEM: here.put("my.conf", settings) }),
    ],
    [
      "the target of a link",
      (here, settings) => {
        symlinkSync(here.put("dotfiles/gitconfig", settings), join(here.outer, ".gitconfig"));
        return { HOME: here.outer };
      },
    ],
    ...["~/ws/dotfiles/more # team", "~/ws/dotfiles/more;x", '~/ws/"dotfiles"/more', "~/ws/\\\ndotfiles/more"].map(
      (path) =>
        [
          `an included file, as ${JSON.stringify(path)}`,
          (here: Scene, settings: string) => {
            here.put("dotfiles/more", settings);
            writeFileSync(join(here.outer, ".gitconfig"), `[include]\n\tpath = ${path}\n`);
            return { HOME: here.outer };
          },
        ] as const,
    ),
    [
      "an included file",
      (here, settings) => {
        here.put("dotfiles/more", settings);
        writeFileSync(join(here.outer, ".gitconfig"), "[include]\n\tpath = first\n");
        writeFileSync(join(here.outer, "first"), '[includeIf "gitdir:~/"] path = "~/ws/dotfiles/more"\n');
        return { HOME: here.outer };
      },
    ],
  ];

  test.each(places)("%s: no program of theirs runs in a reading command", async (_name, made) => {
    const here = scene();
    repository(here);
    const env = { PATH: process.env.PATH, ...made(here, hostileSettings(here)) };
    const after = await attack(here, {
      allowedTools: ["Bash", "Read", "Edit(**)", "Write(**)"],
      env,
      calls: LINES.map(bash),
    });
    expect(new Set(after.outcomes)).toEqual(new Set(["ok"]));
  });

  test("settings elsewhere are used", async () => {
    const here = scene();
    repository(here);
    writeFileSync(join(here.outer, ".gitconfig"), "[user]\n\tname = Me\n[include]\n\tpath = more\n");
    writeFileSync(join(here.outer, "more"), "[user]\n\temail = me@example.com\n");
    const calls = ["git config user.name", "git config user.email"].map(bash);
    const { outputs } = await attack(here, { ...READING, env: { PATH: process.env.PATH, HOME: here.outer }, calls });
    expect(outputs).toEqual(["Me\n", "me@example.com\n"]);
  });
});

describe("settings of a submodule", () => {
  const submodule = (here: Scene): void => {
    repository(here, "submodule");
    here.put("sub/f.x", "2\n");
    here.put("sub/.gitattributes", "* filter=x diff=x\n");
  };
  const within = (name: string, place: (here: Scene) => void, lines: readonly string[] = LINES): Row => ({
    name,
    never: "run a program",
    place: (here) => {
      submodule(here);
      place(here);
    },
    calls: lines.map(bash),
  });
  const modules = ".git/modules/sub";
  const programs = (here: Scene): string =>
    `[diff]\n\texternal = ${here.path("evil.sh")}\n[core]\n\tfsmonitor = ${here.path("evil.sh")}\n[diff "x"]\n\ttextconv = ${here.path("evil.sh")}\n[filter "x"]\n\tclean = ${here.path("evil.sh")}`;
  attacks(READING, [
    within("in .git/modules", (here) => setting(here, programs(here), `${modules}/config`)),
    within("in a folder of its own", (here) => {
      rmSync(here.path("sub/.git"));
      renameSync(here.path(modules), here.path("sub/.git"));
      here.put("sub/.git/config", `[core]\n\trepositoryformatversion = 0\n${programs(here)}`);
    }),
    within("that leads to another folder of the workspace", (here) => {
      renameSync(here.path(modules), here.path("hidden"));
      here.put("hidden/config", `[core]\n\trepositoryformatversion = 0\n${programs(here)}`);
      here.put("sub/.git", "gitdir: ../hidden\n");
    }),
    within("with a filter", (here) => {
      setting(here, `[filter "x"]\n\tclean = ${here.path("evil.sh")}`, `${modules}/config`);
      here.put("sub/.gitattributes", "* filter=x\n");
    }),
    within("with hooks", (here) => {
      for (const hook of ["post-index-change", "reference-transaction"]) {
        here.put(`${modules}/hooks/${hook}`, here.text("evil.sh"));
        chmodSync(here.path(`${modules}/hooks/${hook}`), 0o755);
      }
    }),
    within("shown as a difference", (here) => setting(here, programs(here), `${modules}/config`), [
      "git diff --submodule=diff",
      "git log -p --submodule=diff",
      "git show --submodule=diff",
      "git diff --submodule",
      "git diff --submodule=log",
      "git status --ignore-submodules=none",
      "git grep --recurse-submodules 1",
    ]),
    within("in an index of version 4", (here) => {
      setting(here, programs(here), `${modules}/config`);
      shell(here.root, "git update-index --index-version 4");
    }),
    within("in a split index", (here) => {
      setting(here, programs(here), `${modules}/config`);
      shell(here.root, "git update-index --split-index");
    }),
    within("in an index that cannot be read", (here) => {
      setting(here, programs(here), `${modules}/config`);
      const index = readFileSync(here.path(".git/index"));
      index.writeUInt32BE(9, 4);
      writeFileSync(here.path(".git/index"), index);
    }),
    within("of a submodule of a submodule", (here) => {
      mkdirSync(here.path("sub/inner"));
      here.put("sub/inner/f.x", "1\n");
      commit(here.path("sub/inner"));
      shell(here.path("sub"), "git -c advice.addEmbeddedRepo=false add inner && git commit -qm i");
      setting(here, programs(here), "sub/inner/.git/config");
      here.put("sub/inner/f.x", "2\n");
    }),
    within("while diff.submodule is set", (here) => {
      setting(here, programs(here), `${modules}/config`);
      setting(here, "[diff]\n\tsubmodule = diff");
    }),
  ]);

  test("a submodule with settings that are only data needs no grant", async () => {
    const here = scene();
    submodule(here);
    const after = await attack(here, { ...READING, calls: [bash("git status"), bash("git diff")] });
    expect(after.outcomes).toEqual(["ok", "ok"]);
  });
  test("the settings of a submodule whose programs no one asked about, under a grant that was denied: never run", async () => {
    const here = scene();
    submodule(here);
    setting(here, programs(here), `${modules}/config`);
    const after = await attack(here, { ...READING, calls: [bash("git status")] });
    expect(after.outcomes).toEqual(["no_interactor"]);
  });
});

describe("a repository that leads to another one", () => {
  const SHOW = [
    "git log -p",
    "git show",
    "git show HEAD:f.x",
    "git diff HEAD",
    "git grep SECRET HEAD",
    "git cat-file -p HEAD:f.x",
    "git blame f.x",
  ];
  const leading = (name: string, place: (here: Scene, head: string) => void, lines: readonly string[] = SHOW): Row => {
    let head = "";
    return {
      name,
      never: "shows what is in that one",
      place: (here) => {
        repository(here);
        head = outside(here);
        place(here, head);
      },
      made: () => ({ calls: lines.map((line) => bash(line.replaceAll("OTHER", head))) }),
    };
  };
  const other = (here: Scene): string => join(here.outer, "private/.git");
  const gone = (here: Scene): void => rmSync(here.path(".git"), { recursive: true });
  attacks(READING, [
    leading("a .git file", (here) => {
      gone(here);
      here.put(".git", `gitdir: ${other(here)}\n`);
    }),
    leading("a .git file, relative", (here) => {
      gone(here);
      here.put(".git", "gitdir: ../private/.git\n");
    }),
    leading("a .git that is a link", (here) => {
      gone(here);
      symlinkSync(other(here), here.path(".git"));
    }),
    leading("a commondir", (here) => {
      rmSync(here.path(".git/objects"), { recursive: true });
      here.put(".git/commondir", `${other(here)}\n`);
    }),
    leading("a work tree that the other does not know", (here) => {
      gone(here);
      here.put("own/commondir", other(here));
      here.put("own/HEAD", "ref: refs/heads/main");
      here.put("own/gitdir", here.path(".git"));
      here.put(".git", `gitdir: ${here.path("own")}\n`);
    }),
    leading("objects that are a link", (here) => {
      rmSync(here.path(".git/objects"), { recursive: true });
      symlinkSync(join(other(here), "objects"), here.path(".git/objects"));
      here.put(".git/refs/heads/main", `${shell(dirname(other(here)), "git rev-parse HEAD").trim()}\n`);
    }),
    leading("alternates", (here) => here.put(".git/objects/info/alternates", `${join(other(here), "objects")}\n`), [
      "git show OTHER",
      "git cat-file -p OTHER:f.x",
      "git log -p OTHER",
      "git diff OTHER HEAD",
    ]),
    leading(
      "a submodule's .git file",
      (here) => {
        here.put("sub/.git", `gitdir: ${other(here)}\n`);
        here.put("sub/f.x", "1");
        shell(
          here.root,
          `git update-index --add --cacheinfo 160000,${shell(dirname(other(here)), "git rev-parse HEAD").trim()},sub`,
        );
      },
      ["git grep --recurse-submodules SECRET", "git status", "git diff --submodule=log"],
    ),
    leading(
      "a branch that is a link",
      (here) => {
        symlinkSync(join(other(here), "refs/heads/main"), here.path(".git/refs/heads/theirs"));
        symlinkSync(join(other(here), "objects"), here.path(".git/objects/theirs"));
      },
      ["git log -p theirs", "git show theirs"],
    ),
    leading("core.worktree", (here) => setting(here, `[core]\n\tworktree = ${here.outer}`), [
      "git status",
      "git diff",
      "git ls-files -o",
      "git grep SECRET",
    ]),
  ]);

  test("a linked work tree that both sides know needs no grant", async () => {
    const here = scene();
    repository(here);
    shell(here.root, "git worktree add -q tree");
    renameSync(here.path("tree"), join(here.outer, "moved"));
    shell(here.root, `git worktree repair ${join(here.outer, "moved")}`);
    const tree: Scene = {
      ...here,
      outer: here.outer,
      root: join(here.outer, "moved"),
      path: (name) => join(here.outer, "moved", name),
    };
    const after = await attack(tree, { ...READING, calls: [bash("git status"), bash("git log -1 --format=%s")] });
    expect(after.outcomes).toEqual(["ok", "ok"]);
  });
});

describe("settings that name a file to read", () => {
  const naming = (name: string, settings: (here: Scene) => string, ...lines: readonly string[]): Row => ({
    name,
    never: "shows lines of it",
    place: (here) => {
      repository(here);
      setting(here, settings(here));
    },
    calls: [...lines, ...LINES].map(bash),
  });
  attacks(READING, [
    naming(
      "blame.ignoreRevsFile",
      (here) => `[blame]\n\tignoreRevsFile = ${here.outer}/outside.txt`,
      "git blame f.x",
      "git blame -l f.x",
    ),
    naming(
      "core.excludesFile",
      (here) => `[core]\n\texcludesFile = ${here.outer}/outside.txt`,
      `git check-ignore -v ${OUTSIDE}`.replace(OUTSIDE, "x"),
      "git status --ignored",
    ),
    naming(
      "core.attributesFile and mailmap.file",
      (here) => `[core]\n\tattributesFile = ${here.outer}/outside.txt\n[mailmap]\n\tfile = ${here.outer}/outside.txt`,
      "git log --use-mailmap --format=%aN",
    ),
    naming("diff.orderFile", (here) => `[diff]\n\torderFile = ${here.outer}/outside.txt`, "git diff --stat"),
  ]);
});

describe("options and variables on the line", () => {
  const lines = (name: string, never: string, ...commands: readonly string[]): Row => ({
    name,
    never,
    place: repository,
    calls: commands.map(bash),
    look: (after) => expect(after.outcomes).not.toContain("ok"),
  });
  attacks(READING, [
    lines(
      "settings on the line",
      "run a program",
      "git -c diff.external=./evil.sh diff",
      "git -c core.fsmonitor=./evil.sh status",
      "git -c alias.x=!./evil.sh x",
      "git --config-env=diff.external=SHELL diff",
      "git -c include.path=../more diff",
      "git --exec-path=. status",
      "git -p log",
      "git -c core.pager=./evil.sh -p log",
    ),
    lines(
      "variables in front",
      "run a program",
      "GIT_EXTERNAL_DIFF=./evil.sh git diff",
      "GIT_SSH_COMMAND=./evil.sh git log",
      "GIT_PAGER=./evil.sh git -p log",
      "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=diff.external GIT_CONFIG_VALUE_0=./evil.sh git diff",
      "GIT_CONFIG_PARAMETERS=\"'diff.external=./evil.sh'\" git diff",
      "GIT_CONFIG_GLOBAL=more git diff",
      "GIT_CONFIG_SYSTEM=more git diff",
      "GIT_EXEC_PATH=. git status",
      "HOME=. git diff",
      "XDG_CONFIG_HOME=. git diff",
      "GIT_ASKPASS=./evil.sh git log",
      "GIT_OPTIONAL_LOCKS=1 git status",
      "git_dir=x GIT_DIR=x git log",
    ),
    lines(
      "variables for the rest of the line",
      "run a program",
      "export GIT_EXTERNAL_DIFF=./evil.sh; git diff",
      "declare -x GIT_DIR=x; git log",
      "env GIT_EXTERNAL_DIFF=./evil.sh git diff",
      "env -u GIT_CONFIG_COUNT git status",
      "unset GIT_CONFIG_COUNT; git status",
      "unset GIT_CONFIG_KEY_0; git diff",
      "readonly GIT_DIR=x; git log",
      "read GIT_EXTERNAL_DIFF <<< ./evil.sh; git diff",
      ": ${GIT_EXTERNAL_DIFF:=./evil.sh}; git diff",
      "GIT_TRACE=$PWD/PWN git status",
      "GIT_TRACE2_EVENT=$PWD/PWN git status",
    ),
    lines(
      "options that run or write",
      "run or write",
      "git diff --ext-diff",
      "git log -p --ext-diff",
      "git show --textconv",
      "git blame --textconv f.x",
      "git grep -O./evil.sh 1",
      "git grep --open-files-in-pager=./evil.sh 1",
      "git diff --output=PWN",
      "git log --output PWN",
      "git log --show-signature",
      "git log --format=%G?",
      "git for-each-ref --format='%(signature)'",
      "git archive -o PWN HEAD",
      "git bundle create PWN HEAD",
      "git format-patch -1",
      "git difftool -x ./evil.sh",
      "git rebase -x ./evil.sh",
      "git bisect run ./evil.sh",
      "git submodule foreach touch PWN",
      "git stash",
      "git gc",
      "git fetch",
      "git remote update",
      "git remote show o",
      "git config x.y z",
      "git branch new",
      "git tag new",
      "git commit -am x",
      "git checkout f.x",
      "git worktree add PWN",
      "git notes add",
      "git update-index --refresh",
      "git hash-object -w f.x",
      "git maintenance run",
      "git help -w log",
      "git credential fill",
      "git daemon",
      "git upload-pack .",
      "git ls-remote ext::./evil.sh",
      "git clone . PWN",
    ),
    lines(
      "files outside",
      "are read",
      "git diff --no-index f.x ../outside.txt",
      "git diff --no-index /dev/null ../outside.txt",
      "git diff -O../outside.txt",
      "git grep -f ../outside.txt 1",
      "git blame --contents ../outside.txt f.x",
      "git config --file ../outside.txt -l",
      "git config --blob HEAD:f.x -l",
      "git ls-files -X ../outside.txt",
      "git log -- ../outside.txt",
      "git check-ignore -v ../outside.txt",
      "git apply --check ../outside.txt",
      "git mailinfo a b < ../outside.txt",
    ),
  ]);

  test("variables that this process was given: never reach a reading command", async () => {
    const here = scene();
    repository(here);
    outside(here);
    const file = here.path("PWN");
    const env = {
      PATH: process.env.PATH,
      GIT_EXTERNAL_DIFF: here.path("evil.sh"),
      GIT_DIR: join(here.outer, "private/.git"),
      GIT_WORK_TREE: join(here.outer, "private"),
      GIT_CONFIG_COUNT: "9",
      GIT_CONFIG_KEY_8: "core.fsmonitor",
      GIT_CONFIG_VALUE_8: here.path("evil.sh"),
      GIT_CONFIG_PARAMETERS: "'diff.external=./evil.sh'",
      GIT_OBJECT_DIRECTORY: join(here.outer, "private/.git/objects"),
      GIT_ALTERNATE_OBJECT_DIRECTORIES: join(here.outer, "private/.git/objects"),
      GIT_EXEC_PATH: here.root,
      GIT_TRACE: file,
      GIT_TRACE2: file,
      GIT_PAGER: "touch PWN",
      GIT_SSH_COMMAND: "touch PWN",
      GIT_INDEX_FILE: file,
      GIT_COMMON_DIR: join(here.outer, "private/.git"),
      GIT_OPTIONAL_LOCKS: "1",
    };
    const after = await attack(here, {
      ...READING,
      env,
      calls: [bash("git log -p"), bash("git diff"), bash("git status --short"), bash("git rev-parse --show-toplevel")],
    });
    expect(after.outcomes).toEqual(["ok", "ok", "ok", "ok"]);
    expect(after.outputs[3]).toBe(`${here.root}\n`);
  });

  test.each([
    ["that only reads", ["Read", "Bash(git commit *)"]],
    ["that writes files", ["Read", "Edit", "Write", "Bash(git commit *)"]],
  ])("the user's editor in a stage %s: never reads commands from a pipe", async (_, allowedTools) => {
    const here = scene();
    repository(here);
    setting(here, "[user]\n\tname = a\n\temail = a@b");
    // As vi and ed do.
    here.put("editor.sh", "#!/bin/sh\nsh\n");
    chmodSync(here.path("editor.sh"), 0o755);
    const editor = here.path("editor.sh");
    writeFileSync(join(here.outer, ".gitconfig"), `[core]\n\teditor = ${editor}\n`);
    const after = await attack(here, {
      allowedTools,
      env: {
        PATH: process.env.PATH,
        HOME: here.outer,
        EDITOR: editor,
        VISUAL: editor,
        GIT_EDITOR: editor,
        GIT_CONFIG_PARAMETERS: `'core.editor=${editor}'`,
      },
      calls: ["git commit -a", "git commit --allow-empty"].map((line) => bash(`echo 'touch PWN' | ${line}`)),
      mayWrite: [".git"],
    });
    expect(after.outputs.map(String).join()).toMatch(/(Aborting commit due to empty commit message.*){2}/s);
  });

  test("an editor that a granted line names itself is used", async () => {
    const here = scene();
    repository(here);
    setting(here, "[user]\n\tname = a\n\temail = a@b");
    const line = `git -c core.editor="printf message >" commit -q --allow-empty && git log -1 --format=%s`;
    const after = await attack(here, {
      allowedTools: ["Read"],
      env: {
        PATH: process.env.PATH,
        HOME: here.outer,
        GIT_CONFIG_COUNT: "1",
        GIT_CONFIG_KEY_0: "a.b",
        GIT_CONFIG_VALUE_0: "c",
      },
      calls: [bash(line)],
      interactors: [approving()],
      mayWrite: [".git"],
    });
    expect(after.outputs).toEqual([expect.stringContaining("message")]);
  });

  test("tags that lead to files, shown by what refs are called: never show what is not in scope", async () => {
    const here = scene();
    repository(here);
    shell(here.root, "git tag -a key -m key $(git rev-parse HEAD:secret.txt)");
    const lines = ["--tags -- src", "--all -- src", "--glob=refs/tags/* -- src", "--branches", "--remotes"];
    const after = await attack(here, {
      allowedTools: ["Bash", "Read(src/**)"],
      calls: [...lines.map((words) => bash(`git show ${words}`)), bash("git log --tags --oneline -- src")],
    });
    expect(after.outcomes).toEqual([...lines.map(() => "no_interactor"), "ok"]);
    expect(JSON.stringify(after.outputs)).not.toContain(INSIDE);
  });

  test("a listed command that feeds xargs is compared with its rule as it is written", async () => {
    const here = scene();
    repository(here);
    const lines = [
      "git ls-files | xargs wc -l",
      "git ls-files '*.ts' | xargs grep -l export",
      "git diff --name-only | xargs ls -l",
      "git grep -l export | xargs head -n 1",
    ];
    const rules = ["ls-files", "diff", "grep"].map((name) => `Bash(git ${name} *)`);
    const after = await attack(here, { allowedTools: ["Read", ...rules], calls: lines.map(bash) });
    expect(after.outcomes).toEqual(["ok", "ok", "ok", "ok"]);
  });

  test("a branch called like a folder: never shows more than the folder", async () => {
    const here = scene();
    repository(here);
    shell(
      here.root,
      "git branch src/feature && git tag src/blob $(git rev-parse HEAD:secret.txt) && git tag -f src/b.ts $(git rev-parse HEAD:secret.txt)",
    );
    const lines = [
      "git show src/feature",
      "git log -p src/feature",
      "git diff src/feature~1 src/feature",
      "git grep INSIDE src/feature",
      "git cat-file -p src/blob",
      "git cat-file -p src/b.ts",
      "git show src/blob",
      "git show HEAD:secret.txt",
      "git diff",
      "git log -p",
      "git show src/../secret.txt",
    ];
    const after = await attack(here, { allowedTools: ["Bash", "Read(src/**)"], calls: lines.map(bash) });
    expect(after.sent).not.toContain(INSIDE);
  });

  test("lets no content of other files be guessed: never an answer to a pattern", async () => {
    const here = scene();
    repository(here);
    here.put("secret.txt", "password=hunter2\n");
    const lines = [
      "git diff --numstat -I ^password=h",
      "git diff --stat --ignore-matching-lines=^password=h",
      "git log --numstat -I ^INSIDE",
      "git log --name-only -S INSIDE",
      "git log --name-only -G INSIDE",
      "git whatchanged --numstat -I ^INSIDE",
      "git stash show --numstat -I ^password=h",
    ];
    const narrow = { allowedTools: ["Bash", "Read(src/**)"] };
    const guessed = await attack(here, { ...narrow, calls: lines.map(bash) });
    expect(guessed.outcomes).toEqual(lines.map(() => "no_interactor"));
    const own = ["git diff --numstat -I ^password=h -- src", "git log --numstat -I ^x -- src", "git diff --numstat"];
    const allowed = await attack(here, { ...narrow, calls: own.map(bash) });
    expect(allowed.outcomes).toEqual(["ok", "ok", "ok"]);
  });
});

describe("a run store that was committed", () => {
  const PLANTED = "planted-in-the-store";
  /** A repository with the store in its history, in a change, and in a stash; with the names of its objects. */
  const committed = (here: Scene) => {
    repository(here);
    const host = sqliteHost(here.path(".sluice/store"));
    here.put(".sluice/store/x", `${PLANTED}\n`);
    shell(here.root, "git add -f .sluice/store/x && git commit -qm store");
    here.put("src/b.ts", "export const b = 2;\n");
    here.put(".sluice/store/x", `${PLANTED} changed\n`);
    shell(here.root, "git commit -qam two && echo 3 >> src/b.ts && echo 3 >> .sluice/store/x && git stash -q");
    const [blob = "", tree = "", before = ""] = shell(
      here.root,
      "git rev-parse HEAD:.sluice/store/x HEAD:.sluice HEAD~1:.sluice/store/x",
    ).split("\n");
    return { host, blob, tree, before };
  };
  const asked = async (
    lines: (names: ReturnType<typeof committed>) => readonly string[],
    leave?: (here: Scene) => void,
  ) => {
    const here = scene();
    const names = committed(here);
    leave?.(here);
    const sent = lines(names);
    const after = await attack(here, { ...READING, host: () => names.host, calls: sent.map(bash) });
    return { leaked: sent.filter((_, at) => JSON.stringify(after.outputs[at]).includes(PLANTED)), ...after, sent };
  };

  test("is in nothing that git shows of the history", async () => {
    const { leaked } = await asked(({ blob, tree, before }) => [
      "git grep planted HEAD:.sluice",
      "git grep planted HEAD:",
      "git grep planted HEAD:.sluice/store",
      "git grep planted HEAD",
      "cd .sluice && git grep planted HEAD:./",
      "git diff HEAD:src HEAD:.sluice",
      "git diff HEAD~1: HEAD:",
      "git show HEAD:src/b.ts HEAD",
      "git show HEAD:.sluice/store/x",
      "git reflog -p",
      "git reflog show -p HEAD",
      "cd src && git reflog -p",
      "git log -L1,1:.sluice/store/x",
      "cd src && git log -L1,1:../.sluice/store/x",
      "git -C src log -L1,1:../.sluice/store/x",
      "git reflog -L1,1:.sluice/store/x",
      "git stash list -p",
      "git stash list -p --diff-merges=separate",
      "git stash show -p",
      "git show stash@{0}",
      "git log -g -p refs/stash",
      `git cat-file -p ${blob}`,
      `git show ${blob}`,
      `git diff ${before} ${blob}`,
      `git grep planted ${tree}`,
      "git log -p",
      "git show HEAD",
      "git diff HEAD~1",
    ]);
    expect(leaked).toEqual([]);
  });

  test("leaves the rest of the history readable", async () => {
    const { outcomes, outputs, sent } = await asked(() => [
      "git log -p",
      "git show HEAD",
      "git show HEAD:src/b.ts HEAD",
      "git reflog -p",
      "cd src && git reflog -p",
      "git log -L1,1:src/b.ts",
      "git diff HEAD~1:src HEAD:src",
      "git grep const HEAD:src",
      "git stash list",
    ]);
    expect(outcomes).toEqual(sent.map(() => "ok"));
    for (const [at, line] of sent.slice(0, -1).entries()) expect(outputs[at], line).toContain("const b = ");
  });

  test("that is not tracked needs no leave for a stash and an object", async () => {
    const { outcomes, sent } = await asked(
      () => ["git stash list -p", "git stash show -p", "git cat-file -p HEAD", "git show HEAD^{tree}"],
      (here) => shell(here.root, "git rm -rq --cached .sluice && git commit -qm gone"),
    );
    expect(outcomes).toEqual(sent.map(() => "ok"));
  });
});

describe("names that git prints for xargs", () => {
  /** Everything that a name can lead to besides a file of the workspace that is tracked. */
  const place = (here: Scene): void => {
    repository(here);
    const outside = join(here.outer, "outside.txt");
    for (const name of ["src/gone.ts", "src/kept.ts", "src/lib/c.ts", "old/x", "old/y"]) here.put(name, "x\n");
    here.put("src/-rf", "x\n");
    here.put("-exec", "x\n");
    here.put("@options", `${outside}\n`);
    here.put("+5f", "x\n");
    here.put("new\nline", "x\n");
    symlinkSync(outside, here.path("src/link"));
    shell(here.root, "git add -f . && git commit -qm names");
    for (const name of ["src/gone.ts", "old/x"]) {
      rmSync(here.path(name));
      symlinkSync(outside, here.path(name));
    }
    rmSync(here.path("src/lib"), { recursive: true });
    symlinkSync(join(here.outer, "beside"), here.path("src/lib"));
    here.put("../beside/c.ts", `${OUTSIDE}\n`);
    // As git would print the name with a line break.
    mkdirSync(here.path('"new\\nline"'));
    shell(here.root, "git rm -rq --cached old src/kept.ts");
    rmSync(here.path("src/kept.ts"));
    symlinkSync(outside, here.path("src/kept.ts"));
    here.put(".sluice/store/blob.ts", `${INSIDE}\n`);
  };
  const PRINTERS = [
    "git ls-files",
    "git ls-files -z",
    "git ls-files -m",
    "git ls-files src '*.ts'",
    "git grep -l ''",
    "git grep -lz ''",
    "git grep -L nothing",
    "git diff --name-only",
    "git diff --name-only HEAD",
    "git diff --name-only -z HEAD~1",
    "git diff --name-only --cached",
    "git diff --name-only HEAD~1 HEAD",
    "git diff --name-only HEAD~1...HEAD -- src",
  ];
  const fed = (line: string, command: string): string => `${line} | xargs ${/-l?z/.test(line) ? "-0 " : ""}${command}`;

  test.each(["cat", "head -n 9", "grep -r .", "tail -n1", "strings", "wc -l"])(
    "%s opens nothing that is no tracked file, and no name is its option",
    async (command) => {
      const here = scene();
      place(here);
      const calls = PRINTERS.map((line) => bash(fed(line, command)));
      const after = await attack(here, { allowedTools: ["Bash", "Read"], sandbox: "off", calls });
      expect(PRINTERS.filter((_, at) => after.outcomes[at] === "no_interactor")).toEqual([]);
      expect(JSON.stringify(after.outputs)).not.toMatch(/invalid|unrecognized|unknown option/);
    },
  );

  test("never show what Read does not cover", async () => {
    const here = scene();
    place(here);
    const lines = [...PRINTERS, "git ls-files src", "git ls-files -- 'sr*'", "git diff --name-only HEAD~1 -- ."];
    const calls = lines.map((line) => bash(fed(line, "cat")));
    for (const rule of ["Read(docs/**)", "Read(src/*)", "Read(*)"]) {
      const after = await attack(here, { allowedTools: ["Bash", rule], sandbox: "off", calls });
      expect(after.outcomes).toEqual(calls.map(() => "no_interactor"));
    }
  });

  test("in another folder are not those of the root", async () => {
    const here = scene();
    repository(here);
    here.put("src/b.ts", "changed\n");
    here.put("src/src/b.ts", "another\n");
    const lines = [
      "cd src && git diff --name-only | xargs cat",
      "git -C src ls-files | xargs cat",
      "git -C src diff --name-only | xargs cat",
      "cd src && git ls-files --full-name | xargs cat",
      "cd src && git diff --name-only --relative | xargs cat",
      "cd src && git ls-files | xargs cat",
    ];
    const after = await attack(here, { allowedTools: ["Bash"], sandbox: "off", calls: lines.map(bash) });
    expect(after.outcomes.slice(0, 4)).toEqual(lines.slice(0, 4).map(() => "no_interactor"));
    expect(after.outputs.slice(4)).toEqual(["changed\n", "changed\n"]);
  });

  test("are the tracked files", async () => {
    const here = scene();
    repository(here);
    here.put("src/b.ts", "changed\n");
    here.put("src/ä b.ts", "foo\n");
    here.put("src/untracked/c.ts", "foo\n");
    shell(here.root, "git add 'src/ä b.ts'");
    const lines = [
      "git ls-files 'src/*.ts' | xargs wc -l",
      "git ls-files '*.ts' | xargs grep -n foo",
      "git ls-files -z src | xargs -0 wc -l",
      "git ls-files | grep src | head -1 | xargs cat",
      "git diff --name-only | xargs cat",
      "git diff --name-only HEAD -- src | xargs -I{} cat {}",
      "git grep -l foo | xargs cat",
    ];
    const after = await attack(here, {
      allowedTools: ["Bash", "Read"],
      sandbox: "off",
      calls: lines.map(bash),
    });
    expect(after.outputs).toEqual([
      expect.stringMatching(/1 src\/b\.ts\n.*1 src\/ä b\.ts\n.*2 total/s),
      "src/ä b.ts:1:foo\n",
      expect.stringMatching(/1 src\/b\.ts\n.*1 src\/ä b\.ts\n.*2 total/s),
      "changed\n",
      "2\nchanged\n",
      "changed\nfoo\n",
      "foo\n",
    ]);
    const narrow = await attack(here, {
      allowedTools: ["Bash", "Read(src/**)"],
      sandbox: "off",
      calls: ["git ls-files src | xargs wc -l", "git diff --name-only -- src | xargs cat"].map(bash),
    });
    expect(narrow.outcomes).toEqual(["ok", "ok"]);
  });
});
