import type { AuditFault, SluiceEvent } from "@sluice/core";
import type { RunView } from "../projection/run-view.ts";

/** All that a report is made of: nothing else is read, so that the same facts make the same page. */
export interface ReportFacts {
  readonly view: RunView;
  /** Of the run and of the runs below it, each run's in its own order. */
  readonly events: readonly SluiceEvent[];
  readonly chain: ChainFacts;
  /** Epoch milliseconds. */
  readonly madeAt: number;
  /** The version of Sluice that made it. */
  readonly version: string;
}

interface ChainFacts {
  /** Of all journals. */
  readonly records: number;
  readonly journals: number;
  /** Hash of the root's last record. */
  readonly head: string;
  /** What is not as it was written. */
  readonly faults: readonly AuditFault[];
  /** The command line that verifies it where the report was made. */
  readonly verify: string;
}
