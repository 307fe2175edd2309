import { chmodSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  APICallError,
  type LanguageModelV4,
  type LanguageModelV4CallOptions,
  type LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import { SluiceError } from "@sluice/core";
import {
  type PlaybackModelOptions,
  playbackModel,
  type RecordModelOptions,
  recordModel,
  scriptedModel,
} from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { callModel, LONGEST_SILENCE_MS } from "../../packages/stages/src/agent/model-call.ts";
import { failureOf } from "../../packages/stages/src/models/reply/failure.ts";
import { handClock } from "../support/hand-clock.ts";
import { quiet } from "../support/run-kit.ts";
import { finish, modelFrom, modelOf, part } from "../support/stream-model.ts";
import { tempFolder } from "../support/tools.ts";

const at = { stage: "plan", turn: 0, attempt: 1 };
const env = { HOME: "/home/someone", TMPDIR: "/tmp" };

function ask(text = "hello", more: Partial<LanguageModelV4CallOptions> = {}): LanguageModelV4CallOptions {
  return {
    prompt: [
      { role: "system", content: "Plan." },
      { role: "user", content: [{ type: "text", text }] },
    ],
    ...more,
  };
}

async function partsOf(model: LanguageModelV4, call = ask()): Promise<LanguageModelV4StreamPart[]> {
  const { stream } = await model.doStream(call);
  const parts: LanguageModelV4StreamPart[] = [];
  for await (const each of stream) parts.push(each);
  return parts;
}

const said = (text: string): readonly LanguageModelV4StreamPart[] => [
  part({ type: "text-start", id: "1" }),
  ...Array.from(text.match(/.{1,4}/gsu) ?? []).map((delta) => part({ type: "text-delta", id: "1", delta })),
  part({ type: "text-end", id: "1" }),
  finish("stop"),
];

interface Tape {
  readonly file: string;
  readonly lines: () => readonly string[];
  /** The exchange in a line, from 0. */
  readonly exchange: (index: number) => Record<string, never>;
}
function tape(): Tape {
  const file = join(tempFolder().root, "calls.jsonl");
  const lines = () => readFileSync(file, "utf8").trimEnd().split("\n");
  return { file, lines, exchange: (index) => JSON.parse(lines()[index + 1] ?? "") };
}

const recording = (model: LanguageModelV4, file: string, options: RecordModelOptions = {}) =>
  recordModel(model, file, { env, cwd: "/", ...options });
const replaying = (file: string, options: PlaybackModelOptions = {}) =>
  playbackModel(file, { env, cwd: "/", ...options });

/** Records one call and hears it again. */
async function roundTrip(parts: readonly LanguageModelV4StreamPart[], call = ask()) {
  const { file, exchange } = tape();
  await partsOf((await recording(modelOf(parts), file)).at(at), call);
  const again = await partsOf((await replaying(file)).at(at), call);
  return { again, exchange: exchange(0) };
}

describe("what a stream carries comes back as it was", () => {
  test("dates, bytes, URLs, errors, odd numbers, and objects that look like ours", async () => {
    const error = Object.assign(new TypeError("bad"), { code: "E_BAD", cause: new Error("deeper") });
    const hostile: unknown = JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1}');
    const values = {
      date: new Date("2026-01-02T03:04:05.678Z"),
      bytes: new Uint8Array([0, 1, 254, 255]),
      url: new URL("https://example.org/a?b=c#d"),
      error,
      nan: Number.NaN,
      infinite: -Infinity,
      zero: -0,
      big: 12345678901234567890n,
      gap: [1, undefined, null],
      looksLikeOurs: [{ $date: "no" }, { $object: { $url: 1 } }, { $a: 1, $b: 2 }],
      surrogate: "half \ud83d of one",
      hostile,
    };
    const { again } = await roundTrip([part({ type: "raw", rawValue: values }), finish("stop")]);
    const [raw] = again;
    expect(raw).toStrictEqual({ type: "raw", rawValue: { ...values, error: expect.any(Error) } });
    const kept: unknown = raw?.type === "raw" ? raw.rawValue : undefined;
    expect(kept).toMatchObject({
      error: { name: "TypeError", message: "bad", code: "E_BAD", cause: { message: "deeper" } },
    });
    expect(Object.getOwnPropertyNames(Object.assign({}, kept) && hostile)).toContain("__proto__");
    expect({}).not.toHaveProperty("polluted");
  });

  test("every chunk by itself, empty ones and halves of a character too", async () => {
    const deltas = ["a", "", "bc", "\ud83d", "\ude00", "\n"];
    const parts = [...deltas.map((delta) => part({ type: "text-delta", id: "1", delta })), finish("stop")];
    expect((await roundTrip(parts)).again).toEqual(parts);
  });

  test("a stream without an end ends early again", async () => {
    const parts = said("cut").slice(0, 2);
    const { again, exchange } = await roundTrip(parts);
    expect(again).toEqual(parts);
    expect(exchange).toMatchObject({ end: "done" });
  });

  test("an answer without a stream", async () => {
    const { file } = tape();
    const model = (
      await recordModel(scriptedModel({ stages: { plan: [{ text: "yes" }] } }), file, { env, cwd: "/" })
    ).at(at);
    const first = await model.doGenerate(ask());
    expect(await (await replaying(file)).at(at).doGenerate(ask())).toEqual(first);
    await expect(partsOf((await replaying(file)).at(at))).rejects.toMatchObject({ code: "cassette_exhausted" });
  });

  test("a part that JSON cannot hold fails the call and says so", async () => {
    const circle: { self?: object } = {};
    circle.self = circle;
    const model = await recording(modelOf([part({ type: "raw", rawValue: circle })]), tape().file);
    await expect(partsOf(model.at(at))).rejects.toMatchObject({ class: "Validation", code: "cassette_part" });
  });
});

