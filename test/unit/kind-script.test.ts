import { existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { checkPipeline, done, forEach, type Json, type JsonObject, pipeline, stage, to } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { poll, replayRun, script } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type AnyScript, commandSession, node, only, PRINT_ARGUMENTS, play } from "../support/commands.ts";
import { handClock } from "../support/hand-clock.ts";
import { dataOf, eventsOf, eventually, json, quiet } from "../support/run-kit.ts";
import { isAlive } from "../support/survivors.ts";
import { lastResults, talker } from "../support/talker.ts";
import { tempFolder } from "../support/tools.ts";
import { hasWall } from "../support/walls.ts";

// States that run a command.

const print = (text: string): string => `process.stdout.write(${JSON.stringify(text)})`;
const failure = (cause: string, more: JsonObject = {}) => ({ code: "script", detail: { cause, ...more } });

describe("a script that ends", () => {
  test("completes with its exit code, both streams and what it printed as JSON", async () => {
    const program = `console.log(JSON.stringify({ version: "1.2.3" })); console.error("built")`;
    const { output } = await play(script({ command: node(program) }));
    const stdout = '{"version":"1.2.3"}';
    expect(output).toEqual({ exitCode: 0, stdout, stderr: "built", parsed: { version: "1.2.3" } });
  });

  test("with another exit code fails, and the failure has both streams", async () => {
    const program = `console.log("1 of 2 passed"); console.error("expected 1"); process.exit(3)`;
    const { output } = await play(script({ command: node(program) }));
    expect(output).toMatchObject(failure("exit", { exitCode: 3, stdout: "1 of 2 passed", stderr: "expected 1" }));
  });

  test("completes with a code that is declared one of success", async () => {
    expect((await play(script({ command: node("process.exit(2)"), successCodes: [0, 2] }))).output).toMatchObject({
      exitCode: 2,
    });
    const { output } = await play(script({ command: node("process.exit(0)"), successCodes: [2] }));
    expect(output).toMatchObject(failure("exit", { exitCode: 0 }));
  });

  test("by a signal fails", async () => {
    const { output } = await play(script({ command: node(`process.kill(process.pid, "SIGKILL")`) }));
    expect(output).toMatchObject({ ...failure("exit", { exitCode: null }), message: expect.stringMatching(/SIGKILL/) });
  });

  test("leads on by the failure route, which reads its exit code", async () => {
    const run = script({ command: node("process.exit(4)") });
    const after = script({ command: ["true"] });
    const routed = pipeline({
      id: "routed",
      input: { type: "object" },
      stages: { run, after },
      initial: "run",
      next: {
        run: { completed: () => done("passed"), failed: () => to("after") },
        after: ({ output }) => done(output.exitCode),
      },
    });
    expect(await commandSession().run(routed, {})).toMatchObject({ status: "completed", output: 0 });
  });
});

describe("a script that cannot run", () => {
  test.each<[string, AnyScript, RegExp]>([
    ["its program does not exist", { command: ["no-such-program-here"] }, /no-such-program-here.*ENOENT/],
    [
      "its working directory does not exist",
      { command: ["true"], cwd: "missing" },
      /working directory .*missing does not/,
    ],
    ["its working directory is a file", { command: ["true"], cwd: process.execPath }, /is not a folder/],
  ])("fails if %s", async (_, options, message) => {
    const { output } = await play(script(options));
    expect(output).toMatchObject({ ...failure("spawn", { exitCode: null }), message: expect.stringMatching(message) });
  });

  test("in time fails, and nothing that it started survives", async () => {
    const stubborn = `
      process.on("SIGTERM", () => undefined);
      const { spawn } = require("node:child_process");
      const other = spawn(process.execPath, ["-e", "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)"], { detached: true, stdio: "ignore" });
      console.log(JSON.stringify([process.pid, other.pid]));
      setInterval(() => undefined, 1000);
    `;
    const { output } = await play(script({ command: node(stubborn), timeoutMs: 1_000 }));
    expect(output).toMatchObject({
      ...failure("timeout", { exitCode: null }),
      message: expect.stringMatching(/did not end within 1s/),
    });
    const { detail } = z.object({ detail: z.object({ stdout: z.string() }) }).parse(output);
    const pids = z.array(z.int()).length(2).parse(JSON.parse(detail.stdout));
    expect(pids.filter(isAlive)).toEqual([]);
  });

  test("because of the time limit of its state fails with the code of that limit", async () => {
    const command = node("setInterval(() => undefined, 1000)");
    const { output } = await play(script({ command, limits: { timeoutMs: 200 } }));
    expect(output).toMatchObject({ code: "timeout", detail: { limit: "state.timeoutMs" } });
  });

  test("ends when its run is cancelled, with everything that it started", async () => {
    const session = commandSession();
    const file = session.workspace.path("pid");
    const program = `require("node:fs").writeFileSync(${JSON.stringify(file)}, String(process.pid)); setInterval(() => undefined, 1000)`;
    const run = session.start(only(script({ command: node(program) })), {});
    await eventually(() => existsSync(file) && session.workspace.text("pid") !== "", "the start");
    await session.host.cancel(run.runId, "enough", "test");
    expect(await run).toMatchObject({ status: "cancelled" });
    expect(isAlive(Number(session.workspace.text("pid")))).toBe(false);
  });
});

