// Reports runs of your own program to a chat or a pager, as `notify` of a config does for the command: when a person is asked, when
// the run stops, and when it ends. A process that resumes a run does not repeat what an earlier one reported.
//   node examples/notify.ts
//   WEBHOOK=https://chat.example/hook node examples/notify.ts
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { callbackInteractor, done, field, type Interactor, pipeline, type SluiceEvent, stage } from "@sluice/core";
import { sqliteHost } from "@sluice/sqlite";
import { createSession, type RunHandle, scriptedModel } from "@sluice/stages";
import { z } from "zod";

const BEGINS = ["run.started", "run.resumed", "run.forked"];

async function notify({ runId, events }: Pick<RunHandle<unknown>, "runId" | "events">, since: number): Promise<void> {
  let isNow = false;
  for await (const event of events) {
    if (event.runId === runId && BEGINS.includes(event.type) && event.at >= since) isNow = true;
    const text = isNow ? textOf(event, runId) : undefined;
    if (text !== undefined) await send({ runId, text });
  }
}

function textOf({ type, data, runId }: SluiceEvent, root: string): string | undefined {
  const { body = null, reason, status } = data;
  if (type === "grant.requested") return `asks for ${String(field(body, "argsSummary"))}`;
  if (type === "request.opened") return `asks: ${String(field(body, "question"))}`;
  // The end of a run is that of its root. A run that sleeps continues by itself.
  if (runId !== root || reason === "sleeping") return undefined;
  if (type === "run.suspended") return `is suspended: ${String(reason)}`;
  return type === "run.finished" ? `is ${String(status)}` : undefined;
}

/** A notification that fails changes nothing in the run. */
async function send(body: { readonly runId: string; readonly text: string }): Promise<void> {
  const { WEBHOOK: url } = process.env;
  if (url === undefined) return console.log("->", body.text);
  const headers = { "content-type": "application/json" };
  await fetch(url, { method: "POST", headers, body: JSON.stringify(body), signal: AbortSignal.timeout(10_000) }).catch(
    (thrown: unknown) => console.error("a notification failed:", thrown),
  );
}

const write = stage({
  prompt: "Write the note that the task asks for.",
  allowedTools: ["Read"],
  visibility: "session", // the model sees Write, and a call of it needs a grant
  completionTool: "submit",
  completionSchema: z.object({ file: z.string() }),
  turnCap: 5,
});
const notes = pipeline({
  id: "notes",
  input: z.object({ task: z.string() }),
  stages: { write },
  initial: "write",
  next: { write: ({ output }) => done(output.file) },
});

const file_path = "notes/today.md";
const script = scriptedModel({
  stages: {
    write: [
      { calls: [{ tool: "Write", input: { file_path, content: "Seen today.\n" } }] },
      { calls: [{ tool: "submit", input: { file: file_path } }] },
    ],
  },
});
const workspace = mkdtempSync(join(tmpdir(), "sluice-"));
const open = (interactors: readonly Interactor[], wait: number) =>
  createSession({
    model: process.env.SLUICE_MODEL ?? script,
    cwd: workspace,
    host: () => sqliteHost(join(workspace, ".sluice", "store")),
    interactors,
    wait,
  });

// No one answers within a millisecond, so the run is suspended with its request open.
const first = open([], 1);
const begun = Date.now();
const run = first.start(notes, { task: "Write what was seen today" });
const reported = notify(run, begun);
await run;
await reported;
await first.close();

// Later, as in another process, someone does.
const since = Date.now();
const second = open([callbackInteractor("ann", () => ({ kind: "approve" }))], 60_000);
const resumed = second.resume(notes, run.runId);
const rest = notify(resumed, since);
const { status } = await resumed;
await rest;
await second.close();
console.log(status, existsSync(join(workspace, file_path)));
