import type { RunHost, SluiceEvent } from "@sluice/core";
import { sendMessage } from "@sluice/stages";
import fc from "fast-check";
import { expect, test } from "vitest";
import { totalsOf } from "../../packages/cli/src/output/run-report.ts";
import { transcriptLines } from "../../packages/tui/src/run/transcript.ts";
import { type ReadRecord, reduceRun } from "../../packages/view/src/projection/reduce-run.ts";
import type { TranscriptItem } from "../../packages/view/src/projection/run-view.ts";
import { eventually } from "../support/run-kit.ts";
import { ASKING, begin, FAILING, play, SMOOTH, ship, TROUBLED } from "../support/run-scenes.ts";
import { answerAll, plain, readRecords, textOf, unordered, viewOf } from "../support/run-views.ts";

async function view(host: RunHost, runId: string) {
  return viewOf(runId, await readRecords(host, runId));
}

async function events(host: RunHost, runId: string): Promise<readonly SluiceEvent[]> {
  const all: SluiceEvent[] = [];
  for await (const event of host.events(runId, { children: true })) all.push(event);
  return all;
}

test.each([
  ["smooth", SMOOTH, "approve"],
  ["approved", ASKING, "approve"],
  ["denied", ASKING, "deny"],
  ["troubled", TROUBLED, "approve"],
  ["failing", FAILING, "approve"],
] as const)("a %s run's view says what its events and its result say", async (_name, script, answer) => {
  const { live, runId, result } = await play(script, answer);
  const seen = await view(live.host, runId);
  const totals = totalsOf(reduceRun(runId, await events(live.host, runId)).view());
  expect(seen).toMatchObject({
    status: result.status,
    pipeline: "ship",
    task: "ship it",
    models: ["scripted"],
    mode: "ask",
  });
  expect(seen.usage).toEqual(result.usage);
  expect(seen.denied).toMatchObject(result.denied);
  if (result.status === "completed") expect(seen.output).toEqual(result.output);
  if (result.status === "failed") expect(seen.error).toEqual(result.error);
  const byKey = new Map(seen.executions.map((execution) => [execution.key, execution]));
  expect(byKey.size).toBe(totals.stages.length);
  for (const { runId: of, executionId, status, attempts, turns, usage } of totals.stages) {
    expect(byKey.get(`${of}:${executionId}`)).toMatchObject({ status, attempt: attempts, turns, usage });
  }
  expect(seen.requests).toEqual([]);
  expect(seen.executions.map(({ live: streams }) => streams)).toEqual(seen.executions.map(() => undefined));
});

test("each event has one line, and none when it comes again", async () => {
  const { live, runId } = await play(TROUBLED);
  const all = await events(live.host, runId);
  const reducer = reduceRun(runId);
  const lines = all.map((event) => reducer.event(event));
  expect(lines.filter((line) => line === undefined)).toEqual([]);
  const logged = lines.flatMap((line) => (line === undefined || line.isDetail ? [] : [`${line.who} ${line.what}`]));
  expect(logged).toEqual(expect.arrayContaining(["run started", "plan#1 entered", "plan#1 next", "run joined"]));
  expect(lines.some((line) => line?.isInherited)).toBe(false);
  const before = plain(reducer.view());
  expect(all.map((event) => reducer.event(event))).toEqual(all.map(() => undefined));
  expect(plain(reducer.view())).toEqual(before);
});

test("what a fork copied is inherited, also an earlier fork and siblings, whatever the clocks said", () => {
  const fork = (from: string) => ({ from, execution: "plan#1", head: "", records: 2 });
  const recorded: readonly (readonly [string, SluiceEvent["type"], number, SluiceEvent["data"], boolean])[] = [
    ["r3", "run.started", 50, { pipeline: "p", forkedFrom: { runId: "r2", execution: "plan#1" } }, false],
    ["r3", "run.forked", 40, fork("r1"), true],
    ["r3", "fanOut.started", 30, { fanOut: "fan-1", siblings: ["a"], join: "end" }, true],
    ["r3/fan-1/a", "run.started", 90, { pipeline: "p", state: "a" }, true],
    ["r3", "fanOut.joined", 20, { fanOut: "fan-1", outcomes: [] }, true],
    ["r3", "run.forked", 10, fork("r2"), false],
    ["r3", "fanOut.started", 5, { fanOut: "fan-2", siblings: ["b"], join: "end" }, false],
    ["r3/fan-2/b", "run.started", 1, { pipeline: "p", state: "b" }, false],
  ];
  const reducer = reduceRun("r3");
  const seqs = new Map<string, number>();
  for (const [runId, type, at, data, inherited] of recorded) {
    const seq = seqs.get(runId) ?? 0;
    seqs.set(runId, seq + 1);
    expect(reducer.event({ id: `${runId}/${seq}/0`, runId, at, type, data })?.isInherited, `${type} at ${at}`).toBe(
      inherited,
    );
  }
});

