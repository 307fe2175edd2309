import {
  type Interactor,
  type JsonObject,
  type OpenRequest,
  type RunHost,
  type SluiceEvent,
  systemClock,
} from "@sluice/core";
import { redactText, visible } from "@sluice/core/runtime";
import { answerCommand } from "@sluice/tui/user";
import { rootOf } from "@sluice/view/words";
import type { CommandContext } from "../command-context.ts";
import { createReporter } from "../output/reporter.ts";
import type { ControllingTerminal, Terminal } from "../output/terminal.ts";
import { commandLine, type ProjectPaths, storeOpener } from "../project/project-paths.ts";
import { type FollowedRun, followRun } from "./follow-run.ts";
import { except, isSameRequest, lineInteractor } from "./line-interactor.ts";
import { createLinePrompt, type LinePrompt } from "./line-prompt.ts";
import { openSession } from "./open-session.ts";
import type { ExecuteFlags } from "./run-flags.ts";
import type { RunPlan } from "./run-plan.ts";

/** A run to start or resume. */
export interface RunExecution {
  readonly place: ProjectPaths;
  readonly flags: ExecuteFlags;
  readonly plan: RunPlan;
  /** An open store; by default it is opened after the run's checks. */
  readonly host?: RunHost;
  /** Events of earlier processes. */
  readonly past?: readonly SluiceEvent[];
  /** Requests that are already open. */
  readonly open?: readonly OpenRequest[];
  /** Lines for stderr once the run has started. */
  readonly notices?: readonly string[];
  /** A request that the user has already answered, and the interactor with that answer. */
  readonly answered?: { readonly request: OpenRequest; readonly by: Interactor };
  /** Fields to add to the report, in the formats for programs. */
  readonly extraJson?: JsonObject;
}

/** Executes a run in a session of its own and reports it until it ends or is suspended. */
export async function executeRun(
  { place, flags, plan, host, past, open, notices, answered, extraJson }: RunExecution,
  context: CommandContext,
): Promise<FollowedRun> {
  const { terminal, env, here } = context;
  const { wait } = flags;
  const { model } = plan;
  const chosen = model?.why === undefined ? {} : { model: { id: model.id, why: model.why } };
  if (model?.why !== undefined) terminal.err(`sluice: ${visible(`model ${model.id} (${model.why})`)}\n`);
  const prompt = (): LinePrompt =>
    createLinePrompt({ input: terminal.input, output: terminal.prompts, clock: systemClock });
  const isInteractive = terminal.interactive && flags.headless !== true;
  const user = isInteractive ? [lineInteractor(prompt(), terminal.prompts)] : [];
  const interactors =
    answered === undefined ? user : [answered.by, ...user.map((one) => except(one, answered.request))];
  const waits = wait !== undefined && !isInteractive;
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
    for (const line of traffic?.notices() ?? []) terminal.err(`sluice: ${visible(line)}\n`);
    return followed;
  } finally {
    await session.close();
    codes.close();
  }
}

/**
 * Shows the codes of requests on the controlling terminal, which is opened for the first code: processes that the run started
 * could read a stream. Without a terminal, it warns once that approvals from other processes do not count.
 */
function createCodeBoard(terminal: Terminal, lineOf: (words: readonly string[]) => string) {
  let opened: { readonly screen: ControllingTerminal | undefined } | undefined;
  return {
    show: (request: OpenRequest, code: string): void => {
      if (opened === undefined) {
        opened = { screen: terminal.controlling() };
        if (opened.screen === undefined) terminal.err(`sluice: ${NO_TERMINAL}\n`);
      }
      opened.screen?.say(`${visible(codeLine(request, code, lineOf))}\n`);
    },
    close: (): void => opened?.screen?.close(),
  };
}

const NO_TERMINAL =
  "this run accepts no more approvals from other processes: it has started processes without a sandbox, and there is no terminal here to show codes on. Run it in a terminal, where a sandbox can be built (sluice doctor), or with --answers any";

function codeLine(request: OpenRequest, code: string, lineOf: (words: readonly string[]) => string): string {
  const { runId, requestId, kind } = request;
  const answer = kind === "askUser" || kind === "humanState" ? ["--value", "…"] : ["approve"];
  const line = lineOf([...answerCommand(request), "--code", code, ...answer]);
  return `sluice: run ${rootOf(runId)} waits for an answer to ${requestId}. Answer from another terminal with its code: ${line}`;
}
