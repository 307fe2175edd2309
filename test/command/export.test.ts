import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { lines, printed, textAt } from "../support/command.ts";
import { deskHere, forkedRun } from "../support/command-here.ts";

const SECRET = "sk-planted-0123456789abcdefghij";

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

test("an export verifies on a machine that has only the file, with the events of the store's audit", async () => {
  const here = deskHere();
  const runId = await forkedRun(here);
  const made = await here.sluice(["export", runId, "-o", "run.jsonl", "--output-format", "json"]);
  const file = join(here.folder, "run.jsonl");
  expect([made.code, modeOf(file)]).toEqual([0, "600"]);
  expect(printed(made)).toMatchObject({ runId, file, journals: 3, verified: true, bytes: statSync(file).size });

  const elsewhere = deskHere();
  elsewhere.write("run.jsonl", readFileSync(file, "utf8"));
  const [there, home] = await Promise.all([
    elsewhere.sluice(["audit", "run.jsonl", "--verify", "--json"]),
    here.sluice(["audit", runId, "--verify", "--json"]),
  ]);
  expect(there.code).toBe(0);
  expect(printed(there)).toEqual(printed(home));
  expect(printed(there).head).toBe(printed(made).head);
  expect(readdirSync(elsewhere.folder)).toEqual(["run.jsonl"]);
  const text = await elsewhere.sluice(["audit", "./run.jsonl", "--head", textAt(printed(made), "head")]);
  expect([text.code, text.stdout]).toEqual([0, expect.stringContaining("verified: every record is unchanged")]);
  expect((await elsewhere.sluice(["audit", "run.jsonl", "--head", "0".repeat(64)])).code).toBe(1);
});

test("an export holds no value of a step and nothing that looks like a secret; on stdout it is the same file", async () => {
  const here = deskHere();
  const runId = await forkedRun(here, `use ${SECRET}`);
  const { code, stdout } = await here.sluice(["export", runId, "-o", "-"]);
  expect(code).toBe(0);
  expect(stdout).not.toContain(SECRET);
  expect(stdout).toContain("[redacted:api-key]");
  for (const line of stdout.trimEnd().split("\n")) expect(JSON.parse(line)).not.toHaveProperty("value");
  await here.sluice(["export", runId]);
  expect(readFileSync(join(here.folder, `${runId}.jsonl`), "utf8")).toBe(stdout);
});

test("a file that is there stays, unless --force is given", async () => {
  const here = deskHere();
  const runId = await forkedRun(here);
  const file = here.write("mine.jsonl", "mine\n");
  const refused = await here.sluice(["export", runId, "-o", "mine.jsonl"]);
  expect([refused.code, readFileSync(file, "utf8")]).toEqual([2, "mine\n"]);
  expect(refused.stderr).toContain("--force");
  expect((await here.sluice(["export", runId, "-o", "mine.jsonl", "--force"])).code).toBe(0);
  expect((await here.sluice(["audit", "mine.jsonl", "--verify"])).code).toBe(0);
  expect(readdirSync(here.folder).filter((name) => name.endsWith(".tmp"))).toEqual([]);
});

test("the audit of an export names the record that was changed, and of a cut file says that it was cut", async () => {
  const here = deskHere();
  const runId = await forkedRun(here);
  const { stdout } = await here.sluice(["export", runId, "-o", "-"]);
  const [header = "", ...rest] = stdout.split("\n");
  const at = rest.findIndex((line) => line.includes('"stepId":"start#1/a1/leave"'));
  const changed = rest.with(at, rest[at]?.replace("completed", "cancelled") ?? "");
  here.write("changed.jsonl", [header, ...changed].join("\n"));
  here.write("cut.jsonl", [header, ...rest.slice(0, 6), ""].join("\n"));
  here.write("other.jsonl", "# no export\n");
  const seq = textAt({ seq: String(JSON.parse(rest[at] ?? "{}").seq) }, "seq");
  const [first, second, third] = await Promise.all(
    ["changed.jsonl", "cut.jsonl", "other.jsonl"].map((file) => here.sluice(["audit", file, "--verify"])),
  );
  expect([first?.code, first?.stdout]).toEqual([
    1,
    expect.stringContaining(`record ${seq} (start#1/a1/leave) was changed`),
  ]);
  expect([second?.code, second?.stdout]).toEqual([1, expect.stringContaining("the file was cut")]);
  expect([third?.code, third?.stdout]).toEqual([1, expect.stringContaining("not an export of a run")]);
});

test("a run is exported although its record was changed, and that is said", async () => {
  const here = deskHere();
  const runId = await forkedRun(here);
  const db = new DatabaseSync(join(here.store, "journal.db"));
  db.exec("UPDATE records SET value = '{}' WHERE step_id = 'start#1/a1/leave'");
  db.close();
  const { code, stderr } = await here.sluice(["export", runId, "-o", "run.jsonl"]);
  expect([code, stderr]).toEqual([1, expect.stringContaining("was changed; sluice audit --verify shows where")]);
  expect((await here.sluice(["audit", "run.jsonl", "--verify"])).code).toBe(1);
});

