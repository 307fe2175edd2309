// The ACP agent: editors start pipelines, see their states as a plan, and answer their requests.
import { randomUUID } from "node:crypto";
import { isAbsolute } from "node:path";
import type { AgentContext, ClientCapabilities } from "@agentclientprotocol/sdk";
import { agent, methods, ndJsonStream, PROTOCOL_VERSION, RequestError } from "@agentclientprotocol/sdk";
import { type Clock, isSluiceError } from "@sluice/core";
import { messageOf, redactText, visible } from "@sluice/core/runtime";
import { type AcpSession, createAcpSession } from "./acp-session.ts";
import type { OpenWorkspace, SessionStore } from "./acp-workspace.ts";
import { clientInteractor } from "./ask-client.ts";
import { promptText } from "./prompt-text.ts";

export interface AcpServerOptions {
  readonly input: ReadableStream<Uint8Array>;
  readonly output: WritableStream<Uint8Array>;
  /** The version of the command. */
  readonly version: string;
  readonly open: OpenWorkspace;
  readonly sessions: SessionStore;
  readonly clock: Clock;
  /** Receives faults that no answer of the protocol reports. */
  readonly onFault: (message: string) => void;
  /** Ends the server; its runs are suspended. */
  readonly signal?: AbortSignal;
}

/** The longest message of a client, in bytes. */
const MOST_BYTES = 16 * 1024 * 1024;
/** Sessions of one connection: each holds an open store. */
const MOST_SESSIONS = 64;
const LONGEST_NAME = 40;

/** Serves one client until it disconnects. Its runs are then suspended, and can be continued by `session/load` or the command. */
export async function serveAcp(options: AcpServerOptions): Promise<void> {
  const { version, open, sessions: store, clock, onFault, signal } = options;
  const sessions = new Map<string, AcpSession>();
  let capabilities: ClientCapabilities | undefined;
  let clientName = "";
  const gone = new AbortController();

  const create = async (client: AgentContext, sessionId: string, cwd: string, runIds: readonly string[]) => {
    if (!isAbsolute(cwd)) throw RequestError.invalidParams(undefined, `cwd is not an absolute path: ${visible(cwd)}`);
    if (sessions.size >= MOST_SESSIONS)
      throw RequestError.invalidRequest(undefined, `there are ${MOST_SESSIONS} sessions already; close one first`);
    const session = await createAcpSession({
      sessionId,
      cwd,
      runIds,
      client,
      interactor: (flush) =>
        clientInteractor({
          sessionId,
          cwd,
          client,
          capabilities: () => capabilities,
          name: `acp ${clientName}`.trim(),
          gone: gone.signal,
          flush,
        }),
      open,
      store,
      clock,
      onFault,
    });
    // The client has left meanwhile.
    if (gone.signal.aborted) await session.close();
    else sessions.set(sessionId, session);
    return session;
  };
  const sessionOf = (sessionId: string): AcpSession => {
    const session = sessions.get(sessionId);
    if (session !== undefined) return session;
    throw RequestError.invalidParams(undefined, "there is no such session; create one, or load it");
  };
  /** A session that this connection does not hold yet. Its id is that of an earlier session, or of a run. */
  const restore = async (client: AgentContext, sessionId: string, cwd: string): Promise<AcpSession> => {
    const held = sessions.get(sessionId);
    const known = held ?? store.recall(sessionId);
    if (known !== undefined && known.cwd !== cwd)
      throw RequestError.invalidParams(undefined, `this session belongs to ${visible(known.cwd)}`);
    if (held?.isBusy === true) throw RequestError.invalidRequest(undefined, "this session runs a prompt");
    if (held !== undefined) return held;
    const runIds = known !== undefined && "runIds" in known ? known.runIds : [sessionId];
    return await create(client, sessionId, cwd, runIds);
  };
  /** The commands follow the answer, since a client learns the session's id from it. */
  const announceLater = (session: AcpSession): void => {
    setImmediate(() => {
      session.announce().catch((thrown: unknown) => onFault(`the commands could not be sent: ${messageOf(thrown)}`));
    });
  };

  const app = agent({ name: "sluice" })
    .onRequest(methods.agent.initialize, ({ params }) => {
      capabilities = params.clientCapabilities;
      clientName = visible(params.clientInfo?.name ?? "")
        .slice(0, LONGEST_NAME)
        .replaceAll("\n", " ");
      return {
        protocolVersion: PROTOCOL_VERSION,
        agentInfo: { name: "sluice", title: "Sluice", version },
        agentCapabilities: {
          loadSession: true,
          promptCapabilities: { image: false, audio: false, embeddedContext: false },
          mcpCapabilities: { http: false, sse: false },
          sessionCapabilities: { resume: {}, close: {} },
        },
        authMethods: [],
      };
    })
    .onRequest(methods.agent.session.new, async ({ params, client }) => {
      const sessionId = randomUUID();
      const session = await asAnswer(create(client, sessionId, params.cwd, []));
      if (params.mcpServers.length > 0)
        onFault("the MCP servers of the client are not used: the project's config names servers");
      announceLater(session);
      return { sessionId };
    })
    .onRequest(methods.agent.session.load, async ({ params, client }) => {
      const session = await asAnswer(restore(client, params.sessionId, params.cwd));
      try {
        await asAnswer(session.replay());
      } catch (thrown) {
        sessions.delete(params.sessionId);
        await session.close();
        throw thrown;
      }
      announceLater(session);
      return {};
    })
    .onRequest(methods.agent.session.resume, async ({ params, client }) => {
      announceLater(await asAnswer(restore(client, params.sessionId, params.cwd)));
      return {};
    })
    .onRequest(methods.agent.session.close, async ({ params }) => {
      const session = sessionOf(params.sessionId);
      sessions.delete(params.sessionId);
      await asAnswer(session.close());
      return {};
    })
    .onRequest(methods.agent.session.prompt, async ({ params }) => {
      const session = sessionOf(params.sessionId);
      return { stopReason: await asAnswer(session.prompt(promptText(params.prompt))) };
    })
    .onNotification(methods.agent.session.cancel, ({ params }) => sessions.get(params.sessionId)?.cancel());

  const connection = app.connect(ndJsonStream(options.output, options.input, { maxMessageBytes: MOST_BYTES }));
  connection.signal.addEventListener("abort", () => gone.abort(), { once: true });
  signal?.addEventListener("abort", () => connection.close(), { once: true });
  if (signal?.aborted === true) connection.close();
  await connection.closed;
  gone.abort();
  const closed = await Promise.allSettled([...sessions.values()].map((session) => session.close()));
  for (const one of closed)
    if (one.status === "rejected") onFault(`a session could not be closed: ${messageOf(one.reason)}`);
}

const INVALID_PARAMS = -32_602;
const NOT_FOUND = -32_002;
const INTERNAL = -32_603;

/** A failure as an answer of the protocol, with Sluice's code and its words. */
async function asAnswer<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (thrown) {
    if (thrown instanceof RequestError) throw thrown;
    const message = visible(redactText(messageOf(thrown)));
    if (!isSluiceError(thrown)) throw new RequestError(INTERNAL, message);
    const code = thrown.code === "run_unknown" ? NOT_FOUND : thrown.class === "Validation" ? INVALID_PARAMS : INTERNAL;
    throw new RequestError(code, message, { code: thrown.code });
  }
}
