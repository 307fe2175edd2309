// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings are shell
import { chmodSync, symlinkSync } from "node:fs";
import { sqliteHost } from "@sluice/sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Attack, approving, attack, attacks, bash, nothingRan, type Row, read, scene } from "../support/attack.ts";
import { lineIn, printedLine } from "../support/lines.ts";
import { missingProgram } from "../support/programs.ts";

// Lines that say nothing of what they do: a name that gets a value, a format, a filter, a glob.

const READING = { allowedTools: ["Bash"] } as const;
const WRITING = { allowedTools: ["Bash", "Edit", "Write"] } as const;

const refused = (name: string, never: string, ...commands: readonly string[]): Row => ({
  name,
  never,
  calls: commands.map(bash),
  look: (after) => {
    expect(commands.filter((_, at) => after.outcomes[at] !== "no_interactor")).toEqual([]);
    nothingRan(after);
  },
});

const EVALUATES = [
  "RANDOM='a[$(touch PWN)]'",
  "RANDOM+='a[$(touch PWN)]'",
  "SRANDOM+='a[$(touch PWN)]'",
  "OPTIND='a[$(touch PWN)]'",
  "HISTCMD+='a[$(touch PWN)]'",
  "BASHPID+='a[$(touch PWN)]'",
  "SECONDS='a[$(touch PWN)]'; [[ -n x ]]",
  "x='a[$(touch PWN)]'; RANDOM=$x",
  "RANDOM='a[$(touch PWN)]' true",
  "for RANDOM in 'a[$(touch PWN)]'; do y=1; done",
  "for OPTIND in 'a[$(touch PWN)]'; do :; done",
  "printf -v RANDOM 'a[$(touch PWN)]'",
  "read RANDOM <<< 'a[$(touch PWN)]'",
  "export RANDOM='a[$(touch PWN)]'",
  "[[ a ]] && RANDOM='a[$(touch PWN)]'",
  "f() { RANDOM='a[$(touch PWN)]'; }; f",
];

describe("a name in which bash keeps a number", () => {
  attacks(READING, [refused("in a stage that may not write", "runs what is assigned to it", ...EVALUATES)]);
});

describe("a list of a whole tree that follows links", () => {
  const lines = ["ls -LR .", "ls -L --recursive .", "ls --recursive -L sub", "ls -lL --recursive"];
  attacks(READING, [refused("by any spelling of the options", "lists what lies outside of the workspace", ...lines)]);
});

describe("a text that is to be translated", () => {
  /** A file of translations with one of them, as msgfmt writes it. */
  const translations = (said: string, instead: string): Uint8Array => {
    const texts = [
      ["", said],
      ["Content-Type: text/plain; charset=UTF-8\n", instead],
    ] as const;
    const head = Buffer.alloc(28 + 4 * 8);
    for (const [at, word] of [0x950412de, 0, 2, 28, 28 + 16].entries()) head.writeUInt32LE(word, 4 * at);
    const bytes = texts.flat().map((text) => Buffer.from(`${text}\0`));
    let offset = head.length;
    for (const [at, text] of bytes.entries()) {
      head.writeUInt32LE(text.length - 1, 28 + 8 * at);
      head.writeUInt32LE(offset, 32 + 8 * at);
      offset += text.length;
    }
    return Buffer.concat([head, ...bytes]);
  };
  const settings = "LC_ALL=C.UTF-8\nTEXTDOMAIN=evil\nTEXTDOMAINDIR=.\n";
  const lines = [
    `${settings}x=$"hello"`,
    `${settings}[[ $"hello" ]]`,
    `${settings}x=($"hello")`,
    `${settings}for x in $"hello"; do y=1; done`,
    `${settings}echo $"hello"`,
    `${settings}case $"hello" in x) y=1;; esac`,
    'x=$"hello"',
  ];
  const row: Row = {
    ...refused("by a file of the workspace", "runs what stands in it", ...lines),
    place: (here) => {
      for (const locale of ["C.UTF-8", "C.utf8", "C"])
        here.put(`${locale}/LC_MESSAGES/evil.mo`, translations("hello", "$(touch PWN)"));
    },
  };
  attacks(READING, [row]);
});

