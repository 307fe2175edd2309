import { type Report, suggestOneOf } from "../../base/problems.ts";
import { type ChoiceShape, parseChoice, type SiblingShape } from "../choice.ts";
import { isRowOf } from "../graph.ts";
import type { PipelineSpec, RowSpec, StateSpec } from "../spec.ts";

/** What is wrong with one row of a table. */
export function checkRow(report: Report, spec: PipelineSpec, row: RowSpec, path: string): void {
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
  for (const { state, input } of entriesOf(shape)) {
    const verdict = spec.states.get(state)?.inputSchema?.check(input);
    if (verdict === undefined || verdict instanceof Promise || verdict.ok) continue;
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
    report.add(`${path}.to`, "a pause leads to a state that works with the answer", "name such a state");
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
export function checkEvents(report: Report, spec: PipelineSpec, id: string, state: StateSpec): void {
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
