import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { done, pipeline, type StageOptions, stage, systemClock } from "@sluice/core";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { resolveModel } from "../../packages/stages/src/models/registry.ts";
import { startAnthropicServer } from "../support/anthropic-server.ts";
import { bedrockCall, startBedrockServer, startCloudFront } from "../support/cloud-servers.ts";
import { GOOGLE_MODEL, startGoogleServer } from "../support/google-server.ts";
import { startResponsesServer } from "../support/responses-server.ts";
import { session, type TestSessionOptions } from "../support/run-kit.ts";
import type { ModelServer, ServerReply } from "../support/sse-server.ts";
import { tempFolder } from "../support/tools.ts";

// Models of the large clouds: their own addresses and keys, and the protocol of the model's maker behind them.

const FINISH = { summary: "Done." };
const SCRIPT: readonly ServerReply[] = [
  { reasoning: "First look.", calls: [{ name: "Glob", input: { pattern: "*.txt" } }] },
  { calls: [{ name: "finish", input: FINISH }] },
];

type Settings = Partial<
  Pick<StageOptions<Record<never, never>, unknown, undefined>, "reasoning" | "toolChoice" | "cache">
>;

async function ran(model: string, options: TestSessionOptions, settings: Settings = {}) {
  const pipe = pipeline({
    id: "one",
    input: z.object({ task: z.string() }),
    stages: {
      work: stage({
        prompt: "Work.",
        allowedTools: ["Glob"],
        completionTool: "finish",
        completionSchema: z.object({ summary: z.string() }),
        turnCap: 4,
        ...settings,
      }),
    },
    initial: "work",
    next: { work: ({ output }) => done(output) },
  });
  const live = session({ model, ...options });
  const handle = live.start(pipe, { task: "look" });
  const result = await handle;
  return { result, journal: JSON.stringify(await live.host.journal(handle.runId)) };
}

function open(server: ModelServer): string {
  onTestFinished(() => server.close());
  return server.url;
}

const PATH = process.env.PATH ?? "/usr/bin:/bin";

describe("azure/<deployment>", () => {
  const key = "azure-key-0123456789abcdef";
  const env = { PATH, AZURE_API_KEY: key };

  async function front() {
    const behind = open(await startResponsesServer(SCRIPT));
    return await startCloudFront(behind, ({ body, headers }) => ({
      path: "/v1/responses",
      headers: { authorization: `Bearer ${String(headers["api-key"])}` },
      body,
    }));
  }

  test("runs over the Responses API of the resource and keeps nothing there", async () => {
    const { url, requests } = await front();
    const { result, journal } = await ran("azure/gpt-5", { env, baseUrls: { azure: url } }, { reasoning: "low" });
    expect(result).toMatchObject({ status: "completed", output: FINISH });
    expect(requests).toMatchObject([
      {
        path: "/openai/v1/responses",
        headers: { "api-key": key },
        body: { store: false, reasoning: { effort: "low" } },
      },
      { body: { store: false } },
    ]);
    // The encrypted reasoning comes back with the results.
    expect(JSON.stringify(requests[1]?.body.input)).toContain("sealed-");
    expect(journal).not.toContain(key);
  });

  test("needs a resource or an address", async () => {
    await expect(ran("azure/gpt-5", { env })).rejects.toMatchObject({
      code: "missing_key",
      detail: { variables: ["AZURE_RESOURCE_NAME"] },
    });
  });

  test.each(["host.example/", "a@b", "a.b", "a:1"])("does not let the resource %s name another host", async (name) => {
    const fault = ran("azure/gpt-5", { env: { ...env, AZURE_RESOURCE_NAME: name } });
    await expect(fault).rejects.toMatchObject({ code: "invalid_base_url" });
  });
});

