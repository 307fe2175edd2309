// A state that runs another pipeline as a child run. Its output is that run's.
import {
  type AnyPipeline,
  type AnyState,
  field,
  type In,
  type Json,
  type Out,
  type Reads,
  type Schema,
  SluiceError,
  type StageContext,
  type State,
  type StateExecutor,
} from "@sluice/core";
import {
  type CompiledTemplate,
  createReport,
  isObject,
  type Report,
  schemaAt,
  stateSpec,
  templateValue,
  toJsonValue,
} from "@sluice/core/runtime";
import { cancelled, completed, type ErasedCommon, failed, type KindCommon, templateAt } from "./kind-common.ts";

const SUB_PIPELINE = "subPipeline";

export interface SubPipelineOptions<A extends Record<string, AnyState>, P extends AnyPipeline, O, I>
  extends KindCommon<A, I, O> {
  /** A key of the pipeline's `pipelines`. */
  readonly pipeline: string;
  /** The pipeline of that key, which types input and output. */
  readonly of?: P;
  /**
   * The run's input: JSON whose texts may have `{{ctx.path}}` templates, or a function that returns it. A text that is one template
   * and nothing else becomes its value. The input has to fit the pipeline's schema. Default: the input of the state.
   */
  readonly input?: Json | ((ctx: StageContext<Reads<A>, I>) => In<P>);
  /** A schema that the run's output has to fit, for a pipeline without a type. An output that does not fit fails the state with code `schema`. */
  readonly output?: Schema<O>;
}

/** SubPipelineOptions with erased types. */
interface ErasedOptions extends ErasedCommon {
  readonly pipeline: string;
  readonly of?: AnyPipeline;
  readonly input?: Json | InputFunction;
  readonly output?: Schema<unknown>;
}
/** A method type, so that functions of narrower contexts fit. */
type InputFunction = { input(ctx: StageContext): unknown }["input"];

/** What the executor reads of such a state. */
interface SubPipelineSpec {
  readonly pipeline: string;
  input(ctx: StageContext): unknown;
}

/**
 * Defines a state that runs another pipeline. If that does not complete, the state fails with code `pipeline`, and `detail` has the
 * code, the message and the id of the run. Never throws: `pipeline()` reports its problems with all others.
 */
export function subPipeline<
  const A extends Record<string, AnyState> = Record<never, never>,
  const P extends AnyPipeline = AnyPipeline,
  O = Out<P>,
  I = undefined,
>(options: SubPipelineOptions<A, P, O, I>): State<NoInfer<O>, NoInfer<I>>;
export function subPipeline(given: ErasedOptions): State {
  const { pipeline, of, input, output: schema, ...common } = given;
  const report = createReport();
  if (typeof pipeline !== "string" || pipeline === "") report.add("pipeline", "must be a key of the pipelines");
  const templates: Record<string, CompiledTemplate["references"]> = {};
  const options: SubPipelineSpec = { pipeline, input: inputOf(report, input, templates) };
  const output = schema === undefined ? undefined : schemaAt(report, "output", schema);
  const spec = stateSpec(
    SUB_PIPELINE,
    { ...common, allowedTools: [] },
    {
      options,
      keys: ["reads", "pipeline", "of", "input", "output"],
      problems: report.problems,
      templates,
      runs: [{ pipeline, ...(of === undefined ? {} : { spec: of.spec }) }],
      parts: {
        pipeline: { data: pipeline },
        ...(input === undefined ? {} : { input: typeof input === "function" ? "a function" : { data: input } }),
        ...(output === undefined ? {} : { out: output }),
      },
      shape: { pipeline },
      ...(output === undefined ? {} : { output }),
    },
  );
  return { kind: SUB_PIPELINE, spec };
}

export const subPipelineExecutor: StateExecutor = {
  kind: SUB_PIPELINE,
  init: ({ options }, ctx) => {
    const own = toJsonValue(subPipelineOf(options).input(ctx));
    if (own.ok) return { input: own.value };
    throw new SluiceError("Validation", "not_json", `the input for the pipeline is not JSON: ${own.fault}`);
  },
  act: async (init, scope) => {
    const { pipeline } = subPipelineOf(scope.state.options);
    const [end] = await scope.runChildren("run", [{ key: pipeline, pipeline, input: field(init, "input") ?? null }]);
    if (end === undefined || scope.signal.aborted) return cancelled(scope);
    if (end.status === "completed") return completed(end.output);
    const { code, message, runId } = end;
    return failed("pipeline", `the pipeline ${pipeline} ${end.status}: ${message}`, { code, message, runId });
  },
};

function inputOf(
  report: Report,
  input: ErasedOptions["input"],
  references: Record<string, CompiledTemplate["references"]>,
): SubPipelineSpec["input"] {
  if (typeof input === "function") return input;
  if (input === undefined) return (ctx) => ctx.input;
  return renderer(report, "input", input, references);
}

/** Fills in the templates of all texts in a value. Keys stay as they are. A text that is one template becomes its value. */
function renderer(
  report: Report,
  path: string,
  value: Json,
  references: Record<string, CompiledTemplate["references"]>,
): (ctx: StageContext) => unknown {
  if (typeof value === "string") {
    const template = templateAt(report, path, value);
    if (template.references.length > 0) references[path] = template.references;
    const [first] = template.references;
    if (first?.place.length === value.length) return (ctx) => templateValue(ctx, first.path);
    return (ctx) => template.render(ctx);
  }
  if (typeof value !== "object" || value === null) return () => value;
  const inside = Object.entries(value).map(([key, member]: [string, Json]) => {
    const at = Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`;
    return [key, renderer(report, at, member, references)] as const;
  });
  if (Array.isArray(value)) return (ctx) => inside.map(([, render]) => render(ctx));
  return (ctx) => Object.fromEntries(inside.map(([key, render]) => [key, render(ctx)]));
}

function subPipelineOf(options: unknown): SubPipelineSpec {
  if (isSubPipelineSpec(options)) return options;
  throw new SluiceError("Validation", "state_invalid", "create a state of kind subPipeline with subPipeline()");
}

function isSubPipelineSpec(options: unknown): options is SubPipelineSpec {
  return isObject(options) && typeof options.pipeline === "string" && typeof options.input === "function";
}
