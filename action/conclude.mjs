// Keeps what the run left behind, and says how it ended: in the outputs and in the summary.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { snapshotsOf } from "./lib/changes.mjs";
import { runProgram } from "./lib/programs.mjs";
import { addSummary, annotate, flag, input, JobError, oneLine, setOutput, step } from "./lib/runner.mjs";
import { summaryOf } from "./lib/summary.mjs";

/** Outputs of a job have a limit; result.json has none. */
const MOST_OUTPUT = 256 * 1024;

await step(async () => {
  const given = process.env.SLUICE_JOB ?? "";
  if (given === "") return finish({ conclusion: "error", reason: "the job could not be prepared; its log shows why" });
  const job = JSON.parse(readFileSync(given, "utf8"));
  const end = join(job.folder, "ended.json");
  const { code, result, ms, tampered } = existsSync(end) ? JSON.parse(readFileSync(end, "utf8")) : { tampered: [] };
  const found = result ?? (await orUndefined(() => interruptedRun(job)));
  const runId = found?.runId ?? null;
  const files = join(job.folder, "files");
  mkdirSync(files, { recursive: true });
  const record = runId === null ? undefined : await orUndefined(() => keepRecord(job, runId, files));
  const changes = await orUndefined(() => keepChanges(job, files));
  const store = runId !== null && found.status === "suspended" ? await orUndefined(() => keepStore(job)) : undefined;
  const { conclusion, reason } = concluded({ code, result: found, tampered, record, changes });
  writeFileSync(join(files, "result.json"), `${JSON.stringify({ conclusion, reason, ...found, changes }, null, 2)}\n`);
  finish({ conclusion, reason, result: found, changes, record, ms, store, files });
});

/** The run of a job that was stopped before it printed a result. */
async function interruptedRun(job) {
  const { code, stdout } = await sluice(job, ["runs", "--limit=1", "--output-format=json"]);
  const run = code === 0 ? JSON.parse(stdout).runs[0] : undefined;
  if (run === undefined || (run.createdAt < job.startedAt && run.runId !== job.resume)) return undefined;
  if (run.status !== "suspended") return undefined;
  return {
    runId: run.runId,
    status: "suspended",
    output: null,
    error: null,
    stages: [],
    denied: [],
    suspended: { reason: "stopped" },
  };
}

/** The verified export and the report. Returns whether the record is unchanged. */
async function keepRecord(job, runId, files) {
  const file = join(files, "run.jsonl");
  const written = await sluice(job, ["export", "--output-format=json", `--output=${file}`, "--force", "--", runId]);
  const report = await sluice(job, ["report", `--output=${join(files, "report.html")}`, "--force", "--", runId]);
  if (report.code !== 0) annotate("warning", `no report: ${report.stderr}`);
  const audited = await sluice(job, ["audit", "--verify", "--", file], "ignore");
  const { verified, records, head } = JSON.parse(written.stdout);
  return { verified: verified === true && written.code === 0 && audited.code === 0, records, head };
}

async function keepChanges({ repository, folder, before }, files) {
  const snapshots = await snapshotsOf(repository, folder);
  const after = await snapshots.take(before);
  await snapshots.writePatch(before, after, join(files, "change.patch"));
  return await snapshots.changed(before, after);
}

/** A copy of the store for another job. */
async function keepStore(job) {
  if (!flag("KEEP_STORE")) return undefined;
  const folder = join(job.folder, "store");
  const { code, stderr } = await sluice(job, ["export", "--all", `--output=${folder}`]);
  if (code !== 0) throw new JobError(`the store cannot be copied: ${oneLine(stderr, 500)}`);
  return folder;
}

async function sluice({ command, cwd, store }, [name, ...args], output) {
  const all = [...command, name, `--store=${store}`, `--cwd=${cwd}`, ...args];
  return await runProgram(all, output === undefined ? { cwd } : { cwd, output });
}

/** What could not be kept is reported, and the rest is kept. */
async function orUndefined(keep) {
  try {
    return await keep();
  } catch (fault) {
    annotate("error", fault instanceof Error ? fault.message : String(fault));
    return undefined;
  }
}

function concluded({ code, result, tampered, record, changes }) {
  if (tampered.length > 0)
    return { conclusion: "tampered", reason: `the run wrote to ${tampered.join(", ")} of the runner` };
  if (result === undefined || result === null)
    return { conclusion: "error", reason: "the command ended without a result; its log shows why" };
  const { runId, status, error, denied } = result;
  const why = error === null ? "" : `: ${oneLine(error.message, 500)}`;
  if (runId === null) return { conclusion: "error", reason: `no run started${why}` };
  if (status === "failed") return { conclusion: "failed", reason: `the run failed${why}` };
  if (status === "cancelled") return { conclusion: "cancelled", reason: `the run was cancelled${why}` };
  if (status === "suspended") {
    const { reason, message } = result.suspended;
    const detail = message === undefined ? why : `: ${oneLine(message, 500)}`;
    return { conclusion: "suspended", reason: `the run is suspended (${oneLine(reason, 100)})${detail}` };
  }
  if (record?.verified !== true)
    return { conclusion: "unverified", reason: "the record of the run cannot be verified" };
  if (changes === undefined)
    return { conclusion: "unverified", reason: "git cannot compare the files with those before the run" };
  const faults = [
    ...(flag("FAIL_ON_DENIED") && denied.length > 0 ? [["denied", deniedWords(denied.length)]] : []),
    ...(!flag("ALLOW_NO_CHANGE") && changes.length === 0 ? [["no-change", "the run changed no file"]] : []),
  ];
  if (faults.length > 0) return { conclusion: faults[0][0], reason: faults.map(([, words]) => words).join(", and ") };
  // 5 is the code for denied calls, which were judged above.
  if (status !== "completed" || (code !== 0 && code !== 5))
    return { conclusion: "error", reason: `the command ended with code ${code}` };
  return { conclusion: "success", reason: "" };
}

function deniedWords(number) {
  return number === 1 ? "a call was denied" : `${number} calls were denied`;
}

function finish({ conclusion, reason, result, changes, record, ms, store, files = "" }) {
  const output = result?.output === null || result?.output === undefined ? "" : JSON.stringify(result.output);
  const fits = Buffer.byteLength(output) <= MOST_OUTPUT;
  if (!fits) annotate("warning", "the output is larger than 256 KiB: it is in result.json of the artifact");
  const { costUsd, unpricedCalls = 0 } = result?.usage ?? {};
  const outputs = {
    conclusion,
    reason,
    status: result?.runId ? result.status : "",
    "run-id": result?.runId ?? "",
    output: fits ? output : "",
    denied: String(result?.denied?.length ?? 0),
    "cost-usd": costUsd === undefined || unpricedCalls > 0 ? "" : String(costUsd),
    "changed-files": changes === undefined ? "" : JSON.stringify(changes.map(({ path }) => path)),
    files,
    store: store ?? "",
  };
  for (const [name, value] of Object.entries(outputs)) setOutput(name, value);
  const artifact = input("ARTIFACT");
  addSummary(summaryOf({ conclusion, reason, result, changes, record, ms, artifact, store: store !== undefined }));
}
