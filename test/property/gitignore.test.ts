import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { walk } from "../../packages/stages/src/tools/search/walk.ts";

const FILES = [
  "a",
  "b.log",
  "dir/a",
  "dir/b.log",
  "dir/sub/a",
  "dir/sub/x y",
  "other/dir/a",
  "other/!a",
  "other/#b",
  "z/[x]",
  "z/a\\b",
  "z/é",
];

/** What git says it would add, the yardstick. */
function byGit(root: string): string[] {
  const env = { PATH: process.env.PATH ?? "/usr/bin:/bin", GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };
  const out = execFileSync("git", ["ls-files", "--others", "--exclude-standard", "-z"], {
    cwd: root,
    env,
    encoding: "utf8",
  });
  return out
    .split("\0")
    .filter((name) => name !== "")
    .sort();
}

async function byWalk(root: string): Promise<string[]> {
  const names: string[] = [];
  const signal = new AbortController().signal;
  for await (const entry of walk({ workspace: { root }, start: root, nodeModules: true, signal })) {
    if (entry.kind === "file") names.push(entry.names.join("/"));
  }
  return names.sort();
}

const piece = fc.constantFrom(
  "a",
  "b.log",
  "dir",
  "sub",
  "*",
  "**",
  "*.log",
  "d?r",
  "[a-d]ir",
  "[!b]*",
  "x y",
  "other",
  "z",
  "\\!a",
  "\\#b",
  "é",
  "***",
  "d*r",
);
const rule = fc
  .tuple(
    fc.constantFrom("", "!", "\\"),
    fc.constantFrom("", "/"),
    fc.array(piece, { minLength: 1, maxLength: 3 }),
    fc.constantFrom("", "/", " ", "\\ ", "\r"),
  )
  .map(([before, lead, pieces, end]) => before + lead + pieces.join("/") + end);
const file = fc
  .array(fc.oneof(rule, fc.constantFrom("", "# note", "/", "!", "a/", "**/sub", "dir/**", "dir/**/a")), {
    maxLength: 6,
  })
  .map((rules) => rules.join("\n"));

test("what is left out is what git leaves out", async () => {
  const root = mkdtempSync(join(tmpdir(), "sluice-ignore-"));
  try {
    for (const name of FILES) {
      mkdirSync(dirname(join(root, name)), { recursive: true });
      writeFileSync(join(root, name), "");
    }
    execFileSync("git", ["init", "-q"], { cwd: root });
    await fc.assert(
      fc.asyncProperty(file, file, async (top, inDir) => {
        writeFileSync(join(root, ".gitignore"), top);
        writeFileSync(join(root, "dir", ".gitignore"), inDir);
        expect(await byWalk(root)).toEqual(byGit(root));
      }),
      { numRuns: 100 },
    );
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});
