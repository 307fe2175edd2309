import type { IncomingMessage, ServerResponse } from "node:http";

/** A request of node:http as the web's Request. Its signal aborts when the client goes away before it is answered. */
export function toWebRequest(req: IncomingMessage, body: Buffer, res: ServerResponse, base: string): Request {
  const gone = new AbortController();
  res.once("close", () => {
    if (!res.writableFinished) gone.abort();
  });
  const headers = new Headers();
  for (const [name, value] of Object.entries(req.headers)) {
    if (typeof value === "string") headers.set(name, value);
    else for (const each of value ?? []) headers.append(name, each);
  }
  const method = req.method ?? "GET";
  const hasBody = method !== "GET" && method !== "HEAD";
  return new Request(new URL(req.url ?? "/", base), {
    method,
    headers,
    signal: gone.signal,
    ...(hasBody ? { body: new Uint8Array(body) } : {}),
  });
}

/** Writes a Response to node:http. A client that goes away ends the stream. */
export async function sendWebResponse(response: Response, res: ServerResponse): Promise<void> {
  if (res.destroyed) {
    await response.body?.cancel();
    return;
  }
  res.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body === null) return await ended(res);
  res.flushHeaders();
  const reader = response.body.getReader();
  res.once("close", () => void reader.cancel());
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (!res.write(value)) await drained(res);
  }
  await ended(res);
}

/** Ends the answer, and settles when it is written or the client has gone. */
function ended(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (res.destroyed) resolve();
    res.once("close", () => resolve());
    res.end(() => resolve());
  });
}

function drained(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (res.destroyed) resolve();
    res.once("drain", () => resolve());
    res.once("close", () => resolve());
  });
}
