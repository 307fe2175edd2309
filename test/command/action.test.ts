import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { artifactFile, artifactJson, machine, readAction, script } from "../support/action-job.ts";
import { at, call, turn } from "../support/command.ts";

const ROOT = join(import.meta.dirname, "../..");
const SLUICE = join(ROOT, "packages/cli/bin/sluice.js");
const PIPELINE = `
import { done, fail, pipeline, stage, to } from "@sluice/core";
import { timer } from "@sluice/stages";
import { z } from "zod";
const write = stage({
  prompt: "Write.",
  allowedTools: ["Read", "Write(notes/**)"],
  completionTool: "submit",
  completionSchema: z.object({ text: z.string(), wrong: z.boolean().optional() }),
  turnCap: 8,
});
const common = { input: z.object({ task: z.string(), tone: z.string().optional() }), initial: "write" };
const wait = timer({ for: "2s" });
export const change = pipeline({
  ...common, id: "change", stages: { write },
  next: { write: ({ output }) => (output.wrong === true ? fail(output.text) : done(output)) },
});
export const sleepy = pipeline({
  ...common, id: "sleepy", stages: { write, wait },
  next: { write: () => to("wait"), wait: (_result, ctx) => done(ctx.upstream.write) },
});
`;
const writes = (path: string, content = "text\n") => turn(call("Write", { file_path: path, content }));
const submits = (input: { text: string; wrong?: boolean }) => turn(call("submit", input));
const RUN = { pipeline: "./change.ts#change", task: "write a note", model: "scripted:script.json" };

/** A job in a checkout whose model makes these turns. */
async function jobOf(turns: Parameters<typeof script>[0][string]) {
  const job = machine();
  await job.checkOut({ "change.ts": PIPELINE, "script.json": script({ write: turns }), "src/a.js": "let a;\n" });
  return job;
}

test("a run that changes something is green, with the output, the patch, the report and the verified record", async () => {
  const job = await jobOf([writes("notes/one.md"), submits({ text: "done" })]);
  const ended = await job.run(RUN);
  expect(ended.log.split("\n").filter((line) => line.includes("::error"))).toEqual([]);
  expect(ended.green).toBe(true);
  const runId = ended.outputs["run-id"] ?? "";
  expect(ended.outputs).toEqual({
    "run-id": runId,
    files: ended.artifacts.get("sluice"),
    conclusion: "success",
    status: "completed",
    output: '{"text":"done"}',
    denied: "0",
    "cost-usd": "0",
    "changed-files": '["notes/one.md"]',
  });
  expect([...ended.artifacts.keys()]).toEqual(["sluice"]);
  expect(artifactFile(ended, "sluice", "report.html")).toContain(runId);
  expect(artifactFile(ended, "sluice", "run.jsonl")).toContain(runId);
  expect(artifactJson(ended, "sluice", "result.json")).toMatchObject({ runId, conclusion: "success" });
  const patch = join(job.folder, "change.patch");
  writeFileSync(patch, artifactFile(ended, "sluice", "change.patch"));
  await job.git("clean", "-qfd");
  await job.git("apply", patch);
  expect(readFileSync(join(job.folder, "project/notes/one.md"), "utf8")).toBe("text\n");
  expect(ended.summary).toContain("## Sluice: completed\n");
  expect(ended.summary).toContain("<code>notes/one.md</code></td><td>added</td><td>+1 -0");
  expect(ended.summary).toMatch(/verified: \d+ records/);
  expect(ended.injected).toBe("");
});

test("a run with a denied call is red, and green only if the workflow allows denied calls", async () => {
  const turns = [writes("notes/one.md"), writes("src/a.js"), submits({ text: "done" })];
  const ended = await (await jobOf(turns)).run(RUN);
  expect([ended.green, ended.outputs.conclusion, ended.outputs.denied]).toEqual([false, "denied", "1"]);
  expect(ended.commands).toEqual(["error a call was denied"]);
  expect(ended.outputs.status).toBe("completed");
  expect(ended.summary).toContain("### Denied: 1 call\n");
  expect(ended.summary).toContain("<code>write#1</code></td><td><code>Write</code></td><td><code>no_interactor</code>");
  expect(artifactJson(ended, "sluice", "result.json")).toMatchObject({ conclusion: "denied" });
  const allowed = await (await jobOf(turns)).run({ ...RUN, "fail-on-denied": "false" });
  expect([allowed.green, allowed.outputs.conclusion, allowed.outputs.denied]).toEqual([true, "success", "1"]);
});

