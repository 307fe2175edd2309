// A folder of Markdown stages with a pipeline.yaml, as a pipeline with a table of transitions.

import {
  type AnyChoice,
  type AnyState,
  backToInterrupted,
  fail,
  fanOut,
  field,
  final,
  isJsonObject,
  type JsonObject,
  type Problem,
  to,
} from "@sluice/core";
import type { PipelineDefinition } from "@sluice/core/host";
import type { DocumentPath } from "../diagnostic.ts";
import { type CelGuard, celGuard } from "../expressions/cel-guard.ts";
import { type CelTypes, celVariable, eventVariable } from "../expressions/variables.ts";
import {
  type FilesBeside,
  type FindingAt,
  runInput,
  type WorkflowCompilation,
  type WorkflowFormat,
  type WorkflowReading,
  type WorkflowReference,
} from "../format.ts";
import { RETURN } from "../kinds/ends.ts";
import { onlyGiven } from "../kinds/fields.ts";
import { orchestratorOf, orchestratorPath } from "../kinds/orchestrator.ts";
import { idFor, workflowIdsFor } from "../read/names.ts";
import { type Finding, readShape } from "../read/shape.ts";
import type { SourceFile } from "../read/source.ts";
import { fullTemplates } from "../read/template.ts";
import { type FolderFields, folderFields, partialFolder, type RowFields } from "./fields.ts";
import { DONE, endNames, FAIL, firstMentions, type Mention, readStages, targetsOfRouter } from "./folder.ts";
import { compileKindStage, kindNamed } from "./kind-stage.ts";
import { type CompiledStage, compileStage, describesObject, objectSchema } from "./stages.ts";

/** The format of a folder with pipeline.yaml and a Markdown file for each stage. */
export const markdown: WorkflowFormat = {
  name: "markdown",
  recognizes: (document) =>
    isJsonObject(document) &&
    ("transitions" in document || ("orchestrator" in document && "stages" in document)) &&
    !("states" in document) &&
    !("kind" in document),
  read,
};

async function read(source: SourceFile, beside: FilesBeside): Promise<WorkflowReading> {
  const files = await readStages(firstMentions(source.value), endNames(source.value), beside);
  const { mentions } = files;
  const shape = readShape(folderFields, partialFolder, source.value);
  const folder: FolderFields = shape.value ?? {};
  const references = referencesOf(files.stages);
  const keys = workflowIdsFor(new Set(references.map(({ name }) => name)));
  const compileFile = (name: string, file: SourceFile): CompiledStage => {
    const kind = kindNamed(file.value);
    if (kind === undefined) return compileStage(name, file);
    return compileKindStage(name, kind, file, (workflow) => keys.get(workflow) ?? workflow);
  };
  const stages = new Map([...files.stages].map(([name, file]) => [name, compileFile(name, file)]));
  const rows = (folder.transitions ?? []).map((row, index) => compileRow(row, index, stages, finalsOf(folder)));
  const located = (finding: Finding): Finding => ({ ...finding, path: shape.locate(finding.path) });
  const own = [...rows.flatMap(({ findings }) => findings), ...folderFindings(folder)];
  return {
    id: idFor(folder.id ?? "pipeline"),
    findings: [
      ...shape.findings,
      ...files.findings,
      ...[...stages.values()].flatMap(({ findings }) => findings),
      ...[...files.stages.values()].flatMap((file) => endTargets(file, finalsOf(folder))),
      ...own.map(located),
    ],
    references,
    properties: (folder.properties ?? []).map((source, index) => ({
      source,
      path: shape.locate(["properties", index]),
    })),
    compile: (workflows): WorkflowCompilation => ({
      definition: {
        ...definitionOf(folder, stages, rows),
        pipelines: Object.fromEntries([...workflows].map(([name, pipeline]) => [keys.get(name) ?? name, pipeline])),
      },
      findings: [],
      locate: (problem) => locateProblem(problem, { mentions, stages, rows, locate: shape.locate }),
    }),
  };
}

/** The workflows that stages run. */
function referencesOf(files: ReadonlyMap<string, SourceFile>): readonly WorkflowReference[] {
  return [...files.values()].flatMap((source) => {
    const workflow = kindNamed(source.value) === "pipeline" ? field(source.value, "workflow") : undefined;
    return typeof workflow === "string" && workflow !== "" ? [{ name: workflow, path: ["workflow"], source }] : [];
  });
}

