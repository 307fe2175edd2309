import { field, type SluiceEvent } from "@sluice/core";
import { parseSiblingId } from "@sluice/core/runtime";

/** How far the times of one run's events are moved, and what they have reached. */
interface RunTimes {
  readonly process: number;
  shift: number;
  last: number;
}

/**
 * Puts the times of a run's events on one line that never runs backwards, although clocks may: what was recorded after a clock was
 * set back is moved to later. The times of events whose clock was right stay as they are.
 */
export class RunClock {
  readonly #runs = new Map<string, RunTimes>();
  /** Counts the processes that executed the run. */
  #process = 0;
  /** A process that executes nothing has begun to end the run. */
  #isClosed = false;
  /** How far the events of this process are moved at first. */
  #shift = 0;
  /** The latest event: as recorded and as moved. */
  #last: { readonly at: number; readonly time: number } | undefined;

  /** Call once for each event, in the order of their tree. Returns epoch milliseconds. */
  timeOf({ type, runId, at, data }: SluiceEvent): number {
    const isRoot = !runId.includes("/");
    // A fork begins now, and what it copied happened before.
    if (isRoot && type === "run.started" && field(data, "forkedFrom") !== undefined) return at;
    const closes = type === "run.finished" && data.unattended === true && !this.#isClosed;
    if (closes) this.#isClosed = true;
    if (closes || (isRoot && (type === "run.resumed" || type === "run.forked"))) this.#newProcess(at);
    const run = this.#runOf(runId);
    const time = Math.max(run.last, at + run.shift);
    run.shift = time - at;
    run.last = time;
    if (this.#last === undefined || time >= this.#last.time) this.#last = { at, time };
    return time;
  }

  /** Milliseconds that the last event of a run was moved. */
  shiftOf(runId: string): number {
    return this.#runs.get(runId)?.shift ?? 0;
  }

  #newProcess(at: number): void {
    this.#process += 1;
    if (this.#last === undefined) return;
    const { at: before, time } = this.#last;
    this.#shift = Math.max(0, time + Math.max(0, at - before) - at);
  }

  #runOf(runId: string): RunTimes {
    const known = this.#runs.get(runId);
    if (known?.process === this.#process) return known;
    const parent = this.#runs.get(parseSiblingId(runId)?.parentId ?? "");
    const shift = parent?.process === this.#process ? parent.shift : this.#shift;
    const run = { process: this.#process, shift, last: known?.last ?? Number.NEGATIVE_INFINITY };
    this.#runs.set(runId, run);
    return run;
  }
}
