// Statewright documents: https://statewright.ai/workflow-schema.json as pipelines of stages that complete by events.

import {
  type AnyChoice,
  type AnyPipeline,
  type AnyState,
  backToInterrupted,
  fork,
  type Guard,
  invoke,
  isJsonObject,
  type Problem,
  to,
} from "@sluice/core";
import type { PipelineDefinition } from "@sluice/core/host";
import type { DocumentPath } from "../diagnostic.ts";
import { allOf, operatorGuard } from "../expressions/guard.ts";
import {
  type FindingAt,
  runInput,
  type WorkflowCompilation,
  type WorkflowFormat,
  type WorkflowMeta,
  type WorkflowReading,
  type WorkflowReference,
} from "../format.ts";
import { RETURN } from "../kinds/ends.ts";
import { orchestratorOf, orchestratorPath } from "../kinds/orchestrator.ts";
import { idFor, idsFor, workflowIdsFor } from "../read/names.ts";
import { type Finding, readShape } from "../read/shape.ts";
import type { SourceFile } from "../read/source.ts";
import { fullTemplates } from "../read/template.ts";
import { checkStatewright, withEnds } from "./check.ts";
import { type Edge, edgesOf, kindOf } from "./edges.ts";
import { partialSchema, type StatewrightDocument, statewrightSchema } from "./schema.ts";
import { type CompiledState, compileState, type DocumentScope } from "./stages.ts";

/** The format of documents with `states` and an `initial` one. */
export const statewright: WorkflowFormat = {
  name: "statewright",
  recognizes: (document) => isJsonObject(document) && ("states" in document || "initial" in document),
  read: readStatewright,
};

export function readStatewright(source: SourceFile): WorkflowReading {
  const shape = readShape(statewrightSchema, partialSchema, source.value);
  const document = withEnds(shape.value ?? {}, source.value);
  const states = compileStates(document);
  const findings = [
    ...checkStatewright(document, source.value),
    ...[...states.values()].flatMap((state) => state.findings),
  ];
  const located = (finding: Finding): Finding => ({ ...finding, path: shape.locate(finding.path) });
  return {
    id: idFor(document.id ?? "workflow"),
    findings: [...shape.findings, ...findings.map(located)],
    references: referencesOf(document).map((reference) => ({ ...reference, path: shape.locate(reference.path) })),
    properties: (document.properties ?? []).map((source, index) => ({
      source,
      path: shape.locate(["properties", index]),
    })),
    ...metaOf(document),
    compile: (workflows) => {
      const compilation = compile(document, states, workflows);
      const locate: WorkflowCompilation["locate"] = (problem) => {
        const at = compilation.locate(problem);
        return { ...at, path: shape.locate(at.path) };
      };
      return { ...compilation, findings: compilation.findings.map(located), locate };
    },
  };
}

function metaOf({ meta }: StatewrightDocument): { readonly meta?: WorkflowMeta } {
  if (meta === undefined) return {};
  const { danger_level, capture_output, on_final } = meta;
  return {
    meta: {
      ...(danger_level === undefined ? {} : { dangerLevel: danger_level }),
      ...(capture_output === undefined ? {} : { captureOutput: capture_output }),
      ...(on_final === undefined ? {} : { onFinal: on_final }),
    },
  };
}

function compileStates(document: StatewrightDocument): ReadonlyMap<string, CompiledState & { readonly id: string }> {
  const { states = {} } = document;
  const ids = idsFor(Object.keys(states));
  const keys = workflowIdsFor(new Set(referencesOf(document).map(({ name }) => name)));
  const known: DocumentScope = {
    stateId: (name) => ids.get(name),
    pipelineKey: (name) => keys.get(name) ?? name,
    isOrchestrated: document.orchestrator !== undefined,
  };
  return new Map(
    Object.entries(states).map(([name, state]) => {
      const id = ids.get(name) ?? name;
      return [name, { ...compileState(name, id, state, known), id }];
    }),
  );
}

function allEdges({ states = {} }: StatewrightDocument): readonly (readonly [state: string, edge: Edge])[] {
  return Object.entries(states).flatMap(([name, state]) => edgesOf(name, state).map((edge) => [name, edge] as const));
}

