import { rmSync, symlinkSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { packageScript } from "../../packages/stages/src/tools/bash/language/package-script.ts";
import { attacks, bash, nothingRan, type Row, scene, write } from "../support/attack.ts";
import { lineIn } from "../support/lines.ts";
import { missingProgram } from "../support/programs.ts";

// Rules with a `*` in a stage that may not write, without a sandbox: the model chooses the words that the `*` covers.

const refused = (name: string, rules: readonly string[], ...commands: readonly string[]): Row => ({
  name,
  never: "has an effect",
  sandbox: "off",
  env: { PATH: process.env.PATH },
  allowedTools: ["Read", ...rules.map((rule) => `Bash(${rule})`)],
  calls: commands.map(bash),
  outcomes: commands.map(() => "no_interactor"),
  look: nothingRan,
});

const runs = (name: string, rules: readonly string[], ...commands: readonly string[]): Row => {
  const here = commands.filter((line) => missingProgram(line) === undefined);
  return {
    name,
    never: "needs a grant",
    sandbox: "off",
    env: { PATH: process.env.PATH, HOME: "/nonexistent" },
    allowedTools: ["Read", ...rules.map((rule) => `Bash(${rule})`)],
    calls: here.map(bash),
    look: ({ outcomes }) => expect(here.filter((_, at) => outcomes[at] === "no_interactor")).toEqual([]),
  };
};

describe("a rule for a command that can only read covers no other form of it", () => {
  attacks({}, [
    refused(
      "whose words alone are no whole command",
      ["sed -n *", "sed -E *", "awk -F, *", "awk -F , *", "xxd -l *", "uniq -f *", "tee -a *", "gzip -c *"],
      "sed -n '1e touch PWN' a.txt",
      "sed -n 'w PWN' a.txt",
      "sed -E '1e touch PWN' a.txt",
      `awk -F, 'BEGIN{system("touch PWN")}'`,
      `awk -F , 'BEGIN{print > "PWN"}'`,
      "xxd -l 4 a.txt PWN",
      "uniq -f 0 a.txt PWN",
      "tee -a PWN",
      "gzip -c a.txt",
    ),
    refused(
      "with many words",
      ["awk -F , -v OFS=, *", "sed -n -E -s -u *", "xxd -c 16 -g 1 *", "uniq -c -f 0 -s 0 *"],
      `awk -F , -v OFS=, 'BEGIN{system("touch PWN")}'`,
      "sed -n -E -s -u '1e touch PWN' a.txt",
      "xxd -c 16 -g 1 a.txt PWN",
      "uniq -c -f 0 -s 0 a.txt PWN",
    ),
    refused(
      "with a star in the middle",
      ["awk * data.csv", "sed * a.txt", "xxd * *", "git config * *", "* a.txt PWN"],
      `awk 'BEGIN{system("touch PWN")}' data.csv`,
      "sed '1e touch PWN' a.txt",
      "sed 'w PWN' a.txt",
      "xxd a.txt PWN",
      "git config core.fsmonitor ./a.txt",
      "uniq a.txt PWN",
    ),
    refused(
      "whose program has a path",
      ["/bin/sed *", "/usr/bin/sed *", "/usr/../usr/bin/awk *", "/opt/tools/bin/sed *"],
      "/bin/sed 'w PWN' a.txt",
      "/usr/bin/sed 'w PWN' a.txt",
      `/usr/../usr/bin/awk 'BEGIN{system("touch PWN")}'`,
      "/opt/tools/bin/sed 'w PWN' a.txt",
    ),
    refused(
      "of git",
      [
        ...["git config *", "git symbolic-ref *", "git branch -v *", "git tag -n *", "git remote -v *", "git reflog *"],
        ...["git -C src config *", "git --git-dir .git config *", "git --no-pager -c color.ui=false branch *"],
      ],
      "git config core.hooksPath src",
      "git config core.fsmonitor ./a.txt",
      "git config alias.st '!touch PWN'",
      "git symbolic-ref HEAD refs/heads/other",
      "git branch -v PWN",
      "git tag -n PWN",
      "git remote -v add PWN y",
      "git reflog expire HEAD",
      "git -C src config core.pager src/x",
      "git --git-dir .git config core.pager src/x",
      "git --no-pager -c color.ui=false branch PWN",
    ),
    runs(
      "and covers what it does else",
      ["sed -n *", "sed * a.txt", "awk -F , -v OFS=, *", "/bin/cat *", "xxd -l *", "uniq -f *"],
      "sed -n 1p a.txt",
      "sed 's/a/b/' a.txt",
      "awk -F , -v OFS=, '{print $1}' a.txt",
      "/bin/cat a.txt",
      "xxd -l 4 a.txt",
      "uniq -f 0 a.txt",
    ),
    runs(
      "if the rule does not list each word of it",
      ["sed -i s/a/b/ b.txt", "git config user.name bot", "git branch topic", "uniq a.txt c.txt"],
      "sed -i s/a/b/ b.txt",
      "git config user.name bot",
      "git branch topic",
      "uniq a.txt c.txt",
    ),
    runs(
      "and a program in front that runs the command makes no difference",
      ["timeout 60 node a.js", "touch a.txt"],
      "timeout 60 node a.js",
      "node a.js",
      "nice timeout 5 touch a.txt",
    ),
    runs(
      "but a command that has no such form may do what it does",
      ["git add *", "git commit *", "git checkout *", "touch *", "make *", "node *"],
      "git add a.txt",
      "git commit a.txt",
      "git checkout other",
      "touch a.txt",
      "make check",
      "node a.js",
    ),
  ]);

  test("a program of the workspace is none that is known", () => {
    const here = scene();
    here.put("tools/diff", "");
    expect(lineIn(here.root, "tools/diff a.txt b.txt")).not.toContainEqual(
      expect.objectContaining({ hasReadingForms: true }),
    );
  });

  test("a known program is the same by another path to it", () => {
    expect(lineIn(scene().root, "/bin/cat a.txt")).toContainEqual(
      expect.objectContaining({ argv: ["/bin/cat", "a.txt"], readOnly: true }),
    );
  });
});

describe("a rule of a command that runs or writes something covers no option that names what", () => {
  attacks({}, [
    refused(
      "by a subcommand of git whose other commands read, and by another build of a program that reads",
      ["git stash *", "git worktree *", "nawk *", "gsed *"],
      "git stash",
      "git stash drop",
      "git worktree add ../PWN",
      "nawk 'BEGIN{system(\"touch PWN\")}'",
      "gsed -n '1e touch PWN' a.txt",
    ),
    refused(
      "by a file of options behind an option of another program",
      ["yarn tsc *", "npx tsc *", "npm test *"],
      "yarn tsc -w @src/args.txt",
      "npx tsc -w @src/args.txt",
      "npm test -- -w @src/args.txt",
    ),
    refused(
      "by a letter that is harmless elsewhere",
      ["git rebase *", "mvn test *", "dotnet test *", "kubectl get *", "docker run *", "gdb *", "robot *", "ninja *"],
      "git rebase -x 'touch PWN' HEAD~1",
      "git rebase -qx 'touch PWN' HEAD~1",
      "mvn test -s src/settings.xml",
      "dotnet test -s src/evil.runsettings",
      "kubectl get pods -s http://localhost:9",
      "docker run -v /:/host alpine",
      "gdb -x src/evil.gdb",
      "robot -x PWN tests",
      "ninja -t clean",
    ),
    refused(
      "behind or within one that is harmless",
      ["npx vitest *", "pytest *", "make *", "npx vitest --reporter *", "uv run pytest *"],
      "npx vitest -tc src/x.mjs",
      "npx vitest -t -c src/x.mjs",
      "npx vitest --reporter ./src/x.mjs",
      "pytest -xp src.x",
      "pytest -q -k name -c src/x.ini",
      "make -ksf src/x.mk",
      "make 'x[a!=touch PWN]'",
      "uv run pytest -p src.x",
    ),
  ]);
});

describe("a rule of a command that reads options from files", () => {
  const written: Row = {
    ...refused("that an earlier call has written", ["tsc *"], "tsc @src/args.txt", "tsc src/b.ts @src/args.txt"),
    allowedTools: ["Read", "Write(src/**)", "Bash(tsc *)"],
    calls: [write("src/args.txt", "--outDir ../out src/b.ts"), bash("tsc @src/args.txt")],
    outcomes: ["ok", "no_interactor"],
    look: ({ outputs }) => expect(outputs).toHaveLength(2),
  };
  attacks({}, [
    written,
    refused(
      "covers none of them",
      ["pytest *", "mypy *", "ruff check *", "gcc *", "javac *", "npx tsc *", "npm run *", "npm test *", "yarn *"],
      "pytest @src/args.txt",
      "pytest -k @src/args.txt",
      "mypy @src/args.txt",
      "ruff check @src/args.txt",
      "gcc @src/args.txt",
      "javac @src/args.txt",
      "npx tsc @src/args.txt",
      "npm run build -- @src/args.txt",
      "npm run build '-w ' @src/args.txt",
      "npm test @src/args.txt",
      "yarn build workspace @src/args.txt",
    ),
  ]);
});

describe("a rule of a script covers the options of the program that the script runs", () => {
  const subjectOf = (root: string, line: string) => lineIn(root, line).find(({ kind }) => kind === "command");
  const manifest = (scripts: object): string => JSON.stringify({ scripts });

  test("by the nearest package.json", () => {
    const here = scene();
    here.put(
      "package.json",
      manifest({
        test: "  node   --test",
        unit: "jest --ci",
        all: "tsc && NODE_ENV=test A= vitest",
        env: "cross-env A=1 mocha",
        calls: "NODE_ENV=test npm run all",
        beyond: "cd web && npm run all",
        end: "tsc;",
        quoted: "jest '--reporters=default' \"a b\" x'*'y",
        loop: "npm run loop",
      }),
    );
    here.put("docs/package.json", manifest({ test: "vitest" }));
    here.put("docs/deep/a.txt", "");
    const nodeTest = ["node", "--test"];
    for (const [line, script] of [
      ["npm test -- -t x", nodeTest],
      ["npm t -- x", nodeTest],
      ["npm test x", nodeTest],
      ["npm run test -- x", nodeTest],
      ["npm run unit -- -t x", ["jest", "--ci"]],
      ["npm run all -- x", ["vitest"]],
      ["npm run env", ["mocha"]],
      ["npm run calls -- x", ["npm", "run", "all", "\n", "vitest"]],
      ["npm run beyond -- x", ["npm", "run", "all"]],
      ["npm -s run unit -- -t x", ["jest", "--ci"]],
      ["npm run --silent unit -- -t x", ["jest", "--ci"]],
      ["npm run end -- x", []],
      ["npm run quoted -- x", ["jest", "--reporters=default", "a b", "x*y"]],
      [
        "npm run loop",
        Array.from({ length: 6 }, () => ["\n", "npm", "run", "loop"])
          .flat()
          .slice(1),
      ],
      ["cd docs && npm test -- x", ["vitest"]],
      ["cd docs/deep && npm test -- x", ["vitest"]],
      ["npm test -w a -- x", nodeTest],
    ] as const)
      expect([line, subjectOf(here.root, line)]).toEqual([line, expect.objectContaining({ script })]);
    for (const line of [
      "npm run none",
      "npm unit",
      "yarn none",
      "yarn",
      "bun test x",
      "npm install test",
      "npm --loglevel test",
      "npx test",
      "git test",
    ])
      expect([line, subjectOf(here.root, line)]).toEqual([
        line,
        expect.not.objectContaining({ script: expect.anything() }),
      ]);
  });

  test("by its name alone for all package managers but npm", () => {
    const here = scene();
    here.put(
      "package.json",
      manifest({ unit: "jest --ci", all: "yarn unit", test: "vitest", build: "vite", version: "x", deploy: "y" }),
    );
    const scriptOf = (line: string) => packageScript(line.split(" "), here.root, { root: here.root });
    expect(["yarn unit -t x", "pnpm all x", "bun unit"].map(scriptOf)).toEqual([
      ["jest", "--ci"],
      ["yarn", "unit", "\n", "jest", "--ci"],
      ["jest", "--ci"],
    ]);
    expect(["npm unit", "yarn none", "yarn", "bun test x"].map(scriptOf).filter(Boolean)).toEqual([]);
    // The package managers have commands of these names.
    expect(["bun build a.ts", "yarn version", "pnpm deploy x"].map(scriptOf).filter(Boolean)).toEqual([]);
    expect(["bun run build", "/usr/bin/pnpm run deploy", "/bin/yarn unit"].map(scriptOf)).toEqual([
      ["vite"],
      ["y"],
      ["jest", "--ci"],
    ]);
  });

  test("and of none that cannot be read", () => {
    const here = scene();
    for (const text of [
      "",
      "{",
      "[]",
      manifest([]),
      manifest({ test: 1 }),
      manifest({ test: "jest | x" }),
      manifest({ test: "(cd a && jest)" }),
      manifest({ test: "ssh box 'cd app && jest'" }),
      manifest({ test: "A='b c' jest > out" }),
      manifest({ test: "$X" }),
      manifest({ test: "jest 'a" }),
      manifest({ test: 'jest "it\'s"' }),
    ]) {
      here.put("package.json", text);
      expect(subjectOf(here.root, "npm test")).not.toHaveProperty("script");
    }
    rmSync(here.path("package.json"));
    symlinkSync("../outside.txt", here.path("package.json"));
    expect(subjectOf(here.root, "npm test")).not.toHaveProperty("script");
  });

  const effects: Row = refused(
    "and none that makes it run or write something else",
    ["npm test *", "npm run *", "tsc --noEmit *", "npm pack --dry-run *"],
    "npm test -- --run deploy",
    "npm test -- -t PWN",
    "npm run make -- -t PWN",
    "npm run mocha -- init PWN",
    "npm run all -- init PWN",
    "npm run calls -- init PWN",
    "npm run end -- touch PWN",
    "npm pack --dry-run false",
    "tsc --noEmit false",
  );
  attacks({}, [
    {
      ...effects,
      place: ({ put }) =>
        put(
          "package.json",
          manifest({
            test: "node --test",
            make: "make test",
            mocha: "mocha",
            all: "A=1 mocha",
            calls: "npm run all",
            end: "true;",
            deploy: "touch PWN",
          }),
        ),
    },
  ]);
});