test("all states of the pipeline are there from the first record on, as they were declared", async () => {
  const { live, runId } = await play(SMOOTH);
  const [first, ...others] = await readRecords(live.host, runId);
  const seen = viewOf(runId, first === undefined ? [] : [first]);
  expect(seen.initial).toBe("plan");
  expect(seen.states.map(({ id, kind, turnCap }) => [id, kind, turnCap])).toEqual(
    ["plan", "execute", "test", "lint", "review"].map((id) => [id, "agent", 6]),
  );
  expect(viewOf(runId, [...(first === undefined ? [] : [first]), ...others]).states).toEqual(seen.states);
  // Runs of older versions tell their states as they come to them.
  const old = first?.events.map((event) => ({ ...event, data: { ...event.data, shape: null } })) ?? [];
  const older = viewOf(runId, first === undefined ? [] : [{ ...first, events: old }, ...others]);
  expect(older.states.map(({ id }) => id)).toEqual(["plan", "execute", "test", "lint", "review"]);
});

test("executions stand in the order they began, siblings in declared order before their join", async () => {
  const { live, runId } = await play(TROUBLED);
  const seen = await view(live.host, runId);
  expect(seen.executions.map(({ executionId, attempt, fork }) => [executionId, attempt, fork?.join])).toEqual([
    ["plan#1", 1, undefined],
    ["execute#1", 2, undefined],
    ["test#1", 1, "review"],
    ["lint#1", 1, "review"],
    ["review#1", 1, undefined],
    ["execute#2", 1, undefined],
    ["test#2", 1, "review"],
    ["lint#2", 1, "review"],
    ["review#2", 1, undefined],
  ]);
  expect(seen.path.map(({ from, choice, to }) => [from, choice, ...to])).toEqual([
    ["plan", "to", "execute"],
    ["execute", "fanOut", "test", "lint"],
    ["review", "to", "execute"],
    ["execute", "fanOut", "test", "lint"],
    ["review", "done"],
  ]);
  expect(seen.forks).toMatchObject([
    { fork: "fan-1", siblings: ["test", "lint"], join: "review", joined: true },
    { fork: "fan-2", joined: true },
  ]);
});

const said = (item: TranscriptItem): string => ("text" in item ? item.text : item.kind);

