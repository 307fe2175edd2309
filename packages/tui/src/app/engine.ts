import { existsSync } from "node:fs";
import { type JsonObject, type RunHost, type RunSummary, type SecretFilter, SluiceError } from "@sluice/core";
import type { RunHandle, Session } from "@sluice/stages";
import { commandLine, type Place, placeOf, storeOpener, workspaceOf } from "../project/place.ts";
import type { CommandContext } from "../work/context.ts";
import { demoFolder, demoPlan } from "../work/demo-run.ts";
import { forkText, readForkPast } from "../work/fork-plan.ts";
import { openSession } from "../work/open-session.ts";
import { type AskTrust, createProjects, type Project, type Projects } from "../work/projects.ts";
import {
  placeOfRun,
  planResume,
  type ResumeWish,
  type RunSoFar,
  readRun,
  refuseAdoptedFile,
} from "../work/resume-plan.ts";
import type { RunFlags } from "../work/run-flags.ts";
import { planRun, type RunPlan } from "../work/run-plan.ts";
import { secretsToward } from "../work/said.ts";

/** A run the app knows, and the open store that holds it. */
export interface KnownRun {
  readonly runId: string;
  readonly host: RunHost;
  readonly place: Place;
  /** Only of a run that works in this process. */
  readonly handle?: RunHandle<unknown>;
  /** Answers its requests, as somebody at this process; only of a run that works here. */
  readonly answer?: Session["answer"];
  /** What it runs with, as far as it was begun here. */
  readonly plan?: RunPlan;
}

export interface OpenStore {
  readonly place: Place;
  readonly host: RunHost;
}

/** Begins runs, takes them up, and holds what they work with: the stores, and a session for each run. */
export interface Engine {
  readonly flags: RunFlags;
  /** What later runs are begun with. */
  set(flags: Partial<Pick<RunFlags, "model" | "mode">>): void;
  project(): Promise<Project>;
  /** Forgets what was loaded: the next run reads config and pipelines anew. */
  reload(): void;
  /** Begins a run. Throws what keeps it from beginning. */
  start(pipeline: string | undefined, task: string): Promise<KnownRun>;
  /** Begins the offline demo in a temporary folder. */
  startDemo(): Promise<KnownRun>;
  /** Takes up a run that nobody works on. */
  resume(runId: string, options?: GoOnOptions): Promise<KnownRun>;
  /** Begins a run with the past of another before an execution. Throws with those there are where none is named. */
  fork(runId: string, from: string | undefined, options?: GoOnOptions): Promise<KnownRun>;
  /** A run of the store, whoever works on it, by its id or by what only its id begins with. Throws Session `run_unknown`. */
  find(runId: string): Promise<KnownRun>;
  /** What is taken out of words to a run. */
  secretsToward(runId: string, host: RunHost): Promise<SecretFilter>;
  /** The store of the workspace; undefined where there is none yet. */
  store(): Promise<OpenStore | undefined>;
  /** The runs of the store, newest first, all or so many; none where there is no store. */
  list(most?: number): Promise<readonly RunSummary[]>;
  /** Suspends what works here and lets the stores go. */
  close(): Promise<void>;
}

export interface GoOnOptions {
  /** Also with a pipeline, a config or tools that changed. */
  readonly allowChanged?: boolean;
}

export interface EngineOptions {
  readonly flags: RunFlags;
  readonly context: CommandContext;
  readonly askTrust: AskTrust | undefined;
  /** Said aside: why a model was chosen, where a pipeline came from, what an MCP server said. */
  readonly say: (text: string) => void;
}

