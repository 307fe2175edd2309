import type { JsonObject } from "@sluice/core";
import { redactText } from "@sluice/core/runtime";
import { readSettings, refuseInsideRun } from "@sluice/tui/user";
import type { CommandContext } from "../../command-context.ts";
import { forkText, readForkedPart } from "../../runs/fork-plan.ts";
import { withStore } from "../../runs/lookup.ts";
import { projectsHere } from "../../runs/projects-here.ts";
import { type ResumeFlags, resumeRun } from "../resume/action.ts";

type ForkFlags = ResumeFlags & {
  /** The execution before which the fork begins. */
  readonly from?: string;
};

/** `sluice fork`: continues from an earlier point of a run in a new run. */
export async function fork(context: CommandContext, named: string, flags: ForkFlags): Promise<number> {
  refuseInsideRun(readSettings(context.env), "fork");
  const projects = projectsHere(flags, context);
  const at = await projects.place();
  const request = { runId: named, from: flags.from, naming: "--from" };
  const forked = await withStore(at, (host) => readForkedPart(host, at, request));
  const { runId, snapshot, execution, since } = forked;
  const changed: JsonObject = { files: since.files.map(redactText), unwatched: since.unwatched };
  const extraJson = { forkedFrom: { runId, execution, changedSince: changed } };
  const extras = { notices: forkText(runId, forked), extraJson };
  return await resumeRun({ runId, flags, from: execution, snapshot, at, projects }, context, extras);
}
