import { isSluiceError, messageOf } from "../../base/errors.ts";
import { isPromiseLike, type JsonObject } from "../../base/json.ts";
import { thrownAt } from "../../base/source-place.ts";
import type { FailureCode, StageResult } from "../../definition/result.ts";
import type { AssertAnswer, PreconditionAnswer } from "../../definition/state-rules.ts";
import type { EventType } from "../../journal/events.ts";
import { sharedData } from "../../journal/redaction.ts";
import type { StepCall } from "../../journal/seam.ts";
import type { Attempt } from "../attempt.ts";
import { cancelReason, type Deadline, raceAbort } from "../limits/limits.ts";

type PhaseEvent = Extract<EventType, `stage.${string}`>;
/** The hook that a phase runs, as its author knows it. */
const CODE_OF: Partial<Record<PhaseEvent, string>> = {
  "stage.setup": "setup",
  "stage.init": "the prompt",
  "stage.precondition": "precondition",
  "stage.assert": "assert",
};

// Types, not interfaces: they are recorded, and only types count as JSON to the compiler.

/** Why a hook gave no usable answer. */
export type MissingAnswer =
  | {
      readonly kind: "failed";
      readonly code: FailureCode;
      readonly message: string;
      readonly limit?: string;
      /** Where the hook threw: `src/pipeline.ts:41:9`. */
      readonly at?: string;
    }
  | { readonly kind: "cancelled"; readonly reason: string };
export type HookAnswer<T> = { readonly kind: "answered"; readonly value: T } | MissingAnswer;
/** A hook's return value after validation: user code may return anything. */
export type PhaseAnswer<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: string };

/** The hook of one phase. Without `ask`, the answer is `otherwise`. */
export interface PhaseHook<T> {
  readonly ask: (() => unknown) | undefined;
  read(value: unknown): PhaseAnswer<T>;
  readonly otherwise: T;
  /** Data of the event after the phase. */
  say(value: T): JsonObject;
}

/** Runs phases inside one step, with an event before and after each, whatever its hook does. */
export interface Phases {
  note(type: EventType, data: JsonObject): void;
  /** A promise only if the hook returned one. */
  through<T>(type: PhaseEvent, hook: PhaseHook<T>): Promise<HookAnswer<T>> | HookAnswer<T>;
}

export function createPhases({ journal, execution, limits }: Attempt, call: StepCall): Phases {
  const { signal } = execution.detours;
  const workspace = execution.deps.workspace.root;
  // Each access makes a function.
  const { event } = call;
  const note = (type: EventType, data: JsonObject): void => event(journal.event(type, data));
  return {
    note,
    through: <T>(type: PhaseEvent, hook: PhaseHook<T>) => {
      note(type, ENTERED);
      const answered = (answer: HookAnswer<T>): HookAnswer<T> => {
        note(type, answer.kind === "answered" ? hook.say(answer.value) : left("outcome", answer.kind));
        if (answer.kind === "failed" && answer.limit !== undefined) {
          note("limit.reached", { limit: answer.limit, message: answer.message });
        }
        return answer;
      };
      const answer = answerOf(hook, { name: CODE_OF[type] ?? type, workspace, signal, limits });
      return answer instanceof Promise ? answer.then(answered) : answered(answer);
    },
  };
}

/** How a hook is called: by which name, for whom to say where it threw, and within which limits. */
interface HookCall {
  readonly name: string;
  readonly workspace: string;
  readonly signal: AbortSignal;
  readonly limits: Deadline;
}

/** Calls a hook inside a step. A throw, a time cap that passes and a cancel of the run become values, which call the hook `name`. */
function answerOf<T>(hook: PhaseHook<T>, call: HookCall): Promise<HookAnswer<T>> | HookAnswer<T> {
  const cancelled = cancelReason(call.signal);
  if (cancelled !== undefined) return { kind: "cancelled", reason: cancelled };
  if (hook.ask === undefined) return { kind: "answered", value: hook.otherwise };
  let value: unknown;
  try {
    value = hook.ask();
    if (isPromiseLike(value)) return awaitedAnswer(hook, call, value);
  } catch (thrown) {
    return failedHook(thrown, call);
  }
  return readAnswer(hook, value);
}

