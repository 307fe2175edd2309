// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings are shell
import { existsSync, mkdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  attack,
  attacks,
  bash,
  type Call,
  edit,
  grep,
  nothingRan,
  read,
  scene,
  started,
  write,
} from "../support/attack.ts";
import { tool } from "../support/run-kit.ts";

const none = (count: number): readonly string[] => Array.from({ length: count }, () => "no_interactor");

describe("a scope of paths", () => {
  attacks({ allowedTools: ["Write(docs/*.md)", "Edit(src/**/*.ts)", "Read"] }, [
    {
      name: "a star",
      never: "crosses a folder",
      calls: [write("docs/a/b.md"), write("docs/../x.md"), write("docs/a\\b/../../../x.md")],
      look: (after) => expect(after.outcomes).not.toContain("ok"),
    },
    {
      name: "an ending",
      never: "is met by a name that goes on",
      calls: [
        write("docs/x.md.sh"),
        write("docs/x.md "),
        write("docs/x.md/y"),
        write("docs/x.MD"),
        write("docs/.md/x"),
      ],
      outcomes: none(5),
    },
    {
      name: "a folder",
      never: "is met by another in front of it",
      calls: [write("x/docs/a.md"), write("/docs/a.md"), write("docs")],
      look: (after) => expect(after.outcomes).not.toContain("ok"),
    },
    {
      name: "names that hold the signs of patterns",
      never: "mean what the signs mean",
      calls: [
        write("docs/*"),
        write("{docs,src}/x.md"),
        write("docs/**"),
        write("[d]ocs/x.md"),
        write("docs/!(x).md.ts"),
        write("?ocs/x.md"),
      ],
      outcomes: none(6),
    },
    {
      name: "two stars",
      never: "match another folder that begins alike",
      calls: [edit("src-old/b.ts", "b"), edit("srcx/y/b.ts", "b"), edit("b.ts", "b"), edit("docs/c.md", "C")],
      outcomes: none(4),
    },
    {
      name: "the scope of one tool",
      never: "is another's",
      calls: [edit("docs/c.md", "C"), write("src/new.ts"), write("src/a/new.ts")],
      outcomes: none(3),
    },
  ]);
  attacks({ allowedTools: ["Write(a/b/c/*/d/**/e)"] }, [
    {
      name: "a path of thousands of folders",
      never: "takes longer than its length times the pattern's",
      calls: [write(`${"a/".repeat(1_900)}e`), write(`a/b/c/${"d/".repeat(1_900)}f`)],
      outcomes: none(2),
    },
  ]);
});

