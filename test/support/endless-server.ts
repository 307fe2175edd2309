import { createServer, type OutgoingHttpHeaders } from "node:http";
import { onTestFinished } from "vitest";

/** A server that does not stop answering. */
export interface EndlessServer {
  readonly url: string;
  readonly requests: number;
  /** Bytes that went out to all clients, when they had enough. */
  readonly sent: number;
}

export interface EndlessAnswer {
  readonly status?: number;
  readonly headers?: OutgoingHttpHeaders;
  /** What comes first. */
  readonly start?: string;
  /** What comes then, for ever. */
  readonly chunk: string | Buffer;
  /** Where even this server gives up. */
  readonly most: number;
}

export async function startEndlessServer(answer: EndlessAnswer): Promise<EndlessServer> {
  const { status = 200, headers = { "content-type": "text/event-stream" }, start = "", most } = answer;
  const chunk = Buffer.from(answer.chunk);
  let requests = 0;
  let sent = 0;
  const server = createServer((request, response) => {
    requests += 1;
    request.resume();
    response.writeHead(status, headers);
    response.write(start);
    const more = (): void => {
      while (!response.destroyed && sent < most) {
        sent += chunk.length;
        if (!response.write(chunk)) {
          response.once("drain", more);
          return;
        }
      }
      response.end();
    };
    more();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    get requests() {
      return requests;
    },
    get sent() {
      return sent;
    },
  };
}
