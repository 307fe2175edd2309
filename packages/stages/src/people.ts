import {
  type Clock,
  createRequestQueue,
  type InteractionFault,
  type Interactor,
  isSluiceError,
  type Json,
  type OpenRequest,
  type People,
  type RunHost,
} from "@sluice/core";

export interface SessionPeople extends People {
  attach(interactor: Interactor): () => void;
  close(): void;
}

export interface PeopleOptions {
  /** Sends an answer the way every other process does. */
  readonly signal: RunHost["signal"];
  readonly interactors: readonly Interactor[];
  /** Whether requests stay open for other processes when nobody here answers. */
  readonly wait: boolean;
  readonly requestTimeoutMs?: number;
  readonly clock: Clock;
  readonly onFault: (fault: InteractionFault) => void;
  /** A request was left open: nobody here has an answer. */
  readonly onLeftOpen: (request: OpenRequest) => void;
  /** The store did not take an answer. Nobody is asked again, so that the run would wait for ever. */
  readonly onUnkept: (request: OpenRequest) => void;
  readonly onSettled: (runId: string, requestId: string) => void;
}

/** The session's queue of requests, with answers sent the way every other process sends them. */
export function createPeople(options: PeopleOptions): SessionPeople {
  const { signal, interactors, wait, clock, onFault, onLeftOpen, onUnkept, onSettled } = options;
  let attached = interactors.length;
  const offered = new Map<string, { readonly request: OpenRequest; readonly later: NodeJS.Immediate }>();
  const queue = createRequestQueue({
    interactors,
    clock,
    whenNobody: () => (wait ? "wait" : "answer"),
    onLeftOpen: (request) => onLeftOpen(request),
    onFault,
    submit: async (request, resolution, by) => {
      const { runId, requestId, digest } = request;
      const payload: Json = { ...resolution, digest };
      try {
        return await signal(runId, { name: `request/${requestId}`, payload, digest, by });
      } catch (thrown) {
        if (!isSluiceError(thrown) || thrown.class !== "Validation") onUnkept(request);
        throw thrown;
      }
    },
    ...(options.requestTimeoutMs === undefined ? {} : { timeoutMs: options.requestTimeoutMs }),
  });
  const keyOf = (runId: string, requestId: string): string => JSON.stringify([runId, requestId]);

  return {
    reachable: () => wait || attached > 0,
    offer: (request) => {
      // A resumed run offers what was answered long ago and takes it back at once: nobody is asked twice for that.
      const later = setImmediate(() => queue.add(request));
      offered.set(keyOf(request.runId, request.requestId), { request, later });
    },
    withdraw: (runId, requestId) => {
      const key = keyOf(runId, requestId);
      const known = offered.get(key);
      if (known === undefined) return;
      clearImmediate(known.later);
      offered.delete(key);
      queue.withdraw(runId, requestId);
      onSettled(runId, requestId);
    },
    attach: (interactor) => {
      attached += 1;
      const detach = queue.attach(interactor);
      return () => {
        attached -= 1;
        detach();
      };
    },
    close: () => {
      for (const { later } of offered.values()) clearImmediate(later);
      offered.clear();
      queue.close();
    },
  };
}
