// Runs the steps of a state in order. Each is recorded where it runs, so that a resumed state repeats none of them.

import {
  type ActOutcome,
  type ActScope,
  field,
  isJsonObject,
  type Json,
  type JsonObject,
  SluiceError,
  type StageContext,
  type StateExecutor,
} from "@sluice/core";
import { type CompiledTemplate, isObject } from "@sluice/core/runtime";
import { completed, failed, NO_TURNS } from "./kind-common.ts";
import { type CompiledStep, type SavedOutput, STEPS, stepsOf } from "./steps-state.ts";

/** The executor of states that run steps. */
export const stepsExecutor: StateExecutor = {
  kind: STEPS,
  act: async (_init, scope) => {
    const steps = stepsOf(scope.state.options)?.steps ?? [];
    let progress = resumed(scope) ?? started(scope.ctx);
    for (const step of steps) {
      if (Object.hasOwn(progress.outputs, step.name)) continue;
      const ended = step.kind === "ask" ? await ask(scope, step, progress) : await run(scope, step, progress);
      if ("outcome" in ended) return ended.outcome;
      progress = ended.progress;
      if (step.kind === "ask" && scope.pauses) return paused(scope, progress);
    }
    const { previous, outputs, changes } = progress;
    return {
      ...completed(steps.length === 0 ? null : previous),
      adds: { upstream: outputs, ...(Object.keys(changes).length === 0 ? {} : { context: changes }) },
    };
  },
};

/** What the steps so far have left for those that follow. JSON, because a pause carries it to the next visit. */
type Progress = {
  /** By step. */
  readonly outputs: JsonObject;
  /** Of the step before, at first of the state before. */
  readonly previous: Json;
  /** The last answer of a person. */
  readonly answer?: Json;
  /** What is merged into the context once the state has completed. */
  readonly changes: JsonObject;
};
type StepEnd = { readonly progress: Progress } | { readonly outcome: ActOutcome };

function started({ input }: StageContext): Progress {
  const given = isObject(input) ? input : {};
  const { previous_step: previous, answer } = given;
  return {
    outputs: {},
    previous: asJson(previous),
    changes: {},
    ...(answer === undefined ? {} : { answer: asJson(answer) }),
  };
}

function asJson(value: unknown): Json {
  return isJsonValue(value) ? value : null;
}

function isJsonValue(value: unknown): value is Json {
  return value !== undefined && typeof value !== "function" && typeof value !== "symbol" && typeof value !== "bigint";
}

/** The field of the input in which a paused state finds its progress when it is visited again. */
const RESUME = "resume";

/** The progress of the visit that paused. Any other input may be written by a model or a person. */
function resumed({ ctx, afterPause }: ActScope): Progress | undefined {
  if (!afterPause || !isObject(ctx.input)) return undefined;
  const resume = asJson(ctx.input[RESUME]);
  const outputs = field(resume, "outputs");
  const changes = field(resume, "changes");
  if (!isJsonObject(outputs) || !isJsonObject(changes)) return undefined;
  const answer = asJson(ctx.input.answer);
  return { outputs, changes, previous: field(resume, "previous") ?? null, answer };
}

function paused({ stateId }: ActScope, { outputs, previous, changes, answer = null }: Progress): ActOutcome {
  // The state is for people who read the record.
  const resume = { state: stateId, outputs, previous, changes };
  return { ...NO_TURNS, status: "paused", request: { answer, [RESUME]: resume } };
}

async function ask(
  scope: ActScope,
  step: Extract<CompiledStep, { readonly kind: "ask" }>,
  progress: Progress,
): Promise<StepEnd> {
  const text = rendered(step.name, step.message, scope.ctx, progress);
  if (typeof text !== "string") return text;
  const context = merged(scope.ctx.context, progress.changes);
  const answered = await scope.ask({
    name: step.name,
    question: { question: text, ...(step.answer === undefined ? {} : { answer: step.answer }) },
  });
  if (answered.answered) {
    const { value } = answered;
    return { progress: { ...after(step, value, context, progress), answer: value } };
  }
  const { cause, reason } = answered;
  if (cause === "cancelled") return { outcome: { ...NO_TURNS, status: "cancelled", reason: reason ?? cause } };
  const message = `${step.name}: no one answered the question (${cause}${reason === undefined ? "" : `: ${reason}`})`;
  return { outcome: failed("unanswered", message, { step: step.name, cause }) };
}

