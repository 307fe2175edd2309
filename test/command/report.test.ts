import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { desk, printed, textAt } from "../support/command.ts";
import { deskHere, forkedRun } from "../support/command-here.ts";
import { elementsIn, sectionIn, textIn, valuesOf } from "../support/page-parts.ts";
import { soundPage } from "../support/report-kit.ts";

test("report writes one page with every stage and the journal's head, for its owner's eyes only", async () => {
  const here = deskHere();
  const runId = await forkedRun(here);
  const { code, stdout, stderr } = await here.sluice(["report", runId, "-o", "run.html"]);
  expect([code, stderr]).toEqual([0, ""]);
  const file = join(here.folder, "run.html");
  expect(stdout).toContain(`Wrote the report of run ${runId} to ${file} (`);
  if (process.platform !== "win32") expect(statSync(file).mode & 0o777).toBe(0o600);
  const root = soundPage(readFileSync(file, "utf8"));
  expect(valuesOf(root, "data-stage").map((key) => key.replace(/^.*:/, ""))).toEqual([
    "start#1",
    "left#1",
    "right#1",
    "join#1",
  ]);
  const show = printed(await here.sluice(["show", runId, "--output-format", "json"]));
  const record = textIn(sectionIn(root, "record"));
  expect(record).toContain(textAt(show, "head"));
  const [, line = ""] = /(sluice audit .*)$/m.exec(record) ?? [];
  expect((await here.sluice(line.split(" ").slice(1))).code).toBe(0);
});

test("a file that is there is not overwritten without --force; - is stdout and nothing else; no -o is the run's id", async () => {
  const here = deskHere();
  const runId = await forkedRun(here);
  here.write("run.html", "mine");
  const refused = await here.sluice(["report", runId, "-o", "run.html"]);
  expect([refused.code, refused.stdout]).toEqual([2, ""]);
  expect(refused.stderr).toContain("exists; use --force to replace it");
  expect(readFileSync(join(here.folder, "run.html"), "utf8")).toBe("mine");
  const [forced, toStdout, unnamed] = await Promise.all([
    here.sluice(["report", runId, "-o", "run.html", "--force", "--output-format", "json"]),
    here.sluice(["report", runId, "--output", "-"]),
    here.sluice(["report", runId]),
  ]);
  const page = readFileSync(join(here.folder, "run.html"), "utf8");
  expect(printed(forced)).toEqual({
    runId,
    file: join(here.folder, "run.html"),
    bytes: Buffer.byteLength(page),
    head: expect.stringMatching(/^[0-9a-f]{64}$/),
    verified: true,
  });
  const undated = (text: string): string => text.replace(/on \S+ \S+ from the record/, "");
  expect([toStdout.code, toStdout.stderr, undated(toStdout.stdout)]).toEqual([0, "", undated(page)]);
  expect([unnamed.code, existsSync(join(here.folder, `${runId}.html`))]).toEqual([0, true]);
  const both = await here.sluice(["report", runId, "-o", "-", "--output-format", "json"]);
  expect(both.code).toBe(2);
});

test("a run that is not there and a folder that is not there are exit codes of their own, and leave no file", async () => {
  const here = deskHere();
  const runId = await forkedRun(here);
  const [unknown, nowhere] = await Promise.all([
    here.sluice(["report", "r000000000", "-o", "run.html"]),
    here.sluice(["report", runId, "-o", "no/such/folder/run.html"]),
  ]);
  expect([unknown.code, existsSync(join(here.folder, "run.html"))]).toEqual([4, false]);
  const folder = join(realpathSync(here.folder), "no/such/folder");
  expect([nowhere.code, nowhere.stderr]).toEqual([
    2,
    `sluice: ${join(folder, "run.html")} cannot be written: there is no folder ${folder}\n`,
  ]);
});

test("a record that was changed afterwards is reported on the page and by exit 1", async () => {
  const here = deskHere();
  const runId = await forkedRun(here);
  const db = new DatabaseSync(join(here.store, "journal.db"));
  db.prepare("UPDATE records SET value = replace(value, 'done', 'fine') WHERE value LIKE '%done%'").run();
  db.close();
  const { code, stderr } = await here.sluice(["report", runId, "-o", "run.html"]);
  expect(code).toBe(1);
  expect(stderr).toContain("was changed; the report says where");
  const root = soundPage(readFileSync(join(here.folder, "run.html"), "utf8"));
  const [alarm] = elementsIn(root).filter(({ attributes }) => attributes.get("role") === "alert");
  expect(alarm === undefined ? "" : textIn(alarm)).toContain("was changed after it was written");
});

test("changes of the demo are diffs with the lines of their files and the words that changed", async () => {
  const here = desk();
  const demo = printed(await here.sluice(["demo", "--output-format", "json"]));
  const { stdout } = await here.sluice([
    "report",
    textAt(demo, "runId"),
    "--store",
    textAt(demo, "demo", "store"),
    "-o",
    "-",
  ]);
  const diffs = elementsIn(soundPage(stdout)).filter(({ attributes }) => attributes.get("class") === "diff");
  const lines = readFileSync(join(textAt(demo, "demo", "folder"), "src/duration.js"), "utf8").split("\n");
  const [first] = diffs.filter((diff) => textIn(diff).startsWith("src/duration.js") && textIn(diff).includes("+8"));
  if (first === undefined) throw new Error("no diff of src/duration.js");
  const rows = elementsIn(first).filter(({ tag, attributes }) => tag === "tr" && attributes.get("class") === "added");
  expect(rows).toHaveLength(8);
  for (const row of rows) {
    const [, now = "", , line] = row.children.map((cell) => (typeof cell === "string" ? cell : textIn(cell)));
    expect(line).toBe(lines[Number(now) - 1]);
  }
  expect(elementsIn(first).some(({ tag }) => tag === "ins")).toBe(true);
});
