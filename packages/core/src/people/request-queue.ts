import type { Clock } from "../base/clock.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import { deepFreeze } from "../base/json.ts";
import { checkAnswer, type Interactor, type PersonRequest, type Resolution } from "./interactor.ts";

/** The host's response to a resolution. The first commit wins, from any process. */
export type SubmitOutcome = "accepted" | "already_answered" | "unknown" | "digest_mismatch" | "expired";

export interface RequestQueueOptions {
  readonly interactors?: readonly Interactor[];
  /** Commits a resolution. A rejection leaves the request open. */
  readonly submit: (request: PersonRequest, resolution: Resolution, by: string) => Promise<SubmitOutcome>;
  readonly clock: Clock;
  /** Time in this queue after which a request without a deadline of its own is resolved with cause `timeout`. Never when omitted. */
  readonly timeoutMs?: number;
  /**
   * For a request that no interactor answers: `answer` resolves it with cause `no_interactor`, `wait` leaves it open, also after
   * `defer`.
   */
  readonly whenNobody: (request: PersonRequest) => "answer" | "wait";
  /** Called when no attached interactor answered a request and it stays open. */
  readonly onLeftOpen?: (request: PersonRequest) => void;
  /** Called when an interactor was attached that will be asked about a request that was left open. */
  readonly onAskedAgain?: (request: PersonRequest) => void;
  /** Called with non-fatal errors. */
  readonly onFault: (fault: InteractionFault) => void;
}

export interface InteractionFault {
  readonly request: PersonRequest;
  /** The interactor, or the queue itself. */
  readonly by: string;
  readonly message: string;
  /** The thrown value, if any. */
  readonly cause?: unknown;
}

/** A host's queue of requests. All interactors see its head; the next one follows when that is settled or left open. */
export interface RequestQueue {
  /** Appends a request, unless it is in the queue. */
  add(request: PersonRequest): void;
  /** Removes a request that was settled elsewhere or whose run has ended. */
  withdraw(runId: string, requestId: string): void;
  /** Adds an interactor, which sees the head and all requests left open. Returns a function that detaches it. */
  attach(interactor: Interactor): () => void;
  /** All unsettled requests, oldest first. */
  pending(): readonly PersonRequest[];
  /** Withdraws all requests and stops every timer, without resolving anything. */
  close(): void;
}

/** Recorded as the author of resolutions without an interactor. */
const QUEUE = "queue";

interface PendingAnswer {
  readonly controller: AbortController;
  /** Once the interactor has answered, its signal does not abort. */
  answered: boolean;
}
interface Entry {
  readonly request: PersonRequest;
  /** Interactors that were asked and have not finished. */
  readonly asking: Map<Interactor, PendingAnswer>;
  /** Interactors that only watch, until the request is settled. */
  readonly watching: Map<Interactor, PendingAnswer>;
  /** All interactors that were asked. */
  readonly asked: Set<Interactor>;
  /** Resolutions are submitted in sequence, and a second one only if the first was not accepted. */
  submitting: Promise<void>;
  cancelTimer: () => void;
  leftOpen: boolean;
  settled: boolean;
}

