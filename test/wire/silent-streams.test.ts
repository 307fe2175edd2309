import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import { done, pipeline, stage } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { callModel, LONGEST_SILENCE_MS, type ModelOutcome } from "../../packages/stages/src/agent/model-call.ts";
import { type HandClock, handClock } from "../support/hand-clock.ts";
import { PROVIDERS, type ProviderName, wire } from "../support/providers.ts";
import { dataOf, eventually, quiet } from "../support/run-kit.ts";
import { type ServerReply, sse } from "../support/sse-server.ts";
import { turned, wiredSession } from "../support/wired-session.ts";

// A service that sends signs of life and nothing of an answer would hold a call, and with it a run, for ever.

const prompt: LanguageModelV4Prompt = [{ role: "user", content: [{ type: "text", text: "go" }] }];

const comments = [": ping\n\n", ":\n\n", "\n\n", "event: ping\n\n", "id: 7\n\n"];
const chat = { id: "c", object: "chat.completion.chunk", created: 1, model: "m" };
const emptyChunks = [
  sse({ ...chat, choices: [] }),
  sse({ ...chat, choices: [{ index: 0, delta: {}, finish_reason: null }] }),
  sse({ ...chat, choices: [{ index: 0, delta: { content: "" }, finish_reason: null }] }),
];
/** What each service sends, or could send, while it has nothing to say. */
const PINGS: Readonly<Record<ProviderName, readonly string[]>> = {
  anthropic: [...comments, sse({ type: "ping" }, "ping")],
  openai: [...comments, sse({ type: "keepalive", sequence_number: 1 }, "keepalive")],
  "openai-chat": [...comments, ...emptyChunks],
  google: [...comments, sse({ candidates: [{ index: 0, content: { role: "model", parts: [] } }] })],
  gateway: [...comments, sse({ type: "raw", rawValue: {} }), sse({ type: "text-delta", id: "t", delta: "" })],
  ollama: [...comments, ...emptyChunks],
  "openai-compatible": [...comments, ...emptyChunks],
};

/** An answer that is interrupted by pings, when the test says so, and goes on when the test says so. */
function interrupted(name: ProviderName, before: string) {
  const pings = Array.from({ length: 5 }, () => PINGS[name]).flat();
  const begin = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  let first = 0;
  let pinged = false;
  const reply: ServerReply = {
    text: "one two six",
    events: (usual) => {
      first = usual.findIndex((event) => event.includes(before));
      return [...usual.slice(0, first), ...pings, ...usual.slice(first)];
    },
    pace: (event) => {
      if (event === first) return begin.promise;
      if (event !== first + pings.length) return undefined;
      pinged = true;
      return end.promise;
    },
  };
  const ping = async (): Promise<void> => {
    begin.resolve();
    await eventually(() => pinged);
    await quiet();
  };
  return { reply, ping, goOn: () => end.resolve() };
}

/** A call under way, and what has come of it by now. */
async function underWay(name: ProviderName, reply: ServerReply, clock: HandClock) {
  const to = await wire(name, [reply], clock);
  const heard: string[] = [];
  let outcome: ModelOutcome | undefined;
  const { signal } = new AbortController();
  const calling = callModel(
    { model: to.model, prompt, tools: [], signal, onText: (delta) => void heard.push(delta) },
    clock,
  );
  calling.then(
    (ended) => {
      outcome = ended;
    },
    () => undefined,
  );
  return { to, heard, calling, outcome: () => outcome };
}

describe.each(PROVIDERS)("a stream of %s that only pings", (name) => {
  const late = { kind: "transient", code: "timeout" };

  test.each([
    ["from the beginning", ""],
    ["in the middle of an answer", "two"],
  ])("%s is given up after ten minutes, and its connection is closed", async (_when, before) => {
    const clock = handClock();
    const { reply, ping, goOn } = interrupted(name, before);
    const { to, heard, outcome } = await underWay(name, reply, clock);
    await using _server = to;
    await eventually(() => to.server.requests.length === 1 && (before === "" || heard.length > 0));
    clock.turn(LONGEST_SILENCE_MS - 1);
    await ping();
    expect(outcome()).toBeUndefined();
    clock.turn(1);
    await eventually(() => outcome() !== undefined);
    expect(outcome()).toMatchObject({ ok: false, error: { ...late, message: expect.stringContaining("10 minutes") } });
    await to.server.requests[0]?.disconnected;
    expect(clock.waiting()).toBe(0);
    goOn();
  });

  test("and then continues is heard to its end, however long that takes", async () => {
    const clock = handClock();
    const { reply, ping, goOn } = interrupted(name, "two");
    const { to, heard, calling } = await underWay(name, reply, clock);
    await using _server = to;
    await eventually(() => heard.length > 0);
    clock.turn(LONGEST_SILENCE_MS - 1);
    await ping();
    goOn();
    expect(await calling).toMatchObject({ ok: true, text: "one two six" });
    expect(clock.waiting()).toBe(0);
  });
});

test("each piece of an answer gives the next one all of the time again", async () => {
  const clock = handClock();
  const pieces = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let events: readonly string[] = [];
  const reply: ServerReply = {
    text: "one two six",
    events: (usual) => {
      events = usual;
      return usual;
    },
    pace: (event) => {
      if (events[event]?.includes("two") === true) return pieces[0]?.promise;
      return events[event]?.includes("six") === true ? pieces[1]?.promise : undefined;
    },
  };
  const { to, heard, calling } = await underWay("anthropic", reply, clock);
  await using _server = to;
  for (const [at, piece] of pieces.entries()) {
    await eventually(() => heard.length === at + 1);
    clock.turn(LONGEST_SILENCE_MS - 1);
    piece.resolve();
  }
  expect(await calling).toMatchObject({ ok: true, text: "one two six" });
});

test("a turn whose stream fell silent is asked again, and the run continues", async () => {
  const work = pipeline({
    id: "work",
    input: z.object({}),
    stages: {
      work: stage({
        prompt: "Do it.",
        allowedTools: [],
        completionTool: "finish",
        completionSchema: z.object({ text: z.string() }),
        turnCap: 2,
      }),
    },
    initial: "work",
    next: { work: ({ output }) => done(output.text) },
  });
  const clock = handClock();
  const { reply, ping } = interrupted("anthropic", "two");
  const finish: ServerReply = { calls: [{ name: "finish", input: { text: "done" } }] };
  const { live, server } = await wiredSession("anthropic", [reply, finish], { clock });
  const handle = live.start(work, {});
  const heard: unknown[] = [];
  handle.onLive((chunk) => void heard.push(chunk));
  const ended = turned(live, clock, handle);
  await eventually(() => heard.length > 0);
  await ping();
  clock.turn(LONGEST_SILENCE_MS);
  const { result, waits, events } = await ended;
  expect(result).toMatchObject({ status: "completed", output: "done" });
  expect(waits).toEqual([1_000]);
  expect(dataOf(events, "model.retried")).toMatchObject([{ code: "timeout" }]);
  expect(server.requests).toHaveLength(2);
});
