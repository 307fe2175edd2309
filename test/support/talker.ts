import type { LanguageModelV4CallOptions, LanguageModelV4Message } from "@ai-sdk/provider";
import { systemClock } from "@sluice/core";
import { type ResolvedModel, type ScriptedTurn, scriptedModel, type TurnPosition } from "@sluice/stages";

/** One model call as the model saw it; the transcript is a copy, since the stage goes on adding to its own. */
export interface Heard extends TurnPosition {
  readonly messages: readonly LanguageModelV4Message[];
  readonly tools: readonly string[];
  readonly maxOutputTokens: number | undefined;
}
export interface Talker extends ResolvedModel {
  readonly heard: readonly Heard[];
}

/** A model that says what a function makes of what it hears. */
export function talker(say: (heard: Heard) => ScriptedTurn | Promise<ScriptedTurn>): Talker {
  const heard: Heard[] = [];
  const at = (position: TurnPosition) => {
    const answer = async (call: LanguageModelV4CallOptions) => {
      const { maxOutputTokens } = call;
      const messages: LanguageModelV4Message[] = JSON.parse(JSON.stringify(call.prompt));
      const tools = (call.tools ?? []).map((tool) => tool.name);
      const said = { ...position, messages, tools, maxOutputTokens };
      heard.push(said);
      const turn = await say(said);
      const script = scriptedModel({ stages: { now: [turn] } }, { clock: systemClock });
      return script.at({ stage: "now", turn: 0, attempt: position.attempt });
    };
    return {
      specificationVersion: "v4" as const,
      provider: "talker",
      modelId: "talker",
      supportedUrls: {},
      doGenerate: async (call: LanguageModelV4CallOptions) => (await answer(call)).doGenerate(call),
      doStream: async (call: LanguageModelV4CallOptions) => (await answer(call)).doStream(call),
    };
  };
  return { id: "talker", secrets: [], at, heard };
}

/** The results the model was last shown, in the order of its calls: the error's value, or the text. */
export function lastResults({ messages }: Heard): readonly unknown[] {
  const last = messages.at(-1);
  if (last?.role !== "tool") return [];
  return last.content.map((part) => {
    if (part.type !== "tool-result") return part;
    return "value" in part.output ? part.output.value : part.output;
  });
}
