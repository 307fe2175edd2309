// The process of an external agent. What it sends is hostile: it is asked for nothing but its words and the end of a prompt.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { Readable, Writable } from "node:stream";
import {
  type ClientContext,
  client,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  type PromptResponse,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import type { Clock } from "@sluice/core";
import { messageOf, visible } from "@sluice/core/runtime";
import { isOwnTool, SERVER_NAME, toolRemoval } from "./agent-host.ts";
import type { ExternalAgent } from "./external-agent.ts";

export interface AgentProcessOptions {
  readonly agent: Omit<ExternalAgent, "accept">;
  /** The workspace. */
  readonly cwd: string;
  /** The whole environment of the process, without the variables that the agent itself is given. */
  readonly env: Readonly<Record<string, string>>;
  /** Our MCP server, with the token that is good for this process alone. */
  readonly server: { readonly url: string; readonly token: string };
  readonly version: string;
  readonly clock: Clock;
  readonly onText: (kind: "text" | "reasoning", text: string) => void;
}

export interface AgentProcess {
  /** Sends a prompt and waits for its end. Rejects if the agent fails or ends. */
  prompt(text: string): Promise<PromptResponse["stopReason"]>;
  /** Rejects when the process has ended or broken the protocol. Never resolves. */
  readonly failed: Promise<never>;
  /** Ends the process and everything that it started in its group. */
  close(): Promise<void>;
}

/** How long the handshake may take. */
const START_MS = 60_000;
/** How long a process has to end by itself. */
const GRACE_MS = 2_000;
/** The longest message of an agent, in bytes. */
const MOST_BYTES = 16 * 1024 * 1024;
/** Notifications between two results of a prompt. An honest agent streams some thousands. */
const MOST_UPDATES = 200_000;
const LONGEST_ERROR = 2_000;

/** Starts an agent without file system and terminal of the client, and opens a session that has our MCP server. Rejects with Error. */
export async function startAgent(options: AgentProcessOptions): Promise<AgentProcess> {
  const { agent, cwd, server, version, clock, onText } = options;
  const removal = toolRemoval(agent.host);
  const [program = "", ...args] = agent.command;
  const folder = removal.policy === undefined ? undefined : await mkdtemp(join(tmpdir(), "sluice-agent-"));
  const { policy } = removal;
  const policyFile = folder === undefined || policy === undefined ? undefined : join(folder, policy.name);
  if (policyFile !== undefined && policy !== undefined) await writeFile(policyFile, policy.text, { mode: 0o600 });
  const words = policyFile === undefined || policy === undefined ? args : [...args, policy.option, policyFile];
  const child = spawn(program, words, {
    cwd,
    env: { ...options.env, ...agent.env, ...removal.env },
    stdio: ["pipe", "pipe", "pipe"],
    // Its own group, so that what it started ends with it.
    detached: true,
  });
  const broken = Promise.withResolvers<never>();
  broken.promise.catch(() => undefined); // reported by the prompt
  const exited = watchExit(child, basename(program), broken.reject);
  // This process may end without closing it.
  const endNow = (): void => endGroup(child, "SIGKILL");
  process.once("exit", endNow);
  const close = async (): Promise<void> => {
    process.off("exit", endNow);
    endGroup(child, "SIGTERM");
    const stop = clock.after(GRACE_MS, endNow);
    await exited;
    stop();
    // A process of its group may have outlived it.
    endNow();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  };

  let updates = 0;
  const connection = client({ name: "sluice" })
    .onNotification(methods.client.session.update, ({ params }) => {
      updates += 1;
      if (updates > MOST_UPDATES) broken.reject(new Error("the agent sends more updates than an honest one does"));
      else readText(params.update, onText);
    })
    .onRequest(methods.client.session.requestPermission, ({ params }) => answerPermission(params))
    .connect(ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout), { maxMessageBytes: MOST_BYTES }));
  // A process that ends closes its pipes first; how it ended says more.
  const lost = (): void =>
    void clock.after(GRACE_MS, () => broken.reject(new Error("the agent closed the connection")));
  connection.closed.then(lost, lost);
  const inTime = async <T>(work: Promise<T>): Promise<T> => {
    const late = Promise.withResolvers<never>();
    const stop = clock.after(START_MS, () => late.reject(new Error("the agent did not open a session in time")));
    try {
      return await Promise.race([work, broken.promise, late.promise]);
    } catch (thrown) {
      if (connection.signal.aborted) return await broken.promise;
      throw thrown;
    } finally {
      stop();
    }
  };

  try {
    const sessionId = await inTime(openSession(connection.agent, { cwd, server, version, meta: removal.meta }));
    return {
      failed: broken.promise,
      prompt: async (text) => {
        updates = 0;
        const prompted = connection.agent.request(methods.agent.session.prompt, {
          sessionId,
          prompt: [{ type: "text", text }],
        });
        try {
          const { stopReason } = await Promise.race([prompted, broken.promise]);
          return stopReason;
        } catch (thrown) {
          // How the process ended says more than that its connection closed.
          if (connection.signal.aborted) return await broken.promise;
          throw thrown;
        }
      },
      close: async () => {
        connection.close();
        await close();
      },
    };
  } catch (thrown) {
    connection.close();
    await close();
    throw thrown;
  }
}

