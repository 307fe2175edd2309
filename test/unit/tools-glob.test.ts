import { chmodSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { expect, test } from "vitest";
import { globTool } from "../../packages/stages/src/tools/search/glob.ts";
import { codeOf, stageIn, type TestWorkspace, tempFolder, textOf, unprivileged } from "../support/tools.ts";

function withFiles(...names: readonly string[]): TestWorkspace {
  const folder = tempFolder();
  for (const name of names) folder.put(name, "");
  return folder;
}

async function found(
  folder: { readonly root: string; readonly store?: string },
  pattern: string,
  path?: string,
): Promise<string[]> {
  return textOf(await stageIn(folder).use(globTool, { pattern, ...(path === undefined ? {} : { path }) })).split("\n");
}

test("matching files are listed in path order, relative to the workspace", async () => {
  const folder = withFiles("b.ts", "a.ts", "src/z.ts", "src/a/deep.ts", "src/a.js", ".github/ci.ts");
  expect(await found(folder, "**/*.ts")).toEqual([".github/ci.ts", "a.ts", "b.ts", "src/a/deep.ts", "src/z.ts"]);
  expect(await found(folder, "*.ts")).toEqual(["a.ts", "b.ts"]);
  expect(await found(folder, "src/**")).toEqual(["src/a/deep.ts", "src/a.js", "src/z.ts"]);
  expect(await found(folder, "{a,b}.ts")).toEqual(["a.ts", "b.ts"]);
});

test("a pattern is relative to path, results are not", async () => {
  const folder = withFiles("src/a.ts", "src/lib/a.ts", "a.ts");
  expect(await found(folder, "*.ts", "src")).toEqual(["src/a.ts"]);
  expect(await found(folder, "**/a.ts", folder.path("src"))).toEqual(["src/a.ts", "src/lib/a.ts"]);
});

test("what git ignores is left out, by every .gitignore on the way", async () => {
  const folder = withFiles("dist/a.ts", "src/a.ts", "src/gen/a.ts", "src/keep.log", "src/x.log", "a.ts");
  folder.put(".gitignore", "/dist\n*.log\n");
  folder.put("src/.gitignore", "gen/\n!keep.log\n");
  expect(await found(folder, "**/*.{ts,log}")).toEqual(["a.ts", "src/a.ts", "src/keep.log"]);
  expect(await found(folder, "**/*.{ts,log}", "src")).toEqual(["src/a.ts", "src/keep.log"]);
});

test("the .gitignore of the repository around the workspace counts", async () => {
  const folder = withFiles("pkg/dist/a.ts", "pkg/a.ts");
  mkdirSync(folder.path(".git"));
  folder.put(".gitignore", "dist\n");
  expect(await found({ root: folder.path("pkg") }, "**/*.ts")).toEqual(["a.ts"]);
});

test("node_modules, .git and the run store are skipped; node_modules is searched when named", async () => {
  const folder = withFiles(
    "node_modules/x/index.ts",
    ".git/hooks/a.ts",
    ".sluice/store/b.ts",
    ".sluice/pipelines/c.ts",
    "a.ts",
  );
  const workspace = { root: folder.root, store: folder.path(".sluice/store") };
  expect(await found(workspace, "**/*.ts")).toEqual([".sluice/pipelines/c.ts", "a.ts"]);
  expect(await found(workspace, "node_modules/**/*.ts")).toEqual(["node_modules/x/index.ts"]);
  expect(await found(workspace, "**/*.ts", "node_modules/x")).toEqual(["node_modules/x/index.ts"]);
  expect(await found(workspace, ".sluice/store/**")).toEqual(["No file below . matches."]);
});

test("folders that a pattern begins with are part of its path, which changes nothing of what is found", async () => {
  const folder = withFiles("docs/a.md", "docs/b/c.md", "docs/gen/d.md", "other/docs/e.md", "f.md");
  folder.put(".gitignore", "gen\n/other\n");
  expect(await found(folder, "docs/**/*.md")).toEqual(["docs/a.md", "docs/b/c.md"]);
  expect(await found(folder, "./docs//b/*")).toEqual(["docs/b/c.md"]);
  expect(await found(folder, "docs/")).toEqual(["docs/a.md", "docs/b/c.md"]);
  expect(await found(folder, "b/*", "docs")).toEqual(["docs/b/c.md"]);
  expect(await found(folder, "docs/{b/c,a}.md")).toEqual(["docs/a.md", "docs/b/c.md"]);
  for (const ignored of ["docs/gen/*", "other/**", "docs/none/*", "docs/a.md/*"])
    expect(await found(folder, ignored)).toEqual(["No file below . matches."]);
});

test("a pattern finds nothing outside of the folder it begins with, whatever that has become since it was judged", async () => {
  const folder = withFiles("docs/a.md", "src/b.md");
  const judged = stageIn(folder).judge(globTool, { pattern: "docs/*" });
  expect(judged.subjects).toEqual([{ kind: "path", real: folder.path("docs"), access: "read", tree: true }]);
  expect(textOf(await judged.run())).toBe("docs/a.md");
  rmSync(folder.path("docs"), { recursive: true });
  expect(codeOf(await judged.run())).toBe("path_changed");
  symlinkSync("src", folder.path("docs"));
  expect(codeOf(await judged.run())).toBe("path_changed");
});

test("links are listed and never followed", async () => {
  const folder = withFiles("src/a.ts");
  const outside = withFiles("secret.ts");
  symlinkSync(outside.root, folder.path("out"));
  symlinkSync(".", folder.path("src/loop"));
  symlinkSync(outside.path("secret.ts"), folder.path("link.ts"));
  expect(await found(folder, "**/*.ts")).toEqual(["link.ts", "src/a.ts"]);
  expect(await found(folder, "out/*.ts")).toEqual(["No file below . matches."]);
});

test.each([
  "/etc/*",
  "../*",
  "src/../../*",
  "!a.ts",
  "{a,/etc/passwd}",
  "{a,../b}",
  "a\0b",
  "{a,b}".repeat(20),
  "x".repeat(1001),
])("the pattern %j is refused", async (pattern) => {
  const result = await stageIn(tempFolder()).use(globTool, { pattern });
  expect(codeOf(result)).toBe("invalid_pattern");
});

test("1,000 files are listed, and it says that there are more", async () => {
  const folder = withFiles(...Array.from({ length: 1_001 }, (_, index) => `f${String(index).padStart(4, "0")}`));
  const lines = await found(folder, "*");
  expect(lines).toHaveLength(1_001);
  expect(lines.at(-1)).toBe("[Only the first 1000 files are listed. Use a narrower pattern or path.]");
  expect(lines[999]).toBe("f0999");
});

test("names are matched as they are, whatever letters they have", async () => {
  const folder = withFiles("日本/語 1.md", "(group)/page.tsx", "[id].ts", "a{b}.ts", "new\nline.md");
  expect(await found(folder, "日本/*.md")).toEqual(["日本/語 1.md"]);
  expect(await found(folder, "(group)/*.tsx")).toEqual(["(group)/page.tsx"]);
  expect(await found(folder, "\\[id\\].ts")).toEqual(["[id].ts"]);
  expect(await found(folder, "a{b}.ts")).toEqual(["a{b}.ts"]);
});

test("a folder that cannot be read is counted, one that is not there is an error", async () => {
  const folder = withFiles("closed/a.ts", "a.ts");
  chmodSync(folder.root, 0o755);
  chmodSync(folder.path("closed"), 0o000);
  const result = await unprivileged(() => stageIn(folder).use(globTool, { pattern: "**/*.ts" }));
  chmodSync(folder.path("closed"), 0o755);
  expect(textOf(result)).toBe("a.ts\n[1 folder could not be read.]");
  expect(codeOf(await stageIn(folder).use(globTool, { pattern: "*", path: "nowhere" }))).toBe("not_found");
  expect(codeOf(await stageIn(folder).use(globTool, { pattern: "*", path: "a.ts" }))).toBe("not_a_folder");
});

test("a search that was stopped ends", async () => {
  const result = await stageIn(withFiles("a"), { signal: AbortSignal.abort() }).use(globTool, { pattern: "*" });
  expect(codeOf(result)).toBe("cancelled");
});
