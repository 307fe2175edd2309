import { connect } from "node:net";
import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { newGatewayToken, startGatewayServer } from "@sluice/gateway";
import { describe, expect, test } from "vitest";
import { type FakeRun, fakeRun } from "../support/fake-gateway-run.ts";
import { gatewayRun, pipelineOf } from "../support/gateway.ts";
import { gateway, type TestGateway, wireTools } from "../support/gateway-clients.ts";
import { bytes, handshake, inSession, modern, modernCall, type RawAnswer, raw } from "../support/gateway-raw.ts";
import { handClock } from "../support/hand-clock.ts";
import { until } from "../support/mcp.ts";
import { tempFolder } from "../support/tools.ts";

async function opened(
  options: Parameters<typeof gateway>[1] = {},
): Promise<{ readonly run: FakeRun; readonly server: TestGateway }> {
  const run = fakeRun(wireTools(), options.clock === undefined ? {} : { clock: options.clock });
  return { run, server: await gateway(run, options) };
}

const CALL = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "Read", arguments: {} } });

/** What a result says to the model, and whether it is an error. */
function resultIn({ message }: RawAnswer): JsonObject {
  const result = message.result;
  return isJsonObject(result) ? result : {};
}
function textIn(answer: RawAnswer): string {
  const content = resultIn(answer).content;
  const [first] = Array.isArray(content) ? content : [];
  return isJsonObject(first) && typeof first.text === "string" ? first.text : "";
}
function codeIn({ message }: RawAnswer): Json | undefined {
  const error = message.error;
  return isJsonObject(error) ? error.code : undefined;
}

describe("a token", () => {
  test.each<[string, (token: string) => string | undefined]>([
    ["that is absent", () => undefined],
    ["that is empty", () => "Bearer "],
    ["of the right length", (token) => `Bearer ${"A".repeat(token.length)}`],
    ["that is cut", (token) => `Bearer ${token.slice(0, -1)}`],
    ["that is longer", (token) => `Bearer ${token}A`],
    ["in other letter case", (token) => `Bearer ${token.toLowerCase()}`],
    ["in two parts", (token) => `Bearer ${token.slice(0, 10)} ${token.slice(10)}`],
    ["sent as a password", (token) => `Basic ${Buffer.from(`user:${token}`).toString("base64")}`],
    ["without its scheme", (token) => token],
    ["after a wrong one", (token) => `Bearer x, Bearer ${token}`],
    ["of another gateway", () => `Bearer ${newGatewayToken()}`],
  ])("%s opens nothing", async (_name, made) => {
    const { run, server } = await opened();
    const given = made(server.token);
    const answer = await raw(server, { headers: { authorization: given }, body: CALL });
    expect(answer.status).toBe(401);
    expect(answer.headers["www-authenticate"]).toBe("Bearer");
    expect(answer.text).not.toContain(server.token);
    expect(run.calls).toEqual([]);
  });

  test("outside of its header opens nothing", async () => {
    const { run, server } = await opened();
    const authorization = undefined;
    const query = await raw(server, { path: `/mcp?token=${server.token}`, headers: { authorization }, body: CALL });
    const cookie = await raw(server, { headers: { authorization, cookie: `token=${server.token}` }, body: CALL });
    const inside = await raw(server, {
      headers: { authorization },
      body: JSON.stringify({ ...JSON.parse(CALL), authorization: `Bearer ${server.token}` }),
    });
    expect([query.status, cookie.status, inside.status]).toEqual([401, 401, 401]);
    expect(run.calls).toEqual([]);
  });

  test("is asked for by every request of a connection", async () => {
    const { run, server } = await opened();
    const head = (token: string): string =>
      [
        "POST /mcp HTTP/1.1",
        "Host: 127.0.0.1",
        `Authorization: Bearer ${token}`,
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        `Content-Length: ${Buffer.byteLength(CALL)}`,
        "",
        CALL,
      ].join("\r\n");
    const answers = await bytes(server, head(server.token) + head("wrong"));
    expect(answers.match(/^HTTP\/1\.1 \d+/gm)).toEqual(["HTTP/1.1 400", "HTTP/1.1 401"]);
    expect(run.calls).toEqual([]);
  });

  test("that can be guessed starts no gateway", async () => {
    const run = fakeRun(wireTools());
    for (const token of ["", "secret", " ".repeat(40), "a\n".repeat(20)]) {
      await expect(startGatewayServer({ run, token, version: "0.0.0" })).rejects.toMatchObject({
        code: "gateway_token_weak",
      });
    }
  });

  test("is needed for every path, and hides which paths there are", async () => {
    const run = fakeRun(wireTools());
    const server = await gateway(run, {
      routes: [{ path: "/hook/test", handle: async (_req, body, res) => void res.end(`got ${body.length}`) }],
    });
    const without = { headers: { authorization: undefined } };
    for (const path of ["/mcp", "/hook/test", "/hook/other", "/"]) {
      expect((await raw(server, { path, ...without })).status).toBe(401);
    }
    expect((await raw(server, { path: "/hook/test", body: "abc" })).text).toBe("got 3");
  });
});

