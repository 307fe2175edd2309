import { once } from "node:events";
import { openSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { constants } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createSandbox } from "../../packages/stages/src/sandbox/sandbox.ts";
import type { ProcessOptions } from "../../packages/stages/src/tools/bash/process.ts";
import type { SandboxedExit } from "../../packages/stages/src/tools/sandbox.ts";
import { until } from "../support/mcp.ts";
import { isAlive } from "../support/survivors.ts";
import { hasWall, startOwner, type WallWorld, walled, wallUsers, wallWorld } from "../support/walls.ts";

const isThere = hasWall();
const connects = (to: string): string =>
  `node -e 'require("net").connect(${to}).on("error", (e) => console.log(e.code)).on("connect", () => { console.log("connected"); process.exit() })'`;

/** Host processes that carry this text in their command line. */
function running(mark: string): readonly number[] {
  return processes().filter((pid) => commandLine(pid).includes(mark) && isAlive(pid));
}

describe.skipIf(!isThere).each(wallUsers())(
  "processes behind the wall (skipped where none can be built), as $name",
  (user) => {
    test("no connection leaves it, by port or abstract socket, and a server inside can be reached", async () => {
      const world = wallWorld(user);
      const run = await walled(user, world);
      const name = `\0sluice-${process.pid}-${user.name}`;
      let heard = 0;
      const listening = [{ port: 0, host: "127.0.0.1" }, { path: name }].map(async (at) => {
        const server = createServer((socket) => {
          heard += 1;
          socket.destroy();
        });
        server.listen(at);
        await once(server, "listening");
        onTestFinished(() => void server.close());
        return server.address();
      });
      const [tcp] = await Promise.all(listening);
      const port = typeof tcp === "object" ? tcp?.port : undefined;
      const abstract = `{ path: "\\0${name.slice(1)}" }`;
      const both = `${connects(`${port}, "127.0.0.1"`)}; ${connects(abstract)}`;
      const { text } =
        await run(`${both}; getent hosts example.com; ls /sys/class/net /proc/net/dev >/dev/null; tail -n +3 /proc/net/dev | cut -d: -f1
      node -e 'const s = require("net").createServer((c) => c.end("served")).listen(0, "127.0.0.1", () => require("net").connect(s.address().port).on("data", (d) => { console.log(String(d)); process.exit() }))'`);
      expect(text.replaceAll("ls: cannot access '/sys/class/net': No such file or directory\n", "")).toBe(
        "ECONNREFUSED\nECONNREFUSED\n    lo\nserved\n",
      );
      expect(heard).toBe(0);
      // With the machine's network both can be reached, as the contract says.
      expect((await run(both, { network: true })).text).toBe("connected\nconnected\n");
    });

    test("the owner cannot be seen, signalled or traced, and no variable or descriptor of it is there", async () => {
      const world = wallWorld(user);
      const planted = openSync("/etc/hostname", "r");
      const descriptors = [...Array.from({ length: 36 }, () => planted)];
      const options = { env: { PLANTED_TOKEN: "planted" }, descriptors };
      const owner = await startOwner(user, options);
      const { pid } = owner.child;
      const ask = async (line: string): Promise<string> => {
        const answer = await owner.call({ line, plan: world.plan, env: world.env });
        return "error" in answer ? answer.error.message : answer.text;
      };
      expect(
        await ask(`kill -0 ${pid} 2>&1; kill -9 ${pid} ${process.pid}; ls -d /proc/${pid}; cat /proc/${pid}/mem`),
      ).not.toContain(`/proc/${pid}\n`);
      expect(isAlive(pid ?? 0)).toBe(true);
      expect(
        await ask(
          "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -E 'PLANTED|SLUICE|NODE'; tr '\\0' '\\n' </proc/1/environ | cut -d= -f1 | sort | xargs",
        ),
      ).toBe("HOME LANG PATH\n");
      const open = await ask(
        "for f in /proc/self/fd/*; do readlink $f; done | sort -u | grep -vE '^(/dev/null|pipe:.*|socket:.*|/proc/[0-9]+/fd)$'; ls /proc/self/fd | wc -l",
      );
      expect(open).not.toContain("hostname");
      expect(await ask("ls /proc | grep -cE '^[0-9]+$'")).toMatch(/^[1-9]\n$/);
      expect(await ask("tr '\\0' ' ' </proc/1/cmdline")).not.toMatch(/planted/);
    });

    test("it has no capability, a session of its own, and cannot make further namespaces", async () => {
      const world = wallWorld(user);
      const run = await walled(user, world);
      const { text } = await run(`grep -E '^(Cap(Eff|Prm|Bnd)|NoNewPrivs)' /proc/self/status | tr -d '\\t'
      cut -d' ' -f6 /proc/self/stat; unshare -U true && echo nested; bwrap --ro-bind / / true && echo nested; mount -t tmpfs x /tmp && echo mounted; hostname x && echo named
      echo >/dev/tty && echo tty; ipcs -q | wc -l`);
      expect(text).toMatch(/^CapPrm:0+\nCapEff:0+\nCapBnd:0+\nNoNewPrivs:1\n1\n/);
      expect(text).not.toMatch(/^(nested|mounted|named|tty)$/m);
    });

    test("exit codes, signals and long outputs come out as they are", async () => {
      const world = wallWorld(user);
      const run = await walled(user, world);
      expect((await run("exit 7")).end).toMatchObject({ by: "itself", exitCode: 7, killed: null });
      for (const signal of ["SIGKILL", "SIGTERM", "SIGSEGV"] as const)
        expect((await run(`kill -${constants.signals[signal]} $$`)).end).toMatchObject({
          by: "itself",
          exitCode: 128 + constants.signals[signal],
          killed: signal,
        });
      expect((await run("exit 255")).end).toMatchObject({ exitCode: 255, killed: null });
      expect((await run("no-such-program-here")).end).toMatchObject({ exitCode: 127, killed: null });
    });

    test("what continues in the background ends with the call, also in a session of its own", async () => {
      const world = wallWorld(user);
      const run = await walled(user, world);
      const mark = `7${process.pid}${user.uid ?? 0}`;
      const { end } = await run(
        `sleep ${mark} & setsid sleep ${mark} & (trap '' TERM HUP; sleep ${mark}) & disown -a; exit 0`,
      );
      expect(end).toMatchObject({ by: "itself", exitCode: 0 });
      expect(running(mark)).toEqual([]);
    });

    test("when the owner is killed nothing of the call is left", async () => {
      const world = wallWorld(user);
      const owner = await startOwner(user);
      const mark = `8${process.pid}${user.uid ?? 0}`;
      void owner.call({
        line: `trap '' TERM HUP INT; setsid sleep ${mark} & sleep ${mark}; sleep ${mark}`,
        plan: world.plan,
        env: world.env,
      });
      await until(() => running(mark).length >= 3);
      owner.child.kill("SIGKILL");
      await until(() => running(mark).length === 0);
    });
  },
);

