// What an executor gets for one attempt, and when an executor that ignores a cancel is abandoned.
import { isSluiceError, messageOf, SluiceError } from "../../base/errors.ts";
import { deepFreeze, type Json, jsonFault } from "../../base/json.ts";
import type { StageContext } from "../../definition/result.ts";
import { providerFaultPolicy } from "../../definition/state-rules.ts";
import type { EventDraft } from "../../journal/events.ts";
import { maskSecrets } from "../../journal/redaction.ts";
import type { RunFault, StepCall, StepOptions } from "../../journal/seam.ts";
import { isKindStepName, stepIds, stepNames } from "../../journal/step-id.ts";
import type { Attempt, AttemptJournal } from "../attempt.ts";
import type { Execution } from "../execution.ts";
import type { ActOutcome, ActScope } from "../executor.ts";
import { ABORT_GRACE_MS, cancelReason } from "../limits/limits.ts";
import { acceptEvent, acceptedBefore } from "../requests/accept.ts";
import type { AnswerRule } from "../requests/answer.ts";
import { askPerson } from "../requests/ask-person.ts";
import { type Calls, createCalls } from "../tool-calls/run-tool-calls.ts";
import { checkedOutput, readOutcome } from "./check-outcome.ts";
import { endedBeforeAct } from "./enter.ts";
import { ENTERED, left } from "./phases.ts";
import { type SleepCounts, sleepThrough } from "./sleep.ts";

/** Runs the executor of an attempt. `turnsBefore` are the turns of this state before this attempt. */
export async function act(attempt: Attempt, ctx: StageContext, init: Json, turnsBefore: number): Promise<ActOutcome> {
  const { execution, journal } = attempt;
  journal.note("stage.act", ENTERED);
  const open = openScope(attempt, ctx, turnsBefore);
  const acted = await outcomeOrAbandon(execution, init, open);
  const cancelled = cancelReason(execution.detours.signal);
  // A token never survives its attempt, even if the executor still holds it.
  for (const requestId of open.close()) {
    journal.note("grant.expired", { requestId, cause: cancelled === undefined ? "attempt_finished" : "cancelled" });
  }
  const { left: leftBy, interrupted } = execution.detours;
  const outcome =
    acted === undefined || leftBy !== undefined || interrupted !== undefined
      ? cancelledWith(acted, cancelled ?? "cancelled", interrupted !== undefined)
      : await checkedOutput(journal, execution.state, acceptedBy(attempt, acted));
  journal.note("stage.act", left("outcome", outcome.status));
  return outcome;
}

/** What was used counts, however the executor of a cancelled attempt ends. What it did counts if the state is entered again. */
function cancelledWith(acted: ActOutcome | undefined, reason: string, isEnteredAgain: boolean): ActOutcome {
  const none = endedBeforeAct({ kind: "cancelled", reason });
  const outcome = acted === undefined ? none : readOutcome("", acted);
  const { turns, usage } = outcome;
  const partial = isEnteredAgain ? partialOf(outcome) : undefined;
  return { status: "cancelled", reason, turns, usage, ...(partial === undefined ? {} : { partial }) };
}

/** What an interrupted execution has done: it may have completed just then. */
function partialOf(outcome: ActOutcome): Json | undefined {
  const partial =
    outcome.status === "cancelled" ? outcome.partial : outcome.status === "completed" ? outcome.output : undefined;
  return partial === undefined || jsonFault(partial) !== undefined ? undefined : partial;
}

/** An attempt that completes after an event was accepted has the output that the machine decided about. */
function acceptedBy({ accepted }: Attempt, acted: ActOutcome): ActOutcome {
  return accepted !== undefined && acted.status === "completed" ? { ...acted, output: accepted.output } : acted;
}

/**
 * What the executor returns. Undefined if it ignores a cancel for the grace period, which starts when none of its work is
 * in flight. Rejects if the run has to stop in this process.
 */
function outcomeOrAbandon(
  { executor, detours, deps }: Execution,
  init: Json,
  open: OpenScope,
): Promise<ActOutcome | undefined> {
  const { signal } = detours;
  return new Promise((resolve, reject) => {
    let settled = false;
    let disarm: (() => void) | undefined;
    const settle = (): void => {
      settled = true;
      disarm?.();
      signal.removeEventListener("abort", check);
    };
    const fail = (thrown: unknown): void => {
      settle();
      // An execution that was left takes no more steps, so whatever its executor throws has no effect.
      // One that was interrupted may throw for that reason, unless its run has to stop here.
      const isInterrupted = detours.interrupted !== undefined && !(isSluiceError(thrown) && thrown.class === "Host");
      if (detours.left !== undefined || isInterrupted) resolve(undefined);
      else reject(thrown instanceof Error ? thrown : new Error(messageOf(thrown)));
    };
    const check = (): void => {
      disarm?.();
      if (settled || !signal.aborted || open.busy()) return;
      try {
        // Throws when the run continues elsewhere: nothing can be recorded here, so there is nothing to wait for.
        cancelReason(signal);
        disarm = deps.clock.after(ABORT_GRACE_MS, () => {
          settle();
          resolve(undefined);
        });
      } catch (stopped) {
        fail(stopped);
      }
    };
    executor.act(init, open.scope).then((acted) => {
      settle();
      resolve(acted);
    }, fail);
    open.onBusy(check);
    signal.addEventListener("abort", check, { once: true });
    check();
  });
}

