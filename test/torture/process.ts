import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { isJsonObject, parseJson } from "@sluice/core";
import type { LifePlan } from "./life.ts";

/** Something that was done, and what in the journal says so. */
export interface Deed {
  readonly deed: string;
  readonly recorded: string;
  readonly prompt?: readonly string[];
}

/** What a process did before it ended. */
export interface Lived {
  readonly killed: boolean;
  /** The places it came to, in order. */
  readonly points: readonly string[];
  readonly deeds: readonly Deed[];
  /** How the run ended, if it did; or the code of what kept it from going on. */
  readonly ended: string | undefined;
  readonly refused: string | undefined;
  /** What it said on stderr, or why it was refused. */
  readonly why: string;
}

export interface Life {
  readonly pid: number;
  readonly over: Promise<Lived>;
  signal(name: "SIGKILL" | "SIGCONT"): void;
}

const PROGRAM = join(import.meta.dirname, "life.ts");
/** A process that takes longer hangs. */
const PATIENCE_MS = 60_000;

/** Starts a process on a run. With `killAt` it is killed from here once it has reported so many places: it dies anywhere after that. */
export function startLife(plan: LifePlan, cache: string, killAt?: number): Life {
  const args = ["--conditions=@sluice/source", "--disable-warning=ExperimentalWarning", PROGRAM, JSON.stringify(plan)];
  const { PATH, HOME, XDG_STATE_HOME } = process.env;
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "pipe"],
    // The same home as here, since a store may keep there which machine this is.
    env: { PATH, HOME, XDG_STATE_HOME, NODE_COMPILE_CACHE: cache },
  });
  const { pid } = child;
  if (pid === undefined) throw new Error("the process did not start");
  const points: string[] = [];
  const deeds: Deed[] = [];
  let ended: string | undefined;
  let refused: string | undefined;
  let why = "";
  let hung = false;
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    why += text;
  });
  createInterface({ input: child.stdout }).on("line", (line) => {
    const parsed = parseJson(line);
    if (!parsed.ok || !isJsonObject(parsed.value)) throw new Error(`the process said ${line}`);
    const { point, deed, recorded, prompt } = parsed.value;
    if (typeof point === "string") points.push(point);
    if (typeof point === "string" && points.length === killAt) child.kill("SIGKILL");
    if (typeof deed === "string" && typeof recorded === "string")
      deeds.push({ deed, recorded, ...(Array.isArray(prompt) ? { prompt: prompt.map(String) } : {}) });
    if (typeof parsed.value.ended === "string") ended = parsed.value.ended;
    if (typeof parsed.value.refused === "string") {
      refused = parsed.value.refused;
      why += String(parsed.value.why);
    }
  });
  const timer = setTimeout(() => {
    hung = true;
    child.kill("SIGKILL");
  }, PATIENCE_MS);
  const over = new Promise<Lived>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      if (hung) reject(new Error(`a process hangs; the last place it came to: ${points.at(-1)}\n${why}`));
      else if (signal !== "SIGKILL" && code !== 0)
        reject(new Error(`a process failed with ${code ?? signal}:\n${why}`));
      else resolve({ killed: signal === "SIGKILL", points, deeds, ended, refused, why });
    });
  });
  return { pid, over, signal: (name) => void child.kill(name) };
}
