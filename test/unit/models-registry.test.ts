import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { LanguageModelV2, LanguageModelV3, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { isSluiceError, type JsonObject, type SluiceError, systemClock } from "@sluice/core";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { callModel, type ModelRequest } from "../../packages/stages/src/agent/model-call.ts";
import { loadProvider, type ModelOptions } from "../../packages/stages/src/models/provider-settings.ts";
import { MODEL_PROVIDERS, type ModelObject, resolveModel } from "../../packages/stages/src/models/registry.ts";
import { modelOf } from "../support/stream-model.ts";

const NO_ENV = { env: {}, cwd: "/nowhere", clock: systemClock };
const FIRST = { stage: "plan", turn: 0, attempt: 1 };
const prompt: LanguageModelV4Prompt = [{ role: "user", content: [{ type: "text", text: "go" }] }];

async function faultOf(model: string | ModelObject, env: Readonly<Record<string, string>> = {}): Promise<SluiceError> {
  const thrown: unknown = await resolveModel(model, { ...NO_ENV, env }).catch((error: unknown) => error);
  if (!isSluiceError(thrown)) throw new Error(`expected a SluiceError, got ${String(thrown)}`);
  return thrown;
}

describe("a model id", () => {
  test("of Anthropic needs its key and says which variable", async () => {
    const fault = await faultOf("anthropic/claude-x");
    expect(fault).toMatchObject({
      class: "Session",
      code: "missing_key",
      message: "anthropic/claude-x needs a key: set ANTHROPIC_API_KEY",
      detail: { variables: ["ANTHROPIC_API_KEY"] },
    });
    expect(await faultOf("anthropic/claude-x", { ANTHROPIC_API_KEY: "  " })).toMatchObject({ code: "missing_key" });
  });

  test("never falls back to the keys and addresses of the process", async () => {
    process.env.ANTHROPIC_API_KEY = "sk-of-the-process";
    process.env.ANTHROPIC_BASE_URL = "http://127.0.0.1:9/v1";
    try {
      expect(await faultOf("anthropic/claude-x")).toMatchObject({ code: "missing_key" });
      const model = await resolveModel("anthropic/claude-x", { ...NO_ENV, env: { ANTHROPIC_API_KEY: "given" } });
      expect(JSON.stringify(model.at(FIRST))).not.toContain("127.0.0.1:9");
      expect(model.secrets).toEqual(["given"]);
    } finally {
      delete process.env.ANTHROPIC_API_KEY;
      delete process.env.ANTHROPIC_BASE_URL;
    }
  });

  test("of an OpenAI-compatible server needs an address, and a key only where there is one", async () => {
    expect(await faultOf("openai-compatible/llama3:8b")).toMatchObject({
      class: "Session",
      code: "missing_base_url",
      detail: { variables: ["OPENAI_COMPATIBLE_BASE_URL"] },
    });
    const env = { OPENAI_COMPATIBLE_BASE_URL: "http://127.0.0.1:11434/v1" };
    const open = await resolveModel("openai-compatible/llama3:8b", { ...NO_ENV, env });
    expect(open).toMatchObject({ id: "openai-compatible/llama3:8b", secrets: [] });
    expect(open.at(FIRST)).toMatchObject({ specificationVersion: "v4", modelId: "llama3:8b" });
    const keyed = await resolveModel("openai-compatible/a/b", {
      ...NO_ENV,
      env: { ...env, OPENAI_COMPATIBLE_API_KEY: "k-123" },
    });
    expect(keyed.secrets).toEqual(["k-123"]);
    expect(keyed.at(FIRST).modelId).toBe("a/b");
  });

  test("with a password in the address is refused without repeating it", async () => {
    const fault = await faultOf("openai-compatible/m", {
      OPENAI_COMPATIBLE_BASE_URL: "http://me:hunter2@127.0.0.1:1/v1",
    });
    expect(fault).toMatchObject({ class: "Validation", code: "invalid_base_url" });
    expect(fault.message).not.toContain("hunter2");
  });

  test.each([["localhost:11434"], ["file:///etc/passwd"], ["nonsense"]])(
    "with an address that is no http URL (%s) is refused",
    async (address) => {
      expect(await faultOf("openai-compatible/m", { OPENAI_COMPATIBLE_BASE_URL: address })).toMatchObject({
        class: "Validation",
        code: "invalid_base_url",
      });
    },
  );

  test.each([
    ["antropic/claude-x", "Did you mean anthropic/<model>?"],
    ["Anthropic/claude-x", "Did you mean anthropic/<model>?"],
    ["openai/gpt-x", "Did you mean openai-compatible/<model>?"],
    ["script:x.json", "Did you mean scripted:<file>?"],
    ["claude-x", "Known: anthropic/<model>, openai-compatible/<model>, scripted:<file>."],
    ["constructor/x", "Known: anthropic/<model>"],
  ])("of an unknown provider (%s) names the known ones", async (id, words) => {
    const fault = await faultOf(id);
    expect(fault).toMatchObject({ class: "Validation", code: "unknown_provider" });
    expect(fault.message).toContain(JSON.stringify(id));
    expect(fault.message).toContain(words);
  });

  test.each([["anthropic/"], ["anthropic"], ["openai-compatible/ "], ["scripted:"]])(
    "without a model (%s) says so",
    async (id) => {
      expect(await faultOf(id)).toMatchObject({ class: "Validation", code: "invalid_model" });
    },
  );

  test("lists what each provider reads, for help and doctor", () => {
    expect(
      MODEL_PROVIDERS.map(({ name, variables }) => [
        name,
        variables.filter(({ required }) => required).map((each) => each.name),
      ]),
    ).toEqual([
      ["anthropic", ["ANTHROPIC_API_KEY"]],
      ["openai-compatible", ["OPENAI_COMPATIBLE_BASE_URL"]],
      ["scripted", []],
    ]);
  });
});

describe("the request that leaves", () => {
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  /** Where the first request goes, and what it holds. */
  async function requestOf(
    id: string,
    options: Partial<ModelOptions>,
    providerOptions?: ModelRequest["providerOptions"],
  ) {
    const fetched = vi.fn((_url: string, _init: { body: string }) =>
      Promise.resolve(new Response("no", { status: 500 })),
    );
    vi.stubGlobal("fetch", fetched);
    const model = await resolveModel(id, { ...NO_ENV, ...options });
    const tools = [{ type: "function" as const, name: "Read", inputSchema: { type: "object" as const } }];
    const signal = new AbortController().signal;
    await callModel({
      model: model.at(FIRST),
      prompt,
      tools,
      signal,
      ...(providerOptions === undefined ? {} : { providerOptions }),
    });
    const [url, init] = fetched.mock.lastCall ?? [];
    const body: JsonObject = JSON.parse(init?.body ?? "{}");
    return { url, body };
  }

  const key = { ANTHROPIC_API_KEY: "k" };
  test.each([
    [undefined, "https://api.anthropic.com/v1/messages"],
    ["https://api.anthropic.com", "https://api.anthropic.com/v1/messages"],
    ["https://api.anthropic.com/v1/", "https://api.anthropic.com/v1/messages"],
    ["http://127.0.0.1:4000", "http://127.0.0.1:4000/v1/messages"],
    ["http://127.0.0.1:4000/v1", "http://127.0.0.1:4000/v1/messages"],
    ["https://proxy.example.com/anthropic/", "https://proxy.example.com/anthropic/v1/messages"],
    ["https://proxy.example.com/anthropic/v2", "https://proxy.example.com/anthropic/v2/messages"],
  ])("to Anthropic, with ANTHROPIC_BASE_URL %s, goes to %s", async (address, url) => {
    const env = address === undefined ? key : { ...key, ANTHROPIC_BASE_URL: address };
    expect((await requestOf("anthropic/m", { env })).url).toBe(url);
  });

  test.each([
    ["http://127.0.0.1:11434", "http://127.0.0.1:11434/v1/chat/completions"],
    ["http://127.0.0.1:11434/v1/", "http://127.0.0.1:11434/v1/chat/completions"],
    ["https://host.example.com/openai", "https://host.example.com/openai/chat/completions"],
  ])("to an OpenAI-compatible server at %s goes to %s", async (address, url) => {
    expect((await requestOf("openai-compatible/m", { env: { OPENAI_COMPATIBLE_BASE_URL: address } })).url).toBe(url);
  });

  test("goes to the configured address rather than the one in the environment", async () => {
    const env = { ...key, ANTHROPIC_BASE_URL: "http://127.0.0.1:1" };
    const baseUrls = { anthropic: "http://127.0.0.1:2" };
    expect((await requestOf("anthropic/m", { env, baseUrls })).url).toBe("http://127.0.0.1:2/v1/messages");
  });

  test("asks Anthropic to keep the prompt for the next turn, unless told not to, and never asks a proxy", async () => {
    const cached = { cache_control: { type: "ephemeral" } };
    expect((await requestOf("anthropic/m", { env: key })).body).toMatchObject(cached);
    expect((await requestOf("anthropic/m", { env: key, promptCache: false })).body).not.toHaveProperty("cache_control");
    for (const address of ["http://127.0.0.1:4000", "https://api.anthropic.com.example.com"]) {
      const env = { ...key, ANTHROPIC_BASE_URL: address };
      expect((await requestOf("anthropic/m", { env })).body).not.toHaveProperty("cache_control");
    }
  });

  test("asks for whole tool arguments, unless the call says otherwise", async () => {
    const plain = await requestOf("anthropic/m", { env: key });
    expect(JSON.stringify(plain.body.tools)).not.toContain("eager_input_streaming");
    const eager = await requestOf("anthropic/m", { env: key }, { anthropic: { toolStreaming: true } });
    expect(JSON.stringify(eager.body.tools)).toContain("eager_input_streaming");
    expect(eager.body).toHaveProperty("cache_control");
  });
});

describe("a scripted model id", () => {
  let folder = "";
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "sluice-models-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  test("names a file, from the working directory", async () => {
    await writeFile(join(folder, "s.json"), '{"stages":{"plan":[{"text":"hi"}]}}');
    const model = await resolveModel("scripted:s.json", { ...NO_ENV, cwd: folder });
    expect(model.id).toBe("scripted:s.json");
    const reply = await callModel({ model: model.at(FIRST), prompt, tools: [], signal: new AbortController().signal });
    expect(reply).toMatchObject({ ok: true, text: "hi" });
  });

  test("of a file that is not there is a clear error", async () => {
    await expect(resolveModel("scripted:s.json", { ...NO_ENV, cwd: folder })).rejects.toMatchObject({
      code: "script_not_found",
    });
  });
});

