import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { at, call, type Desk, desk, finishes, PIPELINES, printed, textAt, turn } from "../support/command.ts";
import { notifiedServer } from "../support/notified.ts";
import { NAPS, SLEEPING, sleepingDesk, untilDue } from "../support/sleeping-desk.ts";

const SINGLE = `${PIPELINES}#single`;
const JSON_OUT = ["--output-format", "json"];
/** The two seconds that the end of a run waits at most, on a machine that does much else. */
const SOON_MS = 15_000;
const KEY = "sk-ant-Zq81c4stle7gateToken99x";
const writes = (file_path: string) => call("Write", { file_path, content: "made" });

/** A project with these entries of `notify`. */
function project(notify: readonly object[], rest = ""): Desk {
  const here = desk();
  here.write("sluice.config.mjs", `export default { notify: ${JSON.stringify(notify)}, ${rest} };\n`);
  return here;
}
const run = async (here: Desk, model: string, ...flags: readonly string[]) =>
  await here.sluice(["run", SINGLE, "x", "--trust", "--model", model, ...JSON_OUT, ...flags], {
    env: { ANTHROPIC_API_KEY: KEY },
  });
const kinds = (got: readonly object[]): readonly unknown[] => got.map((one) => ("event" in one ? one.event : one));

describe("a notification", () => {
  test("of the end has the run, its result and no secret, and the config is said to send it", async () => {
    const server = await notifiedServer();
    const here = project([{ url: server.url }]);
    const model = here.script({ work: [finishes()] });
    const ended = await here.sluice(["run", SINGLE, `deploy with ${KEY}`, "--trust", "--model", model, ...JSON_OUT], {
      env: { ANTHROPIC_API_KEY: KEY },
    });
    const runId = textAt(printed(ended), "runId");
    expect(server.got).toEqual([
      {
        event: "finished",
        text: `sluice: run ${runId} (single) has ended: completed`,
        runId,
        pipeline: "single",
        task: expect.stringContaining("[redacted:"),
        workspace: here.folder,
        at: expect.any(Number),
        finished: {
          status: "completed",
          usage: expect.objectContaining({ inputTokens: expect.any(Number) }),
          denied: 0,
        },
      },
    ]);
    expect(server.texts.join("")).not.toContain(KEY);
    expect(ended.stderr).toMatch(/sets notifications to 127\.0\.0\.1:\d+$/m);
    expect(ended.stderr).not.toContain("path-secret");
  });

  test("of a request has the line that answers it, and is not repeated when the run resumes", async () => {
    const server = await notifiedServer();
    const here = project([{ url: server.url }]);
    const model = here.script({ work: [turn(writes("a.txt")), finishes()] });
    const suspended = await run(here, model, "--wait=1ms");
    expect([suspended.code, kinds(server.got)]).toEqual([3, ["request", "suspended"]]);
    const [request, stop] = server.got;
    expect(at(request, "request")).toMatchObject({ kind: "grantStageTool", summary: expect.stringContaining("a.txt") });
    expect(textAt(stop, "suspended", "resume")).toContain("--wait");
    const runId = textAt(printed(suspended), "runId");
    const [, answer = ""] =
      /^sluice (answer .*) <approve, deny or defer>$/.exec(textAt(request, "request", "answer")) ?? [];
    const words = answer.replaceAll("'", "").split(" ");
    expect((await here.sluice([...words, "approve"])).code).toBe(0);
    expect((await here.sluice(["resume", runId, ...JSON_OUT])).code).toBe(0);
    expect(kinds(server.got)).toEqual(["request", "suspended", "finished"]);
    expect(existsSync(join(here.folder, "a.txt"))).toBe(true);
  });

  test("is sent only for what an entry names, and not for a request that a rule answers", async () => {
    const [all, some] = [await notifiedServer(), await notifiedServer()];
    const here = project(
      [{ url: all.url }, { url: some.url, on: ["suspended", "budget"] }],
      `interactors: [{ name: "rule", answer: async () => ({ kind: "approve" }) }]`,
    );
    const model = here.script({ work: [turn(writes("a.txt")), finishes()] });
    expect((await run(here, model)).code).toBe(0);
    expect([kinds(all.got), kinds(some.got)]).toEqual([["finished"], []]);
  });

  test("starts a program without a shell and without secrets, with the event on its stdin", async () => {
    const script = `let text = ""; process.stdin.on("data", (part) => { text += part; }).on("end", () => {
      require("node:fs").writeFileSync("../got.json", JSON.stringify({ text, args: process.argv.slice(1), env: process.env, cwd: process.cwd() }));
    });`;
    const here = project([{ command: [process.execPath, "-e", script, "$(touch ../shell)", "; ls"] }]);
    const ended = await run(here, here.script({ work: [finishes()] }));
    expect(ended.code).toBe(0);
    const got = JSON.parse(readFileSync(join(here.folder, "../got.json"), "utf8"));
    expect(JSON.parse(got.text)).toMatchObject({ event: "finished", runId: printed(ended).runId });
    expect([got.args, got.cwd]).toEqual([["$(touch ../shell)", "; ls"], here.folder]);
    expect(got.env.PATH).toBe(process.env.PATH);
    expect(JSON.stringify(got)).not.toContain(KEY);
    expect(existsSync(join(here.folder, "../shell"))).toBe(false);
  });

  test("is sent once when the run costs more than a budget, and at the caps of its pipeline", async () => {
    const server = await notifiedServer();
    const here = desk();
    here.write(
      "sluice.config.mjs",
      `import { done, pipeline, stage } from "@sluice/core";
import { z } from "zod";
const work = stage({ prompt: "Do it.", allowedTools: ["Read"], completionTool: "finish", completionSchema: z.object({ text: z.string() }), maxOutputTokens: 20, turnCap: 40 });
export default {
  prices: { "scripted:*": { input: 100, output: 1000 } },
  notify: [{ url: ${JSON.stringify(server.url)}, on: ["budget"], budgetUsd: 0.01 }, { url: ${JSON.stringify(server.url)}, on: ["budget"], budgetUsd: 1e9 }],
  pipelines: { capped: pipeline({ id: "capped", input: z.object({ task: z.string() }), limits: { maxCostUsd: 1 }, stages: { work }, initial: "work", next: { work: ({ output }) => done(output) } }) },
};\n`,
    );
    here.write("there.txt", "here");
    const model = here.script({
      work: Array.from({ length: 40 }, (_, index) => turn(call("Read", { file_path: "there.txt", limit: index + 1 }))),
    });
    const ended = await here.sluice(["run", "capped", "x", "--trust", "--model", model, ...JSON_OUT]);
    expect(at(printed(ended), "error", "code")).toBe("budget");
    expect(server.got.map((one) => textAt(one, "text").replace(/^.*?\) /, ""))).toEqual([
      expect.stringMatching(/^has cost \$0\.0\d+, more than \$0\.0100$/),
      expect.stringMatching(/^has used [89]\d % of run\.maxCostUsd$/),
      // Both entries report a cap of the run.
      expect.stringMatching(/^has used [89]\d % of run\.maxCostUsd$/),
      expect.stringMatching(/^has reached run\.maxCostUsd: /),
      expect.stringMatching(/^has reached run\.maxCostUsd: /),
    ]);
  });
});

