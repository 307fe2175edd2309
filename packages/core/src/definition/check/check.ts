import type { Problem } from "../../base/errors.ts";
import { createReport, type Report, suggestOneOf } from "../../base/problems.ts";
import { verdictNow } from "../../schema/compile-schema.ts";
import { unknownRequired } from "../../schema/schema-path.ts";
import { type ChoiceShape, declaredTargets, parseChoice, type SiblingShape } from "../choice.ts";
import { edgesOf, isRowOf, pipelinesWithin, type Reachability, reach } from "../graph.ts";
import { matchesName } from "../patterns/tool-pattern.ts";
import { type PipelineDefinition, readDefinition } from "../read.ts";
import type { PipelineSpec, RouteChooser, RouteFallback, RowSpec, StateSpec } from "../spec.ts";
import { pathText } from "../template.ts";
import { childKeys, templateFault } from "./templates.ts";

/** All problems of a definition that are certain without running it; empty if it can run. */
export function checkPipeline(definition: PipelineDefinition | PipelineSpec): readonly Problem[] {
  if ("states" in definition) return checkSpec(definition);
  const { spec, problems } = readDefinition(definition);
  return [...problems, ...checkSpec(spec)];
}

/** The parts of a session that a pipeline depends on. */
export interface LiveSession {
  /** Names of the session's tools. */
  readonly tools: readonly string[];
  /** Kinds of state that have an executor. */
  readonly kinds: readonly string[];
}

