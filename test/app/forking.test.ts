import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { appOverRun } from "../support/app-over-run.ts";
import { call, finishes, PIPELINES, printed, textAt, turn } from "../support/command.ts";
import type { DeskHere } from "../support/command-here.ts";
import { key, typed } from "../support/desk.ts";

// `/fork` and `/resume` of the app do what the commands of these names do.

const SOURCE = readFileSync(PIPELINES, "utf8");
/** The pipeline `single` with another envelope. */
const CHANGED = SOURCE.replace('allowedTools: ["Read"] });', 'allowedTools: ["Read", "Grep"] });');

/** A run that another process made of `single` in a file of the folder, which is another by now. */
const changedSince =
  (...flags: readonly string[]) =>
  async (place: DeskHere): Promise<string> => {
    const file = place.write("p.ts", SOURCE);
    const script = { work: [turn(call("Write", { file_path: "x", content: "" })), finishes("end")] };
    const run = ["run", `${file}#single`, "x", "--model", place.script(script), "--output-format", "json"];
    const runId = textAt(printed(await place.sluice([...run, ...flags])), "runId");
    place.write("p.ts", CHANGED);
    return runId;
  };

test("/fork continues in a new run from before an execution, and says what it takes along", async () => {
  const { place, runId, app, said, saidSo, until } = await appOverRun();
  app.submit(`/fork join#1 ${runId}`);
  await saidSo(`forks ${runId} before join#1`);
  await until(() => app.state().view?.status === "completed");
  const made = app.state().focus?.run.runId ?? expect.fail();
  const shown = printed(await place.sluice(["show", made, "--output-format", "json"]));
  expect(shown).toMatchObject({ status: "completed", forkedFrom: { runId, execution: "join#1" } });
  expect(said.join("\n")).toContain("files stay as they are now");
  expect((await place.sluice(["audit", made, "--verify"])).code).toBe(0);
});

test("Tab completes the executions of the run that is looked at", async () => {
  const { runId, app, until, surface } = await appOverRun();
  app.submit(`/show ${runId}`);
  await until(() => app.state().view?.status === "completed");
  for (const letter of "/fork jo") surface.key(typed(letter));
  surface.key(key("tab"));
  expect(app.state().composer.editor.text.trim()).toBe("/fork join#1");
});

test("/fork without an execution, or with one that is not there, says which there are, and makes no run", async () => {
  const { place, runId, app, saidSo } = await appOverRun();
  app.submit(`/fork ${runId}`);
  await saidSo("to fork before, with /fork <execution>");
  app.submit(`/fork joyn#1 ${runId}`);
  await saidSo("Did you mean join#1?");
  expect(printed(await place.sluice(["runs", "--output-format", "json"]))).toMatchObject({ runs: [{ runId }] });
});

test("/fork continues with a changed pipeline only when --allow-changed is said", async () => {
  const { place, runId, app, saidSo, until } = await appOverRun(changedSince(), { trust: true });
  app.submit(`/fork work#1 ${runId}`);
  await saidSo("state work: allowedTools changed from Read to Read, Grep");
  expect(printed(await place.sluice(["runs", "--output-format", "json"]))).toMatchObject({ runs: [{ runId }] });
  app.submit(`/fork work#1 ${runId} --allow-changed`);
  await until(() => app.state().view?.status === "waiting");
  const made = app.state().focus?.run.runId ?? expect.fail();
  expect((await place.sluice(["audit", made])).stdout).toMatch(
    /run\.forked .*allowedTools changed from Read to Read, Grep/,
  );
});

test("/resume continues with a changed pipeline only when --allow-changed is said", async () => {
  const { place, runId, app, saidSo, until } = await appOverRun(changedSince("--wait=1ms"), { trust: true });
  app.submit("/resume");
  await saidSo("state work: allowedTools changed from Read to Read, Grep");
  app.submit("/resume --allow-changed");
  await until(() => app.state().focus?.run.runId === runId && app.state().view?.status === "waiting");
  expect((await place.sluice(["audit", runId])).stdout).toMatch(
    /run\.resumed .*allowedTools changed from Read to Read, Grep/,
  );
});
