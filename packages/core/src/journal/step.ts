import type { EventDraft } from "./events.ts";
import type { JournalRecord, StepCall, StepOptions } from "./seam.ts";

/** One kind of step: how its value comes about, and what the program gets of it. */
export interface Step<V, T> {
  readonly stepId: string;
  /** What an open record says before anything is done; without it there is none. Gone when it is written. */
  open: StepOptions["open"];
  /** Throws when this cannot be the recorded step; `known` is its open record, if there is one. */
  check?(known: JournalRecord | undefined): void;
  /** The value to record; not asked for on replay. `fresh` says that no earlier process began this step. */
  make(opened: StepCall["opened"], fresh: boolean): Promise<V> | V;
  /** Lets go of what `make` needed, however that ended. May be called again. */
  close?(): void;
  /** Events of the record that holds the value. */
  events(value: V): readonly EventDraft[];
  /** What the program gets of a recorded value, now and on replay. */
  hand(value: V): T;
}
