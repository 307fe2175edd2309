import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { isJsonObject, type JsonObject, parseJson } from "@sluice/core";
import type { Engine, KnownRun } from "@sluice/tui";
import { expect, onTestFinished, test } from "vitest";
import { createEngine } from "../../packages/cli/src/commands/app/engine.ts";
import type { RunFlags } from "../../packages/cli/src/runs/run-flags.ts";
import { eventsOf } from "../../packages/view/src/words/run-events.ts";
import { desk, finishes, PIPELINES } from "../support/command.ts";
import { putRecord } from "../support/left-records.ts";

const PLANNED = { summary: "One line.", steps: ["change a.txt"], files: ["a.txt"], risks: [] };
const CHANGED = { summary: "Done.", changes: [], deviations: [] };
const REVIEWED = { verdict: "approve", summary: "Fine.", findings: [] };
const SCRIPT = {
  plan: [
    { text: "I look first.", calls: [{ tool: "Read", input: { file_path: "a.txt" } }] },
    { calls: [{ tool: "submit_plan", input: PLANNED }] },
  ],
  execute: [{ calls: [{ tool: "submit_diff", input: CHANGED }] }],
  review: [{ calls: [{ tool: "submit_review", input: REVIEWED }] }],
};

test("a run that is begun in the app writes the same events as a headless one prints in stream-json", async () => {
  const place = desk();
  place.write("a.txt", "one\n");
  const model = place.script(SCRIPT);
  const { engine } = engineIn(place.folder, { model });
  const run = await engine.start("codeReview", "fix a.txt");
  await run.handle;
  const inApp = await eventsOf(run.host, run.runId);
  await engine.close();

  const { stdout } = await place.sluice([
    // Requests of the app's runs stay open.
    ...["run", "codeReview", "fix a.txt", "--model", model, "--wait"],
    ...["--output-format", "stream-json", "--store", join(place.folder, "other")],
  ]);
  const printed = stdout
    .trim()
    .split("\n")
    .map((line) => parseJson(line))
    .flatMap((line) => (line.ok && isJsonObject(line.value) ? [line.value] : []))
    .filter(({ type }) => type !== "result");

  const comparable = (events: readonly JsonObject[]) =>
    events.map(({ type, executionId, attempt, data }) => ({
      type,
      executionId,
      attempt,
      data: JSON.parse(JSON.stringify(data), (key, value) => (OF_ITS_RUN.has(key) ? undefined : value)),
    }));
  expect(comparable(inApp.map((event) => ({ ...event })))).toEqual(comparable(printed));
});
/** What differs between two runs of the same. The app keeps questions open, which it records as `wait`. */
const OF_ITS_RUN: ReadonlySet<string> = new Set(["ms", "elapsedMs", "runMs", "incarnation", "wait"]);

test("a run that is begun in the app may start in another state, with an input as the command takes it", async () => {
  const place = desk();
  const { engine } = engineIn(place.folder, { model: place.script({ second: [finishes("end")] }) });
  const from = { state: "second", input: ["why=because", "times:=2"] };
  const run = await engine.start(`${PIPELINES}#writing`, "x", from);
  expect(await run.handle).toMatchObject({ status: "completed", stages: [{ executionId: "second#1" }] });
  const [started] = await eventsOf(run.host, run.runId);
  expect(started?.data.from).toEqual({ state: "second", input: { why: "because", times: 2 } });
  await expect(engine.start(`${PIPELINES}#writing`, "x", { state: "third", input: [] })).rejects.toMatchObject({
    code: "start_invalid",
  });
});

test("what a killed command left since the app opened the project is moved away before a pipeline is loaded", async () => {
  const place = desk();
  const { engine, said } = engineIn(place.folder, {});
  await engine.project();
  const left = place.write("left.ts", "throw new Error('it was loaded');\n");
  putRecord(place.store, { root: place.folder, tops: [], paths: [left] });
  await expect(engine.start("./left.ts", "x")).rejects.toMatchObject({ code: "pipeline_not_found" });
  expect(said).toEqual([expect.stringContaining(`a command whose process was killed left ${left}; it was moved to `)]);
});

test("a run is found by what only its id begins with, and what fits none or several says so", async () => {
  const place = desk();
  const { engine } = engineIn(place.folder, { model: place.script(SCRIPT) });
  await expect(engine.find("r")).rejects.toMatchObject({ code: "run_unknown" });
  const [first, second] = [await finished(engine, "one"), await finished(engine, "two")];
  expect((await engine.find(first.runId.slice(0, 8))).runId).toBe(first.runId);
  await expect(engine.find("r")).rejects.toMatchObject({
    message: expect.stringMatching(/2 runs in .* begin with r: r\w+, r\w+\. \/runs lists the runs\./),
  });
  await expect(engine.find("rzzz")).rejects.toMatchObject({ message: expect.stringContaining("there is no run rzzz") });
  expect((await engine.list()).map(({ runId }) => runId)).toEqual([second.runId, first.runId]);
});

