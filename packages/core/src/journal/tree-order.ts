import type { JournalRecord, TreeRun } from "./seam.ts";
import { isLifecycle, LIFECYCLE_STEP } from "./step-id.ts";

// The order of a tree's events. Each run's records are in their own order. A child's come after the record that started it, and
// before the one that joins it or ends its parent; so a root's end is the last record of its tree. What earlier processes recorded
// in children comes before the root's record of a resume, and what was copied before that of a fork. What a process records that only
// cancels a run comes after all that the processes before it recorded. What siblings recorded in one process follows each other. Times
// play no part, since clocks may jump.

/** What the order depends on. */
export type OrderedRecord = Pick<JournalRecord, "seq" | "phase" | "stepId" | "incarnation">;

/** A record at its place in the order of its tree. */
export interface TreeRecord<R extends OrderedRecord> {
  readonly runId: string;
  /** Levels below the root. */
  readonly depth: number;
  readonly record: R;
}

/** Reads at most `limit` records of a run with seq >= from, in order. */
export type ReadRecords<R extends OrderedRecord> = (
  runId: string,
  from: number,
  limit: number,
) => Promise<readonly R[]> | readonly R[];

/** Records per read, so that the first events of a long run arrive early. */
const PAGE = 200;

/** Parts of a run's id below which no children are looked for: each level of a tree takes some of the stack. */
const MOST_PARTS = 200;

function partsOf(runId: string): number {
  return runId.split("/", MOST_PARTS + 1).length;
}

/** The reading position in one run. */
interface Position {
  next: number;
  /** The incarnation of the last record. */
  incarnation: string;
  /** Steps that run children and have not joined them. */
  readonly open: Set<string>;
}

/** Incarnations whose records come later. */
type Later = ReadonlySet<string>;
const NONE: Later = new Set();

/** Reads the records of a tree in its order, also while it grows. */
export class TreeReader<R extends OrderedRecord> {
  readonly #read: ReadRecords<R>;
  readonly #positions = new Map<string, Position>();
  /** The children of each run, by the step that runs them. */
  #children: ReadonlyMap<string, ReadonlyMap<string, readonly TreeRun[]>> = new Map();

  /** `start` is where to begin in a run that is read without its children. */
  constructor(read: ReadRecords<R>, start?: { readonly runId: string; readonly seq: number }) {
    this.#read = read;
    if (start !== undefined) this.#positions.set(start.runId, { next: start.seq, incarnation: "", open: new Set() });
  }

  /** The records that were not read before, up to those that `runs` counts at one moment. Continues where a failed call ended. */
  async *read(runs: readonly TreeRun[]): AsyncGenerator<TreeRecord<R>, void, undefined> {
    const known = new Set(runs.map(({ runId }) => runId));
    const parentOf = ({ runId, parentId = "" }: TreeRun): string =>
      // A changed journal may claim any parent; an id that extends its parent's cannot be its own ancestor.
      known.has(parentId) && runId.startsWith(`${parentId}/`) && partsOf(parentId) <= MOST_PARTS ? parentId : "";
    const stepOf = (parentId: string, { runId }: TreeRun): string =>
      runId.slice(parentId.length + 1, runId.lastIndexOf("/"));
    const byParent = Map.groupBy(runs, parentOf);
    const tops = byParent.get("") ?? [];
    byParent.delete("");
    this.#children = new Map(
      [...byParent].map(([id, children]) => [id, Map.groupBy(children, (child) => stepOf(id, child))]),
    );
    for (const [index, run] of tops.entries()) yield* this.#run(run, Math.min(index, 1), NONE);
  }

  async *#run(run: TreeRun, depth: number, later: Later): AsyncGenerator<TreeRecord<R>, void, undefined> {
    const { runId } = run;
    const position = this.#positions.get(runId) ?? { next: 0, incarnation: "", open: new Set() };
    this.#positions.set(runId, position);
    while (position.next < run.records) {
      const page = await this.#page(run, position.next);
      if (page.length === 0) break;
      const resumes = page.filter((record, index) =>
        begins(record, page[index - 1]?.incarnation ?? position.incarnation),
      );
      // A child, which is read again at each resume of its parent, mostly has none of its own.
      const resumed =
        resumes.length === 0 ? undefined : new Set([...later, ...resumes.map(({ incarnation }) => incarnation)]);
      for (const record of page) {
        if (later.has(record.incarnation)) return yield* this.#below(run, depth, later);
        yield* this.#below(run, depth, isLifecycle(record) ? (resumed ?? later) : later, position.open);
        if (resumes.includes(record)) resumed?.delete(record.incarnation);
        if (record.phase === "open") position.open.add(record.stepId);
        if (record.phase === "done") position.open.delete(record.stepId);
        position.next = Math.max(position.next, record.seq) + 1;
        position.incarnation = record.incarnation;
        yield { runId, depth, record };
      }
    }
    yield* this.#below(run, depth, later);
  }

  /** The next records. Consecutive resumes are read together, since the place of the children's records depends on all of them. */
  async #page({ runId, records }: TreeRun, from: number): Promise<readonly R[]> {
    const page: R[] = [];
    for (let next = from; next < records; ) {
      const read = await this.#read(runId, next, Math.min(PAGE, records - next));
      page.push(...read);
      const last = read.at(-1);
      if (last === undefined || !isLifecycle(last)) break;
      next = Math.max(next, last.seq) + 1;
    }
    return page;
  }

  /** What the children of a run have recorded, those of all steps or of some. */
  async *#below(
    { runId }: TreeRun,
    depth: number,
    later: Later,
    steps?: ReadonlySet<string>,
  ): AsyncGenerator<TreeRecord<R>, void, undefined> {
    const children = this.#children.get(runId);
    if (children === undefined) return;
    for (const stepId of steps ?? children.keys())
      for (const child of children.get(stepId) ?? []) yield* this.#run(child, depth + 1, later);
  }
}

/** The first record of a process that resumes a run, or only cancels it. `before` is the incarnation of the record before. */
function begins(record: OrderedRecord, before: string): boolean {
  if (!isLifecycle(record)) return false;
  if (record.stepId === LIFECYCLE_STEP.resume) return true;
  // A process that executes a run may cancel it too.
  return record.stepId === LIFECYCLE_STEP.cancel && before !== "" && record.incarnation !== before;
}

/** The records of journals in memory, in the order of their tree. None is left out, whatever the journals claim. */
export async function* inTreeOrder<R extends OrderedRecord>(
  journals: readonly {
    readonly runId: string;
    readonly parentId?: string | undefined;
    readonly records: readonly R[];
  }[],
): AsyncGenerator<TreeRecord<R>, void, undefined> {
  const byId = Map.groupBy(journals, ({ runId }) => runId);
  // Numbered here: a changed journal may hold any numbers.
  const placed = new Map(
    [...byId].map(([runId, all]) => [
      runId,
      all
        .flatMap(({ records }) => records)
        .map((own, seq) => ({ phase: own.phase, stepId: own.stepId, incarnation: own.incarnation, seq, own })),
    ]),
  );
  const reader = new TreeReader((runId, from, limit) => (placed.get(runId) ?? []).slice(from, from + limit));
  const runs = [...byId].map(([runId, [first]]) => ({
    runId,
    parentId: first?.parentId,
    records: placed.get(runId)?.length ?? 0,
  }));
  for await (const { record, ...place } of reader.read(runs)) yield { ...place, record: record.own };
}