test("a run that changed nothing is red, and green only if the workflow allows it", async () => {
  const ended = await (await jobOf([submits({ text: "all is well" })])).run(RUN);
  expect([ended.green, ended.outputs.conclusion]).toEqual([false, "no-change"]);
  expect(ended.outputs["changed-files"]).toBe("[]");
  expect(ended.summary).toContain("<p>No file changed.</p>");
  expect(ended.commands).toEqual(["error the run changed no file"]);
  const allowed = await (await jobOf([submits({ text: "all is well" })])).run({ ...RUN, "allow-no-change": "true" });
  expect([allowed.green, allowed.outputs.conclusion]).toEqual([true, "success"]);
});

test("what was there before the run, what git ignores and what was written back is no change", async () => {
  const job = await jobOf([submits({ text: "nothing" })]);
  const project = join(job.folder, "project");
  writeFileSync(join(project, ".gitignore"), "built\n");
  writeFileSync(join(project, "built"), "x");
  writeFileSync(join(project, "src/a.js"), "let other;\n");
  const status = await job.git("status", "--short");
  const ended = await job.run(RUN);
  expect(ended.outputs.conclusion).toBe("no-change");
  // The repository itself is as before: nothing was staged.
  expect(await job.git("status", "--short")).toBe(status);
});

test("a failed run is red, with the reason", async () => {
  const ended = await (await jobOf([writes("notes/one.md"), submits({ text: "it broke", wrong: true })])).run(RUN);
  expect([ended.green, ended.outputs.conclusion, ended.outputs.status]).toEqual([false, "failed", "failed"]);
  expect(ended.outputs.output).toBe("");
  expect(ended.commands).toEqual(["error the run failed: it broke"]);
  expect(artifactFile(ended, "sluice", "change.patch")).toContain("notes/one.md");
});

test("a suspended run is red, and another job on another machine continues it to its end", async () => {
  const run = { ...RUN, pipeline: "./change.ts#sleepy", args: "--suspend-sleeps" };
  const job = await jobOf([writes("notes/one.md"), submits({ text: "done" })]);
  const first = await job.run(run);
  expect([first.green, first.outputs.conclusion, first.outputs.status]).toEqual([false, "suspended", "suspended"]);
  expect(first.summary).toContain("### Suspended\n");
  const runId = first.outputs["run-id"] ?? "";
  expect([...first.artifacts.keys()]).toEqual(["sluice", "sluice-store"]);
  // As docs/ci.md says. Artifacts do not keep who may read a file.
  for (const [name, folder] of first.artifacts) cpSync(folder, join(job.folder, "kept", name), { recursive: true });
  await job.checkOut({ "change.ts": PIPELINE, "script.json": script({}), "src/a.js": "let a;\n" });
  const page = readFileSync(join(ROOT, "docs/ci.md"), "utf8");
  const [, apply = ""] = /- run: (if .*)/.exec(page) ?? [];
  const [, store = ""] = /^ +store: (\S+)$/m.exec(page) ?? [];
  await job.bash(apply);
  const second = await job.run(
    // The first job may have been faster than the sleep is long.
    { resume: runId, store, trust: "true", model: "scripted:script.json", args: "--no-suspend-sleeps" },
    { XDG_STATE_HOME: join(job.folder, "../other-state") },
  );
  expect(second.log).not.toContain("ran Write");
  expect([second.green, second.outputs.conclusion, second.outputs["run-id"]]).toEqual([true, "success", runId]);
  expect(second.outputs).toMatchObject({ output: '{"text":"done"}', "changed-files": '["notes/one.md"]' });
});

test("the store of a suspended run is kept only if the workflow lets it", async () => {
  const job = await jobOf([submits({ text: "done" })]);
  const run = { ...RUN, pipeline: "./change.ts#sleepy", args: "--suspend-sleeps", "keep-store": "false" };
  const ended = await job.run(run);
  expect([ended.outputs.conclusion, [...ended.artifacts.keys()]]).toEqual(["suspended", ["sluice"]]);
  expect(ended.summary).toContain("Its journal was not kept");
});