test("looking for runs makes no store", async () => {
  const folder = emptyFolder();
  const { engine } = engineIn(folder, {});
  expect(await engine.list()).toEqual([]);
  expect(await engine.store()).toBeUndefined();
});

test("what keeps a run from starting is reported, and no run starts", async () => {
  const folder = emptyFolder();
  const { engine } = engineIn(folder, {});
  await expect(engine.start("codeReview", "x")).rejects.toMatchObject({ code: "no_model" });
  await expect(engine.start("codeRevue", "x")).rejects.toMatchObject({ code: "pipeline_not_found" });
  expect(await engine.list()).toEqual([]);
});

test("a request waits for a person, a closed app suspends its run, and another app resumes it as it was started", async () => {
  const place = desk();
  place.write("a.txt", "one\n");
  const model = place.script({
    ...SCRIPT,
    plan: [
      { calls: [{ tool: "Write", input: { file_path: "a.txt", content: "two\n" } }] },
      { calls: [{ tool: "submit_plan", input: PLANNED }] },
    ],
  });
  const first = engineIn(place.folder, { model });
  const begun = await first.engine.start("codeReview", "fix a.txt");
  await asked(begun);
  const result = Promise.resolve(begun.handle);
  await first.engine.close();
  expect(await result).toMatchObject({ status: "suspended" });

  const second = engineIn(place.folder, { model: "anthropic/another", mode: "yolo" });
  const again = await second.engine.resume(begun.runId);
  const [request] = await asked(again);
  await again.host.signal(again.runId, {
    name: `request/${request?.requestId}`,
    payload: { kind: "deny", digest: request?.digest ?? "" },
    digest: request?.digest ?? "",
    by: "someone",
  });
  expect(await again.handle).toMatchObject({ status: "completed", denied: [{ tool: "Write", cause: "denied" }] });
});

test("what a project says is said once, and again after it was read again", async () => {
  const folder = emptyFolder();
  writeFileSync(join(folder, "sluice.config.mjs"), "export default {};\n");
  const { engine, said } = engineIn(folder, {});
  await engine.project();
  await engine.project();
  expect(said.filter((text) => text.includes("was not loaded"))).toHaveLength(1);
  engine.reload();
  await engine.project();
  expect(said.filter((text) => text.includes("was not loaded"))).toHaveLength(2);
});

function engineIn(folder: string, flags: RunFlags): { readonly engine: Engine; readonly said: readonly string[] } {
  const home = join(folder, "..", "home");
  mkdirSync(home, { recursive: true });
  const said: string[] = [];
  const terminal = {
    out: () => undefined,
    err: (text: string) => void said.push(text),
    paint: (_stream: string, _tone: string, text: string) => text,
    interactive: true,
    columns: 80,
    input: new PassThrough(),
    prompts: new PassThrough(),
    controlling: () => undefined,
    facts: () => ({ stdin: true, stdout: true, stderr: true, columns: 80, rows: 24, colourBits: 8 }),
    flush: async () => undefined,
  };
  // Not the Ollama that may run on this machine: nobody listens here.
  const env = { HOME: home, PATH: process.env.PATH ?? "", OLLAMA_HOST: "http://127.0.0.1:9" };
  const context = { env, here: folder, terminal };
  const engine = createEngine({
    flags: { cwd: folder, ...flags },
    context,
    askTrust: async () => false,
    say: (text) => void said.push(text),
  });
  onTestFinished(() => engine.close());
  return { engine, said };
}

function emptyFolder(): string {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "sluice-engine-")));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const folder = join(base, "work");
  mkdirSync(folder);
  return folder;
}

async function finished(engine: Engine, task: string): Promise<KnownRun> {
  const run = await engine.start("codeReview", task);
  await run.handle;
  return run;
}

/** Waits until a person has to answer. */
async function asked({ host, runId }: KnownRun): Promise<Awaited<ReturnType<typeof host.requests>>> {
  for await (const event of host.events(runId, { follow: true })) {
    if (event.type !== "grant.requested") continue;
    const open = await host.requests(runId);
    if (open.length > 0) return open;
  }
  throw new Error("the run ended without asking");
}