function referencesOf(document: StatewrightDocument): readonly WorkflowReference[] {
  const invoked = allEdges(document).flatMap(([, edge]) => {
    const name = invokedBy(edge);
    return name === undefined ? [] : [{ name, path: [...edge.path, "invoke"] }];
  });
  const run = Object.entries(document.states ?? {}).flatMap(([state, fields]) => {
    const kind = kindOf(fields);
    const path = ["states", state, "pipeline", "workflow"];
    return kind?.kind === "pipeline" ? [{ name: kind.fields.workflow, path }] : [];
  });
  return [...invoked, ...run];
}

/** The workflow that a transition runs first, as the document writes it. */
function invokedBy({ action }: Edge): string | undefined {
  return typeof action === "object" && "invoke" in action ? action.invoke : undefined;
}

type States = ReturnType<typeof compileStates>;
type Row = NonNullable<PipelineDefinition["transitions"]>[number];

function compile(
  document: StatewrightDocument,
  states: States,
  workflows: ReadonlyMap<string, AnyPipeline>,
): WorkflowCompilation {
  const { id = "workflow", initial, context = {}, interrupts = {} } = document;
  const guards = guardsOf(document, "context");
  const resultGuards = guardsOf(document, "result");
  const pipelineIds = workflowIdsFor(workflows.keys());
  const stateId = (name: string): string => states.get(name)?.id ?? name;
  const rows: { readonly row: Row; readonly edge: Edge }[] = [];
  for (const [name, edge] of allEdges(document)) {
    const own = typeof edge.on === "string" ? resultGuards : guards;
    const row = rowOf(states.get(name)?.id ?? name, edge, { states, guards: own, pipelineIds });
    if (row !== undefined) rows.push({ row, edge });
  }
  const interruptIds = idsFor(Object.keys(interrupts));
  const stages: Record<string, AnyState> = {};
  for (const compiled of states.values()) stages[compiled.id] = compiled.state;
  const definition: PipelineDefinition = {
    id: idFor(id),
    input: runInput,
    stages,
    initial: states.get(initial ?? "")?.id ?? "",
    context,
    ...(document.orchestrator === undefined
      ? { transitions: rows.map(({ row }) => row) }
      : { orchestrator: orchestratorOf(document.orchestrator, { template: fullTemplates, stateId }) }),
    ...(Object.keys(interrupts).length === 0
      ? {}
      : {
          interrupts: Object.fromEntries(
            Object.entries(interrupts).map(([name, { trigger, target }]) => [
              interruptIds.get(name) ?? name,
              { files: trigger.file_pattern, target: states.get(target)?.id ?? target },
            ]),
          ),
        }),
    pipelines: Object.fromEntries([...workflows].map(([name, pipeline]) => [pipelineIds.get(name) ?? name, pipeline])),
    ...metaOf(document),
  };
  const locate = (problem: Problem): FindingAt =>
    locateProblem(problem, {
      states,
      rows: rows.map(({ edge }) => edge),
      interrupts: new Map([...interruptIds].map(([name, interruptId]) => [interruptId, name])),
      pipelines: new Map([...pipelineIds].map(([name, pipelineId]) => [pipelineId, name])),
      references: referencesOf(document),
    });
  return { definition, findings: [], locate };
}

/** The guards by name. Those of a transition that no event starts may read what the state gave. */
function guardsOf(document: StatewrightDocument, reads: "context" | "result"): ReadonlyMap<string, Guard> {
  return new Map(
    Object.entries(document.guards ?? {}).map(([name, { field, op, value }]) => [
      name,
      operatorGuard(name, { field, op, ...(value === undefined ? {} : { value }) }, reads),
    ]),
  );
}

interface Parts {
  readonly states: States;
  readonly guards: ReadonlyMap<string, Guard>;
  /** The ids of invoked pipelines by what the document writes. */
  readonly pipelineIds: ReadonlyMap<string, string>;
}

