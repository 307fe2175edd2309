// A state that asks a person. Its output is their answer.
import {
  type ActOutcome,
  type ActScope,
  type AnyState,
  type CompiledSchema,
  type Json,
  type JsonObject,
  type Schema,
  SluiceError,
  type State,
  type StateExecutor,
} from "@sluice/core";
import {
  type CompiledTemplate,
  createReport,
  isObject,
  issuesText,
  type Report,
  schemaAt,
  stateSpec,
  toJsonValue,
  verdictNow,
} from "@sluice/core/runtime";
import { type Duration, parseDuration } from "./duration.ts";
import { cancelled, completed, type ErasedCommon, failed, type KindCommon, templateAt } from "./kind-common.ts";

const HUMAN = "human";

export interface HumanOptions<A extends Record<string, AnyState>, O, I> extends KindCommon<A, I, O> {
  /** What the person reads: text with `{{ctx.path}}` templates. */
  readonly question: string;
  /** The schema of the answer. Default: a text of at least one character. */
  readonly answer?: Schema<O>;
  /** How long the question stays open, from when it is asked and across processes. Default: without end. */
  readonly deadline?: Duration;
  /** `fail` (default): the state fails with code `unanswered`. `{ answer }`: it completes with this answer. */
  readonly onDeadline?: "fail" | { readonly answer: NoInfer<O> };
}

/** HumanOptions with erased types. */
interface ErasedOptions extends ErasedCommon {
  readonly question: string;
  readonly answer?: Schema<unknown> | JsonObject;
  readonly deadline?: Duration;
  readonly onDeadline?: "fail" | { readonly answer: unknown };
}

/** What the executor reads of such a state. */
interface HumanSpec {
  readonly question: CompiledTemplate;
  readonly answer: JsonObject;
  readonly deadlineMs?: number;
  /** The answer of a question that no one answered in time. */
  readonly byDefault?: { readonly answer: Json };
}

/** A text that says something. */
const TEXT = { type: "string", minLength: 1 } as const;

/**
 * Defines a state that asks a person. Without an answer it fails with code `unanswered`; `detail.cause` says why. The answer may
 * be any value that JSON Schema describes. Never throws: `pipeline()` reports its problems with all others.
 */
export function human<const A extends Record<string, AnyState> = Record<never, never>, I = undefined>(
  options: Omit<HumanOptions<A, Json, I>, "answer"> & { readonly answer: JsonObject },
): State<Json, NoInfer<I>>;
export function human<const A extends Record<string, AnyState> = Record<never, never>, O = string, I = undefined>(
  options: HumanOptions<A, O, I>,
): State<NoInfer<O>, NoInfer<I>>;
export function human(given: ErasedOptions): State {
  const { question, answer = TEXT, deadline, onDeadline = "fail", ...common } = given;
  const report = createReport();
  if (typeof question !== "string" || question.trim() === "")
    report.add("question", "must be the text that a person answers");
  const text = templateAt(report, "question", String(question));
  const output = answerAt(report, answer);
  const options: HumanSpec = {
    question: text,
    answer: output.jsonSchema,
    ...deadlineOf(report, deadline, onDeadline, output),
  };
  const { deadlineMs, byDefault } = options;
  const spec = stateSpec(
    HUMAN,
    { ...common, allowedTools: [] },
    {
      options,
      output,
      keys: ["reads", "question", "answer", "deadline", "onDeadline"],
      problems: report.problems,
      templates: { question: text.references },
      parts: {
        question: { data: String(question) },
        answer: output,
        ...(deadlineMs === undefined ? {} : { deadline: deadlineMs }),
        ...(byDefault === undefined ? {} : { "answer at the deadline": { data: byDefault.answer } }),
      },
      shape: deadlineMs === undefined ? {} : { deadlineMs },
    },
  );
  return { kind: HUMAN, spec };
}

export const humanExecutor: StateExecutor = {
  kind: HUMAN,
  init: ({ options }, ctx) => humanOf(options).question.render(ctx),
  act: async (question, scope) => {
    const { answer, deadlineMs, byDefault } = humanOf(scope.state.options);
    const asked = await scope.ask({
      name: "question",
      question: { question, answer },
      ...(deadlineMs === undefined ? {} : { timeoutMs: deadlineMs }),
    });
    if (asked.answered) return completed(asked.value);
    const { cause, reason } = asked;
    if (cause === "cancelled") return cancelled(scope);
    if (cause === "timeout" && byDefault !== undefined) return completed(byDefault.answer);
    return unanswered(scope, cause, reason);
  },
};

function unanswered({ stateId }: ActScope, cause: string, reason: string | undefined): ActOutcome {
  const why = reason === undefined ? cause : `${cause}: ${reason}`;
  const detail = { cause, ...(reason === undefined ? {} : { reason }) };
  return failed("unanswered", `${stateId}: no one answered the question (${why})`, detail);
}

/** The schema of the answer. A list of choices without one would be a question that no one can answer. */
function answerAt(report: Report, answer: Schema<unknown> | JsonObject): CompiledSchema<unknown> {
  const output = schemaAt<unknown>(report, "answer", answer);
  const { enum: choices } = output.jsonSchema;
  if (Array.isArray(choices) && choices.length === 0) report.add("answer", "has no choice to answer with");
  return output;
}

function deadlineOf(
  report: Report,
  deadline: Duration | undefined,
  onDeadline: ErasedOptions["onDeadline"],
  output: CompiledSchema<unknown>,
): Pick<HumanSpec, "deadlineMs" | "byDefault"> {
  const byDefault = defaultAt(report, onDeadline, output);
  if (deadline === undefined) {
    if (byDefault !== undefined) report.add("onDeadline", "needs a deadline", 'add one: deadline: "3d"');
    return {};
  }
  const read = parseDuration(deadline);
  if (!read.ok) {
    report.add("deadline", read.message);
    return {};
  }
  return { deadlineMs: read.ms, ...(byDefault === undefined ? {} : { byDefault }) };
}

function defaultAt(
  report: Report,
  onDeadline: unknown,
  output: CompiledSchema<unknown>,
): { readonly answer: Json } | undefined {
  if (onDeadline === "fail") return undefined;
  const own = isObject(onDeadline) && "answer" in onDeadline ? toJsonValue(onDeadline.answer) : undefined;
  if (own === undefined) {
    report.add("onDeadline", 'must be "fail" or { answer: … }');
    return undefined;
  }
  if (!own.ok) {
    report.add("onDeadline.answer", `is not JSON: ${own.fault}`);
    return undefined;
  }
  const verdict = verdictNow(output, own.value);
  if (verdict?.ok === false)
    report.add("onDeadline.answer", `does not fit the schema of the answer: ${issuesText(verdict.issues)}`);
  return { answer: own.value };
}

function humanOf(options: unknown): HumanSpec {
  if (isHumanSpec(options)) return options;
  throw new SluiceError("Validation", "state_invalid", "create a state of kind human with human()");
}

function isHumanSpec(options: unknown): options is HumanSpec {
  return isObject(options) && isObject(options.question) && isObject(options.answer);
}
