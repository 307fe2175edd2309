import { done, fail, forEach, type Json, pipeline, type RunLimits, stage } from "@sluice/core";
import { playbackTraffic, recordTraffic, replayRun, type ScriptedTurn, scriptedModel } from "@sluice/stages";
import { expect, test } from "vitest";
import { z } from "zod";
import {
  dataOf,
  eventsOf,
  eventually,
  quiet,
  session,
  type TestSessionOptions,
  tool,
  twoHosts,
} from "../support/run-kit.ts";
import { tempFolder } from "../support/tools.ts";

// docs/routing-and-fan-out.md promises these of a list whose items a model names at run time.

const found = z.object({ files: z.array(z.string()) });
const reviewed = z.object({ findings: z.array(z.string()) });
const finding = stage({
  prompt: "List.",
  allowedTools: [],
  completionTool: "submit_files",
  completionSchema: found,
  turnCap: 3,
});
const review = stage({
  inputSchema: z.object({ file: z.string() }),
  prompt: "Review {{ctx.input.file}}.",
  allowedTools: ["Look"],
  completionTool: "submit_review",
  completionSchema: reviewed,
  turnCap: 3,
});
const summary = stage({
  reads: { review },
  prompt: (ctx) => JSON.stringify(ctx.items ?? null),
  allowedTools: [],
  completionTool: "submit_summary",
  completionSchema: z.object({ ready: z.boolean() }),
  turnCap: 3,
});

const tools = [tool("Look"), tool("Change")];

interface Options {
  readonly maxParallel?: number;
  readonly onFailure?: "cancel" | "settle";
  readonly limits?: RunLimits;
}
function everyFile({ limits = {}, ...options }: Options = {}) {
  return pipeline({
    id: "everyFile",
    input: z.object({}),
    limits,
    stages: { find: finding, review, summary },
    initial: "find",
    next: {
      find: {
        completed: ({ output }) =>
          forEach(
            "review",
            output.files.map((file) => ({ file })),
            { key: ({ file }) => file, join: "summary", ...options },
          ),
        failed: ({ code, message }) => fail(`${code}: ${message}`),
      },
      summary: (_result, ctx) => done(JSON.parse(JSON.stringify(ctx.items?.review ?? null))),
    },
  });
}

const says = (tool: string, input: Json): readonly ScriptedTurn[] => [{ calls: [{ tool, input }] }];
/** A model that names these files and reviews each with a finding of its own, except where an item says otherwise. */
function model(files: readonly string[], items: Readonly<Record<string, readonly ScriptedTurn[]>> = {}) {
  const own = Object.fromEntries(files.map((file) => [file, says("submit_review", { findings: [`in ${file}`] })]));
  return scriptedModel({
    stages: { find: says("submit_files", { files: [...files] }), summary: says("submit_summary", { ready: true }) },
    items: { review: Object.assign(Object.create(null), own, items) },
  });
}
function reviewing(
  files: readonly string[],
  options: Options & {
    readonly items?: Readonly<Record<string, readonly ScriptedTurn[]>>;
    readonly session?: TestSessionOptions;
  } = {},
) {
  const { items, session: around, ...list } = options;
  const live = session({ model: model(files, items), tools, ...around });
  return { live, pipe: everyFile(list), start: () => live.start(everyFile(list), {}) };
}
const names = (count: number): readonly string[] => Array.from({ length: count }, (_, at) => `src/${at}.ts`);
const outputOf = (file: string): Json => ({ key: file, status: "completed", output: { findings: [`in ${file}`] } });
const FAILS: readonly ScriptedTurn[] = [{ text: "no" }, { text: "no" }, { text: "no" }];

test.each([0, 1, 7, 500])(
  "a list of %i items that a model names joins one output for each, in order",
  async (count) => {
    const files = names(count);
    const result = await reviewing(files).start();
    expect(result).toMatchObject({ status: "completed", output: files.map(outputOf) });
    expect(result.stages.map(({ executionId, key }) => [executionId, key])).toEqual([
      ["find#1", undefined],
      ...files.map((file) => ["review#1", file]),
      ["summary#1", undefined],
    ]);
  },
);

