// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings are shell
import { existsSync, linkSync, lstatSync, mkdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { approving, attacks, bash, edit, glob, grep, INSIDE, read, type Scene, write } from "../support/attack.ts";

const FILES = { allowedTools: ["Read", "Write", "Edit", "Grep", "Glob"], interactors: [approving()] } as const;
const link =
  (name: string, target: (here: Scene) => string) =>
  (here: Scene): void => {
    mkdirSync(join(here.path(name), ".."), { recursive: true });
    symlinkSync(target(here), here.path(name));
  };
const outside = (here: Scene): string => join(here.outer, "outside.txt");
const beside = (here: Scene): string => join(here.outer, "beside");

describe("a symbolic link in the workspace, where everything asked is approved", () => {
  attacks(FILES, [
    {
      name: "to a file outside",
      never: "is read or written through",
      place: link("leak", outside),
      calls: [read("leak"), edit("leak", "x"), write("leak"), grep({ pattern: "S", path: "leak" })],
      outcomes: ["limit", "limit", "limit", "limit"],
    },
    {
      name: "to a file outside, relative",
      never: "is read through",
      place: link("src/leak", () => "../../outside.txt"),
      calls: [read("src/leak"), write("src/leak")],
      outcomes: ["limit", "limit"],
    },
    {
      name: "to a folder outside",
      never: "is read, searched, listed or written through",
      place: link("leak", beside),
      calls: [
        read("leak/deep.txt"),
        grep({ pattern: "S", path: "leak" }),
        glob("*", "leak"),
        write("leak/new.txt"),
        write("leak/a/b/new.txt"),
      ],
      outcomes: ["limit", "limit", "limit", "limit", "limit"],
    },
    {
      name: "hooks of git that are a link to a folder of the workspace",
      never: "are written through it",
      place: (here) => {
        here.put(".githooks/pre-commit", "true");
        link(".git/hooks", () => "../.githooks")(here);
      },
      calls: [write(".githooks/pre-commit"), write(".githooks/post-commit")],
      outcomes: ["limit", "limit"],
    },
    {
      name: "to the root",
      never: "opens the whole disk",
      place: link("leak", () => "/"),
      calls: [read("leak/etc/passwd"), glob("**", "leak"), write("leak/tmp/new")],
      outcomes: ["limit", "limit", "limit"],
    },
    {
      name: "a link to a link to a file outside",
      never: "is followed",
      place: (here) => {
        link("one", outside)(here);
        link("two", () => "one")(here);
        link("three", (at) => at.path("two"))(here);
      },
      calls: [read("three"), write("three")],
      outcomes: ["limit", "limit"],
    },
    {
      name: "to itself",
      never: "holds the run",
      place: (here) => {
        link("round", () => "round")(here);
        link("a/b", () => "../c")(here);
        link("c", () => "a/b")(here);
      },
      calls: [read("round"), write("round/x"), read("c"), glob("**")],
      look: (after) => expect(after.outcomes).toEqual(["limit", "limit", "limit", "ok"]),
    },
    {
      name: "to nothing yet, outside",
      never: "makes a file there",
      place: link("later", (here) => join(here.outer, "made.txt")),
      calls: [write("later"), write("later/x")],
      outcomes: ["limit", "limit"],
      look: (_after, here) => expect(existsSync(join(here.outer, "made.txt"))).toBe(false),
    },
    {
      name: "to nothing yet, through a folder that does not exist",
      never: "climbs back",
      place: link("later", () => "nope/../../made.txt"),
      calls: [write("later")],
      outcomes: ["limit"],
    },
    {
      name: "to git's settings",
      never: "is written through",
      place: (here) => {
        link("config", () => ".git/config")(here);
        link("hooks", () => ".git")(here);
      },
      calls: [read("config"), edit("config", "[core]"), write("hooks/hooks/pre-commit")],
      outcomes: ["ok", "limit", "limit"],
    },
    {
      name: "to Sluice's settings",
      never: "is written through",
      place: (here) => {
        link("one", () => "sluice.config.ts")(here);
        link("two", () => ".sluice/pipelines")(here);
      },
      calls: [read("one"), edit("one", "config"), write("two/new.ts")],
      outcomes: ["ok", "limit", "limit"],
    },
    {
      name: "a .sluice that is one",
      never: "is written by the name it leads to",
      place: (here) => {
        mkdirSync(here.path("data"));
        link("nested/.sluice", () => "../data")(here);
      },
      calls: [write("nested/.sluice/pipelines/x.ts")],
      look: (after, here) => {
        expect(
          existsSync(here.path("data/pipelines/x.ts")) &&
            after.outcomes[0] === "ok" &&
            existsSync(here.path(".sluice/pipelines/x.ts")),
        ).toBe(false);
      },
    },
    {
      name: "a sluice.config that is one",
      never: "is written by the name it leads to",
      place: link("sluice.config.mjs", () => "src/b.ts"),
      calls: [read("src/b.ts"), edit("src/b.ts", "b = 1")],
      outcomes: ["ok", "limit"],
    },
    {
      name: "the settings in .sluice that are one",
      never: "are written by the folder they lead to",
      place: (here) => {
        rmSync(here.path(".sluice"), { recursive: true });
        link(".sluice", () => "src")(here);
      },
      calls: [edit("src/b.ts", "b = 1"), write("src/pipelines/x.ts")],
      outcomes: ["limit", "limit"],
    },
    {
      name: "the folder of pipelines that is one",
      never: "is written by the folder it leads to",
      place: (here) => {
        rmSync(here.path(".sluice/pipelines"), { recursive: true });
        link(".sluice/pipelines", () => "../src")(here);
      },
      calls: [edit("src/b.ts", "b = 1")],
      outcomes: ["limit"],
    },
    {
      name: "to /proc",
      never: "shows this process",
      place: (here) => {
        link("env", () => "/proc/self/environ")(here);
        link("cwd", () => "/proc/self/cwd")(here);
        link("fd", () => "/proc/self/fd/1")(here);
      },
      calls: [read("env"), read("cwd/../outside.txt"), write("fd")],
      outcomes: ["limit", "limit", "limit"],
    },
    {
      name: "with a line break and escapes in its target",
      never: "is followed or shown as it is",
      place: link("odd", (here) => `${here.outer}/\u001b[31m\n/outside.txt`),
      calls: [read("odd"), glob("odd*")],
      look: (after) => expect(after.outcomes[0]).toBe("limit"),
    },
    {
      name: "in a folder that is searched",
      never: "is followed by the search",
      place: (here) => {
        link("src/leak", outside)(here);
        link("src/folder", beside)(here);
      },
      calls: [
        grep({ pattern: "SECRET", path: "src", output_mode: "content" }),
        grep({ pattern: "OUTSIDE" }),
        glob("**/deep.txt"),
        glob("src/folder/*"),
      ],
      look: (after) => expect(JSON.stringify(after.outputs)).not.toContain("deep.txt\\n"),
    },
    {
      name: "as .gitignore, to a file outside",
      never: "is read for rules",
      place: link("src/.gitignore", outside),
      calls: [glob("src/*")],
      outcomes: ["ok"],
    },
    {
      name: "with the workspace as its target, further down",
      never: "makes two files of one for scopes",
      allowedTools: ["Write(src/**)", "Read"],
      interactors: [],
      place: link("src/up", () => ".."),
      calls: [write("src/up/evil.txt"), read("src/up/a.txt")],
      outcomes: ["no_interactor", "ok"],
    },
    {
      name: "between two folders of the workspace",
      never: "lends one's scope to the other",
      allowedTools: ["Write(src/**)", "Read(src/**)"],
      interactors: [],
      place: (here) => {
        link("src/docs", () => "../docs")(here);
        link("src/s", () => "../secret.txt")(here);
      },
      calls: [write("src/docs/new.md"), read("src/s")],
      outcomes: ["no_interactor", "no_interactor"],
      look: (after) => expect(after.sent).not.toContain(INSIDE),
    },
  ]);
});

describe("a symbolic link under a command that reads, with no one there", () => {
  const READING = { allowedTools: ["Bash"] } as const;
  const links = (here: Scene): void => {
    link("links/leak", outside)(here);
    link("links/[aX]", outside)(here);
    link("links/x\\y", outside)(here);
    link("links/-", outside)(here);
    link("links/folder", beside)(here);
    link("down", () => "deep/er/dir")(here);
    mkdirSync(here.path("deep/er/dir"), { recursive: true });
    mkdirSync(here.path("empty"));
  };
  const lines = (name: string, never: string, ...commands: readonly string[]) => ({
    name,
    never,
    place: links,
    calls: commands.map(bash),
  });
  attacks(READING, [
    lines(
      "named",
      "is read through",
      "cat links/leak",
      "head -n1 links/folder/deep.txt",
      "cat < links/leak",
      "cat ./links/../links/leak",
    ),
    lines(
      "matched by a star",
      "is read through",
      "cat links/*",
      "cat l*/l*",
      "cat links/le*",
      "cat */leak",
      "wc -c links/*k",
      "cat links/folder/*",
    ),
    lines(
      "matched by brackets",
      "is read through",
      "cat links/[l]eak",
      "cat links/[[:alpha:]]eak",
      "cat links/[^a]eak",
      "cat links/[!a]eak",
      "cat links/[a-z]eak",
      "cat links/[[.l.]]eak",
      "cat links/[[=l=]]eak",
      "cat links/[k-m]*",
    ),
    lines(
      "whose name holds brackets, quoted in part",
      "is read through",
      "cat links/'[a'*']'",
      "cat links/\\[a*",
      'cat links/"[a"?]',
      "cat links/[+'-',]",
      "cat links/'x\\'*",
      "cat links/x\\\\*",
    ),
    lines(
      "in a folder that is given to diff",
      "is read through",
      "diff -N links empty",
      "diff empty links",
      "diff -N links/ ./empty/",
      "diff --from-file=links -N empty",
      "diff -N l* empty",
      "diff -N empty li?ks",
      "diff leak links",
      "diff -u -N -s links empty",
    ),
    lines(
      "beside the other operand of diff",
      "is read through",
      "cd empty && diff -N ../links .",
      "diff -N /dev/null links/leak",
    ),
    lines(
      "behind a folder that was entered",
      "is a way out",
      "cd down && cat ../../outside.txt",
      "cd down && cd ../.. && cat outside.txt",
      "cd links/folder && cat deep.txt",
      "cd down/..; cat outside.txt",
      "cd -P down && cat ../../../../outside.txt",
    ),
    lines(
      "handed on by another command",
      "is read through",
      "ls links/leak | xargs cat",
      "find links -name leak -exec cat {} +",
      "find -L links -type f",
      'for f in links/*; do cat "$f"; done',
      'while read -r f; do cat "$f"; done <<< links/leak',
      "cat $(echo links/leak)",
      "x=links/leak; cat $x",
    ),
    lines(
      "in braces and expansions",
      "is read through",
      "cat {links,src}/leak",
      "cat links/{leak,x}",
      "cat ${x:-links/leak}",
      'cat "links/"l*',
      "cat $'links/leak'",
    ),
    lines(
      "compared, tested or measured",
      "is read through",
      "cmp links/leak a.txt",
      "stat -L links/leak",
      "od -c links/leak",
      "base64 links/leak",
      "sha256sum links/*",
      "jq -R . links/leak",
      "test -s links/leak",
      "sort links/leak links/leak",
      "tail -c +1 links/leak",
      "diff links/leak a.txt",
    ),
  ]);
});

describe("a hard link to a file outside, which nothing can tell from a file of the workspace", () => {
  const hard = (here: Scene): void => {
    writeBeside(here);
    linkSync(join(here.outer, "shared.txt"), here.path("shared.txt"));
  };
  const writeBeside = (here: Scene): void => {
    here.put("../shared.txt", "shared\n");
  };
  attacks(FILES, [
    {
      name: "Edit",
      never: "changes the file outside",
      place: hard,
      calls: [read("shared.txt"), edit("shared.txt", "shared")],
      outcomes: ["ok", "ok"],
      look: (_after, here) => {
        expect(readFileSync(join(here.outer, "shared.txt"), "utf8")).toBe("shared\n");
        expect(lstatSync(here.path("shared.txt")).nlink).toBe(1);
      },
    },
    {
      name: "Write",
      never: "changes the file outside",
      place: hard,
      calls: [read("shared.txt"), write("shared.txt", "new")],
      outcomes: ["ok", "ok"],
      look: (_after, here) =>
        expect([here.text("shared.txt"), here.text("../shared.txt")]).toEqual(["new", "shared\n"]),
    },
    {
      name: "a hard link to git's settings",
      never: "changes them",
      place: (here) => linkSync(here.path(".git/config"), here.path("src/config")),
      calls: [read("src/config"), edit("src/config", "[core]")],
      outcomes: ["ok", "ok"],
      look: (_after, here) => expect(here.text(".git/config")).toContain("[core]"),
    },
  ]);
});
