// The process of an external agent. What it sends is hostile: it is asked for nothing but its words and the end of a prompt.
import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, isAbsolute, join } from "node:path";
import { Readable, Writable } from "node:stream";
import {
  type ClientContext,
  client,
  type McpServer,
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
import type { SandboxMode } from "@sluice/stages";
import { sandboxedProgram } from "@sluice/stages/tools";
import { isMeasured } from "../../hosts/version.ts";
import { type AgentStart, agentStart, isOwnTool, type StageServer } from "./agent-host.ts";
import type { ExternalAgent } from "./external-agent.ts";

export interface AgentProcessOptions {
  readonly agent: ExternalAgent;
  /** The workspace. */
  readonly cwd: string;
  /** The whole environment of the process, without the variables that the agent itself is given. */
  readonly env: Readonly<Record<string, string>>;
  /** Its token is good for this process alone. */
  readonly server: StageServer;
  /** Names of the tools of the stage. */
  readonly tools: readonly string[];
  readonly sandbox: AgentSandbox;
  readonly version: string;
  readonly clock: Clock;
  readonly onText: (kind: "text" | "reasoning", text: string) => void;
}

/** The OS sandbox around an agent: it may read the workspace and change nothing of it. */
export interface AgentSandbox {
  readonly mode: SandboxMode;
  /** Absolute paths that it cannot see. */
  readonly hidden: readonly string[];
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
/** Characters of the end of its error output that are shown, and those that are kept until then. */
const LONGEST_ERROR = 2_000;
const KEPT_ERROR = 64_000;

/** Starts an agent without file system and terminal of the client, and opens a session that has our MCP server. Rejects with Error. */
export async function startAgent(options: AgentProcessOptions): Promise<AgentProcess> {
  const { agent, cwd, server, version, clock, onText } = options;
  const folder = await mkdtemp(join(tmpdir(), "sluice-agent-"));
  const removeFolder = async (): Promise<void> => await rm(folder, { recursive: true, force: true });
  const start = agentStart(agent.host, { server, workspace: cwd, folder, tools: options.tools, env: options.env });
  let started: StartedProgram;
  try {
    started = await startProgram(options, start, folder);
  } catch (thrown) {
    await removeFolder();
    throw thrown;
  }
  const { child, name } = started;
  const broken = Promise.withResolvers<never>();
  broken.promise.catch(() => undefined); // reported by the prompt
  const exited = watchExit(child, name, broken.reject);
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
    await removeFolder();
  };

  let updates = 0;
  const connection = client({ name: "sluice" })
    .onNotification(methods.client.session.update, ({ params }) => {
      updates += 1;
      if (updates > MOST_UPDATES) broken.reject(new Error("the agent sends more updates than an honest one does"));
      else readText(params.update, onText);
    })
    .onRequest(methods.client.session.requestPermission, ({ params }) => answerPermission(params, server))
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
    const sessionId = await inTime(openSession(connection.agent, { agent, cwd, server, version, start }));
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

interface StartedProgram {
  readonly child: ChildProcessWithoutNullStreams;
  readonly name: string;
}

/** Starts the agent's process, in the sandbox where there is one. `folder` is for its configuration. */
async function startProgram(
  { agent, cwd, sandbox, clock, ...options }: AgentProcessOptions,
  start: AgentStart,
  folder: string,
): Promise<StartedProgram> {
  const [program = "", ...args] = agent.command;
  for (const { path, text } of start.files) {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeFile(path, text, { mode: 0o600 });
  }
  const variables = Object.entries({ ...options.env, PWD: cwd, ...agent.env, ...start.env });
  const env = Object.fromEntries(variables.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
  const plain = { file: program, args: [...args, ...start.args], cwd, env };
  const own = [...start.home, ...(agent.home ?? [])].map((path) => path.replace(/^~(?=\/)/, env.HOME ?? "~"));
  const walled = await sandboxedProgram(plain, {
    root: cwd,
    mode: sandbox.mode,
    reads: [],
    writes: [folder, ...own.filter((path) => isAbsolute(path) && existsSync(path))],
    absent: sandbox.hidden,
    clock,
  });
  const { file, args: given } = walled ?? plain;
  // Its own group, so that what it started ends with it.
  const child = spawn(file, given, { cwd, env, stdio: ["pipe", "pipe", "pipe"], detached: true });
  return { child, name: basename(program) };
}

interface SessionFacts extends Pick<AgentProcessOptions, "agent" | "cwd" | "server" | "version"> {
  readonly start: AgentStart;
}

async function openSession(
  client: ClientContext,
  { agent, cwd, server, version, start }: SessionFacts,
): Promise<string> {
  const { protocolVersion, agentCapabilities, agentInfo } = await client.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
    clientInfo: { name: "sluice", version },
  });
  if (protocolVersion !== PROTOCOL_VERSION)
    throw new Error(`the agent speaks version ${protocolVersion} of ACP, and not ${PROTOCOL_VERSION}`);
  const doubt = agent.accept === "advisory" ? undefined : doubtOf(start, agentInfo?.version);
  if (doubt !== undefined) throw new Error(`${doubt}; with accept: "advisory" it is started all the same`);
  if (start.namesServer && agentCapabilities?.mcpCapabilities?.http !== true)
    throw new Error("the agent cannot use MCP servers over HTTP, so it cannot have the tools of the stage");
  const { name, url, token } = server;
  const headers = [{ name: "Authorization", value: `Bearer ${token}` }];
  const own: McpServer = { type: "http", name, url, headers };
  const { sessionId } = await client.request(methods.agent.session.new, {
    cwd,
    mcpServers: start.namesServer ? [own] : [],
    ...(start.meta === undefined ? {} : { _meta: { ...start.meta } }),
  });
  return sessionId;
}

/** Why it is not proven that the agent has no tools of its own. */
function doubtOf({ measured, weaker }: AgentStart, version: string | undefined): string | undefined {
  if (weaker !== undefined) return weaker;
  if (measured === undefined || isMeasured(version, measured)) return undefined;
  const [from, to] = measured;
  const which = version === undefined ? "it names no version" : `its version is ${visible(version)}`;
  const known = from === to ? from : `${from} to ${to}`;
  return `it is not proven that the agent has no tools of its own: ${which}, and ${known} was measured`;
}

/** Whether an agent says that a call runs or changes something. Its title is then what the model wrote, and the model knows our server's name. */
function isAct({ kind }: RequestPermissionRequest["toolCall"]): boolean {
  return kind === "execute" || kind === "edit" || kind === "delete" || kind === "move";
}

/** The gate decides about our own tools when they are called. Anything else is refused, once: there is no always. */
function answerPermission(
  { toolCall, options }: RequestPermissionRequest,
  server: StageServer,
): RequestPermissionResponse {
  // A title may have words of the model, so it counts only for agents that name no tool.
  const tool = toolCall.name ?? (isAct(toolCall) ? "" : (toolCall.title ?? ""));
  const wanted = isOwnTool(server, tool) ? "allow_once" : "reject_once";
  const option = options.find(({ kind }) => kind === wanted);
  if (option === undefined) return { outcome: { outcome: "cancelled" } };
  return { outcome: { outcome: "selected", optionId: option.optionId } };
}

function readText(update: SessionUpdate, onText: AgentProcessOptions["onText"]): void {
  if (update.sessionUpdate !== "agent_message_chunk" && update.sessionUpdate !== "agent_thought_chunk") return;
  if (update.content.type !== "text") return;
  onText(update.sessionUpdate === "agent_message_chunk" ? "text" : "reasoning", update.content.text);
}

/** Without the line that is cut: known secrets are masked later, and half of one would not be found. */
function lastLines(text: string): string {
  if (text.length <= LONGEST_ERROR) return text;
  const end = text.slice(-LONGEST_ERROR);
  return end.includes("\n") ? end.slice(end.indexOf("\n") + 1) : "";
}

/** Resolves when the process has ended, or could not start. */
function watchExit(child: ChildProcess, name: string, onEnd: (error: Error) => void): Promise<void> {
  let stderr = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr = `${stderr}${text}`.slice(-KEPT_ERROR);
  });
  // A pipe that breaks shows as the end of the process.
  child.stdin?.on("error", () => undefined);
  return new Promise((resolve) => {
    child.once("error", (error) => {
      onEnd(new Error(`the agent ${name} could not be started: ${messageOf(error)}`));
      resolve();
    });
    child.once("exit", (code, signal) => {
      const said = visible(lastLines(stderr.trim()));
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