/** The problems that prevent a pipeline from running in this session. */
export function checkSession(spec: PipelineSpec, live: LiveSession): readonly Problem[] {
  const report = createReport();
  for (const [id, state] of spec.states) {
    if (state.final !== undefined) continue;
    if (!live.kinds.includes(state.kind)) {
      report.add(
        `stages.${id}`,
        `this session has no executor for states of kind ${state.kind}`,
        suggestOneOf(state.kind, live.kinds),
      );
    }
    for (const [index, pattern] of (state.patterns ?? []).entries()) {
      if (pattern.optional === true || live.tools.some((tool) => matchesName(pattern, tool))) continue;
      const name = pattern.text.replace(/\(.*$/s, "");
      const hint = suggestOneOf(name, live.tools) ?? "this session has no tools";
      const path = `stages.${id}.allowedTools[${index}]`;
      report.add(
        path,
        `${pattern.text} matches no tool of this session`,
        `${hint}; or { tool: "${pattern.text}", optional: true }`,
      );
    }
    const { completionTool, ownTools = [] } = state;
    for (const name of [...(completionTool === undefined ? [] : [completionTool]), ...ownTools]) {
      if (!live.tools.includes(name)) continue;
      const hint = state.completesByEvents ? "rename the session's tool" : "choose another name";
      report.add(`stages.${id}.completionTool`, `${name} is also a tool of this session`, hint);
    }
  }
  for (const [name, invoked] of spec.pipelines) report.include(`pipelines.${name}`, checkSession(invoked, live));
  for (const [id, { owns = [] }] of spec.states)
    for (const own of owns) report.include(`stages.${id}`, checkSession(own, live));
  return report.problems;
}

function checkSpec(spec: PipelineSpec): readonly Problem[] {
  const report = createReport();
  for (const [id, state] of spec.states) {
    report.include(`stages.${id}`, state.problems ?? []);
    checkTemplates(report, spec, id, state);
    checkReads(report, spec, id, state);
    checkEvents(report, spec, id, state);
    checkRuns(report, spec, id, state);
  }
  requireState(report, spec, "initial", spec.initial);
  if (spec.states.get(spec.initial)?.final !== undefined)
    report.add("initial", `${spec.initial} is a final state, which does not run`, "start in a state that works");
  checkInitialInput(report, spec);
  for (const [id, { chooses }] of spec.states) if (chooses !== undefined) checkChooser(report, spec, id, chooses);
  if (spec.routes.kind === "table")
    for (const [index, row] of spec.routes.rows.entries()) checkRow(report, spec, row, `transitions[${index}]`);
  else checkRoutes(report, spec);
  checkInterrupts(report, spec);
  checkPipelines(report, spec);
  checkReach(report, spec, reach(spec));
  return report.problems;
}

/** Where a definition has a state; its orchestrator is not one of its stages. */
function pathOf({ orchestrator }: PipelineSpec, id: string): string {
  return id === orchestrator ? "orchestrator" : `stages.${id}`;
}

/** Reports template paths that cannot exist in any run. */
function checkTemplates(report: Report, spec: PipelineSpec, id: string, state: StateSpec): void {
  for (const [option, references] of Object.entries(state.templates ?? {})) {
    for (const { path, place } of references) {
      const fault = templateFault(spec, state, path);
      if (fault === undefined) continue;
      const message = `{{${pathText(path)}}} leads nowhere: ${fault.message}`;
      report.add(`${pathOf(spec, id)}.${option}`, message, fault.suggestion, place);
    }
  }
}

/** Reports states that a state says it reads and that no output has the name of. Functions may fork with any keys. */
function checkReads(report: Report, spec: PipelineSpec, id: string, { reads = [] }: StateSpec): void {
  if (spec.routes.kind !== "table") return;
  for (const name of reads) {
    if (spec.states.has(name) || childKeys(spec).has(name)) continue;
    const hint = suggestOneOf(name, spec.states.keys()) ?? "name a state of the pipeline";
    report.add(`stages.${id}.reads`, `there is no state ${JSON.stringify(name)}`, hint);
  }
}

/** Reports pipelines that a state runs and its pipeline does not have. */
function checkRuns(report: Report, { pipelines }: PipelineSpec, id: string, { runs = [] }: StateSpec): void {
  for (const { pipeline, spec } of runs) {
    const known = pipelines.get(pipeline);
    const path = `stages.${id}.pipeline`;
    if (known === undefined) {
      const message = `there is no pipeline ${JSON.stringify(String(pipeline).slice(0, 80))}`;
      report.add(path, message, suggestOneOf(String(pipeline), pipelines.keys()) ?? "add it to pipelines");
    } else if (spec !== undefined && spec !== known) {
      report.add(path, `the pipeline ${pipeline} of pipelines is not the one of the state`, "use the same one in both");
    }
  }
}

/** What is wrong with one row of a table. */
function checkRow(report: Report, spec: PipelineSpec, row: RowSpec, path: string): void {
  checkFrom(report, spec, row, path);
  const reading = parseChoice(row.to, spec.states, null, spec.limits.maxItems);
  if (!reading.ok) {
    report.add(`${path}.to`, reading.reason);
    return;
  }
  const { shape } = reading;
  if (row.on === "pause") {
    checkPause(report, spec, shape, path);
    return;
  }
  if (shape.kind === "invoke" && !spec.pipelines.has(shape.pipeline)) {
    const message = `there is no pipeline ${JSON.stringify(shape.pipeline.slice(0, 80))}`;
    report.add(`${path}.to`, message, suggestOneOf(shape.pipeline, spec.pipelines.keys()) ?? "add it to pipelines");
  }
  // Made when the row applies, and checked then.
  if (row.input !== undefined) return;
  for (const { state, input } of entriesOf(shape)) {
    const schema = spec.states.get(state)?.inputSchema;
    const verdict = schema && verdictNow(schema, input);
    if (verdict === undefined || verdict.ok) continue;
    const issues = verdict.issues.map((issue) => `${issue.path} ${issue.message}`).join("; ");
    report.add(`${path}.to`, `its input does not fit the inputSchema of ${state}: ${issues}`, `to("${state}", …)`);
  }
}

function checkFrom(report: Report, spec: PipelineSpec, { from, on }: RowSpec, path: string): void {
  if (from === "*") return;
  const state = spec.states.get(from);
  if (state === undefined) {
    const message = `there is no state ${JSON.stringify(String(from))}`;
    report.add(`${path}.from`, message, suggestOneOf(String(from), spec.states.keys()));
  } else if (state.final !== undefined) {
    report.add(`${path}.from`, `${from} is a final state, which no row leaves`);
  } else if (typeof on !== "string" && state.completesByEvents !== true) {
    const how = state.completionTool === undefined ? "its output" : state.completionTool;
    report.add(
      `${path}.on`,
      `${from} completes with ${how}, so it sends no events`,
      "leave out its completionTool, or route its success",
    );
  }
}

/** The answer is the input of one state. */
function checkPause(report: Report, spec: PipelineSpec, shape: ChoiceShape, path: string): void {
  if (shape.kind !== "to" || spec.states.get(shape.state)?.final !== undefined)
    report.add(`${path}.to`, "a pause must lead to a state that works with the answer", "name such a state");
}

/** A state that chooses names states that exist, and nothing else routes its success. */
function checkChooser(report: Report, spec: PipelineSpec, id: string, { targets, fallback }: RouteChooser): void {
  const path = pathOf(spec, id);
  if (targets.length === 0) report.add(`${path}.targets`, "names no state", "list the states that may follow");
  for (const [index, target] of targets.entries()) {
    requireState(report, spec, `${path}.targets[${index}]`, target);
    if (target === id) report.add(`${path}.targets[${index}]`, `${id} cannot choose itself`);
    if (targets.indexOf(target) !== index) report.add(`${path}.targets[${index}]`, `${target} is listed twice`);
  }
  if (fallback !== undefined) checkFallback(report, spec, `${path}.fallback`, fallback);
  const { routes } = spec;
  if (routes.kind === "functions" && routes.next.get(id)?.completed !== undefined)
    report.add(`next.${id}`, `${id} itself chooses what follows`, "route only failed and skipped");
  if (routes.kind !== "table") return;
  for (const [index, { from, on }] of routes.rows.entries())
    if (from === id && on === "success")
      report.add(`transitions[${index}].on`, `${id} itself chooses what follows`, "route only its failure");
}

function checkFallback(report: Report, spec: PipelineSpec, path: string, { to, input }: RouteFallback): void {
  requireState(report, spec, `${path}.to`, to);
  const schema = spec.states.get(to)?.inputSchema;
  const verdict = schema && verdictNow(schema, input);
  // A schema that answers later is asked when the fallback is taken.
  if (verdict === undefined || verdict.ok) return;
  const issues = verdict.issues.map((issue) => `${issue.path} ${issue.message}`).join("; ");
  report.add(`${path}.input`, `it does not fit the inputSchema of ${to}: ${issues}`);
}

/** The states that a choice enters, each with its input. */
function entriesOf(shape: ChoiceShape): readonly SiblingShape[] {
  switch (shape.kind) {
    case "to":
      return [shape];
    case "fanOut":
      return [...shape.siblings, { state: shape.join, input: shape.input }];
    case "fork":
    case "invoke": {
      const branches = shape.kind === "fork" ? shape.branches : [];
      return [
        ...branches.map(({ initial: state, input }) => ({ state, input })),
        { state: shape.onComplete, input: shape.kind === "fork" ? shape.input : undefined },
        ...(shape.onFail === undefined ? [] : [{ state: shape.onFail, input: undefined }]),
      ];
    }
    default:
      return [];
  }
}

/** A state without a completion tool has to have a row for an event. */
function checkEvents(report: Report, spec: PipelineSpec, id: string, state: StateSpec): void {
  if (state.completesByEvents !== true) return;
  const { routes } = spec;
  if (routes.kind === "table" && routes.rows.some((row) => typeof row.on !== "string" && isRowOf(row, id))) return;
  report.add(
    `stages.${id}`,
    "has neither a completionTool nor a row for an event, so it cannot complete",
    routes.kind === "table"
      ? `add a completionTool, or a row { from: "${id}", on: { event: "NAME" }, to: … }`
      : "add a completionTool; only a table of transitions has rows for events",
  );
}

/** What the handler of an interrupt gets as its input. */
const INTERRUPT_INPUT = {
  type: "object",
  properties: { interrupt: { type: "string" }, files: { type: "array", items: { type: "string" } } },
};

function checkInterrupts(report: Report, spec: PipelineSpec): void {
  for (const { name, target } of spec.interrupts) {
    const path = `interrupts.${name}.target`;
    requireState(report, spec, path, target);
    const state = spec.states.get(target);
    if (state?.final !== undefined) report.add(path, `${target} is a final state, which handles nothing`);
    const schema = state?.inputSchema;
    const missing = schema === undefined ? [] : unknownRequired(schema.jsonSchema, INTERRUPT_INPUT);
    if (missing.length > 0)
      report.add(
        path,
        `the inputSchema of ${target} needs ${missing.join(", ")}, and an interrupt gives interrupt, files`,
      );
  }
}

/** How deep pipelines may invoke others, so that no run nests without end. */
const MOST_LEVELS = 8;

function checkPipelines(report: Report, spec: PipelineSpec): void {
  for (const [name, invoked] of spec.pipelines) {
    const path = `pipelines.${name}`;
    const isCyclic = pipelinesWithin(invoked).some(({ id }) => id === spec.id);
    if (isCyclic) report.add(path, `${spec.id} would invoke itself`, "use another id, or a loop of states");
    else if (levelsOf(invoked) > MOST_LEVELS) report.add(path, `pipelines nest at most ${MOST_LEVELS} deep`);
  }
}

/** How many levels of pipelines start with this one; counting stops above the limit. */
function levelsOf(spec: PipelineSpec): number {
  let levels = 0;
  for (let level = new Set([spec]); level.size > 0 && levels <= MOST_LEVELS; levels += 1)
    level = new Set(
      [...level].flatMap(({ pipelines, states }) => [
        ...pipelines.values(),
        ...[...states.values()].flatMap(({ owns = [] }) => owns),
      ]),
    );
  return levels;
}

function requireState(
  report: Report,
  { states }: PipelineSpec,
  path: string,
  id: string,
  message = `there is no state ${JSON.stringify(String(id))}`,
): void {
  if (!states.has(id)) report.add(path, message, suggestOneOf(String(id), states.keys()));
}

/** The initial state is entered with the run's input, which must be able to satisfy its schema. */
function checkInitialInput(report: Report, spec: PipelineSpec): void {
  const wanted = spec.states.get(spec.initial)?.inputSchema;
  const given = spec.input.accepted?.();
  if (wanted === undefined || given === undefined) return;
  const missing = unknownRequired(wanted.jsonSchema, given);
  if (missing.length === 0) return;
  const message = `it cannot be satisfied: the run starts here, and its input has no ${missing.join(", ")}`;
  report.add(
    `stages.${spec.initial}.inputSchema`,
    message,
    "add it to the pipeline's input, or start in another state",
  );
}

function checkRoutes(report: Report, spec: PipelineSpec): void {
  if (spec.routes.kind !== "functions") return;
  for (const [id, routes] of spec.routes.next) {
    requireState(report, spec, `next.${id}`, id, "is not a state of this pipeline");
    if (spec.states.get(id)?.final !== undefined) report.add(`next.${id}`, "is a final state, which no route leaves");
    for (const status of ["completed", "failed", "skipped"] as const)
      for (const target of declaredTargets(routes[status]) ?? [])
        requireState(report, spec, `next.${id}`, target, `route() declares ${target}, which is not a state`);
  }
}

function checkReach(
  report: Report,
  spec: PipelineSpec,
  { certain, entered, siblings, terminals, mayComplete }: Reachability,
): void {
  for (const id of entered) {
    const edges = edgesOf(spec, id);
    if (!mayBeLeft(spec, id) && (spec.routes.kind === "table" || id === spec.initial)) {
      report.add(
        routePath(spec, id),
        `is a dead end: no route handles the success of ${id}`,
        "add a route to a state or to done(…)",
      );
    }
    // Declared targets may be siblings, which need no route, but not all of them can be.
    const targets = edges.next.filter((target) => spec.states.has(target));
    if (spec.routes.kind === "functions" && targets.length > 0 && !targets.some((target) => mayBeLeft(spec, target))) {
      report.add(
        `next.${targets[0]}`,
        `is a dead end: ${id} leads to ${targets.join(", ")}, which no route leaves`,
        "add a route",
      );
    }
  }
  if (!certain || !spec.states.has(spec.initial)) return;
  for (const id of spec.states.keys()) {
    if (!entered.has(id) && !siblings.has(id) && !terminals.has(id))
      report.add(`stages.${id}`, `cannot be reached from ${spec.initial}`, "route to it, or remove it");
  }
  if (!mayComplete) {
    report.add(
      spec.routes.kind === "table" ? "transitions" : "next",
      "no route leads to a completed end",
      "add done(…)",
    );
  }
}

/** Whether a state leads to another or to an end. `checkEvents` reports what is wrong with a state's events. */
function mayBeLeft(spec: PipelineSpec, id: string): boolean {
  const state = spec.states.get(id);
  return state?.final !== undefined || state?.completesByEvents === true || edgesOf(spec, id).handlesSuccess;
}

function routePath(spec: PipelineSpec, id: string): string {
  return spec.routes.kind === "table" ? `stages.${id}` : `next.${id}`;
}
