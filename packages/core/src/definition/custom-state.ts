import { type JsonObject, jsonFault } from "../base/json.ts";
import { idFault } from "./ids.ts";
import { createReport, type Report } from "./problems.ts";
import { type CommonOptions, schemaAt, stateSpec } from "./state.ts";
import type { AnyState, Schema, State, StateOptions } from "./types.ts";

/** StateOptions once the types of context and output are gone. */
interface CustomOptions extends CommonOptions {
  readonly kind: string;
  readonly reads?: Readonly<Record<string, AnyState>>;
  readonly options?: JsonObject;
  readonly output: Schema<unknown>;
}

const KEYS = ["kind", "reads", "options", "output"];

/**
 * A state of a kind of one's own: the session's executor of that kind does its work, everything around it (setup, gate, limits,
 * assert, routes, journal) is as for a stage. What is wrong with it is told by the pipeline, with everything else that is wrong.
 */
export function state<const A extends Record<string, AnyState> = Record<never, never>, O = unknown, I = undefined>(
  options: StateOptions<A, O, I>,
): State<O, NoInfer<I>>;
export function state(given: CustomOptions): State {
  const { kind, reads: _typesOnly, options, output, ...common } = given;
  const report = createReport();
  checkKind(report, kind);
  const fault = options === undefined ? undefined : jsonFault(options, "options");
  if (fault !== undefined) report.add("options", `is not JSON: ${fault}`, "functions belong into the executor");
  const own = { output: schemaAt(report, "output", output), keys: KEYS, problems: report.problems };
  // A copy: what was checked must not change under the executor.
  const data = options === undefined || fault !== undefined ? {} : { options: structuredClone(options) };
  return { kind, spec: stateSpec(kind, common, { ...own, ...data }) };
}

function checkKind(report: Report, kind: unknown): void {
  const fault = typeof kind === "string" ? idFault(kind) : "is the name of a kind";
  if (fault !== undefined) report.add("kind", fault);
  else if (kind === "agent") report.add("kind", "agent states are made with stage()");
}