describe("a failure", () => {
  const call = new APICallError({
    message: "slow down",
    url: "https://inner.example/v1",
    requestBodyValues: { prompt: "SECRET-PROMPT" },
    statusCode: 429,
    responseHeaders: { "retry-after": "12", "set-cookie": "SECRET-COOKIE" },
    responseBody: "SECRET-BODY",
    data: { error: { type: "rate_limit_error", message: "slow down" } },
  });
  const failing = modelFrom(() => Promise.reject(call));

  test("keeps when a limit ends", async () => {
    const headers = { "x-ratelimit-reset": "3600" };
    const limited = new APICallError({
      message: "too many",
      url: "https://example.com",
      requestBodyValues: {},
      statusCode: 429,
      responseHeaders: headers,
    });
    const { file } = tape();
    const model = modelFrom(() => Promise.reject(limited));
    await expect(partsOf((await recording(model, file)).at(at))).rejects.toBe(limited);
    const kept: unknown = await partsOf((await replaying(file)).at(at)).catch((error: unknown) => error);
    expect(failureOf(kept, false)).toMatchObject({ code: "rate_limited", resetAfterMs: 3_600_000 });
  });

  test("keeps status, kind and retry-after, and none of headers, bodies and addresses", async () => {
    const { file, lines } = tape();
    await expect(partsOf((await recording(failing, file)).at(at))).rejects.toBe(call);
    expect(lines()[1]).not.toMatch(/SECRET|cookie|inner\.example|stack/);
    const thrown: unknown = await partsOf((await replaying(file)).at(at)).catch((error: unknown) => error);
    expect(APICallError.isInstance(thrown)).toBe(true);
    expect(thrown).toMatchObject({
      message: "slow down",
      statusCode: 429,
      isRetryable: true,
      responseHeaders: { "retry-after-ms": "12000" },
      data: { error: { type: "rate_limit_error" } },
    });
  });

  test("of ours stays one of ours", async () => {
    const { file } = tape();
    const model = await recordModel(scriptedModel({ stages: {} }), file, { env, cwd: "/" });
    await expect(partsOf(model.at(at))).rejects.toThrow(SluiceError);
    await expect(partsOf((await replaying(file)).at(at))).rejects.toMatchObject({
      class: "ProviderCapability",
      code: "script_exhausted",
    });
  });

  test("in the middle comes after the parts that came before it", async () => {
    const { file } = tape();
    const breaking = modelFrom(async () => {
      const parts = [...said("ab").slice(0, 2)];
      return new ReadableStream({
        pull: (controller) => {
          const next = parts.shift();
          if (next === undefined) throw Object.assign(new Error("socket"), { cause: { code: "ECONNRESET" } });
          controller.enqueue(next);
        },
      });
    });
    const hear = async (model: LanguageModelV4) => {
      const heard: unknown[] = [];
      const { stream } = await model.doStream(ask());
      try {
        for await (const each of stream) heard.push(each);
      } catch (error) {
        heard.push(error instanceof Error ? { message: error.message, cause: error.cause } : error);
      }
      return heard;
    };
    const first = await hear((await recording(breaking, file)).at(at));
    expect(first).toHaveLength(3);
    expect(await hear((await replaying(file)).at(at))).toEqual(first);
  });
});