describe("a notification that fails changes nothing and is reported once", () => {
  test.each([
    ["an error", 500, /failed: it answered 500; later failures are not reported/],
    ["a redirect, which is not followed", 302, /failed: it answered 302, and redirects are not followed/],
  ])("with %s", async (_what, status, said) => {
    const elsewhere = await notifiedServer();
    const server = await notifiedServer(
      (response) => void response.writeHead(status, { location: elsewhere.url }).end(),
    );
    const here = project([{ url: server.url }]);
    const model = here.script({ work: [turn(writes("a.txt")), finishes()] });
    const ended = await run(here, model, "--wait=1ms");
    expect([ended.code, kinds(server.got)]).toEqual([3, ["request", "suspended"]]);
    expect(ended.stderr.match(/a notification to/g)).toHaveLength(1);
    expect(ended.stderr).toMatch(said);
    expect(ended.stderr).not.toContain("path-secret");
    expect(elsewhere.got).toEqual([]);
  });

  test("with no server, no program, or a program that fails", async () => {
    const here = project([
      { url: "http://127.0.0.1:9/" },
      { command: ["no-such-program-1"] },
      { command: [process.execPath, "-e", "process.exit(7)"] },
    ]);
    const ended = await run(here, here.script({ work: [finishes()] }));
    expect([ended.code, printed(ended).status]).toEqual([0, "completed"]);
    for (const said of ["127.0.0.1:9 failed", "no-such-program-1 failed", "it ended with exit code 7"])
      expect(ended.stderr).toContain(said);
  });

  test("with a program that does not end: the command ends within two seconds, and leaves it to its end", async () => {
    const program = `const fs = require("node:fs"); const wait = () => fs.existsSync("../go") ? fs.writeFileSync("../late", "") : setTimeout(wait, 20); wait();`;
    const here = project([{ command: [process.execPath, "-e", program] }]);
    const running = here.start(["run", SINGLE, "x", "--trust", "--model", here.script({ work: [finishes()] })]);
    await running.said("stdout", /^completed/m);
    const said = performance.now();
    expect((await running.ended).code).toBe(0);
    expect(performance.now() - said).toBeLessThan(SOON_MS);
    expect(existsSync(join(here.folder, "../late"))).toBe(false);
    writeFileSync(join(here.folder, "../go"), "");
    await expect.poll(() => existsSync(join(here.folder, "../late"))).toBe(true);
  });

  test("with a server that never answers: the end of the run is not held up for more than two seconds", async () => {
    const server = await notifiedServer(() => undefined);
    const here = project([{ url: server.url }]);
    const model = here.script({ work: [finishes()] });
    const running = here.start(["run", SINGLE, "x", "--trust", "--model", model, ...JSON_OUT]);
    await running.said("stdout", /"status": ?"completed"/);
    const said = performance.now();
    const ended = await running.ended;
    expect([ended.code, ended.stderr.includes("the run ended before it was sent")]).toEqual([0, true]);
    expect(performance.now() - said).toBeLessThan(SOON_MS);
  });
});

