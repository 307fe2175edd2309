import { didYouMean } from "../base/problems.ts";
import type { Issue } from "../schema/schema.ts";

/** Why a call that could have run was not let through. */
export type DenialCause = "denied" | "deferred" | "timeout" | "no_interactor" | "hook" | "mode" | "limit";

/** What a model may do instead; part of every refusal, so that it can go on from there. */
export interface Alternatives {
  /** The envelope's patterns; the names of the live tools where there is no envelope. */
  readonly allowedTools: readonly string[];
  readonly completionTool: string;
}

// Types, not interfaces: only those count as JSON to the compiler.

/** A call that was understood and refused. */
export type ToolCallDenied = {
  readonly code: "tool_call_denied";
  readonly cause: DenialCause;
  readonly tool: string;
  readonly reason: string;
  readonly allowedTools: readonly string[];
  readonly completionTool: string;
};
/** A call to something that is not there. */
export type UnknownTool = {
  readonly code: "unknown_tool";
  readonly tool: string;
  readonly reason: string;
  readonly allowedTools: readonly string[];
  readonly completionTool: string;
};
/** A call whose arguments its tool does not take. */
export type InvalidToolInput = {
  readonly code: "invalid_tool_input";
  readonly tool: string;
  readonly reason: string;
  readonly issues: readonly { readonly path: string; readonly message: string }[];
};
/** A call that did not run, or of which nobody knows whether it did. */
export type SkippedCall = {
  readonly code: "repeated_call" | "truncated_call" | "outcome_unknown";
  readonly tool: string;
  readonly reason: string;
};

export function denial(cause: DenialCause, tool: string, reason: string, wayOut: Alternatives): ToolCallDenied {
  return { code: "tool_call_denied", cause, tool: shortName(tool), reason, ...pick(wayOut) };
}

/** `known` are the tools the model could have meant. */
export function unknownTool(tool: string, known: Iterable<string>, wayOut: Alternatives): UnknownTool {
  const name = shortName(tool);
  const close = didYouMean(tool, known);
  const reason = `there is no tool ${JSON.stringify(name)}${close === undefined ? "" : `; did you mean ${JSON.stringify(close)}?`}`;
  return { code: "unknown_tool", tool: name, reason, ...pick(wayOut) };
}

export function invalidToolInput(tool: string, issues: readonly Issue[]): InvalidToolInput {
  const reason = "the arguments do not fit the tool's schema; mend them and call again";
  return {
    code: "invalid_tool_input",
    tool: shortName(tool),
    reason,
    issues: issues.map(({ path, message }) => ({ path, message })),
  };
}

export function repeatedCall(tool: string, times: number): SkippedCall {
  const reason = `the same call with the same arguments came ${times} times in a row, so it was not run; its result would not change: do something else`;
  return { code: "repeated_call", tool: shortName(tool), reason };
}

export function truncatedCall(tool: string): SkippedCall {
  const reason = "the output limit cut this call off, so it was not run; send it again, shorter or in parts";
  return { code: "truncated_call", tool: shortName(tool), reason };
}

export function outcomeUnknown(tool: string): SkippedCall {
  const reason =
    "the process ended while this call was at work, and whether it took effect is not known; look at the present state before calling again";
  return { code: "outcome_unknown", tool: shortName(tool), reason };
}

/** The longest name a tool can have; longer ones come from a model and are not worth repeating. */
const LONGEST_NAME = 128;

function shortName(tool: string): string {
  return tool.length <= LONGEST_NAME ? tool : `${tool.slice(0, LONGEST_NAME)}…`;
}

function pick({ allowedTools, completionTool }: Alternatives): Alternatives {
  return { allowedTools: [...allowedTools], completionTool };
}