test("a key may be any text: what separates ids, leaves a folder, is a member of every object or acts on a terminal", async () => {
  const files = [
    "..",
    "a/b",
    "a%2Fb",
    "constructor",
    "toString",
    "\u001b[31mred",
    "\u202eevil",
    "<b>",
    "x".repeat(200),
    "#1",
    ":",
  ];
  const { live, start, pipe } = reviewing(files);
  const result = await start();
  expect(result).toMatchObject({ status: "completed", output: files.map(outputOf) });
  const journals = await live.host.journal(result.runId);
  expect(await replayRun(pipe, journals, { env: {} })).not.toHaveProperty("difference");
});

test("an item called __proto__ is one like the others", async () => {
  const live = session({
    tools,
    model: scriptedModel({
      stages: {
        find: says("submit_files", { files: ["__proto__", "a"] }),
        review: says("submit_review", { findings: [] }),
        summary: says("submit_summary", { ready: true }),
      },
    }),
  });
  expect(await live.run(everyFile(), {})).toMatchObject({ output: [{ key: "__proto__" }, { key: "a" }] });
});

test("a model that names a file twice is refused as a route, with the key", async () => {
  const { live, start } = reviewing(["a", "b", "a"]);
  const result = await start();
  expect(result).toMatchObject({ status: "failed", error: { message: expect.stringContaining('the key "a"') } });
  expect(dataOf(await eventsOf(live.host, result.runId), "fanOut.started")).toEqual([]);
});

test("with settle, an item that fails leaves the others alone, and the join reads its code", async () => {
  const result = await reviewing(["a", "b", "c"], { items: { b: FAILS }, onFailure: "settle" }).start();
  expect(result).toMatchObject({
    status: "completed",
    output: [outputOf("a"), { key: "b", status: "failed", code: "turn_cap" }, outputOf("c")],
  });
});

test("with cancel, the first item that fails ends the list, and the state that made it fails", async () => {
  const live = { maxParallel: 1 };
  const result = await reviewing(["a", "b", "c"], { items: { b: FAILS }, session: live }).start();
  expect(result).toMatchObject({ status: "failed", error: { message: expect.stringMatching(/^fan_out: .*b: /) } });
  expect(result.stages.map(({ executionId, key, status }) => [executionId, key, status])).not.toContainEqual([
    "review#1",
    "c",
    "completed",
  ]);
});

test("a run that is cancelled in the middle of its list ends every item, and starts none of the rest", async () => {
  const { live, start } = reviewing(names(20), {
    maxParallel: 2,
    items: { "src/3.ts": [{ calls: [{ tool: "Change", input: {} }] }, ...says("submit_review", { findings: [] })] },
    session: {
      interactors: [
        {
          name: "nobody",
          answer: (_request, signal) =>
            new Promise((resolve) => signal.addEventListener("abort", () => resolve(undefined))),
        },
      ],
    },
  });
  const handle = start();
  await eventually(async () => (await live.host.requests(handle.runId)).length === 1);
  await eventually(
    async () => (await eventsOf(live.host, handle.runId)).filter(({ type }) => type === "stage.exit").length > 30,
  );
  await quiet();
  await handle.cancel("enough");
  const result = await handle;
  expect(result.status).toBe("cancelled");
  expect(await live.host.requests(handle.runId)).toEqual([]);
  const events = await eventsOf(live.host, handle.runId);
  expect(events.at(-1)).toMatchObject({ type: "run.finished", runId: handle.runId });
});

test("a grant asked by an item names the item's run, and its approval is for that item only", async () => {
  const asked: string[] = [];
  const changes = (): readonly ScriptedTurn[] => [
    { calls: [{ tool: "Change", input: {} }] },
    ...says("submit_review", { findings: [] }),
  ];
  const { live, start } = reviewing(["a", "b", "c"], {
    items: { a: changes(), c: changes() },
    session: {
      maxParallel: 1,
      interactors: [
        {
          name: "rule",
          answer: async ({ runId }) => {
            asked.push(runId.split("/").at(-1) ?? "");
            return runId.endsWith("/a") ? { kind: "approve" } : { kind: "deny", reason: "not c" };
          },
        },
      ],
    },
  });
  const result = await start();
  expect(asked.toSorted()).toEqual(["a", "c"]);
  expect(result.denied).toMatchObject([{ tool: "Change", cause: "denied" }]);
  const consumed = (await eventsOf(live.host, result.runId)).filter(({ type }) => type === "grant.consumed");
  expect(consumed.map(({ runId }) => runId)).toEqual([`${result.runId}/fan-1/a`]);
});

