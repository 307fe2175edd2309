import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { done, type Json, pipeline, to } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { attack, attacks, bash, nothingRan, type Row, type Scene, scene, started, write } from "../support/attack.ts";
import { caller, completed, noModel, session, work } from "../support/run-kit.ts";

// A listed command runs what it finds in its folder, which a model may have written. So a rule covers the root only, or the folder
// that it names.

const EVIL = "require('node:fs').writeFileSync('/proc/self/cwd/PWN', '')";

/** A workspace of two packages, with files in `docs` as a stage that may write there leaves them. */
function place(here: Scene): void {
  for (const folder of ["", "packages/a/"]) {
    here.put(`${folder}package.json`, JSON.stringify({ scripts: { test: "echo real" } }));
    here.put(`${folder}check.js`, "console.log('real')");
    here.put(`${folder}Makefile`, "check:\n\t@echo real\n");
  }
  here.put("docs/package.json", JSON.stringify({ scripts: { test: `node -e "${EVIL}"` } }));
  here.put("docs/check.js", EVIL);
  here.put("docs/Makefile", "check:\n\ttouch PWN\n");
  mkdirSync(here.path("docs/sub"));
  symlinkSync("docs", here.path("link"));
}

const LISTED = ["Bash(npm test)", "Bash(node check.js)", "Bash(make check)", "Bash(node *)"];
const env = { PATH: process.env.PATH, D: "docs", HOME: "/nonexistent" };

const refused = (name: string, allowedTools: readonly string[], ...commands: readonly string[]): Row => ({
  name,
  never: "runs",
  allowedTools,
  place,
  calls: commands.map(bash),
  outcomes: commands.map(() => "no_interactor"),
  look: nothingRan,
});
const runs = (name: string, allowedTools: readonly string[], ...commands: readonly string[]): Row => ({
  name,
  never: "needs a grant",
  allowedTools,
  place,
  calls: commands.map(bash),
  outcomes: commands.map(() => "ok"),
});

describe("a listed command in a folder that the stage may write", () => {
  attacks({ env }, [
    refused(
      "however the line goes there",
      ["Read", "Write(docs/**)", ...LISTED],
      "cd docs && npm test",
      "cd docs && node check.js",
      "cd docs && make check",
      "cd ./docs/ && make check",
      "cd docs; make check",
      "cd docs\nmake check",
      "(cd docs && make check)",
      "ls && (cd docs && make check) | cat",
      "! (cd docs; ! make check)",
      "bash -c 'cd docs && make check'",
      "cd docs && bash -c 'make check'",
      "cd docs && timeout 9 make check",
      "cd docs && nice env CI=1 make check",
      "cd docs && time make check 2>&1 | tail -3",
      "cd docs && cd sub && npm test",
      "cd docs/sub && npm test",
      "cd packages && cd ../docs && make check",
      "cd $D && make check",
      'cd "$D" && make check',
      "cd {docs,} && make check",
      "cd doc? && make check",
      `cd '${process.cwd()}' && make check`,
      "cd link && make check",
      "cd packages/../docs && make check",
      "cd -P docs && make check",
      "cd docs && cd - && make check",
      "pushd docs && make check",
      "env -C docs make check",
      "env --chdir=docs make check",
      'cd "$NOT_SET" && make check',
      'cd "$(echo docs)" && make check',
      "CDPATH=. cd docs && make check",
    ),
    ...[
      "Edit(docs/**)",
      "Write(docs/*.json)",
      "Write(docs/sub/**)",
      "Write({docs,src}/**)",
      "Write(d*/**/x.js)",
      "Edit(**/docs/**)",
    ].map((rule) => refused(`that ${rule} lets it write`, ["Read", rule, ...LISTED], "cd docs && make check")),
    ...["Write(docs/*)", "Edit(**/docs/*.json)"].map((rule) =>
      refused(`whose parent ${rule} lets it write`, ["Read", rule, ...LISTED], "cd docs/sub && npm test"),
    ),
    refused(
      "that another rule names",
      ["Read", "Write(docs/**)", "Bash(npm test)", "Bash(cd packages/a && make check)"],
      "cd docs && make check",
      "make check",
      "cd packages && make check",
    ),
  ]);

  test("the denial of a listed command whose files the model wrote says what to do", async () => {
    const here = scene();
    place(here);
    const script = JSON.stringify({ scripts: { test: `node -e "${EVIL}"` } });
    const after = await attack(here, {
      env,
      allowedTools: ["Read", "Write(docs/**)", "Bash(npm test)"],
      calls: [write(here.path("docs/new/package.json"), script), bash("cd docs/new && npm test"), bash("npm test")],
    });
    expect(readFileSync(here.path("docs/new/package.json"), "utf8")).toBe(script);
    expect(after.outcomes).toEqual(["ok", "no_interactor", "ok"]);
    expect(after.outputs[1]).toMatchObject({
      reason:
        "no one is available to approve this call: npm test runs in docs/new, and without a sandbox Bash(npm test) covers it only in the workspace's root: run it there, or list it with its folder, as Bash(cd docs/new && …)",
    });
  });

  test("the rule that a refusal suggests quotes a folder with blanks", async () => {
    const here = scene();
    here.put("docs/my pages/package.json", "{}");
    const allowedTools = ["Read", "Write(docs/**)", "Bash(npm test)"];
    const after = await attack(here, { env, allowedTools, calls: [bash("cd 'docs/my pages' && npm test")] });
    expect(after.outputs[0]).toMatchObject({ reason: expect.stringContaining("as Bash(cd 'docs/my pages' && …)") });
  });

  test("a person who is asked sees the line with its folder, and can grant it", async () => {
    const here = scene();
    place(here);
    here.put("docs/Makefile", "check:\n\t@echo harmless\n");
    const asked: Json[] = [];
    const after = await attack(here, {
      env,
      allowedTools: ["Read", "Write(docs/**)", "Bash(make check)"],
      calls: [bash("cd docs && make check")],
      interactors: [
        {
          name: "reading",
          answer: async ({ body }) => {
            asked.push(body);
            return { kind: "approve" };
          },
        },
      ],
    });
    expect(asked).toMatchObject([
      { input: { command: "cd docs && make check" }, why: expect.stringContaining("make check runs in docs,") },
    ]);
    expect(after.outputs).toEqual(["harmless\n"]);
  });
});

