// What the kinds of state that run no model share.
import type { ActOutcome, ActScope, AnyState, FailureCode, Json, Reads, StateCommon } from "@sluice/core";
import { type CommonOptions, type CompiledTemplate, NO_USAGE, type Report, readTemplate } from "@sluice/core/runtime";

/** What only matters where tools are called. */
type OfTools = "allowedTools" | "onCall" | "sandbox" | "env";
/** The options that all kinds without tools share. `A` are the states whose outputs the hooks read, `I` the input, `O` the output. */
export interface KindCommon<A extends Record<string, AnyState>, I, O>
  extends Omit<StateCommon<Reads<A>, I, O>, OfTools> {
  /** States whose outputs the templates and hooks read. Only their types are used. */
  readonly reads?: A;
}
/** KindCommon with erased types. */
export interface ErasedCommon extends Omit<CommonOptions, OfTools> {
  readonly reads?: unknown;
}

/** What a state used that ran no model. */
export const NO_TURNS = { turns: 0, usage: NO_USAGE } as const;

type Outcome<S extends ActOutcome["status"]> = Extract<ActOutcome, { readonly status: S }>;

export function completed(output: Json): Outcome<"completed"> {
  return { ...NO_TURNS, status: "completed", output };
}

export function failed(code: FailureCode, message: string, detail?: Json): Outcome<"failed"> {
  return { ...NO_TURNS, status: "failed", code, message, ...(detail === undefined ? {} : { detail }) };
}

/** The end of an execution whose signal has aborted. */
export function cancelled({ signal }: Pick<ActScope, "signal">): Outcome<"cancelled"> {
  const reason: unknown = signal.reason;
  return { ...NO_TURNS, status: "cancelled", reason: reason instanceof Error ? reason.message : "cancelled" };
}

/** Compiles a text with templates. One that cannot be read is reported, and renders as nothing. */
export function templateAt(report: Report, path: string, text: string): CompiledTemplate {
  const reading = readTemplate(text);
  if (reading.ok) return reading.value;
  for (const { message, suggestion, place } of reading.faults) report.add(path, message, suggestion, place);
  return { paths: [], references: [], render: () => "" };
}
