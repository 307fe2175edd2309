import { isDeepStrictEqual } from "node:util";
import {
  compileEnvelope,
  field,
  isJsonObject,
  type Json,
  type JsonObject,
  type PipelineParts,
  type PipelineSpec,
  parseAttemptStep,
  partChanges,
  pipelineParts,
  type RunDeps,
  type RunJournal,
  readEvents,
  redactText,
  SluiceError,
} from "@sluice/core";
import type { FileDigest, PipelineSource } from "./run-started.ts";

/** What somebody says who goes on with a run whose pipeline may be another by now. */
export interface ChangeOptions {
  /**
   * Goes on although the pipeline, or a tool its stages may call, is not the one the run was started with. What is recorded is
   * read back as it is; the record says who allowed it and what changed.
   */
  readonly allowChanged?: boolean;
  /** Who allows it, for the record. `api` when omitted. */
  readonly by?: string;
  /** Where the pipeline was found again, so that files that changed are told. Not compared when omitted. */
  readonly source?: PipelineSource;
}

/** What is other in a pipeline, and who allowed it where that had to be. */
export type AllowedChanges = { readonly by?: string; readonly changes: readonly string[] };

/**
 * Compares a pipeline with the one that a run last worked with, before anything is prepared for it; what is returned compares
 * the live tools. Each throws what is other, all at once, unless that is allowed: Validation `pipeline_changed` and
 * `tools_changed`. Throws Host `state_unknown` where the pipeline lacks a state that the run was in. Parts such as tool patterns
 * may hold what their author should not have written there: `clean` takes it out of what is said.
 */
export function comparePipeline(
  spec: PipelineSpec,
  runId: string,
  journals: readonly RunJournal[],
  { allowChanged = false, by = "api", source }: ChangeOptions,
  clean: (text: string) => string,
): (deps: Pick<RunDeps, "tools" | "builtins" | "secrets">) => AllowedChanges | undefined {
  const recorded = recordedPipeline(journals);
  const { changes: found, refused } = pipelineChanges(recorded, spec, source);
  const what = found.map(clean);
  if (refused && !allowChanged) throw pipelineChanged(spec, runId, what);
  // The same pipeline has the same states.
  if (refused) refuseGone(spec, runId, journals);
  return (deps) => {
    const tools = toolChanges(recorded, spec, deps);
    if (tools.length > 0 && !allowChanged) throw toolsChanged(runId, tools);
    // By now the keys of models and servers are known, too.
    const all = [...what, ...tools.map((tool) => `tool ${tool}`)].map(deps.secrets.text);
    if (all.length === 0) return undefined;
    return { ...(refused || tools.length > 0 ? { by } : {}), changes: all };
  };
}

/** What a run says of its pipeline, in `run.started` and where it goes on with another: what later ones are compared with. */
export function pipelineFacts(
  spec: PipelineSpec,
  parts: PipelineParts,
  source: PipelineSource | undefined,
  { tools, secrets }: Pick<RunDeps, "tools" | "secrets">,
): JsonObject {
  return {
    ...(source === undefined ? {} : { source }),
    fingerprint: spec.fingerprint,
    parts: secrets.json(parts),
    tools: [...tools.values()].map(({ name, schemaDigest }) => ({ name, digest: schemaDigest })),
  };
}

/** A pipeline's parts as events keep them: what was redacted must not look changed. */
export function partsInEvents(spec: PipelineSpec): PipelineParts {
  return pipelineParts(spec).map(({ state, facts }) => ({
    state,
    facts: facts.map(([name, value]) => [redactText(name), redactText(value)] as const),
  }));
}

/**
 * What a run said of the pipeline that it last worked with: in `run.started`, or where a changed one was allowed and left at
 * least one record of its own. One that could not go on over the journal is not the run's, and the one before still is.
 */
export function recordedPipeline(journals: readonly RunJournal[]): JsonObject {
  const [root] = journals;
  const worked = new Set<string>();
  for (const { records, parentId } of journals)
    for (const { phase, incarnation } of records)
      if (phase !== "lifecycle" || parentId !== undefined) worked.add(incarnation);
  let facts: JsonObject = {};
  for (const record of root?.records ?? []) {
    if (record.phase !== "lifecycle") continue;
    for (const { type, data } of readEvents(root?.runId ?? "", record)) {
      if (type === "run.started")
        facts = { ...data, ...(isJsonObject(data.originalPipeline) ? data.originalPipeline : {}) };
      // What another run went on with is in the past that was copied from it, and so is whether it worked with that.
      const changed = type === "run.forked" || worked.has(record.incarnation) ? data.changed : undefined;
      if (isJsonObject(changed)) facts = { ...facts, ...changed };
    }
  }
  return facts;
}

/** What a forked run says of the pipeline that its past begins with, where that is not its own. */
export function originalPipeline(past: readonly RunJournal[], now: JsonObject): JsonObject {
  const [root] = past;
  const [first] = root?.records ?? [];
  const events = root === undefined || first === undefined ? [] : readEvents(root.runId, first);
  const started = events.find(({ type }) => type === "run.started")?.data ?? {};
  const before = isJsonObject(started.originalPipeline) ? started.originalPipeline : started;
  const was: JsonObject = Object.fromEntries(
    Object.entries(before).filter(([name]) => ["source", "fingerprint", "parts", "tools"].includes(name)),
  );
  return isDeepStrictEqual(was, now) ? {} : { originalPipeline: was };
}

