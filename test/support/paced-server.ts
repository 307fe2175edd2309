import { createServer, type ServerResponse } from "node:http";
import { isJsonObject, type Json, type JsonObject, parseJson } from "@sluice/core";

/** What is streamed as one answer of a model. */
export interface PacedReply {
  /** In pieces; the server sends `perSecond` of them. */
  readonly text: readonly string[];
  readonly call?: { readonly name: string; readonly input: Json };
}

export interface PacedServer {
  /** For ANTHROPIC_BASE_URL. */
  readonly url: string;
  /** When each piece went out, in milliseconds of `performance.now()`. */
  readonly sent: readonly number[];
  close(): Promise<void>;
}

/** Anthropic's Messages API on a loopback port, at the pace of a model: so many pieces of text a second. */
export async function startPacedServer(
  perSecond: number,
  reply: (body: JsonObject, n: number) => PacedReply,
): Promise<PacedServer> {
  const sent: number[] = [];
  let asked = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = parseJson(Buffer.concat(chunks).toString("utf8"));
      const answer = reply(body.ok && isJsonObject(body.value) ? body.value : {}, asked);
      asked += 1;
      stream(response, answer, asked, perSecond, sent);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    url: `http://127.0.0.1:${address.port}/v1`,
    sent,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

function stream(
  response: ServerResponse,
  { text, call }: PacedReply,
  n: number,
  perSecond: number,
  sent: number[],
): void {
  const send = (data: JsonObject): void => {
    response.write(`event: ${String(data.type)}\ndata: ${JSON.stringify(data)}\n\n`);
  };
  response.writeHead(200, { "content-type": "text/event-stream" });
  send({
    type: "message_start",
    message: {
      id: `msg_${n}`,
      type: "message",
      role: "assistant",
      model: "paced",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 10, output_tokens: 1 },
    },
  });
  send({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } });
  const started = performance.now();
  let at = 0;
  const finish = (): void => {
    send({ type: "content_block_stop", index: 0 });
    if (call !== undefined) {
      const block = { type: "tool_use", id: `toolu_${n}`, name: call.name, input: {} };
      send({ type: "content_block_start", index: 1, content_block: block });
      const delta = { type: "input_json_delta", partial_json: JSON.stringify(call.input) };
      send({ type: "content_block_delta", index: 1, delta });
      send({ type: "content_block_stop", index: 1 });
    }
    const stop = call === undefined ? "end_turn" : "tool_use";
    send({ type: "message_delta", delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: at } });
    send({ type: "message_stop" });
    response.end();
  };
  // As many as are due by now: timers come late, and the rate is meant on average.
  const timer = setInterval(
    () => {
      const due = Math.floor(((performance.now() - started) / 1_000) * perSecond);
      for (; at < Math.min(due, text.length); at += 1) {
        send({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: text[at] ?? "" } });
        sent.push(performance.now());
      }
      if (at < text.length) return;
      clearInterval(timer);
      finish();
    },
    Math.max(1, Math.floor(1_000 / perSecond)),
  );
  response.on("close", () => clearInterval(timer));
}
