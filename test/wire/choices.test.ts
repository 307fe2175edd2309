import { final, type Json, pipeline } from "@sluice/core";
import { router } from "@sluice/stages";
import { expect, test } from "vitest";
import { z } from "zod";
import { directed, task } from "../support/orchestrated.ts";
import { PROVIDERS } from "../support/providers.ts";
import { completed, work } from "../support/run-kit.ts";
import type { ServerCall } from "../support/sse-server.ts";
import { wiredSession } from "../support/wired-session.ts";

// Routers and orchestrated runs in front of servers that refuse what providers refuse.

const file = z.object({ file: z.string() });
const choose = (choice: Json): ServerCall => ({ name: "choose", input: { choice } });
const select = (input: Json): ServerCall => ({ name: "select_state", input });

test.each(PROVIDERS)("%s lets a router choose, refuse and choose again", async (name) => {
  const routed = pipeline({
    id: "routed",
    input: task,
    stages: {
      pick: router({ targets: ["fix", "over"], prompt: "Choose." }),
      fix: work<Json, { file: string }>({ inputSchema: file, act: ({ ctx }) => completed(`${ctx.visit} fixed`) }),
      over: final("completed"),
    },
    initial: "pick",
    next: { fix: ({ output }) => ({ kind: "done", output }) },
  });
  const { live, requests } = await wiredSession(name, [
    { calls: [choose({ to: "fix", input: {} })] },
    { calls: [choose({ to: "fix", input: { file: "a.ts" }, reason: "it is broken" })] },
  ]);
  expect(await live.run(routed, { task: "Fix it." })).toMatchObject({ status: "completed", output: "1 fixed" });
  expect(requests()).toHaveLength(2);
});

test.each(PROVIDERS)("%s keeps the conversation of an orchestrator over a run", async (name) => {
  const own = directed({ fix: work<Json, { file: string }>({ inputSchema: file, act: () => completed("fixed") }) });
  const { live, requests } = await wiredSession(name, [
    { calls: [select({ state: "deploy" })] },
    { calls: [{ name: "get_state", input: {} }, select({ state: "fix", input: { file: "a.ts" } })] },
    { text: "I think that is all." },
    { calls: [select({ state: "completed", input: "done" })] },
    { text: "I fixed a.ts." },
  ]);
  const result = await live.run(own, { task: "Fix it." });
  expect(result).toMatchObject({ status: "completed", output: "done", acknowledgement: { text: "I fixed a.ts." } });
  expect(requests()).toHaveLength(5);
});
