import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { isJsonObject, type Json, type JsonObject, parseJson } from "@sluice/core";
import { onTestFinished } from "vitest";

const FIXTURES = join(import.meta.dirname, "..", "fixtures", "sqlite");

/** Runs a fixture's source; sources need no build. */
export function nodeArguments(fixture: string, ...rest: readonly string[]): string[] {
  return ["--conditions=@sluice/source", "--disable-warning=ExperimentalWarning", join(FIXTURES, fixture), ...rest];
}

/** Another process with a store of its own on the same folder. */
export interface Driver {
  readonly pid: number;
  /** Does one thing there; an error there is an error here, with its class and code. */
  do(op: string, args?: JsonObject): Promise<Json>;
  signal(name: "SIGKILL" | "SIGSTOP" | "SIGCONT"): void;
  kill(): Promise<void>;
}

export async function startDriver(folder: string, options: JsonObject = {}): Promise<Driver> {
  const driver = await startBareDriver();
  await driver.do("open", { folder, options });
  return driver;
}

/** A driver that has not opened anything yet; `under` starts it, as a program that gives it another view of the machine. */
export async function startBareDriver(under: readonly string[] = []): Promise<Driver> {
  const [file = process.execPath, ...words] = [...under, process.execPath, ...nodeArguments("driver.ts")];
  const child = spawn(file, words, { stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(child, "exit");
  await once(child, "spawn");
  const { pid } = child;
  if (pid === undefined) throw new Error("the driver has no process id");
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const driver: Driver = {
    pid,
    async do(op, args = {}) {
      child.stdin.write(`${JSON.stringify({ op, ...args })}\n`);
      const { value: line, done } = await lines.next();
      if (done === true) throw new Error(`the driver ended during ${op}`);
      const answer = parseJson(line);
      if (!answer.ok || !isJsonObject(answer.value)) throw new Error(`the driver said ${line}`);
      const { value, error } = answer.value;
      if (isJsonObject(error)) throw Object.assign(new Error(String(error.message)), error);
      return value ?? null;
    },
    signal: (name) => void child.kill(name),
    async kill() {
      child.kill("SIGKILL");
      await exited;
    },
  };
  onTestFinished(() => driver.kill());
  return driver;
}
