import { type Clock, isSluiceError, type PipelineSpec, type ProgramEnd, type RunProgram } from "@sluice/core";
import { type CallAround, parseSiblingId, pipelinesWithin, textField } from "@sluice/core/runtime";
import { callModel, type ModelCaller, type ModelOutcome } from "../agent/model-call.ts";
import { guarded } from "./guarded.ts";
import type {
  Activity,
  ActivityEnd,
  ModelCallEnd,
  ObservedModelCall,
  RunTelemetry,
  Telemetry,
  TelemetryFault,
} from "./telemetry.ts";
import { redacted, watchedSteps } from "./watched-steps.ts";

/** Wraps runs, model calls and tool calls so that telemetry observes them. */
export function watchRuns(telemetry: Telemetry, clock: Clock, onFault: (fault: TelemetryFault) => void) {
  const guard = guarded(onFault);
  /** Active runs, including siblings. */
  const runs = new Map<string, RunTelemetry>();

  const program = (inner: RunProgram, spec: PipelineSpec, resumed: boolean): RunProgram => {
    // Of states with the same id, those of the pipeline itself count.
    const states = pipelinesWithin(spec)
      .toReversed()
      .flatMap((each) => [...each.states]);
    const kinds = new Map(states.map(([id, { kind }]) => [id, kind]));
    const observe = (runId: string): RunTelemetry | undefined => {
      const sibling = parseSiblingId(runId);
      if (sibling === undefined)
        return guard.ask(() => telemetry.run({ runId, pipeline: spec.id, kinds, resumed, at: clock.now() }));
      const parent = runs.get(sibling.parentId);
      return parent && guard.ask(() => parent.sibling(runId));
    };
    return async (steps, input) => {
      const { runId } = steps;
      const run = observe(runId);
      if (run === undefined) return await inner(steps, input);
      runs.set(runId, run);
      const ended = (end: ActivityEnd): void => {
        guard.ask(() => run.ended(end, clock.now()));
      };
      try {
        const end = await inner(
          watchedSteps(steps, run, guard, () => clock.now()),
          input,
        );
        guard.ask(() => run.recorded(end.events.map(redacted), clock.now()));
        ended(endOf(end));
        return end;
      } catch (thrown) {
        ended(stoppedBy(thrown));
        throw thrown;
      } finally {
        runs.delete(runId);
      }
    };
  };

  /** Runs `work` in an activity and reports its end. */
  const during = async <T, E>(activity: Activity<E>, work: () => Promise<T>, endOf: (value: T) => E, thrown: E) => {
    let end = thrown;
    try {
      const value = await guard.within((begin) => activity.within(begin), work);
      end = endOf(value);
      return value;
    } finally {
      guard.ask(() => activity.ended(end, clock.now()));
    }
  };

  const call: ModelCaller = async (request, place) => {
    const run = runs.get(place.runId);
    const activity = run && guard.ask(() => run.model(modelCall(request, place, clock.now())));
    if (activity === undefined) return await callModel(request, clock);
    const end = (outcome: ModelOutcome): ModelCallEnd => modelCallEnd(outcome, place.clean);
    return await during(activity, () => callModel(request, clock), end, LOST);
  };

  const around: CallAround = async ({ runId, executionId, attempt, proposalId: callId }, tool, work) => {
    const run = runs.get(runId);
    const activity = run && guard.ask(() => run.tool({ executionId, attempt, callId, tool, at: clock.now() }));
    if (activity === undefined) return await work();
    return await during(activity, work, () => undefined, undefined);
  };

  return { program, call, around };
}

/** The end of a call whose outcome is unknown because a listener threw. */
const LOST: ModelCallEnd = { ok: false, code: "model_call_failed", aborted: false };

function endOf({ status, events }: ProgramEnd): ActivityEnd {
  const finished = events.find(({ type }) => type === "run.finished");
  const code = textField(finished?.data.error, "code");
  return code === undefined ? { status } : { status, code };
}

function stoppedBy(thrown: unknown): ActivityEnd {
  if (isSluiceError(thrown, "run_stopped")) return { status: "suspended" };
  if (isSluiceError(thrown) && thrown.class === "Cancellation") return { status: "cancelled" };
  return { status: "stopped", code: isSluiceError(thrown) ? thrown.code : "run_faulted" };
}

function modelCall(
  { temperature, topP, seed, stopSequences, maxOutputTokens }: Parameters<ModelCaller>[0],
  { runId: _run, clean: _clean, ...place }: Parameters<ModelCaller>[1],
  at: number,
): ObservedModelCall {
  return {
    ...place,
    at,
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(seed === undefined ? {} : { seed }),
    ...(stopSequences === undefined ? {} : { stopSequences }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
  };
}

function modelCallEnd(outcome: ModelOutcome, clean: (text: string) => string): ModelCallEnd {
  if (!outcome.ok) {
    const { code, kind, status } = outcome.error;
    return { ok: false, code, aborted: kind === "aborted", ...(status === undefined ? {} : { status }) };
  }
  const { finishReason, usage, response } = outcome;
  const tokens = {
    input: usage.inputTokens,
    output: usage.outputTokens,
    cacheRead: usage.cacheReadTokens,
    cacheWrite: usage.cacheWriteTokens,
    reasoning: usage.reasoningTokens,
  };
  return {
    ok: true,
    finishReason,
    usage: usage.known ? tokens : undefined,
    ...(response?.id === undefined ? {} : { responseId: clean(response.id) }),
    ...(response?.model === undefined ? {} : { responseModel: clean(response.model) }),
  };
}
