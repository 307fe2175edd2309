import type { StateLimits } from "../definition/state-rules.ts";
import type { Issue } from "../schema/schema.ts";
import { allowsAnyLine, type Envelope, isWalled, type OtherStages, whyOutside } from "./envelope.ts";
import { type Cleaning, cleanReason } from "./excerpt.ts";
import { type HardLimits, hardLimitOn } from "./hard-limits.ts";
import type { Subject, ToolEffect } from "./subjects.ts";
import { type CallUsage, type MeasuredEdits, whyBeyond } from "./usage.ts";

/** How calls of a stage without an envelope are decided: by a person, by the session's list, or always approved. */
export type SecurityMode = "ask" | "allowlist" | "yolo";

/** What the gate compares of a call, besides what it would touch. */
export interface NamedCall {
  readonly tool: string;
  /** Why the arguments could not be read; absent if they were. */
  readonly inputFault?: string;
}

/** The live tool that a call names, with its subjects or the issues of its input. */
export interface LiveTool {
  readonly effect: ToolEffect;
  /** Mode `ask` approves built-in tools that do not write. */
  readonly builtin: boolean;
  /** Absent when the arguments could not be parsed. */
  readonly bound?:
    | { readonly ok: true; readonly subjects: readonly Subject[] }
    | { readonly ok: false; readonly issues: readonly Issue[] };
  /** What the call would edit. Only needed where edits are limited. */
  readonly measured?: MeasuredEdits | undefined;
}

/** What the gate checks a call against, besides the envelope. */
export interface GateState extends HardLimits, Cleaning, OtherStages {
  /** Absent when no live tool has the name. */
  readonly tool?: LiveTool | undefined;
  readonly mode: SecurityMode;
  /** The session's list for mode `allowlist`. */
  readonly allow: Envelope;
  /** The hard limits of the stage that count. */
  readonly limits?: StateLimits | undefined;
  /** Of the calls before this one. */
  readonly usage?: CallUsage | undefined;
}

export type Verdict =
  | { readonly kind: "allow"; readonly by: "envelope" | "mode" }
  /** Outside the envelope: a person has to grant it, and is shown `why`. */
  | { readonly kind: "prompt"; readonly why: string }
  | DeniedVerdict;
export type DeniedVerdict =
  | { readonly kind: "deny"; readonly cause: "unknown_tool" | "limit" | "mode"; readonly reason: string }
  | {
      readonly kind: "deny";
      readonly cause: "invalid_tool_input";
      readonly reason: string;
      readonly issues: readonly Issue[];
    };

/**
 * Whether a call may run. Unknown tools, invalid input and hard limits are denied; calls inside the envelope are allowed, and
 * all others need a grant. The security mode applies only to stages without an envelope (`undefined`). Guard hooks run afterwards,
 * see `authorizeCall`.
 */
export function decide(call: NamedCall, envelope: Envelope | undefined, state: GateState): Verdict {
  const { tool: name, inputFault } = call;
  const { tool } = state;
  if (tool === undefined) return { kind: "deny", cause: "unknown_tool", reason: "no live tool has this name" };

  if (inputFault !== undefined) return invalid([{ path: "$", message: inputFault }]);
  if (tool.bound === undefined) return invalid([{ path: "$", message: "the input was not checked" }]);
  if (!tool.bound.ok) return invalid(tool.bound.issues);

  // A redirect to /dev/null touches nothing.
  const subjects = tool.bound.subjects.filter(
    (subject) => !(subject.kind === "path" && subject.from === "redirect" && subject.real === "/dev/null"),
  );
  // If any command line may run in a sandbox, the sandbox alone decides what its paths reach.
  const sandboxed = isWalled(subjects) && mayBeAnyLine(name, envelope, subjects, state);
  for (const subject of subjects) {
    if (sandboxed && subject.kind !== "command") continue;
    const reason = hardLimitOn(subject, state);
    if (reason !== undefined) return { kind: "deny", cause: "limit", reason: cleanReason(reason, subjects, state) };
  }
  const beyond =
    state.limits &&
    whyBeyond({ tool: name, effect: tool.effect, subjects, measured: tool.measured }, state.limits, state.usage, state);
  if (beyond !== undefined) return { kind: "deny", cause: "limit", reason: cleanReason(beyond, subjects, state) };

  if (envelope === undefined) return byMode(name, tool, subjects, state);
  const why = whyOutside(envelope, name, subjects, state.workspace, state);
  if (why === undefined) return { kind: "allow", by: "envelope" };
  return { kind: "prompt", why: cleanReason(why, subjects, state) };
}

/** Whether a call that envelope or mode approves may be any command line. */
export function mayBeAnyLine(
  name: string,
  envelope: Envelope | undefined,
  subjects: readonly Subject[],
  { mode, allow }: Pick<GateState, "mode" | "allow">,
): boolean {
  if (envelope !== undefined) return allowsAnyLine(envelope, name, subjects);
  return mode === "yolo" || (mode === "allowlist" && allowsAnyLine(allow, name, subjects));
}

function byMode(name: string, tool: LiveTool, subjects: readonly Subject[], state: GateState): Verdict {
  switch (state.mode) {
    case "yolo":
      return { kind: "allow", by: "mode" };
    case "ask":
      if (tool.builtin && tool.effect !== "write") return { kind: "allow", by: "mode" };
      return { kind: "prompt", why: `the stage has no envelope and the security mode is ask` };
    case "allowlist": {
      const why = whyOutside(state.allow, name, subjects, state.workspace, state);
      if (why === undefined) return { kind: "allow", by: "mode" };
      const reason = `not on the session's allowlist: ${cleanReason(why, subjects, state)}`;
      return { kind: "deny", cause: "mode", reason };
    }
  }
}

function invalid(issues: readonly Issue[]): Verdict {
  return { kind: "deny", cause: "invalid_tool_input", reason: "the input does not fit the tool's schema", issues };
}
