import { readdirSync } from "node:fs";
import { done, type Json, pipeline, stage, to } from "@sluice/core";
import { poll, script } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { commandSession, play } from "../support/commands.ts";
import { json } from "../support/run-kit.ts";
import { talker } from "../support/talker.ts";
import { tempFolder } from "../support/tools.ts";

// Values that a model wrote, on their way into commands: as an argument, in a variable and on standard input.

/** Each would create a file `pwned` if anything read it as code. */
const HOSTILE: readonly string[] = [
  // Ends of quotes, and commands behind them.
  "a'; touch pwned; echo 'b",
  'a"; touch pwned; echo "b',
  "a`touch pwned`b",
  "a$(touch pwned)b",
  "\u0024{IFS}touch\u0024{IFS}pwned",
  "$'\\x27'; touch pwned; #",
  "'\"'\"'; touch pwned; '\"'\"'",
  "\\'; touch pwned; \\'",
  // Separators, pipes and redirects.
  "; touch pwned",
  "& touch pwned &",
  "&& touch pwned",
  "|| touch pwned",
  "| tee pwned",
  "> pwned",
  ">> pwned",
  ">| pwned",
  "2> pwned",
  "<(touch pwned)",
  "a\ntouch pwned\n",
  "a\r\ntouch pwned",
  "a;\ttouch\tpwned",
  "#\ntouch pwned",
  "<<EOF\n$(touch pwned)\nEOF",
  // What shells expand.
  "*",
  "~/x",
  "{a,b}",
  "$HOME",
  "\u0024{HOME:=x}",
  "$((1+1))",
  "$[1+1]",
  "!!",
  "a=b touch pwned",
  "\u0024{x:-$(touch pwned)}",
  "%s%s%n",
  "\\n\\0",
  // Templates inside of values.
  "{{ctx.run.input.other}}",
  "{{ctx.workspace}}",
  "{{ ctx.task }}",
  "\\{{ctx.task}}",
  "\u0024{{ctx.task}}",
  "{{#each x}}{{/each}}",
  "<%= `touch pwned` %>",
  "#{`touch pwned`}",
  // Other characters than they seem.
  "a\u2028touch pwned",
  "a\u00a0;\u00a0touch pwned",
  "\uff1b touch pwned",
  "\u202egnp.exe",
  "a\u0085touch pwned",
  "\u001b]0;title\u0007",
  "\u001b[31mred",
  "e\u0301",
  "\ud83d\ude00",
  // JSON and variables.
  '"}, {"command": "touch pwned"}, {"',
  '\\", \\"shell\\": \\"touch pwned',
  "__proto__",
  "A=1\nPATH=/tmp",
  "LD_PRELOAD=./pwn.so",
  "() { :; }; touch pwned",
  // Long, and empty.
  "x".repeat(20_000).concat("; touch pwned"),
  "",
  " ",
  "a b  c",
];
/** Read as options where a value stands at the start of an argument. */
const OPTIONS = [
  "-",
  "--",
  "-rf",
  "--output=pwned",
  "-o pwned",
  "--exec=touch pwned",
  "-e",
  "--\n",
  "-\u0000",
  "-v -v",
];

/** What a command got, between two marks that no trimming reaches. */
function got(output: Json): string {
  const { stdout } = z.object({ stdout: z.string() }).parse(output);
  return stdout.slice(1, -1);
}
const VALUE = "{{ctx.run.input.value}}";
const BY_ARGUMENT = { command: ["printf", "%s", `[${VALUE}]`] };
const ALONE = { command: ["printf", "[%s]", VALUE] };
const BY_VARIABLE = { command: { shell: 'printf "[%s]" "$VALUE"' }, env: { VALUE } };
const BY_STDIN = { command: ["cat"], stdin: `[${VALUE}]` };

const workspace = () => {
  const folder = tempFolder();
  const names = (): readonly string[] => readdirSync(folder.root).filter((name) => name !== ".sluice");
  return { folder, names };
};

