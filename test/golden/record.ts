// `npm run golden`: runs of the built command, which are killed, answered, cancelled and forked, and what they leave behind.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, cpSync, mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { CASES, type Recording } from "./cases.ts";
import { GOLDEN, PIPELINES } from "./fixtures.ts";
import type { Turns } from "./script.ts";

const COMMAND = join(import.meta.dirname, "../../packages/tui/bin/sluice.js");
const PRELOAD = join(import.meta.dirname, "recorded-process.mjs");
/** Runs keep their folder in their record, so it has the same name each time. */
const FOLDER = join(realpathSync(tmpdir()), "sluice-golden");
const START = Date.UTC(2026, 0, 1);
/** A process that has not come so far by then hangs. */
const PATIENCE_MS = 60_000;

mkdirSync(FOLDER);
try {
  for (const [name, record] of Object.entries(CASES)) {
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
  cpSync(PIPELINES, join(workspace, "pipelines.ts"));
  let processes = 0;
  const start = (args: readonly string[], kill: string): Started => {
    processes += 1;
    const env = {
      PATH: process.env.PATH ?? "",
      HOME: join(folder, "home"),
      GOLDEN_SEED: `${name} ${processes}`,
      GOLDEN_NOW: String(START + processes * 3_600_000),
      ...(kill === "" ? {} : { GOLDEN_KILL: kill }),
    };
    return started(spawn(process.execPath, ["--import", PRELOAD, COMMAND, ...args], { cwd: workspace, env }));
  };
  await record({
    script: (turns: Turns) => {
      const file = join(folder, `script-${processes}.json`);
      writeFileSync(file, JSON.stringify({ stages: turns }));
      return `scripted:${file}`;
    },
    async sluice(args, code = 0) {
      const { ended, said } = start(args, "");
      const how = await ended;
      if (how !== code) throw new Error(`${name}: sluice ${args.join(" ")} ended with ${how}, not ${code}:\n${said()}`);
      return said();
    },
    async killed(place, args) {
      const { ended, said } = start(args, place);
      const how = await ended;
      if (how !== "SIGKILL") throw new Error(`${name}: ended with ${how}, and never came to ${place}:\n${said()}`);
    },
    async waiting(args) {
      const { until, ended, said } = start(args, "");
      return {
        until,
        async ends(code) {
          const how = await ended;
          if (how !== code) throw new Error(`${name}: ended with ${how}, not ${code}:\n${said()}`);
        },
      };
    },
  });
  await start(["export", "--all", "-o", join(folder, "store")], "").ended;
  anybodys(join(folder, "store", "journal.db"));
  keep(name, folder);
}

/** A copy of a store names the machine and the process it is from: here it is from none. */
function anybodys(journal: string): void {
  const db = new DatabaseSync(journal);
  db.exec("PRAGMA page_size = 1024; UPDATE store SET machine = 'recorded elsewhere'");
  db.exec(
    "UPDATE trees SET owner = '1-' || substr(owner, instr(owner, '-') + 1), label = 'process 1' WHERE owner IS NOT NULL",
  );
  db.exec("VACUUM");
  db.close();
}

/** The case as it stands in the repository: the store, and the files that the runs have changed. */
function keep(name: string, folder: string): void {
  const kept = join(GOLDEN, name);
  rmSync(kept, { recursive: true, force: true });
  mkdirSync(join(kept, "store"), { recursive: true });
  cpSync(join(folder, "store", "journal.db"), join(kept, "store", "journal.db"));
  chmodSync(join(kept, "store", "journal.db"), 0o644);
  const own = new Set([".sluice", "pipelines.ts"].map((file) => join(folder, "workspace", file)));
  const workspace = join(kept, "workspace");
  cpSync(join(folder, "workspace"), workspace, { recursive: true, filter: (path) => !own.has(path) });
}

interface Started {
  /** The exit code, or the signal's name. */
  readonly ended: Promise<number | string | null>;
  /** All it has printed. */
  readonly said: () => string;
  /** Waits until it prints this, after what was waited for before. */
  readonly until: (pattern: RegExp) => Promise<RegExpExecArray>;
}

function started(child: ChildProcess): Started {
  let text = "";
  let seen = 0;
  const listeners = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      for (const listener of listeners) listener();
    });
  }
  const timer = setTimeout(() => child.kill("SIGTERM"), PATIENCE_MS);
  const ended = once(child, "close").then(([code, signal]: (number | string | null)[]) => {
    clearTimeout(timer);
    for (const listener of listeners) listener();
    return signal ?? code ?? null;
  });
  return {
    ended,
    said: () => text,
    async until(pattern) {
      for (;;) {
        const found = pattern.exec(text.slice(seen));
        if (found !== null) {
          seen += found.index + found[0].length;
          return found;
        }
        if (child.exitCode !== null || child.signalCode !== null)
          throw new Error(`it ended without ${pattern}:\n${text}`);
        await new Promise<void>((resolve) => {
          listeners.add(resolve);
        });
      }
    },
  };
}
