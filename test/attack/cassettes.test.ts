import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { defineTool, done, type Json, pipeline, stage } from "@sluice/core";
import { externalAgents } from "@sluice/gateway";
import { type ModelTraffic, playbackTraffic, recordTraffic } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type Scene, scene } from "../support/attack.ts";
import { handClock } from "../support/hand-clock.ts";
import { eventsOf, session, type TestSessionOptions } from "../support/run-kit.ts";
import { finish as finished, modelOf, part } from "../support/stream-model.ts";

const KEY = "a1B2c3D4e5F6g7H8i9J0";

function work(allowedTools: readonly string[] | undefined, turnCap = 3) {
  return pipeline({
    id: "work",
    input: z.object({ task: z.string() }),
    stages: {
      work: stage({
        prompt: "Do it.",
        ...(allowedTools === undefined ? {} : { allowedTools }),
        completionTool: "finish",
        completionSchema: z.object({ text: z.string() }),
        turnCap,
      }),
    },
    initial: "work",
    next: { work: ({ output }) => done(output.text) },
  });
}

/** A cassette as a person could write it by hand. */
function forged(place: Scene, turns: readonly (readonly Json[])[], more: Readonly<Record<string, Json>> = {}): string {
  const request = { digest: "", from: 0, messages: [], tools: [], settings: {} };
  const lines = turns.map((parts, turn) => ({
    ...{ stage: "work", turn, attempt: 1, model: "anthropic/claude-sonnet-4-5", call: "stream", request, opened: 0 },
    ...{ parts: parts.map((one) => [0, one]), end: "done", ms: 0, ...more },
  }));
  const file = join(place.outer, "beside", "forged.jsonl");
  const text = [{ sluiceCassette: 1 }, ...lines].map((line) => `${JSON.stringify(line)}\n`).join("");
  // JSON.stringify leaves this one out.
  writeFileSync(file, text.replaceAll('"PROTO"', '"__proto__"'));
  return file;
}
const toolCall = (toolName: string, input: Json): Json => ({
  type: "tool-call",
  toolCallId: "c1",
  toolName,
  input: typeof input === "string" ? input : JSON.stringify(input),
});
const usage = { inputTokens: { total: 5 }, outputTokens: { total: 5 } };
const end: Json = { type: "finish", finishReason: { unified: "tool-calls", raw: "tool_use" }, usage };
const finishes: readonly Json[] = [toolCall("finish", { text: "done" }), end];

async function replayed(
  place: Scene,
  file: string,
  allowedTools: readonly string[] | undefined,
  within: (traffic: ModelTraffic) => ModelTraffic = (it) => it,
) {
  const traffic = within(playbackTraffic(file, { match: "sequence" }));
  const clock = handClock();
  const live = session({ traffic, cwd: place.root, env: { PATH: process.env.PATH }, mode: "yolo", clock });
  const running = live.run(work(allowedTools), { task: "x" });
  let over = false;
  const ended = (): void => {
    over = true;
  };
  running.then(ended, ended);
  for (; !over; await setImmediate()) clock.turn(60_000);
  const result = await running;
  return { result, live, events: await eventsOf(live.host, result.runId) };
}