describe("a model object", () => {
  beforeEach(() => {
    vi.stubGlobal("AI_SDK_LOG_WARNINGS", false); // `ai` warns of v2 models, which is not what is tested here
  });
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  test("is used as it is", async () => {
    const model = modelOf([]);
    const resolved = await resolveModel(model, NO_ENV);
    expect(resolved.at(FIRST)).toBe(model);
    expect(resolved).toMatchObject({ id: "fake/fake-1", secrets: [] });
  });

  const usage = { inputTokens: 1, outputTokens: 2, totalTokens: 3 };
  const common = {
    provider: "old",
    modelId: "m",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("only streaming")),
  };
  const text = [
    { type: "text-start" as const, id: "0" },
    { type: "text-delta" as const, id: "0", delta: "hi" },
    { type: "text-end" as const, id: "0" },
  ];
  function streamOf<T>(parts: readonly T[]): ReadableStream<T> {
    return new ReadableStream({
      start(controller) {
        for (const each of parts) controller.enqueue(each);
        controller.close();
      },
    });
  }
  const v2: LanguageModelV2 = {
    ...common,
    specificationVersion: "v2",
    doStream: () =>
      Promise.resolve({
        stream: streamOf([...text, { type: "finish" as const, finishReason: "stop" as const, usage }]),
      }),
  };
  const v3: LanguageModelV3 = {
    ...common,
    specificationVersion: "v3",
    doStream: () =>
      Promise.resolve({
        stream: streamOf([
          ...text,
          {
            type: "finish" as const,
            finishReason: { unified: "stop" as const, raw: "stop" },
            usage: {
              inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
              outputTokens: { total: 2, text: 2, reasoning: 0 },
            },
          },
        ]),
      }),
  };

  test.each([
    ["v2", v2],
    ["v3", v3],
  ])("of the older version %s is adapted", async (_version, model) => {
    const resolved = await resolveModel(model, NO_ENV);
    const reply = await callModel({
      model: resolved.at(FIRST),
      prompt,
      tools: [],
      signal: new AbortController().signal,
    });
    expect(reply).toMatchObject({ ok: true, text: "hi", finishReason: "stop", usage: { known: true } });
    expect(resolved.id).toBe("old/m");
  });

  test.each([["{}"], ["null"], ['{"specificationVersion":"v9"}'], ["5"]])(
    "that is none (%s) is refused",
    async (json) => {
      const model: ModelObject = JSON.parse(json);
      expect(await faultOf(model)).toMatchObject({ class: "Validation", code: "invalid_model" });
    },
  );
});

