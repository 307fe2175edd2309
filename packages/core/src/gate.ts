// The permission gate by itself, for programs that put it in front of their own calls.
export {
  matchesArgv,
  matchesName,
  matchesPath,
  parsePattern,
  readPattern,
} from "./definition/patterns/tool-pattern.ts";
export { isScratchFolder } from "./definition/state.ts";
export {
  type AllowedCall,
  type ApprovedBy,
  type Authorization,
  authorizeCall,
  type CallScope,
  type DeniedCall,
  type EarlierVerdict,
  type GrantAnswer,
  type Policy,
  type PromptedCall,
  SealedCall,
} from "./gate/authorize-call.ts";
export {
  type DeniedVerdict,
  decide,
  type GateState,
  type LiveTool,
  type NamedCall,
  type SecurityMode,
  type Verdict,
} from "./gate/decide.ts";
export { type Alternatives, type DenialCause, denial, type ToolCallDenied } from "./gate/denial.ts";
export { compileEnvelope, type Envelope } from "./gate/envelope.ts";
export { type GuardOptions, type GuardVerdict, type NamedGuard, runGuardHooks } from "./gate/guard-hooks.ts";
export type { HardLimits } from "./gate/hard-limits.ts";
export { argsSummary } from "./gate/summary.ts";
export { type Bound, type BoundInput, defineTool, type Question, type Tool } from "./gate/tool.ts";
export { type CallUsage, countAllowed, countCall, countResult, type MeasuredEdits, NO_CALLS } from "./gate/usage.ts";
export { sealWithCode } from "./people/answer-proof.ts";
export { createAnswerRule, startedUnsandboxed } from "./run/requests/answer.ts";