async function awaitedAnswer<T>(
  hook: PhaseHook<T>,
  call: HookCall,
  answering: PromiseLike<unknown>,
): Promise<HookAnswer<T>> {
  const { name, signal, limits } = call;
  let ended: { readonly value: unknown } | undefined;
  try {
    ended = await limits.timed(signal, (timed) => raceAbort(timed, Promise.resolve(answering)));
  } catch (thrown) {
    return failedHook(thrown, call);
  }
  if (ended !== undefined) return readAnswer(hook, ended.value);
  const reason = cancelReason(signal);
  if (reason !== undefined) return { kind: "cancelled", reason };
  const hit = limits.exceeded();
  const message = `${hit?.message ?? "a time limit was passed"}; ${name} was still running`;
  return { kind: "failed", code: "timeout", message, ...(hit === undefined ? {} : { limit: hit.limit }) };
}

function failedHook(thrown: unknown, { name, workspace }: HookCall): MissingAnswer {
  const message = isSluiceError(thrown) ? thrown.message : `${name} threw: ${messageOf(thrown)}`;
  return { kind: "failed", code: "hook", message, ...thrownAt(thrown, workspace) };
}

function readAnswer<T>({ read }: PhaseHook<T>, value: unknown): HookAnswer<T> {
  const reading = read(value);
  if (reading.ok) return { kind: "answered", value: reading.value };
  return { kind: "failed", code: "hook", message: reading.fault };
}

export function readPreconditionAnswer(value: unknown): PhaseAnswer<PreconditionAnswer> {
  if (value === "proceed" || value === "skip") return { ok: true, value };
  if (typeof value === "object" && value !== null && "retryAfterMs" in value) {
    const { retryAfterMs } = value;
    if (typeof retryAfterMs === "number" && Number.isFinite(retryAfterMs)) return { ok: true, value: { retryAfterMs } };
  }
  return {
    ok: false,
    fault: 'precondition returned neither "proceed", nor "skip", nor { retryAfterMs: milliseconds }',
  };
}

export function readAssertAnswer(value: unknown): PhaseAnswer<AssertAnswer> {
  if (value === "ok") return { ok: true, value };
  if (typeof value === "object" && value !== null) {
    // Read once: a getter could return something else the next time.
    const { retry, fail }: { readonly retry?: unknown; readonly fail?: unknown } = value;
    if (typeof retry === "string") return { ok: true, value: { retry } };
    if (typeof fail === "string") return { ok: true, value: { fail } };
  }
  return { ok: false, fault: 'assert returned neither "ok", nor { retry: feedback }, nor { fail: reason }' };
}

export const ENTERED = sharedData({ phase: "entered" });
export const LEFT = sharedData({ phase: "left" });

/** Phase events take few values, so each is redacted only once. */
const shared = {
  answer: new Map<string, JsonObject>(),
  outcome: new Map<string, JsonObject>(),
  choice: new Map<string, JsonObject>(),
  finished: new Map<string, JsonObject>(),
} as const;

function share(field: keyof typeof shared, value: string, data: JsonObject): JsonObject {
  const made = sharedData(data);
  shared[field].set(value, made);
  return made;
}

/** Data of the event after a phase. */
export function left(field: "answer" | "outcome" | "choice", value: string): JsonObject {
  return shared[field].get(value) ?? share(field, value, { phase: "left", [field]: value });
}

export function leftPrecondition(answer: PreconditionAnswer): JsonObject {
  return left("answer", typeof answer === "string" ? answer : "retry");
}

export function leftAssert(answer: AssertAnswer): JsonObject {
  return left("answer", answer === "ok" ? answer : "retry" in answer ? "retry" : "fail");
}

/** For an attempt that ended as its stage did. */
export function finishedAs(outcome: StageResult<unknown>["status"]): JsonObject {
  return shared.finished.get(outcome) ?? share("finished", outcome, { outcome });
}
