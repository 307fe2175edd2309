import type { SluiceEvent } from "@sluice/core";
import { textAt, textsAt } from "../../words/fields.ts";
import type { ExecutionView } from "../run-view.ts";

type Handles = NonNullable<ExecutionView["handles"]>;
type Interrupted = NonNullable<ExecutionView["interrupted"]>;

/** An execution that waits while another one handles an interrupt. */
interface Waiting extends Interrupted {
  readonly executionId: string;
  readonly state: string;
  /** The execution that handles it, once it began. */
  handler?: string;
}

/** Which executions of the runs of a tree wait for an interrupt, and which ones handle them. */
export class DetourReducer {
  /** By run; the innermost last. */
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #handlers = new Map<string, Handles>();

  started({ runId, executionId = "", data }: SluiceEvent, state: string): void {
    const of = this.#waiting.get(runId) ?? [];
    const [interrupt, files, by] = [textAt(data, "interrupt"), textsAt(data, "files"), textAt(data, "to")];
    of.push({ executionId, state, interrupt, files, by });
    this.#waiting.set(runId, of);
  }

  /** An execution began: it handles the innermost interrupt if that has no handler yet. */
  began(runId: string, executionId: string): void {
    const innermost = this.#waiting.get(runId)?.at(-1);
    if (innermost === undefined || innermost.handler !== undefined) return;
    innermost.handler = executionId;
    const { interrupt, files, executionId: of } = innermost;
    this.#handlers.set(keyOf(runId, executionId), { interrupt, files, of });
  }

  /** An execution continues after its interrupt, or ended. */
  ended(runId: string, executionId: string): void {
    const of = this.#waiting.get(runId);
    const at = of?.findLastIndex((one) => one.executionId === executionId) ?? -1;
    if (at >= 0) of?.splice(at, 1);
  }

  /** The state that a return of a run leads to; undefined if nothing waits. */
  returnsTo(runId: string): string | undefined {
    return this.#waiting.get(runId)?.at(-1)?.state;
  }

  handlesOf(runId: string, executionId: string): Handles | undefined {
    return this.#handlers.get(keyOf(runId, executionId));
  }

  interruptedOf(runId: string, executionId: string): Interrupted | undefined {
    const found = this.#waiting.get(runId)?.find((one) => one.executionId === executionId);
    return found && { interrupt: found.interrupt, files: found.files, by: found.by };
  }
}

function keyOf(runId: string, executionId: string): string {
  return JSON.stringify([runId, executionId]);
}
