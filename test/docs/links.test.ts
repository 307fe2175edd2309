import { existsSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { expect, test } from "vitest";
import { type Page, readPage, readPages, root, tableOf } from "./pages.ts";

const pages = readPages();

/** Links to files and headings of this repository. */
function localLinks({ text }: Page): readonly string[] {
  const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link);
  return links.filter((link) => !/^[a-z]+:/.test(link));
}

/** As GitHub makes them of headings. */
function anchorsOf({ text }: Page): readonly string[] {
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

test.each(pages.map((page) => [page.path, page] as const))("every link of %s leads somewhere", (_path, page) => {
  const broken = localLinks(page).filter((link) => {
    const [file = "", anchor] = link.split("#");
    const target = file === "" ? page.path : relative(root, join(root, dirname(page.path), file));
    if (!existsSync(join(root, target))) return true;
    return anchor !== undefined && !anchorsOf(readPage(target)).includes(anchor);
  });
  expect(broken).toEqual([]);
});

test("the README leads to every page of docs/", () => {
  const readme = readPage("README.md");
  const linked = localLinks(readme).map((link) => link.split("#")[0]);
  expect(pages.map(({ path }) => path).filter((path) => /^docs\/[^/]+$/.test(path) && !linked.includes(path))).toEqual(
    [],
  );
});

test("docs/decisions/README.md lists every decision by its title, in order", () => {
  const listed = tableOf(readPage("docs/decisions/README.md").text).map(([link = "", title]) => {
    const [, number, file = ""] = /^\[(\d{3})\]\(([^)]+)\)$/.exec(link) ?? [];
    return [file, `# ${Number(number)}. ${title}`];
  });
  const decisions = pages.filter(({ path }) => /^docs\/decisions\/\d/.test(path));
  expect(decisions.length).toBeGreaterThan(0);
  expect(listed).toEqual(decisions.map(({ path, text }) => [basename(path), text.split("\n")[0]]));
});
