import {
  field,
  isJsonObject,
  type Json,
  type JsonObject,
  type PipelineSpec,
  type RunJournal,
  SluiceError,
} from "@sluice/core";
import { readEvents } from "@sluice/core/host";
import {
  isLifecycle,
  isSameJson,
  type PipelineParts,
  parseStoredJson,
  partChanges,
  pipelineParts,
  type RunDeps,
  redactText,
  type SecretFilter,
  textField,
} from "@sluice/core/runtime";
import { mayCall } from "../agent/agent-spec.ts";
import { parseAgentStep } from "../agent/agent-steps.ts";
import { refuseRemovedStates } from "./removed-states.ts";
import { type FileDigest, type PipelineSource, startedIn } from "./run-started.ts";

/** Options for resuming with a pipeline that may have changed. */
export interface ChangeOptions {
  /**
   * Continues although the pipeline, or a tool that its stages may call, has changed since the run was started. Recorded steps
   * are read back unchanged; the journal records the changes and who allowed them.
   */
  readonly allowChanged?: boolean;
  /** Who allows the changes, for the journal; default `api`. */
  readonly by?: string;
  /** Where the pipeline was loaded from, to report changed files. Files are not compared without it. */
  readonly source?: PipelineSource;
}

/** The changes in a pipeline, and who allowed them if that was required. */
export type AllowedChanges = { readonly by?: string; readonly changes: readonly string[] };

/**
 * Compares a pipeline with the one that the run last used, before anything is prepared, and then the live tools. Unless
 * changes are allowed, both throw Validation `pipeline_changed` and `tools_changed`, which list all changes.
 * Throws Host `state_unknown` if the pipeline lacks a state that the run has entered. `clean` masks secrets in the reported
 * changes, such as those in tool patterns.
 */
export function comparePipeline(
  spec: PipelineSpec,
  runId: string,
  journals: readonly RunJournal[],
  { allowChanged = false, by = "api", source }: ChangeOptions,
  clean: (text: string) => string,
): PipelineComparison {
  const recorded = recordedPipeline(journals);
  const { changes: found, refused } = pipelineChanges(recorded, spec, source);
  const what = found.map(clean);
  if (refused && !allowChanged) throw pipelineChanged(spec, runId, what);
  if (refused) refuseRemovedStates(spec, runId, journals);
  const withTools: PipelineComparison["withTools"] = (deps) => {
    const tools = toolChanges(recorded, spec, journals, deps);
    if (tools.length > 0 && !allowChanged) throw toolsChanged(runId, tools);
    // The keys of models and servers are known only now.
    const all = [...what, ...tools.map((tool) => `tool ${tool}`)].map(deps.secrets.text);
    if (all.length === 0) return undefined;
    return { ...(refused || tools.length > 0 ? { by: deps.secrets.text(by) } : {}), changes: all };
  };
  return { recorded, withTools };
}

export interface PipelineComparison {
  /** The facts of the pipeline that the run last used. */
  readonly recorded: JsonObject;
  /** Compares the live tools. Returns the allowed changes, if there are any. */
  withTools(deps: Pick<RunDeps, "tools" | "builtins" | "secrets">): AllowedChanges | undefined;
}

/** What a run records of its pipeline at its start and when it continues with a changed one, for later comparisons. */
export function pipelineFacts(
  spec: PipelineSpec,
  { tools, builtins }: Pick<RunDeps, "tools" | "builtins">,
  secrets: SecretFilter,
): JsonObject {
  return {
    fingerprint: spec.fingerprint,
    parts: secrets.json(partsInEvents(spec)),
    tools: [...tools.values()].map(({ name, schemaDigest, effect }) => ({
      name,
      digest: schemaDigest,
      ...(builtins.has(name) ? {} : { effect }),
    })),
  };
}

/** A pipeline's parts redacted as in events, so that redacted values do not look changed. */
function partsInEvents(spec: PipelineSpec): PipelineParts {
  return pipelineParts(spec).map(({ state, facts }) => ({
    state,
    facts: facts.map(([name, value]) => [redactText(name), redactText(value)] as const),
  }));
}

