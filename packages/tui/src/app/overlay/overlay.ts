import { type ExecutionView, type RunView, stateLabel } from "@sluice/view";
import { isChord, type Key } from "../../composer/keys.ts";
import { endOf } from "../../run/end-rows.ts";
import { TranscriptWindow } from "../../run/transcript-window.ts";
import type { FrameSize } from "../app-state.ts";
import { createViewer, updateViewer, type Viewer } from "./viewer.ts";

/** What covers the frame: a list, a page, or the transcript of a stage. */
export class Overlay {
  readonly #transcripts = new Transcripts();
  readonly #view: () => RunView | undefined;
  #viewer: Viewer | undefined;
  #onEnter: ((row: number) => void) | undefined;
  /** The execution whose transcript is open. */
  #read: string | undefined;
  #size: FrameSize = { width: 80, height: 10 };

  /** `view` returns the run on screen. */
  constructor(view: () => RunView | undefined) {
    this.#view = view;
  }

  get viewer(): Viewer | undefined {
    return this.#viewer;
  }

  show(viewer: Viewer, onEnter?: (row: number) => void): void {
    this.#viewer = viewer;
    this.#onEnter = onEnter;
    this.#read = undefined;
  }

  close(): void {
    this.#viewer = undefined;
    this.#read = undefined;
  }

  /** Opens the transcript of an execution, if it exists. */
  read(key: string): void {
    const view = this.#view();
    const execution = view?.executions.find((one) => one.key === key);
    if (view === undefined || execution === undefined) return;
    this.show(this.#transcripts.viewer(view, execution));
    this.#read = key;
  }

  /** Updates an open transcript from its run. */
  grow(): void {
    const view = this.#view();
    const execution = view?.executions.find(({ key }) => key === this.#read);
    if (view !== undefined && execution !== undefined) this.#transcripts.rows(view, execution);
  }

  /** The size of the content in the last frame. */
  drawn(size: FrameSize): void {
    this.#size = size;
  }

  /** Whether it handled the key. Tab closes it and also goes to the card behind it. */
  key(key: Key): boolean {
    if (this.#viewer === undefined) return false;
    const { viewer, effect } = updateViewer(this.#viewer, key, this.#size);
    this.#viewer = viewer;
    switch (effect.kind) {
      case "close":
        this.close();
        return true;
      case "open":
        this.#onEnter?.(effect.row);
        return true;
      case "none":
        return true;
      case "unused":
        return this.#unusedKey(key);
    }
  }

  #unusedKey(key: Key): boolean {
    if (key.name === "tab") this.close();
    if (this.#read === undefined) return key.name !== "tab" && !key.ctrl && !key.alt;
    if (isChord(key, "o")) {
      this.#transcripts.toggleFolding();
      this.read(this.#read);
    } else if (key.name === "left" || key.name === "right") this.#next(key.name === "left" ? -1 : 1);
    return true;
  }

  #next(by: number): void {
    const executions = this.#view()?.executions ?? [];
    const index = executions.findIndex(({ key }) => key === this.#read);
    const next = executions[Math.max(0, Math.min(executions.length - 1, index + by))];
    if (next !== undefined) this.read(next.key);
  }
}

/** Executions whose layout is cached. */
const CACHED = 8;

/** The transcripts of executions, laid out once and extended as they grow. */
export class Transcripts {
  readonly #windows = new Map<string, TranscriptWindow>();
  #unfolded = false;

  /** The rows of an execution; the last one is followed by the end of its run. */
  rows(view: RunView, execution: ExecutionView): TranscriptWindow {
    const { key } = execution;
    const window = this.#windows.get(key) ?? new TranscriptWindow();
    this.#windows.delete(key);
    this.#windows.set(key, window);
    const [oldest] = this.#windows.keys();
    if (this.#windows.size > CACHED && oldest !== undefined) this.#windows.delete(oldest);
    window.update(execution, execution === view.executions.at(-1) ? endOf(view) : undefined);
    return window;
  }

  viewer(view: RunView, execution: ExecutionView): Viewer {
    const { stateId, attempt, visit } = execution;
    const visits = `${visit > 1 ? ` ×${visit}` : ""}${attempt > 1 ? ` · attempt ${attempt}` : ""}`;
    const number = view.executions.indexOf(execution) + 1;
    const position = view.executions.length > 1 ? ` · ${number} of ${view.executions.length}, ←→ switch` : "";
    const hint = `Ctrl+O ${this.#unfolded ? "folds" : "unfolds"} all`;
    return createViewer(`${stateLabel(stateId)}${visits}${position}`, this.rows(view, execution), {
      atEnd: true,
      hint,
    });
  }

  /** Expands everything, or folds long items again. */
  toggleFolding(): void {
    this.#unfolded = !this.#unfolded;
    for (const window of this.#windows.values()) window.foldAll(!this.#unfolded);
  }
}
