import { type ChildProcess, execFileSync, fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { SandboxedExit, SandboxPlan } from "../../packages/stages/src/tools/sandbox.ts";
import type { OwnerAnswer, OwnerCall } from "./wall-owner.ts";

const OWNER = fileURLToPath(new URL("./wall-owner.ts", import.meta.url));
const NOBODY = 65_534;

/**
 * Whether this machine can build a wall at all, by bubblewrap's own word: a wall of ours that does not hold is no reason to skip.
 * Tests that need one are skipped without it, and their names say so.
 */
export function hasWall(): boolean {
  const least = ["--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true"];
  return spawnSync("/usr/bin/bwrap", least).status === 0;
}

/** A user to whom commands belong; undefined is the one who runs the tests. */
export interface WallUser {
  readonly name: string;
  readonly uid: number | undefined;
}

/** Where the tests are run by the superuser, an ordinary one too. */
export function wallUsers(): readonly WallUser[] {
  const isRoot = process.getuid?.() === 0;
  const own = { name: isRoot ? "the superuser" : "an ordinary user", uid: undefined };
  return isRoot ? [own, { name: "nobody", uid: NOBODY }] : [own];
}

/** A process that owns a sandbox, and ends with its test. */
export interface Owner {
  readonly child: ChildProcess;
  call(call: Omit<OwnerCall, "id" | "mode"> & Partial<Pick<OwnerCall, "mode">>): Promise<OwnerAnswer>;
}

export async function startOwner(
  { uid }: WallUser,
  {
    env = {},
    descriptors = [],
  }: { readonly env?: Record<string, string>; readonly descriptors?: readonly number[] } = {},
): Promise<Owner> {
  const child = fork(OWNER, [], {
    execArgv: ["--conditions=@sluice/source", "--no-warnings"],
    stdio: ["ignore", "inherit", "inherit", "ipc", ...descriptors],
    env: { PATH: process.env.PATH, ...env },
    cwd: "/",
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const waiting = new Map<number, (answer: OwnerAnswer) => void>();
  const isReady = once(child, "message");
  await isReady;
  child.on("message", (answer: OwnerAnswer) => waiting.get(answer.id)?.(answer));
  let calls = 0;
  return {
    child,
    call: (call) => {
      calls += 1;
      const id = calls;
      const { promise, resolve } = Promise.withResolvers<OwnerAnswer>();
      waiting.set(id, resolve);
      child.once("exit", (code, signal) => resolve({ id, error: { code: "exit", message: `${code} ${signal}` } }));
      child.send({ mode: "try", ...call, id });
      return promise;
    },
  };
}

/** A workspace, a home folder and things beside them that no command is to see. */
export interface WallWorld {
  readonly folder: string;
  readonly root: string;
  readonly home: string;
  /** Below the folder. */
  put(path: string, content?: string, mode?: number): string;
  /** Runs as the user whose world it is, without a wall. */
  outside(line: string, cwd?: string): string;
  /** Gives everything to the user: what was put since. */
  own(): void;
  readonly plan: SandboxPlan;
  readonly env: Readonly<Record<string, string>>;
}

export function wallWorld(user: WallUser): WallWorld {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "sluice-wall-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [root, home] = [join(folder, "work"), join(folder, "home")];
  const put: WallWorld["put"] = (path, content = path, mode) => {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    if (mode !== undefined) chmodSync(file, mode);
    return file;
  };
  const own = (): void => giveTo(folder, user.uid);
  put("home/.gitconfig", "[user]\n\tname = A\n\temail = a@example.com\n[init]\n\tdefaultBranch = main\n");
  put("home/.ssh/id", "planted key");
  put("state/runs/journal", "planted store");
  put("work/.sluice/runs/journal", "planted store");
  put("work/a.txt", "a\n");
  put("work/src/code.ts", "code\n");
  own();
  const env = { PATH: process.env.PATH ?? "/usr/bin:/bin", HOME: home, LANG: "C.UTF-8" };
  const absent = [join(folder, "state/runs"), join(root, ".sluice/runs")];
  return {
    folder,
    root,
    home,
    put,
    own,
    outside: (line, cwd = root) =>
      execFileSync("/bin/bash", ["-c", line], {
        cwd,
        env,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
        ...(user.uid === undefined ? {} : { uid: user.uid, gid: user.uid }),
      }),
    plan: { root, reads: [""], writes: [], scratch: [], network: false, absent, readOnly: [] },
    env,
  };
}

function giveTo(path: string, uid: number | undefined): void {
  if (uid === undefined) return;
  if (!lstatSync(path).isSymbolicLink()) chownSync(path, uid, uid);
  if (!lstatSync(path).isDirectory()) return;
  for (const name of readdirSync(path)) giveTo(join(path, name), uid);
}

/** What came of a line behind the wall. */
export interface Walled {
  readonly text: string;
  readonly end: SandboxedExit;
}

/** Runs lines of one world behind its wall; an error is thrown. */
export async function walled(
  user: WallUser,
  world: WallWorld,
  options: Parameters<typeof startOwner>[1] = {},
): Promise<(line: string, plan?: Partial<SandboxPlan>, env?: Record<string, string>) => Promise<Walled>> {
  const owner = await startOwner(user, options);
  return async (line, plan = {}, env = {}) => {
    // Output and errors share a stream, whose order is fixed.
    const one = `exec 2>&1\n${line}`;
    const answer = await owner.call({ line: one, plan: { ...world.plan, ...plan }, env: { ...world.env, ...env } });
    if ("error" in answer) throw new Error(`${answer.error.code}: ${answer.error.message}`);
    return answer;
  };
}
