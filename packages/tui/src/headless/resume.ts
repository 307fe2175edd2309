import {
  field,
  isJsonObject,
  type Json,
  type JsonObject,
  type OpenRequest,
  type SecurityMode,
  SluiceError,
  type SluiceEvent,
  systemClock,
} from "@sluice/core";
import type { ConfigSource, PipelineSource } from "@sluice/stages";
import { readSettings, refuseInsideRun } from "../project/environment.ts";
import { modelFor } from "../project/model.ts";
import { findAgain } from "../project/pipelines.ts";
import { type Place, storeOpener, workspaceOf } from "../project/place.ts";
import { textAt } from "./account.ts";
import type { CommandContext } from "./context.ts";
import { eventsOf, requireRun, startedWith, withStore } from "./lookup.ts";
import { createProjects, type Projects } from "./projects.ts";
import { work } from "./work.ts";
import type { WorkFlags } from "./work-flags.ts";

export interface ResumeRequest {
  readonly runId: string;
  readonly flags: WorkFlags & { readonly acceptChanges?: boolean };
}

/** `sluice resume`: the run goes on as it was started; what is given here wins. */
export async function resume(
  { runId, flags }: ResumeRequest,
  context: CommandContext,
  projects: Projects = createProjects(flags, context),
): Promise<number> {
  const { env, here } = context;
  refuseInsideRun(readSettings(env), "resume");
  const at = await projects.place();
  const { data, past, open } = await readRun(at, runId);
  const place: Place = {
    ...at,
    cwd: flags.cwd === undefined ? workspaceOf({ cwd: textAt(data, "cwd") }, here) : at.cwd,
  };
  const acceptChanges = flags.acceptChanges === true;
  const source = sourceOf(data);
  // Before the store is adopted: afterwards it is as good as any.
  if (source.kind === "file" && flags.adoptStore === true && flags.trust !== true)
    throw new SluiceError(
      "Validation",
      "pipeline_untrusted",
      `a store from another machine may name any file, this one ${source.file}; look at it, then resume with --adopt-store and --trust`,
    );
  // The store says which file to load, so it has to be this machine's own before anything is loaded.
  const host = (await storeOpener(at, { adopt: flags.adoptStore === true }))();
  try {
    const recordedConfig = "config" in source ? source.config : undefined;
    const project = await projects.reopen(place.cwd, { runId, config: recordedConfig, acceptChanges });
    const found = await findAgain(source, runId, project);
    const recorded = textAt(data, "model");
    const named = flags.model ?? (recorded === "" ? undefined : recorded);
    const model = await modelFor(found.pipeline.spec, {
      named,
      configured: project.config?.settings.model,
      baseUrls: project.config?.settings.baseUrls ?? {},
      env,
      here,
      clock: systemClock,
    });
    const { exitCode } = await work(
      {
        place: { ...place, usualStore: at.usualStore && place.cwd === at.cwd },
        flags,
        model,
        mode: flags.mode ?? modeOf(data),
        allow: flags.allow ?? textsAt(data, "allow"),
        code: found.code,
        config: project.config,
        host,
        past,
        open,
        begin: (session) => session.resume(found.pipeline, runId, { acceptChanges }),
      },
      context,
    );
    return exitCode;
  } finally {
    await host.close();
  }
}

interface RunSoFar {
  /** What `run.started` says. */
  readonly data: JsonObject;
  readonly past: readonly SluiceEvent[];
  readonly open: readonly OpenRequest[];
}

/** What the journal says, without touching it. Throws for a run that cannot be taken up. */
function readRun(place: Place, runId: string): Promise<RunSoFar> {
  return withStore(place, async (host) => {
    const known = await requireRun(host, place, runId);
    if (known.end !== undefined)
      throw new SluiceError("Session", "run_finished", `run ${runId} is ${known.end.status}; it cannot be resumed`);
    if (known.owner !== undefined) {
      throw new SluiceError(
        "Host",
        "run_owned",
        `run ${runId} is at work in ${known.owner}; wait for it, or stop that process first`,
      );
    }
    const [data, past] = [await startedWith(host, runId), await eventsOf(host, runId)];
    return { data, past, open: await host.requests(runId) };
  });
}

function sourceOf(data: Json): PipelineSource {
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

/** A file without a digest is one that cannot be compared, and so not loaded. */
function digestsAt(source: Json | undefined): Readonly<Record<string, string>> {
  const files = source === undefined ? undefined : field(source, "files");
  const all = isJsonObject(files) ? Object.entries(files) : [];
  return Object.fromEntries(all.filter((entry): entry is [string, string] => typeof entry[1] === "string"));
}

const MODES: readonly SecurityMode[] = ["ask", "allowlist", "yolo"];

function modeOf(data: Json): SecurityMode {
  const mode = textAt(data, "mode");
  // A mode nobody knows is the careful one; the session refuses it where it differs from the run's.
  return MODES.find((known) => known === mode) ?? "ask";
}

function textsAt(data: Json, key: string): readonly string[] {
  const value = field(data, key);
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
