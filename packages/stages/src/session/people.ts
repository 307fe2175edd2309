import {
  type Answer,
  type Clock,
  type Interactor,
  isJsonObject,
  isSluiceError,
  type JsonObject,
  type OpenRequest,
  type RunHost,
  type SignalMessage,
  type SignalOutcome,
  SluiceError,
  type SuspendReason,
} from "@sluice/core";
import {
  type AnswerSeal,
  checkAnswer,
  createRequestQueue,
  type InteractionFault,
  type People,
  type RequestQueue,
} from "@sluice/core/runtime";

/** Identifies the request that an answer is for. */
export type AnsweredRequest = Pick<OpenRequest, "runId" | "requestId" | "digest">;

export interface SessionPeople extends People {
  attach(interactor: Interactor): () => void;
  /** Sends an answer given in this process to a request that is open here. */
  answer(request: AnsweredRequest, answer: Answer, by: string): Promise<SignalOutcome>;
  /** Reports the codes of a run's open requests, because it has started a process without a sandbox. */
  unwalled(rootId: string): void;
  close(): void;
}

export interface PeopleOptions {
  readonly signal: RunHost["signal"];
  /** Masks secrets in an answer. */
  readonly clean: (message: SignalMessage) => SignalMessage;
  readonly interactors: readonly Interactor[];
  /**
   * Whether requests without an interactor stay open for other processes. A number suspends the run after a request was open
   * for so many milliseconds.
   */
  readonly wait: boolean | number;
  readonly requestTimeoutMs?: number;
  readonly clock: Clock;
  readonly onFault: (fault: InteractionFault) => void;
  /** A request is open that other processes can answer only with this code. */
  readonly onCode: (request: OpenRequest, code: string) => void;
  /** Suspends the whole run of a request. */
  readonly suspend: (runId: string, reason: SuspendReason) => void;
}

interface Offered {
  readonly request: OpenRequest;
  readonly seal: AnswerSeal;
  readonly timer: NodeJS.Immediate;
  /** False until the next tick: a resumed run offers requests that were answered long ago and withdraws them at once. */
  queued: boolean;
  codeReported: boolean;
  /** Stops the timer that suspends the run. */
  disarm: () => void;
}

/** The session's request queue. Answers are sent like those of other processes, with a seal that proves their origin. */
export function createPeople(options: PeopleOptions): SessionPeople {
  const { signal, clean, interactors, clock, onFault, suspend, onCode } = options;
  const wait = options.wait !== false;
  let attached = interactors.length;
  const offered = new Map<string, Offered>();
  const keyOf = (runId: string, requestId: string): string => JSON.stringify([runId, requestId]);

  /** Seals the answer after its secrets were masked. A request that is no longer open needs no seal. */
  const send = async (
    { runId, requestId, digest }: AnsweredRequest,
    answer: JsonObject,
    by: string,
  ): Promise<SignalOutcome> => {
    const offer = offered.get(keyOf(runId, requestId));
    const { until } = offer?.request.body ?? {};
    const late = typeof until === "number" ? { until } : {};
    const message = clean({ name: `request/${requestId}`, payload: { ...answer, digest }, digest, by, ...late });
    const seal = offer?.seal;
    const payload = isJsonObject(message.payload) ? seal?.seal(message.payload) : undefined;
    return await signal(runId, payload === undefined ? message : { ...message, payload });
  };
  const reportCode = (offer: Offered): void => {
    if (!offer.queued || offer.codeReported || !offer.seal.needsCode()) return;
    offer.codeReported = true;
    onCode(offer.request, offer.seal.code);
  };
  let opened: RequestQueue | undefined;
  let closed = false;
  /** Opened when it is needed first: most runs ask no one. */
  const queue = (): RequestQueue => {
    opened ??= createRequestQueue({
      interactors,
      clock,
      whenNobody: () => (wait ? "wait" : "answer"),
      onLeftOpen: ({ runId, requestId }) => {
        const offer = offered.get(keyOf(runId, requestId));
        if (offer !== undefined && typeof options.wait === "number")
          offer.disarm = clock.after(options.wait, () => suspend(runId, "waiting"));
      },
      onAskedAgain: ({ runId, requestId }) => offered.get(keyOf(runId, requestId))?.disarm(),
      onFault,
      submit: async (request, resolution, by) => {
        try {
          return await send(request, { ...resolution }, by);
        } catch (thrown) {
          // Interactors are not asked again, so the run would wait forever.
          if (!isSluiceError(thrown) || thrown.class !== "Validation") suspend(request.runId, "interrupted");
          throw thrown;
        }
      },
      ...(options.requestTimeoutMs === undefined ? {} : { timeoutMs: options.requestTimeoutMs }),
    });
    return opened;
  };

  return {
    reachable: () => wait || attached > 0,
    offer: (request, seal) => {
      const timer = setImmediate(() => {
        offer.queued = true;
        reportCode(offer);
        if (!closed) queue().add(request);
      });
      const disarm = (): void => undefined;
      const offer: Offered = { request, seal, timer, queued: false, codeReported: false, disarm };
      offered.set(keyOf(request.runId, request.requestId), offer);
    },
    answer: async (request, answer, by) => {
      const open = offered.get(keyOf(request.runId, request.requestId));
      if (open === undefined) return "unknown";
      const checked = checkAnswer(open.request, answer);
      if (checked.ok) return await send(request, { ...checked.answer }, by);
      const message = `the answer does not match request ${request.requestId}: ${checked.fault}`;
      throw new SluiceError("Validation", "answer_invalid", message);
    },
    unwalled: (rootId) => {
      for (const offer of offered.values()) if (offer.request.runId.split("/", 1)[0] === rootId) reportCode(offer);
    },
    withdraw: (runId, requestId) => {
      const key = keyOf(runId, requestId);
      const offer = offered.get(key);
      if (offer === undefined) return;
      clearImmediate(offer.timer);
      offer.disarm();
      offered.delete(key);
      opened?.withdraw(runId, requestId);
    },
    attach: (interactor) => {
      attached += 1;
      const detach = queue().attach(interactor);
      let isAttached = true;
      return () => {
        if (isAttached) attached -= 1;
        isAttached = false;
        detach();
      };
    },
    close: () => {
      for (const { timer, disarm } of offered.values()) {
        clearImmediate(timer);
        disarm();
      }
      offered.clear();
      closed = true;
      opened?.close();
    },
  };
}