describe("a call that is stopped", () => {
  async function stopped(): Promise<Tape> {
    const made = tape();
    const clock = handClock();
    const stop = new AbortController();
    const delta = part({ type: "text-delta", id: "1", delta: "ab" });
    const hanging = modelFrom(async () => new ReadableStream({ start: (controller) => controller.enqueue(delta) }));
    const { stream } = await (await recording(hanging, made.file, { clock }))
      .at(at)
      .doStream(ask("hello", { abortSignal: stop.signal }));
    const reader = stream.getReader();
    await reader.read();
    clock.turn(200);
    stop.abort();
    expect(made.exchange(0)).toMatchObject({ end: "aborted", ms: 200, parts: [[0, { delta: "ab" }]] });
    await reader.cancel();
    expect(made.lines()).toHaveLength(2);
    return made;
  }

  test("is written at once, and stops again when the replay is stopped", async () => {
    const { file } = await stopped();
    const stop = new AbortController();
    const { stream } = await (await replaying(file)).at(at).doStream(ask("hello", { abortSignal: stop.signal }));
    const reader = stream.getReader();
    expect((await reader.read()).value).toMatchObject({ delta: "ab" });
    const next = reader.read();
    stop.abort();
    await expect(next).rejects.toMatchObject({ name: "AbortError" });
  });

  test("that no one stops in the replay fails five seconds later than it was stopped, and says why", async () => {
    const { file } = await stopped();
    const clock = handClock();
    const parts = partsOf((await replaying(file, { clock })).at(at)).catch((error: unknown) => error);
    await quiet();
    clock.turn(5_199);
    await quiet();
    expect(clock.waiting()).toBe(1);
    clock.turn(1);
    expect(await parts).toMatchObject({ code: "cassette_aborted", message: expect.stringContaining("line 2") });
    expect(clock.waiting()).toBe(0);
  });

  test("gives way to the answer that a resumed run got later", async () => {
    const { file } = await stopped();
    await partsOf((await recording(modelOf(said("whole")), file, { existing: "append" })).at(at));
    const replay = await replaying(file);
    expect(await partsOf(replay.at(at))).toEqual(said("whole"));
    expect(replay.unused()).toEqual([]);
  });
});

test("a caller that reads no further is recorded as far as it read", async () => {
  const { file, exchange } = tape();
  const model = await recording(modelOf(said("abcdefgh")), file, { clock: handClock() });
  const { stream } = await model.at(at).doStream(ask());
  const reader = stream.getReader();
  for (const _ of [1, 2]) await reader.read();
  await quiet();
  await reader.cancel();
  expect(exchange(0)).toMatchObject({
    end: "left",
    parts: [
      [0, { type: "text-start" }],
      [0, { delta: "abcd" }],
    ],
  });
  expect(exchange(0).parts).toHaveLength(2);
  expect(await partsOf((await replaying(file)).at(at))).toHaveLength(2);
});

describe("the pace", () => {
  test("is at once when no one asks for one, and as recorded, or faster, by the clock", async () => {
    const { file, exchange } = tape();
    const clock = handClock();
    const slow = modelFrom(async () => {
      clock.turn(100);
      const parts = [...said("ab")];
      return new ReadableStream(
        {
          pull: (controller) => {
            clock.turn(50);
            const next = parts.shift();
            if (next === undefined) controller.close();
            else controller.enqueue(next);
          },
        },
        { highWaterMark: 0 },
      );
    });
    await partsOf((await recording(slow, file, { clock })).at(at));
    expect(exchange(0)).toMatchObject({
      opened: 100,
      ms: 350,
      parts: [
        [150, {}],
        [200, {}],
        [250, {}],
        [300, {}],
      ],
    });

    const still = handClock();
    expect(await partsOf((await replaying(file, { clock: still })).at(at))).toHaveLength(4);
    const turned = handClock();
    const begun = turned.now();
    let over: number | undefined;
    const heard = partsOf((await replaying(file, { clock: turned, speed: 2 })).at(at)).then(() => {
      over = turned.now() - begun;
    });
    while (over === undefined) {
      await quiet();
      turned.turn(1);
    }
    await heard;
    expect(over).toBeGreaterThanOrEqual(175);
    expect(over).toBeLessThanOrEqual(180);
  });
});

