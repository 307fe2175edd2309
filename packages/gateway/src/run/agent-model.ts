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
  readonly state: string;
  readonly prompt: LanguageModelV4Prompt;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  readonly signal: AbortSignal | undefined;
}
export interface TurnCalls {
  readonly calls: readonly { readonly id: string; readonly tool: string; readonly input: Json }[];
}

/** A model whose replies are the calls that `next` returns. */
export function agentModel(agent: OutsideAgent, next: (turn: AgentTurn) => Promise<TurnCalls>): ResolvedModel {
  const { name, version } = agent;
  const modelId = version === undefined ? name : `${name}/${version}`;
  const at = ({ stage, runId = "" }: TurnPosition): LanguageModelV4 => ({
    specificationVersion: "v4",
    provider: "agent",
    modelId,
    supportedUrls: {},
    doGenerate: async () => {
      throw new Error("an agent's calls can only be streamed");
    },
    doStream: async ({ prompt, tools = [], abortSignal }: LanguageModelV4CallOptions) => {
      const offered = tools.filter((tool) => tool.type === "function");
      const { calls } = await next({ runId, state: stage, prompt, tools: offered, signal: abortSignal });
      return { stream: streamOf(calls) };
    },
  });
  return { id: `agent:${modelId}`, secrets: [], agent, at };
}

function streamOf(calls: TurnCalls["calls"]): ReadableStream<LanguageModelV4StreamPart> {
  const parts: LanguageModelV4StreamPart[] = [
    { type: "stream-start", warnings: [] },
    ...calls.map(
      ({ id, tool, input }) =>
        ({ type: "tool-call", toolCallId: id, toolName: tool, input: JSON.stringify(input) }) as const,
    ),
    { type: "finish", finishReason: { unified: "tool-calls", raw: undefined }, usage: NO_USAGE },
  ];
  return new ReadableStream({
    start: (controller) => {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
}

/** What an agent spends is known to its own program only. */
const NO_USAGE = {
  inputTokens: { total: 0, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 0, text: undefined, reasoning: undefined },
};
