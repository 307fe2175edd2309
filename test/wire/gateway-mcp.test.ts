import { describe, expect, test } from "vitest";
import { fakeRun, said } from "../support/fake-gateway-run.ts";
import { connect, gateway, WAYS, wireTools } from "../support/gateway-clients.ts";
import { handshake, inSession, modernCall, raw } from "../support/gateway-raw.ts";
import { until } from "../support/mcp.ts";

const NAMES = ["Bash", "Count", "Deploy", "Read", "Slow", "get_state", "transition"];

const overHttp = WAYS.filter((way) => way.endsWith("HTTP"));
const overStdio = WAYS.filter((way) => way.endsWith("stdio"));

describe.each(overHttp)("%s", (way) => {
  const open = async (options: Parameters<typeof connect>[2] = {}) => {
    const run = fakeRun(wireTools());
    const server = await gateway(run);
    return { run, client: await connect(way, server, options) };
  };

  test("a client connects, gets the instructions and starts no run", async () => {
    const { client, run } = await open();
    expect(client.version).toBe(way.includes("2026-07-28") ? "2026-07-28" : "2025-11-25");
    expect(client.instructions).toContain("Call get_state first");
    expect(run.runId).toBeUndefined();
  });

  test("the tools are sorted, say what they change, and stay the same", async () => {
    const { client } = await open();
    const tools = await client.tools();
    expect(tools.map(({ name }) => name)).toEqual(NAMES);
    expect(tools.find(({ name }) => name === "Read")?.annotations).toMatchObject({ readOnlyHint: true });
    expect(tools.find(({ name }) => name === "Bash")?.annotations).toMatchObject({ destructiveHint: true });
    await client.call("transition", { event: "done" });
    expect(await client.tools()).toEqual(tools);
  });

  test("a call returns the text of the run", async () => {
    const { client } = await open();
    expect(await client.call("Read", { path: "a.ts" })).toMatchObject({ isError: false, text: 'read {"path":"a.ts"}' });
  });

  test("a denied call is a result that the model reads", async () => {
    const { client } = await open();
    const denied = await client.call("Bash", { command: "rm -rf /" });
    expect(denied).toMatchObject({ isError: true, text: "The stage may not run this command. It may run: npm test." });
  });

  test("an unknown tool is a result that the model reads", async () => {
    const { client } = await open();
    expect(await client.call("Nothing")).toMatchObject({
      isError: true,
      text: "unknown_tool: there is no tool Nothing",
    });
  });

  test("an unknown method is an error of the protocol", async () => {
    const { client } = await open();
    await expect(client.request("sluice/approve")).rejects.toThrow(/-32601|Method not found/);
  });

  test("a call that a person has to approve says how, and can be made again", async () => {
    const { client } = await open();
    const first = await client.call("Deploy", { to: "prod" });
    expect(first.isError).toBe(true);
    expect(first.text).toContain("sluice answer run-1 req-1");
    expect((await client.call("Deploy", { to: "prod" })).text).toContain("req-1");
  });

  test("a client that shows forms can deny with a reason", async () => {
    const forms: string[] = [];
    const { client } = await open({
      onForm: ({ message }) => {
        forms.push(message);
        return { action: "accept", content: { decision: "deny", reason: "not on a Friday" } };
      },
    });
    expect(await client.call("Deploy", { to: "prod" })).toMatchObject({
      isError: true,
      text: "denied: not on a Friday",
    });
    expect(forms).toHaveLength(1);
    expect(forms[0]).toContain("approve Deploy");
    expect(forms[0]).toContain("sluice show run-1");
  });

  test("a form cannot approve unless the gateway allows it", async () => {
    const { client } = await open({
      onForm: () => ({ action: "accept", content: { decision: "approve" } }),
    });
    const reply = await client.call("Deploy", { to: "prod" });
    expect(reply.isError).toBe(true);
    expect(reply.text).toMatch(/make the same call again|Invalid|elicit/i);
    expect(reply.text).not.toContain("deployed");
  });

  test("a form that is declined leaves the request open", async () => {
    const { client } = await open({ onForm: () => ({ action: "decline" }) });
    expect((await client.call("Deploy", { to: "prod" })).text).toContain("sluice answer run-1 req-1");
  });

  test("a call that goes on tells its progress", async () => {
    const { client } = await open();
    // A client drops a notification that it reads together with the answer, as it may on a busy machine.
    const progressOfCall = async (): Promise<string | undefined> => {
      const progress: (string | undefined)[] = [];
      const reply = await client.call("Count", {}, { onProgress: (message) => progress.push(message) });
      expect(reply.text).toBe("counted");
      return progress[0];
    };
    await expect.poll(progressOfCall).toBe("Count is running");
  });
  test("a cancelled call is cancelled in the run", async () => {
    const run = fakeRun(wireTools());
    const client = await connect(way, await gateway(run));
    const stop = new AbortController();
    const call = client.call("Slow", {}, { signal: stop.signal });
    await expect.poll(() => run.calls.length).toBe(1);
    stop.abort();
    await expect(call).rejects.toThrow();
    await expect.poll(() => run.calls[0]?.signal?.aborted).toBe(true);
  });

  test("a form approves where the gateway allows it, and the call runs once", async () => {
    const run = fakeRun(wireTools());
    const server = await gateway(run, { elicitation: "approve" });
    const client = await connect(way, server, {
      onForm: () => ({ action: "accept", content: { decision: "approve" } }),
    });
    expect(await client.call("Deploy", { to: "prod" })).toMatchObject({ isError: false, text: "deployed" });
    expect(run.ran).toHaveLength(1);
    expect(run.answers).toMatchObject([{ answer: { kind: "approve" } }]);
    expect(run.answers[0]?.by).toMatch(/^elicitation:(old 1|new 2)\.0\.0$/);
  });

  test("a call that is approved the moment its request opens runs once, form or not", async () => {
    const run = fakeRun(wireTools());
    run.onPhase(({ waiting }) => {
      // After the listener of the call, which is about to ask.
      if (waiting !== undefined) queueMicrotask(() => void run.answer(waiting, { kind: "approve" }, "a rule"));
    });
    const client = await connect(way, await gateway(run), { onForm: () => ({ action: "cancel" }) });
    expect(await client.call("Deploy", { to: "prod" })).toMatchObject({ isError: false, text: "deployed" });
    expect(run.ran).toHaveLength(1);
    expect(run.open.size).toBe(0);
  });

  test("a person may take longer at a form than a call waits", async () => {
    const run = fakeRun(wireTools());
    const server = await gateway(run, { elicitation: "approve", patienceMs: 10 });
    const client = await connect(way, server, {
      onForm: async () => {
        await new Promise((resolve) => void setTimeout(resolve, 60));
        return { action: "accept", content: { decision: "approve" } };
      },
    });
    expect(await client.call("Deploy", { to: "prod" })).toMatchObject({ isError: false, text: "deployed" });
    expect(run.ran).toHaveLength(1);
  });

  test("an answer from elsewhere counts while a form is open", async () => {
    const run = fakeRun(wireTools());
    const server = await gateway(run, { patienceMs: 60_000 });
    const form = Promise.withResolvers<void>();
    const client = await connect(way, server, {
      onForm: async () => {
        const [question] = run.open.values();
        if (question === undefined) throw new Error("no request is open");
        await run.answer(question, { kind: "approve" }, "a person");
        form.resolve();
        return { action: "cancel" };
      },
    });
    expect(await client.call("Deploy", { to: "prod" })).toMatchObject({ isError: false, text: "deployed" });
    await form.promise;
    expect(run.answers.map(({ by }) => by)).toEqual(["a person"]);
  });

  test("an answer from elsewhere ends the wait of a call", async () => {
    const run = fakeRun(wireTools());
    const client = await connect(way, await gateway(run, { patienceMs: 60_000 }));
    const call = client.call("Deploy", { to: "prod" });
    await expect.poll(() => run.open.size).toBe(1);
    const [question] = run.open.values();
    if (question === undefined) throw new Error("no request is open");
    await run.answer(question, { kind: "approve" }, "someone");
    expect(await call).toMatchObject({ isError: false, text: "deployed" });
  });

  test("a second agent is refused with who works on the run", async () => {
    const run = fakeRun(wireTools());
    const server = await gateway(run);
    const first = await connect(way, server, { name: "first" });
    await first.call("Read");
    const second = connect(way, server, { name: "second" }).then((client) => client.call("Read"));
    const said = await second.then(
      ({ text }) => text,
      (error: Error) => error.message,
    );
    expect(said).toContain("already worked on by first");
    expect(run.calls).toHaveLength(1);
  });
});

