import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { done, fanOut, pipeline, stage } from "@sluice/core";
import { type ModelTraffic, playbackTraffic, recordTraffic, type TurnPosition } from "@sluice/stages";
import { codeReview } from "@sluice/stages/pipelines";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { PROVIDERS, type ProviderName, providerOf, TEST_KEY } from "../support/providers.ts";
import { eventually, session, type TestSessionOptions } from "../support/run-kit.ts";
import type { Replies, ServerReply } from "../support/sse-server.ts";
import { tempFolder } from "../support/tools.ts";

const before = "export function login(name: string) {\n  return check(name);\n}\n";
const edit = { file_path: "src/auth.ts", old_string: "return check(name);", new_string: "return check(name.trim());" };
const planned = { summary: "login() trims.", steps: ["src/auth.ts: trim"], files: ["src/auth.ts"], risks: [] };
const changed = { summary: "It trims.", changes: [{ file: "src/auth.ts", change: "name.trim()" }], deviations: [] };
const reviewed = { verdict: "approve", summary: "Fine.", findings: [] };

/** A whole review: reasoning, text, parallel calls, a denied call, a file that is named by where this machine has it. */
const review = (root: string): readonly ServerReply[] => [
  {
    reasoning: "I had better look at the code first.",
    text: "I look.",
    calls: [
      { name: "Grep", input: { pattern: "login", output_mode: "content" } },
      { name: "Read", input: { file_path: join(root, "src/auth.ts") } },
      { name: "Edit", input: edit },
    ],
    usage: { input: 900, output: 80, cacheRead: 100, reasoning: 12 },
  },
  { reasoning: "Now I know.", calls: [{ name: "submit_plan", input: planned }] },
  { calls: [{ name: "Read", input: { file_path: "src/auth.ts" } }] },
  { text: `I edit ${root}/src/auth.ts.`, calls: [{ name: "Edit", input: edit }] },
  { calls: [{ name: "submit_diff", input: changed }] },
  { calls: [{ name: "submit_review", input: reviewed }] },
];

/** What a session read of its models, call by call. */
type Heard = Map<string, LanguageModelV4StreamPart[]>;

/** Notes every part that a session is handed. */
function overheard(traffic: ModelTraffic, heard: Heard): ModelTraffic {
  return {
    get files() {
      return traffic.files;
    },
    async model(wanted, place) {
      const model = await traffic.model(wanted, place);
      const at = (position: TurnPosition) => {
        const inner = model.at(position);
        const parts: LanguageModelV4StreamPart[] = [];
        heard.set(JSON.stringify([position.stage, position.turn, position.attempt]), parts);
        return {
          ...inner,
          doStream: async (call: Parameters<typeof inner.doStream>[0]) => {
            const { stream } = await inner.doStream(call);
            const noting = new TransformStream<LanguageModelV4StreamPart, LanguageModelV4StreamPart>({
              transform: (part, controller) => {
                parts.push(part);
                controller.enqueue(part);
              },
            });
            return { stream: stream.pipeThrough(noting) };
          },
        };
      };
      return { ...model, at };
    },
  };
}

function workspace() {
  const folder = tempFolder();
  folder.put("src/auth.ts", before);
  return folder;
}

function cassette(): string {
  return join(tempFolder().root, "cassettes", "review.jsonl");
}

/** Records one run of codeReview; the server is closed afterwards. */
async function record(name: ProviderName, replies: (root: string) => Replies, options: TestSessionOptions = {}) {
  const file = cassette();
  const folder = workspace();
  const provider = providerOf(name);
  const server = await provider.start(replies(folder.root));
  const heard: Heard = new Map();
  const live = session({
    model: provider.model,
    env: { PATH: process.env.PATH, ...provider.env(server.url) },
    cwd: folder.root,
    ...options,
    traffic: overheard(recordTraffic(file), heard),
  });
  const result = await live.run(codeReview, { task: "trim the name" });
  await server.close();
  return { file, folder, heard, result, lines: readFileSync(file, "utf8").split("\n") };
}

/** Plays a cassette into another workspace, with nothing of the environment. */
async function replay(file: string, options: Parameters<typeof playbackTraffic>[1] = {}, task = "trim the name") {
  const folder = workspace();
  const heard: Heard = new Map();
  const traffic = playbackTraffic(file, options);
  const live = session({ cwd: folder.root, traffic: overheard(traffic, heard) });
  const result = await live.run(codeReview, { task });
  return { folder, heard, result, traffic };
}