describe("a scope of commands", () => {
  const scoped = { allowedTools: ["Bash(npm test *)", "Bash(git status)", "Bash(git * HEAD)", "Bash(echo)"] } as const;
  const lines = (name: string, never: string, ...commands: readonly string[]) => ({
    name,
    never,
    calls: commands.map(bash),
    outcomes: none(commands.length),
    look: nothingRan,
  });
  attacks(scoped, [
    lines(
      "more commands in the line",
      "run along with a listed one",
      "npm test; touch PWN",
      "npm test && touch PWN",
      "npm test || touch PWN",
      "npm test | tee PWN",
      "npm test & touch PWN",
      "npm test\ntouch PWN",
      "touch PWN; npm test",
    ),
    lines(
      "commands inside its words",
      "run along with a listed one",
      "npm test $(touch PWN)",
      "npm test `touch PWN`",
      'npm test "$(touch PWN)"',
      "npm test <(touch PWN)",
      "npm test ${x:-$(touch PWN)}",
      "npm test $((a[$(touch PWN)]))",
    ),
    lines(
      "redirections",
      "write along with a listed one",
      "npm test > PWN",
      "npm test 2> PWN",
      "npm test &>> PWN",
      "npm test >| PWN",
      "npm test > src/b.ts",
      "echo > a.txt",
      "npm test {x}> PWN",
    ),
    lines(
      "what stands in front of it",
      "changes what a listed one runs",
      "NODE_OPTIONS=--import=./evil.js npm test",
      "PATH=. npm test",
      "BASH_ENV=evil npm test",
      "npm_config_script_shell=./evil npm test",
      "LD_PRELOAD=./evil.so git status",
      "env -S 'npm test' touch PWN",
      "export PATH=.; npm test",
    ),
    lines(
      "what changes its meaning",
      "stands for a listed one",
      "npm() { touch PWN; }; npm test",
      "alias npm=touch; npm test",
      "hash -p /usr/bin/touch npm; npm test",
      "eval 'npm test; touch PWN'",
      "trap 'touch PWN' EXIT; npm test",
      "PROMPT_COMMAND='touch PWN' npm test",
      "enable -n echo; echo",
    ),
    lines(
      "another place",
      "is where a listed one runs",
      "pushd docs; npm test",
      "env -C docs npm test",
      "(cd ..; npm test)",
      "npm --prefix .. test",
    ),
    lines(
      "words that are almost the listed ones",
      "pass for them",
      "npm  test2",
      "npm tes t",
      "./npm test",
      "/tmp/npm test",
      "NPM test",
      "npm 'test '",
      "npm test2 test",
      "xnpm test",
    ),
    lines(
      "words that are only known when it runs",
      "pass for a listed word",
      "git $x HEAD",
      "git $(echo push) HEAD",
      "git {push,pull} HEAD",
      "$npm test",
      "n?m test",
      "git ${x} HEAD",
      "~/npm test",
    ),
    lines(
      "more words than listed",
      "pass where none may follow",
      "git status -- .",
      "git status -uall",
      "echo a",
      "echo -e '\\x50'",
      "git push HEAD HEAD",
    ),
    lines(
      "quotes around several words",
      "make one command of them",
      "'npm test'",
      '"git status"',
      "npm\\ test",
      "$'npm' 'test; touch PWN'x",
    ),
    lines(
      "a listed command as data",
      "runs something else",
      "sh -c 'npm test; touch PWN'",
      "xargs npm test < PWN; touch PWN",
      "npm test | sh",
      "echo 'touch PWN' | bash",
      "bash <<< 'touch PWN'",
      "source <(echo touch PWN)",
      ". ./a.txt",
    ),
    lines(
      "comments, continuations and strange blanks",
      "hide a command",
      "npm test # x\ntouch PWN",
      "npm test \\\n; touch PWN",
      "npm test\u00a0; touch PWN",
      "npm\u2003test",
      "npm test \r touch PWN; touch PWN",
    ),
  ]);
  test("a word in the middle: never is an option that runs a program", async () => {
    const after = await attack(scene(), {
      ...scoped,
      calls: [
        bash("git -c core.pager='touch PWN' HEAD"),
        bash("git --exec-path=. HEAD"),
        bash("git --upload-pack='touch PWN' HEAD"),
      ],
    });
    expect(after.outcomes.slice(0, 1)).toEqual(["no_interactor"]);
  });
});

describe("a pattern of names", () => {
  const server = ["mcp__files__read", "mcp__files__write", "mcp__other__read", "mcp__files_evil__read"].map((name) =>
    tool(name, { effect: "read" }),
  );
  attacks({ allowedTools: ["mcp__files__*"], tools: server }, [
    {
      name: "another server",
      never: "is covered",
      calls: [
        ["mcp__other__read", {}],
        ["mcp__files_evil__read", {}],
      ],
      outcomes: none(2),
      look: nothingRan,
    },
    {
      name: "a name with a slash or a line break",
      never: "is covered by a star",
      calls: [
        ["mcp__files__a/b", {}],
        ["mcp__files__\nread", {}],
        ["mcp__files__*", {}],
      ],
      outcomes: ["unknown_tool", "unknown_tool", "unknown_tool"],
      look: nothingRan,
    },
  ]);

  const forms = [
    "!Bash",
    "Bash(!rm *)",
    "!(Read)",
    "Re\u200bad",
    "Read(../**)",
    "Read(/etc/**)",
    "Read(~/**)",
    "Bash(npm:*)",
    "Bash()",
    "*(src/**)",
    "Read(src/{a,../b})",
    "Read(src//**)",
    "Bash(",
    "Bash)(",
    "",
    " Read",
    "Read(a",
    "Bash(git status",
    "{Read,Bash}",
    "Bash(npm test*)",
    "Read(./src/**)",
    "@(Read|Bash)",
    "Read(src/)",
    "x".repeat(600),
  ];
  test("a pattern that could be read two ways: never makes a pipeline", async () => {
    for (const pattern of forms)
      await expect(attack(scene(), { allowedTools: [pattern] }), pattern).rejects.toMatchObject({
        code: "definition_invalid",
      });
  });
});

