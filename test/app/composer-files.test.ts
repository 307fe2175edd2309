import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createFileFinder, workspaceListing } from "../../packages/tui/src/composer/completion/file-finder.ts";
import { editOutside } from "../../packages/tui/src/composer/external-editor.ts";

let root: string;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "sluice-composer-")));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(path: string, text = ""): void {
  mkdirSync(join(root, path, ".."), { recursive: true });
  writeFileSync(join(root, path), text);
}

const signal = new AbortController().signal;

test("a workspace's files are those that git does not ignore, without the store, links not followed", async () => {
  execFileSync("git", ["init", "-q", root]);
  write(".gitignore", "dist/\n*.log\n");
  for (const path of ["src/a.ts", "dist/out.js", "note.log", "node_modules/x/index.js", "kept/runs.db"]) write(path);
  symlinkSync("/etc", join(root, "outside"));
  const listing = await workspaceListing(root, async () => join(root, "kept"))(signal);
  expect(listing.files).toEqual([".gitignore", "outside", "src/a.ts"]);
});

test("a listing ends at what was asked for and says so", async () => {
  const { workspaceFiles } = await import("@sluice/stages/tools");
  for (let at = 0; at < 5; at += 1) write(`f${at}`);
  expect(await workspaceFiles({ root }, { most: 3, signal })).toEqual({ files: ["f0", "f1", "f2"], cut: true });
  expect((await workspaceFiles({ root }, { most: 5, signal })).cut).toBe(false);
});

function counted(files: readonly string[]): {
  list: () => Promise<{ readonly files: readonly string[] }>;
  calls: () => number;
} {
  let calls = 0;
  return { list: () => Promise.resolve({ files }).finally(() => (calls += 1)), calls: () => calls };
}

test("files are found by some of their letters, names before folders", async () => {
  const finder = createFileFinder(
    counted(["src/parser/index.ts", "src/index/parser.ts", "docs/other.md", "parser.ts"]),
  );
  expect((await finder.find("parser", 0)).files.slice(0, 2)).toEqual(["parser.ts", "src/index/parser.ts"]);
  expect((await finder.find("pidxts", 0)).files).toEqual(["src/parser/index.ts"]);
  expect((await finder.find("zzz", 0)).files).toEqual([]);
});

test("names that begin a word rank above shorter ones that only hold the letters", async () => {
  const finder = createFileFinder(counted(["xfxbx.ts", "src/foo-bar.ts"]));
  expect((await finder.find("fb", 0)).files).toEqual(["src/foo-bar.ts", "xfxbx.ts"]);
});

test("without a letter the files nearest to the root come first", async () => {
  const finder = createFileFinder(counted(["a/b/c.ts", "a/d.ts", "z.md"]));
  expect((await finder.find("", 0)).files).toEqual(["z.md", "a/d.ts", "a/b/c.ts"]);
});

test("the workspace is listed once for many questions, and again when the listing is old", async () => {
  const { list, calls } = counted(["a.ts"]);
  const finder = createFileFinder({ list, staleMs: 1_000 });
  await Promise.all([finder.find("a", 0), finder.find("", 0), finder.find("b", 1)]);
  expect(calls()).toBe(1);
  await finder.find("a", 1_001);
  expect(calls()).toBe(2);
});

test("listings never overlap, and the last one answers while another runs", async () => {
  const done: ((listing: { readonly files: readonly string[] }) => void)[] = [];
  const finder = createFileFinder({ list: () => new Promise((resolve) => done.push(resolve)), staleMs: 50 });
  const first = [finder.find("", 0), finder.find("", 60), finder.find("", 120)];
  expect(done).toHaveLength(1);
  done[0]?.({ files: ["old.ts"] });
  for (const found of await Promise.all(first)) expect(found.files).toEqual(["old.ts"]);
  // Its age counts from its end, or a slow listing would always be stale.
  await finder.find("", 169);
  expect(done).toHaveLength(1);
  expect((await finder.find("", 170)).files).toEqual(["old.ts"]);
  expect((await finder.find("", 500)).files).toEqual(["old.ts"]);
  expect(done).toHaveLength(2);
  done[1]?.({ files: ["new.ts"] });
  await expect.poll(async () => (await finder.find("", 510)).files).toEqual(["new.ts"]);
  expect(done).toHaveLength(2);
});

