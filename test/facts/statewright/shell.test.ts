import { execFileSync } from "node:child_process";
import { systemClock } from "@sluice/core";
import { createSession } from "@sluice/stages";
import { expect, onTestFinished } from "vitest";
import { missingProgram } from "../../support/programs.ts";
import { bash, fact, oneState, ours, pipelineOf, play, send } from "../../support/statewright.ts";
import { talker } from "../../support/talker.ts";
import { type TestWorkspace, tempFolder } from "../../support/tools.ts";
import { hasWall } from "../../support/walls.ts";
import { loadDocument } from "../../support/workflows.ts";

// Which command lines a state may run. No one answers here and there is no sandbox, so what needs a grant is refused.

const READING = { allowed_tools: ["Read", "Grep", "Glob", "Bash"] };
const FILES = { "a.txt": "one\ntwo > three\n", "src/b.txt": "x\n", "tests/t.txt": "" };

/** The commands that look at a repository need one. */
function prepare({ root }: TestWorkspace): void {
  execFileSync("git", ["init", "--quiet"], { cwd: root });
}
const runnable = (lines: readonly string[]): readonly string[] =>
  lines.filter((line) => missingProgram(line) === undefined);
/** Those of the lines that a state runs. */
async function runs(state: object, lines: readonly string[]): Promise<readonly string[]> {
  const turns = [...lines.map((line) => bash(line)), send("DONE")];
  const document = oneState({ ...state, turn_cap: lines.length + 3 });
  const { results, result } = await play(document, { a: turns }, { files: FILES, prepare });
  expect(result.status).toBe("completed");
  return lines.filter((_, at) => !isDenied(results[at]?.[0]));
}
function isDenied(output: unknown): boolean {
  const code = typeof output === "object" && output !== null && "code" in output ? output.code : undefined;
  return code === "tool_call_denied";
}

fact(
  66,
  "allowed commands run with any arguments, and every other command is refused with those that are allowed",
  async () => {
    const state = { allowed_tools: ["Bash"], allowed_commands: ["pytest"] };
    const lines = ["pytest -x tests/", "pytest", "rm -rf src", "git push", "pytest-evil", "pytest && rm -rf src"];
    expect(await runs(state, lines)).toEqual(["pytest -x tests/", "pytest"]);
    const { results } = await play(oneState(state), { a: [bash("rm -rf src"), send("DONE")] }, { files: FILES });
    expect(results[0]).toMatchObject([{ reason: expect.stringContaining("rm"), allowedTools: ["Bash(pytest *)"] }]);
  },
);

const READS = runnable([
  "cat a.txt",
  "cat a.txt src/b.txt",
  "grep one a.txt",
  "rg one src",
  "find . -name '*.txt'",
  "ls -la",
  "pwd",
  "sed -n 1p a.txt",
  "git log",
  "git status",
]);
const WRITES = [
  "cat a.txt > b.txt",
  "echo x >> b.txt",
  "sed -i s/one/two/ a.txt",
  "patch -p1 < a.txt",
  "echo x | tee b.txt",
  "cp a.txt b.txt",
  "mv a.txt b.txt",
  "rm a.txt",
  "git clean -fd",
  "git push",
  "git commit -m x",
  "git checkout -- a.txt",
];
const RUNS_CODE = ["cargo test", "pytest", "npm test"];
const NETWORK = ["curl https://a.example", "wget https://a.example"];

ours(
  68,
  "a state that reads runs the commands that only read; what writes, runs code or leaves the machine needs a grant",
  async () => {
    expect(await runs(READING, [...READS, ...WRITES, ...RUNS_CODE, ...NETWORK, "git checkout other"])).toEqual(READS);
    // Code is run where the state lists the command.
    expect(await runs({ ...READING, allowed_commands: ["pytest"] }, ["pytest", "npm test"])).toEqual(["pytest"]);
  },
);

const HEREDOC = "cat <<'EOF'\nx > y\nEOF";

fact(
  69,
  "a redirect to /dev/null and a quoted > write nothing; a heredoc runs where a wall keeps the workspace",
  async () => {
    const lines = ["ls gone 2>/dev/null", "grep 'two > three' a.txt", 'grep "a > b" a.txt 2>&1'];
    expect(await runs(READING, lines)).toEqual(lines);
    expect(await runs(READING, [HEREDOC])).toEqual([]);
    if (!hasWall()) return;
    const turns = [bash(HEREDOC), send("DONE")];
    const live = createSession({
      model: talker(({ turn }) => turns[turn] ?? {}),
      env: { PATH: process.env.PATH ?? "/usr/bin:/bin" },
      cwd: tempFolder().root,
      sandbox: "require",
      clock: systemClock,
    });
    onTestFinished(() => live.close());
    const result = await live.run(pipelineOf(await loadDocument(oneState(READING))), { task: "Read." });
    expect(result).toMatchObject({ status: "completed", denied: [] });
  },
);

ours(
  70,
  "every command of a line has to be allowed, by the words that are listed and without variables in front",
  async () => {
    const state = { allowed_tools: ["Read", "Bash"], allowed_commands: ["npm test"] };
    const lines = [
      "npm test | tail -5",
      "npm test; rm a.txt",
      "npm test && git push",
      "npm test | tee out.txt",
      "npm test $(rm a.txt)",
      "NODE_OPTIONS=--require=./x npm test",
      "./npm test",
      "npm testing",
    ];
    expect(await runs(state, lines)).toEqual(["npm test | tail -5"]);
    // Beside a tool that writes, a plain Bash is every command; a list of commands narrows it.
    expect(await runs({ allowed_tools: ["Read", "Edit", "Bash"] }, ["rm src/b.txt"])).toEqual(["rm src/b.txt"]);
    const narrowed = { allowed_tools: ["Read", "Edit", "Bash"], allowed_commands: ["npm test"] };
    expect(await runs(narrowed, ["rm a.txt", "git push"])).toEqual([]);
  },
);

fact(79, "commands that look like writes inside of quotes run, and every way to write is refused", async () => {
  const quoted = runnable(["rg 'sed -i' src", "rg '>' src 2>&1", "grep 'rm -rf' a.txt"]);
  const writing = [
    "sed -i s/a/b/ a.txt",
    "tee a.txt",
    "dd if=a.txt of=b.txt",
    "cp a.txt b.txt",
    "mv a.txt b.txt",
    "ln -s a.txt b.txt",
    "install a.txt b.txt",
    "rsync a.txt b.txt",
    "mkdir new",
    "touch new",
    "chmod +x a.txt",
    "chown root a.txt",
    "shred a.txt",
  ];
  expect(await runs(READING, [...quoted, ...writing])).toEqual(quoted);
});
