import { parseSiblingId } from "@sluice/core/runtime";
import { executionKey } from "../execution-reducer.ts";
import type { ExecutionView, Rest } from "../run-view.ts";

/** When an execution did not work. */
export type Rested = Pick<ExecutionView, "rests" | "restMs" | "restingSince">;

interface RestSpan {
  readonly from: number;
  to: number;
}

/** A run that an execution started itself. */
interface OwnRun {
  readonly runId: string;
  readonly from: number;
  to: number;
  /** Its executions. */
  readonly keys: Set<string>;
}

/** The times in which executions slept or waited for runs that slept, and in which no process executed the run. */
export class Rests {
  /** By execution; those of the run have the key ''. */
  readonly #spans = new Map<string, RestSpan[]>();
  /** By the execution that started them. */
  readonly #ownRuns = new Map<string, OwnRun[]>();
  readonly #runs = new Map<string, OwnRun>();

  began(key: string, from: number): void {
    const spans = this.#spans.get(key) ?? [];
    this.#spans.set(key, spans);
    this.ended(key, from);
    spans.push({ from, to: Number.POSITIVE_INFINITY });
  }

  ended(key: string, to: number): void {
    const last = this.#spans.get(key)?.at(-1);
    if (last?.to === Number.POSITIVE_INFINITY) last.to = Math.max(last.from, to);
  }

  /** A run below another one: of a fan-out, or of an execution that runs pipelines itself. */
  runStarted(runId: string, from: number): void {
    const parent = ownerOf(runId);
    if (parent === undefined) return;
    const run: OwnRun = { runId, from, to: Number.POSITIVE_INFINITY, keys: new Set() };
    this.#runs.set(runId, run);
    const runs = this.#ownRuns.get(parent);
    if (runs === undefined) this.#ownRuns.set(parent, [run]);
    else runs.push(run);
  }

  runEnded(runId: string, to: number): void {
    const run = this.#runs.get(runId);
    if (run !== undefined) run.to = to;
  }

  executed(runId: string, key: string): void {
    this.#runs.get(runId)?.keys.add(key);
  }

  /**
   * Between two times; `to` is undefined if the second is still to come. `killedAt` is when the run's process ended without a
   * record, if it has not been resumed.
   */
  of(key: string, from: number, to = Number.POSITIVE_INFINITY, killedAt = Number.POSITIVE_INFINITY): Rested {
    const killed = { from: killedAt, to: Number.POSITIVE_INFINITY };
    const spans = merged([...(this.#spans.get("") ?? []), ...this.#restsOf(key), killed]);
    const rests: Rest[] = [];
    let restMs = 0;
    for (const span of spans) {
      const [begin, end] = [Math.max(from, span.from), Math.min(to, span.to)];
      if (end === Number.POSITIVE_INFINITY) return { rests: [...rests, { from: begin }], restMs, restingSince: begin };
      if (end <= begin) continue;
      rests.push({ from: begin, to: end });
      restMs += end - begin;
    }
    return { rests, restMs };
  }

  /** Its own sleeps, and the times in which all runs that it started rested. */
  #restsOf(key: string): readonly RestSpan[] {
    const own = this.#spans.get(key) ?? [];
    const runs = this.#ownRuns.get(key);
    if (runs === undefined) return own;
    const last = Math.max(...runs.map(({ to }) => to));
    // Its owner does not wait for a run that has ended.
    const rested = runs.map((run) =>
      merged([...[...run.keys].flatMap((each) => this.#restsOf(each)), { from: run.to, to: last }]),
    );
    return [...own, ...rested.reduce(common)];
  }
}

/** How long an execution worked, in milliseconds: without the time in which it slept or no process executed it. */
export function workedMs(
  execution: {
    readonly startedAt: number;
    readonly endedAt?: number;
    readonly restMs: number;
    readonly restingSince?: number;
  },
  now: number,
): number {
  const { startedAt, endedAt = now, restMs, restingSince = endedAt } = execution;
  return Math.max(0, Math.min(endedAt, restingSince) - startedAt - restMs);
}

interface Worked {
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly rests: readonly { readonly from: number; readonly to?: number }[];
}

/** How long at least one of several executions worked, in milliseconds. */
export function workedTogetherMs(executions: readonly Worked[], now: number): number {
  const spans = executions.flatMap(({ startedAt, endedAt = now, rests }) => {
    const edges = [startedAt, ...rests.flatMap(({ from, to = endedAt }) => [from, to]), endedAt];
    return Array.from({ length: edges.length / 2 }, (_, at) => ({
      from: edges[at * 2] ?? endedAt,
      to: Math.min(endedAt, edges[at * 2 + 1] ?? endedAt),
    }));
  });
  let [sum, reached] = [0, Number.NEGATIVE_INFINITY];
  for (const { from, to } of spans.toSorted((a, b) => a.from - b.from)) {
    sum += Math.max(0, to - Math.max(from, reached));
    reached = Math.max(reached, to);
  }
  return sum;
}

/** The execution that started a run itself; undefined for the runs of a fan-out and for the root. */
export function ownerOf(runId: string): string | undefined {
  const { parentId, fanOut = "" } = parseSiblingId(runId) ?? {};
  const [, executionId] = /^(.+):a\d+:/s.exec(fanOut) ?? [];
  return parentId === undefined || executionId === undefined ? undefined : executionKey(parentId, executionId);
}

/** The same times in order, without overlaps. */
function merged(spans: readonly RestSpan[]): readonly RestSpan[] {
  const all: RestSpan[] = [];
  for (const { from, to } of spans.toSorted((a, b) => a.from - b.from)) {
    const last = all.at(-1);
    if (to <= from) continue;
    if (last !== undefined && from <= last.to) last.to = Math.max(last.to, to);
    else all.push({ from, to });
  }
  return all;
}

/** The times that are in both of two merged lists. */
function common(some: readonly RestSpan[], others: readonly RestSpan[]): readonly RestSpan[] {
  return some.flatMap((one) =>
    others.flatMap((other) => {
      const [from, to] = [Math.max(one.from, other.from), Math.min(one.to, other.to)];
      return from < to ? [{ from, to }] : [];
    }),
  );
}
