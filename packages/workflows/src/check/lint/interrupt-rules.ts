import type { PipelineSpec } from "@sluice/core";
import { type CheckFinding, nameOf } from "../finding.ts";
import { type Flow, handlesInterrupt } from "../flow.ts";
import { EVERY_STATE, functionsOf, moveWords } from "../moves.ts";

/** Returns that have nothing to return to, and handlers that never return. */
export function interruptRules(spec: PipelineSpec, flow: Flow): readonly CheckFinding[] {
  const returns = [...spec.states.keys()].flatMap((state): readonly CheckFinding[] => {
    if (handlesInterrupt(spec, state)) return [];
    return flow.rows(state).flatMap((move): readonly CheckFinding[] => {
      if (move.shape.kind !== "return" || (move.row.from === EVERY_STATE && spec.interrupts.length > 0)) return [];
      const ends = typeof move.row.on === "string" ? "the run fails there" : "it is always refused";
      const message = `${moveWords(move)} of ${nameOf(spec, state)} returns to what an interrupt suspended, but no interrupt leads to ${nameOf(spec, state)}, so ${ends}.`;
      const suggestion = "name the state as the target of an interrupt, or name another target";
      return [
        {
          severity: "warning",
          rule: "return-outside-interrupt",
          path: `transitions[${move.index}]`,
          message,
          suggestion,
        },
      ];
    });
  });
  const handlers = spec.interrupts.flatMap(({ name, target }): readonly CheckFinding[] => {
    // A function does not declare that it returns.
    if (functionsOf(spec, target) !== undefined) return [];
    if (flow.moves(target).some(({ shape }) => shape.kind === "return")) return [];
    const message = `${nameOf(spec, target)} handles the interrupt ${name} and never returns, so the work that it interrupts is always cancelled.`;
    return [{ severity: "warning", rule: "interrupt-without-return", path: `interrupts.${name}.target`, message }];
  });
  return [...returns, ...handlers];
}
