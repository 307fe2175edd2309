import { SluiceError } from "../base/errors.ts";
import type { JournalRecord, OpenRequest, ReceivedSignal } from "./seam.ts";
import type { JournalStore, NewRunRow, RunRow } from "./store.ts";

interface MemoryRun {
  row: Omit<RunRow, "owner" | "records" | "head">;
  readonly records: JournalRecord[];
  readonly signals: Map<string, ReceivedSignal[]>;
  readonly requests: Map<string, OpenRequest>;
}
interface MemoryTree {
  owner: string | undefined;
  epoch: number;
  readonly runIds: string[];
}

/** Journals kept in this process. Every `connect()` is an owner of its own, so several hosts can share one memory. */
export interface JournalMemory {
  connect(): JournalStore;
}

export interface JournalMemoryOptions {
  /** Finished runs that stay readable, with their children; older ones leave memory. 100 when omitted. */
  readonly keepFinished?: number;
}

export function createJournalMemory(options: JournalMemoryOptions = {}): JournalMemory {
  const keepFinished = options.keepFinished ?? 100;
  const finished: string[] = [];
  const runs = new Map<string, MemoryRun>();
  const trees = new Map<string, MemoryTree>();
  const live = new Set<string>();
  const listeners = new Set<() => void>();
  let connections = 0;

  const changed = (): void => {
    for (const listener of listeners) listener();
  };
  const runOf = (runId: string): MemoryRun => {
    const run = runs.get(runId);
    if (run === undefined) throw unknownRun(runId);
    return run;
  };
  const treeOf = (rootId: string): MemoryTree => {
    const tree = trees.get(rootId);
    if (tree === undefined) throw unknownRun(rootId);
    return tree;
  };
  /** A long-lived process must not grow with the runs it has finished. */
  const retire = (rootId: string): void => {
    finished.push(rootId);
    while (finished.length > keepFinished) {
      const oldest = finished.shift();
      if (oldest === undefined) return;
      for (const runId of trees.get(oldest)?.runIds ?? []) runs.delete(runId);
      trees.delete(oldest);
    }
  };
  const view = (run: MemoryRun): RunRow => {
    const owner = trees.get(run.row.rootId)?.owner;
    return {
      ...run.row,
      records: run.records.length,
      head: run.records.at(-1)?.hash ?? "",
      ...(owner === undefined ? {} : { owner: { id: owner, label: `this process (${owner})`, live: live.has(owner) } }),
    };
  };

  return {
    connect() {
      connections += 1;
      const ownerId = `memory-${connections}`;
      live.add(ownerId);
      const own = new Set<() => void>();
      let closed = false;
      const guard = (): void => {
        if (closed) throw new SluiceError("Host", "store_closed", "the run store was closed; open it again to go on");
      };
      const checkOwner = (rootId: string, epoch: number | undefined): void => {
        const tree = treeOf(rootId);
        if (tree.owner !== ownerId || (epoch !== undefined && tree.epoch !== epoch)) {
          throw new SluiceError("Host", "ownership_lost", `run ${rootId} was taken over by another owner`);
        }
      };
      const keep = (run: MemoryRun, commit: { record: JournalRecord; opened: readonly OpenRequest[]; closed: readonly string[] }): void => {
        run.records.push(commit.record);
        for (const request of commit.opened) run.requests.set(request.requestId, request);
        for (const requestId of commit.closed) run.requests.delete(requestId);
      };

      return {
        ownerId,
        create(seed: NewRunRow, commit) {
          guard();
          if (runs.has(seed.runId)) throw new SluiceError("Host", "run_exists", `a run ${seed.runId} exists already`);
          if (seed.runId === seed.rootId) trees.set(seed.rootId, { owner: ownerId, epoch: 1, runIds: [] });
          else checkOwner(seed.rootId, commit.epoch);
          const run: MemoryRun = { row: seed, records: [], signals: new Map(), requests: new Map() };
          keep(run, commit);
          runs.set(seed.runId, run);
          const tree = treeOf(seed.rootId);
          tree.runIds.push(seed.runId);
          changed();
          return tree.epoch;
        },
        claim(rootId) {
          guard();
          const tree = treeOf(rootId);
          if (tree.owner !== undefined && live.has(tree.owner) && tree.owner !== ownerId) {
            throw new SluiceError("Host", "run_owned", `run ${rootId} is owned by ${tree.owner}, which is alive`);
          }
          tree.owner = ownerId;
          tree.epoch += 1;
          return tree.epoch;
        },
        release(rootId) {
          const tree = trees.get(rootId);
          if (tree?.owner === ownerId) tree.owner = undefined;
          changed();
        },
        append(commit) {
          guard();
          const run = runOf(commit.runId);
          checkOwner(run.row.rootId, commit.epoch);
          if (commit.record.seq !== run.records.length) {
            throw new SluiceError("Host", "ownership_lost", `run ${commit.runId} has a record ${commit.record.seq} already`);
          }
          keep(run, commit);
          if (commit.end !== undefined) {
            run.row = { ...run.row, end: commit.end };
            run.requests.clear();
            if (commit.runId === run.row.rootId) retire(commit.runId);
          }
          changed();
        },
        run: (runId) => {
          guard();
          const run = runs.get(runId);
          return run === undefined ? undefined : view(run);
        },
        runs: (rootId) => {
          guard();
          const ids = rootId === undefined ? [...trees.keys()].reverse() : (trees.get(rootId)?.runIds ?? []);
          return ids.map((id) => view(runOf(id)));
        },
        records: (runId, from) => {
          guard();
          return runOf(runId).records.slice(from);
        },
        putSignal(runId, message, at) {
          guard();
          const run = runs.get(runId);
          if (run === undefined || run.row.end !== undefined) return "unknown";
          const arrived = run.signals.get(message.name) ?? [];
          if (message.name.startsWith("request/")) {
            if (arrived.length > 0) return "already_answered";
            const request = run.requests.get(message.name.slice("request/".length));
            if (request === undefined) return "unknown";
            if (message.digest !== undefined && message.digest !== request.digest) return "digest_mismatch";
          }
          arrived.push({ payload: message.payload, by: message.by, at });
          run.signals.set(message.name, arrived);
          changed();
          return "accepted";
        },
        signals: (runId, name) => {
          guard();
          return [...(runOf(runId).signals.get(name) ?? [])];
        },
        requestCancel(runId, reason, by, at) {
          guard();
          const run = runs.get(runId);
          if (run === undefined) return false;
          run.row = { ...run.row, cancel: { reason, by, at } };
          changed();
          return true;
        },
        requests: (rootId) => {
          guard();
          const ids = rootId === undefined ? [...runs.keys()] : (trees.get(rootId)?.runIds ?? []);
          return ids.flatMap((id) => [...runOf(id).requests.values()]).sort((a, b) => a.openedAt - b.openedAt);
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
          for (const listener of own) listeners.delete(listener);
          changed();
        },
      };
    },
  };
}

function unknownRun(runId: string): SluiceError {
  return new SluiceError("Session", "run_unknown", `there is no run ${runId} in this store`);
}
