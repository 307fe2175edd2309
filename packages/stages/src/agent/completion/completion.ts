import type { LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import type { ActScope, FailureCode, Issue, Json, JsonObject, SchemaVerdict, StageContext } from "@sluice/core";
import type { CompletionCheck, Reply, TurnCall } from "../reply-record.ts";
import { callId } from "../transcript.ts";

/** The turns that are left to complete a state after its last tool call. */
export const DECIDING_TURNS = 3;

/** How an agent state completes: the tools this takes, how their calls are answered, and what the model reads about it. */
export interface Completion {
  /** The tool whose accepted call ends the state; on the last turn the only one. */
  readonly tool: LanguageModelV4FunctionTool;
  /** Offered beside it. Like the completion tool, they never pass the permission gate. */
  readonly besides: readonly LanguageModelV4FunctionTool[];
  /** The rule that says how the state ends. */
  readonly rule: string;
  /** As in "or call finish to finish this stage". */
  readonly advice: string;
  /** What the system message says of this entry into the state, between the stage's prompt and its rules. */
  about(ctx: StageContext): string;
  /** The first user message: the task, the state's input, and the feedback on the previous attempt. */
  first(ctx: StageContext): string;
  /**
   * Checks the calls of a reply to the state's own tools, and answers those that take no decision of the run. Call it inside a
   * step: a schema may be user code.
   */
  check(reply: Pick<Reply, "calls">, turn: number, scope: CheckScope): Promise<readonly CompletionCheck[]>;
  /** Settles the next own call of a turn, by its check if it has one, and notes what it decides. */
  settle(call: TurnCall, check: CompletionCheck | undefined, turn: number, scope: ActScope): Promise<OwnCallResult>;
  /** The failure of an attempt that did not complete `within 8 turns`; `last` is the last rejected completion. */
  notCompleted(within: string, last: Rejected | undefined): { readonly code: FailureCode; readonly message: string };
}

/** What a check may read. */
export type CheckScope = Pick<ActScope, "stateId" | "events" | "ctx" | "state" | "used" | "secrets">;

/** The answer to a call of one of the state's own tools. */
export type OwnCallResult =
  | { readonly kind: "completed"; readonly output: Json }
  | { readonly kind: "answered"; readonly output: Json }
  | Rejected;
export interface Rejected {
  readonly kind: "rejected";
  /** What the model reads. */
  readonly output: Json;
  /** Why, in short. */
  readonly why: string;
}

/** Whether a call is to one of the state's own tools. */
export function isOwnCall({ tool, besides }: Completion, call: Pick<TurnCall, "tool">): boolean {
  return call.tool === tool.name || besides.some(({ name }) => name === call.tool);
}

export function onlyOwnCalls(completion: Completion, { calls }: Pick<Reply, "calls">): boolean {
  return calls.every((call) => isOwnCall(completion, call));
}

/** Why the arguments of a call could not be read. */
export function unreadable({ inputError }: TurnCall): Extract<SchemaVerdict<Json>, { readonly ok: false }> {
  return { ok: false, issues: [{ path: "$", message: inputError?.message ?? "the arguments could not be read" }] };
}

/** The answer to a call whose arguments do not fit. */
export function rejectArguments(
  { note }: Pick<ActScope, "note">,
  turn: number,
  { index }: TurnCall,
  issues: readonly Issue[],
): Rejected {
  const listed = issues.map((issue) => ({ ...issue }));
  const data = { turn, callId: callId(turn, index), code: "completion_schema_invalid", issues: listed };
  note({ type: "completion.rejected", data });
  const why = issues.map(({ path, message }) => `${path} ${message}`).join("; ");
  return { kind: "rejected", output: invalidCompletion(listed), why };
}

/** The tool result for a completion call that fails schema validation. */
export function invalidCompletion(issues: readonly Json[]): Json {
  const message = "The arguments do not match the schema. Fix every issue listed and call this tool again.";
  return { code: "completion_schema_invalid", message, issues };
}

export function functionTool(name: string, description: string, inputSchema: JsonObject): LanguageModelV4FunctionTool {
  return { type: "function", name, description, inputSchema: { ...inputSchema } };
}
