import { field, type Json, type SluiceEvent } from "@sluice/core";
import { parseSiblingId } from "@sluice/core/runtime";
import type { EventLine } from "../words/describe-event.ts";
import { numberAt, textAt, textsAt } from "../words/fields.ts";
import type { ExecutionView, ForkView, Hop, RouteView, RunView, StateView } from "./run-view.ts";

type Fork = NonNullable<ExecutionView["fork"]>;
type Shape = Pick<RunView, "initial" | "states" | "path" | "routes" | "forks">;

/** A position among the records of a tree of runs: a child's records come after the fan-out that started it. */
type Position = readonly number[];

interface Begun {
  readonly key: string;
  readonly runId: string;
  readonly seq: number;
}

/** The states of a run's pipeline, its transitions and fan-outs, and the order of its executions. */
export class RunTree {
  readonly #rootId: string;
  /** The next position of each run. */
  readonly #next = new Map<string, number>();
  readonly #states = new Map<string, StateView>();
  readonly #forks = new Map<string, ForkView>();
  /** The record of each fan-out, and the positions of its siblings. */
  readonly #forkedAt = new Map<string, { readonly seq: number; readonly places: ReadonlyMap<string, number> }>();
  readonly #positions = new Map<string, Position>();
  readonly #routes: RouteView[] = [];
  readonly #begun: Begun[] = [];
  #initial: string | undefined;
  #order: readonly string[] | undefined;
  #view: Shape | undefined;

  constructor(rootId: string) {
    this.#rootId = rootId;
  }

  /** Advances a run from `position` to `next`. Returns false for a position that was passed before. */
  take(runId: string, position: number, next: number): boolean {
    if (position < (this.#next.get(runId) ?? 0)) return false;
    this.#next.set(runId, next);
    return true;
  }

  began(key: string, { runId, stateId }: { readonly runId: string; readonly stateId: string }, seq: number): void {
    this.#begun.push({ key, runId, seq });
    this.#order = undefined;
    // The fan-out names the states of siblings.
    if (runId !== this.#rootId) return;
    this.#initial ??= stateId;
    this.#addState(stateId);
  }

  /** The pipeline's states, from `run.started`. */
  shaped(shape: Json | undefined): void {
    const states = field(shape, "states");
    if (!Array.isArray(states)) return;
    this.#view = undefined;
    this.#states.clear();
    for (const state of states) {
      const id = textAt(state, "id");
      if (id === "") continue;
      const turnCap = numberAt(state, "turnCap");
      this.#states.set(id, {
        id,
        kind: textAt(state, "kind"),
        ...(Array.isArray(field(state, "targets")) ? { targets: textsAt(state, "targets") } : {}),
        ...(turnCap > 0 ? { turnCap } : {}),
      });
    }
    const initial = textAt(shape, "initial");
    if (initial !== "") this.#initial = initial;
  }

  forked({ runId, data }: SluiceEvent, seq: number): void {
    const fork = textAt(data, "fanOut");
    const siblings = textsAt(data, "siblings");
    const join = textAt(data, "join");
    const list = textAt(data, "list");
    const key = forkKey(runId, fork);
    this.#forks.set(key, { runId, fork, siblings, ...(list === "" ? {} : { list }), join, joined: false });
    this.#forkedAt.set(key, { seq, places: new Map(siblings.map((sibling, at) => [sibling, at])) });
    this.#positions.clear();
    this.#order = undefined;
    this.#view = undefined;
    for (const state of [...(list === "" ? siblings : [list]), join]) this.#addState(state);
  }

  joined({ runId, data }: SluiceEvent): void {
    const key = forkKey(runId, textAt(data, "fanOut"));
    const fork = this.#forks.get(key);
    if (fork === undefined) return;
    this.#forks.set(key, { ...fork, joined: true });
    this.#view = undefined;
  }

  routed(event: SluiceEvent, { by, why }: EventLine): void {
    const { runId, executionId = "", at, data } = event;
    const hop = hopOf(event);
    if (event.type === "route.decided" && hop === undefined) return;
    const from = executionId || textAt(data, "from");
    this.#routes.push({ runId, executionId: from, at, ...(hop === undefined ? {} : { hop }), by, why });
    this.#view = undefined;
    if (hop !== undefined) for (const state of [hop.from, ...hop.to, hop.join ?? ""]) this.#addState(state);
  }

  /** The fan-out that a run is a sibling of. */
  forkOf(runId: string): Fork | undefined {
    const parts = parseSiblingId(runId);
    if (parts === undefined || !runId.startsWith(`${this.#rootId}/`)) return undefined;
    const known = this.#forks.get(forkKey(parts.parentId, parts.fanOut));
    return { runId: parts.parentId, fork: parts.fanOut, join: known?.join ?? "" };
  }

  turnCapOf(stateId: string): number | undefined {
    return this.#states.get(stateId)?.turnCap;
  }

  /** Keys of all executions, in the order they began. */
  order(): readonly string[] {
    this.#order ??= this.#begun
      .map(({ key, runId, seq }) => ({ key, runId, seq, at: this.#positionOf(runId) }))
      .sort((a, b) => compare(a.at, b.at, a.seq, b.seq) || (a.runId < b.runId ? -1 : a.runId > b.runId ? 1 : 0))
      .map(({ key }) => key);
    return this.#order;
  }

  view(): Shape {
    this.#view ??= {
      ...(this.#initial === undefined ? {} : { initial: this.#initial }),
      states: [...this.#states.values()],
      path: this.#routes.flatMap(({ hop }) => hop ?? []),
      routes: [...this.#routes],
      forks: [...this.#forks.values()],
    };
    return this.#view;
  }

  #positionOf(runId: string): Position {
    const known = this.#positions.get(runId);
    if (known !== undefined) return known;
    const parts = parseSiblingId(runId);
    const forked = parts && this.#forkedAt.get(forkKey(parts.parentId, parts.fanOut));
    const last = Number.POSITIVE_INFINITY;
    const position =
      parts === undefined
        ? []
        : [...this.#positionOf(parts.parentId), forked?.seq ?? last, forked?.places.get(parts.key) ?? last];
    this.#positions.set(runId, position);
    return position;
  }

  /** Adds a state that the recorded shape lacks. */
  #addState(id: string): void {
    if (id === "" || this.#states.has(id)) return;
    this.#states.set(id, { id, kind: "" });
    this.#view = undefined;
  }
}

/** Of two records, by the positions of their runs and their own. */
function compare(a: Position, b: Position, aSeq: number, bSeq: number): number {
  for (let index = 0; index <= Math.max(a.length, b.length); index += 1) {
    const left = a[index] ?? (index === a.length ? aSeq : -1);
    const right = b[index] ?? (index === b.length ? bSeq : -1);
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}

function forkKey(runId: string, fork: string): string {
  return JSON.stringify([runId, fork]);
}

/** Undefined for a rejected or unreadable route. */
function hopOf({ type, runId, data }: SluiceEvent): Hop | undefined {
  const choice = textAt(data, "choice");
  if (type !== "route.decided" || !isChoice(choice)) return undefined;
  const to = field(data, "to");
  const join = textAt(data, "join");
  const items = numberAt(data, "items");
  return {
    runId,
    from: textAt(data, "from"),
    choice,
    to: typeof to === "string" ? [to] : textsAt(data, "to"),
    ...(join === "" ? {} : { join }),
    ...(items === 0 ? {} : { items }),
  };
}

function isChoice(choice: string): choice is Hop["choice"] {
  return choice === "to" || choice === "fanOut" || choice === "done" || choice === "fail" || choice === "cancel";
}
