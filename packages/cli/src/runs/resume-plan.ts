import {
  field,
  type Json,
  type JsonObject,
  type OpenRequest,
  type RunHost,
  SluiceError,
  type SluiceEvent,
} from "@sluice/core";
import { SECURITY_MODES } from "@sluice/core/runtime";
import type { ConfigSource, FileDigest, PipelineSource } from "@sluice/stages";
import { SANDBOX_MODES } from "@sluice/stages/runtime";
import { userName } from "@sluice/tui/user";
import { eventsOf, readRunStarted, textAt, textsAt } from "@sluice/view/words";
import { resumeWords } from "../output/run-report.ts";
import { choiceOf, modelFor } from "../project/model.ts";
import { type FoundPipeline, findAgain, untrustedFile } from "../project/pipelines.ts";
import { type ProjectPaths, workspaceOf } from "../project/project-paths.ts";
import type { Projects } from "../project/projects.ts";
import { requireRun } from "./lookup.ts";
import { type KeptFlags, keptFlags, type RunFlags, settingsOf } from "./run-flags.ts";
import type { CallerContext, RunPlan } from "./run-plan.ts";

export interface ResumePlanRequest {
  readonly runId: string;
  readonly flags: RunFlags & KeptFlags & { readonly allowChanged?: boolean };
  /** Forks the run before this execution instead. */
  readonly from?: string | undefined;
  readonly snapshot: RunSnapshot;
  /** Where the run was found. */
  readonly at: ProjectPaths;
  readonly projects: Projects;
  /** An agent of another program continues it. */
  readonly isDriven?: boolean;
  /** Returns what was loaded before under the same key; by default everything is loaded again. */
  readonly remember?: (key: string, load: () => Promise<FoundPipeline>) => Promise<FoundPipeline>;
}

/** The journal of a run that can be resumed. */
export interface RunSnapshot {
  /** The data of `run.started`. */
  readonly data: JsonObject;
  readonly past: readonly SluiceEvent[];
  readonly open: readonly OpenRequest[];
  /** When it continues by itself, if it sleeps. */
  readonly wakeAt?: number;
}

/** Reads a run without changing it. Throws Session `run_finished` or Host `run_owned` if it cannot be resumed. */
export async function readRun(host: RunHost, place: ProjectPaths, runId: string): Promise<RunSnapshot> {
  const known = await requireRun(host, place, runId);
  if (known.end !== undefined)
    throw new SluiceError(
      "Session",
      "run_finished",
      `run ${runId} is ${known.end.status} and cannot be resumed; sluice fork continues from an earlier point of it`,
    );
  if (known.owner !== undefined) {
    throw new SluiceError(
      "Host",
      "run_owned",
      `run ${runId} is active in ${known.owner}; wait for it, or stop that process first`,
    );
  }
  const [data, past] = [await readRunStarted(host, runId), await eventsOf(host, runId)];
  const wake = known.wakeAt === undefined ? {} : { wakeAt: known.wakeAt };
  return { data, past, open: await host.requests(runId), ...wake };
}

/**
 * Checks whether a run can be resumed as it was started, except for the flags. Returns its workspace, unless --cwd is set, with the
 * store in which it was found, and what plans it: to be called once the store is open, which must belong to this machine, since
 * it names the code. Throws Validation `pipeline_untrusted`.
 */
export function prepareResume(
  request: ResumePlanRequest,
  context: CallerContext,
): { readonly place: ProjectPaths; readonly plan: () => Promise<RunPlan> } {
  const { snapshot, flags, at } = request;
  const cwd = flags.cwd === undefined ? workspaceOf({ cwd: textAt(snapshot.data, "cwd") }, context.here) : at.cwd;
  const source = sourceOf(snapshot.data);
  // Before the store is adopted, since afterwards it counts as this machine's own.
  if (source.kind === "file" && flags.adoptStore === true && flags.trust !== true)
    throw untrustedFile(
      `a store from another machine can name any file, here ${source.file}; review it, then use --adopt-store and --trust`,
    );
  const place = { ...at, cwd, usualStore: at.usualStore && cwd === at.cwd };
  return { place, plan: () => planResume(request, cwd, source, context) };
}

