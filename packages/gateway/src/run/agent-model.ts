// The agent of another program plays the part of the model: a reply is what it calls next.
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import type { Json } from "@sluice/core";
import type { OutsideAgent, ResolvedModel, TurnPosition } from "@sluice/stages";

/** One turn of a state: the run waits for calls of the agent. */
export interface AgentTurn {
  readonly runId: string;
  readonly executionId: string;
  /** Of the execution. */
  readonly attempt: number;
  /** Of the attempt, from 1. */
  readonly turn: number;
  readonly state: string;
  readonly prompt: LanguageModelV4Prompt;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  readonly signal: AbortSignal | undefined;
}
export interface TurnCalls {
  readonly calls: readonly { readonly id: string; readonly tool: string; readonly input: Json }[];
}

/** What an agent did in one turn. */
export interface AgentReply extends TurnCalls {
  readonly text: string;
  readonly reasoning: string;
  readonly finish: "tool-calls" | "stop" | "length" | "content-filter";
}

/** A model whose replies are the calls that `next` returns. */
export function agentModel(agent: OutsideAgent, next: (turn: AgentTurn) => Promise<TurnCalls>): ResolvedModel {
  const { name, version } = agent;
  const modelId = version === undefined ? name : `${name}/${version}`;
  const at = ({ stage, runId = "", execution = NO_EXECUTION }: TurnPosition): LanguageModelV4 =>
    modelOfAgent(modelId, async ({ prompt, tools = [], abortSignal }) => {
      const offered = tools.filter((tool) => tool.type === "function");
      const { calls } = await next({ runId, ...execution, state: stage, prompt, tools: offered, signal: abortSignal });
      return { text: "", reasoning: "", calls, finish: "tool-calls" };
    });
  return { id: `agent:${modelId}`, secrets: [], agent, at };
}

/** Of a model that no state calls. */
const NO_EXECUTION = { executionId: "", attempt: 1, turn: 1 };

/** A model for the AI SDK whose replies come from an agent. */
export function modelOfAgent(
  modelId: string,
  next: (options: LanguageModelV4CallOptions) => Promise<AgentReply>,
): LanguageModelV4 {
  return {
    specificationVersion: "v4",
    provider: "agent",
    modelId,
    supportedUrls: {},
    doGenerate: async () => {
      throw new Error("what an agent does can only be streamed");
    },
    doStream: async (options) => ({ stream: ReadableStream.from(partsOf(await next(options))) }),
  };
}

function partsOf({ text, reasoning, calls, finish }: AgentReply): readonly LanguageModelV4StreamPart[] {
  return [
    { type: "stream-start", warnings: [] },
    ...blockOf("reasoning", reasoning),
    ...blockOf("text", text),
    ...calls.map(
      ({ id, tool, input }) =>
        ({ type: "tool-call", toolCallId: id, toolName: tool, input: JSON.stringify(input) }) as const,
    ),
    { type: "finish", finishReason: { unified: finish, raw: undefined }, usage: NO_USAGE },
  ];
}

function blockOf(kind: "text" | "reasoning", delta: string): readonly LanguageModelV4StreamPart[] {
  if (delta === "") return [];
  const id = kind;
  return [
    { type: `${kind}-start`, id },
    { type: `${kind}-delta`, id, delta },
    { type: `${kind}-end`, id },
  ];
}

/** What an agent spends is known to its own program only. */
const NO_USAGE = {
  inputTokens: { total: 0, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 0, text: undefined, reasoning: undefined },
};
