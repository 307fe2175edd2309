import { sendMessage } from "@sluice/stages";
import { readSettings, refuseInsideRun, userName } from "@sluice/tui/user";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../output/exit-codes.ts";
import { write } from "../../output/output.ts";
import { requireRun, withStore, withWritableStore } from "../../runs/lookup.ts";
import { secretsToward } from "../../runs/open-session.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { CommonFlags } from "../../runs/run-flags.ts";

type MessageFlags = CommonFlags & { readonly followUp?: boolean; readonly adoptStore?: boolean };

/** `sluice message`: sends a message to a run that any process may own. */
export async function message(
  context: CommandContext,
  named: string,
  words: readonly string[],
  flags: MessageFlags,
): Promise<number> {
  const { terminal, env } = context;
  refuseInsideRun(readSettings(env), "message");
  const place = await projectsHere(flags, context).place();
  // A child has an id of its own.
  const runId = named.includes("/") ? named : (await withStore(place, (host) => requireRun(host, place, named))).runId;
  const kind = flags.followUp === true ? "followUp" : "steer";
  return await withWritableStore(place, flags.adoptStore, async (host) => {
    const secrets = await secretsToward(host, runId, env);
    await sendMessage(host, runId, secrets.text(words.join(" ")), secrets.text(userName()), kind);
    const status = (await host.get(runId))?.status ?? "running";
    const reads =
      kind === "steer" ? "an agent reads it before its next turn" : "the next state that an agent runs reads it";
    const when = status === "running" ? reads : `${reads}, once the run continues`;
    write(flags.outputFormat, terminal, { json: { runId, kind, status }, text: () => [`sent; ${when}`] });
    return EXIT.completed;
  });
}