describe("a page of another site", () => {
  test.each<[string, Readonly<Record<string, string>>]>([
    ["with its own name for this address", { host: "evil.example" }],
    ["with a name that begins like this address", { host: "127.0.0.1.evil.example" }],
    ["with a name that ends like this address", { host: "evil-localhost" }],
    ["with its origin", { origin: "https://evil.example" }],
    ["with a hidden origin", { origin: "null" }],
    ["with an origin that begins like this address", { origin: "http://localhost.evil.example" }],
    ["with an origin that cannot be read", { origin: "http://[" }],
  ])("%s is refused, token or not", async (_name, headers) => {
    const { run, server } = await opened();
    expect((await raw(server, { headers, body: CALL })).status).toBe(403);
    expect(run.calls).toEqual([]);
  });

  test("gets no permission to read answers", async () => {
    const { server } = await opened();
    const preflight = await raw(server, {
      method: "OPTIONS",
      headers: {
        authorization: undefined,
        origin: "http://localhost:3000",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization",
      },
    });
    expect(preflight.status).toBe(401);
    expect(Object.keys(preflight.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
  });
});

describe("a body", () => {
  test("that says it is too large is not read", async () => {
    const { server } = await opened();
    const answer = await bytes(
      server,
      `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${server.token}\r\nContent-Length: 999999999\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 413/);
  });

  test("that is too large without saying so is not kept", async () => {
    const { run, server } = await opened();
    const answer = await raw(server, {
      headers: { "transfer-encoding": "chunked" },
      body: Buffer.alloc(4 * 1024 * 1024 + 1, "a"),
    }).catch((error: Error) => error.message);
    // The gateway answers and hangs up; a client that still writes sees only the second.
    if (typeof answer === "string") expect(answer).toMatch(/EPIPE|ECONNRESET|hang up/);
    else expect(answer.status).toBe(413);
    expect(run.calls).toEqual([]);
  });

  test.each<[string, string | Buffer, number]>([
    ["that is not JSON", "{", 400],
    ["that is empty", "", 400],
    ["of null", "null", 400],
    ["of a number", "1", 400],
    ["that is not JSON-RPC", '{"hello":1}', 400],
    ["with bytes that are not text", Buffer.from([0xff, 0xfe, 0x00]), 400],
    ["nested a million levels deep", `${"[".repeat(1_000_000)}${"]".repeat(1_000_000)}`, 400],
    [
      "with a deep member",
      `{"jsonrpc":"2.0","id":1,"method":"ping","params":${'{"a":'.repeat(2_000)}1${"}".repeat(2_000)}}`,
      400,
    ],
    ["that is a batch", `[${CALL}]`, 400],
    ["that hides a handshake in a batch", `[${CALL},{"jsonrpc":"2.0","id":1,"method":"initialize"}]`, 400],
    ["that is an empty batch", "[]", 400],
  ])("%s is refused", async (_name, body, status) => {
    const { run, server } = await opened();
    const answer = await raw(server, { body });
    expect(answer.status).toBe(status);
    expect(run.calls).toEqual([]);
  });

  test("that is a batch in a session is refused", async () => {
    const { run, server } = await opened();
    const headers = { "mcp-session-id": (await handshake(server, { version: "2025-03-26" })).session };
    const answer = await raw(server, { headers, body: `[${CALL},${CALL}]` });
    expect(answer.status).toBe(400);
    expect(run.calls).toEqual([]);
  });

  test("of another type, or compressed, is refused", async () => {
    const { run, server } = await opened();
    expect((await raw(server, { headers: { "content-type": "text/plain" }, body: CALL })).status).toBe(400);
    const { session } = await handshake(server);
    const headers = { "mcp-session-id": session, "content-type": "application/x-www-form-urlencoded" };
    expect((await raw(server, { headers, body: CALL })).status).toBe(415);
    expect(
      (await raw(server, { headers: { "content-encoding": "gzip" }, body: Buffer.from("1f8b", "hex") })).status,
    ).toBe(400);
    expect(run.calls).toEqual([]);
  });

  test("with two lengths is refused", async () => {
    const { run, server } = await opened();
    const answer = await bytes(
      server,
      `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${server.token}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${CALL}`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400/);
    expect(run.calls).toEqual([]);
  });
});

describe("a path", () => {
  test.each([
    "/mcp/",
    "//mcp",
    "/mcp/../mcp",
    "/MCP",
    "/%6dcp",
    "http://127.0.0.1/mcp",
    "/mcp;x=1",
    "/__proto__",
    "/constructor",
  ])("%s serves nothing", async (path) => {
    const { run, server } = await opened();
    expect((await raw(server, { path, body: CALL })).status).toBe(404);
    expect(run.calls).toEqual([]);
  });
});

describe("arguments", () => {
  test("with the names of prototypes change nothing but themselves", async () => {
    const { run, server } = await opened();
    const hostile = JSON.parse('{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"isAdmin":true}}}');
    await modernCall(server, "Read", hostile);
    expect(Object.hasOwn(Object.prototype, "isAdmin")).toBe(false);
    const input = run.calls[0]?.input;
    expect(isJsonObject(input) && "isAdmin" in input).toBe(false);
  });

  test("nested too deeply are a result that the model reads", async () => {
    const { run, server } = await opened();
    let deep: Json = 1;
    for (let level = 0; level < 300; level += 1) deep = { a: deep };
    const answer = await modernCall(server, "Read", { deep });
    expect(resultIn(answer).isError).toBe(true);
    expect(textIn(answer)).toContain("nested deeper");
    expect(run.calls).toEqual([]);
  });

  test("that are not an object reach no tool", async () => {
    const { run, server } = await opened();
    for (const args of [[], "x", 1, null, true]) {
      const answer = await modernCall(server, "Read", args);
      expect(codeIn(answer) ?? resultIn(answer).isError).toBeTruthy();
    }
    expect(run.calls).toEqual([]);
  });

  test.each(["__proto__", "constructor", "toString", "hasOwnProperty", "", "get_state\u0000", "../Read", "READ"])(
    "for a tool named %j reach no tool",
    async (tool) => {
      const { server } = await opened();
      const answer = await inSession(server, (await handshake(server)).session, "tools/call", { name: tool });
      expect(resultIn(answer).isError).toBe(true);
      expect(textIn(answer)).toContain("unknown_tool");
    },
  );
});

describe("a verb of people", () => {
  test.each([
    "sluice/approve",
    "tasks/cancel",
    "tasks/result",
    "logging/setLevel",
    "resources/read",
    "prompts/get",
    "completion/complete",
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
  ])("%s is not a method", async (method) => {
    const { run, server } = await opened();
    const { session } = await handshake(server);
    expect(codeIn(await inSession(server, session, method))).toBe(-32601);
    expect(codeIn(await modern(server, method))).toBe(-32601);
    expect(run.answers).toEqual([]);
  });

  test("is not a tool of a run", async () => {
    const document = {
      id: "one",
      initial: "work",
      states: {
        work: { instructions: "Work.", allowed_tools: ["Read"], on: { DONE: "done" } },
        done: { type: "final" },
      },
    };
    const run = gatewayRun({ pipeline: await pipelineOf(document), root: tempFolder().root });
    const server = await gateway(run);
    for (const verb of ["approve", "grant", "answer", "load", "cancel", "resume", "set_state", "sluice"]) {
      const answer = await modernCall(server, verb, { requestId: "plan#1/a1/t1.c0" });
      expect(resultIn(answer).isError).toBe(true);
    }
    for (const data of [
      { event: "DONE", by: "user", approve: true },
      { event: "__proto__" },
      { event: ["DONE"] },
      {},
    ]) {
      expect(resultIn(await modernCall(server, "transition", data)).isError).toBe(true);
    }
    expect(run.now().state).toBe("work");
  });
});

describe("a second agent", () => {
  test("with the run's token is refused with who works on the run, in every revision", async () => {
    const { run, server } = await opened();
    const first = await handshake(server, { name: "first" });
    await inSession(server, first.session, "tools/call", { name: "Read" });
    const second = await handshake(server, { name: "second" });
    expect(second.session).toBe("");
    expect(second.text).toContain("already worked on by first 1");
    const twin = await handshake(server, { name: "first" });
    expect(twin.text).toContain("already worked on by first 1");
    const modernCaller = await modernCall(server, "Read", {}, { name: "second" });
    expect(textIn(modernCaller)).toContain("already worked on by first 1");
    expect((await modern(server, "tools/list", { name: "second" })).text).toContain("already worked on");
    expect(run.calls).toHaveLength(1);
    expect(textIn(await inSession(server, first.session, "tools/call", { name: "Read" }))).toContain("read");
  });

  test("cannot write on the screen with its name", async () => {
    const { server } = await opened();
    await handshake(server, { name: `\u001b[2J\u202Eevil\n${"x".repeat(5_000)}` });
    const { text } = await handshake(server, { name: "second" });
    for (const hidden of ["\u001b", "\u202e"]) expect(text).not.toContain(hidden);
    expect(text.length).toBeLessThan(1_000);
  });

  test.each(["../../etc/passwd", "__proto__", "constructor", "*", "00000000-0000-0000-0000-000000000000", "stdio"])(
    "has no session %s",
    async (id) => {
      const { run, server } = await opened();
      const first = await handshake(server, { name: "first" });
      expect((await inSession(server, id, "tools/call", { name: "Read" })).status).toBe(404);
      expect(
        (await raw(server, { method: "GET", headers: { "mcp-session-id": id, accept: "text/event-stream" } })).status,
      ).toBe(404);
      expect((await raw(server, { method: "DELETE", headers: { "mcp-session-id": id } })).status).toBe(404);
      expect(run.calls).toEqual([]);
      expect((await inSession(server, first.session, "ping")).status).toBe(200);
    },
  );

  test("cannot begin a session in the one of the first", async () => {
    const { server } = await opened();
    const first = await handshake(server, { name: "first" });
    const again = await handshake(server, { name: "second", id: first.session });
    expect(again.text).toContain("already worked on");
    expect((await inSession(server, first.session, "ping")).status).toBe(200);
  });

  test("without a session gets nothing", async () => {
    const { run, server } = await opened();
    expect((await raw(server, { body: CALL })).status).toBe(400);
    expect((await raw(server, { method: "GET" })).status).toBe(400);
    expect((await raw(server, { method: "PUT", body: CALL })).status).toBe(400);
    expect(run.calls).toEqual([]);
  });

  test("takes the place of one that was idle, which then has no session any more", async () => {
    const clock = handClock();
    const { server } = await opened({ clock, idleMs: 60_000 });
    const first = await handshake(server, { name: "first" });
    clock.turn(59_000);
    expect((await handshake(server, { name: "second" })).text).toContain("already worked on");
    await inSession(server, first.session, "ping");
    clock.turn(59_000);
    expect((await handshake(server, { name: "second" })).text).toContain("already worked on");
    clock.turn(2_000);
    const second = await handshake(server, { name: "second" });
    expect(second.session).not.toBe("");
    expect((await inSession(server, first.session, "tools/call", { name: "Read" })).status).toBe(404);
  });

  test("does not take the place of one whose call goes on", async () => {
    const clock = handClock();
    const { run, server } = await opened({ clock, idleMs: 60_000 });
    const first = await handshake(server, { name: "first" });
    const stop = new AbortController();
    const call = raw(server, {
      headers: { "mcp-session-id": first.session },
      body: JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "Slow" } }),
      signal: stop.signal,
    }).catch((error: Error) => error.name);
    await until(() => run.calls.length === 1);
    clock.turn(3_600_000);
    expect((await handshake(server, { name: "second" })).text).toContain("already worked on");
    stop.abort();
    expect(await call).toBe("AbortError");
  });

  test("does not take the place of one whose stream is open", async () => {
    const clock = handClock();
    const { server } = await opened({ clock, idleMs: 60_000, goneMs: 5_000 });
    const first = await handshake(server, { name: "first" });
    const stop = new AbortController();
    await raw(server, {
      method: "GET",
      headers: { "mcp-session-id": first.session, accept: "text/event-stream" },
      signal: stop.signal,
      headersOnly: true,
    });
    clock.turn(3_600_000);
    expect((await handshake(server, { name: "second" })).text).toContain("already worked on");
    stop.abort();
    await until(() => clock.waiting() > 0);
    clock.turn(5_000);
    expect((await handshake(server, { name: "second" })).session).not.toBe("");
  });

  test("does not profit from a clock that jumps", async () => {
    let now = 1_000;
    const clock = { now: () => now, after: () => () => undefined };
    const { server } = await opened({ clock });
    await handshake(server, { name: "first" });
    now += 365 * 24 * 3_600_000;
    expect((await handshake(server, { name: "second" })).text).toContain("already worked on");
    now = 0;
    expect((await handshake(server, { name: "second" })).text).toContain("already worked on");
  });
});

describe("a session", () => {
  test("that was closed is gone", async () => {
    const { run, server } = await opened();
    const { session } = await handshake(server);
    expect((await raw(server, { method: "DELETE", headers: { "mcp-session-id": session } })).status).toBe(200);
    expect((await inSession(server, session, "tools/call", { name: "Read" })).status).toBe(404);
    expect((await handshake(server, { name: "second" })).session).not.toBe(session);
    expect(run.calls).toEqual([]);
  });

  test("replays nothing to a client that names an event", async () => {
    const { server } = await opened();
    const { session } = await handshake(server);
    await inSession(server, session, "tools/call", { name: "Read" });
    const other = { accept: "text/event-stream", "last-event-id": "1", "mcp-session-id": "foreign" };
    expect((await raw(server, { method: "GET", headers: other })).status).toBe(404);
    const stop = new AbortController();
    const own = raw(server, { method: "GET", headers: { ...other, "mcp-session-id": session }, signal: stop.signal });
    const outcome = own.then(
      ({ text }) => text,
      (error: Error) => error.name,
    );
    await inSession(server, session, "ping");
    stop.abort();
    expect(await outcome).toBe("AbortError");
  });

  test("takes no answers that were not asked for", async () => {
    const { run, server } = await opened();
    const { session } = await handshake(server);
    const body = JSON.stringify({
      jsonrpc: "2.0",
      id: 0,
      result: { action: "accept", content: { decision: "approve" } },
    });
    expect((await raw(server, { headers: { "mcp-session-id": session }, body })).status).toBe(202);
    expect(run.answers).toEqual([]);
  });

  test("with more calls than a gateway takes is refused with the reason", async () => {
    const { run, server } = await opened({ maxCalls: 2 });
    const { session } = await handshake(server);
    const stop = new AbortController();
    const slow = [3, 4].map((id) =>
      raw(server, {
        headers: { "mcp-session-id": session },
        body: JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name: "Slow" } }),
        signal: stop.signal,
      }).catch((error: Error) => error.name),
    );
    await until(() => run.calls.length === 2);
    expect(textIn(await inSession(server, session, "tools/call", { name: "Read" }))).toContain(
      "2 calls are in progress",
    );
    stop.abort();
    expect(await Promise.all(slow)).toEqual(["AbortError", "AbortError"]);
    await until(() => run.calls.every(({ signal }) => signal?.aborted === true));
    expect(textIn(await inSession(server, session, "tools/call", { name: "Read" }))).toContain("read");
  });
});

describe("a requestState", () => {
  const ARGS = { to: "prod" };
  const approve = { decision: { action: "accept", content: { decision: "approve" } } };
  const leave = { decision: { action: "cancel" } };
  const asked = async (options: Parameters<typeof gateway>[1] = {}) => {
    const world = await opened({ elicitation: "approve", ...options });
    const answer = await modernCall(world.server, "Deploy", ARGS, { elicits: true });
    expect(resultIn(answer).resultType).toBe("input_required");
    const state = resultIn(answer).requestState;
    if (typeof state !== "string") throw new Error("no state came back");
    return { ...world, state };
  };
  const retry = (server: TestGateway, state: Json, responses: Json, tool = "Deploy", args: Json = ARGS) =>
    modernCall(server, tool, args, { elicits: true, more: { requestState: state, inputResponses: responses } });

  test("approves its call once, and cannot be used again", async () => {
    const { run, server, state } = await asked();
    expect(textIn(await retry(server, state, approve))).toBe("deployed");
    expect(run.ran).toHaveLength(1);
    const replayed = await retry(server, state, approve);
    expect(codeIn(replayed)).toBe(-32602);
    expect(run.ran).toHaveLength(1);
    expect(run.open.size).toBe(0);
  });

  test("that was used to leave the request open cannot approve afterwards", async () => {
    const { run, server, state } = await asked();
    expect(textIn(await retry(server, state, leave))).toContain("make the same call again");
    expect(codeIn(await retry(server, state, approve))).toBe(-32602);
    expect(run.ran).toEqual([]);
    expect(run.open.size).toBe(1);
  });

  test.each<[string, (state: string) => Json]>([
    ["with another payload", (state) => edited(state, "Deploy", "Delete")],
    ["with another expiry", (state) => edited(state, '"exp":1', '"exp":2')],
    ["without its signature", (state) => state.split(".").slice(0, 2).join(".")],
    ["with an empty signature", (state) => `${state.split(".").slice(0, 2).join(".")}.`],
    ["that is empty", () => ""],
    ["that is a megabyte long", () => `v1.${"A".repeat(1_000_000)}.x`],
    ["that is not a text", () => ({ requestId: "req-1" })],
    ["that is an array", (state) => [state]],
  ])("%s is refused", async (_name, change) => {
    const { run, server, state } = await asked();
    const answer = await retry(server, change(state), approve);
    expect(codeIn(answer)).toBe(-32602);
    expect(answer.text).not.toContain("mac");
    expect(run.ran).toEqual([]);
    expect(run.answers).toEqual([]);
  });

  test("approves no other call", async () => {
    const { run, server, state } = await asked();
    expect(codeIn(await retry(server, state, approve, "Deploy", { to: "staging" }))).toBe(-32602);
    expect(run.answers).toEqual([]);
    const second = await asked();
    expect(codeIn(await retry(second.server, second.state, approve, "Read", ARGS))).toBe(-32602);
    expect(second.run.answers).toEqual([]);
  });

  test("of another gateway is refused", async () => {
    const { state } = await asked();
    const other = await opened({ elicitation: "approve" });
    expect(codeIn(await retry(other.server, state, approve))).toBe(-32602);
    expect(other.run.calls).toEqual([]);
  });

  test("that has expired is refused", async () => {
    const clock = handClock(Date.now());
    const { run, server, state } = await asked({ clock, elicitationMs: 60_000 });
    clock.turn(60_000);
    expect(codeIn(await retry(server, state, approve))).toBe(-32602);
    expect(run.answers).toEqual([]);
  });

  test("does not come back to life when the clock is set back", async () => {
    let now = Date.now();
    const timers: (() => void)[] = [];
    const clock = {
      now: () => now,
      after: (_ms: number, fn: () => void) => {
        timers.push(fn);
        return () => undefined;
      },
    };
    const { run, server, state } = await asked({ clock });
    for (const fire of timers.splice(0)) fire();
    now -= 3_600_000;
    expect(codeIn(await retry(server, state, approve))).toBe(-32602);
    expect(run.answers).toEqual([]);
  });

  test("cannot approve where forms only deny", async () => {
    const { run, server, state } = await asked({ elicitation: "deny-only" });
    expect(textIn(await retry(server, state, approve))).toContain("make the same call again");
    expect(run.answers).toEqual([]);
    expect(run.open.size).toBe(1);
  });

  test.each<[string, Json]>([
    [
      "of another shape",
      { decision: { method: "elicitation/create", result: { action: "accept", content: { decision: "approve" } } } },
    ],
    ["under another key", { other: { action: "accept", content: { decision: "approve" } } }],
    ["of an array", [{ action: "accept", content: { decision: "approve" } }]],
    ["without content", { decision: { action: "accept" } }],
    ["in other letter case", { decision: { action: "accept", content: { decision: "APPROVE" } } }],
    ["of a list", { decision: { action: "accept", content: { decision: ["approve"] } } }],
    ["that declines and approves", { decision: { action: "decline", content: { decision: "approve" } } }],
  ])("with an answer %s approves nothing", async (_name, responses) => {
    const { run, server, state } = await asked();
    await retry(server, state, responses);
    expect(run.ran).toEqual([]);
    expect(run.answers).toEqual([]);
  });

  test("is not needed to send answers, which then do nothing", async () => {
    const { run, server } = await asked();
    const answer = await modernCall(server, "Deploy", ARGS, { elicits: true, more: { inputResponses: approve } });
    expect(textIn(answer)).toContain("make the same call again");
    expect(run.answers).toEqual([]);
  });

  test("of a request that another person has denied changes nothing", async () => {
    const { run, server, state } = await asked();
    const [question] = run.open.values();
    if (question === undefined) throw new Error("no request is open");
    await run.answer(question, { kind: "deny", reason: "no" }, "a person");
    expect(textIn(await retry(server, state, approve))).toBe("denied: no");
    expect(run.answers).toHaveLength(1);
    expect(run.ran).toEqual([]);
  });

  test("says nothing secret: it names the request, the tool and digests", async () => {
    const { server, state } = await asked();
    const payload = Buffer.from(state.split(".")[1] ?? "", "base64url").toString();
    expect(payload).toContain("req-1");
    expect(payload).not.toContain(server.token);
    expect(payload).not.toContain("prod");
  });

  function edited(state: string, from: string, to: string): string {
    const [version, body = "", mac] = state.split(".");
    const changed = Buffer.from(body, "base64url").toString().replace(from, to);
    return [version, Buffer.from(changed).toString("base64url"), mac].join(".");
  }
});

describe("a flood", () => {
  test("of connections is cut, and leaves the gateway answering", async () => {
    const { server } = await opened();
    const port = Number(new URL(server.url).port);
    let closed = 0;
    const sockets = Array.from({ length: 300 }, () => {
      const socket = connect(port, "127.0.0.1", () => void socket.write("POST /mcp HTTP/1.1\r\n"));
      socket.on("error", () => undefined);
      socket.on("close", () => {
        closed += 1;
      });
      return socket;
    });
    await until(() => closed >= 300 - 128);
    for (const socket of sockets) socket.destroy();
    await until(() => closed === 300);
    expect(textIn(await modernCall(server, "Read"))).toContain("read");
  });

  test("of cancelled calls keeps no connection", async () => {
    const { run, server } = await opened();
    const { session } = await handshake(server);
    const headers = { "mcp-session-id": session };
    for (let id = 10; id < 150; id += 1) {
      const call = { jsonrpc: "2.0", id, method: "tools/call", params: { name: "Slow" } };
      const cancelled = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } };
      const ended = raw(server, { headers, body: JSON.stringify(call) });
      await until(() => run.calls.length === id - 9);
      await raw(server, { headers, body: JSON.stringify(cancelled) });
      expect((await ended).message).toEqual({});
    }
    expect(textIn(await inSession(server, session, "tools/call", { name: "Read" }))).toContain("read");
  });

  test("of headers is refused", async () => {
    const { server } = await opened();
    const answer = await bytes(server, `GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ${"a".repeat(20_000)}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 431/);
  });
});
