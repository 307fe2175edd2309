import { createServer, type ServerResponse } from "node:http";
import { isJsonObject, type JsonObject, parseJson } from "@sluice/core";
import { onTestFinished } from "vitest";
import { z } from "zod";

/** A server of this machine that gets notifications. */
export interface Notified {
  readonly url: string;
  /** What was posted, in order. */
  readonly got: readonly JsonObject[];
  /** The same as it was sent. */
  readonly texts: readonly string[];
}

/** Starts one that answers each post with `answer`. */
export async function notifiedServer(
  answer: (response: ServerResponse) => void = (response) => void response.writeHead(204).end(),
): Promise<Notified> {
  const got: JsonObject[] = [];
  const texts: string[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    request.on("end", () => {
      const json = parseJson(text);
      if (request.method !== "POST" || !json.ok || !isJsonObject(json.value))
        throw new Error(`no JSON object: ${text}`);
      got.push(json.value);
      texts.push(text);
      answer(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = z.object({ port: z.number() }).parse(server.address());
  return { url: `http://127.0.0.1:${port}/hooks/path-secret-123`, got, texts };
}
