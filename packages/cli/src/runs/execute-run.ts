import type { Interactor, OpenRequest, RunHost } from "@sluice/core";
import { redactText, thrownAt, visible } from "@sluice/core/runtime";
import { secretMask } from "@sluice/tui/user";
import type { CommandContext } from "../command-context.ts";
import type { Terminal } from "../output/terminal.ts";
import { commandLine, type ProjectPaths, storeOpener } from "../project/project-paths.ts";
import { type FollowedRun, type FollowOptions, followRun } from "./follow-run.ts";
import { openSession } from "./open-session.ts";
import type { RunPlan } from "./run-plan.ts";

/** A run to start or resume. */
export interface RunExecution extends FollowOptions {
  readonly place: ProjectPaths;
  readonly plan: RunPlan;
  /** An open store; by default it is opened after the run's checks. */
  readonly host?: RunHost;
  /** A request that the user has already answered, and the interactor with that answer. */
  readonly answered?: { readonly request: OpenRequest; readonly by: Interactor };
}

/** A fault beside the run: of an interactor, a server or the sandbox. */
interface Fault {
  readonly by: string;
  readonly message: string;
  readonly cause?: unknown;
}

/** Executes a run in a session of its own and reports it until it ends or is suspended. */
export async function executeRun(execution: RunExecution, context: CommandContext): Promise<FollowedRun> {
  const { place, plan, host, answered, extraJson } = execution;
  const flags = { ...plan.kept, ...execution.flags };
  const { terminal, env, here } = context;
  const { id = "", why } = plan.model ?? {};
  if (why !== undefined) terminal.err(`sluice: ${visible(`model ${id} (${why})`)}\n`);
  const isInteractive = terminal.interactive && flags.headless !== true;
  const interactors = [...(answered === undefined ? [] : [answered.by])];
  if (isInteractive) interactors.push(await userAt(terminal, answered?.request));
  const asked = answered === undefined ? {} : { asked: await exceptFor(answered.request) };
  const wait = flags.wait ?? plan.wait ?? false;
  const waits = wait !== false && !isInteractive;
  const store = host ?? (await storeOpener(place, flags.adoptStore));
  const onFault = ({ by, message, cause }: Fault): void => {
    const { at } = thrownAt(cause, place.cwd);
    terminal.err(`sluice: ${visible(redactText(`${by}: ${message}${at === undefined ? "" : ` (at ${at})`}`))}\n`);
  };
  const line = (words: readonly string[]): string => commandLine(words, place, here, env);
  const { createCodeBoard, isSameRequest } = waits ? await import("./code-board.ts") : {};
  const codes = createCodeBoard?.(terminal, line);
  const onCode = (request: OpenRequest, code: string): void => {
    if (answered === undefined || isSameRequest?.(request, answered.request) !== true) codes?.show(request, code);
  };
  const sleeps = flags.suspendSleeps === true ? { suspendSleepsOver: 0 } : {};
  const people = { interactors, wait, onFault, ...(waits ? { onCode } : {}), ...sleeps };
  const { session, traffic } = openSession({ plan, place, flags, store, people, ...asked }, context);
  try {
    const chosen = why === undefined ? {} : { model: { id, why } };
    const options = { ...execution, flags, extraJson: { ...chosen, ...extraJson } };
    const followed = await followRun(plan.begin(session), options, {
      terminal,
      waits,
      line,
      workspace: place.cwd,
      clean: secretMask(env).text,
    });
    for (const notice of traffic?.notices() ?? []) terminal.err(`sluice: ${visible(notice)}\n`);
    return followed;
  } finally {
    await session.close();
    codes?.close();
  }
}

/** Keeps interactors from being asked for what is answered. */
async function exceptFor(answered: OpenRequest): Promise<(interactor: Interactor) => Interactor> {
  const { except } = await import("./line-interactor.ts");
  return (interactor) => except(interactor, answered);
}

/** The user at the terminal, who is not asked again for what is answered. Loaded only where one is. */
async function userAt(terminal: Terminal, answered: OpenRequest | undefined): Promise<Interactor> {
  const { except, lineInteractor } = await import("./line-interactor.ts");
  const { linePromptOf } = await import("./line-prompt.ts");
  const user = lineInteractor(linePromptOf(terminal), terminal.prompts, () => terminal.facts().columns);
  return answered === undefined ? user : except(user, answered);
}
