import type { Issue } from "../schema/schema.ts";
import { allowsAnyLine, type Envelope, isWalled, whyOutside } from "./envelope.ts";
import type { Proposal } from "./grants.ts";
import { type HardLimits, hardLimitOn } from "./hard-limits.ts";
import type { Subject, ToolEffect } from "./subjects.ts";

/** What decides where a stage has no envelope: a person, the session's list, or nobody. */
export type SecurityMode = "ask" | "allowlist" | "yolo";

/** The live tool a proposal names, and what became of the input when it was bound. */
export interface LiveTool {
  readonly effect: ToolEffect;
  /** One of the tools that come with Sluice; of these, the ones that do not write pass in mode `ask`. */
  readonly builtin: boolean;
  /** Absent when the arguments could not even be read. */
  readonly bound?:
    | { readonly ok: true; readonly subjects: readonly Subject[] }
    | { readonly ok: false; readonly issues: readonly Issue[] };
}

/** What the gate compares a proposal with, besides the envelope. */
export interface GateState extends HardLimits {
  /** Absent when no live tool has the name. */
  readonly tool?: LiveTool;
  readonly mode: SecurityMode;
  /** The session's list for mode `allowlist`. */
  readonly allow: Envelope;
}

export type Verdict =
  | { readonly kind: "approved"; readonly by: "envelope" | "mode" }
  /** Outside the envelope: a person has to grant it. `why` is for that person. */
  | { readonly kind: "ask"; readonly why: string }
  | Refused;
export type Refused =
  | { readonly kind: "refused"; readonly cause: "unknown_tool" | "limit" | "mode"; readonly reason: string }
  | {
      readonly kind: "refused";
      readonly cause: "invalid_tool_input";
      readonly reason: string;
      readonly issues: readonly Issue[];
    };

/**
 * Whether a proposal may run. The machine's word comes first: what is not there, what cannot run and what no grant lifts is
 * refused, what the envelope holds is approved, what it does not hold is for a person. The security mode speaks only where
 * there is no envelope (`undefined`). Guard hooks are asked after this, see `runGuardHooks`.
 */
export function decide(proposal: Proposal, envelope: Envelope | undefined, state: GateState): Verdict {
  const { tool: name, inputFault } = proposal;
  const { tool } = state;
  if (tool === undefined) return { kind: "refused", cause: "unknown_tool", reason: "no live tool has this name" };

  if (inputFault !== undefined) return invalid([{ path: "$", message: inputFault }]);
  if (tool.bound === undefined) return invalid([{ path: "$", message: "the input was not checked" }]);
  if (!tool.bound.ok) return invalid(tool.bound.issues);

  const subjects = tool.bound.subjects.filter((subject) => !isNowhere(subject));
  const held = heldByWall(name, envelope, subjects, state);
  for (const subject of subjects) {
    // Behind the wall a path leads to what the wall shows, whatever its name.
    if (held && subject.kind !== "command") continue;
    const reason = hardLimitOn(subject, state);
    if (reason !== undefined) return { kind: "refused", cause: "limit", reason };
  }

  if (envelope === undefined) return byMode(name, tool, subjects, state);
  const why = whyOutside(envelope, name, subjects, state.workspace);
  return why === undefined ? { kind: "approved", by: "envelope" } : { kind: "ask", why };
}

/** Whether a wall decides what this call can touch: it may be any line, and runs behind the wall only. */
function heldByWall(
  name: string,
  envelope: Envelope | undefined,
  subjects: readonly Subject[],
  { mode, allow }: GateState,
): boolean {
  if (!isWalled(subjects)) return false;
  return mayBeAnyLine(name, envelope, subjects, { mode, allow });
}

/** Whether the call, once it is approved by envelope or mode, may be any command line. */
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
      return { kind: "approved", by: "mode" };
    case "ask":
      if (tool.builtin && tool.effect !== "write") return { kind: "approved", by: "mode" };
      return { kind: "ask", why: `the stage has no envelope and the security mode is ask` };
    case "allowlist": {
      const why = whyOutside(state.allow, name, subjects, state.workspace);
      if (why === undefined) return { kind: "approved", by: "mode" };
      return { kind: "refused", cause: "mode", reason: `not on the session's allowlist: ${why}` };
    }
  }
}

function invalid(issues: readonly Issue[]): Verdict {
  return { kind: "refused", cause: "invalid_tool_input", reason: "the input does not fit the tool's schema", issues };
}

/** The one file that is nowhere: every shell user sends output there, and nothing can be kept in it. */
function isNowhere(subject: Subject): boolean {
  return subject.kind === "path" && subject.from === "redirect" && subject.real === "/dev/null";
}
