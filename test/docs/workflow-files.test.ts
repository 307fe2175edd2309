import { describe, expect, test } from "vitest";
import { type DeskHere, deskHere } from "../support/command-here.ts";
import { type Block, blocksOf, readPage } from "./pages.ts";

const PAGES = ["docs/workflow-files.md", "docs/migrate-statewright.md", "docs/migrate-flujo.md"];

/** An output of a page, and the command that prints it. */
interface Shown {
  readonly where: string;
  readonly command: string;
  /** What a reader writes into a file before, in place of what is there. */
  readonly mistake?: string;
  readonly output: string;
}

const isFile = ({ note }: Block): boolean => note.startsWith("file: ");

/** The folder of a reader who saved every file of a page. */
function folderOf(blocks: readonly Block[]): DeskHere {
  const here = deskHere();
  for (const { note, text } of blocks.filter(isFile)) here.write(note.slice("file: ".length), text);
  return here;
}

/** The last command of the shell block before each output, unless the output names another. */
function shownOn(blocks: readonly Block[]): readonly Shown[] {
  let command = "";
  return blocks.flatMap(({ page, line, language, note, text }): readonly Shown[] => {
    if (language === "sh") command = text.trimEnd().split("\n").at(-1) ?? "";
    const [, kind, rest = ""] = /^output(?:: (of|with) (.*))?$/.exec(note) ?? [];
    if (!note.startsWith("output")) return [];
    const where = `${page}:${line}`;
    if (kind === "of") return [{ where, command: rest, output: text }];
    return [{ where, command, output: text, ...(kind === "with" ? { mistake: rest } : {}) }];
  });
}

const words = (command: string): readonly string[] =>
  [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double ?? single ?? plain ?? "",
  );

describe.each(PAGES)("%s shows what the command prints", (page) => {
  const blocks = blocksOf(readPage(page));
  const shown = shownOn(blocks);

  test.each(shown.map((one) => [one.where, one] as const))("%s", async (_where, { command, mistake, output }) => {
    const here = folderOf(blocks);
    const [field = "", word = ""] = mistake?.split(": ") ?? [];
    for (const { note, text } of mistake === undefined ? [] : blocks.filter(isFile).slice(0, 1))
      here.write(
        note.slice("file: ".length),
        text.replace(new RegExp(`${field}: ${word.slice(0, 6)}\\w+`), `${field}: ${word}`),
      );
    const { stdout } = await here.sluice(words(command).slice(1));
    expect(stdout).toBe(output);
  });

  test("and shows something", () => expect(shown.length).toBeGreaterThan(0));
});

/** The commands of a shell block, which is found by a part of it. */
function commandsOf(blocks: readonly Block[], part: string): readonly string[] {
  const block = blocks.find(({ language, text }) => language === "sh" && text.includes(part));
  return block?.text.trimEnd().split("\n") ?? [];
}

test.each([
  ["sluice init --workflow", 3],
  ["scripted:.sluice/scripts/bugfix.json", 1],
])("docs/workflow-files.md leads to a finished run: %s", async (part, count) => {
  const blocks = blocksOf(readPage("docs/workflow-files.md"));
  const here = count === 1 ? folderOf(blocks) : deskHere();
  const commands = commandsOf(blocks, part);
  expect(commands).toHaveLength(count);
  for (const command of commands) {
    const { code, stderr } = await here.sluice(words(command).slice(1));
    expect([command, code, stderr]).toEqual([command, 0, ""]);
  }
});

test("each file of these pages is a workflow without mistakes", async () => {
  for (const page of ["README.md", ...PAGES]) {
    const blocks = blocksOf(readPage(page));
    const files = blocks.filter(isFile).map(({ note }) => note.slice("file: ".length));
    const workflows = files.filter((file) => file !== "events.json" && !file.includes("/scripts/"));
    const { stdout } = await folderOf(blocks).sluice(["check", ...workflows]);
    expect([page, stdout]).toEqual([page, expect.stringMatching(/^\d+ workflows?: 0 errors, 0 warnings$/m)]);
  }
});
