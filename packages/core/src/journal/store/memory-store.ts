import { SluiceError } from "../../base/errors.ts";
import { deepFreeze } from "../../base/json.ts";
import type { JournalRecord, OpenRequest, ReceivedSignal, RunEnd } from "../seam.ts";
import type { Commit, JournalStore, NewRunRow, RunRow, StoreChange } from "./journal-store.ts";
import { unknownRun } from "./read-runs.ts";

interface MemoryRun {
  readonly seed: NewRunRow;
  readonly tree: MemoryTree;
  end?: RunEnd;
  cancel?: NonNullable<RunRow["cancel"]>;
  readonly records: JournalRecord[];
  /** By name; created on first use. */
  signals?: Map<string, ReceivedSignal[]>;
  /** Open requests, and the ids of those that were answered; created on first use. */
  requests?: Map<string, OpenRequest>;
  answered?: Set<string>;
}
interface MemoryTree {
  owner: string | undefined;
  epoch: number;
  readonly runIds: string[];
  wakeAt?: number | undefined;
  /** A signal arrived since it was claimed. */
  signalled?: boolean;
}

/** Journals in memory. Each `connect()` returns another owner, so several hosts can share them. */
export interface MemoryJournals {
  connect(): JournalStore;
}

export interface MemoryJournalsOptions {
  /** How many finished runs stay readable; older ones are dropped. Default: 100. */
  readonly keepFinished?: number;
}

