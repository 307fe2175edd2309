import { existsSync } from "node:fs";
import { Readable } from "node:stream";
import { type Interactor, type JsonObject, type RunHost, SluiceError } from "@sluice/core";
import { chooseModel, type RunHandle, type Session } from "@sluice/stages";
import type { Engine, EngineHooks, KnownRun, ResumeOptions, StartIn } from "@sluice/tui";
import type { CommandContext } from "../../command-context.ts";
import { damagedText, exportName, writeExport, writtenText } from "../../output/export-file.ts";
import { readInput } from "../../project/input.ts";
import { choiceOf } from "../../project/model.ts";
import { projectPipelines } from "../../project/pipelines.ts";
import {
  commandLine,
  type ProjectPaths,
  projectPathsOf,
  storeOpener,
  workspaceOf,
} from "../../project/project-paths.ts";
import { createProjects, type Project, type Projects } from "../../project/projects.ts";
import { forkText, readForkedPart } from "../../runs/fork-plan.ts";
import { requireRun } from "../../runs/lookup.ts";
import { openSession, secretsToward } from "../../runs/open-session.ts";
import { prepareResume, type ResumePlanRequest, readRun } from "../../runs/resume-plan.ts";
import type { RunFlags } from "../../runs/run-flags.ts";
import { planRun, type RunPlan, type RunPlanRequest } from "../../runs/run-plan.ts";
import { demoFolder, demoPlan } from "../demo/demo-run.ts";

interface OpenStore {
  readonly paths: ProjectPaths;
  readonly host: RunHost;
}

export interface EngineOptions extends EngineHooks {
  readonly flags: RunFlags;
  readonly context: CommandContext;
  /** They answer the requests of its runs. */
  readonly interactors?: readonly Interactor[];
}

