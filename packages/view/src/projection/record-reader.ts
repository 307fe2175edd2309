import {
  childRunId,
  field,
  isSluiceError,
  type JournalRecord,
  type RunEnd,
  type RunHost,
  readEvents,
  type SluiceEvent,
} from "@sluice/core";
import { transcriptEntries } from "@sluice/stages";
import { textAt } from "../words/fields.ts";
import type { ReadRecord } from "./reduce-run.ts";

type Journals = Pick<RunHost, "records" | "get">;

export interface ReaderOptions {
  readonly host: Journals;
  readonly runId: string;
  onRecord(record: ReadRecord): void;
  /** A record that cannot be read, or a journal. Reading goes on with the next. */
  onError(error: unknown): void;
}

/** A run of the tree, as far as it was read. */
interface Place {
  readonly runId: string;
  next: number;
  ended: boolean;
  readonly children: Place[];
}

/** Records that are read in one go; then others get their turn. */
const AT_ONCE = 100;

/**
 * Reads the journals of a run and of the runs below it, each record once and a fork's children before its join, so that what
 * is told of them stands where it happened. Costs nothing for runs that have ended.
 */
export class RecordReader {
  readonly #options: ReaderOptions;
  readonly #root: Place;
  #stopped = false;

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.#root = placeOf(options.runId);
  }

  /** The end of the root was read: nothing more comes. */
  get ended(): boolean {
    return this.#root.ended;
  }

  /** Reads what is new. Rejects when the store cannot be read. */
  async read(): Promise<void> {
    await this.#readRun(this.#root);
  }

  stop(): void {
    this.#stopped = true;
  }

  async #readRun(place: Place): Promise<void> {
    if (place.ended) return;
    let since = 0;
    for (const record of await this.#recordsOf(place)) {
      if (this.#stopped) return;
      await this.#take(place, record);
      since += 1;
      if (since % AT_ONCE === 0) await othersTurn();
    }
    for (const child of place.children) if (!place.ended) await this.#readRun(child);
  }

  async #recordsOf({ runId, next }: Place): Promise<readonly JournalRecord[]> {
    try {
      return await this.#options.host.records(runId, next);
    } catch (thrown) {
      // One that was announced is there when its first record is.
      if (isSluiceError(thrown, "run_unknown")) return [];
      throw thrown;
    }
  }

  async #take(place: Place, record: JournalRecord): Promise<void> {
    const { runId } = place;
    const events = this.#eventsOf(runId, record);
    // They have ended before they are joined.
    if (events.some(({ type }) => type === "fanOut.joined"))
      for (const child of place.children) await this.#readRun(child);
    const end = await this.#endOf(place, events);
    place.next = record.seq + 1;
    const entries = transcriptEntries(runId, [record]);
    this.#options.onRecord({ runId, seq: record.seq, events, entries, ...(end === undefined ? {} : { end }) });
    for (const event of events) {
      if (event.type === "fanOut.started") place.children.push(...childrenOf(event));
      if (event.type === "run.finished") place.ended = true;
    }
  }

  #eventsOf(runId: string, record: JournalRecord): readonly SluiceEvent[] {
    try {
      return readEvents(runId, record);
    } catch (thrown) {
      this.#options.onError(thrown);
      return [];
    }
  }

  async #endOf(place: Place, events: readonly SluiceEvent[]): Promise<RunEnd | undefined> {
    if (place !== this.#root || !events.some(({ type }) => type === "run.finished")) return undefined;
    // Siblings that no join waited for, as where the run was cancelled.
    for (const child of place.children) await this.#readRun(child);
    return (await this.#options.host.get(place.runId))?.end;
  }
}

function placeOf(runId: string): Place {
  return { runId, next: 0, ended: false, children: [] };
}

function childrenOf({ runId, data }: SluiceEvent): readonly Place[] {
  const siblings = field(data, "siblings");
  if (!Array.isArray(siblings)) return [];
  const fork = textAt(data, "fanOut");
  return siblings.flatMap((sibling) =>
    typeof sibling === "string" ? [placeOf(childRunId(runId, fork, sibling))] : [],
  );
}

function othersTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
