import { fileURLToPath } from "node:url";
import { done, fanOut, type Json, pipeline } from "@sluice/core";
import { sqliteHost } from "@sluice/sqlite";
import { human, script } from "@sluice/stages";
import { expect, test } from "vitest";
import { commandSession, node } from "../support/commands.ts";
import { eventsOf, json } from "../support/run-kit.ts";
import { tempFolder } from "../support/tools.ts";

// A script runs outside of the sandbox, and what it starts may be what an agent wrote: it must not answer its own run.

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
      forge: script({ command: node(FORGE, SQLITE) }),
      end: script({ command: ["true"] }),
    },
    initial: "begin",
    next: {
      begin: () => fanOut(["ask", "forge"], { join: "end", onFailure: "settle" }),
      end: (_, ctx) => done(json(ctx.upstream)),
    },
  });
  const session = commandSession({ workspace, wait: true, host: () => sqliteHost(workspace.path(".sluice/store")) });
  const run = session.start(asking, {});
  const result = await run;
  const events = await eventsOf(session.host, run.runId);
  const answered = events.find(({ type }) => type === "request.answered");
  expect(answered?.data).toMatchObject({ answer: "deny", proof: "missing" });
  const output: Json = result.status === "completed" ? json(result.output) : null;
  expect(output).not.toHaveProperty("ask");
});