async function planResume(
  { runId, flags, from, snapshot: { data }, projects, remember = load, isDriven = false }: ResumePlanRequest,
  cwd: string,
  source: PipelineSource,
  { env, here }: CallerContext,
): Promise<RunPlan> {
  const allowChanged = flags.allowChanged === true;
  const recordedConfig = "config" in source ? source.config : undefined;
  const project = await projects.reopen(cwd, { runId, config: recordedConfig, allowChanged });
  const find = (): Promise<FoundPipeline> => findAgain(source, runId, project);
  const { name, pipeline, source: found, code } = await remember(JSON.stringify(source), find);
  const options = { allowChanged, by: userName(), source: found };
  const recorded = textAt(data, "model");
  const named = flags.model ?? (recorded === "" ? undefined : recorded);
  const driver = field(data, "agent");
  if (driver !== undefined && !isDriven && flags.model === undefined) throw drivenRun(runId, textAt(driver, "name"));
  const model = isDriven ? undefined : await modelFor(pipeline.spec, { ...choiceOf(project.config, env), named, here });
  const sandbox = SANDBOX_MODES.find((mode) => mode === textAt(data.sandbox, "mode"));
  return {
    name,
    code,
    model,
    // For an unknown mode use the strictest; the session refuses it if it differs from the run's.
    mode: flags.mode ?? SECURITY_MODES.find((mode) => mode === textAt(data, "mode")) ?? "ask",
    allow: flags.allow ?? textsAt(data, "allow"),
    ...(sandbox === undefined ? {} : { sandbox }),
    // A fork is a new run.
    ...(from === undefined ? { ...waitOf(data), kept: keptFlags(data) } : {}),
    config: project.config,
    resumed: from === undefined,
    spec: pipeline.spec,
    begin: (session) =>
      from === undefined
        ? session.resume(pipeline, runId, options)
        : session.fork(pipeline, runId, { ...options, ...settingsOf(flags), from }),
  };
}

/** Loads again. */
function load(_key: string, found: () => Promise<FoundPipeline>): Promise<FoundPipeline> {
  return found();
}

function drivenRun(runId: string, agent: string): SluiceError {
  return new SluiceError(
    "Session",
    "run_driven",
    `an agent of another program (${agent}) works on run ${runId}: continue it with sluice ${resumeWords({ runId, isOpen: false, agent }).join(" ")}, or with a model of your own with --model`,
  );
}

/** How the run keeps requests open. */
function waitOf({ wait }: JsonObject): Pick<RunPlan, "wait"> {
  return wait === true || (typeof wait === "number" && wait > 0) ? { wait } : {};
}

/** The origin of a run's pipeline, from `run.started`. */
export function sourceOf(data: Json): PipelineSource {
  const source = field(data, "source");
  const name = textAt(source, "name");
  const file = textAt(source, "file");
  const config = configOf(source);
  const under = config === undefined ? {} : { config };
  switch (textAt(source, "kind")) {
    case "bundled":
      return { kind: "bundled", name, ...under };
    case "config":
      return config === undefined ? { kind: "programmatic" } : { kind: "config", name, config };
    case "file":
      return { kind: "file", file, export: textAt(source, "export"), files: digestsAt(source), ...under };
    default:
      return { kind: "programmatic" };
  }
}

function configOf(source: Json | undefined): ConfigSource | undefined {
  const config = field(source, "config");
  return config === undefined ? undefined : { file: textAt(config, "file"), files: digestsAt(config) };
}

/** Files without a digest cannot be compared, so they are left out and not loaded. */
function digestsAt(source: Json | undefined): readonly FileDigest[] {
  const files = field(source, "files");
  return Array.isArray(files)
    ? files.flatMap((one: Json) => {
        const [file, digest] = [textAt(one, "file"), textAt(one, "digest")];
        return file === "" || digest === "" ? [] : [{ file, digest }];
      })
    : [];
}