describe("the mode of a session", () => {
  const calls: readonly Call[] = [write("new.txt"), bash("touch PWN"), read("a.txt"), grep({ pattern: "x" })];
  test.each(["yolo", "allowlist", "ask"] as const)("%s: never approves what is outside an envelope", async (mode) => {
    const here = scene();
    const after = await attack(here, {
      allowedTools: [],
      mode,
      allow: mode === "allowlist" ? ["Write", "Bash", "Read", "Grep"] : [],
      calls,
    });
    expect(after.outcomes).toEqual(none(4));
    expect(started(after)).toEqual([]);
  });
  attacks({}, [
    {
      name: "yolo without an envelope",
      never: "goes beyond a hard limit",
      mode: "yolo",
      calls: [
        write("../x"),
        write(".git/config"),
        write("sluice.config.ts"),
        read("/etc/passwd"),
        bash("cat ../outside.txt"),
        bash("sluice answer r1 x approve"),
        bash("echo x > .git/config"),
      ],
      outcomes: Array.from({ length: 7 }, () => "limit"),
      look: nothingRan,
    },
    {
      name: "an allowlist without an envelope",
      never: "lets through what it does not hold, and asks nobody",
      mode: "allowlist",
      allow: ["Read(src/**)", "Bash(git status)"],
      calls: [read("secret.txt"), bash("git status; touch PWN"), write("x")],
      outcomes: ["mode", "mode", "mode"],
      look: nothingRan,
    },
    {
      name: "ask without an envelope",
      never: "lets a writing tool or one of the program's own pass unasked",
      mode: "ask",
      tools: [tool("Own", { effect: "read" })],
      calls: [["Own", {}], write("x"), bash("true")],
      outcomes: none(3),
      look: nothingRan,
    },
    {
      name: "a tool with a built-in's name",
      never: "passes as the built-in",
      mode: "ask",
      tools: [tool("Read", { effect: "read" })],
      calls: [["Read", { file_path: "a.txt" }]],
      outcomes: none(1),
      look: nothingRan,
    },
  ]);
});

describe("a tool that does not tell the truth about what it touches", () => {
  const lying = (subjects: () => never[] | readonly unknown[]) => [
    tool("Own", { effect: "write", subjects: () => JSON.parse(JSON.stringify(subjects())) }),
  ];
  attacks({ calls: [["Own", {}]] }, [
    {
      name: "nothing, under a scope",
      never: "is inside the scope",
      allowedTools: ["Own(src/**)"],
      tools: lying(() => []),
      outcomes: none(1),
      look: nothingRan,
    },
    {
      name: "a kind nobody knows",
      never: "runs",
      allowedTools: ["Own"],
      tools: lying(() => [{ kind: "magic" }]),
      outcomes: ["limit"],
      look: nothingRan,
    },
    {
      name: "a relative path",
      never: "is judged as one of the workspace",
      allowedTools: ["Own"],
      tools: lying(() => [{ kind: "path", real: "src/../../x", access: "write" }]),
      outcomes: ["limit"],
      look: nothingRan,
    },
    {
      name: "no list at all",
      never: "runs",
      allowedTools: ["Own"],
      tools: [
        tool("Own", {
          subjects: () => {
            throw new Error("who knows");
          },
        }),
      ],
      outcomes: ["limit"],
      look: nothingRan,
    },
    {
      name: "a path whose access is neither",
      never: "is written as if it were read",
      allowedTools: ["Own"],
      tools: lying(() => [{ kind: "path", real: "/etc/passwd", access: "append" }]),
      outcomes: ["limit"],
      look: nothingRan,
    },
    {
      name: "a command without words",
      never: "runs",
      allowedTools: ["Own(npm test)"],
      tools: lying(() => [{ kind: "command", argv: [], dynamic: [], readOnly: true, assignments: [], via: [] }]),
      outcomes: none(1),
      look: nothingRan,
    },
  ]);
  test("a folder made of dots: never is the workspace's parent", async () => {
    const here = scene();
    mkdirSync(here.path("..."));
    const after = await attack(here, {
      allowedTools: ["Write(.../**)"],
      calls: [write(".../x"), write(".../../../x")],
    });
    expect(after.outcomes).toEqual(["ok", "limit"]);
    expect(existsSync(here.path(".../x"))).toBe(true);
  });
});
