// Runs the pipeline and keeps its result. How it ended is decided later, so that what it left behind is kept in any case.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { followProgram } from "./lib/programs.mjs";
import { annotate, emptyCommandFiles, flag, input, quotedLog, required, step } from "./lib/runner.mjs";

await step(async () => {
  const job = JSON.parse(readFileSync(required("SLUICE_JOB"), "utf8"));
  const log = quotedLog();
  const startedAt = Date.now();
  let result = null;
  const code = await followProgram([...job.command, ...argumentsFor(job)], {
    cwd: job.cwd,
    stdin: input("INPUT"),
    onOut: (line) => {
      const event = parsed(line);
      if (event?.type === "result") result = event;
      const words = event === undefined ? line : wordsOf(event);
      if (words !== "") log.line(words);
    },
    onError: log.line,
  });
  log.end();
  const tampered = emptyCommandFiles();
  if (tampered.length > 0) annotate("error", `the run wrote to ${tampered.join(", ")}; what it wrote was removed`);
  writeFileSync(join(job.folder, "ended.json"), JSON.stringify({ code, result, tampered, ms: Date.now() - startedAt }));
});

/** Options come first and end with --, so that no task is read as an option. */
function argumentsFor({ cwd, store }) {
  const resumes = input("RESUME") !== "";
  const given = input("ARGS")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const options = [
    ...given,
    "--headless",
    "--output-format=stream-json",
    `--cwd=${cwd}`,
    `--store=${store}`,
    ...(input("MODEL") === "" ? [] : [`--model=${input("MODEL")}`]),
    ...(input("ON_PROVIDER_FAULT") === "" ? [] : [`--on-provider-fault=${input("ON_PROVIDER_FAULT")}`]),
    ...(flag("TRUST") ? ["--trust"] : []),
    ...(flag("FAIL_ON_DENIED") ? ["--fail-on-denied"] : []),
  ];
  // The store comes from another machine.
  if (resumes) return ["resume", ...options, "--adopt-store", "--", input("RESUME")];
  const task = input("TASK") === "" ? [] : [input("TASK")];
  return ["run", ...options, ...(input("INPUT") === "" ? [] : ["--input=-"]), "--", input("PIPELINE"), ...task];
}

function parsed(line) {
  try {
    const value = JSON.parse(line);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A line of the log for what a reader follows; "" for everything else. */
function wordsOf({ type, runId, executionId, data = {} }) {
  switch (type) {
    case "run.started":
      return `run ${runId} started: ${data.pipeline}`;
    case "run.resumed":
      return `run ${runId} resumed`;
    case "attempt.started":
      return `${executionId} started`;
    case "call.decided":
      return data.verdict === "refused" ? `${executionId} denied: ${data.args} (${data.cause})` : "";
    case "call.finished":
      return `${executionId} ran ${data.tool}: ${data.outcome}`;
    case "attempt.finished":
      return `${executionId} ${data.outcome}`;
    case "run.suspended":
      return `run ${runId} suspended: ${data.reason}`;
    case "run.finished":
      return `run ${runId} ${data.status}`;
    default:
      return "";
  }
}