describe("a value that a model wrote", () => {
  /** All ways into a command, one after the other. */
  const ways = pipeline({
    id: "ways",
    input: { type: "object" },
    stages: {
      argument: script(BY_ARGUMENT),
      alone: script(ALONE),
      variable: script(BY_VARIABLE),
      stdin: script(BY_STDIN),
      asked: poll({ ...ALONE, every: "1m" }),
    },
    initial: "argument",
    next: {
      argument: () => to("alone"),
      alone: () => to("variable"),
      variable: () => to("stdin"),
      stdin: () => to("asked"),
      asked: ({ output }, { upstream: { argument, alone, variable, stdin } }) =>
        done(json([argument, alone, variable, stdin, output])),
    },
  });

  test.each(HOSTILE.map((value) => [JSON.stringify(value).slice(0, 60), value]))(
    "is one value: %s",
    async (_, value) => {
      const { folder, names } = workspace();
      const result = await commandSession({ workspace: folder }).run(ways, { value, other: "other", task: "task" });
      const outputs = z
        .array(z.json())
        .length(5)
        .parse("output" in result ? result.output : result);
      for (const text of outputs.map(got)) {
        if (value.length > 16_000) expect(text).toMatch(/^x+\n… \[.* omitted;/);
        else expect(text).toBe(value);
      }
      expect(names()).toEqual([]);
    },
  );

  test.each(OPTIONS)("is no option: %j", async (value) => {
    const { folder, names } = workspace();
    const { output } = await play(script(ALONE), { value }, { workspace: folder });
    expect(output).toMatchObject({ code: "script", detail: { cause: "input", exitCode: null } });
    expect(names()).toEqual([]);
  });

  test("of another type than text is JSON, also in a place where a list would be several arguments", async () => {
    for (const value of [["-rf", "/"], { a: "; touch pwned" }, 3, true, null]) {
      const { output } = await play(script(BY_ARGUMENT), { value });
      expect(got(output)).toBe(JSON.stringify(value));
    }
  });

  test("chooses no program, folder, variable or other command, since none of these has a template", async () => {
    const choosing: readonly object[] = [
      { command: [VALUE] },
      { command: [`./${VALUE}`] },
      { command: { shell: `echo ${VALUE}` } },
      { command: ["true"], cwd: VALUE },
      { command: ["true"], env: { [VALUE]: "x" } },
      { command: ["true"], env: { PATH: VALUE } },
      { command: ["true"], env: { NODE_OPTIONS: VALUE } },
      { command: ["true"], env: { LD_PRELOAD: VALUE } },
      { command: ["true"], env: { GIT_SSH_COMMAND: VALUE } },
      { command: ["true"], env: { BASH_ENV: "x" } },
      { command: ["true"], env: { SLUICE_RUN: "x" } },
      { command: ["true"], secrets: [VALUE] },
    ];
    for (const options of choosing) {
      const state = () => play(script(options as Parameters<typeof script>[0]), { value: "x" });
      await expect(state(), JSON.stringify(options)).rejects.toMatchObject({ code: "definition_invalid" });
    }
  });
});

test("a model that completes with hostile data reaches a script only as that data", async () => {
  const value = "'; touch pwned; '\n$(touch pwned)";
  const notes = stage({
    prompt: "Write.",
    allowedTools: [],
    completionTool: "submit",
    completionSchema: z.object({ text: z.string() }),
    turnCap: 2,
  });
  const publish = script({ command: ["cat"], stdin: "upstream" });
  const publishing = pipeline({
    id: "publishing",
    input: { type: "object" },
    stages: { notes, publish },
    initial: "notes",
    next: { notes: () => to("publish"), publish: ({ output }) => done(output.parsed) },
  });
  const { folder, names } = workspace();
  const model = talker(() => ({ calls: [{ tool: "submit", input: { text: value } }] }));
  const result = await commandSession({ model, workspace: folder }).run(publishing, {});
  expect(result).toMatchObject({ status: "completed", output: { notes: { text: value } } });
  expect(names()).toEqual([]);
});
