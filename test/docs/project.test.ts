import { expect, test } from "vitest";
import { codesIn, readPage, sectionOf, tableOf } from "./pages.ts";
import { readSources } from "./sources.ts";

test("docs/project.md lists the fields of a config", () => {
  const [source] = readSources("packages/cli/src/project/config.ts");
  const [, body = ""] = /export interface SluiceConfig \{\n([\s\S]*?)\n\}/.exec(source?.text ?? "") ?? [];
  const fields = [...body.matchAll(/^ {2}readonly (\w+)\?:/gm)].map(([, field = ""]) => field);
  const documented = tableOf(sectionOf(readPage("docs/project.md"), "## Fields")).map(
    ([field = ""]) => codesIn(field)[0],
  );
  expect(fields.length).toBeGreaterThan(10);
  expect(new Set(documented)).toEqual(new Set(fields));
});
