import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openJournalStore } from "@sluice/sqlite";
import { describe, expect, test } from "vitest";
import { call, desk, finishes, PIPELINES, printed, textAt, turn } from "../support/command.ts";
import { type DeskHere, deskHere, sluiceHere } from "../support/command-here.ts";

const single = `${PIPELINES}#single`;

/** One run tells both: people read stderr, programs the object on stdout. */
async function refused(
  { sluice }: Pick<DeskHere, "sluice">,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
) {
  const ended = await sluice([...args, "--output-format", "json"], { env });
  const report = printed(ended);
  expect(report).toMatchObject({ runId: null, status: "failed", output: null, stages: [], denied: [] });
  const message = textAt(report, "error", "message");
  // Where the message is about a place in a file, that and its line follow.
  const [said = ""] = ended.stderr.split(/(?<=\n) {2}at /);
  expect(said).toBe(`sluice: ${message}\n`);
  return { code: ended.code, message, error: textAt(report, "error", "code") };
}

test("as text, the message is on stderr and stdout is empty", async () => {
  const { code, stdout, stderr } = await desk().sluice(["run", "codeRevew", "x"]);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toMatch(/^sluice: there is no pipeline codeRevew\. .*\n$/);
});

describe("nothing is written, and one message says what to fix, for", () => {
  const noStore = (at: DeskHere): void => expect(readdirSync(at.folder)).toEqual([]);

  test("a task without a pipeline where there is no default one: exit 2, with how to name one", async () => {
    const at = deskHere();
    const said = await refused(at, ["run", "fix the parser"]);
    expect(said).toMatchObject({ code: 2, error: "pipeline_not_found" });
    expect(said.message).toContain('as in sluice run codeReview "<task>". Bundled: codeReview, fixTests, auto');
    noStore(at);
  });

  test("an unknown pipeline: exit 2, with what was meant", async () => {
    const at = deskHere();
    const said = await refused(at, ["run", "codeRevew", "x"]);
    expect(said).toMatchObject({ code: 2, error: "pipeline_not_found" });
    expect(said.message).toContain("Did you mean codeReview?");
    noStore(at);
  });

  test("a file that is not there, or is no pipeline file: exit 2", async () => {
    const at = deskHere();
    expect(await refused(at, ["run", "./none.ts", "x"])).toMatchObject({ code: 2, error: "pipeline_not_found" });
    expect(await refused(at, ["run", "some/folder", "x"])).toMatchObject({ code: 2, error: "pipeline_not_found" });
    noStore(at);
  });

  test("a file with several pipelines of which none is named: exit 2, with their names", async () => {
    const at = deskHere();
    const said = await refused(at, ["run", PIPELINES, "x"]);
    expect(said).toMatchObject({ code: 2, error: "pipeline_not_found" });
    expect(said.message).toContain(single);
  });

  test("options of a run that continues, for an answer after which none does here: exit 2", async () => {
    const at = deskHere();
    const said = await refused(at, ["answer", "r0", "x", "deny", "--allow-changed", "--mode", "yolo"]);
    expect(said).toMatchObject({ code: 2, error: "usage" });
    expect(said.message).toBe("--mode, --allow-changed have no effect without --resume");
    noStore(at);
  });

  test("a task that is missing: exit 2", async () => {
    const at = deskHere();
    const said = await refused(at, ["run", "codeReview", "--model", "scripted:any.json"]);
    expect(said).toMatchObject({ code: 2, error: "task_missing" });
    noStore(at);
  });

  test("no model: exit 4, naming --model, SLUICE_MODEL and the variables of the providers", async () => {
    const at = deskHere();
    const said = await refused(at, ["run", "codeReview", "x"]);
    expect(said).toMatchObject({ code: 4, error: "no_model" });
    for (const word of ["--model", "SLUICE_MODEL", "ANTHROPIC_API_KEY", "OPENAI_COMPATIBLE_BASE_URL", "scripted:"]) {
      expect(said.message).toContain(word);
    }
    noStore(at);
  });

  test("an unknown provider and a model without one: exit 2, with what was meant", async () => {
    const at = deskHere();
    const [provider, bare] = [
      await refused(at, ["run", "codeReview", "x", "--model", "antropic/m"]),
      await refused(at, ["run", "codeReview", "x", "--model", "some-model"]),
    ];
    expect(provider).toMatchObject({ code: 2, error: "unknown_provider" });
    expect(provider.message).toContain("Did you mean anthropic/<model>?");
    expect(bare).toMatchObject({ code: 2, error: "unknown_provider" });
    noStore(at);
  });

  test("a key that is missing: exit 4, naming its variable", async () => {
    const at = deskHere();
    const said = await refused(at, ["run", "codeReview", "x", "--model", "anthropic/m"]);
    expect(said).toMatchObject({ code: 4, error: "missing_key" });
    expect(said.message).toContain("ANTHROPIC_API_KEY");
    noStore(at);
  });

  test("a script that is not there: exit 2", async () => {
    const at = deskHere();
    const said = await refused(at, ["run", "codeReview", "x", "--model", "scripted:none.json"]);
    expect(said).toMatchObject({ code: 2, error: "script_not_found" });
    noStore(at);
  });

  test("a workspace that is not there: exit 4", async () => {
    const at = deskHere();
    expect(await refused(at, ["run", "codeReview", "x", "--cwd", "none"])).toMatchObject({
      code: 4,
      error: "workspace_missing",
    });
  });

  test("a definition with five mistakes: exit 2, all five of them", async () => {
    const at = deskHere();
    const file = at.write(
      "five.ts",
      `import { pipeline, stage, to } from "@sluice/core";
       import { z } from "zod";
       const a = stage({ prompt: "{{ctx.nothing}}", allowedTools: ["!Read"], completionTool: "end", completionSchema: z.object({}), turnCap: 0 });
       export const five = pipeline({ id: "5", input: z.object({}), stages: { a }, initial: "b", next: { a: () => to("c") } });`,
    );
    const said = await refused(at, ["run", file, "x"]);
    expect(said).toMatchObject({ code: 2, error: "definition_invalid" });
    for (const path of ["id:", "initial:", "stages.a.prompt:", "stages.a.turnCap:", "stages.a.allowedTools[0]:"]) {
      expect(said.message).toContain(`\n  ${path}`);
    }
    expect(existsSync(at.store)).toBe(false);
  });

  test("a file that cannot be loaded: exit 2, naming it", async () => {
    const { sluice, write } = desk();
    const said = await refused({ sluice: (args) => sluice(args) }, [
      "run",
      write("broken.ts", "export const x = ;"),
      "x",
    ]);
    expect(said).toMatchObject({ code: 2, error: "pipeline_load_failed" });
    expect(said.message).toContain("broken.ts");
  });
});

