import { fileURLToPath } from "node:url";
import { type ActOutcome, type ActScope, done, type EventType, fanOut, type Json, pipeline } from "@sluice/core";
import { startedUnsandboxed } from "@sluice/core/gate";
import { sqliteHost } from "@sluice/sqlite";
import { human, script } from "@sluice/stages";
import { expect, test } from "vitest";
import { commandSession, node, only } from "../support/commands.ts";
import { completed, eventsOf, json, session, work } from "../support/run-kit.ts";
import { tempFolder } from "../support/tools.ts";

// What a script with `sandbox` executes may be what an agent wrote: without a sandbox, it must not answer its own run.

const SQLITE = fileURLToPath(new URL("../../packages/sqlite/dist/index.js", import.meta.url));

/** Waits until the run asks, and answers as another process would. */
const FORGE = `
  const { sqliteHost } = await import(process.argv[1]);
  const host = sqliteHost(".sluice/store");
  for (;;) {
    const [request] = await host.requests();
    if (request === undefined) { await new Promise((resolve) => setTimeout(resolve, 20)); continue; }
    const { runId, requestId, digest } = request;
    const payload = { kind: "value", value: "publish", digest };
    console.log(await host.signal(runId, { name: "request/" + requestId, payload, digest, by: "a person" }));
    break;
  }
  await host.close();
`;

test("a process of a script that answers its own run is no person", async () => {
  const workspace = tempFolder();
  const asking = pipeline({
    id: "asking",
    input: { type: "object" },
    stages: {
      begin: script({ command: ["true"] }),
      ask: human({ question: "Publish?" }),
      forge: script({ command: node(FORGE, SQLITE), sandbox: {} }),
      end: script({ command: ["true"] }),
    },
    initial: "begin",
    next: {
      begin: () => fanOut(["ask", "forge"], { join: "end", onFailure: "settle" }),
      end: (_, ctx) => done(json(ctx.upstream)),
    },
  });
  const live = commandSession({ workspace, wait: true, host: () => sqliteHost(workspace.path(".sluice/store")) });
  const run = live.start(asking, {});
  const result = await run;
  const events = await eventsOf(live.host, run.runId);
  expect(events.find(({ type }) => type === "command.started")?.data).toMatchObject({ wall: "none" });
  // Other processes read from the record that an answer needs a code, and a resumed run keeps that.
  expect(startedUnsandboxed(events.slice(0, -1), true)).toBe(true);
  const answered = events.find(({ type }) => type === "request.answered");
  expect(answered?.data).toMatchObject({ answer: "deny", proof: "missing" });
  const output: Json = result.status === "completed" ? json(result.output) : null;
  expect(output).not.toHaveProperty("ask");
});

test.each<EventType>([
  ...(["run.finished", "run.started", "stage.act", "attempt.finished", "call.started", "call.finished"] as const),
  ...(["grant.answered", "request.answered", "sleep.started", "sleep.ended", "execution.interrupted"] as const),
  ...(["interrupt.started", "route.decided", "context.changed", "fanOut.joined", "hook.vetoed"] as const),
])("a kind of state cannot write what only the run says: %s", async (type) => {
  const draft = { type, data: { by: "a kind", status: "completed" } };
  const ways: readonly ((scope: ActScope) => Promise<unknown>)[] = [
    async (scope) => scope.note(draft),
    async (scope) =>
      await scope.steps.run("step", ({ event }) => {
        event(draft);
        return null;
      }),
    async (scope) => await scope.steps.run("step", () => null, { open: { events: [draft] } }),
  ];
  for (const way of ways) {
    const refused: unknown[] = [];
    const act = async (scope: ActScope): Promise<ActOutcome> => {
      await way(scope).catch((thrown: unknown) => refused.push(thrown));
      return completed(null);
    };
    const live = session();
    const handle = live.start(only(work({ act })), {});
    try {
      await handle;
    } catch (thrown) {
      refused.push(thrown);
    }
    expect(refused[0]).toMatchObject({ code: "event_unknown", message: expect.stringContaining(type) });
    const written = (await eventsOf(live.host, handle.runId)).filter(({ data }) => data.by === "a kind");
    expect(written).toEqual([]);
  }
});