/** The scope of one attempt and the work that its executor has in flight. */
interface OpenScope {
  readonly scope: ActScope;
  busy(): boolean;
  /** The listener is called whenever `busy` may have changed. */
  onBusy(listener: () => void): void;
  /** Rejects all further work of the executor. Returns the requests that were never settled. */
  close(): readonly string[];
}

function openScope(attempt: Attempt, entry: StageContext, turnsBefore: number): OpenScope {
  const { execution, executionId, journal, limits, slot } = attempt;
  const { state, stateId, events, targets, pauses, offer, env, deps, detours, kept, closing, returns } = execution;
  // Created by the first call: an attempt without calls needs no grants.
  let calls: Calls | undefined;
  const asked = new Set<string>();
  let candidates = 0;
  let sleeps = 0;
  let suspensions = 0;
  const counts: SleepCounts = { messages: 0 };
  let closed = false;
  let inFlight = 0;
  let busyChanged = (): void => undefined;

  const ended = (): void => {
    inFlight -= 1;
    busyChanged();
  };
  const during = <T>(work: () => Promise<T>): Promise<T> => {
    if (closed || detours.left !== undefined) {
      const message = `attempt ${attempt.number} of ${executionId} has ended`;
      return Promise.reject(new SluiceError("Host", "attempt_over", message));
    }
    if (detours.active) {
      const message = `${executionId} waits for the handler of an interrupt, and can do nothing else meanwhile; await every call`;
      return Promise.reject(new SluiceError("Host", "step_overlap", message));
    }
    inFlight += 1;
    busyChanged();
    try {
      const working = work();
      working.then(ended, ended);
      return working;
    } catch (thrown) {
      ended();
      throw thrown;
    }
  };

  /** A step of the kind's own, which cannot pass for one of the run's, such as a verdict. */
  const step = <T>(name: string, work: () => Promise<T>): Promise<T> => {
    if (isKindStepName(name)) return during(work);
    const message = `${executionId}: a kind of state cannot name a step ${JSON.stringify(name)}, because ${name === "" ? "that is no name" : "the run itself uses this name"}; choose another one`;
    return Promise.reject(new SluiceError("Host", "step_name_reserved", message));
  };

  const scope: ActScope & { ctx: StageContext } = {
    steps: {
      incarnation: journal.incarnation,
      run: (stepId, fn, options) =>
        step(stepId, () =>
          journal.run(
            stepId,
            (call) => fn(new KindCall(call, journal)),
            openOfKind(options, journal, execution.deps.answers),
          ),
        ),
      now: (stepId) => step(stepId, () => journal.now(stepId)),
      sleepUntil: (stepId, epochMs) =>
        step(stepId, async () => {
          refuseNoTime(stepId, epochMs);
          await journal.sleepUntil(stepId, epochMs);
        }),
      emit: (channel, chunk) => journal.emit(channel, chunk),
      heard: () => journal.heard(),
    },
    state,
    stateId,
    events,
    targets,
    pauses,
    executionId,
    ctx: entry,
    turnsBefore,
    kept,
    offer,
    env,
    startsUnwalled: deps.answers.startsUnwalled,
    budget: limits,
    deadline: limits,
    signal: detours.signal,
    used: () => deepFreeze(attempt.used.calls),
    secrets: deps.secrets,
    calls: (turn, requests) =>
      during(async () => {
        calls ??= createCalls(attempt, entry);
        const outcomes = await calls.run(turn, requests);
        // The handler of an interrupt may have changed it. A getter would make every attempt's scope slower.
        scope.ctx = attempt.contextNow(entry);
        return outcomes;
      }),
    accept: (candidate) =>
      during(async () => {
        if (attempt.accepted !== undefined) return acceptedBefore(attempt.accepted);
        const number = candidates;
        candidates += 1;
        const { acceptance, accepted } = await acceptEvent(attempt, attempt.contextNow(entry), candidate, number);
        attempt.accepted = accepted;
        return acceptance;
      }),
    ask: ({ name, ...asks }) =>
      during(async () => {
        refuseRepeated(asked, executionId, name);
        return await askPerson(attempt, { name, ...asks });
      }),
    mode: execution.deps.mode,
    runChildren: (name, children) =>
      during(() => {
        const stepId = stepIds.children(executionId, attempt.number, name);
        return slot.withSlotReleased(() => execution.runChildren(stepId, children));
      }),
    wait: (stepId, until) =>
      step(stepId, async () => {
        refuseNoTime(stepId, until);
        await slot.withSlotReleased(() => journal.sleepUntil(stepId, until));
      }),
    sleep: (name, until, data = {}) =>
      step(name, async () => {
        refuseNoTime(name, until);
        sleeps += 1;
        await sleepThrough(attempt, counts, { name, until, data: { ...data, until, sleeps } });
      }),
    providerFaults: () => providerFaultPolicy(state, execution.providerFaults),
    suspend: (fault) =>
      during(async () => {
        refuseNoTime("a suspension", fault.retryAt ?? 0);
        suspensions += 1;
        const name = stepNames.suspension(suspensions);
        const masked = maskSecrets<RunFault>(fault, deps.secrets);
        await slot.withSlotReleased(() => journal.awaitResume(name, masked));
      }),
    note: (draft) => {
      const { type, data } = eventOfKind(draft, journal);
      journal.note(type, data);
    },
    // Last, since a member that follows these would cost more memory.
    ...(closing === undefined ? {} : { closing }),
    ...(returns === undefined ? {} : { returns }),
  };
  return {
    scope,
    busy: () => inFlight > 0,
    onBusy: (listener) => {
      busyChanged = listener;
    },
    close: () => {
      closed = true;
      return calls?.close() ?? [];
    },
  };
}

