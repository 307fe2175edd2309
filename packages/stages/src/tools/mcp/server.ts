import { defineTool, type Tool, type ToolCall, type ToolResult } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { asResult, checkAborted, failure, fault } from "../files/results.ts";
import { callFailure } from "./call-failure.ts";
import type { McpSettings } from "./config.ts";
import { readAnswer } from "./content.ts";
import type { ListedTool } from "./definition.ts";
import { createPins, type OfferedTool, offeredOf, type Pins } from "./offered.ts";
import type { Connection } from "./transport/connection.ts";
import { createLink, type Link, type LinkOptions, type McpStart } from "./transport/link.ts";
import { raceAbort, timed } from "./transport/timed.ts";

/** A list of tools older than this is requested again before a call, since not every server announces changes. */
const LIST_AGE_MS = 60_000;

type Input = Readonly<Record<string, unknown>>;

/** A configured server. It starts on demand and restarts when it ends; its tools stay those of the first start. */
export interface McpServer {
  readonly settings: McpSettings;
  /** Rejects with Error if it cannot start; the next caller tries again. */
  tools(start: McpStart): Promise<readonly Tool[]>;
  close(): Promise<void>;
}

export function createServer(options: LinkOptions): McpServer {
  const { settings } = options;
  let link: Link | undefined;
  let offered: Promise<readonly Tool[]> | undefined;

  const offer = async (reached: Link): Promise<readonly Tool[]> => {
    try {
      const lister = createLister(options, reached);
      const listed = await lister.list(await reached.reach());
      const { tools, faults } = offeredOf(settings, listed);
      for (const message of faults) options.onFault(message);
      const pins = createPins(tools, (own, how) =>
        options.onFault(`its tool ${JSON.stringify(own)} ${how} during this session and is no longer called`),
      );
      const look = createLook(lister, pins);
      return tools.map((tool) => toolOf(settings, tool, createCaller({ ...options, link: reached, look, pins, tool })));
    } catch (thrown) {
      await reached.reset();
      throw thrown;
    }
  };

  return {
    settings,
    tools: (start) => {
      if (offered !== undefined) return offered;
      const reached = createLink(options, start);
      link = reached;
      const offering = offer(reached);
      offered = offering;
      offering.catch(() => {
        offered = undefined;
      });
      return offering;
    },
    close: async () => {
      await link?.close();
      await offered?.catch(() => undefined); // reported to the run that started it
    },
  };
}

/** Requests a server's tools, within the time of a start. */
interface Lister {
  /** Rejects with Error. */
  list(connection: Connection): Promise<readonly ListedTool[]>;
  /** Whether the list may have changed. */
  isOld(connection: Connection): boolean;
}

function createLister({ settings, clock }: LinkOptions, { closed }: Link): Lister {
  let listedAt = 0;
  return {
    list: async (connection) => {
      const { startTimeoutMs } = settings;
      const listed = await timed(clock, startTimeoutMs, [closed], (signal) => connection.list(signal));
      if (listed.ok) {
        listedAt = clock.now();
        return listed.value;
      }
      if (listed.late) throw new Error(`it did not list its tools within ${startTimeoutMs} ms`);
      throw new Error(connection.end?.message ?? messageOf(listed.thrown), { cause: listed.thrown });
    },
    isOld: (connection) => connection.isStale() || clock.now() - listedAt >= LIST_AGE_MS,
  };
}

/** Compares the tools if the list may have changed. Concurrent callers await the same comparison, so none skips it. */
type Look = (connection: Connection) => Promise<void>;

function createLook(lister: Lister, pins: Pins): Look {
  let looking: Promise<void> | undefined;
  const look: Look = async (connection) => pins.compare(await lister.list(connection));
  return async (connection) => {
    if (looking === undefined && !lister.isOld(connection)) return;
    looking ??= look(connection).finally(() => {
      looking = undefined;
    });
    await looking;
  };
}

interface CallerParts extends LinkOptions {
  readonly link: Link;
  readonly look: Look;
  readonly pins: Pins;
  readonly tool: OfferedTool;
}

function createCaller(parts: CallerParts): (input: Input, call: ToolCall) => Promise<ToolResult> {
  const { settings, clock, link, look, pins, tool } = parts;
  const { name: server, callTimeoutMs } = settings;

  /** Awaits what must happen before a call, unless the caller gives up first. */
  const before = async <T>(work: Promise<T>, signal: AbortSignal): Promise<T> => {
    try {
      return await raceAbort(work, signal, () => new Error("the call was cancelled"));
    } catch (thrown) {
      checkAborted(signal);
      const message = `The MCP server ${server} cannot be used: ${messageOf(thrown)}. The call was not made.`;
      throw fault("server_unavailable", message);
    }
  };
  /** A tool must be what the model and people saw when they chose and approved the call. */
  const refuseChanged = (): void => {
    const how = pins.difference(tool.own);
    if (how === undefined) return;
    const message = `The tool ${tool.name} ${how} during this session. The call was not made, and the tool cannot be called in this session.`;
    throw fault("tool_changed", message);
  };

  return async (input, { signal }) => {
    checkAborted(signal);
    const connection = await before(link.reach(), signal);
    await before(look(connection), signal);
    refuseChanged();
    const { heard } = connection;
    const signals = [link.closed, signal];
    const answer = await timed(clock, callTimeoutMs, signals, (signal) => connection.call(tool.own, input, signal));
    if (answer.ok) {
      link.works();
      return readAnswer(tool.name, answer.value);
    }
    if (signal.aborted) {
      const message =
        "The call was cancelled, and the server was notified. It is unknown whether the call took effect.";
      return failure("cancelled", message);
    }
    if (answer.late) {
      // A server without any message in all that time is restarted for the next call.
      if (connection.heard === heard)
        connection.drop({ code: "hung", message: "it sent nothing for as long as a call may take" });
      const message = `The MCP server ${server} did not answer within ${callTimeoutMs} ms, so the call was cancelled. It is unknown whether it took effect.`;
      return failure("timeout", message);
    }
    return callFailure({ server, tool, end: connection.end, thrown: answer.thrown });
  };
}

function toolOf(
  { config }: McpSettings,
  tool: OfferedTool,
  call: (input: Input, call: ToolCall) => Promise<ToolResult>,
): Tool {
  const made = defineTool<Input>({
    name: tool.name,
    description: tool.description,
    input: tool.checked,
    effect: tool.effect,
    subjects: () => ("url" in config ? [{ kind: "host", host: new URL(config.url).host }] : []),
    // No `recover`: it is unknown what the server did with an unanswered call.
    execute: (input, given) => asResult(() => call(input, given)),
  });
  return Object.freeze({ ...made, inputSchema: tool.shown, schemaDigest: tool.pin });
}
