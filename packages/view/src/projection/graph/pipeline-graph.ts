import { field, type Json } from "@sluice/core";
import { type TableRow, tableRowsIn } from "../../words/decision-table.ts";
import { numberAt, textAt, textsAt } from "../../words/fields.ts";
import type { InterruptView, PipelineView, StateView } from "../run-view.ts";

type Graph = Pick<PipelineView, "states" | "rows" | "interrupts" | "initial">;

/** The states, rows and interrupts of one pipeline: those that a run recorded, and those that it used. */
export class PipelineGraph {
  readonly #states = new Map<string, StateView>();
  #rows: readonly TableRow[] | undefined;
  #interrupts: readonly InterruptView[] = [];
  #initial: string | undefined;
  #view: Graph | undefined;

  /** Takes the graph that an event recorded. Returns whether there is one. */
  recorded(data: Json | undefined): boolean {
    const shape = field(data, "shape");
    const states = field(shape, "states");
    if (!Array.isArray(states)) return false;
    this.#view = undefined;
    this.#states.clear();
    for (const state of states) {
      const id = textAt(state, "id");
      if (id !== "") this.#states.set(id, stateView(id, state));
    }
    const initial = textAt(shape, "initial");
    if (initial !== "") this.#initial = initial;
    this.#rows = tableRowsIn(field(data, "rows"));
    this.#interrupts = interruptsIn(field(data, "interrupts"));
    return true;
  }

  /** Forgets the rows: the pipeline differs from the recorded one. */
  changed(): void {
    this.#rows = undefined;
    this.#view = undefined;
  }

  /** A state that the run uses. */
  uses(id: string): void {
    if (id === "" || this.#states.has(id)) return;
    this.#states.set(id, { id, kind: "" });
    this.#view = undefined;
  }

  /** The first state that is entered is the initial one, unless one is recorded. */
  begins(id: string): void {
    if (this.#initial === undefined) this.#view = undefined;
    this.#initial ??= id;
  }

  turnCapOf(state: string): number | undefined {
    return this.#states.get(state)?.turnCap;
  }

  get rows(): readonly TableRow[] | undefined {
    return this.#rows;
  }

  view(): Graph {
    this.#view ??= {
      ...(this.#initial === undefined ? {} : { initial: this.#initial }),
      states: [...this.#states.values()],
      rows: this.#rows ?? [],
      interrupts: this.#interrupts,
    };
    return this.#view;
  }
}

function stateView(id: string, state: Json): StateView {
  const turnCap = numberAt(state, "turnCap");
  const [label, outcome] = [textAt(state, "label"), textAt(state, "outcome")];
  return {
    id,
    kind: textAt(state, "kind"),
    ...(Array.isArray(field(state, "targets")) ? { targets: textsAt(state, "targets") } : {}),
    ...(turnCap > 0 ? { turnCap } : {}),
    ...(label === "" || label === id ? {} : { label }),
    ...(outcome === "" ? {} : { outcome }),
  };
}

function interruptsIn(interrupts: Json | undefined): readonly InterruptView[] {
  if (!Array.isArray(interrupts)) return [];
  return interrupts.map((one: Json) => ({
    name: textAt(one, "name"),
    files: textAt(one, "files"),
    target: textAt(one, "target"),
  }));
}