describe("the letters that a line is read in", () => {
  attacks(READING, [
    refused(
      "changed by the line itself",
      "make other commands of the next",
      'LC_ALL=zh_TW.BIG5\nx="中\\"; touch PWN #"',
      'LANG=ja_JP.SJIS\nx="中\\"; touch PWN #"',
      'export LC_CTYPE=zh_CN.GB18030\nx="中\\"; touch PWN #"',
    ),
  ]);

  test.each<readonly [Record<string, string>, string]>([
    [{ LC_ALL: "zh_TW.BIG5" }, "C.UTF-8"],
    [{ LANG: "ja_JP.SJIS" }, "C.UTF-8"],
    [{ LC_CTYPE: "zh_TW", LANG: "en_US.UTF-8" }, "C.UTF-8"],
    [{ LC_ALL: "", LANG: "de_DE.UTF-8" }, ""],
    [{ LC_ALL: "de_DE.utf8@euro" }, "de_DE.utf8@euro"],
    [{}, ""],
  ])("%j: never is one in which a sign is half of a letter", async (env, locale) => {
    const after = await attack(scene(), {
      ...WRITING,
      env: { PATH: process.env.PATH, ...env },
      calls: [bash('echo "<$LC_ALL>"')],
    });
    expect(after.outputs).toEqual([expect.stringContaining(`<${locale}>`)]);
  });
});

describe("a format of printf that counts", () => {
  const lines = [
    "printf 'x%n' PATH; ls",
    "printf 'x%ln' PATH; ls",
    "printf 'x%-+5.3hhn' PATH; ls",
    "printf '%*s%n' 1 x PATH; ls",
    "x='%n'; printf \"a$x\" PATH; ls",
    'x=\'x%n\'; y=PATH; printf "a$x" "$y"; ls',
    "x='x%n PATH'; printf a$x; ls",
    "printf -v y 'x%n' PATH; ls",
    "printf -- 'x%n' PATH; ls",
    "command printf 'x%n' PATH; ls",
  ];
  const found = (name: string, commands: readonly string[]): Row => ({
    ...refused(name, "is found in the folder of that number", ...commands),
    place: (here) => chmodSync(here.put("1/ls", "#!/bin/sh\ntouch PWN\n"), 0o755),
  });
  attacks(READING, [found("a program", lines)]);
  const listed = { allowedTools: ["Bash(printf *)", "Bash(ls)"] };
  attacks(listed, [
    found(
      "a program beside listed ones",
      lines.filter((line) => /^(?:x=[^;]*; )?printf/.test(line)),
    ),
  ]);

  test("one that only prints needs no leave", async () => {
    const after = await attack(scene(), {
      ...READING,
      calls: ["printf '%s\\n' PATH", 'printf "n: $?\\n"', "printf '100%% now\\n'"].map(bash),
    });
    expect(after.outcomes).toEqual(["ok", "ok", "ok"]);
  });
});

describe("a filter of jq", () => {
  attacks(READING, [
    refused("that asks for the environment", "shows it", "jq -n '$ ENV'", "jq -n '$#\nENV'", "jq -n '$__prog_args'"),
    refused(
      "that asks for it among keys, texts and fields",
      "shows it",
      ...[
        "{a:env}",
        "{(env|keys[0]):1}",
        "{$ENV}",
        "{a:1,b:env}",
        "{a:if true then 1, env else 2 end}",
        "{a:if true then 1, env, 2 else 2 end}",
        "{a:[1,env]}",
        "[{a:1},env]",
        '"\\(env)"',
        '"\\("\\(env)")"',
        '"a\\\\\\(env)"',
        '{"\\(env)":1}',
        '.["\\(env)"]',
        '@base64 "\\(env)"',
        '"env" | env',
        "..env",
        "1.env",
        ". env",
        ".a[env]",
        ".a|env",
        "def f: env; f",
        ". #\\\n|env",
        "1 as $env | env",
        'include "m"; .',
        'import "m" as env; .',
        "if . then env else . end",
        '"unclosed | env',
        "(env",
        "{env",
        "é | env",
      ].map((filter) => `jq -n '${filter}'`),
    ),
  ]);
});

