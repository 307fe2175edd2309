import { describe, expect, test } from "vitest";
import { COMMANDS } from "../../packages/tui/src/commands/registry.ts";
import { readPage, sectionOf, tableOf } from "./pages.ts";

const page = readPage("docs/terminal.md");

test("docs/terminal.md lists every slash command with its words and what it does, and no others", () => {
  const documented = tableOf(sectionOf(page, "## Commands")).map(([command = "", what = ""]) => [
    command.replaceAll("`", "").replaceAll("\\|", "|").trim(),
    what.trim(),
  ]);
  expect(documented).toEqual(COMMANDS.map(({ name, usage, description }) => [`/${name} ${usage}`.trim(), description]));
});

describe("docs/terminal.md", () => {
  test("names every key that /help names", () => {
    for (const key of ["Shift+Tab", "Ctrl+O", "Ctrl+G", "Ctrl+D", "Ctrl+C", "Esc"]) expect(page.text).toContain(key);
  });
});
