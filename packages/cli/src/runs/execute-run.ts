import {
  type Interactor,
  type JsonObject,
  type OpenRequest,
  type RunHost,
  redactText,
  type SluiceEvent,
  systemClock,
  visible,
} from "@sluice/core";
import { answerCommand } from "@sluice/tui/user";
import { rootOf } from "@sluice/view";
import type { CommandContext } from "../command-context.ts";
import { createReporter } from "../output/reporter.ts";
import type { ControllingTerminal, Terminal } from "../output/terminal.ts";
import { commandLine, type ProjectPaths, storeOpener } from "../project/project-paths.ts";
import { type FollowedRun, followRun } from "./follow-run.ts";
import { except, isSameRequest, lineInteractor } from "./line-interactor.ts";
import { createLinePrompt } from "./line-prompt.ts";
import { openSession } from "./open-session.ts";
import type { ExecuteFlags } from "./run-flags.ts";
import type { RunPlan } from "./run-plan.ts";

/** One run to start or take up. */
export interface RunExecution {
  readonly place: ProjectPaths;
  readonly flags: ExecuteFlags;
  readonly plan: RunPlan;
  /** An open store; opened when the run's checks have passed when omitted. */
  readonly host?: RunHost;
  /** What earlier processes wrote. */
  readonly past?: readonly SluiceEvent[];
  /** Requests that are open already. */
  readonly open?: readonly OpenRequest[];
  /** Lines for people, once the run has begun. */
  readonly notices?: readonly string[];
  /** A request that is answered already, and by whom. */
  readonly answered?: { readonly request: OpenRequest; readonly by: Interactor };
  /** What the command says beside the report, in the formats for programs. */
  readonly extraJson?: JsonObject;
}

/** Makes the session, shows the run until it ends here, and lets everything go. */
export async function executeRun(
  { place, flags, plan, host, past, open, notices, answered, extraJson }: RunExecution,
  context: CommandContext,
): Promise<FollowedRun> {
  const { terminal, env, here } = context;
  const { wait } = flags;
  const { model } = plan;
  const chosen = model?.why === undefined ? {} : { model: { id: model.id, why: model.why } };
  if (model?.why !== undefined) terminal.err(`sluice: ${visible(`model ${model.id} (${model.why})`)}\n`);
  const asked = isInteractive(flags, context) ? [lineInteractor(promptOf(context), terminal.prompts)] : [];
  const interactors =
    answered === undefined ? asked : [answered.by, ...asked.map((one) => except(one, answered.request))];
  const waits = wait !== undefined && asked.length === 0;
  const store = host ?? (await storeOpener(place, { adopt: flags.adoptStore === true }));
  const onFault = ({ by, message }: { readonly by: string; readonly message: string }): void =>
    terminal.err(`sluice: ${visible(redactText(`${by}: ${message}`))}\n`);
  const codes = createCodeBoard(terminal, (words) => commandLine(words, place, here, env));
  const onCode = (request: OpenRequest, code: string): void => {
    if (answered === undefined || !isSameRequest(request, answered.request)) codes.show(request, code);
  };
  const people = { interactors, wait: wait ?? false, onFault, ...(waits ? { onCode } : {}) };
  const { session, traffic } = openSession({ plan, place, flags, store, people }, context);
  try {
    const followed = await followRun(plan.begin(session), {
      reporter: createReporter(flags.outputFormat, terminal),
      terminal,
      failOnDenied: flags.failOnDenied === true,
      waits,
      ...(past === undefined ? {} : { past }),
      ...(open === undefined ? {} : { open }),
      ...(notices === undefined ? {} : { notices }),
      extraJson: { ...chosen, ...extraJson },
      resume: (runId) => commandLine(["resume", runId], place, here, env),
      answer: (request) => commandLine(answerCommand(request), place, here, env),
    });
    for (const line of traffic?.said() ?? []) terminal.err(`sluice: ${visible(line)}\n`);
    return followed;
  } finally {
    await session.close();
    codes.close();
  }
}

function isInteractive(flags: ExecuteFlags, { terminal }: CommandContext): boolean {
  return terminal.interactive && flags.headless !== true;
}

function promptOf({ terminal }: CommandContext): ReturnType<typeof createLinePrompt> {
  return createLinePrompt({ input: terminal.input, output: terminal.prompts, clock: systemClock });
}

/** Shows people the codes of requests, on the terminal itself: what is on a stream may be read by what the run started. */
export interface CodeBoard {
  show(request: OpenRequest, code: string): void;
  close(): void;
}

/** Opens the terminal for the first code. Where there is none, it is said once that no answer from elsewhere counts. */
export function createCodeBoard(terminal: Terminal, lineOf: (words: readonly string[]) => string): CodeBoard {
  let shown: { readonly on: ControllingTerminal | undefined } | undefined;
  return {
    show: (request, code) => {
      if (shown === undefined) {
        shown = { on: terminal.controlling() };
        if (shown.on === undefined) terminal.err(`sluice: ${NOWHERE}\n`);
      }
      shown.on?.say(`${visible(codeLine(request, code, lineOf))}\n`);
    },
    close: () => shown?.on?.close(),
  };
}

const NOWHERE =
  "no approval from another process counts in this run by now: it has started processes without a wall, and there is no terminal here to show codes on. Run it in a terminal, where a wall can be built (sluice doctor), or with --answers any";

function codeLine(request: OpenRequest, code: string, lineOf: (words: readonly string[]) => string): string {
  const { runId, requestId, kind } = request;
  const answer = kind === "askUser" || kind === "humanState" ? ["--value", "…"] : ["approve"];
  const line = lineOf([...answerCommand(request), "--code", code, ...answer]);
  return `sluice: run ${rootOf(runId)} waits for an answer to ${requestId}, from another terminal with its code: ${line}`;
}
