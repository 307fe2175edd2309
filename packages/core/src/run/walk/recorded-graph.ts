// What the first record of a run shows of its pipeline to people who read the run.
import type { JsonObject } from "../../base/json.ts";
import { pipelineShape, pipelinesWithin } from "../../definition/graph.ts";
import type { PipelineMeta, PipelineSpec } from "../../definition/spec.ts";
import { maskSecrets, type SecretFilter } from "../../journal/redaction.ts";
import { recordedRows } from "../../machine/legal-events.ts";
import type { FanOutChoice } from "../../machine/resolve-choice.ts";

/** The states of a pipeline, the rows of its table, its interrupts, and what its author says about it, without known secrets. */
export function recordedGraph(spec: PipelineSpec, secrets: SecretFilter): JsonObject {
  const { interrupts } = spec;
  const rows = recordedRows(spec);
  const meta = metaWithin(spec);
  const shown = {
    ...(rows === undefined ? {} : { rows }),
    ...(interrupts.length === 0 ? {} : { interrupts: interrupts.map((interrupt) => ({ ...interrupt })) }),
  };
  return {
    shape: pipelineShape(spec),
    ...maskSecrets(shown, secrets),
    ...(meta === undefined ? {} : { meta: { ...meta } }),
  };
}

const LEVELS: readonly NonNullable<PipelineMeta["dangerLevel"]>[] = ["safe", "moderate", "dangerous"];

/** Of a pipeline and all that it may run: the highest level of danger, and `captureOutput: false` if any of them says so. */
function metaWithin(spec: PipelineSpec): PipelineMeta | undefined {
  const all = pipelinesWithin(spec).flatMap(({ meta }) => meta ?? []);
  if (all.length === 0) return undefined;
  const dangerLevel = LEVELS.findLast((level) => all.some((meta) => meta.dangerLevel === level));
  return {
    ...(dangerLevel === undefined ? {} : { dangerLevel }),
    ...(all.some(({ captureOutput }) => captureOutput === false) ? { captureOutput: false } : {}),
  };
}

/** How the children of a fork or of another pipeline are recorded; siblings and items are named by their keys alone. */
export function recordedChildren({
  siblings,
  onFailure,
  onFail,
}: Pick<FanOutChoice, "siblings" | "onFailure" | "onFail">): JsonObject {
  const children = siblings.flatMap((sibling): readonly JsonObject[] => {
    const { kind } = sibling;
    if (kind === undefined) return [];
    const { key } = sibling;
    if (kind === "invoke") return [{ key, pipeline: sibling.pipeline }];
    return [{ key, state: sibling.state, terminal: sibling.terminal }];
  });
  return {
    ...(children.length === 0 ? {} : { children }),
    ...(onFailure === "any" ? { any: true } : {}),
    ...(onFail === undefined ? {} : { onFail }),
  };
}
