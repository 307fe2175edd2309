// Which rows for a pause a state can take.

import type { AnyPipeline } from "@sluice/core";
import { stepsOf } from "@sluice/stages/runtime";
import type { Finding } from "../read/shape.ts";
import { ANY } from "./check.ts";
import type { Layout, PlacedState } from "./layout.ts";
import type { FlujoMachine } from "./read-document.ts";

/** The pipelines that a state's steps run, by key. */
type PipelinesOf = (state: PlacedState) => ReadonlyMap<string, AnyPipeline> | undefined;

/**
 * A question inside an import or a machine waits in the run that asks it, and the state continues there. A row that leads from such
 * a question to another state would be ignored, so it is an error.
 */
export function pauseFindings(machine: FlujoMachine, { states }: Layout, pipelinesOf: PipelinesOf): readonly Finding[] {
  return machine.transitions.flatMap(({ from, on, to }, index) => {
    if (on !== "pause") return [];
    const left = states.filter(({ name }) => name !== to && (from === ANY || from === name));
    return left.flatMap((state): readonly Finding[] => {
      const name = JSON.stringify(state.name);
      const inside = state.steps.find(({ pipeline }) => {
        const child = pipelinesOf(state)?.get(pipeline);
        return child !== undefined && asks(child.spec);
      });
      if (inside !== undefined) {
        const message = `A question inside ${JSON.stringify(inside.step.name)} is answered there, so it cannot lead from ${name} to another state.`;
        const suggestion = `ask in a step of ${name} itself, or lead back to ${name}`;
        return [finding("error", message, suggestion, machine.at("transitions", index, "to"))];
      }
      if (from === ANY || state.steps.some(({ use }) => use.kind === "ask")) return [];
      const message = `No step of ${name} asks a person, so this transition never applies.`;
      return [
        finding("warning", message, "remove it, or add a step of kind hitl", machine.at("transitions", index, "on")),
      ];
    });
  });
}

function finding(severity: Finding["severity"], message: string, suggestion: string, path: Finding["path"]): Finding {
  return { severity, rule: "event-row", message, suggestion, path };
}

/** Whether a run of a pipeline may ask a person a question. */
function asks({ states, pipelines }: AnyPipeline["spec"]): boolean {
  const own = [...states.values()].some(({ options }) => stepsOf(options)?.steps.some(({ kind }) => kind === "ask"));
  return own || [...pipelines.values()].some(asks);
}