interface SessionFacts extends Pick<AgentProcessOptions, "cwd" | "server" | "version"> {
  readonly meta: Readonly<Record<string, unknown>> | undefined;
}

async function openSession(agent: ClientContext, { cwd, server, version, meta }: SessionFacts): Promise<string> {
  const { protocolVersion, agentCapabilities } = await agent.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
    clientInfo: { name: "sluice", version },
  });
  if (protocolVersion !== PROTOCOL_VERSION)
    throw new Error(`the agent speaks version ${protocolVersion} of ACP, and not ${PROTOCOL_VERSION}`);
  if (agentCapabilities?.mcpCapabilities?.http !== true)
    throw new Error("the agent cannot use MCP servers over HTTP, so it cannot have the tools of the stage");
  const { sessionId } = await agent.request(methods.agent.session.new, {
    cwd,
    mcpServers: [
      {
        type: "http",
        name: SERVER_NAME,
        url: server.url,
        headers: [{ name: "Authorization", value: `Bearer ${server.token}` }],
      },
    ],
    ...(meta === undefined ? {} : { _meta: { ...meta } }),
  });
  return sessionId;
}

/** The gate decides about our own tools when they are called. Anything else is refused, once: there is no always. */
function answerPermission({ toolCall, options }: RequestPermissionRequest): RequestPermissionResponse {
  const wanted = isOwnTool(toolCall.name, toolCall.title) ? "allow_once" : "reject_once";
  const option = options.find(({ kind }) => kind === wanted);
  if (option === undefined) return { outcome: { outcome: "cancelled" } };
  return { outcome: { outcome: "selected", optionId: option.optionId } };
}

function readText(update: SessionUpdate, onText: AgentProcessOptions["onText"]): void {
  if (update.sessionUpdate !== "agent_message_chunk" && update.sessionUpdate !== "agent_thought_chunk") return;
  if (update.content.type !== "text") return;
  onText(update.sessionUpdate === "agent_message_chunk" ? "text" : "reasoning", update.content.text);
}

/** Resolves when the process has ended, or could not start. */
function watchExit(child: ChildProcess, name: string, onEnd: (error: Error) => void): Promise<void> {
  let stderr = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr = `${stderr}${text}`.slice(-LONGEST_ERROR);
  });
  // A pipe that breaks shows as the end of the process.
  child.stdin?.on("error", () => undefined);
  return new Promise((resolve) => {
    child.once("error", (error) => {
      onEnd(new Error(`the agent ${name} could not be started: ${messageOf(error)}`));
      resolve();
    });
    child.once("exit", (code, signal) => {
      const said = visible(stderr.trim());
      const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
      onEnd(new Error(`the agent ${name} ended with ${how}${said === "" ? "" : `: ${said}`}`));
      resolve();
    });
  });
}

function endGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch (thrown) {
    // The group has ended already.
    if (!(thrown instanceof Error && "code" in thrown && thrown.code === "ESRCH")) throw thrown;
  }
}