describe("a listed command in another folder than the root", () => {
  attacks({ env }, [
    refused(
      "in a stage that writes elsewhere",
      ["Read", "Write(docs/**)", "Edit(*.md)", "Edit(**/*.md)", "Edit(**/src/**)", ...LISTED],
      "cd packages/a && npm test",
      "(cd packages/a && node check.js)",
    ),
    refused("in a stage that writes nothing", ["Read", ...LISTED], "cd packages/a && npm test"),
    runs(
      "in the root",
      ["Read", "Write(docs/**)", ...LISTED],
      "make check",
      "cd docs && cd .. && make check",
      "cd . && make check",
    ),
    ...["Write(**)", "Edit(**/*)"].map((rule) =>
      runs(
        `in a stage with ${rule}, which writes the root's files too`,
        ["Read", rule, ...LISTED],
        "cd packages/a && make check",
      ),
    ),
    runs("in a writing stage", ["Read", "Edit", ...LISTED], "cd packages/a && make check"),
    runs(
      "that its rule names",
      [
        "Read",
        "Edit(packages/**)",
        "Bash(make check)",
        "Bash(cd packages/a && make *)",
        "Bash(cd ./packages/a/ && ./run.sh)",
      ],
      "cd packages/a && make check",
      "cd packages && cd a && make check | tail -1",
      "make check",
    ),
    runs(
      "that its rule names by a scope",
      ["Read", "Write(docs/**)", "Bash(cd packages/* && npm test)", "Bash(cd pack*/{a,b} && make *)"],
      "cd packages/a && npm test",
      "cd packages/a && make check",
    ),
    refused(
      "that the scope of its rule does not name",
      ["Read", "Write(docs/**)", "Bash(cd packages/* && make check)", "Bash(cd */sub && make check)"],
      "cd docs && make check",
      "make check",
      "cd packages && make check",
      "cd packages/a/../../docs && make check",
      "cd link && make check",
    ),
    runs(
      "that only reads",
      ["Read", "Write(docs/**)", "Bash(ls *)", "Bash(make check)"],
      "cd docs && ls -l",
      "cd docs && ls && cat c.md | wc -l",
    ),
  ]);

  test("a rule names a program of its folder as a line in it does", async () => {
    const here = scene();
    here.put("packages/a/run.sh", "#!/bin/sh\necho real\n");
    const after = await attack(here, {
      env,
      allowedTools: [
        "Read",
        "Edit(packages/**)",
        "Bash(cd packages/a && sh ./run.sh)",
        "Bash(cd packages && ./a/run.sh)",
      ],
      calls: [bash("cd packages/a && sh ./run.sh"), bash("cd packages && a/run.sh"), bash("packages/a/run.sh")],
    });
    expect(after.outcomes.slice(0, 2)).toEqual(["ok", "ok"].map(() => expect.not.stringMatching("no_interactor")));
    expect(after.outcomes[2]).toBe("no_interactor");
    expect(started(after)).toHaveLength(2);
  });
});

describe("an option by the * in the middle of a rule, which names what the stage may write", () => {
  attacks({ env }, [
    refused(
      "of npm, make and git",
      ["Read", "Write(docs/**)", "Bash(npm * test)", "Bash(make * check)", "Bash(git * HEAD)"],
      "npm --prefix=docs test",
      "make -fdocs/Makefile check",
      "make --directory=docs check",
      "make SHELL=docs/check.js check",
      "make SHELL:=docs/check.js check",
      "make 'X!=touch PWN' check",
      "make 'a.b!=touch PWN' check",
      "make '.SHELLFLAGS=-c \"touch PWN\" --' check",
      "make ' X = $(shell touch PWN)' check",
      "git --git-dir=docs/evil HEAD",
    ),
    runs("although a word is none", ["Read", "Write(docs/**)", "Bash(npm * -- *)"], "npm test -- one.test.js --run"),
  ]);
});

test.each([
  ["writes there", "Write(docs/**)", ["check#1", "other#1"]],
  ["may write all files", "Edit", []],
])("a listed command runs in a folder, after a stage that %s", async (_what, rule, refusals) => {
  const here = scene();
  place(here);
  const listing = (allowedTools: readonly string[], line: string) =>
    work<Json>({ allowedTools, act: async (scope) => completed(await caller(scope)("Bash", { command: line })) });
  const made = pipeline({
    id: "two",
    input: z.object({}),
    initial: "write",
    stages: {
      write: listing([rule, "Bash(make check)"], "make check"),
      check: listing(["Bash(make check)"], "cd docs && make check"),
      other: listing(["Bash(make check)"], "cd packages/a && make check"),
    },
    next: { write: () => to("check"), check: () => to("other"), other: ({ output }) => done(output) },
  });
  const { denied } = await session({ model: noModel, cwd: here.root, env }).start(made, {});
  expect(denied.map(({ executionId }) => executionId)).toEqual(refusals);
  expect(existsSync(here.path("docs/PWN"))).toBe(refusals.length === 0);
});
