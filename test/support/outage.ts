import { type Json, type RunHost, SluiceError } from "@sluice/core";
import { createHost, createMemoryJournals, type JournalStore } from "@sluice/core/host";
import type { RunHandle, RunResult } from "@sluice/stages";
import { onTestFinished } from "vitest";
import { type HandClock, handClock } from "./hand-clock.ts";
import { type ProviderName, providerOf } from "./providers.ts";
import { session, type TestSession, type TestSessionOptions, tool } from "./run-kit.ts";
import type { ModelServer, RecordedRequest, ServerReply } from "./sse-server.ts";

/** The time at which such a world begins. */
export const START = 1_000;

/** A provider that fails as a test says, and sessions that share one store, as processes do. */
export interface FailingWorld {
  readonly clock: HandClock;
  readonly server: ModelServer;
  /** The environment of its processes, with the key and the address of the provider. */
  readonly env: Readonly<Record<string, string>>;
  /** The inputs of the calls of Look that ran, over all sessions. */
  readonly ran: Json[];
  /** What each request was answered with: its HTTP status. */
  readonly statuses: number[];
  /** A session of its own, as a new process has. */
  process(options?: TestSessionOptions): TestSession;
  host(): RunHost;
  /** A host of a process that dies at its `at`-th commit, from 0: before it, or directly after it. */
  mortalHost(at: number, when: "before" | "after"): RunHost;
}

/** What a provider answers: `request` is the request, and `answered` how many requests were answered before. */
export type Answer = (at: {
  readonly request: RecordedRequest;
  readonly answered: number;
  readonly now: number;
}) => ServerReply | Promise<ServerReply>;

export async function failingWorld(name: ProviderName, answer: Answer): Promise<FailingWorld> {
  const provider = providerOf(name);
  const clock = handClock(START);
  const memory = createMemoryJournals();
  const statuses: number[] = [];
  const ran: Json[] = [];
  let answered = 0;
  const server = await provider.start(async (request) => {
    const reply = await answer({ request, answered, now: clock.now() });
    statuses.push(reply.status ?? 200);
    if (reply.status === undefined) answered += 1;
    return reply;
  });
  onTestFinished(() => server.close());
  const look = tool("Look", {
    effect: "read",
    execute: async (given: Json) => {
      ran.push(given);
      return { ok: true, output: "nothing here" };
    },
  });
  const env = { PATH: process.env.PATH ?? "/usr/bin:/bin", ...provider.env(server.url) };
  const host = (): RunHost => createHost(memory.connect(), { clock });
  const mortalHost: FailingWorld["mortalHost"] = (at, when) => {
    const store = memory.connect();
    let commits = 0;
    let isDead = false;
    const dies = (): never => {
      isDead = true;
      throw new SluiceError("Host", "store_closed", "this process is dead");
    };
    const append: JournalStore["append"] = async (commit) => {
      if (isDead || (when === "before" && commits === at)) dies();
      await store.append(commit);
      commits += 1;
      if (when === "after" && commits === at + 1) dies();
    };
    return createHost({ ...store, append }, { clock });
  };
  return {
    clock,
    server,
    env,
    ran,
    statuses,
    host,
    mortalHost,
    process: (options = {}) =>
      session({
        model: provider.model,
        env,
        clock,
        tools: [look],
        host: host(),
        onProviderFault: "suspend",
        ...options,
      }),
  };
}

/** Lets time pass whenever a run waits for a timer, until it ends or is suspended. */
export async function followed<O>(clock: HandClock, handle: RunHandle<O>, stepMs = 1_000): Promise<RunResult<O>> {
  let isOver = false;
  const over = (): void => {
    isOver = true;
  };
  handle.then(over, over);
  const turns = async (): Promise<void> => {
    for await (const { type, at, data } of handle.events) {
      if (type !== "model.retried") continue;
      const until = at + Number(data.waitMs);
      while (!isOver && clock.now() < until) {
        await new Promise((resolve) => setImmediate(resolve));
        if (clock.waiting() > 0) clock.turn(Math.min(stepMs, until - clock.now()));
      }
    }
  };
  await turns();
  return await handle;
}
