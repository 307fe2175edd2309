import type { Clock } from "../base/clock.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import { deepFreeze } from "../base/json.ts";
import { checkAnswer, type Interactor, type PersonRequest, type Resolution } from "./interactor.ts";

/** What the host said to a resolution: the first commit wins, in whatever process it was made. */
export type SubmitOutcome = "accepted" | "already_answered" | "unknown" | "digest_mismatch";

export interface RequestQueueOptions {
  readonly interactors?: readonly Interactor[];
  /** Hands a resolution to the host. A rejection leaves the request open. */
  readonly submit: (request: PersonRequest, resolution: Resolution, by: string) => Promise<SubmitOutcome>;
  readonly clock: Clock;
  /** From when the request came into this queue until it is resolved with cause `timeout`. Never when omitted. */
  readonly timeoutMs?: number;
  /** What becomes of a request that nobody here answers: resolved with cause `no_interactor`, or left open for later and others. Left open, it also outlives `defer`. */
  readonly whenNobody: (request: PersonRequest) => "answer" | "wait";
  /** A request was left open: nobody attached now has an answer to it. */
  readonly onLeftOpen?: (request: PersonRequest) => void;
  /** Somebody's failure that the request survived. */
  readonly onFault: (fault: InteractionFault) => void;
}

export interface InteractionFault {
  readonly request: PersonRequest;
  /** The interactor, or the queue itself. */
  readonly by: string;
  readonly message: string;
  /** What was thrown, when something was. */
  readonly cause?: unknown;
}

/** The one queue of a host. The request at its head is before everybody at once; the next is shown when that one is settled or left open. */
export interface RequestQueue {
  /** Puts a request at the end. One that is here already is not added again. */
  add(request: PersonRequest): void;
  /** The request was settled elsewhere, or its run is gone: takes it back from everybody. */
  withdraw(runId: string, requestId: string): void;
  /** Lets somebody join, who sees the request at the head and those left open. Returns how to leave. */
  attach(interactor: Interactor): () => void;
  /** Everything that is not settled, oldest first. */
  pending(): readonly PersonRequest[];
  /** Takes back what is shown and stops every timer. Resolves nothing. */
  close(): void;
}

/** Who resolves what no interactor did. */
const QUEUE = "queue";

interface Ask {
  readonly controller: AbortController;
  /** Gave its answer: it is not told that somebody else was faster. */
  answered: boolean;
}
interface Entry {
  readonly request: PersonRequest;
  /** Who has it before them. */
  readonly asks: Map<Interactor, Ask>;
  /** Who has had it before them. */
  readonly heard: Set<Interactor>;
  /** Resolutions are submitted one after another, so that a second counts only where the first did not. */
  submitting: Promise<void>;
  cancelTimer: () => void;
  leftOpen: boolean;
  over: boolean;
}

