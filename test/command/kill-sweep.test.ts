import type { Json } from "@sluice/core";
import { sqliteStore } from "@sluice/sqlite";
import { codeReview, createSession } from "@sluice/stages";
import { expect, test } from "vitest";
import { pipelineFile, reportOf } from "../support/command-process.ts";
import { commitsOf, expectUnharmed, type Resume, type Scenario, usually } from "../support/kill-scenario.ts";

const SWEEP = { timeout: 240_000 };
const FILE = "src/greeting.ts";
const JSON_OUT = ["--output-format", "json"];
const says = (...calls: readonly (readonly [id: string, name: string, input: Json])[]) => ({
  calls: calls.map(([id, name, input]) => ({ id, name, input })),
});

/** A denied Edit, a granted Write and a Grep in the plan; two Edits that cannot be made twice without a trace. */
const REVIEW: Scenario = {
  args: ["run", "codeReview", "add two entries", "--wait", ...JSON_OUT],
  completion: { plan: "submit_plan", execute: "submit_diff", review: "submit_review" },
  files: { [FILE]: 'export const greeting = "hello";\n// entries\n' },
  answer: ({ body }) => (body.tool === "Write" ? { kind: "approve" } : { kind: "deny", reason: "not in this stage" }),
  turns: {
    submit_plan: [
      says(
        ["p0", "Edit", { file_path: FILE, old_string: "hello", new_string: "overwritten" }],
        ["p1", "Write", { file_path: "notes.md", content: "Two entries.\n" }],
        ["p2", "Grep", { pattern: "entries", output_mode: "content", path: "src" }],
      ),
      says(["p3", "submit_plan", { summary: "Two entries.", steps: ["Add them."], files: [FILE], risks: [] }]),
    ],
    submit_diff: [
      says(
        ["e0", "Read", { file_path: FILE }],
        ["e1", "Edit", { file_path: FILE, old_string: "// entries", new_string: "// entries\n// one" }],
        ["e2", "Edit", { file_path: FILE, old_string: "// one", new_string: "// one\n// two" }],
      ),
      says(["e3", "submit_diff", { summary: "Added.", changes: [{ file: FILE, change: "Two." }], deviations: [] }]),
    ],
    submit_review: [says(["r0", "submit_review", { verdict: "approve", summary: "Fine.", findings: [] }])],
  },
};

const byCommand: Resume = async (place, runId, over) => {
  const resumed = await place.run(["resume", runId, "--wait", ...JSON_OUT]);
  if (over) {
    expect(reportOf(resumed)).toMatchObject({ runId: null, error: { code: "run_finished" } });
    expect(resumed.code).toBe(4);
  } else {
    expect(resumed, resumed.stderr + resumed.stdout).toMatchObject({ code: 0, signal: null });
    expect(reportOf(resumed)).toMatchObject({ runId, status: "completed" });
  }
};

/** In this process, which is another than the killed one, and without the cost of starting one more. */
const byProgram: Resume = async (place, runId, over) => {
  const session = createSession({
    model: "anthropic/test-model",
    env: place.env,
    cwd: place.workspace,
    store: () => sqliteStore(place.store),
    wait: true,
  });
  try {
    const resumed = session.resume(codeReview, runId);
    if (over) await expect(resumed).rejects.toMatchObject({ code: "run_finished" });
    else expect(await resumed).toMatchObject({ status: "completed" });
  } finally {
    await session.close();
  }
};

test("a run killed before any of its commits goes on where it was, by the command or in a program", SWEEP, async () => {
  await using usual = await usually(REVIEW);
  expect(usual.end.status).toBe("completed");
  await atEach(commitsOf(usual), async (commit) => {
    await expectUnharmed(usual, `before:${commit}`, commit % 3 === 0 ? byCommand : byProgram);
  });
});

test("a run killed between a commit and what follows from it goes on where it was", SWEEP, async () => {
  await using usual = await usually(REVIEW);
  // Where nothing happens between two commits, dying after the one is dying before the other.
  const acts = usual.journals.flatMap(({ records }) =>
    records.flatMap(({ stepId, phase }, seq) => (phase === "done" && /\/(model|call)$/.test(stepId) ? [seq] : [])),
  );
  expect(acts).toHaveLength(10);
  await atEach(acts, (commit) => expectUnharmed(usual, `after:${commit}`, byProgram));
});

/** Two siblings that write a file each. */
const FAN: Scenario = {
  args: ["run", `${pipelineFile("pipelines.ts")}#fan`, "go", ...JSON_OUT],
  completion: { begin: "submit_begin", lint: "submit_lint", test: "submit_test", end: "submit_end" },
  files: {},
  turns: {
    submit_begin: [says(["b0", "submit_begin", { said: "go" }])],
    submit_lint: [
      says(["l0", "Write", { file_path: "lint.txt", content: "lint\n" }]),
      says(["l1", "submit_lint", { said: "clean" }]),
    ],
    submit_test: [
      says(["t0", "Write", { file_path: "test.txt", content: "test\n" }]),
      says(["t1", "submit_test", { said: "pass" }]),
    ],
    submit_end: [says(["e0", "submit_end", { said: "both" }])],
  },
};

test("a run killed while its siblings work goes on with each where it was", SWEEP, async () => {
  await using usual = await usually(FAN);
  expect(usual.end.status).toBe("completed");
  const someCommits = commitsOf(usual).filter((commit) => commit % 5 === 0);
  await atEach(someCommits, (commit) => expectUnharmed(usual, `before:${commit}`, byCommand));
});

/** Does something for each, two at a time. */
async function atEach<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values();
  const lane = async (): Promise<void> => {
    for (const item of rest) await work(item);
  };
  await Promise.all([lane(), lane()]);
}
