import { chmodSync, copyFileSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "@sluice/core";
import { describe, expect, onTestFinished, test } from "vitest";
import { createSandbox } from "../../packages/stages/src/sandbox/sandbox.ts";
import { NO_MASK } from "../../packages/stages/src/secrets/cut-text.ts";
import { type McpServerConfig, readMcpServers } from "../../packages/stages/src/tools/mcp/config.ts";
import { createLink, type Link } from "../../packages/stages/src/tools/mcp/transport/connection.ts";
import { loadMcpSdk } from "../../packages/stages/src/tools/mcp/transport/sdk.ts";
import { EVERYTHING, FILESYSTEM, misbehaving } from "../support/mcp.ts";
import { hasWall, type WallWorld, wallUsers, wallWorld } from "../support/walls.ts";

const isThere = hasWall();
const [user = { name: "", uid: undefined }] = wallUsers();

interface Server {
  readonly link: Link;
  /** Names of those that run without a wall. */
  readonly unwalled: ReadonlySet<string>;
  /** What a tool answers, or why it does not, as text. */
  use(tool: string, input?: Record<string, unknown>): Promise<string>;
}

async function start(world: WallWorld, config: McpServerConfig, programs?: readonly string[]): Promise<Server> {
  const { absent } = world.plan;
  const sandbox = createSandbox({
    mode: "try",
    root: world.root,
    absent: () => absent,
    ...(programs === undefined ? {} : { programs }),
  });
  await sandbox.prove();
  const [settings] = readMcpServers({ server: config });
  if (settings === undefined) throw new Error("there is no server");
  const unwalled = new Set<string>();
  const around = { sdk: loadMcpSdk, clock: systemClock, workspace: world.root, kills: new Set<() => void>() };
  const link = createLink(
    {
      ...around,
      settings,
      walled: new Set(),
      unwalled,
      allowed: () => ({ env: world.env, plan: { absent, readOnly: [] } }),
      onFault: () => undefined,
    },
    {
      runId: "r1",
      env: world.env,
      secrets: NO_MASK,
      wall: { sandbox, plan: () => ({ absent, readOnly: [] }) },
    },
  );
  onTestFinished(() => link.close());
  return {
    link,
    unwalled,
    use: async (tool, input = {}) => {
      const { signal } = new AbortController();
      const connection = await link.reach();
      const answer = await connection.call(tool, input, signal).catch((thrown: unknown) => String(thrown));
      return JSON.stringify(answer);
    },
  };
}

describe.skipIf(!isThere)("MCP servers behind the wall (skipped where none can be built)", () => {
  test("a server works on the workspace and on folders that its settings name, and sees neither store nor home", async () => {
    const world = wallWorld(user);
    world.put("notes/page", "page");
    const args = [FILESYSTEM, world.root, join(world.folder, "notes"), world.home];
    const { unwalled, use } = await start(world, { command: process.execPath, args });
    const write = (path: string): Promise<string> => use("write_file", { path, content: "written" });
    expect(await write(join(world.root, "new"))).toContain("Successfully");
    expect(await write(join(world.folder, "notes/new"))).toContain("Successfully");
    expect(await use("read_text_file", { path: join(world.root, ".sluice/runs/journal") })).toContain("ENOENT");
    expect(await use("read_text_file", { path: join(world.home, ".ssh/id") })).toMatch(/ENOENT|does not exist/);
    expect(world.outside("cat new ../notes/new")).toBe("writtenwritten");
    expect([...unwalled]).toEqual([]);
  });

  test("it gets its own variables, and nothing of the processes beside it", async () => {
    const world = wallWorld(user);
    const env = { SERVICE_TOKEN: "of its own" };
    const { use } = await start(world, { command: process.execPath, args: [EVERYTHING], env });
    const said = await use("get-env");
    expect(said).toContain("of its own");
    expect(said).toContain(world.home);
  });

  test("one whose settings say so runs without it, and is known to", async () => {
    const world = wallWorld(user);
    const fine = misbehaving("fine").config;
    const held = await start(world, fine);
    const free = await start(world, { ...fine, sandbox: false });
    const none = await start(world, fine, ["/no/such/bwrap"]);
    for (const { use } of [held, free, none]) expect(await use("act")).toContain("content");
    expect([held, free, none].map(({ unwalled }) => [...unwalled])).toEqual([[], ["server"], ["server"]]);
  });

  test("one that ended is started behind the wall again, or not at all", async () => {
    const world = wallWorld(user);
    const program = join(world.folder, "bin/bwrap");
    mkdirSync(join(world.folder, "bin"));
    copyFileSync("/usr/bin/bwrap", program);
    chmodSync(program, 0o755);
    const bad = misbehaving("dies");
    const { unwalled, use } = await start(world, bad.config, [program]);
    for (const time of [1, 2]) {
      expect(await use("act")).toContain("Error");
      expect(bad.noted().filter((line) => line === "start")).toHaveLength(time);
    }
    rmSync(program);
    await expect(use("act")).rejects.toThrow();
    expect(bad.noted().filter((line) => line === "start")).toHaveLength(2);
    expect([...unwalled]).toEqual([]);
  });

  test("a program that is not there is named, as without a wall", async () => {
    const world = wallWorld(user);
    const { link } = await start(world, { command: "no-such-program-anywhere" });
    await expect(link.reach()).rejects.toThrow(/no-such-program-anywhere could not be started in .*ENOENT/);
  });
});
