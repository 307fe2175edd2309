import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";

const root = join(import.meta.dirname, "../..");

/** A folder of this test alone; examples make theirs in it, since it is their temporary folder. */
function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), "sluice-examples-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Runs an example by the command it documents, with nothing of this machine's settings. */
function run(example: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
  const home = scratch();
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, "examples", example), ...args], {
    cwd: root,
    encoding: "utf8",
    env: { PATH: process.env.PATH, HOME: home, TMPDIR: home, NO_COLOR: "1", OLLAMA_HOST: "http://127.0.0.1:9", ...env },
  });
  return { status, stdout, stderr };
}

test("examples/README.md names every example", () => {
  const readme = readFileSync(join(root, "examples/README.md"), "utf8");
  const files = readdirSync(join(root, "examples"), { recursive: true, encoding: "utf8" });
  const unnamed = files.filter((file) => /\.(?:ts|yml)$/.test(file) && !readme.includes(file));
  expect(unnamed).toEqual([]);
});

test("codeReview by program: an Edit in Plan is refused, Execute edits, Review approves", () => {
  const { status, stdout, stderr } = run("code-review.ts");
  expect({ status, stderr: withoutNodeNotice(stderr) }).toEqual({ status: 0, stderr: "" });
  expect(stdout).toMatch(/^plan#1 refused Edit no_interactor$/m);
  expect(stdout).toMatch(/^plan#1 -> to execute$/m);
  expect(stdout).toMatch(/^execute#1 approved Edit\s*$/m);
  expect(stdout).toMatch(/^completed, 1 denied, \d+ tokens in$/m);
  expect(stdout).toMatch(/^approve \[$/m);
});

test("codeReview by program takes its model from SLUICE_MODEL, and a missing key stops it before anything runs", () => {
  const { status, stdout, stderr } = run("code-review.ts", [], { SLUICE_MODEL: "anthropic/some-model" });
  expect(status).toBe(1);
  expect(stdout).toBe("");
  expect(stderr).toContain("missing_key");
  expect(stderr).toContain("ANTHROPIC_API_KEY");
});

test("the fan-out joins what both siblings found, in declared order", () => {
  const { status, stdout } = run("fan-out.ts");
  expect(status).toBe(0);
  expect(stdout).toContain("findings: [ 'The Moon is a moon.', 'It says the same thing twice.' ]");
  expect(stdout).toContain("intake#1 completed, facts#1 completed, style#1 completed, verdict#1 completed");
});

test("a review sends the plan back to the initial state with its findings, until there are none", () => {
  const { status, stdout } = run("feedback-loop.ts");
  expect({ status, stdout }).toEqual({
    status: 0,
    stdout:
      "[ 'rename the option', 'rename it in the tests' ]\nplan#1 completed, review#1 completed, plan#2 completed, review#2 completed\n",
  });
});

test("each file that a model names is reviewed, and one that fails does not stop the others", () => {
  const { status, stdout } = run("review-each-file.ts");
  expect(status).toBe(0);
  expect(stdout).toContain("the loop never ends");
  expect(stdout.trim().split("\n").slice(-5)).toEqual([
    "find#1  completed",
    "review#1 src/a.ts completed",
    "review#1 src/b.ts completed",
    "review#1 src/c.ts failed",
    "summary#1  completed",
  ]);
});

test("a program reports that its run asks, stops and ends, each once, and sends it to a webhook", async () => {
  const lines = [
    'asks for Write(file_path: "notes/today.md", content: "Seen today.\\n")',
    "is suspended: waiting",
    "is completed",
  ];
  const { status, stdout } = run("notify.ts");
  const ended = "completed true\n";
  expect({ status, stdout }).toEqual({ status: 0, stdout: `${lines.map((line) => `-> ${line}\n`).join("")}${ended}` });
  const got: string[] = [];
  const server = createServer((request, response) => {
    request.on("data", (chunk: Buffer) =>
      got.push(z.object({ text: z.string() }).parse(JSON.parse(chunk.toString("utf8"))).text),
    );
    request.on("end", () => response.writeHead(204).end());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = z.object({ port: z.number() }).parse(server.address());
  const home = scratch();
  const { PATH } = process.env;
  await promisify(execFile)(process.execPath, [join(root, "examples/notify.ts")], {
    env: { PATH, HOME: home, TMPDIR: home, WEBHOOK: `http://127.0.0.1:${port}/` },
  });
  expect(got).toEqual(lines);
});

test("a release is published by a script that alone has the token, once a person approves it", () => {
  const token = "Zq81-c4stle-gate-token";
  const { status, stdout, stderr } = run("publish-release.ts", [], { REGISTRY_TOKEN: token });
  expect({ status, stderr: withoutNodeNotice(stderr) }).toEqual({ status: 0, stderr: "" });
  expect(stdout).toContain("Publish this release? yes");
  expect(stdout).toContain("completed [ { version: '1.4.0', notes: 'Durations may have several units.' } ]");
  expect(stdout).toContain("records with the token: 0 false");
  expect(stdout).toContain("Bearer [redacted:REGISTRY_TOKEN]");
  expect(stdout).not.toContain(token);
});

test("a custom tool writes inside its scope, and is denied outside of it", () => {
  const { status, stdout } = run("custom-tool.ts");
  expect({ status, stdout }).toEqual({
    status: 0,
    stdout: "completed denied: SetVersion (no_interactor)\napp: 1.1.0\nlib: 1.0.0\n",
  });
});

test("a run's spans arrive at a collector, by the protocol that every collector speaks", async () => {
  const bodies: string[] = [];
  const collector = createServer((request, response) => {
    request.setEncoding("utf8").on("data", (chunk: string) => bodies.push(chunk));
    request.on("end", () => response.writeHead(200, { "content-type": "application/json" }).end("{}"));
  });
  await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void collector.close());
  const address = z.object({ port: z.number() }).parse(collector.address());
  const env = {
    PATH: process.env.PATH,
    HOME: scratch(),
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${address.port}`,
  };
  const { stdout } = await promisify(execFile)(process.execPath, [join(root, "examples/telemetry.ts")], { env });
  expect(stdout).toMatch(/^completed run \w+$/m);
  const sent = [...bodies.join("").matchAll(/"name":"(\w+ ?\w*)"/g)].map(([, name]) => name);
  expect(sent).toEqual(
    expect.arrayContaining([
      "invoke_workflow counting",
      "invoke_agent count",
      "turn",
      "chat scripted",
      "execute_tool Glob",
    ]),
  );
});

test("two tools of an MCP server copy a file, and a third is denied", () => {
  const { status, stdout, stderr } = run("mcp-files.ts");
  expect({ status, stdout, stderr: withoutNodeNotice(stderr) }).toEqual({
    status: 0,
    stdout: "completed denied: mcp__files__move_file (no_interactor)\ncopy.txt: The gate is closed at night.\n",
    stderr: "",
  });
});

test("an agent of another program edits in the phase that allows it, and not before", () => {
  const { status, stdout, stderr } = run("outside-agent.ts");
  expect({ status, stderr: withoutNodeNotice(stderr) }).toEqual({ status: 0, stderr: "" });
  expect(stdout.split("\n").filter((line) => /Edit|completed/.test(line))).toEqual([
    "refused Edit ",
    "ok      Edit ",
    "completed debug = false",
  ]);
});

test("a rule approves what it covers and denies the rest", () => {
  const { status, stdout } = run("approve-by-rule.ts");
  expect(status).toBe(0);
  const answers = stdout.split("\n").filter((line) => line.startsWith("  ->"));
  expect(answers).toEqual(["  -> deny by notes rule", "  -> approve by notes rule"]);
  // The note is there, the other file is not.
  expect(stdout).toContain("completed true false");
});

test("a kind of state of one's own runs the tests, and a stage says why they fail", () => {
  const { status, stdout } = run("custom-state.ts");
  expect(stdout).toBe(
    "completed The test expects 2 + 2 to be 5.\ntests#1 completed, 0 turns; explain#1 completed, 1 turns\n",
  );
  expect(status).toBe(0);
});

test("the guard hook lets two files through and vetoes the third", () => {
  const { status, stdout } = run("guard-hook.ts");
  expect(stdout).toBe("Write t3.c0: vetoed by a hook\none true\ntwo true\nthree false\n");
  expect(status).toBe(0);
});

test("a run in a custom store is left, answered and resumed by another session", () => {
  const { status, stdout } = run("custom-store/run.ts");
  expect(stdout).toMatch(
    /^first: suspended\nanswer: accepted\nsecond: completed Weir\n\d+ records, 0 faults, \d+ lines\n$/,
  );
  expect(status).toBe(0);
});

test("the store of one's own keeps every rule of the suite", () => {
  // On a disk in memory, where there is one: the suite commits thousands of times.
  const inMemory = existsSync("/dev/shm") ? { TMPDIR: "/dev/shm" } : {};
  const { status, stdout } = run("custom-store/conformance.test.ts", [], inMemory);
  expect(stdout).toMatch(/fail 0\n/);
  expect(Number(/pass (\d+)/.exec(stdout)?.[1])).toBeGreaterThan(100);
  expect(status).toBe(0);
});

/** Node 22 announces node:sqlite, and that it strips types, as experimental. */
function withoutNodeNotice(stderr: string): string {
  return stderr.replaceAll(/^\(node:\d+\) ExperimentalWarning: .*\n(?:\(Use `node --trace-warnings .*\n)?/gm, "");
}
