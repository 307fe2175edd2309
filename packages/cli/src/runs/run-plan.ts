import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { type JsonObject, type SecurityMode, SluiceError, systemClock } from "@sluice/core";
import type { RunHandle, SandboxMode, Session } from "@sluice/stages";
import { type Environment, readSettings, refuseInsideRun } from "@sluice/tui/user";
import { requireTask } from "../project/input.ts";
import type { LoadedConfig } from "../project/load-config.ts";
import { modelFor, type RunModel } from "../project/model.ts";
import { findPipeline } from "../project/pipelines.ts";
import type { Project } from "../project/projects.ts";
import type { RunFlags } from "./run-flags.ts";

/** A run that can begin: everything that could be wrong with it was looked at, and nothing is opened yet. */
export interface RunPlan {
  /** What the user calls its pipeline. */
  readonly name: string;
  /** The pipeline's own code, which the run may not write. */
  readonly code: readonly string[];
  /** Something the user should know about where the pipeline came from. */
  readonly note?: string;
  readonly model: RunModel | undefined;
  readonly mode: SecurityMode;
  readonly allow: readonly string[];
  /** What a run that is resumed or forked was started with. */
  readonly sandbox?: SandboxMode;
  /** The project's config; what the flags say wins. */
  readonly config: LoadedConfig | undefined;
  /** Whether the run was begun before. */
  readonly resumed: boolean;
  readonly begin: (session: Session) => RunHandle<unknown>;
}

export interface RunPlanRequest {
  /** A pipeline's name or file; the first words of the task where the project has a default. */
  readonly pipeline: string | undefined;
  readonly task: readonly string[];
  readonly flags: RunFlags;
}

/** Where somebody stands who wants something. */
export interface CallerContext {
  readonly env: Environment;
  readonly here: string;
}

/** Refuses what only a person may say, in a process that a run started. */
export function refuseFlagsInsideRun(command: string, flags: RunFlags, env: Environment): void {
  const settings = readSettings(env);
  if (flags.trust === true) refuseInsideRun(settings, `${command} --trust`);
  if (flags.answers !== undefined) refuseInsideRun(settings, `${command} --answers`);
  if (flags.adoptStore === true) refuseInsideRun(settings, `${command} --adopt-store`);
}

/** `inputOf` reads what the pipeline is given, once the words are parted into its name and a task. */
export async function planRun(
  { pipeline: first, task: rest, flags }: RunPlanRequest,
  project: Project,
  { env, here }: CallerContext,
  inputOf: (task: readonly string[]) => Promise<JsonObject>,
): Promise<RunPlan> {
  const { config } = project;
  const { name, task } = wordsOf(first, rest, project);
  const { pipeline, source, code, note } = await findPipeline(name, project);
  const input = await inputOf(task);
  requireTask(name, pipeline.spec, input);
  const model = await modelFor(pipeline.spec, {
    named: flags.model,
    configured: config?.settings.model,
    ...(config?.settings.defaultModels === undefined ? {} : { defaultModels: config.settings.defaultModels }),
    baseUrls: config?.settings.baseUrls ?? {},
    env,
    here,
    clock: systemClock,
  });
  const mode = flags.mode ?? config?.settings.mode ?? "ask";
  if (flags.allow !== undefined && mode !== "allowlist")
    throw new SluiceError("Validation", "usage", "--allow goes with --mode allowlist");
  const allow = flags.allow ?? (mode === "allowlist" ? config?.settings.allow : undefined) ?? [];
  const begin = (session: Session): RunHandle<unknown> =>
    session.start(pipeline, input, { source, ...(flags.answers === undefined ? {} : { answers: flags.answers }) });
  return { name, code, ...(note === undefined ? {} : { note }), model, mode, allow, config, resumed: false, begin };
}

/** Which pipeline, and what for: no name of one holds a space, so that a sentence is a task for the project's default. */
function wordsOf(
  first: string | undefined,
  rest: readonly string[],
  { config, withoutConfig, here }: Project,
): { readonly name: string; readonly task: readonly string[] } {
  const fallback = config?.settings.defaultPipeline;
  if (first === undefined) {
    if (fallback !== undefined) return { name: fallback, task: [] };
    const why = withoutConfig ?? "the project's config has no defaultPipeline";
    throw new SluiceError("Validation", "usage", `name a pipeline: ${why}\nsluice run --help says what there is`);
  }
  const isTask =
    fallback !== undefined && /\s/.test(first) && !existsSync(resolve(here, first.replace(/#[\w$]*$/, "")));
  return isTask ? { name: fallback, task: [first, ...rest] } : { name: first, task: rest };
}
