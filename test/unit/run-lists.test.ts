import { done, fail, forEach, type Json, pipeline, type State } from "@sluice/core";
import { parseSiblingId } from "@sluice/core/runtime";
import { replayRun } from "@sluice/stages";
import { expect, test } from "vitest";
import { z } from "zod";
import {
  completed,
  dataOf,
  eventsOf,
  eventually,
  failed,
  json,
  noModel,
  quiet,
  session,
  twoHosts,
  work,
  workExecutor,
} from "../support/run-kit.ts";

const input = z.object({ files: z.array(z.string()) });
interface ListOptions {
  readonly key?: (item: string, index: number) => string;
  readonly onFailure?: "cancel" | "settle";
  readonly maxParallel?: number;
}

/** Starts, reviews each file of the input, and joins with what it sees. */
function reviewing(
  review: State<Json, string>,
  options: ListOptions = {},
  limits: { readonly maxItems?: number } = {},
) {
  return pipeline({
    id: "lists",
    input,
    limits,
    stages: {
      start: work({ act: ({ ctx }) => completed(json(ctx.run.input)) }),
      review,
      join: work({
        act: ({ ctx }) => completed(json({ items: ctx.items, up: ctx.upstream.review ?? null, input: ctx.input })),
      }),
    },
    initial: "start",
    next: {
      start: {
        completed: (_result, ctx) =>
          forEach("review", ctx.run.input.files, {
            join: "join",
            input: { of: ctx.run.input.files.length },
            ...options,
          }),
        failed: (result, ctx) => fail(`${result.code}: ${result.message} ${JSON.stringify(ctx.items ?? null)}`),
      },
      join: ({ output }) => done(output),
    },
  });
}
const reader = (act: (file: string) => Json | undefined): State<Json, string> =>
  work<Json, string>({
    inputSchema: z.string(),
    act: ({ ctx }) => {
      const output = act(String(ctx.input));
      return output === undefined ? failed(`no ${String(ctx.input)}`) : completed(output);
    },
  });

test("each item runs in a child of its own, and the join reads how each ended, in the list's order", async () => {
  const live = session({ model: noModel });
  const files = ["src/b.ts", "a.ts", ".."];
  const result = await live.run(
    reviewing(
      reader((file) => `read ${file}`),
      { key: (file) => file },
    ),
    { files },
  );
  expect(result).toMatchObject({
    status: "completed",
    output: {
      items: { review: files.map((key) => ({ key, status: "completed", output: `read ${key}` })) },
      up: "read ..",
      input: { of: 3 },
    },
  });
  expect(result.stages.map(({ executionId, key }) => [executionId, key])).toEqual([
    ["start#1", undefined],
    ...files.map((key) => ["review#1", key]),
    ["join#1", undefined],
  ]);
  const events = await eventsOf(live.host, result.runId);
  expect(dataOf(events, "fanOut.started")).toEqual([
    { fanOut: "fan-1", siblings: files, join: "join", list: "review" },
  ]);
  expect(dataOf(events, "fanOut.joined")).toMatchObject([
    { fanOut: "fan-1", list: "review", outcomes: files.map((name) => ({ name, status: "completed" })) },
  ]);
  expect(dataOf(events, "route.decided")[0]).toMatchObject({
    choice: "fanOut",
    to: ["review"],
    join: "join",
    items: 3,
  });
  const [, ...children] = await live.host.journal(result.runId);
  expect(children.map(({ runId }) => parseSiblingId(runId)?.key)).toEqual(files);
  expect(children.map(({ runId }) => runId.replace(result.runId, "r"))).toEqual([
    "r/fan-1/src%2Fb.ts",
    "r/fan-1/a.ts",
    "r/fan-1/%2E.",
  ]);
});

test("a child records its own item and nothing of the list or of what it reads of its parent", async () => {
  const live = session({ model: noModel });
  const files = ["one", "two"];
  const { runId } = await live.run(reviewing(reader((file) => file)), { files });
  const [, ...children] = await live.host.journal(runId);
  expect(children.map((child) => child.input)).toEqual([
    { kind: "sibling", key: "0", state: "review", input: "one", visit: 1, turns: 0 },
    { kind: "sibling", key: "1", state: "review", input: "two", visit: 1, turns: 0 },
  ]);
});

test("an empty list continues in the join at once, as one route and no visit", async () => {
  const live = session({ model: noModel });
  const result = await live.run(reviewing(reader((file) => file)), { files: [] });
  expect(result).toMatchObject({ output: { items: { review: [] }, up: null, input: { of: 0 } } });
  expect(result.stages.map(({ executionId }) => executionId)).toEqual(["start#1", "join#1"]);
  const events = await eventsOf(live.host, result.runId);
  expect(dataOf(events, "fanOut.started")).toEqual([]);
});