/** Some seds take a delimiter in brackets for a letter, others for the end: what is no script to one is another to the other. */
describe("a script of sed that two seds read differently", () => {
  attacks(READING, [
    refused(
      "by its brackets",
      "writes",
      "sed 's/[/]/g;s:w PWN:x:' a.txt",
      "sed '/[/]/p;s:w PWN:x:' a.txt",
      "sed 's/[[:alpha:]/]/g;s:w PWN:x:' a.txt",
      "sed 's/[[:alpha:][]/]/g;s:w PWN:x:' a.txt",
      "sed 's/[\\]/]/g;s:w PWN:x:' a.txt",
    ),
  ]);

  test.each(["s/[[:space:]]*$//", "s/[^]]*x/y/g", "s/[\\/]/-/g", "/[a-z]/,/[0-9]/p", "s/a[0-9]/[&]/"])(
    "%s is read by all alike",
    (script) => {
      expect(lineIn(scene().root, `sed '${script}' a.txt`)).toContainEqual(
        expect.objectContaining({ kind: "command", readOnly: true }),
      );
    },
  );
});

describe("a search of the folder that holds the run store", () => {
  const PLANTED = "planted-in-the-store";
  const FROM_ROOT = [
    ...["", ".", "./", "./.", "././.", ".//", ".//./", ".sluice", ".//.sluice", "./.sluice/", ".sluice//", ".SLUICE"],
    ...["../ws", "src/..", "./src/../.sluice", "link/", "link/.sluice", "@", "@/", "@//", "@/./.sluice"],
  ];
  const FROM_INSIDE = [
    "",
    ".",
    "././.",
    "..",
    "../",
    "..//",
    "../.sluice",
    ".././.sluice/",
    "../../ws/",
    "@",
    "@//.sluice",
  ];
  const BESIDE = ["..", "../", "..//.sluice", ".././.sluice", "@/."];
  /** Searches by a command that is made for a folder, as it is spelled in each; `@` is the root. */
  const searching = (name: string, of: (folder: string) => string): Row => {
    const lines = [
      ...FROM_ROOT.map(of),
      ...FROM_INSIDE.map((folder) => `cd .sluice && ${of(folder)}`),
      ...BESIDE.map((folder) => `cd src && ${of(folder)}`),
    ];
    return {
      name,
      never: "shows it, by any spelling of the folder",
      place: (here) => symlinkSync(".", here.path("link")),
      made: (here): Attack => ({
        ...READING,
        host: () => {
          const host = sqliteHost(here.path(".sluice/store"));
          here.put(".sluice/store/planted.txt", `${PLANTED}\n`);
          return host;
        },
        calls: lines.map((line) => bash(line.replaceAll("@", here.root))),
      }),
      look: ({ outputs }) => {
        expect(lines.filter((_, at) => JSON.stringify(outputs[at]).includes(PLANTED))).toEqual([]);
      },
    };
  };
  const SOUGHT = "'planted-in-the-[s]tore'";
  attacks({}, [
    searching("ripgrep", (folder) => `rg -a -uuu ${SOUGHT} ${folder}`),
    searching("a list of files by ripgrep", (folder) => `rg --files -uuu ${folder} | xargs cat`),
    searching("a list of found files by ripgrep", (folder) => `rg -l -a -uuu ${SOUGHT} ${folder} | xargs cat`),
    searching("ripgrep in found folders", (folder) => `find ${folder} -type d -exec rg -a -uuu ${SOUGHT} {} \\;`),
    searching("grep", (folder) => `grep -r ${SOUGHT} ${folder}`),
    searching("a list of found files by grep", (folder) => `grep -rl ${SOUGHT} ${folder} | xargs cat`),
    searching("grep in found folders", (folder) => `find ${folder} -type d -exec grep -r ${SOUGHT} {} \\;`),
    searching("find", (folder) => `find ${folder} -type f -exec cat {} +`),
    searching("a list of files by find", (folder) => `find ${folder} -type f | xargs cat`),
    searching("a comparison of folders", (folder) => `diff -rN ${folder || "."} @/docs`),
    searching("tar", (folder) => `tar -cO ${folder || "."}`),
  ]);
});

