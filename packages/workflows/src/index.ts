export type { AuthoredAllow, AuthoredKind } from "./authored/allow.ts";
export { type AuthoredOptions, type AuthoredOutput, authored } from "./authored/authored.ts";
export { auto } from "./authored/auto.ts";
export { authoredExecutor } from "./authored/executor.ts";
export type { CheckFinding } from "./check/finding.ts";
export { checkWorkflow } from "./check/lint/check-workflow.ts";
export {
  type Property,
  type PropertyReading,
  type PropertySource,
  readProperty,
  type Word,
} from "./check/properties/property.ts";
export { type ProofOptions, type PropertyVerdict, proveProperty } from "./check/properties/prove.ts";
export type { PathStep } from "./check/properties/steps.ts";
export { pathText, verdictLines } from "./check/properties/words.ts";
export { type ChildOutcome, type Outcome, type OutcomeFault, readOutcomes } from "./check/simulate/outcomes.ts";
export {
  type DecidedRow,
  type SimulatedHop,
  type SimulatedWait,
  type SimulateOptions,
  type Simulation,
  simulate,
} from "./check/simulate/simulate.ts";
export { simulationLines } from "./check/simulate/simulation-lines.ts";
export { againstRuns, type RunTrial, trialLines } from "./check/trial/against-runs.ts";
export type { TrialCall } from "./check/trial/calls.ts";
export type { TrialRoute } from "./check/trial/routes.ts";
export type { Diagnostic, DocumentPath, Position } from "./diagnostic.ts";
export { allOf, type GuardOperator, type OperatorCondition, operatorGuard } from "./expressions/guard.ts";
export { runInput, type WorkflowFormat, type WorkflowInput, type WorkflowMeta } from "./format.ts";
export { type AsciiOptions, asciiGraph } from "./graph/ascii.ts";
export { type Graph, type GraphEdge, type GraphGroup, type GraphNode, graphOf, type NodeKind } from "./graph/graph.ts";
export { mermaidGraph } from "./graph/mermaid.ts";
export { svgGraph } from "./graph/svg.ts";
export { workflowJsonSchema } from "./json-schema.ts";
export { type LoadedFile, type LoadedWorkflow, type LoadWorkflowOptions, loadWorkflow } from "./load.ts";
export type { WorkflowFiles } from "./read/files.ts";
export { diskFiles } from "./read/files.ts";
export { readSource, type SourceFile, type SourceReading } from "./read/source.ts";
export { renderJson } from "./report/json.ts";
export { RULES } from "./report/rules.ts";
export { renderSarif } from "./report/sarif.ts";
export { renderText } from "./report/text.ts";
export { type WriteStatewrightOptions, type WrittenWorkflow, writeStatewright } from "./statewright/write.ts";
