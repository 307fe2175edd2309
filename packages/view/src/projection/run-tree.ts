import { field, type Json, parseSiblingId, type SluiceEvent } from "@sluice/core";
import { numberAt, textAt } from "../words/fields.ts";
import type { ExecutionView, ForkView, Hop, RunView, StateView } from "./run-view.ts";

type Fork = NonNullable<ExecutionView["fork"]>;
type Shape = Pick<RunView, "initial" | "states" | "path" | "forks">;

/** Where something stands among the records of a tree of runs: a child's records stand behind the fork that started it. */
type Position = readonly number[];

interface Begun {
  readonly key: string;
  readonly runId: string;
  readonly seq: number;
}

/** What is known of a run's pipeline and of the runs below it: states, ways, forks, and in which order executions began. */
export class RunTree {
  readonly #rootId: string;
  /** The next record of each run. */
  readonly #next = new Map<string, number>();
  readonly #states = new Map<string, StateView>();
  readonly #forks = new Map<string, ForkView>();
  /** The record that forked, by run and fork. */
  readonly #forkedAt = new Map<string, number>();
  readonly #path: Hop[] = [];
  readonly #begun: Begun[] = [];
  #initial: string | undefined;
  #order: readonly string[] | undefined;
  #view: Shape | undefined;

  constructor(rootId: string) {
    this.#rootId = rootId;
  }

  /** False for a record that was taken before. */
  take(runId: string, seq: number): boolean {
    if (seq < (this.#next.get(runId) ?? 0)) return false;
    this.#next.set(runId, seq + 1);
    return true;
  }

  began(key: string, { runId, stateId }: { readonly runId: string; readonly stateId: string }, seq: number): void {
    this.#begun.push({ key, runId, seq });
    this.#order = undefined;
    // A sibling's state is named by its fork.
    if (runId !== this.#rootId) return;
    this.#initial ??= stateId;
    this.#named(stateId);
  }

  /** What `run.started` says of the pipeline's states. */
  shaped(shape: Json | undefined): void {
    const states = field(shape, "states");
    if (!Array.isArray(states)) return;
    this.#view = undefined;
    this.#states.clear();
    for (const state of states) {
      const id = textAt(state, "id");
      if (id === "") continue;
      const turnCap = numberAt(state, "turnCap");
      const targets = field(state, "targets");
      this.#states.set(id, {
        id,
        kind: textAt(state, "kind"),
        ...(Array.isArray(targets) ? { targets: textsAt(targets) } : {}),
        ...(turnCap > 0 ? { turnCap } : {}),
      });
    }
    const initial = textAt(shape, "initial");
    if (initial !== "") this.#initial = initial;
  }

  forked({ runId, data }: SluiceEvent, seq: number): void {
    const fork = textAt(data, "fanOut");
    const siblings = textsAt(field(data, "siblings"));
    const join = textAt(data, "join");
    const key = forkKey(runId, fork);
    this.#forks.set(key, { runId, fork, siblings, join, joined: false });
    this.#forkedAt.set(key, seq);
    this.#order = undefined;
    this.#view = undefined;
    for (const state of [...siblings, join]) this.#named(state);
  }

  joined({ runId, data }: SluiceEvent): void {
    const key = forkKey(runId, textAt(data, "fanOut"));
    const fork = this.#forks.get(key);
    if (fork === undefined) return;
    this.#forks.set(key, { ...fork, joined: true });
    this.#view = undefined;
  }

  routed({ runId, data }: SluiceEvent): void {
    const choice = textAt(data, "choice");
    if (!isChoice(choice)) return;
    const to = field(data, "to");
    const targets = typeof to === "string" ? [to] : textsAt(to);
    const join = textAt(data, "join");
    const from = textAt(data, "from");
    this.#path.push({ runId, from, choice, to: targets, ...(join === "" ? {} : { join }) });
    this.#view = undefined;
    for (const state of [from, ...targets, join]) this.#named(state);
  }

  /** The fork that a run is a sibling of. */
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
      .map(({ key, runId, seq }) => ({ key, runId, at: [...this.#positionOf(runId), seq] }))
      .sort((a, b) => compare(a.at, b.at) || (a.runId < b.runId ? -1 : a.runId > b.runId ? 1 : 0))
      .map(({ key }) => key);
    return this.#order;
  }

  view(): Shape {
    this.#view ??= {
      ...(this.#initial === undefined ? {} : { initial: this.#initial }),
      states: [...this.#states.values()],
      path: [...this.#path],
      forks: [...this.#forks.values()],
    };
    return this.#view;
  }

  #positionOf(runId: string): Position {
    const parts = parseSiblingId(runId);
    if (parts === undefined) return [];
    const key = forkKey(parts.parentId, parts.fanOut);
    const seq = this.#forkedAt.get(key) ?? Number.POSITIVE_INFINITY;
    const index = this.#forks.get(key)?.siblings.indexOf(parts.key) ?? -1;
    return [...this.#positionOf(parts.parentId), seq, index === -1 ? Number.POSITIVE_INFINITY : index];
  }

  /** A state that the pipeline's shape does not tell of. */
  #named(id: string): void {
    if (id === "" || this.#states.has(id)) return;
    this.#states.set(id, { id, kind: "" });
    this.#view = undefined;
  }
}

function compare(a: Position, b: Position): number {
  for (let index = 0; index < Math.max(a.length, b.length); index += 1) {
    const [left, right] = [a[index] ?? -1, b[index] ?? -1];
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}

function forkKey(runId: string, fork: string): string {
  return JSON.stringify([runId, fork]);
}

function isChoice(choice: string): choice is Hop["choice"] {
  return choice === "to" || choice === "fanOut" || choice === "done" || choice === "fail" || choice === "cancel";
}

function textsAt(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
