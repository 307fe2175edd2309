import type { Json, JsonObject } from "./json.ts";

/** Who has to act on an error. Closed: match on it together with `code`, never on the message. */
export type ErrorClass =
  | "Validation" // a definition, an option or an input is wrong: the caller mends it
  | "ProviderTransient" // the model's service failed in a way that may pass
  | "ProviderCapability" // the model or its service can not do what was asked
  | "ToolTransient"
  | "ToolTerminal"
  | "Session" // the environment lacks something: a key, a store, a run that is not there
  | "Cancellation" // somebody stopped it
  | "Host"; // the journal, the disk or the ownership of a run

/** What a model is told about an error: no stack, no path of ours, no secret. */
export interface ErrorForModel {
  readonly code: string;
  readonly message: string;
}

export interface SluiceErrorOptions {
  /** Machine-readable facts about the error, shown to callers and kept in events. */
  readonly detail?: JsonObject;
  readonly cause?: unknown;
}

/** The one error type of Sluice. `message` says what is wrong, where, and how to mend it. */
export class SluiceError extends Error {
  override readonly name = "SluiceError";
  readonly class: ErrorClass;
  /** Stable, snake_case; listed in docs/errors.md. */
  readonly code: string;
  readonly detail: JsonObject | undefined;

  constructor(errorClass: ErrorClass, code: string, message: string, options: SluiceErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.class = errorClass;
    this.code = code;
    this.detail = options.detail;
  }
}

export function isSluiceError(value: unknown, code?: string): value is SluiceError {
  return value instanceof SluiceError && (code === undefined || value.code === code);
}

/** The message of anything that was thrown, which in JavaScript need not be an Error. */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message;
  try {
    return String(thrown);
  } catch (unprintable) {
    return `a thrown value that cannot be printed (${typeof unprintable})`;
  }
}

export function toModelShape(error: SluiceError): ErrorForModel {
  return { code: error.code, message: error.message };
}

/** One problem found in a definition, an input or an option. */
export interface Problem {
  /** Where: `stages.plan.turnCap`. */
  readonly path: string;
  readonly message: string;
  /** How to mend it, when that is known. */
  readonly suggestion?: string;
}

/** All problems at once, as one error: nobody should have to mend a definition one message at a time. */
export function problemsError(code: string, headline: string, problems: readonly Problem[]): SluiceError {
  const lines = problems.map(
    (problem) =>
      `  ${problem.path}: ${problem.message}${problem.suggestion === undefined ? "" : ` (${problem.suggestion})`}`,
  );
  const detail: Json = problems.map((problem) => ({ ...problem }));
  return new SluiceError("Validation", code, [headline, ...lines].join("\n"), { detail: { problems: detail } });
}
