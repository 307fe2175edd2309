import { resolve } from "node:path";
import { ReadableStream } from "node:stream/web";
import { type Interactor, isSluiceError, type JsonObject, SluiceError, systemClock } from "@sluice/core";
import { redactText, visible } from "@sluice/core/runtime";
import { type AcpRun, type AcpWorkspace, serveAcp } from "@sluice/gateway";
import { sendMessage } from "@sluice/stages";
import type { KnownRun } from "@sluice/tui";
import { readSettings, refuseInsideRun, userName } from "@sluice/tui/user";
import type { CommandContext } from "../../command-context.ts";
import { ownVersion } from "../../options.ts";
import { EXIT, STOPPED, type StopSignal } from "../../output/exit-codes.ts";
import { reserveOutput } from "../../output/protocol-output.ts";
import { bundled } from "../../project/bundled.ts";
import { commandLine, projectPathsOf, shellWord, workspaceOf } from "../../project/project-paths.ts";
import { onStopSignal } from "../../runs/follow-run.ts";
import type { RunFlags } from "../../runs/run-flags.ts";
import { createEngine } from "../app/engine.ts";
import { sessionFiles } from "./sessions.ts";

/** `sluice acp`: serves one client on stdin and stdout. */
export async function acp(context: CommandContext, pipeline: string | undefined, flags: RunFlags): Promise<number> {
  const { env, here, terminal } = context;
  // It answers requests, which no run may do.
  refuseInsideRun(readSettings(env), "acp");
  const say = (text: string): void => terminal.err(`sluice: ${visible(redactText(text))}\n`);
  const named = pipeline === undefined || !isPath(pipeline) ? pipeline : resolve(here, pipeline);
  const output = reserveOutput(process.stdout, say);
  const stop = new AbortController();
  let stoppedBy: StopSignal | undefined;
  const ignoreSignals = onStopSignal((signal) => {
    stoppedBy = signal;
    stop.abort();
  });
  try {
    await serveAcp({
      input: ReadableStream.from(bytesOf(terminal.input)),
      output: output.stream,
      version: ownVersion(),
      open: async (cwd, interactor) => openWorkspace({ cwd, interactor, named, flags, say }, context),
      sessions: sessionFiles(env, say),
      clock: systemClock,
      onFault: say,
      signal: stop.signal,
    });
  } finally {
    output.release();
    ignoreSignals();
  }
  return stoppedBy === undefined ? EXIT.completed : STOPPED[stoppedBy];
}

function isPath(pipeline: string): boolean {
  return pipeline.includes("/") || pipeline.includes(".");
}

async function* bytesOf(input: NodeJS.ReadableStream): AsyncGenerator<Uint8Array> {
  for await (const chunk of input) yield typeof chunk === "string" ? Buffer.from(chunk) : chunk;
}

interface WorkspaceRequest {
  /** Absolute. */
  readonly cwd: string;
  readonly interactor: Interactor;
  /** The pipeline on the command line. */
  readonly named: string | undefined;
  readonly flags: RunFlags;
  readonly say: (text: string) => void;
}

/** Executes runs in the folder of a session as the app does. No one is asked for trust: a client is not a terminal. */
function openWorkspace(
  { cwd, interactor, named, flags, say }: WorkspaceRequest,
  context: CommandContext,
): AcpWorkspace {
  workspaceOf({ cwd }, cwd);
  const { env } = context;
  const store = flags.store === undefined ? {} : { store: resolve(context.here, flags.store) };
  const engine = createEngine({
    flags: { ...flags, ...store, cwd },
    context: { ...context, here: cwd },
    interactors: [interactor],
    askTrust: async () => false,
    say,
  });
  const runOf = async (run: KnownRun): Promise<AcpRun> => {
    const place = projectPathsOf({ cwd, store: (await engine.store())?.folder }, cwd);
    return {
      runId: run.runId,
      host: run.host,
      ...(run.handle === undefined ? {} : { handle: run.handle }),
      showCommand: () => commandLine(["show", run.runId], place, context.here, env),
      resumeCommand: () => commandLine(["resume", run.runId], place, context.here, env),
    };
  };
  const begun = async (begin: () => Promise<KnownRun>): Promise<AcpRun> => {
    // A changed config or pipeline counts from the next prompt on.
    engine.reload();
    try {
      return await runOf(await begin());
    } catch (thrown) {
      throw withTrustHint(thrown, cwd);
    }
  };
  return {
    pipelines: async () => {
      const { pipelines, defaultPipeline } = await engine.project();
      return { names: [...new Set([...pipelines, ...bundled().keys()])], fallback: named ?? defaultPipeline };
    },
    start: (pipeline, task) => begun(() => engine.start(pipeline, task)),
    resume: (runId) => begun(() => engine.resume(runId)),
    find: async (runId) => await runOf(await engine.find(runId)),
    message: async ({ runId, host }, text) => {
      const secrets = await engine.secretsToward(runId, host);
      await sendMessage(host, runId, secrets.text(text), userName());
    },
    close: () => engine.close(),
  };
}

/** How the user trusts a folder whose code was refused. */
function withTrustHint(thrown: unknown, cwd: string): unknown {
  if (!isSluiceError(thrown, "folder_untrusted") && !isSluiceError(thrown, "pipeline_untrusted")) return thrown;
  const hint = `To trust it, run in a terminal: sluice check --trust --cwd ${shellWord(cwd)}`;
  const detail: { readonly detail?: JsonObject } = thrown.detail === undefined ? {} : { detail: thrown.detail };
  return new SluiceError(thrown.class, thrown.code, `${thrown.message}\n${hint}`, detail);
}
