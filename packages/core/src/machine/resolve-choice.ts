import { isJsonObject, isObject, type Json, type JsonObject, toJsonValue } from "../base/json.ts";
import { type ChoiceShape, invokeKey, parseChoice, type SiblingShape } from "../definition/choice.ts";
import type { PipelineSpec } from "../definition/spec.ts";
import { issuesText } from "../schema/issues.ts";
import type { SchemaVerdict } from "../schema/schema.ts";

/** A valid choice: its states exist, its inputs fit their schemas, and it is JSON, because it is recorded. */
export type ResolvedChoice =
  | {
      readonly kind: "to";
      readonly state: string;
      readonly input: Json;
      readonly context?: JsonObject;
      /** Replaces the prompt of this execution of the state. */
      readonly prompt?: string;
    }
  | {
      readonly kind: "fanOut";
      /** In declared order, each state once; of a list, one for each item, all of the same state. */
      readonly siblings: readonly ResolvedSibling[];
      readonly join: string;
      readonly input: Json;
      /** `any`: the first child that completes cancels the others; it fails if all fail. */
      readonly onFailure: "cancel" | "settle" | "any";
      /** The state that continues after a failure. Without it, the failure is one of the state that fanned out. */
      readonly onFail?: string;
      /** The state that runs once for each item of a list. */
      readonly list?: string;
      /** How many items of a list run at the same time at most. */
      readonly maxParallel?: number;
    }
  /** The state continues: its event was refused. */
  | { readonly kind: "stay"; readonly reason: string }
  /** The suspended execution continues. */
  | { readonly kind: "return" }
  | { readonly kind: "done"; readonly output: Json }
  | { readonly kind: "fail"; readonly reason: string }
  | { readonly kind: "cancel"; readonly reason: string };
/** What one child of a fan-out runs. */
export type ResolvedSibling =
  /** One state. `key` names an item of a list; any other sibling is named by its state. */
  | { readonly kind?: never; readonly state: string; readonly input: Json; readonly key?: string }
  /** From `state` along its routes to `terminal`, which is not entered. */
  | {
      readonly kind: "branch";
      readonly key: string;
      readonly state: string;
      readonly terminal: string;
      readonly input: Json;
    }
  /** Another pipeline. The input is merged into its initial context. */
  | { readonly kind: "invoke"; readonly key: string; readonly pipeline: string; readonly input: JsonObject };
/** Names a child in its fan-out. */
export function childKeyOf(sibling: ResolvedSibling): string {
  return sibling.kind === undefined ? (sibling.key ?? sibling.state) : sibling.key;
}

/** How the children of a fork or of another pipeline are recorded; siblings and items are named by their keys alone. */
export function recordedChildren({
  siblings,
  onFailure,
  onFail,
}: Pick<FanOutChoice, "siblings" | "onFailure" | "onFail">): JsonObject {
  const children = siblings.flatMap((sibling): readonly JsonObject[] => {
    const { kind } = sibling;
    if (kind === undefined) return [];
    const { key } = sibling;
    if (kind === "invoke") return [{ key, pipeline: sibling.pipeline }];
    return [{ key, state: sibling.state, terminal: sibling.terminal }];
  });
  return {
    ...(children.length === 0 ? {} : { children }),
    ...(onFailure === "any" ? { any: true } : {}),
    ...(onFail === undefined ? {} : { onFail }),
  };
}
export type FanOutChoice = Extract<ResolvedChoice, { readonly kind: "fanOut" }>;
export type ResolvedChoiceResult =
  | { readonly ok: true; readonly choice: ResolvedChoice }
  | { readonly ok: false; readonly reason: string };

/** What led to a choice, where the choice depends on it. */
export interface LedBy {
  /** The name of an event that a row names. */
  readonly event?: string;
  /** What a paused state asked, with the answer. */
  readonly request?: Json;
}

/**
 * Validates a route's return value. `output` is the run's output if the value is an empty `stages` list. A promise only where
 * several inputs, or one with an asynchronous schema, are checked.
 */
export function resolveChoice(
  value: unknown,
  spec: PipelineSpec,
  output: Json,
  ledBy: LedBy = {},
): Promise<ResolvedChoiceResult> | ResolvedChoiceResult {
  const reading = parseChoice(value, spec.states, output, spec.limits.maxItems);
  if (!reading.ok) return { ok: false, reason: reading.reason };
  try {
    const choice = choiceOf(reading.shape, spec, ledBy);
    return choice instanceof Promise ? choice.then(accepted).catch(refused) : accepted(choice);
  } catch (thrown) {
    return refused(thrown);
  }
}

function accepted(choice: ResolvedChoice): ResolvedChoiceResult {
  return { ok: true, choice };
}