/** A wait until no time would never end, and its record could not hold it. */
function refuseNoTime(name: string, until: number): void {
  if (!Number.isFinite(until))
    throw new SluiceError("Validation", "not_json", `the time until which ${name} waits is ${until}, which is no time`);
}

/** The answer to one request must never count for another. */
function refuseRepeated(asked: Set<string>, executionId: string, name: string): void {
  if (name !== "" && asked.size < asked.add(name).size) return;
  const why = name === "" ? "has no name" : `has the name ${JSON.stringify(name)} of an earlier one`;
  throw new SluiceError("Host", "request_repeated", `${executionId}: a request ${why}; names are unique in an attempt`);
}

/** A step's call as a kind gets it: all of it, except that its events are of its attempt and not about requests. */
class KindCall implements StepCall {
  readonly #call: StepCall;
  readonly #journal: AttemptJournal;
  readonly opened?: NonNullable<StepCall["opened"]>;
  readonly recorded?: NonNullable<StepCall["recorded"]>;

  constructor(call: StepCall, journal: AttemptJournal) {
    this.#call = call;
    this.#journal = journal;
    const { opened, recorded } = call;
    if (opened !== undefined) this.opened = opened;
    if (recorded !== undefined) this.recorded = recorded;
  }

  // Functions of their own, since they are passed on without the call; made on access, since most calls use few of them.
  get event(): StepCall["event"] {
    return (draft) => this.#call.event(eventOfKind(draft, this.#journal));
  }

  get hold(): StepCall["hold"] {
    return this.#call.hold;
  }

  get signals(): StepCall["signals"] {
    return this.#call.signals;
  }

  /** Read from the call, which creates it on first access. */
  get signal(): AbortSignal {
    return this.#call.signal;
  }
}

function openOfKind<T extends Json>(
  options: StepOptions<T> | undefined,
  journal: AttemptJournal,
  answers: Pick<AnswerRule, "startsUnwalled">,
): StepOptions<T> | undefined {
  const open = options?.open;
  if (open === undefined) return options;
  // Not by the list's own `map`, which could return other events.
  const events: EventDraft[] = [];
  for (const draft of open.events) events.push(eventOfKind(draft, journal));
  // What the command starts could answer requests of its own run.
  if (events.some(({ type, data }) => type === "command.started" && data.wall === "none")) answers.startsUnwalled();
  return { ...options, open: { ...open, events } };
}

/**
 * Only the run says what became of it: a person would be shown what a kind says of a call, the gate would take the answer, and a
 * resumed run would count a process or a sleep that never was. A draft of its own, since the kind still holds the other.
 */
const OF_THE_RUN =
  /^(?:run|stage|attempt|call|grant|request|fanOut|sleep|interrupt|execution|context|hook)\.|^route\.decided$/;
function eventOfKind({ type, data }: Pick<EventDraft, "type" | "data">, journal: AttemptJournal): EventDraft {
  if (!OF_THE_RUN.test(type)) return journal.event(type, data);
  throw new SluiceError("Validation", "event_unknown", `${type} is an event that only the run writes`);
}
