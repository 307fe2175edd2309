import { deepFreeze, type JsonObject } from "../base/json.ts";
import { pipelinesWithin, routesPause } from "../definition/graph.ts";
import type { PipelineSpec, StateSpec } from "../definition/spec.ts";
import { compileEnvelope, type Envelope, envelopeOf } from "../gate/envelope.ts";
import type { Tool } from "../gate/tool.ts";
import { sharedData } from "../journal/redaction.ts";
import { type LegalEvent, legalEvents } from "../machine/legal-events.ts";
import type { AvailableTools } from "./executor.ts";

/** A state as every execution of it in a session finds it. */
export interface PreparedState {
  readonly state: StateSpec;
  /** Undefined for a state without allowedTools. */
  readonly envelope: Envelope | undefined;
  readonly offer: AvailableTools;
  readonly events: readonly LegalEvent[];
  /** Whether a row of its table routes a pause. */
  readonly pauses: boolean;
  /** Data of the event after Setup: the resolved tools. */
  readonly leftSetup: JsonObject;
}
/** The states of a pipeline, prepared once for all its runs in a session. */
export type PreparedStates = ReadonlyMap<string, PreparedState>;

/** Resolves the states of a pipeline against the session's live tools. */
export function prepareStates(spec: PipelineSpec, tools: ReadonlyMap<string, Tool>): PreparedStates {
  return new Map(
    [...spec.states].map(([id, state]) => {
      const envelope = envelopeIn(state);
      const offer = availableTools(envelope, tools);
      const names = offer.tools.filter((tool) => tool.allowed).map((tool) => tool.name);
      return [
        id,
        {
          state,
          envelope,
          offer,
          events: deepFreeze(state.completesByEvents === true ? legalEvents(spec, id) : []),
          pauses: routesPause(spec, id),
          leftSetup: sharedData({ phase: "left", tools: names }),
        },
      ];
    }),
  );
}

/** Whether a state of a pipeline, or of those that it may run, may write all files of the workspace. */
export function mayWriteAll(spec: PipelineSpec): boolean {
  return pipelinesWithin(spec).some(({ states }) =>
    [...states.values()].some((state) => envelopeIn(state)?.writesAll === true),
  );
}

function envelopeIn({ patterns, allowedTools }: StateSpec): Envelope | undefined {
  return patterns === undefined ? compileEnvelope(allowedTools) : envelopeOf(patterns);
}

function availableTools(envelope: Envelope | undefined, tools: ReadonlyMap<string, Tool>): AvailableTools {
  // Frozen, since kinds get it, and later runs of the session the same.
  return deepFreeze({
    allowedTools: envelope?.allowedTools,
    tools: [...tools.values()].map(({ name, description, inputSchema, effect }) => ({
      name,
      description,
      inputSchema,
      effect,
      allowed: envelope !== undefined && envelope.rulesFor(name).length > 0,
    })),
  });
}
