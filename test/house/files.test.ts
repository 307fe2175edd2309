import { globSync } from "node:fs";
import { expect, test } from "vitest";
import { isPackageEntry } from "./rules.ts";
import { readSources, root } from "./sources.ts";

const mostEntries = 14;
/** Folders that hold more, each with its reason. */
const exceptions: Readonly<Record<string, string>> = {
  "packages/cli/src/commands": "one folder for each subcommand",
  "packages/core/src/testing/facts": "the conformance suite: one file for each group of facts",
};

test(`no folder of the sources has more than ${mostEntries} entries, package entries aside`, () => {
  const entriesOf = new Map<string, Set<string>>();
  for (const { path } of readSources()) {
    const names = path.split("/");
    for (let depth = 3; depth < names.length; depth += 1) {
      const folder = names.slice(0, depth).join("/");
      if (!isPackageEntry(path)) entriesOf.set(folder, (entriesOf.get(folder) ?? new Set()).add(names[depth] ?? ""));
    }
  }
  const crowded = [...entriesOf].filter(
    ([folder, names]) => names.size > mostEntries && exceptions[folder] === undefined,
  );
  expect(crowded.map(([folder, names]) => `${folder}: ${names.size}`)).toEqual([]);
  expect(Object.keys(exceptions).filter((folder) => (entriesOf.get(folder)?.size ?? 0) <= mostEntries)).toEqual([]);
});

// Each folder of test/ is a project; a test elsewhere would never run.
test("every test file is in a folder of test/", () => {
  expect(
    globSync(["test/*.{test,spec}.*", "test/**/*.spec.*", "packages/*/src/**/*.{test,spec}.*"], {
      cwd: root,
      exclude: ["**/fixtures/**"],
    }),
  ).toEqual([]);
});
