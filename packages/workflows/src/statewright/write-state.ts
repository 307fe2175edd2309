// One state of a pipeline as a state of a document.

import type { AllowedTool, JsonObject, Part, StateSpec } from "@sluice/core";
import type { Report } from "@sluice/core/runtime";
import { onlyGiven } from "../kinds/fields.ts";
import { RETRY_FIELDS } from "../kinds/model-fields.ts";
import { kindOfState, type WrittenNames, writeKind } from "../kinds/write.ts";
import { calledWords, LIMITS, NO_INSTRUCTIONS, TURN_CAP } from "./stages.ts";

/** The name that a state has in its document, if it came from one; else its id. */
export function stateName(id: string, { shape }: StateSpec): string {
  const label = shape?.label;
  return typeof label === "string" ? label : id;
}

interface NamedState {
  readonly id: string;
  readonly name: string;
  readonly state: StateSpec;
}

/** The fields of a state without its transitions. What they cannot say is added to the report. */
export function writeState(
  report: Report,
  path: string,
  { id, name, state }: NamedState,
  names: WrittenNames,
): JsonObject {
  if (state.final !== undefined) return { type: "final", outcome: state.final.outcome };
  const kind = kindOfState(state);
  if (kind !== undefined) {
    checkCommon(report, path, state);
    return { [kind]: writeKind(kind, state, names) };
  }
  if (state.kind !== "agent") {
    report.add(path, `is of kind ${state.kind}, which documents do not have`);
    return {};
  }
  if (state.completesByEvents !== true) {
    report.add(`${path}.completionTool`, "completes the state, and the states of a document complete by events");
    return {};
  }
  checkFields(report, path, state);
  const { prompt, turnCap, model } = state.parts ?? {};
  return {
    ...writeTools(report, `${path}.allowedTools`, state.allowedTools),
    ...writePrompt(report, `${path}.prompt`, prompt, calledWords(name, id)),
    ...(typeof turnCap !== "number" || turnCap === TURN_CAP ? {} : { turn_cap: turnCap }),
    ...(typeof model === "string" ? { model } : {}),
    ...writeModelSettings(state),
    ...writeLimits(report, `${path}.limits`, state.limits ?? {}),
    ...writeEnvironment(state),
  };
}

function writeModelSettings({ parts = {}, retry, onProviderFault }: StateSpec): JsonObject {
  const { topP, seed, stopSequences, reasoning, toolChoice, providerOptions, fallbackModels, cache } = parts;
  return {
    ...(typeof topP === "number" ? { top_p: topP } : {}),
    ...(typeof seed === "number" ? { seed } : {}),
    ...(typeof stopSequences === "object" && "data" in stopSequences ? { stop_sequences: stopSequences.data } : {}),
    ...(typeof reasoning === "string" ? { reasoning } : {}),
    ...(typeof toolChoice === "string" ? { tool_choice: toolChoice } : {}),
    ...(typeof providerOptions === "object" && "data" in providerOptions
      ? { provider_options: providerOptions.data }
      : {}),
    ...(typeof fallbackModels === "string" ? { fallback_models: fallbackModels.split(", ") } : {}),
    ...(retry === undefined ? {} : { retry: writeRetry(retry) }),
    ...(onProviderFault === undefined ? {} : { on_provider_fault: onProviderFault }),
    ...(cache === "off" ? { cache: false } : {}),
  };
}

function writeRetry(retry: NonNullable<StateSpec["retry"]>): JsonObject {
  return Object.fromEntries(
    RETRY_FIELDS.flatMap(([name, option]) => {
      const value = retry[option];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** What only code can say, or what documents have no field for. */
function checkFields(report: Report, path: string, state: StateSpec): void {
  checkCommon(report, path, state);
  for (const option of ["temperature", "maxOutputTokens", "visibility"])
    if (state.parts?.[option] !== undefined) report.add(`${path}.${option}`, NO_FIELD);
}

/** What documents have no field for in states of any kind. */
function checkCommon(report: Report, path: string, state: StateSpec): void {
  for (const hook of ["setup", "precondition", "assert", "exit", "onCall"] as const)
    if (state[hook] !== undefined) report.add(`${path}.${hook}`, "is a function");
  for (const option of ["inputSchema", "retryPolicy", "sandbox"] as const)
    if (state[option] !== undefined) report.add(`${path}.${option}`, NO_FIELD);
}
const NO_FIELD = "is an option for which documents have no field";

function writeTools(report: Report, path: string, tools: readonly AllowedTool[] | undefined): JsonObject {
  if (tools === undefined) return {};
  const patterns = tools.flatMap((tool, index) => {
    if (typeof tool === "string") return [tool];
    report.add(`${path}[${index}]`, "is optional, and the tools of a document are not");
    return [];
  });
  return { allowed_tools: patterns };
}

/** `called` are the words in front of it that come from the state's name. */
function writePrompt(report: Report, path: string, prompt: Part | undefined, called: string): JsonObject {
  if (typeof prompt !== "object" || !("data" in prompt) || typeof prompt.data !== "string") {
    report.add(path, "is a function");
    return {};
  }
  if (!prompt.data.startsWith(called)) {
    report.add(path, `does not begin with ${JSON.stringify(called)}, as it does in a document with such a name`);
    return {};
  }
  const instructions = prompt.data.slice(called.length);
  return instructions === NO_INSTRUCTIONS ? {} : { instructions };
}

function writeLimits(report: Report, path: string, limits: object): JsonObject {
  const fields = Object.entries(limits).flatMap(([name, value]: [string, unknown]) => {
    if (value === undefined) return [];
    const [, field] = LIMITS.find(([limit]) => limit === name) ?? [];
    if (field !== undefined && typeof value === "number") return [[field, value] as const];
    report.add(`${path}.${name}`, "is a limit for which documents have no field");
    return [];
  });
  return Object.fromEntries(fields);
}

function writeEnvironment({ env }: StateSpec): JsonObject {
  return onlyGiven({ env_overrides: env?.set, blocked_env: env?.block });
}
