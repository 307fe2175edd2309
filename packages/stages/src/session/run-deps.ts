import { existsSync, realpathSync } from "node:fs";
import { resolve } from "node:path";
import {
  type AllowedTool,
  type AvailableTool,
  type AvailableTools,
  type Clock,
  type Json,
  type JsonObject,
  type PipelineSpec,
  type ProviderFaultOptions,
  type RunHost,
  type RunJournal,
  type RunProgram,
  SluiceError,
  type Workspace,
} from "@sluice/core";
import { compileEnvelope, createAnswerRule } from "@sluice/core/gate";
import {
  type AnswerRule,
  checkSession,
  createConcurrencySlots,
  createRunMeter,
  extendedData,
  isSameJson,
  maskSecrets,
  messageOf,
  type PreparedStates,
  pipelineProgram,
  pipelinesWithin,
  prepareStates,
  problemsError,
  type RecordedCosts,
  type RunDeps,
  recordedGraph,
  rootRunId,
  type SecretFilter,
  type StartAt,
  sharedData,
  statesWithin,
} from "@sluice/core/runtime";
import {
  type AgentSpec,
  agentsOf,
  agentsWithin,
  costCappedAgents,
  mayCall,
  type ProjectNeeds,
  projectNeeds,
  READ_SKILL,
  refuseProviderOptions,
  shownTools,
} from "../agent/agent-spec.ts";
import { callModel } from "../agent/model-call.ts";
import { pipelineFacts } from "../history/pipeline-changes.ts";
import {
  JOURNAL_VERSION,
  newRunId,
  type PipelineSource,
  type RunRules,
  readsProject,
  recordedStart,
  refuseMissingSandbox,
  startedIn,
} from "../history/run-started.ts";
import { refuseUnpriced } from "../history/unpriced.ts";
import { declaredSecrets, runsInSandbox } from "../kinds/commands/command.ts";
import type { CommandWorld } from "../kinds/commands/run-command.ts";
import { executorSet, executorsAsGiven, kindExecutors } from "../kinds/executors.ts";
import { type ResolvedModel, type ResolvedModels, withCalls } from "../models/model.ts";
import { modelFacts } from "../models/pricing/prices.ts";
import { sessionSandbox } from "../sandbox/session-sandbox.ts";
import { refuseUnusableSecrets } from "../secrets/declared.ts";
import { keysInVariables, rememberedSecrets, SHORTEST_SECRET, sessionSecrets } from "../secrets/detect.ts";
import { watchRuns } from "../telemetry/watched-runs.ts";
import { contains, realPath } from "../tools/files/paths.ts";
import { namedPaths, type StartedCommand, startedCode, startedFiles } from "../tools/files/started-files.ts";
import type { ServerWall, WallPlan } from "../tools/mcp/transport/server-wall.ts";
import { skillRoots } from "../tools/skills/skill-names.ts";
import { modelExecutors, noModel, sessionModels } from "./models.ts";
import type { SessionOptions } from "./options.ts";
import type { SessionPeople } from "./people.ts";
import { linkedPaths, ownCode, startedServers } from "./protected-paths.ts";
import { sessionTools } from "./tools.ts";

export interface PreparationScope {
  readonly clock: Clock;
  readonly people: SessionPeople;
  /** The session's store; the first call opens it. */
  readonly host: () => RunHost;
  /** Collects every secret value with its name. */
  readonly secrets: Map<string, string>;
}

/** The dependencies that all runs of a session share. */
type SharedDeps = Omit<RunDeps, "tools" | "env" | "secrets" | "answers"> & Required<Pick<RunDeps, "protectedPaths">>;

