import { execFileSync } from "node:child_process";
import { mkdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { fileSubjects, resolveReal } from "../../packages/stages/src/tools/files/paths.ts";
import { readTool } from "../../packages/stages/src/tools/files/read.ts";
import { codeOf, stageIn, tempFolder, unprivileged } from "../support/tools.ts";

const real = (path: string, cwd: string): string => {
  const resolution = resolveReal(path, cwd);
  return resolution.ok ? resolution.real : `refused: ${resolution.reason}`;
};

test("a path is resolved through links in every part of it", () => {
  const { root, put, path } = tempFolder();
  put("src/a.ts", "");
  symlinkSync("src", path("code"));
  symlinkSync("a.ts", path("src/b.ts"));
  expect(real("code/b.ts", root)).toBe(path("src/a.ts"));
  expect(real(path("code/b.ts"), root)).toBe(path("src/a.ts"));
});

test("what does not exist is its nearest existing parent with the rest appended", () => {
  const { root, path } = tempFolder();
  mkdirSync(path("deep"));
  symlinkSync("deep", path("link"));
  expect(real("link/new/file.ts", root)).toBe(path("deep/new/file.ts"));
});

test("a link to something that does not exist yet leads where it points, not where it lies", () => {
  const { root, path } = tempFolder();
  const outside = tempFolder();
  symlinkSync(outside.path("later.txt"), path("inside.txt"));
  expect(real("inside.txt", root)).toBe(outside.path("later.txt"));
});

test("`..` behind a link goes up from where the link leads, as in the kernel", () => {
  const { root, path } = tempFolder();
  const outside = tempFolder();
  mkdirSync(outside.path("deep"));
  symlinkSync(outside.path("deep"), path("link"));
  expect(real("link/../secret", root)).toBe(outside.path("secret"));
});

test("paths that mean nothing, or nothing certain, are refused", () => {
  const { root, path } = tempFolder();
  symlinkSync("b", path("a"));
  symlinkSync("a", path("b"));
  for (const bad of ["", "a\0b", "x".repeat(5000), "a/file", "new/../file", "y".repeat(300)]) {
    expect(resolveReal(bad, root).ok, bad.slice(0, 20)).toBe(false);
  }
});

test("names in any script, with spaces and line breaks, are names like others", () => {
  const { root, put } = tempFolder();
  for (const name of ["привет.txt", "日本 語.md", "emoji🙂", "two\nlines", "e\u0301", "-rf", "~", "$(x)"]) {
    expect(real(name, root)).toBe(put(name, "x"));
  }
});

test("pipes, sockets, devices and the system's own folders are a hard limit for file tools", async () => {
  const { root, path } = tempFolder();
  execFileSync("mkfifo", [path("pipe")]);
  symlinkSync("/dev/zero", path("zero"));
  const server = createServer().listen(path("socket"));
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  const workspace = { root: "/" };
  for (const bad of [
    path("pipe"),
    path("socket"),
    path("zero"),
    "/dev/null",
    "/proc/self/environ",
    "/sys/kernel",
    "/dev/fd/0",
  ]) {
    expect(fileSubjects(bad, "read", workspace)[0]?.kind, bad).toBe("refused");
  }
  expect(fileSubjects(root, "read", workspace)).toEqual([{ kind: "path", real: root, access: "read" }]);
});

test.skipIf(process.platform === "win32")("a folder that cannot be looked into gives no path to judge", async () => {
  const { root, put } = tempFolder();
  put("closed/file.txt", "x");
  execFileSync("chmod", ["755", root]);
  execFileSync("chmod", ["000", join(root, "closed")]);
  onTestFinished(() => void execFileSync("chmod", ["755", join(root, "closed")]));
  const subjects = await unprivileged(async () => fileSubjects("closed/file.txt", "read", { root }));
  expect(subjects[0]).toMatchObject({ kind: "refused", reason: expect.stringContaining("EACCES") });
});

const swaps: readonly [string, (path: (name: string) => string, outside: string) => void][] = [
  [
    "the file itself",
    (path, outside) => {
      rmSync(path("src/a.ts"));
      symlinkSync(join(outside, "a.ts"), path("src/a.ts"));
    },
  ],
  [
    "a folder above it",
    (path, outside) => {
      renameSync(path("src"), path("moved"));
      symlinkSync(outside, path("src"));
    },
  ],
  [
    "a link on the way",
    (path, outside) => {
      rmSync(path("link"));
      symlinkSync(outside, path("link"));
    },
  ],
];
test.each(swaps)("a swap of %s between judging and reading is refused", async (_what, swap) => {
  const { root, put, path } = tempFolder();
  const outside = tempFolder();
  outside.put("a.ts", "secret");
  put("src/a.ts", "public");
  symlinkSync("src", path("link"));
  const call = stageIn({ root }).judge(readTool, { file_path: "link/a.ts" });
  swap(path, outside.root);
  const result = await call.run();
  expect(codeOf(result)).toBe("path_changed");
  expect(JSON.stringify(result)).not.toContain("secret");
});

test("a pipe that takes the file's place does not hold the call", async () => {
  const { root, put, path } = tempFolder();
  put("a.ts", "public");
  const call = stageIn({ root }).judge(readTool, { file_path: "a.ts" });
  rmSync(path("a.ts"));
  execFileSync("mkfifo", [path("a.ts")]);
  expect(codeOf(await call.run())).toBe("path_changed");
});
