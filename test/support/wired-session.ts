import type { RunHandle } from "@sluice/stages";
import { expect, onTestFinished } from "vitest";
import { z } from "zod";
import type { HandClock } from "./hand-clock.ts";
import { type ProviderName, providerOf } from "./providers.ts";
import { eventsOf, session, type TestSession, type TestSessionOptions } from "./run-kit.ts";
import type { ModelServer, Replies } from "./sse-server.ts";
import type { WireRequest } from "./wire-request.ts";

/** A session whose model is a real provider package in front of a loopback server. */
export interface WiredSession {
  readonly live: TestSession;
  readonly server: ModelServer;
  /** Every request so far, in one form whatever the protocol. */
  requests(): readonly WireRequest[];
}

export async function wiredSession(
  name: ProviderName,
  replies: Replies,
  options: TestSessionOptions = {},
): Promise<WiredSession> {
  const provider = providerOf(name);
  const server = await provider.start(replies);
  onTestFinished(() => server.close());
  const env = { PATH: process.env.PATH ?? "/usr/bin:/bin", ...provider.env(server.url) };
  const live = session({ model: provider.model, env, ...options });
  return { live, server, requests: () => server.requests.map(({ body }) => provider.read(body)) };
}

/** Waits for a run whose time stands still: each wait between tries is turned just as far as it was announced. */
export async function turned<O>(live: TestSession, clock: HandClock, handle: RunHandle<O>) {
  const waits: number[] = [];
  for await (const event of handle.events) {
    if (event.type !== "model.retried") continue;
    const ms = z.number().parse(event.data.waitMs);
    waits.push(ms);
    while (clock.waiting() === 0) await new Promise((resolve) => setImmediate(resolve));
    clock.turn(ms - 1);
    expect(clock.waiting()).toBe(1);
    clock.turn(1);
  }
  return { result: await handle, waits, events: await eventsOf(live.host, handle.runId) };
}
