import { hash } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, renameSync, statSync, symlinkSync } from "node:fs";
import { expect, test } from "vitest";
import { editTool } from "../../packages/stages/src/tools/files/edit.ts";
import { readTool } from "../../packages/stages/src/tools/files/read.ts";
import { writeTool } from "../../packages/stages/src/tools/files/write.ts";
import { codeOf, stageIn, tempFolder, textOf } from "../support/tools.ts";

test("a new file is written with the folders above it, and can be edited at once", async () => {
  const folder = tempFolder();
  const stage = stageIn(folder);
  const result = await stage.use(writeTool, { file_path: "src/new/a.ts", content: "one\ntwo\n" });
  expect(result).toMatchObject({
    ok: true,
    output: "Created src/new/a.ts (2 lines).",
    facts: { path: "src/new/a.ts", created: true, added: 2, removed: 0, bytes: 8, before: null },
  });
  expect(readdirSync(folder.path("src/new"))).toEqual(["a.ts"]);
  expect((await stage.use(editTool, { file_path: "src/new/a.ts", old_string: "two", new_string: "2" })).ok).toBe(true);
  expect(folder.text("src/new/a.ts")).toBe("one\n2\n");
});

test("an existing file is replaced only when it was read at its present state", async () => {
  const folder = tempFolder();
  folder.put("a", "one\ntwo\n");
  const stage = stageIn(folder);
  expect(codeOf(await stage.use(writeTool, { file_path: "a", content: "new" }))).toBe("stale_file");
  await stage.use(readTool, { file_path: "a" });
  expect(textOf(await stage.use(writeTool, { file_path: "a", content: "one\n2\n3\n" }))).toBe(
    "Replaced a (3 lines; 2 lines added, 1 line removed).",
  );
  expect(folder.text("a")).toBe("one\n2\n3\n");
});

test("what another stage read does not count", async () => {
  const folder = tempFolder();
  folder.put("a", "x");
  await stageIn(folder).use(readTool, { file_path: "a" });
  expect(codeOf(await stageIn(folder).use(writeTool, { file_path: "a", content: "y" }))).toBe("stale_file");
});

test("a replaced file keeps mode, byte order mark and CR LF line ends", async () => {
  const folder = tempFolder();
  chmodSync(folder.put("a", "\uFEFFone\r\ntwo\r\n"), 0o640);
  const stage = stageIn(folder);
  await stage.use(readTool, { file_path: "a" });
  await stage.use(writeTool, { file_path: "a", content: "1\n2\n3\n" });
  expect(folder.text("a")).toBe("\uFEFF1\r\n2\r\n3\r\n");
  expect(statSync(folder.path("a")).mode & 0o777).toBe(0o640);
});

test("a new file gets the mode that umask leaves", async () => {
  const folder = tempFolder();
  const before = process.umask(0o027);
  try {
    await stageIn(folder).use(writeTool, { file_path: "a", content: "x" });
  } finally {
    process.umask(before);
  }
  expect(statSync(folder.path("a")).mode & 0o777).toBe(0o640);
});

test("more than 10 MB is not written", async () => {
  const folder = tempFolder();
  const result = await stageIn(folder).use(writeTool, { file_path: "a", content: "ä".repeat(5 * 1024 * 1024 + 1) });
  expect(codeOf(result)).toBe("file_too_large");
  expect(readdirSync(folder.root)).toEqual([]);
});

test("a redaction marker is not written", async () => {
  const folder = tempFolder();
  folder.put("a", "key = s3cret\n");
  const stage = stageIn(folder);
  await stage.use(readTool, { file_path: "a" });
  expect(codeOf(await stage.use(writeTool, { file_path: "a", content: "key = [redacted:KEY]\n" }))).toBe(
    "redacted_content",
  );
  expect(codeOf(await stage.use(writeTool, { file_path: "b", content: "[redacted:X]" }))).toBe("redacted_content");
  expect([folder.text("a"), readdirSync(folder.root)]).toEqual(["key = s3cret\n", ["a"]]);
});

test("a folder, or a file in the place of a folder, is an error", async () => {
  const folder = tempFolder();
  mkdirSync(folder.path("sub"));
  folder.put("plain", "x");
  const stage = stageIn(folder);
  expect(codeOf(await stage.use(writeTool, { file_path: "sub", content: "x" }))).toBe("is_folder");
  expect(codeOf(await stage.use(writeTool, { file_path: "plain/a", content: "x" }))).toBe("not_a_folder");
});

test("a folder that is swapped for a link after judging is not written through", async () => {
  const folder = tempFolder();
  const outside = tempFolder();
  mkdirSync(folder.path("src"));
  const call = stageIn(folder).judge(writeTool, { file_path: "src/new.ts", content: "x" });
  const intent = await call.prepare();
  renameSync(folder.path("src"), folder.path("moved"));
  symlinkSync(outside.root, folder.path("src"));
  expect(codeOf(await call.run(intent))).toBe("path_changed");
  expect(readdirSync(outside.root)).toEqual([]);
});

test("a file that appears between the record and the write is not overwritten", async () => {
  const folder = tempFolder();
  const call = stageIn(folder).judge(writeTool, { file_path: "a", content: "mine" });
  const intent = await call.prepare();
  folder.put("a", "theirs");
  expect(codeOf(await call.run(intent))).toBe("stale_file");
  expect(folder.text("a")).toBe("theirs");
});

test("recovery of a new file tells done from not started", async () => {
  const folder = tempFolder();
  const call = stageIn(folder).judge(writeTool, { file_path: "new/a", content: "x" });
  const intent = (await call.prepare()) ?? null;
  expect(intent).toEqual({ real: folder.path("new/a"), before: null, after: hash("sha256", "x") });
  expect(await writeTool.recover?.(intent, call.call)).toBe("not_started");
  await call.run(intent);
  const notes = { [folder.path("new/a")]: hash("sha256", "x") };
  expect(await writeTool.recover?.(intent, call.call)).toEqual({ done: { notes } });
  folder.put("new/a", "y");
  expect(await writeTool.recover?.(intent, call.call)).toBe("unknown");
});

test("writing what is there already succeeds", async () => {
  const folder = tempFolder();
  folder.put("a", "x");
  const stage = stageIn(folder);
  await stage.use(readTool, { file_path: "a" });
  const before = statSync(folder.path("a")).ino;
  expect((await stage.use(writeTool, { file_path: "a", content: "x" })).ok).toBe(true);
  expect(statSync(folder.path("a")).ino).toBe(before);
});