/**
 * The recorded facts of the pipeline that the run last used: those of `run.started`, or of a change that was allowed and left at
 * least one further record. A changed pipeline that failed to continue the journal does not count.
 */
export function recordedPipeline(journals: readonly RunJournal[]): JsonObject {
  const [root] = journals;
  const continued = new Set<string>();
  for (const { records, parentId } of journals)
    for (const record of records) if (!isLifecycle(record) || parentId !== undefined) continued.add(record.incarnation);
  let facts: JsonObject = {};
  for (const record of root?.records ?? []) {
    if (!isLifecycle(record)) continue;
    for (const { type, data } of readEvents(root?.runId ?? "", record)) {
      if (type === "run.started")
        facts = { ...data, ...(isJsonObject(data.originalPipeline) ? data.originalPipeline : {}) };
      // A fork copies the records of its original run, including those of its changed pipelines.
      const changed = type === "run.forked" || continued.has(record.incarnation) ? data.changed : undefined;
      if (isJsonObject(changed)) facts = { ...facts, ...changed, tools: withGone(toolsIn(facts), toolsIn(changed)) };
      const { tools } = data;
      const isAdded = type === "run.forked" || (type === "run.resumed" && continued.has(record.incarnation));
      if (!isAdded || !Array.isArray(tools)) continue;
      facts = { ...facts, tools: withAdded(toolsIn(facts), tools) };
    }
  }
  return facts;
}

/** The facts of the tools that a process brings to a run, as far as the run has not recorded them. */
export function addedTools(recorded: JsonObject, now: JsonObject): JsonObject {
  const known = byName(toolsIn(recorded));
  const tools = toolsIn(now).filter((tool) => {
    const was = known.get(textAt(tool, "name"));
    const effect = textAt(was ?? null, "effect");
    return (
      was === undefined ||
      field(was, "isGone") === true ||
      field(was, "digest") !== field(tool, "digest") ||
      !["", textAt(tool, "effect")].includes(effect)
    );
  });
  return tools.length === 0 ? {} : { tools };
}

/** The recorded tools with those that a later process brought. One that changed without mattering counts as it is then. */
function withAdded(recorded: readonly Json[], added: readonly Json[]): readonly Json[] {
  const tools = byName(recorded);
  for (const tool of added) {
    if (!isJsonObject(tool)) continue;
    const name = textAt(tool, "name");
    const was = tools.get(name);
    tools.set(name, was === undefined || field(was, "isLater") === true ? { ...tool, isLater: true } : tool);
  }
  return [...tools.values()];
}

/** The tools of an allowed change, and those that are missing in it: one that returns has to be what it was. */
function withGone(recorded: readonly Json[], now: readonly Json[]): readonly Json[] {
  const tools = byName(now);
  const gone = recorded.filter(isJsonObject).filter((tool) => !tools.has(textAt(tool, "name")));
  return [...now, ...gone.map((tool) => ({ ...tool, isGone: true }))];
}

function byName(tools: readonly Json[]): Map<string, Json> {
  return new Map(tools.map((tool) => [textAt(tool, "name"), tool]));
}

function toolsIn({ tools }: JsonObject): readonly Json[] {
  return Array.isArray(tools) ? tools : [];
}

/** The facts of the pipeline that the copied records of a fork begin with, if it is not the fork's own. */
export function originalPipeline(past: readonly RunJournal[], now: JsonObject): JsonObject {
  const started = startedIn(past)?.data ?? {};
  const before = isJsonObject(started.originalPipeline) ? started.originalPipeline : started;
  const was: JsonObject = Object.fromEntries(
    Object.entries(before).filter(([name]) => ["source", "fingerprint", "parts", "tools"].includes(name)),
  );
  return isSameJson(was, now) ? {} : { originalPipeline: was };
}

/** Readable changes, and whether resuming needs `allowChanged`: changed files alone do not. */
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
    return ["states, routes, envelopes, schemas or prompts (this run's journal does not record which)"];
  return parts.length > 0 ? parts : ["a part that this run's journal does not record separately"];
}