describe("ripgrep in the folder that holds the run store", () => {
  const looking = (commands: readonly string[], place?: (here: ReturnType<typeof scene>) => void): Partial<Row> => ({
    ...(place === undefined ? {} : { place }),
    made: (here): Attack => ({
      ...READING,
      host: () => sqliteHost(here.path(".sluice/store")),
      calls: commands.map(bash),
    }),
    look: (after) => {
      expect(JSON.stringify(after.outputs)).not.toContain("run.started");
    },
  });
  attacks({}, [
    {
      name: "a glob that wants what is hidden",
      never: "shows it",
      ...looking([
        "rg -a -g '*' attacked",
        "rg -a -g '**' attacked .",
        "rg -ag'.sl*' -g '**/j*' attacked",
        "rg -a --glob='.sluice/**' --glob '**' attacked",
        "rg -a --iglob '.SLUICE' --iglob '*.DB' attacked",
        "rg -a -g '{.sluice}' -g 'journal*' attacked",
        "rg -a -g '.[\\-z]luice' -g 'journal*' attacked",
        "rg -a -g '!a.txt' -g '*' attacked",
        'rg -a -g "$x" attacked',
        "rg -a --ignore-file a.txt attacked",
      ]),
    },
    ...[".ignore", ".rgignore"].map(
      (file): Row => ({
        name: `a rule in ${file}`,
        never: "shows what is hidden",
        ...looking(["rg -a attacked", "rg -a attacked .", "rg -a -g '*.db' attacked"], (here) => {
          here.put(file, "# rules\n!.sluice/\n!.sluice/**\n");
        }),
      }),
    ),
  ]);

  test.skipIf(missingProgram("rg") !== undefined)("globs that want something else need no leave", async () => {
    const here = scene();
    const after = await attack(here, {
      ...READING,
      host: () => sqliteHost(here.path(".sluice/store")),
      calls: ["rg -g '*.{ts,tsx}' attacked", "rg -g '!*.md' attacked", "rg -g 'src/**' attacked", "rg attacked"].map(
        bash,
      ),
    });
    expect(after.outcomes).not.toContain("no_interactor");
  });
});

describe("a path through the process that follows it", () => {
  attacks({ allowedTools: ["Bash", "Read"] }, [
    {
      name: "from a session that works above its own folder",
      never: "is judged by where it leads here",
      place: (here) => {
        here.put("deep/er/x.txt", "x\n");
        symlinkSync("/proc/self/cwd", here.path("cwd"));
      },
      made: (here) => {
        const own = process.cwd();
        process.chdir(here.path("deep/er"));
        onTestFinished(() => process.chdir(own));
        const paths = ["/proc/self/cwd", "/proc/thread-self/cwd", `/proc/${process.pid}/cwd`, "cwd", "src/../cwd"];
        return {
          calls: [
            ...paths.flatMap((path) => [bash(`cat ${path}/../outside.txt`), bash(`cat < ${path}/../outside.txt`)]),
            ...paths.map((path) => read(`${path}/../outside.txt`)),
          ],
        };
      },
      look: (after) => expect(new Set(after.outcomes)).toEqual(new Set(["limit"])),
    },
    {
      name: "to what only that process may see",
      never: "is shown, even when it is granted",
      interactors: [approving()],
      calls: ["cat /proc/self/environ", "cat < /proc/self/environ", "cat /dev/fd/3"].map(bash),
      outcomes: ["limit", "limit", "limit"],
    },
  ]);
});

test.each(["less a.txt", "more a.txt", "less -N -R a.txt", "cat a.txt | less", "find . -name a.txt -exec less {} +"])(
  "a pager that commands of a terminal could steer never starts: %s",
  async (line) => {
    const here = scene();
    const bin = here.put("../bin/less", "#!/bin/sh\ntouch PWN\n");
    chmodSync(bin, 0o755);
    const env = { PATH: `${here.outer}/bin:${process.env.PATH}` };
    expect(printedLine(lineIn(here.root, line, env))).toContain("/cat' '--'");
    const after = await attack(here, { ...READING, env, calls: [bash(line)] });
    expect(after.outputs).toEqual(["alpha\n"]);
  },
);

test.each([
  "printf '%s\\n' -s --help a/b | xargs -n1 basename",
  "printf '%s\\n' -z --version a/b | xargs dirname",
  "printf '%s\\n' -e '\\0' | xargs -I{} echo 'x{}'",
])("words that nobody knows are only printed: %s", async (line) => {
  const after = await attack(scene(), { ...READING, calls: [bash(line)] });
  expect(after.outcomes).not.toContain("no_interactor");
});
