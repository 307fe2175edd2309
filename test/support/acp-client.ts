import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { Readable, Writable } from "node:stream";
import {
  type ClientCapabilities,
  type ClientContext,
  type ContentBlock,
  type CreateElicitationRequest,
  type CreateElicitationResponse,
  client,
  methods,
  ndJsonStream,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import { onTestFinished } from "vitest";
import type { Desk } from "./command.ts";

const BIN = join(import.meta.dirname, "../../packages/cli/bin/sluice.js");
const COMPILED = join(import.meta.dirname, "../../node_modules/.cache/compiled");

/** An editor with `sluice acp` as its agent. */
export interface Editor {
  readonly agent: ClientContext;
  readonly child: ChildProcess;
  readonly updates: readonly SessionUpdate[];
  /** The permissions that were requested. */
  readonly permissions: readonly RequestPermissionRequest[];
  readonly questions: readonly CreateElicitationRequest[];
  /** Everything on stdout, as the process wrote it. */
  stdout(): string;
  stderr(): string;
  /** The text of all message chunks. */
  said(): string;
  /** Waits until this is true; looks after every message of the agent. */
  until(holds: () => boolean): Promise<void>;
  /** Creates a session in the desk's folder. */
  session(): Promise<string>;
  prompt(sessionId: string, text: string): Promise<string>;
  /** Closes the connection as an editor that quits. */
  quit(): Promise<number | null>;
  kill(): Promise<void>;
}

export interface EditorOptions {
  /** The option to choose, or undefined to leave the request without an answer. Default: `allow`. */
  readonly choose?: (request: RequestPermissionRequest) => string | undefined;
  readonly fill?: (request: CreateElicitationRequest) => CreateElicitationResponse;
  readonly capabilities?: ClientCapabilities;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** The environment of the desk's commands. */
export function deskEnv({ folder }: Pick<Desk, "folder">): Readonly<Record<string, string>> {
  const base = dirname(folder);
  return {
    PATH: `${dirname(process.execPath)}:${process.env.PATH ?? ""}`,
    HOME: join(base, "home"),
    XDG_STATE_HOME: join(base, "state"),
    OLLAMA_HOST: "http://127.0.0.1:9",
    NODE_COMPILE_CACHE: COMPILED,
  };
}

/** Starts `sluice acp` with these arguments, and initializes the connection. */
export async function openEditor(desk: Desk, args: readonly string[], options: EditorOptions = {}): Promise<Editor> {
  const { choose = () => "allow", fill = () => ({ action: "cancel" }), capabilities = {}, env = {}, cwd } = options;
  const child = spawn(process.execPath, [BIN, "acp", ...args], {
    cwd: cwd ?? desk.folder,
    env: { ...deskEnv(desk), ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const exited = once(child, "close");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  let [stdout, stderr] = ["", ""];
  const listeners = new Set<() => void>();
  const notify = (): void => {
    for (const listener of [...listeners]) listener();
  };
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
    notify();
  });
  child.stdin.on("error", () => undefined); // the agent may have ended
  const updates: SessionUpdate[] = [];
  const permissions: RequestPermissionRequest[] = [];
  const questions: CreateElicitationRequest[] = [];
  const copied = Readable.toWeb(child.stdout).pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, to) => {
        stdout += Buffer.from(chunk).toString("utf8");
        to.enqueue(chunk);
      },
    }),
  );
  const never = new Promise<RequestPermissionResponse>(() => undefined);
  const connection = client({ name: "editor" })
    .onNotification(methods.client.session.update, ({ params }) => {
      updates.push(params.update);
      notify();
    })
    .onRequest(methods.client.session.requestPermission, ({ params, signal }) => {
      permissions.push(params);
      notify();
      const optionId = choose(params);
      if (optionId !== undefined) return { outcome: { outcome: "selected", optionId } };
      const cancelled = new Promise<RequestPermissionResponse>((resolve) => {
        signal.addEventListener("abort", () => resolve({ outcome: { outcome: "cancelled" } }), { once: true });
      });
      return Promise.race([never, cancelled]);
    })
    .onRequest(methods.client.elicitation.create, ({ params }) => {
      questions.push(params);
      notify();
      return fill(params);
    })
    .connect(ndJsonStream(Writable.toWeb(child.stdin), copied));
  const { agent } = connection;
  await agent.request(methods.agent.initialize, {
    protocolVersion: 1,
    clientCapabilities: capabilities,
    clientInfo: { name: "editor", version: "1" },
  });
  return {
    agent,
    child,
    updates,
    permissions,
    questions,
    stdout: () => stdout,
    stderr: () => stderr,
    said: () => saidIn(updates, "agent_message_chunk"),
    until: (holds) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!holds()) return;
          listeners.delete(look);
          resolve();
        };
        listeners.add(look);
        look();
      }),
    session: async () => {
      const { sessionId } = await agent.request(methods.agent.session.new, { cwd: desk.folder, mcpServers: [] });
      return sessionId;
    },
    prompt: async (sessionId, text) => {
      const prompt: ContentBlock[] = [{ type: "text", text }];
      const { stopReason } = await agent.request(methods.agent.session.prompt, { sessionId, prompt });
      return stopReason;
    },
    quit: async () => {
      child.stdin.end();
      await exited;
      return child.exitCode;
    },
    kill: async () => {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

export function saidIn(
  updates: readonly SessionUpdate[],
  kind: "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk",
): string {
  return updates
    .map((update) => (update.sessionUpdate === kind && update.content.type === "text" ? update.content.text : ""))
    .join("");
}

/** The updates of one kind. */
export function updatesOf<Kind extends SessionUpdate["sessionUpdate"]>(
  updates: readonly SessionUpdate[],
  kind: Kind,
): readonly Extract<SessionUpdate, { sessionUpdate: Kind }>[] {
  return updates.filter(
    (update): update is Extract<SessionUpdate, { sessionUpdate: Kind }> => update.sessionUpdate === kind,
  );
}
