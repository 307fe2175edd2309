// The one way from a workflow file to a pipeline, whatever its format.

import { dirname, extname, isAbsolute, join, normalize } from "node:path";
import type { AnyPipeline, Pipeline, PipelineSpec, Problem } from "@sluice/core";
import { compilePipeline, type PipelineDefinition } from "@sluice/core/host";
import { checkSession, messageOf, sha256, statesWithin } from "@sluice/core/runtime";
import { providerOptionProblems } from "@sluice/stages/runtime";
import { checkWorkflow } from "./check/lint/check-workflow.ts";
import { propertyFindings } from "./check/properties/in-documents.ts";
import type { PropertySource } from "./check/properties/property.ts";
import type { Diagnostic } from "./diagnostic.ts";
import { flujo } from "./flujo/flujo.ts";
import type {
  FilesBeside,
  WorkflowFormat,
  WorkflowInput,
  WorkflowMeta,
  WorkflowReading,
  WorkflowReference,
} from "./format.ts";
import { markdown } from "./markdown/markdown.ts";
import { diskFiles, type WorkflowFiles } from "./read/files.ts";
import { problemFindings } from "./read/problem-finding.ts";
import type { Finding } from "./read/shape.ts";
import { readSource } from "./read/source.ts";
import { aboutFile, diagnosticsOf } from "./report/diagnostics.ts";
import { statewright } from "./statewright/statewright.ts";

export interface LoadWorkflowOptions extends Partial<WorkflowFiles> {
  /** The path of the workflow that has a name in the project; undefined if none has. Default: no names are known. */
  find?(name: string): Promise<string | undefined>;
  /** The names of the session's tools. With them, a listed tool that does not exist is an error. */
  readonly tools?: readonly string[];
}

export interface LoadedWorkflow {
  /** The id of its pipeline. */
  readonly id: string;
  /** Absent if there are errors. */
  readonly pipeline?: Pipeline<WorkflowInput, unknown>;
  /** The mistakes of all its files, file by file, each in the order of the text. */
  readonly diagnostics: readonly Diagnostic[];
  /** Every file that was read, the workflow's own first. */
  readonly files: readonly LoadedFile[];
  /** Absent if the file is of no known format. */
  readonly format?: WorkflowFormat["name"];
  readonly meta?: WorkflowMeta;
  /** What has to hold on every path, as its document has it. Absent if there is nothing. */
  readonly properties?: readonly PropertySource[];
}

export interface LoadedFile {
  readonly path: string;
  /** SHA-256 of its text. */
  readonly digest: string;
  readonly text: string;
}

/** The first that recognizes a document reads it: the last one takes whatever has states. */
const FORMATS: readonly WorkflowFormat[] = [flujo, markdown, statewright];
/** The documents of workflows that are folders. */
const FOLDER_ENTRIES = ["pipeline.yaml", "pipeline.yml", "pipeline.json"];
/** Workflows inside each other. */
const MAX_DEPTH = 8;
/** Files that one workflow may consist of. */
const MAX_FILES = 64;

/**
 * Loads a workflow: a Statewright document, a Flujo state machine or a folder of stages, by its content, with the workflows that
 * it invokes. Mistakes are diagnostics, never errors that are thrown.
 */
export async function loadWorkflow(path: string, options: LoadWorkflowOptions = {}): Promise<LoadedWorkflow> {
  const loading: Loading = {
    options: { ...diskFiles, ...options },
    files: new Map(),
    diagnostics: [],
    done: new Map(),
  };
  const loaded = await loadFile(loading, normalize(path), []);
  const { diagnostics } = loading;
  return {
    id: loaded.id,
    ...(loaded.pipeline === undefined ? {} : { pipeline: loaded.pipeline }),
    diagnostics,
    files: [...loading.files.values()],
    ...(loaded.format === undefined ? {} : { format: loaded.format }),
    ...(loaded.meta === undefined ? {} : { meta: loaded.meta }),
    ...(loaded.properties === undefined ? {} : { properties: loaded.properties }),
  };
}

interface Loading {
  readonly options: LoadWorkflowOptions & WorkflowFiles;
  readonly files: Map<string, LoadedFile>;
  readonly diagnostics: Diagnostic[];
  readonly done: Map<string, Loaded>;
}
interface Loaded {
  readonly id: string;
  readonly pipeline?: Pipeline<WorkflowInput, unknown>;
  readonly format?: WorkflowFormat["name"];
  readonly meta?: WorkflowMeta;
  readonly properties?: readonly PropertySource[];
}

