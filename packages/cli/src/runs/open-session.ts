import { resolve } from "node:path";
import { type GuardHook, type Interactor, type RunHost, systemClock } from "@sluice/core";
import { redactJson, rootRunId, type SecretFilter } from "@sluice/core/runtime";
import type { AgentSessionOptions, ExternalAgentsOptions } from "@sluice/gateway";
import {
  createSession,
  type ModelTraffic,
  playbackTraffic,
  recordTraffic,
  type SandboxMode,
  type Session,
  type SessionOptions,
} from "@sluice/stages";
import { environmentSecrets, environmentWithoutSecrets } from "@sluice/stages/environment-secrets";
import { outsideFirst, startedFiles } from "@sluice/stages/runtime";
import { type Environment, stateFolder } from "@sluice/tui/user";
import { eventsOf, textsAt } from "@sluice/view/words";
import { notifiedSession } from "../notify/notified-session.ts";
import type { Notifier } from "../notify/notifier.ts";
import { ownVersion } from "../options.ts";
import { usageError } from "../output/output.ts";
import { bundledExecutors } from "../project/bundled.ts";
import type { LoadedConfig } from "../project/load-config.ts";
import { commandLine, isWithin, type ProjectPaths, realPath } from "../project/project-paths.ts";
import type { RunFlags } from "./run-flags.ts";
import type { CallerContext, RunPlan } from "./run-plan.ts";

export interface SessionConfig {
  readonly plan: RunPlan;
  readonly place: ProjectPaths;
  readonly flags: RunFlags;
  /** An open store, which the caller closes, or a function that opens one. */
  readonly store: RunHost | (() => RunHost);
  readonly people: Required<Pick<SessionOptions, "interactors" | "wait" | "onFault">> &
    Pick<SessionOptions, "onCode" | "suspendSleepsOver">;
  /** What is asked in the place of each of the config's interactors; default: the interactor itself. */
  readonly asked?: (interactor: Interactor) => Interactor;
  /** What an agent of another program that works on the run needs. */
  readonly agent?: AgentSessionOptions;
  /** Files that the run may not write, besides those of the config. */
  readonly protectedPaths?: readonly string[];
}

/** The sandbox mode of a planned run; undefined for the default. */
export function sandboxModeOf({ sandbox, config }: RunPlan, flags: Pick<RunFlags, "sandbox">): SandboxMode | undefined {
  return flags.sandbox ?? sandbox ?? config?.settings.sandbox?.mode;
}

/** The session for a planned run, with the recording or playback of its model traffic. */
export function openSession(
  { plan, place, flags, store, people, asked = (it) => it, agent, protectedPaths: added = [] }: SessionConfig,
  { env, here }: CallerContext,
): { readonly session: Session; readonly traffic: CommandTraffic | undefined } {
  const { code, model, mode, allow, config } = plan;
  const { sandbox, baseUrls, mcpServers, requestTimeoutMs, protectedPaths = [], notify = [] } = config?.settings ?? {};
  const sandboxMode = sandboxModeOf(plan, flags);
  const maxParallel = flags.maxParallel ?? plan.kept?.maxParallel ?? config?.settings.maxParallel;
  const retry = config?.settings.retry;
  const onProviderFault = flags.onProviderFault ?? plan.kept?.onProviderFault ?? config?.settings.onProviderFault;
  const state = realPath(stateFolder(env));
  const traffic = trafficOf(plan, flags, here, place.cwd);
  const path = notify.length === 0 || env.PATH === undefined ? undefined : outsideFirst(env.PATH, place.cwd);
  const notifiers = notify.flatMap(({ command = [] }) => startedFiles({ command, path }, place.cwd));
  const session = createSession({
    ...(model === undefined ? {} : { model: model.id }),
    traffic: withExternalAgents(traffic?.traffic, {
      version: ownVersion(),
      hidden: [state, ...(sandbox?.hidden ?? [])],
      onFault: (message) => people.onFault({ by: "mcp:sluice", message }),
      ...(sandboxMode === undefined ? {} : { sandbox: sandboxMode }),
    }),
    mode,
    allow,
    ...codeOptionsOf(config),
    ...(baseUrls === undefined ? {} : { baseUrls }),
    ...(mcpServers === undefined ? {} : { mcpServers }),
    ...(requestTimeoutMs === undefined ? {} : { requestTimeoutMs }),
    // A run in a home folder could otherwise trust any code by writing to the state folder.
    protectedPaths: [...code, ...protectedPaths, ...added, state, ...notifiers],
    sandbox: {
      ...sandbox,
      ...(sandboxMode === undefined ? {} : { mode: sandboxMode }),
      hidden: [state, ...(sandbox?.hidden ?? [])],
    },
    cwd: place.cwd,
    env,
    host: store,
    ...people,
    // A rule comes first: it answers before a screen shows the request.
    interactors: [...(config?.settings.interactors ?? []).map(asked), ...people.interactors],
    ...(maxParallel === undefined ? {} : { maxParallel }),
    ...(retry === undefined ? {} : { retry }),
    ...(onProviderFault === undefined ? {} : { onProviderFault }),
    ...(agent === undefined ? {} : withAgent(agent, config?.settings)),
  });
  if (notify.length === 0 || config === undefined) return { session, traffic };
  const open = async (): Promise<Notifier> => {
    const { createNotifier } = await import("../notify/notifier.ts");
    const { secrets, passEnv } = config.settings;
    const known = environmentSecrets(env, secrets);
    return createNotifier({
      options: notify,
      cwd: place.cwd,
      env: { ...environmentWithoutSecrets(env, secrets, passEnv), ...(path === undefined ? {} : { PATH: path }) },
      clock: systemClock,
      mask: (value) => redactJson(known.json(value)),
      line: (words) => commandLine(words, place, here, env),
      onFault: (message) => people.onFault({ by: "notify", message }),
    });
  };
  return { session: notifiedSession(session, open, () => systemClock.now()), traffic };
}

