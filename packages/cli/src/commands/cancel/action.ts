import { isSluiceError, type RunHost } from "@sluice/core";
import { visible } from "@sluice/core/runtime";
import { readSettings, refuseInsideRun, userName } from "@sluice/tui/user";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { write } from "../../output/output.ts";
import { requireRun, withStore, withWritableStore } from "../../runs/lookup.ts";
import { secretsToward } from "../../runs/open-session.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";

/** How long to wait for a live owner to end the run. */
const OWNER_TIMEOUT_MS = 5_000;

type CancelFlags = CommonFlags & { readonly reason?: string; readonly adoptStore?: boolean };

/** `sluice cancel`: ends a run as cancelled, through its owner if it has one. */
export async function cancel(context: CommandContext, named: string, flags: CancelFlags): Promise<number> {
  const { terminal, env } = context;
  refuseInsideRun(readSettings(env), "cancel");
  const place = await projectsHere(flags, context).place();
  const known = await withStore(place, (host) => requireRun(host, place, named));
  const { runId } = known;
  return await withWritableStore(place, flags.adoptStore, async (host) => {
    const by = userName();
    const secrets = await secretsToward(host, runId, env);
    const reason = secrets.text(flags.reason ?? `cancelled by ${by}`);
    const outcome = await host.cancel(runId, reason, secrets.text(by));
    // The processes of a killed owner may still be running.
    if (outcome === "cancelled") {
      const { endProcessesOf } = await import("@sluice/stages/tools");
      await endProcessesOf(runId);
    }
    const wasFinished = outcome === "finished";
    const ended = wasFinished ? (known.end?.status ?? outcome) : outcome;
    const status = ended === "requested" ? await endWithin(host, runId) : ended;
    const done = !wasFinished && (status === "cancelled" || status === "requested");
    let message = `run ${runId} is ${status}`;
    if (wasFinished) message = `run ${runId} is already ${status}; there is nothing to cancel`;
    if (status === "requested")
      message = `asked ${known.owner ?? "its owner"} to cancel run ${runId}, which has not ended yet`;
    const json = { runId, status, cancelled: status === "cancelled" && done };
    if (done || flags.outputFormat !== "text")
      write(flags.outputFormat, terminal, { json, text: () => [visible(message)] });
    if (!done) terminal.err(`sluice: ${visible(message)}\n`);
    return done ? EXIT.completed : EXIT.failed;
  });
}

async function endWithin(host: RunHost, runId: string): Promise<string> {
  try {
    const { status } = await host.result(runId, { signal: AbortSignal.timeout(OWNER_TIMEOUT_MS) });
    return status;
  } catch (thrown) {
    if (isSluiceError(thrown, "wait_cancelled")) return "requested";
    throw thrown;
  }
}
