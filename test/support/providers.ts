import type { LanguageModelV4, LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import { systemClock } from "@sluice/core";
import { resolveModel } from "../../packages/stages/src/models/registry.ts";
import { startAnthropicServer } from "./anthropic-server.ts";
import { startOpenAIServer } from "./openai-server.ts";
import type { ModelServer, Replies } from "./sse-server.ts";

/** A provider package talking to its loopback server. */
export interface WiredProvider extends AsyncDisposable {
  readonly server: ModelServer;
  readonly model: LanguageModelV4;
}

export type ProviderName = "anthropic" | "openai-compatible";
export const PROVIDERS: readonly ProviderName[] = ["anthropic", "openai-compatible"];
export const TEST_KEY = "sk-test-0123456789abcdef";

export async function wire(provider: ProviderName, replies: Replies): Promise<WiredProvider> {
  const server = await (provider === "anthropic" ? startAnthropicServer(replies) : startOpenAIServer(replies));
  const env = {
    ANTHROPIC_API_KEY: TEST_KEY,
    ANTHROPIC_BASE_URL: server.url,
    OPENAI_COMPATIBLE_API_KEY: TEST_KEY,
    OPENAI_COMPATIBLE_BASE_URL: server.url,
  };
  const resolved = await resolveModel(`${provider}/test-model`, { env, cwd: "/", clock: systemClock });
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
