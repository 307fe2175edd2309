// A pipeline as a Statewright document, if one can say all that it is.

import type { AnyPipeline, JsonObject, PipelineSpec, Problem } from "@sluice/core";
import { compilePipeline } from "@sluice/core/host";
import { compileSchema, createReport, partChanges, pipelineParts, type Report } from "@sluice/core/runtime";
import type { PropertySource } from "../check/properties/property.ts";
import { pathWords } from "../diagnostic.ts";
import type { WorkflowMeta, WorkflowReading } from "../format.ts";
import { runInput } from "../format.ts";
import { idsFor, workflowIdsFor } from "../read/names.ts";
import { readSource } from "../read/source.ts";
import { readStatewright } from "./statewright.ts";
import { type DocumentNames, writeRows } from "./write-rows.ts";
import { stateName, writeState } from "./write-state.ts";

export interface WriteStatewrightOptions {
  /**
   * What the document writes for each pipeline that it invokes, by the pipeline's key: a name of the project or a relative path.
   * Default: the key.
   */
  readonly references?: Readonly<Record<string, string>>;
  /** Facts for people and reports, in place of those of the pipeline. */
  readonly meta?: WorkflowMeta;
  /** What has to hold on every path. It is proven when the document is loaded, not here. */
  readonly properties?: readonly PropertySource[];
}

/** A document, or why there is none. */
export type WrittenWorkflow =
  | { readonly text: string }
  /** Their paths are those of the definition, such as `stages.plan.prompt` or `transitions[3].when`. */
  | { readonly problems: readonly Problem[] };

/**
 * Writes a pipeline as a Statewright document in JSON. Loading the text gives a pipeline of the same fingerprint; where no document
 * says what a part of the pipeline does, such as a function, that part is a problem. Names of pipelines, branches and interrupts that
 * are not ids are not part of a pipeline, so their ids are written.
 */
export function writeStatewright(pipeline: AnyPipeline, options: WriteStatewrightOptions = {}): WrittenWorkflow {
  const { spec } = pipeline;
  const report = createReport();
  checkPipelineFields(report, spec);
  if (spec.orchestrator !== undefined) return { problems: report.problems };
  const names: DocumentNames = { states: stateNames(spec), references: referencesOf(report, spec, options) };
  const { transitions, guards } = writeRows(report, spec, names);
  const states = [...spec.states].map(([id, state]) => {
    const path = `stages.${id}`;
    const name = names.states.get(id) ?? id;
    return [name, { ...writeState(report, path, { id, name, state }, names), ...transitions.get(id) }] as const;
  });
  if (report.problems.length > 0) return { problems: report.problems };
  const interrupts = spec.interrupts.map(({ name, files, target }) => [
    name,
    { trigger: { file_pattern: files }, target: names.states.get(target) ?? target },
  ]);
  const document: JsonObject = {
    id: spec.id,
    initial: names.states.get(spec.initial) ?? spec.initial,
    ...(Object.keys(spec.context).length === 0 ? {} : { context: spec.context }),
    states: Object.fromEntries(states),
    ...(guards.size === 0 ? {} : { guards: Object.fromEntries(guards) }),
    ...(interrupts.length === 0 ? {} : { interrupts: Object.fromEntries(interrupts) }),
    ...writeProperties(options.properties),
    ...writeMeta({ ...spec.meta, ...options.meta }),
  };
  const text = `${JSON.stringify(document, null, 2)}\n`;
  const problems = readAgain(text, spec, names.references);
  return problems.length === 0 ? { text } : { problems };
}

/** What a document has no field for. */
function checkPipelineFields(report: Report, { input, limits, onCall, orchestrator }: PipelineSpec): void {
  if (input.digest !== compileSchema(runInput, "input").digest)
    report.add("input", "is not the input of a document", "use runInput of @sluice/workflows");
  for (const [name, value] of Object.entries(limits))
    if (value !== undefined) report.add(`limits.${name}`, "is a limit of runs, for which documents have no field");
  if (onCall !== undefined) report.add("onCall", "is a function");
  if (orchestrator !== undefined) report.add("orchestrator", "chooses what follows, which is not written");
}

