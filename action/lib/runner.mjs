// The protocol of the runner: inputs, outputs, the summary and the log. Text of models and tools must not become part of it.
import { randomUUID } from "node:crypto";
import { appendFileSync, readFileSync, truncateSync } from "node:fs";

/** A fault that the log explains in one line. */
export class JobError extends Error {}

/** The value of an input of the action, without surrounding space. */
export function input(name) {
  return (process.env[`INPUT_${name}`] ?? "").trim();
}

/** A yes or no. Anything else is an error: a typing mistake must not turn a check off. */
export function flag(name) {
  const value = input(name).toLowerCase();
  if (value === "true" || value === "false") return value === "true";
  throw new JobError(`${name.toLowerCase().replaceAll("_", "-")} must be true or false`);
}

/** Writes an output. The delimiter is random, so that a value cannot end itself and set other outputs. */
export function setOutput(name, value) {
  const delimiter = `end-${randomUUID()}`;
  appendFileSync(required("GITHUB_OUTPUT"), `${name}<<${delimiter}\n${value}\n${delimiter}\n`);
}

/** Appends to the summary of the job. */
export function addSummary(text) {
  appendFileSync(required("GITHUB_STEP_SUMMARY"), text);
}

/** An annotation of the job. */
export function annotate(level, text) {
  const data = oneLine(text, 1_000).replaceAll("%", "%25");
  process.stdout.write(`::${level} title=Sluice::${data}\n`);
}

/**
 * Shows text of others in the log while the runner ignores workflow commands in it. Returns a function that writes a line, and one
 * that ends this.
 */
export function quotedLog() {
  const token = randomUUID();
  process.stdout.write(`::stop-commands::${token}\n`);
  return {
    // The mark keeps a line from starting as a command, even if the runner read commands here.
    line: (text) => process.stdout.write(`| ${oneLine(text, 2_000).replaceAll("##[", "## [")}\n`),
    end: () => process.stdout.write(`::${token}::\n`),
  };
}

/** Text without control characters and marks that change the order of letters: the runner also ends lines at a lone return. */
export function oneLine(text, most) {
  const plain = String(text).replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu, " ");
  return plain.length > most ? `${plain.slice(0, most)} …` : plain;
}

/** The files by which a step commands the runner. */
const COMMAND_FILES = ["GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"];

/**
 * Empties the files by which this step could command the runner, and returns the names of those that held something. Commands of a
 * run without a sandbox can find these files.
 */
export function emptyCommandFiles() {
  return COMMAND_FILES.filter((name) => {
    const file = process.env[name];
    if (file === undefined || file === "" || readFileSync(file).length === 0) return false;
    truncateSync(file);
    return true;
  });
}

/** The environment of programs that this action starts, without what commands the runner or acts in its name. */
export function childEnvironment() {
  const own = (name) => COMMAND_FILES.includes(name) || /^(?:ACTIONS_|INPUT_)|^(?:SLUICE_JOB|ACTION_PATH)$/.test(name);
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !own(name)));
}

export function required(name) {
  const value = process.env[name];
  if (value === undefined || value === "")
    throw new JobError(`${name} is not set: this script runs as a step of a job`);
  return value;
}

/** Runs a step. A fault ends it with a line in the log instead of a stack. */
export async function step(run) {
  try {
    await run();
  } catch (fault) {
    annotate("error", fault instanceof JobError ? fault.message : (fault?.stack ?? fault));
    process.exitCode = 1;
  }
}
