// Where a run goes next, as plain values.
export { decideNext, type NextDecision, type ResolvedChoice } from "./machine/decide-next.ts";
