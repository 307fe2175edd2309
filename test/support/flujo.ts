import {
  callbackInteractor,
  field,
  type Interactor,
  type Json,
  type PersonRequest,
  type Pipeline,
  type RowSpec,
} from "@sluice/core";
import type { RunResult } from "@sluice/stages";
import type { Diagnostic, LoadedWorkflow, WorkflowInput } from "@sluice/workflows";
import { test } from "vitest";
import { dataOf, eventsOf, session, type TestSession, type TestSessionOptions } from "./run-kit.ts";
import { type Talker, talker } from "./talker.ts";
import { loadTexts } from "./workflows.ts";

// Flujo documents as texts, and runs of them with agents that give outputs in order and people who answer.

/** A fact of Flujo that is the same here. Its name begins with its number in the list of facts. */
export function fact(number: number | `L${number}`, says: string, body: () => Promise<void> | void): void {
  test(`${number}: ${says}`, body);
}
/** A fact of Flujo that differs here: what is so instead. */
export function differs(number: number, says: string, body: () => Promise<void> | void): void {
  test(`${number} D: ${says}`, body);
}

/** The document of the tests, and the files beside it. */
export const FILE = "w/m.yaml";
type Files = Readonly<Record<string, string>>;

export async function loadFlujo(text: string, others: Files = {}): Promise<LoadedWorkflow> {
  return await loadTexts(FILE, { [FILE]: text, ...others });
}

/** The pipeline of a document without errors. */
export async function pipelineOf(text: string, others: Files = {}): Promise<Pipeline<WorkflowInput, unknown>> {
  const { pipeline, diagnostics } = await loadFlujo(text, others);
  if (pipeline === undefined) throw new Error(JSON.stringify(diagnostics, null, 2));
  return pipeline;
}

export async function rowsOf(text: string): Promise<readonly RowSpec[]> {
  const { routes } = (await pipelineOf(text)).spec;
  if (routes.kind !== "table") throw new Error("no rows");
  return routes.rows;
}

export function targetOf({ to }: RowSpec): unknown {
  return "state" in to ? to.state : to;
}

/** The errors as `rule: what the text has at their position`. */
export async function errorsOf(text: string, others: Files = {}): Promise<readonly string[]> {
  const { diagnostics } = await loadFlujo(text, others);
  return diagnostics
    .filter(({ severity }) => severity === "error")
    .map((one) => `${one.rule}: ${textAt(others[one.file] ?? text, one)}`);
}

/** What a diagnostic is about: the characters at its position. */
export function textAt(text: string, { line, column, length }: Pick<Diagnostic, "line" | "column" | "length">): string {
  return (text.split("\n")[line - 1] ?? "").slice(column - 1, column - 1 + length);
}

/** A machine whose states are `a` and `b`, with these rows; `states` replaces them. */
export function machine(
  rows: string,
  { states, more = "" }: { readonly states?: string; readonly more?: string } = {},
): string {
  return `kind: StateMachine
name: m
start_state: a
end_states: [done, failed]
${more}
states:
${states ?? `  a: [{ name: work_a, prompt: Work., tools: [] }]\n  b: { steps: [{ name: work_b, prompt: Work., tools: [] }] }`}
transitions:
${rows}
`;
}

/** The rows of `machine`: `a`, then `b`, then done; a failure leads to failed. */
export const ROWS = `  - { from: a, on: success, to: b }
  - { from: b, on: success, to: done }
  - { from: "*", on: failure, to: failed }
`;

/** What agents give, by stage and in the order of their turns. */
export type Outputs = Readonly<Record<string, readonly Json[]>>;

/** A model whose agents complete with these outputs, one for each visit. It fails when it is asked for more. */
export function giving(outputs: Outputs): Talker {
  return talker(({ stage, turn }) => {
    const input = outputs[stage]?.[turn];
    if (input === undefined) throw new Error(`no turn ${turn} for ${stage}`);
    return { calls: [{ tool: "submit", input }] };
  });
}

/** An interactor that gives these answers in order; `{ kind: "deny" }` refuses. */
export function answering(answers: readonly Json[], asked: PersonRequest[] = []): Interactor {
  let next = 0;
  return callbackInteractor("ann", (request) => {
    asked.push(request);
    const answer = answers[next];
    next += 1;
    if (answer === undefined) throw new Error("a question too many");
    return isDenial(answer) ? { kind: "deny" } : { kind: "value", value: answer };
  });
}

function isDenial(answer: Json): boolean {
  return field(answer, "kind") === "deny";
}

export interface Ran {
  readonly status: string;
  readonly error: { readonly code: string; readonly message: string } | undefined;
  /** The end state. */
  readonly state: string | undefined;
  readonly output: unknown;
  readonly result: RunResult<unknown>;
  /** The executions, and how they ended. */
  readonly walk: readonly string[];
  /** The decisions of the run itself, as `a -> b`. */
  readonly routes: readonly string[];
  /** The questions. */
  readonly asked: readonly string[];
  /** What each agent is asked, as `stage: text`. */
  readonly prompts: readonly string[];
  readonly events: Awaited<ReturnType<typeof eventsOf>>;
  readonly live: TestSession;
}

/** Runs a machine to its end. */
export async function runFlujo(
  source: string | Pipeline<WorkflowInput, unknown>,
  {
    outputs = {},
    answers,
    files = {},
    input = { task: "the task" },
    options = {},
  }: {
    readonly outputs?: Outputs;
    /** Without answers, no one can be asked. */
    readonly answers?: readonly Json[];
    readonly files?: Files;
    readonly input?: WorkflowInput;
    readonly options?: TestSessionOptions;
  } = {},
): Promise<Ran> {
  const pipeline = typeof source === "string" ? await pipelineOf(source, files) : source;
  const asked: PersonRequest[] = [];
  const model = giving(outputs);
  const live = session({
    model,
    ...(answers === undefined ? {} : { interactors: [answering(answers, asked)] }),
    ...options,
  });
  const started = live.start(pipeline, input);
  const result = await started;
  const events = await eventsOf(live.host, started.runId);
  const own = events.filter(({ runId }) => runId === started.runId);
  const { status, error, state, output } = { error: undefined, state: undefined, output: undefined, ...result };
  return {
    status,
    error,
    state,
    output,
    result,
    walk: result.stages.map(({ executionId, status: ended }) => `${executionId} ${ended}`),
    routes: dataOf(own, "route.decided").map(({ from, to, choice }) => `${String(from)} -> ${String(to ?? choice)}`),
    asked: asked.map(({ body }) => String(body.question)),
    prompts: promptsOf(model),
    events,
    live,
  };
}

/** The prompts of agents as the model reads them, without the rules that follow. */
export function promptsOf({ heard }: Talker): readonly string[] {
  return heard.map(({ stage, messages }) => {
    const system = messages.find(({ role }) => role === "system")?.content;
    return `${stage}: ${typeof system === "string" ? (system.split("\n\nRules of this stage")[0] ?? "") : ""}`;
  });
}