describe("vertex/<model>", () => {
  /** A credentials file whose tokens come from a server on this machine. */
  async function workload(): Promise<{ readonly file: string; readonly token: string }> {
    const token = "ya29.token-0123456789abcdef";
    const server = createServer((_request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(
        JSON.stringify({ access_token: token, issued_token_type: "x", token_type: "Bearer", expires_in: 3600 }),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const { root } = tempFolder();
    const subject = join(root, "subject");
    writeFileSync(subject, "a-subject-token");
    const file = join(root, "credentials.json");
    const credentials = {
      type: "external_account",
      audience: "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
      subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
      token_url: `http://127.0.0.1:${port}/token`,
      credential_source: { file: subject },
    };
    writeFileSync(file, JSON.stringify(credentials));
    return { file, token };
  }

  const place = { PATH, GOOGLE_VERTEX_PROJECT: "my-project", GOOGLE_VERTEX_LOCATION: "europe-west1" };

  test("reaches Gemini with an API key", async () => {
    const key = "vertex-key-0123456789abcdef";
    const behind = open(await startGoogleServer(SCRIPT));
    const { url, requests } = await startCloudFront(behind, ({ body, headers }) => ({
      path: `/v1beta/models/${GOOGLE_MODEL}:streamGenerateContent?alt=sse`,
      headers: { "x-goog-api-key": String(headers["x-goog-api-key"]) },
      body,
    }));
    const env = { PATH, GOOGLE_VERTEX_API_KEY: key };
    const { result } = await ran(`vertex/${GOOGLE_MODEL}`, { env, baseUrls: { vertex: url } }, { reasoning: "low" });
    expect(result).toMatchObject({ status: "completed", output: FINISH });
    const path = `/v1/publishers/google/models/${GOOGLE_MODEL}:streamGenerateContent?alt=sse`;
    expect(requests).toMatchObject([{ path, headers: { "x-goog-api-key": key } }, { path }]);
    expect(requests[0]?.body.generationConfig).toMatchObject({ thinkingConfig: expect.anything() });
  });

  test("reaches Gemini with the credentials file", async () => {
    const { file, token } = await workload();
    const behind = open(await startGoogleServer(SCRIPT));
    const { url, requests } = await startCloudFront(behind, ({ body }) => ({
      path: `/v1beta/models/${GOOGLE_MODEL}:streamGenerateContent?alt=sse`,
      headers: { "x-goog-api-key": "k" },
      body,
    }));
    const env = { ...place, GOOGLE_APPLICATION_CREDENTIALS: file };
    const { result } = await ran(`vertex/${GOOGLE_MODEL}`, { env, baseUrls: { vertex: url } });
    expect(result).toMatchObject({ status: "completed", output: FINISH });
    expect(requests[0]).toMatchObject({
      path: `/v1beta1/projects/my-project/locations/europe-west1/publishers/google/models/${GOOGLE_MODEL}:streamGenerateContent?alt=sse`,
      headers: { authorization: `Bearer ${token}` },
    });
  });

  test("reaches Claude, with cache marks and whole arguments", async () => {
    const { file, token } = await workload();
    const behind = open(await startAnthropicServer(SCRIPT));
    const { url, requests } = await startCloudFront(behind, ({ body: { anthropic_version: _version, ...body } }) => ({
      path: "/v1/messages",
      headers: { "x-api-key": "k", "anthropic-version": "2023-06-01" },
      body: { ...body, model: "claude-sonnet-4-5" },
    }));
    const env = { ...place, GOOGLE_APPLICATION_CREDENTIALS: file };
    const { result } = await ran("vertex/claude-sonnet-4-5", { env, baseUrls: { vertex: url } });
    expect(result).toMatchObject({ status: "completed", output: FINISH });
    expect(requests[0]).toMatchObject({
      path: "/v1/projects/my-project/locations/europe-west1/publishers/anthropic/models/claude-sonnet-4-5:streamRawPredict",
      headers: { authorization: `Bearer ${token}` },
      body: { anthropic_version: "vertex-2023-10-16", system: [{ cache_control: { type: "ephemeral" } }] },
    });
    expect(JSON.stringify(requests[0]?.body)).not.toContain("eager_input_streaming");
  });

  test("finds the file that gcloud writes", async () => {
    const { file } = await workload();
    const { root } = tempFolder();
    mkdirSync(join(root, ".config", "gcloud"), { recursive: true });
    writeFileSync(join(root, ".config", "gcloud", "application_default_credentials.json"), readFileSync(file));
    const behind = open(await startGoogleServer(SCRIPT));
    const { url } = await startCloudFront(behind, ({ body }) => ({
      path: `/v1beta/models/${GOOGLE_MODEL}:streamGenerateContent?alt=sse`,
      headers: { "x-goog-api-key": "k" },
      body,
    }));
    const { result } = await ran(`vertex/${GOOGLE_MODEL}`, {
      env: { ...place, HOME: root },
      baseUrls: { vertex: url },
    });
    expect(result.status).toBe("completed");
  });

  test.each([
    ["europe-west1", "https://europe-west1-aiplatform.googleapis.com"],
    ["eu", "https://aiplatform.eu.rep.googleapis.com"],
    ["global", "https://aiplatform.googleapis.com"],
  ])("says how it is reached in %s, for the advice of a failed call", async (location, address) => {
    const { file } = await workload();
    const env = { ...place, GOOGLE_VERTEX_LOCATION: location, GOOGLE_APPLICATION_CREDENTIALS: file };
    for (const name of [GOOGLE_MODEL, "claude-sonnet-4-5"]) {
      const { access } = await resolveModel(`vertex/${name}`, { env, cwd: "/", clock: systemClock });
      expect(access).toEqual({
        provider: "vertex",
        address,
        addressFrom: "GOOGLE_VERTEX_LOCATION",
        keyVariable: "GOOGLE_APPLICATION_CREDENTIALS",
        hasKey: true,
      });
    }
  });

  test("says with a failed call which key and which address to change", async () => {
    const env = { PATH, GOOGLE_VERTEX_API_KEY: "vertex-key-0123456789abcdef" };
    const server = createServer((_request, response) => response.writeHead(401).end("{}"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
    const address = server.address();
    const url = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
    const { result } = await ran(`vertex/${GOOGLE_MODEL}`, { env, baseUrls: { vertex: url } });
    expect(JSON.stringify(result)).toContain(
      `${url} does not accept the key in GOOGLE_VERTEX_API_KEY: set a valid one, or the address it belongs to (baseUrls.vertex of the config)`,
    );
  });

  test("names what is missing, and never shows what is in the file", async () => {
    const { root } = tempFolder();
    const none = { ...place, HOME: root };
    await expect(ran("vertex/gemini-x", { env: none })).rejects.toMatchObject({ code: "missing_key" });
    await expect(ran("vertex/gemini-x", { env: { PATH, HOME: root } })).rejects.toMatchObject({
      detail: { variables: ["GOOGLE_VERTEX_PROJECT"] },
    });
    const file = join(root, "broken.json");
    writeFileSync(file, "private words");
    const fault = ran("vertex/gemini-x", { env: { ...none, GOOGLE_APPLICATION_CREDENTIALS: file } });
    await expect(fault).rejects.toMatchObject({ code: "credentials_unreadable" });
    await expect(fault).rejects.not.toThrow("private words");
  });
});

describe("bedrock/<model id>", () => {
  const secret = "aws+Secret/0123456789abcdefABCDEF";
  const env = {
    PATH,
    AWS_REGION: "eu-central-1",
    AWS_ACCESS_KEY_ID: "AKIA0123456789ABCDEF",
    AWS_SECRET_ACCESS_KEY: secret,
    AWS_SESSION_TOKEN: "session-token-0123456789",
  };
  const id = "bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0";
  const script = [bedrockCall("Glob", { pattern: "*.txt" }), bedrockCall("finish", FINISH)];

  test("signs its requests, marks what may be cached, and reads a stream of frames", async () => {
    const { url, requests } = await startBedrockServer(script);
    const { result, journal } = await ran(id, { env, baseUrls: { bedrock: url } });
    expect(result).toMatchObject({ status: "completed", output: FINISH });
    expect(requests).toHaveLength(2);
    expect(requests[0]?.path).toMatch(
      /^\/model\/eu\.anthropic\.claude-sonnet-4-5-20250929-v1(?:%3A|:)0\/converse-stream$/,
    );
    expect(requests[0]?.headers).toMatchObject({
      authorization: expect.stringMatching(
        /^AWS4-HMAC-SHA256 Credential=AKIA0123456789ABCDEF\/\d+\/eu-central-1\/bedrock\//,
      ),
      "x-amz-security-token": "session-token-0123456789",
    });
    const point = { cachePoint: { type: "default" } };
    expect(requests[1]?.body).toMatchObject({
      system: [{ text: expect.any(String) }, point],
      messages: [
        { content: [expect.anything(), point] },
        { role: "assistant" },
        { content: [expect.anything(), point] },
      ],
    });
    for (const value of [secret, "session-token-0123456789"]) expect(journal).not.toContain(value);
  });

  test("takes a bearer token instead, and has no marks for a model that Bedrock does not cache", async () => {
    const { url, requests } = await startBedrockServer(script);
    const bearer = { PATH, AWS_REGION: "us-east-1", AWS_BEARER_TOKEN_BEDROCK: "bedrock-token-0123456789" };
    const { result } = await ran("bedrock/us.meta.llama4-maverick-17b-instruct-v1:0", {
      env: bearer,
      baseUrls: { bedrock: url },
    });
    expect(result.status).toBe("completed");
    expect(requests[0]?.headers.authorization).toBe("Bearer bedrock-token-0123456789");
    expect(JSON.stringify(requests)).not.toContain("cachePoint");
  });

  test("has the effort of reasoning in its request, and does not force a call of a model that thinks", async () => {
    const { url, requests } = await startBedrockServer(script);
    const { result } = await ran(id, { env, baseUrls: { bedrock: url } }, { reasoning: "low", toolChoice: "required" });
    expect(result.status).toBe("completed");
    expect(requests[0]?.body).toMatchObject({
      additionalModelRequestFields: { thinking: { type: "enabled", budget_tokens: expect.any(Number) } },
      toolConfig: { toolChoice: { auto: {} } },
    });
  });

  test("has no cache marks in a stage that switches the cache off", async () => {
    const { url, requests } = await startBedrockServer(script);
    await ran(id, { env, baseUrls: { bedrock: url } }, { cache: false });
    expect(JSON.stringify(requests)).not.toContain("cachePoint");
  });

  test("names the variables that it needs", async () => {
    await expect(ran(id, { env: { PATH, AWS_REGION: "eu-central-1" } })).rejects.toMatchObject({
      code: "missing_key",
      message: expect.stringContaining("AWS_BEARER_TOKEN_BEDROCK"),
    });
    await expect(ran(id, { env: { ...env, AWS_REGION: "evil.example/" } })).rejects.toMatchObject({
      code: "invalid_base_url",
    });
  });

  test("is cut off if a frame is larger than 16 MiB", async () => {
    const huge = [
      ["contentBlockDelta", { contentBlockIndex: 0, delta: { text: "x".repeat(17 * 1024 * 1024) } }],
    ] as const;
    const { url } = await startBedrockServer([huge]);
    const { result } = await ran(id, { env, baseUrls: { bedrock: url } });
    expect(result).toMatchObject({ status: "failed", stages: [{ detail: { code: "reply_too_large" } }] });
  });
});

test("keys of the clouds reach no command", async () => {
  const secrets = {
    AWS_BEARER_TOKEN_BEDROCK: "bedrock-token-0123456789",
    AWS_SECRET_ACCESS_KEY: "aws+Secret/0123456789abcdefABCDEF",
    AWS_SESSION_TOKEN: "session-token-0123456789",
    AZURE_API_KEY: "azure-key-0123456789abcdef",
    GOOGLE_VERTEX_API_KEY: "vertex-key-0123456789abcdef",
  };
  const behind = open(
    await startResponsesServer([
      { calls: [{ name: "Bash", input: { command: "env" } }] },
      { calls: [{ name: "finish", input: FINISH }] },
    ]),
  );
  const pipe = pipeline({
    id: "one",
    input: z.object({ task: z.string() }),
    stages: {
      work: stage({
        prompt: "Work.",
        allowedTools: ["Bash(env)"],
        completionTool: "finish",
        completionSchema: z.object({ summary: z.string() }),
        turnCap: 4,
      }),
    },
    initial: "work",
    next: { work: ({ output }) => done(output) },
  });
  const { root } = tempFolder();
  const env = { PATH, HOME: root, OPENAI_API_KEY: "k", OPENAI_BASE_URL: behind, ...secrets };
  const live = session({ model: "openai/gpt-5", env, cwd: root });
  const handle = live.start(pipe, { task: "look" });
  expect(await handle).toMatchObject({ status: "completed" });
  const journal = JSON.stringify(await live.host.journal(handle.runId));
  for (const [name, value] of Object.entries(secrets)) {
    expect(journal).not.toContain(value);
    expect(journal).not.toContain(`${name}=`);
  }
});
