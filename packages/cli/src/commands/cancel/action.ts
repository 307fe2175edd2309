import { isSluiceError, type RunHost } from "@sluice/core";
import { visible } from "@sluice/core/runtime";
import { readSettings, refuseInsideRun, userName } from "@sluice/tui/user";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { write } from "../../output/output.ts";
import { storeOpener } from "../../project/project-paths.ts";
import { requireRun, withStore } from "../../runs/lookup.ts";
import { secretsToward } from "../../runs/open-session.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";

/** How long to wait for a live owner to end the run. */
const OWNER_TIMEOUT_MS = 5_000;

type CancelFlags = CommonFlags & { readonly reason?: string; readonly adoptStore?: boolean };

/** `sluice cancel`: ends a run as cancelled, through its owner if it has one. */
export async function cancel(context: CommandContext, runId: string, flags: CancelFlags): Promise<number> {
  const { terminal, env } = context;
  refuseInsideRun(readSettings(env), "cancel");
  const place = await projectsHere(flags, context).place();
  const known = await withStore(place, (host) => requireRun(host, place, runId));
  const host = (await storeOpener(place, { adopt: flags.adoptStore === true }))();
  try {
    const by = userName();
    const secrets = await secretsToward(host, runId, env);
    const reason = secrets.text(flags.reason ?? `cancelled by ${by}`);
    const outcome = await host.cancel(runId, reason, secrets.text(by));
    // The processes of a killed owner may still be running.
    if (outcome === "cancelled") {
      const { endProcessesOf } = await import("@sluice/stages");
      await endProcessesOf(runId);
    }
    const status =
      outcome === "requested"
        ? await endWithin(host, runId)
        : outcome === "finished"
          ? (known.end?.status ?? "finished")
          : outcome;
    const done = outcome !== "finished" && (status === "cancelled" || status === "requested");
    const message =
      status === "requested"
        ? `asked ${known.owner ?? "its owner"} to cancel run ${runId}, which has not ended yet`
        : outcome === "finished"
          ? `run ${runId} is already ${status}; there is nothing to cancel`
          : `run ${runId} is ${status}`;
    if (done || flags.outputFormat !== "text") {
      write(flags.outputFormat, terminal, {
        json: { runId, status, cancelled: status === "cancelled" && done },
        text: () => [visible(message)],
      });
    }
    if (!done) terminal.err(`sluice: ${visible(message)}\n`);
    return done ? EXIT.completed : EXIT.failed;
  } finally {
    await host.close();
  }
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