test("of a great many files the fitting ones are found", async () => {
  const files = Array.from({ length: 25_000 }, (_, at) => `src/module-${at % 97}/component-${at}.test.ts`);
  const finder = createFileFinder(counted([...files.slice(0, 19_999), "src/deep/needle.ts"]));
  expect((await finder.find("needle", 0)).files[0]).toBe("src/deep/needle.ts");
  expect((await finder.find("comp", 0)).files).toHaveLength(50);
});

test("a listing that fails is reported with what was known before, and tried again", async () => {
  let fails = true;
  const finder = createFileFinder({
    list: () => (fails ? Promise.reject(new Error("no such folder")) : Promise.resolve({ files: ["a.ts"] })),
    staleMs: 10,
  });
  expect(await finder.find("", 0)).toEqual({ query: "", files: [], fault: "files cannot be listed: no such folder" });
  fails = false;
  await finder.find("", 10);
  expect(await finder.find("", 11)).toEqual({ query: "", files: ["a.ts"] });
});

/** An editor that is a script of ours. */
function editor(script: string): string {
  const path = join(root, "editor.mjs");
  writeFileSync(
    path,
    `import { readFileSync, statSync, writeFileSync } from "node:fs";\nconst file = process.argv.at(-1);\n${script}`,
  );
  return `"${process.execPath}" '${path}' --wait`;
}

const env = (command: string): Record<string, string> => ({ EDITOR: command, TMPDIR: root });
/** The folders of edited texts in the folder for temporary files, which is this test's own: others may edit meanwhile. */
function left(): readonly string[] {
  vi.stubEnv("TMPDIR", root);
  return readdirSync(tmpdir()).filter((name) => name.startsWith("sluice-edit-"));
}
afterEach(() => vi.unstubAllEnvs());

test("a text is edited in the editor of the environment, in a file of one's own, which is removed", async () => {
  const before = left();
  const command = editor(`
    if (process.argv[2] !== "--wait" || (statSync(file).mode & 0o777) !== 0o600) process.exit(3);
    writeFileSync(file, readFileSync(file, "utf8").toUpperCase() + "\\r\\nmore\\n");`);
  expect(await editOutside("draft", env(command))).toEqual({ ok: true, text: "DRAFT\nmore" });
  expect(left()).toEqual(before);
});

test("VISUAL goes before EDITOR, and a blank one counts for nothing", async () => {
  const command = editor(`writeFileSync(file, "visual");`);
  expect(await editOutside("", { VISUAL: command, EDITOR: "false" })).toEqual({ ok: true, text: "visual" });
  expect(await editOutside("", { VISUAL: " ", EDITOR: command })).toEqual({ ok: true, text: "visual" });
});

test("an editor that fails or does not exist is reported, and no file is left behind", async () => {
  const before = left();
  expect(await editOutside("x", env(editor("process.exit(7)")))).toMatchObject({
    ok: false,
    fault: expect.stringMatching(/exit code 7/),
  });
  expect(await editOutside("x", env(join(root, "none")))).toMatchObject({
    ok: false,
    fault: expect.stringMatching(/could not be started/),
  });
  expect(await editOutside("x", { PATH: root })).toMatchObject({
    ok: false,
    fault: expect.stringMatching(/set VISUAL or EDITOR/),
  });
  expect(left()).toEqual(before);
});

test("no shell reads the editor's name", async () => {
  const trap = join(root, "trap");
  expect(await editOutside("x", env(`touch ${trap};true`))).toMatchObject({ ok: true });
  expect(await editOutside("x", env(`true;touch ${trap}`))).toMatchObject({ ok: false });
  expect(existsSync(trap)).toBe(false);
  expect(statSync(root).isDirectory()).toBe(true);
});

test("where nothing is set the first default editor that is found is used", async () => {
  const install = (name: string, text: string): void =>
    writeFileSync(join(root, name), `#!/bin/sh\nprintf ${text} > "$1"\n`, { mode: 0o755 });
  const path = { PATH: `relative:${root}` };
  const none = "no editor was found (vi, nano); set VISUAL or EDITOR";
  expect(await editOutside("x", path)).toEqual({ ok: false, fault: none });
  install("nano", "second");
  expect(await editOutside("x", path)).toEqual({ ok: true, text: "second" });
  install("vi", "first");
  expect(await editOutside("x", path)).toEqual({ ok: true, text: "first" });
});

test("a variable without a program is named", async () => {
  expect(await editOutside("x", { EDITOR: '""' })).toEqual({ ok: false, fault: "EDITOR names no program" });
  expect(await editOutside("x", { VISUAL: "''", EDITOR: "true" })).toEqual({
    ok: false,
    fault: "VISUAL names no program",
  });
});