export function createRequestQueue(options: RequestQueueOptions): RequestQueue {
  const { submit, clock, timeoutMs, whenNobody, onLeftOpen, onAskedAgain, onFault } = options;
  const interactors = new Set<Interactor>(options.interactors);
  const entries = new Map<string, Entry>();
  let shown: Entry | undefined;
  let closed = false;

  /** Shows the oldest request that an interactor has not seen; requests that all have seen are left open. */
  const next = (): void => {
    for (const entry of entries.values()) {
      if (closed) return;
      if (entry === shown) continue;
      const unasked = [...interactors].filter((interactor) => !entry.asked.has(interactor));
      if (unasked.length === 0) {
        leaveOpen(entry);
        continue;
      }
      if (shown !== undefined) continue;
      if (unasked.every(({ observes }) => observes)) {
        show(entry, unasked);
        leaveOpen(entry);
        continue;
      }
      shown = entry;
      show(entry, unasked);
    }
  };

  const leaveOpen = (entry: Entry): void => {
    if (entry.leftOpen) return;
    entry.leftOpen = true;
    if (whenNobody(entry.request) === "wait") onLeftOpen?.(entry.request);
    else void resolve(entry, { kind: "none", cause: "no_interactor" }, QUEUE);
  };

  /** An interactor was attached that can answer: it sees the requests that were left open one after the other. */
  const reopen = (): void => {
    for (const entry of entries.values()) {
      if (!entry.leftOpen) continue;
      entry.leftOpen = false;
      onAskedAgain?.(entry.request);
    }
  };

  /** Adds all interactors before calling the first, whose synchronous answer must not find itself alone. */
  const show = (entry: Entry, unasked: readonly Interactor[]): void => {
    const added = unasked.map((interactor) => {
      const pending: PendingAnswer = { controller: new AbortController(), answered: false };
      entry.asked.add(interactor);
      (interactor.observes ? entry.watching : entry.asking).set(interactor, pending);
      return { interactor, pending };
    });
    for (const { interactor, pending } of added) void ask(entry, interactor, pending);
  };

  const ask = async (entry: Entry, interactor: Interactor, pending: PendingAnswer): Promise<void> => {
    const { request } = entry;
    const { signal } = pending.controller;
    if (signal.aborted) return;
    try {
      const answer = await interactor.answer(request, signal);
      if (answer !== undefined && !signal.aborted) {
        pending.answered = true;
        await accept(entry, interactor, answer);
      }
    } catch (cause) {
      // A rejection after the abort is expected.
      if (!signal.aborted) onFault({ request, by: interactor.name, message: messageOf(cause), cause });
    }
    if (entry.asking.get(interactor) === pending) stopAsking(entry, interactor);
  };

  const accept = async (entry: Entry, interactor: Interactor, answer: unknown): Promise<void> => {
    const { request } = entry;
    const checked = checkAnswer(request, answer);
    if (!checked.ok) onFault({ request, by: interactor.name, message: checked.fault });
    else if (checked.answer.kind !== "defer" || whenNobody(request) === "answer")
      await resolve(entry, checked.answer, interactor.name);
  };

  const stopAsking = (entry: Entry, interactor: Interactor): void => {
    entry.asking.delete(interactor);
    if (entry.asking.size > 0 || entry !== shown) return;
    shown = undefined;
    next();
  };

  const resolve = (entry: Entry, resolution: Resolution, by: string): Promise<void> => {
    const attempt = async (): Promise<void> => {
      if (entry.settled) return;
      const { request } = entry;
      try {
        const outcome = await submit(request, resolution, by);
        if (outcome === "digest_mismatch") onFault({ request, by, message: "the request has changed" });
        finish(entry, "the request is settled");
      } catch (cause) {
        onFault({ request, by, message: messageOf(cause), cause });
      }
    };
    entry.submitting = entry.submitting.then(attempt);
    return entry.submitting;
  };

  const finish = (entry: Entry, why: string): void => {
    if (entry.settled) return;
    entry.settled = true;
    entry.cancelTimer();
    entries.delete(keyOf(entry.request.runId, entry.request.requestId));
    for (const { controller, answered } of [...entry.asking.values(), ...entry.watching.values()])
      if (!answered) controller.abort(abortReason(why));
    if (entry !== shown) return;
    shown = undefined;
    next();
  };

  return {
    add: (given) => {
      const key = keyOf(given.runId, given.requestId);
      if (closed || entries.has(key)) return;
      const entry: Entry = {
        // Frozen, so that no interactor changes what the next one shows and approves.
        request: deepFreeze(given),
        asking: new Map(),
        watching: new Map(),
        asked: new Set(),
        submitting: Promise.resolve(),
        cancelTimer: () => undefined,
        leftOpen: false,
        settled: false,
      };
      entries.set(key, entry);
      // A question with a deadline stays open until then.
      if (timeoutMs !== undefined && given.body.until === undefined) {
        entry.cancelTimer = clock.after(
          timeoutMs,
          () => void resolve(entry, { kind: "none", cause: "timeout" }, QUEUE),
        );
      }
      next();
    },
    withdraw: (runId, requestId) => {
      const entry = entries.get(keyOf(runId, requestId));
      if (entry !== undefined) finish(entry, "the request was withdrawn");
    },
    attach: (interactor) => {
      if (!closed && !interactors.has(interactor)) {
        interactors.add(interactor);
        if (interactor.observes !== true) reopen();
        if (shown === undefined) next();
        else show(shown, [interactor]);
      }
      return () => {
        interactors.delete(interactor);
        for (const entry of entries.values()) {
          entry.asked.delete(interactor);
          const pending = entry.asking.get(interactor) ?? entry.watching.get(interactor);
          pending?.controller.abort(abortReason("the interactor was detached"));
          entry.watching.delete(interactor);
          if (entry.asking.has(interactor)) stopAsking(entry, interactor);
        }
        // Others may have seen what it was still to see.
        next();
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

function abortReason(why: string): SluiceError {
  return new SluiceError("Cancellation", "request_settled", why);
}
