import { createReport } from "../../base/problems.ts";
import type { RouteFallback, StateSpec } from "../spec.ts";
import { stateSpec } from "../state.ts";
import { isCount } from "../state-rules.ts";
import type { OrchestratorOptions } from "../types.ts";
import { readPrompt } from "./stage.ts";

/** The id and the kind of the state that chooses what follows every other one. */
export const ORCHESTRATOR = "orchestrator";

/** How a run may end without a final state of the pipeline; a final state of this name takes its place. */
export const ORCHESTRATED_ENDS = ["completed", "failed", "cancelled"] as const;

/** Model calls for one choice. */
const TURNS_PER_CHOICE = 8;
const KEYS = [
  "instructions",
  "model",
  "temperature",
  "maxOutputTokens",
  "maxTurnsPerChoice",
  "allowPromptOverride",
  "acknowledges",
  "fallback",
];

/** The state of an orchestrator, which may choose every other state and every end. Its problems are those of its pipeline. */
export function orchestratorState(options: OrchestratorOptions, targets: readonly string[]): StateSpec {
  const report = createReport();
  const { instructions, model, temperature, maxOutputTokens, fallback } = options;
  const { maxTurnsPerChoice = TURNS_PER_CHOICE, allowPromptOverride = false, acknowledges = true } = options;
  report.unknownKeys("", options, KEYS);
  const { references, render } = readPrompt(report, instructions, false, "instructions");
  if (!isCount(maxTurnsPerChoice)) report.add("maxTurnsPerChoice", "is a whole number from 1", "it counts model calls");
  if (typeof allowPromptOverride !== "boolean") report.add("allowPromptOverride", "is true or false");
  if (typeof acknowledges !== "boolean") report.add("acknowledges", "is true or false");
  if (model !== undefined && (typeof model !== "string" || model === "")) report.add("model", "is the id of a model");
  if (temperature !== undefined && !(Number.isFinite(temperature) && temperature >= 0))
    report.add("temperature", "is a number from 0");
  if (maxOutputTokens !== undefined && !isCount(maxOutputTokens))
    report.add("maxOutputTokens", "is a whole number from 1");
  if (fallback !== undefined && !isFallback(fallback)) report.add("fallback", 'is an object: { to: "fix", input: {} }');
  const settings = {
    ...(model === undefined ? {} : { model }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
  };
  return stateSpec(
    ORCHESTRATOR,
    { allowedTools: [] },
    {
      keys: [],
      problems: report.problems,
      options: { prompt: render, visibility: "allowed", turnCap: maxTurnsPerChoice, acknowledges, ...settings },
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
        ...settings,
      },
    },
  );
}

function isFallback(fallback: RouteFallback | undefined): fallback is RouteFallback {
  return typeof fallback === "object" && fallback !== null && typeof fallback.to === "string";
}