/** A text with its templates replaced. One that leads nowhere fails the state. */
function rendered(
  name: string,
  template: CompiledTemplate,
  ctx: StageContext,
  progress: Progress,
): string | { readonly outcome: ActOutcome } {
  const context = merged(ctx.context, progress.changes);
  try {
    return template.render({ ...ctx, context, run: { input: inputOf(ctx, progress, ctx.upstream) } });
  } catch (thrown) {
    if (!(thrown instanceof SluiceError) || thrown.code !== "prompt_unresolved") throw thrown;
    const message = `${name}: ${thrown.message}`;
    return { outcome: failed("hook", message, { step: name }) };
  }
}

async function run(
  scope: ActScope,
  step: Extract<CompiledStep, { readonly kind: "run" }>,
  progress: Progress,
): Promise<StepEnd> {
  const { ctx } = scope;
  const { name, pipeline } = step;
  const context = merged(ctx.context, progress.changes);
  const read = (step.reads ?? []).flatMap((key) =>
    Object.hasOwn(ctx.upstream, key) ? [[key, ctx.upstream[key]]] : [],
  );
  const texts: Record<string, string> = {};
  for (const [field, template] of step.texts) {
    const text = rendered(name, template, ctx, progress);
    if (typeof text !== "string") return text;
    texts[field] = text;
  }
  const input = { ...inputOf(ctx, progress, Object.fromEntries(read)), ...step.input, ...texts };
  const [end] = await scope.runChildren(name, [{ key: name, pipeline, input, context }]);
  if (end === undefined) return { outcome: { ...NO_TURNS, status: "cancelled", reason: "cancelled" } };
  if (end.status !== "completed") {
    const { code, message } = end;
    if (end.status === "cancelled") return { outcome: { ...NO_TURNS, status: "cancelled", reason: message } };
    return { outcome: failed("fan_out", `${name} failed: ${message}`, { step: name, code }) };
  }
  const next = after(step, end.output, context, progress);
  const changes = savedFrom(step.saveContext, { ...next.changes }, context, (from) => {
    const inContext = valueAt(end.context, from);
    return inContext === undefined ? valueAt(end.output, from) : inContext;
  });
  return { progress: { ...next, changes } };
}

/** What a step reads beside the context: the run's input, and what steps gave. */
function inputOf(
  { task, run: { input } }: StageContext,
  { previous, outputs, answer }: Progress,
  upstream: Readonly<Record<string, unknown>>,
): JsonObject {
  const earlier = Object.entries(upstream).map(([name, output]) => [name, asJson(output)] as const);
  const given = asJson(input);
  return {
    ...(isJsonObject(given) ? given : {}),
    ...(task === "" ? {} : { task }),
    previous_step: previous,
    steps: { ...Object.fromEntries(earlier), ...outputs },
    answer: answer ?? null,
  };
}

function after(step: CompiledStep, output: Json, context: JsonObject, progress: Progress): Progress {
  const changes = savedFrom(step.save, progress.changes, context, (from) => valueAt(output, from));
  return { ...progress, previous: output, outputs: { ...progress.outputs, [step.name]: output }, changes };
}

function savedFrom(
  saved: readonly SavedOutput[] | undefined,
  changes: JsonObject,
  context: JsonObject,
  part: (from: readonly string[]) => Json | undefined,
): JsonObject {
  let all = changes;
  for (const { from, to, merge } of saved ?? []) {
    const value = part(from);
    if (value === undefined) continue;
    const [root] = to;
    const before = all[root] === undefined ? context[root] : all[root];
    all = { ...all, [root]: placed(before, to.slice(1), value, merge === true) };
  }
  return all;
}

/** The value with another one at a path inside it. */
function placed(before: Json | undefined, path: readonly string[], value: Json, merges: boolean): Json {
  const here = isJsonObject(before) ? before : {};
  const [name, ...rest] = path;
  if (name !== undefined) return { ...here, [name]: placed(field(here, name), rest, value, merges) };
  return merges && isJsonObject(value) ? { ...here, ...value } : value;
}

function merged(context: JsonObject, changes: JsonObject): JsonObject {
  return { ...context, ...changes };
}

function valueAt(value: Json, path: readonly string[]): Json | undefined {
  return path.reduce<Json | undefined>((here, name) => field(here, name), value);
}