describe("the file", () => {
  test("takes the lines of many calls at once, each whole", async () => {
    const { file, lines } = tape();
    const text = "x".repeat(3_000);
    const model = await recording(modelOf(said(text)), file);
    const turns = Array.from({ length: 40 }, (_, turn) => turn);
    await Promise.all(turns.map((turn) => partsOf(model.at({ ...at, turn }))));
    expect(
      lines()
        .slice(1)
        .map((line) => JSON.parse(line).turn)
        .toSorted((a, b) => a - b),
    ).toEqual(turns);
  });

  test("that is cut in the middle of a line says so, with the line, to who reads and to who appends", async () => {
    const { file } = tape();
    const model = await recording(modelOf(said("ab")), file);
    for (const turn of [0, 1]) await partsOf(model.at({ ...at, turn }));
    const whole = readFileSync(file, "utf8");
    writeFileSync(file, whole.slice(0, -40));
    const cut = {
      class: "Validation",
      code: "cassette_damaged",
      message: expect.stringMatching(/line 3 .* is incomplete/),
    };
    await expect(replaying(file)).rejects.toMatchObject(cut);
    await expect(recording(modelOf([]), file, { existing: "append" })).rejects.toMatchObject(cut);
  });

  test.each([
    ["nothing", "", "line 1"],
    ["something else", "hello\n", "line 1"],
    ["a header that is cut", '{"sluiceCassette":1}', "line 1"],
    ["a line that is not JSON", '{"sluiceCassette":1}\n{"stage":\n', "line 2"],
    ["a line that is no exchange", '{"sluiceCassette":1}\n{"stage":"plan"}\n', "line 2 .*turn"],
  ])("that holds %s is refused", async (_what, text, message) => {
    const file = tempFolder().put("calls.jsonl", text);
    await expect(replaying(file)).rejects.toMatchObject({
      code: "cassette_damaged",
      message: expect.stringMatching(message),
    });
  });

  test("of a later version, or that is not there, is refused", async () => {
    const folder = tempFolder();
    const later = folder.put("later.jsonl", '{"sluiceCassette":2}\n');
    await expect(replaying(later)).rejects.toMatchObject({ class: "Validation", code: "cassette_version" });
    await expect(replaying(folder.path("none.jsonl"))).rejects.toMatchObject({
      class: "Validation",
      code: "cassette_not_found",
    });
  });

  test("with a tag that holds something else fails the call that plays it", async () => {
    const { file } = tape();
    await partsOf((await recording(modelOf(said("ab")), file)).at(at));
    writeFileSync(file, readFileSync(file, "utf8").replace('"delta":"ab"', '"delta":{"$bytes":7}'));
    await expect(partsOf((await replaying(file)).at(at))).rejects.toMatchObject({ code: "cassette_damaged" });
  });

  test("keeps the rights its owner gave it, and is the owner's alone at first", async () => {
    const { file } = tape();
    await partsOf((await recording(modelOf(said("ab")), file)).at(at));
    expect(statSync(file).mode & 0o777).toBe(0o600);
    chmodSync(file, 0o644);
    await partsOf((await recording(modelOf(said("ab")), file, { existing: "append" })).at({ ...at, turn: 1 }));
    expect(statSync(file).mode & 0o777).toBe(0o644);
  });

  test("that cannot be written fails the call, and every later one before it costs anything", async () => {
    const { file } = tape();
    let calls = 0;
    const counted = modelFrom(async (call) => {
      calls += 1;
      return (await modelOf(said("ab")).doStream(call)).stream;
    });
    const model = await recording(counted, file);
    rmSync(dirname(file), { recursive: true });
    const unwritable = { class: "Session", code: "cassette_unwritable" };
    await expect(partsOf(model.at(at))).rejects.toMatchObject(unwritable);
    await expect(partsOf(model.at({ ...at, turn: 1 }))).rejects.toMatchObject(unwritable);
    expect(calls).toBe(1);
  });
});