test("a failure cancels the rest of the list, and the state that started it fails with the item's key", async () => {
  const live = session({ model: noModel, maxParallel: 1 });
  const files = ["good", "bad", "late"];
  const result = await live.run(
    reviewing(
      reader((file) => (file === "bad" ? undefined : file)),
      { key: (file) => file },
    ),
    {
      files,
    },
  );
  expect(result).toMatchObject({ status: "failed" });
  if (result.status !== "failed") return;
  expect(result.error.message).toMatch(
    /^fan_out: parallel stages failed: bad: no bad \{"review":\[\{"key":"good","status":"completed"/,
  );
  expect(result.error.message).toContain('{"key":"late","status":"cancelled","code":"cancelled"');
});

test("settle runs the whole list, and the upstream output is that of the last item that completed", async () => {
  const live = session({ model: noModel });
  const pipe = reviewing(
    reader((file) => (file === "bad" ? undefined : file)),
    { onFailure: "settle" },
  );
  expect(await live.run(pipe, { files: ["good", "bad"] })).toMatchObject({
    output: {
      items: {
        review: [
          { key: "0", status: "completed", output: "good" },
          { key: "1", status: "failed", code: "tool", message: "no bad" },
        ],
      },
      up: "good",
    },
  });
  expect(await live.run(pipe, { files: ["bad"] })).toMatchObject({ status: "completed", output: { up: null } });
});

test.each<readonly [string, readonly string[], ListOptions, string]>([
  ["two items of the same key", ["a", "a"], { key: (file) => file }, 'two items have the key "a"'],
  ["an empty key", ["a"], { key: () => "" }, "the key of item 0 has 0 characters, not 1 to 200"],
  ["a key that is no Unicode", ["a"], { key: () => "\ud800" }, "the key of item 0 is not valid Unicode"],
  [
    "a key that throws",
    ["a"],
    {
      key: () => {
        throw new Error("no key");
      },
    },
    "the completed route of start threw: no key",
  ],
  ["a limit of zero", ["a"], { maxParallel: 0 }, "maxParallel must be a whole number from 1"],
  ["more items than allowed", ["a", "b", "c"], {}, "the list has 3 items, and limits.maxItems allows 2"],
])("a list with %s is a rejected route with the reason", async (_name, files, options, reason) => {
  const live = session({ model: noModel });
  const result = await live.run(
    reviewing(
      reader((file) => file),
      options,
      { maxItems: 2 },
    ),
    { files: [...files] },
  );
  expect(result).toMatchObject({ status: "failed", error: { message: expect.stringContaining(reason) } });
  const [rejected] = dataOf(await eventsOf(live.host, result.runId), "route.rejected");
  expect(rejected).toMatchObject({ from: "start", reason: expect.stringContaining(reason) });
});

test("without a limit of its own a pipeline takes lists of up to 1,000 items", async () => {
  const live = session({ model: noModel });
  const files = Array.from({ length: 1_001 }, () => "x");
  expect(await live.run(reviewing(reader((file) => file)), { files })).toMatchObject({
    error: { message: expect.stringContaining("the list has 1001 items, and limits.maxItems allows 1000") },
  });
});

test("an item that does not fit the state's inputSchema is a rejected route that names it", async () => {
  const live = session({ model: noModel });
  const review = work<Json, string>({ inputSchema: z.string().min(2) });
  const result = await live.run(reviewing(review, { key: (file) => `k-${file}` }), { files: ["ok", "x"] });
  expect(result).toMatchObject({ error: { message: expect.stringContaining('the input of review for item "k-x"') } });
});

test.each([
  ["holds a known secret", { env: { API_KEY: "hunter22hunter22" }, secrets: ["API_KEY"] }, "of hunter22hunter22"],
  ["looks like a secret", {}, "https://me:hunter22hunter22@example.com/a"],
])(
  "a key that %s is refused, since events would mask it and a child is found by its key",
  async (_name, known, key) => {
    const live = session({ model: noModel, ...known });
    const result = await live.run(
      reviewing(
        reader((file) => file),
        { key: () => key },
      ),
      { files: ["a"] },
    );
    const why = "a key of the list holds a secret, or what looks like one";
    expect(result).toMatchObject({ error: { message: expect.stringContaining(why) } });
    expect(JSON.stringify(await live.host.journal(result.runId))).not.toContain("hunter22hunter22");
  },
);

test("maxParallel of a list holds below the session's, and another run of the session is not held by it", async () => {
  const live = session({ model: noModel, maxParallel: 4 });
  const opens: (() => void)[] = [];
  const review = work<Json, string>({
    inputSchema: z.string(),
    act: async () => {
      await new Promise<void>((resolve) => opens.push(resolve));
      return completed(null);
    },
  });
  const listed = live.start(reviewing(review, { maxParallel: 2 }), { files: ["a", "b", "c", "d"] });
  await eventually(() => opens.length === 2);
  await quiet();
  expect(opens).toHaveLength(2);
  const other = live.start(reviewing(review), { files: ["a", "b", "c"] });
  await eventually(() => opens.length === 4);
  await quiet();
  expect(opens).toHaveLength(4);
  let ended = false;
  void Promise.all([listed, other]).then(() => {
    ended = true;
  });
  while (!ended) {
    for (const open of opens.splice(0)) open();
    await quiet();
  }
  expect((await listed).stages).toHaveLength(6);
});

test("a list in a loop counts one visit of its state each time, and its items have that visit", async () => {
  const live = session({ model: noModel });
  const seen: Json[] = [];
  const pipe = pipeline({
    id: "again",
    input,
    limits: { maxVisits: 2 },
    stages: {
      start: work(),
      review: work<Json, string>({
        act: ({ ctx, turnsBefore, executionId }) => {
          seen.push([executionId, ctx.visit, turnsBefore]);
          return { ...completed(ctx.visit), turns: 2 };
        },
      }),
      join: work({ act: ({ ctx }) => completed(json(ctx.items)) }),
    },
    initial: "start",
    next: {
      start: () => forEach("review", ["a", "b"], { join: "join" }),
      join: () => forEach("review", ["c", "d"], { join: "start" }),
    },
  });
  const result = await live.run(pipe, { files: [] });
  expect(result).toMatchObject({
    status: "failed",
    error: { code: "limit_visits", message: expect.stringContaining("review") },
  });
  expect(seen).toEqual([
    ["review#1", 1, 0],
    ["review#1", 1, 0],
    ["review#2", 2, 4],
    ["review#2", 2, 4],
  ]);
});

test("a table's row may be a list", async () => {
  const live = session({ model: noModel });
  const pipe = pipeline({
    id: "table",
    input,
    stages: {
      start: work(),
      review: reader((file) => file),
      join: work({ act: ({ ctx }) => completed(json(ctx.items)) }),
    },
    initial: "start",
    transitions: [
      { from: "start", on: "success", to: forEach("review", ["x", "y"], { join: "join" }) },
      { from: "join", on: "success", to: { stages: [], execution: "sequential" } },
    ],
  });
  expect(await live.run(pipe, { files: [] })).toMatchObject({
    output: {
      review: [
        { key: "0", output: "x" },
        { key: "1", output: "y" },
      ],
    },
  });
});

test("a list that was suspended is resumed elsewhere: what ended is kept, the rest continues, and the run replays", async () => {
  const { clock, first, second } = twoHosts();
  const ran: string[] = [];
  let hangs = true;
  const review = work<Json, string>({
    inputSchema: z.string(),
    act: async ({ ctx, signal }) => {
      const file = String(ctx.input);
      if (file === "slow" && hangs) {
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        return completed("never recorded");
      }
      ran.push(file);
      return completed(`${file} of ${String(ctx.upstream.start)}`);
    },
  });
  const pipe = pipeline({
    id: "lists",
    input,
    stages: {
      start: work({ act: () => completed("the start") }),
      review,
      join: work({ act: ({ ctx }) => completed(json(ctx.items)) }),
    },
    initial: "start",
    next: {
      start: () =>
        forEach("review", ["quick", "slow", "late/.."], { join: "join", key: (file) => file, maxParallel: 1 }),
      join: ({ output }) => done(output),
    },
  });
  const here = session({ model: noModel, host: first, clock });
  const handle = here.start(pipe, { files: [] });
  await eventually(() => ran.length === 1);
  await quiet();
  await handle.suspend();
  hangs = false;
  const before = ran.splice(0);
  const there = session({ model: noModel, host: second, clock });
  const result = await there.resume(pipe, handle.runId);
  expect([before, ran.toSorted()]).toEqual([["quick"], expect.arrayContaining(["late/..", "slow"])]);
  expect(result).toMatchObject({
    status: "completed",
    output: {
      review: ["quick", "slow", "late/.."].map((key) => ({ key, status: "completed", output: `${key} of the start` })),
    },
  });
  const journals = await second.journal(handle.runId);
  expect(await replayRun(pipe, journals, { env: {}, executors: [workExecutor] })).not.toHaveProperty("difference");
});
