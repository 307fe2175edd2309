import { setImmediate } from "node:timers/promises";
import { defineTool, type Tool, type ToolCall, type ToolResult } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { reportingChanges } from "../bash/workspace-diff.ts";
import { asResult, checkAborted, failure, fault } from "../files/results.ts";
import { callFailure } from "./call-failure.ts";
import { readAnswer } from "./content.ts";
import type { ListedTool } from "./definition.ts";
import { differences, type OfferedTool, offeredOf } from "./offered.ts";
import { type Connection, createLink, type Link, type LinkOptions, type McpStart } from "./transport/connection.ts";
import { raceAbort, timed } from "./transport/timed.ts";

/** A list of tools older than this is requested again before a call, since not every server announces changes. */
const LIST_AGE_MS = 60_000;

type Input = Readonly<Record<string, unknown>>;
type Call = (tool: OfferedTool, input: Input, running: Pick<ToolCall, "signal" | "secrets">) => Promise<ToolResult>;

/** A configured server. It starts on demand and restarts when it ends; its tools stay those of the first start. */
export interface McpServer {
  /** Restarts it before its next call if it has more than it may have now. */
  confine(): Promise<void>;
  /** Rejects with Error if it cannot start; the next caller tries again. */
  tools(start: McpStart): Promise<readonly Tool[]>;
  close(): Promise<void>;
}

export function createServer(options: LinkOptions): McpServer {
  let link: Link | undefined;
  let offered: Promise<readonly Tool[]> | undefined;
  return {
    confine: async () => await link?.confine(),
    tools: (start) => {
      if (offered !== undefined) return offered;
      const reached = createLink(options, start);
      link = reached;
      const offering = offer(options, reached, start.secrets).catch(async (thrown: unknown) => {
        await reached.close();
        offered = undefined;
        throw thrown;
      });
      offered = offering;
      return offering;
    },
    close: async () => {
      await link?.close();
      await offered?.catch(() => undefined); // reported to the run that started it
    },
  };
}

/** Lists before a call, of a server that announces a change during each. */
const MOST_LISTS = 5;

