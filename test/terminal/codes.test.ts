import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Json, parseJson } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { lookAt } from "../support/look-at.ts";
import { soon } from "../support/people-kit.ts";
import { dataOf, eventsOf } from "../support/run-kit.ts";
import type { TerminalProcess } from "../support/terminal.ts";
import { COMMAND, terminalPlace } from "../support/terminal-kit.ts";

const FORGER = join(import.meta.dirname, "fixtures", "forger.ts");
const NODE = ["--conditions=@sluice/source", "--disable-warning=ExperimentalWarning"];
const CODE = /--code ([0-9A-Z]{4}(?:-[0-9A-Z]{4}){4}) approve/;

/** A project whose model starts a process that leaves the run, by this tool, and then asks to deploy, twice. */
function project(way: string, by: "Leave" | "Bash" = "Leave") {
  const place = terminalPlace();
  const { workspace, home } = place;
  const [store, forged, script] = [
    join(workspace, ".sluice", "store"),
    join(home, "forged.json"),
    join(home, "script.json"),
  ];
  const words = ["-f", "env", "-i", process.execPath, ...NODE, FORGER, way, store, forged, COMMAND];
  const config = `import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { defineTool, done, pipeline, stage } from "@sluice/core";
import { defineConfig } from "@sluice/cli";
import { z } from "zod";
const common = { description: "x", effect: "write", subjects: () => [] };
const leaves = defineTool({ ...common, name: "Leave", startsProcesses: true, input: z.object({}), execute: async (_input, call) => {
  call.startsUnwalled();
  spawnSync("setsid", ${JSON.stringify(words)}, { stdio: "ignore" });
  return { ok: true, output: "started" };
} });
const deploys = defineTool({ ...common, name: "Deploy", input: z.object({ n: z.number() }), execute: async ({ n }) => {
  writeFileSync(${JSON.stringify(`${home}/deployed-`)} + n, "");
  return { ok: true, output: "deployed" };
} });
const work = stage({ prompt: "Do it.", allowedTools: ["${by}", "Edit"], completionTool: "finish", completionSchema: z.object({ text: z.string() }), turnCap: 5 });
export default defineConfig({
  tools: [leaves, deploys],
  pipelines: { mine: pipeline({ id: "mine", input: z.object({ task: z.string() }), stages: { work }, initial: "work", next: { work: ({ output }) => done(output.text) } }) },
});
`;
  writeFileSync(join(workspace, "sluice.config.ts"), config);
  const leave = `import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
spawnSync("setsid", ${JSON.stringify(words)}, { stdio: "ignore" });
while (!existsSync(${JSON.stringify(`${forged}.left`)})) await new Promise((resolve) => setImmediate(resolve));
`;
  writeFileSync(join(workspace, "leave.mjs"), leave);
  const turn = (tool: string, input: object) => ({ calls: [{ tool, input }] });
  const turns = [
    by === "Leave" ? turn("Leave", {}) : turn("Bash", { command: "node leave.mjs" }),
    turn("Deploy", { n: 1 }),
    turn("Deploy", { n: 2 }),
    turn("finish", { text: "done" }),
  ];
  writeFileSync(script, JSON.stringify({ stages: { work: turns } }));
  const [out, err] = [join(home, "out"), join(home, "err")];
  const sluice = (args: readonly string[]) => {
    // A process of a session of its own: it has no terminal, wherever the tests run.
    const words = ["-w", process.execPath, COMMAND, ...args];
    const { status, stdout, stderr } = spawnSync("setsid", words, { cwd: workspace, encoding: "utf8", env: place.env });
    return { status, stdout, stderr };
  };
  return {
    ...place,
    sluice,
    /** The command on a terminal, both of its streams going elsewhere. */
    onTerminal: (command: string): TerminalProcess =>
      place.shell(`${process.execPath} ${COMMAND} ${command} >>${out} 2>>${err}`, { columns: 300 }),
    run: `run mine x --model scripted:${script} --trust --wait --headless --sandbox off`,
    forged: async (): Promise<Json> => {
      await soon(() => existsSync(forged));
      const read = parseJson(readFileSync(forged, "utf8"));
      return read.ok ? read.value : read.fault;
    },
    deployed: () => [1, 2].filter((n) => existsSync(`${home}/deployed-${n}`)),
    said: () => ({ out: readFileSync(out, "utf8"), err: readFileSync(err, "utf8") }),
    look: <T>(look: Parameters<typeof lookAt<T>>[1]) => lookAt(store, look),
    stored: () =>
      readdirSync(store, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"))
        .join(""),
  };
}
type Project = ReturnType<typeof project>;

/** The line with the nth code that the terminal shows, as a person pastes it. */
async function pasted(terminal: TerminalProcess, nth: number): Promise<{ words: readonly string[]; code: string }> {
  const shown = () =>
    terminal
      .lines()
      .join("\n")
      .split("\n")
      .filter((line) => CODE.test(line));
  await soon(() => shown().length >= nth);
  const line = shown()[nth - 1] ?? "";
  const words = line.slice(line.indexOf("sluice answer") + "sluice ".length).split(/\s+/);
  return { words: words.map((word) => word.replaceAll("'", "")).filter(Boolean), code: CODE.exec(line)?.[1] ?? "" };
}

async function proofsIn(at: Project): Promise<readonly Json[]> {
  const events = await at.look(async (host) => eventsOf(host, (await host.list())[0]?.runId ?? ""));
  return dataOf(events, "grant.answered").map(({ answer, proof }) => [answer ?? null, proof ?? null]);
}

describe("a process that left the run, without a wall: never approves what the run asks", () => {
  test.each([
    ["signal", "Leave"],
    ["sql", "Leave"],
    ["sql", "Bash"],
  ] as const)("by %s, started by %s: what it wrote is a denial; the code on the terminal approves", async (way, by) => {
    const at = project(way, by);
    const terminal = at.onTerminal(at.run);
    expect(await at.forged()).toEqual(way === "sql" ? 1 : "accepted");
    // The first was denied: the code of the second is the next that is shown, whether the first's was or not.
    await soon(async () => (await at.look((host) => host.requests()))[0]?.requestId.includes("t3.c0") === true);
    const { words } = await pasted(terminal, 1).then(async (one) =>
      one.words.join(" ").includes("t3.c0") ? one : await pasted(terminal, 2),
    );
    expect(at.sluice(words)).toMatchObject({ status: 0, stderr: "" });
    expect((await terminal.end()).code).toBe(0);
    expect(at.deployed()).toEqual([2]);
    expect(await proofsIn(at)).toEqual([
      ["deny", "missing"],
      ["approve", "code"],
    ]);
  });

  test("by sluice answer: it is refused before anything is sent, with another's code, a mistyped one, or none", async () => {
    const at = project("command");
    const terminal = at.onTerminal(at.run);
    expect(await at.forged()).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("any of them could send this answer"),
    });
    const first = await pasted(terminal, 1);
    const [runId = ""] = first.words.slice(1);
    expect(at.sluice(["show", runId]).stdout).toMatch(/sluice answer \S+ \S+ --digest \S+ --code '…' approve/);
    const mistyped = first.words.map((word) =>
      word === first.code ? word.replace(/.$/, (c) => (c === "7" ? "8" : "7")) : word,
    );
    const json = ["--output-format", "json"];
    expect(at.sluice([...mistyped, ...json])).toMatchObject({
      status: 1,
      stdout: expect.stringContaining("other_code"),
    });
    expect(at.sluice([...first.words, ...json])).toMatchObject({ status: 0 });
    const second = await pasted(terminal, 2);
    const others = second.words.map((word) => (word === second.code ? first.code : word));
    expect(at.sluice(others)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("belongs to another request"),
    });
    expect(at.sluice(second.words)).toMatchObject({ status: 0 });
    expect((await terminal.end()).code).toBe(0);
    expect(at.deployed()).toEqual([1, 2]);
    expect(await proofsIn(at)).toEqual([
      ["approve", "code"],
      ["approve", "code"],
    ]);
    // The codes were on the terminal, and are nowhere else.
    const everywhere = [at.stored(), ...Object.values(at.said())].join("\n");
    for (const { code } of [first, second])
      for (const text of [code, code.replaceAll("-", ""), code.replaceAll("-", "").slice(0, 16)])
        expect(everywhere).not.toContain(text);
    expect(at.said().err).toContain("sluice answer");
  });
});

