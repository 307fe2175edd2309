import type { Clock } from "@sluice/core";
import { type RunView, type RunWatch, watchRun } from "@sluice/view";
import type { KnownRun } from "./engine.ts";

/** A run that is followed, and what of it is looked at. */
export interface Watched {
  readonly run: KnownRun;
  readonly watch: RunWatch;
  /** The execution whose text is shown; the newest at work when undefined. */
  chosen: string | undefined;
  /** Things of `view().told` that the log has printed. */
  printed: number;
}

/** The runs the app follows, and the one that is looked at. */
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

  /** Those that are not looked at. */
  others(): readonly Watched[] {
    const { focus } = this;
    return this.all().filter((one) => one !== focus);
  }

  /** Those that work in this process. */
  working(): readonly Watched[] {
    return this.all().filter(({ run, watch }) => run.handle !== undefined && watch.view().endedAt === undefined);
  }

  get(runId: string): Watched | undefined {
    return this.#runs.get(runId);
  }

  /** Follows a run and turns to it. One that was taken up here since is heard from now on. */
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

/** What is looked at: the chosen execution, else the newest that is at work, else the newest of all. */
export function chosenOf(
  { executions }: RunView,
  chosen: string | undefined,
): RunView["executions"][number] | undefined {
  const picked = chosen === undefined ? undefined : executions.find(({ key }) => key === chosen);
  return picked ?? executions.findLast(isAtWork) ?? executions.at(-1);
}

/** The executions that somebody may want to switch between: those at work, or all when none is. */
function choicesOf({ executions }: RunView): RunView["executions"] {
  const atWork = executions.filter(isAtWork);
  return atWork.length > 0 ? atWork : executions;
}

function isAtWork({ status }: RunView["executions"][number]): boolean {
  return status === "running" || status === "waiting" || status === "retrying";
}

/** The next of what can be chosen, after the last one the first. */
export function keyAfter(view: RunView, chosen: string | undefined): string | undefined {
  const choices = choicesOf(view);
  const at = choices.findIndex(({ key }) => key === chosenOf(view, chosen)?.key);
  return choices[(at + 1) % Math.max(1, choices.length)]?.key;
}
