import type { Problem } from "../base/errors.ts";
import { createReport, type Report, suggestOneOf } from "../base/problems.ts";
import { missingPiece, type TemplatePath, unknownRequired } from "../schema/schema-path.ts";
import { type ChoiceShape, declaredTargets, parseChoice, type SiblingShape } from "./choice.ts";
import { edgesOf, type Reachability, reach } from "./graph.ts";
import { matchesName } from "./patterns/tool-pattern.ts";
import { type PipelineDefinition, readDefinition } from "./read.ts";
import type { PipelineSpec, RowSpec, StateSpec } from "./spec.ts";
import { pathText } from "./template.ts";

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
    const { completionTool } = state;
    if (completionTool !== undefined && live.tools.includes(completionTool)) {
      report.add(
        `stages.${id}.completionTool`,
        `${completionTool} is also a tool of this session`,
        "choose another name",
      );
    }
  }
  return report.problems;
}

function checkSpec(spec: PipelineSpec): readonly Problem[] {
  const report = createReport();
  for (const [id, state] of spec.states) {
    report.include(`stages.${id}`, state.problems ?? []);
    checkTemplates(report, spec, id, state);
  }
  requireState(report, spec, "initial", spec.initial);
  checkInitialInput(report, spec);
  if (spec.routes.kind === "table")
    for (const [index, row] of spec.routes.rows.entries()) checkRow(report, spec, row, `transitions[${index}]`);
  else checkRoutes(report, spec);
  checkReach(report, spec, reach(spec));
  return report.problems;
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
    for (const status of ["completed", "failed", "skipped"] as const)
      for (const target of declaredTargets(routes[status]) ?? [])
        requireState(report, spec, `next.${id}`, target, `route() declares ${target}, which is not a state`);
  }
}

function checkRow(report: Report, spec: PipelineSpec, row: RowSpec, path: string): void {
  if (row.from !== "*") requireState(report, spec, `${path}.from`, row.from);
  const reading = parseChoice(row.to, spec.states, null, spec.limits.maxItems);
  if (!reading.ok) {
    report.add(`${path}.to`, reading.reason);
    return;
  }
  for (const { state, input } of entriesOf(reading.shape)) {
    const verdict = spec.states.get(state)?.inputSchema?.check(input);
    if (verdict === undefined || verdict instanceof Promise || verdict.ok) continue;
    const issues = verdict.issues.map((issue) => `${issue.path} ${issue.message}`).join("; ");
    report.add(`${path}.to`, `its input does not fit the inputSchema of ${state}: ${issues}`, `to("${state}", …)`);
  }
}

function entriesOf(shape: ChoiceShape): readonly SiblingShape[] {
  if (shape.kind === "to") return [shape];
  return shape.kind === "fanOut" ? [...shape.siblings, { state: shape.join, input: shape.input }] : [];
}

function checkReach(
  report: Report,
  spec: PipelineSpec,
  { certain, entered, siblings, mayComplete }: Reachability,
): void {
  for (const id of entered) {
    const edges = edgesOf(spec, id);
    if (!edges.handlesSuccess && (spec.routes.kind === "table" || id === spec.initial)) {
      report.add(
        routePath(spec, id),
        `is a dead end: no route handles the success of ${id}`,
        "add a route to a state or to done(…)",
      );
    }
    // Declared targets may be siblings, which need no route, but not all of them can be.
    const targets = edges.next.filter((target) => spec.states.has(target));
    if (
      spec.routes.kind === "functions" &&
      targets.length > 0 &&
      !targets.some((target) => edgesOf(spec, target).handlesSuccess)
    ) {
      report.add(
        `next.${targets[0]}`,
        `is a dead end: ${id} leads to ${targets.join(", ")}, which no route leaves`,
        "add a route",
      );
    }
  }
  if (!certain || !spec.states.has(spec.initial)) return;
  for (const id of spec.states.keys()) {
    if (!entered.has(id) && !siblings.has(id))
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

function routePath(spec: PipelineSpec, id: string): string {
  return spec.routes.kind === "table" ? `stages.${id}` : `next.${id}`;
}

/** Reports template paths that cannot exist in any run. */
function checkTemplates(report: Report, spec: PipelineSpec, id: string, state: StateSpec): void {
  for (const [option, references] of Object.entries(state.templates ?? {})) {
    for (const { path, place } of references) {
      const fault = pathFault(spec, state, path);
      if (fault === undefined) continue;
      const message = `{{${pathText(path)}}} leads nowhere: ${fault.message}`;
      report.add(`stages.${id}.${option}`, message, fault.suggestion, place);
    }
  }
}

interface PathFault {
  readonly message: string;
  readonly suggestion: string | undefined;
}

function pathFault(spec: PipelineSpec, state: StateSpec, path: TemplatePath): PathFault | undefined {
  const [root, second] = path;
  switch (root) {
    case "run":
      if (second === undefined) return undefined;
      return second === "input"
        ? insideSchema(spec.input.accepted?.(), path, 2)
        : { message: "ctx.run has input", suggestion: "write {{ctx.run.input.…}}" };
    case "input":
      return insideSchema(state.inputSchema?.accepted?.(), path, 1);
    case "upstream":
    case "fork":
    case "items": {
      if (second === undefined) return undefined;
      const from = spec.states.get(String(second));
      if (from === undefined) {
        return {
          message: `there is no state ${JSON.stringify(second)}`,
          suggestion: suggestOneOf(String(second), spec.states.keys()),
        };
      }
      return root === "upstream" ? insideSchema(from.output?.accepted?.(), path, 2) : undefined;
    }
    case "project":
      if (path.length === 2 && second === "agents") return undefined;
      return { message: "a template reads only agents of ctx.project", suggestion: "write {{ctx.project.agents}}" };
    case "context":
    case "setup":
      return undefined;
    default:
      return second === undefined
        ? undefined
        : { message: `${pathText(path.slice(0, 1))} has no parts`, suggestion: undefined };
  }
}

function insideSchema(
  schema: Parameters<typeof missingPiece>[0] | undefined,
  path: TemplatePath,
  from: number,
): PathFault | undefined {
  const missing = schema === undefined ? undefined : missingPiece(schema, path.slice(from));
  if (missing === undefined) return undefined;
  const here = pathText(path.slice(0, from + missing.index));
  return { message: `${here} ${missing.found}`, suggestion: "name what the schema has, or add it there" };
}
