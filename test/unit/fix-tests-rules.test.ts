import { chmodSync } from "node:fs";
import type { Json, JsonObject } from "@sluice/core";
import { type ResolvedModel, scriptedModel } from "@sluice/stages";
import { fixTests } from "@sluice/stages/pipelines";
import { describe, expect, test } from "vitest";
import { dataOf, eventsOf, session } from "../support/run-kit.ts";
import { talker } from "../support/talker.ts";
import { tempFolder } from "../support/tools.ts";

// What the stages of fixTests run without asking: the project's own commands as they stand, since an option can name a
// program to run or a file to write, in stages too that may not write.

const TESTS = [
  "npm test",
  "npm run test",
  "pnpm test",
  "yarn test",
  "node --test",
  "npx vitest run",
  "npx jest",
  "pytest",
  "pytest -q",
  "python -m pytest",
  "python3 -m unittest",
  "go test ./...",
  "cargo test",
  "make test",
];
const LINTS = [
  "npm run lint",
  "pnpm lint",
  "npx eslint .",
  "npx tsc --noEmit",
  "ruff check .",
  "go vet ./...",
  "make lint",
];

const HOSTILE = [
  "npm test -- --reporter=./x.mjs",
  "npm test -- --outputFile=../x",
  "npm test --script-shell=./x.sh",
  "npm test --node-options=--import=./x.mjs",
  "npm test --prefix ../elsewhere",
  "npm --script-shell ./x.sh test",
  "npm run test -- --globalSetup=./x.mjs",
  "npm run lint -- --fix",
  "pnpm test --config.script-shell=./x.sh",
  "pnpm -C ../elsewhere test",
  "yarn --cwd ../elsewhere test",
  "node --test --import ./x.mjs",
  "node --test --test-reporter=./x.mjs",
  "node --test --test-reporter=tap --test-reporter-destination=../x",
  "node --require ./x.js --test",
  "npx vitest run --config ./x.ts",
  "npx vitest run --reporter=json --outputFile=src/a.ts",
  "npx jest --globalSetup ./x.js",
  "npx --package evil jest",
  "npx eslint . --rulesdir ./x",
  "npx eslint --fix .",
  "npx tsc --noEmit --generateTrace ../x",
  "pytest -p x",
  "pytest -c ./x.ini",
  "pytest --basetemp=src",
  "python -m pytest --junitxml=../x",
  "python -m unittest x",
  "go test -exec ./x ./...",
  "go test -toolexec ./x ./...",
  "go test -o ../x ./...",
  "go vet -vettool=./x ./...",
  "cargo test --config ./x.toml",
  "cargo test --target-dir ../x",
  "cargo clippy --fix",
  "ruff check --fix .",
  "make test --eval=x:=$(shell ./x)",
  "make test SHELL=./x",
  "make -f ./x test",
  "make -C ../elsewhere test",
  "NODE_OPTIONS=--import=./x.mjs npm test",
  "PYTEST_ADDOPTS='-p x' pytest",
  "MAKEFLAGS=--eval=x make test",
  "npm test > ../a.ts",
  "npm test | tee src/a.ts",
  "npm test; ./x.sh",
  "npm test $(./x.sh)",
];

const PROGRAMS = [
  "npm",
  "pnpm",
  "yarn",
  "node",
  "npx",
  "pytest",
  "python",
  "python3",
  "go",
  "cargo",
  "make",
  "ruff",
  "tee",
];

const turn = (...calls: readonly (readonly [tool: string, input: Json])[]) => ({
  calls: calls.map(([tool, input]) => ({ tool, input })),
});
const runs = (commands: readonly string[]) => turn(...commands.map((command) => ["Bash", { command }] as const));

/** fixTests over a script whose stages ask for all of these, with programs that do nothing, and the system prompts of its stages. */
async function asked(commands: readonly string[]) {
  const folder = tempFolder();
  const bin = tempFolder();
  for (const name of PROGRAMS) chmodSync(bin.put(name, "#!/bin/sh\nexit 0\n"), 0o755);
  folder.put("src/a.ts", "export const a = 1;\n");
  const failures = [{ test: "a", error: "b" }];
  // Commands of the project alone, which a model has to run.
  const found = { suite: "./run-tests", linter: "./run-linter" };
  const changes = [{ file: "src/a.ts", change: "c" }];
  const model = scriptedModel({
    stages: {
      reproduce: [
        runs(commands),
        turn(["submit_reproduction", { ...found, command: "npm test", failures, cause: "a.ts:1" }]),
      ],
      fix: [runs(commands), turn(["submit_fix", { summary: "s", changes }])],
      runTests: [runs(commands), turn(["submit_test_run", { command: "npm test", passed: true, failures: [] }])],
      runLinter: [runs(commands), turn(["submit_lint_run", { command: "npm run lint", passed: true, problems: [] }])],
      verify: [turn(["submit_verdict", { verdict: "fixed", summary: "s", problems: [] }])],
    },
  });
  const systemPrompts = new Map<string, string>();
  const listening: ResolvedModel = {
    ...model,
    at: (position) => {
      const inner = model.at(position);
      const doStream: typeof inner.doStream = (call) => {
        systemPrompts.set(position.stage, JSON.stringify(call.prompt[0]));
        return inner.doStream(call);
      };
      return { ...inner, doStream };
    },
  };
  const env = { PATH: `${bin.root}:/usr/bin:/bin` };
  const live = session({ model: listening, env, cwd: folder.root, sandbox: "off" });
  const handle = live.start(fixTests, { task: "make them pass" });
  expect(await handle).toMatchObject({ status: "completed" });
  const events = await eventsOf(live.host, handle.runId);
  const decided = (stage: string, fits: (decision: JsonObject) => boolean): readonly (string | undefined)[] =>
    dataOf(
      events.filter(({ executionId }) => executionId?.startsWith(`${stage}#`) === true),
      "call.decided",
    )
      .filter(fits)
      .map(({ callId }) => commands[Number(/^t1\.c(\d+)$/.exec(String(callId))?.[1])]);
  return {
    systemPrompts,
    free: (stage: string) => decided(stage, ({ verdict, by }) => verdict === "approved" && by === "envelope"),
    refused: (stage: string) => decided(stage, ({ verdict }) => verdict === "refused"),
  };
}

