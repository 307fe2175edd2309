import { symlinkSync } from "node:fs";
import { sqliteHost } from "@sluice/sqlite";
import { expect, onTestFinished, test } from "vitest";
import { filesNow } from "../../packages/stages/src/pipelines/changes.ts";
import { tempFolder } from "../support/tools.ts";

// Files that a model reports as changed, which a reviewing model reads.

test.each([
  ".git/config",
  ".sluice/state",
  "sluice.config.ts",
  "store/blobs/ab",
  "store/journal.db",
  "link",
  "../x",
  ".",
])("%s, which no stage may change, is not shown", (file) => {
  const folder = tempFolder();
  const host = sqliteHost(folder.path("store"));
  onTestFinished(() => host.close());
  for (const name of [".git/config", ".sluice/state", "sluice.config.ts", "store/blobs/ab"])
    folder.put(name, "hunter2");
  symlinkSync("store/blobs/ab", folder.path("link"));
  const shown = JSON.stringify(filesNow(folder.root, [file]));
  expect(shown).toContain('"missing"');
  expect(shown).not.toContain("hunter2");
});

test("a file beside them is shown", () => {
  const folder = tempFolder();
  folder.put("src/blobs/a.ts", "const a = 1;");
  expect(filesNow(folder.root, ["src/blobs/a.ts"])).toEqual([{ file: "src/blobs/a.ts", content: "const a = 1;" }]);
});
