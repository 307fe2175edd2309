import type { RunView } from "@sluice/view";
import type { FrameSize } from "../../screen/frame.ts";
import { isChord, type Key } from "../keys.ts";
import { Transcripts } from "./transcripts.ts";
import { updateViewer, type Viewer } from "./viewer.ts";

/** What lies over the frame: a list, a page, or the transcript of a stage. */
export class Overlay {
  readonly #transcripts = new Transcripts();
  readonly #view: () => RunView | undefined;
  #viewer: Viewer | undefined;
  #onEnter: ((row: number) => void) | undefined;
  /** The execution whose transcript it is. */
  #read: string | undefined;
  #size: FrameSize = { width: 80, height: 10 };

  /** `view` is the run that is looked at. */
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

  /** Opens the transcript of an execution. False when there is no such one. */
  read(key: string): boolean {
    const view = this.#view();
    const execution = view?.executions.find((one) => one.key === key);
    if (view === undefined || execution === undefined) return false;
    this.show(this.#transcripts.viewer(view, execution));
    this.#read = key;
    return true;
  }

  /** What is open grows with its run. */
  grow(): void {
    const view = this.#view();
    const execution = view?.executions.find(({ key }) => key === this.#read);
    if (view !== undefined && execution !== undefined) this.#transcripts.rows(view, execution);
  }

  /** Rows and columns of its content as they were drawn. */
  drawn(size: FrameSize): void {
    this.#size = size;
  }

  /** Whether it had the key. Tab closes it and is for whoever waits behind it. */
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
        return this.#beyond(key);
    }
  }

  #beyond(key: Key): boolean {
    if (key.name === "tab") this.close();
    if (this.#read === undefined) return key.name !== "tab" && !key.ctrl && !key.alt;
    if (isChord(key, "o")) {
      this.#transcripts.turnFolding();
      this.read(this.#read);
    } else if (key.name === "left" || key.name === "right") this.#next(key.name === "left" ? -1 : 1);
    return true;
  }

  #next(by: number): void {
    const all = this.#view()?.executions ?? [];
    const at = all.findIndex(({ key }) => key === this.#read);
    const next = all[Math.max(0, Math.min(all.length - 1, at + by))];
    if (next !== undefined) this.read(next.key);
  }
}
