import { existsSync } from "node:fs";
import { type JsonObject, type RunHost, SluiceError, systemClock } from "@sluice/core";
import { chooseModel, type RunHandle, type Session } from "@sluice/stages";
import type { Engine, EngineHooks, KnownRun, ResumeOptions } from "@sluice/tui";
import type { CommandContext } from "../../command-context.ts";
import { damagedText, exportName, writeExport, writtenText } from "../../output/export-file.ts";
import { fileStem } from "../../project/code.ts";
import {
  commandLine,
  type ProjectPaths,
  projectPathsOf,
  storeOpener,
  workspaceOf,
} from "../../project/project-paths.ts";
import { createProjects, type Project, type Projects } from "../../project/projects.ts";
import { forkText, readForkPast } from "../../runs/fork-plan.ts";
import { openSession, secretsToward } from "../../runs/open-session.ts";
import {
  pathsOfRun,
  planResume,
  type ResumePlanRequest,
  type RunSnapshot,
  readRun,
  refuseAdoptedFile,
} from "../../runs/resume-plan.ts";
import type { RunFlags } from "../../runs/run-flags.ts";
import { planRun, type RunPlan } from "../../runs/run-plan.ts";
import { demoFolder, demoPlan } from "../demo/demo-run.ts";

interface OpenStore {
  readonly place: ProjectPaths;
  readonly host: RunHost;
}

export interface EngineOptions extends EngineHooks {
  readonly flags: RunFlags;
  readonly context: CommandContext;
}

/** Starts runs for the app as the command does. What the command would write to stderr goes to `say`. */
export function createEngine({ flags: given, context: outer, askTrust, say }: EngineOptions): Engine {
  const err = (text: string): void => say(text.replace(/^sluice: /, "").trimEnd());
  const context = { ...outer, terminal: { ...outer.terminal, err } };
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

  const hostOf = async (place: ProjectPaths): Promise<RunHost> => {
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

  const known = (runId: string, { host, place }: OpenStore): KnownRun => ({
    runId,
    host,
    resumeCommand: () => commandLine(["resume", runId], place, here, context.env),
  });

  const begin = async (plan: RunPlan, place: ProjectPaths): Promise<KnownRun> => {
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
      for (const line of traffic?.notices() ?? []) say(line);
      sessions.delete(session);
      await session.close();
    };
    const closed = handle.then(over, over);
    closed.then(undefined, (thrown: unknown) => say(`a session could not be closed: ${String(thrown)}`));
    await firstEvent(handle);
    return { ...known(handle.runId, { host, place }), handle, answer: session.answer };
  };

  const storeOf = async (runId: string): Promise<OpenStore> => {
    const store = await openStore();
    if (store === undefined) throw unknownRun(runId);
    return store;
  };
  /** Goes on with a run, or with a fork of it: where it worked, as it was started. */
  const goOn = async (
    { runId, from, allowChanged = false }: ResumeOptions & Pick<ResumePlanRequest, "runId" | "from">,
    soFar: RunSnapshot,
    at: ProjectPaths,
  ): Promise<KnownRun> => {
    refuseAdoptedFile(soFar, flags);
    const place = pathsOfRun(soFar, flags, at, here);
    // What was chosen for later runs is not for this one: it goes on as it was started.
    const { model: _model, mode: _mode, ...own } = flags;
    const wish: ResumePlanRequest = { runId, flags: { ...own, allowChanged }, ...(from === undefined ? {} : { from }) };
    return await begin(await planResume(wish, soFar, { projects: projectsNow(), cwd: place.cwd }, context), place);
  };

  return {
    get flags() {
      return flags;
    },
    set: (more) => {
      flags = { ...flags, ...more };
    },
    project: async () => {
      const { config, code } = await openProject();
      return {
        pipelines: [...code.pipelines.map(fileStem), ...(config?.settings.pipelines.keys() ?? [])],
        defaultPipeline: config?.settings.defaultPipeline,
      };
    },
    lacksModel: async () => {
      const { config } = await openProject();
      if ((flags.model ?? config?.settings.model) !== undefined) return false;
      const chosen = await chooseModel({
        configured: undefined,
        ...(config?.settings.defaultModels === undefined ? {} : { defaultModels: config.settings.defaultModels }),
        baseUrls: config?.settings.baseUrls ?? {},
        env: context.env,
        clock: systemClock,
      });
      return chosen === undefined;
    },
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
    startDemo: () => begin(demoPlan(), projectPathsOf({ cwd: demoFolder(false) }, here)),
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
      if (store !== undefined && whole !== undefined) return known(whole.runId, store);
      const all = (await store?.host.list()) ?? [];
      const fitting = all.filter((run) => run.runId.startsWith(runId));
      const [found, ...more] = fitting.filter((run) => run.runId === runId || fitting.length === 1);
      if (store === undefined || found === undefined || more.length > 0) throw unknownRun(runId, fitting.length > 1);
      return known(found.runId, store);
    },
    secretsToward: (runId, host) => secretsToward(host, runId, context.env),
    store: async () => {
      const store = await openStore();
      return store === undefined ? undefined : { folder: store.place.store, host: store.host };
    },
    exportName,
    export: async ({ runId, host }, file, force) => {
      const written = await writeExport(host, runId, { file, force });
      if (written === undefined) return undefined;
      return { lines: writtenText(written), ...(written.verified ? {} : { damage: damagedText(runId) }) };
    },
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
