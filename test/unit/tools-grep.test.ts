import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { grepTool } from "../../packages/stages/src/tools/search/grep.ts";
import { handClock } from "../support/hand-clock.ts";
import { codeOf, stageIn, tempFolder, textOf } from "../support/tools.ts";

type GrepInput = Parameters<ReturnType<typeof grepTool>["execute"]>[0];

// Both searches answer alike; what only one of them can do stands below.
describe.each([
  ["ripgrep", grepTool()],
  ["the built-in search", grepTool({ ripgrep: null })],
])("%s", (_name, tool) => {
  const grep = async (
    folder: { readonly root: string; readonly store?: string },
    input: GrepInput,
  ): Promise<string[]> => textOf(await stageIn(folder).use(tool, input)).split("\n");

  test("files that match are listed in path order, relative to the workspace", async () => {
    const folder = tempFolder();
    for (const name of ["b.ts", "a.ts", "src/c.ts", ".hidden/d.ts"]) folder.put(name, "needle\n");
    folder.put("other.ts", "nothing\n");
    expect(await grep(folder, { pattern: "needle" })).toEqual([".hidden/d.ts", "a.ts", "b.ts", "src/c.ts"]);
    expect(await grep(folder, { pattern: "needle", path: "src" })).toEqual(["src/c.ts"]);
    expect(await grep(folder, { pattern: "needle", path: folder.path("a.ts") })).toEqual(["a.ts"]);
  });

  test("content shows lines with their numbers, and context with gaps between groups", async () => {
    const folder = tempFolder();
    folder.put("a.ts", "1\nhit 2\n3\n4\n5\nhit 6\n7\n");
    folder.put("b.ts", "hit 1\n");
    expect(await grep(folder, { pattern: "hit", output_mode: "content" })).toEqual([
      "a.ts:2:hit 2",
      "a.ts:6:hit 6",
      "b.ts:1:hit 1",
    ]);
    expect(await grep(folder, { pattern: "hit", output_mode: "content", "-n": false, path: "b.ts" })).toEqual([
      "b.ts:hit 1",
    ]);
    expect(await grep(folder, { pattern: "hit", output_mode: "content", "-C": 1 })).toEqual([
      "a.ts-1-1",
      "a.ts:2:hit 2",
      "a.ts-3-3",
      "--",
      "a.ts-5-5",
      "a.ts:6:hit 6",
      "a.ts-7-7",
      "--",
      "b.ts:1:hit 1",
    ]);
    expect(await grep(folder, { pattern: "hit 2", output_mode: "content", "-A": 2, "-B": 0 })).toEqual([
      "a.ts:2:hit 2",
      "a.ts-3-3",
      "a.ts-4-4",
    ]);
  });

  test("a line that ends like the remark about a cut line is shown whole", async () => {
    const folder = tempFolder();
    for (const end of ["[... omitted end of long line]", "[... 2 more matches]"]) {
      folder.put("a.ts", `hit ${end}\n`);
      expect(await grep(folder, { pattern: "hit", output_mode: "content" })).toEqual([`a.ts:1:hit ${end}`]);
    }
    folder.put("a.ts", `hit ${"ü".repeat(9_000)} hit\n`);
    expect(await grep(folder, { pattern: "hit", output_mode: "content" })).toEqual([
      `a.ts:1:hit ${"ü".repeat(496)} [... line cut]`,
    ]);
  });

  test("count gives the number of matching lines by file", async () => {
    const folder = tempFolder();
    folder.put("a.ts", "x x\nx\ny\n");
    expect(await grep(folder, { pattern: "x", output_mode: "count" })).toEqual(["a.ts:2"]);
    expect(await grep(folder, { pattern: "x", output_mode: "count", path: "a.ts" })).toEqual(["a.ts:2"]);
  });

  test("case is ignored and lines are spanned only when asked", async () => {
    const folder = tempFolder();
    folder.put("a.ts", "One\ntwo\n");
    expect(await grep(folder, { pattern: "one" })).toEqual(["No match."]);
    expect(await grep(folder, { pattern: "one", "-i": true })).toEqual(["a.ts"]);
    expect(await grep(folder, { pattern: "One.two" })).toEqual(["No match."]);
    expect(await grep(folder, { pattern: "One.two", multiline: true, output_mode: "content" })).toEqual([
      "a.ts:1:One",
      "a.ts:2:two",
    ]);
  });

  test("the end of a CR LF line is the end of the line", async () => {
    const folder = tempFolder();
    folder.put("a.ts", "one\r\ntwo\r\n");
    expect(await grep(folder, { pattern: "one$", output_mode: "content" })).toEqual(["a.ts:1:one"]);
  });

  test("a pattern that looks like an option is a pattern", async () => {
    const folder = tempFolder();
    folder.put("a.ts", "--files\n-e\n");
    for (const pattern of ["--files", "-e", "--pre=rm"]) {
      expect(await grep(folder, { pattern, output_mode: "count" })).toEqual([
        pattern === "--pre=rm" ? "No match." : "a.ts:1",
      ]);
    }
    expect(await grep(folder, { pattern: "files", glob: "--pre" })).toEqual(["No match."]);
  });

  test("a glob without a slash means the name, with one the path below the searched folder", async () => {
    const folder = tempFolder();
    for (const name of ["a.ts", "a.js", "src/b.ts", "src/lib/c.ts"]) folder.put(name, "x");
    expect(await grep(folder, { pattern: "x", glob: "*.ts" })).toEqual(["a.ts", "src/b.ts", "src/lib/c.ts"]);
    expect(await grep(folder, { pattern: "x", glob: "src/*.ts" })).toEqual(["src/b.ts"]);
    expect(await grep(folder, { pattern: "x", glob: "lib/**", path: "src" })).toEqual(["src/lib/c.ts"]);
    expect(await grep(folder, { pattern: "x", glob: "*.{js,py}" })).toEqual(["a.js"]);
  });

  test("what git ignores, .git, the store and binary files are not searched", async () => {
    const folder = tempFolder();
    for (const name of ["dist/a", ".git/config", ".sluice/store/runs.db", ".sluice/pipelines/p", "src/a"])
      folder.put(name, "x\n");
    folder.put("bin", Buffer.from("x\0\n"));
    folder.put(".gitignore", "dist\n");
    const workspace = { root: folder.root, store: folder.path(".sluice/store") };
    expect(await grep(workspace, { pattern: "x" })).toEqual([".sluice/pipelines/p", "src/a"]);
    expect(await grep(workspace, { pattern: "x", path: ".sluice" })).toEqual([".sluice/pipelines/p"]);
    expect(await grep(workspace, { pattern: "x", glob: ".sluice/store/**" })).toEqual(["No match."]);
    expect(await grep(workspace, { pattern: "x", path: "dist" })).toEqual(["dist/a"]);
  });

  test("links are not followed out, pipes do not hold the search", async () => {
    const folder = tempFolder();
    const outside = tempFolder();
    outside.put("secret", "x");
    folder.put("a", "x");
    symlinkSync(outside.root, folder.path("out"));
    symlinkSync(outside.path("secret"), folder.path("link"));
    execFileSync("mkfifo", [folder.path("pipe")]);
    expect(await grep(folder, { pattern: "x" })).toEqual(["a"]);
  });

  test("a folder or file that is swapped for a link after judging is not searched", async () => {
    const outside = tempFolder();
    outside.put("a", "secret");
    for (const path of ["src", "src/a"]) {
      const folder = tempFolder();
      folder.put("src/a", "public");
      const call = stageIn(folder).judge(tool, { pattern: "secret", path, output_mode: "content" });
      rmSync(folder.path(path), { recursive: true });
      symlinkSync(path === "src" ? outside.root : outside.path("a"), folder.path(path));
      expect(codeOf(await call.run())).toBe("path_changed");
    }
  });

  test("a file that is a folder after judging is not searched", async () => {
    const folder = tempFolder();
    folder.put("src/a", "public");
    const call = stageIn(folder).judge(tool, { pattern: "secret", path: "src/a", output_mode: "content" });
    rmSync(folder.path("src/a"));
    folder.put("src/a/b", "secret");
    expect(codeOf(await call.run())).toBe("path_changed");
  });

  test("only head_limit lines are shown, and it says so", async () => {
    const folder = tempFolder();
    folder.put("a", "x\n".repeat(1_000));
    const lines = await grep(folder, { pattern: "x", output_mode: "content", head_limit: 3 });
    expect(lines).toEqual([
      "a:1:x",
      "a:2:x",
      "a:3:x",
      "[Only the first 3 result lines are shown. Narrow pattern, path or glob to see others.]",
    ]);
    expect(await grep(folder, { pattern: "x", output_mode: "content" })).toHaveLength(251);
  });

  test("a line of 10 MB is cut", async () => {
    const folder = tempFolder();
    folder.put("a", `x${"y".repeat(10 * 1024 * 1024 - 1)}`);
    const [line] = await grep(folder, { pattern: "x", output_mode: "content" });
    expect(line?.length).toBeLessThan(700);
  });

  test("names with spaces, line breaks and other scripts come back as they are", async () => {
    const folder = tempFolder();
    for (const name of ["日本 語", "two\nlines", "a:1:b"]) folder.put(name, "x\n");
    const text = textOf(await stageIn(folder).use(tool, { pattern: "x", output_mode: "content" }));
    expect(text).toBe("a:1:b:1:x\ntwo\nlines:1:x\n日本 語:1:x");
  });

  test("a pattern or glob that cannot be read, and a path that is not there, are typed errors", async () => {
    const folder = tempFolder();
    folder.put("a", "x");
    const code = async (input: GrepInput) => codeOf(await stageIn(folder).use(tool, input));
    expect(await code({ pattern: "(" })).toBe("invalid_pattern");
    expect(await code({ pattern: "x", path: "nowhere" })).toBe("not_found");
  });

  test("a search that was stopped ends", async () => {
    const folder = tempFolder();
    folder.put("a", "x");
    expect(codeOf(await stageIn(folder, { signal: AbortSignal.abort() }).use(tool, { pattern: "x" }))).toBe(
      "cancelled",
    );
  });
});

