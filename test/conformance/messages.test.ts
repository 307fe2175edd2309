import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { done, pipeline, type RunHost, stage } from "@sluice/core";
import { sqliteHost } from "@sluice/sqlite";
import { createSession, type ResolvedModel, type ScriptedTurn, type Session, transcriptEntries } from "@sluice/stages";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { soon } from "../support/people-kit.ts";
import { dataOf, eventsOf, tool } from "../support/run-kit.ts";
import { nodeArguments } from "../support/sqlite-process.ts";
import { scratch } from "../support/sqlite-store.ts";
import { type Heard, talker } from "../support/talker.ts";

const EACH = 10;
const SENDERS = ["left", "right"];

const pipe = pipeline({
  id: "one",
  input: z.object({ task: z.string() }),
  stages: {
    one: stage({
      prompt: "Listen.",
      allowedTools: ["Look"],
      completionTool: "finish",
      completionSchema: z.object({}),
      turnCap: 10 * EACH,
    }),
  },
  initial: "one",
  next: { one: () => done(null) },
});
let looks = 0;
const look = (): ScriptedTurn => ({ calls: [{ tool: "Look", input: { look: ++looks } }] });
const reader = tool("Look", { effect: "read", execute: async () => ({ ok: true, output: "nothing" }) });

/** What people said so far, as the model reads it. */
function said({ messages }: Heard): readonly string[] {
  const texts = messages.flatMap(({ role, content }) =>
    role !== "user" || typeof content === "string"
      ? []
      : content.map((part) => (part.type === "text" ? part.text : "")),
  );
  return texts.flatMap((text) => /^Message from a user who is watching this run:\n(.*)$/.exec(text)?.[1] ?? []);
}

function sayer(folder: string, runId: string, by: string, onLine: () => void): ChildProcess {
  const child = spawn(process.execPath, nodeArguments("sayer.ts", folder, runId, by, String(EACH)), {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  createInterface({ input: child.stdout }).on("line", onLine);
  return child;
}

test("SQLite: what two other processes say to a run is read once each, in their order, also by who takes the run up", async () => {
  const folder = join(scratch(), "store");
  let sent = 0;
  const live = (model: ResolvedModel): { readonly session: Session; readonly host: RunHost } => {
    const host = sqliteHost(folder);
    const session = createSession({ model, host: host, tools: [reader], env: {}, cwd: import.meta.dirname });
    onTestFinished(() => host.close());
    return { session, host };
  };
  /** Answers when there is more to read than it has heard, so that it takes no more turns than there are messages. */
  const attentive = async (heard: Heard): Promise<ScriptedTurn> => {
    const count = said(heard).length;
    if (count === SENDERS.length * EACH) return { calls: [{ tool: "finish", input: {} }] };
    await soon(() => sent > count);
    return look();
  };
  const never = new Promise<ScriptedTurn>(() => undefined);
  const before = talker((heard) => (said(heard).length < EACH / 2 ? attentive(heard) : never));
  const first = live(before);
  const handle = first.session.start(pipe, { task: "t" });
  await soon(() => before.heard.length > 0);
  const onLine = (): void => {
    sent += 1;
  };
  for (const by of SENDERS) sayer(folder, handle.runId, by, onLine);
  await soon(() => said(before.heard.at(-1) ?? expect.fail()).length >= EACH / 2);
  await handle.suspend();
  await first.session.close();

  const after = talker(attentive);
  const second = live(after);
  expect(await second.session.resume(pipe, handle.runId)).toMatchObject({ status: "completed" });
  const read = said(after.heard.at(-1) ?? expect.fail());
  expect(new Set(read).size).toBe(SENDERS.length * EACH);
  for (const by of SENDERS)
    expect(read.filter((text) => text.startsWith(by))).toEqual(Array.from({ length: EACH }, (_, at) => `${by} ${at}`));
  const events = dataOf(await eventsOf(second.host, handle.runId), "message.received");
  expect(events.map(({ text }) => text)).toEqual(read);
  const entries = transcriptEntries(handle.runId, await second.host.records(handle.runId));
  expect(entries.flatMap((entry) => (entry.kind === "message" ? [entry.text] : []))).toEqual(read);
});
