import { expect, test } from "vitest";
import type { TerminalProcess } from "../support/terminal.ts";
import {
  type AppPlace,
  appPlace,
  CHANGED,
  choose,
  dataOf,
  edit,
  PLANNED,
  pause,
  READ,
  REVIEWED,
  submit,
} from "../support/terminal-run.ts";

/** The app in lines, as a screen reader has them. */
async function inLines(place: AppPlace): Promise<TerminalProcess> {
  const app = place.sluice(["--screen-reader", "--model", `scripted:${place.home}/script.json`], {
    columns: 60,
    rows: 60,
  });
  await app.waitFor("sluice>");
  return app;
}

/** Types a line as a person does: Enter comes after the keys, not with them. */
async function say(app: TerminalProcess, line: string): Promise<void> {
  app.type(line);
  await app.waitFor(line);
  await pause(80);
  app.key("enter");
}

test("with --screen-reader a request says which stage asks for what, and is answered in words; no row breaks a word", async () => {
  const place = appPlace();
  place.write("a.txt", "one\n");
  place.script({ plan: [READ, edit("one", "two"), PLANNED], execute: [CHANGED], review: [REVIEWED] });
  const app = await inLines(place);
  await app.waitFor("Ctrl-D quits");
  await say(app, "/run codeReview anything");
  await app.waitFor("It stays open until then.");
  const screen = app.screen().join(" ").replaceAll(/\s+/g, " ");
  expect(screen).toMatch(
    /Request: Grant, plan, Edit, attempt 1, turn 2, proposal t2\.c0, run r[a-z0-9]+\. 1 waiting\./,
  );
  expect(screen).toMatch(/, or \/approve [0-9a-f]{6} to approve this one call\./);
  const [, name = ""] = /\/deny ([0-9a-f]{6})/.exec(screen) ?? [];
  await say(app, `/deny ${name} not while planning`);
  await app.waitFor("run completed");
  expect(dataOf(await place.events(), "grant.answered")).toMatchObject([
    { answer: "deny", reason: "not while planning" },
  ]);
  app.key("ctrl+d");
  expect(await app.end()).toMatchObject({ code: 0 });
});

test("with --fullscreen a run's result stands below its last stage, and so does the approval of a call", async () => {
  const place = appPlace();
  place.write("a.txt", "one\n");
  place.script({ plan: [READ, edit("one", "two"), PLANNED], execute: [CHANGED], review: [REVIEWED] });
  const app = await place.open(["--fullscreen"]);
  await submit(app, "/run codeReview anything");
  await choose(app, "Approve this call once", "up");
  await app.waitFor("✔ run completed");
  await app.waitFor('"summary": "the review"');
  const rows = app.screen();
  expect(rows[rows.findIndex((row) => row.startsWith("✔ plan done")) - 1]).toBe("");
  await submit(app, "/show plan#1");
  await app.waitFor(/✔ Edit a\.txt {2}done \+1 −1 · \d+ ms · approved by \S+/);
  app.key("escape");
  await app.waitFor((screen) => !screen.includes("Esc closes"), "the viewer's end");
  app.key("ctrl+d");
  expect(await app.end()).toMatchObject({ code: 0 });
});

test("a narrow terminal breaks the greeting between words", async () => {
  const app = await appPlace().open([], { columns: 60 });
  await app.waitForLine("Ctrl-D quits");
  expect(app.screen()).toContain("/run codeReview <task> starts a run, /help shows all");
  app.key("ctrl+d");
  expect(await app.end()).toMatchObject({ code: 0 });
});

test("with --cwd the app names that folder and completes its files", async () => {
  const place = appPlace();
  place.write("elsewhere/only-there.txt", "one\n");
  const app = await place.open(["--cwd", "elsewhere"]);
  await app.waitFor(/Sluice \S+ {2}\S+\/elsewhere\n/);
  app.type("@only");
  await app.waitFor((screen) => /(?<!\/)only-there\.txt/.test(screen), "the file by its path in that folder");
  app.key("escape");
  app.key("ctrl+c");
  app.key("ctrl+d");
  expect(await app.end()).toMatchObject({ code: 0 });
});
