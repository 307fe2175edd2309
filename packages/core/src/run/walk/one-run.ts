import type { StepRunner } from "../../journal/seam.ts";
import type { MachineState } from "../../machine/machine-state.ts";
import type { PipelineInRun } from "../execution.ts";
import type { RunAccount } from "../run-result.ts";

/** One run on its path. */
export interface Walk {
  readonly pipeline: PipelineInRun;
  readonly steps: StepRunner;
  readonly state: MachineState;
  readonly account: RunAccount;
  /** The same object for all executions of the run in this process. */
  readonly kept: object;
}
