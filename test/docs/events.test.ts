import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { LanguageModelV4, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import {
  type Answer,
  backToInterrupted,
  callbackInteractor,
  done,
  EVENT_TYPES,
  fanOut,
  final,
  type GuardHook,
  memoryHost,
  pipeline,
  type SluiceEvent,
  stage,
  to,
} from "@sluice/core";
import { eventSchema } from "@sluice/core/schemas";
import { script as command, createSession, type Session, scriptedModel, sendMessage, timer } from "@sluice/stages";
import { expect, test } from "vitest";
import { z } from "zod";
import { tempFolder } from "../support/tools.ts";

const input = z.object({ task: z.string() });
const submit = { completionTool: "submit", completionSchema: z.object({ text: z.string().min(1) }), turnCap: 3 };
const finish = { calls: [{ tool: "submit", input: { text: "done" } }] };
const small = (id: string) => stage({ ...submit, prompt: `This is ${id}.`, allowedTools: [] });

const noSecrets: GuardHook = ({ input: given }) =>
  JSON.stringify(given).includes("secret") ? { veto: "nothing secret" } : undefined;
const work = stage({
  ...submit,
  prompt: "Work.",
  allowedTools: ["Read", "AskUser", "Write(notes/**)"],
  onCall: noSecrets,
});
const [middle, left, right, last] = [small("middle"), small("left"), small("right"), small("last")];

/** A model whose provider leaves out a setting. */
const warning: LanguageModelV4 = {
  specificationVersion: "v4",
  provider: "test",
  modelId: "warning",
  supportedUrls: {},
  doGenerate: () => Promise.reject(new Error("sessions stream")),
  doStream: async () => {
    const usage = {
      inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 1, text: 1, reasoning: 0 },
    };
    const parts: readonly LanguageModelV4StreamPart[] = [
      { type: "stream-start", warnings: [{ type: "unsupported", feature: "temperature" }] },
      { type: "tool-call", toolCallId: "a", toolName: "submit", input: '{"text":"done"}' },
      { type: "finish", finishReason: { unified: "tool-calls", raw: undefined }, usage },
    ];
    return { stream: ReadableStream.from(parts) };
  },
};

/** Passes everything: a message, a retry, calls of every fate, a question, a context, a fork, a route that goes nowhere, a cap. */
const everything = pipeline({
  id: "everything",
  input,
  stages: { work, middle, left, right, last },
  initial: "work",
  next: {
    work: () => to("middle", undefined, { context: { seen: true } }),
    middle: () => fanOut(["left", "right"], { join: "last" }),
    // What a mistake in JavaScript may return.
    last: { completed: () => done(() => "not JSON"), failed: () => done(Number.NaN) },
  },
});
const write = (path: string) => ({ tool: "Write", input: { file_path: path, content: "x" } });
const everyCall = [
  { tool: "Read", input: { file_path: "there.md" } },
  { tool: "Read", input: { file_path: "not-there.md" } },
  { tool: "Read", input: { file: 1 } },
  { tool: "Raed", input: {} },
  { tool: "Read", rawInput: "{" },
  { tool: "AskUser", input: { question: "Which colour?", options: ["blue", "red"] } },
  write("notes/a.md"),
  write("notes/secret.md"),
  write("granted.md"),
  write("denied.md"),
  write(".git/config"),
  { tool: "submit", input: { text: "" } },
];
const script = scriptedModel({
  stages: {
    work: [{ text: "I begin.", calls: everyCall, errors: [{ status: 529, retryAfterMs: 1 }] }, finish],
    middle: [finish],
    left: [finish],
    right: [{ text: "hm" }, finish],
    last: [{ text: "a" }, { text: "b" }, { text: "c" }],
  },
});

/** Moves by events, and checks what it wrote on the way. */
const moving = pipeline({
  id: "moving",
  input,
  stages: {
    building: stage({ prompt: "Build.", allowedTools: ["Write(notes/**)"], turnCap: 4 }),
    checking: stage({ prompt: "Check.", allowedTools: [], turnCap: 2 }),
    complete: final("completed"),
  },
  initial: "building",
  interrupts: { notes: { files: "notes/**", target: "checking" } },
  transitions: [
    { from: "building", on: { event: "DONE" }, to: "complete" },
    { from: "checking", on: { event: "VALID" }, to: backToInterrupted() },
  ],
});
const send = (event: string) => ({ calls: [{ tool: "transition", input: { event } }] });
const moves = scriptedModel({
  stages: { building: [{ calls: [write("notes/b.md")] }, send("SHIP"), send("DONE")], checking: [send("VALID")] },
});

const people = callbackInteractor("test", ({ kind, body }): Answer => {
  if (kind === "askUser") return { kind: "value", value: "blue" };
  return JSON.stringify(body).includes("granted.md") ? { kind: "approve" } : { kind: "deny", reason: "not this one" };
});

async function eventsOf(session: Session, runId: string): Promise<SluiceEvent[]> {
  const events: SluiceEvent[] = [];
  for await (const event of session.host.events(runId, { children: true })) events.push(event);
  return events;
}