function pipelineChanged({ id }: PipelineSpec, runId: string, what: readonly string[]): SluiceError {
  const message = [
    `pipeline ${id} differs from the one that run ${runId} was started with:`,
    ...what.map((change) => `  ${change}`),
    "restore the old pipeline, or continue with this one: allowChanged (--allow-changed)",
  ].join("\n");
  return new SluiceError("Validation", "pipeline_changed", message, { detail: { changes: [...what] } });
}

/**
 * Changes of tools that the pipeline's stages may call, or that a call was allowed of or asked about: by a person, or in a pipeline that
 * was made during the run. Built-in tools are not compared: they change only with Sluice's version.
 */
function toolChanges(
  recorded: JsonObject,
  spec: PipelineSpec,
  journals: readonly RunJournal[],
  { tools, builtins }: Pick<RunDeps, "tools" | "builtins">,
): readonly string[] {
  let called: ReadonlySet<string> | undefined;
  const matters = (name: string, isLater = false): boolean => {
    // One that came later matters once a model has called it, since the run can continue without it.
    if (!isLater && mayCall(spec, name, ["*"])) return true;
    called ??= new Set([...calledTools(journals), ...toolsOfLastReplies(journals)]);
    return called.has(name);
  };
  // Tools that cannot be compared count as changed.
  if (!Array.isArray(recorded.tools))
    return [...tools.keys()]
      .filter((name) => !builtins.has(name) && matters(name))
      .map((name) => `${name} was not recorded`);
  return recorded.tools.flatMap((was: Json) => {
    const name = textAt(was, "name");
    const tool = tools.get(name);
    // Of tools that are not built in. Runs of earlier versions did not record it.
    const effect = textAt(was, "effect");
    if ((builtins.has(name) && effect === "") || !matters(name, field(was, "isLater") === true)) return [];
    if (tool === undefined) return field(was, "isGone") === true ? [] : [`${name} is missing`];
    if (effect !== "" && effect !== tool.effect) return [`${name} has the effect ${tool.effect} instead of ${effect}`];
    return tool.schemaDigest === field(was, "digest") ? [] : [`${name} has a different schema`];
  });
}

/** The events of a record that decides about calls. */
const DECIDES_CALL = /"type":"(?:grant\.requested|call\.decided)"/;

/** The tools of recorded calls that were allowed or asked about: each was a call of the tool as it was then. */
function calledTools(journals: readonly RunJournal[]): readonly string[] {
  const events = journals.flatMap(({ runId, records }) =>
    records.flatMap((record) => (DECIDES_CALL.test(record.events) ? readEvents(runId, record) : [])),
  );
  return events.flatMap(({ type, data }) => {
    if (type === "grant.requested") return [textAt(data.body ?? null, "tool")];
    return type === "call.decided" && data.verdict === "approved" ? [textAt(data, "tool")] : [];
  });
}

/** The tools of calls that may not be decided yet. */
function toolsOfLastReplies(journals: readonly RunJournal[]): readonly string[] {
  return journals.flatMap(({ records }) => {
    const last = records.findLast(({ phase, stepId }) => phase === "done" && parseAgentStep(stepId)?.kind === "model");
    const read = last === undefined ? undefined : parseStoredJson(last.value);
    const content = read?.ok === true ? field(field(read.value, "reply"), "content") : undefined;
    return Array.isArray(content) ? content.map((part: Json) => textAt(part, "toolName")) : [];
  });
}

function toolsChanged(runId: string, changed: readonly string[]): SluiceError {
  const message = `tools have changed since run ${runId} was started: ${changed.join(", ")}; restore the old tools, or continue with these: allowChanged (--allow-changed)`;
  return new SluiceError("Validation", "tools_changed", message, { detail: { tools: [...changed] } });
}

/** The fingerprint does not cover function bodies, so only the changed files can be reported. */
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
    const [before, after] = [was.get(file), is.get(file)];
    if (before === after) return [];
    if (before === undefined) return [`${what} ${file} was added`];
    return [
      after === undefined
        ? `${what} ${file} was removed`
        : `${what} ${file} was changed (function bodies are not compared)`,
    ];
  });
}

function textAt(value: Json, key: string): string {
  return textField(value, key) ?? "";
}
