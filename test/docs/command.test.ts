import { describe, expect, test } from "vitest";
import { blocksOf, codesIn, readPage, readPages, root, sectionOf, sluice, tableOf } from "./pages.ts";

const page = readPage("docs/command.md");
const WORKING = ["run", "resume", "fork", "answer"];
/** Commands that carry a protocol: they have none of the common options but those of their own section. */
const SERVING = ["gateway", "acp", "hook"];

/** What the command itself says: how it is called, and the options it lists. */
function helpOf(command: string): { readonly usage: string; readonly options: readonly string[] } {
  const { stdout, status } = sluice([...command.split(" ").filter((word) => word !== ""), "--help"], root);
  expect(status).toBe(0);
  const options = [...stdout.matchAll(/^ {2}(?:-\w, )?(--\S+(?: (?:<[^>]+>|\[[^\]]+\]))?)(?: {2}|$)/gm)].map(
    ([, flags = ""]) => flags,
  );
  const own = options.filter((flags) => flags !== "--help" && flags !== "--version");
  return { usage: /^Usage: (.*)$/m.exec(stdout)?.[1] ?? "", options: own };
}

/** The commands below a command, or all top-level ones. */
function commandsIn(...path: readonly string[]): readonly string[] {
  const [, listed = ""] = /^Commands:\n([\s\S]*?)\n\n/m.exec(sluice([...path, "--help"], root).stdout) ?? [];
  return [...listed.matchAll(/^ {2}(\w+) /gm)].map(([, name = ""]) => name).filter((name) => name !== "help");
}

const commands = commandsIn();
const nested = commands.flatMap((command) =>
  SERVING.includes(command) ? commandsIn(command).map((name) => [command, `${command} ${name}`] as const) : [],
);
const optionsIn = (heading: string): readonly string[] =>
  tableOf(sectionOf(page, heading).split("\n### ")[0] ?? "").map(([option = ""]) => codesIn(option)[0] ?? option);

test("docs/command.md has a section for every command, and for no others", () => {
  const sections = [...page.text.matchAll(/^## sluice (\w+)$/gm)].map(([, name = ""]) => name);
  expect(sections.toSorted()).toEqual(commands.toSorted());
});

describe("docs/command.md says of each command what its help says", () => {
  test.each(commands)("%s", (command) => {
    const { usage, options } = helpOf(command);
    const section = sectionOf(page, `## sluice ${command}`);
    expect(blocksOf({ path: page.path, text: section })[0]?.text).toBe(`${usage}\n`);
    const common = SERVING.includes(command) ? [] : optionsIn("## Common options");
    const documented = [
      ...(command === "demo" ? common.slice(0, 1) : common),
      ...(WORKING.includes(command) ? optionsIn("## Work options") : []),
      ...optionsIn(`## sluice ${command}`),
    ];
    expect(documented.toSorted()).toEqual(options.toSorted());
  });
});

describe("docs/command.md says of each command below another what its help says", () => {
  test.each(nested)("%s: %s", (parent, command) => {
    const { usage, options } = helpOf(command);
    const section = sectionOf(page, `### sluice ${command}`);
    expect(blocksOf({ path: page.path, text: section })[0]?.text).toBe(`${usage}\n`);
    const own = optionsIn(`### sluice ${command}`);
    const shared = optionsIn(`## sluice ${parent}`).filter((option) => options.includes(option));
    expect([...new Set([...own, ...shared])].toSorted()).toEqual(options.toSorted());
  });
});

test("docs/command.md lists the exit codes that the help lists", () => {
  const { stdout } = sluice(["run", "--help"], root);
  const [, listed = ""] = /Exit codes:\n([\s\S]*)$/.exec(stdout) ?? [];
  const codes = [...listed.matchAll(/(?:^|\s)(\d+)(?=\s{2}| and|:)/g)].map(([, code = ""]) => code);
  const documented = tableOf(sectionOf(page, "## Exit codes")).flatMap(([code = ""]) => code.split(", "));
  expect(documented.toSorted()).toEqual(codes.toSorted());
});

test("every command line of the documentation uses existing commands and options", () => {
  const lines = readPages()
    .flatMap(blocksOf)
    .filter(({ language }) => language === "sh")
    .flatMap(({ page: path, text }) => text.split("\n").map((line) => ({ path, line })));
  const called = lines.flatMap(({ path, line }) => {
    const [, rest] = /^(?:npx sluice|sluice|npm start --) (.*?)(?:\s+#.*)?$/.exec(line) ?? [];
    return rest === undefined ? [] : [{ path, line, words: rest.split(" ") }];
  });
  expect(called.length).toBeGreaterThan(10);
  const paths = [...commands, ...nested.map(([, command]) => command)];
  const options = new Map(paths.map((command) => [command, helpOf(command).options]));
  const wrong = called.filter(({ words }) => {
    const [command = "", ...given] = words;
    const known = (options.get(`${command} ${given[0]}`) ?? options.get(command))?.map((option) =>
      option.replace(/[ [=].*$/, ""),
    );
    if (known === undefined) return true;
    // What follows is for another program.
    const rest = given.slice(0, given.includes("--") ? given.indexOf("--") : undefined);
    return rest.some((word) => word.startsWith("--") && !known.includes(word.replace(/=.*$/, "")));
  });
  expect(wrong).toEqual([]);
});