describe("places", () => {
  const folder = () => tempFolder().root;

  test("a path of the workspace becomes one of the workspace it is replayed in, over chunks too", async () => {
    const [here, there] = [folder(), folder()];
    const { file, lines } = tape();
    const prompt = (root: string, runId: string) => ask(`in ${root}, run ${runId}, home /home/someone/x`);
    const recorded = await recording(modelOf(said(`see ${here}/a.ts, ${here}. That is all.`)), file, { cwd: here });
    await partsOf(recorded.at({ ...at, runId: "r7k2m9x4abc" }), prompt(here, "r7k2m9x4abc"));
    expect(lines()[1]).not.toContain(here);
    expect(lines()[1]).not.toMatch(/r7k2m9x4abc|someone/);
    const replay = await replaying(file, { cwd: there, env: { HOME: "/home/someone", TMPDIR: "/tmp" } });
    const parts = await partsOf(replay.at({ ...at, runId: "rzzzzzzzzzz" }), prompt(there, "rzzzzzzzzzz"));
    const text = parts.map((each) => ("delta" in each ? each.delta : "")).join("");
    expect(text).toBe(`see ${there}/a.ts, ${there}. That is all.`);
    // Only pieces that hold a part of the path are others than they were.
    const chunks = said(`see ${here}/a.ts, ${here}. That is all.`);
    expect(parts).toHaveLength(chunks.length);
    for (const place of [0, 1, chunks.length - 3, chunks.length - 1]) expect(parts[place]).toEqual(chunks[place]);
  });

  test("what looks like our own marks in a text comes back as it was; other paths stay what they are", async () => {
    const text = "{{sluice.workspace}} {{sluice.literal}} /home/someoneelse /mnt/home/someone /tmpfile";
    const { again, exchange } = await roundTrip([part({ type: "text-delta", id: "1", delta: text }), finish("stop")]);
    expect(again[0]).toMatchObject({ delta: text });
    expect(JSON.stringify(exchange)).toContain("/home/someoneelse /mnt/home/someone /tmpfile");
  });

  test("what a program says is different each time is left out of the comparison", async () => {
    const { file } = tape();
    const normalize = (text: string): string => text.replaceAll(/\d+ ms/g, "<time>");
    await partsOf((await recording(modelOf(said("ab")), file, { normalize })).at(at), ask("took 31 ms"));
    expect(await partsOf((await replaying(file, { normalize })).at(at), ask("took 44 ms"))).toHaveLength(4);
    await expect(partsOf((await replaying(file)).at(at), ask("took 44 ms"))).rejects.toMatchObject({
      code: "cassette_diverged",
    });
  });
});

