import { type Json, type JsonObject, withoutExcerpt } from "./json.ts";
import type { SourcePlace } from "./source-place.ts";

/** Who can act on an error. Match on it together with `code`, never on the message. */
export type ErrorClass =
  | "Validation" // a definition, an option or an input is wrong; the caller can fix it
  | "ProviderTransient" // the model's service failed in a way that may be temporary
  | "ProviderCapability" // the model or its service does not support the request
  | "ToolTransient"
  | "ToolTerminal"
  | "Session" // the environment lacks something, such as a key, a store or a run
  | "Cancellation" // it was cancelled
  | "Host"; // the journal, the disk or the ownership of a run

export interface SluiceErrorOptions {
  /** Machine-readable facts about the error, shown to callers and recorded in events. */
  readonly detail?: JsonObject;
  readonly cause?: unknown;
  /** Where in the user's code, if it is known. */
  readonly at?: SourcePlace;
}

/** The error type of Sluice. `message` says what is wrong, where, and how to fix it. */
export class SluiceError extends Error {
  override readonly name = "SluiceError";
  readonly class: ErrorClass;
  /** Stable, snake_case; listed in docs/errors.md. */
  readonly code: string;
  readonly detail: JsonObject | undefined;
  /** The place in the user's code that it is about; never recorded as it is. */
  readonly at: SourcePlace | undefined;

  constructor(errorClass: ErrorClass, code: string, message: string, options: SluiceErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.class = errorClass;
    this.code = code;
    this.detail = options.detail;
    this.at = options.at;
  }
}

export function isSluiceError(value: unknown, code?: string): value is SluiceError {
  return value instanceof SluiceError && (code === undefined || value.code === code);
}

/** The message of any thrown value. */
export function messageOf(thrown: unknown): string {
  try {
    // It may not be a text, and reading it may throw.
    const said: unknown = thrown instanceof Error ? thrown.message : thrown;
    return withoutExcerpt(String(said));
  } catch (unprintable) {
    return `a thrown value that cannot be printed (${typeof unprintable})`;
  }
}

/** One problem found in a definition, an input or an option. */
export interface Problem {
  /** Where: `stages.plan.allowedTools[0]`. */
  readonly path: string;
  readonly message: string;
  /** How to fix it, if known. */
  readonly suggestion?: string;
  /** The part of the text at `path` that it is about. */
  readonly place?: TextPlace;
}
/** A part of a text, in UTF-16 code units. */
export type TextPlace = { readonly offset: number; readonly length: number };

/** One error that lists all problems. */
export function problemsError(
  code: string,
  headline: string,
  problems: readonly Problem[],
  at?: SourcePlace,
): SluiceError {
  const lines = problems.map(
    (problem) =>
      `  ${problem.path}: ${problem.message}${problem.suggestion === undefined ? "" : ` (${problem.suggestion})`}`,
  );
  const detail: Json = problems.map(({ place: _inFiles, ...problem }) => problem);
  const place = at === undefined ? {} : { at };
  return new SluiceError("Validation", code, [headline, ...lines].join("\n"), {
    detail: { problems: detail },
    ...place,
  });
}