test("without a terminal no code is shown, which is said once; with --answers any none is needed, and show says so", async () => {
  const nowhere = project("sql");
  const run = nowhere.run.split(" ").map((word) => (word === "--wait" ? "--wait=3s" : word));
  const ended = nowhere.sluice(run);
  expect(ended.status).toBe(3);
  expect(ended.stderr.split("no terminal here to show codes on")).toHaveLength(2);
  expect(nowhere.deployed()).toEqual([]);

  const any = project("command");
  const terminal = any.onTerminal(`${any.run} --answers any`);
  expect(await any.forged()).toMatchObject({ status: 0 });
  await soon(() => any.deployed().includes(1));
  await soon(async () => (await any.look((host) => host.requests())).length === 1);
  const [request] = await any.look((host) => host.requests());
  const runId = request?.runId ?? "";
  expect(any.sluice(["show", runId]).stdout).toContain("of any process count");
  expect(any.sluice(["answer", runId, "t3.c0", "approve"])).toMatchObject({ status: 0 });
  expect((await terminal.end()).code).toBe(0);
  expect(terminal.lines().join("")).not.toContain("--code");
  expect(await proofsIn(any)).toEqual([
    ["approve", "any"],
    ["approve", "any"],
  ]);
});

test("a run that no one works on is answered only by the person who resumes it in a terminal", async () => {
  const at = project("command");
  const first = at.sluice(at.run.replace("--wait", "--wait=1s").split(" "));
  expect(first.status).toBe(3);
  const [request] = await at.look((host) => host.requests());
  const runId = request?.runId ?? "";
  const words = ["answer", runId, "t2.c0", "approve"];
  const refused = at.sluice(words);
  expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining(`sluice resume ${runId}`)]);
  expect(at.sluice([...words, "--resume", "--headless"]).status).toBe(1);
  expect(await at.look((host) => host.requests())).toHaveLength(1);

  const terminal = at.onTerminal(`${words.join(" ")} --resume --wait --headless`);
  const { words: next } = await pasted(terminal, 1);
  expect(at.deployed()).toEqual([1]);
  expect(at.sluice(next)).toMatchObject({ status: 0 });
  expect((await terminal.end()).code).toBe(0);
  expect(at.deployed()).toEqual([1, 2]);
  expect(await proofsIn(at)).toEqual([
    ["approve", "session"],
    ["approve", "code"],
  ]);
});
