import type { Json, JsonObject, OpenRequest, RunHost } from "@sluice/core";
import { sealWithCode } from "@sluice/core/gate";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import type { StartOptions } from "@sluice/stages";
import { expect } from "vitest";
import { calls, one, saying, task, tools, worker } from "./facts.ts";
import { handClock } from "./hand-clock.ts";
import { soon } from "./people-kit.ts";
import { dataOf, eventsOf, session, type TestSession, type TestSessionOptions, tool } from "./run-kit.ts";

interface Asked {
  readonly request: OpenRequest;
  readonly code: string | undefined;
}

/** A run that starts a process without a wall, and then asks for a call that nobody allowed; others are on its store, too. */
export function office(options: TestSessionOptions & StartOptions & { readonly walled?: boolean } = {}) {
  const { walled = false, answers, ...rest } = options;
  const clock = handClock();
  const memory = createMemoryJournals();
  const host = (): RunHost => createHost(memory.connect(), { clock });
  const ran: Json[] = [];
  const escapes = tool("Escape", {
    ...(walled ? {} : { startsProcesses: true }),
    execute: async (_given, call) => {
      if (!walled) call.startsUnwalled();
      return { ok: true, output: "started" };
    },
  });
  const deploy = tool("Deploy", { execute: async (given) => ({ ok: true, output: ran.push(given) }) });
  const codes: Asked[] = [];
  const all = [...tools, escapes, deploy];
  const own = (): TestSessionOptions => ({
    tools: all,
    clock,
    wait: true,
    onCode: (request, code) => void codes.push({ request, code }),
    ...rest,
  });
  const model = saying(calls("Escape"), calls(["Deploy", { n: 1 }]), calls(["Deploy", { n: 2 }]));
  const pipe = one(worker({ allowedTools: ["Look", "Escape", "AskUser"] }));
  const begin = (live: TestSession) => live.start(pipe, task, answers === undefined ? {} : { answers });
  return { host, ran, codes, own, model, pipe, begin, all };
}
export type Office = ReturnType<typeof office>;

export function begun(made: Office) {
  const live = session({ ...made.own(), model: made.model, host: made.host() });
  return { live, handle: made.begin(live), elsewhere: made.host() };
}

export async function open(host: RunHost, at = 0): Promise<OpenRequest> {
  await soon(async () => (await host.requests()).length > at);
  const request = (await host.requests())[at];
  if (request === undefined) throw new Error("nothing is asked");
  return request;
}

/** The code that was shown for the nth request; requests and codes come in any order. */
export async function codeOf({ codes }: Office, at = 0): Promise<string> {
  await soon(() => codes.length > at);
  return codes[at]?.code ?? "";
}

export async function placeOf(host: RunHost, { runId, requestId }: OpenRequest) {
  const incarnation = (await host.records(runId)).at(-1)?.incarnation ?? "";
  return { runId, requestId, incarnation };
}

/** An approval, or another answer, as any process can send it. */
export async function sent(
  host: RunHost,
  request: OpenRequest,
  payload: JsonObject = { kind: "approve" },
): Promise<void> {
  const { runId, requestId, digest } = request;
  const message = { name: `request/${requestId}`, payload: { digest, ...payload }, digest, by: "elsewhere" };
  expect(await host.signal(runId, message)).toBe("accepted");
}

export async function proved(host: RunHost, request: OpenRequest, code: string): Promise<JsonObject> {
  const sealed = sealWithCode(code, await placeOf(host, request), { kind: "approve", digest: request.digest });
  if (sealed === undefined) throw new Error("this is not its code");
  return sealed;
}

export const answersIn = async ({ host }: Pick<TestSession, "host">, runId: string) =>
  dataOf(await eventsOf(host, runId), "grant.answered").map(({ answer, by, proof }) => [answer, by, proof]);