export function createEngine({ flags: given, context, askTrust, say }: EngineOptions): Engine {
  const { here } = context;
  let flags = given;
  let projects: Projects | undefined;
  let project: Promise<Project> | undefined;
  const hosts = new Map<string, RunHost>();
  const sessions = new Set<Session>();
  let leaving = false;
  const projectsNow = (): Projects => {
    projects ??= createProjects(flags, context, askTrust);
    return projects;
  };

  /** What is said about a project is said once; one that could not be opened is tried again. */
  const openProject = (): Promise<Project> => {
    project ??= projectsNow()
      .open(workspaceOf(flags, here))
      .catch((thrown: unknown) => {
        project = undefined;
        throw thrown;
      });
    return project;
  };

  const hostOf = async (place: Place): Promise<RunHost> => {
    const known = hosts.get(place.store);
    if (known !== undefined) return known;
    const opened = (await storeOpener(place, { adopt: flags.adoptStore === true }))();
    hosts.set(place.store, opened);
    return opened;
  };
  /** The store of this workspace, unless there is none yet. */
  const openStore = async (): Promise<OpenStore | undefined> => {
    const place = await projectsNow().place();
    if (!hosts.has(place.store) && !existsSync(place.store)) return undefined;
    return { place, host: await hostOf(place) };
  };

  const begin = async (plan: RunPlan, place: Place): Promise<KnownRun> => {
    if (plan.note !== undefined) say(plan.note);
    if (plan.model?.why !== undefined) say(`model ${plan.model.id} (${plan.model.why})`);
    const host = await hostOf(place);
    // What is begun now would be left at work, and nobody would be told how to take it up.
    if (leaving) throw new SluiceError("Session", "session_closed", "the app is being left: nothing is begun any more");
    const people = {
      // A request stays open until somebody answers it, here or in any other process.
      wait: true,
      interactors: [],
      onFault: ({ by, message }: { readonly by: string; readonly message: string }) => say(`${by}: ${message}`),
    };
    const { session, traffic } = openSession({ plan, place, flags, store: host, people }, context);
    sessions.add(session);
    const handle = plan.begin(session);
    const over = async (): Promise<void> => {
      for (const line of traffic?.said() ?? []) say(line);
      sessions.delete(session);
      await session.close();
    };
    const closed = handle.then(over, over);
    closed.then(undefined, (thrown: unknown) => say(`a session could not be closed: ${String(thrown)}`));
    await firstEvent(handle);
    return { runId: handle.runId, host, place, handle, answer: session.answer, plan };
  };

  const storeOf = async (runId: string): Promise<OpenStore> => {
    const store = await openStore();
    if (store === undefined) throw unknownRun(runId);
    return store;
  };
  /** Goes on with a run, or with a fork of it: where it worked, as it was started. */
  const goOn = async (
    { runId, from, allowChanged = false }: GoOnOptions & Pick<ResumeWish, "runId" | "from">,
    soFar: RunSoFar,
    at: Place,
  ): Promise<KnownRun> => {
    refuseAdoptedFile(soFar, flags);
    const place = placeOfRun(soFar, flags, at, here);
    // What was chosen for later runs is not for this one: it goes on as it was started.
    const { model: _model, mode: _mode, ...own } = flags;
    const wish: ResumeWish = { runId, flags: { ...own, allowChanged }, ...(from === undefined ? {} : { from }) };
    return await begin(await planResume(wish, soFar, { projects: projectsNow(), cwd: place.cwd }, context), place);
  };

  return {
    get flags() {
      return flags;
    },
    set: (more) => {
      flags = { ...flags, ...more };
    },
    project: openProject,
    reload: () => {
      // --trust was said of the code as it was then.
      const { trust: _, ...rest } = flags;
      flags = rest;
      projects = undefined;
      project = undefined;
    },
    start: async (pipeline, task) => {
      const opened = await openProject();
      const words = task === "" ? [] : [task];
      const input = async (said: readonly string[]): Promise<JsonObject> =>
        said.length === 0 ? {} : { task: said.join(" ") };
      const wish = pipeline === undefined ? { pipeline: task, task: [] } : { pipeline, task: words };
      const plan = await planRun({ ...wish, flags }, opened, context, input);
      return await begin(plan, await projectsNow().place());
    },
    startDemo: () => begin(demoPlan(), placeOf({ cwd: demoFolder(false) }, here)),
    resume: async (runId, options = {}) => {
      const { place: at, host } = await storeOf(runId);
      return await goOn({ runId, ...options }, await readRun(host, at, runId), at);
    },
    fork: async (runId, from, options = {}) => {
      const { place: at, host } = await storeOf(runId);
      const past = await readForkPast(host, at, { runId, from, naming: "/fork <execution>" });
      const run = await goOn({ runId, from: past.execution, ...options }, past.soFar, at);
      say(forkText(runId, past).join("\n"));
      return run;
    },
    find: async (runId) => {
      const store = await openStore();
      // A store may hold very many: they are gone through only for an id that is not whole.
      const whole = runId.includes("/") ? undefined : await store?.host.get(runId);
      if (store !== undefined && whole !== undefined) return { runId: whole.runId, ...store };
      const all = (await store?.host.list()) ?? [];
      const fitting = all.filter((run) => run.runId.startsWith(runId));
      const [found, ...more] = fitting.filter((run) => run.runId === runId || fitting.length === 1);
      if (store === undefined || found === undefined || more.length > 0) throw unknownRun(runId, fitting.length > 1);
      return { runId: found.runId, ...store };
    },
    secretsToward: (runId, host) => secretsToward(host, runId, context.env),
    store: openStore,
    list: async (most) => (await (await openStore())?.host.list(most === undefined ? {} : { limit: most })) ?? [],
    close: async () => {
      leaving = true;
      await Promise.allSettled([...sessions].map((session) => session.close()));
      await Promise.allSettled([...hosts.values()].map((host) => host.close()));
    },
  };
}

/** Resolves once the run stands in the store; rejects with what kept it from beginning. */
async function firstEvent(handle: RunHandle<unknown>): Promise<void> {
  for await (const _event of handle.events) return;
  await handle;
}

function unknownRun(runId: string, several = false): SluiceError {
  const why = several ? `several runs begin with ${runId}` : `there is no run ${runId} here`;
  return new SluiceError("Session", "run_unknown", `${why}; /runs lists what is there`);
}

/** How a run that was suspended goes on. */
export function resumeLine({ runId, place }: KnownRun, { here, env }: CommandContext): string {
  return `run ${runId} is suspended; go on with: ${commandLine(["resume", runId], place, here, env)}`;
}
