// What follows a state that names it itself, and a state of an orchestrated run.
import { shortened, wholeWords } from "../base/cut-texts.ts";
import { isJsonObject, type Json, type JsonObject, toJsonValue } from "../base/json.ts";
import { suggestOneOf } from "../base/problems.ts";
import { ORCHESTRATED_ENDS } from "../definition/agents/orchestrator.ts";
import type { AnyChoice } from "../definition/choice.ts";
import type { StageResult } from "../definition/result.ts";
import type { RouteChooser } from "../definition/spec.ts";
import { cappedTarget, type RefusedTarget, type RouteTarget } from "./route-targets.ts";

/** A target as a decision of a choosing state records it. A type, since it is recorded. */
export type ConsideredTarget = { readonly to: string; readonly refused?: string };

/** What a choosing state could choose, and what it tried. */
export interface Choosing {
  readonly chooser: RouteChooser;
  readonly targets: readonly RouteTarget[];
  readonly refused: readonly RefusedTarget[];
  /** Whether its fallback was taken before and may not be taken again. */
  readonly fellBack: boolean;
}

/** A decision records no more targets than these, and no longer reasons. */
const MOST_TARGETS = 40;
const LONGEST_REFUSAL = 300;
const LONGEST_REASON = 2_000;

/** The targets of a decision: each declared one, why those were refused that cannot be entered, and what was chose and was refused. */
export function consideredBy({ targets, refused }: Choosing): { readonly considered: readonly ConsideredTarget[] } {
  const capped = targets.map((target): ConsideredTarget => {
    const why = cappedTarget(target);
    return why === undefined ? { to: target.state } : { to: target.state, refused: why };
  });
  const tried = refused.map(({ to, why }) => ({ to: shortened(to, 80), refused: wholeWords(why, LONGEST_REFUSAL) }));
  return { considered: [...tried, ...capped].slice(0, MOST_TARGETS) };
}

type ReadChoice =
  | { readonly ok: true; readonly choice: AnyChoice; readonly reason?: string; readonly prompt?: string }
  | { readonly ok: false; readonly reason: string };

/** Reads the output of a choosing state, which a model or code of the user's wrote. */
export function readChosenRoute(output: unknown, chooser: RouteChooser): ReadChoice {
  const own = toJsonValue(output);
  if (!own.ok || !isJsonObject(own.value)) return no('its output is not a choice, such as { to: "review", input: {} }');
  const { reason, ...chosen } = own.value;
  if (reason !== undefined && typeof reason !== "string") return no("its reason is not a text");
  const said = reason === undefined || reason.trim() === "" ? {} : { reason: wholeWords(reason, LONGEST_REASON) };
  if ("return" in chosen && chooser.ends === true) return { ok: true, choice: { kind: "return" }, ...said };
  return "end" in chosen ? readEnd(chosen, chooser, said) : readTarget(chosen, chooser, said);
}

function readTarget(chosen: JsonObject, chooser: RouteChooser, said: { readonly reason?: string }): ReadChoice {
  const { to, input, prompt, ...others } = chosen;
  const [extra] = Object.keys(others);
  if (extra !== undefined) return no(`a choice has no ${JSON.stringify(shortened(extra, 80))}`);
  if (typeof to !== "string") return no("it names no target");
  if (!chooser.targets.includes(to)) {
    const hint = suggestOneOf(to, chooser.targets) ?? "";
    return no(`it chose ${JSON.stringify(shortened(to, 80))}, which is not one of its targets; ${hint}`);
  }
  const choice = { kind: "to", state: to, input } as const;
  if (prompt === undefined) return { ok: true, choice, ...said };
  if (chooser.prompts !== true) return no("it replaced a prompt, which the pipeline does not allow");
  return typeof prompt === "string" && prompt.trim() !== ""
    ? { ok: true, choice, ...said, prompt }
    : no("its prompt is not a text");
}

function readEnd(chosen: JsonObject, { ends }: RouteChooser, said: { readonly reason?: string }): ReadChoice {
  const { end, output = null, ...others } = chosen;
  const [extra] = Object.keys(others);
  if (extra !== undefined) return no(`the end of a run has no ${JSON.stringify(shortened(extra, 80))}`);
  const outcome = ORCHESTRATED_ENDS.find((known) => known === end);
  if (ends !== true) return no("it ended the run, but only an orchestrator may do that");
  if (outcome === undefined) return no(`it ended the run, but not as one of ${ORCHESTRATED_ENDS.join(", ")}`);
  if (outcome === "completed") return { ok: true, choice: { kind: "done", output }, ...said };
  if (said.reason === undefined) return no(`an end as ${outcome} needs a reason`);
  return { ok: true, choice: { kind: outcome === "failed" ? "fail" : "cancel", reason: said.reason }, ...said };
}

/** Characters of a failure that the orchestrator reads; the journal has all of it. */
const LONGEST_MESSAGE = 4_000;
const LONGEST_DETAIL = 8_000;

/** The input of the orchestrator after a state: how that ended. Its output is upstream. */
export function endedState(
  state: string,
  result: Exclude<StageResult<unknown>, { readonly status: "cancelled" }>,
): Json {
  const { executionId, status } = result;
  const ended = { state, executionId, status };
  if (result.status !== "failed") return ended;
  const { code, message, detail } = result;
  return {
    ...ended,
    code,
    message: shortened(message, LONGEST_MESSAGE),
    ...(detail === undefined ? {} : { detail: bounded(detail) }),
  };
}

function bounded(detail: Json): Json {
  const text = JSON.stringify(detail);
  return text.length <= LONGEST_DETAIL ? detail : shortened(text, LONGEST_DETAIL);
}

function no(reason: string): { readonly ok: false; readonly reason: string } {
  return { ok: false, reason };
}
