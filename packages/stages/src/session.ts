import { realpathSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import {
  type AgentSpec,
  compileEnvelope,
  createRunMeter,
  createSlots,
  type Interactor,
  type Json,
  type JsonObject,
  messageOf,
  type OpenRequest,
  type Pipeline,
  type PipelineSpec,
  type PreparedStates,
  pipelineProgram,
  type RunDeps,
  type RunHost,
  type RunTask,
  SluiceError,
  type StateExecutor,
  type SuspendReason,
  systemClock,
} from "@sluice/core";
import { followedExecutor } from "./agent/executor.ts";
import { boundaryBefore, type ForkRunOptions, forkedCopy } from "./forking.ts";
import { knownPipelines } from "./known-pipelines.ts";
import { saidSafely } from "./known-secrets.ts";
import type { ResolvedModel } from "./models/model.ts";
import { modelFacts } from "./models/prices.ts";
import { noModel, sessionModels } from "./models/session-models.ts";
import type { SessionOptions } from "./options.ts";
import { createPeople } from "./people.ts";
import { type ChangeOptions, comparePipeline, pipelineFacts } from "./pipeline-changes.ts";
import { linkedPaths, ownCode, serverFiles } from "./protected.ts";
import { type RunHandle, type RunHere, type RunResult, runHandle, runResult } from "./run-handle.ts";
import {
  checkedInput,
  JOURNAL_VERSION,
  journalsOf,
  newRunId,
  type PipelineSource,
  refuseOtherPlace,
  refuseOtherRun,
  startOf,
} from "./run-start.ts";
import { rememberedSecrets } from "./secrets.ts";
import { sessionTools } from "./session-tools.ts";
import { sessionClosed, sessionStore, sessionWorks } from "./session-works.ts";
import { isCapped, NOTHING_SPENT, recordedSpending, refuseUnpriced, refuseUnpricedPast } from "./spending.ts";
import { watchRuns } from "./telemetry/watched-runs.ts";
import { endSurvivors } from "./tools/process.ts";

export interface StartOptions {
  /** `programmatic` when omitted: such a run is resumed with `session.resume(pipeline, runId)` only. */
  readonly source?: PipelineSource;
}
/** One process's interactors, security mode, live tools, models and store. Runs start in it. */
export interface Session {
  readonly host: RunHost;
  start<I, O>(pipeline: Pipeline<I, O>, input: NoInfer<I>, options?: StartOptions): RunHandle<O>;
  run<I, O>(pipeline: Pipeline<I, O>, input: NoInfer<I>): Promise<RunResult<O>>;
  /** Takes up a run that no process owns any more: finished steps are read back, not repeated. */
  resume<I, O>(pipeline: Pipeline<I, O>, runId: string, options?: ChangeOptions): RunHandle<O>;
  /**
   * Makes a new run that begins with the recorded past of another, up to where that entered an execution, and goes on from there
   * with this pipeline, this session's models, mode and folder. The other run may be in any state, and stays as it is; so do files.
   */
  fork<I, O>(pipeline: Pipeline<I, O>, runId: string, options: ForkRunOptions): RunHandle<O>;
  /** Lets somebody join who can answer requests. Returns how to leave. */
  attach(interactor: Interactor): () => void;
  /**
   * Suspends what runs here, ends the MCP servers, and lets the store go where the session opened it: a host that it was given
   * is its opener's to close. Nothing can be started or resumed afterwards (Session `session_closed`).
   */
  close(): Promise<void>;
}

interface Prepared {
  readonly deps: RunDeps;
  readonly states: PreparedStates;
  /** The model of the stages that name none; null when each names its own. */
  readonly model: string | null;
  readonly models: readonly string[];
}

/** What all runs of a session have. */
type SameForAll = Omit<RunDeps, "tools" | "env" | "secrets"> & Required<Pick<RunDeps, "protectedPaths">>;

/** Makes a session. Nothing is loaded or opened before the first run; what is missing is told by that run. */
export function createSession(options: SessionOptions): Session {
  const clock = options.clock ?? systemClock;
  const env = options.env ?? process.env;
  const store = sessionStore(options.store, clock);
  const hostNow = store.host;
  const root = workspaceRoot(options.cwd ?? process.cwd());
  const mode = options.mode ?? "ask";
  const tools = sessionTools(options, { root, clock });
  const slots = createSlots(options.maxParallel ?? 4);
  const works = sessionWorks();
  const leftOpen = new Map<string, () => void>();
  const atWork = { count: 0, started: 0 };
  const modelOf = new WeakMap<AgentSpec, ResolvedModel>();
  const factsOf = modelFacts(options.prices);
  const watched = watchRuns(options.telemetry, clock, (fault) => options.onFault?.(fault));
  const modelFor = (spec: AgentSpec): ResolvedModel => {
    const model = modelOf.get(spec);
    if (model === undefined) throw noModel();
    return model;
  };
  const agent = followedExecutor({ modelOf: modelFor, factsOf, caller: watched.call });
  const executors = new Map<string, StateExecutor>([agent, ...(options.executors ?? [])].map((one) => [one.kind, one]));
  const pipelines = knownPipelines(executors);

  const rootOf = (runId: string): string => runId.split("/", 1)[0] ?? runId;
  const suspend = (runId: string, reason: SuspendReason): void => {
    const task = works.tasks.get(rootOf(runId));
    task?.suspend(reason).catch(() => undefined); // the run's own result tells
  };
  const people = createPeople({
    signal: (runId, message) => hostNow().signal(runId, said.signal(message)),
    clock,
    interactors: options.interactors ?? [],
    wait: options.wait !== undefined && options.wait !== false,
    onFault: (fault) => options.onFault?.({ ...fault, message: said.text(fault.message) }),
    onLeftOpen: (request: OpenRequest) => {
      if (typeof options.wait !== "number") return;
      const { runId, requestId } = request;
      const disarm = clock.after(options.wait, () => suspend(runId, "waiting"));
      leftOpen.set(JSON.stringify([runId, requestId]), disarm);
    },
    onUnkept: ({ runId }) => suspend(runId, "interrupted"),
    onSettled: (runId, requestId) => {
      const key = JSON.stringify([runId, requestId]);
      leftOpen.get(key)?.();
      leftOpen.delete(key);
    },
    ...(options.requestTimeoutMs === undefined ? {} : { requestTimeoutMs: options.requestTimeoutMs }),
  });

  const secretValues = new Map<string, string>();
  const said = saidSafely(secretValues);
  const models = sessionModels(options, { root, env, clock, secrets: secretValues });
  const secretsOf = rememberedSecrets(env, { named: options.secrets ?? [], passed: options.passEnv ?? [] });
  const allow = [...(options.allow ?? [])];
  let same: SameForAll | undefined;
  /** Made by the first run, since nothing is opened before it. */
  const sameForAll = (): SameForAll => {
    same ??= {
      clock,
      executors,
      mode,
      allow: compileEnvelope(allow),
      protectedPaths: [...(options.protectedPaths ?? []), ...ownCode()],
      builtins: tools.builtins,
      workspace: workspaceOf(root, hostNow()),
      slots,
      people,
      maxParallelReads: 8,
      atWork,
      endSurvivors,
      ...(options.onCall === undefined ? {} : { onCall: options.onCall }),
      ...watched.deps,
    };
    return same;
  };

  /** What is on the disk may change between two runs. */
  const foundPaths = (): readonly string[] => [
    ...linkedPaths(root),
    ...models.files(),
    ...serverFiles(options.mcpServers ?? {}, root),
  ];

  let latest: RunDeps | undefined;
  /** The same object for one run after the other, as long as they have the same: thousands may be at work. */
  const depsOf = (own: Pick<RunDeps, "tools" | "env" | "secrets">): RunDeps => {
    const always = sameForAll();
    const deps: RunDeps = { ...always, ...own, protectedPaths: [...always.protectedPaths, ...foundPaths()] };
    if (latest === undefined || !isDeepStrictEqual(latest, deps)) latest = deps;
    return latest;
  };

  /** Everything a run of this pipeline needs from the session, or what is missing. */
  const prepare = async (spec: PipelineSpec, runId: string): Promise<Prepared> => {
    const byState = new Map<AgentSpec, ResolvedModel>();
    for (const [id, state] of spec.states) {
      if (state.agent === undefined) continue;
      const resolved = await models.of(id, state.agent.model);
      byState.set(state.agent, resolved);
      modelOf.set(state.agent, resolved);
    }
    refuseUnpriced(spec, (agent) => byState.get(agent)?.pricedAs ?? byState.get(agent)?.id, factsOf);
    const { filter, known, childEnv } = secretsOf({
      values: [...byState.values()].flatMap((model) => model.secrets),
      given: await tools.keys(),
    });
    for (const [value, name] of known) secretValues.set(value, name);
    const live = await tools.liveFor(spec, { runId, env: childEnv, secrets: filter });
    const states = pipelines.statesOf(spec, live);
    const deps = depsOf({ tools: live, env: childEnv, secrets: filter });
    const byDefault = [...byState].find(([agent]) => agent.model === undefined)?.[1].id ?? null;
    return { deps, states, model: byDefault, models: [...new Set([...byState.values()].map(({ id }) => id))] };
  };

  /** What `run.started` says: all that resuming needs. */
  const startedWith = (
    spec: PipelineSpec,
    source: PipelineSource,
    { deps, model, models }: Omit<Prepared, "states">,
    input: Json,
  ): JsonObject => ({
    pipeline: spec.id,
    ...pipelineFacts(spec, pipelines.partsOf(spec), source, deps),
    models,
    model,
    mode,
    allow: deps.secrets.json(allow),
    secrets: [...(options.secrets ?? [])],
    cwd: root,
    journalVersion: JOURNAL_VERSION,
    shape: pipelines.shapeOf(spec),
    input,
  });

  const launch = async <I, O>(
    { spec }: Pipeline<I, O>,
    input: unknown,
    runId: string,
    source: PipelineSource,
  ): Promise<RunTask> => {
    const accepted = await checkedInput(spec, input);
    const { deps, states, model, models } = await prepare(spec, runId);
    const clean = deps.secrets.json(accepted);
    const data = startedWith(spec, source, { deps, model, models }, clean);
    const meter = createRunMeter(spec.limits, clock, { tokens: 0, workedMs: 0 });
    const program = watched.program(pipelineProgram(spec, deps, meter, states), spec, false);
    return await works.add(() =>
      hostNow().start({ runId, input: clean, events: [{ type: "run.started", data }], program }),
    );
  };

  const takeUp = async <I, O>({ spec }: Pipeline<I, O>, runId: string, options: ChangeOptions): Promise<RunTask> => {
    const host = hostNow();
    const journals = await journalsOf(host, runId);
    const started = await startOf(host, runId);
    refuseOtherRun(spec, runId, started);
    refuseOtherPlace(runId, started, { root, mode });
    const compare = comparePipeline(spec, runId, journals, options);
    const { deps, states } = await prepare(spec, runId);
    const changes = compare(deps);
    const spent = isCapped(spec.limits) ? recordedSpending(journals) : NOTHING_SPENT;
    refuseUnpricedPast(spec, runId, spent);
    const meter = createRunMeter(spec.limits, clock, spent);
    const program = watched.program(pipelineProgram(spec, deps, meter, states), spec, true);
    const said =
      changes === undefined
        ? {}
        : { said: { changed: { ...changes, ...pipelineFacts(spec, pipelines.partsOf(spec), options.source, deps) } } };
    return await works.add(() => host.resume(runId, program, said));
  };

  const branchOff = async <I, O>(
    { spec }: Pipeline<I, O>,
    of: string,
    runId: string,
    options: ForkRunOptions,
  ): Promise<RunTask> => {
    const host = hostNow();
    const journals = await journalsOf(host, of);
    const { data: was } = refuseOtherRun(spec, of, await startOf(host, of));
    const { boundary, past } = boundaryBefore(journals, options.from);
    const compare = comparePipeline(spec, of, past, options);
    const { states, ...prepared } = await prepare(spec, runId);
    const changed = compare(prepared.deps);
    refuseUnpricedPast(spec, of, recordedSpending(past));
    const started = startedWith(
      spec,
      options.source ?? PROGRAMMATIC,
      prepared,
      prepared.deps.secrets.json(was.input ?? null),
    );
    return await works.add(async () => {
      await host.copy({ ...forkedCopy(started, of, boundary, changed), runId });
      // As it came along: a sibling of a run at work may have completed since it was read.
      const spent = recordedSpending(await journalsOf(host, runId));
      const program = pipelineProgram(spec, prepared.deps, createRunMeter(spec.limits, clock, spent), states);
      return await host.resume(runId, watched.program(program, spec, true));
    });
  };

  const begin = (runId: string, start: () => Promise<RunTask>): RunHere => ({
    host: hostNow,
    runId,
    said,
    started: works.closing() ? Promise.reject(sessionClosed()) : start(),
  });
  const handle = <O>(run: RunHere): RunHandle<O> => runHandle(run, runResult<O>(run, works.tasks));
  const shutDown = async (): Promise<void> => {
    for (const disarm of leftOpen.values()) disarm();
    await works.suspendAll();
    people.close();
    await tools.close();
    await store.close();
  };
  let closed: Promise<void> | undefined;

  return {
    get host() {
      return hostNow();
    },
    start: (pipeline, input, { source = PROGRAMMATIC } = {}) => {
      const runId = newRunId();
      return handle(begin(runId, () => launch(pipeline, input, runId, source)));
    },
    run: (pipeline, input) => {
      const runId = newRunId();
      return runResult(
        begin(runId, () => launch(pipeline, input, runId, PROGRAMMATIC)),
        works.tasks,
      );
    },
    resume: (pipeline, runId, options = {}) => handle(begin(runId, () => takeUp(pipeline, runId, options))),
    fork: (pipeline, of, options) => {
      const runId = newRunId();
      return handle(begin(runId, () => branchOff(pipeline, of, runId, options)));
    },
    attach: people.attach,
    close: () => (closed ??= shutDown()),
  };
}

const PROGRAMMATIC: PipelineSource = { kind: "programmatic" };

function workspaceOf(root: string, { folder }: RunHost): RunDeps["workspace"] {
  return folder === undefined ? { root } : { root, store: folder };
}

function workspaceRoot(cwd: string): string {
  try {
    return realpathSync(cwd);
  } catch (cause) {
    throw new SluiceError(
      "Session",
      "workspace_missing",
      `the workspace ${cwd} cannot be opened: ${messageOf(cause)}`,
      { cause },
    );
  }
}
