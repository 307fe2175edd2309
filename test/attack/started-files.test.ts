import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { type ActScope, done, pipeline, type State, to } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { agentModelId, externalAgent, externalAgents } from "@sluice/gateway";
import { createSession, type Session, type SessionOptions, script } from "@sluice/stages";
import { startedFiles } from "@sluice/stages/runtime";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { putRecord } from "../support/left-records.ts";
import { FILESYSTEM } from "../support/mcp.ts";
import { caller, completed, dataOf, eventsOf, json, noModel, work, workExecutor } from "../support/run-kit.ts";
import { tempFolder } from "../support/tools.ts";
import { hasWall } from "../support/walls.ts";

// A stage that replaced the program of an agent, of an MCP server or of a notification would decide what starts next, with its keys.

const EVIL = `#!${process.execPath}\nrequire("node:fs").writeFileSync("stolen", process.env.KEY);\n`;

/** A workspace with an agent's program, which `command` starts after a stage has made these calls. */
function workspace(files: Readonly<Record<string, string>>, links: Readonly<Record<string, string>> = {}) {
  const { root } = tempFolder();
  const put = (name: string, text: string): void => {
    mkdirSync(join(root, name, ".."), { recursive: true });
    writeFileSync(join(root, name), text);
    chmodSync(join(root, name), 0o755);
  };
  for (const [name, text] of Object.entries(files)) put(name, text);
  for (const [name, target] of Object.entries(links)) {
    mkdirSync(join(root, name, ".."), { recursive: true });
    symlinkSync(target, join(root, name));
  }
  return root;
}

interface Attack {
  readonly root: string;
  readonly command: readonly [string, ...string[]];
  /** Before the agent starts, in a stage that may do all of this. */
  readonly calls: readonly (readonly [tool: string, input: Readonly<Record<string, string>>])[];
  readonly path?: string;
  readonly sandbox?: "require" | "off";
  readonly protectedPaths?: readonly string[];
}

/** A state of an agent that this command starts. */
function startedBy(agent: { readonly command: readonly [string, ...string[]]; readonly passEnv?: readonly string[] }) {
  return externalAgent({
    prompt: "Go.",
    completionTool: "finish",
    completionSchema: z.object({}),
    turnCap: 2,
    allowedTools: [],
    agent: { ...agent, accept: "advisory" },
  });
}

/** A session whose agents get the key, closed with the test. */
function sessionIn(root: string, options: Partial<SessionOptions>, path = process.env.PATH): Session {
  const session = createSession({
    model: noModel,
    cwd: root,
    env: { PATH: path, HOME: root, KEY: "key-0123456789abcdef" },
    executors: [workExecutor],
    traffic: externalAgents({ sandbox: "off" }),
    ...options,
  });
  onTestFinished(() => session.close());
  return session;
}

/** The verdicts on the calls; the agent has started, and failed. */
async function attacked({ root, command, calls, path = process.env.PATH, sandbox = "off", ...more }: Attack) {
  const act = async (scope: ActScope) => {
    const call = caller(scope);
    for (const [name, input] of calls) await call(name, input);
    return completed(json("ok"));
  };
  const pipe = pipeline({
    id: "p",
    input: z.object({}),
    stages: {
      edit: work({ allowedTools: ["Read", "Edit", "Write", "Bash"], act }),
      agent: startedBy({ command, passEnv: ["KEY"] }),
    },
    initial: "edit",
    next: { edit: () => to("agent"), agent: () => done("ok") },
  });
  const host = createHost(createMemoryJournals().connect());
  const session = sessionIn(root, { sandbox, host, ...more }, path);
  const run = session.start(pipe, {});
  expect((await run).status).toBe("failed");
  const decided = dataOf(await eventsOf(host, run.runId), "call.decided");
  return decided.map(({ tool, verdict, cause = verdict }) => `${String(tool)} ${String(cause)}`);
}

function stolen(root: string): string {
  try {
    return readFileSync(join(root, "stolen"), "utf8");
  } catch (thrown) {
    return thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT" ? "nothing" : String(thrown);
  }
}

