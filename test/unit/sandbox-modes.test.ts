import { chmodSync, copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isSluiceError, type SluiceError } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { createSandbox } from "../../packages/stages/src/sandbox/sandbox.ts";
import { seatbeltProfile } from "../../packages/stages/src/sandbox/seatbelt.ts";
import type { Sandbox, SandboxedExit, SandboxMode } from "../../packages/stages/src/tools/sandbox.ts";
import { hasWall, type WallWorld, wallUsers, wallWorld } from "../support/walls.ts";

const isThere = hasWall();
const [user = { name: "", uid: undefined }] = wallUsers();

function sandboxIn(world: WallWorld, mode: SandboxMode, programs?: readonly string[]): Sandbox {
  const absent = (): readonly string[] => world.plan.absent;
  return createSandbox({ mode, root: world.root, absent, ...(programs === undefined ? {} : { programs }) });
}

async function run(
  sandbox: Sandbox,
  world: WallWorld,
  line: string,
): Promise<SandboxedExit & { readonly text: string }> {
  let text = "";
  const take = (piece: string): boolean => {
    text += piece;
    return true;
  };
  const end = await sandbox.run(
    {
      file: "/bin/bash",
      args: ["--noprofile", "--norc", "-c", line],
      cwd: world.root,
      env: world.env,
      signal: new AbortController().signal,
      timeoutMs: 60_000,
      stdout: take,
      stderr: take,
    },
    world.plan,
  );
  return { ...end, text };
}

async function errorOf(work: Promise<unknown>): Promise<SluiceError> {
  const thrown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!isSluiceError(thrown)) throw new Error(`expected an error of Sluice, got ${String(thrown)}`);
  return thrown;
}

/** A program that takes bubblewrap's words and runs what comes after them without a wall. */
function pretender(world: WallWorld, before = ""): string {
  const script = `#!/bin/bash\n${before}\nwhile [ "$1" != -- ]; do [ "$1" = --chdir ] && cd "$2"; shift; done; shift; exec "$@"\n`;
  return world.put("bin/bwrap", script, 0o755);
}

test("without a wall: try says why and how to get one, require is an error that says it, off does not look", async () => {
  const world = wallWorld(user);
  const none = [join(world.folder, "no-bwrap")];
  const tried = sandboxIn(world, "try", none);
  expect([tried.wall, tried.missing]).toEqual([undefined, undefined]);
  await Promise.all([tried.prove(), tried.prove()]);
  expect(tried.wall).toBeUndefined();
  expect(tried.missing).toEqual({
    reason: "bubblewrap is not installed",
    fix: expect.stringContaining("apt install bubblewrap"),
  });
  expect((await errorOf(run(tried, world, "echo ran"))).code).toBe("sandbox_failed");

  const required = sandboxIn(world, "require", none);
  for (const work of [() => required.prove(), () => required.prove(), () => run(required, world, "echo ran")]) {
    const error = await errorOf(work());
    expect([error.class, error.code]).toEqual(["Session", "sandbox_missing"]);
    expect(error.message).toMatch(/bubblewrap is not installed.*apt install bubblewrap/);
  }
  const off = sandboxIn(world, "off");
  await off.prove();
  expect([off.wall, off.missing]).toEqual([undefined, undefined]);
  expect((await errorOf(run(off, world, "echo ran"))).code).toBe("sandbox_failed");
});

test("a program in the workspace is never taken for the one that builds the wall", async () => {
  const world = wallWorld(user);
  const planted = world.put("work/bin/bwrap", `#!/bin/sh\ntouch ${world.folder}/ran\n`, 0o755);
  const sandbox = sandboxIn(world, "try", [planted]);
  await sandbox.prove();
  expect([sandbox.wall, existsSync(join(world.folder, "ran"))]).toEqual([undefined, false]);
});

test("something that builds no wall, or half of one, is found out", async () => {
  const world = wallWorld(user);
  const seen = async (before: string, program = "/usr/bin/bwrap"): Promise<string | undefined> => {
    const sandbox = sandboxIn(world, "try", [before === "" ? program : pretender(world, before)]);
    await sandbox.prove();
    expect(sandbox.wall).toBeUndefined();
    return sandbox.missing?.reason;
  };
  const status = `printf '{ "child-pid": %d }\\n{ "exit-code": 0 }' $$ >&3`;
  expect(await seen(status)).toMatch(/write in the workspace.*connect.*see the run store/);
  expect(await seen("true")).toMatch(/does not hold/);
  expect(await seen("echo 'bwrap: No permissions to create a new namespace' >&2; exit 1")).toContain("No permissions");
  // The canary's file is not left behind by a wall that let it through.
  expect(world.outside("ls -A")).toBe(".sluice\na.txt\nsrc\n");
});

