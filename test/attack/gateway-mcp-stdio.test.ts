import { PassThrough } from "node:stream";
import { isJsonObject, type JsonObject, parseJson } from "@sluice/core";
import { createMcpHub, type StdioServer, serveStdio } from "@sluice/gateway";
import { describe, expect, onTestFinished, test } from "vitest";
import { type FakeRun, fakeRun } from "../support/fake-gateway-run.ts";
import { gateway, wireTools } from "../support/gateway-clients.ts";
import { handshake } from "../support/gateway-raw.ts";
import { until } from "../support/mcp.ts";

interface Wire {
  readonly run: FakeRun;
  readonly server: StdioServer;
  readonly errors: readonly string[];
  /** The messages that the gateway has written. */
  readonly written: readonly JsonObject[];
  write(line: string | Buffer): void;
  end(): void;
  /** The answer with this id, once it is there. */
  answer(id: number): Promise<JsonObject>;
}

function wire(hub?: ReturnType<typeof createMcpHub>, run: FakeRun = fakeRun(wireTools())): Wire {
  const stdin = new PassThrough();
  const stdout = new PassThrough();
  const errors: string[] = [];
  const written: JsonObject[] = [];
  let rest = "";
  stdout.on("data", (chunk: Buffer) => {
    const lines = (rest + String(chunk)).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const parsed = parseJson(line);
      if (!parsed.ok || !isJsonObject(parsed.value)) throw new Error(`not a message: ${line}`);
      written.push(parsed.value);
    }
  });
  const server = serveStdio(run, {
    version: "0.0.0",
    stdin,
    stdout,
    ...(hub === undefined ? {} : { hub }),
    onError: ({ message }) => errors.push(message),
  });
  onTestFinished(() => server.close());
  return {
    run,
    server,
    errors,
    written,
    write: (line) => void stdin.write(line),
    end: () => stdin.end(),
    answer: async (id) => {
      await until(() => written.some((message) => message.id === id));
      return written.find((message) => message.id === id) ?? {};
    },
  };
}

const line = (id: number, method: string, params: JsonObject = {}): string =>
  `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`;
const begin = (name = "first"): string =>
  line(1, "initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name, version: "1" } });

describe("a line on stdin", () => {
  test.each<[string, string | Buffer]>([
    ["that is not JSON", "{\n"],
    ["that is no message", '{"hello":1}\n'],
    ["of null", "null\n"],
    ["that is a batch", `[${line(7, "tools/call", { name: "Read" }).trim()}]\n`],
    ["with bytes that are not text", Buffer.from([0xff, 0xfe, 0x0a])],
    ["that is empty", "\n\n\n"],
    ["nested deeply", `${"[".repeat(100_000)}${"]".repeat(100_000)}\n`],
    [
      "that answers nothing",
      '{"jsonrpc":"2.0","id":99,"result":{"action":"accept","content":{"decision":"approve"}}}\n',
    ],
  ])("%s is not run, and the next one is answered", async (_name, hostile) => {
    const { run, write, answer } = wire();
    write(begin());
    await answer(1);
    write(hostile);
    write(line(2, "tools/call", { name: "Read", arguments: { path: "a" } }));
    expect(await answer(2)).toMatchObject({ result: { content: [{ text: 'read {"path":"a"}' }] } });
    expect(run.calls).toHaveLength(1);
    expect(run.answers).toEqual([]);
  });

  test("that does not end is not kept: the connection is closed", async () => {
    const { run, server, write } = wire();
    const chunk = "a".repeat(1024 * 1024);
    for (let sent = 0; sent < 5; sent += 1) write(chunk);
    await server.closed;
    expect(run.calls).toEqual([]);
  });

  test("with a second handshake changes nothing", async () => {
    const { write, answer, run } = wire();
    write(begin());
    await answer(1);
    write(line(2, "tools/call", { name: "Read" }));
    await answer(2);
    write(begin("second").replace('"id":1', '"id":3'));
    await answer(3);
    write(line(4, "tools/call", { name: "Read" }));
    expect(await answer(4)).toMatchObject({ result: { content: [{ text: "read {}" }] } });
    expect(run.calls).toHaveLength(2);
  });
});

describe("a process", () => {
  test("that closes stdin ends its connection and its calls", async () => {
    const { run, server, write, answer, end, written } = wire();
    write(begin());
    await answer(1);
    write(line(2, "tools/call", { name: "Slow" }));
    await until(() => run.calls.length === 1);
    end();
    await server.closed;
    await until(() => run.calls[0]?.signal?.aborted === true);
    expect(written.map(({ id }) => id)).toEqual([1]);
  });

  test("holds the run against agents over HTTP as long as its pipe is open", async () => {
    const run = fakeRun(wireTools());
    const hub = createMcpHub(run, { version: "0.0.0", idleMs: 1, goneMs: 1 });
    const http = await gateway(run, { hub });
    const own = wire(hub, run);
    own.write(begin());
    await own.answer(1);
    own.write(line(2, "tools/call", { name: "Read" }));
    await own.answer(2);
    expect((await handshake(http, { name: "second" })).text).toContain("already worked on by first 1");
    own.end();
    await own.server.closed;
    expect((await handshake(http, { name: "second" })).session).not.toBe("");
  });

  test("is refused while an agent over HTTP holds the run", async () => {
    const run = fakeRun(wireTools());
    const hub = createMcpHub(run, { version: "0.0.0" });
    const http = await gateway(run, { hub });
    await handshake(http, { name: "over HTTP" });
    const own = wire(hub, run);
    own.write(begin());
    await own.answer(1);
    own.write(line(2, "tools/list"));
    expect(await own.answer(2)).toMatchObject({ error: { message: expect.stringContaining("over HTTP 1") } });
    own.write(line(3, "tools/call", { name: "Read" }));
    expect(await own.answer(3)).toMatchObject({ result: { isError: true } });
    expect(run.calls).toEqual([]);
  });
});