describe("a provider's package", () => {
  /** Packages of the SDK that a fresh process asks for while it resolves a model. */
  async function loadedFor(id: string): Promise<string[]> {
    const registry = new URL("../../packages/stages/src/models/registry.ts", import.meta.url).href;
    const program = `
      import { registerHooks } from "node:module";
      const asked = new Set();
      registerHooks({ resolve: (name, context, next) => { asked.add(name); return next(name, context); } });
      const { resolveModel } = await import(${JSON.stringify(registry)});
      const options = { env: { ANTHROPIC_API_KEY: "k" }, cwd: "/", clock: undefined };
      await resolveModel(${JSON.stringify(id)}, options).catch((error) => { if (error.code !== "script_not_found") throw error; });
      console.log(JSON.stringify([...asked].filter((name) => name === "ai" || name.startsWith("@ai-sdk/"))));
    `;
    const flags = ["--conditions=@sluice/source", "--input-type=module", "--no-warnings", "--eval", program];
    const { stdout } = await promisify(execFile)(process.execPath, flags);
    return JSON.parse(stdout);
  }

  test("is loaded only when its provider is asked for", async () => {
    expect(await loadedFor("scripted:nowhere.json")).not.toContain("@ai-sdk/anthropic");
    const loaded = await loadedFor("anthropic/m");
    expect(loaded).toContain("@ai-sdk/anthropic");
    expect(loaded).not.toContain("@ai-sdk/openai-compatible");
    expect(loaded).not.toContain("ai");
  });

  const missing = (name: string) =>
    Object.assign(new Error(`Cannot find package '${name}' imported from /x/registry.js`), {
      code: "ERR_MODULE_NOT_FOUND",
    });

  test("that is not installed is named with the command that installs it", async () => {
    await expect(
      loadProvider("@ai-sdk/anthropic", () => Promise.reject(missing("@ai-sdk/anthropic"))),
    ).rejects.toMatchObject({
      class: "Session",
      code: "provider_not_installed",
      message: "the package @ai-sdk/anthropic is not installed; run: npm install @ai-sdk/anthropic",
    });
  });

  test("that is broken in another way reports that", async () => {
    await expect(loadProvider("@ai-sdk/anthropic", () => Promise.reject(missing("zod")))).rejects.toThrow(
      "Cannot find package 'zod'",
    );
  });
});