describe.skipIf(!isThere)("with a wall (skipped where none can be built)", () => {
  test("a workspace that cannot be protected has its commands refused, and the wall holds all the same", async () => {
    const world = wallWorld(user);
    world.outside("git init -q ../other; ln -s ../other/.git .git");
    const sandbox = sandboxIn(world, "try");
    await sandbox.prove();
    expect([sandbox.wall, sandbox.missing]).toEqual(["bubblewrap", undefined]);
    expect((await errorOf(run(sandbox, world, `touch ${world.root}/ran`))).message).toMatch(/\.git is a link/);
    world.outside("rm .git");
    expect((await run(sandbox, world, "echo ran")).text).toBe("ran\n");
  });

  test("it is proven once for all who ask at the same time", async () => {
    const world = wallWorld(user);
    const log = join(world.folder, "log");
    const counting = world.put("bin/bwrap", `#!/bin/sh\necho >>${log}\nexec env -u PWD /usr/bin/bwrap "$@"\n`, 0o755);
    const sandbox = sandboxIn(world, "require", [counting]);
    await Promise.all([sandbox.prove(), sandbox.prove(), run(sandbox, world, "true")]);
    await sandbox.prove();
    expect(sandbox.wall).toBe("bubblewrap");
    expect(world.outside(`wc -l <${log}`).trim()).toBe("2");
  });

  test("one that is lost in the middle runs nothing more, and says so", async () => {
    const world = wallWorld(user);
    mkdirSync(join(world.folder, "bin"));
    const program = join(world.folder, "bin/bwrap");
    copyFileSync("/usr/bin/bwrap", program);
    chmodSync(program, 0o755);
    for (const breaks of [() => rmSync(program), () => world.put("bin/bwrap", "#!/bin/sh\nexit 1\n", 0o755)]) {
      copyFileSync("/usr/bin/bwrap", program);
      const sandbox = sandboxIn(world, "try", [program]);
      expect((await run(sandbox, world, "echo ran")).text).toBe("ran\n");
      breaks();
      const error = await errorOf(run(sandbox, world, `touch ${world.root}/ran`));
      expect([error.class, error.code]).toEqual(["ToolTerminal", "sandbox_failed"]);
      expect([sandbox.wall, typeof sandbox.missing?.reason]).toEqual([undefined, "string"]);
      expect((await errorOf(run(sandbox, world, "echo ran"))).code).toBe("sandbox_failed");
      rmSync(program, { force: true });
    }
    expect(existsSync(join(world.root, "ran"))).toBe(false);
  });

  test("a call whose wall fails is an error of that call only, when the wall can be built again", async () => {
    const world = wallWorld(user);
    const flag = join(world.folder, "fail");
    const program = world.put(
      "bin/bwrap",
      `#!/bin/sh\n[ -e ${flag} ] && rm ${flag} && exit 1\nexec env -u PWD /usr/bin/bwrap "$@"\n`,
      0o755,
    );
    const sandbox = sandboxIn(world, "require", [program]);
    await sandbox.prove();
    world.put("fail");
    expect((await errorOf(run(sandbox, world, "echo ran"))).message).toMatch(/nothing was run/);
    expect(sandbox.wall).toBe("bubblewrap");
    expect((await run(sandbox, world, "echo ran")).text).toBe("ran\n");
  });

  test("a program that is not there is such an error too: nothing ran", async () => {
    const world = wallWorld(user);
    const sandbox = sandboxIn(world, "require");
    const program = { file: "/no/such/program", args: [], cwd: world.root, env: world.env, timeoutMs: 60_000 };
    const none = { signal: new AbortController().signal, stdout: () => true, stderr: () => true };
    expect((await errorOf(sandbox.run({ ...program, ...none }, world.plan))).message).toContain("/no/such/program");
    expect(sandbox.wall).toBe("bubblewrap");
  });
});

test("macOS gets a profile that closes everything and opens what the plan reads and writes", () => {
  const world = wallWorld(user);
  const base = {
    plan: world.plan,
    cwd: world.root,
    home: world.home,
    spelledHome: world.home,
    temporary: undefined,
    keys: { files: ["/etc/sudoers"], folders: [] },
    tools: [{ from: "/Users/a/.pyenv", at: "/Users/a/.pyenv" }],
    repository: {
      outside: [],
      whole: true,
      awaited: [],
      place: world.root,
      folders: [`${world.root}/.git`],
      fixed: [`${world.root}/.git/hooks`],
    },
    marks: [],
    forbidsUserNamespaces: true,
    status: false,
  };
  const reading = seatbeltProfile(base);
  expect(reading).toMatch(/^\(version 1\)\n\(deny default\)\n/);
  expect(reading).toContain(`(allow file-read*\n  (subpath "${world.root}"))`);
  expect(reading).not.toContain("network");
  expect(reading).not.toContain("(allow file-read* file-write*");
  const last = reading.slice(reading.lastIndexOf("(deny file-read* file-write*"));
  for (const path of [...world.plan.absent, join(world.root, ".sluice"), "/etc/sudoers"])
    expect(last).toContain(`(subpath "${path}")`);

  const odd = `${world.root}/a "b" \\c`;
  const writing = seatbeltProfile({ ...base, plan: { ...world.plan, writes: [""], network: true, readOnly: [odd] } });
  const at = (text: string): number => writing.indexOf(text);
  expect(at(`(allow file-read* file-write*\n  (subpath "${world.root}")`)).toBeGreaterThan(0);
  // The later rule holds: whatever git obeys anywhere, then the workspace's own repository, then what it obeys there.
  expect(at("(deny file-write* (regex")).toBeGreaterThan(at("(allow file-read* file-write*"));
  expect(at(`(allow file-write*\n  (subpath "${world.root}/.git"))`)).toBeGreaterThan(at("(deny file-write* (regex"));
  expect(at(`(subpath "${world.root}/.git/hooks")`)).toBeGreaterThan(
    at(`(allow file-write*\n  (subpath "${world.root}/.git"))`),
  );
  expect(writing).toContain(String.raw`a \"b\" \\c")`);
  expect(writing).toContain("(allow network*)");
  // As many brackets are closed as are opened.
  expect(writing.replace(/"(?:[^"\\]|\\.)*"/g, "").match(/\(/g)).toHaveLength(
    writing.replace(/"(?:[^"\\]|\\.)*"/g, "").match(/\)/g)?.length ?? 0,
  );
});
