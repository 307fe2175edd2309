// What the command does on real disks: the system calls it makes for what it promised to keep, calls that fail, disks that fill.
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { field, type Json } from "@sluice/core";
import { readEvents, verifyJournal } from "@sluice/core/host";
import { describe, expect, onTestFinished, test } from "vitest";
import { createPlace, type Ended, type Place, pipelineFile, reportOf } from "../support/command-process.ts";
import { startLoopbackModel } from "../support/loopback-model.ts";
import { canTrace, failing, readTrace, type SystemCall, tracing } from "../support/strace.ts";
import { tempFolder } from "../support/tools.ts";

const TOOLS = `${pipelineFile("pipelines.ts")}#tools`;
const NO_MODEL = "http://127.0.0.1:9";
const JSON_OUT = ["--output-format", "json"];
/** More than a row of the store takes: it is kept in a file of its own. */
const LONG = "x".repeat(300_000);

const write = (file_path: string, content: string) => ({ name: "Write", input: { file_path, content } });
const bash = (command: string) => ({ name: "Bash", input: { command } });
const finish = { name: "submit_work", input: { said: "done" } };

/** A place whose model is a script of one call a turn. */
function scripted(place: Place, calls: readonly { readonly name: string; readonly input: Json }[]): readonly string[] {
  const turns = calls.map(({ name, input }) => ({ calls: [{ tool: name, input }] }));
  writeFileSync(join(place.workspace, "script.json"), JSON.stringify({ stages: { work: turns } }));
  return ["run", TOOLS, "work", "--model", "scripted:script.json", ...JSON_OUT];
}

