import { type ExecutionView, type RunView, stateLabel } from "@sluice/view";
import { endOf } from "../../run/end-rows.ts";
import { createTranscriptWindow, type TranscriptWindow } from "../../run/transcript-window.ts";
import { createViewer, type Viewer } from "./viewer.ts";

/** Executions whose layout is kept: switching back and forth costs nothing. */
const KEPT = 8;

/** The transcripts that are looked at, each laid out once and kept while it grows. */
export class Transcripts {
  readonly #windows = new Map<string, TranscriptWindow>();
  #unfolded = false;

  /** The rows of an execution as its newest view has them; the last one's with what its run came to. */
  rows(view: RunView, execution: ExecutionView): TranscriptWindow {
    const { key } = execution;
    const window = this.#windows.get(key) ?? createTranscriptWindow();
    this.#windows.delete(key);
    this.#windows.set(key, window);
    const [oldest] = this.#windows.keys();
    if (this.#windows.size > KEPT && oldest !== undefined) this.#windows.delete(oldest);
    window.update(execution, execution === view.executions.at(-1) ? endOf(view) : undefined);
    return window;
  }

  viewer(view: RunView, execution: ExecutionView): Viewer {
    const { stateId, attempt, visit } = execution;
    const more = `${visit > 1 ? ` ×${visit}` : ""}${attempt > 1 ? ` · attempt ${attempt}` : ""}`;
    const at = view.executions.indexOf(execution) + 1;
    const place = view.executions.length > 1 ? ` · ${at} of ${view.executions.length}, ←→ switch` : "";
    const hint = `Ctrl+O ${this.#unfolded ? "folds" : "unfolds"} all`;
    return createViewer(`${stateLabel(stateId)}${more}${place}`, this.rows(view, execution), { atEnd: true, hint });
  }

  /** Shows everything whole, or the beginnings of what is long. */
  turnFolding(): void {
    this.#unfolded = !this.#unfolded;
    for (const window of this.#windows.values()) window.foldAll(!this.#unfolded);
  }
}
