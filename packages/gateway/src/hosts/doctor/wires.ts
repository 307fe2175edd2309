import { field, type Json, type JsonObject } from "@sluice/core";

/** A call that a scripted model makes. */
export interface ScriptedCall {
  readonly name: string;
  readonly input: JsonObject;
  /** Sends `input.patch` as free text instead of JSON, as Codex expects of apply_patch. */
  readonly freeform?: boolean;
}

/** What a scripted model says at one point: calls, or its last words. */
export interface Reply {
  readonly text?: string;
  readonly calls?: readonly ScriptedCall[];
}

/** What a host sent to the model, the same for every wire. */
export interface ModelRequest {
  readonly tools: readonly string[];
  readonly messages: readonly ModelMessage[];
}

export type ModelMessage =
  | { readonly role: "user" | "assistant" | "system"; readonly text: string }
  | { readonly role: "call"; readonly name: string }
  | { readonly role: "result"; readonly text: string };

/** One protocol between a host and its model. */
export interface Wire {
  readonly name: string;
  matches(path: string): boolean;
  read(body: JsonObject): ModelRequest;
  /** The answer of an id, streamed or whole as the request asks for. */
  write(reply: Reply, id: number, request: { readonly body: JsonObject; readonly path: string }): WireAnswer;
}

export interface WireAnswer {
  readonly type: "application/json" | "text/event-stream";
  readonly body: string;
}

const anthropic: Wire = {
  name: "anthropic",
  matches: (path) => path.includes("/messages"),
  read: (body) => ({
    tools: list(body.tools).map((tool) => text(field(tool, "name"))),
    messages: list(body.messages).flatMap((message) => {
      const content = field(message, "content");
      const parts = Array.isArray(content) ? content : [{ type: "text", text: content ?? "" }];
      return parts.flatMap((part): readonly ModelMessage[] => {
        const type = field(part, "type");
        if (type === "tool_use") return [{ role: "call", name: text(field(part, "name")) }];
        if (type === "tool_result") return [{ role: "result", text: textOf(field(part, "content")) }];
        return type === "text" ? [{ role: roleOf(message), text: text(field(part, "text")) }] : [];
      });
    }),
  }),
  write(reply, id, { body }) {
    const calls = reply.calls ?? [];
    const blocks: readonly JsonObject[] = [
      ...(reply.text === undefined ? [] : [{ type: "text", text: reply.text }]),
      ...calls.map(({ name, input }, index) => ({ type: "tool_use", id: `toolu_${id}_${index}`, name, input })),
    ];
    const stop = calls.length > 0 ? "tool_use" : "end_turn";
    const message: JsonObject = {
      id: `msg_${id}`,
      type: "message",
      role: "assistant",
      model: body.model ?? "scripted",
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    };
    if (body.stream !== true) return whole({ ...message, stop_reason: stop, content: [...blocks] });
    const events = blocks.flatMap((block, index): readonly JsonObject[] => {
      const isCall = block.type === "tool_use";
      const delta = isCall
        ? { type: "input_json_delta", partial_json: JSON.stringify(block.input) }
        : { type: "text_delta", text: block.text ?? "" };
      const start = isCall ? { ...block, input: {} } : { ...block, text: "" };
      return [
        { type: "content_block_start", index, content_block: start },
        { type: "content_block_delta", index, delta },
        { type: "content_block_stop", index },
      ];
    });
    return streamed(
      [
        { type: "message_start", message: { ...message, content: [], stop_reason: null } },
        ...events,
        { type: "message_delta", delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: 1 } },
        { type: "message_stop" },
      ],
      (event) => `event: ${text(event.type)}\n`,
    );
  },
};

