import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "./sources.ts";

const platforms = ["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64", "win32-x64", "win32-arm64"] as const;

/** Carried for Linux only: on the others a Node that is too old is told so. */
const linuxOnly = new Set(["node-"]);
/** Of a tool that only tests use, and that works without it. */
const optional = new Set(["@openclaw/fs-safe-"]);

function nativeFamilies(lockfile: string): ReadonlyMap<string, ReadonlySet<string>> {
  const families = new Map<string, Set<string>>();
  for (const match of lockfile.matchAll(
    /^ {2}'?(\S+?)((?:linux|darwin|win32)-(?:x64|arm64))(?:-(?:gnu|msvc))?@[^:]+:$/gm,
  )) {
    const [, family = "", platform = ""] = match;
    const found = families.get(family) ?? new Set<string>();
    families.set(family, found.add(platform));
  }
  return families;
}

// pnpm leaves a binary that a registry lacks out of the lockfile without failing.
test("every native dependency is locked for every platform", () => {
  const families = nativeFamilies(readFileSync(join(root, "pnpm-lock.yaml"), "utf8"));
  expect([...families.keys()]).toContain("@typescript/typescript-");
  const missing = [...families]
    .filter(([family]) => !linuxOnly.has(family) && !optional.has(family))
    .flatMap(([family, found]) => platforms.filter((platform) => !found.has(platform)).map((p) => `${family}${p}`));
  expect(missing).toEqual([]);
});
