// What the transcripts of a run's states say to the agent.
import type { LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { isJson } from "@sluice/core";
import type { AgentTurn } from "./agent-model.ts";
import type { CallReply } from "./gateway-run-types.ts";
import { type Phase, textOf } from "./phase.ts";
import { replyOf } from "./words.ts";

/** One transcript of a state. */
export interface Thread extends Pick<AgentTurn, "runId" | "executionId" | "attempt"> {
  /** How many of its messages were read. */
  read: number;
  isNew: boolean;
  phase?: Phase;
  /** Whether its last turn offered tools besides those that complete the state. */
  worksWithTools: boolean;
}

/** Finds the transcript of a turn: every prompt of one begins with the same message. */
export function createThreads(): (turn: AgentTurn) => Thread {
  const threads = new WeakMap<LanguageModelV4Message, Thread>();
  return ({ prompt: [system], runId, executionId, attempt, prompt }) => {
    const known = system === undefined ? undefined : threads.get(system);
    if (known !== undefined) return known;
    // A resumed run has rebuilt the transcript: the agent has not read what follows its last call.
    const read = Math.max(2, prompt.findLastIndex(({ role }) => role === "assistant") + 1);
    const thread: Thread = { runId, executionId, attempt, read, isNew: true, worksWithTools: false };
    if (system !== undefined) threads.set(system, thread);
    return thread;
  };
}

export type TranscriptPart =
  | { readonly kind: "message"; readonly text: string }
  | {
      readonly kind: "result";
      readonly callId: string;
      readonly tool: string;
      /** The call's place in its turn. */
      readonly index: number;
      readonly reply: CallReply;
    };

/** What a transcript says since it was last read; it counts as read from now on. */
export function readOn(thread: Thread, prompt: LanguageModelV4Prompt): readonly TranscriptPart[] {
  const unread = prompt.slice(thread.read);
  thread.read = prompt.length;
  return unread.flatMap((message): readonly TranscriptPart[] => {
    if (message.role === "user") return [{ kind: "message", text: textOf(message) }];
    if (message.role !== "tool") return [];
    return message.content.flatMap((part, index): readonly TranscriptPart[] => {
      if (part.type !== "tool-result") return [];
      const { output, toolCallId: callId, toolName: tool } = part;
      const value = "value" in output && isJson(output.value) ? output.value : null;
      return [{ kind: "result", callId, tool, index, reply: replyOf(output.type !== "error-json", value) }];
    });
  });
}
