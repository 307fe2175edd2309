import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type Answer, type Interactor, type Json, type PersonRequest, parseJson, type RunHost } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { sqliteHost } from "@sluice/sqlite";
import { onTestFinished } from "vitest";
import { handClock } from "./hand-clock.ts";
import { nodeArguments } from "./sqlite-process.ts";
import { scratch } from "./sqlite-store.ts";

/** One store, with as many hosts on it as are asked for. */
export interface Stores {
  host(): RunHost;
  /** Answers so many requests, oldest first, from another host (in another process where the store allows it): approve, deny, approve, … */
  answerElsewhere(count: number): Promise<Json>;
}

export const HOSTS: readonly (readonly [name: string, make: () => Stores])[] = [
  ["in memory", inMemory],
  ["SQLite", onDisk],
];

function inMemory(): Stores {
  const memory = createMemoryJournals();
  const clock = handClock();
  const host = (): RunHost => closing(createHost(memory.connect(), { clock }));
  return {
    host,
    answerElsewhere: async (count) => {
      const there = host();
      const outcomes: Json[] = [];
      for (const [at, request] of (await there.requests()).slice(0, count).entries()) {
        outcomes.push([request.runId, await answerFrom(there, request, { kind: at % 2 === 0 ? "approve" : "deny" })]);
      }
      return outcomes;
    },
  };
}

function onDisk(): Stores {
  const folder = join(scratch(), "store");
  return {
    host: () => closing(sqliteHost(folder)),
    answerElsewhere: async (count) => {
      const child = spawn(process.execPath, nodeArguments("answerer.ts", folder, String(count)), {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const exited = once(child, "exit");
      onTestFinished(async () => {
        child.kill("SIGKILL");
        await exited;
      });
      const said = parseJson(await text(child.stdout));
      return said.ok ? said.value : said.fault;
    },
  };
}

function closing(host: RunHost): RunHost {
  onTestFinished(() => host.close());
  return host;
}

/** Answers a request the way another process does. */
export function answerFrom(
  host: RunHost,
  { runId, requestId, digest }: Pick<PersonRequest, "runId" | "requestId" | "digest">,
  answer: Answer,
  about = digest,
) {
  const payload = { ...answer, digest: about };
  return host.signal(runId, { name: `request/${requestId}`, payload, digest: about, by: "elsewhere" });
}

export interface Shown {
  readonly request: PersonRequest;
  readonly signal: AbortSignal;
  answer(answer: Answer | undefined): void;
  fail(error: Error): void;
}
/** A person at a screen: sees requests, and answers when the test says so. */
export function person(name: string): Interactor & { readonly seen: readonly Shown[] } {
  const seen: Shown[] = [];
  const answer = (request: PersonRequest, signal: AbortSignal): Promise<Answer | undefined> =>
    new Promise((resolve, reject) => {
      seen.push({ request, signal, answer: resolve, fail: reject });
    });
  return { name, seen, answer };
}

/** Goes on when it holds, or fails after twenty-five seconds; a store looks for what other processes did every few milliseconds. */
export async function soon(holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 25_000;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error("what was waited for did not happen");
    await new Promise((resolve) => setImmediate(resolve));
  }
}
