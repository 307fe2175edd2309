import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What bash really did with a line. */
export interface Recorded {
  /** Each command it looked for, with its words. */
  readonly ran: readonly (readonly string[])[];
  /** Files the line made in its empty folder. */
  readonly files: readonly string[];
}

const HANDLER = "BASH_FUNC_command_not_found_handle%%";
/** Bash writes after each newline, and commands run side by side: without newlines, each is one write. */
const RECORD = `() { printf '%s\\1' "\${@//$'\\n'/$'\\3'}" $'\\2' >> "$RECORD"; }`;
const LIMIT_MS = 2_000;

/** A bash new enough to hand unknown commands to a function, or undefined. */
export function findRecordingBash(): string | undefined {
  return ["/bin/bash", "/usr/bin/bash"].find((path) => {
    const { status } = spawnSync(path, ["-c", '[ "$BASH_VERSINFO" -ge 4 ]'], { stdio: "ignore" });
    return status === 0;
  });
}

/** Runs lines of commands that do not exist: with an empty PATH, bash hands each of them to a function that notes it. */
export class BashRecorder implements Disposable {
  readonly #shell: string;
  readonly #folder = mkdtempSync(join(tmpdir(), "bash-recorder-"));
  #count = 0;

  constructor(shell: string) {
    this.#shell = shell;
  }

  run(line: string): Promise<Recorded> {
    this.#count += 1;
    const record = join(this.#folder, `${this.#count}.log`);
    const cwd = join(this.#folder, `${this.#count}`);
    writeFileSync(record, "");
    mkdirSync(cwd);
    // FUNCNEST ends functions that call themselves.
    const env = {
      PATH: "/nonexistent",
      HOME: "/nonexistent",
      FUNCNEST: "4",
      LC_ALL: "C.UTF-8",
      RECORD: record,
      [HANDLER]: RECORD,
    };
    const child = spawn(this.#shell, ["-c", line], { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    const end = (): void => endGroup(child.pid);
    const limit = setTimeout(end, LIMIT_MS);
    child.stdout.resume();
    child.stderr.resume();
    return new Promise((resolve, reject) => {
      child.on("error", reject);
      // Only when all that inherited the pipes has ended, background commands too.
      child.on("close", () => {
        clearTimeout(limit);
        end();
        const ran = readFileSync(record, "utf8").split("\u0002\u0001").slice(0, -1);
        const files = readdirSync(cwd);
        rmSync(record);
        rmSync(cwd, { recursive: true });
        resolve({ ran: ran.map((words) => words.replaceAll("\u0003", "\n").split("\u0001").slice(0, -1)), files });
      });
    });
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch (thrown) {
    // The whole group has ended by itself.
    if (!(thrown instanceof Error && "code" in thrown && thrown.code === "ESRCH")) throw thrown;
  }
}
