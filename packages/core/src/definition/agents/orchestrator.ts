import { createReport } from "../../base/problems.ts";
import type { RouteFallback, StateSpec } from "../spec.ts";
import { stateSpec } from "../state.ts";
import { isCount } from "../state-rules.ts";
import type { OrchestratorOptions } from "../types.ts";
import { MODEL_SETTINGS, readModelSettings } from "./model-settings.ts";
import { readPrompt } from "./stage.ts";

/** The id and the kind of the state that chooses what follows every other one. */
export const ORCHESTRATOR = "orchestrator";

/** How a run may end without a final state of the pipeline; a final state of this name takes its place. */
export const ORCHESTRATED_ENDS = ["completed", "failed", "cancelled"] as const;

/** Model calls for one choice. */
const TURNS_PER_CHOICE = 8;
const KEYS = [
  "instructions",
  ...MODEL_SETTINGS,
  "maxTurnsPerChoice",
  "allowPromptOverride",
  "acknowledges",
  "fallback",
];

/** The state of an orchestrator, which may choose every other state and every end. Its problems are those of its pipeline. */
export function orchestratorState(options: OrchestratorOptions, targets: readonly string[]): StateSpec {
  const report = createReport();
  const { instructions, fallback } = options;
  const { maxTurnsPerChoice = TURNS_PER_CHOICE, allowPromptOverride = false, acknowledges = true } = options;
  report.unknownKeys("", options, KEYS);
  const { references, render } = readPrompt(report, instructions, false, "instructions");
  if (!isCount(maxTurnsPerChoice))
    report.add("maxTurnsPerChoice", "must be a whole number from 1", "it counts model calls");
  if (typeof allowPromptOverride !== "boolean") report.add("allowPromptOverride", "must be true or false");
  if (typeof acknowledges !== "boolean") report.add("acknowledges", "must be true or false");
  if (fallback !== undefined && !isFallback(fallback))
    report.add("fallback", 'must be an object: { to: "fix", input: {} }');
  const settings = readModelSettings(report, options);
  return stateSpec(
    ORCHESTRATOR,
    { allowedTools: [] },
    {
      keys: [],
      problems: report.problems,
      options: { prompt: render, visibility: "allowed", turnCap: maxTurnsPerChoice, acknowledges, ...settings.options },
      chooses: {
        targets,
        ends: true,
        ...(allowPromptOverride ? { prompts: true } : {}),
        ...(isFallback(fallback) ? { fallback } : {}),
      },
      ...(acknowledges ? { acknowledges: true } : {}),
      checksOutput: true,
      completionTool: "select_state",
      ownTools: ["get_state", "start_follow_up"],
      templates: { instructions: references },
      shape: { turnCap: maxTurnsPerChoice },
      parts: {
        instructions: typeof instructions === "function" ? "a function" : { data: instructions },
        maxTurnsPerChoice,
        ...(acknowledges ? {} : { acknowledges: "no" }),
        ...settings.parts,
      },
    },
  );
}

function isFallback(fallback: RouteFallback | undefined): fallback is RouteFallback {
  return typeof fallback === "object" && fallback !== null && typeof fallback.to === "string";
}
