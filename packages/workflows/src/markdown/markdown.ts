// A folder of Markdown stages with a pipeline.yaml, as a pipeline with a table of transitions.

import {
  type AnyChoice,
  type AnyState,
  backToInterrupted,
  fail,
  fanOut,
  final,
  isJsonObject,
  type JsonObject,
  type Problem,
  to,
} from "@sluice/core";
import type { PipelineDefinition } from "@sluice/core/host";
import type { DocumentPath } from "../diagnostic.ts";
import { type CelGuard, celGuard } from "../expressions/cel-guard.ts";
import type { CelTypes } from "../expressions/variables.ts";
import type { WorkflowCompilation, WorkflowFormat, WorkflowReading } from "../format.ts";
import { idFor } from "../read/names.ts";
import { type Finding, readShape } from "../read/shape.ts";
import type { SourceFile } from "../read/source.ts";
import { runInput } from "../run-input.ts";
import { type FolderFields, folderFields, partialFolder, type RowFields } from "./fields.ts";
import { DONE, FAIL, firstMentions, RETURN } from "./folder.ts";
import { type CompiledStage, compileStage, describesObject, objectSchema } from "./stages.ts";

/** The format of a folder with pipeline.yaml, read by `readFolder`. */
export const markdown: WorkflowFormat = {
  name: "markdown",
  recognizes: (document) => isJsonObject(document) && "stages" in document && "transitions" in document,
  read,
};

function read(source: SourceFile): WorkflowReading {
  const shape = readShape(folderFields, partialFolder, source.value);
  const folder: FolderFields = shape.value ?? {};
  const stages = new Map(
    Object.entries(folder.stages ?? {}).map(([name, fields]) => [name, compileStage(name, fields)]),
  );
  const rows = (folder.transitions ?? []).map((row, index) => compileRow(row, index, stages, finalsOf(folder)));
  const own: readonly Finding[] = [
    ...[...stages].flatMap(([name, stage]) => stage.findings.map((finding) => inStage(name, finding))),
    ...rows.flatMap(({ findings }) => findings),
    ...folderFindings(folder, stages),
  ];
  const located = (finding: Finding): Finding => ({ ...finding, path: shape.locate(finding.path) });
  return {
    id: idFor(folder.id ?? "pipeline"),
    findings: [...shape.findings, ...own.map(located)],
    references: [],
    compile: (): WorkflowCompilation => ({
      definition: definitionOf(folder, stages, rows),
      findings: [],
      locate: (problem) => {
        const at = locateProblem(problem, { source, stages, rows });
        return { ...at, path: shape.locate(at.path) };
      },
    }),
  };
}

function inStage(name: string, finding: Finding): Finding {
  return { ...finding, path: ["stages", name, ...finding.path.filter((step) => step !== "")] };
}

type Stages = ReadonlyMap<string, CompiledStage>;
type Row = NonNullable<PipelineDefinition["transitions"]>[number];
interface CompiledRow {
  /** Absent if the row names something that is not there, which was reported. */
  readonly row?: Row;
  readonly index: number;
  readonly findings: readonly Finding[];
}

function folderFindings(folder: FolderFields, stages: Stages): readonly Finding[] {
  const found: Finding[] = [];
  for (const name of finalsOf(folder)) {
    if (!stages.has(name)) continue;
    const message = `${name} is a final state, whose file never runs.`;
    found.push({ severity: "warning", rule: "final-body", message, path: ["final"], what: "key" });
  }
  if (folder.input !== undefined && !describesObject(folder.input)) {
    const message = "The input of a run is an object.";
    found.push({
      severity: "error",
      rule: "wrong-type",
      message,
      suggestion: "write type: object",
      path: ["input"],
      what: "key",
    });
  }
  return found;
}

function finalsOf({ final: given }: FolderFields): readonly string[] {
  if (given === undefined) return [];
  return Array.isArray(given) ? given : Object.keys(given);
}

function finalStates({ final: given }: FolderFields): Readonly<Record<string, AnyState>> {
  if (given === undefined) return {};
  const outcomes = Array.isArray(given) ? given.map((name) => [name, "completed"] as const) : Object.entries(given);
  return Object.fromEntries(outcomes.map(([name, outcome]) => [name, final(outcome)]));
}

function definitionOf(folder: FolderFields, stages: Stages, rows: readonly CompiledRow[]): PipelineDefinition {
  const { input, limits, interrupts } = folder;
  const own = Object.fromEntries([...stages].map(([name, { state }]) => [name, state]));
  return {
    id: idFor(folder.id ?? "pipeline"),
    input: input === undefined ? runInput : objectSchema(input),
    stages: { ...own, ...finalStates(folder) },
    initial: folder.initial ?? "",
    transitions: rows.flatMap(({ row }) => (row === undefined ? [] : [row])),
    ...(folder.context === undefined ? {} : { context: folder.context }),
    ...(limits === undefined ? {} : { limits: definedLimits(limits) }),
    ...(interrupts === undefined ? {} : { interrupts }),
  };
}