describe.skipIf(!isThere)("a call behind the wall (skipped where none can be built)", () => {
  const [user = { name: "", uid: undefined }] = wallUsers();
  const start = (world: WallWorld, line: string, options: Partial<ProcessOptions> = {}) => {
    const sandbox = createSandbox({ mode: "require", root: world.root, absent: () => world.plan.absent });
    let bytes = 0;
    let text = "";
    const end: Promise<SandboxedExit> = sandbox.run(
      {
        file: "/bin/bash",
        args: ["--noprofile", "--norc", "-c", line],
        cwd: world.root,
        env: world.env,
        signal: new AbortController().signal,
        timeoutMs: 60_000,
        stdout: (piece) => {
          bytes += piece.length;
          text = (text + piece).slice(-1_000);
          return true;
        },
        stderr: () => true,
        ...options,
      },
      world.plan,
    );
    return { end, bytes: () => bytes, text: () => text };
  };

  test("a hundred megabytes of output arrive", async () => {
    const { end, bytes } = start(wallWorld(user), "head -c 100000000 /dev/zero");
    expect(await end).toMatchObject({ by: "itself", exitCode: 0 });
    expect(bytes()).toBe(100_000_000);
  });

  test("an abort asks it to end, gives it time for that, and then ends it with all it started", async () => {
    const polite = new AbortController();
    const saying = start(wallWorld(user), "trap 'echo bye; exit 3' TERM; echo ready; sleep 1000 & wait", {
      signal: polite.signal,
    });
    await until(() => saying.text().includes("ready"));
    polite.abort();
    expect(await saying.end).toMatchObject({ by: "abort", exitCode: 3 });
    expect(saying.text()).toBe("ready\nbye\n");

    const rude = new AbortController();
    const mark = `9${process.pid}`;
    const staying = start(
      wallWorld(user),
      `trap '' TERM; sleep ${mark} & setsid sleep ${mark} & echo ready; while :; do sleep 0.1; done`,
      { signal: rude.signal },
    );
    await until(() => staying.text().includes("ready"));
    rude.abort();
    expect(await staying.end).toMatchObject({ by: "abort", killed: "SIGKILL" });
    expect(running(mark)).toEqual([]);
  });

  test("a timeout ends it too, and an abort before it began runs nothing", async () => {
    const { end } = start(wallWorld(user), "sleep 1000", { timeoutMs: 50 });
    expect(await end).toMatchObject({ by: "timeout" });
    const world = wallWorld(user);
    const stopped = start(world, "echo ran", { signal: AbortSignal.abort() });
    expect(await stopped.end).toMatchObject({ by: "abort", exitCode: null });
    expect(stopped.text()).toBe("");
  });

  test("more output, memory or CPU time than it may have ends it, and says which", async () => {
    const world = wallWorld(user);
    const output = start(world, "yes", { limits: { outputBytes: 1_000_000 } });
    expect(await output.end).toMatchObject({ by: "output" });
    expect(output.bytes()).toBeLessThanOrEqual(1_000_000);
    const fill = `node -e 'const all = []; setInterval(() => all.push(Buffer.alloc(20e6, 1)), 5)'`;
    const memory = start(world, `${fill} & setsid ${fill} & wait`, { limits: { memoryBytes: 300e6 } });
    expect(await memory.end).toMatchObject({ by: "memory", killed: "SIGKILL" });
    const cpu = start(world, "(while :; do :; done) & while :; do (:); done", { limits: { cpuSeconds: 0.3 } });
    expect(await cpu.end).toMatchObject({ by: "cpu" });
  });
});

function processes(): readonly number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0);
}

function commandLine(pid: number): string {
  try {
    return readFileSync(join("/proc", String(pid), "cmdline"), "latin1");
  } catch {
    return "";
  }
}
