import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import {
  endSurvivors,
  groupLives,
  type ProcessEnd,
  type ProcessOptions,
  runProcess,
  signalGroup,
} from "../../packages/stages/src/tools/bash/process.ts";
import { handClock } from "../support/hand-clock.ts";
import { tempFolder } from "../support/tools.ts";

function run(script: string, options: Partial<ProcessOptions> = {}): { end: Promise<ProcessEnd>; text: () => string } {
  let text = "";
  const take = (piece: string): boolean => {
    text += piece;
    return true;
  };
  const end = runProcess({
    file: "/bin/sh",
    args: ["-c", script],
    cwd: "/",
    env: { PATH: process.env.PATH ?? "/usr/bin:/bin" },
    signal: new AbortController().signal,
    timeoutMs: 60_000,
    stdout: take,
    stderr: take,
    ...options,
  });
  return { end, text: () => text };
}

const lives = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    // Where nobody reaps orphans, the dead keep their number.
    return process.platform !== "linux" || !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
};
const pidsIn = (text: string): number[] => (text.match(/\d+/g) ?? []).map(Number);

test("a process that ends by itself gives its exit code and what it wrote", async () => {
  const { end, text } = run("echo out; echo err >&2; exit 3");
  expect(await end).toEqual({ by: "itself", exitCode: 3, killed: null, leftOthers: false });
  expect(text().split("\n").sort()).toEqual(["", "err", "out"]);
});

test("a process that is killed gives the signal", async () => {
  expect(await run("kill -9 $$").end).toMatchObject({ by: "itself", exitCode: null, killed: "SIGKILL" });
});

test("characters that arrive in two pieces are put together", async () => {
  const { end, text } = run("printf '\\303'; sleep 0.1; printf '\\244'");
  await end;
  expect(text()).toBe("ä");
});

test("on abort the whole group ends, children of children too", async () => {
  const controller = new AbortController();
  const { end, text } = run("sleep 1000 & echo $!; (sleep 1000 & echo $!; wait) & echo $$; wait", {
    signal: controller.signal,
  });
  await expect.poll(() => pidsIn(text()).length).toBe(3);
  controller.abort();
  expect((await end).by).toBe("abort");
  expect(pidsIn(text()).filter(lives)).toEqual([]);
});

test("after the timeout a process that ignores being asked is made to end", async () => {
  const clock = handClock();
  const { end, text } = run("trap '' TERM; echo $$; while :; do sleep 0.05; done", { timeoutMs: 500, clock });
  await expect.poll(text).not.toBe("");
  clock.turn(500);
  const turning = setInterval(() => clock.turn(100), 5);
  onTestFinished(() => clearInterval(turning));
  expect(await end).toMatchObject({ by: "timeout", killed: "SIGKILL" });
  expect(pidsIn(text()).filter(lives)).toEqual([]);
});

test("background children that keep the pipes open neither hold the call nor outlive it", async () => {
  const { end, text } = run("sleep 1000 & echo $!");
  expect(await end).toMatchObject({ by: "itself", exitCode: 0, leftOthers: true });
  expect(pidsIn(text()).filter(lives)).toEqual([]);
});

test.runIf(process.platform === "linux")("a group of which only unreaped processes are left is gone", async () => {
  const child = spawn("/bin/sh", ["-c", "exec sleep 1000"], { detached: true, stdio: "ignore" });
  await once(child, "spawn");
  const { pid = expect.fail() } = child;
  expect(groupLives(pid)).toBe(true);
  child.kill("SIGKILL");
  // Node reaps its children between two turns of its loop, so there is none in between.
  const end = performance.now() + 10_000;
  while (lives(pid) && performance.now() < end);
  expect([signalGroup(pid, 0), groupLives(pid)]).toEqual([true, false]);
});

/** Ends its first thread, which stands for the process in /proc, and works on in another one that takes 300 MB. */
const HEADLESS = `
import ctypes, threading, time
def work():
    held = bytearray(300_000_000)
    print("works", flush=True)
    time.sleep(1000)
threading.Thread(target=work).start()
ctypes.CDLL(None).pthread_exit(None)
`;
const hasPython = process.platform === "linux" && spawnSync("python3", ["-c", ""]).status === 0;

