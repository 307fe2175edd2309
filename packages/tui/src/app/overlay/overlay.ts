import { type RunView, stateLabel } from "@sluice/view";
import { isChord, type Key } from "../../composer/keys.ts";
import { endBelow } from "../../run/end-rows.ts";
import { TranscriptWindow } from "../../run/transcript-window.ts";
import { createViewer, type FrameSize, updateViewer, type Viewer } from "./viewer.ts";

/** Transcripts whose layout is cached. */
const CACHED = 8;

/** What covers the frame: a list, a page, or the transcript of a stage. */
export class Overlay {
  /** The transcripts that were opened last, by the key of their execution. */
  readonly #transcripts = new Map<string, TranscriptWindow>();
  #folded = true;
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
    const { executions = [] } = this.#view() ?? {};
    const execution = executions.find((one) => one.key === key);
    if (execution === undefined) return;
    const { stateId, attempt, visit } = execution;
    const visits = `${visit > 1 ? ` ×${visit}` : ""}${attempt > 1 ? ` · attempt ${attempt}` : ""}`;
    const number = executions.indexOf(execution) + 1;
    const position = executions.length > 1 ? ` · ${number} of ${executions.length}, ←→ switch` : "";
    const title = `${stateLabel(stateId)}${visits}${position}`;
    const hint = `Ctrl+O ${this.#folded ? "unfolds" : "folds"} all`;
    this.show(createViewer(title, this.#transcriptOf(key), { atEnd: true, hint }));
    this.#read = key;
    this.grow();
  }

  /** Updates an open transcript from its run. */
  grow(): void {
    const view = this.#view();
    const execution = view?.executions.find(({ key }) => key === this.#read);
    if (view !== undefined && execution !== undefined)
      this.#transcriptOf(execution.key).update(execution, endBelow(view, execution.key));
  }

  #transcriptOf(key: string): TranscriptWindow {
    const rows = this.#transcripts.get(key) ?? new TranscriptWindow(this.#folded);
    this.#transcripts.delete(key);
    this.#transcripts.set(key, rows);
    const [oldest] = this.#transcripts.keys();
    if (this.#transcripts.size > CACHED && oldest !== undefined) this.#transcripts.delete(oldest);
    return rows;
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
    switch (effect) {
      case "close":
        this.close();
        return true;
      case "open":
        this.#onEnter?.(viewer.chosen);
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
      this.#folded = !this.#folded;
      for (const rows of this.#transcripts.values()) rows.foldAll(this.#folded);
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
