// The permission gate by itself: envelopes, verdicts, grants, guard hooks.
export { matchesArgv, matchesName, matchesPath, parsePattern } from "./definition/patterns/tool-pattern.ts";
export { isScratchFolder } from "./definition/state.ts";
export { decide, type GateState, type LiveTool, type Refused, type SecurityMode, type Verdict } from "./gate/decide.ts";
export { type DenialCause, denial, type ToolCallDenied } from "./gate/denial.ts";
export { compileEnvelope, type Envelope } from "./gate/envelope.ts";
export {
  type ApprovedBy,
  type AttemptId,
  createGrants,
  type Grants,
  type Permit,
  type Proposal,
} from "./gate/grants.ts";
export { type NamedGuard, runGuardHooks } from "./gate/guard-hooks.ts";
export { argsSummary } from "./gate/summary.ts";
export { sealWithCode } from "./people/answer-proof.ts";
export { createAnswerRule, startedUnsandboxed } from "./run/tool-calls/answer-rule.ts";
