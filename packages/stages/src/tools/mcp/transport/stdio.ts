import type { ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import type { JSONRPCMessage, MCPTransportSendOptions } from "@ai-sdk/mcp";
import { type Clock, systemClock } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { maskedTail } from "../../../secrets/cut-text.ts";
import {
  CALL_VARIABLE,
  endGroup,
  endSurvivors,
  killSurvivors,
  RUN_VARIABLE,
  signalGroup,
  spawnLeader,
  within,
} from "../../bash/process.ts";
import { systemCode } from "../../files/results.ts";
import { createLines } from "./bytes.ts";
import type { ServerProcess } from "./server-wall.ts";
import { Transport, type TransportOptions } from "./transport.ts";

/** For a server to end after its input was closed. */
const GOODBYE_MS = 300;
/** For the last output of an ended server, whose pipe another process may keep open. */
const LAST_OUTPUT_MS = 500;
/** Bytes that may wait in the pipe to a server. */
const MOST_BACKLOG = 32 * 1024 * 1024;
const KEPT_STDERR = 2_000;

/** A server's process; its environment is the session's child environment with the server's own variables. */
export interface StdioOptions extends TransportOptions, ServerProcess {
  /** The run that needed the server first; in its processes the command refuses to answer, cancel and resume. */
  readonly runId: string;
}

/**
 * A server as a child process. Replaces the SDK's transport, which passes on variables of this process, prints errors to the
 * terminal, does not limit lines, and stops only the process itself.
 */
export class StdioTransport extends Transport {
  readonly #options: StdioOptions;
  /** Real time: an injected clock that stands still must not keep processes alive. */
  readonly #clock: Clock = systemClock;
  readonly #mark = `mcp-${randomUUID()}`;
  #child: ChildProcess | undefined;

  constructor(options: StdioOptions) {
    super(options);
    this.#options = options;
  }

  async start(): Promise<void> {
    const child = await this.#spawn();
    this.#child = child;
    const lines = createLines(this.#options.maxMessageBytes, (line) => {
      if (line.trim() !== "") this.take(line);
    });
    child.stdout?.on("data", (chunk: Buffer) => {
      if (this.ended === undefined && !lines(chunk)) this.tooLarge();
    });
    const decoder = new TextDecoder();
    child.stderr?.on("data", (chunk: Buffer) => {
      const all = this.stderr + decoder.decode(chunk, { stream: true });
      this.stderr = all.length <= KEPT_STDERR ? all : maskedTail(all, KEPT_STDERR, this.#options.secrets);
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
      if (this.ended === undefined) cancel = this.#clock.after(LAST_OUTPUT_MS, over);
    };
    child.stdout?.once("close", soon);
    child.once("exit", (code, signal) => {
      message = signal === null ? `it ended with exit code ${code}` : `it was ended by ${signal}`;
      soon();
    });
    child.once("close", over);
  }

  async send(message: JSONRPCMessage, options?: MCPTransportSendOptions): Promise<void> {
    if (this.ended !== undefined || this.#child === undefined) throw new Error("the server has ended");
    this.asked(message, options?.signal);
    this.reply(message);
  }

  protected cancel(message: JSONRPCMessage): void {
    this.reply(message);
  }

  override kill(): void {
    const child = this.#child;
    // The number of an ended process may be reused.
    if (child?.pid !== undefined && child.exitCode === null && child.signalCode === null)
      signalGroup(child.pid, "SIGKILL");
    killSurvivors(this.#mark);
  }

  protected reply(message: JSONRPCMessage): void {
    const stdin = this.#child?.stdin;
    if (this.ended !== undefined || stdin === null || stdin === undefined) return;
    if (stdin.writableLength > MOST_BACKLOG) {
      this.end({ code: "stalled", message: "it does not read its input" });
      return;
    }
    stdin.write(`${JSON.stringify(message)}\n`);
  }

  protected async leave(): Promise<void> {
    const child = this.#child;
    if (child?.pid === undefined) return;
    const { pid } = child;
    const exited = child.exitCode !== null || child.signalCode !== null;
    const exit = exited ? Promise.resolve() : new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.stdin?.end();
    // A server that may still respond gets time to end by itself.
    if (this.ended?.code === "closed" || this.ended?.code === "hung") await within(GOODBYE_MS, exit, this.#clock);
    // Processes that left the group still carry the mark.
    await Promise.all([
      signalGroup(pid, 0) ? endGroup(pid, this.#clock) : undefined,
      endSurvivors(this.#mark, this.#clock),
    ]);
    await within(LAST_OUTPUT_MS, exit, this.#clock);
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
  }

  async #spawn(): Promise<ChildProcess> {
    const { file, args, cwd, env, runId } = this.#options;
    const marked = { ...env, PWD: cwd, [RUN_VARIABLE]: runId, [CALL_VARIABLE]: this.#mark };
    try {
      return await spawnLeader(file, args, { cwd, env: marked, stdio: ["pipe", "pipe", "pipe"], covers: true });
    } catch (thrown) {
      throw new Error(`${file} could not be started in ${cwd}: ${systemCode(thrown) ?? messageOf(thrown)}`);
    }
  }
}