describe("strict replay", () => {
  const read = {
    type: "function" as const,
    name: "Read",
    description: "Reads.",
    inputSchema: { type: "object" as const },
  };
  const base = ask("hello", { tools: [read], temperature: 0.2 });
  const longer = [...base.prompt, { role: "user" as const, content: [{ type: "text" as const, text: "more" }] }];

  test.each([
    [
      "a text",
      { prompt: ask("hullo").prompt },
      "message 2 (user) differs in line 1:\n  recorded: hello\n  now:      hullo",
    ],
    ["one more message", { prompt: longer }, "the recorded request has 2 messages, this one has 3"],
    ["one message less", { prompt: base.prompt.slice(0, 1) }, "the recorded request has 2 messages, this one has 1"],
    [
      "a role",
      { prompt: [...base.prompt.slice(0, 1), { role: "system" as const, content: "hello" }] },
      "message 2 (system) was a message of role user",
    ],
    ["a tool more", { tools: [read, { ...read, name: "Grep" }] }, "the tools differ: Grep was added"],
    ["a tool less", { tools: [] }, "the tools differ: Read was removed"],
    ["a description", { tools: [{ ...read, description: "Reads it." }] }, "Read has a different description or schema"],
    ["a setting", { temperature: 0.5 }, "the settings differ: temperature was 0.2, now 0.5"],
    ["a setting more", { maxOutputTokens: 9 }, "maxOutputTokens was not set, now 9"],
  ])("reports %s", async (_what, change, difference) => {
    const { file } = tape();
    await partsOf((await recording(modelOf(said("ab")), file)).at(at), base);
    const replay = await replaying(file);
    const error: unknown = await partsOf(replay.at(at), { ...base, ...change }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "cassette_diverged", message: expect.stringContaining(difference) });
    expect(replay.divergence).toBe(error);
    expect(replay.unused()).toEqual([{ line: 2, stage: "plan", turn: 0, attempt: 1 }]);
  });

  test("does not compare headers, the signal or the order of keys", async () => {
    const { file } = tape();
    const options = { anthropic: { a: 1, b: 2 } };
    await partsOf(
      (await recording(modelOf(said("ab")), file)).at(at),
      ask("x", { headers: { authorization: "Bearer k" }, providerOptions: options }),
    );
    expect(readFileSync(file, "utf8")).not.toContain("Bearer");
    const other = ask("x", {
      providerOptions: { anthropic: { b: 2, a: 1 } },
      abortSignal: new AbortController().signal,
    });
    expect(await partsOf((await replaying(file)).at(at), other)).toHaveLength(4);
  });

  test("finds calls by stage, turn and request, in any order, and again when one is made again", async () => {
    const { file } = tape();
    const model = await recordModel(
      scriptedModel({ stages: { a: [{ text: "a0" }, { text: "a1" }], b: [{ text: "b0" }] } }),
      file,
      { env, cwd: "/" },
    );
    const calls = [
      ["a", 0],
      ["a", 1],
      ["b", 0],
    ] as const;
    for (const [stage, turn] of calls) await partsOf(model.at({ stage, turn, attempt: 1 }), ask(`${stage}${turn}`));
    const replay = await replaying(file);
    for (const [stage, turn] of [...calls].reverse().concat([["a", 0]])) {
      const parts = await partsOf(replay.at({ stage, turn, attempt: 1 }), ask(`${stage}${turn}`));
      expect(parts.map((each) => ("delta" in each ? each.delta : "")).join("")).toBe(`${stage}${turn}`);
    }
    expect(replay.unused()).toEqual([]);
    await expect(partsOf(replay.at({ stage: "a", turn: 2, attempt: 1 }))).rejects.toThrow(
      "2 turns of stage a, and the run requests turn 3",
    );
    await expect(partsOf(replay.at({ stage: "c", turn: 0, attempt: 1 }))).rejects.toThrow(
      "no turns of stage c (it has: a, b)",
    );
  });

  test("answers a call that was made twice in the order of the file, the second time and after", async () => {
    const { file } = tape();
    for (const text of ["one", "two"])
      await partsOf((await recording(modelOf(said(text)), file, { existing: "append" })).at(at));
    const replay = await replaying(file);
    for (const text of ["one", "two", "one"]) expect(await partsOf(replay.at(at))).toEqual(said(text));
  });

  test("continues where the lines of failed tries were removed", async () => {
    const { file, lines } = tape();
    const script = scriptedModel({ stages: { plan: [{ text: "ok", errors: [{ status: 529 }] }] } });
    const model = await recordModel(script, file, { env, cwd: "/" });
    await expect(partsOf(model.at(at))).rejects.toThrow();
    await partsOf(model.at({ ...at, attempt: 2 }));
    const [header, , answered] = lines();
    writeFileSync(file, `${[header, answered].join("\n")}\n`);
    const ok = { type: "text-delta", id: "0", delta: "o" };
    for (const options of [{}, { match: "sequence" as const }])
      expect(await partsOf((await replaying(file, options)).at(at))).toContainEqual(ok);
  });
});

