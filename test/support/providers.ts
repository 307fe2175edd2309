import type { LanguageModelV4, LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import { type Clock, systemClock } from "@sluice/core";
import { resolveModel } from "../../packages/stages/src/models/registry.ts";
import { readAnthropic, startAnthropicServer } from "./anthropic-server.ts";
import { COMPATIBLE_CHAT, OLLAMA_CHAT, OPENAI_CHAT, readChat, startChatServer } from "./chat-server.ts";
import { GATEWAY_MODEL, readGateway, startGatewayServer } from "./gateway-server.ts";
import { GOOGLE_MODEL, readGoogle, startGoogleServer } from "./google-server.ts";
import { readResponses, startResponsesServer } from "./responses-server.ts";
import type { ModelServer, Replies } from "./sse-server.ts";
import type { ReadRequest } from "./wire-request.ts";

export const TEST_KEY = "sk-test-0123456789abcdef";

/** A provider as a user reaches it, and what of its protocol tests have to know. */
export interface Provider {
  readonly model: string;
  /** The provider's name in `baseUrls`. */
  readonly configured: string;
  readonly env: (url: string) => Readonly<Record<string, string>>;
  readonly start: (replies: Replies) => Promise<ModelServer>;
  readonly read: ReadRequest;
  readonly keyHeader: string;
  /** How reasoning goes back: with something that only the service could have made, in the clear, or not at all. */
  readonly reasoning: "proved" | "plain" | "none";
  /** Whether reasoning is streamed to the client. */
  readonly showsReasoning: boolean;
  readonly countsCached: boolean;
  /** Whether the model takes a temperature. */
  readonly temperature: boolean;
  /** HTTP status of a key that is refused. */
  readonly wrongKey: number;
}

const OPENAI = {
  configured: "openai",
  env: (url: string) => ({ OPENAI_API_KEY: TEST_KEY, OPENAI_BASE_URL: url }),
  keyHeader: "authorization",
  countsCached: true,
  wrongKey: 401,
} as const;

const TABLE = {
  anthropic: {
    model: "anthropic/claude-sonnet-4-5",
    configured: "anthropic",
    env: (url) => ({ ANTHROPIC_API_KEY: TEST_KEY, ANTHROPIC_BASE_URL: url }),
    start: startAnthropicServer,
    read: readAnthropic,
    keyHeader: "x-api-key",
    reasoning: "proved",
    showsReasoning: true,
    countsCached: true,
    temperature: true,
    wrongKey: 401,
  },
  openai: {
    ...OPENAI,
    model: "openai/gpt-5",
    start: startResponsesServer,
    read: readResponses,
    reasoning: "proved",
    showsReasoning: true,
    temperature: false,
  },
  "openai-chat": {
    ...OPENAI,
    model: "openai-chat/gpt-4.1",
    start: (replies) => startChatServer(replies, OPENAI_CHAT),
    read: readChat,
    reasoning: "none",
    showsReasoning: false,
    temperature: true,
  },
  google: {
    model: `google/${GOOGLE_MODEL}`,
    configured: "google",
    env: (url) => ({ GOOGLE_GENERATIVE_AI_API_KEY: TEST_KEY, GOOGLE_GENERATIVE_AI_BASE_URL: url }),
    start: startGoogleServer,
    read: readGoogle,
    keyHeader: "x-goog-api-key",
    reasoning: "proved",
    showsReasoning: true,
    countsCached: true,
    temperature: true,
    wrongKey: 400,
  },
  gateway: {
    model: `gateway/${GATEWAY_MODEL}`,
    configured: "gateway",
    env: (url) => ({ AI_GATEWAY_API_KEY: TEST_KEY, AI_GATEWAY_BASE_URL: url }),
    start: startGatewayServer,
    read: readGateway,
    keyHeader: "authorization",
    reasoning: "proved",
    showsReasoning: true,
    countsCached: true,
    temperature: true,
    wrongKey: 401,
  },
  ollama: {
    model: "ollama/qwen3:8b",
    configured: "ollama",
    env: (url) => ({ OLLAMA_HOST: url, OLLAMA_API_KEY: TEST_KEY }),
    start: (replies) => startChatServer(replies, OLLAMA_CHAT),
    read: readChat,
    keyHeader: "authorization",
    reasoning: "plain",
    showsReasoning: true,
    countsCached: false,
    temperature: true,
    wrongKey: 401,
  },
  "openai-compatible": {
    model: "openai-compatible/test-model",
    configured: "openai-compatible",
    env: (url) => ({ OPENAI_COMPATIBLE_API_KEY: TEST_KEY, OPENAI_COMPATIBLE_BASE_URL: url }),
    start: (replies) => startChatServer(replies, COMPATIBLE_CHAT),
    read: readChat,
    keyHeader: "authorization",
    reasoning: "plain",
    showsReasoning: true,
    countsCached: true,
    temperature: true,
    wrongKey: 401,
  },
} as const satisfies Readonly<Record<string, Provider>>;

export type ProviderName = keyof typeof TABLE;
export const PROVIDERS: readonly ProviderName[] = [
  "anthropic",
  "openai",
  "openai-chat",
  "google",
  "gateway",
  "ollama",
  "openai-compatible",
];

export function providerOf(name: ProviderName): Provider {
  return TABLE[name];
}

/** A provider package talking to its loopback server. */
export interface WiredProvider extends AsyncDisposable {
  readonly server: ModelServer;
  readonly model: LanguageModelV4;
}

export async function wire(name: ProviderName, replies: Replies, clock: Clock = systemClock): Promise<WiredProvider> {
  const provider = providerOf(name);
  const server = await provider.start(replies);
  const resolved = await resolveModel(provider.model, { env: provider.env(server.url), cwd: "/", clock });
  return {
    server,
    model: resolved.at({ stage: "plan", turn: 0, attempt: 1 }),
    [Symbol.asyncDispose]: () => server.close(),
  };
}

/** Two tools to offer: one with an argument, one to complete with. */
export const TOOLS: LanguageModelV4FunctionTool[] = [
  {
    type: "function",
    name: "Read",
    description: "Read a file.",
    inputSchema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  },
  {
    type: "function",
    name: "submit_plan",
    description: "Finish.",
    inputSchema: { type: "object", properties: { summary: { type: "string" } }, required: ["summary"] },
  },
];