/** Loads one file. `above` has the files that are being loaded, outermost first. */
async function loadFile(loading: Loading, path: string, above: readonly string[]): Promise<Loaded> {
  const known = loading.done.get(path);
  if (known !== undefined) return known;
  const loaded = await readWorkflow(loading, path, above);
  loading.done.set(path, loaded);
  return loaded;
}

async function readWorkflow(loading: Loading, path: string, above: readonly string[]): Promise<Loaded> {
  const nothing: Loaded = { id: path };
  const opened = await openDocument(loading, path);
  if ("fault" in opened) {
    loading.diagnostics.push(aboutFile(path, "file-missing", opened.fault));
    return nothing;
  }
  const { source, diagnostics } = readSource(opened.path, opened.text);
  if (source === undefined) {
    loading.diagnostics.push(...diagnostics);
    return nothing;
  }
  const format = FORMATS.find((candidate) => candidate.recognizes(source.value));
  if (format === undefined) {
    loading.diagnostics.push(aboutFile(opened.path, "unknown-format", "The document is not a workflow.", FORMAT_HINT));
    return nothing;
  }
  const reading = await format.read(source, filesBeside(loading, opened.path));
  const found = [...reading.findings];
  const position = loading.diagnostics.length;
  const workflows = await loadReferences(loading, reading, opened.path, above, found);
  const compilation = reading.compile(workflows.pipelines);
  found.push(...compilation.findings);
  const isSound = !workflows.broken && !found.some(({ severity }) => severity === "error");
  const { definition } = compilation;
  const tail = isSound && definition !== undefined ? compileTail(definition, loading.options.tools) : undefined;
  found.push(...problemFindings(tail?.problems, (problem) => compilation.locate(problem)));
  let broken = false;
  if (tail?.problems.length === 0) {
    const { tools } = loading.options;
    const unproven = [
      ...propertyFindings(tail.pipeline.spec, reading.properties ?? [], tools),
      ...invokedFindings(tail.pipeline.spec, workflows.loaded, tools),
    ];
    broken = unproven.some(({ severity }) => severity === "error");
    found.push(...unproven);
    for (const { path: at, ...finding } of checkWorkflow(tail.pipeline.spec))
      found.push({ ...finding, ...compilation.locate({ path: at, message: finding.message }) });
  }
  const properties = (reading.properties ?? []).map((property) => property.source);
  // The mistakes of a file come before those of the files that it invokes.
  loading.diagnostics.splice(position, 0, ...diagnosticsOf(source, found));
  return {
    id: reading.id,
    format: format.name,
    ...(reading.meta === undefined ? {} : { meta: reading.meta }),
    ...(properties.length === 0 ? {} : { properties }),
    ...(tail === undefined || tail.problems.length > 0 || broken ? {} : { pipeline: tail.pipeline }),
  };
}

const FORMAT_HINT =
  'a Statewright document has "states" and "initial", a Flujo state machine has "kind: StateMachine", and a folder of stages has a pipeline.yaml';

/** Reads the document at a path: the file, or the one in the folder. */
async function openDocument(
  loading: Loading,
  path: string,
): Promise<{ readonly path: string; readonly text: string } | { readonly fault: string }> {
  try {
    const names = await loading.options.list(path);
    const entry = names === undefined ? undefined : FOLDER_ENTRIES.find((name) => names.includes(name));
    if (names !== undefined && entry === undefined) return { fault: "The folder has no pipeline.yaml." };
    const file = entry === undefined ? path : join(path, entry);
    return { path: file, text: await readFile(loading, file) };
  } catch (thrown) {
    return { fault: `The file cannot be read: ${messageOf(thrown)}.` };
  }
}

/** The text of a file, which is read once. */
async function readFile({ options, files }: Loading, path: string): Promise<string> {
  const known = files.get(path);
  if (known !== undefined) return known.text;
  if (files.size >= MAX_FILES) throw new Error(`the workflow has more than ${MAX_FILES} files`);
  const text = await options.read(path);
  files.set(path, { path, digest: sha256(text), text });
  return text;
}

function filesBeside(loading: Loading, path: string): FilesBeside {
  const folder = dirname(path);
  return {
    list: async () => (await loading.options.list(folder)) ?? [],
    read: async (relative) => {
      const file = join(folder, relative);
      return { file, text: await readFile(loading, file) };
    },
  };
}

