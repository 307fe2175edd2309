import { execFileSync } from "node:child_process";
import {
  chmodSync,
  linkSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { systemClock, type Workspace } from "@sluice/core";
import { expect, test } from "vitest";
import { watchWorkspace } from "../../packages/stages/src/tools/bash/workspace-diff.ts";
import { type TestWorkspace, tempFolder } from "../support/tools.ts";

const signal = new AbortController().signal;

async function changesBy(workspace: Workspace, act: () => void): Promise<string[]> {
  const watch = await watchWorkspace(workspace, systemClock, signal);
  act();
  const { files, complete } = await watch.changes(signal);
  expect(complete).toBe(true);
  return files.map(({ path, how }) => `${path} ${how}`);
}

const cases: readonly [string, (folder: TestWorkspace) => void, readonly string[]][] = [
  ["nothing", () => undefined, []],
  ["a new file", (folder) => folder.put("new", ""), ["new created"]],
  ["a removed file", (folder) => rmSync(folder.path("a")), ["a removed"]],
  ["other content of the same length", (folder) => folder.put("a", "y"), ["a changed"]],
  [
    "a file replaced by another",
    (folder) => renameSync(folder.path("b"), folder.path("a")),
    ["a changed", "b removed"],
  ],
  ["another mode", (folder) => chmodSync(folder.path("a"), 0o700), ["a changed"]],
  ["a second name", (folder) => linkSync(folder.path("a"), folder.path("c")), ["a changed", "c created"]],
  [
    "a link turned",
    (folder) => {
      rmSync(folder.path("link"));
      symlinkSync("b", folder.path("link"));
    },
    ["link changed"],
  ],
  ["an empty folder", (folder) => mkdirSync(folder.path("dir")), ["dir created"]],
  ["a pipe", (folder) => execFileSync("mkfifo", [folder.path("pipe")]), ["pipe created"]],
  [
    "a file that came and went",
    (folder) => {
      folder.put("sub/tmp", "");
      rmSync(folder.path("sub/tmp"));
    },
    [],
  ],
  ["something git ignores", (folder) => folder.put("dist/x", ""), []],
  ["the run store", (folder) => folder.put(".sluice/store/runs.db", "y"), []],
  ["a ref", (folder) => folder.put(".git/refs/heads/new", "0"), [".git/refs/heads/new created"]],
  ["a hook", (folder) => folder.put(".git/hooks/pre-commit", "evil"), [".git/hooks/pre-commit created"]],
  ["the repository's settings", (folder) => folder.put(".git/config", "evil"), [".git/config changed"]],
  ["the repository's index", (folder) => folder.put(".git/index", "x"), []],
];
test.each(cases)("%s", async (_what, act, expected) => {
  const folder = tempFolder();
  for (const name of ["a", "b", "sub/x", "dist/y", ".sluice/store/runs.db", ".git/config", ".git/refs/heads/main"])
    folder.put(name, "x");
  folder.put(".gitignore", "dist\n");
  symlinkSync("a", folder.path("link"));
  expect(await changesBy({ root: folder.root, store: folder.path(".sluice/store") }, () => act(folder))).toEqual(
    expected,
  );
});

test("a change is seen although its times were put back", async () => {
  const folder = tempFolder();
  const path = folder.put("a", "x");
  const { atime, mtime } = statSync(path);
  const changed = await changesBy(folder, () => {
    writeFileSync(path, "y");
    utimesSync(path, atime, mtime);
  });
  expect(changed).toEqual(["a changed"]);
});

test("the refs of a linked worktree are those of its repository", async () => {
  const main = tempFolder();
  const folder = tempFolder();
  main.put(".git/refs/heads/main", "0");
  main.put(".git/worktrees/w/commondir", "../..\n");
  main.put(".git/worktrees/w/HEAD", "ref: refs/heads/w\n");
  folder.put(".git", `gitdir: ${main.path(".git/worktrees/w")}\n`);
  const changed = await changesBy(folder, () => {
    main.put(".git/refs/heads/new", "0");
    main.put(".git/worktrees/w/HEAD", "ref: refs/heads/other\n");
  });
  expect(changed).toEqual([".git/HEAD changed", `${main.path(".git")}/refs/heads/new created`]);
});

test("a .git file that points nowhere is a file like others", async () => {
  const folder = tempFolder();
  folder.put(".git", "gitdir: /nowhere/at/all\n");
  expect(await changesBy(folder, () => folder.put("a", ""))).toEqual(["a created"]);
});