describe("what is kept of a request", () => {
  test("are the messages since the last reply, without what looks like a secret", async () => {
    const { file, exchange } = tape();
    const token = `ghp_${"a1B2".repeat(8)}`;
    const prompt: LanguageModelV4CallOptions["prompt"] = [
      { role: "system", content: "Plan." },
      { role: "user", content: [{ type: "text", text: "go" }] },
      { role: "assistant", content: [{ type: "text", text: "SAID-BEFORE" }] },
      {
        role: "tool",
        content: [
          { type: "tool-result", toolCallId: "1", toolName: "Read", output: { type: "text", value: `T=${token}` } },
        ],
      },
    ];
    await partsOf((await recording(modelOf(said("ab")), file)).at(at), ask("", { prompt }));
    const { request } = exchange(0);
    expect(request).toMatchObject({
      from: 2,
      messages: [{ role: "assistant" }, { role: "tool", text: "Read: T=[redacted:github-token]" }],
    });
    expect(readFileSync(file, "utf8")).not.toMatch(/SAID-BEFORE|ghp_/);
  });

  test("are digests alone where that is asked for; a difference then names the message", async () => {
    const { file } = tape();
    await partsOf((await recording(modelOf(said("ab")), file, { texts: false })).at(at), ask("PRIVATE"));
    expect(readFileSync(file, "utf8")).not.toContain("PRIVATE");
    await expect(partsOf((await replaying(file)).at(at), ask("other"))).rejects.toThrow(
      "message 2 (user) differs; its text was not recorded. Now: other",
    );
  });

  test("named secrets and keys are in none of it", async () => {
    const { file } = tape();
    const secret = 'pa"ss\\word/ü+1';
    const parts = [
      part({
        type: "tool-call",
        toolCallId: "1",
        toolName: "T",
        input: JSON.stringify({ a: secret, b: [JSON.stringify(secret)] }),
      }),
      ...said(`it is ${secret} and ${encodeURIComponent(secret)}`),
      part({ type: "raw", rawValue: { [secret]: secret } }),
    ];
    const model = await recording(modelOf(parts), file, { env: { ...env, DB: secret }, secrets: ["DB"] });
    await partsOf(model.at(at), ask(`use ${secret}`));
    const text = readFileSync(file, "utf8");
    for (const form of [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret), "ss\\\\word"])
      expect(text).not.toContain(form);
    expect(text.match(/\[redacted:DB\]/g)?.length).toBeGreaterThan(6);
  });
});

test("an answer that is cut inside a secret keeps none of its beginning", async () => {
  const { file, exchange } = tape();
  const secret = "Zq7-Zq7-Zq7-Zq7-Zq7";
  const parts = said(`the key is ${secret}`).slice(0, 6);
  const model = await recording(modelOf(parts), file, { env: { ...env, DB: secret }, secrets: ["DB"] });
  const heard = await partsOf(model.at(at));
  expect(heard).toEqual(parts);
  expect(readFileSync(file, "utf8")).not.toContain(secret.slice(0, 4));
  expect(exchange(0)).toMatchObject({ parts: { length: 6 } });
  const again = await partsOf((await replaying(file)).at(at));
  expect(again.map((each) => ("delta" in each ? each.delta : "")).join("")).toBe("the key is ");
});

test("an answer that is cut keeps its last letters, although a secret begins with one of them", async () => {
  const { file } = tape();
  const parts = said("I want t").slice(0, 4);
  const model = await recording(modelOf(parts), file, {
    env: { ...env, DB: "t0p-secret-t0p-secret" },
    secrets: ["DB"],
  });
  const heard = await partsOf(model.at(at));
  expect(await partsOf((await replaying(file)).at(at))).toEqual(heard);
});

test("a call that is given up because the model fell silent is recorded as failed, and fails again", async () => {
  const { file, exchange } = tape();
  const clock = handClock();
  const hung = { ...modelOf([]), doStream: () => Promise.resolve({ stream: new ReadableStream() }) };
  const model = await recording(hung, file, { clock });
  const request = { model: model.at(at), prompt: [], tools: [], signal: new AbortController().signal };
  const calling = callModel(request, clock);
  while (clock.waiting() === 0) await new Promise(setImmediate);
  clock.turn(LONGEST_SILENCE_MS);
  expect(await calling).toMatchObject({ ok: false, error: { kind: "transient", code: "timeout" } });
  expect(exchange(0)).toMatchObject({ end: "failed", ms: LONGEST_SILENCE_MS });
});

test("an id of the registry is recorded like any other model", async () => {
  const folder = tempFolder();
  folder.put("script.json", JSON.stringify({ stages: { plan: [{ text: "from the script" }] } }));
  const file = folder.path("calls.jsonl");
  const model = await recordModel("scripted:script.json", file, { env, cwd: folder.root });
  expect(model.id).toBe("scripted:script.json");
  const first = await partsOf(model.at(at));
  expect(await partsOf((await replaying(file, { cwd: folder.root })).at(at))).toEqual(first);
});
