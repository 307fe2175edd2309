import {
  type JsonObject,
  type OpenRequest,
  type RunHost,
  type SecurityMode,
  SluiceError,
  type SluiceEvent,
  systemClock,
  visible,
} from "@sluice/core";
import { createSession, type RunHandle, type Session } from "@sluice/stages";
import { readSettings } from "../project/environment.ts";
import type { RunModel } from "../project/model.ts";
import type { Finding } from "../project/pipelines.ts";
import { commandLine, type Place, storeOpener } from "../project/place.ts";
import { createTrust } from "../project/trust.ts";
import type { CommandContext } from "./context.ts";
import { type Followed, followRun } from "./follow.ts";
import { lineInteractor } from "./line-interactor.ts";
import { createLinePrompt } from "./line-prompt.ts";
import { rootOf } from "./lookup.ts";
import { createReporter } from "./reporter.ts";
import type { WorkFlags } from "./work-flags.ts";

/** One run to start or take up. */
export interface Work {
  readonly place: Place;
  readonly flags: WorkFlags;
  readonly model: RunModel | undefined;
  readonly mode: SecurityMode;
  readonly allow: readonly string[];
  /** The pipeline's own code, which the run may not write. */
  readonly code?: readonly string[];
  /** An open store; opened when the run's checks have passed when omitted. */
  readonly host?: RunHost;
  /** What earlier processes wrote. */
  readonly past?: readonly SluiceEvent[];
  /** Requests that are open already. */
  readonly open?: readonly OpenRequest[];
  /** What the command says beside the report, in the formats for programs. */
  readonly beside?: JsonObject;
  readonly begin: (session: Session) => RunHandle<unknown>;
}

/** Makes the session, shows the run until it ends here, and lets everything go. */
export async function work(
  { place, flags, model, mode, allow, code = [], host, past, open, beside, begin }: Work,
  context: CommandContext,
): Promise<Followed> {
  const { terminal, env, here } = context;
  const { wait } = flags;
  const chosen = model?.why === undefined ? {} : { model: { id: model.id, why: model.why } };
  if (model?.why !== undefined) terminal.err(`sluice: ${visible(`model ${model.id} (${model.why})`)}\n`);
  const interactors = isInteractive(flags, context) ? [lineInteractor(promptOf(context), terminal.prompts)] : [];
  const session = createSession({
    ...(model === undefined ? {} : { model: model.id }),
    mode,
    allow,
    protectedPaths: code,
    cwd: place.cwd,
    env,
    store: host ?? (await storeOpener(place, { adopt: flags.adoptStore === true })),
    interactors,
    wait: wait ?? false,
    ...(flags.maxParallel === undefined ? {} : { maxParallel: flags.maxParallel }),
    onFault: ({ by, message }) => terminal.err(`sluice: ${visible(`${by}: ${message}`)}\n`),
  });
  try {
    return await followRun(begin(session), {
      reporter: createReporter(flags.outputFormat, terminal),
      terminal,
      failOnDenied: flags.failOnDenied === true,
      waits: wait !== undefined && interactors.length === 0,
      ...(past === undefined ? {} : { past }),
      ...(open === undefined ? {} : { open }),
      beside: { ...chosen, ...beside },
      resume: (runId) => commandLine(["resume", runId], place, here, env),
      answer: ({ runId, requestId }) => commandLine(["answer", rootOf(runId), requestId], place, here, env),
    });
  } finally {
    await session.close();
  }
}

/** How pipelines are found here; a folder nobody trusted yet is asked about once, where somebody can answer. */
export function findingOf(
  place: Place,
  flags: WorkFlags,
  context: CommandContext,
): Finding & { readonly trusted: boolean } {
  const { terminal, env, here } = context;
  const trust = createTrust(env);
  return {
    cwd: place.cwd,
    here,
    trusted: flags.trust === true,
    requireTrust: async (folder) => {
      if (trust.holds(folder)) return;
      if (flags.trust !== true && !(await isTrustedNow(folder, flags, context))) throw untrusted(folder);
      const fault = trust.grant(folder);
      if (fault !== undefined) terminal.err(`sluice: ${visible(fault)}\n`);
    },
  };
}

async function isTrustedNow(folder: string, flags: WorkFlags, context: CommandContext): Promise<boolean> {
  // A terminal of its own does not make a run's tool call a person.
  if (!isInteractive(flags, context) || readSettings(context.env).insideRun !== undefined) return false;
  const question = `The pipelines in ${folder} are code that runs with your rights. Type yes to trust them as they are now: `;
  return (await promptOf(context).ask(visible(question)))?.trim() === "yes";
}

function untrusted(folder: string): SluiceError {
  return new SluiceError(
    "Validation",
    "folder_untrusted",
    `the pipelines in ${folder} are code, and nobody trusted them as they are now; look at them, then say --trust (it is remembered until one of them changes)`,
  );
}

function isInteractive(flags: WorkFlags, { terminal }: CommandContext): boolean {
  return terminal.interactive && flags.headless !== true;
}

function promptOf({ terminal }: CommandContext): ReturnType<typeof createLinePrompt> {
  return createLinePrompt({ input: terminal.input, output: terminal.prompts, clock: systemClock });
}