/** Loads the workflows that a document invokes. What is not found is added to `found`. */
async function loadReferences(
  loading: Loading,
  { references }: WorkflowReading,
  path: string,
  above: readonly string[],
  found: Finding[],
): Promise<{
  readonly pipelines: ReadonlyMap<string, AnyPipeline>;
  readonly loaded: readonly LoadedReference[];
  readonly broken: boolean;
}> {
  const pipelines = new Map<string, AnyPipeline>();
  const loaded: LoadedReference[] = [];
  const chain = [...above, path];
  let broken = false;
  for (const reference of references) {
    const target = await resolveReference(loading, reference, path);
    const fault = target === undefined ? unknownReference(reference, path) : await chainFault(loading, target, chain);
    const from = reference.source === undefined ? {} : { source: reference.source };
    if (fault !== undefined) found.push({ severity: "error", path: reference.path, ...from, ...fault });
    if (target === undefined || fault !== undefined) continue;
    const { pipeline, properties = [] } = await loadFile(loading, target, chain);
    if (pipeline === undefined) broken = true;
    else {
      pipelines.set(reference.name, pipeline);
      loaded.push({ reference, pipeline, properties });
    }
  }
  return { pipelines, loaded, broken };
}

/** A workflow that a document invokes. */
interface LoadedReference {
  readonly reference: WorkflowReference;
  readonly pipeline: AnyPipeline;
  readonly properties: readonly PropertySource[];
}

/** The properties of invoked workflows that do not hold with the input that they get: it is merged into their first context. */
function invokedFindings(
  { routes, pipelines }: PipelineSpec,
  loaded: readonly LoadedReference[],
  tools: readonly string[] | undefined,
): readonly Finding[] {
  if (routes.kind !== "table") return [];
  return routes.rows.flatMap(({ to }): readonly Finding[] => {
    if (!("kind" in to) || to.kind !== "invoke" || to.input === undefined) return [];
    const invoked = pipelines.get(to.pipeline);
    const found = loaded.find(({ pipeline }) => pipeline.spec === invoked);
    if (invoked === undefined || found === undefined) return [];
    const { reference, properties } = found;
    const spec = { ...invoked, context: { ...invoked.context, ...to.input } };
    const named = properties.map((source) => ({ source, path: reference.path }));
    return propertyFindings(spec, named, tools).map((finding) => ({
      ...finding,
      message: `In ${JSON.stringify(reference.name)} with this input: ${finding.message}`,
    }));
  });
}

type Fault = Pick<Finding, "rule" | "message" | "suggestion">;

async function resolveReference(
  { options }: Loading,
  { name }: WorkflowReference,
  path: string,
): Promise<string | undefined> {
  if (isAbsolute(name)) return undefined;
  if (name.includes("/") || /\.(?:json|ya?ml)$/u.test(name)) return join(dirname(path), name);
  const found = await options.find?.(name);
  return found === undefined ? undefined : normalize(found);
}

function unknownReference({ name }: WorkflowReference, path: string): Fault {
  const message = `No workflow of the project is called ${JSON.stringify(name)}.`;
  const suggestion = `for a file beside this one, write its path, such as ${JSON.stringify(`./${name}${extname(path) || ".yaml"}`)}`;
  return { rule: "invoke-unknown", message, suggestion };
}

/** Why a workflow cannot be invoked here: it does not exist, is being loaded, or is too deep. */
async function chainFault(loading: Loading, target: string, chain: readonly string[]): Promise<Fault | undefined> {
  const opened = loading.done.has(target) ? undefined : await openDocument(loading, target);
  if (opened !== undefined && "fault" in opened)
    return { rule: "invoke-unknown", message: `There is no workflow at ${target}. ${opened.fault}` };
  if (chain.includes(opened?.path ?? target)) {
    const message = `The workflow invokes itself: ${[...chain.slice(chain.indexOf(opened?.path ?? target)), target].join(" → ")}.`;
    return { rule: "invoke-cycle", message };
  }
  if (chain.length < MAX_DEPTH) return undefined;
  return { rule: "invoke-cycle", message: `Workflows invoke each other more than ${MAX_DEPTH} levels deep.` };
}

/** What every format ends with: the definition as a pipeline, and its problems. */
function compileTail(
  definition: PipelineDefinition,
  tools: readonly string[] | undefined,
): { readonly pipeline: Pipeline<WorkflowInput, unknown>; readonly problems: readonly Problem[] } {
  const { spec, problems } = compilePipeline(definition);
  const kinds = new Set(statesWithin(spec).map(({ kind }) => kind));
  const live = tools === undefined || problems.length > 0 ? [] : checkSession(spec, { tools, kinds: [...kinds] });
  const refused = problems.length > 0 ? [] : providerOptionProblems(spec);
  return { pipeline: { id: spec.id, spec }, problems: [...problems, ...refused, ...live] };
}