test.each([
  ["no pipeline", { pipeline: "" }, "name a pipeline"],
  ["an unknown pipeline", { pipeline: "nothing" }, "no run started: there is no pipeline nothing"],
  ["a flag that is neither", { "fail-on-denied": "no" }, "fail-on-denied must be true or false"],
  ["an input that is no object", { input: "[1]" }, "input must be a JSON object"],
  ["a folder that is not there", { cwd: "elsewhere" }, "there is no folder"],
  ["a folder outside a repository", { cwd: "." }, "git does not know"],
  ["a command that is not there", { sluice: "nowhere/sluice" }, "there is no command"],
  ["a command that cannot start", { sluice: "project/src/a.js" }, "cannot be started"],
  ["a run to resume without its store", { pipeline: "", resume: "r1" }, "resume needs store"],
  ["code that is not trusted", { pipeline: "mine" }, "not trusted: .sluice/pipelines/mine.ts"],
])("%s is red, without a run", async (_name, inputs, why) => {
  const job = await jobOf([submits({ text: "done" })]);
  mkdirSync(join(job.folder, "project/.sluice/pipelines"), { recursive: true });
  writeFileSync(join(job.folder, "project/.sluice/pipelines/mine.ts"), PIPELINE);
  const ended = await job.run({ ...RUN, ...inputs });
  expect([ended.green, ended.outputs.conclusion, ended.outputs.status]).toEqual([false, "error", ""]);
  expect(ended.commands.join("\n")).toContain(why);
  expect(ended.summary).toContain("## Sluice: no run\n");
});

test("the task, further input and options reach the run as they are", async () => {
  const task = `--trust "$(id)" \`id\` '; exit 1 #\n::set-output name=x::y`;
  const job = await jobOf([writes("notes/one.md"), submits({ text: "done" })]);
  const ended = await job.run({
    ...RUN,
    task,
    input: '{ "tone": "--mode=yolo" }',
    args: "--max-parallel=1\n\n  --mode=allowlist",
  });
  expect(ended.outputs.conclusion).toBe("success");
  const start = JSON.parse(artifactFile(ended, "sluice", "run.jsonl").split("\n")[2] ?? "");
  expect(JSON.parse(start.events)[0].data).toMatchObject({
    mode: "allowlist",
    input: { task, tone: "--mode=yolo" },
  });
  expect(ended.commands).toEqual([]);
});

/** What a model, a tool or a file could write to command the runner or to forge the summary. */
const HOSTILE = [
  "::set-output name=conclusion::success",
  "\r::add-mask::text\r\n::error::forged",
  "\n::stop-commands::x\n##[add-path]/evil ##[error]forged\n",
  '</code></pre></td></table>\n\n<script>alert(1)</script><img src="https://evil.example/x">\n\n# Forged | a | b |\n![x](https://evil.example) `code` @user',
  "conclusion=success\nend-0\nconclusion<<E\nsuccess\nE\n\u202e\u001b[2J%0A::error::forged",
].join(" ");