/** Reads on until something happens. */
async function until(events: AsyncIterable<SluiceEvent>, type: SluiceEvent["type"]): Promise<void> {
  for await (const event of events) if (event.type === type) return;
  throw new Error(`the run ended without ${type}`);
}

test("every event of runs in which everything happens fits the exported schemas, and no type is left out", async () => {
  const folder = tempFolder();
  writeFileSync(join(folder.root, "there.md"), "here\n");
  // A window so small that the transcript nears it.
  const prices = { scripted: { contextWindow: 1_000 } };
  const attended = createSession({ model: script, cwd: folder.root, interactors: [people], prices });
  const running = attended.start(everything, { task: "do everything" });
  await until(running.events, "run.started");
  await sendMessage(attended.host, running.runId, "mind the notes", "test");
  const full = await running;
  expect(full).toMatchObject({
    status: "failed",
    denied: [{ cause: "hook" }, { cause: "denied" }, { cause: "limit" }],
  });

  // Requests that nobody answers: one run is suspended and resumed, and both are cancelled while they wait.
  const asks = scriptedModel({ stages: { work: [{ calls: [write("granted.md")] }], left: [finish] } });
  const waiting = createSession({ model: asks, cwd: folder.root, wait: true });
  const first = waiting.start(everything, { task: "wait" });
  await until(first.events, "grant.requested");
  await first.suspend();
  expect((await first).status).toBe("suspended");
  const resumed = waiting.resume(everything, first.runId);
  await until(resumed.events, "run.resumed");
  await resumed.cancel("enough");

  const questions = scriptedModel({
    stages: { work: [{ calls: [{ tool: "AskUser", input: { question: "Is anybody there?" } }] }] },
  });
  const asking = createSession({ model: questions, cwd: folder.root, wait: true });
  const second = asking.start(everything, { task: "ask" });
  await until(second.events, "request.opened");
  await second.interrupt("not now");
  await asking.host.cancel(second.runId, "enough", "test");

  const forked = attended.fork(everything, full.runId, { from: "work#1" });
  await until(forked.events, "run.forked");
  await forked.cancel("enough");

  const mover = createSession({ model: moves, cwd: folder.root });
  const moved = await mover.run(moving, { task: "move" });
  expect(moved.status).toBe("completed");

  const naps = pipeline({
    id: "naps",
    input,
    stages: { nap: timer({ for: 1 }), count: command({ command: ["true"], sandbox: {} }) },
    initial: "nap",
    next: { nap: () => to("count"), count: () => done("rested") },
  });
  const napped = await mover.run(naps, { task: "rest" });
  expect(napped.status).toBe("completed");

  const warned = createSession({ model: warning, cwd: folder.root });
  const heeded = await warned.run(
    pipeline({ id: "one", input, stages: { last }, initial: "last", next: { last: () => done(1) } }),
    { task: "work" },
  );
  expect(heeded.status).toBe("completed");

  const refused = { stages: { last: [{ errors: [{ status: 401 }, { status: 402 }], ...finish }] } };
  writeFileSync(join(folder.root, "fallback.json"), JSON.stringify(refused));
  const spare = stage({
    ...submit,
    prompt: "This is last.",
    allowedTools: [],
    fallbackModels: ["scripted:fallback.json"],
  });
  const failing = createSession({
    model: scriptedModel(refused),
    cwd: folder.root,
    host: memoryHost(),
    onProviderFault: "suspend",
  });
  const faulty = pipeline({
    id: "one",
    input,
    stages: { last: spare },
    initial: "last",
    next: { last: () => done(1) },
  });
  const faulted = await failing.run(faulty, { task: "work" });
  expect(faulted.status).toBe("suspended");
  expect((await failing.resume(faulty, faulted.runId)).status).toBe("completed");

  const events = [
    ...(await eventsOf(failing, faulted.runId)),
    ...(await eventsOf(warned, heeded.runId)),
    ...(await eventsOf(mover, napped.runId)),
    ...(await eventsOf(mover, moved.runId)),
    ...(await eventsOf(attended, full.runId)),
    ...(await eventsOf(attended, forked.runId)),
    ...(await eventsOf(waiting, first.runId)),
    ...(await eventsOf(asking, second.runId)),
  ];
  await Promise.all([
    failing.close(),
    warned.close(),
    mover.close(),
    attended.close(),
    waiting.close(),
    asking.close(),
  ]);

  const misfits = events.flatMap((event) => {
    const parsed = eventSchema.safeParse(event);
    return parsed.success ? [] : [{ event, issues: parsed.error.issues }];
  });
  expect(misfits).toEqual([]);
  const seen = new Set(events.map(({ type }) => type));
  expect(EVENT_TYPES.filter((type) => !seen.has(type))).toEqual([]);
});

test.each([
  ["an unknown type", { type: "run.flew" }],
  ["a field that is missing", { data: {} }],
  ["a time that is no number", { at: "now" }],
])("the schemas refuse %s", (_what, change) => {
  const event = { id: "r1/0/0", runId: "r1", at: 1, type: "run.suspended", data: { reason: "waiting" } };
  expect(eventSchema.safeParse(event).success).toBe(true);
  expect(eventSchema.safeParse({ ...event, ...change }).success).toBe(false);
});