export function createRequestQueue(options: RequestQueueOptions): RequestQueue {
  const { submit, clock, timeoutMs, whenNobody, onLeftOpen, onFault } = options;
  const interactors = new Set<Interactor>(options.interactors);
  const entries = new Map<string, Entry>();
  let shown: Entry | undefined;
  let closed = false;

  /** Shows the oldest request that somebody has not heard; what nobody is left to hear is on its own. */
  const next = (): void => {
    for (const entry of entries.values()) {
      if (closed || shown !== undefined) return;
      const unheard = [...interactors].filter((interactor) => !entry.heard.has(interactor));
      if (unheard.length === 0) {
        leave(entry);
        continue;
      }
      shown = entry;
      entry.leftOpen = false;
      show(entry, unheard);
    }
  };

  const leave = (entry: Entry): void => {
    if (entry.leftOpen) return;
    entry.leftOpen = true;
    if (whenNobody(entry.request) === "wait") onLeftOpen?.(entry.request);
    else void resolve(entry, { kind: "none", cause: "no_interactor" }, QUEUE);
  };

  /** All are entered before the first is asked: what one does at once must not look as if nobody else were there. */
  const show = (entry: Entry, people: readonly Interactor[]): void => {
    const asks = people.map((interactor): readonly [Interactor, Ask] => [
      interactor,
      { controller: new AbortController(), answered: false },
    ]);
    for (const [interactor, mine] of asks) {
      entry.heard.add(interactor);
      entry.asks.set(interactor, mine);
    }
    for (const [interactor, mine] of asks) void ask(entry, interactor, mine);
  };

  const ask = async (entry: Entry, interactor: Interactor, mine: Ask): Promise<void> => {
    const { request } = entry;
    if (mine.controller.signal.aborted) return;
    try {
      const given = await interactor.answer(request, mine.controller.signal);
      if (given !== undefined && !mine.controller.signal.aborted) {
        mine.answered = true;
        await take(entry, interactor, given);
      }
    } catch (cause) {
      // Giving up when told to is no fault.
      if (!mine.controller.signal.aborted) onFault({ request, by: interactor.name, message: messageOf(cause), cause });
    }
    if (entry.asks.get(interactor) === mine) drop(entry, interactor);
  };

  const take = async (entry: Entry, interactor: Interactor, given: unknown): Promise<void> => {
    const { request } = entry;
    const checked = checkAnswer(request, given);
    if (!checked.ok) onFault({ request, by: interactor.name, message: checked.fault });
    else if (checked.answer.kind !== "defer" || whenNobody(request) === "answer")
      await resolve(entry, checked.answer, interactor.name);
  };

  /** One person less who could answer. */
  const drop = (entry: Entry, interactor: Interactor): void => {
    entry.asks.delete(interactor);
    if (entry.asks.size > 0 || entry !== shown) return;
    shown = undefined;
    next();
  };

  const resolve = (entry: Entry, resolution: Resolution, by: string): Promise<void> => {
    const attempt = async (): Promise<void> => {
      if (entry.over) return;
      const { request } = entry;
      try {
        const outcome = await submit(request, resolution, by);
        if (outcome === "digest_mismatch")
          onFault({ request, by, message: "the request is about something else by now" });
        finish(entry, "the request is settled");
      } catch (cause) {
        onFault({ request, by, message: messageOf(cause), cause });
      }
    };
    entry.submitting = entry.submitting.then(attempt);
    return entry.submitting;
  };

  const finish = (entry: Entry, why: string): void => {
    if (entry.over) return;
    entry.over = true;
    entry.cancelTimer();
    entries.delete(keyOf(entry.request.runId, entry.request.requestId));
    for (const { controller, answered } of entry.asks.values()) if (!answered) controller.abort(settled(why));
    if (entry !== shown) return;
    shown = undefined;
    next();
  };

  return {
    add: (given) => {
      const key = keyOf(given.runId, given.requestId);
      if (closed || entries.has(key)) return;
      // Everybody is shown the same: nobody may change what the next one reads and approves.
      const request = deepFreeze(given);
      const entry: Entry = {
        request,
        asks: new Map(),
        heard: new Set(),
        submitting: Promise.resolve(),
        cancelTimer: () => undefined,
        leftOpen: false,
        over: false,
      };
      entries.set(key, entry);
      if (timeoutMs !== undefined) {
        entry.cancelTimer = clock.after(
          timeoutMs,
          () => void resolve(entry, { kind: "none", cause: "timeout" }, QUEUE),
        );
      }
      next();
    },
    withdraw: (runId, requestId) => {
      const entry = entries.get(keyOf(runId, requestId));
      if (entry !== undefined) finish(entry, "the request was taken back");
    },
    attach: (interactor) => {
      if (!closed && !interactors.has(interactor)) {
        interactors.add(interactor);
        if (shown === undefined) next();
        else show(shown, [interactor]);
      }
      return () => {
        interactors.delete(interactor);
        for (const entry of entries.values()) {
          entry.heard.delete(interactor);
          entry.asks.get(interactor)?.controller.abort(settled("the interactor was detached"));
          if (entry.asks.has(interactor)) drop(entry, interactor);
        }
      };
    },
    pending: () => [...entries.values()].map((entry) => entry.request),
    close: () => {
      closed = true;
      interactors.clear();
      for (const entry of entries.values()) finish(entry, "the queue is closed");
    },
  };
}

function keyOf(runId: string, requestId: string): string {
  return JSON.stringify([runId, requestId]);
}

function settled(why: string): SluiceError {
  return new SluiceError("Cancellation", "request_settled", why);
}
