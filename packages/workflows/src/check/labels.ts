// Choices in words, for tables and drawings.

import type { AnyChoice, ChoiceShape, PipelineSpec } from "@sluice/core";
import { parseChoice } from "@sluice/core/runtime";
import { nameOf } from "./finding.ts";

/** Where a row leads, in words. */
export function choiceLabel(spec: PipelineSpec, choice: AnyChoice): string {
  const reading = parseChoice(choice, spec.states, null, spec.limits.maxItems);
  return reading.ok ? shapeLabel(spec, reading.shape) : "nowhere";
}

function shapeLabel(spec: PipelineSpec, shape: ChoiceShape): string {
  const name = (state: string): string => nameOf(spec, state);
  switch (shape.kind) {
    case "to":
      return name(shape.state);
    case "fanOut": {
      const { list, siblings, join } = shape;
      const children =
        list === undefined
          ? siblings.map(({ state }) => name(state)).join(" and ")
          : `${name(list)} for each of ${siblings.length} items`;
      return `${children}, then ${name(join)}`;
    }
    case "fork": {
      const branches = shape.branches.map(
        ({ key, initial, terminal }) => `${key} (${name(initial)} to ${name(terminal)})`,
      );
      return `${branches.join(shape.join === "any" ? " or " : " and ")}, then ${name(shape.onComplete)}`;
    }
    case "invoke":
      return `pipeline ${shape.pipeline}, then ${name(shape.onComplete)}`;
    case "return":
      return "the interrupted state";
    case "done":
      return "a completed end";
    case "fail":
    case "cancel":
      return `a ${shape.kind === "fail" ? "failed" : "cancelled"} end: ${shape.reason}`;
  }
}