test.skipIf(!hasWall()).each<[how: string, folder: string, link: string]>([
  ["itself", "node_modules/.bin/agent", "../agent/index.js"],
  ["through a folder", "current", "releases/1"],
])("a program that is named by a link, %s, cannot be replaced from within the sandbox", async (how, link, target) => {
  const isFolder = how !== "itself";
  const program = isFolder ? "releases/1/agent" : "node_modules/agent/index.js";
  const root = workspace({ [program]: `#!${process.execPath}\nprocess.exit(1);\n` }, { [link]: target });
  const replace = isFolder ? "ln -sfn evil current" : `rm ${link} && cp evil/agent ${link}`;
  await attacked({
    root,
    command: [isFolder ? "./current/agent" : `./${link}`],
    calls: [
      ["Write", { file_path: "evil/agent", content: EVIL }],
      ["Bash", { command: `chmod +x evil/agent && ${replace}` }],
    ],
    sandbox: "require",
  });
  expect(stolen(root)).toBe("nothing");
});

/** A server that writes files, in a session with two pipelines: the second one starts an agent after the server has been called. */
async function afterServer(
  files: Readonly<Record<string, string>>,
  words: readonly string[],
  {
    isTogether = false,
    meanwhile,
  }: { readonly isTogether?: boolean; readonly meanwhile?: (root: string) => void } = {},
) {
  const root = workspace(files);
  const put: State = work({
    allowedTools: ["mcp__files__write_file"],
    act: async (scope) => {
      const call = caller(scope);
      if (meanwhile !== undefined) {
        await call("mcp__files__write_file", { path: join(root, "other.txt"), content: "" });
        meanwhile(root);
      }
      for (const path of words)
        await call("mcp__files__write_file", { path: join(root, path), content: path.endsWith("json") ? "{}" : EVIL });
      return completed(json("ok"));
    },
  });
  const nothing = work({ allowedTools: ["mcp__files__write_file"] });
  const first = pipeline({
    id: "first",
    input: z.object({}),
    stages: { nothing },
    initial: "nothing",
    next: { nothing: () => done("ok") },
  });
  const second = pipeline({
    id: "second",
    input: z.object({}),
    stages: { put, agent: startedBy({ command: [process.execPath, ...words], passEnv: ["KEY"] }) },
    initial: "put",
    next: { put: () => to("agent"), agent: () => done("ok") },
  });
  const session = sessionIn(root, {
    sandbox: "require",
    host: createHost(createMemoryJournals().connect()),
    mcpServers: { files: { command: process.execPath, args: [FILESYSTEM, root] } },
  });
  const before = session.run(first, {});
  if (!isTogether) await before;
  const result = await session.run(second, {});
  expect(await before).toMatchObject({ status: "completed" });
  return { root, result };
}

test.skipIf(!hasWall()).each([
  ["an earlier run", false],
  ["a run that began at the same time", true],
])(
  "a server that %s started writes neither the program of another run's agent nor a file that its command names",
  async (_run, isTogether) => {
    const files = { "agent/agent.cjs": "process.exit(1);", "agent/agent.json": "[1]" };
    const { root, result } = await afterServer(files, Object.keys(files), { isTogether });
    expect(result).toMatchObject({ status: "failed" });
    for (const [name, text] of Object.entries(files)) expect(readFileSync(join(root, name), "utf8")).toBe(text);
    expect(stolen(root)).toBe("nothing");
  },
);

const BUILT = "process.exit(2);";
const PROGRAM = "agent/agent.cjs";
test.skipIf(!hasWall()).each<[how: string, replace: (file: string) => void, files?: object]>([
  [
    "renames another one to it",
    (file) => {
      writeFileSync(`${file}.new`, BUILT);
      renameSync(`${file}.new`, file);
    },
  ],
  [
    "removes it and writes it again",
    (file) => {
      rmSync(file);
      writeFileSync(file, BUILT);
    },
  ],
  ["writes it for the first time", (file) => writeFileSync(file, BUILT), {}],
])("a file is protected from a server that runs when its user %s", async (_how, replace, files = { [PROGRAM]: "" }) => {
  const meanwhile = (root: string): void => replace(join(root, PROGRAM));
  const { root, result } = await afterServer({ "agent/other.txt": "", ...files }, [PROGRAM], { meanwhile });
  expect(result).toMatchObject({ status: "failed" });
  expect(readFileSync(join(root, PROGRAM), "utf8")).toBe(BUILT);
  expect(stolen(root)).toBe("nothing");
});

