import { setImmediate } from "node:timers/promises";
import { isSluiceError, type JournalRecord, type RunEnd, type RunHost, type SluiceEvent } from "@sluice/core";
import { readEvents } from "@sluice/core/host";
import { childRunId } from "@sluice/core/runtime";
import { transcriptEntries } from "@sluice/stages";
import { textAt, textsAt } from "../words/fields.ts";
import type { ReadRecord } from "./reduce-run.ts";

type Journals = Pick<RunHost, "records" | "get">;

export interface ReaderOptions {
  readonly host: Journals;
  readonly runId: string;
  onRecord(record: ReadRecord): void;
  /** Receives the fault of an unreadable record; reading continues with the next. */
  onError(error: unknown): void;
}

/** The reading position in one run of the tree. */
interface Cursor {
  readonly runId: string;
  next: number;
  ended: boolean;
  readonly children: Cursor[];
}

/** Records handled before the event loop gets a turn. */
const BATCH = 100;

/** Reads the journals of a run and of the runs below it: each record once, and siblings before their join. */
export class RecordReader {
  readonly #options: ReaderOptions;
  readonly #root: Cursor;
  #stopped = false;

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.#root = cursorOf(options.runId);
  }

  /** Whether the root's end was read, so that no record follows. */
  get ended(): boolean {
    return this.#root.ended;
  }

  /** Reads new records. Rejects if the store cannot be read. */
  async read(): Promise<void> {
    await this.#readRun(this.#root);
  }

  stop(): void {
    this.#stopped = true;
  }

  async #readRun(cursor: Cursor): Promise<void> {
    if (cursor.ended) return;
    let since = 0;
    for (const record of await this.#recordsOf(cursor)) {
      if (this.#stopped) return;
      await this.#handle(cursor, record);
      since += 1;
      if (since % BATCH === 0) await setImmediate();
    }
    for (const child of cursor.children) if (!cursor.ended) await this.#readRun(child);
  }

  async #recordsOf({ runId, next }: Cursor): Promise<readonly JournalRecord[]> {
    try {
      return await this.#options.host.records(runId, next);
    } catch (thrown) {
      // A sibling's journal appears with its first record.
      if (isSluiceError(thrown, "run_unknown")) return [];
      throw thrown;
    }
  }

  async #handle(cursor: Cursor, record: JournalRecord): Promise<void> {
    const { runId } = cursor;
    const events = this.#eventsOf(runId, record);
    if (events.some(({ type }) => type === "fanOut.joined"))
      for (const child of cursor.children) await this.#readRun(child);
    const end = await this.#endOf(cursor, events);
    cursor.next = record.seq + 1;
    const entries = transcriptEntries(runId, [record]);
    this.#options.onRecord({ runId, seq: record.seq, events, entries, ...(end === undefined ? {} : { end }) });
    for (const event of events) {
      if (event.type === "fanOut.started") cursor.children.push(...childrenOf(event));
      if (event.type === "run.finished") cursor.ended = true;
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

  async #endOf(cursor: Cursor, events: readonly SluiceEvent[]): Promise<RunEnd | undefined> {
    if (cursor !== this.#root || !events.some(({ type }) => type === "run.finished")) return undefined;
    // A cancelled run can have siblings without a join.
    for (const child of cursor.children) await this.#readRun(child);
    return (await this.#options.host.get(cursor.runId))?.end;
  }
}

function cursorOf(runId: string): Cursor {
  return { runId, next: 0, ended: false, children: [] };
}

function childrenOf({ runId, data }: SluiceEvent): readonly Cursor[] {
  const fanOut = textAt(data, "fanOut");
  return textsAt(data, "siblings").map((sibling) => cursorOf(childRunId(runId, fanOut, sibling)));
}
