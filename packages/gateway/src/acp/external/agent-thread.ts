// One attempt of a state that an external agent works on: its calls are the replies of a model, and the results go back to it.
import type { LanguageModelV4FunctionTool, LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { type Clock, isJson, isJsonObject, type Json } from "@sluice/core";
import { digestOf, messageOf } from "@sluice/core/runtime";
import { newServerName } from "../../hosts/install/own-server.ts";
import { startGatewayServer } from "../../mcp/http-server.ts";
import { newGatewayToken } from "../../mcp/token.ts";
import type { AgentReply } from "../../run/agent-model.ts";
import type { AgentCall, CallReply, GatewayRun, GatewayTool, PendingCall } from "../../run/gateway-run-types.ts";
import { gatewayPart, partsOf, replyOf, replyWith } from "../../run/words.ts";
import { type AgentProcess, type AgentSandbox, startAgent } from "./agent-process.ts";
import { firstPrompt, transcriptText, userText } from "./agent-words.ts";
import type { ExternalAgent } from "./external-agent.ts";

export interface ThreadOptions {
  readonly agent: ExternalAgent;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly sandbox: AgentSandbox;
  readonly version: string;
  readonly clock: Clock;
  readonly onFault: (message: string) => void;
}

export interface AgentThread {
  /** Gives the agent what the transcript has since the last turn, and waits for what it does next. Rejects if the agent fails. */
  next(
    prompt: LanguageModelV4Prompt,
    tools: readonly LanguageModelV4FunctionTool[],
    signal?: AbortSignal,
  ): Promise<AgentReply>;
  /** Ends the agent; calls that wait are answered. */
  close(): Promise<void>;
}

interface Call {
  readonly id: string;
  readonly tool: string;
  readonly input: Json;
  readonly key: string;
  /** The reply, once the transcript has it. */
  reply?: CallReply;
  /** Who waits for it. A call whose client gave up keeps its reply for the same call made again. */
  waiting?: (reply: CallReply) => void;
}

/** How long a call waits before the agent is asked to make it again. Clients give up after a minute. */
const PATIENCE_MS = 45_000;
/** Characters of an agent's words that a turn keeps. */
const MOST_TEXT = 200_000;

export function createAgentThread(options: ThreadOptions): AgentThread {
  const { agent, clock, onFault } = options;
  const serverName = newServerName();
  let process: AgentProcess | undefined;
  let server: { close(): Promise<void> } | undefined;
  let starting: Promise<AgentProcess> | undefined;
  let offered: readonly GatewayTool[] = [];
  /** How many messages of the transcript the agent knows. */
  let read = 0;
  let isPrompting = false;
  let isClosed = false;
  const queue: Call[] = [];
  const given = new Map<string, Call>();
  let notices: string[] = [];
  let ended: AgentReply["finish"] | undefined;
  let failure: Error | undefined;
  let words = { text: "", reasoning: "" };
  let wake: (() => void) | undefined;
  let calls = 0;

  const changed = (): void => wake?.();
  const fail = (thrown: unknown): void => {
    failure ??= thrown instanceof Error ? thrown : new Error(messageOf(thrown));
    changed();
  };

  const settle = (call: Call, reply: CallReply): void => {
    call.reply = reply;
    if (call.waiting === undefined) return;
    given.delete(call.id);
    call.waiting(reply);
  };

  const call: GatewayRun["call"] = ({ tool, input, signal, patienceMs = PATIENCE_MS }: AgentCall): PendingCall => {
    const answer = Promise.withResolvers<CallReply>();
    const pending: PendingCall = {
      answer: answer.promise,
      verdict: answer.promise.then(({ text }) => ({ kind: "deny", text })),
      report: () => undefined,
    };
    if (isClosed) {
      answer.resolve(OVER);
      return pending;
    }
    const key = JSON.stringify([tool, digestOf(input)]);
    const same = [...given.values(), ...queue].find((one) => one.key === key && one.waiting === undefined);
    calls += 1;
    const made: Call = same ?? { id: `agent-${calls}`, tool, input, key };
    const leave = (): void => {
      stop();
      delete made.waiting;
    };
    const stop = clock.after(patienceMs, () => {
      leave();
      answer.resolve(replyOf(false, STILL_OPEN));
    });
    made.waiting = (reply) => {
      stop();
      signal?.removeEventListener("abort", leave);
      answer.resolve(reply);
    };
    signal?.addEventListener("abort", leave, { once: true });
    if (made.reply !== undefined) settle(made, made.reply);
    else if (same === undefined) queue.push(made);
    // Calls that arrive together are one turn.
    setImmediate(changed);
    return pending;
  };

  /** The run as our MCP server sees it: the tools of the stage, and their calls. */
  const run: GatewayRun = {
    runId: undefined,
    tools: async () => offered,
    start: async () => undefined,
    call,
    now: () => ({ status: "working", tools: offered.map(({ name }) => name), text: "" }),
    onPhase: () => () => undefined,
    ended: new Promise(() => undefined),
    answer: async () => "unknown",
    close: async () => undefined,
  };

  const start = async (): Promise<AgentProcess> => {
    const token = newGatewayToken();
    const opened = await startGatewayServer({
      run,
      token,
      version: options.version,
      clock,
      elicitation: "off",
      connections: "many",
      instructions: INSTRUCTIONS,
      onError: (error) => onFault(error.message),
    });
    server = opened;
    process = await startAgent({
      agent,
      cwd: options.cwd,
      env: options.env,
      server: { name: serverName, url: `${opened.url}/mcp`, token },
      tools: offered.map(({ name }) => name),
      sandbox: options.sandbox,
      version: options.version,
      clock,
      onText: (kind, text) => {
        if (words[kind].length < MOST_TEXT) words = { ...words, [kind]: words[kind] + text };
      },
    });
    process.failed.catch(fail);
    if (isClosed) await process.close();
    return process;
  };

  const prompt = (text: string): void => {
    isPrompting = true;
    starting ??= start();
    starting
      .then((started) => started.prompt(text))
      .then((reason) => {
        isPrompting = false;
        ended = FINISHES.get(reason) ?? "stop";
        changed();
      })
      .catch(fail);
  };

  /** Gives the agent the results and the messages that are new. */
  const give = (messages: LanguageModelV4Prompt): void => {
    const news = messages.slice(read);
    const isFirst = read === 0;
    read = messages.length;
    if (isFirst) {
      prompt(firstPrompt(serverName, messages, transcriptText(messages)));
      return;
    }
    notices.push(...news.flatMap(userText));
    for (const { id, reply } of news.flatMap(resultsIn)) {
      const known = given.get(id);
      if (known !== undefined)
        settle(known, replyWith(reply, [...partsOf(reply), ...notices.splice(0).map(gatewayPart)]));
    }
    // Otherwise it goes with its next prompt.
    if (!isPrompting && failure === undefined) prompt(notices.splice(0).join("\n\n") || CONTINUE);
  };

  const take = (): AgentReply | undefined => {
    const said = words;
    const made = queue.splice(0);
    if (made.length > 0) {
      words = { text: "", reasoning: "" };
      for (const one of made) given.set(one.id, one);
      return { ...said, calls: made.map(({ id, tool, input }) => ({ id, tool, input })), finish: "tool-calls" };
    }
    if (failure !== undefined) throw failure;
    if (ended === undefined) return undefined;
    words = { text: "", reasoning: "" };
    const finish = ended;
    ended = undefined;
    return { ...said, calls: [], finish };
  };

  return {
    async next(messages, tools, signal) {
      // The list is stable: the last turn offers fewer tools, and refuses the others when they are called.
      if (offered.length === 0) offered = tools.map(gatewayTool);
      give(messages);
      for (;;) {
        signal?.throwIfAborted();
        const reply = take();
        if (reply !== undefined) return reply;
        const woken = Promise.withResolvers<void>();
        wake = () => woken.resolve();
        signal?.addEventListener("abort", wake, { once: true });
        await woken.promise;
        signal?.removeEventListener("abort", wake);
      }
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      for (const one of [...given.values(), ...queue.splice(0)]) settle(one, OVER);
      notices = [];
      const started = await (starting ?? Promise.resolve(undefined)).catch(() => undefined); // its prompt has reported it
      await started?.close();
      await server?.close();
    },
  };
}

const OVER = replyOf(true, "The result is accepted or the stage has ended. Stop here: make no more calls.");
const INSTRUCTIONS =
  "These are the tools of the stage that you work on, and the only ones. A call that is refused says why. The stage ends when you call the tool that ends it.";
const STILL_OPEN = {
  code: "still_open",
  message: "This call still runs, or waits for a person. Make exactly the same call again to take its result.",
};
const CONTINUE = "Continue with the work of this stage.";

const FINISHES: ReadonlyMap<string, AgentReply["finish"]> = new Map([
  ["max_tokens", "length"],
  ["refusal", "content-filter"],
]);

function gatewayTool({ name, description = "", inputSchema }: LanguageModelV4FunctionTool): GatewayTool {
  const schema: unknown = inputSchema;
  const own = isJson(schema) && isJsonObject(schema) ? schema : {};
  return { name, description, inputSchema: own, effect: "write" };
}

function resultsIn(message: LanguageModelV4Message): readonly { readonly id: string; readonly reply: CallReply }[] {
  if (message.role !== "tool") return [];
  return message.content.flatMap((part) => {
    if (part.type !== "tool-result") return [];
    const { output } = part;
    const value = "value" in output && isJson(output.value) ? output.value : null;
    return [
      { id: part.toolCallId, reply: replyOf(output.type !== "error-json" && output.type !== "error-text", value) },
    ];
  });
}