const STAGES = [
  ["reproduce", TESTS],
  ["fix", TESTS],
  ["runTests", TESTS],
  ["runLinter", LINTS],
] as const;

describe("the stages of fixTests", () => {
  test("run the usual commands of a project without asking, each its own", async () => {
    const all = [...TESTS, ...LINTS];
    const { free, refused } = await asked(all);
    for (const [stage, own] of STAGES) {
      expect([stage, free(stage)]).toEqual([stage, own]);
      expect(refused(stage)).toEqual(all.filter((command) => !own.includes(command)));
    }
  });

  test("run none of them with a word more, a variable or a redirect", async () => {
    const { free, refused } = await asked(HOSTILE);
    for (const [stage] of STAGES) {
      expect([stage, free(stage)]).toEqual([stage, []]);
      expect(refused(stage)).toEqual(HOSTILE);
    }
  });

  test("hear in their prompts which commands run at once", async () => {
    const { systemPrompts } = await asked([]);
    for (const [stage] of STAGES) {
      const rules = (fixTests.spec.states.get(stage)?.allowedTools ?? []).map(String);
      const commands = rules.flatMap((rule) => /^Bash\((.*)\)$/.exec(rule)?.[1] ?? []);
      expect(commands.length).toBeGreaterThan(10);
      for (const command of commands) {
        expect(command).not.toContain("*");
        expect(systemPrompts.get(stage)).toContain(`\`${command}\``);
      }
    }
  });
});

describe("the commands that fixTests runs without a model", () => {
  /** fixTests whose programs end with these codes, run by run, with what its stages read and how often each ran. */
  async function fixing(codes: { readonly npm: string; readonly ruff?: string }, linter: string) {
    const folder = tempFolder();
    const bin = tempFolder();
    for (const [name, body] of Object.entries(codes))
      chmodSync(bin.put(name, `#!/bin/sh\necho "$0 $* runs"\n${body}\n`), 0o755);
    folder.put("src/a.ts", "export const a = 1;\n");
    const prompts: string[] = [];
    const model = talker(({ stage, messages }) => {
      if (stage === "verify") prompts.push(JSON.stringify(messages[0]));
      const failures = [{ test: "a", error: "b" }];
      const reproduction = { command: "npm test", suite: "npm test", linter, failures, cause: "a.ts:1" };
      if (stage === "reproduce") return turn(["submit_reproduction", reproduction]);
      if (stage === "fix") return turn(["submit_fix", { summary: "s", changes: [{ file: "src/a.ts", change: "c" }] }]);
      return turn(["submit_verdict", { verdict: "fixed", summary: "s", problems: [] }]);
    });
    const env = { PATH: `${bin.root}:/usr/bin:/bin` };
    const live = session({ model, env, cwd: folder.root, sandbox: "off" });
    const result = await live.run(fixTests, { task: "make them pass" });
    return { result, prompts, stages: model.heard.map(({ stage }) => stage) };
  }

  test("are those of the list, with what they printed in the prompt of the last stage", async () => {
    const { result, prompts, stages } = await fixing({ npm: "exit 0", ruff: "echo E501; exit 1" }, "ruff check .");
    expect(result).toMatchObject({ status: "completed", output: { verdict: "fixed" } });
    expect(stages).toEqual(["reproduce", "fix", "verify"]);
    expect(prompts[0]).toMatch(/npm test runs/);
    expect(prompts[0]).toMatch(/ruff check \. runs.*E501/);
  });

  test("override a verdict that the tests do not bear out", async () => {
    const failsOnce = "test -e again && exit 0; touch again; echo broken; exit 1";
    const { result, stages } = await fixing({ npm: failsOnce }, "");
    expect(result).toMatchObject({ status: "completed", output: { verdict: "fixed" } });
    expect(stages).toEqual(["reproduce", "fix", "verify", "fix", "verify"]);
  });

  test("count as failed if they cannot be run", async () => {
    const { result } = await fixing({ npm: "kill -9 $$" }, "");
    expect(result).toMatchObject({
      status: "failed",
      error: { message: expect.stringMatching(/not fixed after 3 rounds/) },
    });
  });
});
