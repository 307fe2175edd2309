import type { LanguageModelV4Message, LanguageModelV4ToolResultPart } from "@ai-sdk/provider";
import type { CallOutcome, Json } from "@sluice/core";
import { PromptMeter } from "./budget.ts";
import type { CompletionCheck, Reply, TurnCall } from "./reply-record.ts";

const NO_CALLS: ReadonlySet<string> = new Set();
const NO_TEXTS: readonly string[] = [];

/** The messages of one attempt: append-only, in the provider's format, each converted once. */
export class Transcript {
  readonly messages: LanguageModelV4Message[];
  readonly #sizeOf: (text: string) => number;
  readonly #meter: PromptMeter;
  #callIds: Set<string> | undefined;
  #size: number;

  /** `fixed` is the size of what goes with every prompt, in the unit of `sizeOf`. */
  constructor(system: string, first: string, fixed: number, sizeOf: (text: string) => number) {
    this.messages = [{ role: "system", content: system }, userMessage(first)];
    this.#sizeOf = sizeOf;
    this.#size = sizeOf(system) + sizeOf(first);
    this.#meter = new PromptMeter(fixed);
  }

  /** Ids of all calls in it. */
  get callIds(): ReadonlySet<string> {
    return this.#callIds ?? NO_CALLS;
  }

  /** Tokens the next prompt may have, with further user messages that are not in it yet. */
  promptTokens(more: readonly string[] = NO_TEXTS): number {
    let size = this.#size;
    for (const text of more) size += this.#sizeOf(text);
    return this.#meter.next(size);
  }

  /** The next prompt, with further user messages that are not in it yet. */
  prompt(more: readonly string[]): LanguageModelV4Message[] {
    return more.length === 0 ? this.messages : [...this.messages, ...more.map(userMessage)];
  }

  user(text: string): void {
    this.#size += this.#sizeOf(text);
    this.messages.push(userMessage(text));
  }

  assistant({ content, chars, usage }: Reply): void {
    // Providers refuse an empty assistant message.
    if (content.length > 0) {
      this.#size += chars;
      this.messages.push({ role: "assistant", content });
    }
    // Those of calls that the provider ran itself, too.
    for (const part of content) {
      if (part.type !== "tool-call") continue;
      this.#callIds ??= new Set();
      this.#callIds.add(part.toolCallId);
    }
    this.#meter.replied(usage, this.#size);
  }

  results(
    calls: readonly TurnCall[],
    outcomes: readonly CallOutcome[],
    completions: readonly CompletionCheck[],
    turn: number,
  ): void {
    const byId = new Map(outcomes.map((outcome) => [outcome.id, outcome]));
    const content = calls.map((call): LanguageModelV4ToolResultPart => {
      const output = outputOf(
        byId.get(callId(turn, call.index)),
        completions.find((check) => check.index === call.index),
      );
      this.#size += this.#sizeOf(output.type === "text" ? output.value : JSON.stringify(output.value));
      return { type: "tool-result", toolCallId: call.id, toolName: call.wireName ?? call.tool, output };
    });
    this.messages.push({ role: "tool", content });
  }
}

/** The id of a call by its place, since providers give one twice. */
export function callId(turn: number, index: number): string {
  return `t${turn}.c${index}`;
}

function userMessage(text: string): LanguageModelV4Message {
  return { role: "user", content: [{ type: "text", text }] };
}

type ResultOutput = { type: "text"; value: string } | { type: "json" | "error-json"; value: Json };

function outputOf(outcome: CallOutcome | undefined, check: CompletionCheck | undefined): ResultOutput {
  if (outcome !== undefined) {
    if (!outcome.ok) return { type: "error-json", value: outcome.output };
    return typeof outcome.output === "string"
      ? { type: "text", value: outcome.output }
      : { type: "json", value: outcome.output };
  }
  const issues = check?.ok === false ? check.issues.map((issue) => ({ ...issue })) : [];
  return { type: "error-json", value: invalidCompletion(issues) };
}

/** What a model reads of a completion call that does not fit its schema. */
export function invalidCompletion(issues: readonly Json[]): Json {
  const message = "the arguments do not fit the schema; call it again with all issues mended";
  return { code: "completion_schema_invalid", message, issues };
}
