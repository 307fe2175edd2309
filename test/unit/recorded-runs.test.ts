import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { callbackInteractor, done, pipeline, stage, systemClock, to } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { createSession, playbackTraffic, recordTraffic, type Script, scriptedModel } from "@sluice/stages";
import { type RecordedRunOptions, runRecorded, runScripted } from "@sluice/stages/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { tempFolder } from "../support/tools.ts";

const submit = { completionTool: "submit", completionSchema: z.object({ note: z.string() }), turnCap: 4 };
const check = stage({ ...submit, prompt: "Check.", allowedTools: [] });
function make(prompt = "Write the note.") {
  const write = stage({ ...submit, prompt, allowedTools: ["Read", "Write(notes/**)"] });
  return pipeline({
    id: "notes",
    input: z.object({ task: z.string() }),
    stages: { write, check },
    initial: "write",
    next: { write: () => to("check"), check: ({ output }) => done(output.note) },
  });
}
const notes = make();
const put = (file_path: string, content: string) => ({ tool: "Write", input: { file_path, content } });
const finish = { calls: [{ tool: "submit", input: { note: "fine" } }] };
const script: Script["stages"] = {
  write: [
    { calls: [{ tool: "Read", input: { file_path: "old.md" } }] },
    { calls: [put("notes/new.md", "new\n"), put("other.md", "no\n")] },
    finish,
  ],
  check: [finish],
};
const files = { "old.md": "old\n", "notes/kept.md": "kept\n" };
const task = { task: "write it" };
/** Nothing of this machine, and the switch that records. */
const RECORD = { SLUICE_RECORD: "1" };

async function recorded(options: Partial<RecordedRunOptions> = {}) {
  const cassette = join(tempFolder().root, "cassettes", "notes.jsonl");
  const model = scriptedModel({ stages: script });
  const run = await runRecorded(notes, task, { cassette, files, model, env: RECORD, ...options });
  return { cassette, run };
}