function textOf(place: Place, name: string): string {
  const path = join(place.workspace, name);
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

/** How each call of the one run ended, and whether its chain is whole. */
async function outcomes(place: Place): Promise<readonly (Json | undefined)[]> {
  const journals = await place.look(async (host) => {
    const [run] = await host.list();
    return await host.journal(run?.runId ?? "");
  });
  expect(verifyJournal(journals).faults).toEqual([]);
  const events = journals.flatMap(({ runId, records }) => records.flatMap((record) => readEvents(runId, record)));
  return events.filter(({ type }) => type === "call.finished").map(({ data }) => field(data, "outcome"));
}

/** The command stopped in front of its next effect, says why and how to go on, and goes on when it is resumed. */
async function expectStopped(place: Place, ended: Ended, code: string, fix: RegExp): Promise<string> {
  expect(ended, ended.stderr).toMatchObject({ code: 4, signal: null });
  const report = reportOf(ended);
  const { runId } = report;
  expect(report).toMatchObject({
    status: "suspended",
    error: { class: "Host", code, message: expect.stringMatching(fix) },
    suspended: { resume: expect.stringContaining(`sluice resume ${String(runId)}`) },
  });
  expect(ended.stderr).toMatch(/resume it with: sluice resume/);
  expect(await place.look((host) => host.get(String(runId)))).toMatchObject({ status: "suspended" });
  return String(runId);
}

async function expectResumed(place: Place, runId: string, env: Place["env"] = {}): Promise<void> {
  const resumed = await place.run(["resume", runId, ...JSON_OUT], { env });
  expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
  expect(reportOf(resumed)).toMatchObject({ runId, status: "completed", output: { said: "done" } });
}

describe.skipIf(!canTrace())("at its system calls (where strace may watch)", () => {
  /** The path that strace names for an open file at the head of a call's arguments. */
  const fileOf = ({ args }: SystemCall): string => /^\d+<([^>]*)>/.exec(args)?.[1] ?? "";
  const isSync = ({ name }: SystemCall): boolean => name === "fsync" || name === "fdatasync";

  test("all that a run wrote down is on the disk when its next effect begins, and a long text before what names it", async () => {
    const turn = (call: { readonly name: string; readonly input: Json }, id: string) => ({ calls: [{ id, ...call }] });
    const turns = [turn(write("long.txt", LONG), "w0"), turn(bash("echo ran >> log.txt"), "w1"), turn(finish, "w2")];
    await using model = await startLoopbackModel({ submit_work: turns });
    const place = createPlace(model.url);
    const trace = join(tempFolder().root, "trace");
    const calls = ["fsync", "fdatasync", "pwrite64", "write", "writev", "sendto", "rename", "renameat2", "execve"];
    const ended = await place.run(["run", TOOLS, "work", ...JSON_OUT], { under: tracing(trace, calls) });
    expect(ended, ended.stderr).toMatchObject({ code: 0 });

    const log = join(place.store, "journal.db-wal");
    const blobs = join(place.store, "blobs");
    const synced = new Set<string>();
    const effects: string[] = [];
    let unsynced = 0;
    let commits = 0;
    let unnamed: string | undefined;
    for (const call of readTrace(readFileSync(trace, "utf8"))) {
      const { name, args } = call;
      if (name === "pwrite64" && fileOf(call) === log) {
        // Whatever is in the log now may name the blob.
        expect(unnamed, "a blob whose folder was not synced").toBeUndefined();
        unsynced += 1;
      } else if (isSync(call)) {
        synced.add(fileOf(call));
        if (fileOf(call) === blobs) unnamed = undefined;
        if (fileOf(call) !== log) continue;
        if (unsynced > 0) commits += 1;
        unsynced = 0;
      } else if (name.startsWith("rename") && args.includes(blobs)) {
        const [draft = "", blob] = [...args.matchAll(/"([^"]*)"/g)].map(([, path]) => path);
        expect(synced, "a blob that was not synced").toContain(draft);
        unnamed = blob;
      } else {
        const effect = effectOf(call);
        if (effect === undefined) continue;
        effects.push(effect);
        expect(unsynced, `writes of the log that were not synced before: ${effect}`).toBe(0);
      }
    }
    expect(effects).toEqual(["model", "Write", "model", "Bash", "model"]);
    const [journal] = await place.look(async (host) => await host.journal(String(reportOf(ended).runId)));
    // Beside the records: the store's own beginning, and giving the run up.
    expect(commits).toBeGreaterThanOrEqual((journal?.records.length ?? 0) + 2);
    expect([...synced]).toEqual(expect.arrayContaining([place.store, join(place.workspace, ".sluice")]));
  });

  /** What the world sees of a run. */
  function effectOf({ name, args, result }: SystemCall): string | undefined {
    if (args.includes("POST /v1/messages")) return "model";
    // The folder is an open one, by its number.
    if (name.startsWith("rename") && args.includes('/long.txt"')) return "Write";
    return name === "execve" && result === "0" && args.includes('exec \\"$0\\"') ? "Bash" : undefined;
  }

  const broken = { code: "store_io", fix: /check the disk/ };
  const full = { code: "store_full", fix: /free some space/ };
  // The log begins with some thirty calls to write and two to sync; each record takes four or more, and one.
  test.each([
    { what: "a sync fails", call: "fsync", how: "error=EIO:when=9", ...broken },
    { what: "writing fails", call: "pwrite64", how: "error=EIO:when=70+", ...broken },
    { what: "a write finds no room", call: "pwrite64", how: "error=ENOSPC:when=90", ...full },
  ])("a run under which $what stops with exit 4, says how to go on, and does", async ({ call, how, code, fix }) => {
    const place = createPlace(NO_MODEL);
    const work = scripted(place, [write("a.txt", "a\n"), bash("echo ran >> log.txt"), finish]);
    const under = failing(join(place.store, "journal.db-wal"), call, how);
    const runId = await expectStopped(place, await place.run(work, { under }), code, fix);
    await expectResumed(place, runId);
    expect(textOf(place, "a.txt")).toBe("a\n");
    const [written, ran] = await outcomes(place);
    expect(["ok", "recovered"]).toContain(written);
    expect([ran, textOf(place, "log.txt")]).toEqual([ran === "ok" ? "ok" : "outcome_unknown", "ran\n"]);
  });
});

/** Whether this process may mount things: containers and users mostly may not. */
function mayMount(): boolean {
  if (process.getuid?.() !== 0 || process.platform !== "linux") return false;
  return spawnSync("unshare", ["--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).status === 0;
}

describe.skipIf(!mayMount())("on a small disk (where one may be mounted)", () => {
  test("a command that fills the disk did so, but its record cannot be written: its outcome is unknown, once", async () => {
    const roomy = tempFolder();
    const disk = roomy.path("disk");
    mkdirSync(disk);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=8m", "tmpfs", disk]);
    onTestFinished(() => void execFileSync("umount", ["--lazy", disk]));
    const place = createPlace(NO_MODEL, disk);
    const fills = "echo ran >> log.txt; yes > full.bin";
    const env = { HOME: roomy.root };
    const ended = await place.run(scripted(place, [bash(fills), finish]), { env });
    const runId = await expectStopped(
      place,
      ended,
      "store_full",
      /no disk space is left.*journal\.db.*free some space, then resume/,
    );
    expect(textOf(place, "log.txt")).toBe("ran\n");
    rmSync(join(place.workspace, "full.bin"));
    await expectResumed(place, runId, env);
    expect(textOf(place, "log.txt")).toBe("ran\n");
    expect(await outcomes(place)).toEqual(["outcome_unknown"]);
  });
});

const isRoot = process.getuid?.() === 0;
/** Starts a program as a user without rights: as this one, or as one that nobody logs in as. */
const AS_NOBODY = isRoot ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : [];
/** Whether rights may be dropped here, and who has none can read the program. */
const canDrop = !isRoot || spawnSync("setpriv", [...AS_NOBODY.slice(1), process.execPath, "-v"]).status === 0;

describe.skipIf(!canDrop)(
  "for a user who may not write the store (where that is this user, or rights may be dropped)",
  () => {
    test("a run is refused before it begins, and nothing is written", async () => {
      const place = createPlace(NO_MODEL);
      const closed = join(place.workspace, "closed");
      mkdirSync(closed);
      const run = [...scripted(place, [finish]), "--store", join(closed, "store")];
      chmodSync(dirname(place.workspace), 0o755);
      chmodSync(closed, 0o555);
      const ended = await place.run(run, { under: AS_NOBODY });
      expect(ended, ended.stderr).toMatchObject({ code: 4 });
      expect(reportOf(ended)).toMatchObject({ runId: null, status: "failed", error: { code: "store_not_writable" } });
      expect(readdirSync(closed)).toEqual([]);
    });

    test.skipIf(!isRoot)(
      "a run is shown, but neither answered nor resumed; a user who may write does both",
      async () => {
        const place = createPlace(NO_MODEL);
        const asks = { name: "AskUser", input: { question: "Which colour?" } };
        expect(await place.run([...scripted(place, [asks, finish]), "--wait=1ms"])).toMatchObject({ code: 3 });
        const [request] = await place.look((host) => host.requests());
        const { runId = "", requestId = "" } = request ?? {};
        // Entered and read by all, written by its owner alone.
        for (const folder of [dirname(place.workspace), place.workspace, place.store]) chmodSync(folder, 0o755);
        chmodSync(join(place.store, "journal.db"), 0o644);
        const refused = { code: "store_not_writable", message: expect.stringContaining("--store") };
        for (const words of [
          ["resume", runId],
          ["answer", runId, requestId, "--value", "blue"],
        ]) {
          const ended = await place.run([...words, ...JSON_OUT], { under: AS_NOBODY });
          expect(ended, ended.stderr).toMatchObject({ code: 4 });
          expect(reportOf(ended)).toMatchObject({ error: refused });
        }
        const shown = await place.run(["show", runId, ...JSON_OUT], { under: AS_NOBODY });
        expect(reportOf(shown)).toMatchObject({ status: "suspended", requests: [{ requestId }] });

        const answered = await place.run(["answer", runId, requestId, "--value", "blue", "--resume", ...JSON_OUT]);
        expect(answered, answered.stderr).toMatchObject({ code: 0 });
        expect(reportOf(answered)).toMatchObject({ runId, status: "completed" });
      },
    );
  },
);