/** Executes runs for the app like the command does. Lines that the command writes to stderr go to `say`. */
export function createEngine(options: EngineOptions): Engine {
  const { flags: given, context: outer, interactors = [], askTrust, say } = options;
  const err = (text: string): void => say(text.replace(/^sluice: /, "").trimEnd());
  const context = { ...outer, terminal: { ...outer.terminal, err } };
  const { here } = context;
  let flags = given;
  let projects: Projects | undefined;
  let project: Promise<Project> | undefined;
  const hosts = new Map<string, RunHost>();
  const sessions = new Set<Session>();
  let isClosing = false;
  const projectsNow = (): Projects => {
    projects ??= createProjects(flags, context, askTrust);
    return projects;
  };

  /** Opens the project once, so that its notices appear once; retries after a failure. */
  const openProject = (): Promise<Project> => {
    project ??= projectsNow()
      .open(workspaceOf(flags, here))
      .catch((thrown: unknown) => {
        project = undefined;
        throw thrown;
      });
    return project;
  };

  const hostOf = async (paths: ProjectPaths): Promise<RunHost> => {
    const known = hosts.get(paths.store);
    if (known !== undefined) return known;
    const opened = (await storeOpener(paths, flags.adoptStore))();
    hosts.set(paths.store, opened);
    return opened;
  };
  /** The store of this workspace; undefined if there is none yet. */
  const openStore = async (): Promise<OpenStore | undefined> => {
    const paths = await projectsNow().place();
    if (!hosts.has(paths.store) && !existsSync(paths.store)) return undefined;
    return { paths, host: await hostOf(paths) };
  };

  const known = (runId: string, { host, paths }: OpenStore): KnownRun => ({
    runId,
    host,
    resumeCommand: () => commandLine(["resume", runId], paths, here, context.env),
  });

  const begin = async (plan: RunPlan, paths: ProjectPaths): Promise<KnownRun> => {
    if (plan.note !== undefined) say(plan.note);
    if (plan.model?.why !== undefined) say(`model ${plan.model.id} (${plan.model.why})`);
    const host = await hostOf(paths);
    // A run that starts now would be suspended at once, without showing the user how to resume it.
    if (isClosing) throw new SluiceError("Session", "session_closed", "the app is closing and starts no more runs");
    const people = {
      // A request stays open until it is answered, here or in another process.
      wait: true,
      interactors,
      onFault: ({ by, message }: { readonly by: string; readonly message: string }) => say(`${by}: ${message}`),
    };
    const { session, traffic } = openSession({ plan, place: paths, flags, store: host, people }, context);
    sessions.add(session);
    const handle = plan.begin(session);
    const release = async (): Promise<void> => {
      for (const line of traffic?.notices() ?? []) say(line);
      sessions.delete(session);
      await session.close();
    };
    const closed = handle.then(release, release);
    closed.then(undefined, (thrown: unknown) => say(`a session could not be closed: ${String(thrown)}`));
    await firstEvent(handle);
    return { ...known(handle.runId, { host, paths }), handle, answer: session.answer };
  };

  const storeOf = async (runId: string): Promise<OpenStore> => {
    const store = await openStore();
    if (store === undefined) throw unknownRun(runId);
    return store;
  };
  /** Continues a run, or a fork of it, as it was started. */
  const continueRun = async (
    request: Omit<ResumePlanRequest, "flags" | "projects">,
    { allowChanged = false }: ResumeOptions,
  ): Promise<KnownRun> => {
    // The model and mode for later runs do not apply: the run continues as it was started.
    const { model: _model, mode: _mode, ...own } = flags;
    const resumed = { ...request, flags: { ...own, allowChanged }, projects: projectsNow() };
    const { place, plan } = prepareResume(resumed, context);
    return await begin(await plan(), place);
  };

  return {
    get flags() {
      return flags;
    },
    set: (more) => {
      flags = { ...flags, ...more };
    },
    project: async () => {
      const opened = await openProject();
      return { pipelines: projectPipelines(opened), defaultPipeline: opened.config?.settings.defaultPipeline };
    },
    lacksModel: async () => {
      const { config } = await openProject();
      if ((flags.model ?? config?.settings.model) !== undefined) return false;
      return (await chooseModel(choiceOf(config, context.env))) === undefined;
    },
    reload: () => {
      // --trust applied to the code at that time.
      const { trust: _, ...rest } = flags;
      flags = rest;
      projects = undefined;
      project = undefined;
    },
    start: async (pipeline, task, from) => {
      const opened = await openProject();
      const input = async (words: readonly string[]): Promise<JsonObject> =>
        words.length === 0 ? {} : { task: words.join(" ") };
      const words = pipeline === undefined || task === "" ? [] : [task];
      const request = {
        pipeline: pipeline ?? task,
        task: words,
        flags,
        ...(from === undefined ? {} : { from: await startOf(from) }),
      };
      const plan = await planRun(request, opened, context, input);
      return await begin(plan, await projectsNow().place());
    },
    check: async (name) => {
      // The reader of workflow files is loaded when it is needed.
      const { checkedLines, readChecked } = await import("../check/checked.ts");
      const names = name === undefined ? [] : [name];
      return checkedLines(await readChecked(names, projectsNow(), workspaceOf(flags, here)), here);
    },
    startDemo: async () => await begin(await demoPlan(), projectPathsOf({ cwd: demoFolder(false) }, here)),
    resume: async (runId, options = {}) => {
      const { paths, host } = await storeOf(runId);
      return await continueRun({ runId, snapshot: await readRun(host, paths, runId), at: paths }, options);
    },
    fork: async (runId, from, options = {}) => {
      const { paths, host } = await storeOf(runId);
      const forked = await readForkedPart(host, paths, { runId, from, naming: "/fork <execution>" });
      const { execution, snapshot } = forked;
      const run = await continueRun({ runId, from: execution, snapshot, at: paths }, options);
      say(forkText(runId, forked).join("\n"));
      return run;
    },
    find: async (runId) => {
      const store = await storeOf(runId);
      const found = await requireRun(store.host, store.paths, runId, LISTING);
      return known(found.runId, store);
    },
    secretsToward: (runId, host) => secretsToward(host, runId, context.env),
    store: async () => {
      const store = await openStore();
      return store === undefined ? undefined : { folder: store.paths.store, host: store.host };
    },
    exportName,
    export: async ({ runId, host }, file, force) => {
      const written = await writeExport(host, runId, { file, force });
      if (written === undefined) return undefined;
      return { lines: writtenText(written), ...(written.verified ? {} : { damage: damagedText(runId) }) };
    },
    list: async (most) => (await (await openStore())?.host.list(most === undefined ? {} : { limit: most })) ?? [],
    close: async () => {
      isClosing = true;
      await Promise.allSettled([...sessions].map((session) => session.close()));
      await Promise.allSettled([...hosts.values()].map((host) => host.close()));
    },
  };
}

async function startOf({ state, input }: StartIn): Promise<NonNullable<RunPlanRequest["from"]>> {
  // The app's own keys come from stdin, so there is none to read input from.
  return input.length === 0 ? { state } : { state, input: await readInput([], input, Readable.from([])) };
}

/** Resolves once the run is in the store; rejects if it could not start. */
async function firstEvent(handle: RunHandle<unknown>): Promise<void> {
  for await (const _event of handle.events) return;
  await handle;
}

const LISTING = "/runs lists the runs.";

function unknownRun(runId: string): SluiceError {
  return new SluiceError("Session", "run_unknown", `there is no run ${runId} here. ${LISTING}`);
}
