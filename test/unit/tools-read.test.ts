import { hash } from "node:crypto";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { readTool } from "../../packages/stages/src/tools/files/read.ts";
import { codeOf, stageIn, tempFolder, textOf, unprivileged } from "../support/tools.ts";

test("lines come behind their numbers, and the file's hash is noted", async () => {
  const { root, put } = tempFolder();
  const real = put("a.txt", "one\n\nthree\n");
  const result = await stageIn({ root }).use(readTool, { file_path: "a.txt" });
  expect(result).toEqual({
    ok: true,
    output: "     1\tone\n     2\t\n     3\tthree",
    notes: { [real]: hash("sha256", "one\n\nthree\n") },
    facts: { path: "a.txt", bytes: 11, lines: 3 },
  });
});

test("a last line that is not ended is a line", async () => {
  const { root, put } = tempFolder();
  put("a.txt", "one\ntwo");
  expect(textOf(await stageIn({ root }).use(readTool, { file_path: "a.txt" }))).toBe("     1\tone\n     2\ttwo");
});

test("offset and limit show a part and say where to continue", async () => {
  const { root, put } = tempFolder();
  put("a.txt", Array.from({ length: 10 }, (_, index) => `line ${index + 1}`).join("\n"));
  const text = textOf(await stageIn({ root }).use(readTool, { file_path: "a.txt", offset: 4, limit: 2 }));
  expect(text).toBe("     4\tline 4\n     5\tline 5\n[Lines 4 to 5 of 10 are shown. Continue with offset 6.]");
});

test("an offset past the end says how long the file is", async () => {
  const { root, put } = tempFolder();
  put("a.txt", "one\n");
  const result = await stageIn({ root }).use(readTool, { file_path: "a.txt", offset: 2 });
  expect(result).toMatchObject({ ok: false, output: { code: "offset_past_end", lines: 1 } });
});

test("2,000 lines are shown unless fewer are asked for", async () => {
  const { root, put } = tempFolder();
  put("a.txt", "x\n".repeat(2_500));
  const text = textOf(await stageIn({ root }).use(readTool, { file_path: "a.txt" }));
  expect(text.split("\n")).toHaveLength(2_001);
  expect(text).toMatch(/\[Lines 1 to 2000 of 2500 are shown. Continue with offset 2001.\]$/);
});

test("a line of 10 MB is cut, and says how much is missing", async () => {
  const { root, put } = tempFolder();
  const length = 10 * 1024 * 1024;
  put("a.txt", "x".repeat(length));
  expect(textOf(await stageIn({ root }).use(readTool, { file_path: "a.txt" }))).toBe(
    `     1\t${"x".repeat(2_000)}… [${length - 2_000} more characters]`,
  );
});

test("a cut never leaves half a character behind", async () => {
  const { root, put } = tempFolder();
  put("a.txt", `x${"🙂".repeat(2_000)}`);
  expect(textOf(await stageIn({ root }).use(readTool, { file_path: "a.txt" })).isWellFormed()).toBe(true);
});

test("many long lines stop at the cap for all, with the offset to continue from", async () => {
  const { root, put } = tempFolder();
  put("a.txt", `${"x".repeat(1_990)}\n`.repeat(500));
  const text = textOf(await stageIn({ root }).use(readTool, { file_path: "a.txt" }));
  expect(text.length).toBeLessThan(100_000);
  const last = /Lines 1 to (\d+) of 500 are shown. Continue with offset (\d+)/.exec(text);
  expect(Number(last?.[2])).toBe(Number(last?.[1]) + 1);
});

test("a file over 10 MB is shown in part and does not count as read", async () => {
  const { root, put } = tempFolder();
  put("big.log", `${"y".repeat(99)}\n`.repeat(120_000));
  const result = await stageIn({ root }).use(readTool, { file_path: "big.log", limit: 1 });
  expect(textOf(result)).toContain("The file has 12000000 bytes. Only the first 10485760 can be shown.");
  expect(result.notes).toBeUndefined();
});

test("binary files are refused, wherever the binary part is", async () => {
  const { root, put } = tempFolder();
  put("a.bin", Buffer.concat([Buffer.alloc(20_000, "a"), Buffer.from([0, 1, 2])]));
  expect(codeOf(await stageIn({ root }).use(readTool, { file_path: "a.bin" }))).toBe("binary_file");
});

test("an empty file, CR LF lines and bytes that are not UTF-8 are said", async () => {
  const { root, put } = tempFolder();
  put("empty", "");
  put("crlf", "a\r\nb\r\n");
  put("latin", Buffer.from([0x63, 0x61, 0x66, 0xe9, 0x0a]));
  const stage = stageIn({ root });
  expect(textOf(await stage.use(readTool, { file_path: "empty" }))).toBe("empty is empty.");
  expect(textOf(await stage.use(readTool, { file_path: "crlf" }))).toBe(
    "     1\ta\n     2\tb\n[Its lines end with CR LF.]",
  );
  expect(textOf(await stage.use(readTool, { file_path: "latin" }))).toContain("Bytes that are not UTF-8");
});

test("a missing file, a folder and a file that is not ours are typed errors", async () => {
  const { root, put, path } = tempFolder();
  mkdirSync(path("folder"));
  chmodSync(root, 0o755);
  writeFileSync(put("closed", ""), "x", { mode: 0o600 });
  chmodSync(path("closed"), 0o000);
  const stage = stageIn({ root });
  expect(codeOf(await stage.use(readTool, { file_path: "nothing.txt" }))).toBe("not_found");
  expect(codeOf(await stage.use(readTool, { file_path: "folder" }))).toBe("is_folder");
  expect(codeOf(await unprivileged(() => stage.use(readTool, { file_path: "closed" })))).toBe("permission_denied");
});

test("a read that was stopped says so", async () => {
  const { root, put } = tempFolder();
  put("a.txt", "x");
  const result = await stageIn({ root }, { signal: AbortSignal.abort() }).use(readTool, { file_path: "a.txt" });
  expect(codeOf(result)).toBe("cancelled");
});