test.skipIf(!hasWall())(
  "a repository that its user clones while a server runs is protected from that server",
  async () => {
    const settings = "tools/.git/config";
    const { root } = await afterServer({ "tools/other.txt": "" }, [settings], {
      meanwhile: (folder) => {
        mkdirSync(join(folder, "tools/.git"));
        writeFileSync(join(folder, settings), "[core]\n");
      },
    });
    expect(readFileSync(join(root, settings), "utf8")).toBe("[core]\n");
  },
);

test.skipIf(!hasWall()).each(["agent.cjs", "dist/agent.cjs"])(
  "the program %s of an agent is moved away when a server's call makes it",
  async (name) => {
    const { root, result } = await afterServer({ "dist/other.txt": "" }, [name]);
    expect(() => readFileSync(join(root, name))).toThrow("ENOENT");
    expect(result).toMatchObject({ status: "failed" });
    expect(stolen(root)).toBe("nothing");
  },
);

test.skipIf(!hasWall()).each([
  ["is protected if the state that makes it lists it", true],
  ["is not started if no state lists it", false],
])(
  "an agent of a made pipeline whose program lies where a server writes beside the workspace %s",
  async (_how, isListed) => {
    const [root, beside] = [workspace({}), workspace({ "agent.cjs": "process.exit(1);" })];
    const program = join(beside, "agent.cjs");
    const started = { command: [process.execPath, program], passEnv: ["KEY"], accept: "advisory" } as const;
    const agent = startedBy(started);
    const made = pipeline({
      id: "made",
      input: z.object({}),
      stages: { agent },
      initial: "agent",
      next: { agent: () => done("ok") },
    });
    const put = work({
      allowedTools: ["mcp__files__write_file"],
      ...(isListed ? { models: [agentModelId(started)] } : {}),
      act: async (scope) => {
        await caller(scope)("mcp__files__write_file", { path: program, content: EVIL });
        return completed(json(await scope.runChildren("go", [{ key: "k", pipeline: made.spec, input: {} }])));
      },
    });
    const outer = pipeline({
      id: "outer",
      input: z.object({}),
      stages: { put },
      initial: "put",
      next: { put: () => done("ok") },
    });
    const session = sessionIn(root, {
      sandbox: "require",
      host: createHost(createMemoryJournals().connect()),
      mcpServers: { files: { command: process.execPath, args: [FILESYSTEM, root, beside] } },
    });
    const [end] = await Promise.allSettled([session.run(outer, {})]);
    expect(end).toMatchObject(isListed ? { value: { status: "completed" } } : { reason: { code: "session_invalid" } });
    expect(readFileSync(program, "utf8") === EVIL).toBe(!isListed);
    expect(stolen(root)).toBe("nothing");
  },
);

/** A run that makes its agent's program, by means that no sandbox sees, and then waits in two states until `goOn` is called. */
function makingRun() {
  const root = workspace({});
  const [wait, last] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let isWaiting = (): void => undefined;
  const waiting = new Promise<void>((resolve) => {
    isWaiting = resolve;
  });
  const make = work({
    act: async () => {
      writeFileSync(join(root, "agent.cjs"), EVIL);
      return completed(json("ok"));
    },
  });
  const until = ({ promise }: PromiseWithResolvers<void>) =>
    work({
      act: async () => {
        isWaiting();
        await promise;
        return completed(json("ok"));
      },
    });
  const pipe = pipeline({
    id: "p",
    input: z.object({}),
    stages: {
      make,
      wait: until(wait),
      last: until(last),
      agent: startedBy({ command: [process.execPath, "agent.cjs"], passEnv: ["KEY"] }),
    },
    initial: "make",
    next: { make: () => to("wait"), wait: () => to("last"), last: () => to("agent"), agent: () => done("ok") },
  });
  const journals = createMemoryJournals();
  /** `store` is where its host says that it is. */
  const open = (store?: { readonly folder: string }) =>
    sessionIn(root, { sandbox: "off", host: { ...createHost(journals.connect()), ...store } });
  const toLast = (): void => wait.resolve();
  const goOn = (): void => {
    toLast();
    last.resolve();
  };
  return { root, pipe, open, waiting, toLast, goOn };
}
const REFUSED = { status: "failed", error: { message: expect.stringContaining("during the run") } };

