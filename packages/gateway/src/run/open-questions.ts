import type { Interactor, PersonRequest } from "@sluice/core";
import type { OpenQuestion } from "./gateway-run-types.ts";
import { questionOf } from "./words.ts";

/** The requests of a run that a person has to answer. */
export interface OpenQuestions {
  /** Sees every request of the run and answers none. */
  readonly observer: Interactor;
  /** The oldest one, of one run if that is given. */
  first(runId?: string): OpenQuestion | undefined;
}

export function createOpenQuestions(onChange: () => void): OpenQuestions {
  const requests = new Map<string, OpenQuestion>();
  return {
    observer: {
      name: "gateway",
      observes: true,
      answer: (request, signal) =>
        new Promise((resolve) => {
          const key = keyOf(request);
          requests.set(key, questionOf(request));
          const close = (): void => {
            requests.delete(key);
            onChange();
            resolve(undefined);
          };
          if (signal.aborted) close();
          else signal.addEventListener("abort", close, { once: true });
          onChange();
        }),
    },
    first: (runId) => [...requests.values()].find((one) => runId === undefined || one.runId === runId),
  };
}

function keyOf({ runId, requestId }: PersonRequest): string {
  return JSON.stringify([runId, requestId]);
}
