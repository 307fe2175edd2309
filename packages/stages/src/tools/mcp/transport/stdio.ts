import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import type { JSONRPCMessage, MCPTransport, MCPTransportSendOptions } from "@ai-sdk/mcp";
import { type Clock, systemClock } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import {
  CALL_VARIABLE,
  endGroup,
  endSurvivors,
  groupLives,
  killSurvivors,
  RUN_VARIABLE,
  signalGroup,
  within,
} from "../../bash/process.ts";
import { coveredDescriptors } from "../../files/descriptors.ts";
import { systemCode } from "../../files/results.ts";
import { createLines } from "./bytes.ts";
import { createInbox, type End, type Inbox, type TransportOptions } from "./inbox.ts";

/** For a server to end after its input was closed. */
const GOODBYE_MS = 300;
/** For the last output of an ended server, whose pipe another process may keep open. */
const LAST_OUTPUT_MS = 500;
/** Bytes that may wait in the pipe to a server. */
const MOST_BACKLOG = 32 * 1024 * 1024;
const KEPT_STDERR = 2_000;

export interface StdioOptions extends TransportOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** The child environment of the session, and the server's own variables. */
  readonly env: Readonly<Record<string, string>>;
  /** The run that needed the server first; in its processes the command refuses to answer, cancel and resume. */
  readonly runId: string;
}

/**
 * A server as a child process. Replaces the SDK's transport, which passes on variables of this process, prints errors to the
 * terminal, does not limit lines, and stops only the process itself.
 */
export class StdioTransport implements MCPTransport {
  readonly supportsProtocolVersionDiscovery = true;
  // Set by the client.
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  readonly #options: StdioOptions;
  readonly #inbox: Inbox;
  /** Real time: an injected clock that stands still must not keep processes alive. */
  readonly #clock: Clock = systemClock;
  readonly #mark = `mcp-${randomUUID()}`;
  #child: ChildProcess | undefined;
  #stderr = "";
  #end: End | undefined;
  #gone: Promise<void> | undefined;

  constructor(options: StdioOptions) {
    this.#options = options;
    this.#inbox = createInbox({
      validate: options.validate,
      changed: options.changed,
      notice: options.notice,
      deliver: (message) => this.onmessage?.(message),
      reply: (message) => this.#write(message),
      cancel: (requestId) =>
        this.#write({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId, reason: "stopped" } }),
      end: (end) => this.end(end),
    });
  }

  get heard(): number {
    return this.#inbox.heard;
  }
  /** The end of its error output. */
  get stderr(): string {
    return this.#stderr.trim();
  }

  async start(): Promise<void> {
    const child = await this.#spawn();
    this.#child = child;
    const lines = createLines(this.#options.maxMessageBytes, (line) => {
      if (line.trim() !== "") this.#inbox.take(line);
    });
    child.stdout?.on("data", (chunk: Buffer) => {
      if (this.#end !== undefined || lines.push(chunk)) return;
      const message = `it sent a message of more than ${this.#options.maxMessageBytes} bytes`;
      this.end({ code: "too_large", message });
    });
    const decoder = new TextDecoder();
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#stderr = (this.#stderr + decoder.decode(chunk, { stream: true })).slice(-KEPT_STDERR);
    });
    // The end of the process reports more than a broken pipe.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.on("error", () => undefined);
    this.#watch(child);
  }

  /** Ends the connection once the process has exited and its output was read, which may happen in either order. */
  #watch(child: ChildProcess): void {
    let message = "it closed its output";
    let cancel = (): void => undefined;
    const over = (): void => {
      cancel();
      this.end({ code: "ended", message });
    };
    // Another process may keep the pipe open, and a process that closed its output may continue to run.
    const soon = (): void => {
      cancel();
      if (this.#end === undefined) cancel = this.#clock.after(LAST_OUTPUT_MS, over);
    };
    child.stdout?.once("close", soon);
    child.once("exit", (code, signal) => {
      message = signal === null ? `it ended with exit code ${code}` : `it was ended by ${signal}`;
      soon();
    });
    child.once("close", over);
  }

  async send(message: JSONRPCMessage, options?: MCPTransportSendOptions): Promise<void> {
    if (this.#end !== undefined || this.#child === undefined) throw new Error("the server has ended");
    this.#inbox.asked(message, options?.signal);
    this.#write(message);
  }

  async close(): Promise<void> {
    this.end({ code: "closed", message: "it was ended" });
    await this.#gone;
  }

  /** Closes the connection and stops the process with everything it started. The first reason is kept. */
  end(end: End): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#gone = this.#leave();
    this.#options.ended(end);
    this.#inbox.close();
    this.onclose?.();
  }

  /** Kills the process at once, for when this process exits. */
  kill(): void {
    const child = this.#child;
    // The number of an ended process may be reused.
    if (child?.pid !== undefined && child.exitCode === null && child.signalCode === null)
      signalGroup(child.pid, "SIGKILL");
    killSurvivors(this.#mark);
  }

  #write(message: JSONRPCMessage): void {
    const stdin = this.#child?.stdin;
    if (this.#end !== undefined || stdin === null || stdin === undefined) return;
    if (stdin.writableLength > MOST_BACKLOG) {
      this.end({ code: "stalled", message: "it does not read its input" });
      return;
    }
    stdin.write(`${JSON.stringify(message)}\n`);
  }

  async #leave(): Promise<void> {
    const child = this.#child;
    if (child?.pid === undefined) return;
    const { pid } = child;
    const exited = child.exitCode !== null || child.signalCode !== null;
    const exit = exited ? Promise.resolve() : new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.stdin?.end();
    // A server that may still respond gets time to end by itself.
    if (this.#end?.code === "closed" || this.#end?.code === "hung") await within(GOODBYE_MS, exit, this.#clock);
    // Processes that left the group still carry the mark.
    await Promise.all([
      groupLives(pid) ? endGroup(pid, this.#clock) : undefined,
      endSurvivors(this.#mark, this.#clock),
    ]);
    await within(LAST_OUTPUT_MS, exit, this.#clock);
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
  }

  #spawn(): Promise<ChildProcess> {
    const { command, args, cwd, env, runId } = this.#options;
    return new Promise((resolve, reject) => {
      const failed = (thrown: unknown): void =>
        reject(new Error(`${command} could not be started in ${cwd}: ${systemCode(thrown) ?? messageOf(thrown)}`));
      const covered = coveredDescriptors(3);
      try {
        const child = spawn(command, args, {
          cwd,
          env: { ...env, [RUN_VARIABLE]: runId, [CALL_VARIABLE]: this.#mark },
          detached: process.platform !== "win32",
          stdio: ["pipe", "pipe", "pipe", ...covered.stdio],
          windowsHide: true,
        });
        child.on("error", failed);
        child.once("spawn", () => resolve(child));
      } catch (thrown) {
        failed(thrown);
      } finally {
        covered.close();
      }
    });
  }
}
