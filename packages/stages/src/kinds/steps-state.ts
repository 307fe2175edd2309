import { isJsonObject, type JsonObject, type State, type StateLimits } from "@sluice/core";
import {
  type CompiledTemplate,
  createReport,
  idFault,
  isObject,
  type Report,
  readTemplate,
  schemaAt,
  stateSpec,
  toJsonValue,
} from "@sluice/core/runtime";

/** The kind of states that run steps in order. */
export const STEPS = "steps";

/** A path in the run's context, such as `["scratchpad", "answer"]`. */
export type ContextPath = readonly [string, ...string[]];

/** Where the output of a step goes in the context, once the state has completed. */
export interface SavedOutput {
  /** The part of the output; [] is all of it. A part that does not exist is not saved. */
  readonly from: readonly string[];
  readonly to: ContextPath;
  /** Merges the fields of an object into the object that is there, instead of replacing it. */
  readonly merge?: true;
}
interface StepCommon {
  /** Unique in its state. */
  readonly name: string;
  readonly save?: readonly SavedOutput[];
}
/** Asks a person. The answer is the step's output. */
export interface AskStep extends StepCommon {
  readonly kind: "ask";
  /** The question. Its templates read what those of a state read, with the context as the steps before left it. */
  readonly message: string;
  /** The JSON Schema of the answer. Without one, any value is an answer. */
  readonly answer?: JsonObject;
}
/** Runs another pipeline. Its output is the step's output. */
export interface RunStep extends StepCommon {
  readonly kind: "run";
  /** A key of the pipeline's `pipelines`. */
  readonly pipeline: string;
  /** Added to its run's input: the one of this run with `previous_step`, `steps` and, after a question, `answer`. */
  readonly input?: JsonObject;
  /** Texts that are added to the input. Their templates read what those of a question read. */
  readonly texts?: Readonly<Record<string, string>>;
  /** Outputs upstream that the input's `steps` has beside those of the steps before. */
  readonly reads?: readonly string[];
  /** Parts of the child's context that are saved when it has ended, as those of an output. */
  readonly saveContext?: readonly SavedOutput[];
}
export type Step = AskStep | RunStep;

export interface StepsOptions {
  readonly steps: readonly Step[];
  /** The JSON Schema of its output, the output of the last step. It describes what is checked where the output comes from. */
  readonly output?: JsonObject;
  readonly limits?: StateLimits;
}

/** What the executor reads of such a state. */
export interface StepsSpec {
  readonly steps: readonly CompiledStep[];
}
export type CompiledStep =
  | (Omit<AskStep, "message"> & { readonly message: CompiledTemplate })
  | (Omit<RunStep, "texts"> & { readonly texts: ReadonlyMap<string, CompiledTemplate> });

/**
 * Defines a state that runs steps in order: questions to people, and other pipelines as child runs. Its output is that of its last
 * step, and null without steps; the outputs of all its steps are in `ctx.upstream` by their names. What steps save in the context
 * is merged when the state has completed. After a question, a row on `pause` may lead back to the state, which then continues with
 * its next step: the progress is in the input of that visit, so no other row may pass it an input that a model wrote. Never throws:
 * `pipeline()` reports its problems with all others.
 */
export function stepsState({ steps, output, limits }: StepsOptions): State {
  const report = createReport();
  const names = new Set<string>();
  const templates: Record<string, CompiledTemplate["references"]> = {};
  const compiled = steps.map((step, index): CompiledStep => {
    const path = `steps[${index}]`;
    const fault = idFault(step.name);
    if (fault !== undefined) report.add(`${path}.name`, fault);
    if (names.has(step.name)) report.add(`${path}.name`, `another step is called ${JSON.stringify(step.name)}`);
    names.add(step.name);
    if (step.kind === "run") {
      const texts = new Map<string, CompiledTemplate>();
      for (const [name, text] of Object.entries(step.texts ?? {})) {
        const compiledText = templateOf(report, `${path}.texts.${name}`, text);
        templates[`${path}.texts.${name}`] = compiledText.references;
        texts.set(name, compiledText);
      }
      return { ...step, texts };
    }
    // An answer need not be an object; inside one, its schema is checked all the same.
    if (step.answer !== undefined)
      schemaAt(report, `${path}.answer`, { type: "object", properties: { answer: step.answer } });
    const message = messageOf(report, `${path}.message`, step.message);
    templates[`${path}.message`] = message.references;
    return { ...step, message };
  });
  const options: StepsSpec = { steps: compiled };
  const facts = {
    options,
    ...(output === undefined ? {} : { output: schemaAt(report, "output", { ...output, type: "object" }) }),
    checksOutput: true,
    adds: [...names],
    templates,
    parts: {
      ...Object.fromEntries(steps.map((step) => [`step ${step.name}`, { data: dataOf(step) }])),
      ...(steps.length < 2 ? {} : { "order of steps": { data: [...names] } }),
    },
    shape: { steps: steps.map(({ name }) => name) },
  } as const;
  const common = { allowedTools: [], ...(limits === undefined ? {} : { limits }) };
  return { kind: STEPS, spec: stateSpec(STEPS, common, { ...facts, keys: [], problems: report.problems }) };
}

/** The options of a state of this kind; undefined for any other state. */
export function stepsOf(options: unknown): StepsSpec | undefined {
  return isStepsSpec(options) ? options : undefined;
}

function isStepsSpec(options: unknown): options is StepsSpec {
  return isObject(options) && "steps" in options && Array.isArray(options.steps);
}

const NOTHING: CompiledTemplate = { paths: [], references: [], render: () => "" };

function messageOf(report: Report, path: string, text: string): CompiledTemplate {
  if (text.trim() === "") report.add(path, "must be the question that a person answers");
  return templateOf(report, path, text);
}

function templateOf(report: Report, path: string, text: string): CompiledTemplate {
  const reading = readTemplate(text);
  if (reading.ok) return reading.value;
  for (const { message, suggestion } of reading.faults) report.add(path, message, suggestion);
  return NOTHING;
}

/** A step as plain data, for the fingerprint. */
function dataOf(step: Step): JsonObject {
  const own = toJsonValue(step);
  return own.ok && isJsonObject(own.value) ? own.value : {};
}