test("a run that sleeps is reported once it has ended, by the process that woke it, and its sleep is not", async () => {
  const server = await notifiedServer();
  const notify = `notify: [{ url: ${JSON.stringify(server.url)} }]`;
  const here = sleepingDesk(NAPS.replace("executors: [nap]", `executors: [nap], ${notify}`));
  const flags = ["--input", "ms:=1500", "--trust", "--suspend-sleeps", ...JSON_OUT];
  const left = await here.sluice(["run", `${SLEEPING}#napping`, ...flags]);
  expect([left.code, kinds(server.got)]).toEqual([3, []]);
  await untilDue(here.store);
  await here.sluice(["wake"]);
  expect(kinds(server.got)).toEqual(["finished"]);
  expect(server.got[0]?.runId).toBe(printed(left).runId);
});

test("a worker reports what it continues: that a run that slept asks and stops, and how it ended, each once", async () => {
  const server = await notifiedServer();
  const notify = `notify: [{ url: ${JSON.stringify(server.url)} }]`;
  const here = sleepingDesk(NAPS.replace("executors: [nap]", `executors: [nap], ${notify}`));
  const worker = here.start(["serve", "--no-metrics", "--json"]);
  await worker.said("stdout", /started/);
  const flags = ["--input", "ms:=1500", "--trust", "--suspend-sleeps", ...JSON_OUT];
  const left = await here.start(["run", `${SLEEPING}#approved`, ...flags]).ended;
  expect([left.code, kinds(server.got)]).toEqual([3, []]);
  await expect.poll(() => kinds(server.got)).toEqual(["request", "suspended"]);
  const [, answer = ""] =
    /^sluice (answer .*) <approve, deny or defer>$/.exec(textAt(server.got[0] ?? null, "request", "answer")) ?? [];
  expect((await here.sluice([...answer.replaceAll("'", "").split(" "), "approve"])).code).toBe(0);
  await expect.poll(() => kinds(server.got)).toEqual(["request", "suspended", "finished"]);
  const { runId } = printed(left);
  expect(server.got.map((one) => one.runId)).toEqual([runId, runId, runId]);
  worker.child.kill("SIGTERM");
  expect((await worker.ended).code).toBe(0);
  expect(server.got).toHaveLength(3);
});

test("a run cannot write the files that notifications are started from", async () => {
  const here = project([
    { command: ["node", "scripts/notify.mjs", "--to=it is done."] },
    { command: ["./built/notify"] },
  ]);
  here.write("scripts/notify.mjs", "");
  // The second one is not there yet.
  const files = ["scripts/notify.mjs", "built/notify"];
  const model = here.script({ work: [turn(...files.map(writes)), finishes()] });
  const ended = await run(here, model, "--mode", "yolo");
  expect(at(printed(ended), "denied")).toMatchObject(files.map(() => ({ tool: "Write", cause: "limit" })));
});

test("a notification that could not be sent, or would go elsewhere in the clear, is a mistake of the config", async () => {
  const here = project([
    { url: "http://hooks.example/x" },
    { url: "https://user:word@hooks.example" },
    { url: "https://hooks.example", command: ["a"] },
    { command: [] },
    { command: ["a"], on: ["end"], budgetUsd: 0, when: 1 },
  ]);
  const ended = await run(here, here.script({ work: [finishes()] }));
  expect([ended.code, at(printed(ended), "error", "code")]).toEqual([2, "config_invalid"]);
  const problems = at(printed(ended), "error", "detail", "problems");
  const paths = Array.isArray(problems) ? problems.map((problem) => textAt(problem, "path")) : [];
  expect(paths).toEqual([
    "notify[0].url",
    "notify[1].url",
    "notify[2]",
    "notify[3].command",
    "notify[4].on[0]",
    "notify[4].budgetUsd",
    "notify[4].when",
  ]);
});
