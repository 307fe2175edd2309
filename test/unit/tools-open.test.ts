import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readUpTo, withFile, withFolder, withMadeFolder } from "../../packages/stages/src/tools/files/open.ts";
import { tempFolder } from "../support/tools.ts";

const contentOf = (path: string): Promise<string> =>
  withFile(path, async (file) => (await readUpTo(file, 100)).toString());

test("a judged path is never opened through a link, at its end or on the way", async () => {
  const { put, path } = tempFolder();
  put("real/file", "x");
  symlinkSync("file", path("real/link"));
  symlinkSync("real", path("folder"));
  await expect(contentOf(path("real/link"))).rejects.toMatchObject({ code: "path_changed" });
  await expect(contentOf(path("folder/file"))).rejects.toMatchObject({ code: "path_changed" });
  expect(await contentOf(path("real/file"))).toBe("x");
});

test("a pipe is refused without waiting for a writer", async () => {
  const { path } = tempFolder();
  execFileSync("mkfifo", [path("pipe")]);
  await expect(contentOf(path("pipe"))).rejects.toMatchObject({ code: "path_changed" });
});

test.runIf(process.platform === "linux")(
  "what goes through an open folder stays in it when its name is swapped",
  async () => {
    const { root, path } = tempFolder();
    const outside = tempFolder();
    mkdirSync(path("work"));
    await withFolder(path("work"), async (folder) => {
      renameSync(path("work"), path("moved"));
      symlinkSync(outside.root, path("work"));
      writeFileSync(folder.at("file"), "kept");
    });
    expect(readFileSync(join(root, "moved", "file"), "utf8")).toBe("kept");
  },
);

test("missing folders are made one below the other, and a file in the way is an error", async () => {
  const { put, path, text } = tempFolder();
  await withMadeFolder(path("a/b/c"), async (folder) => writeFileSync(folder.at("file"), "deep"));
  expect(text("a/b/c/file")).toBe("deep");
  put("plain", "x");
  await expect(withMadeFolder(path("plain/sub"), async () => undefined)).rejects.toMatchObject({
    code: "not_a_folder",
  });
  rmSync(path("a"), { recursive: true });
});
