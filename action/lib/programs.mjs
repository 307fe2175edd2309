// Starts programs and reads what they print.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { childEnvironment, JobError } from "./runner.mjs";

const MOST_TEXT = 64 * 1024 * 1024;

/** Runs a program to its end and returns what it printed. Throws if it cannot be started. */
export async function runProgram([program, ...args], { cwd, env = {}, output = "pipe" } = {}) {
  const child = spawn(program, args, {
    cwd,
    env: { ...childEnvironment(), ...env },
    stdio: ["ignore", output, "pipe"],
  });
  const [stdout, stderr, code] = await Promise.all([textOf(child.stdout), textOf(child.stderr), ended(child)]);
  return { code, stdout, stderr };
}

/** Runs a program and passes each line that it prints on. Signals of the runner go to the program, which ends in its own way. */
export async function followProgram([program, ...args], { cwd, stdin = "", onOut, onError }) {
  const child = spawn(program, args, { cwd, env: childEnvironment(), stdio: ["pipe", "pipe", "pipe"] });
  const forward = (signal) => child.kill(signal);
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, forward);
  // A program that ends without reading its input is not a fault.
  child.stdin.on("error", (fault) => onError(`input: ${fault.message}`));
  child.stdin.end(stdin);
  const lines = async (stream, onLine) => {
    for await (const line of createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY })) onLine(line);
  };
  const [, , code] = await Promise.all([lines(child.stdout, onOut), lines(child.stderr, onError), ended(child)]);
  for (const signal of ["SIGINT", "SIGTERM"]) process.off(signal, forward);
  return code;
}

async function textOf(stream) {
  if (stream === null) return "";
  const parts = [];
  let size = 0;
  for await (const part of stream) {
    size += part.length;
    if (size > MOST_TEXT) throw new JobError("a program printed more than 64 MiB");
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

/** The exit code, or 128 for a signal. */
function ended(child) {
  return new Promise((resolve, reject) => {
    child.on("error", (fault) => reject(new JobError(`${child.spawnfile} cannot be started: ${fault.message}`)));
    child.on("close", (code) => resolve(code ?? 128));
  });
}
