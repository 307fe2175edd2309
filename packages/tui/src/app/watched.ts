import type { Clock } from "@sluice/core";
import type { RunView } from "@sluice/view";
import { type RunWatch, watchRun } from "@sluice/view/records";
import type { KnownRun } from "./engine.ts";

/** A watched run, and which part of it is shown. */
export interface Watched {
  readonly run: KnownRun;
  readonly watch: RunWatch;
  /** The execution that is shown; the newest active one if undefined. */
  chosen: string | undefined;
  /** Items of `view().log` that are printed. */
  printed: number;
}

/** The runs that the app watches, and the one on screen. */
export class WatchedRuns {
  readonly #clock: Clock;
  readonly #changed: (runId: string) => void;
  readonly #onError: (error: unknown) => void;
  readonly #runs = new Map<string, Watched>();
  #focus: string | undefined;

  constructor(clock: Clock, changed: (runId: string) => void, onError: (error: unknown) => void) {
    this.#clock = clock;
    this.#changed = changed;
    this.#onError = onError;
  }

  get focus(): Watched | undefined {
    return this.#focus === undefined ? undefined : this.#runs.get(this.#focus);
  }

  all(): readonly Watched[] {
    return [...this.#runs.values()];
  }

  /** The runs that are not on screen. */
  others(): readonly Watched[] {
    const { focus } = this;
    return this.all().filter((one) => one !== focus);
  }

  /** The active runs of this process. */
  working(): readonly Watched[] {
    return this.all().filter(({ run, watch }) => run.handle !== undefined && watch.view().endedAt === undefined);
  }

  get(runId: string): Watched | undefined {
    return this.#runs.get(runId);
  }

  /** Watches a run and shows it. A run that this process resumed since is streamed from now on. */
  turnTo(run: KnownRun): Watched {
    this.#focus = run.runId;
    const known = this.#runs.get(run.runId);
    if (known !== undefined && known.run.host === run.host) {
      if (run.handle !== undefined) known.watch.listenTo(run.handle);
      const again = { ...known, run: run.handle === undefined ? known.run : run };
      this.#runs.set(run.runId, again);
      return again;
    }
    const watch = watchRun(run.host, run.runId, {
      clock: this.#clock,
      onError: this.#onError,
      ...(run.handle === undefined ? {} : { handle: run.handle }),
    });
    const made: Watched = { run, watch, chosen: undefined, printed: 0 };
    this.#runs.set(run.runId, made);
    watch.subscribe(() => this.#changed(run.runId));
    return made;
  }

  close(): void {
    for (const { watch } of this.#runs.values()) watch.close();
    this.#runs.clear();
  }
}

/** The execution on screen: the chosen one, else the newest active one, else the newest. */
export function chosenOf(
  { executions }: RunView,
  chosen: string | undefined,
): RunView["executions"][number] | undefined {
  const picked = chosen === undefined ? undefined : executions.find(({ key }) => key === chosen);
  return picked ?? executions.findLast(isActive) ?? executions.at(-1);
}

/** The executions to switch between: the active ones, or all if none is active. */
function choicesOf({ executions }: RunView): RunView["executions"] {
  const active = executions.filter(isActive);
  return active.length > 0 ? active : executions;
}

function isActive({ status }: RunView["executions"][number]): boolean {
  return status === "running" || status === "waiting" || status === "retrying";
}

/** The next execution to show; after the last one, the first. */
export function keyAfter(view: RunView, chosen: string | undefined): string | undefined {
  const choices = choicesOf(view);
  const at = choices.findIndex(({ key }) => key === chosenOf(view, chosen)?.key);
  return choices[(at + 1) % Math.max(1, choices.length)]?.key;
}
