import { SluiceError, systemClock, visible } from "@sluice/core";
import type { RunHandle, Session } from "@sluice/stages";
import { readSettings, refuseInsideRun } from "../project/environment.ts";
import { readInput, requireTask } from "../project/input.ts";
import { modelFor } from "../project/model.ts";
import { findPipeline } from "../project/pipelines.ts";
import { placeOf } from "../project/place.ts";
import type { CommandContext } from "./context.ts";
import { findingOf, work } from "./work.ts";
import type { WorkFlags } from "./work-flags.ts";

export interface RunRequest {
  readonly pipeline: string;
  readonly task: readonly string[];
  readonly flags: WorkFlags & { readonly input?: readonly string[] };
}

/** `sluice run`: everything that can be wrong is found out before the store is made. */
export async function run({ pipeline: name, task, flags }: RunRequest, context: CommandContext): Promise<number> {
  const { terminal, env, here } = context;
  const settings = readSettings(env);
  if (flags.trust === true) refuseInsideRun(settings, "run --trust");
  if (flags.adoptStore === true) refuseInsideRun(settings, "run --adopt-store");
  const place = placeOf(flags, here);
  const { pipeline, source, code, note } = await findPipeline(name, findingOf(place, flags, context));
  if (note !== undefined) terminal.err(`sluice: ${visible(note)}\n`);
  const input = await readInput(task, flags.input ?? [], terminal.input);
  requireTask(name, pipeline.spec, input);
  const model = await modelFor(pipeline.spec, { named: flags.model, env, here, clock: systemClock });
  const { mode = "ask", allow = [] } = flags;
  if (allow.length > 0 && mode !== "allowlist")
    throw new SluiceError("Validation", "usage", "--allow goes with --mode allowlist");
  const begin = (session: Session): RunHandle<unknown> => session.start(pipeline, input, { source });
  const { exitCode } = await work({ place, flags, model, mode, allow, code, begin }, context);
  return exitCode;
}