function refused(thrown: unknown): ResolvedChoiceResult {
  if (thrown instanceof Refusal) return { ok: false, reason: thrown.message };
  throw thrown;
}

function choiceOf(
  shape: ChoiceShape,
  spec: PipelineSpec,
  { event, request }: LedBy,
): Promise<ResolvedChoice> | ResolvedChoice {
  switch (shape.kind) {
    case "to": {
      const { state, context } = shape;
      const patch = context === undefined ? {} : { context };
      const entering = (input: Json): ResolvedChoice => ({ kind: "to", state, input, ...patch });
      const input = inputFor(spec, { state, input: withAnswer(shape.input, request) });
      return input instanceof Promise ? input.then(entering) : entering(input);
    }
    case "fanOut":
      return fanningOut(spec, shape);
    case "fork":
      return forking(spec, shape);
    case "invoke": {
      const { pipeline, key = invokeKey(event, pipeline), input } = shape;
      if (!spec.pipelines.has(pipeline))
        throw new Refusal(`invoke(): there is no pipeline ${JSON.stringify(pipeline)}`);
      const siblings = [{ kind: "invoke", key, pipeline, input }] as const;
      return continuing(spec, { ...shape, onFailure: "cancel", siblings, input: undefined });
    }
    case "return":
      return { kind: "return" };
    case "done":
      return { kind: "done", output: jsonOrRefuse(shape.output, "the output") };
    case "fail":
    case "cancel":
      return { kind: shape.kind, reason: shape.reason };
  }
}

async function fanningOut(
  spec: PipelineSpec,
  shape: Extract<ChoiceShape, { readonly kind: "fanOut" }>,
): Promise<FanOutChoice> {
  const siblings: ResolvedSibling[] = [];
  for (const sibling of shape.siblings) {
    const { state, key } = sibling;
    siblings.push({ state, input: await inputFor(spec, sibling), ...(key === undefined ? {} : { key }) });
  }
  const { join, onFailure, list, maxParallel } = shape;
  const input = await inputFor(spec, { state: join, input: shape.input });
  return {
    kind: "fanOut",
    siblings,
    join,
    input,
    onFailure,
    ...(list === undefined ? {} : { list }),
    ...(maxParallel === undefined ? {} : { maxParallel }),
  };
}

async function forking(
  spec: PipelineSpec,
  shape: Extract<ChoiceShape, { readonly kind: "fork" }>,
): Promise<FanOutChoice> {
  const siblings: ResolvedSibling[] = [];
  for (const { key, initial: state, terminal, input } of shape.branches) {
    const own = await inputFor(spec, { state, input, key });
    siblings.push({ kind: "branch", key, state, terminal, input: own });
  }
  const onFailure = shape.join === "any" ? "any" : "cancel";
  return await continuing(spec, { ...shape, onFailure, siblings });
}

/** The fan-out of a fork or of another pipeline. */
async function continuing(
  spec: PipelineSpec,
  after: Pick<FanOutChoice, "siblings" | "onFailure" | "onFail"> & {
    readonly onComplete: string;
    readonly input: unknown;
  },
): Promise<FanOutChoice> {
  const { siblings, onFailure, onFail, onComplete: join } = after;
  const input = await inputFor(spec, { state: join, input: after.input });
  return {
    kind: "fanOut",
    siblings,
    join,
    input,
    onFailure,
    ...(onFail === undefined ? {} : { onFail }),
  };
}

/** The input of the state that works with an answer: the paused request, beside what its row gives. */
function withAnswer(input: unknown, request: Json | undefined): unknown {
  if (request === undefined) return input;
  return isObject(input) && isJsonObject(request) ? { ...input, ...request } : request;
}

/** Why a payload is invalid; caught in this file. */
class Refusal extends Error {}

function inputFor(spec: PipelineSpec, { state, input, key }: SiblingShape): Promise<Json> | Json {
  const schema = spec.states.get(state)?.inputSchema;
  const name = `the input of ${state}${key === undefined ? "" : ` for item ${JSON.stringify(key)}`}`;
  if (schema === undefined) return jsonOrRefuse(input, name);
  const checked = (verdict: SchemaVerdict<unknown>): Json => {
    if (!verdict.ok) throw new Refusal(`${name} does not fit its inputSchema: ${issuesText(verdict.issues)}`);
    return jsonOrRefuse(verdict.value, name);
  };
  const verdict = schema.check(input);
  return verdict instanceof Promise ? verdict.then(checked) : checked(verdict);
}

function jsonOrRefuse(value: unknown, what: string): Json {
  const own = toJsonValue(value);
  if (!own.ok) throw new Refusal(`${what} is not JSON: ${own.fault}`);
  return own.value;
}
