import type { Answer, Interactor, OpenRequest, PersonRequest } from "@sluice/core";

/** Somebody who has answered one request before the run is resumed, and has no opinion of any other. */
export function oneAnswer(
  name: string,
  given: { readonly request: OpenRequest; readonly answer: Answer },
  onAnswered: () => void,
): Interactor {
  return {
    name,
    answer: async (request) => {
      if (!isSameRequest(request, given.request)) return undefined;
      onAnswered();
      return given.answer;
    },
  };
}

/** An interactor who is not asked about a request that is answered already. */
export function except(interactor: Interactor, answered: OpenRequest): Interactor {
  return {
    name: interactor.name,
    answer: async (request, signal) =>
      isSameRequest(request, answered) ? undefined : await interactor.answer(request, signal),
  };
}

export function isSameRequest(one: PersonRequest, other: OpenRequest): boolean {
  return one.runId === other.runId && one.requestId === other.requestId && one.digest === other.digest;
}