describe("values of a run", () => {
  const HOSTILE = `a'; touch pwned; echo "$(touch pwned)" \`touch pwned\` && b\n*`;

  test("stay one argument each, whatever they hold", async () => {
    const command = [
      ...node(PRINT_ARGUMENTS),
      "{{ctx.run.input.value}}",
      "--name={{ctx.run.input.value}}",
      "{{ctx.run.input.list}}",
    ];
    const { output, session } = await play(script({ command }), { value: HOSTILE, list: [1, "two"] });
    expect(output).toMatchObject({ parsed: [HOSTILE, `--name=${HOSTILE}`, '[1,"two"]'] });
    expect(existsSync(session.workspace.path("pwned"))).toBe(false);
  });

  test("reach a shell line in variables, which it does not read as code", async () => {
    const shell = { shell: 'printf %s "$VALUE" && test ! -e pwned' };
    const { output } = await play(script({ command: shell, env: { VALUE: "{{ctx.run.input.value}}" } }), {
      value: HOSTILE,
    });
    expect(output).toMatchObject({ exitCode: 0, stdout: HOSTILE });
  });

  test.each<[string, JsonObject, RegExp]>([
    ["an option", { value: "--output=/etc/passwd" }, /command\[4\] begins with a value that starts with "-"/],
    ["a NUL", { value: "a\0b" }, /command\[4\] holds a NUL/],
    ["nothing, where there is none", {}, /\{\{ctx\.run\.input\.value\}\} leads nowhere/],
  ])("cannot become %s", async (_, input, message) => {
    const { output } = await play(script({ command: [...node(PRINT_ARGUMENTS), "{{ctx.run.input.value}}"] }), input);
    expect(output).toMatchObject({ ...failure("input", { exitCode: null }), message: expect.stringMatching(message) });
  });

  test("are named in part without a part of a secret, where they cannot become an option", async () => {
    const value = `--deploy-${"x".repeat(30)} https://user:hunter2-and-hunter3@host.example/`;
    const { output } = await play(script({ command: [...node(PRINT_ARGUMENTS), "{{ctx.run.input.value}}"] }), {
      value,
    });
    expect(JSON.stringify(output)).toContain("--deploy-xxx");
    expect(JSON.stringify(output)).not.toContain("hunter");
  });

  test.each<[string, NonNullable<AnyScript["stdin"]>, Json]>([
    ["the state's input", "input", { release: 3 }],
    [
      "all earlier outputs",
      "upstream",
      { first: { exitCode: 0, stdout: "one", stderr: "", parsed: { result: "one" } } },
    ],
    ["a text with templates", 'say "{{ctx.input.release}}"', 'say "3"'],
  ])("arrive on standard input: %s", async (_, stdin, expected) => {
    const echo = "process.stdin.pipe(process.stdout)";
    const piped = pipeline({
      id: "piped",
      input: { type: "object" },
      stages: {
        first: script({ command: node(print("one")) }),
        second: script({ command: node(echo), stdin, inputSchema: z.object({ release: z.number() }) }),
      },
      initial: "first",
      next: { first: () => to("second", { release: 3 }), second: ({ output }) => done(output.stdout) },
    });
    const { status, ...end } = await commandSession().run(piped, {});
    const text = "output" in end ? String(end.output) : "";
    expect([status, typeof expected === "string" ? text : JSON.parse(text)]).toEqual(["completed", expected]);
  });

  test("a program that reads no input ends all the same", async () => {
    const { output } = await play(script({ command: ["true"], stdin: "{{ctx.run.input.text}}" }), {
      text: "x".repeat(2_000_000),
    });
    expect(output).toMatchObject({ exitCode: 0 });
  });
});