/** The names of states by id: the ones that their document gave them if all of them lead to the same ids again, else the ids. */
function stateNames({ states }: PipelineSpec): ReadonlyMap<string, string> {
  const ids = new Map([...states].map(([id, state]) => [stateName(id, state), id]));
  const again = idsFor(Object.keys(Object.fromEntries(ids)));
  const areSame = ids.size === states.size && [...ids].every(([name, id]) => again.get(name) === id);
  return new Map(areSame ? [...ids].map(([name, id]) => [id, name]) : [...states.keys()].map((id) => [id, id]));
}

function referencesOf(
  report: Report,
  { pipelines }: PipelineSpec,
  { references = {} }: WriteStatewrightOptions,
): ReadonlyMap<string, string> {
  for (const key of Object.keys(references))
    if (!pipelines.has(key)) report.add(`references.${key}`, "is not a pipeline that this one invokes");
  return new Map(
    [...pipelines.keys()].map((key) => [key, Object.hasOwn(references, key) ? (references[key] ?? key) : key]),
  );
}

function writeProperties(properties: readonly PropertySource[] = []): JsonObject {
  const written = properties.map((property) => (typeof property === "string" ? property : { ...property }));
  return written.length === 0 ? {} : { properties: written };
}

function writeMeta({ dangerLevel, captureOutput, onFinal }: WorkflowMeta): JsonObject {
  const fields = {
    ...(dangerLevel === undefined ? {} : { danger_level: dangerLevel }),
    ...(captureOutput === undefined ? {} : { capture_output: captureOutput }),
    ...(onFinal === undefined ? {} : { on_final: onFinal }),
  };
  return Object.keys(fields).length === 0 ? {} : { meta: fields };
}

/** Why the text is not a document of this pipeline. What no other check has found must not pass as the same workflow. */
function readAgain(text: string, spec: PipelineSpec, references: ReadonlyMap<string, string>): readonly Problem[] {
  const { source, diagnostics } = readSource(`${spec.id}.json`, text);
  if (source === undefined) return diagnostics.map(({ message, path }) => ({ path, message: predicate(message) }));
  const reading = readStatewright(source);
  const { workflows, problems: odd } = workflowsOf(reading, spec, references);
  const { definition, findings } = reading.compile(workflows);
  const errors = [...reading.findings, ...findings].filter(({ severity }) => severity === "error");
  if (errors.length > 0 || definition === undefined)
    return errors.map(({ path, message }) => ({ path: pathWords(path), message: predicate(message) }));
  if (odd.length > 0) return odd;
  const { spec: again, problems } = compilePipeline(definition);
  if (problems.length > 0) return problems;
  if (again.fingerprint === spec.fingerprint) return [];
  const changes = partChanges(pipelineParts(spec), pipelineParts(again)) ?? [];
  return [{ path: "", message: `a document says something else: ${changes.join("; ") || "its parts differ"}` }];
}

/** The invoked pipelines by what the document writes for them, in its order, which decides about their keys. */
function workflowsOf(
  reading: WorkflowReading,
  { pipelines }: PipelineSpec,
  references: ReadonlyMap<string, string>,
): { readonly workflows: ReadonlyMap<string, AnyPipeline>; readonly problems: readonly Problem[] } {
  const written = new Set(reading.references.map(({ name }) => name));
  const keys = workflowIdsFor(written);
  const workflows = new Map<string, AnyPipeline>();
  const problems: Problem[] = [];
  for (const name of written) {
    const child = pipelines.get(keys.get(name) ?? name);
    if (child !== undefined) workflows.set(name, { id: child.id, spec: child });
  }
  for (const [key, name] of references) {
    if (!written.has(name)) problems.push({ path: `pipelines.${key}`, message: "is not invoked" });
    else if (keys.get(name) !== key)
      problems.push({
        path: `references.${key}`,
        message: `${JSON.stringify(name)} gives the pipeline another key`,
        suggestion: `write a name or a path whose letters are ${key}`,
      });
  }
  return { workflows, problems };
}

/** A sentence of a diagnostic as what a problem says of its path. */
function predicate(message: string): string {
  return `cannot be written: ${message.replace(/\.$/u, "")}`;
}
