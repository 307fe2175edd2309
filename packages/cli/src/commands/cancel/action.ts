import { isSluiceError, type RunHost, visible } from "@sluice/core";
import { readSettings, refuseInsideRun, userName } from "@sluice/tui/user";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { write } from "../../output/output.ts";
import { storeOpener } from "../../project/project-paths.ts";
import { requireRun, withStore } from "../../runs/lookup.ts";
import { secretsToward } from "../../runs/open-session.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";

/** How long a live owner is given to end the run before only the request is reported. */
const PATIENCE_MS = 5_000;

export interface CancelRequest {
  readonly runId: string;
  readonly flags: CommonFlags & { readonly reason?: string; readonly adoptStore?: boolean };
}

/** `sluice cancel`: ends a run as cancelled, by asking its owner or in its place. */
export async function cancel({ runId, flags }: CancelRequest, context: CommandContext): Promise<number> {
  const { terminal, env } = context;
  refuseInsideRun(readSettings(env), "cancel");
  const place = await projectsHere(flags, context).place();
  const known = await withStore(place, (host) => requireRun(host, place, runId));
  const host = (await storeOpener(place, { adopt: flags.adoptStore === true }))();
  try {
    const by = userName();
    const secrets = await secretsToward(host, runId, env);
    const reason = secrets.text(flags.reason ?? `cancelled by ${by}`);
    const asked = await host.cancel(runId, reason, secrets.text(by));
    // A live owner ends its own; what a killed one left at work nobody else would end.
    if (asked === "cancelled") {
      const { endProcessesOf } = await import("@sluice/stages");
      await endProcessesOf(runId);
    }
    const status =
      asked === "requested"
        ? await endWithin(host, runId)
        : asked === "finished"
          ? (known.end?.status ?? "finished")
          : asked;
    const done = asked !== "finished" && (status === "cancelled" || status === "requested");
    const said =
      status === "requested"
        ? `asked ${known.owner ?? "its owner"} to cancel run ${runId}; it has not ended yet`
        : asked === "finished"
          ? `run ${runId} is ${status} already; there is nothing to cancel`
          : `run ${runId} is ${status}`;
    if (done || flags.outputFormat !== "text") {
      write(flags.outputFormat, terminal, {
        json: { runId, status, cancelled: status === "cancelled" && done },
        text: () => [visible(said)],
      });
    }
    if (!done) terminal.err(`sluice: ${visible(said)}\n`);
    return done ? EXIT.completed : EXIT.failed;
  } finally {
    await host.close();
  }
}

async function endWithin(host: RunHost, runId: string): Promise<string> {
  try {
    const { status } = await host.result(runId, { signal: AbortSignal.timeout(PATIENCE_MS) });
    return status;
  } catch (thrown) {
    if (isSluiceError(thrown, "wait_cancelled")) return "requested";
    throw thrown;
  }
}
