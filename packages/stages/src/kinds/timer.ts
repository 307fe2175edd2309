// A state that waits until a time, or for a length of time. The process may end meanwhile.
import {
  type ActOutcome,
  type ActScope,
  type AnyState,
  field,
  type Json,
  type JsonObject,
  SluiceError,
  type State,
  type StateExecutor,
} from "@sluice/core";
import {
  type CompiledTemplate,
  createReport,
  isObject,
  LAST_DATE,
  type Report,
  redactText,
  shortened,
  stateSpec,
} from "@sluice/core/runtime";
import { type Duration, parseDuration } from "./duration.ts";
import { cancelled, completed, type ErasedCommon, failed, type KindCommon, templateAt } from "./kind-common.ts";

const TIMER = "timer";

/** What a timer completes with. A type alias, since outputs are JSON. */
export type TimerOutput = {
  /** How long it waited, in milliseconds. */
  readonly elapsedMs: number;
  /** When it completed, in epoch milliseconds. */
  readonly timestamp: number;
};
/** How long a timer waits. */
export type TimerTime =
  /** Counted from when the state is entered. */
  | { readonly for: Duration; readonly until?: never }
  /** Epoch milliseconds, an ISO 8601 time such as `2027-01-31T09:00:00Z`, or a template that gives one. */
  | { readonly until: number | string; readonly for?: never };
export type TimerOptions<A extends Record<string, AnyState>, I> = KindCommon<A, I, TimerOutput> & TimerTime;

type TimerSpec =
  | { readonly kind: "for"; readonly ms: number }
  | { readonly kind: "until"; readonly at: number }
  | { readonly kind: "template"; readonly text: CompiledTemplate };

/**
 * Defines a state that waits, without a model and without a process. A time that has passed completes it at once; a template that
 * gives no time fails it with code `timer`. Never throws: `pipeline()` reports its problems with all others.
 */
export function timer<const A extends Record<string, AnyState> = Record<never, never>, I = undefined>(
  options: TimerOptions<A, I>,
): State<TimerOutput, NoInfer<I>>;
export function timer(given: ErasedCommon & { readonly for?: Duration; readonly until?: number | string }): State {
  const { for: length, until, ...common } = given;
  const report = createReport();
  const options = readTime(report, length, until);
  const spec = stateSpec(
    TIMER,
    { ...common, allowedTools: [] },
    {
      options,
      keys: ["reads", "for", "until"],
      problems: report.problems,
      templates: options.kind === "template" ? { until: options.text.references } : {},
      parts: length === undefined ? { until: { data: until ?? null } } : { for: { data: length } },
      shape: options.kind === "for" ? { forMs: options.ms } : {},
    },
  );
  return { kind: TIMER, spec };
}

export const timerExecutor: StateExecutor = {
  kind: TIMER,
  init: ({ options }, ctx): JsonObject => {
    const time = timerOf(options);
    if (time.kind === "for") return { forMs: time.ms };
    return { until: time.kind === "until" ? time.at : time.text.render(ctx) };
  },
  act: async (init, scope) => {
    const started = await scope.steps.now("started");
    const until = untilOf(init, started);
    if (!until.ok) return failed("timer", until.message);
    return await waitUntil(scope, started, until.at);
  },
};

async function waitUntil(scope: ActScope, started: number, until: number): Promise<ActOutcome> {
  if (until > started) await scope.sleep("sleep", until);
  if (scope.signal.aborted) return cancelled(scope);
  const timestamp = await scope.steps.now("ended");
  // A clock that was set back meanwhile must not give a time below 0.
  const output: TimerOutput = { elapsedMs: Math.max(0, timestamp - started), timestamp };
  return completed(output);
}

function readTime(report: Report, length: unknown, until: unknown): TimerSpec {
  if ((length === undefined) === (until === undefined)) {
    report.add("for", "a timer must have either for or until", 'for: "15m", or until: "2027-01-31T09:00:00Z"');
    return { kind: "for", ms: 0 };
  }
  if (length !== undefined) {
    const read = parseDuration(length);
    if (read.ok) return { kind: "for", ms: read.ms };
    report.add("for", read.message);
    return { kind: "for", ms: 0 };
  }
  if (typeof until === "string" && until.includes("{{"))
    return { kind: "template", text: templateAt(report, "until", until) };
  const read = readPointInTime(until);
  if (read.ok) return { kind: "until", at: read.at };
  report.add("until", read.message);
  return { kind: "until", at: 0 };
}

type PointInTime = { readonly ok: true; readonly at: number } | { readonly ok: false; readonly message: string };

/** When the state completes, by what init has recorded. */
function untilOf(init: Json, started: number): PointInTime {
  const forMs = field(init, "forMs");
  if (typeof forMs === "number") return { ok: true, at: started + forMs };
  const until = field(init, "until");
  const read = readPointInTime(until);
  if (read.ok || typeof until !== "string") return read;
  return {
    ok: false,
    message: `until ${read.message}; its template gave ${JSON.stringify(shortened(redactText(until), 100))}`,
  };
}

const NUMBER = /^\d{1,16}$/;
/** A date, or a date and a time with its offset: without one, it would mean another time in another process. */
const ISO = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

/** Reads the time of a timer, from a value of any type, since files hold whatever their author wrote. */
export function readPointInTime(value: unknown): PointInTime {
  const wanted =
    "must be a time in epoch milliseconds, or an ISO 8601 time with its offset such as 2027-01-31T09:00:00Z";
  const text = typeof value === "string" ? value.trim() : undefined;
  const at =
    text === undefined ? value : NUMBER.test(text) ? Number(text) : ISO.test(text) ? Date.parse(text) : undefined;
  return typeof at === "number" && Number.isInteger(at) && at > 0 && at <= LAST_DATE
    ? { ok: true, at }
    : { ok: false, message: wanted };
}

function timerOf(options: unknown): TimerSpec {
  if (isTimerSpec(options)) return options;
  throw new SluiceError("Validation", "state_invalid", "create a state of kind timer with timer()");
}

function isTimerSpec(options: unknown): options is TimerSpec {
  return (
    isObject(options) && (typeof options.ms === "number" || typeof options.at === "number" || isObject(options.text))
  );
}
