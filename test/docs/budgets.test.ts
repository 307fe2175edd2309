import { expect, test } from "vitest";
import { codesIn, readPage, sectionOf, tableOf } from "./pages.ts";
import { readSources } from "./sources.ts";

const page = readPage("docs/budgets.md");
const sourceOf = (path: string): string => readSources(path)[0]?.text ?? "";

test("docs/budgets.md counts the models of each table of prices, with their sources and their date", () => {
  const table = sourceOf("packages/stages/src/models/pricing/price-table.ts");
  const parts = [...table.matchAll(/^const (\w+): PriceTable = \{\n([\s\S]*?)^\};/gm)];
  const known = parts.map(([, name = "", text = ""]) => ({
    provider: name.toLowerCase(),
    models: [...text.matchAll(/^ {4}"[^"]+": \[/gm)].length,
    sources: [...text.matchAll(/https:[^"]+/g)].map(([url]) => url),
    asOf: /asOf: "([^"]+)"/.exec(text)?.[1],
  }));
  const [, after = ""] = page.text.split("<!-- compared by a test with the tables -->");
  const documented = tableOf(after).map(([provider = "", models = "", sources = ""]) => ({
    provider: codesIn(provider)[0],
    models: Number(models),
    sources: codesIn(sources),
    asOf: "2026-11-21",
  }));
  expect(page.text).toContain("21 November 2026");
  expect(documented).toEqual(known);
});

test("docs/budgets.md lists the fields of a price and of a usage", () => {
  const fields = (heading: string): readonly string[] =>
    tableOf(sectionOf(page, heading)).flatMap(([field = ""]) => codesIn(field).map((code) => code.replace("?", "")));
  const prices = sourceOf("packages/stages/src/models/pricing/price-table.ts");
  const members = (name: string): readonly string[] => {
    const [, body = ""] = new RegExp(`export interface ${name}[^{]*\\{\\n([\\s\\S]*?)\\n\\}`).exec(prices) ?? [];
    return [...body.matchAll(/readonly (\w+)\??:/g)]
      .map(([, member = ""]) => member)
      .filter((member) => member !== "over");
  };
  const documented = fields("## Prices").filter((field) => !["anthropic", "openai", "google"].includes(field));
  const known = [...members("TokenPrices"), ...members("ModelPrice"), ...members("ModelFacts")];
  expect(documented.toSorted()).toEqual(known.filter((member) => member !== "price").toSorted());

  const types = sourceOf("packages/core/src/definition/result.ts");
  const [, usage = ""] = /export type Usage = \{\n([\s\S]*?)\n\};/.exec(types) ?? [];
  const used = [...usage.matchAll(/readonly (\w+)\??:/g)].map(([, member = ""]) => member);
  expect(fields("## Usage")).toEqual(used);
});
