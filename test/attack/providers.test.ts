import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { done, pipeline, stage } from "@sluice/core";
import { recordTraffic } from "@sluice/stages";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { chooseModel } from "../../packages/stages/src/models/default-model.ts";
import { handClock } from "../support/hand-clock.ts";
import { PROVIDERS, providerOf, TEST_KEY } from "../support/providers.ts";
import { eventsOf, session } from "../support/run-kit.ts";

interface Heard {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}
interface Listener {
  readonly url: string;
  readonly heard: readonly Heard[];
}

/** A server that answers everybody the same way. */
async function listener(
  answer: (request: Heard) => {
    readonly status: number;
    readonly headers?: Record<string, string>;
    readonly body?: string;
  },
): Promise<Listener> {
  const heard: Heard[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const one = { url: request.url ?? "", headers: request.headers, body: Buffer.concat(chunks).toString() };
      heard.push(one);
      const { status, headers, body } = answer(one);
      response.writeHead(status, headers);
      response.end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("not listening");
  return { url: `http://127.0.0.1:${address.port}`, heard };
}

const work = pipeline({
  id: "work",
  input: z.object({ task: z.string() }),
  stages: {
    work: stage({
      prompt: "Do it.",
      allowedTools: [],
      completionTool: "finish",
      completionSchema: z.object({ text: z.string() }),
      turnCap: 2,
    }),
  },
  initial: "work",
  next: { work: ({ output }) => done(output.text) },
});

/** Everything a run left behind: its result, its record with step values, its cassette, and what was said of it. */
async function leavings(name: (typeof PROVIDERS)[number], url: string, task = "x") {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "sluice-attack-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { model, env } = providerOf(name);
  const clock = handClock();
  const faults: string[] = [];
  const live = session({
    model,
    env: { PATH: "/usr/bin:/bin", ...env(url) },
    cwd: folder,
    clock,
    traffic: recordTraffic(join(folder, "cassette.jsonl")),
    onFault: ({ message }) => void faults.push(message),
  });
  const handle = live.start(work, { task });
  for await (const { type } of handle.events) {
    if (type !== "model.retried") continue;
    while (clock.waiting() === 0) await setImmediate();
    clock.turn(60_000);
  }
  const result = await handle;
  const journal = await live.host.journal(handle.runId);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((file) => join(folder, file));
  return {
    result,
    all: JSON.stringify([result, journal, await eventsOf(live.host, handle.runId), faults]),
    files: files.filter((file) => statSync(file).isFile()).map((file) => readFileSync(file, "utf8")),
  };
}

describe("a key and a prompt go to the address they are for, and a redirect does not take them elsewhere", () => {
  test.each(PROVIDERS.flatMap((name) => [301, 307, 308].map((status) => [name, status] as const)))(
    "%s, %i",
    async (name, status) => {
      const other = await listener(() => ({ status: 500 }));
      const asked = await listener(({ url }) => ({ status, headers: { location: `${other.url}${url}` } }));
      const { result } = await leavings(name, asked.url);
      expect(other.heard).toEqual([]);
      expect(asked.heard).toHaveLength(1);
      expect(result).toMatchObject({ status: "failed", error: { code: "model" } });
    },
  );
});

describe("a key that a provider repeats stands nowhere afterwards", () => {
  const bearer = `Bearer ${TEST_KEY}`;
  const echoes: Readonly<Record<string, string>> = {
    "in the message": `wrong key ${TEST_KEY}`,
    "in a name": TEST_KEY,
    "so often that it is cut": `${TEST_KEY} `.repeat(400),
    "in escapes": Array.from(TEST_KEY, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`).join(""),
    "with its scheme": bearer,
  };
  test.each(PROVIDERS.flatMap((name) => Object.keys(echoes).map((how) => [name, how] as const)))(
    "%s, %s",
    async (name, how) => {
      const said = echoes[how] ?? "";
      const body = `{"error":{"message":"${said}","type":"${said}","code":"${said}","status":"${said}","param":"${said}"},"message":"${said}"}`;
      const server = await listener(() => ({
        status: 401,
        headers: { "content-type": "application/json", "x-request-id": TEST_KEY },
        body,
      }));
      const { all, files } = await leavings(name, server.url);
      for (const text of [all, ...files]) {
        expect(text).not.toContain(TEST_KEY);
        // Most of it is as good as all of it.
        expect(text).not.toContain(TEST_KEY.slice(0, -4));
      }
    },
  );

  test("also one of no known form, where its message is cut in the middle of it", async () => {
    const key = "0f".repeat(100);
    const server = await listener(() => ({
      status: 400,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ error: { message: `${key} `.repeat(100) } }),
    }));
    const provider = providerOf("openai-compatible");
    const live = session({
      model: provider.model,
      env: { ...provider.env(server.url), OPENAI_COMPATIBLE_API_KEY: key },
    });
    const result = await live.run(work, { task: "x" });
    expect(JSON.stringify([result, await live.host.journal(result.runId)])).not.toContain(key.slice(0, 12));
  });
});

describe("what calls itself an Ollama", () => {
  const choose = (url: string, env: Readonly<Record<string, string>> = {}) =>
    chooseModel({ env: { OLLAMA_HOST: url, ...env }, clock: handClock() });

  test.each([
    ["names that write on the terminal", [{ name: "a\u001b[2Jb" }, { name: "x\nsluice: ok" }, { name: "\u202ea" }]],
    ["ids of other providers", [{ name: "../../openai/gpt" }, { name: "" }, { name: "-x" }]],
    ["no texts", [{ name: { toString: "x" } }, null, 7, []]],
    ["prototype keys", [{ __proto__: { name: "x" } }]],
  ])("has %s: it is not chosen", async (_what, models) => {
    const server = await listener(() => ({ status: 200, body: JSON.stringify({ models }) }));
    expect(await choose(server.url)).toBeUndefined();
  });

  test("redirects: its key goes nowhere else", async () => {
    const other = await listener(() => ({ status: 200, body: '{"models":[{"name":"evil"}]}' }));
    const server = await listener(() => ({ status: 307, headers: { location: `${other.url}/api/tags` } }));
    expect(await choose(server.url, { OLLAMA_API_KEY: TEST_KEY })).toBeUndefined();
    expect(other.heard).toEqual([]);
  });

  test("answers with more than a list can be: it is not chosen", async () => {
    const server = await listener(() => ({
      status: 200,
      body: `{"models":[{"name":"x"}],"pad":"${"x".repeat(2 ** 21)}"}`,
    }));
    expect(await choose(server.url)).toBeUndefined();
  });

  test.each(["http://user:secret-9@h", "user:secret-9@h", "ftp://secret-9", "http://[secret-9", "h:secret-9"])(
    "stands at %s: it is refused, and what may be a key is not repeated",
    async (host) => {
      const thrown = await choose(host).then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(thrown).toMatchObject({ code: "invalid_base_url" });
      expect(String(thrown)).not.toContain("secret-9");
    },
  );
});
