// Checks the inputs, finds or builds the command, and remembers the files as they are before the run.
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, realpathSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { repositoryOf, snapshotsOf } from "./lib/changes.mjs";
import { followProgram } from "./lib/programs.mjs";
import { flag, input, JobError, quotedLog, required, setOutput, step } from "./lib/runner.mjs";

await step(async () => {
  const startedAt = Date.now();
  checkInputs();
  const base = required("GITHUB_WORKSPACE");
  const cwd = resolve(base, input("CWD"));
  if (!existsSync(cwd) || !statSync(cwd).isDirectory()) throw new JobError(`cwd: there is no folder ${cwd}`);
  const repository = await repositoryOf(realpathSync(cwd));
  const command = input("SLUICE") === "" ? await builtCommand() : installedCommand(resolve(base, input("SLUICE")));
  const temporary = join(required("RUNNER_TEMP"), "sluice");
  const folder = join(temporary, randomUUID());
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const store = input("STORE") === "" ? join(temporary, "store") : resolve(base, input("STORE"));
  const snapshots = await snapshotsOf(repository, folder);
  const committed = await snapshots.committed();
  // A resumed run continues a change that the checkout may hold already: all that is not committed counts.
  const resume = input("RESUME");
  const before = resume === "" ? await snapshots.take(committed) : committed;
  const job = join(folder, "job.json");
  writeFileSync(
    job,
    JSON.stringify({ folder, cwd: realpathSync(cwd), repository, command, store, before, startedAt, resume }),
  );
  setOutput("job", job);
});

function checkInputs() {
  for (const name of ["TRUST", "FAIL_ON_DENIED", "ALLOW_NO_CHANGE", "KEEP_STORE"]) flag(name);
  if ((input("PIPELINE") === "") === (input("RESUME") === ""))
    throw new JobError("name a pipeline, or in resume a run to continue");
  if (input("RESUME") !== "" && input("STORE") === "")
    throw new JobError("resume needs store, the folder with the journal");
  if (input("INPUT") !== "" && !isObject(input("INPUT"))) throw new JobError("input must be a JSON object");
}

function isObject(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** A launcher, or a folder that holds one. */
function installedCommand(path) {
  const launcher = existsSync(path) && statSync(path).isDirectory() ? join(path, "sluice") : path;
  if (!existsSync(launcher)) throw new JobError(`sluice: there is no command ${launcher}`);
  return [launcher];
}

/** Builds the repository that holds this action. */
async function builtCommand() {
  const root = dirname(dirname(fileURLToPath(import.meta.url)));
  const log = quotedLog();
  const code = await followProgram(["npm", "run", "build"], { cwd: root, onOut: log.line, onError: log.line });
  log.end();
  if (code !== 0) throw new JobError(`npm run build in ${root} ended with code ${code}`);
  // The launcher knows the Node that the build may have installed.
  return [join(root, "bin", "sluice")];
}
