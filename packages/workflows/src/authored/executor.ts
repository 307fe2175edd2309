// Runs states in which a model writes a pipeline. Each part is recorded, so that a resumed state repeats none of them.

import {
  type ActOutcome,
  type ActScope,
  isSluiceError,
  type PipelineSpec,
  SluiceError,
  type StateExecutor,
} from "@sluice/core";
import { isObject } from "@sluice/core/runtime";
import { cancelled, completed, failed } from "@sluice/stages/runtime";
import { AUTHORED, type AuthoredOutput, type AuthoredSpec } from "./authored.ts";
import { checkDocument } from "./check-document.ts";
import { pipelineWords } from "./describe.ts";

const RUN = "run";
const REJECT = "reject";

/** The executor of states that authored() makes; list it in a session's `executors`. */
export const authoredExecutor: StateExecutor = {
  kind: AUTHORED,
  act: async (_init, scope) => {
    const brief = await briefOf(scope);
    if (typeof brief !== "string") return brief;
    const written = await write(scope, brief);
    if ("outcome" in written) return written.outcome;
    const { spec } = written;
    const refused = await refusal(scope, spec);
    if (refused !== undefined) return refused;
    return await run(scope, spec, brief);
  },
};

/** What the pipeline is for. Without an init, so that the executor can be loaded when it is needed. */
async function briefOf({ steps, ctx, state }: ActScope): Promise<string | ActOutcome> {
  try {
    const { brief } = authoredOf(state.options);
    return await steps.run("brief", () => brief(ctx));
  } catch (thrown) {
    if (!isSluiceError(thrown, "prompt_unresolved")) throw thrown;
    return failed("hook", thrown.message, null);
  }
}

/** Lets a model write the pipeline, and compiles what is recorded. A resumed state never asks for another one. */
async function write(
  scope: ActScope,
  brief: string,
): Promise<{ readonly spec: PipelineSpec } | { readonly outcome: ActOutcome }> {
  const { rules } = authoredOf(scope.state.options);
  const [design] = scope.state.owns ?? [];
  if (design === undefined) throw new SluiceError("Validation", "state_invalid", NOT_MADE);
  const tools = scope.offer.tools.map(({ name }) => name);
  const now = await scope.steps.now("started");
  const input = { task: scope.ctx.task, brief, now, tools };
  const [end] = await scope.runChildren("design", [{ key: "design", pipeline: design, input }]);
  if (end === undefined || scope.signal.aborted) return { outcome: cancelled(scope) };
  if (end.status !== "completed") {
    const { code, message, runId } = end;
    return { outcome: failed("authored", `no pipeline was written: ${message}`, { cause: "design", code, runId }) };
  }
  const checked = checkDocument(end.output, { rules, tools, now });
  const fingerprint = checked.spec?.fingerprint ?? "";
  const recorded = await scope.steps.run("document", () => ({ document: end.output, fingerprint }));
  if (checked.spec !== undefined && recorded.fingerprint === fingerprint) return { spec: checked.spec };
  const message = "the pipeline that was written is no longer the one that the record describes";
  return {
    outcome: failed("authored", message, { cause: "changed", recorded: recorded.fingerprint, now: fingerprint }),
  };
}

/** Asks a person whether the pipeline runs. Undefined if it does. */
async function refusal(scope: ActScope, spec: PipelineSpec): Promise<ActOutcome | undefined> {
  const { approval } = authoredOf(scope.state.options);
  if (approval === "never" || (approval === "mode" && scope.mode === "yolo")) return undefined;
  const question = `${pipelineWords(spec)}\n\nRun it?`;
  const answer = { type: "string", enum: [RUN, REJECT] };
  const asked = await scope.ask({ name: "approval", question: { question, answer } });
  if (asked.answered) {
    if (asked.value === RUN) return undefined;
    return failed("authored", "the pipeline was rejected", { cause: "rejected", by: asked.by });
  }
  const { cause, reason } = asked;
  if (cause === "cancelled") return cancelled(scope);
  const why = reason === undefined ? "" : `: ${reason}`;
  if (cause === "denied") return failed("authored", `the pipeline was rejected${why}`, { cause: "rejected" });
  return failed("unanswered", `no one decided whether the pipeline runs (${cause}${why})`, { cause });
}

async function run(scope: ActScope, spec: PipelineSpec, task: string): Promise<ActOutcome> {
  let ends: Awaited<ReturnType<ActScope["runChildren"]>>;
  try {
    ends = await scope.runChildren("run", [{ key: "run", pipeline: spec, input: { task } }]);
  } catch (thrown) {
    if (!isSluiceError(thrown) || (thrown.class !== "Validation" && thrown.class !== "Session")) throw thrown;
    return failed("authored", thrown.message, { cause: "session", code: thrown.code });
  }
  const [end] = ends;
  if (end === undefined || scope.signal.aborted) return cancelled(scope);
  const { id, fingerprint } = spec;
  if (end.status === "completed") {
    const output: AuthoredOutput = { pipeline: id, fingerprint, output: end.output };
    return completed(output);
  }
  const { code, message, runId, status } = end;
  return failed("pipeline", `the pipeline ${id} ${status}: ${message}`, { code, message, runId });
}

const NOT_MADE = "create a state of kind authored with authored()";

function authoredOf(options: unknown): AuthoredSpec {
  if (isAuthoredSpec(options)) return options;
  throw new SluiceError("Validation", "state_invalid", NOT_MADE);
}

function isAuthoredSpec(options: unknown): options is AuthoredSpec {
  return isObject(options) && isObject(options.rules) && typeof options.brief === "function";
}
