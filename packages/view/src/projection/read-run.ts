import { setImmediate } from "node:timers/promises";
import type { JournalRecord, RunHost, SluiceEvent } from "@sluice/core";
import { readEvents, TreeReader, type TreeRecord } from "@sluice/core/host";
import { readEnd } from "@sluice/core/runtime";
import { transcriptEntries } from "@sluice/stages";
import { kindEntry } from "./kind-reducer.ts";
import type { ReadRecord } from "./reduce-run.ts";

/** A record as the reducer takes it. Reports events that cannot be read, and leaves them out. */
export function readRecord(
  { runId, depth, record }: TreeRecord<JournalRecord>,
  onError: (error: unknown) => void,
): ReadRecord {
  let events: readonly SluiceEvent[] = [];
  try {
    events = readEvents(runId, record);
  } catch (thrown) {
    onError(thrown);
  }
  const end = depth === 0 ? readEnd(record) : undefined;
  const entries = transcriptEntries(runId, [record]);
  const own = kindEntry(record);
  const { seq, incarnation } = record;
  return {
    runId,
    seq,
    incarnation,
    events,
    entries,
    ...(own === undefined ? {} : { own }),
    ...(end === undefined ? {} : { end }),
  };
}

export interface ReaderOptions {
  readonly host: Pick<RunHost, "tree" | "records">;
  readonly runId: string;
  onRecord(record: ReadRecord): void;
  /** Receives the fault of an unreadable record; reading continues with the next. */
  onError(error: unknown): void;
}

/** Records handled before the event loop gets a turn. */
const BATCH = 100;

/** Reads the journals of a run and of the runs below it while they grow: each record once, in the order of their tree. */
export class RecordReader {
  readonly #options: ReaderOptions;
  readonly #tree: TreeReader<JournalRecord>;
  #ended = false;
  #stopped = false;

  constructor(options: ReaderOptions) {
    const { host } = options;
    this.#options = options;
    this.#tree = new TreeReader((runId, from, limit) => host.records(runId, from, limit));
  }

  /** Whether the root's end was read, so that no record follows. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Reads new records. Rejects if the store cannot be read. */
  async read(): Promise<void> {
    const { host, runId, onRecord, onError } = this.#options;
    let since = 0;
    for await (const placed of this.#tree.read(await host.tree(runId))) {
      if (this.#stopped) return;
      const record = readRecord(placed, onError);
      this.#ended ||= record.end !== undefined;
      onRecord(record);
      since += 1;
      if (since % BATCH === 0) await setImmediate();
    }
  }

  stop(): void {
    this.#stopped = true;
  }
}
