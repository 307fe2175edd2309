// The last word of an orchestrator, after its run has ended and before that is recorded.

import { wholeWords } from "../../base/cut-texts.ts";
import { SluiceError } from "../../base/errors.ts";
import { field, type Json, textField } from "../../base/json.ts";
import type { StepCall, StepOptions, StepRunner } from "../../journal/seam.ts";
import { apply, countOf } from "../../machine/machine-state.ts";
import type { MachineEnd } from "../../machine/transition-types.ts";
import type { Detours } from "../execution.ts";
import { type Acknowledgement, addTo } from "../run-result.ts";
import { execute } from "../stage/execute.ts";
import type { Walk } from "./one-run.ts";
import { executionOf, noDetour } from "./walk.ts";

/** So that it cannot keep an ended run alive. */
const LONGEST_MS = 60_000;
/** Characters of a text, which the end of the run records. */
const LONGEST_TEXT = 8_000;

/** Executes the orchestrator once more, also of a failed or cancelled run. Whatever it does, the run's end stays as it is. */
export async function acknowledgementOf(
  walk: Walk,
  end: MachineEnd,
  orchestrator: string,
): Promise<Acknowledgement | undefined> {
  const { pipeline, steps, state, account } = walk;
  const { spec, deps } = pipeline;
  if (spec.states.get(orchestrator)?.acknowledges !== true) return undefined;
  // A run that ended before it began has no conversation to close.
  if (countOf(state, orchestrator).visits === 0) return undefined;
  apply(state, { enter: { state: orchestrator, input: inputOf(end) } });
  const limit = new AbortController();
  const none = {
    handling: undefined,
    fault: undefined,
    left: undefined,
    interrupted: undefined,
    watch: noWatch,
    unwatch: noWatch,
  };
  const detours: Detours = { ...none, signal: limit.signal, acting: undefined, take: noDetour };
  const abort = (reason: SluiceError): void => {
    limit.abort(reason);
    detours.acting?.check();
  };
  // A run that was cancelled before has its last word all the same; a cancel from now on ends it.
  const onCancel = (): void => abort(new SluiceError("Cancellation", "run_cancelled", "cancelled"));
  if (!steps.signal.aborted) steps.signal.addEventListener("abort", onCancel, { once: true });
  const disarm = deps.clock.after(LONGEST_MS, () =>
    abort(new SluiceError("Cancellation", "timeout", `it took more than ${LONGEST_MS} ms`)),
  );
  try {
    const own = { ...walk, steps: new ClosingSteps(steps, limit.signal) };
    const ended = await execute({ ...executionOf(own, false, detours), closing: true });
    addTo(account, ended);
    return ended.result.status === "completed" ? readAcknowledgement(ended.result.output) : undefined;
  } finally {
    disarm();
    steps.signal.removeEventListener("abort", onCancel);
  }
}

/** No one interrupts a last word: a cancel ends it. */
function noWatch(): void {
  return;
}

/** What the orchestrator reads of the end. */
function inputOf(end: MachineEnd): Json {
  switch (end.status) {
    case "completed":
      return { status: end.status, output: end.output };
    case "failed":
      return { status: end.status, code: end.code, message: end.message };
    case "cancelled":
      return { status: end.status, reason: end.reason };
  }
}

function readAcknowledgement(output: Json): Acknowledgement | undefined {
  const text = textField(output, "text");
  if (text === undefined) return undefined;
  const input = field(field(output, "followUp"), "input");
  return { text: wholeWords(text, LONGEST_TEXT), ...(input === undefined ? {} : { followUp: { input } }) };
}

/** The steps of a run that has ended: a cancel that came before does not abort them. */
class ClosingSteps implements StepRunner {
  readonly runId: string;
  readonly incarnation: string;
  readonly signal: AbortSignal;
  readonly #steps: StepRunner;

  constructor(steps: StepRunner, signal: AbortSignal) {
    this.runId = steps.runId;
    this.incarnation = steps.incarnation;
    this.signal = signal;
    this.#steps = steps;
  }

  run<T extends Json>(stepId: string, fn: (call: StepCall) => Promise<T> | T, options?: StepOptions<T>): Promise<T> {
    return this.#steps.run(stepId, (call) => fn(this.#calling(call)), options);
  }

  get recovering(): boolean {
    return this.#steps.recovering;
  }

  beforeWork: StepRunner["beforeWork"] = (listener, always) => this.#steps.beforeWork(listener, always);

  #calling(call: StepCall): StepCall {
    const { signal } = this;
    const { opened, recorded } = call;
    return {
      signal,
      event: (draft) => call.event(draft),
      hold: (work) => call.hold(work),
      signals: () => call.signals(),
      ...(opened === undefined ? {} : { opened }),
      ...(recorded === undefined ? {} : { recorded }),
    };
  }

  now: StepRunner["now"] = (stepId) => this.#steps.now(stepId);
  sleepUntil: StepRunner["sleepUntil"] = (stepId, epochMs) => this.#steps.sleepUntil(stepId, epochMs);
  sleep: StepRunner["sleep"] = (stepId, epochMs, options) => this.#steps.sleep(stepId, epochMs, options);
  awaitResume: StepRunner["awaitResume"] = (stepId, options) => this.#steps.awaitResume(stepId, options);
  waitForSignal: StepRunner["waitForSignal"] = (name, options) => this.#steps.waitForSignal(name, options);
  takeSignals: StepRunner["takeSignals"] = (stepId, name) => this.#steps.takeSignals(stepId, name);
  runChildren: StepRunner["runChildren"] = (stepId, children, options) =>
    this.#steps.runChildren(stepId, children, options);
  whenInterrupted: StepRunner["whenInterrupted"] = (listener) => this.#steps.whenInterrupted(listener);
  interruptible: StepRunner["interruptible"] = (listener) => this.#steps.interruptible(listener);
  suspend: StepRunner["suspend"] = () => this.#steps.suspend();
  emit: StepRunner["emit"] = (channel, chunk) => this.#steps.emit(channel, chunk);
  heard: StepRunner["heard"] = () => this.#steps.heard();
}