test("a scripted run gives result, events, denied calls and changed files, and leaves no folder behind", async () => {
  const scratch = tempFolder().root;
  const before = process.env.TMPDIR;
  process.env.TMPDIR = scratch;
  try {
    const { result, events, denied, changes } = await runScripted(notes, task, { script, files, env: {} });
    expect(result).toMatchObject({ status: "completed", output: "fine" });
    expect(events.at(0)?.type).toBe("run.started");
    expect(events.at(-1)?.type).toBe("run.finished");
    expect(denied).toMatchObject([{ tool: "Write", cause: "no_interactor" }]);
    expect(changes).toEqual([{ path: "notes/new.md", kind: "created", after: "new\n" }]);
    expect(readdirSync(scratch)).toEqual([]);
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
});

test("the session of a test is given what any session is given", async () => {
  const interactors = [callbackInteractor("yes", () => ({ kind: "approve" }))];
  const { changes, denied } = await runScripted(notes, task, { script, files, env: {}, interactors });
  expect(denied).toEqual([]);
  expect(changes.map(({ path }) => path)).toEqual(["notes/new.md", "other.md"]);
});

test("a folder is copied into the workspace, and stays as it was", async () => {
  const folder = tempFolder();
  folder.put("old.md", "from the folder\n");
  folder.put("notes/new.md", "there already\n");
  const { changes, result } = await runScripted(notes, task, { script, folder: pathToFileURL(folder.root), env: {} });
  // It was not read before, so it is not overwritten.
  expect(result.status).toBe("completed");
  expect(changes).toEqual([]);
  expect(folder.text("notes/new.md")).toBe("there already\n");
});

test("a file outside of the workspace is refused", async () => {
  const run = runScripted(notes, task, { script, files: { "../x": "" }, env: {} });
  await expect(run).rejects.toMatchObject({ class: "Validation", code: "test_file_outside" });
});

test("SLUICE_RECORD writes a cassette, and without it the cassette answers: the same result, without the model", async () => {
  const { cassette, run } = await recorded();
  expect(run.recorded).toBe(true);
  const again = await runRecorded(notes, task, { cassette: pathToFileURL(cassette), files, env: {} });
  expect(again).toMatchObject({
    recorded: false,
    unused: [],
    changes: run.changes,
    result: { status: "completed", output: "fine" },
  });
  expect(again.denied).toEqual(run.denied);
  expect(readdirSync(join(cassette, ".."))).toEqual(["notes.jsonl"]);
});

test("recording again takes the place of the old cassette only when the run could start", async () => {
  const { cassette } = await recorded();
  const old = readFileSync(cassette, "utf8");
  const keyless = { cassette, files, env: RECORD, model: "anthropic/some-model" };
  await expect(runRecorded(notes, task, keyless)).rejects.toMatchObject({ code: "missing_key" });
  await expect(runRecorded(notes, task, { cassette, files, env: RECORD })).rejects.toMatchObject({ code: "no_model" });
  expect(readFileSync(cassette, "utf8")).toBe(old);
  const model = scriptedModel({ stages: { ...script, check: [{ text: "hm" }, finish] } });
  await runRecorded(notes, task, { cassette, files, env: { SLUICE_RECORD: "true" }, model });
  expect(readFileSync(cassette, "utf8").split("\n")).toHaveLength(old.split("\n").length + 1);
  expect(readdirSync(join(cassette, ".."))).toEqual(["notes.jsonl"]);
});

test("a missing or cut cassette is an error before anything runs", async () => {
  const { cassette } = await recorded();
  const options = { cassette: `${cassette}.none`, files, env: { SLUICE_RECORD: "0" } };
  await expect(runRecorded(notes, task, options)).rejects.toMatchObject({ code: "cassette_not_found" });
  writeFileSync(cassette, readFileSync(cassette, "utf8").slice(0, -9));
  await expect(runRecorded(notes, task, { ...options, cassette })).rejects.toMatchObject({ code: "cassette_damaged" });
});

test("a cassette that a changed prompt made stale is an error with what differs and how to record again", async () => {
  const { cassette } = await recorded();
  const stale: unknown = await runRecorded(make("Write a good note."), task, { cassette, files, env: {} }).catch(
    (error: unknown) => error,
  );
  expect(stale).toMatchObject({ class: "Validation", code: "cassette_stale" });
  const lines = stale instanceof Error ? stale.message.split("\n") : [];
  expect(lines).toEqual([
    "the cassette notes.jsonl does not match: stage write, turn 1 (line 2): message 1 (system) differs in line 1:",
    "  recorded: Write the note.",
    "  now:      Write a good note.",
    expect.stringContaining("SLUICE_RECORD=1"),
  ]);
  const loose = await runRecorded(make("Write a good note."), task, { cassette, files, env: {}, match: "sequence" });
  expect(loose.result.status).toBe("completed");
});

test("a file of the workspace that changed shows in what the model read", async () => {
  const { cassette } = await recorded();
  const run = runRecorded(notes, task, { cassette, files: { ...files, "old.md": "other\n" }, env: {} });
  await expect(run).rejects.toThrow(/stage write, turn 2 .*\n.*recorded: .*old\n.*now: .*other/);
});

test("answers that a run leaves over make the cassette stale, unless that is allowed", async () => {
  const { cassette } = await recorded();
  const short = pipeline({
    ...{ id: "notes", input: z.object({ task: z.string() }) },
    stages: { write: stage({ ...submit, prompt: "Write the note.", allowedTools: ["Read", "Write(notes/**)"] }) },
    initial: "write",
    next: { write: ({ output }) => done(output.note) },
  });
  const options = { cassette, files, env: {} };
  await expect(runRecorded(short, task, options)).rejects.toThrow(
    "did not use all exchanges of notes.jsonl:\n  stage check, turn 1 (line 5)",
  );
  const { unused } = await runRecorded(short, task, { ...options, allowUnused: true });
  expect(unused).toEqual([{ line: 5, stage: "check", turn: 0, attempt: 1 }]);
});

test("a run that was stopped and resumed while it was recorded is replayed in one go", async () => {
  const file = join(tempFolder().root, "calls.jsonl");
  const folder = tempFolder();
  for (const [path, content] of Object.entries(files)) folder.put(path, content);
  const memory = createMemoryJournals();
  const options = (existing: "refuse" | "append", stages: Script["stages"]) => ({
    model: scriptedModel({ stages }),
    cwd: folder.root,
    env: {},
    host: createHost(memory.connect(), { clock: systemClock }),
    traffic: recordTraffic(file, { existing }),
  });
  const slow = {
    ...script,
    write: script.write?.map((turn, at) => (at === 1 ? { ...turn, delayMs: 60_000 } : turn)) ?? [],
  };
  const first = createSession(options("refuse", slow));
  const run = first.start(notes, task);
  let turns = 0;
  for await (const { type } of run.events) {
    if (type === "turn.started") turns += 1;
    if (turns === 2) break;
  }
  await run.suspend();
  expect((await run).status).toBe("suspended");
  await first.close();
  const second = createSession(options("append", script));
  expect(await second.resume(notes, run.runId)).toMatchObject({ status: "completed" });
  await second.close();

  const again = await runRecorded(notes, task, { cassette: file, files, env: {} });
  expect(again).toMatchObject({ unused: [], result: { status: "completed", output: "fine" } });
});

test("no run writes the cassette it is recorded in or replayed from", async () => {
  const folder = tempFolder();
  const stages = { write: [{ calls: [put("notes/calls.jsonl", "x")] }, finish], check: [finish] };
  for (const traffic of [
    recordTraffic(folder.path("notes/calls.jsonl")),
    playbackTraffic(folder.path("notes/calls.jsonl")),
  ]) {
    const session = createSession({ model: scriptedModel({ stages }), cwd: folder.root, env: {}, traffic });
    expect(await session.run(notes, task)).toMatchObject({
      status: "completed",
      denied: [{ tool: "Write", cause: "limit" }],
    });
    await session.close();
  }
});

test("a replay counts money as the model that was recorded", async () => {
  const dear = pipeline({
    id: "dear",
    input: z.object({ task: z.string() }),
    stages: { write: stage({ ...submit, prompt: "Write.", allowedTools: [] }) },
    initial: "write",
    next: { write: ({ output }) => done(output.note) },
    limits: { maxCostUsd: 1 },
  });
  const file = join(tempFolder().root, "calls.jsonl");
  const model = { ...scriptedModel({ stages: { write: [finish] } }), id: "house/model" };
  const prices = { "house/model": { input: 3, output: 15, maxOutputTokens: 1_000 } };
  const common = { cwd: tempFolder().root, env: {}, prices };
  const first = createSession({ ...common, model, traffic: recordTraffic(file) });
  const paid = await first.run(dear, task);
  const second = createSession({ ...common, traffic: playbackTraffic(file) });
  const again = await second.run(dear, task);
  expect(paid.status).toBe("completed");
  expect(again.usage).toEqual(paid.usage);
  await Promise.all([first.close(), second.close()]);
});
