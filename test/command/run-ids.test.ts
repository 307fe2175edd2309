import { expect, test } from "vitest";
import { type DeskHere, deskHere, forkedRun } from "../support/command-here.ts";

/** What follows the run on the command line, for the commands that need more. */
const REST: Readonly<Record<string, readonly string[]>> = {
  answer: ["r1", "approve"],
  message: ["hello"],
  fork: ["--from", "start#1"],
};
/** Commands that name a run with an option. */
const BY_OPTION: Readonly<Record<string, readonly string[]>> = {
  gateway: ["--resume"],
};

/** The commands that take a run, with how it is named, from what they print for --help. */
async function takers(
  here: DeskHere,
): Promise<readonly { readonly command: string; readonly args: readonly string[] }[]> {
  const { stdout } = await here.sluice(["--help"]);
  const [, list = ""] = /Commands:\n((?: {2}.*\n)+)/.exec(stdout) ?? [];
  const commands = [...list.matchAll(/^ {2}(\w+)/gm)].map(([, name = ""]) => name);
  const found: { command: string; args: readonly string[] }[] = [];
  for (const command of commands) {
    if (command === "help") continue;
    const { stdout: help } = await here.sluice([command, "--help"]);
    const usage = /^Usage: (.*)$/m.exec(help)?.[1] ?? "";
    if (/[<[]run\b/.test(usage.replace(/ \[options\]/, ""))) found.push({ command, args: [] });
    for (const option of BY_OPTION[command] ?? []) {
      expect(help).toContain(`${option} <run>`);
      found.push({ command, args: [option] });
    }
    // An option for a run that this test does not know.
    const options = [...help.matchAll(/(--\w[\w-]*) <run>/g)].map(([, option]) => option);
    expect(options).toEqual(BY_OPTION[command] ?? []);
  }
  return found;
}

test("every command that takes a run takes a unique beginning of its id, and lists the candidates of another one", async () => {
  const here = deskHere();
  const first = await forkedRun(here, "one");
  const second = await forkedRun(here, "two");
  const all = await takers(here);
  expect(all.map(({ command }) => command).toSorted()).toEqual(
    "answer audit cancel export fork gateway interrupt message replay report resume show".split(" "),
  );
  // Longer than the first difference of the two, since some of the commands start other runs.
  const length = [...first].findIndex((letter, at) => letter !== second[at]) + 5;
  for (const { command, args } of all) {
    const named = (id: string): readonly string[] => [command, ...args, id, ...(REST[command] ?? [])];
    const several = await here.sluice(named("r"));
    expect([command, several.code, several.stderr]).toEqual([
      command,
      4,
      expect.stringMatching(new RegExp(`\\d runs in .* begin with r: .*${second}, ${first}\\.`)),
    ]);
    const none = await here.sluice(named("rzzzzzz"));
    expect([command, none.code, none.stderr]).toEqual([command, 4, expect.stringContaining("there is no run rzzzzzz")]);
    const one = await here.sluice(named(first.slice(0, length)));
    expect([command, one.stderr]).toEqual([command, expect.not.stringMatching(/there is no run|begin with/)]);
    expect([command, `${one.stdout}${one.stderr}`]).toEqual([
      command,
      expect.stringContaining(command === "answer" ? "r1" : first),
    ]);
  }
});
