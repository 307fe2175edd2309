// Where a run goes next, as a value: no journal, no model, no clock.
export type { NextDecision, RejectedRow } from "./machine/decide-next.ts";
export { type LegalEvent, type LegalTarget, legalEvents } from "./machine/legal-events.ts";
export {
  type AttemptFacts,
  apply,
  contextOf,
  type Entered,
  initialState,
  type Joined,
  type MachineState,
  type MachineView,
  type Patch,
  type PendingFanOut,
  type RunFacts,
  type StateCount,
  type Suspended,
} from "./machine/machine-state.ts";
export type { OutputChange, Outputs } from "./machine/outputs.ts";
export type { ResolvedChoice, ResolvedSibling } from "./machine/resolve-choice.ts";
export type { StartAt } from "./machine/start-at.ts";
export { decide, follow, transition } from "./machine/transition.ts";
export type { Child, ChildEnd, Effect, MachineEnd, MachineInput, Transition } from "./machine/transition-types.ts";
