import { defineTool, messageOf, type Tool, type ToolCall, type ToolResult } from "@sluice/core";
import { asResult, checkAborted, failure, fault } from "../files/results.ts";
import { callFailure } from "./call-failure.ts";
import type { McpSettings } from "./config.ts";
import { readAnswer } from "./content.ts";
import type { ListedTool } from "./definition.ts";
import { createPins, type OfferedTool, offeredOf, type Pins } from "./offered.ts";
import type { Connection } from "./transport/connection.ts";
import { createLink, type Link, type LinkOptions } from "./transport/link.ts";
import type { McpStart } from "./transport/start.ts";
import { orAborted, timed } from "./transport/timed.ts";

/** A list older than this is looked at again before a call: not every server says when it changes. */
const LIST_AGE_MS = 60_000;

type Input = Readonly<Record<string, unknown>>;

/** One configured server: started when it is needed, and again when it ended; its tools stay those of the first start. */
export interface McpServer {
  readonly settings: McpSettings;
  /** Rejects with Error when it cannot be started; who asks the next time tries again. */
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
        options.onFault(`its tool ${JSON.stringify(own)} ${how} since this session began: it is not called any more`),
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
      await offered?.catch(() => undefined); // the run that asked for it was told
    },
  };
}

/** Asks a server for its tools, within the time that a start may take. */
interface Lister {
  /** Rejects with Error. */
  list(connection: Connection): Promise<readonly ListedTool[]>;
  /** Whether the list may be another by now. */
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

/** Compares the list where it may be another by now. All who ask meanwhile wait for the same look: no call slips past it. */
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

  /** What has to be done before a call can be made; the caller may give up before it is. */
  const before = async <T>(work: Promise<T>, signal: AbortSignal): Promise<T> => {
    try {
      return await orAborted(work, signal, () => new Error("the call was stopped"));
    } catch (thrown) {
      checkAborted(signal);
      const message = `The MCP server ${server} cannot be used: ${messageOf(thrown)}. The call was not made.`;
      throw fault("server_unavailable", message);
    }
  };
  /** What the model and people were told about the tool has to hold when it is called. */
  const refuseChanged = (): void => {
    const how = pins.difference(tool.own);
    if (how === undefined) return;
    const message = `The tool ${tool.name} ${how} since this session began. It was not called, and cannot be in this session.`;
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
      const message = "The call was stopped and the server was told. Whether it took effect is not known.";
      return failure("cancelled", message);
    }
    if (answer.late) {
      // No sign of life in all that time: the next call gets a new start instead of the same silence.
      if (connection.heard === heard)
        connection.drop({ code: "hung", message: "it said nothing for the time a call may take" });
      const message = `The MCP server ${server} did not answer within ${callTimeoutMs} ms and was told to stop. Whether the call took effect is not known.`;
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
    // Without `recover`: nobody can tell what a server did with a call whose answer never came.
    execute: (input, given) => asResult(() => call(input, given)),
  });
  return Object.freeze({ ...made, inputSchema: tool.shown, schemaDigest: tool.pin });
}
