// Flujo's state machines, and files that are lists of its steps, as pipelines.

import type { AnyPipeline, Problem, RunLimits } from "@sluice/core";
import type { PipelineDefinition } from "@sluice/core/host";
import type { FindingAt, WorkflowCompilation, WorkflowFormat, WorkflowReading, WorkflowReference } from "../format.ts";
import { onlyGiven } from "../kinds/fields.ts";
import { idFor } from "../read/names.ts";
import type { Finding } from "../read/shape.ts";
import type { SourceFile } from "../read/source.ts";
import { compileMachine } from "./machine.ts";
import { type FlujoDocument, type FlujoMachine, type FlujoStep, isFlujo, readDocument } from "./read-document.ts";
import type { RunCaps } from "./schema.ts";

/** The format of documents with `kind: StateMachine` or `steps`. */
export const flujo: WorkflowFormat = { name: "flujo", recognizes: isFlujo, read };

function read(source: SourceFile): WorkflowReading {
  const document = readDocument(source.value);
  const { body } = document;
  const name = document.name ?? ("machine" in body ? body.machine.name : undefined) ?? nameOfFile(source.file);
  const references = Object.entries(document.fields.imports ?? {}).map(
    ([alias, path]): WorkflowReference => ({ name: relative(path), path: document.at("imports", alias) }),
  );
  return {
    id: idFor(name),
    findings: document.findings,
    references,
    properties: (document.fields.properties ?? []).map((source, index) => ({
      source,
      path: document.at("properties", index),
    })),
    compile: (workflows) => compileDocument(document, idFor(name), workflows),
  };
}

function nameOfFile(file: string): string {
  const name = file.slice(file.lastIndexOf("/") + 1).replace(/\.\w+$/u, "");
  return name === "" ? "workflow" : name;
}

/** The path of an import, which may be written without folders. */
function relative(path: string): string {
  return path.includes("/") ? path : `./${path}`;
}

function compileDocument(
  document: FlujoDocument,
  id: string,
  workflows: ReadonlyMap<string, AnyPipeline>,
): WorkflowCompilation {
  const imports = new Map<string, AnyPipeline>();
  for (const [alias, path] of Object.entries(document.fields.imports ?? {})) {
    const workflow = workflows.get(relative(path));
    if (workflow !== undefined) imports.set(alias, workflow);
  }
  const { body } = document;
  const machine = "machine" in body ? body.machine : sequence(document, body.steps);
  const { context, limits, orchestrator } = document.fields;
  const compiled = compileMachine({ document, imports }, machine, id, "machine" in body ? orchestrator : undefined);
  const misplaced = orchestrator !== undefined && !("machine" in body) ? [orchestratorOfSteps(document)] : [];
  const definition: PipelineDefinition = {
    ...compiled.definition,
    ...(context === undefined ? {} : { context }),
    ...(limits === undefined ? {} : { limits: runLimits(limits) }),
  };
  return {
    definition,
    findings: [...misplaced, ...compiled.findings],
    locate: (problem) => locateField(document, problem) ?? compiled.locate(problem),
  };
}

/** Steps follow each other, so there is nothing to choose. */
function orchestratorOfSteps(document: FlujoDocument): Finding {
  const message = "Steps run in order, so an orchestrator has nothing to choose.";
  const suggestion = "write kind: StateMachine, with states";
  return { severity: "error", rule: "no-effect", message, suggestion, path: document.at("orchestrator"), what: "key" };
}

function runLimits({ max_hops, max_visits, max_tokens, max_cost_usd, timeout_s }: RunCaps): RunLimits {
  return onlyGiven({
    maxHops: max_hops,
    maxVisits: max_visits,
    maxTokens: max_tokens,
    maxCostUsd: max_cost_usd,
    timeoutMs: timeout_s === undefined ? undefined : timeout_s * 1000,
  });
}

function locateField(document: FlujoDocument, { path }: Problem): FindingAt | undefined {
  const [name = ""] = path.split(".");
  if (name === "context" || name === "limits") return { path: document.at(name) };
  return name === "id" ? { path: document.at("name") } : undefined;
}

/** A list of steps as a machine: each step is a state, which leads to the next. */
function sequence(document: FlujoDocument, steps: readonly FlujoStep[]): FlujoMachine {
  const end = freeName(
    "done",
    steps.map(({ name }) => name),
  );
  const names = [...steps.map(({ name }) => name), end];
  const part = { path: document.at("steps"), at: (): readonly (string | number)[] => document.at("steps") };
  return {
    name: document.name,
    start: names[0],
    ends: [{ name: end, path: part.path }],
    states: new Map(steps.map((step) => [step.name, { name: step.name, steps: [step], path: step.path, at: step.at }])),
    names: new Set(names),
    transitions: steps.map(({ name }, index) => ({ from: name, on: "success", to: names[index + 1] ?? end })),
    ...part,
  };
}

function freeName(wanted: string, taken: readonly string[]): string {
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? wanted : `${wanted}-${number}`;
    if (!taken.includes(name)) return name;
  }
}
