import type { RunHost, Tool } from "@sluice/core";
import { redactText, visible } from "@sluice/core/runtime";
import { type GatewayRun, hostSettingsFiles, type NativeToolsOptions, openGatewayRun } from "@sluice/gateway";
import type { OutsideAgent } from "@sluice/stages";
import type { CommandContext } from "../command-context.ts";
import { readInput } from "../project/input.ts";
import { commandLine, type ProjectPaths, realPath, storeOpener, workspaceOf } from "../project/project-paths.ts";
import { createCodeBoard } from "./code-board.ts";
import { requireRun, withStore, withWritableStore } from "./lookup.ts";
import { openSession, sandboxModeOf } from "./open-session.ts";
import { projectsHere } from "./projects-here.ts";
import { prepareResume, readRun } from "./resume-plan.ts";
import type { RunFlags } from "./run-flags.ts";
import { planRun, type RunPlan, refuseFlagsInsideRun } from "./run-plan.ts";

/** The options of a run that an agent of another program works on. */
export interface AgentRunFlags extends RunFlags {
  /** The name or the file of a pipeline; default: the project's default pipeline. */
  readonly workflow?: string;
  readonly task?: string;
  readonly input?: readonly string[];
  /** The run to continue. */
  readonly resume?: string;
  readonly allowChanged?: boolean;
  /** False denies calls outside of an envelope at once. */
  readonly wait?: boolean | number;
}

export interface OpenAgentRun {
  readonly run: GatewayRun;
  readonly place: ProjectPaths;
  close(): Promise<void>;
}

/**
 * Opens a run of this folder for an agent of another program. It starts with the agent's first call. `native` makes the tools of an
 * agent that keeps its own.
 */
export async function openAgentRun(
  flags: AgentRunFlags,
  agent: OutsideAgent,
  context: CommandContext,
  native?: (options: NativeToolsOptions) => readonly Tool[],
): Promise<OpenAgentRun> {
  refuseFlagsInsideRun("gateway", flags, context.env);
  const { place, plan, host, resumes } =
    flags.resume === undefined ? await newRun(flags, context) : await earlierRun(flags, flags.resume, context);
  const wait = flags.wait ?? plan.wait ?? true;
  const onFault = ({ by, message }: { readonly by: string; readonly message: string }): void =>
    context.terminal.err(`sluice: ${visible(redactText(`${by}: ${message}`))}\n`);
  const codes = createCodeBoard(context.terminal, (words) => commandLine(words, place, context.here, context.env));
  const people = { interactors: [], wait, onFault, onCode: codes.show };
  const protectedPaths = hostSettingsFiles(place.cwd).flatMap((path) => [path, realPath(path)]);
  const { variables = [] } = plan.config?.settings.sandbox ?? {};
  const settings = { variables, requiresSandbox: sandboxModeOf(plan, flags) === "require" };
  const run = openGatewayRun({
    pipeline: plan,
    agent,
    wait: wait !== false,
    session: (added) =>
      openSession({ plan, place, flags, store: host, people, agent: added, protectedPaths }, context).session,
    begin: (session, task = NO_TASK) => plan.begin(session, task),
    ...(native === undefined ? {} : { native: (handOver) => native({ handOver, ...settings }) }),
    ...(resumes === undefined ? {} : { resumes, allowChanged: flags.allowChanged === true }),
  });
  return {
    run,
    place,
    close: async () => {
      await run.close();
      codes.close();
    },
  };
}

/** Of an agent whose user has said what to do in the agent's own program. */
const NO_TASK = "Do what your user asks for.";

/** Checks that a run could start: the workflow exists, can be loaded and is trusted, for which a person may be asked. */
export async function requireWorkflow(flags: AgentRunFlags, context: CommandContext): Promise<void> {
  await newRun(flags, context);
}

interface PlannedRun {
  readonly place: ProjectPaths;
  readonly plan: RunPlan;
  readonly host: () => RunHost;
  readonly resumes?: string;
}

async function newRun(flags: AgentRunFlags, context: CommandContext): Promise<PlannedRun> {
  const projects = projectsHere(flags, context);
  const project = await projects.open(workspaceOf(flags, context.here));
  const words = flags.task === undefined ? [] : [flags.task];
  const plan = await planRun(
    { pipeline: flags.workflow, task: words, flags, isDriven: true },
    project,
    context,
    (task) => readInput(task, flags.input ?? [], context.terminal.input),
  );
  if (plan.note !== undefined) context.terminal.err(`sluice: ${visible(plan.note)}\n`);
  const place = await projects.place();
  return { place, plan, host: await storeOpener(place, flags.adoptStore) };
}

async function earlierRun(flags: AgentRunFlags, named: string, context: CommandContext): Promise<PlannedRun> {
  const projects = projectsHere(flags, context);
  const at = await projects.place();
  const { runId, snapshot } = await withStore(at, async (host) => {
    const known = await requireRun(host, at, named);
    return { runId: known.runId, snapshot: await readRun(host, at, known.runId) };
  });
  const { place, plan } = prepareResume({ runId, flags, snapshot, at, projects, isDriven: true }, context);
  // Before code is loaded: the store names it, so it must belong to this machine.
  const planned = await withWritableStore(at, flags.adoptStore, plan);
  return { place, plan: planned, host: await storeOpener(at, flags.adoptStore), resumes: runId };
}