test("an agent whose program was made during the run is not started, even if another run of its pipeline began since", async () => {
  const { pipe, open, waiting, goOn } = makingRun();
  const session = open();
  const run = session.start(pipe, {});
  await waiting;
  const other = session.start(pipe, {});
  goOn();
  expect(await run).toMatchObject(REFUSED);
  expect(await other).toMatchObject({ status: "failed" });
});

test("nor if a killed command had made it before, which was moved away when the run began", async () => {
  const { root, pipe, open, goOn } = makingRun();
  const [program, folder] = [join(root, "agent.cjs"), tempFolder().root];
  writeFileSync(program, EVIL);
  putRecord(folder, { root, tops: [], paths: [program] });
  goOn();
  expect(await open({ folder }).run(pipe, {})).toMatchObject(REFUSED);
  expect(stolen(root)).toBe("nothing");
});

test("nor if a resume that would allow it is refused meanwhile", async () => {
  const { pipe, open, waiting, goOn } = makingRun();
  const session = open();
  const run = session.start(pipe, {});
  await waiting;
  await expect(session.resume(pipe, run.runId, { allowChanged: true })).rejects.toMatchObject({ class: "Host" });
  await session.tools(pipe, { resumes: run.runId, allowChanged: true });
  goOn();
  expect(await run).toMatchObject(REFUSED);
});

test("nor if it was missing when a later life of the run began", async () => {
  const { root, pipe, open, waiting, goOn } = makingRun();
  const [first, second] = [open(), open()];
  const run = first.start(pipe, {});
  await waiting;
  await first.close();
  await run;
  // With what a person accepts, the program is not missing any more; then it is removed, and made again in that life.
  rmSync(join(root, "agent.cjs"));
  const again = second.resume(pipe, run.runId, { allowChanged: true });
  await expect.poll(async () => (await second.host.get(run.runId))?.owner).toBeDefined();
  writeFileSync(join(root, "agent.cjs"), EVIL);
  await second.close();
  await again;
  goOn();
  expect(await open().resume(pipe, run.runId)).toMatchObject(REFUSED);
});

test("nor in a fork of a run that has accepted an earlier file, after a resume of the fork", async () => {
  const { root, pipe, open, waiting, toLast, goOn } = makingRun();
  const first = open();
  const run = first.start(pipe, {});
  await waiting;
  await first.close();
  await run;
  const second = open();
  const again = second.resume(pipe, run.runId, { allowChanged: true });
  toLast();
  await expect.poll(async () => (await eventsOf(second.host, run.runId)).at(-1)?.executionId).toBe("last#1");
  await again.suspend();
  await again;
  rmSync(join(root, "agent.cjs"));
  const fork = second.fork(pipe, run.runId, { from: "last#1" });
  await expect.poll(async () => (await second.host.get(fork.runId))?.owner).toBeDefined();
  writeFileSync(join(root, "agent.cjs"), EVIL);
  await second.close();
  await fork;
  goOn();
  expect(await open().resume(pipe, fork.runId)).toMatchObject(REFUSED);
  expect(stolen(root)).toBe("nothing");
});

test("nor after the run was resumed", async () => {
  const { root, pipe, open, waiting, goOn } = makingRun();
  const first = open();
  const run = first.start(pipe, {});
  await waiting;
  await first.close();
  await run;
  goOn();
  expect(await open().resume(pipe, run.runId)).toMatchObject(REFUSED);
  expect(stolen(root)).toBe("nothing");
});

