import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import type { JSONRPCMessage, MCPTransport, MCPTransportSendOptions } from "@ai-sdk/mcp";
import { type Clock, messageOf, systemClock } from "@sluice/core";
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
import { createInbox, type End, type Inbox, type InboxOptions } from "./inbox.ts";

/** Between closing its input, which is how a server is asked to end, and ending it. */
const GOODBYE_MS = 300;
/** For the last of its output after it ended; somebody else may hold the pipe. */
const LAST_OUTPUT_MS = 500;
/** What may wait in the pipe to a server that does not read. */
const MOST_BACKLOG = 32 * 1024 * 1024;
const KEPT_STDERR = 2_000;

export interface StdioOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** The child environment of the session and what the server's settings add. */
  readonly env: Readonly<Record<string, string>>;
  /** The run that needed the server first: under it the command refuses to answer, cancel and resume. */
  readonly runId: string;
  readonly maxMessageBytes: number;
  readonly validate: InboxOptions["validate"];
  readonly changed: () => void;
  readonly notice: (message: string) => void;
  readonly ended: (end: End) => void;
}

/**
 * A server as a child process. The SDK's own transport gives it variables of this process, hands its errors to the terminal,
 * has no limit on a line and ends only the process itself; so this one stands in its place.
 */
export class StdioTransport implements MCPTransport {
  readonly supportsProtocolVersionDiscovery = true;
  // Undefined until the client sets them, as the interface has it.
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  readonly #options: StdioOptions;
  readonly #inbox: Inbox;
  /** Processes outlive sessions' clocks: a test's clock that stands still must not keep them alive. */
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
  /** The last it said on its error output. */
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
    // A pipe that breaks says nothing that the process's own end does not.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.on("error", () => undefined);
    this.#watch(child);
  }

  /** Its end is known in two parts, which come in any order: how it ended, and that the last of its output was read. */
  #watch(child: ChildProcess): void {
    let message = "it closed its output";
    let cancel = (): void => undefined;
    const over = (): void => {
      cancel();
      this.end({ code: "ended", message });
    };
    // Somebody else may hold the pipe, and who closed it may go on.
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

  /** Ends the connection and the process with all it started. The first reason stays. */
  end(end: End): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#gone = this.#leave();
    this.#options.ended(end);
    this.#inbox.close();
    this.onclose?.();
  }

  /** For the moment this process ends: nothing can be waited for any more. */
  kill(): void {
    const child = this.#child;
    // The number of one that ended may be another's by now.
    if (child?.pid !== undefined && child.exitCode === null && child.signalCode === null)
      signalGroup(child.pid, "SIGKILL");
    killSurvivors(this.#mark);
  }

  #write(message: JSONRPCMessage): void {
    const stdin = this.#child?.stdin;
    if (this.#end !== undefined || stdin === null || stdin === undefined) return;
    if (stdin.writableLength > MOST_BACKLOG) {
      this.end({ code: "deaf", message: "it does not read what it is sent" });
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
    // One that may still do as it is told gets the time for it.
    if (this.#end?.code === "closed" || this.#end?.code === "hung") await within(GOODBYE_MS, exit, this.#clock);
    // Beside the group, whatever left it and still carries the mark.
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