/** The targets of a router that only transitions can have. */
function endTargets(file: SourceFile, finals: readonly string[]): readonly Finding[] {
  return targetsOfRouter(file).flatMap(({ name, path, source }): readonly Finding[] => {
    if (![DONE, FAIL, RETURN, "*"].includes(name) || finals.includes(name)) return [];
    const message = `A router chooses among states, and ${JSON.stringify(name)} is not a state.`;
    const suggestion = name === DONE || name === FAIL ? `list ${name} under final, with its outcome` : undefined;
    const from = source === undefined ? {} : { source };
    return [{ severity: "error", rule: "unknown-target", message, suggestion, path, ...from }];
  });
}

type Stages = ReadonlyMap<string, CompiledStage>;
type Row = NonNullable<PipelineDefinition["transitions"]>[number];
interface CompiledRow {
  /** Absent if the row names something that is not there, which was reported. */
  readonly row?: Row;
  readonly index: number;
  readonly findings: readonly Finding[];
}

function folderFindings({ input, orchestrator, transitions, stages }: FolderFields): readonly Finding[] {
  const found: Finding[] = [];
  const error = (rule: string, field: string, message: string, suggestion: string): void => {
    found.push({ severity: "error", rule, message, suggestion, path: [field], what: "key" });
  };
  if (input !== undefined && !describesObject(input))
    error("wrong-type", "input", "The input of a run must be an object.", "write type: object");
  if (orchestrator !== undefined && transitions !== undefined)
    error("no-effect", "transitions", "The orchestrator chooses what follows every stage.", "remove one of the two");
  if (orchestrator === undefined && stages !== undefined)
    error("no-effect", "stages", "The transitions name the stages.", 'remove it, or write "orchestrator"');
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
    ...(folder.orchestrator === undefined
      ? { transitions: rows.flatMap(({ row }) => (row === undefined ? [] : [row])) }
      : { orchestrator: orchestratorOf(folder.orchestrator, { template: fullTemplates, stateId: (name) => name }) }),
    ...(folder.context === undefined ? {} : { context: folder.context }),
    ...(limits === undefined ? {} : { limits: onlyGiven(limits) }),
    ...(interrupts === undefined ? {} : { interrupts }),
  };
}

function compileRow(fields: RowFields, index: number, stages: Stages, finals: readonly string[]): CompiledRow {
  const { from, on = "success", when, approval, label } = fields;
  const path = ["transitions", index];
  const guard =
    when === undefined
      ? undefined
      : celGuard(when, typesOf(fields, stages), typeof on === "string" ? celVariable : eventVariable);
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
      suggestion,
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
    const how = stage.state.kind === "agent" ? "with its completion tool" : "by itself";
    const message = `${from} completes ${how} and sends no events.`;
    return [{ severity: "error", rule: "event-row", message, suggestion: "write on: success", path: [...path, "on"] }];
  }
  if (on !== "success" || !byEvents || stage.output !== undefined) return [];
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
  readonly mentions: readonly Mention[];
  readonly stages: Stages;
  readonly rows: readonly CompiledRow[];
  locate(path: DocumentPath): DocumentPath;
}

/** Where a problem of the definition is in the folder. */
function locateProblem(problem: Problem, { mentions, stages, rows, locate }: Known): FindingAt {
  const [first = "", ...rest] = stepsOf(problem.path);
  if (first === "stages") {
    const [name = "", ...inside] = rest;
    const stage = stages.get(String(name));
    if (stage !== undefined && inside.length > 0) return stage.locate(problem, inside);
    // A problem of the stage's place in the table is shown where the table names it first.
    const mention = mentions.find((one) => one.name === name);
    if (mention === undefined) return { path: ["transitions"] };
    return { path: mention.path, ...(mention.source === undefined ? {} : { source: mention.source }) };
  }
  const orchestrator = orchestratorPath(problem.path);
  if (orchestrator !== undefined) return { path: locate(orchestrator) };
  if (first !== "transitions") return { path: locate([first, ...rest]) };
  const [index, ...inside] = rest;
  if (index === undefined) return { path: [first], what: "key" };
  const written = rows.filter(({ row }) => row !== undefined)[Number(index)]?.index ?? Number(index);
  return { path: locate([first, written, ...inside]) };
}

/** The steps of a path such as `stages.plan.allowedTools[0]`. */
function stepsOf(path: string): readonly (string | number)[] {
  return [...path.matchAll(/\[(\d+)\]|[^.[\]]+/gu)].map(([step, index]) =>
    index === undefined ? step : Number(index),
  );
}