describe.each(overStdio)("%s", (way) => {
  test("a client works like one over HTTP", async () => {
    const forms: string[] = [];
    const client = await connect(way, undefined, {
      onForm: ({ message }) => {
        forms.push(message);
        return { action: "accept", content: { decision: "deny", reason: "not on a Friday" } };
      },
    });
    expect(client.version).toBe(way.includes("2026-07-28") ? "2026-07-28" : "2025-11-25");
    expect(client.instructions).toContain("Call get_state first");
    expect((await client.tools()).map(({ name }) => name)).toEqual(NAMES);
    expect(await client.call("Read", { path: "a.ts" })).toMatchObject({ isError: false, text: 'read {"path":"a.ts"}' });
    expect((await client.call("Bash", { command: "rm -rf /" })).isError).toBe(true);
    expect((await client.call("Nothing")).text).toContain("unknown_tool");
    await expect(client.request("sluice/approve")).rejects.toThrow(/-32601|Method not found/);
    expect((await client.call("Deploy", { to: "prod" })).text).toBe("denied: not on a Friday");
    expect(forms).toHaveLength(1);
    // A client drops a notification that it reads together with the answer, as it may on a busy machine.
    const progressOfCall = async (): Promise<string | undefined> => {
      const progress: (string | undefined)[] = [];
      await client.call("Count", {}, { onProgress: (message) => progress.push(message) });
      return progress[0];
    };
    await expect.poll(progressOfCall).toBe("Count is running");
  });

  test("a client that shows no forms reads how a person can answer", async () => {
    const client = await connect(way, undefined);
    expect((await client.call("Deploy", { to: "prod" })).text).toContain("sluice answer run-1 req-1");
  });
});