describe("what a cassette says passes the same gate", () => {
  test.each([
    ["a tool outside the envelope", toolCall("Write", { file_path: "a.txt", content: "evil" }), ["Read"]],
    ["a path outside the workspace", toolCall("Write", { file_path: "../outside.txt", content: "evil" }), undefined],
    ["a place of this machine", toolCall("Write", { file_path: "{{sluice.tmp}}/PWN", content: "evil" }), undefined],
    [
      "the config",
      toolCall("Write", { file_path: "{{sluice.workspace}}/sluice.config.ts", content: "evil" }),
      undefined,
    ],
    ["a command outside the envelope", toolCall("Bash", { command: "touch PWN" }), ["Bash(ls)"]],
    ["an answer of its own", toolCall("Bash", { command: "sluice answer {{sluice.run}} r approve" }), undefined],
  ])("%s is denied", async (_what, call, allowedTools) => {
    const place = scene();
    const before = ["a.txt", "../outside.txt", "sluice.config.ts"].map((name) => place.text(name));
    const { result } = await replayed(place, forged(place, [[call, end], finishes]), allowedTools);
    expect(result).toMatchObject({ status: "completed" });
    expect(result.denied).toHaveLength(1);
    expect(["a.txt", "../outside.txt", "sluice.config.ts"].map((name) => place.text(name))).toEqual(before);
    expect(existsSync(place.path("PWN"))).toBe(false);
  });

  test.each<[how: string, within: ((traffic: ModelTraffic) => ModelTraffic) | undefined]>([
    ["alone", undefined],
    ["beside external agents", (traffic) => externalAgents({ traffic })],
  ])("a cassette is not written by the run that plays it %s, by whatever path", async (_, within) => {
    const place = scene();
    mkdirSync(place.path("cassettes"));
    symlinkSync("cassettes", place.path("link"));
    const text = readFileSync(
      forged(place, [[toolCall("Write", { file_path: "cassettes/c.jsonl", content: "evil" }), end], finishes]),
      "utf8",
    );
    const file = place.put("cassettes/c.jsonl", text);
    const { result } = await replayed(place, place.path("link/c.jsonl"), undefined, within);
    expect(result.denied).toMatchObject([{ tool: "Write", cause: "limit" }]);
    expect(readFileSync(file, "utf8")).toBe(text);
  });
});

describe("a cassette that was tampered with ends its run in a usual way", () => {
  const deep = (levels: number): Json => Array.from({ length: levels }).reduce<Json>((inner) => ({ a: inner }), 1);
  const bodies: Readonly<Record<string, readonly (readonly Json[])[]>> = {
    "parts that are no parts": [[null, 7, "x", [], {}, { type: 7 }, { type: "nothing known" }, end]],
    "prototype keys": [
      [
        { type: "text-start", id: "PROTO" },
        { type: "PROTO", PROTO: { polluted: true } },
        { PROTO: { polluted: true }, type: "text-end", id: "1" },
        ...finishes,
      ],
    ],
    "tags that hold something else": [[{ $date: 7 }, end]],
    "tags of no known kind": [[{ $code: "process.exit(1)" }, end]],
    "a date that is none": [[{ type: "response-metadata", timestamp: { $date: "never" }, id: "x" }, ...finishes]],
    "usage beyond all bounds": [
      [
        toolCall("finish", { text: "done" }),
        {
          type: "finish",
          finishReason: { unified: "stop" },
          usage: { inputTokens: { total: { $number: "Infinity" } }, outputTokens: { total: { $number: "NaN" } } },
        },
      ],
    ],
    "negative usage": [
      [
        toolCall("finish", { text: "done" }),
        {
          type: "finish",
          finishReason: { unified: "stop" },
          usage: { inputTokens: { total: -1e300 }, outputTokens: { total: -1 } },
        },
      ],
    ],
    "no finish": [[toolCall("finish", { text: "done" })]],
    nothing: [[]],
    "a call that goes deep": [[toolCall("finish", `${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`), end]],
    "metadata that goes deep": [[{ type: "text-start", id: "1", providerMetadata: deep(150) }, ...finishes]],
    "an error with members of every kind": [
      [
        {
          type: "error",
          error: {
            $error: {
              message: "x",
              PROTO: { a: 1 },
              toString: 1,
              name: {},
              stack: [],
              cause: { cause: {} },
              statusCode: "x",
              retryAfterMs: -1,
            },
          },
        },
      ],
    ],
  };
  test.each(Object.keys(bodies))("%s", async (what) => {
    const place = scene();
    const { result, live, events } = await replayed(place, forged(place, bodies[what] ?? []), undefined);
    expect(["completed", "failed"]).toContain(result.status);
    expect(events.at(-1)?.type).toBe("run.finished");
    expect("polluted" in {}).toBe(false);
    const { usage: used } = result;
    for (const tokens of [used.inputTokens, used.outputTokens])
      expect(Number.isSafeInteger(tokens) && tokens >= 0).toBe(true);
    expect((await live.host.journal(result.runId)).length).toBe(1);
  });

  test.each([
    ["errors with a prototype of their own", { end: "failed", error: { $error: { message: "x", PROTO: null } } }],
    [
      "errors of ours that are none",
      { end: "failed", error: { $error: { message: "x", sluice: "Host", code: "PROTO" } } },
    ],
    ["errors that are no errors", { end: "failed", error: 7 }],
    ["no error", { end: "failed" }],
  ])("%s", async (_what, more) => {
    const place = scene();
    const { result, events } = await replayed(place, forged(place, [[]], more), undefined);
    expect(result.status).toBe("failed");
    expect(events.at(-1)?.type).toBe("run.finished");
  });

  test.each([
    ["a header of prototype keys", '{"__proto__":{"sluiceCassette":1}}\n'],
    ["a number where a stage stands", '{"sluiceCassette":1}\n{"stage":1}\n'],
    ["brackets without end", `{"sluiceCassette":1}\n${"[".repeat(200_000)}\n`],
    ["nothing", ""],
    ["bytes that are no text", "\u0000\uffff\n"],
  ])("%s", async (_what, text) => {
    const place = scene();
    const file = place.put("c.jsonl", text);
    await expect(replayed(place, file, undefined)).rejects.toMatchObject({ code: "cassette_damaged" });
  });
});