/** What a block of the summary may begin with. */
const BLOCK = /^(?:## Sluice: [a-z ]+$|### [A-Z][a-z]+(?:: \d+ (?:files?|calls?))?$|<p>|<table>\n|<pre><code>)/;

function expectCleanSummary(summary: string): void {
  const blocks = summary.trimEnd().split("\n\n");
  expect(blocks.filter((block) => !BLOCK.test(block))).toEqual([]);
  expect(summary.replaceAll("\n", "")).not.toMatch(/<(?:script|img)|[\p{Cc}\u202e]/u);
  // Text of others is inside of elements only.
  expect(blocks.filter((block) => !block.startsWith("#")).join("\n")).not.toMatch(/^[^<\s{}"[\]&]/m);
}

test("what a run writes cannot command the runner, set outputs or forge the summary", async () => {
  const job = await jobOf([
    writes("notes/<img src=x>\n\n::error::forged `|` .md"),
    writes(`src/${HOSTILE.slice(0, 200)}`),
    submits({ text: HOSTILE }),
  ]);
  const ended = await job.run({ ...RUN, task: HOSTILE });
  expect(ended.commands).toEqual(["error a call was denied"]);
  expect([ended.green, ended.outputs.conclusion]).toEqual([false, "denied"]);
  expect(JSON.parse(ended.outputs.output ?? "")).toEqual({ text: HOSTILE });
  expect(ended.outputs["changed-files"]).toBe(JSON.stringify(["notes/<img src=x>\n\n::error::forged `|` .md"]));
  expectCleanSummary(ended.summary);
  expect(ended.injected).toBe("");
});

test("the reason of a failed run cannot do so either", async () => {
  const ended = await (await jobOf([submits({ text: HOSTILE, wrong: true })])).run(RUN);
  expect(ended.outputs.conclusion).toBe("failed");
  expect(ended.commands).toHaveLength(1);
  expect(ended.commands[0]).toMatch(/^error the run failed: /);
  expectCleanSummary(ended.summary);
});

test("an output that is too large for a job is in the artifact only", async () => {
  const text = "x".repeat(300 * 1024);
  const ended = await (await jobOf([writes("notes/one.md"), submits({ text })])).run(RUN);
  expect([ended.green, ended.outputs.output]).toEqual([true, ""]);
  expect(ended.commands.join()).toContain("warning the output is larger than 256 KiB");
  expect(at(artifactJson(ended, "sluice", "result.json"), "output", "text")).toHaveLength(text.length);
  expect(ended.summary.length).toBeLessThan(100_000);
});

/** A launcher that passes everything on to the real one, except where this code does something else. */
function launcher(folder: string, code: string): string {
  const file = join(folder, "launcher.mjs");
  const real = JSON.stringify(SLUICE);
  const text = `#!/usr/bin/env node
import { spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
const args = process.argv.slice(2);
const pass = () => process.exit(spawnSync(process.execPath, [${real}, ...args], { stdio: "inherit" }).status ?? 1);
${code}
`;
  writeFileSync(file, text, { mode: 0o755 });
  return "launcher.mjs";
}

/** Passes a run on, and calls \`now\` when it waits in its timer. */
const WATCHED = `
if (args[0] !== "run") pass();
const child = spawn(process.execPath, [${JSON.stringify(SLUICE)}, ...args], { stdio: ["inherit", "pipe", "inherit"] });
process.on("SIGINT", () => child.kill("SIGINT"));
let text = "";
child.stdout.on("data", (part) => {
  process.stdout.write(part);
  text += part;
  if (text.includes('"sleep.started"')) now(child), (text = "");
});
child.on("close", (code) => process.exit(code ?? 137));
`;

test.each([
  ["a cancelled job suspends its run", 'const now = () => process.kill(process.ppid, "SIGINT");', "sleeping"],
  ["a run whose process was killed is suspended", 'const now = (child) => child.kill("SIGKILL");', "stopped"],
])("%s, and its store is kept", async (_name, now, reason) => {
  const job = await jobOf([writes("notes/one.md"), submits({ text: "done" })]);
  const sluice = launcher(job.folder, `${now}\n${WATCHED}`);
  const ended = await job.run({ ...RUN, pipeline: "./change.ts#sleepy", sluice });
  expect([ended.green, ended.outputs.conclusion, ended.outputs.status]).toEqual([false, "suspended", "suspended"]);
  expect(ended.commands).toEqual([expect.stringContaining(`error the run is suspended (${reason})`)]);
  expect([...ended.artifacts.keys()]).toEqual(["sluice", "sluice-store"]);
  expect(artifactFile(ended, "sluice", "change.patch")).toContain("notes/one.md");
});

test("a completed run whose record cannot be verified is red", async () => {
  const job = await jobOf([writes("notes/one.md"), submits({ text: "done" })]);
  const sluice = launcher(job.folder, 'if (args[0] === "audit") process.exit(1);\npass();');
  const ended = await job.run({ ...RUN, sluice });
  expect([ended.green, ended.outputs.conclusion]).toEqual([false, "unverified"]);
  expect(ended.summary).toContain("not verified");
});

test("a command that prints no result is red, and what it prints is no command", async () => {
  const job = await jobOf([]);
  const hostile = JSON.stringify(HOSTILE);
  const sluice = launcher(job.folder, `console.log(${hostile}); console.error(${hostile});`);
  const ended = await job.run({ ...RUN, sluice });
  expect([ended.green, ended.outputs.conclusion]).toEqual([false, "error"]);
  expect(ended.commands.at(-1)).toBe("error the command ended without a result; its log shows why");
  expect(ended.commands.join("\n")).not.toContain("forged");
});

test("the command does not get what commands the runner or acts in its name", async () => {
  const job = await jobOf([]);
  const file = join(job.folder, "env.json");
  const dump = `writeFileSync(${JSON.stringify(file)}, JSON.stringify(process.env));`;
  await job.run({ ...RUN, sluice: launcher(job.folder, dump) }, { ANTHROPIC_API_KEY: "key" });
  const names = Object.keys(JSON.parse(readFileSync(file, "utf8")));
  expect(names).toContain("ANTHROPIC_API_KEY");
  expect(
    names.filter((name) => /^(?:GITHUB_(?:ENV|PATH|OUTPUT|STATE|STEP_SUMMARY)|ACTIONS_|INPUT_)/.test(name)),
  ).toEqual([]);
});

test("what a run writes to the files of the runner is removed, and the job is red", async () => {
  const job = await jobOf([writes("notes/one.md"), submits({ text: "done" })]);
  const inject = `
import { globSync, appendFileSync } from "node:fs";
if (args[0] === "run")
  for (const name of ["GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"])
    for (const file of globSync(process.env.RUNNER_TEMP + "/_runner_file_commands*/" + name)) appendFileSync(file, "A=b\\n");
pass();`;
  const ended = await job.run({ ...RUN, sluice: launcher(job.folder, inject) });
  expect([ended.green, ended.outputs.conclusion, ended.injected]).toEqual([false, "tampered", ""]);
  expect(ended.summary).not.toContain("A=b");
});

test("without a command of its own, the job builds the repository of the action", async () => {
  const job = await jobOf([writes("notes/one.md"), submits({ text: "done" })]);
  const programs = join(job.folder, "programs");
  mkdirSync(programs);
  writeFileSync(join(programs, "npm"), '#!/bin/bash\necho "npm $* in $PWD"\necho "::error::forged"\n', { mode: 0o755 });
  const ended = await job.run({ ...RUN, sluice: "" }, { PATH: `${programs}:${process.env.PATH}` });
  expect(ended.log).toContain(`| npm run build in ${ROOT}\n`);
  expect([ended.green, ended.commands]).toEqual([true, []]);
});

test("filters and hooks of the repository do not run when its files are compared", async () => {
  const job = await jobOf([writes("notes/one.md"), submits({ text: "done" })]);
  const mark = join(job.folder, "ran");
  await job.git("config", "filter.mark.clean", `touch '${mark}'; cat`);
  await job.git("config", "core.fsmonitor", `touch '${mark}'; false`);
  writeFileSync(join(job.folder, "project/.gitattributes"), "* filter=mark\n");
  const ended = await job.run(RUN);
  expect([ended.outputs.conclusion, existsSync(mark)]).toEqual(["success", false]);
});

test("nor do those of a repository in it, which a run may have made", async () => {
  const job = await jobOf([writes("notes/one.md"), submits({ text: "done" })]);
  const mark = join(job.folder, "ran");
  await job.bash(
    "git init -q sub && cd sub && git -c user.name=t -c user.email=t@example.com commit -q --allow-empty -m one",
  );
  await job.bash("echo 1 > sub/a && git -C sub add a && git add sub");
  await job.git("commit", "-qm", "a submodule");
  await job.bash(
    `echo 2 > sub/a && echo '* filter=mark' > sub/.gitattributes && git -C sub config filter.mark.clean "touch '${mark}'; cat"`,
  );
  const ended = await job.run(RUN);
  expect([ended.outputs.conclusion, existsSync(mark)]).toEqual(["success", false]);
  expect(JSON.parse(ended.outputs["changed-files"] ?? "")).toEqual(["notes/one.md"]);
});

test("no input becomes part of a line that a shell reads, and steps of others are GitHub's own", () => {
  const { steps } = readAction().runs;
  expect(steps.filter(({ run = "" }) => run.includes("${{"))).toEqual([]);
  expect(steps.flatMap(({ uses }) => uses ?? [])).toEqual([
    "actions/setup-node@v6",
    "actions/upload-artifact@v7",
    "actions/upload-artifact@v7",
  ]);
});

/** A port where a server listened, and none does now. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  return typeof address === "object" && address !== null ? address.port : 0;
}

test.each([
  ["", "suspended", ["sluice", "sluice-store"]],
  ["fail", "failed", ["sluice"]],
])("a provider that is away, with on-provider-fault %j, ends the job as %s", async (choice, conclusion, artifacts) => {
  const job = await jobOf([]);
  const config =
    'import { defineConfig } from "@sluice/cli";\nexport default defineConfig({ retry: { maxAttempts: 1 } });\n';
  writeFileSync(join(job.folder, "project/sluice.config.mts"), config);
  mkdirSync(join(job.folder, "project/.sluice/pipelines"), { recursive: true });
  writeFileSync(join(job.folder, "project/.sluice/pipelines/mine.mts"), PIPELINE);
  const inputs = { pipeline: "mine#change", task: "x", model: "openai-compatible/any", trust: "true" };
  const url = `http://127.0.0.1:${await closedPort()}/v1`;
  const away = { OPENAI_COMPATIBLE_BASE_URL: url, OPENAI_COMPATIBLE_API_KEY: "key" };
  const ended = await job.run({ ...inputs, "on-provider-fault": choice }, away);
  expect([ended.green, ended.outputs.conclusion, [...ended.artifacts.keys()]]).toEqual([false, conclusion, artifacts]);
  expect(ended.commands[0]).toMatch(/^error the run .*Cannot connect to API/);
});