/** Gives runs their models, tools, secrets and everything that the runs of a session share. */
export function runPreparation(options: SessionOptions, scope: PreparationScope) {
  const { clock, people, host } = scope;
  const env = options.env ?? process.env;
  const root = workspaceRoot(options.cwd ?? process.cwd());
  const mode = options.mode ?? "ask";
  const allow = [...(options.allow ?? [])];
  let shared: SharedDeps | undefined;
  const held = sessionSandbox(options.sandbox, {
    root,
    withoutEnvelope: mode === "yolo" ? ["*"] : mode === "allowlist" ? allow : [],
    clock,
    store: () => shared?.workspace.store,
    onFault: (fault) => options.onFault?.(fault),
  });
  const tools = sessionTools(options, { root, clock, bash: held.bash });
  const modelsByAgent = new WeakMap<AgentSpec, ResolvedModels>();
  const factsOf = modelFacts(options.prices);
  const watched = options.telemetry && watchRuns(options.telemetry, clock, (fault) => options.onFault?.(fault));
  const modelsFor = (spec: AgentSpec): ResolvedModels => {
    const found = modelsByAgent.get(spec);
    if (found === undefined) throw noModel();
    return found;
  };
  const caller = watched?.call ?? ((request) => callModel(request, clock));
  const walled: CommandWorld["walled"] = async (program, reach) => {
    await held.sandbox.prove();
    if (held.sandbox.wall === undefined && !held.sandbox.isLost) return undefined;
    return await held.sandbox.run(program, held.planFor(reach));
  };
  const kinds = kindExecutors({ clock, env, walled, wall: () => held.sandbox.wall });
  const given = executorsAsGiven(options.executors ?? []);
  const executors = executorSet([...modelExecutors(modelsFor, factsOf, caller), ...kinds, ...given]);
  // Mode ask approves built-in tools that only read.
  const readWithoutEnvelope = mode === "allowlist" ? allow : ["*"];
  const knownPipeline = knownPipelines(executors.kinds, tools.builtins, readWithoutEnvelope);
  const demandsOf = pipelineDemands();
  const models = sessionModels(options, { root, env, clock, secrets: scope.secrets, absent: held.absent });
  const named = { named: options.secrets ?? [], passed: options.passEnv ?? [] };
  const secretsOf = rememberedSecrets(env, named);
  const slots = createConcurrencySlots(options.maxParallel ?? 4);
  const atWork = { count: 0, started: 0 };

  /** Created by the first run, because nothing is opened before it. */
  const sharedDeps = (): SharedDeps => {
    shared ??= {
      clock,
      executors: executors.loaded,
      mode,
      allow: compileEnvelope(allow),
      protectedPaths: [...(options.protectedPaths ?? []), ...ownCode()],
      builtins: tools.builtins,
      workspace: workspaceOf(root, host()),
      slots,
      people,
      providerFaults: providerFaultsOf(options, host()),
      maxParallelReads: 8,
      atWork,
      endSurvivors: async (key) => await (await import("../tools/bash/process.ts")).endSurvivors(key),
      ...(options.onCall === undefined ? {} : { onCall: options.onCall }),
      ...(watched === undefined ? {} : { around: watched.around }),
    };
    return shared;
  };

  /** How the servers and these agents are started. The settings of servers were checked before. */
  const startsOf = (agents: readonly ResolvedModel[]): readonly StartedCommand[] => [
    ...startedServers(options.mcpServers ?? {}, env.PATH, root),
    ...startedAgents(agents),
  ];

  /** What a run may write: the workspace, and with servers also what they are started with. */
  const writable = (): readonly string[] => [
    root,
    ...startedServers(options.mcpServers ?? {}, env.PATH, root).flatMap(({ command, cwd = "." }) => {
      const named = [resolve(root, cwd), ...namedPaths(command.slice(1))];
      return [...named, ...named.flatMap((path) => realPath(path) ?? [])];
    }),
  ];

  let paths: readonly string[] = [];
  /** Read for each run, because files may change between runs. Equal lists are one, because thousands of runs may be active. */
  const protectedPaths = (readsSkills: boolean, agents: readonly ResolvedModel[]): readonly string[] => {
    // A stage must not write instructions for a later one.
    const skills = readsSkills ? skillRoots(root) : [];
    const started = startsOf(agents).flatMap((one) => startedFiles(one, root));
    const now = [...sharedDeps().protectedPaths, ...linkedPaths(root), ...models.files(), ...skills, ...started];
    // Frozen, since tools get it.
    if (!isSameJson(now, paths)) paths = Object.freeze(now);
    return paths;
  };

  const wallPlan = (agents: readonly ResolvedModel[]): WallPlan => ({
    absent: held.absent(),
    readOnly: [
      ...[...sharedDeps().protectedPaths, ...linkedPaths(root), ...models.files(), ...skillRoots(root)],
      ...startedAgents(agents).flatMap((one) => startedFiles(one, root)),
      // Of servers only the code: each may write its own data.
      ...startedServers(options.mcpServers ?? {}, env.PATH, root).flatMap((one) => startedCode(one, root)),
    ],
  });

  /** Files from which agents of a run start and that were not there when it began, by the id of the run. */
  const missingByRun = new Map<string, readonly string[]>();
  /** Takes effect once the run begins, since a resume may be refused. */
  const knowing =
    (runId: string, missing: readonly string[], program: RunProgram): RunProgram =>
    (steps, input) => {
      missingByRun.set(runId, missing);
      return program(steps, input);
    };
  const agentModels = new Map<ResolvedModel, ResolvedModel>();
  const modelOf = async (state: string, named?: string): Promise<ResolvedModel> => {
    const model = await models.of(state, named);
    if (model.started === undefined) return model;
    const known = agentModels.get(model) ?? startedAsFound(model, (runId) => missingByRun.get(rootRunId(runId)) ?? []);
    agentModels.set(model, known);
    return known;
  };

  const modelsOf = async ({ agents }: PipelineDemands): Promise<ReadonlyMap<AgentSpec, ResolvedModels>> => {
    const byState = new Map<AgentSpec, ResolvedModels>();
    for (const [id, agent] of agents) {
      const resolved: [ResolvedModel, ...ResolvedModel[]] = [await modelOf(id, agent.model)];
      for (const fallback of agent.fallbackModels ?? []) resolved.push(await modelOf(id, fallback));
      byState.set(agent, resolved);
      modelsByAgent.set(agent, resolved);
    }
    return byState;
  };

  /** The models that pipelines may name which are made later. One that cannot be resolved is refused where it is named. */
  const laterModels = async ({ later }: PipelineDemands): Promise<readonly ResolvedModel[]> => {
    const resolved = await Promise.allSettled(later.map(([state, model]) => models.of(state, model)));
    return resolved.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  };

  /** A pipeline that is made during a run has what the run has, and the models that it names. */
  const admit = async (
    live: LiveTools,
    isCapped: boolean,
    answers: AnswerRule,
    protectedNow: readonly string[],
    secrets: ReadonlyMap<string, string>,
    made: PipelineSpec,
  ): Promise<JsonObject> => {
    const problems = checkSession(made, { tools: [...live.keys()], kinds: executors.kinds });
    if (problems.length > 0)
      throw problemsError("session_invalid", `Pipeline ${made.id} cannot run in this session:`, problems);
    const demands = demandsOf(made);
    await executors.loadFor(demands.kinds);
    const own = await modelsOf(demands);
    const counted = isCapped ? demands.agents.map(([, agent]) => agent) : demands.capped;
    if (counted.length > 0) refuseUnpriced(made, counted, pricedIn(own), factsOf);
    await held.proveFor(made, demands.hasWalledStates);
    const resolved = [...own.values()].flat();
    const values = resolved.flatMap(({ secrets }) => secrets);
    const given = new Map(demands.keys);
    const used = new Set([...values, ...given.keys()]);
    const { known } = sessionSecrets(env, { ...named, values, given });
    const [, key] = [...known].find(([value]) => used.has(value) && !secrets.has(value)) ?? [];
    if (key !== undefined)
      throw new SluiceError(
        "Validation",
        "session_invalid",
        `pipeline ${made.id} cannot run in this session: it uses a key (${key}) that is no known secret of the run; list its model in models of the state that makes the pipeline, or set the variable of a key of at least ${SHORTEST_SECRET} characters in the session's environment, too, and list it in its secrets`,
      );
    // The run's protected files are known from its start.
    const areas = writable();
    const isOpen = (file: string): boolean =>
      areas.some((area) => contains(area, file)) && !protectedNow.some((one) => contains(one, file));
    const open = startedAgents(resolved)
      .flatMap((one) => startedFiles(one, root))
      .find(isOpen);
    if (open !== undefined)
      throw new SluiceError(
        "Validation",
        "session_invalid",
        `pipeline ${made.id} cannot run in this session: the run could write ${open}, which starts an agent of it; list its model in models of the state that makes the pipeline`,
      );
    if (startsAdvisory(resolved)) answers.startsUnwalled();
    const { agents } = outsideAgents(resolved);
    return agents === undefined ? {} : { agents };
  };

  const of = async (
    spec: PipelineSpec,
    runId: string,
    { any, unwalled, wall: recordedWall, hasMade = false, missing: recordedMissing = [] }: RunRules,
    journals: readonly RunJournal[] = [],
    from: StartAt | undefined = recordedStart(startedIn(journals)?.data),
  ) => {
    const demands = demandsOf(spec);
    const { capped, declared } = demands;
    // What was sandboxed once stays so.
    const isWalled = demands.hasWalledStates || recordedWall !== undefined;
    await executors.loadFor(demands.kinds);
    const byState = await modelsOf(demands);
    const all = [...byState.values()].flat();
    const usable = demands.later.length === 0 ? all : [...all, ...(await laterModels(demands))];
    if (capped.length > 0) refuseUnpriced(spec, capped, pricedIn(byState), factsOf);
    if (declared.size > 0) refuseUnusableSecrets(spec, declared, env);
    const { filter, known, childEnv } = secretsOf({
      values: usable.flatMap((model) => model.secrets),
      given: new Map([...demands.keys, ...(await tools.keys())]),
      declared: [...declared.keys()],
    });
    for (const [value, name] of known) scope.secrets.set(value, name);
    sharedDeps();
    await held.proveFor(spec, isWalled || Object.keys(options.mcpServers ?? {}).length > 0);
    // Before a server is started without it.
    if (recordedWall !== undefined) refuseMissingSandbox(runId, recordedWall, held.sandbox);
    // Looked for between: what a killed command left is gone now, and a server may make a file as soon as it starts.
    const missing = [...new Set([...recordedMissing, ...missingFiles(usable, root)])];
    const wall: ServerWall = { sandbox: held.sandbox, plan: wallPlan.bind(undefined, usable) };
    const live = await tools.liveFor(spec, { runId, env: childEnv, secrets: filter, wall });
    const servers = await tools.servers();
    const { states, graph, needs, readsSkills, facts, beginning } = knownPipeline(spec, live, filter);
    // Bound, like `admit`, since a closure would keep all of this call's values as long as the run.
    const answers = createAnswerRule({ any, unwalled, onUnwalled: people.unwalled.bind(people, runId) });
    // As it is recorded, so that a resume reads the same.
    const start = from?.input === undefined ? from : { ...from, input: filter.json(from.input) };
    const isRecorded = readsProject(needs, journals);
    const project = isRecorded === undefined ? undefined : await projectOf(needs, sharedDeps().workspace, isRecorded);
    const protectedNow = protectedPaths(readsSkills, usable);
    const own = {
      admit: admit.bind(undefined, live, capped.length > 0, answers, protectedNow, known),
      tools: live,
      env: childEnv,
      secrets: filter,
      protectedPaths: protectedNow,
      answers,
      ...(project === undefined ? {} : { project }),
      ...(start === undefined ? {} : { from: start }),
    };
    const deps: RunDeps = { ...sharedDeps(), ...own };
    const processes = [...live.values(), ...(options.executors ?? [])].some(
      ({ startsProcesses }) => startsProcesses === true,
    );
    const names = [...new Set([...(options.secrets ?? []), ...declared.keys()])];
    const without = { servers: [...servers.unwalled], processes };
    const sandbox = held.facts(spec, without, isWalled || servers.walled.size > 0);
    // States of pipelines that were made before may use it without another start, which would record it.
    const working = [...all, ...(hasMade ? await models.agent() : [])];
    const agents = outsideAgents(working);
    if (servers.unwalled.size > 0 || startsAdvisory(working)) answers.startsUnwalled();
    return {
      deps,
      /** What a run records of this pipeline if it continues with a changed one. */
      facts,
      /** What people see of it, recorded with the facts. */
      graph,
      /** The sandbox of its commands, recorded whenever the run is started or resumed. */
      sandbox,
      /** The agents of other programs that work on it. */
      agents,
      /** Files from which they start and that are not there, or were not there when an earlier life of the run began. */
      missing,
      /** The session's list, recorded with each start, and with a resume that changes it. */
      allow: deps.secrets.json(allow),
      /** The names of its secret variables, recorded in the same way. */
      secrets: names,
      /** `recorded` is what a resumed run has used already. */
      program: (recorded?: RecordedCosts): RunProgram => {
        const own = pipelineProgram(spec, deps, createRunMeter(spec.limits, clock, recorded), states);
        const program = missing.length > 0 || missingByRun.has(runId) ? knowing(runId, missing, own) : own;
        return watched?.program(program, spec, recorded !== undefined) ?? program;
      },
      /** The data of `run.started`, which is all that resuming needs. `more` are members for what starts it. */
      started: (source: PipelineSource, input: Json, settings?: JsonObject, more?: JsonObject): JsonObject =>
        extendedData(beginning, {
          source,
          models: [...new Set(all.map(({ id }) => id))],
          // The model of the stages that name none; null if every stage names one.
          model: [...byState].find(([agent]) => agent.model === undefined)?.[1][0].id ?? null,
          ...agents,
          ...(missing.length === 0 ? {} : { missing }),
          mode,
          allow: deps.secrets.json(allow),
          secrets: names,
          cwd: root,
          sandbox,
          ...(any ? { answers: "any" } : {}),
          ...(unwalled ? { unsandboxed: true } : {}),
          journalVersion: JOURNAL_VERSION,
          // A resume keeps requests open as the start did.
          ...(options.wait === undefined || options.wait === false ? {} : { wait: options.wait }),
          ...(start === undefined ? {} : { from: { ...start } }),
          ...(settings === undefined ? {} : { settings: maskSecrets(settings, filter) }),
          ...more,
          input,
        }),
    };
  };

  /** The tools that states of a pipeline may call. Starts the MCP servers that it needs. */
  const toolsOf = async (
    spec: PipelineSpec,
    runId = newRunId(),
    rules: RunRules = { any: false, unwalled: false },
    journals: readonly RunJournal[] = [],
  ): Promise<readonly AvailableTool[]> => {
    const { deps } = await of(spec, runId, rules, journals);
    const shown = pipelinesWithin(spec).flatMap((one) => {
      const states = prepareStates(one, deps.tools);
      const own = [...agentsOf(one)].flatMap(([id, agent]) => shownTools(states.get(id)?.offer ?? NO_TOOLS, agent));
      // Pipelines that a state makes may call what it may.
      const makers = [...states.values()].filter(({ state }) => state.models !== undefined);
      return [...own, ...makers.flatMap(({ offer }) => offer.tools.filter(({ allowed }) => allowed))];
    });
    const byName = new Map(shown.map((tool) => [tool.name, tool]));
    return [...byName.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  };

  return {
    root,
    mode,
    tools: toolsOf,
    sandboxMode: held.sandbox.mode,
    /** Masks the secrets of the environment, for texts that are written before a run is prepared. */
    clean: (text: string): string => sessionSecrets(env, { ...named, values: [] }).filter.text(text),
    /** Everything that a run of this pipeline needs from the session. Throws if something is missing. */
    of,
    close: tools.close,
  };
}

const NO_TOOLS: AvailableTools = { tools: [], allowedTools: [] };

/** Files from which agents would start, or which their commands name, and that are not there. */
function missingFiles(models: readonly ResolvedModel[], root: string): readonly string[] {
  return startedAgents(models)
    .flatMap((one) => startedFiles(one, root))
    .filter((file) => !existsSync(file));
}

function startedAgents(models: readonly ResolvedModel[]): readonly StartedCommand[] {
  return models.flatMap(({ started }) => started ?? []);
}

/**
 * A model that starts no agent of a run in which a file appeared that was `missing` when the run began, and from which one of its agents
 * starts: a call of that run may have made it, of an MCP server for example, or of a command that still runs.
 */
function startedAsFound(model: ResolvedModel, missing: (runId: string) => readonly string[]): ResolvedModel {
  const refuseMade = (runId: string): void => {
    const made = missing(runId).find((file) => existsSync(file));
    if (made === undefined) return;
    const message = `${made}, from which an agent starts, was made during the run; check it, then start the run again, or fork it from this state with allowChanged (--allow-changed)`;
    throw new SluiceError("Session", "agent_changed", message);
  };
  return {
    ...model,
    at: (position) => {
      const found = model.at(position);
      const { runId = "" } = position;
      return withCalls(found, {
        doGenerate: async (options) => {
          refuseMade(runId);
          return await found.doGenerate(options);
        },
        doStream: async (options) => {
          refuseMade(runId);
          return await found.doStream(options);
        },
      });
    },
  };
}

/** The ids that determine the prices of an agent's models. */
function pricedIn(models: ReadonlyMap<AgentSpec, ResolvedModels>): (agent: AgentSpec) => readonly string[] {
  return (agent) => (models.get(agent) ?? []).map(({ pricedAs, id }) => pricedAs ?? id);
}

/** Whether an agent is started whose own tools pass no gate. */
function startsAdvisory(models: readonly ResolvedModel[]): boolean {
  return models.some(({ agent }) => agent?.started === true && agent.class === "advisory");
}

/** The agent that drives the run, and those that it starts for its states. */
function outsideAgents(models: readonly ResolvedModel[]): JsonObject {
  const all = [...new Set(models)].flatMap(({ agent }) => agent ?? []);
  const driver = all.find(({ started }) => started !== true);
  const agents = all.flatMap(({ started, ...agent }) => (started === true ? [agent] : []));
  return { ...(driver === undefined ? {} : { agent: { ...driver } }), ...(agents.length === 0 ? {} : { agents }) };
}

/** The keys in the variables that states set; they are redacted everywhere. */
function keysOfStates(spec: PipelineSpec): readonly (readonly [value: string, name: string])[] {
  const states = pipelinesWithin(spec).flatMap((one) => [...one.states.values()]);
  const found = states.flatMap(({ env }) => keysInVariables(env?.set ?? {}));
  return found.filter(([value]) => value.length >= SHORTEST_SECRET);
}

/** Only a run whose journal outlives the process can be resumed later. */
function providerFaultsOf({ retry, onProviderFault }: SessionOptions, { folder }: RunHost): ProviderFaultOptions {
  const isDurable = folder !== undefined;
  return {
    ...(retry === undefined ? {} : { retry }),
    onProviderFault: onProviderFault ?? (isDurable ? "suspend" : "fail"),
  };
}

function modelsOfMade(spec: PipelineSpec): PipelineDemands["later"] {
  return pipelinesWithin(spec).flatMap(({ states }) =>
    [...states].flatMap(([id, { models }]) =>
      models === undefined ? [] : [undefined, ...models].map((model) => [id, model] as const),
    ),
  );
}

function workspaceOf(root: string, { folder }: RunHost): RunDeps["workspace"] {
  // Every tool gets it, and the gate compares every path with it.
  return Object.freeze(folder === undefined ? { root } : { root, store: folder });
}

function workspaceRoot(cwd: string): string {
  try {
    return realpathSync(cwd);
  } catch (cause) {
    const message = `the workspace ${cwd} cannot be opened: ${messageOf(cause)}`;
    throw new SluiceError("Session", "workspace_missing", message, { cause });
  }
}

/** Loaded only for runs that need it: most read nothing of the project. */
async function projectOf(needs: ProjectNeeds, workspace: Workspace, isRecorded: boolean): Promise<RunDeps["project"]> {
  const { projectReader } = await import("./project-facts.ts");
  return projectReader(needs, workspace, isRecorded);
}

/** What a pipeline needs of any session. */
interface PipelineDemands {
  /** The kinds of its states. */
  readonly kinds: ReadonlySet<string>;
  readonly agents: ReturnType<typeof agentsWithin>;
  /** Those whose cost is capped. */
  readonly capped: readonly AgentSpec[];
  /** Names of the secrets of its commands, each with a state that declares it. */
  readonly declared: ReadonlyMap<string, string>;
  readonly keys: ReturnType<typeof keysOfStates>;
  /** Models that pipelines may use which its states make during the run, each with a state; undefined stands for the session's. */
  readonly later: readonly (readonly [state: string, model: string | undefined])[];
  readonly hasWalledStates: boolean;
}

/** Derives it once per pipeline. Throws Validation `provider_option_refused`. */
function pipelineDemands(): (spec: PipelineSpec) => PipelineDemands {
  const known = new WeakMap<PipelineSpec, PipelineDemands>();
  return (spec) => {
    const before = known.get(spec);
    if (before !== undefined) return before;
    refuseProviderOptions(spec);
    const now = {
      kinds: new Set(statesWithin(spec).map(({ kind }) => kind)),
      agents: agentsWithin(spec),
      capped: costCappedAgents(spec),
      declared: declaredSecrets(spec),
      keys: keysOfStates(spec),
      later: modelsOfMade(spec),
      hasWalledStates: runsInSandbox(spec),
    };
    known.set(spec, now);
    return now;
  };
}

type LiveTools = RunDeps["tools"];

/** What a session derives from a pipeline. */
interface KnownPipeline {
  readonly live: LiveTools;
  readonly filter: SecretFilter;
  readonly states: PreparedStates;
  /** For people who read its runs. */
  readonly graph: JsonObject;
  readonly needs: ProjectNeeds;
  /** Whether any stage may read skills, also one without an envelope. */
  readonly readsSkills: boolean;
  readonly facts: JsonObject;
  /** What the data of `run.started` begins with, the same for all its runs. */
  readonly beginning: JsonObject;
}

/** Derives it once per pipeline, set of tools and secrets. Throws Validation `session_invalid`. */
function knownPipelines(
  kinds: readonly string[],
  builtins: RunDeps["builtins"],
  readWithoutEnvelope: readonly AllowedTool[],
): (spec: PipelineSpec, live: LiveTools, filter: SecretFilter) => KnownPipeline {
  const known = new WeakMap<PipelineSpec, KnownPipeline>();
  return (spec, live, filter) => {
    const before = known.get(spec);
    if (before?.live === live && before.filter === filter) return before;
    const problems = checkSession(spec, { tools: [...live.keys()], kinds });
    if (problems.length > 0)
      throw problemsError("session_invalid", `Pipeline ${spec.id} cannot run in this session:`, problems);
    const states = prepareStates(spec, live);
    const graph = maskSecrets(recordedGraph(spec), filter);
    const needs = projectNeeds(spec);
    const readsSkills = mayCall(spec, READ_SKILL, readWithoutEnvelope);
    const facts = pipelineFacts(spec, { tools: live, builtins }, filter);
    const beginning = sharedData({ pipeline: spec.id, ...facts, ...graph });
    const now = { live, filter, states, graph, needs, readsSkills, facts, beginning };
    known.set(spec, now);
    return now;
  };
}
