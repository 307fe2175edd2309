import { existsSync } from "node:fs";
import type { RunHost } from "@sluice/core";
import { createHost, createMemoryJournals, verifyJournal } from "@sluice/core/host";
import type { GatewayRun } from "@sluice/gateway";
import { describe, expect, test } from "vitest";
import { gatewayRun, pipelineOf } from "../support/gateway.ts";
import { type ClientOptions, connect, gateway, type TestClient, WAYS } from "../support/gateway-clients.ts";
import { EVERYTHING, until } from "../support/mcp.ts";
import { tempFolder } from "../support/tools.ts";

/** Three phases with an interrupt and limits. */
const WORKFLOW = {
  id: "three-phases",
  initial: "plan",
  interrupts: { schema: { trigger: { file_pattern: "db/**" }, target: "review" } },
  states: {
    plan: {
      instructions: "Read what you need. Edit nothing.",
      allowed_tools: ["Read"],
      on: { READY: "build" },
    },
    build: {
      instructions: "Make the change.",
      allowed_tools: ["Read", "Write"],
      max_edit_lines: 3,
      on: { BUILT: "check" },
    },
    review: { instructions: "Review the schema.", allowed_tools: ["Read"], on: { OK: "$return" } },
    check: { instructions: "Check it.", allowed_tools: ["Read"], on: { GOOD: "done", BAD: "build" } },
    done: { type: "final" },
  },
};

const overHttp = WAYS.filter((way) => way.endsWith("HTTP"));

describe.each(overHttp)("%s", (way) => {
  const open = async (options: ClientOptions = {}, patienceMs = 60_000) => {
    const folder = tempFolder();
    folder.put("a.txt", "one\n");
    const host = createHost(createMemoryJournals().connect());
    const run = gatewayRun({ pipeline: await pipelineOf(WORKFLOW), root: folder.root, host, wait: true });
    const client = await connect(way, await gateway(run, { patienceMs }), options);
    return { folder, host, run, client };
  };
  const event = (client: TestClient, name: string) =>
    client.call("transition", { event: name, data: { rationale: "done" } });

  test("an agent works through three phases, with a denial, a grant, an interrupt and a limit", async () => {
    const { folder, host, run, client } = await open();
    expect((await client.call("get_state")).text).toContain("Edit nothing.");
    expect((await client.call("Read", { file_path: "a.txt" })).text).toContain("one");

    const write = client.call("Write", { file_path: "a.txt", content: "two\n" });
    await answerNext(run, "deny");
    const denied = await write;
    expect(denied.isError).toBe(true);
    expect(denied.text).toContain("not in this phase");
    expect(folder.text("a.txt")).toBe("one\n");

    const again = client.call("Write", { file_path: "b.txt", content: "granted\n" });
    await answerNext(run, "approve");
    expect((await again).isError).toBe(false);
    expect(folder.text("b.txt")).toBe("granted\n");

    expect((await event(client, "READY")).text).toContain("Make the change.");
    const large = await client.call("Write", { file_path: "c.txt", content: "1\n2\n3\n4\n5\n" });
    expect(large.isError).toBe(true);
    const changed = await client.call("Write", { file_path: "db/a.sql", content: "select 1;\n" });
    expect(changed.text).toContain("Review the schema.");
    expect((await event(client, "OK")).text).toContain("You are back in build");
    expect((await event(client, "BUILT")).text).toContain("Check it.");
    expect((await event(client, "GOOD")).text).toContain("is over: completed");

    expect(await run.ended).toMatchObject({ status: "completed" });
    expect(verifyJournal(await host.journal(run.runId ?? "")).faults).toEqual([]);
    expect((await client.call("Read", { file_path: "a.txt" })).text).toContain("is over: completed");
  });

  test("a form denies a call with the user's reason, and the phase goes on", async () => {
    const { folder, host, client, run } = await open({
      onForm: ({ message }) => {
        expect(message).toContain("approve Write");
        return { action: "accept", content: { decision: "deny", reason: "plan first" } };
      },
    });
    const denied = await client.call("Write", { file_path: "a.txt", content: "two\n" });
    expect(denied.isError).toBe(true);
    expect(denied.text).toContain("plan first");
    expect(folder.text("a.txt")).toBe("one\n");
    expect((await event(client, "READY")).text).toContain("Make the change.");
    expect(await host.requests()).toEqual([]);
    expect(run.now().state).toBe("build");
  });

  test("a form that is left open waits for a person elsewhere, and the same call takes the answer", async () => {
    const { folder, host, client, run } = await open({ onForm: () => ({ action: "cancel" }) }, 30);
    const EDIT = { file_path: "b.txt", content: "two\n" };
    const waiting = await client.call("Write", EDIT);
    expect(waiting.isError).toBe(true);
    expect(waiting.text).toContain(`sluice answer ${run.runId}`);
    await approveInStore(host);
    await until(() => existsSync(folder.path("b.txt")));
    expect((await client.call("Write", EDIT)).isError).toBe(false);
    expect(await host.requests()).toEqual([]);
  });

  test("a gateway that closes with its run still answers the last transition", async () => {
    const run = gatewayRun({ pipeline: await pipelineOf(WORKFLOW), root: tempFolder().root, wait: true });
    const server = await gateway(run);
    const client = await connect(way, server);
    const closed = run.ended.then(() => server.close());
    await event(client, "READY");
    await event(client, "BUILT");
    expect((await event(client, "GOOD")).text).toContain("is over: completed");
    await closed;
  });

  test("two calls at once are both answered", async () => {
    const { client } = await open();
    await client.call("get_state");
    const [first, second] = await Promise.all([
      client.call("Read", { file_path: "a.txt" }),
      client.call("Read", { file_path: "a.txt", limit: 1 }),
    ]);
    expect([first.isError, second.isError]).toEqual([false, false]);
  });
});

test("tools of an upstream MCP server pass the same gate", async () => {
  const document = {
    id: "upstream",
    initial: "work",
    states: {
      work: { instructions: "Work.", allowed_tools: ["mcp__every__echo"], on: { DONE: "done" } },
      done: { type: "final" },
    },
  };
  const run = gatewayRun({
    pipeline: await pipelineOf(document),
    root: tempFolder().root,
    session: { mcpServers: { every: { command: process.execPath, args: [EVERYTHING, "stdio"] } } },
  });
  const client = await connect("client 2, 2026-07-28, HTTP", await gateway(run));
  expect((await client.tools()).map(({ name }) => name)).toContain("mcp__every__echo");
  await client.call("get_state");
  expect(await client.call("mcp__every__echo", { message: "hello" })).toMatchObject({
    isError: false,
    text: "Echo: hello",
  });
  expect((await client.call("mcp__every__get-env")).isError).toBe(true);
});

async function answerNext(run: GatewayRun, kind: "approve" | "deny"): Promise<void> {
  await until(() => run.now().waiting !== undefined);
  const { waiting } = run.now();
  if (waiting === undefined) throw new Error("no request is open");
  await run.answer(waiting, kind === "approve" ? { kind } : { kind, reason: "not in this phase" }, "reviewer");
}

async function approveInStore(host: RunHost): Promise<void> {
  const [request] = await host.requests();
  if (request === undefined) throw new Error("no request is open");
  const { runId, requestId, digest } = request;
  await host.signal(runId, { name: `request/${requestId}`, payload: { kind: "approve", digest }, digest, by: "test" });
}
