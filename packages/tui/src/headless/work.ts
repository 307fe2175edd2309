import {
  type JsonObject,
  type OpenRequest,
  type RunHost,
  type SecurityMode,
  type SluiceEvent,
  systemClock,
  visible,
} from "@sluice/core";
import { createSession, type RunHandle, type Session, type SessionOptions } from "@sluice/stages";
import type { LoadedConfig } from "../project/load-config.ts";
import type { RunModel } from "../project/model.ts";
import { commandLine, type Place, realPath, storeOpener } from "../project/place.ts";
import { stateFolder } from "../project/trust.ts";
import type { CommandContext } from "./context.ts";
import { type Followed, followRun } from "./follow.ts";
import { lineInteractor } from "./line-interactor.ts";
import { createLinePrompt } from "./line-prompt.ts";
import { rootOf } from "./lookup.ts";
import { createReporter } from "./reporter.ts";
import { trafficOf } from "./traffic.ts";
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
  /** The project's config; what the flags say wins. */
  readonly config?: LoadedConfig | undefined;
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
  { place, flags, model, mode, allow, code = [], host, past, open, beside, begin, config }: Work,
  context: CommandContext,
): Promise<Followed> {
  const { terminal, env, here } = context;
  const { wait } = flags;
  const maxParallel = flags.maxParallel ?? config?.settings.maxParallel;
  const chosen = model?.why === undefined ? {} : { model: { id: model.id, why: model.why } };
  if (model?.why !== undefined) terminal.err(`sluice: ${visible(`model ${model.id} (${model.why})`)}\n`);
  const interactors = isInteractive(flags, context) ? [lineInteractor(promptOf(context), terminal.prompts)] : [];
  const models = trafficOf({ record: flags.record, model, here, resumed: past !== undefined });
  const session = createSession({
    ...(model === undefined ? {} : { model: model.id }),
    ...(models === undefined ? {} : { traffic: models.traffic }),
    mode,
    allow,
    ...sessionOptionsOf(config),
    // Whoever works in a home folder could trust anything by writing.
    protectedPaths: [...code, ...(config?.settings.protectedPaths ?? []), realPath(stateFolder(env))],
    cwd: place.cwd,
    env,
    store: host ?? (await storeOpener(place, { adopt: flags.adoptStore === true })),
    interactors,
    wait: wait ?? false,
    ...(maxParallel === undefined ? {} : { maxParallel }),
    onFault: ({ by, message }) => terminal.err(`sluice: ${visible(`${by}: ${message}`)}\n`),
  });
  try {
    const followed = await followRun(begin(session), {
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
    for (const line of models?.said() ?? []) terminal.err(`sluice: ${visible(line)}\n`);
    return followed;
  } finally {
    await session.close();
  }
}

/** What only the config decides. */
function sessionOptionsOf(config: LoadedConfig | undefined): Partial<SessionOptions> {
  if (config === undefined) return {};
  const { tools, executors, onCall, secrets, passEnv, baseUrls, prices, mcpServers, requestTimeoutMs } =
    config.settings;
  return {
    tools,
    executors,
    secrets,
    passEnv,
    baseUrls,
    ...(mcpServers === undefined ? {} : { mcpServers }),
    ...(prices === undefined ? {} : { prices }),
    ...(onCall === undefined ? {} : { onCall }),
    ...(requestTimeoutMs === undefined ? {} : { requestTimeoutMs }),
  };
}

function isInteractive(flags: WorkFlags, { terminal }: CommandContext): boolean {
  return terminal.interactive && flags.headless !== true;
}

function promptOf({ terminal }: CommandContext): ReturnType<typeof createLinePrompt> {
  return createLinePrompt({ input: terminal.input, output: terminal.prompts, clock: systemClock });
}
