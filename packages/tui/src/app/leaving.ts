import { messageOf } from "@sluice/core/runtime";
import type { AppExit } from "./app-state.ts";
import type { Engine, KnownRun } from "./engine.ts";
import type { WatchedRuns } from "./watched.ts";

/** A second Ctrl-C within this time quits. */
const TWICE_MS = 2_000;
/** The exit code after SIGINT. */
export const INTERRUPTED = 130;

export interface LeavingOptions {
  readonly engine: Engine;
  readonly runs: WatchedRuns;
  readonly now: () => number;
  readonly say: (text: string) => void;
  /** Called once the engine is closed. */
  readonly closed: () => void;
}

/** Quits the app: its runs are suspended and can be resumed. */
export class Leaving {
  readonly #options: LeavingOptions;
  readonly #quitted = Promise.withResolvers<AppExit>();
  #interruptedAt: number | undefined;
  #begun = false;

  constructor(options: LeavingOptions) {
    this.#options = options;
  }

  get quitted(): Promise<AppExit> {
    return this.#quitted.promise;
  }

  get begun(): boolean {
    return this.#begun;
  }

  /** Ctrl-C: the first one warns, the second one quits. */
  interrupt(): void {
    const now = this.#options.now();
    if (this.#interruptedAt !== undefined && now - this.#interruptedAt < TWICE_MS) {
      this.quit(INTERRUPTED);
      return;
    }
    this.#interruptedAt = now;
    const working = this.#options.runs.working().length;
    const runs = working === 1 ? "the run is" : `${working} runs are`;
    this.#options.say(`Press Ctrl-C again to quit${working === 0 ? "" : `; ${runs} suspended and can be resumed`}`);
  }

  /** Any other key: the next Ctrl-C counts as the first one again. */
  resetInterrupt(): void {
    this.#interruptedAt = undefined;
  }

  quit(exitCode: number): void {
    if (this.#begun) return;
    this.#begun = true;
    void this.#leave(exitCode);
  }

  async #leave(exitCode: number): Promise<void> {
    const { engine, runs, say, closed } = this.#options;
    const working = runs.working().map(({ run }) => run);
    try {
      await engine.close();
    } catch (thrown) {
      say(messageOf(thrown));
    }
    closed();
    runs.close();
    this.#quitted.resolve({ exitCode, lines: working.map((run) => this.#resumeHint(run)) });
  }

  /** The resume command needs the working directory, which may be deleted; the run is suspended anyway. */
  #resumeHint(run: KnownRun): string {
    try {
      return `run ${run.runId} is suspended; resume it with: ${run.resumeCommand()}`;
    } catch (thrown) {
      return `run ${run.runId} is suspended (${messageOf(thrown)})`;
    }
  }
}
