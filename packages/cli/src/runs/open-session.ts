import { isAbsolute, relative, resolve, sep } from "node:path";
import { field, type RunHost, type SecretFilter, SluiceError } from "@sluice/core";
import {
  createSession,
  type ModelTraffic,
  playbackTraffic,
  recordTraffic,
  type Session,
  type SessionOptions,
} from "@sluice/stages";
import { environmentSecrets } from "@sluice/stages/environment-secrets";
import { type Environment, stateFolder } from "@sluice/tui/user";
import { readRunStarted, rootOf } from "@sluice/view";
import type { LoadedConfig } from "../project/load-config.ts";
import type { RunModel } from "../project/model.ts";
import { type ProjectPaths, realPath } from "../project/project-paths.ts";
import type { RunFlags } from "./run-flags.ts";
import type { CallerContext, RunPlan } from "./run-plan.ts";

export interface SessionConfig {
  readonly plan: RunPlan;
  readonly place: ProjectPaths;
  readonly flags: RunFlags;
  /** The open store, which its opener closes, or how to open one. */
  readonly store: RunHost | (() => RunHost);
  readonly people: Required<Pick<SessionOptions, "interactors" | "wait" | "onFault">> & Pick<SessionOptions, "onCode">;
}
export interface OpenSession {
  readonly session: Session;
  /** What stands between the run and its models, if anything. */
  readonly traffic: CommandTraffic | undefined;
}

/** The session that a planned run works in. */
export function openSession(
  { plan, place, flags, store, people }: SessionConfig,
  { env, here }: CallerContext,
): OpenSession {
  const { code, model, mode, allow, config, resumed } = plan;
  const sandboxMode = flags.sandbox ?? plan.sandbox ?? config?.settings.sandbox?.mode;
  const maxParallel = flags.maxParallel ?? config?.settings.maxParallel;
  const traffic = trafficOf({ record: flags.record, model, here, workspace: place.cwd, resumed });
  const session = createSession({
    ...(model === undefined ? {} : { model: model.id }),
    ...(traffic === undefined ? {} : { traffic: traffic.traffic }),
    mode,
    allow,
    ...sessionOptionsOf(config),
    // Whoever works in a home folder could trust anything by writing.
    protectedPaths: [...code, ...(config?.settings.protectedPaths ?? []), realPath(stateFolder(env))],
    sandbox: {
      ...config?.settings.sandbox,
      ...(sandboxMode === undefined ? {} : { mode: sandboxMode }),
      hidden: [realPath(stateFolder(env)), ...(config?.settings.sandbox?.hidden ?? [])],
    },
    cwd: place.cwd,
    env,
    store,
    ...people,
    ...(maxParallel === undefined ? {} : { maxParallel }),
  });
  return { session, traffic };
}

/** What only the config decides. */
function sessionOptionsOf(config: LoadedConfig | undefined): Partial<SessionOptions> {
  if (config === undefined) return {};
  const { tools, executors, onCall, secrets, passEnv, baseUrls, prices, mcpServers, requestTimeoutMs } =
    config.settings;
  return {
    tools,
    executors,
    secrets,
    passEnv,
    baseUrls,
    ...(mcpServers === undefined ? {} : { mcpServers }),
    ...(prices === undefined ? {} : { prices }),
    ...(onCall === undefined ? {} : { onCall }),
    ...(requestTimeoutMs === undefined ? {} : { requestTimeoutMs }),
  };
}

/**
 * What to take out of words to a run before they are sent: the store keeps them as they come, and only what the run makes of
 * them passes its own session's filter.
 */
export async function secretsToward(host: RunHost, runId: string, env: Environment): Promise<SecretFilter> {
  const named = field(await readRunStarted(host, rootOf(runId)), "secrets");
  return environmentSecrets(env, Array.isArray(named) ? named.filter((name) => typeof name === "string") : []);
}

/** What stands between a run of the command and its models. */
export interface CommandTraffic {
  readonly traffic: ModelTraffic;
  /** What is said aside when the run has ended here, a line each. */
  said(): readonly string[];
}

export interface TrafficRequest {
  /** `--record`. */
  readonly record: string | undefined;
  readonly model: RunModel | undefined;
  /** Where the user stands. */
  readonly here: string;
  readonly workspace: string;
  /** Whether the run was begun before: its recording goes on. */
  readonly resumed: boolean;
}

/** Undefined where models are called as they are. Throws Validation `usage` where a replay would be recorded. */
export function trafficOf({ record, model, here, workspace, resumed }: TrafficRequest): CommandTraffic | undefined {
  const replay = /^cassette:(.+)$/s.exec(model?.id ?? "")?.[1];
  if (replay !== undefined && record !== undefined)
    throw new SluiceError("Validation", "usage", "--record needs a model to record, and a replay is none");
  if (record !== undefined) return recorded(resolve(here, record), workspace, resumed);
  return replay === undefined ? undefined : replayed(replay);
}

function recorded(file: string, workspace: string, resumed: boolean): CommandTraffic {
  const traffic = recordTraffic(file, { existing: resumed ? "append" : "refuse" });
  return {
    traffic,
    said: () => {
      if (traffic.fault !== undefined) return [`not all is recorded: ${traffic.fault.message}`];
      return isWithin(workspace, file) ? [`recorded in ${file}`, IN_SIGHT] : [`recorded in ${file}`];
    },
  };
}

/** What a run's tools find is part of what its model is asked next. */
const IN_SIGHT = "that is in the workspace: move it elsewhere before it is played, since a Grep would find it there";

function isWithin(folder: string, file: string): boolean {
  const way = relative(realPath(folder), realPath(file));
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

function replayed(file: string): CommandTraffic {
  const traffic = playbackTraffic(file);
  return {
    traffic,
    said: () => {
      if (traffic.divergence !== undefined) return [traffic.divergence.message];
      const unused = traffic.unused().map(({ stage, turn, line }) => `stage ${stage}, turn ${turn + 1} (line ${line})`);
      return unused.length === 0 ? [] : [`answers of ${file} that the run did not come to: ${unused.join("; ")}`];
    },
  };
}
