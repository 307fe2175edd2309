import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { apiIndex, apiPage, apiPageName } from "./api-pages.ts";
import { publicTypes } from "./public-types.ts";

const root = join(import.meta.dirname, "../..");
const pages = join(root, "docs/api");
/** What only Sluice's own packages use. It may change in any version. */
const INTERNAL = /^@sluice\/(?:core\/runtime|stages\/(?:environment-secrets|runtime|tools)|tui(?:\/.*)?|view\/.*)$/;
const PACKAGES = ["core", "stages", "sqlite", "workflows", "gateway", "view", "cli"];

/** What the README of a package says of an entry. */
function aboutOf(name: string): string {
  const [, folder = ""] = name.split("/");
  const readme = readFileSync(join(root, "packages", folder, "README.md"), "utf8");
  const row = readme.split("\n").find((line) => line.startsWith(`| \`${name}\` |`));
  const text = row?.split("|")[2]?.trim() ?? readme.split("\n\n")[1] ?? "";
  // The links of a README lead from another folder.
  const sentence = text.replaceAll(/ ?\(?\[[^\]]*\]\([^)]*\)\)?/g, "").trim();
  return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}`.replace(/\.?$/, ".");
}

const entries = PACKAGES.flatMap(publicTypes)
  .filter(({ name }) => !INTERNAL.test(name))
  .map((entry) => ({ ...entry, about: aboutOf(entry.name) }));

test.each(entries)("docs/api has what $name exports, as built", async (entry) => {
  // After a change that is meant: `npm run api`, and a line in CHANGELOG.md.
  await expect(apiPage(entry, entry.about, entries)).toMatchFileSnapshot(join(pages, apiPageName(entry.name)));
});

test("docs/api has an index and a page for each public entry, and nothing else", async () => {
  await expect(apiIndex(entries)).toMatchFileSnapshot(join(pages, "README.md"));
  const wanted = new Set(["README.md", ...entries.map(({ name }) => apiPageName(name))]);
  expect(readdirSync(pages).filter((file) => !wanted.has(file))).toEqual([]);
});

test("each function and value of the entries for authors has a comment that says what it does", () => {
  const authors = ["@sluice/core", "@sluice/stages", "@sluice/sqlite", "@sluice/workflows", "@sluice/stages/testing"];
  const bare = entries
    .filter(({ name }) => authors.includes(name))
    .flatMap(({ name, own }) =>
      own.filter(({ isType, doc }) => !isType && doc === "").map((one) => `${name}: ${one.name}`),
    );
  expect(bare).toEqual([]);
});

test("the surface is what can be reached from an entry: types that exported ones need, and nothing else", () => {
  const core = entries.find(({ name }) => name === "@sluice/core");
  const names = [...(core?.own ?? []), ...(core?.needed ?? [])].map(({ name }) => name);
  expect(names).toContain("pipeline");
  expect(names).toContain("StateSpec");
  expect(names).not.toContain("createTree");
});
