import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { SluiceError, systemClock, visible } from "@sluice/core";
import type { RunHandle, Session } from "@sluice/stages";
import { readSettings, refuseInsideRun } from "../project/environment.ts";
import { readInput, requireTask } from "../project/input.ts";
import { modelFor } from "../project/model.ts";
import { findPipeline } from "../project/pipelines.ts";
import { workspaceOf } from "../project/place.ts";
import type { CommandContext } from "./context.ts";
import { createProjects, type Project } from "./projects.ts";
import { work } from "./work.ts";
import type { WorkFlags } from "./work-flags.ts";

export interface RunRequest {
  /** A pipeline's name or file; the first words of the task where the project has a default. */
  readonly pipeline: string | undefined;
  readonly task: readonly string[];
  readonly flags: WorkFlags & { readonly input?: readonly string[] };
}

/** `sluice run`: everything that can be wrong is found out before the store is made. */
export async function run(
  { pipeline: first, task: rest, flags }: RunRequest,
  context: CommandContext,
): Promise<number> {
  const { terminal, env, here } = context;
  const settings = readSettings(env);
  if (flags.trust === true) refuseInsideRun(settings, "run --trust");
  if (flags.adoptStore === true) refuseInsideRun(settings, "run --adopt-store");
  const projects = createProjects(flags, context);
  const project = await projects.open(workspaceOf(flags, here));
  const { config } = project;
  const { name, task } = wordsOf(first, rest, project);
  const { pipeline, source, code, note } = await findPipeline(name, project);
  if (note !== undefined) terminal.err(`sluice: ${visible(note)}\n`);
  const input = await readInput(task, flags.input ?? [], terminal.input);
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
  const begin = (session: Session): RunHandle<unknown> => session.start(pipeline, input, { source });
  const place = await projects.place();
  const { exitCode } = await work({ place, flags, model, mode, allow, code, config, begin }, context);
  return exitCode;
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
