import { onTestFinished } from "vitest";
import { type ProviderName, providerOf } from "./providers.ts";
import { session, type TestSession, type TestSessionOptions } from "./run-kit.ts";
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