test("a fork with allowChanged starts such an agent, once a person has checked its program", async () => {
  const { root, pipe, open, goOn } = makingRun();
  goOn();
  const session = open();
  const run = session.start(pipe, {});
  expect(await run).toMatchObject(REFUSED);
  expect(await session.fork(pipe, run.runId, { from: "agent#1" })).toMatchObject(REFUSED);
  expect(stolen(root)).toBe("nothing");
  await session.fork(pipe, run.runId, { from: "agent#1", allowChanged: true });
  expect(stolen(root)).toBe("key-0123456789abcdef");
});

test.skipIf(!hasWall())("a link that a sandboxed command replaced by a folder is moved away", async () => {
  const root = workspace(
    { "releases/1/agent": `#!${process.execPath}\nprocess.exit(1);\n` },
    { current: "releases/1" },
  );
  const command = `rm current && mkdir current && echo evil > current/agent && chmod +x current/agent`;
  await attacked({ root, command: ["./current/agent"], calls: [["Bash", { command }]], sandbox: "require" });
  expect(() => readFileSync(join(root, "current/agent"))).toThrow("ENOENT");
});

test.skipIf(!hasWall())("what lies behind a link that a sandboxed command made is not moved", async () => {
  const outside = workspace({ "agent.cjs": "the user's own" });
  const root = workspace({});
  const command = `ln -s ${outside} conf`;
  await attacked({
    root,
    command: [process.execPath, "conf/agent.cjs"],
    calls: [["Bash", { command }]],
    sandbox: "require",
  });
  expect(readFileSync(join(outside, "agent.cjs"), "utf8")).toBe("the user's own");
});

test("a program that PATH finds in the workspace, or would find there first, cannot be written", async () => {
  const root = workspace({ "bin/agent": `#!${process.execPath}\nprocess.exit(1);\n` });
  const write = (file_path: string) => ["Write", { file_path, content: EVIL }] as const;
  const verdicts = await attacked({
    root,
    command: ["agent"],
    path: [join(root, "earlier"), "/usr/bin", join(root, "bin"), join(root, "later")].join(delimiter),
    calls: [write("bin/agent"), write("earlier/agent"), write("later/agent"), write("bin/other")],
  });
  expect(verdicts).toEqual(["Write limit", "Write limit", "Write approved", "Write approved"]);
  expect(stolen(root)).toBe("nothing");
});

test("the interpreter that a program names by env is found outside of the workspace first", async () => {
  const root = workspace({ "bin/agent": "#!/usr/bin/env node\nprocess.exit(1);\n" });
  const path = [join(root, "bin"), dirname(process.execPath), "/usr/bin"].join(delimiter);
  const content = "#!/bin/sh\nprintf %s $KEY > stolen\n";
  const write = ["Write", { file_path: "bin/node", content }] as const;
  await attacked({ root, command: ["agent"], path, calls: [write, ["Bash", { command: "chmod +x bin/node" }]] });
  expect(stolen(root)).toBe("nothing");
});

test.skipIf(!hasWall())("a folder of PATH in the workspace that is a link out of it cannot be replaced", async () => {
  const elsewhere = workspace({ "bin/agent": `#!${process.execPath}\nprocess.exit(1);\n` });
  const root = workspace({}, { ".venv": elsewhere });
  await attacked({
    root,
    command: ["agent"],
    path: [join(root, ".venv/bin"), "/usr/bin", "/bin"].join(delimiter),
    calls: [
      ["Write", { file_path: "evil/bin/agent", content: EVIL }],
      ["Bash", { command: "chmod +x evil/bin/agent && rm .venv && mv evil .venv" }],
    ],
    sandbox: "require",
  });
  expect(stolen(root)).toBe("nothing");
});

test.each(["agent.cjs", "dist/agent.cjs"])(
  "a file %s that an agent will start from cannot be created",
  async (file) => {
    const root = workspace({});
    const verdicts = await attacked({
      root,
      command: [process.execPath, file],
      calls: [["Write", { file_path: file, content: EVIL }]],
    });
    expect([verdicts, stolen(root)]).toEqual([["Write limit"], "nothing"]);
  },
);

