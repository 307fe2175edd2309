import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { LanguageModelV2, LanguageModelV3, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { isSluiceError, type JsonObject, type SluiceError, systemClock } from "@sluice/core";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { callModel, type ModelRequest } from "../../packages/stages/src/agent/model-call.ts";
import { loadProvider, type ModelOptions } from "../../packages/stages/src/models/providers/settings.ts";
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
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  test.each([
    ["anthropic/claude-x", "ANTHROPIC_API_KEY"],
    ["openai/gpt-x", "OPENAI_API_KEY"],
    ["openai-chat/gpt-x", "OPENAI_API_KEY"],
    ["google/gemini-x", "GOOGLE_GENERATIVE_AI_API_KEY"],
    ["gateway/openai/gpt-x", "AI_GATEWAY_API_KEY"],
  ])("%s needs its key and says which variable", async (id, variable) => {
    const fault = await faultOf(id);
    expect(fault).toMatchObject({
      class: "Session",
      code: "missing_key",
      message: `${id} needs a key: set ${variable}`,
      detail: { variables: [variable] },
    });
    expect(await faultOf(id, { [variable]: "  " })).toMatchObject({ code: "missing_key" });
    vi.stubEnv(variable, "of-the-process");
    expect(await faultOf(id)).toMatchObject({ code: "missing_key" });
    const model = await resolveModel(id, { ...NO_ENV, env: { [variable]: "given" } });
    expect(model).toMatchObject({ id, secrets: ["given"] });
    expect(model.at(FIRST).modelId).toBe(id.slice(id.indexOf("/") + 1));
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
    ["goog/gemini-x", "Did you mean google/<model>?"],
    ["open-ai/gpt-x", "Did you mean openai/<model>?"],
    ["olama/llama3", "Did you mean ollama/<model>?"],
    ["script:x.json", "Did you mean scripted:<file>?"],
    ["claude-x", "Did you mean anthropic/claude-x?"],
    ["gpt-6.1-sol", "Did you mean openai/gpt-6.1-sol?"],
    ["gemini-x", "Did you mean google/gemini-x?"],
    [
      "some-model",
      "Known: anthropic/<model>, openai/<model>, openai-chat/<model>, google/<model>, gateway/<provider>/<model>, bedrock/<model>, vertex/<model>, azure/<deployment>, ollama/<model>, openai-compatible/<model>, scripted:<file>, cassette:<file>.",
    ],
    ["constructor/x", "Known: anthropic/<model>"],
  ])("of an unknown provider (%s) names the known ones", async (id, words) => {
    const fault = await faultOf(id);
    expect(fault).toMatchObject({ class: "Validation", code: "unknown_provider" });
    expect(fault.message).toContain(JSON.stringify(id));
    expect(fault.message).toContain(words);
  });

  test.each([
    ["anthropic/"],
    ["anthropic"],
    ["openai-compatible/ "],
    ["openai/"],
    ["google"],
    ["ollama/"],
    ["gateway/openai"],
    ["gateway/openai/"],
    ["scripted:"],
  ])("without a model (%s) says so", async (id) => {
    expect(await faultOf(id)).toMatchObject({ class: "Validation", code: "invalid_model" });
  });

  test("lists what each provider reads, for help and doctor", () => {
    expect(
      MODEL_PROVIDERS.map(({ name, variables }) => [
        name,
        variables.filter(({ required }) => required).map((each) => each.name),
      ]),
    ).toEqual([
      ["anthropic", ["ANTHROPIC_API_KEY"]],
      ["openai", ["OPENAI_API_KEY"]],
      ["openai-chat", ["OPENAI_API_KEY"]],
      ["google", ["GOOGLE_GENERATIVE_AI_API_KEY"]],
      ["gateway", ["AI_GATEWAY_API_KEY"]],
      ["bedrock", ["AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]],
      ["vertex", ["GOOGLE_VERTEX_PROJECT", "GOOGLE_VERTEX_LOCATION"]],
      ["azure", ["AZURE_API_KEY", "AZURE_RESOURCE_NAME"]],
      ["ollama", []],
      ["openai-compatible", ["OPENAI_COMPATIBLE_BASE_URL"]],
      ["scripted", []],
      ["cassette", []],
    ]);
  });
});

describe("the request that leaves", () => {
  afterEach(() => {
    vi.unstubAllEnvs();
    vi.unstubAllGlobals();
  });

  /** Where the first request goes, and what it holds. */
  async function requestOf(
    id: string,
    options: Partial<ModelOptions>,
    settings: Pick<ModelRequest, "providerOptions" | "temperature" | "maxOutputTokens"> = {},
  ) {
    const fetched = vi.fn((_url: string, _init: { body: string; headers: Readonly<Record<string, string>> }) =>
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
      ...settings,
    });
    const [url, init] = fetched.mock.lastCall ?? [];
    const body: JsonObject = JSON.parse(init?.body ?? "{}");
    return { url, body, headers: Object.fromEntries(new Headers(init?.headers)) };
  }

  const key = { ANTHROPIC_API_KEY: "k" };
  const keys = { ...key, OPENAI_API_KEY: "k", GOOGLE_GENERATIVE_AI_API_KEY: "k", AI_GATEWAY_API_KEY: "k" };
  const google = "models/m:streamGenerateContent?alt=sse";
  test.each([
    ["anthropic/m", {}, "https://api.anthropic.com/v1/messages"],
    ["anthropic/m", { ANTHROPIC_BASE_URL: "https://api.anthropic.com" }, "https://api.anthropic.com/v1/messages"],
    ["anthropic/m", { ANTHROPIC_BASE_URL: "https://api.anthropic.com/v1/" }, "https://api.anthropic.com/v1/messages"],
    ["anthropic/m", { ANTHROPIC_BASE_URL: "http://127.0.0.1:4000" }, "http://127.0.0.1:4000/v1/messages"],
    ["anthropic/m", { ANTHROPIC_BASE_URL: "https://host.example/x/" }, "https://host.example/x/v1/messages"],
    ["anthropic/m", { ANTHROPIC_BASE_URL: "https://host.example/x/v2" }, "https://host.example/x/v2/messages"],
    ["openai/m", {}, "https://api.openai.com/v1/responses"],
    ["openai/m", { OPENAI_BASE_URL: "http://127.0.0.1:4000" }, "http://127.0.0.1:4000/v1/responses"],
    ["openai/m", { OPENAI_BASE_URL: "https://host.example/x/" }, "https://host.example/x/responses"],
    ["openai-chat/m", {}, "https://api.openai.com/v1/chat/completions"],
    ["openai-chat/m", { OPENAI_BASE_URL: "https://host.example/v1/" }, "https://host.example/v1/chat/completions"],
    ["google/m", {}, `https://generativelanguage.googleapis.com/v1beta/${google}`],
    ["google/m", { GOOGLE_GENERATIVE_AI_BASE_URL: "http://127.0.0.1:1" }, `http://127.0.0.1:1/v1beta/${google}`],
    ["google/m", { GOOGLE_GENERATIVE_AI_BASE_URL: "https://host.example/g" }, `https://host.example/g/${google}`],
    ["gateway/p/m", {}, "https://ai-gateway.vercel.sh/v4/ai/language-model"],
    ["gateway/p/m", { AI_GATEWAY_BASE_URL: "http://127.0.0.1:1/" }, "http://127.0.0.1:1/v4/ai/language-model"],
    ["gateway/p/m", { AI_GATEWAY_BASE_URL: "https://host.example/a" }, "https://host.example/a/language-model"],
    ["openai-compatible/m", { OPENAI_COMPATIBLE_BASE_URL: "http://[::1]:1" }, "http://[::1]:1/v1/chat/completions"],
    ["openai-compatible/m", { OPENAI_COMPATIBLE_BASE_URL: "http://h:1/v1/" }, "http://h:1/v1/chat/completions"],
    ["openai-compatible/m", { OPENAI_COMPATIBLE_BASE_URL: "https://h/openai" }, "https://h/openai/chat/completions"],
  ])("of %s with %j goes to %s", async (id, env, url) => {
    expect((await requestOf(id, { env: { ...keys, ...env } })).url).toBe(url);
  });

  test.each([
    [undefined, "http://127.0.0.1:11434"],
    ["localhost", "http://localhost:11434"],
    ["192.168.1.7:8080", "http://192.168.1.7:8080"],
    [":8080", "http://127.0.0.1:8080"],
    ["0.0.0.0", "http://127.0.0.1:11434"],
    ["0.0.0.0:1", "http://127.0.0.1:1"],
    ["::1", "http://[::1]:11434"],
    ["[::1]", "http://[::1]:11434"],
    ["[::]:1", "http://[::1]:1"],
    ["http://gpu.example", "http://gpu.example"],
    ["https://gpu.example/", "https://gpu.example"],
    ["https://gpu.example:8443/ollama/", "https://gpu.example:8443/ollama"],
    ["gpu.example/ollama", "http://gpu.example:11434/ollama"],
    ["http://127.0.0.1:11434/v1", "http://127.0.0.1:11434"],
    ['"gpu.example"', "http://gpu.example:11434"],
    ["ollama.com", "https://ollama.com"],
  ])("to Ollama with OLLAMA_HOST %s goes to %s", async (host, address) => {
    const env = host === undefined ? {} : { OLLAMA_HOST: host };
    expect((await requestOf("ollama/m:8b", { env })).url).toBe(`${address}/v1/chat/completions`);
  });

  test.each([["host:port"], ["host:"], ["host:99999"], ["a b"], ["ftp://host"], ["http://me:hunter2@host"]])(
    "to Ollama is refused for an OLLAMA_HOST that is none (%s), without repeating it",
    async (host) => {
      const fault = await faultOf("ollama/m", { OLLAMA_HOST: host });
      expect(fault).toMatchObject({ class: "Validation", code: "invalid_base_url" });
      expect(fault.message).toContain("OLLAMA_HOST");
      expect(fault.message).not.toContain("hunter2");
    },
  );

  test("goes to the configured address rather than the one in the environment", async () => {
    const env = { ...key, ANTHROPIC_BASE_URL: "http://127.0.0.1:1" };
    const baseUrls = { anthropic: "http://127.0.0.1:2" };
    expect((await requestOf("anthropic/m", { env, baseUrls })).url).toBe("http://127.0.0.1:2/v1/messages");
  });

  test("marks what Anthropic may cache, unless the session does not want it, in blocks and never in the body itself", async () => {
    const { body } = await requestOf("anthropic/m", { env: key });
    expect(body).toMatchObject({ tools: [{ cache_control: { type: "ephemeral" } }] });
    expect(body).not.toHaveProperty("cache_control");
    const plain = await requestOf("anthropic/m", { env: key, promptCache: false });
    expect(JSON.stringify(plain.body)).not.toContain("cache_control");
  });

  test("asks for whole tool arguments, unless the call says otherwise", async () => {
    const plain = await requestOf("anthropic/m", { env: key });
    expect(JSON.stringify(plain.body.tools)).not.toContain("eager_input_streaming");
    const eager = await requestOf(
      "anthropic/m",
      { env: key },
      { providerOptions: { anthropic: { toolStreaming: true } } },
    );
    expect(JSON.stringify(eager.body.tools)).toContain("eager_input_streaming");
  });

  test("to OpenAI keeps nothing there and asks reasoning models for what brings their reasoning back", async () => {
    const reasoning = await requestOf("openai/gpt-6-astra", { env: keys });
    expect(reasoning.body).toMatchObject({ store: false, include: ["reasoning.encrypted_content"] });
    const plain = await requestOf("openai/gpt-4.1", { env: keys });
    expect(plain.body).toMatchObject({ store: false });
    expect(plain.body).not.toHaveProperty("include");
  });

  test("to OpenAI holds no field that a plain chat server would not know, in chat completions", async () => {
    const { body } = await requestOf("openai-chat/gpt-4.1", { env: keys });
    expect(Object.keys(body).toSorted()).toEqual(["messages", "model", "stream", "stream_options", "tools"]);
  });

  test("to OpenAI names the organization and the project that the environment names", async () => {
    const env = { ...keys, OPENAI_ORG_ID: "org-1", OPENAI_PROJECT_ID: "proj-1" };
    const named = { "openai-organization": "org-1", "openai-project": "proj-1" };
    expect((await requestOf("openai/m", { env })).headers).toMatchObject(named);
    for (const name of Object.keys(named))
      expect((await requestOf("openai/m", { env: keys })).headers).not.toHaveProperty(name);
  });

  test("through the gateway asks a model for what it is asked for directly, and no more", async () => {
    const optionsOf = async (id: string, options: Partial<ModelOptions> = {}) =>
      (await requestOf(id, { env: keys, ...options })).body.providerOptions;
    expect(await optionsOf("gateway/openai/gpt-x")).toEqual({
      gateway: { caching: "auto" },
      openai: { store: false },
    });
    expect(await optionsOf("gateway/anthropic/claude-x")).toEqual({
      gateway: { caching: "auto" },
      anthropic: { toolStreaming: false },
    });
    expect(await optionsOf("gateway/x/y", { promptCache: false })).toEqual({});
  });

  test("through the gateway tells nothing of the process it comes from", async () => {
    for (const name of ["DEPLOYMENT_ID", "ENV", "REGION", "PROJECT_ID"]) vi.stubEnv(`VERCEL_${name}`, "of-the-process");
    vi.stubEnv("AI_GATEWAY_API_KEY", "of-the-process");
    const { headers } = await requestOf("gateway/openai/gpt-x", { env: keys });
    expect(JSON.stringify(headers)).not.toContain("of-the-process");
    expect(headers.authorization).toBe("Bearer k");
  });

  test("takes address and headers from the given environment, whatever the process has", async () => {
    const names = ["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "OLLAMA_HOST", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"];
    for (const name of [...names, "OPENAI_ORGANIZATION", "ANTHROPIC_AUTH_TOKEN"]) vi.stubEnv(name, "http://of.example");
    for (const id of ["openai/m", "openai-chat/m", "anthropic/m", "google/m", "gateway/p/m", "ollama/m"]) {
      const { url, headers } = await requestOf(id, { env: keys });
      expect(`${url} ${JSON.stringify(headers)}`).not.toContain("of.example");
    }
  });

  test.each([
    ["anthropic/claude-sonnet-5-5", "max_tokens"],
    ["openai/gpt-4.1", "max_output_tokens"],
    ["openai-chat/gpt-4.1", "max_tokens"],
    ["google/m", "generationConfig.maxOutputTokens"],
    ["gateway/p/m", "maxOutputTokens"],
    ["ollama/m", "max_tokens"],
    ["openai-compatible/m", "max_tokens"],
  ])("to %s carries the stage's maximum of output tokens (%s)", async (id, path) => {
    const env = { ...keys, OPENAI_COMPATIBLE_BASE_URL: "http://127.0.0.1:1" };
    const { body } = await requestOf(id, { env }, { maxOutputTokens: 777 });
    expect(body).toHaveProperty(path, 777);
  });

  test.each([
    ["anthropic/claude-sonnet-4-6", "temperature"],
    ["openai/gpt-4.1", "temperature"],
    ["openai-chat/gpt-4.1", "temperature"],
    ["google/m", "generationConfig.temperature"],
    ["gateway/p/m", "temperature"],
    ["ollama/m", "temperature"],
    ["openai-compatible/m", "temperature"],
  ])("to %s carries the stage's temperature", async (id, path) => {
    const env = { ...keys, OPENAI_COMPATIBLE_BASE_URL: "http://127.0.0.1:1" };
    const { body } = await requestOf(id, { env }, { temperature: 0.25 });
    expect(body).toHaveProperty(path, 0.25);
  });

  test("to Anthropic leaves room for a long file under a name the package does not know", async () => {
    expect((await requestOf("anthropic/some-alias", { env: key })).body).toMatchObject({ max_tokens: 8_192 });
    expect((await requestOf("anthropic/claude-sonnet-5-5", { env: key })).body).toMatchObject({ max_tokens: 128_000 });
    const own = await requestOf("anthropic/some-alias", { env: key }, { maxOutputTokens: 100 });
    expect(own.body).toMatchObject({ max_tokens: 100 });
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

  test("is called by its own name, and is the same at every turn", async () => {
    const model = modelOf([]);
    const resolved = await resolveModel(model, NO_ENV);
    expect(resolved).toMatchObject({ id: "fake/fake-1", secrets: [] });
    expect(resolved.at(FIRST)).toMatchObject({ provider: model.provider, modelId: model.modelId });
    expect(resolved.at(FIRST)).toBe(resolved.at(FIRST));
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
      const keys = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "AI_GATEWAY_API_KEY"];
      const options = { env: Object.fromEntries(keys.map((key) => [key, "k"])), cwd: "/", clock: undefined };
      await resolveModel(${JSON.stringify(id)}, options).catch((error) => { if (error.code !== "script_not_found") throw error; });
      console.log(JSON.stringify([...asked].filter((name) => name === "ai" || name.startsWith("@ai-sdk/"))));
    `;
    const flags = ["--conditions=@sluice/source", "--input-type=module", "--no-warnings", "--eval", program];
    const { stdout } = await promisify(execFile)(process.execPath, flags);
    return JSON.parse(stdout);
  }

  test.each([
    ["scripted:nowhere.json", []],
    ["anthropic/m", ["@ai-sdk/anthropic"]],
    ["openai/m", ["@ai-sdk/openai"]],
    ["google/m", ["@ai-sdk/google"]],
    ["gateway/p/m", ["@ai-sdk/gateway"]],
    ["ollama/m", ["@ai-sdk/openai-compatible"]],
  ])("is loaded only when its provider is asked for: %s loads %j", async (id, packages) => {
    const loaded = await loadedFor(id);
    expect(loaded.filter((name) => !name.startsWith("@ai-sdk/provider"))).toEqual(packages);
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
