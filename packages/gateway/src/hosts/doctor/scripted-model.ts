import { createServer, type IncomingMessage } from "node:http";
import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { type ModelMessage, type ModelRequest, type Reply, WIRES } from "./wires.ts";

/** A model on loopback that says what a script says. A host takes it for its provider. */
export interface ScriptedModel {
  /** Without a path. */
  readonly url: string;
  /** Every request that belongs to a script, in order. */
  readonly requests: readonly ScriptedRequest[];
  close(): Promise<void>;
}

export interface ScriptedRequest extends ModelRequest {
  readonly script: string;
  readonly turn: number;
}

/** Replies by name. A prompt picks one by the words `SCRIPT:<name>`; each round of calls after it takes the next reply. */
export type Scripts = Readonly<Record<string, readonly (Reply | ((request: ModelRequest) => Reply))[]>>;

/** Bytes. A host sends its whole conversation with each request. */
const MAX_BODY = 32 * 1024 * 1024;
const DONE: Reply = { text: "ok" };

export async function startScriptedModel(scripts: Scripts): Promise<ScriptedModel> {
  const requests: ScriptedRequest[] = [];
  let count = 0;
  const server = createServer((request, response) => {
    const answer = async (): Promise<void> => {
      const path = request.url ?? "/";
      const body = await bodyOf(request);
      const wire = WIRES.find((one) => one.matches(path));
      if (request.method !== "POST" || wire === undefined || /count_?tokens/i.test(path)) {
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify(SIDE_ANSWER));
        return;
      }
      const read = wire.read(body);
      const at = positionOf(read);
      let reply = DONE;
      if (at !== undefined) {
        requests.push({ ...read, ...at });
        const replies = scripts[at.script] ?? [];
        const next = replies[at.turn] ?? DONE;
        reply = typeof next === "function" ? next(read) : next;
      }
      count += 1;
      const { type, body: text } = wire.write(reply, count, { body, path });
      response.writeHead(200, { "content-type": type });
      response.end(text);
    };
    answer().catch((thrown: unknown) => {
      if (!response.headersSent) response.writeHead(400, { "content-type": "text/plain" });
      response.end(String(thrown));
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the scripted model has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** What hosts ask besides replies: which models there are, and how many tokens a prompt has. */
const SIDE_ANSWER: JsonObject = {
  object: "list",
  data: [{ id: "scripted", object: "model", created: 1, owned_by: "scripted" }],
  models: [],
  input_tokens: 1,
  totalTokens: 1,
};

/** Where in which script a conversation is. Requests without a marker or without tools are side requests, such as titles. */
function positionOf({ messages, tools }: ModelRequest): { readonly script: string; readonly turn: number } | undefined {
  if (tools.length === 0) return undefined;
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    const message = messages[index];
    if (message?.role !== "user") continue;
    const script = [...message.text.matchAll(/SCRIPT:([\w-]+)/g)].at(-1)?.[1];
    if (script !== undefined) return { script, turn: roundsIn(messages.slice(index + 1)) };
  }
  return undefined;
}

/** Calls that follow each other were made in one reply. */
function roundsIn(messages: readonly ModelMessage[]): number {
  return messages.filter(({ role }, index) => role === "call" && messages[index - 1]?.role !== "call").length;
}

async function bodyOf(request: IncomingMessage): Promise<JsonObject> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) continue;
    bytes += chunk.length;
    if (bytes > MAX_BODY) throw new Error("the request is too large");
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString("utf8");
  const parsed: Json = text === "" ? {} : JSON.parse(text);
  return isJsonObject(parsed) ? parsed : {};
}
