import { rootRunId } from "@sluice/core/runtime";
import type { RunView } from "@sluice/view";

/** A message that this app sent to a run. */
export interface SentMessage {
  readonly runId: string;
  readonly text: string;
  /** The sender's name. */
  readonly by: string;
  /** The host accepted it between these times, in epoch milliseconds. */
  readonly from: number;
  readonly to: number;
}

type ReadMessage = RunView["messages"][number];

/** What became of sent messages. */
interface Fates {
  readonly read: readonly ReadMessage[];
  /** Their run ended before a model read them. */
  readonly unread: readonly SentMessage[];
}

/** The messages that this app sent and that no model has read yet. */
export class Outbox {
  #waiting: readonly SentMessage[] = [];

  add(message: SentMessage): void {
    this.#waiting = [...this.#waiting, message];
  }

  /** Those to a run and to the runs below it, oldest first. */
  of(rootId: string): readonly SentMessage[] {
    return this.#waiting.filter(({ runId }) => rootRunId(runId) === rootId);
  }

  /** Removes what a run has read, and all of a run that has ended. */
  settle({ runId, messages, endedAt }: Pick<RunView, "runId" | "messages" | "endedAt">): Fates {
    const left = [...messages];
    const read: ReadMessage[] = [];
    const unread: SentMessage[] = [];
    for (const sent of this.of(runId)) {
      // The text may be masked on its way; its sender and its time are not.
      const at = left.findIndex(({ by, sentAt }) => by === sent.by && sentAt >= sent.from && sentAt <= sent.to);
      read.push(...(at === -1 ? [] : left.splice(at, 1)));
      if (at === -1 && endedAt !== undefined) unread.push(sent);
      if (at !== -1 || endedAt !== undefined) this.#waiting = this.#waiting.filter((one) => one !== sent);
    }
    return { read, unread };
  }
}
