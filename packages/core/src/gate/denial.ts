import { wholeWords } from "../base/cut-texts.ts";
import { isJsonObject, type Json, type JsonObject } from "../base/json.ts";
import { didYouMean } from "../base/problems.ts";
import type { Issue } from "../schema/schema.ts";

/** Why a call that could have run was not let through. */
export type DenialCause = "denied" | "deferred" | "timeout" | "no_interactor" | "hook" | "mode" | "limit";

/** What a model can do instead, as part of every denial. */
export interface Alternatives {
  /** The envelope's patterns; the names of the live tools where there is no envelope. */
  readonly allowedTools: readonly string[];
  readonly completionTool: string;
  /** Of a state that completes by events: each event with its targets and conditions, in words. */
  readonly events?: readonly string[];
}

/** A valid call that was refused. A type, since only those count as JSON to the compiler. */
export type ToolCallDenied = Readonly<Alternatives> & {
  readonly code: "tool_call_denied";
  readonly cause: DenialCause;
  readonly tool: string;
  readonly reason: string;
};
export function denial(cause: DenialCause, tool: string, reason: string, alternatives: Alternatives): ToolCallDenied {
  return { code: "tool_call_denied", cause, tool: shortName(tool), reason, ...copyOf(alternatives) };
}

/** What a model of a state reads of a refusal: it names the state. The record does not, since its step does. */
export function denialIn(stateId: string, output: Json): Json {
  return isJsonObject(output) && output.allowedTools !== undefined ? { ...output, state: stateId } : output;
}

/** For a call to a tool that does not exist: suggests the most similar of the `known` ones. */
export function unknownTool(tool: string, known: Iterable<string>, alternatives: Alternatives): JsonObject {
  const name = shortName(tool);
  const close = didYouMean(tool, known);
  const reason = `there is no tool ${JSON.stringify(name)}${close === undefined ? "" : `; did you mean ${JSON.stringify(close)}?`}`;
  return { code: "unknown_tool", tool: name, reason, ...copyOf(alternatives) };
}

/** For a call whose arguments do not fit the tool's schema. */
export function invalidToolInput(tool: string, issues: readonly Issue[]): JsonObject {
  const reason = "the arguments do not fit the tool's schema; fix them and call the tool again";
  return {
    code: "invalid_tool_input",
    tool: shortName(tool),
    reason,
    issues: issues.map(({ path, message }) => ({ path, message })),
  };
}

export function repeatedCall(tool: string, times: number): JsonObject {
  const reason = `this call was made ${times} times in a row with the same arguments, so it was not run; its result would not change, so try something else`;
  return { code: "repeated_call", tool: shortName(tool), reason };
}

export function truncatedCall(tool: string): JsonObject {
  const reason =
    "the output limit cut this call off, so it was not run; make it shorter or split it into several calls";
  return { code: "truncated_call", tool: shortName(tool), reason };
}

export function outcomeUnknown(tool: string): JsonObject {
  const reason =
    "the process ended while this call was running, so it is unknown whether it took effect; check the current state before calling again";
  return { code: "outcome_unknown", tool: shortName(tool), reason };
}

/** No tool has a longer name; a longer one from a model is cut, where no half of a secret is left. */
const LONGEST_NAME = 128;

function shortName(tool: string): string {
  return tool.length <= LONGEST_NAME ? tool : wholeWords(tool, LONGEST_NAME);
}

function copyOf({ allowedTools, completionTool, events }: Alternatives): Readonly<Alternatives> {
  return { allowedTools: [...allowedTools], completionTool, ...(events === undefined ? {} : { events: [...events] }) };
}