test("a budget of the run holds over a whole list", async () => {
  const files = names(40);
  const free = await reviewing(files).start();
  const perItem = (free.usage.inputTokens + free.usage.outputTokens) / files.length;
  const maxTokens = Math.round(perItem * 10);
  const result = await reviewing(files, {
    limits: { maxTokens },
    onFailure: "settle",
    session: { maxParallel: 1 },
  }).start();
  const done = result.stages.filter(({ executionId, status }) => executionId === "review#1" && status === "completed");
  expect(done.length).toBeLessThan(files.length);
  expect(result.usage.inputTokens + result.usage.outputTokens).toBeLessThanOrEqual(maxTokens);
});

test("a fork before a list runs every item again, and one before an item runs that item only", async () => {
  const { clock, first: host } = twoHosts();
  const files = ["a", "b/c", "d"];
  const { runId } = await session({ model: model(files), tools, host, clock }).run(everyFile(), {});
  const again = (file: string): readonly ScriptedTurn[] => says("submit_review", { findings: [`again ${file}`] });
  const items = { a: again("a"), "b/c": again("b/c"), d: again("d") };
  const second = session({ model: model(files, items), tools, host, clock });
  const forkedAt = async (from: string): Promise<unknown> => {
    const result = await second.fork(everyFile(), runId, { from });
    return result.status === "completed" ? result.output : result;
  };
  const redone = (file: string): Json => ({ key: file, status: "completed", output: { findings: [`again ${file}`] } });
  expect(await forkedAt("review#1:b/c")).toEqual([outputOf("a"), redone("b/c"), outputOf("d")]);
  expect(await forkedAt("review#1")).toEqual(files.map(redone));
  expect(await forkedAt("summary#1")).toEqual(files.map(outputOf));
  expect(await forkedAt("find#1")).toEqual(files.map(redone));
  await expect(forkedAt("review#1:none")).rejects.toMatchObject({ code: "execution_unknown" });
});

test("a cassette answers each item with its own recording, also where all requests are the same and paths differ", async () => {
  const folder = tempFolder();
  const files = [`${folder.root}/a`, "b", "__proto__"];
  // What each item is asked is the same, so that only its key can tell the answers apart.
  const same = pipeline({
    id: "same",
    input: z.object({ order: z.array(z.string()) }),
    stages: {
      start: stage({
        prompt: "p",
        allowedTools: [],
        completionTool: "submit_start",
        completionSchema: z.object({}),
        turnCap: 1,
      }),
      review: stage({
        inputSchema: z.object({}),
        prompt: "p",
        allowedTools: [],
        completionTool: "submit_review",
        completionSchema: reviewed,
        turnCap: 1,
      }),
      end: stage({
        prompt: "p",
        allowedTools: [],
        completionTool: "submit_end",
        completionSchema: z.object({}),
        turnCap: 1,
      }),
    },
    initial: "start",
    next: {
      start: (_result, ctx) => {
        const { order } = ctx.run.input;
        return forEach(
          "review",
          order.map(() => ({})),
          { key: (_item, at) => order[at] ?? "", join: "end", maxParallel: 1 },
        );
      },
      end: (_result, ctx) =>
        done((ctx.items?.review ?? []).map(({ key, output }) => `${key}: ${output?.findings.join() ?? "none"}`)),
    },
  });
  const own = Object.fromEntries(files.map((file, at) => [file, says("submit_review", { findings: [`no ${at}`] })]));
  const script = scriptedModel({
    stages: {
      start: says("submit_start", {}),
      review: says("submit_review", { findings: ["no 2"] }),
      end: says("submit_end", {}),
    },
    items: { review: own },
  });
  const file = `${folder.root}/list.jsonl`;
  const expected = (order: readonly string[]): readonly string[] =>
    order.map((key) => `${key}: no ${files.indexOf(key)}`);
  const recording = session({ model: script, cwd: folder.root, traffic: recordTraffic(file) });
  expect(await recording.run(same, { order: files })).toMatchObject({ status: "completed", output: expected(files) });
  const traffic = playbackTraffic(file, { match: "sequence" });
  const order = files.toReversed();
  const playing = session({ cwd: folder.root, traffic });
  expect(await playing.run(same, { order })).toMatchObject({ status: "completed", output: expected(order) });
  expect(traffic.unused()).toEqual([]);
  const other = session({ cwd: folder.root, traffic: playbackTraffic(file, { match: "sequence" }) });
  expect(await other.run(same, { order: ["unknown"] })).toMatchObject({
    status: "failed",
    error: { message: expect.stringContaining('no turns of stage review, item "unknown"') },
  });
});