test("a pattern that never comes to an end is ended by the clock, and the process continues", async () => {
  const folder = tempFolder();
  folder.put("a", `${"a".repeat(5_000)}b`);
  const clock = handClock();
  const pending = stageIn(folder).use(grepTool({ ripgrep: null, clock }), { pattern: "(a+)+$" });
  await expect.poll(() => clock.waiting()).toBe(1);
  clock.turn(20_000);
  expect(textOf(await pending)).toBe(
    "No match.\n[The search was stopped after 20 s. Only the results found until then are shown.]",
  );
  expect(clock.waiting()).toBe(0);
});

test("a `rg` in the workspace or in PATH is never run", async () => {
  const folder = tempFolder();
  folder.put("rg", "#!/bin/sh\necho ran > ran\n");
  folder.put("a", "x");
  execFileSync("chmod", ["+x", folder.path("rg")]);
  mkdirSync(folder.path("bin"));
  const stage = stageIn(folder, {
    env: { PATH: `${folder.root}:${process.env.PATH ?? ""}`, RIPGREP_CONFIG_PATH: folder.path("config") },
  });
  folder.put("config", "--files\n");
  expect(textOf(await stage.use(grepTool(), { pattern: "^x" }))).toBe("a");
});

test("where ripgrep cannot be started, the built-in search does the work", async () => {
  const folder = tempFolder();
  folder.put("a", "x");
  expect(textOf(await stageIn(folder).use(grepTool({ ripgrep: "/nowhere/rg" }), { pattern: "x" }))).toBe("a");
});
