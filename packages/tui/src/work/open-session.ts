import type { RunHost } from "@sluice/core";
import { createSession, type Session, type SessionOptions } from "@sluice/stages";
import type { LoadedConfig } from "../project/load-config.ts";
import { type Place, realPath } from "../project/place.ts";
import { stateFolder } from "../project/trust.ts";
import type { RunFlags } from "./run-flags.ts";
import type { RunPlan, Standpoint } from "./run-plan.ts";
import { type CommandTraffic, trafficOf } from "./traffic.ts";

export interface SessionWish {
  readonly plan: RunPlan;
  readonly place: Place;
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
  { plan, place, flags, store, people }: SessionWish,
  { env, here }: Standpoint,
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