/** The row of an edge; undefined if it names something that is not there, which was reported. */
function rowOf(from: string, edge: Edge, parts: Parts): Row | undefined {
  const choice = choiceOf(edge, parts);
  const guards = edge.guards.map(({ name }) => parts.guards.get(name));
  const known = guards.filter((guard) => guard !== undefined);
  if (choice === undefined || known.length < guards.length) return undefined;
  return {
    from,
    on: edge.on,
    to: choice,
    label: edge.label,
    ...(known.length === 0 ? {} : { when: allOf(known) }),
    ...(edge.approval === undefined ? {} : { approval: edge.approval }),
  };
}

function choiceOf({ event, action }: Edge, { states, pipelineIds }: Parts): AnyChoice | undefined {
  const idOf = (name: string): string | undefined => states.get(name)?.id;
  if (typeof action === "string" || "target" in action) {
    const target = typeof action === "string" ? action : action.target;
    if (target === RETURN) return backToInterrupted();
    const id = idOf(target);
    return id === undefined ? undefined : to(id);
  }
  const { on_complete, on_fail } = "invoke" in action ? action : action.fork;
  const onComplete = idOf(on_complete);
  const onFail = on_fail === undefined ? undefined : idOf(on_fail);
  if (onComplete === undefined || (on_fail !== undefined && onFail === undefined)) return undefined;
  const after = { onComplete, ...(onFail === undefined ? {} : { onFail }) };
  if ("invoke" in action) {
    const pipeline = pipelineIds.get(action.invoke);
    if (pipeline === undefined) return undefined;
    const input = action.input === undefined ? {} : { input: action.input };
    return invoke(pipeline, { key: idFor(event), ...after, ...input });
  }
  const keys = idsFor(Object.keys(action.fork.branches));
  const branches: Record<string, { initial: string; terminal: string }> = {};
  for (const [key, branch] of Object.entries(action.fork.branches)) {
    const initial = idOf(branch.initial);
    const terminal = idOf(branch.terminal);
    if (initial === undefined || terminal === undefined) return undefined;
    branches[keys.get(key) ?? key] = { initial, terminal };
  }
  return fork(branches, { ...(action.fork.join === undefined ? {} : { join: action.fork.join }), ...after });
}

/** Where the parts of a definition are in the document. */
function locateProblem(
  problem: Problem,
  known: {
    readonly states: States;
    readonly rows: readonly Edge[];
    readonly interrupts: ReadonlyMap<string, string>;
    readonly pipelines: ReadonlyMap<string, string>;
    readonly references: readonly WorkflowReference[];
  },
): FindingAt {
  const { path } = problem;
  const [, stateId, inState = ""] = /^stages\.([\w-]+)(?:\.(.*))?$/su.exec(path) ?? [];
  for (const compiled of known.states.values())
    if (compiled.id === stateId) return compiled.locate({ ...problem, path: inState });
  const [, index, inRow = ""] = /^transitions\[(\d+)\](.*)$/su.exec(path) ?? [];
  const edge = index === undefined ? undefined : known.rows[Number(index)];
  const [guard] = edge?.guards ?? [];
  if (guard !== undefined && inRow === ".when") return { path: guard.path };
  if (edge !== undefined) return { path: edge.path, what: inRow.startsWith(".on") ? "key" : "value" };
  const [, interruptId = "", inInterrupt = ""] = /^interrupts\.([\w-]+)(?:\.(.*))?$/su.exec(path) ?? [];
  const interrupt = known.interrupts.get(interruptId);
  if (interrupt !== undefined) return { path: interruptPath(interrupt, inInterrupt) };
  const [, pipelineId = ""] = /^pipelines\.([\w-]+)$/su.exec(path) ?? [];
  const reference = known.references.find(({ name }) => name === known.pipelines.get(pipelineId));
  if (pipelineId !== "" && reference !== undefined) return { path: reference.path };
  const orchestrator = orchestratorPath(path);
  if (orchestrator !== undefined) return { path: orchestrator };
  const [field = ""] = path.split(".");
  if (field === "interrupts") return { path: [field], what: "key" };
  return field === "initial" || field === "context" || field === "id"
    ? { path: [field] }
    : { path: ["states"], what: "key" };
}

function interruptPath(name: string, field: string): DocumentPath {
  const path = ["interrupts", name];
  if (field === "files") return [...path, "trigger", "file_pattern"];
  return field === "target" ? [...path, "target"] : path;
}