function definedLimits({ maxTokens, maxCostUsd, timeoutMs, maxVisits, maxHops }: NonNullable<FolderFields["limits"]>) {
  return {
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(maxCostUsd === undefined ? {} : { maxCostUsd }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(maxVisits === undefined ? {} : { maxVisits }),
    ...(maxHops === undefined ? {} : { maxHops }),
  };
}

function compileRow(fields: RowFields, index: number, stages: Stages, finals: readonly string[]): CompiledRow {
  const { from, on = "success", when, approval, label } = fields;
  const path = ["transitions", index];
  const guard = when === undefined ? undefined : celGuard(when, typesOf(fields, stages));
  const findings = [...guardFindings(guard, [...path, "when"]), ...eventFindings(fields, path, stages)];
  const choice = choiceOf(fields, { stages, finals });
  const isKnown = from === "*" || stages.has(from);
  if (choice === undefined || !isKnown || guard?.problems !== undefined) return { index, findings };
  const row: Row = {
    from,
    on,
    to: choice,
    ...(guard === undefined ? {} : { when: guard.guard }),
    ...approvalOf(approval),
    ...(label === undefined ? {} : { label }),
  };
  return { row, index, findings };
}

function approvalOf(approval: RowFields["approval"]): Pick<Row, "approval"> {
  if (approval === undefined || approval === false) return {};
  const message = approval === true ? undefined : approval.message;
  return { approval: message === undefined ? {} : { message } };
}

function guardFindings(guard: CelGuard | undefined, path: DocumentPath): readonly Finding[] {
  return (guard?.problems ?? []).map(
    ({ rule, message, suggestion, offset, length }): Finding => ({
      severity: "error",
      rule,
      message: `The condition cannot be used: ${message}.`,
      ...(suggestion === undefined ? {} : { suggestion }),
      path,
      offset,
      length,
    }),
  );
}

/** An event row is for a stage that completes by events, and a success row for one that does not. */
function eventFindings({ from, on = "success" }: RowFields, path: DocumentPath, stages: Stages): readonly Finding[] {
  const stage = stages.get(from);
  if (stage === undefined) return [];
  const byEvents = stage.state.spec.completesByEvents === true;
  if (typeof on === "object" && !byEvents) {
    const message = `${from} completes with its completion tool and sends no events.`;
    return [{ severity: "error", rule: "event-row", message, suggestion: "write on: success", path: [...path, "on"] }];
  }
  if (on !== "success" || !byEvents) return [];
  const message = `${from} has no completion tool, so it completes by an event, not with success.`;
  const suggestion = "write on: { event: NAME }, or give the stage a completionTool and a completionSchema";
  return [{ severity: "error", rule: "event-row", message, suggestion, path: [...path, "on"] }];
}

/** What a condition of a row reads, as far as the schemas of the stages say it. */
function typesOf({ from, on = "success" }: RowFields, stages: Stages): CelTypes {
  const properties = Object.fromEntries([...stages].map(([name, { output = {} }]) => [name, output]));
  const upstream: JsonObject = { type: "object", properties, additionalProperties: false };
  const output = on === "success" ? stages.get(from)?.output : undefined;
  return { upstream, ...(output === undefined ? {} : { output }) };
}

interface Names {
  readonly stages: Stages;
  readonly finals: readonly string[];
}

/** The choice of a row; undefined if a target has no file. */
function choiceOf({ from, on = "success", to: target }: RowFields, names: Names): AnyChoice | undefined {
  const has = (name: string): boolean => names.stages.has(name) || names.finals.includes(name);
  if (typeof target === "string") {
    if (has(target)) return to(target);
    if (target === DONE) return { stages: [], execution: "sequential" };
    if (target === FAIL)
      return fail(`${from} ended with ${typeof on === "string" ? on : on.event}, which leads to fail`);
    return target === RETURN ? backToInterrupted() : undefined;
  }
  if ("fail" in target) return fail(target.fail);
  if ("state" in target) {
    const { state, input, context } = target;
    return has(state) ? to(state, input, context === undefined ? {} : { context }) : undefined;
  }
  const { parallel, join, onFailure } = target;
  if (![...parallel, join].every(has)) return undefined;
  return fanOut(parallel, { join, ...(onFailure === undefined ? {} : { onFailure }) });
}

interface Known {
  readonly source: SourceFile;
  readonly stages: Stages;
  readonly rows: readonly CompiledRow[];
}

/** Where a problem of the definition is in the folder. */
function locateProblem(problem: Problem, { source, stages, rows }: Known): ReturnType<WorkflowCompilation["locate"]> {
  const [first = "", ...rest] = stepsOf(problem.path);
  if (first === "stages") {
    const [name = "", ...inside] = rest;
    // A problem of the stage's place in the table is shown where the table names it first.
    const mention = inside.length === 0 ? firstMentions(source.value).find((one) => one.name === name) : undefined;
    if (mention !== undefined) return { path: mention.path };
    const path = ["stages", name, ...inside.map((step) => (step === "retryPolicy" ? "retries" : step))];
    const place = problem.place === undefined ? undefined : stages.get(String(name))?.originalPlace(problem.place);
    return { path, ...place };
  }
  if (first === "transitions") {
    const [index, ...inside] = rest;
    if (index === undefined) return { path: [first], what: "key" };
    const written = rows.filter(({ row }) => row !== undefined)[Number(index)]?.index ?? Number(index);
    return { path: [first, written, ...inside] };
  }
  return { path: [first, ...rest].filter((step) => step !== "") };
}

/** The steps of a path such as `stages.plan.allowedTools[0]`. */
function stepsOf(path: string): readonly (string | number)[] {
  return [...path.matchAll(/\[(\d+)\]|[^.[\]]+/gu)].map(([step, index]) =>
    index === undefined ? step : Number(index),
  );
}