test.skipIf(!hasWall())(
  "a script in the sandbox that may write the workspace cannot write the program of an agent",
  async () => {
    const root = workspace({ "agent.cjs": "process.exit(1)", "test.sh": "echo evil > agent.cjs; echo done > log" });
    const pipe = pipeline({
      id: "p",
      input: z.object({}),
      stages: {
        check: script({ command: ["sh", "test.sh"], sandbox: { write: true } }),
        agent: startedBy({ command: [process.execPath, "agent.cjs"] }),
      },
      initial: "check",
      next: { check: () => to("agent"), agent: () => done("ok") },
    });
    const env = { PATH: process.env.PATH, HOME: root };
    const traffic = externalAgents({ sandbox: "off" });
    const session = createSession({ model: noModel, cwd: root, env, sandbox: "require", traffic });
    onTestFinished(() => session.close());
    await session.run(pipe, {});
    expect(["agent.cjs", "log"].map((name) => readFileSync(join(root, name), "utf8"))).toEqual([
      "process.exit(1)",
      "done\n",
    ]);
  },
);

test("the files of a command are those that it names, as they are named and where they lead", () => {
  const root = workspace({ "releases/1/notify": "", "a b.txt": "", "tools/x.md": "" }, { current: "releases/1" });
  const files = (...command: string[]) =>
    startedFiles({ command, path: undefined }, root).map((path) => path.slice(root.length + 1));
  expect(files("current/notify")).toEqual(["current/notify", "releases/1/notify"]);
  expect(files("server", "missing.mjs", "--config=a b.txt", "text", "settings.yaml", "tools", "-x")).toEqual([
    ...["missing.mjs", "a b.txt"],
  ]);
  expect(files("curl", "https://example.com/a.js", "x".repeat(300), "y.js ".repeat(100))).toEqual([]);
  const modules = workspace({
    ...{ "dist/server.js": "", "pkg/__main__.py": "", "hook.cjs": "", "scripts/notify": "" },
    "tool/package.json": JSON.stringify({ main: "out/main" }),
  });
  const among = (wanted: readonly string[], ...command: string[]) => {
    const found = startedFiles({ command, path: undefined }, modules).map((path) => path.slice(modules.length + 1));
    return wanted.filter((path) => !found.includes(path));
  };
  // Also what Node.js and Python would take in place of it.
  const wanted = ["hook.cjs", "dist/server", "dist/server.js", "dist/server.json"];
  expect(among(wanted, "node", "--import", `file://${modules}/hook.cjs`, "dist/server")).toEqual([]);
  expect(
    among(["tool/package.json", "tool/out/main.js", "tool/index.js"], "/usr/bin/env", "A=1", "node", "tool"),
  ).toEqual([]);
  expect(among(["hook.cjs"], "node", "-r./hook.cjs", "-e", "1")).toEqual([]);
  expect(among(["pkg/__main__.py", "pkg.py"], "python3.12", "-m", "pkg")).toEqual([]);
  expect(among(["pkg/__main__.py"], "python3", "-mpkg")).toEqual([]);
  expect(among(["scripts/notify"], "sh", "scripts/notify")).toEqual([]);
  const root2 = ["package.json", "index.js", "tool/package.json"];
  expect(among(root2, "node", "dist/server", ".")).toEqual(root2);
  expect(among(root2, "python3", "-m", "mcp_server_git", "--repository", "tool")).toEqual(root2);
  const named = workspace({}).concat(" My: Project");
  mkdirSync(named);
  expect(startedFiles({ command: ["nice", "node", "agent.cjs", "--env=.env"], path: undefined }, named)).toEqual([
    join(named, "agent.cjs"),
    join(named, ".env"),
  ]);
  // Further words are its arguments.
  expect(among(["docs/index.js"], "node", "dist/server", "docs")).toEqual(["docs/index.js"]);
  expect(among(["tool/package.json"], "server", "tool")).toEqual(["tool/package.json"]);
  rmSync(join(root, "current"));
  expect(files("current/notify")).toEqual(["current/notify"]);
});