const gemini: Wire = {
  name: "gemini",
  matches: (path) => /generateContent/i.test(path),
  read: (body) => ({
    tools: list(body.tools).flatMap((tool) =>
      list(field(tool, "functionDeclarations")).map((declared) => text(field(declared, "name"))),
    ),
    messages: list(body.contents).flatMap((content) =>
      list(field(content, "parts")).flatMap((part): readonly ModelMessage[] => {
        const call = field(part, "functionCall");
        if (call !== undefined) return [{ role: "call", name: text(field(call, "name")) }];
        const response = field(part, "functionResponse");
        if (response !== undefined) return [{ role: "result", text: JSON.stringify(field(response, "response")) }];
        return [{ role: field(content, "role") === "model" ? "assistant" : "user", text: text(field(part, "text")) }];
      }),
    ),
  }),
  write(reply, _id, { path }) {
    const parts: JsonObject[] = [
      ...(reply.text === undefined ? [] : [{ text: reply.text }]),
      ...(reply.calls ?? []).map(({ name, input }) => ({ functionCall: { name, args: input } })),
    ];
    const answer = {
      candidates: [{ content: { role: "model", parts }, finishReason: "STOP", index: 0 }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
      modelVersion: "scripted",
    };
    return path.includes("stream") ? streamed([answer]) : whole(answer);
  },
};

const responses: Wire = {
  name: "responses",
  matches: (path) => path.includes("/responses"),
  read: (body) => ({
    tools: list(body.tools).flatMap((tool) =>
      field(tool, "type") === "namespace"
        ? list(field(tool, "tools")).map((inner) => `${text(field(tool, "name"))}/${text(field(inner, "name"))}`)
        : [text(field(tool, "name") ?? field(tool, "type"))],
    ),
    messages: list(body.input).flatMap((item): readonly ModelMessage[] => {
      const type = text(field(item, "type"));
      if (type.endsWith("_call")) return [{ role: "call", name: text(field(item, "name") ?? type) }];
      if (type.endsWith("_call_output")) return [{ role: "result", text: textOf(field(item, "output")) }];
      return field(item, "role") === undefined ? [] : [{ role: roleOf(item), text: textOf(field(item, "content")) }];
    }),
  }),
  write(reply, id, { body }) {
    const items: readonly JsonObject[] = [
      ...(reply.text === undefined
        ? []
        : [
            {
              type: "message",
              id: `msg_${id}`,
              role: "assistant",
              status: "completed",
              content: [{ type: "output_text", text: reply.text, annotations: [] }],
            },
          ]),
      ...(reply.calls ?? []).map(({ name, input, freeform }, index) =>
        callItem(name, input, freeform, `${id}_${index}`),
      ),
    ];
    const response: JsonObject = {
      id: `resp_${id}`,
      object: "response",
      created_at: 1,
      model: body.model ?? "scripted",
      status: "completed",
      output: [...items],
      usage: {
        input_tokens: 1,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens: 1,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 2,
      },
    };
    if (body.stream !== true) return whole(response);
    const events: readonly JsonObject[] = [
      { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
      ...items.flatMap((item, index): readonly JsonObject[] => [
        { type: "response.output_item.added", output_index: index, item: { ...item, status: "in_progress" } },
        { type: "response.output_item.done", output_index: index, item },
      ]),
      { type: "response.completed", response },
    ];
    return streamed(
      events.map((event, index) => ({ sequence_number: index, ...event })),
      (event) => `event: ${text(event.type)}\n`,
    );
  },
};

/** Codex names the tools of an MCP server by namespace and name. */
function callItem(name: string, input: JsonObject, freeform: boolean | undefined, id: string): JsonObject {
  const common = { call_id: `call_${id}`, status: "completed" };
  if (freeform === true)
    return { type: "custom_tool_call", id: `ctc_${id}`, ...common, name, input: text(input.patch) };
  const [space, inner] = name.split("/");
  return {
    type: "function_call",
    id: `fc_${id}`,
    ...common,
    ...(inner === undefined ? { name } : { namespace: space ?? "", name: inner }),
    arguments: JSON.stringify(input),
  };
}

const chat: Wire = {
  name: "chat",
  matches: (path) => path.includes("/chat/completions"),
  read: (body) => ({
    tools: list(body.tools).map((tool) => text(field(field(tool, "function"), "name"))),
    messages: list(body.messages).flatMap((message): readonly ModelMessage[] => {
      const content = field(message, "content");
      if (field(message, "role") === "tool") return [{ role: "result", text: textOf(content) }];
      return [
        ...(content === undefined || content === null ? [] : [{ role: roleOf(message), text: textOf(content) }]),
        ...list(field(message, "tool_calls")).map((call) => ({
          role: "call" as const,
          name: text(field(field(call, "function"), "name")),
        })),
      ];
    }),
  }),
  write(reply, id, { body }) {
    const calls = (reply.calls ?? []).map(({ name, input }, index) => ({
      index,
      id: `call_${id}_${index}`,
      type: "function",
      function: { name, arguments: JSON.stringify(input) },
    }));
    const finish = calls.length > 0 ? "tool_calls" : "stop";
    const common: JsonObject = { id: `chatcmpl-${id}`, created: 1, model: body.model ?? "scripted" };
    const message: JsonObject = {
      role: "assistant",
      content: reply.text ?? null,
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    };
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    if (body.stream !== true)
      return whole({
        ...common,
        object: "chat.completion",
        choices: [{ index: 0, finish_reason: finish, message }],
        usage,
      });
    const chunk = (delta: JsonObject, reason: string | null): JsonObject => ({
      ...common,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, finish_reason: reason }],
    });
    const answer = streamed([chunk(message, null), { ...chunk({}, finish), usage }]);
    return { ...answer, body: `${answer.body}data: [DONE]\n\n` };
  },
};

export const WIRES: readonly Wire[] = [anthropic, gemini, responses, chat];

function whole(value: JsonObject): WireAnswer {
  return { type: "application/json", body: JSON.stringify(value) };
}

function streamed(events: readonly JsonObject[], head: (event: JsonObject) => string = () => ""): WireAnswer {
  const body = events.map((event) => `${head(event)}data: ${JSON.stringify(event)}\n\n`).join("");
  return { type: "text/event-stream", body };
}

function list(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

function text(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

/** The text of content that is a string or a list of parts. */
function textOf(value: Json | undefined): string {
  if (typeof value === "string") return value;
  return list(value)
    .map((part) => text(field(part, "text") ?? field(part, "output")))
    .join("\n");
}

function roleOf(message: Json): "user" | "assistant" | "system" {
  const role = field(message, "role");
  return role === "user" || role === "assistant" ? role : "system";
}
