import type { RunView } from "../run-view.ts";

/** What a view shows of one pipeline: of the root's, or of one that a run invoked. */
export type PipelinePart = Pick<
  RunView,
  "runId" | "pipeline" | "initial" | "states" | "rows" | "interrupts" | "executions" | "path" | "forks"
>;

/** The part of a view that is about one pipeline, without those that it invokes; by default about the root's. */
export function pipelinePart(view: RunView, runId: string = view.runId): PipelinePart {
  const { invoked } = view;
  if (invoked.length === 0) return view;
  const known = new Map<string, boolean>();
  const isWithin = (other: string): boolean => {
    const answer = known.get(other) ?? pipelineRunOf(view, other) === runId;
    known.set(other, answer);
    return answer;
  };
  const { pipeline, states, rows, interrupts, initial } = invoked.find((one) => one.runId === runId) ?? view;
  return {
    runId,
    pipeline,
    states,
    rows,
    interrupts,
    ...(initial === undefined ? {} : { initial }),
    executions: view.executions.filter((one) => (one.invoked ?? view.runId) === runId),
    path: view.path.filter((hop) => isWithin(hop.runId)),
    forks: view.forks.filter((fork) => isWithin(fork.runId)),
  };
}

/** The run whose pipeline a run runs a part of, or its own: the innermost that invoked it. */
function pipelineRunOf({ runId, invoked }: Pick<RunView, "runId" | "invoked">, other: string): string {
  const around = invoked.filter((one) => other === one.runId || other.startsWith(`${one.runId}/`));
  return around.reduce((inner, one) => (one.runId.length > inner.length ? one.runId : inner), runId);
}