test("a file of the workspace that is called like a run is not taken for one", async () => {
  const here = deskHere();
  const runId = await forkedRun(here);
  here.write(runId, "forged\n");
  const { code, stdout } = await here.sluice(["audit", runId, "--verify"]);
  expect([code, stdout]).toEqual([0, expect.stringContaining("verified")]);
});

describe("filters of an audit", () => {
  test("show a stage, a tool, a verdict; what is verified is all", async () => {
    const here = deskHere();
    const runId = await forkedRun(here);
    await here.sluice(["export", runId, "-o", "run.jsonl"]);
    const eventsOf = async (...filter: readonly string[]) =>
      lines(await here.sluice(["audit", "run.jsonl", "--output-format", "stream-json", ...filter])).slice(0, -1);
    const all = await eventsOf();
    const left = await eventsOf("--stage", "left");
    expect(left.length).toBeGreaterThan(0);
    expect(left).toEqual(all.filter(({ executionId }) => executionId === "left#1"));
    const approved = await eventsOf("--verdict", "approved");
    expect(new Set(approved.map(({ type }) => type))).toEqual(new Set(["completion.accepted"]));
    expect(await eventsOf("--verdict", "refused", "--tool", "none")).toEqual([]);
    expect((await here.sluice(["audit", runId, "--verdict", "maybe"])).code).toBe(2);
    const text = await here.sluice(["audit", runId, "--stage", "left", "--verify"]);
    expect(text.stdout).toContain(`${left.length} of ${all.length} events shown`);
    expect(text.stdout).toContain("verified: every record");
  });

  test("a line says who decided", async () => {
    const here = deskHere();
    const { stdout } = await here.sluice(["audit", await forkedRun(here)]);
    expect(stdout).toMatch(/route\.decided.* — its route's function/);
  });
});

test("a stored text that was changed is a fault of the audit: exit 1, naming its record", async () => {
  const here = deskHere();
  const runId = await forkedRun(here, "long ".repeat(60_000));
  const blobs = join(here.store, "blobs");
  const [blob = ""] = readdirSync(blobs);
  writeFileSync(join(blobs, blob), `${readFileSync(join(blobs, blob), "utf8").slice(0, -3)}..."`);
  const { code, stdout } = await here.sluice(["audit", runId, "--verify"]);
  expect([code, stdout]).toEqual([
    1,
    expect.stringMatching(/CHANGED[\s\S]* of run \S+ is kept in .*, which was changed/),
  ]);
});

describe("export --all", () => {
  test("makes a private copy that opens as a store, and a later one takes its place with --force only", async () => {
    const here = deskHere();
    const runId = await forkedRun(here);
    const made = await here.sluice(["export", "--all", "-o", "copy", "--output-format", "json"]);
    expect([made.code, printed(made).runs]).toEqual([0, 1]);
    const copy = join(here.folder, "copy");
    expect([modeOf(copy), modeOf(join(copy, "journal.db")), modeOf(join(copy, "blobs"))]).toEqual([
      "700",
      "600",
      "700",
    ]);
    expect((await here.sluice(["audit", runId, "--verify", "--store", "copy"])).code).toBe(0);

    const second = await forkedRun(here);
    expect((await here.sluice(["export", "--all", "-o", "copy"])).code).toBe(2);
    expect((await here.sluice(["export", "--all", "-o", "copy", "--force"])).code).toBe(0);
    expect((await here.sluice(["show", second, "--store", "copy"])).code).toBe(0);
    expect(readdirSync(here.folder).filter((name) => name.includes(".tmp"))).toEqual([]);
  });

  test("takes no place of anything else, nor in the store", async () => {
    const here = deskHere();
    await forkedRun(here);
    here.write("project/notes.txt", "mine");
    const refused = await Promise.all(
      [["project"], ["project/notes.txt"], [".sluice"], [".sluice/store"], [".sluice/store/blobs/x"], ["no/where"]].map(
        async ([folder = ""]) => (await here.sluice(["export", "--all", "-o", folder, "--force"])).code,
      ),
    );
    expect(refused).toEqual([2, 2, 2, 2, 2, 2]);
    expect(readFileSync(join(here.folder, "project/notes.txt"), "utf8")).toBe("mine");
    for (const args of [["--all"], ["--all", "-o", "-"], ["--all", "x", "-o", "y"], []])
      expect((await here.sluice(["export", ...args])).code).toBe(2);
  });
});

test("what a run started neither exports nor prunes", async () => {
  const here = deskHere();
  const runId = await forkedRun(here);
  const env = { SLUICE_RUN: runId };
  for (const args of [
    ["export", runId],
    ["export", "--all", "-o", "copy"],
    ["prune", "--keep", "0"],
  ]) {
    const { code, stderr } = await here.sluice(args, { env });
    expect([code, stderr]).toEqual([2, expect.stringContaining("SLUICE_RUN")]);
  }
  expect((await here.sluice(["show", runId])).code).toBe(0);
});
