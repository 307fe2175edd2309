// `npm run golden`: runs the built command, which is killed, answered, cancelled and forked, and keeps its stores and files. With
// names of cases, it records only these.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, cpSync, mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { CASES, type Recording, type Running } from "./cases.ts";
import { GOLDEN, PIPELINES } from "./fixtures.ts";
import type { Turns } from "./script.ts";

const COMMAND = join(import.meta.dirname, "../../packages/cli/bin/sluice.js");
const PRELOAD = join(import.meta.dirname, "recorded-process.mjs");
/** Runs keep their folder in their record, so it has the same name each time. */
const FOLDER = join(realpathSync(tmpdir()), "sluice-golden");
const START = Date.UTC(2026, 0, 1);
/** A process that has not come so far by then hangs. */
const PATIENCE_MS = 60_000;

mkdirSync(FOLDER);
try {
  const named = process.argv.slice(2);
  const unknown = named.filter((name) => !Object.hasOwn(CASES, name));
  if (unknown.length > 0)
    throw new Error(`there is no case ${unknown.join(", ")}; cases: ${Object.keys(CASES).join(", ")}`);
  for (const [name, record] of Object.entries(CASES)) {
    if (named.length > 0 && !named.includes(name)) continue;
    await recorded(name, record);
    process.stdout.write(`recorded ${name}\n`);
  }
} finally {
  rmSync(FOLDER, { recursive: true });
}

async function recorded(name: string, record: (recording: Recording) => Promise<void>): Promise<void> {
  const folder = join(FOLDER, name);
  const workspace = join(folder, "workspace");
  mkdirSync(workspace, { recursive: true });
  for (const file of PIPELINES) cpSync(join(GOLDEN, file), join(workspace, file));
  let processes = 0;
  const start = (args: readonly string[], kill = ""): Running => {
    processes += 1;
    const env = {
      PATH: process.env.PATH ?? "",
      HOME: join(folder, "home"),
      GOLDEN_SEED: `${name} ${processes}`,
      GOLDEN_NOW: String(START + processes * 3_600_000),
      ...(kill === "" ? {} : { GOLDEN_KILL: kill }),
    };
    const child = spawn(process.execPath, ["--import", PRELOAD, COMMAND, ...args], { cwd: workspace, env });
    return watched(child, `${name}: sluice ${args.join(" ")}`);
  };
  await record({
    put: (file, text) => writeFileSync(join(workspace, file), text),
    script: (turns: Turns) => {
      const file = join(folder, `script-${processes}.json`);
      writeFileSync(file, JSON.stringify({ stages: turns }));
      return `scripted:${file}`;
    },
    sluice: async (args, code = 0) => await start(args).ends(code),
    killed: async (place, args) => void (await start(args, place).ends("SIGKILL")),
    start,
  });
  await start(["export", "--all", "-o", join(folder, "store")]).ends(0);
  anonymize(join(folder, "store", "journal.db"));
  keep(name, folder);
}

/** A store names its machine and the process that owned a run. This removes both, and makes the file small. */
function anonymize(journal: string): void {
  const db = new DatabaseSync(journal);
  db.exec("PRAGMA page_size = 1024; UPDATE store SET machine = 'recorded elsewhere'");
  db.exec(
    "UPDATE trees SET owner = '1-' || substr(owner, instr(owner, '-') + 1), label = 'process 1' WHERE owner IS NOT NULL",
  );
  db.exec("VACUUM");
  db.close();
}

/** Writes the case into the repository: the store, and the files that its runs have changed. */
function keep(name: string, folder: string): void {
  const kept = join(GOLDEN, name);
  rmSync(kept, { recursive: true, force: true });
  mkdirSync(join(kept, "store"), { recursive: true });
  cpSync(join(folder, "store", "journal.db"), join(kept, "store", "journal.db"));
  chmodSync(join(kept, "store", "journal.db"), 0o644);
  const own = new Set([".sluice", ...PIPELINES].map((file) => join(folder, "workspace", file)));
  const workspace = join(kept, "workspace");
  cpSync(join(folder, "workspace"), workspace, { recursive: true, filter: (path) => !own.has(path) });
}

function watched(child: ChildProcess, what: string): Running {
  let output = "";
  let read = 0;
  let how: number | string | null | undefined;
  const listeners = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (chunk: string) => {
      output += chunk;
      for (const listener of listeners) listener();
    });
  }
  const timer = setTimeout(() => child.kill("SIGTERM"), PATIENCE_MS);
  const closed = once(child, "close").then(([code, signal]: (number | string | null)[]) => {
    clearTimeout(timer);
    how = signal ?? code ?? null;
    for (const listener of listeners) listener();
  });
  return {
    write: (line) => void child.stdin?.write(`${line}\n`),
    async until(pattern) {
      for (;;) {
        const found = pattern.exec(output.slice(read));
        if (found !== null) {
          read += found.index + found[0].length;
          return found;
        }
        if (how !== undefined) throw new Error(`${what} ended without ${pattern}:\n${output}`);
        await new Promise<void>((resolve) => {
          listeners.add(resolve);
        });
      }
    },
    async ends(expected) {
      await closed;
      if (how !== expected) throw new Error(`${what} ended with ${how}, not ${expected}:\n${output}`);
      return output;
    },
  };
}
