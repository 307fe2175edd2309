import { type Json, type JsonObject, numberField, textField } from "../base/json.ts";
import type { StageResult } from "../definition/result.ts";
import type { PipelineSpec, StateSpec } from "../definition/spec.ts";
import type { DenialCause } from "../gate/denial.ts";
import type { Envelope } from "../gate/envelope.ts";
import type { StepRunner } from "../journal/seam.ts";
import type { NextDecision } from "../machine/decide-next.ts";
import type { Entry, RunState } from "./context.ts";
import type { RunDeps } from "./deps.ts";
import type { AvailableTools, StateExecutor } from "./executor.ts";
import type { RunMeter } from "./limits/limits.ts";

/** One entry into one state. */
export interface Execution extends Entry {
  readonly spec: PipelineSpec;
  readonly stateId: string;
  readonly state: StateSpec;
  readonly executor: StateExecutor;
  /** Undefined for a state without allowedTools. */
  readonly envelope: Envelope | undefined;
  readonly offer: AvailableTools;
  /** Data of the event after Setup: the resolved tools. */
  readonly leftSetup: JsonObject;
  readonly run: RunState;
  readonly steps: StepRunner;
  readonly deps: RunDeps;
  readonly meter: RunMeter;
  /** False for a sibling, which has no route: its parent's join follows. */
  readonly routed: boolean;
  /** Turns of this state in earlier visits. */
  readonly turnsBefore: number;
}
export interface ExecutionEnd {
  readonly result: StageResult<Json>;
  readonly next: NextDecision | undefined;
  readonly denied: readonly Denied[];
}

/** A denied call, for the run's result. */
export type Denied = {
  readonly executionId: string;
  readonly attempt: number;
  readonly callId: string;
  readonly tool: string;
  readonly cause: DenialCause;
};

export function isDenied(value: Json): value is Denied {
  const texts = ["executionId", "callId", "tool", "cause"].map((key) => textField(value, key));
  return !texts.includes(undefined) && numberField(value, "attempt") !== undefined;
}