describe("a store that cannot be used is exit 4 and is left as it was", () => {
  // Root may write anywhere: that a user may not write there is tested with the disks, where rights are dropped.
  test("because there is a file in its place", async () => {
    const at = deskHere();
    const file = at.write("store", "mine");
    const said = await refused(at, ["run", single, "x", "--model", at.script({ work: [finishes()] }), "--store", file]);
    expect(said).toMatchObject({ code: 4, error: "store_not_writable" });
  });

  test("because a newer Sluice wrote it", async () => {
    const at = deskHere();
    mkdirSync(join(at.folder, ".sluice"));
    await openJournalStore(at.store).close();
    const db = new DatabaseSync(join(at.store, "journal.db"));
    db.exec("PRAGMA user_version = 7");
    db.close();
    const said = await refused(at, ["run", single, "x", "--model", at.script({ work: [finishes()] })]);
    expect(said).toMatchObject({ code: 4, error: "store_newer_version" });
    expect(said.message).toMatch(/store version 7; this one reads \d+.*update Sluice/);
  });

  test("because it comes from another machine, until --adopt-store", async () => {
    const at = deskHere();
    mkdirSync(join(at.folder, ".sluice"));
    await openJournalStore(at.store, { machineId: "another machine" }).close();
    const args = ["run", single, "x", "--model", at.script({ work: [finishes()] })];
    const said = await refused(at, args);
    expect(said).toMatchObject({ code: 4, error: "store_foreign_machine" });
    expect(said.message).toContain("--adopt-store");
    expect((await at.sluice([...args, "--adopt-store"])).code).toBe(0);
  });
});

/** Longer than the ids of runs, so that none begins with it. */
const NO_RUN = "r00000000000";

describe("runs that are not there, or not to be had", () => {
  test("a run id that is unknown, and a store that is missing: exit 4", async () => {
    const at = deskHere();
    expect(await refused(at, ["show", NO_RUN])).toMatchObject({ code: 4, error: "store_missing" });
    await at.sluice(["run", single, "x", "--model", at.script({ work: [finishes()] })]);
    for (const command of [
      ["show", NO_RUN],
      ["audit", NO_RUN],
      ["resume", NO_RUN],
      ["cancel", NO_RUN],
      ["answer", NO_RUN, "x", "deny"],
    ]) {
      expect(await refused(at, command)).toMatchObject({ code: 4, error: "run_unknown" });
    }
  });

  test("a run that is at work in a live process cannot be resumed: exit 4, naming the process", async () => {
    const at = desk();
    const model = at.script({ work: [turn(call("Write", { file_path: "x", content: "" })), finishes()] });
    const running = at.start(["run", single, "x", "--model", model, "--wait"]);
    const [, runId = ""] = await running.said("stderr", /sluice answer (\S+)/);
    const said = await refused({ sluice: sluiceHere(at.folder) }, ["resume", runId]);
    expect(said).toMatchObject({ code: 4, error: "run_owned" });
    expect(said.message).toContain(`process ${running.child.pid}`);
  });

  test("a run that has ended prints its result again when it is resumed, and cannot be cancelled (exit 1)", async () => {
    const at = deskHere();
    const model = at.script({ work: [finishes()] });
    const runId = textAt(
      printed(await at.sluice(["run", single, "x", "--model", model, "--output-format", "json"])),
      "runId",
    );
    const again = await at.sluice(["resume", runId.slice(0, 6), "--output-format", "json"]);
    expect([again.code, printed(again)]).toMatchObject([0, { runId, status: "completed", output: { text: "done" } }]);
    expect(again.stderr).toContain(`run ${runId} is already completed`);
    const cancel = await at.sluice(["cancel", runId]);
    expect([cancel.code, cancel.stdout]).toEqual([1, ""]);
    expect(cancel.stderr).toContain("already completed");
  });

  test("in a process that a run started, answer, cancel and resume refuse: exit 2", async () => {
    const at = deskHere();
    for (const args of [
      ["answer", "r0", "x", "approve"],
      ["cancel", "r0"],
      ["resume", "r0"],
    ]) {
      const said = await refused(at, args, { SLUICE_RUN: "r1" });
      expect(said).toMatchObject({ code: 2, error: "inside_run" });
      expect(said.message).toContain("SLUICE_RUN");
    }
  });
});