/** A result without what is the run's own. */
const comparable = (result: {
  readonly stages: readonly object[];
  readonly denied: unknown;
  readonly status: string;
}) => ({
  ...result,
  runId: "",
  stages: result.stages.map((each) => ({ ...each, ms: 0 })),
});

/** Paths of one workspace in the place of another's. */
function moved<T>(value: T, from: string, to: string): T {
  return JSON.parse(JSON.stringify(value).replaceAll(from, to));
}

describe.each(PROVIDERS)("a whole codeReview over %s, recorded", (name) => {
  test("is replayed part by part with the server closed, in another workspace, without a key", async () => {
    const first = await record(name, review);
    expect(first.result.status).toBe("completed");
    const second = await replay(first.file);
    expect(comparable(second.result)).toEqual(comparable(first.result));
    expect(second.folder.text("src/auth.ts")).toBe(first.folder.text("src/auth.ts"));
    expect(second.traffic.unused()).toEqual([]);

    expect([...second.heard.keys()]).toEqual([...first.heard.keys()]);
    for (const [call, parts] of first.heard) {
      const again = second.heard.get(call) ?? [];
      // A path that came in pieces stands in one of them now; all else is as it came, dates and boundaries included.
      expect(again.map(({ type }) => type)).toEqual(parts.map(({ type }) => type));
      const whole = (all: readonly LanguageModelV4StreamPart[]) =>
        moved(joined(all), first.folder.root, second.folder.root);
      expect(whole(again)).toEqual(whole(parts));
      if (!JSON.stringify(joined(parts)).includes(first.folder.root)) expect(again).toEqual(parts);
    }
    const dates = [...second.heard.values()]
      .flat()
      .filter((part) => part.type === "response-metadata" && part.timestamp);
    for (const part of dates) expect(part).toMatchObject({ timestamp: expect.any(Date) });
  });

  test("holds the key in no form, whatever the provider echoes", async () => {
    const basic = Buffer.from(`user:${TEST_KEY}`).toString("base64");
    const forms = [
      TEST_KEY,
      encodeURIComponent(TEST_KEY),
      basic,
      Buffer.from(TEST_KEY).toString("hex"),
      JSON.stringify(TEST_KEY),
    ];
    const echoes: readonly ServerReply[] = [
      {
        reasoning: `the key is ${TEST_KEY}`,
        text: forms.join(" "),
        calls: [{ name: "Grep", input: { pattern: TEST_KEY } }],
      },
      { calls: [{ name: "Read", rawInput: `{"file_path": "sk-test-\\u0030123456789abcdef"}` }] },
      {
        status: 400,
        error: { type: "invalid_request_error", message: `no ${TEST_KEY}` },
        headers: { "x-echo": TEST_KEY },
      },
    ];
    const { file, result } = await record(name, () => echoes);
    expect(result.status).toBe("failed");
    const text = readFileSync(file, "utf8");
    expect(text.length).toBeGreaterThan(500);
    const reversed = TEST_KEY.split("").reverse().join("");
    for (const form of [...forms.slice(0, 4), reversed, TEST_KEY.slice(8), "x-echo", "authorization"])
      expect(text).not.toContain(form);
    // Neither across the pieces of a text, nor behind escapes.
    const deltas = [...text.matchAll(/"delta":"((?:[^"\\]|\\.)*)"/g)]
      .map(([, delta = ""]) => JSON.parse(`"${delta}"`))
      .join("");
    expect(deltas).not.toContain(TEST_KEY);
    for (const [whole] of text.matchAll(/[A-Za-z0-9+/_-]{12,}/g)) {
      expect(Buffer.from(whole, "base64").toString("latin1")).not.toContain(TEST_KEY.slice(2, 14));
    }
    expect(
      text.replaceAll(/\\+u00([0-9a-f]{2})/g, (_all, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
    ).not.toContain(TEST_KEY);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    // The transcript had it replaced too, so the recording fits a run that never saw the key.
    const again = await replay(file);
    expect(again.traffic.divergence).toBeUndefined();
    expect(comparable(again.result)).toEqual(comparable(result));
  });
});

/** The parts with the pieces of each text put together. */
function joined(parts: readonly LanguageModelV4StreamPart[]) {
  const texts = new Map<string, string>();
  const others: unknown[] = [];
  for (const part of parts) {
    if (!("delta" in part)) others.push(part);
    else texts.set(`${part.type} ${part.id}`, (texts.get(`${part.type} ${part.id}`) ?? "") + part.delta);
  }
  return { texts: Object.fromEntries(texts), others };
}

describe("a recording that no longer fits", () => {
  test("strict: a changed task is reported with message, line and both texts; nothing continues", async () => {
    const { file } = await record("anthropic", review);
    const { result, traffic } = await replay(file, {}, "trim the names");
    expect(result).toMatchObject({ status: "failed", error: { code: "model" } });
    expect(traffic.divergence).toMatchObject({ class: "Validation", code: "cassette_diverged" });
    expect(traffic.divergence?.message).toBe(
      [
        "the cassette review.jsonl does not match: stage plan, turn 1 (line 2): message 2 (user) differs in line 2:",
        "  recorded: trim the name",
        "  now:      trim the names",
      ].join("\n"),
    );
    expect(traffic.unused()).toHaveLength(6);
  });

  test("sequence: the same change plays on", async () => {
    const { file } = await record("anthropic", review);
    const { result, traffic, folder } = await replay(file, { match: "sequence" }, "trim the names");
    expect(result.status).toBe("completed");
    expect(folder.text("src/auth.ts")).toContain("name.trim()");
    expect(traffic.unused()).toEqual([]);
  });

  test("strict: a file that is another now shows in the turn that read it", async () => {
    const { file } = await record("anthropic", review);
    const folder = workspace();
    folder.put("src/auth.ts", before.replace("login", "logon"));
    const traffic = playbackTraffic(file);
    await session({ cwd: folder.root, traffic }).run(codeReview, { task: "trim the name" });
    expect(traffic.divergence?.message).toContain("stage plan, turn 2 (line 3): message 4 (tool) differs in line");
  });
});

const submit = { completionTool: "submit", completionSchema: z.object({ said: z.string() }), turnCap: 3 };
const small = (id: string, model?: string) =>
  stage({ ...submit, prompt: `This is ${id}.`, allowedTools: [], ...(model === undefined ? {} : { model }) });

/** Three siblings, one of them with a model of its own, and their join. */
const wide = pipeline({
  id: "wide",
  input: z.object({ task: z.string() }),
  stages: {
    start: small("start"),
    a: small("a"),
    b: small("b", "openai-compatible/other"),
    c: small("c"),
    join: small("join"),
  },
  initial: "start",
  next: {
    start: () => fanOut(["a", "b", "c"], { join: "join" }),
    join: ({ output }, ctx) => done(`${JSON.stringify(ctx.upstream)} ${output.said}`),
  },
});

/** Which stage a request is of, by its system prompt. */
const stageOf = (name: ProviderName, body: Parameters<ReturnType<typeof providerOf>["read"]>[0]): string =>
  /This is (\w+)\./.exec(providerOf(name).read(body).system)?.[1] ?? "";

describe("siblings, one with a model of its own", () => {
  async function recorded() {
    const order: string[] = [];
    const replies =
      (name: ProviderName): Replies =>
      ({ body }, _n) => {
        const stageId = stageOf(name, body);
        order.push(stageId);
        return { text: `${stageId} speaks`, calls: [{ name: "submit", input: { said: `${stageId} on ${name}` } }] };
      };
    const [usual, other] = [
      await providerOf("anthropic").start(replies("anthropic")),
      await providerOf("openai-compatible").start(replies("openai-compatible")),
    ];
    const env = { ...providerOf("anthropic").env(usual.url), ...providerOf("openai-compatible").env(other.url) };
    const file = cassette();
    const live = session({ model: providerOf("anthropic").model, env, traffic: recordTraffic(file) });
    const result = await live.run(wide, { task: "speak" });
    await Promise.all([usual.close(), other.close()]);
    expect(result.status).toBe("completed");
    return { file, result, lines: readFileSync(file, "utf8").trimEnd().split("\n") };
  }

  test("are written a line each, whole, and replayed without any model of the session", async () => {
    const { file, result, lines } = await recorded();
    expect(new Set(lines.slice(2, 5).map((line) => JSON.parse(line).stage))).toEqual(new Set(["a", "b", "c"]));
    expect(lines.map((line) => JSON.parse(line).model)).toContain("openai-compatible/other");
    const traffic = playbackTraffic(file);
    const again = await session({ traffic }).run(wide, { task: "speak" });
    expect(comparable(again)).toEqual(comparable(result));
    expect(traffic.unused()).toEqual([]);
  });

  test("get their own answers in whatever order they stand in the file, and one after the other", async () => {
    const { lines, result } = await recorded();
    const [header = "", ...exchanges] = lines;
    const file = tempFolder().put("turned.jsonl", `${[header, ...exchanges.reverse()].join("\n")}\n`);
    const again = await session({ model: `cassette:${file}`, maxParallel: 1 }).run(wide, { task: "speak" });
    expect(comparable(again)).toEqual(comparable(result));
  });
});

describe("failures", () => {
  const plan = { calls: [{ name: "submit_plan", input: planned }] };
  const troubles: readonly (readonly [string, ServerReply])[] = [
    ["a refused key", { refuse: "key" }],
    ["a rate limit with retry-after", { refuse: "rate", retryAfterSeconds: 7 }],
    ["an overloaded service", { refuse: "overload" }],
    ["an error in the middle", { text: "I beg", fail: "overload" }],
    ["a connection that breaks", { text: "I begin to say something", cutAfterEvents: 3 }],
    ["an answer that ends early", { text: "I begin to say something", cutAfterEvents: 3, cutBy: "end" }],
    ["an event that is not JSON", { text: "I begin to say something", malformedAt: "begin" }],
    ["a prompt that does not fit", { refuse: "overflow" }],
  ];

  /** Every try of every turn, as the run's journal has it, and how the run ended. */
  async function triesOf(options: TestSessionOptions) {
    const live = session(options);
    const run = live.start(codeReview, { task: "trim the name" });
    let over = false;
    const settled = run.then((result) => {
      over = true;
      return result;
    });
    await eventually(() => {
      live.clock.turn(60_000);
      return over;
    });
    const result = await settled;
    const tries: unknown[] = [];
    for await (const { type, data } of live.host.events(run.runId)) if (type === "model.retried") tries.push(data);
    return {
      tries,
      status: result.status,
      error: result.status === "failed" ? result.error : undefined,
      stages: result.stages,
    };
  }

  test.each(troubles)("%s is the same failure when it is replayed", async (_what, trouble) => {
    const file = cassette();
    const provider = providerOf("anthropic");
    const server = await provider.start([
      trouble,
      plan,
      ...Array<ServerReply>(3).fill({ status: 400, error: { message: "over" } }),
    ]);
    onTestFinished(() => server.close());
    const env = provider.env(server.url);
    const first = await triesOf({ model: provider.model, env, traffic: recordTraffic(file) });
    await server.close();
    const second = await triesOf({ traffic: playbackTraffic(file) });
    // The advice names the address and the key's variable, which a cassette does not have.
    const bare = ({ stages, ...rest }: typeof first) =>
      JSON.parse(
        JSON.stringify({ ...rest, stages: stages.map((each) => ({ ...each, ms: 0 })) }).replaceAll(/; http[^"]*/g, ""),
      );
    expect(bare(second)).toEqual(bare(first));
    expect(first.status).toBe("failed");
  });

  test("a session that cannot start leaves no file, and one that is there is not overwritten", async () => {
    const file = cassette();
    const keyless = session({ model: "anthropic/some-model", traffic: recordTraffic(file) });
    await expect(keyless.run(codeReview, { task: "t" })).rejects.toMatchObject({ code: "missing_key" });
    expect(existsSync(file)).toBe(false);
    const { file: there, lines } = await record("anthropic", review);
    const again = session({ model: "anthropic/m", env: { ANTHROPIC_API_KEY: "k" }, traffic: recordTraffic(there) });
    await expect(again.run(codeReview, { task: "t" })).rejects.toMatchObject({
      class: "Validation",
      code: "cassette_exists",
    });
    expect(readFileSync(there, "utf8").split("\n")).toEqual(lines);
  });
});
