import { hash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { expect, test } from "vitest";
import { editTool } from "../../packages/stages/src/tools/files/edit.ts";
import { readTool } from "../../packages/stages/src/tools/files/read.ts";
import { codeOf, stageIn, type TestWorkspace, tempFolder, textOf, unprivileged } from "../support/tools.ts";

/** Reads and edits a file in a stage of its own. */
async function edit(
  folder: TestWorkspace,
  name: string,
  old_string: string,
  new_string: string,
  replace_all?: boolean,
) {
  const stage = stageIn(folder);
  await stage.use(readTool, { file_path: name });
  return stage.use(editTool, {
    file_path: name,
    old_string,
    new_string,
    ...(replace_all === undefined ? {} : { replace_all }),
  });
}

test("an exact match is replaced, and the lines around it are shown", async () => {
  const folder = tempFolder();
  folder.put("src/a.ts", "1\n2\n3\n4\nold\n6\n7\n8\n9\n");
  const result = await edit(folder, "src/a.ts", "old", "new\nmore");
  expect(folder.text("src/a.ts")).toBe("1\n2\n3\n4\nnew\nmore\n6\n7\n8\n9\n");
  expect(textOf(result)).toBe(
    [
      "Edited src/a.ts: 1 replacement, 2 lines added, 1 line removed.",
      "     2\t2",
      "     3\t3",
      "     4\t4",
      "     5\tnew",
      "     6\tmore",
      "     7\t6",
      "     8\t7",
      "     9\t8",
    ].join("\n"),
  );
  expect(result.facts).toMatchObject({ path: "src/a.ts", created: false, added: 2, removed: 1, replacements: 1 });
});

test("what is put in is taken literally, dollar signs too", async () => {
  const folder = tempFolder();
  folder.put("a", "x = OLD;");
  await edit(folder, "a", "OLD", "$& $1 $$ $`");
  expect(folder.text("a")).toBe("x = $& $1 $$ $`;");
});

test("text that is not there is an error that says what to look at", async () => {
  const folder = tempFolder();
  folder.put("a", "if (x) {\n\treturn 1;\n}\n");
  expect(await edit(folder, "a", "if (x) {\n  return 1;", "y")).toMatchObject({
    ok: false,
    output: { code: "old_string_not_found", message: expect.stringContaining("different white space") },
  });
  expect(codeOf(await edit(folder, "a", "nowhere", "y"))).toBe("old_string_not_found");
  expect(folder.text("a")).toBe("if (x) {\n\treturn 1;\n}\n");
});

test("text that is there several times needs replace_all, and the error names the lines", async () => {
  const folder = tempFolder();
  folder.put("a", "x\ny\nx x\n");
  expect(await edit(folder, "a", "x", "z")).toMatchObject({
    ok: false,
    output: { code: "old_string_not_unique", occurrences: 3, lines: [1, 3, 3] },
  });
  expect(await edit(folder, "a", "x", "z", true)).toMatchObject({ ok: true, facts: { replacements: 3 } });
  expect(folder.text("a")).toBe("z\ny\nz z\n");
});

test("overlapping occurrences are not unique either", async () => {
  const folder = tempFolder();
  folder.put("a", "aaa");
  expect(codeOf(await edit(folder, "a", "aa", "b"))).toBe("old_string_not_unique");
});

test("the same text twice is no change", async () => {
  const folder = tempFolder();
  folder.put("a", "x");
  expect(codeOf(await edit(folder, "a", "x", "x"))).toBe("no_change");
});

test("a file this stage has not read, or that changed since, is stale", async () => {
  const folder = tempFolder();
  folder.put("a", "x");
  const stage = stageIn(folder);
  const input = { file_path: "a", old_string: "x", new_string: "y" };
  expect(codeOf(await stage.use(editTool, input))).toBe("stale_file");
  await stage.use(readTool, { file_path: "a" });
  folder.put("a", "x, and more");
  expect(codeOf(await stage.use(editTool, input))).toBe("stale_file");
  expect(folder.text("a")).toBe("x, and more");
});

test("one edit after the other needs one read", async () => {
  const folder = tempFolder();
  folder.put("a", "x");
  const stage = stageIn(folder);
  await stage.use(readTool, { file_path: "a" });
  await stage.use(editTool, { file_path: "a", old_string: "x", new_string: "y" });
  expect((await stage.use(editTool, { file_path: "a", old_string: "y", new_string: "z" })).ok).toBe(true);
  expect(folder.text("a")).toBe("z");
});

test("LF strings edit a CR LF file, which stays one", async () => {
  const folder = tempFolder();
  folder.put("a", "one\r\ntwo\r\nthree\r\n");
  expect((await edit(folder, "a", "one\ntwo", "1\n2\n2b")).ok).toBe(true);
  expect(folder.text("a")).toBe("1\r\n2\r\n2b\r\nthree\r\n");
});

test("the lines around an edit far down in a CR LF file are shown", async () => {
  const folder = tempFolder();
  folder.put("a", Array.from({ length: 60 }, (_, at) => `line ${at + 1}\r\n`).join(""));
  expect(
    textOf(await edit(folder, "a", "line 50", "other"))
      .split("\n")
      .slice(1),
  ).toEqual([47, 48, 49, 50, 51, 52, 53].map((line) => `    ${line}\t${line === 50 ? "other" : `line ${line}`}`));
});

test("in a file of mixed line ends only what was named changes", async () => {
  const folder = tempFolder();
  folder.put("a", "one\r\ntwo\nthree\r\n");
  expect((await edit(folder, "a", "two\nthree", "2\n3")).ok).toBe(true);
  expect(folder.text("a")).toBe("one\r\n2\n3\r\n");
});

test("the byte order mark and the mode stay", async () => {
  const folder = tempFolder();
  chmodSync(folder.put("run.sh", "\uFEFFecho 1\n"), 0o750);
  await edit(folder, "run.sh", "echo 1", "echo 2");
  expect(folder.text("run.sh")).toBe("\uFEFFecho 2\n");
  expect(statSync(folder.path("run.sh")).mode & 0o777).toBe(0o750);
});

test("a redaction marker is not written over the secret it stands for", async () => {
  const folder = tempFolder();
  folder.put("a", "key = s3cret\nport = 1\n");
  expect(codeOf(await edit(folder, "a", "port = 1", "key = [redacted:KEY]\nport = 2"))).toBe("redacted_content");
  expect(await edit(folder, "a", "key = [redacted:KEY]", "key = x")).toMatchObject({
    output: { code: "old_string_not_found", message: expect.stringContaining("redaction marker") },
  });
  expect(folder.text("a")).toBe("key = s3cret\nport = 1\n");
});

test("a file that holds the marker as plain text can be edited around it", async () => {
  const folder = tempFolder();
  folder.put("a", 'const mark = "[redacted:";\nconst n = 1;\n');
  expect((await edit(folder, "a", 'mark = "[redacted:";\nconst n = 1', 'mark = "[redacted:";\nconst n = 2')).ok).toBe(
    true,
  );
  expect(folder.text("a")).toBe('const mark = "[redacted:";\nconst n = 2;\n');
});

test("what is not UTF-8 text is not edited", async () => {
  const folder = tempFolder();
  const bytes = Buffer.from([0x61, 0xe9, 0x62]);
  const real = folder.put("a", bytes);
  const stage = stageIn(folder);
  stage.notes[real] = hash("sha256", bytes);
  expect(codeOf(await stage.use(editTool, { file_path: "a", old_string: "a", new_string: "b" }))).toBe("not_text");
  expect(readFileSync(real)).toEqual(bytes);
});

test("half a character is not written", async () => {
  const folder = tempFolder();
  folder.put("a", "x");
  expect(codeOf(await edit(folder, "a", "x", "\ud83d"))).toBe("not_text");
});

test("an edit through a link changes the file it leads to and leaves the link", async () => {
  const folder = tempFolder();
  folder.put("real.ts", "x");
  symlinkSync("real.ts", folder.path("link.ts"));
  expect((await edit(folder, "link.ts", "x", "y")).ok).toBe(true);
  expect(folder.text("real.ts")).toBe("y");
  expect(
    readdirSync(folder.root, { withFileTypes: true })
      .find(({ name }) => name === "link.ts")
      ?.isSymbolicLink(),
  ).toBe(true);
});

test("the other name of a hard-linked file keeps the old content", async () => {
  const folder = tempFolder();
  const outside = tempFolder();
  outside.put("shared", "x");
  linkSync(outside.path("shared"), folder.path("a"));
  expect((await edit(folder, "a", "x", "y")).ok).toBe(true);
  expect(outside.text("shared")).toBe("x");
});

test("a file or folder that cannot be written is left alone, without temporary files", async () => {
  const folder = tempFolder();
  chmodSync(folder.root, 0o777);
  chmodSync(folder.put("a", "x"), 0o444);
  chmodSync(folder.put("sub/b", "x"), 0o666);
  chmodSync(folder.path("sub"), 0o555);
  await unprivileged(async () => {
    expect(codeOf(await edit(folder, "a", "x", "y"))).toBe("permission_denied");
    expect(codeOf(await edit(folder, "sub/b", "x", "y"))).toBe("permission_denied");
  });
  chmodSync(folder.path("sub"), 0o755);
  expect([folder.text("a"), folder.text("sub/b")]).toEqual(["x", "x"]);
  expect([...readdirSync(folder.root), ...readdirSync(folder.path("sub"))].sort()).toEqual(["a", "b", "sub"]);
});

test("a file that changes between the record and the write is not overwritten", async () => {
  const folder = tempFolder();
  const real = folder.put("a", "x");
  const stage = stageIn(folder);
  await stage.use(readTool, { file_path: "a" });
  const call = stage.judge(editTool, { file_path: "a", old_string: "x", new_string: "y" });
  const intent = await call.prepare();
  folder.put("a", "x!");
  stage.notes[real] = hash("sha256", "x!");
  expect(codeOf(await call.run(intent))).toBe("stale_file");
  expect(folder.text("a")).toBe("x!");
});

test("the intent holds the hashes before and after, from which recovery tells what happened", async () => {
  const folder = tempFolder();
  const real = folder.put("a", "x");
  const stage = stageIn(folder);
  await stage.use(readTool, { file_path: "a" });
  const call = stage.judge(editTool, { file_path: "a", old_string: "x", new_string: "y" });
  const intent = (await call.prepare()) ?? null;
  expect(intent).toEqual({ real, before: hash("sha256", "x"), after: hash("sha256", "y") });
  expect(await editTool.recover?.(intent, call.call)).toBe("not_started");
  await call.run(intent);
  expect(await editTool.recover?.(intent, call.call)).toEqual({ done: { notes: { [real]: hash("sha256", "y") } } });
  writeFileSync(real, "something else");
  expect(await editTool.recover?.(intent, call.call)).toBe("unknown");
});

test("a call that could only fail is recorded as such and fails again, even if it could work by now", async () => {
  const folder = tempFolder();
  folder.put("a", "x");
  const stage = stageIn(folder);
  const call = stage.judge(editTool, { file_path: "a", old_string: "x", new_string: "y" });
  const intent = (await call.prepare()) ?? null;
  expect(intent).toMatchObject({ fault: { code: "stale_file" } });
  expect(await editTool.recover?.(intent, call.call)).toBe("not_started");
  await stage.use(readTool, { file_path: "a" });
  expect(codeOf(await call.run(intent))).toBe("stale_file");
  expect(folder.text("a")).toBe("x");
});

test("recovery removes the temporary file a killed process left", async () => {
  const folder = tempFolder();
  folder.put("a", "x");
  const stage = stageIn(folder);
  await stage.use(readTool, { file_path: "a" });
  const call = stage.judge(editTool, { file_path: "a", old_string: "x", new_string: "y" });
  const intent = (await call.prepare()) ?? null;
  const left = folder.path(`.sluice-${hash("sha256", call.call.idempotencyKey).slice(0, 16)}.tmp`);
  writeFileSync(left, "half");
  expect(await editTool.recover?.(intent, call.call)).toBe("not_started");
  expect(existsSync(left)).toBe(false);
});

test("an edit that was stopped before the rename changes nothing", async () => {
  const folder = tempFolder();
  folder.put("a", "x");
  const stage = stageIn(folder, { signal: AbortSignal.abort() });
  stage.notes[folder.path("a")] = hash("sha256", "x");
  expect(codeOf(await stage.use(editTool, { file_path: "a", old_string: "x", new_string: "y" }))).toBe("cancelled");
  expect([folder.text("a"), readdirSync(folder.root)]).toEqual(["x", ["a"]]);
});
