import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { isJsonObject, type JsonObject, type RunHost } from "@sluice/core";
import { createHost, createMemoryJournals, verifyJournal } from "@sluice/core/host";
import type { GatewayRun } from "@sluice/gateway";
import { expect, test } from "vitest";
import { gatewayRun, pipelineOf } from "../support/gateway.ts";
import { gateway, type TestGateway } from "../support/gateway-clients.ts";
import { modernCall, type RawAnswer, raw } from "../support/gateway-raw.ts";
import { until } from "../support/mcp.ts";
import { tempFolder } from "../support/tools.ts";

const WORKFLOW = {
  id: "look-only",
  initial: "look",
  states: {
    look: { instructions: "Look.", allowed_tools: ["Read"], on: { DONE: "done" } },
    done: { type: "final" },
  },
};
const WRITE = { file_path: "a.txt", content: "written\n" };
const APPROVE = { decision: { action: "accept", content: { decision: "approve" } } };

interface World {
  readonly host: RunHost;
  readonly run: GatewayRun;
  readonly server: TestGateway;
  readonly file: string;
  open(resume: string): Promise<{ run: GatewayRun; server: TestGateway }>;
}

async function world(options: Parameters<typeof gateway>[1] = {}): Promise<World> {
  const folder = tempFolder();
  const host = createHost(createMemoryJournals().connect());
  const pipeline = await pipelineOf(WORKFLOW);
  const open = async (resume?: string): Promise<{ run: GatewayRun; server: TestGateway }> => {
    const run = gatewayRun({
      pipeline,
      root: folder.root,
      host,
      wait: true,
      ...(resume === undefined ? {} : { resume }),
    });
    return { run, server: await gateway(run, { elicitation: "approve", patienceMs: 40, ...options }) };
  };
  return { host, ...(await open()), file: folder.path("a.txt"), open };
}

function resultOf({ message }: RawAnswer): JsonObject {
  return isJsonObject(message.result) ? message.result : {};
}
function textOf(answer: RawAnswer): string {
  const { content } = resultOf(answer);
  const [first] = Array.isArray(content) ? content : [];
  return isJsonObject(first) && typeof first.text === "string" ? first.text : "";
}
const write = (server: TestGateway, more: JsonObject = {}): Promise<RawAnswer> =>
  modernCall(server, "Write", WRITE, { elicits: true, more });
const plainWrite = (server: TestGateway): Promise<RawAnswer> => modernCall(server, "Write", WRITE);

async function approve(host: RunHost): Promise<string> {
  const [request] = await host.requests();
  if (request === undefined) throw new Error("no request is open");
  const { runId, requestId, digest } = request;
  return await host.signal(runId, {
    name: `request/${requestId}`,
    payload: { kind: "approve", digest },
    digest,
    by: "a person",
  });
}

async function writesIn(host: RunHost, run: GatewayRun): Promise<number> {
  const journal = await host.journal(run.runId ?? "");
  expect(verifyJournal(journal).faults).toEqual([]);
  const records = await host.records(run.runId ?? "", 0);
  return new Set(records.filter(({ stepId }) => stepId.endsWith("/call")).map(({ stepId }) => stepId)).size;
}

test("an approval is for one call: the same call made again asks again", async () => {
  const { host, run, server, file } = await world();
  expect(textOf(await plainWrite(server))).toContain("sluice answer");
  await approve(host);
  await until(() => existsSync(file));
  expect(resultOf(await plainWrite(server)).isError).toBeUndefined();
  appendFileSync(file, "changed\n");
  expect(textOf(await plainWrite(server))).toContain("sluice answer");
  expect(await host.requests()).toHaveLength(1);
  expect(readFileSync(file, "utf8")).toBe("written\nchanged\n");
  expect(await writesIn(host, run)).toBe(1);
});

test("two equal calls at once run once for one approval", async () => {
  const { host, run, server, file } = await world({ patienceMs: 60_000 });
  const both = [plainWrite(server), plainWrite(server)];
  await until(() => run.now().waiting !== undefined);
  await approve(host);
  await until(() => existsSync(file));
  await until(() => run.now().waiting !== undefined || run.now().status === "working");
  const [first] = await host.requests();
  if (first !== undefined) await run.answer(first, { kind: "deny" }, "a person");
  const answers = await Promise.all(both);
  expect(answers.filter((answer) => resultOf(answer).isError === undefined).length).toBeGreaterThan(0);
  expect(await writesIn(host, run)).toBe(1);
});