test.runIf(hasPython)("a process whose first thread has ended counts as one, with its memory", async () => {
  const headless = { file: "/usr/bin/env", args: ["python3", "-c", HEADLESS] };
  const controller = new AbortController();
  const stopped = run("", { ...headless, signal: controller.signal });
  await expect.poll(stopped.text).toBe("works\n");
  controller.abort();
  expect(await stopped.end).toMatchObject({ by: "abort", killed: "SIGTERM" });
  const limited = run("", { ...headless, limits: { memoryBytes: 100_000_000 } });
  expect(await limited.end).toMatchObject({ by: "memory", killed: "SIGKILL" });
  const child = spawn("python3", ["-c", HEADLESS], { detached: true, stdio: ["ignore", "pipe", "ignore"] });
  const { pid = expect.fail() } = child;
  await once(child.stdout, "data");
  await expect.poll(() => readFileSync(`/proc/${pid}/stat`, "utf8")).toMatch(/\) Z /);
  expect(groupLives(pid)).toBe(true);
  signalGroup(pid, "SIGKILL");
});

test("a reader that has seen enough ends the process", async () => {
  let seen = 0;
  const { end } = run("while :; do echo x; done", {
    stdout: (text) => {
      seen += text.length;
      return seen < 1_000;
    },
  });
  expect((await end).by).toBe("reader");
});

test("what cannot be started is a typed error", async () => {
  await expect(run("", { file: "/nowhere/at/all" }).end).rejects.toMatchObject({ code: "spawn_failed" });
  await expect(run("", { cwd: "/nowhere/at/all" }).end).rejects.toMatchObject({ code: "spawn_failed" });
  await expect(run("a\0b").end).rejects.toMatchObject({ code: "spawn_failed" });
});

test("an abort before the start starts nothing", async () => {
  const folder = tempFolder();
  expect((await run("echo x > made", { cwd: folder.root, signal: AbortSignal.abort() }).end).by).toBe("abort");
  expect(existsSync(folder.path("made"))).toBe(false);
});

test.runIf(process.platform === "linux")(
  "survivors of a call are found by its key in their environment, and nobody else's",
  async () => {
    const folder = tempFolder();
    const key = `survivors-${process.pid}`;
    const start = (name: string, value: string) =>
      spawn("/bin/sh", ["-c", `trap '' TERM; echo $$ > ${name}; while :; do sleep 0.05; done`], {
        cwd: folder.root,
        env: { PATH: process.env.PATH, SLUICE_CALL: value },
        detached: true,
        stdio: "ignore",
      });
    const mine = start("mine", key);
    const other = start("other", `${key}0`);
    onTestFinished(() => void other.kill("SIGKILL"));
    await expect.poll(() => existsSync(folder.path("mine")) && existsSync(folder.path("other"))).toBe(true);
    const gone = once(mine, "exit");
    await endSurvivors(key);
    expect(await gone).toEqual([null, "SIGKILL"]);
    expect(other.exitCode ?? other.signalCode).toBeNull();
  },
);

test.runIf(process.platform === "linux")(
  "a process killed together with its parent leaves children that recovery ends",
  async () => {
    const folder = tempFolder();
    const key = `orphans-${process.pid}`;
    // The parent stands for a run that is killed: its child is in a session of its own and lives on.
    const parent = spawn("/bin/sh", ["-c", "setsid sh -c 'echo $$ > child; exec sleep 1000' & wait"], {
      cwd: folder.root,
      env: { PATH: process.env.PATH, SLUICE_CALL: key },
      stdio: "ignore",
    });
    await expect.poll(() => existsSync(folder.path("child")) && folder.text("child") !== "").toBe(true);
    const child = Number(folder.text("child"));
    parent.kill("SIGKILL");
    await once(parent, "exit");
    expect(lives(child)).toBe(true);
    await endSurvivors(key);
    expect(lives(child)).toBe(false);
  },
);

test("a command that ignores SIGTERM does not outlive a process that ends before the grace is over", async () => {
  const program = join(import.meta.dirname, "../fixtures/exits-early.ts");
  const flags = ["--conditions=@sluice/source", "--disable-warning=ExperimentalWarning"];
  const { stdout, status } = spawnSync(process.execPath, [...flags, program], { encoding: "utf8", timeout: 90_000 });
  expect(status).toBe(0);
  const [pid = 0] = pidsIn(stdout);
  expect(pid).toBeGreaterThan(0);
  await expect.poll(() => lives(pid)).toBe(false);
});