/** The tools of a server's first list. They are called only as long as later lists have them unchanged. */
async function offer(options: LinkOptions, link: Link, known: McpStart["secrets"]): Promise<readonly Tool[]> {
  const { settings, clock, onFault } = options;
  const { name: server, startTimeoutMs, callTimeoutMs } = settings;
  let listedAt = 0;
  const list = async ({ transport, list }: Connection): Promise<readonly ListedTool[]> => {
    const asked = clock.now();
    const listed = await timed(clock, startTimeoutMs, [link.closed], list);
    if (!listed.ok && listed.late) throw new Error(`it did not list its tools within ${startTimeoutMs} ms`);
    if (!listed.ok) throw new Error(transport.ended?.message ?? messageOf(listed.thrown), { cause: listed.thrown });
    listedAt = asked;
    return listed.value;
  };

  const first = await link.use(async () => await list(await link.reach()));
  const { tools, faults } = offeredOf(settings, first, known);
  for (const message of faults) onFault(message);

  /** How tools changed, by the server's names. A changed tool stays changed. */
  const changed = new Map<string, string>();
  const compare = async (connection: Connection): Promise<void> => {
    const { transport } = connection;
    for (let lists = 0; lists < MOST_LISTS; lists += 1) {
      const { announced } = transport;
      const listed = await list(connection);
      // A change that was announced meanwhile may be about a part of the list that was read before.
      if (transport.announced !== announced) continue;
      for (const [own, how] of differences(tools, listed)) {
        if (changed.has(own)) continue;
        changed.set(own, how);
        onFault(`its tool ${JSON.stringify(own)} ${how} during this session and is no longer called`);
      }
      return;
    }
    throw new Error(`it announced a change of its tools during each of ${MOST_LISTS} lists`);
  };
  let comparing: Promise<void> | undefined;
  /** Compares the tools if the list may have changed. Concurrent callers await the same comparison, so none skips it. */
  const look = async (connection: Connection): Promise<void> => {
    const age = clock.now() - listedAt;
    // A clock that was set back does not show how old the list is.
    const isOld = connection.transport.isStale || age < 0 || age >= LIST_AGE_MS;
    if (comparing === undefined && !isOld) return;
    comparing ??= compare(connection).finally(() => {
      comparing = undefined;
    });
    await comparing;
  };
  /** Awaits what must happen before a call, unless the caller gives up first. */
  const before = async <T>(work: Promise<T>, signal: AbortSignal): Promise<T> => {
    try {
      return await raceAbort(work, signal);
    } catch (thrown) {
      checkAborted(signal);
      const message = `The MCP server ${server} cannot be used: ${messageOf(thrown)}. The call was not made.`;
      throw fault("server_unavailable", message);
    }
  };

  /** A tool must be what the model and people saw when they chose and approved the call. */
  const refuseChanged = async (connection: Connection, tool: OfferedTool, signal: AbortSignal): Promise<void> => {
    await arrivedIsRead();
    await before(look(connection), signal);
    const how = changed.get(tool.own);
    if (how === undefined) return;
    const message = `The tool ${tool.name} ${how} during this session. The call was not made, and the tool cannot be called in this session.`;
    throw fault("tool_changed", message);
  };

  const call: Call = (tool, input, running) => link.use(() => callNow(tool, input, running));
  const callNow: Call = async (tool, input, { signal, secrets }) => {
    checkAborted(signal);
    const connection = await before(link.reach(), signal);
    await refuseChanged(connection, tool, signal);
    const { transport } = connection;
    const { heard } = transport;
    const signals = [link.closed, signal];
    const ask = () => timed(clock, callTimeoutMs, signals, (stop) => connection.call(tool.own, input, stop));
    // Before a call is watched, the workspace is searched, which takes a while.
    const askUnchanged = async (): ReturnType<typeof ask> => {
      await refuseChanged(connection, tool, signal);
      return await ask();
    };
    const { end: answer, movedAway } =
      tool.effect === "read" ? { end: await ask(), movedAway: [] } : await link.watched(askUnchanged);
    if (movedAway.length > 0 && !signal.aborted) {
      const message =
        "While this call ran, files were created that later commands or runs on this machine would obey. They were moved out of the workspace; other changes remain.";
      return failure("moved_away", message, { moved: movedAway.map(({ path, to }) => `${path} -> ${to}`) });
    }
    if (answer.ok) {
      link.works();
      return readAnswer(tool.name, answer.value, secrets);
    }
    if (signal.aborted) {
      const message =
        "The call was cancelled, and the server was notified. It is unknown whether the call took effect.";
      return failure("cancelled", message);
    }
    if (answer.late) {
      // A server without any message in all that time is restarted for the next call.
      if (transport.heard === heard)
        transport.end({ code: "hung", message: "it sent nothing for as long as a call may take" });
      const message = `The MCP server ${server} did not answer within ${callTimeoutMs} ms, so the call was cancelled. It is unknown whether it took effect.`;
      return failure("timeout", message);
    }
    return callFailure(server, tool, { end: transport.ended, thrown: answer.thrown, secrets });
  };
  return tools.map((tool) => toolOf(options, tool, call));
}

/** An announcement that arrived while the process was busy, such as with a search of the workspace, is read first. */
async function arrivedIsRead(): Promise<void> {
  await setImmediate();
  // A pipe hands what it has read to its reader in the next turn.
  await setImmediate();
}

function toolOf({ settings: { config }, clock }: LinkOptions, tool: OfferedTool, call: Call): Tool {
  const made = defineTool<Input>({
    name: tool.name,
    description: tool.description,
    input: tool.checked,
    effect: tool.effect,
    subjects: () => ("url" in config ? [{ kind: "host", host: new URL(config.url).host }] : []),
    // No `recover`: it is unknown what the server did with an unanswered call.
    execute: (input, running: ToolCall) => {
      const execute = (): Promise<ToolResult> => asResult(() => call(tool, input, running));
      // Nothing says what a server changes.
      return tool.effect === "read" ? execute() : asResult(() => reportingChanges(running, clock, execute));
    },
  });
  return Object.freeze({ ...made, inputSchema: tool.shown, schemaDigest: tool.pin });
}