test("a transcript has what was said, called and answered, in order, with its attempts", async () => {
  const { live, runId } = await play(TROUBLED);
  const seen = await view(live.host, runId);
  const lines = [...(seen.executions[1]?.items ?? [])].map((item) =>
    item.kind === "call" ? `${item.tool} ${item.state}${item.why === undefined ? "" : ` (${item.why})`}` : said(item),
  );
  expect(lines).toEqual([
    "execute",
    "submit_work ok",
    "sent back: only half of it",
    "execute · attempt 2",
    expect.stringMatching(/^submit_work error \(\$\.summary: /),
    "Nothing to call.",
    "submit_work ok",
    expect.stringContaining("completed: 4 turns"),
    "next: test, lint in parallel",
  ]);
  const planned = [...(seen.executions[0]?.items ?? [])].map((item) => (item.kind === "call" ? item.tool : said(item)));
  expect(planned[1]).toMatch(/^retrying: HTTP 503: busy/);
});

test.each([
  ["approve", "✔ change", / · approved by \S+/g, "ok"],
  ["deny", "⊘ change", /denied by \S+: not now$/gm, "refused"],
])("who answered a call by %s is shown at the call, and nowhere else", async (answer, head, who, state) => {
  const { live, runId } = await play(ASKING, answer);
  const items = [...((await view(live.host, runId)).executions[1]?.items ?? [])];
  const at = items.findIndex((item) => item.kind === "call" && item.tool === "change");
  expect(items[at]).toMatchObject({ state });
  const said = items.slice(at).map((item) => textOf(transcriptLines(item, { width: 120, folded: true })));
  expect(said[0]).toMatch(new RegExp(`^${head} `));
  expect(said.join("\n").match(who)).toHaveLength(1);
  expect(said.join("\n")).not.toContain("answered");
});

test("a call that asks waits for a person, with the reason, until it is answered", async () => {
  const { live, handle } = begin(ASKING);
  const { runId } = handle;
  await eventually(async () => (await live.host.requests(runId).catch(() => [])).length > 0);
  const asking = await view(live.host, runId);
  expect(asking.status).toBe("waiting");
  expect(asking.requests).toMatchObject([{ runId, kind: "grantStageTool", body: { tool: "change" } }]);
  const execute = asking.executions[1];
  expect(execute?.status).toBe("waiting");
  expect([...(execute?.items ?? [])].slice(-3)).toMatchObject([
    { kind: "call", tool: "look", state: "ok", output: "line one\nline two" },
    { kind: "call", tool: "change", state: "asking", why: expect.stringContaining("change") },
    { kind: "call", tool: "look", state: "proposed" },
  ]);
  // What can still change is not shown.
  expect(asking.log.at(asking.log.length - 1)).toMatchObject({ item: { tool: "look", state: "ok" } });
  await answerAll(live, runId, { kind: "approve" });
  await eventually(async () => (await live.host.requests(runId)).length === 2);
  const siblings = await view(live.host, runId);
  expect(siblings.requests.map((request) => request.runId)).toEqual([`${runId}/fan-1/test`, `${runId}/fan-1/lint`]);
  expect(siblings.executions.slice(2).map(({ stateId, status }) => [stateId, status])).toEqual([
    ["test", "waiting"],
    ["lint", "waiting"],
  ]);
  expect(siblings.executions[1]?.items.at(3)).toMatchObject({ tool: "change", state: "ok", output: "changed" });
  await answerAll(live, runId, { kind: "deny", reason: "not now" });
  await handle;
  const ended = await view(live.host, runId);
  expect(ended.executions[2]?.items.at(1)).toMatchObject({
    tool: "change",
    state: "refused",
    why: expect.stringContaining("denied by ann: not now"),
  });
});

test("what a person said to a run stands where its model heard it", async () => {
  const { live, handle } = begin(ASKING);
  const { runId } = handle;
  await eventually(async () => (await live.host.requests(runId).catch(() => [])).length > 0);
  await sendMessage(live.host, runId, "mind the \u001b[31mtests", "ann");
  await answerAll(live, runId, { kind: "deny" });
  await eventually(async () => (await live.host.requests(runId)).length === 2);
  const items = [...((await view(live.host, runId)).executions[1]?.items ?? [])];
  const heard = items.findIndex(({ kind }) => kind === "message");
  expect(items[heard]).toMatchObject({ kind: "message", by: "ann", turn: 2 });
  expect(items[heard + 1]).toMatchObject({ kind: "call", tool: "submit_work" });
  await handle.cancel("enough");
});

test("a request that was answered and not read yet cannot be answered again", async () => {
  const { live, handle } = begin(ASKING);
  const { runId } = handle;
  await eventually(async () => (await live.host.requests(runId).catch(() => [])).length > 0);
  const reducer = reduceRun(runId);
  for (const record of await readRecords(live.host, runId)) reducer.record(record);
  reducer.requests(await live.host.requests(runId));
  expect(reducer.view()).toMatchObject({ status: "waiting", requests: [{ runId }] });
  reducer.requests([]);
  expect(reducer.view()).toMatchObject({ status: "running", requests: [] });
  expect(reducer.view().executions[1]?.status).toBe("running");
  await handle.cancel("enough");
});

test("a run that is cancelled while it asks leaves nothing open, and says what was not run", async () => {
  const { live, handle } = begin(ASKING);
  const { runId } = handle;
  await eventually(async () => (await live.host.requests(runId).catch(() => [])).length > 0);
  await handle.cancel("enough");
  const seen = await view(live.host, runId);
  expect(seen).toMatchObject({ status: "cancelled", requests: [], error: { code: "cancelled", message: "enough" } });
  expect(seen.executions[1]).toMatchObject({ status: "cancelled" });
  const calls = [...(seen.executions[1]?.items ?? [])].filter((item) => item.kind === "call");
  expect(calls.map(({ tool, state }) => `${tool} ${state}`)).toEqual(["look ok", "change refused", "look abandoned"]);
});

test("a run no one owned is cancelled as it stands: its executions are cut off", async () => {
  const { live, handle } = begin(ASKING);
  const { runId } = handle;
  await eventually(async () => (await live.host.requests(runId).catch(() => [])).length > 0);
  await handle.suspend();
  await handle;
  const suspended = await view(live.host, runId);
  expect(suspended).toMatchObject({ status: "suspended", requests: [{ kind: "grantStageTool" }] });
  expect(await live.host.cancel(runId, "not wanted", "ann")).toBe("cancelled");
  const seen = await view(live.host, runId);
  expect(seen).toMatchObject({ status: "cancelled", requests: [], error: { message: "not wanted" } });
  expect(seen.executions[1]).toMatchObject({ status: "cancelled", fault: "not wanted" });
  expect([...(seen.executions[1]?.items ?? [])].every((item) => item.kind !== "call" || item.state !== "asking")).toBe(
    true,
  );
});

test("a run continues in its view where it was suspended", async () => {
  const { live, handle } = begin(ASKING);
  const { runId } = handle;
  await eventually(async () => (await live.host.requests(runId).catch(() => [])).length > 0);
  const before = await readRecords(live.host, runId);
  await handle.suspend();
  await handle;
  const reducer = reduceRun(runId);
  for (const record of await readRecords(live.host, runId)) reducer.record(record);
  expect(reducer.view().status).toBe("suspended");
  const again = live.resume(ship, runId);
  const over = { yes: false };
  const result = again.then(() => {
    over.yes = true;
  });
  await eventually(async () => {
    await answerAll(live, runId, { kind: "approve" });
    return over.yes;
  });
  await result;
  const all = await readRecords(live.host, runId);
  for (const record of all) reducer.record(record);
  expect(reducer.view()).toMatchObject({ status: "completed", denied: [] });
  expect(plain(reducer.view())).toEqual(plain(viewOf(runId, all)));
  expect(all.length).toBeGreaterThan(before.length);
  expect([...reducer.view().log].map(({ item }) => ("text" in item ? item.text : item.kind))).toContain("resumed");
});

test("text streams into its turn and is gone when the turn is recorded, with the run, and with its process", async () => {
  const { live, runId } = await play(SMOOTH);
  const records = await readRecords(live.host, runId);
  const opened = records.findIndex(({ events: all }) => all.some(({ type }) => type === "turn.started"));
  const reducer = reduceRun(runId);
  const chunk = (text: string, place: object = {}, channel = "text") => ({
    runId,
    channel,
    chunk: { executionId: "plan#1", attempt: 1, turn: 1, try: 1, text, ...place },
  });
  reducer.live(chunk("# Pl"));
  for (const record of records.slice(0, opened + 1)) reducer.record(record);
  reducer.live(chunk("an", {}, "text"));
  reducer.live(chunk("hm", {}, "reasoning"));
  reducer.live({ runId, channel: "telemetry", chunk: { executionId: "plan#1", text: "x" } });
  const shown = () => reducer.view().executions[0]?.live;
  expect(shown()).toEqual({ turn: 1, text: "# Plan", reasoning: "hm", cut: 0 });
  // The call is made again: what the first try said does not count.
  reducer.live(chunk("Again", { try: 2 }));
  expect(shown()).toMatchObject({ text: "Again", reasoning: "" });
  reducer.live(chunk("late", { try: 1 }));
  expect(shown()).toMatchObject({ text: "Again" });
  reducer.setRunning(false);
  expect(shown()).toBeUndefined();
  expect(reducer.view().executions[0]?.status).toBe("suspended");
  reducer.setRunning(true);
  reducer.live(chunk("Once more", { try: 2 }));
  expect(shown()).toMatchObject({ text: "Once more" });
  const said = records.findIndex(({ entries }) => entries.length > 0);
  for (const record of records.slice(opened + 1, said + 1)) reducer.record(record);
  expect(shown()).toBeUndefined();
  reducer.live(chunk("a piece that comes late", { try: 2 }));
  expect(shown()).toBeUndefined();
  for (const record of records.slice(said + 1)) reducer.record(record);
  expect(shown()).toBeUndefined();
  reducer.live(chunk("too late", { turn: 9 }));
  expect(plain(reducer.view())).toEqual(plain(viewOf(runId, records)));
});

test("of a text that streams without end only the last part is kept", async () => {
  const { live, runId } = await play(SMOOTH);
  const reducer = reduceRun(runId);
  for (const record of (await readRecords(live.host, runId)).slice(0, 3)) reducer.record(record);
  const text = "0123456789".repeat(2_000);
  for (let times = 0; times < 50; times += 1) {
    reducer.live({ runId, channel: "text", chunk: { executionId: "plan#1", attempt: 1, turn: 1, try: 1, text } });
  }
  const shown = reducer.view().executions[0]?.live;
  expect(shown?.text.length).toBeLessThan(100_000);
  expect((shown?.text.length ?? 0) + (shown?.cut ?? 0)).toBe(1_000_000);
});

test("the view is the same however its records are cut into pieces, delivered twice, or mixed between runs", async () => {
  const { live, runId } = await play(TROUBLED);
  const records = await readRecords(live.host, runId);
  const whole = plain(viewOf(runId, records));
  fc.assert(
    fc.property(fc.nat(records.length), fc.nat(records.length), (cut, from) => {
      const reducer = reduceRun(runId);
      for (const record of records.slice(0, cut)) reducer.record(record);
      reducer.view();
      for (const record of records.slice(Math.min(from, cut))) reducer.record(record);
      expect(plain(reducer.view())).toEqual(whole);
    }),
    { numRuns: 30 },
  );
  fc.assert(
    fc.property(fc.infiniteStream(fc.nat()), (choices) => {
      const queues = [...Map.groupBy(records, (record) => record.runId).values()].map((own) => [...own]);
      const mixed: ReadRecord[] = [];
      while (queues.some((queue) => queue.length > 0)) {
        const open = queues.filter((queue) => queue.length > 0);
        const next = open[(choices.next().value ?? 0) % open.length]?.shift();
        if (next !== undefined) mixed.push(next);
      }
      expect(unordered(viewOf(runId, mixed))).toEqual(unordered(viewOf(runId, records)));
    }),
    { numRuns: 30 },
  );
});

test("what did not change stays the same object, and what was settled never changes", async () => {
  const { live, runId } = await play(TROUBLED);
  const reducer = reduceRun(runId);
  let before = reducer.view();
  const settled: { list: Iterable<unknown>; at: number; was: string }[] = [];
  for (const record of await readRecords(live.host, runId)) {
    reducer.record(record);
    const now = reducer.view();
    expect(reducer.view()).toBe(now);
    for (const execution of now.executions) {
      const earlier = before.executions.find(({ key }) => key === execution.key);
      const touched =
        record.runId === execution.runId && record.events.some((event) => event.executionId === execution.executionId);
      if (
        earlier !== undefined &&
        !touched &&
        record.entries.length === 0 &&
        !record.events.some(({ type }) => type === "fanOut.started" || type === "run.finished")
      )
        expect(execution).toBe(earlier);
      const { items } = execution;
      settled.push({ list: items, at: items.settled, was: JSON.stringify([...items].slice(0, items.settled)) });
    }
    before = now;
  }
  for (const { list, at, was } of settled) expect(JSON.stringify([...list].slice(0, at))).toBe(was);
});

test("a damaged or invented record changes what it can and breaks nothing", () => {
  const reducer = reduceRun("r1");
  const hostile: ReadRecord[] = [
    {
      runId: "r1",
      seq: 0,
      events: [
        {
          id: "r1/0/0",
          runId: "r1",
          at: 1,
          type: "run.started",
          data: { pipeline: 7, models: "x", shape: { states: [{ id: "\u001b[31m", kind: 3 }, null] } },
        },
      ],
      entries: [],
    },
    {
      runId: "r1/fan-1/x",
      seq: 4,
      events: [{ id: "r1/fan-1/x/4/0", runId: "r1/fan-1/x", at: 1, type: "call.finished", executionId: "x", data: {} }],
      entries: [
        {
          runId: "r1/fan-1/x",
          executionId: "x",
          attempt: 1,
          turn: 1,
          kind: "result",
          callId: "none",
          ok: true,
          output: 1,
        },
      ],
    },
    {
      runId: "r1",
      seq: 1,
      events: [
        { id: "r1/1/0", runId: "r1", at: 1, type: "fanOut.started", data: { siblings: [1, null], fork: {} } },
        { id: "r1/1/1", runId: "r1", at: 1, type: "route.decided", executionId: "y#1", data: { choice: "nowhere" } },
      ],
      entries: [],
    },
    {
      runId: "r1",
      seq: 2,
      events: [{ id: "r1/2/0", runId: "r1", at: 1, type: "run.finished", data: {} }],
      entries: [],
    },
  ];
  for (const record of hostile) reducer.record(record);
  expect(reducer.view()).toMatchObject({ status: "failed", error: { code: "failed" } });
});
