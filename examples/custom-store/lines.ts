// A custom store: journals as JSON lines in one file, each synced before it takes effect. It supports one process.
// conformance.test.ts tests it against the rules that Sluice relies on, and run.ts uses it.
import { closeSync, existsSync, fdatasyncSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import {
  type JournalRecord,
  type Json,
  type OpenRequest,
  type ReceivedSignal,
  type RunEnd,
  SluiceError,
} from "@sluice/core";
import type { Commit, JournalStore, NewRunRow, RunRow, WholeRun } from "@sluice/core/host";

type Cancel = NonNullable<RunRow["cancel"]>;
/** A change of the store: one line. */
type Change =
  | { readonly do: "create"; readonly run: NewRunRow; readonly owner: string; readonly commit: Part }
  | { readonly do: "tree"; readonly runs: readonly WholeRun[] }
  | { readonly do: "append"; readonly runId: string; readonly commit: Part }
  | { readonly do: "own"; readonly rootId: string; readonly owner: string | null }
  | { readonly do: "signal"; readonly runId: string; readonly name: string; readonly received: ReceivedSignal }
  | { readonly do: "cancel"; readonly runId: string; readonly cancel: Cancel }
  | { readonly do: "remove"; readonly rootIds: readonly string[] };
/** Signals of this name answer a request. */
const REQUEST = "request/";
type Part = Pick<Commit, "record" | "opened" | "closed" | "end" | "wakeAt">;

interface Run {
  readonly row: NewRunRow;
  readonly records: JournalRecord[];
  readonly requests: Map<string, OpenRequest>;
  /** The ids of requests that have an answer. */
  readonly answered: Set<string>;
  readonly signals: Map<string, ReceivedSignal[]>;
  end?: RunEnd;
  cancel?: Cancel;
}
interface Tree {
  owner: string | null;
  /** Counts owners: writes of an earlier one are refused. */
  epoch: number;
  /** When the run continues without an owner. */
  wakeAt?: number | null;
  /** A signal arrived since it was claimed. */
  signalled?: boolean;
  readonly runIds: string[];
}

/** The open file. Several hosts of this process may connect to it, but no other process may use it. */
export interface LineJournal {
  connect(): JournalStore;
  close(): void;
}

export function openLineJournal(file: string): LineJournal {
  const runs = new Map<string, Run>();
  const trees = new Map<string, Tree>();
  const live = new Set<string>();
  const listeners = new Set<() => void>();
  let connections = 0;

  const wakes = ({ rootId }: NewRunRow, { wakeAt }: Part): void => {
    const tree = trees.get(rootId);
    if (tree !== undefined && wakeAt !== undefined) tree.wakeAt = wakeAt;
  };
  /** Applies a change in memory; also used to read the file. */
  const apply = (change: Change): void => {
    switch (change.do) {
      case "create": {
        const { run, owner, commit } = change;
        if (run.runId === run.rootId) trees.set(run.rootId, { owner, epoch: 1, runIds: [] });
        trees.get(run.rootId)?.runIds.push(run.runId);
        const made: Run = { row: run, records: [], requests: new Map(), answered: new Set(), signals: new Map() };
        runs.set(run.runId, made);
        add(made, commit);
        break;
      }
      case "tree":
        for (const { row, records, end } of change.runs) {
          const { runId, rootId } = row;
          if (runId === rootId) trees.set(rootId, { owner: null, epoch: 1, runIds: [] });
          trees.get(rootId)?.runIds.push(runId);
          const whole = {
            row,
            records: [...records],
            requests: new Map(),
            answered: new Set<string>(),
            signals: new Map(),
          };
          runs.set(runId, end === undefined ? whole : { ...whole, end });
        }
        break;
      case "append":
        add(known(change.runId), change.commit);
        wakes(known(change.runId).row, change.commit);
        break;
      case "own": {
        const tree = trees.get(change.rootId);
        if (tree === undefined) break;
        tree.owner = change.owner;
        if (change.owner === null) break;
        tree.epoch += 1;
        tree.signalled = false;
        break;
      }
      case "signal": {
        const { signals, answered, row } = known(change.runId);
        const tree = trees.get(row.rootId);
        if (tree !== undefined) tree.signalled = true;
        signals.set(change.name, [...(signals.get(change.name) ?? []), change.received]);
        if (change.name.startsWith(REQUEST)) answered.add(change.name.slice(REQUEST.length));
        break;
      }
      case "cancel":
        known(change.runId).cancel = change.cancel;
        break;
      case "remove":
        // The lines stay in the file: an append-only file shrinks only by rewriting it.
        for (const rootId of change.rootIds) {
          for (const runId of trees.get(rootId)?.runIds ?? []) runs.delete(runId);
          trees.delete(rootId);
        }
    }
  };
  const known = (runId: string): Run => {
    const run = runs.get(runId);
    if (run === undefined) throw new SluiceError("Session", "run_unknown", `there is no run ${runId} in this store`);
    return run;
  };

  const descriptor = openSync(file, existsSync(file) ? "r+" : "wx+", 0o600);
  let size = 0;
  for (const line of readFileSync(file, "utf8").split(/(?<=\n)/)) {
    // An incomplete line was never confirmed.
    if (!line.endsWith("\n")) break;
    apply(JSON.parse(line));
    size += Buffer.byteLength(line);
  }
  ftruncateSync(descriptor, size);

  /** Writes and syncs before it changes memory. A failed write changes neither. */
  const commit = (change: Change): void => {
    const line = Buffer.from(`${JSON.stringify(change)}\n`);
    try {
      writeSync(descriptor, line, 0, line.length, size);
      fdatasyncSync(descriptor);
    } catch (cause) {
      ftruncateSync(descriptor, size);
      throw new SluiceError("Host", "store_io", `${file} cannot be written to`, { cause });
    }
    size += line.length;
    // As it was written, not as it was given: the caller may change what is his.
    apply(JSON.parse(line.toString()));
    for (const listener of [...listeners]) listener();
  };

  const rowOf = ({ row, records, end, cancel }: Run): RunRow => {
    const { owner, wakeAt } = trees.get(row.rootId) ?? {};
    return {
      ...copy(row),
      records: records.length,
      head: records.at(-1)?.hash ?? "",
      ...(end === undefined ? {} : { end: copy(end) }),
      ...(cancel === undefined ? {} : { cancel }),
      ...(wakeAt == null || row.runId !== row.rootId ? {} : { wakeAt }),
      ...(owner == null ? {} : { owner: { id: owner, label: owner, live: live.has(owner) } }),
    };
  };

  return {
    close: () => closeSync(descriptor),
    connect() {
      connections += 1;
      const ownerId = `lines-${process.pid}-${Date.now().toString(36)}-${connections}`;
      live.add(ownerId);
      let closed = false;
      const guard = (): void => {
        if (closed) throw new SluiceError("Host", "store_closed", "the store is closed");
      };
      const owned = (rootId: string, epoch: number | undefined): Tree => {
        guard();
        const tree = trees.get(rootId);
        if (tree === undefined)
          throw new SluiceError("Session", "run_unknown", `there is no run ${rootId} in this store`);
        if (tree.owner === ownerId && (epoch === undefined || epoch === tree.epoch)) return tree;
        throw new SluiceError("Host", "ownership_lost", `run ${rootId} was taken over by another owner`);
      };
      const own = new Set<() => void>();

      return {
        ownerId,
        create(run, { epoch, ...part }) {
          guard();
          if (runs.has(run.runId)) throw new SluiceError("Host", "run_exists", `a run ${run.runId} exists already`);
          if (run.runId !== run.rootId) owned(run.rootId, epoch);
          commit({ do: "create", run, owner: ownerId, commit: part });
          return trees.get(run.rootId)?.epoch ?? 1;
        },
        createWhole(whole) {
          guard();
          const taken = whole.find(({ row }) => runs.has(row.runId));
          if (taken !== undefined)
            throw new SluiceError("Host", "run_exists", `a run ${taken.row.runId} exists already`);
          commit({ do: "tree", runs: whole });
        },
        claim(rootId) {
          guard();
          const { row } = known(rootId);
          const tree = trees.get(row.runId);
          if (tree === undefined)
            throw new SluiceError("Session", "run_unknown", `${rootId} is a child; claim ${row.rootId}`);
          if (tree.owner !== null && tree.owner !== ownerId && live.has(tree.owner))
            throw new SluiceError("Host", "run_owned", `run ${rootId} is active under ${tree.owner}`);
          commit({ do: "own", rootId, owner: ownerId });
          return tree.epoch;
        },
        release(rootId) {
          if (trees.get(rootId)?.owner === ownerId) commit({ do: "own", rootId, owner: null });
        },
        append({ runId, epoch, ...part }) {
          guard();
          const run = known(runId);
          owned(run.row.rootId, epoch);
          if (run.end !== undefined)
            throw new SluiceError("Host", "run_finished", `run ${runId} is ${run.end.status}; nothing can be added`);
          if (part.record.seq !== run.records.length)
            throw new SluiceError("Host", "ownership_lost", `record ${part.record.seq} of ${runId} is not the next`);
          commit({ do: "append", runId, commit: part });
        },
        run(runId) {
          guard();
          const run = runs.get(runId);
          return run === undefined ? undefined : rowOf(run);
        },
        runs(rootId, limit) {
          guard();
          const roots = (): readonly string[] => [...trees.keys()].reverse().slice(0, limit);
          const ids = rootId === undefined ? roots() : (trees.get(rootId)?.runIds ?? []);
          return ids.map((id) => rowOf(known(id)));
        },
        records(runId, from, limit) {
          guard();
          return known(runId).records.slice(from, limit === undefined ? undefined : from + limit);
        },
        due(now, limit) {
          guard();
          return [...trees]
            .filter(([id, { owner }]) => known(id).end === undefined && (owner === null || !live.has(owner)))
            .filter(([, { wakeAt = null, signalled = false }]) => signalled || (wakeAt !== null && wakeAt <= now))
            .sort(([, a], [, b]) => (a.wakeAt ?? 0) - (b.wakeAt ?? 0))
            .slice(0, limit)
            .map(([id]) => id);
        },
        nextWake(now) {
          guard();
          const times = [...trees].flatMap(([id, { wakeAt = null }]) =>
            wakeAt !== null && wakeAt > now && known(id).end === undefined ? [wakeAt] : [],
          );
          return times.length === 0 ? undefined : Math.min(...times);
        },
        putSignal(runId, { name, payload, by, digest }, at) {
          guard();
          const run = runs.get(runId);
          if (run === undefined || run.end !== undefined) return "unknown";
          if (name.startsWith(REQUEST)) {
            const requestId = name.slice(REQUEST.length);
            if (run.answered.has(requestId)) return "already_answered";
            const request = run.requests.get(requestId);
            if (request === undefined) return "unknown";
            if (digest !== undefined && digest !== request.digest) return "digest_mismatch";
            if (typeof request.body.until === "number" && at > request.body.until) return "expired";
          }
          commit({ do: "signal", runId, name, received: { payload, by, at } });
          return "accepted";
        },
        signals: (runId, name) => {
          guard();
          return copy(known(runId).signals.get(name) ?? []);
        },
        requestCancel(runId, reason, by, at) {
          guard();
          if (!runs.has(runId)) return false;
          commit({ do: "cancel", runId, cancel: { reason, by, at } });
          return true;
        },
        requests(rootId) {
          guard();
          const ids = rootId === undefined ? [...runs.keys()] : (trees.get(rootId)?.runIds ?? []);
          const stored = ids.flatMap((id) => {
            const { requests, answered } = known(id);
            return [...requests.values()].map((one) => ({ ...one, answered: answered.has(one.requestId) }));
          });
          return copy(stored.sort((a, b) => a.openedAt - b.openedAt));
        },
        remove(rootIds) {
          guard();
          const gone = rootIds.filter((rootId) => {
            const { owner = null, runIds = [] } = trees.get(rootId) ?? {};
            const owned = owner !== null && live.has(owner);
            return !owned && runIds.length > 0 && runIds.every((id) => known(id).end !== undefined);
          });
          if (gone.length > 0) commit({ do: "remove", rootIds: gone });
          return gone;
        },
        onChange(listener) {
          const mine = (): void => listener();
          listeners.add(mine);
          own.add(mine);
          return () => {
            listeners.delete(mine);
            own.delete(mine);
          };
        },
        close() {
          closed = true;
          live.delete(ownerId);
          for (const mine of own) listeners.delete(mine);
          for (const listener of [...listeners]) listener();
        },
      };
    },
  };
}

function add(run: Run, { record, opened, closed, end }: Part): void {
  run.records.push(record);
  for (const request of opened) {
    run.requests.set(request.requestId, request);
    // One that is opened again takes another answer.
    run.answered.delete(request.requestId);
  }
  for (const requestId of closed) run.requests.delete(requestId);
  if (end === undefined) return;
  run.end = end;
  run.requests.clear();
}

/** Readers get their own. */
function copy<T extends Json | object>(value: T): T {
  return structuredClone(value);
}
