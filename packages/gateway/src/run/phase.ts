import type { LanguageModelV4Message } from "@ai-sdk/provider";
import { field, isJsonObject, type Json } from "@sluice/core";
import type { AgentTurn } from "./agent-model.ts";
import type { AgentCall, CallReply } from "./gateway-run-types.ts";
import { completionText, replyOf, TRANSITION } from "./words.ts";

/** A state of the run, as its agent sees it. */
export interface Phase {
  readonly runId: string;
  readonly state: string;
  readonly text: string;
  readonly tools: readonly string[];
}

/** Names of the tools that the session runs: any other tool that a state offers completes it. */
export interface WorkTools {
  has(name: string): boolean;
}

export function phaseOf({ runId, state, prompt, tools }: AgentTurn, workTools: WorkTools): Phase {
  const texts = prompt.slice(0, 2).map(textOf);
  const own = tools.filter(({ name }) => !workTools.has(name));
  const work = tools.filter(({ name }) => workTools.has(name)).map(({ name }) => name);
  return { runId, state, tools: work, text: [...texts, ...own.flatMap(completionText)].join("\n\n") };
}

/** A call as the state takes it, or the answer to one that no state takes. */
export function callOfState(
  { tool, input }: Pick<AgentCall, "tool" | "input">,
  tools: readonly { readonly name: string }[],
  workTools: WorkTools,
): { readonly tool: string; readonly input: Json } | { readonly reply: CallReply } {
  const own = tools.map(({ name }) => name).filter((name) => !workTools.has(name));
  if (tool !== TRANSITION) {
    if (!own.includes(tool)) return { tool, input };
    return { reply: replyOf(false, { code: "unknown_tool", message: `call ${TRANSITION} with the event ${tool}` }) };
  }
  if (own.includes(TRANSITION)) return { tool, input };
  const event = field(input, "event");
  const data = field(input, "data") ?? {};
  if (typeof event === "string" && own.includes(event) && isJsonObject(data)) return { tool: event, input: data };
  const events = own.map((name) => JSON.stringify(name)).join(", ");
  const message = `This phase is left by the event ${events}, with its arguments in data. You are still in the phase.`;
  return { reply: replyOf(false, { code: "transition_rejected", message }) };
}

/** The text of a message of a transcript. */
export function textOf({ role, content }: LanguageModelV4Message): string {
  if (role === "system") return content;
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}