/** The same traffic, with agents that work on states over ACP. Their code is loaded when a state names one. */
function withExternalAgents(traffic: ModelTraffic | undefined, options: ExternalAgentsOptions): ModelTraffic {
  return {
    get files() {
      return traffic?.files ?? [];
    },
    model: async (wanted, scope) => {
      if (wanted.named?.startsWith("acp:") !== true)
        return traffic === undefined ? await wanted.load() : await traffic.model(wanted, scope);
      const { externalAgents } = await import("@sluice/gateway");
      const agents = externalAgents(traffic === undefined ? options : { ...options, traffic });
      return await agents.model(wanted, scope);
    },
  };
}

/** The guard that a gateway needs comes before the config's own; its tools take the place of those with their names. */
function withAgent(
  agent: AgentSessionOptions,
  settings: LoadedConfig["settings"] | undefined,
): Partial<SessionOptions> {
  const { onCall: guard, tools: native } = agent;
  const own = settings?.onCall;
  const onCall: GuardHook = async (call, ctx) => (await guard(call, ctx)) ?? (await own?.(call, ctx));
  return { ...agent, onCall, ...(native === undefined ? {} : { tools: [...(settings?.tools ?? []), ...native] }) };
}

/** The options that a config sets for sessions and for replays. */
export function codeOptionsOf(config: LoadedConfig | undefined) {
  if (config === undefined) return { executors: [...bundledExecutors] };
  const { tools, executors, secrets, passEnv, onCall, prices } = config.settings;
  return {
    tools,
    executors: [...bundledExecutors, ...executors],
    secrets,
    passEnv,
    ...(onCall === undefined ? {} : { onCall }),
    ...(prices === undefined ? {} : { prices }),
  };
}

/**
 * The secrets to mask in messages to a run: the store keeps them as they are sent, before the filter of the run's session.
 */
export async function secretsToward(host: RunHost, runId: string, env: Environment): Promise<SecretFilter> {
  const root = rootRunId(runId);
  const starts = (await eventsOf(host, root)).filter(({ type }) => type === "run.started" || type === "run.resumed");
  return environmentSecrets(env, [...new Set(starts.flatMap(({ data }) => textsAt(data, "secrets")))]);
}

/** Recording or playback of model traffic. */
export interface CommandTraffic {
  readonly traffic: ModelTraffic;
  /** Lines for stderr after the run. */
  notices(): readonly string[];
}

/** Undefined without recording or playback. Throws Validation `usage` for both at once. */
function trafficOf(
  { model, resumed }: RunPlan,
  { record }: RunFlags,
  here: string,
  workspace: string,
): CommandTraffic | undefined {
  const cassette = /^cassette:(.+)$/s.exec(model?.id ?? "")?.[1];
  if (record === undefined) return cassette === undefined ? undefined : playback(cassette);
  if (cassette !== undefined) throw usageError("--record needs a model to record, not a cassette");
  const file = resolve(here, record);
  const traffic = recordTraffic(file, { existing: resumed ? "append" : "refuse" });
  return {
    traffic,
    notices: () => {
      if (traffic.fault !== undefined) return [`the recording is incomplete: ${traffic.fault.message}`];
      return [`recorded in ${file}`, ...(isWithin(realPath(file), realPath(workspace)) ? [IN_WORKSPACE] : [])];
    },
  };
}

const IN_WORKSPACE =
  "this file is in the workspace: move it elsewhere before playback, since a Grep could find it there";

function playback(file: string): CommandTraffic {
  const traffic = playbackTraffic(file);
  return {
    traffic,
    notices: () => {
      if (traffic.divergence !== undefined) return [traffic.divergence.message];
      const unused = traffic.unused().map(({ stage, turn, line }) => `stage ${stage}, turn ${turn + 1} (line ${line})`);
      return unused.length === 0 ? [] : [`unused answers of ${file}: ${unused.join("; ")}`];
    },
  };
}