test.each(["2025-11-25", "2025-06-18", "2025-03-26"])(
  "revision %s is served to a client that asks for it",
  async (version) => {
    const server = await gateway(fakeRun(wireTools()));
    const begun = await handshake(server, { version });
    expect(begun.message.result).toMatchObject({
      protocolVersion: version,
      capabilities: { tools: { listChanged: false } },
      serverInfo: { name: "sluice" },
    });
    const called = await inSession(server, begun.session, "tools/call", { name: "Read", arguments: { path: "a" } });
    expect(called.message.result).toEqual({ content: [{ type: "text", text: 'read {"path":"a"}' }] });
  },
);

test("a client that asks for an unknown revision is offered the newest with a handshake", async () => {
  const begun = await handshake(await gateway(fakeRun(wireTools())), { version: "1999-01-01" });
  expect(begun.message.result).toMatchObject({ protocolVersion: "2025-11-25" });
});

test("a notification gets no reply", async () => {
  const server = await gateway(fakeRun(wireTools()));
  const { session } = await handshake(server);
  const body = JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" });
  const answer = await raw(server, { headers: { "mcp-session-id": session }, body });
  expect([answer.status, answer.text]).toEqual([202, ""]);
});

test("results that are objects are repeated as structured content only where the gateway is set so", async () => {
  const run = () => fakeRun({ Look: { run: () => said("words for a model", { a: 1 }) } });
  expect((await modernCall(await gateway(run()), "Look")).message.result).not.toHaveProperty("structuredContent");
  const structured = await modernCall(await gateway(run(), { structured: true }), "Look");
  expect(structured.message.result).toMatchObject({ structuredContent: { a: 1 } });
});

test.each(["sdk 1 over HTTP", "client 2, handshake, HTTP"] as const)(
  "a call shows the form of its own request, and not that of one that is asked about meanwhile: %s",
  async (way) => {
    const run = fakeRun(wireTools());
    const server = await gateway(run, { elicitation: "approve", patienceMs: 30 });
    const parked = Promise.withResolvers<void>();
    const forms: string[] = [];
    const client = await connect(way, server, {
      onForm: async ({ message }) => {
        forms.push(message);
        await parked.promise;
        return { action: "accept", content: { decision: "approve" } };
      },
    });
    const first = client.call("Deploy", { to: "one" });
    await until(() => forms.length === 1);
    expect((await client.call("Deploy", { to: "two" })).text).toContain("make the same call again");
    parked.resolve();
    expect((await first).text).toBe("deployed");
    expect(forms).toHaveLength(1);
    expect((await client.call("Deploy", { to: "two" })).text).toBe("deployed");
    expect(forms).toHaveLength(2);
  },
);
