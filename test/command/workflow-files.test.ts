import { cpSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { at, call, finishes, lines, printed, textAt, turn } from "../support/command.ts";
import { deskHere } from "../support/command-here.ts";
import { asksFirst, NOTE, runNamed, sends } from "../support/workflow-desk.ts";

const JSON_OUT = ["--output-format", "json"];
const FIXTURES = join(import.meta.dirname, "../fixtures");
/** The same document as JSON. */
const NOTE_JSON = JSON.stringify({
  id: "note",
  initial: "writing",
  states: {
    writing: { allowed_tools: ["Read"], on: { WRITTEN: "complete", GIVE_UP: "failed" } },
    complete: { type: "final", outcome: "completed" },
    failed: { type: "final", outcome: "failed" },
  },
});
const error = (ended: { readonly stdout: string; readonly code: number | null; readonly stderr: string }) => [
  ended.code,
  textAt(printed(ended), "error", "code"),
];

describe("sluice run takes a workflow by its path", () => {
  test("as YAML, and ends by the event that the agent sends", async () => {
    const here = deskHere();
    here.write("flows/note.yaml", NOTE);
    const writes = turn(call("Write", { file_path: "notes/a.md", content: "a note\n" }));
    const ended = await runNamed(here, "flows/note.yaml", [writes, sends("WRITTEN", { rationale: "done" })]);
    expect([ended.code, printed(ended)]).toMatchObject([
      0,
      { status: "completed", output: { event: "WRITTEN", data: { rationale: "done" } }, denied: [] },
    ]);
    expect(readFileSync(join(here.folder, "notes/a.md"), "utf8")).toBe("a note\n");
  });

  test("as JSON, without a slash in its name", async () => {
    const here = deskHere();
    here.write("note.json", NOTE_JSON);
    expect((await runNamed(here, "note.json", [sends("WRITTEN")])).code).toBe(0);
  });

  test("as a folder of Markdown stages", async () => {
    const here = deskHere();
    cpSync(join(FIXTURES, "markdown-stages/code-review"), join(here.folder, "code-review"), { recursive: true });
    const refuses = turn(call("submit_plan", { summary: "s" }));
    const model = here.script({ plan: [refuses] });
    const ended = await here.sluice(["run", "./code-review", "x", "--model", model, ...JSON_OUT]);
    expect(at(printed(ended), "stages", 0)).toMatchObject({ executionId: "plan#1" });
  });

  test("with an outcome of its final state: a failed one is exit code 1", async () => {
    const here = deskHere();
    here.write("note.yaml", NOTE);
    const ended = await runNamed(here, "note.yaml", [sends("GIVE_UP")]);
    expect([ended.code, printed(ended)]).toMatchObject([1, { status: "failed" }]);
  });

  test("and says of each mistake where it is, before anything is stored", async () => {
    const here = deskHere();
    here.write("note.yaml", NOTE.replace("target: complete", "target: complet"));
    const ended = await runNamed(here, "note.yaml", []);
    expect(error(ended)).toEqual([2, "workflow_invalid"]);
    expect(ended.stderr).toContain(`${join(here.folder, "note.yaml")}:10:21: error: There is no state "complet".`);
    expect(ended.stderr).toContain('did you mean "complete"?');
    expect(existsSync(here.store)).toBe(false);
  });

  test("and shows warnings once", async () => {
    const here = deskHere();
    here.write(
      "note.yaml",
      NOTE.replace("  complete: { type: final, outcome: completed }", "  complete: { type: final }"),
    );
    const ended = await runNamed(here, "note.yaml", [sends("WRITTEN")]);
    expect([ended.code, ended.stderr.match(/warning/g)?.length]).toEqual([0, 1]);
  });

  test("a tool that does not exist is a mistake of the file", async () => {
    const here = deskHere();
    here.write("note.yaml", NOTE.replace("[Read,", "[Raed,"));
    const ended = await runNamed(here, "note.yaml", []);
    expect([...error(ended), ended.stderr]).toMatchObject([2, "workflow_invalid", expect.stringContaining("6:21")]);
  });

  test("that is not there is not found", async () => {
    const here = deskHere();
    expect(error(await runNamed(here, "flows/none.yaml", []))).toEqual([2, "workflow_not_found"]);
    here.write("folder/readme.md", "");
    expect(error(await runNamed(here, "./folder", []))).toEqual([2, "pipeline_not_found"]);
  });
});

describe("workflows of a project", () => {
  test("are found by name when the folder is trusted, which is remembered until one of its files changes", async () => {
    const here = deskHere();
    here.write(".sluice/workflows/note.yaml", NOTE);
    const before = await runNamed(here, "note", [sends("WRITTEN")]);
    expect(error(before)).toEqual([2, "folder_untrusted"]);
    expect([before.stderr.includes("--trust"), existsSync(here.store)]).toEqual([true, false]);
    expect((await runNamed(here, "note", [sends("WRITTEN")], "--trust")).code).toBe(0);
    expect((await runNamed(here, "note", [sends("WRITTEN")])).code).toBe(0);
    here.write(".sluice/workflows/note.yaml", `${NOTE}# another comment\n`);
    expect(error(await runNamed(here, "note", []))).toEqual([2, "folder_untrusted"]);
  });

  test("may be folders, also with a dot in their names", async () => {
    const here = deskHere();
    here.write(
      ".sluice/workflows/note.v2/pipeline.yaml",
      "id: note\ninitial: writing\ntransitions:\n  - { from: writing, to: done }\n",
    );
    const stage =
      "---\nallowedTools: []\ncompletionTool: finish\ncompletionSchema: { type: object, properties: { text: { type: string } } }\n---\nWork.\n";
    here.write(".sluice/workflows/note.v2/writing.md", stage);
    expect(printed(await runNamed(here, "note.v2", [finishes("two")], "--trust"))).toMatchObject({
      output: { text: "two" },
    });
  });

  test("of one name are an error that lists all, pipelines and those of the config included", async () => {
    const here = deskHere();
    here.write(".sluice/workflows/note.yaml", NOTE);
    here.write(".sluice/workflows/note.json", NOTE_JSON);
    here.write(".sluice/pipelines/note.ts", "");
    const ended = await runNamed(here, "note", [], "--trust");
    expect(error(ended)).toEqual([2, "pipeline_ambiguous"]);
    for (const file of [".sluice/workflows/note.yaml", ".sluice/workflows/note.json", ".sluice/pipelines/note.ts"])
      expect(ended.stderr).toContain(file);
  });

  test("win over a bundled pipeline, which is said, and are suggested by name", async () => {
    const here = deskHere();
    here.write(".sluice/workflows/codeReview.yaml", NOTE);
    const ours = await runNamed(here, "codeReview", [sends("WRITTEN")], "--trust");
    expect([ours.code, ours.stderr]).toEqual([0, expect.stringContaining("not the bundled one")]);
    expect((await runNamed(here, "codeRevew", [])).stderr).toContain("Did you mean codeReview?");
  });

  test("can be the default pipeline of the config", async () => {
    const here = deskHere();
    here.write(".sluice/workflows/note.yaml", NOTE);
    here.write("sluice.config.mjs", 'export default { defaultPipeline: "note" };\n');
    expect(printed(await runNamed(here, "write a note", [sends("WRITTEN")], "--trust")).status).toBe("completed");
  });

  test("invoke each other by name, and by a relative path", async () => {
    const here = deskHere();
    const invoking = (name: string): string => `id: outer
initial: start
states:
  start: { allowed_tools: [], on: { GO: { invoke: ${name}, on_complete: complete, on_fail: failed } } }
  complete: { type: final, outcome: completed }
  failed: { type: final, outcome: failed }
`;
    here.write(".sluice/workflows/note.yaml", NOTE);
    here.write(".sluice/workflows/by-name.yaml", invoking("note"));
    here.write(".sluice/workflows/by-path.yaml", invoking("./note.yaml"));
    for (const name of ["by-name", "by-path"]) {
      const model = here.script({ start: [sends("GO")], writing: [sends("WRITTEN")] });
      const ended = await here.sluice(["run", name, "x", "--model", model, ...JSON_OUT, "--trust"]);
      expect([name, printed(ended).status]).toEqual([name, "completed"]);
    }
  });

  test("are listed by sluice doctor, with their mistakes", async () => {
    const here = deskHere();
    here.write(".sluice/workflows/note.yaml", NOTE);
    here.write(".sluice/workflows/broken.yaml", NOTE.replace("initial: writing", "initial: writting"));
    const untrusted = await here.sluice(["doctor"]);
    expect(untrusted.stdout).toContain("is not trusted");
    await runNamed(here, "note", [sends("WRITTEN")], "--trust");
    const { stdout } = await here.sluice(["doctor"]);
    expect(stdout).toContain("note; bundled");
    expect(stdout).toMatch(/broken\.yaml:2:10: error: .*writting/);
  });
});

describe("a run of a workflow file", () => {
  const suspended = async (file: string) => {
    const here = deskHere();
    here.write(file, NOTE);
    const runId = textAt(printed(await runNamed(here, file, asksFirst, "--wait=1ms")), "runId");
    const resumed = async (...flags: readonly string[]) =>
      await here.sluice(["resume", runId, "--no-wait", ...JSON_OUT, ...flags]);
    return { here, runId, resumed };
  };

  test("records the file and its digest, and resumes", async () => {
    const { here, runId, resumed } = await suspended("flows/note.yaml");
    expect(printed(await resumed())).toMatchObject({ status: "completed", denied: [{ cause: "no_interactor" }] });
    const audit = await here.sluice(["audit", runId, "--output-format", "stream-json"]);
    const started = lines(audit).find((event) => event.type === "run.started");
    const file = join(here.folder, "flows/note.yaml");
    expect(at(started, "data", "source")).toMatchObject({ kind: "file", file, files: [{ file }] });
  });

  test("resumes with a changed file only if it is trusted, and names what changed in it", async () => {
    const { here, resumed } = await suspended("note.yaml");
    here.write("note.yaml", `${NOTE}# another comment\n`);
    expect(error(await resumed())).toEqual([2, "pipeline_untrusted"]);
    here.write("note.yaml", NOTE.replace("[Read,", "[Read, Grep,").replace("value: low", "value: lower"));
    const refused = await resumed("--trust");
    expect(error(refused)).toEqual([2, "pipeline_changed"]);
    expect(refused.stderr).toContain("writing");
    expect(refused.stderr).toContain("note.yaml");
    // The guard holds no longer.
    expect(printed(await resumed("--trust", "--allow-changed")).status).toBe("failed");
  });

  test("does not resume with another id", async () => {
    const { here, resumed } = await suspended("note.yaml");
    here.write("note.yaml", NOTE.replace("id: note", "id: memo"));
    expect(error(await resumed("--trust", "--allow-changed"))).toEqual([2, "pipeline_mismatch"]);
  });

  test("cannot resume when the file is gone", async () => {
    const { here, resumed } = await suspended("note.yaml");
    here.write("note.yaml", "");
    expect(error(await resumed("--trust"))).toEqual([2, "workflow_invalid"]);
  });

  test("replays: the same file matches, a changed guard is the first difference", async () => {
    const here = deskHere();
    here.write("note.yaml", NOTE);
    const runId = textAt(printed(await runNamed(here, "note.yaml", [sends("WRITTEN")])), "runId");
    const same = await here.sluice(["replay", runId, ...JSON_OUT]);
    expect([same.code, printed(same).identical]).toEqual([0, true]);
    here.write("other.yaml", NOTE.replace("value: low", "value: lower"));
    const other = await here.sluice(["replay", runId, "--pipeline", "other.yaml", ...JSON_OUT]);
    expect([other.code, printed(other).identical]).toEqual([1, false]);
    here.write("note.yaml", NOTE.replace("value: low", "value: lower"));
    expect(error(await here.sluice(["replay", runId, ...JSON_OUT]))).toEqual([2, "pipeline_untrusted"]);
  });

  test("forks from an earlier execution, and is shown, audited and reported like any other", async () => {
    const here = deskHere();
    here.write("note.yaml", NOTE);
    const runId = textAt(printed(await runNamed(here, "note.yaml", [sends("GIVE_UP")])), "runId");
    const model = here.script({ writing: [sends("WRITTEN")] });
    const fork = await here.sluice(["fork", runId, "--from", "writing#1", "--model", model, ...JSON_OUT]);
    expect([fork.stderr.includes("forks"), printed(fork).status]).toEqual([true, "completed"]);
    expect((await here.sluice(["show", runId])).stdout).toContain("ended in state failed");
    expect((await here.sluice(["audit", runId, "--verify"])).code).toBe(0);
    await here.sluice(["report", runId, "-o", "run.html"]);
    expect(readFileSync(join(here.folder, "run.html"), "utf8")).toContain("writing");
  });
});
