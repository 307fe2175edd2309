import { expect, test } from "vitest";
import { codesIn, readPage, sectionOf, tableOf } from "./pages.ts";
import { readSources } from "./sources.ts";

const CONFIG = "packages/stages/src/tools/mcp/config.ts";

/** The members of an interface that are its own. */
function membersOf(name: string): readonly string[] {
  const [source] = readSources(CONFIG);
  const [, body = ""] =
    new RegExp(`export interface ${name} [^{]*\\{\\n([\\s\\S]*?)\\n\\}`).exec(source?.text ?? "") ?? [];
  return [...body.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, member = ""]) => member);
}

test("docs/mcp.md lists the settings of a server, and says of which kind each is", () => {
  const rows = tableOf(sectionOf(readPage("docs/mcp.md"), "## Settings"));
  const documented = (kind: string): readonly string[] =>
    rows.filter(([, of]) => of === kind).map(([setting = ""]) => codesIn(setting)[0] ?? "");
  expect(documented("stdio")).toEqual(membersOf("McpStdioServer"));
  expect(documented("HTTP")).toEqual(membersOf("McpHttpServer"));
  expect(documented("both").toSorted()).toEqual(membersOf("McpServerLimits").toSorted());
});
