import { type JsonObject, redactText } from "@sluice/core";
import { readSettings, refuseInsideRun } from "@sluice/tui/user";
import type { CommandContext } from "../../command-context.ts";
import { forkText, readForkPast } from "../../runs/fork-plan.ts";
import { withStore } from "../../runs/lookup.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import type { ExecuteFlags } from "../../runs/run-flags.ts";
import { resumeRun } from "../resume/action.ts";

export interface ForkCommand {
  readonly runId: string;
  readonly flags: ExecuteFlags & {
    /** The execution before which the new run leaves the old one. */
    readonly from?: string;
    readonly allowChanged?: boolean;
  };
}

/** `sluice fork`: a new run with the past of another, which goes on from there with models and tools. */
export async function fork({ runId, flags }: ForkCommand, context: CommandContext): Promise<number> {
  refuseInsideRun(readSettings(context.env), "fork");
  const projects = projectsHere(flags, context);
  const at = await projects.place();
  const wish = { runId, from: flags.from, naming: "--from" };
  const past = await withStore(at, (host) => readForkPast(host, at, wish));
  const { soFar, execution, since } = past;
  const changed: JsonObject = { files: since.files.map(redactText), unwatched: since.unwatched };
  const extraJson = { forkedFrom: { runId, execution, changedSince: changed } };
  const said = { notices: forkText(runId, past), extraJson };
  return await resumeRun({ runId, flags, from: execution }, soFar, { at, projects }, context, said);
}
