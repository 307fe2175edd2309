import { createServer, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { crc32 } from "node:zlib";
import type { Json, JsonObject } from "@sluice/core";
import { onTestFinished } from "vitest";

/** A request as a cloud's endpoint receives it. */
export interface CloudRequest {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: JsonObject;
}

/** What is sent to the server behind an endpoint. */
export interface Forwarded {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: JsonObject;
}

/**
 * A cloud's endpoint in front of the server of a model's maker: it receives requests in the cloud's form, and `forward` turns them into
 * those that the server checks and answers.
 */
export async function startCloudFront(behind: string, forward: (request: CloudRequest) => Forwarded) {
  const requests: CloudRequest[] = [];
  const server = createServer((incoming, response) => {
    const answer = async (): Promise<void> => {
      const request: CloudRequest = {
        path: incoming.url ?? "",
        headers: incoming.headers,
        body: JSON.parse(await text(incoming)),
      };
      requests.push(request);
      const { path, headers, body } = forward(request);
      const reply = await fetch(`${behind}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
      response.writeHead(reply.status, { "content-type": reply.headers.get("content-type") ?? "" });
      response.end(await reply.text());
    };
    answer().catch((fault: unknown) => response.destroy(fault instanceof Error ? fault : new Error(String(fault))));
  });
  return { url: await listening(server), requests };
}

/** Amazon Bedrock's Converse API: each reply is a list of events, sent as binary frames. */
export async function startBedrockServer(replies: readonly (readonly BedrockEvent[])[]) {
  const requests: CloudRequest[] = [];
  const server = createServer((incoming, response) => {
    const answer = async (): Promise<void> => {
      const n = requests.push({
        path: incoming.url ?? "",
        headers: incoming.headers,
        body: JSON.parse(await text(incoming)),
      });
      response.writeHead(200, { "content-type": "application/vnd.amazon.eventstream" });
      for (const [type, data] of replies[n - 1] ?? []) response.write(frame(type, data));
      response.end();
    };
    answer().catch((fault: unknown) => response.destroy(fault instanceof Error ? fault : new Error(String(fault))));
  });
  return { url: await listening(server), requests };
}

export type BedrockEvent = readonly [type: string, data: Json];

/** The events of a reply with one call. */
export function bedrockCall(name: string, input: Json): readonly BedrockEvent[] {
  return [
    ["messageStart", { role: "assistant" }],
    ["contentBlockStart", { contentBlockIndex: 0, start: { toolUse: { toolUseId: `tooluse_${name}`, name } } }],
    ["contentBlockDelta", { contentBlockIndex: 0, delta: { toolUse: { input: JSON.stringify(input) } } }],
    ["contentBlockStop", { contentBlockIndex: 0 }],
    ["messageStop", { stopReason: "tool_use" }],
    ["metadata", { usage: { inputTokens: 20, outputTokens: 10, totalTokens: 30 }, metrics: { latencyMs: 1 } }],
  ];
}

/** One frame: lengths, headers, payload, and the checksums of its first eight bytes and of all. */
function frame(type: string, data: Json): Buffer {
  const headers = Buffer.concat(
    Object.entries({ ":message-type": "event", ":event-type": type, ":content-type": "application/json" }).map(
      ([name, value]) => {
        const size = Buffer.alloc(2);
        size.writeUInt16BE(value.length);
        return Buffer.concat([
          Buffer.from([name.length]),
          Buffer.from(name),
          Buffer.from([7]),
          size,
          Buffer.from(value),
        ]);
      },
    ),
  );
  const payload = Buffer.from(JSON.stringify(data));
  const prelude = Buffer.alloc(8);
  prelude.writeUInt32BE(16 + headers.length + payload.length);
  prelude.writeUInt32BE(headers.length, 4);
  const body = Buffer.concat([prelude, checksum(prelude), headers, payload]);
  return Buffer.concat([body, checksum(body)]);
}

function checksum(bytes: Buffer): Buffer {
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(bytes));
  return sum;
}

async function listening(server: ReturnType<typeof createServer>): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  );
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return `http://127.0.0.1:${address.port}`;
}
