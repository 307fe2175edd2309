import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Json, JsonObject, PipelineSpec } from "@sluice/core";
import type { SecurityMode } from "@sluice/core/gate";
import type { RunHandle, SandboxMode, Session } from "@sluice/stages";
import { type Environment, readSettings, refuseInsideRun } from "@sluice/tui/user";
import { usageError } from "../output/output.ts";
import { requireTask } from "../project/input.ts";
import type { LoadedConfig } from "../project/load-config.ts";
import { choiceOf, modelFor, type RunModel } from "../project/model.ts";
import { findPipeline } from "../project/pipelines.ts";
import type { Project } from "../project/projects.ts";
import { type KeptFlags, type RunFlags, settingsOf } from "./run-flags.ts";

/** A run that is checked and ready to start; nothing is opened yet. */
export interface RunPlan {
  /** The pipeline's name, as the user gave it. */
  readonly name: string;
  /** The pipeline's code, which the run may not write. */
  readonly code: readonly string[];
  /** A notice for the user about the pipeline's origin. */
  readonly note?: string;
  readonly model: RunModel | undefined;
  readonly mode: SecurityMode;
  readonly allow: readonly string[];
  /** The recorded mode of a resumed or forked run. */
  readonly sandbox?: SandboxMode;
  readonly config: LoadedConfig | undefined;
  /** How a resumed run kept requests open when it was started. */
  readonly wait?: true | number;
  /** What a resumed run keeps of the flags that it was started with. */
  readonly kept?: KeptFlags;
  /** Whether an existing run is resumed. */
  readonly resumed: boolean;
  readonly spec: PipelineSpec;
  /** Starts or continues the run. `task` is the task of a new run whose input has none. */
  readonly begin: (session: Session, task?: string) => RunHandle<unknown>;
}

export interface RunPlanRequest {
  /** A pipeline's name or file, or the first words of a task for the project's default pipeline. */
  readonly pipeline: string | undefined;
  readonly task: readonly string[];
  readonly flags: RunFlags & KeptFlags;
  /** The state in which the run starts, if not in the initial one. */
  readonly from?: { readonly state: string; readonly input?: Json };
  /** An agent of another program makes the calls: no model is needed, and the task may follow. */
  readonly isDriven?: boolean;
}

export interface CallerContext {
  readonly env: Environment;
  readonly here: string;
}

/** Refuses options that a run's own processes may not use. */
export function refuseFlagsInsideRun(command: string, flags: RunFlags, env: Environment): void {
  const settings = readSettings(env);
  if (flags.trust === true) refuseInsideRun(settings, `${command} --trust`);
  if (flags.answers !== undefined) refuseInsideRun(settings, `${command} --answers`);
  if (flags.adoptStore === true) refuseInsideRun(settings, `${command} --adopt-store`);
}

/** Plans a new run. `inputOf` reads the pipeline's input once the task is known. */
export async function planRun(
  { pipeline: first, task: rest, flags, from, isDriven = false }: RunPlanRequest,
  project: Project,
  { env, here }: CallerContext,
  inputOf: (task: readonly string[]) => Promise<JsonObject>,
): Promise<RunPlan> {
  const { config } = project;
  const { name, task } = wordsOf(first, rest, project);
  const { pipeline, source, code, note } = await findPipeline(name, project);
  const input = await inputOf(task);
  if (!isDriven) requireTask(name, pipeline.spec, input);
  const model = isDriven
    ? undefined
    : await modelFor(pipeline.spec, { ...choiceOf(config, env), named: flags.model, here });
  const mode = flags.mode ?? config?.settings.mode ?? "ask";
  if (flags.allow !== undefined && mode !== "allowlist") throw usageError("--allow needs --mode allowlist");
  const allow = flags.allow ?? (mode === "allowlist" ? config?.settings.allow : undefined) ?? [];
  const begin = (session: Session, later?: string): RunHandle<unknown> =>
    session.start(pipeline, later === undefined || input.task !== undefined ? input : { ...input, task: later }, {
      source,
      ...settingsOf(flags),
      ...(flags.answers === undefined ? {} : { answers: flags.answers }),
      ...(from === undefined ? {} : { from }),
    });
  return {
    name,
    code,
    ...(note === undefined ? {} : { note }),
    model,
    mode,
    allow,
    config,
    resumed: false,
    spec: pipeline.spec,
    begin,
  };
}

/** Splits words into a pipeline and a task. Names have no spaces, so a sentence is a task for the default pipeline. */
function wordsOf(
  first: string | undefined,
  rest: readonly string[],
  { config, withoutConfig, here }: Project,
): { readonly name: string; readonly task: readonly string[] } {
  const fallback = config?.settings.defaultPipeline;
  if (first === undefined) {
    if (fallback !== undefined) return { name: fallback, task: [] };
    const why = withoutConfig ?? "the project's config has no defaultPipeline";
    throw usageError(`name a pipeline: ${why}\nSee sluice run --help.`);
  }
  const isTask =
    fallback !== undefined && /\s/.test(first) && !existsSync(resolve(here, first.replace(/#[\w$]*$/, "")));
  return isTask ? { name: fallback, task: [first, ...rest] } : { name: first, task: rest };
}