/** What is other in words, and whether a run goes on with it only when somebody allows that: where only files are, it does. */
export function pipelineChanges(
  recorded: JsonObject,
  spec: PipelineSpec,
  source: PipelineSource | undefined,
): { readonly changes: readonly string[]; readonly refused: boolean } {
  const refused = recorded.fingerprint !== spec.fingerprint;
  const files = source === undefined ? [] : fileChanges(recorded.source, source);
  return { changes: [...(refused ? changedParts(recorded, spec) : []), ...files], refused };
}

function changedParts(recorded: JsonObject, spec: PipelineSpec): readonly string[] {
  const parts = partChanges(recorded.parts, partsInEvents(spec));
  if (parts === undefined)
    return ["states, routes, envelopes, schemas or prompts (this run's record does not say which)"];
  return parts.length > 0 ? parts : ["something that this run's record does not tell apart"];
}

function pipelineChanged({ id }: PipelineSpec, runId: string, what: readonly string[]): SluiceError {
  const message = [
    `pipeline ${id} is not what run ${runId} was started with:`,
    ...what.map((change) => `  ${change}`),
    "bring the old one back, or go on with this one: allowChanged (--allow-changed)",
  ].join("\n");
  return new SluiceError("Validation", "pipeline_changed", message, { detail: { changes: [...what] } });
}

/**
 * The tools that the pipeline's stages may call and that are not those the run was started with. Those that come with Sluice
 * are left out: they change with its version only, and what they did is read back.
 */
function toolChanges(
  recorded: JsonObject,
  spec: PipelineSpec,
  { tools, builtins }: Pick<RunDeps, "tools" | "builtins">,
): readonly string[] {
  const matters = (name: string): boolean => !builtins.has(name) && mayCall(spec, name);
  // What cannot be compared is not taken to be the same.
  if (!Array.isArray(recorded.tools))
    return [...tools.keys()].filter(matters).map((name) => `${name} was not recorded`);
  return recorded.tools.flatMap((was: Json) => {
    const name = textAt(was, "name");
    if (!matters(name)) return [];
    const tool = tools.get(name);
    if (tool === undefined) return [`${name} is gone`];
    return tool.schemaDigest === field(was, "digest") ? [] : [`${name} is another`];
  });
}

function toolsChanged(runId: string, changed: readonly string[]): SluiceError {
  const message = `tools of run ${runId} were changed since it started: ${changed.join(", ")}; bring the old ones back, or go on with these: allowChanged (--allow-changed)`;
  return new SluiceError("Validation", "tools_changed", message, { detail: { tools: [...changed] } });
}

function mayCall({ states }: PipelineSpec, tool: string): boolean {
  return [...states.values()].some(({ allowedTools }) => {
    const envelope = compileEnvelope(allowedTools);
    return envelope === undefined || envelope.rulesFor(tool).length > 0;
  });
}

/**
 * A run that was in a state which is not there any more cannot be read back: what it did there has no place in the pipeline.
 */
function refuseGone(spec: PipelineSpec, runId: string, journals: readonly RunJournal[]): void {
  const been = new Set(
    journals.flatMap(({ records }) => records.flatMap(({ stepId }) => parseAttemptStep(stepId)?.state ?? [])),
  );
  const gone = [...been].filter((state) => !spec.states.has(state));
  if (gone.length === 0) return;
  throw new SluiceError(
    "Host",
    "state_unknown",
    `run ${runId} was in ${gone.join(", ")}, which pipeline ${spec.id} does not have any more; bring that back, and the run can go on`,
    { detail: { states: gone } },
  );
}

/** The fingerprint knows no bodies of functions: that a file is another is all there is to say of them. */
function fileChanges(before: Json | undefined, now: PipelineSource): readonly string[] {
  const config = "config" in now ? now.config : undefined;
  return [
    ...changedFiles("file", field(before, "files"), now.kind === "file" ? now.files : []),
    ...changedFiles("config", field(field(before, "config"), "files"), config?.files ?? []),
  ];
}

function changedFiles(what: string, before: Json | undefined, now: readonly FileDigest[]): readonly string[] {
  const was = new Map(
    (Array.isArray(before) ? before : []).map((one: Json) => [textAt(one, "file"), textAt(one, "digest")]),
  );
  const is = new Map(now.map(({ file, digest }) => [file, digest]));
  return [...new Set([...was.keys(), ...is.keys()])].flatMap((file) => {
    const [old, own] = [was.get(file), is.get(file)];
    if (old === own) return [];
    if (old === undefined) return [`${what} ${file} is new`];
    return [
      own === undefined
        ? `${what} ${file} is gone`
        : `${what} ${file} was changed (what its functions do is not compared)`,
    ];
  });
}

function textAt(value: Json, key: string): string {
  const found = field(value, key);
  return typeof found === "string" ? found : "";
}
