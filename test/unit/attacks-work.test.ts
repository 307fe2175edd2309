import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { lineDelta } from "../../packages/stages/src/tools/files/line-delta.ts";
import { globTool } from "../../packages/stages/src/tools/search/glob.ts";
import { compileGlob, compilePath } from "../../packages/stages/src/tools/search/glob-match.ts";
import { walk } from "../../packages/stages/src/tools/search/walk.ts";
import { lineIn } from "../support/lines.ts";
import { stageIn, tempFolder } from "../support/tools.ts";

/** Turns that others got until the work was done. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let busy = true;
  const done = work.finally(() => {
    busy = false;
  });
  while (busy) {
    await setImmediate();
    turns += 1;
  }
  await done;
  return turns;
}

async function names(root: string, signal = new AbortController().signal): Promise<string[]> {
  const found: string[] = [];
  for await (const entry of walk({ workspace: { root }, start: root, nodeModules: true, signal }))
    found.push(entry.names.join("/"));
  return found;
}

describe("rules of a hostile .gitignore", () => {
  const hostile = (rules: number) => Array.from({ length: rules }, (_, at) => `*${"a".repeat(100)}?b${at}*`).join("\n");

  test("let others get their turn many times within one folder", async () => {
    const folder = tempFolder();
    folder.put(".gitignore", hostile(1_000));
    for (let at = 0; at < 3; at += 1) folder.put(`${"a".repeat(240)}${at}`, "");
    // 64 KB of rules times 240 characters is some 15 million steps for each name.
    expect(await turnsDuring(names(folder.root))).toBeGreaterThan(30);
  });

  test("do not outlast an abort", async () => {
    const folder = tempFolder();
    folder.put(".gitignore", hostile(1_000));
    for (let at = 0; at < 3; at += 1) folder.put(`${"a".repeat(240)}${at}`, "");
    const cancel = new AbortController();
    const walking = names(folder.root, cancel.signal);
    void setImmediate().then(() => cancel.abort());
    await expect(walking).rejects.toMatchObject({ code: "cancelled" });
  });

  test("are read up to 64 KB in a folder and its parents together", async () => {
    const folder = tempFolder();
    folder.put(".gitignore", `early\n${`${"x".repeat(900)}\n`.repeat(100)}late`);
    folder.put("sub/.gitignore", `${"y".repeat(900)}\ndeep`);
    for (const name of ["early", "late", "sub/deep"]) folder.put(name, "");
    expect(await names(folder.root)).toEqual([".gitignore", "late", "sub", "sub/.gitignore", "sub/deep"]);
  });
});

describe("a hostile glob", () => {
  test("whose braces stand for very much text is refused", () => {
    expect(compileGlob(`${"a".repeat(200)}{${"b,".repeat(60)}c}`)).toMatchObject({ ok: false });
  });

  test("lets others get their turn while many names are tried", async () => {
    const folder = tempFolder();
    for (let at = 0; at < 20; at += 1) folder.put(`${"a".repeat(240)}${at}`, "");
    const call = stageIn(folder).use(globTool, { pattern: `*${"a".repeat(400)}?b{1,2,3,4,5,6,7,8,9}` });
    expect(await turnsDuring(call)).toBeGreaterThan(10);
  });

  test("of brackets that never close matches itself, whatever its length", () => {
    const text = "[".repeat(200_000);
    expect(compilePath([text])([text])).toBe(true);
    expect(compilePath(["[a]["])(["a["])).toBe(true);
    expect(compilePath(["[]["])(["[]["])).toBe(true);
  });

  test("longer than any file's name is not tried on the names of a command's folder", () => {
    const folder = tempFolder();
    expect(lineIn(folder.root, `ls ${"[".repeat(15_000)}`)).toContainEqual(expect.objectContaining({ kind: "opaque" }));
  });
});

describe("the line count of a rewritten file", () => {
  test("is all its lines where there are too many to compare", () => {
    const before = `x\n${"a\nb\n".repeat(100_000)}y`;
    const after = `b\n${"b\na\n".repeat(100_000)}z`;
    expect(lineDelta(before, after)).toEqual({ added: 200_002, removed: 200_002 });
  });

  test("is exact for a small change in a long file", () => {
    const lines = Array.from({ length: 50_000 }, (_, at) => `line ${at}`);
    const changed = lines.toSpliced(40_000, 1, "other", "another").toSpliced(10, 1);
    expect(lineDelta(lines.join("\n"), changed.join("\n"))).toEqual({ added: 2, removed: 2 });
  });
});
