// Loaded before the command when golden journals are recorded. Makes what it records the same on each machine and at each time: ids,
// times and the user's name. With `GOLDEN_KILL` it kills this process with SIGKILL, before or after the commit of a record.
import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import os from "node:os";
import { StatementSync } from "node:sqlite";

const { GOLDEN_SEED: seed, GOLDEN_NOW: now, GOLDEN_KILL: kill } = process.env;
// What the command starts must not inherit them.
for (const name of ["GOLDEN_SEED", "GOLDEN_NOW", "GOLDEN_KILL"]) delete process.env[name];

let draws = 0;
const draw = (bytes) => {
  draws += 1;
  return crypto.createHash("shake256", { outputLength: bytes }).update(`${seed} ${draws}`).digest();
};
crypto.randomBytes = (bytes) => draw(bytes);
crypto.randomUUID = () =>
  draw(16)
    .toString("hex")
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
os.userInfo = () => ({ username: "recorder", uid: 1, gid: 1, shell: null, homedir: os.homedir() });
syncBuiltinESMExports();

// A second passes with each commit, and none in between.
let commits = 0;
Date.now = () => Number(now) + 1_000 * commits;

// `before done right .*/call$`: the phase, the end of the run's id (`.` for any) and the step's id.
const [moment, phase, run, step] = kill?.split(" ") ?? [];
let due = false;
const dieAt = (here) => {
  if (due && here === moment) process.kill(process.pid, "SIGKILL");
};
const runOf = new Map();
const real = StatementSync.prototype.run;
StatementSync.prototype.run = function (...args) {
  const { sourceSQL } = this;
  if (sourceSQL.startsWith("INSERT INTO runs ")) runOf.set(args[0], args[1]);
  if (sourceSQL.startsWith("INSERT INTO records ")) {
    const [place, , stepId, itsPhase] = args;
    const runId = runOf.get(Math.floor(place / 2 ** 24)) ?? "";
    due ||= itsPhase === phase && new RegExp(step).test(stepId) && (run === "." || runId.endsWith(`/${run}`));
  }
  if (sourceSQL !== "COMMIT") return real.apply(this, args);
  dieAt("before");
  commits += 1;
  const result = real.apply(this, args);
  dieAt("after");
  return result;
};