export function createMemoryJournals(options: MemoryJournalsOptions = {}): MemoryJournals {
  const keepFinished = options.keepFinished ?? 100;
  const finished = new Set<string>();
  const runs = new Map<string, MemoryRun>();
  const trees = new Map<string, MemoryTree>();
  const live = new Set<string>();
  /** Objects, since one function may listen twice. */
  const listeners = new Set<{ readonly listener: (what: StoreChange) => void }>();
  let connections = 0;

  const changed = (what: StoreChange = "any"): void => {
    for (const { listener } of listeners) listener(what);
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
  /** The trees that have not ended. */
  const asleep = (): readonly (readonly [string, MemoryTree])[] =>
    [...trees].filter(([rootId]) => runOf(rootId).end === undefined);
  const drop = (rootId: string): void => {
    for (const runId of trees.get(rootId)?.runIds ?? []) runs.delete(runId);
    trees.delete(rootId);
  };
  /** Keeps the memory of a long-lived process bounded. */
  const retire = (rootId: string): void => {
    finished.add(rootId);
    for (const oldest of finished) {
      if (finished.size <= keepFinished) return;
      finished.delete(oldest);
      drop(oldest);
    }
  };
  const view = ({ seed, tree, records, end, cancel }: MemoryRun): RunRow => {
    const { runId, rootId, parentId, createdAt } = seed;
    const { owner, wakeAt } = tree;
    return {
      runId,
      rootId,
      createdAt,
      records: records.length,
      head: records.at(-1)?.hash ?? "",
      // Copied on access, since rows are read at every change.
      get input() {
        return cloneValue(seed.input);
      },
      ...(parentId === undefined ? {} : { parentId }),
      ...(end === undefined ? {} : { end }),
      ...(cancel === undefined ? {} : { cancel }),
      ...(runId === rootId && wakeAt !== undefined ? { wakeAt } : {}),
      ...(owner === undefined ? {} : { owner: { id: owner, label: `this process (${owner})`, live: live.has(owner) } }),
    };
  };

  return {
    connect() {
      connections += 1;
      const ownerId = `memory-${connections}`;
      live.add(ownerId);
      const own = new Set<{ readonly listener: (what: StoreChange) => void }>();
      let closed = false;
      const guard = (): void => {
        if (closed)
          throw new SluiceError("Host", "store_closed", "the run store was closed; open it again to continue");
      };
      const checkOwner = (tree: MemoryTree, rootId: string, epoch: number | undefined): void => {
        if (tree.owner !== ownerId || (epoch !== undefined && tree.epoch !== epoch)) {
          throw new SluiceError("Host", "ownership_lost", `run ${rootId} was taken over by another owner`);
        }
      };
      const keep = (run: MemoryRun, commit: Pick<Commit, "record" | "opened" | "closed" | "end" | "wakeAt">): void => {
        run.records.push(Object.freeze({ ...commit.record }));
        for (const request of commit.opened) {
          run.requests ??= new Map();
          run.requests.set(request.requestId, cloneValue(request));
          run.answered?.delete(request.requestId);
        }
        for (const requestId of commit.closed) run.requests?.delete(requestId);
        if (commit.wakeAt !== undefined) run.tree.wakeAt = commit.wakeAt ?? undefined;
        if (commit.end === undefined) return;
        // Frozen instead of copied, since it may be large.
        run.end = deepFreeze(commit.end);
        run.requests?.clear();
        if (run.seed.runId === run.seed.rootId) retire(run.seed.runId);
      };

      return {
        ownerId,
        create(seed: NewRunRow, commit) {
          guard();
          if (runs.has(seed.runId)) throw new SluiceError("Host", "run_exists", `a run ${seed.runId} already exists`);
          const { runId, rootId } = seed;
          if (runId === rootId) trees.set(rootId, { owner: ownerId, epoch: 1, runIds: [runId] });
          const tree = treeOf(rootId);
          if (runId !== rootId) {
            checkOwner(tree, rootId, commit.epoch);
            tree.runIds.push(runId);
          }
          const run: MemoryRun = { seed, tree, records: [] };
          runs.set(runId, run);
          keep(run, commit);
          changed();
          return tree.epoch;
        },
        createWhole(whole) {
          guard();
          const taken = whole.find(({ row }) => runs.has(row.runId));
          if (taken !== undefined)
            throw new SluiceError("Host", "run_exists", `a run ${taken.row.runId} already exists`);
          for (const { row, records, end } of whole) {
            const { runId, rootId } = row;
            if (runId === rootId) trees.set(rootId, { owner: undefined, epoch: 1, runIds: [] });
            const tree = treeOf(rootId);
            tree.runIds.push(runId);
            const run: MemoryRun = { seed: row, tree, records: records.map((record) => Object.freeze({ ...record })) };
            if (end !== undefined) run.end = deepFreeze(end);
            runs.set(runId, run);
          }
          changed();
        },
        claim(rootId) {
          guard();
          const tree = treeOf(rootId);
          if (tree.owner !== undefined && live.has(tree.owner) && tree.owner !== ownerId) {
            throw new SluiceError("Host", "run_owned", `run ${rootId} is owned by ${tree.owner}, which is alive`);
          }
          tree.owner = ownerId;
          tree.signalled = false;
          tree.epoch += 1;
          changed();
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
          checkOwner(run.tree, run.seed.rootId, commit.epoch);
          if (run.end !== undefined) {
            const message = `run ${commit.runId} is ${run.end.status}; nothing can be added to it`;
            throw new SluiceError("Host", "run_finished", message);
          }
          if (commit.record.seq !== run.records.length) {
            const message = `run ${commit.runId} does not have ${commit.record.seq} records: another owner added to it`;
            throw new SluiceError("Host", "ownership_lost", message);
          }
          keep(run, commit);
          changed("records");
        },
        run: (runId) => {
          guard();
          const run = runs.get(runId);
          return run === undefined ? undefined : view(run);
        },
        runs: (rootId, limit) => {
          guard();
          const roots = (): readonly string[] => [...trees.keys()].reverse().slice(0, limit);
          const ids = rootId === undefined ? roots() : (trees.get(rootId)?.runIds ?? []);
          return ids.map((id) => view(runOf(id)));
        },
        records: (runId, from, limit) => {
          guard();
          return runOf(runId).records.slice(from, limit === undefined ? undefined : from + limit);
        },
        due(now, limit) {
          guard();
          const isDue = ({ wakeAt, signalled = false }: MemoryTree): boolean =>
            signalled || (wakeAt !== undefined && wakeAt <= now);
          return [...asleep()]
            .filter(([, tree]) => isDue(tree) && (tree.owner === undefined || !live.has(tree.owner)))
            .sort(([, a], [, b]) => (a.wakeAt ?? 0) - (b.wakeAt ?? 0))
            .slice(0, limit)
            .map(([rootId]) => rootId);
        },
        nextWake(now) {
          guard();
          const times = [...asleep()].flatMap(([, { wakeAt = 0 }]) => (wakeAt > now ? [wakeAt] : []));
          return times.length === 0 ? undefined : Math.min(...times);
        },
        putSignal(runId, message, at) {
          guard();
          const run = runs.get(runId);
          if (run === undefined || run.end !== undefined) return "unknown";
          if (message.name.startsWith("request/")) {
            const requestId = message.name.slice("request/".length);
            if (run.answered?.has(requestId) === true) return "already_answered";
            const request = run.requests?.get(requestId);
            if (request === undefined) return "unknown";
            if (message.digest !== undefined && message.digest !== request.digest) return "digest_mismatch";
            if (typeof request.body.until === "number" && at > request.body.until) return "expired";
            run.answered ??= new Set();
            run.answered.add(requestId);
          }
          const arrived = run.signals?.get(message.name) ?? [];
          arrived.push(cloneValue({ payload: message.payload, by: message.by, at }));
          run.signals ??= new Map();
          run.signals.set(message.name, arrived);
          run.tree.signalled = true;
          changed();
          return "accepted";
        },
        signals: (runId, name) => {
          guard();
          return [...(runOf(runId).signals?.get(name) ?? [])];
        },
        requestCancel(runId, reason, by, at) {
          guard();
          const run = runs.get(runId);
          if (run === undefined) return false;
          run.cancel = { reason, by, at };
          changed();
          return true;
        },
        requests: (rootId) => {
          guard();
          const ids = rootId === undefined ? [...runs.keys()] : (trees.get(rootId)?.runIds ?? []);
          const stored = ids.flatMap((id) => {
            const { requests, answered } = runOf(id);
            return [...(requests?.values() ?? [])].map((request) => ({
              ...request,
              answered: answered?.has(request.requestId) === true,
            }));
          });
          return stored.sort((a, b) => a.openedAt - b.openedAt);
        },
        remove(rootIds) {
          guard();
          const gone = rootIds.filter((rootId) => {
            const tree = trees.get(rootId);
            if (tree === undefined || (tree.owner !== undefined && live.has(tree.owner))) return false;
            if (tree.runIds.some((id) => runOf(id).end === undefined)) return false;
            drop(rootId);
            return true;
          });
          for (const rootId of gone) finished.delete(rootId);
          if (gone.length > 0) changed();
          return gone;
        },
        onChange(listener) {
          const mine = { listener };
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

/** A frozen copy, which neither writers nor readers can change. */
function cloneValue<T>(value: T): T {
  return deepFreeze(JSON.parse(JSON.stringify(value)));
}
