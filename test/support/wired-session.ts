import { isJsonObject, type Json, type JsonObject, parseJson } from "@sluice/core";
import { onTestFinished } from "vitest";
import { startAnthropicServer } from "./anthropic-server.ts";
import { startOpenAIServer } from "./openai-server.ts";
import { type ProviderName, TEST_KEY } from "./providers.ts";
import { session, type TestSession, type TestSessionOptions } from "./run-kit.ts";
import { type ModelServer, type RecordedRequest, type Replies, word } from "./sse-server.ts";

/** A session whose model is a real provider package in front of a loopback server. */
export interface WiredSession {
  readonly live: TestSession;
  readonly server: ModelServer;
  /** Every request so far, in one form whatever the protocol. */
  requests(): readonly WireRequest[];
}

export async function wiredSession(
  provider: ProviderName,
  replies: Replies,
  options: TestSessionOptions = {},
): Promise<WiredSession> {
  const server = await (provider === "anthropic" ? startAnthropicServer(replies) : startOpenAIServer(replies));
  onTestFinished(() => server.close());
  const env = {
    PATH: process.env.PATH ?? "/usr/bin:/bin",
    ANTHROPIC_API_KEY: TEST_KEY,
    ANTHROPIC_BASE_URL: server.url,
    OPENAI_COMPATIBLE_API_KEY: TEST_KEY,
    OPENAI_COMPATIBLE_BASE_URL: server.url,
  };
  const live = session({ model: `${provider}/test-model`, env, ...options });
  return { live, server, requests: () => server.requests.map((request) => readRequest(provider, request)) };
}

/** What a request said, without the protocol it was said in. */
export interface WireRequest {
  readonly system: string;
  readonly messages: readonly WireMessage[];
  readonly tools: readonly string[];
}
interface WireMessage {
  readonly role: "user" | "assistant" | "tool";
  readonly text: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: Json }[];
  /** The value where it is JSON, else the text. */
  readonly results: readonly { readonly id: string; readonly value: Json }[];
}

function readRequest(provider: ProviderName, { body }: RecordedRequest): WireRequest {
  return provider === "anthropic" ? readAnthropic(body) : readOpenAI(body);
}

function readAnthropic(body: JsonObject): WireRequest {
  const messages = list(body.messages).map((message): WireMessage => {
    const blocks =
      typeof message.content === "string" ? [{ type: "text", text: message.content }] : list(message.content);
    const results = blocks.filter(({ type }) => type === "tool_result");
    return {
      role: results.length > 0 ? "tool" : word(message.role) === "assistant" ? "assistant" : "user",
      text: textOf(blocks),
      calls: blocks
        .filter(({ type }) => type === "tool_use")
        .map(({ id, name, input }) => ({ id: word(id), name: word(name), input: input ?? null })),
      results: results.map(({ tool_use_id, content }) => ({ id: word(tool_use_id), value: jsonOf(content) })),
    };
  });
  return {
    system: typeof body.system === "string" ? body.system : textOf(list(body.system)),
    messages,
    tools: list(body.tools).map(({ name }) => word(name)),
  };
}

/** Results are messages of their own here; those of one turn are put together. */
function readOpenAI(body: JsonObject): WireRequest {
  const messages: WireMessage[] = [];
  let system = "";
  for (const message of list(body.messages)) {
    const text = typeof message.content === "string" ? message.content : textOf(list(message.content));
    const role = word(message.role);
    if (role === "system") system += text;
    else if (role === "tool") {
      const result = { id: word(message.tool_call_id), value: jsonOf(message.content) };
      const last = messages.at(-1);
      if (last?.role === "tool") messages[messages.length - 1] = { ...last, results: [...last.results, result] };
      else messages.push({ role, text: "", calls: [], results: [result] });
    } else {
      const calls = list(message.tool_calls).map((call) => {
        const made = isJsonObject(call.function) ? call.function : {};
        return { id: word(call.id), name: word(made.name), input: jsonOf(made.arguments) };
      });
      messages.push({ role: role === "assistant" ? "assistant" : "user", text, calls, results: [] });
    }
  }
  const tools = list(body.tools).map((tool) => (isJsonObject(tool.function) ? word(tool.function.name) : ""));
  return { system, messages, tools };
}

function list(value: Json | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter((each): each is JsonObject => isJsonObject(each)) : [];
}

function textOf(blocks: readonly JsonObject[]): string {
  return blocks
    .filter(({ type }) => type === "text")
    .map(({ text }) => word(text))
    .join("");
}

function jsonOf(content: Json | undefined): Json {
  const text = typeof content === "string" ? content : textOf(list(content));
  const parsed = parseJson(text);
  return parsed.ok ? parsed.value : text;
}

/** The results that a request shows for its latest turn. */
export function latestResults(request: WireRequest | undefined): readonly Json[] {
  return request?.messages.at(-1)?.results.map(({ value }) => value) ?? [];
}