test("a form's approval runs its call once, and its state is worth nothing afterwards", async () => {
  const { host, run, server, file } = await world();
  const asked = await write(server);
  const { requestState } = resultOf(asked);
  if (typeof requestState !== "string") throw new Error("no state came back");
  const granted = await write(server, { requestState, inputResponses: APPROVE });
  expect(resultOf(granted).isError).toBeUndefined();
  expect(readFileSync(file, "utf8")).toBe("written\n");
  appendFileSync(file, "changed\n");
  const replayed = await write(server, { requestState, inputResponses: APPROVE });
  expect(replayed.message).toHaveProperty("error.code", -32602);
  expect(readFileSync(file, "utf8")).toBe("written\nchanged\n");
  expect(await writesIn(host, run)).toBe(1);
});

test("a form cannot approve what it was not asked about, and its approval is named in the journal", async () => {
  const { host, run, server, file } = await world();
  const { requestState } = resultOf(await write(server));
  if (typeof requestState !== "string") throw new Error("no state came back");
  const other = await modernCall(
    server,
    "Write",
    { ...WRITE, content: "something else\n" },
    { elicits: true, more: { requestState, inputResponses: APPROVE } },
  );
  expect(other.message).toHaveProperty("error.code", -32602);
  expect(existsSync(file)).toBe(false);
  const again = await world();
  const state = resultOf(await write(again.server)).requestState;
  if (typeof state !== "string") throw new Error("no state came back");
  await write(again.server, { requestState: state, inputResponses: APPROVE });
  expect(JSON.stringify(await again.host.records(again.run.runId ?? "", 0))).toContain("elicitation:raw 1");
  expect(await host.requests()).toHaveLength(1);
  expect(run.now().waiting).toBeDefined();
});

test("where forms only deny, a request stays in the queue whatever a client answers", async () => {
  const { host, server, file } = await world({ elicitation: "deny-only" });
  const { requestState } = resultOf(await write(server));
  if (typeof requestState !== "string") throw new Error("no state came back");
  expect(textOf(await write(server, { requestState, inputResponses: APPROVE }))).toContain("sluice answer");
  expect(await host.requests()).toHaveLength(1);
  expect(existsSync(file)).toBe(false);
});

test("a gateway that is restarted in the middle of a question runs nothing that was not approved", async () => {
  const { host, run, server, file, open } = await world();
  const { requestState } = resultOf(await write(server));
  if (typeof requestState !== "string") throw new Error("no state came back");
  const runId = run.runId ?? "";
  await server.close();
  await run.close();

  const next = await open(runId);
  expect((await raw({ ...next.server, token: server.token })).status).toBe(401);
  const old = await write(next.server, { requestState, inputResponses: APPROVE });
  expect(old.message).toHaveProperty("error.code", -32602);
  expect(existsSync(file)).toBe(false);

  const waiting = await plainWrite(next.server);
  expect(textOf(waiting)).toContain("sluice answer");
  expect(existsSync(file)).toBe(false);
  expect(await host.requests()).toHaveLength(1);
});

test("a call whose agent has gone before the answer runs only if its request was approved", async () => {
  const { host, run, server, file } = await world({ patienceMs: 500 });
  const stop = new AbortController();
  const gone = raw(server, {
    headers: { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "Write" },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: {
        name: "Write",
        arguments: WRITE,
        _meta: {
          "io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
          "io.modelcontextprotocol/clientCapabilities": {},
        },
      },
    }),
    signal: stop.signal,
  }).catch((error: Error) => error.name);
  await until(() => run.now().waiting !== undefined);
  stop.abort();
  expect(await gone).toBe("AbortError");
  const [request] = await host.requests();
  if (request === undefined) throw new Error("the request has gone with its agent");
  await run.answer(request, { kind: "deny", reason: "too late" }, "a person");
  expect(textOf(await plainWrite(server))).toMatch(/too late|sluice answer/);
  expect(existsSync(file)).toBe(false);
});
