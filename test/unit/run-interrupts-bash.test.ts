import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { backToInterrupted, done, type Json, pipeline, systemClock } from "@sluice/core";
import { createSession } from "@sluice/stages";
import { describe, expect, onTestFinished, test } from "vitest";
import { caller, completed, dataOf, eventsOf, json, noModel, work, workExecutor } from "../support/run-kit.ts";
import { hasWall } from "../support/walls.ts";

// Files that the built-in tools change, without and with a sandbox around commands.

const output = { stages: [], execution: "sequential" } as const;

function workspace(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "sluice-interrupts-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "src"));
  writeFileSync(join(folder, "src", "old.ts"), "old\n");
  return folder;
}

/** One execution that makes these calls, one a turn; files of src interrupt it. */
function calling(calls: readonly (readonly [tool: string, input: Json])[]) {
  return pipeline({
    id: "calls",
    input: { type: "object" },
    interrupts: { REVIEW: { files: "src/**", target: "review" } },
    stages: {
      work: work<Json, unknown>({
        act: async (scope) => {
          const call = caller(scope);
          const outputs: Json[] = [];
          for (const [name, input] of calls) outputs.push(await call(name, input));
          return completed(outputs);
        },
      }),
      review: work<Json, unknown>({ act: ({ ctx }) => completed(json(ctx.input)) }),
    },
    initial: "work",
    transitions: [
      { from: "work", on: "success", to: output },
      { from: "review", on: "success", to: backToInterrupted() },
      { from: "review", on: "failure", to: done("failed") },
    ],
  });
}

/** The files of each interrupt. */
async function interruptsOf(calls: Parameters<typeof calling>[0], sandbox: "off" | "require" = "off") {
  const session = createSession({
    model: noModel,
    env: { PATH: process.env.PATH ?? "/usr/bin:/bin" },
    cwd: workspace(),
    mode: "yolo",
    sandbox,
    executors: [workExecutor],
    clock: systemClock,
  });
  onTestFinished(() => session.close());
  const run = session.start(calling(calls), {});
  expect(await run).toMatchObject({ status: "completed" });
  return dataOf(await eventsOf(session.host, run.runId), "interrupt.started").map(({ files }) => files);
}

describe.each([["off"], ["require"]] as const)("with the sandbox %s", (sandbox) => {
  const skip = sandbox === "require" && !hasWall();

  test.skipIf(skip)("a command that creates, changes or removes a file is found by what it changed", async () => {
    const bash = (command: string) => ["Bash", { command }] as const;
    expect(
      await interruptsOf(
        [
          bash("mkdir -p src/deep && echo new > src/deep/new.ts"),
          bash("cd src && echo more >> old.ts"),
          bash('node -e \'require("fs").rmSync("src/old.ts")\''),
        ],
        sandbox,
      ),
    ).toEqual([["src/deep/new.ts"], ["src/old.ts"], ["src/old.ts"]]);
  });

  test.skipIf(skip)("a folder that a command makes or removes is no file", async () => {
    expect(
      await interruptsOf([["Bash", { command: "mkdir -p src/deep && rmdir src/deep; mkdir src/empty" }]], sandbox),
    ).toEqual([]);
  });

  test.skipIf(skip)(
    "a command that fails after its change counts, and one that changes nothing there does not",
    async () => {
      expect(
        await interruptsOf(
          [
            ["Bash", { command: "echo x > src/x.ts; exit 3" }],
            ["Bash", { command: "cat src/old.ts; echo y > other.txt" }],
          ],
          sandbox,
        ),
      ).toEqual([["src/x.ts"]]);
    },
  );
});

test("an edit and a new file are found by their paths, and a write of the same text changes nothing", async () => {
  expect(
    await interruptsOf([
      ["Read", { file_path: "src/old.ts" }],
      ["Edit", { file_path: "src/old.ts", old_string: "old", new_string: "new" }],
      ["Write", { file_path: "./src/../src/added.ts", content: "added" }],
      ["Write", { file_path: "src/added.ts", content: "added" }],
      ["Edit", { file_path: "src/old.ts", old_string: "not there", new_string: "x" }],
    ]),
  ).toEqual([["src/old.ts"], ["src/added.ts"]]);
});