describe("a secret stands in a cassette in no part of it", () => {
  async function recorded(place: Scene, parts: Parameters<typeof modelOf>[0], options: TestSessionOptions = {}) {
    const file = join(place.outer, "beside", "new.jsonl");
    const inner = modelOf(parts);
    const live = session({
      model: { id: `anthropic/${KEY}`, secrets: [], at: () => inner },
      traffic: recordTraffic(file),
      cwd: place.root,
      env: { PATH: process.env.PATH, THE_API_KEY: KEY, HOME: "/home/someone" },
      ...options,
    });
    await live.run(work(["*"], 1), { task: `say ${KEY}` });
    return readFileSync(file, "utf8");
  }

  test("names, descriptions and schemas of tools", async () => {
    const place = scene();
    const telling = (what: string) =>
      defineTool({
        name: what,
        description: `its key is ${KEY}`,
        input: z.object({ [KEY]: z.string() }),
        effect: "read",
        subjects: () => [],
        execute: async () => ({ ok: true, output: KEY }),
      });
    const text = await recorded(place, [finished("stop")], { tools: [telling(`mcp__mine__${KEY}`)] });
    expect(text).not.toContain(KEY);
  });

  test.each([
    [
      "ids",
      [
        part({ type: "text-start", id: KEY }),
        part({ type: "text-delta", id: KEY, delta: "x" }),
        part({ type: "text-end", id: KEY }),
      ],
    ],
    ["metadata", [part({ type: "text-start", id: "1", providerMetadata: { [KEY]: { [KEY]: [KEY] } } })]],
    ["names and ids of calls", [part({ type: "tool-call", toolCallId: KEY, toolName: KEY, input: "{}" })]],
    ["warnings", [part({ type: "stream-start", warnings: [{ type: "other", message: KEY }] })]],
    ["the model's name", [part({ type: "response-metadata", id: KEY, modelId: KEY })]],
    ["raw chunks", [part({ type: "raw", rawValue: { [KEY]: KEY } })]],
    ["sources and files", [part({ type: "source", sourceType: "url", id: "1", url: `https://x/?${KEY}`, title: KEY })]],
  ])("%s", async (_what, parts) => {
    expect(await recorded(scene(), [...parts, finished("stop")])).not.toContain(KEY);
  });
});
