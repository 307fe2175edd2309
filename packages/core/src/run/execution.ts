import { type Json, numberField, textField } from "../base/json.ts";
import type { StageResult } from "../definition/result.ts";
import type { PipelineSpec } from "../definition/spec.ts";
import type { DenialCause } from "../gate/denial.ts";
import type { StepRunner } from "../journal/seam.ts";
import type { NextDecision } from "../machine/decide-next.ts";
import type { MachineView } from "../machine/machine-state.ts";
import type { RunDeps } from "./deps.ts";
import type { StateExecutor } from "./executor.ts";
import type { RunMeter } from "./limits/limits.ts";
import type { PreparedState } from "./prepared-states.ts";

/** One entry into one state. */
export interface Execution extends PreparedState {
  readonly runId: string;
  readonly workspace: string;
  readonly spec: PipelineSpec;
  readonly stateId: string;
  /** Counted from 1. */
  readonly visit: number;
  readonly executor: StateExecutor;
  /** The run, which has entered this state. */
  readonly view: MachineView;
  readonly steps: StepRunner;
  readonly deps: RunDeps;
  /** The variables of the processes that its calls start. */
  readonly env: RunDeps["env"];
  readonly meter: RunMeter;
  /** False for a child, which has no route: its parent's join follows. */
  readonly routed: boolean;
  /** Turns of this state in earlier visits. */
  readonly turnsBefore: number;
}
export interface ExecutionEnd {
  readonly result: StageResult<Json>;
  /** What its route decided. Undefined for a child, and for an execution that was cancelled. */
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