describe("a long output", () => {
  const LONG = `for (let line = 1; line <= 20000; line += 1) console.log("line " + line)`;

  test("is cut to its head and tail, and a later stage reads all of it", async () => {
    const build = script({ command: node(LONG) });
    const submit = { completionTool: "submit", completionSchema: z.object({ text: z.string() }) };
    const prompt = "Read {{ctx.upstream.build.stdoutFile}}";
    const look = stage({ ...submit, reads: { build }, allowedTools: ["Read(.sluice/output/**)"], prompt, turnCap: 3 });
    const looking = pipeline({
      id: "looking",
      input: { type: "object" },
      stages: { build, look },
      initial: "build",
      next: { build: () => to("look"), look: (_, ctx) => done(json(ctx.upstream.build)) },
    });
    const model = talker((heard) => {
      const [file_path = ""] = /\.sluice\/output\/\S+\.txt/.exec(JSON.stringify(heard.messages)) ?? [];
      if (heard.turn === 0) return { calls: [{ tool: "Read", input: { file_path, offset: 10_000, limit: 1 } }] };
      return { calls: [{ tool: "submit", input: { text: "read" } }] };
    });
    const result = await commandSession({ model }).run(looking, {});
    if (result.status !== "completed") throw new Error(JSON.stringify(result));
    const { stdout, stdoutFile, parsed } = z
      .object({ stdout: z.string(), stdoutFile: z.string(), parsed: z.object({ result: z.string() }) })
      .parse(result.output);
    expect(lastResults(model.heard[1] ?? never())).toEqual([expect.stringContaining("10000\tline 10000")]);
    expect(stdout.startsWith("line 1\nline 2\n")).toBe(true);
    expect(stdout.endsWith("line 19999\nline 20000")).toBe(true);
    expect(stdout).toContain(`characters omitted; all of it is in ${stdoutFile}]`);
    expect(stdout.length).toBeLessThan(16_200);
    expect(parsed.result).toBe(stdout);
  });

  test("is kept for each item of a list, whatever its key", async () => {
    const keys = ["a/b", "コンテンツ/日本語の長いファイル名.md", "日".repeat(200), `${"日".repeat(199)}月`];
    const each = script({
      command: [...node(`process.stdout.write(process.argv[1].repeat(20000))`), "{{ctx.input.text}}"],
      inputSchema: z.object({ text: z.string() }),
    });
    const items = keys.map((_, at) => ({ text: `${at}` }));
    const printing = pipeline({
      id: "printing",
      input: { type: "object" },
      stages: { begin: script({ command: ["true"] }), each, join: script({ command: ["true"] }) },
      initial: "begin",
      next: {
        begin: () => forEach("each", items, { key: (_item, at) => keys[at] ?? "", join: "join" }),
        join: (_, ctx) => done(json(ctx.items?.each)),
      },
    });
    const workspace = tempFolder();
    const result = await commandSession({ workspace }).run(printing, {});
    if (result.status !== "completed") throw new Error(JSON.stringify(result));
    const files = z.array(z.object({ output: z.object({ stdoutFile: z.string() }) })).parse(result.output);
    const texts = files.map(({ output: { stdoutFile } }) => workspace.text(stdoutFile));
    expect(texts).toEqual(keys.map((_, at) => `${at}`.repeat(20_000)));
  });

  test("of JSON is cut after it was read, and does not reach other states by its parsed value", async () => {
    const program = `console.log(JSON.stringify(Array.from({ length: 20000 }, (_, at) => "entry " + at)))`;
    const { output } = await play(script({ command: node(program) }));
    expect(JSON.stringify(output).length).toBeLessThan(40_000);
    expect(output).toMatchObject({ parsed: { result: expect.stringContaining("characters omitted") } });
  });

  test("of JSON with a schema reaches other states as the schema has it", async () => {
    const program = `console.log(JSON.stringify({ failed: 2, log: "x".repeat(100000) }))`;
    const { output } = await play(script({ command: node(program), output: z.object({ failed: z.number() }) }));
    expect(output).toMatchObject({ parsed: { failed: 2 }, stdout: expect.stringContaining("characters omitted") });
  });

  test("that is too long even so fails the state", async () => {
    const program = `console.log(JSON.stringify({ log: "x".repeat(300000) }))`;
    const { output } = await play(script({ command: node(program), output: z.object({ log: z.string() }) }));
    expect(output).toMatchObject({ code: "schema", message: expect.stringMatching(/at most 200000/) });
  });

  test("keeps the failure's end, where errors are", async () => {
    const program = `${LONG}; console.error("y".repeat(50000) + "the error"); process.exitCode = 1`;
    const { output } = await play(script({ command: node(program) }));
    const detail = {
      stderr: expect.stringMatching(/the error$/),
      stderrFile: expect.stringMatching(/^\.sluice\/output\//),
    };
    expect(output).toMatchObject(failure("exit", detail));
  });
});

describe("what a script prints", () => {
  test.each<[string, string, Json]>([
    ["an object", '{"a":1}', { a: 1 }],
    ["a list", "[1,2]", [1, 2]],
    ["other JSON", "42", { result: 42 }],
    ["a text", "plain", { result: "plain" }],
    ["nothing", "", {}],
    ["JSON that is nested too deep", "[".repeat(5_000) + "]".repeat(5_000), { result: expect.stringMatching(/^\[/) }],
  ])("is parsed: %s", async (_, text, parsed) => {
    expect((await play(script({ command: node(print(text)) }))).output).toMatchObject({ parsed });
  });

  test("has to fit the schema of its state", async () => {
    const options = { command: node(print('{"version":3}')), output: z.object({ version: z.string() }) };
    expect((await play(script(options))).output).toMatchObject({
      code: "schema",
      message: expect.stringMatching(/\$\.version/),
      detail: { exitCode: 0, stdout: '{"version":3}' },
    });
  });

  test("may be asked for again by an assert, with another attempt", async () => {
    const command = { shell: "echo x >> count; test $(wc -l < count) -ge 3" };
    const assert: AnyScript["assert"] = (result) => (result.status === "failed" ? { retry: "again" } : "ok");
    const { output, session } = await play(script({ command, assert, retryPolicy: { maxAttempts: 3 } }));
    expect(output).toMatchObject({ exitCode: 0 });
    expect(session.workspace.text("count")).toBe("x\nx\nx\n");
  });
});

describe("the process of a script", () => {
  test("runs in the workspace, in a folder of it, or in an absolute one", async () => {
    const workspace = tempFolder();
    workspace.put("packages/a/file", "");
    const cwdOf = async (cwd?: string): Promise<Json> => {
      const options = cwd === undefined ? {} : { cwd };
      const { output } = await play(script({ command: ["/bin/pwd"], ...options }), {}, { workspace });
      return json(z.object({ stdout: z.string() }).parse(output).stdout);
    };
    expect(await cwdOf()).toBe(workspace.root);
    expect(await cwdOf("packages/a")).toBe(workspace.path("packages/a"));
    expect(await cwdOf("/")).toBe("/");
  });

  test("has the session's environment without its secrets, and the variables of its state", async () => {
    const env = { PLAIN: "plain", SOME_API_KEY: "k3y-0123456789abcdef" };
    const program =
      "console.log(JSON.stringify([process.env.PLAIN, process.env.OWN, process.env.SOME_API_KEY ?? null]))";
    const { output } = await play(script({ command: node(program), env: { OWN: "own" } }), {}, { env });
    expect(output).toMatchObject({ parsed: ["plain", "own", null] });
  });
});

describe("a script in the sandbox", () => {
  const probe = `
    const { readFileSync, writeFileSync } = require("node:fs");
    const tried = (work) => { try { work(); return "done"; } catch (thrown) { return thrown.code; } };
    console.log(JSON.stringify({
      reads: tried(() => readFileSync("source", "utf8")),
      writes: tried(() => writeFileSync("written", "")),
      scratch: tried(() => writeFileSync("coverage/report", "")),
    }));
  `;
  const trying = (sandbox: NonNullable<AnyScript["sandbox"]>) => {
    const workspace = tempFolder();
    workspace.put("source", "");
    return play(script({ command: node(probe), sandbox }), {}, { workspace, sandbox: "try" });
  };
  const wallOf = async ({ session, runId }: Awaited<ReturnType<typeof play>>) =>
    dataOf(await eventsOf(session.host, runId), "run.started")[0]?.sandbox;

  test.skipIf(!hasWall())("reads the workspace, and writes only to scratch folders", async () => {
    const played = await trying({ scratch: ["coverage"] });
    const parsed = { reads: "done", writes: "EROFS", scratch: "done" };
    expect(played.output).toMatchObject({ parsed });
    expect(await wallOf(played)).toMatchObject({ wall: "bubblewrap" });
  });

  test.skipIf(!hasWall())("writes to the workspace if it may", async () => {
    const { output, session } = await trying({ write: true });
    expect(output).toMatchObject({ parsed: { reads: "done", writes: "done" } });
    expect(existsSync(session.workspace.path("written"))).toBe(true);
  });

  test("runs outside where the session has none, and the record says so", async () => {
    const played = await play(script({ command: ["true"], sandbox: {} }), {}, { sandbox: "off" });
    expect(played.output).toMatchObject({ exitCode: 0 });
    expect(await wallOf(played)).toEqual({ mode: "off", wall: "none" });
  });
});

describe("a script whose process died", () => {
  const COUNT = "require('node:fs').appendFileSync('starts', 'x');";

  /** Suspends a run while its command runs, and resumes it in another process. */
  async function resumed(options: Omit<AnyScript, "command">) {
    const workspace = tempFolder();
    const memory = createMemoryJournals();
    const command = node(`${COUNT} if (!require("node:fs").existsSync("go")) setInterval(() => undefined, 1000)`);
    const state = only(script({ ...options, command }));
    const clock = handClock();
    const first = commandSession({ workspace, host: () => createHost(memory.connect(), { clock }) });
    const run = first.start(state, {});
    await eventually(() => existsSync(workspace.path("starts")) && workspace.text("starts") === "x", "the start");
    const closed = first.close();
    // A command that may not be repeated is given time to end.
    await quiet();
    clock.turn(5_000);
    await closed;
    expect(await run).toMatchObject({ status: "suspended" });
    workspace.put("go", "");
    const second = commandSession({ workspace, host: () => createHost(memory.connect()) });
    const result = await second.resume(state, run.runId);
    return { output: result.status === "completed" ? json(result.output) : result, starts: workspace.text("starts") };
  }

  test("fails, because it may have had its effect", async () => {
    const { output, starts } = await resumed({});
    expect(output).toMatchObject({ ...failure("lost"), message: expect.stringMatching(/it may have run/) });
    expect(starts).toBe("x");
  });

  test("runs again if it may be repeated", async () => {
    const { output, starts } = await resumed({ repeat: true });
    expect(output).toMatchObject({ exitCode: 0 });
    expect(starts).toBe("xx");
  });
});

test("a script that a person interrupts leaves what it had printed, and runs again with the next visit", async () => {
  const workspace = tempFolder();
  const memory = createMemoryJournals();
  const program = `
    const { appendFileSync, existsSync } = require("node:fs");
    console.log("half");
    appendFileSync("starts", "x");
    if (!existsSync("go")) setInterval(() => undefined, 1000);
  `;
  const feedback: (string | undefined)[] = [];
  const precondition: AnyScript["precondition"] = (ctx) => {
    feedback.push(ctx.feedback);
    return "proceed";
  };
  const state = only(script({ command: node(program), precondition }));
  const first = commandSession({ workspace, host: () => createHost(memory.connect()) });
  const run = first.start(state, {});
  await eventually(() => existsSync(workspace.path("starts")) && workspace.text("starts") === "x", "the start");
  await run.interrupt("the wrong folder");
  expect(await run).toMatchObject({ status: "suspended", reason: "interrupted" });
  workspace.put("go", "");
  const second = commandSession({ workspace, host: () => createHost(memory.connect()) });
  expect(await second.resume(state, run.runId)).toMatchObject({ status: "completed", output: { stdout: "half" } });
  expect(workspace.text("starts")).toBe("xx");
  expect(feedback).toEqual([undefined, expect.stringContaining('"stdout": "half"')]);
});

test("a replay of scripts and polls starts nothing, and finds what was recorded", async () => {
  const workspace = tempFolder();
  const build = script({
    command: { shell: "echo x >> starts; echo '{\"version\":1}'" },
    output: z.object({ version: z.number() }),
  });
  const check = poll({ command: { shell: "echo y >> starts; test $(wc -l < starts) -ge 3" }, every: "1s" });
  const building = pipeline({
    id: "building",
    input: { type: "object" },
    stages: { build, check },
    initial: "build",
    next: {
      build: ({ output }) => (output.parsed.version === 1 ? to("check") : done("")),
      check: ({ output }) => done(output.attempts),
    },
  });
  const session = commandSession({ workspace });
  const { runId, ...end } = await session.run(building, {});
  expect(end).toMatchObject({ status: "completed", output: 2 });
  const replay = await replayRun(building, await session.host.journal(runId));
  expect(replay).toMatchObject({ identical: true, status: "completed" });
  expect(workspace.text("starts")).toBe("x\ny\ny\n");
});

test("a long output is not written through a link that leads elsewhere", async () => {
  const workspace = tempFolder();
  const outside = tempFolder();
  mkdirSync(workspace.path(".sluice"));
  symlinkSync(outside.root, workspace.path(".sluice/output"));
  const { output } = await play(script({ command: node("console.log('x'.repeat(20000))") }), {}, { workspace });
  expect(output).toMatchObject({ stdout: expect.stringMatching(/could not be saved: \.sluice\/output is a link/) });
  expect(output).not.toHaveProperty("stdoutFile");
  expect(readdirSync(outside.root, { recursive: true }).filter((name) => String(name).endsWith(".txt"))).toEqual([]);
});

describe("a mistake in a script", () => {
  const problems = (options: object): readonly string[] => {
    const stages = { run: script(options as AnyScript) };
    const found = checkPipeline({
      id: "p",
      input: { type: "object" },
      stages,
      initial: "run",
      next: { run: () => done(null) },
    });
    return found.map(({ path, message }) => `${path} ${message}`);
  };

  test.each<[object, RegExp]>([
    [{}, /^stages\.run\.command must be a list/],
    [{ command: [] }, /^stages\.run\.command must be a list/],
    [{ command: "npm test" }, /^stages\.run\.command must be a list/],
    [{ command: ["{{ctx.task}}"] }, /command\[0\] has a template, but the program is fixed/],
    [{ command: ["a", "{{input.x}}"] }, /command\[1\] /],
    [{ command: { shell: "echo {{ctx.task}}" } }, /command\.shell has a template/],
    [{ command: ["a"], stdin: 3 }, /stdin must be "input", "upstream" or a text/],
    [{ command: ["a"], env: { "A B": "" } }, /"A B" is not the name of a variable/],
    [{ command: ["a"], env: { LD_PRELOAD: "x.so" } }, /env\.LD_PRELOAD changes how/],
    [{ command: ["a"], env: { NODE_OPTIONS: "{{ctx.task}}" } }, /env\.NODE_OPTIONS decides which code runs/],
    [{ command: ["a"], cwd: "{{ctx.task}}" }, /cwd has a template/],
    [{ command: ["a"], timeoutMs: "soon" }, /timeoutMs must be a duration/],
    [{ command: ["a"], timeoutMs: 0 }, /timeoutMs must be a duration above 0/],
    [{ command: ["a"], successCodes: [] }, /successCodes must be a list/],
    [{ command: ["a"], successCodes: [256] }, /successCodes must be a list/],
    [{ command: ["a"], secrets: ["a b"] }, /secrets\[0\] is not the name/],
    [{ command: ["a"], secrets: ["TOKEN"], env: { TOKEN: "x" } }, /TOKEN is also set in env/],
    [{ command: ["a"], sandbox: true }, /sandbox must be an object/],
    [{ command: ["a"], sandbox: { scratch: ["../x"] } }, /sandbox\.scratch must be a list of folders/],
    [{ command: ["a"], repeat: "yes" }, /repeat must be true or false/],
    [{ command: ["a"], timeout: 5 }, /timeout is not a known option/],
    [{ command: ["a"], allowedTools: ["Bash"] }, /allowedTools is for states that call tools/],
  ])("is a problem of its pipeline: %j", (options, problem) => {
    expect(problems(options)).toEqual(expect.arrayContaining([expect.stringMatching(problem)]));
  });

  test("is not a template that a shell line needs for something else", () => {
    expect(problems({ command: { shell: "docker inspect -f '{{.State}}' web" } })).toEqual([]);
  });

  test("is a template of a later state that the output of a script cannot have", () => {
    const run = script({ command: ["a"], output: z.object({ version: z.string() }) });
    const use = (path: string) => script({ command: ["a", `{{ctx.upstream.run.${path}}}`] });
    const found = (path: string) =>
      checkPipeline({
        id: "p",
        input: { type: "object" },
        stages: { run, use: use(path) },
        initial: "run",
        next: { run: () => to("use") },
      });
    expect(found("parsed.version")).toEqual([]);
    expect(found("parsed.verion")).toHaveLength(1);
    expect(found("exit_code")).toHaveLength(1);
  });
});

function never(): never {
  throw new Error("nothing was heard");
}
