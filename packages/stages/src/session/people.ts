import {
  type Answer,
  type AnswerSeal,
  type Clock,
  checkAnswer,
  createRequestQueue,
  type InteractionFault,
  type Interactor,
  isJsonObject,
  isSluiceError,
  type JsonObject,
  type OpenRequest,
  type People,
  type RunHost,
  type SignalMessage,
  type SignalOutcome,
  SluiceError,
} from "@sluice/core";

/** A request, as far as an answer names it. */
export type AnsweredRequest = Pick<OpenRequest, "runId" | "requestId" | "digest">;

export interface SessionPeople extends People {
  attach(interactor: Interactor): () => void;
  /** Sends an answer that somebody gave in this process to a request that waits here. */
  answer(request: AnsweredRequest, answer: Answer, by: string): Promise<SignalOutcome>;
  /** A run has started a process without a wall: what waits in it is told with its code. */
  unwalled(rootId: string): void;
  close(): void;
}

export interface PeopleOptions {
  /** Sends an answer the way every other process does. */
  readonly signal: RunHost["signal"];
  /** Takes out of an answer what must not be kept. */
  readonly clean: (message: SignalMessage) => SignalMessage;
  readonly interactors: readonly Interactor[];
  /** Whether requests stay open for other processes when nobody here answers. */
  readonly wait: boolean;
  readonly requestTimeoutMs?: number;
  readonly clock: Clock;
  readonly onFault: (fault: InteractionFault) => void;
  /** A request waits that people elsewhere can answer with this code only. */
  readonly onCode: (request: OpenRequest, code: string) => void;
  /** A request was left open: nobody here has an answer. */
  readonly onLeftOpen: (request: OpenRequest) => void;
  /** The store did not take an answer. Nobody is asked again, so that the run would wait for ever. */
  readonly onUnkept: (request: OpenRequest) => void;
  readonly onSettled: (runId: string, requestId: string) => void;
}

interface Offered {
  readonly request: OpenRequest;
  readonly seal: AnswerSeal;
  readonly later: NodeJS.Immediate;
  /** Whether anybody was asked; a resumed run offers what was answered long ago and takes it back at once. */
  asked: boolean;
  /** Whether its code was told. */
  told: boolean;
}

/** The session's queue of requests, with answers sent the way every other process sends them, and proved to come from here. */
export function createPeople(options: PeopleOptions): SessionPeople {
  const { signal, clean, interactors, wait, clock, onFault, onLeftOpen, onUnkept, onSettled, onCode } = options;
  let attached = interactors.length;
  const offered = new Map<string, Offered>();
  const keyOf = (runId: string, requestId: string): string => JSON.stringify([runId, requestId]);

  /** The proof is of the answer as it is kept. What waits here no more is answered by nobody, so that it needs none. */
  const send = async (
    { runId, requestId, digest }: AnsweredRequest,
    answer: JsonObject,
    by: string,
  ): Promise<SignalOutcome> => {
    const message = clean({ name: `request/${requestId}`, payload: { ...answer, digest }, digest, by });
    const seal = offered.get(keyOf(runId, requestId))?.seal;
    const payload = isJsonObject(message.payload) ? seal?.seal(message.payload) : undefined;
    return await signal(runId, payload === undefined ? message : { ...message, payload });
  };
  const tellCode = (one: Offered): void => {
    if (!one.asked || one.told || !one.seal.needsCode()) return;
    one.told = true;
    onCode(one.request, one.seal.code);
  };
  const queue = createRequestQueue({
    interactors,
    clock,
    whenNobody: () => (wait ? "wait" : "answer"),
    onLeftOpen: (request) => onLeftOpen(request),
    onFault,
    submit: async (request, resolution, by) => {
      try {
        return await send(request, { ...resolution }, by);
      } catch (thrown) {
        if (!isSluiceError(thrown) || thrown.class !== "Validation") onUnkept(request);
        throw thrown;
      }
    },
    ...(options.requestTimeoutMs === undefined ? {} : { timeoutMs: options.requestTimeoutMs }),
  });

  return {
    reachable: () => wait || attached > 0,
    offer: (request, seal) => {
      const later = setImmediate(() => {
        one.asked = true;
        tellCode(one);
        queue.add(request);
      });
      const one: Offered = { request, seal, later, asked: false, told: false };
      offered.set(keyOf(request.runId, request.requestId), one);
    },
    answer: async (request, answer, by) => {
      const waiting = offered.get(keyOf(request.runId, request.requestId));
      if (waiting === undefined) return "unknown";
      const checked = checkAnswer(waiting.request, answer);
      if (checked.ok) return await send(request, { ...checked.answer }, by);
      throw new SluiceError(
        "Validation",
        "answer_invalid",
        `this does not answer ${request.requestId}: ${checked.fault}`,
      );
    },
    unwalled: (rootId) => {
      for (const one of offered.values()) if (one.request.runId.split("/", 1)[0] === rootId) tellCode(one);
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
