import { messageOf, type Problem } from "../base/errors.ts";
import { deepFreeze, isObject, type JsonObject } from "../base/json.ts";
import { createReport, idFault, type Report } from "../base/problems.ts";
import { ORCHESTRATED_ENDS, ORCHESTRATOR, orchestratorState } from "./agents/orchestrator.ts";
import { type AnyChoice, declaredTargets, eventFault, readPatch, to } from "./choice.ts";
import { fingerprint } from "./fingerprint/fingerprint.ts";
import { readPathScope } from "./patterns/path-scope.ts";
import type { StageContext, StageResult } from "./result.ts";
import type {
  Guard,
  GuardVerdict,
  InterruptSpec,
  PipelineMeta,
  PipelineSpec,
  RoutesSpec,
  RowSpec,
  StateRoutes,
  StateSpec,
} from "./spec.ts";
import { schemaAt } from "./state.ts";
import { checkLimits, checkProviderFaults } from "./state-rules.ts";
import type { AnyPipeline, AnyState, AnyStates, OrchestratorOptions, PipelineCommon } from "./types.ts";

/** A route with erased types. A method type, so that routes with narrower parameters fit. */
type RouteFunction = { route(result: StageResult<unknown>, ctx: StageContext): unknown }["route"];
interface RoutesByStatus {
  readonly completed?: RouteFunction;
  readonly failed?: RouteFunction;
  readonly skipped?: RouteFunction;
}
/** A condition with erased types. A method type, as above. */
type WhenFunction = { when(result: StageResult<unknown>, ctx: StageContext): boolean }["when"];
interface RowOptions extends Pick<RowSpec, "from" | "on" | "input" | "approval" | "label"> {
  readonly when?: WhenFunction | Guard;
  readonly to: string | AnyChoice;
}
/** The argument of `pipeline()` with erased types. */
export interface PipelineDefinition extends Omit<PipelineCommon<unknown, AnyStates>, "initial"> {
  readonly initial?: string | undefined;
  readonly orchestrator?: OrchestratorOptions;
  readonly next?: Readonly<Record<string, RouteFunction | RoutesByStatus | undefined>>;
  readonly transitions?: readonly RowOptions[];
}

const PIPELINE_KEYS = [
  "id",
  "input",
  "stages",
  "initial",
  "next",
  "transitions",
  "orchestrator",
  "context",
  "limits",
  "retry",
  "onProviderFault",
  "onCall",
  "interrupts",
  "pipelines",
  "meta",
];
const META_KEYS = ["dangerLevel", "captureOutput", "onFinal"];
const DANGER_LEVELS = ["safe", "moderate", "dangerous"] as const;
const STATUSES = ["completed", "failed", "skipped"] as const;
const ROW_KEYS = ["from", "on", "when", "to", "input", "approval", "label"];
const ROW_RESULTS = ["success", "failure", "skipped", "pause"];

/** Converts a definition to a spec and reports problems of its form; `checkSpec` reports the others. */
export function readDefinition(definition: PipelineDefinition): {
  readonly spec: PipelineSpec;
  readonly problems: readonly Problem[];
} {
  const report = createReport();
  report.unknownKeys("", definition, PIPELINE_KEYS);
  const { id, limits = {}, retry, onProviderFault, onCall } = definition;
  const fault = idFault(id);
  if (fault !== undefined) report.add("id", fault);
  const named = readStates(report, definition.stages);
  const orchestrator = readOrchestrator(report, definition, named);
  const states = orchestrator === undefined ? named : new Map([...named, [ORCHESTRATOR, orchestrator]]);
  const isOrchestrated = orchestrator !== undefined && definition.initial === undefined;
  const initial = isOrchestrated ? ORCHESTRATOR : String(definition.initial);
  const meta = readMeta(report, definition.meta);
  const facts = {
    id,
    input: schemaAt(report, "input", definition.input),
    states,
    initial,
    routes: readRoutes(report, definition, states),
    context: readContext(report, definition.context),
    limits: Object.freeze({ ...limits }),
    ...(retry === undefined ? {} : { retry: structuredClone(retry) }),
    ...(onProviderFault === undefined ? {} : { onProviderFault }),
    ...(onCall === undefined ? {} : { onCall }),
    ...(orchestrator === undefined ? {} : { orchestrator: ORCHESTRATOR }),
    interrupts: readInterrupts(report, definition.interrupts),
    pipelines: readPipelines(report, definition.pipelines),
    ...(meta === undefined ? {} : { meta }),
  };
  checkLimits(report, "limits", definition.limits, "run");
  checkProviderFaults(report, { retry, onProviderFault });
  if (onCall !== undefined && typeof onCall !== "function") report.add("onCall", "must be a function");
  const isValid = report.problems.length === 0 && [...states.values()].every((state) => state.problems === undefined);
  const digest = isValid ? fingerprintOf(report, facts) : "";
  // Its hooks and limits are those of every run, so they stay as they were read.
  return { spec: Object.freeze({ ...facts, fingerprint: digest }), problems: report.problems };
}

function fingerprintOf(report: Report, facts: Omit<PipelineSpec, "fingerprint">): string {
  try {
    return fingerprint(facts);
  } catch (thrown) {
    report.add("", `it has no fingerprint: ${messageOf(thrown)}`);
    return "";
  }
}

/** Frozen, since its executor gets it: what gate and machine read of it in every execution is that of its fingerprint. */
function frozen(given: StateSpec): StateSpec {
  const { chooses } = given;
  const spec = { ...given, ...(chooses === undefined ? {} : { chooses: structuredClone(chooses) }) };
  for (const name of ["allowedTools", "patterns", "limits", "retryPolicy", "retry", "sandbox", "chooses"] as const)
    deepFreeze(spec[name]);
  return Object.freeze(spec);
}

function readStates(report: Report, stages: unknown): ReadonlyMap<string, StateSpec> {
  const states = new Map<string, StateSpec>();
  if (typeof stages !== "object" || stages === null) {
    report.add("stages", "must be an object of states");
    return states;
  }
  for (const [id, state] of Object.entries(stages)) {
    const fault = idFault(id);
    if (fault !== undefined) report.add(`stages.${id}`, fault);
    if (isState(state)) states.set(id, frozen(state.spec));
    else report.add(`stages.${id}`, "is not a state", "make it with stage({ … })");
  }
  if (states.size === 0) report.add("stages", "has no states");
  return states;
}

/** The state of the orchestrator, whose targets are all others. Undefined for a pipeline with routes. */
function readOrchestrator(
  report: Report,
  { orchestrator, next, transitions, interrupts }: PipelineDefinition,
  states: ReadonlyMap<string, StateSpec>,
): StateSpec | undefined {
  if (orchestrator === undefined) return undefined;
  if (!isObject(orchestrator)) {
    report.add("orchestrator", 'must be an object: { instructions: "…" }');
    return undefined;
  }
  const { problems, ...state } = orchestratorState(orchestrator, [...states.keys()]);
  report.include("orchestrator", problems ?? []);
  if (next !== undefined || transitions !== undefined)
    report.add("orchestrator", "cannot be used with next or transitions", "it chooses what follows every state");
  if (interrupts !== undefined)
    report.add("interrupts", "need rows that lead back, which an orchestrated pipeline does not have");
  if (states.has(ORCHESTRATOR)) report.add(`stages.${ORCHESTRATOR}`, "is the name of the orchestrator", "rename it");
  for (const outcome of ORCHESTRATED_ENDS) {
    const own = states.get(outcome);
    if (own !== undefined && own.final?.outcome !== outcome)
      report.add(`stages.${outcome}`, `is how a run ends, so it can only be final("${outcome}")`, "rename it");
  }
  for (const [id, { completesByEvents, chooses }] of states) {
    if (completesByEvents === true)
      report.add(`stages.${id}`, "completes by events, which need a table of transitions");
    if (chooses !== undefined)
      report.add(`stages.${id}`, "chooses what follows it, which the orchestrator does", "leave it out");
  }
  return state;
}

function isState(value: unknown): value is AnyState {
  if (typeof value !== "object" || value === null || !("spec" in value) || !("kind" in value)) return false;
  const { spec } = value;
  return typeof spec === "object" && spec !== null && "kind" in spec && typeof spec.kind === "string";
}

function readContext(report: Report, context: unknown): JsonObject {
  if (context === undefined) return {};
  const patch = readPatch(context);
  if (patch.ok) return patch.value;
  report.add("context", patch.reason);
  return {};
}

function readRoutes(
  report: Report,
  { next, transitions, orchestrator }: PipelineDefinition,
  states: ReadonlyMap<string, StateSpec>,
): RoutesSpec {
  if (next !== undefined && transitions !== undefined)
    report.add("transitions", "cannot be used with next", "use one of the two");
  if (next === undefined && transitions === undefined && orchestrator === undefined) {
    report.add("next", "is missing: it routes each state", "write next: { … } or transitions: [ … ]");
  }
  if (transitions !== undefined) return { kind: "table", rows: readRows(report, transitions) };
  const routes = new Map<string, StateRoutes>();
  if (next !== undefined && (typeof next !== "object" || next === null))
    report.add("next", "must be an object of routes");
  for (const [id, entry] of Object.entries(next ?? {})) {
    const isChooser = states.get(id)?.chooses !== undefined;
    const read = entry === undefined ? undefined : readRoute(report, `next.${id}`, entry, isChooser);
    if (read !== undefined) routes.set(id, read);
  }
  return { kind: "functions", next: routes };
}

function readRoute(
  report: Report,
  path: string,
  entry: RouteFunction | RoutesByStatus,
  isChooser: boolean,
): StateRoutes | undefined {
  if (typeof entry === "function") return withTargets({ completed: entry });
  if (typeof entry !== "object" || entry === null) {
    report.add(path, "must be a function, or an object with completed and optionally failed and skipped");
    return undefined;
  }
  report.unknownKeys(path, entry, STATUSES);
  const { completed, failed, skipped } = entry;
  for (const status of STATUSES) {
    if (entry[status] !== undefined && typeof entry[status] !== "function")
      report.add(`${path}.${status}`, "must be a function");
  }
  if (completed === undefined && !isChooser) {
    report.add(path, "has no route for success", "add completed");
    return undefined;
  }
  return withTargets({
    ...(completed === undefined ? {} : { completed }),
    ...(failed === undefined ? {} : { failed }),
    ...(skipped === undefined ? {} : { skipped }),
  });
}

/** The targets of a state are known only if all its routes declare theirs. */
function withTargets(routes: RoutesByStatus): StateRoutes {
  const declared = Object.values(routes).map((route: unknown) => declaredTargets(route));
  if (declared.includes(undefined)) return routes;
  return { ...routes, targets: [...new Set(declared.flatMap((targets) => targets ?? []))] };
}

function checkRowInput(report: Report, path: string, input: unknown, target: AnyChoice): void {
  if (typeof input !== "function")
    report.add(path, "must be a function", "write the input into the choice: to(…, input)");
  else if ("stages" in target || target.kind !== "to" || target.input !== undefined)
    report.add(path, "is only for a row that leads to one state and gives it no other input");
}

function readRows(report: Report, transitions: readonly RowOptions[]): readonly RowSpec[] {
  if (!Array.isArray(transitions)) {
    report.add("transitions", "must be a list of rows");
    return [];
  }
  return transitions.flatMap((row: RowOptions, index): readonly RowSpec[] => {
    const path = `transitions[${index}]`;
    if (typeof row !== "object" || row === null) {
      report.add(path, "must be a row: { from, on, to }");
      return [];
    }
    report.unknownKeys(path, row, ROW_KEYS);
    checkTrigger(report, `${path}.on`, row.on);
    const { from, on, input, label } = row;
    const when = readGuard(report, `${path}.when`, row.when);
    const approval = readApproval(report, `${path}.approval`, row.approval);
    const target = typeof row.to === "string" ? to(row.to) : row.to;
    if (input !== undefined) checkRowInput(report, `${path}.input`, input, target);
    if (label !== undefined && typeof label !== "string") report.add(`${path}.label`, "must be a text");
    return [
      {
        from,
        on: typeof on === "object" && on !== null ? { event: on.event } : on,
        to: target,
        ...(input === undefined ? {} : { input }),
        ...(when === undefined ? {} : { when }),
        ...(approval === undefined ? {} : { approval }),
        ...(label === undefined ? {} : { label }),
      },
    ];
  });
}

function checkTrigger(report: Report, path: string, on: unknown): void {
  if (isObject(on)) {
    report.unknownKeys(path, on, ["event"]);
    const fault = eventFault(on.event);
    if (fault !== undefined) report.add(`${path}.event`, fault);
  } else if (typeof on !== "string" || !ROW_RESULTS.includes(on)) {
    report.add(path, `must be one of ${ROW_RESULTS.join(", ")}, or { event: "NAME" }`);
  }
}

function readGuard(report: Report, path: string, when: WhenFunction | Guard | undefined): Guard | undefined {
  if (when === undefined) return undefined;
  if (typeof when === "function") return functionGuard(when);
  if (typeof when === "object" && when !== null && typeof when.text === "string" && typeof when.evaluate === "function")
    return when;
  report.add(path, "must be a function, or a guard: { text, evaluate }");
  return undefined;
}

function readApproval(report: Report, path: string, approval: unknown): RowSpec["approval"] {
  if (approval === undefined) return undefined;
  if (!isObject(approval)) {
    report.add(path, 'must be an object: { message: "Deploy?" }', "{} asks without a message");
    // A row is never freed of an approval that it asked for.
    return {};
  }
  report.unknownKeys(path, approval, ["message"]);
  const { message } = approval;
  if (message === undefined) return {};
  if (typeof message === "string") return { message };
  report.add(`${path}.message`, "must be a text");
  return {};
}

function readInterrupts(report: Report, interrupts: unknown): readonly InterruptSpec[] {
  if (interrupts === undefined) return [];
  if (!isObject(interrupts)) {
    report.add("interrupts", "must be an object of interrupts by name");
    return [];
  }
  return Object.entries(interrupts).flatMap(([name, given]): readonly InterruptSpec[] => {
    const path = `interrupts.${name}`;
    const fault = idFault(name);
    if (fault !== undefined) report.add(path, fault);
    if (!isObject(given)) {
      report.add(path, 'must be an object: { files: "src/**", target: "review" }');
      return [];
    }
    report.unknownKeys(path, given, ["files", "target"]);
    const { files, target } = given;
    if (typeof target !== "string") report.add(`${path}.target`, "must be the name of a state");
    if (typeof files !== "string" || files === "") {
      report.add(`${path}.files`, "must be a pattern of paths in the workspace", "src/**");
      return [];
    }
    const scope = readPathScope(files);
    if (!scope.ok) report.add(`${path}.files`, scope.message, scope.suggestion);
    return typeof target === "string" ? [{ name, files, target }] : [];
  });
}

function readPipelines(report: Report, pipelines: unknown): ReadonlyMap<string, PipelineSpec> {
  const specs = new Map<string, PipelineSpec>();
  if (pipelines === undefined) return specs;
  if (!isObject(pipelines)) {
    report.add("pipelines", "must be an object of pipelines by name");
    return specs;
  }
  for (const [name, given] of Object.entries(pipelines)) {
    const fault = idFault(name);
    if (fault !== undefined) report.add(`pipelines.${name}`, fault);
    if (isPipeline(given)) specs.set(name, given.spec);
    else report.add(`pipelines.${name}`, "is not a pipeline", "make it with pipeline({ … })");
  }
  return specs;
}

function readMeta(report: Report, meta: unknown): PipelineMeta | undefined {
  if (meta === undefined) return undefined;
  if (!isObject(meta)) {
    report.add("meta", 'must be an object: { dangerLevel: "moderate" }');
    return undefined;
  }
  report.unknownKeys("meta", meta, META_KEYS);
  const { dangerLevel, captureOutput, onFinal } = meta;
  const level = DANGER_LEVELS.find((known) => known === dangerLevel);
  if (dangerLevel !== undefined && level === undefined)
    report.add("meta.dangerLevel", `must be one of ${DANGER_LEVELS.join(", ")}`);
  if (captureOutput !== undefined && typeof captureOutput !== "boolean")
    report.add("meta.captureOutput", "must be true or false");
  if (onFinal !== undefined && onFinal !== "release") report.add("meta.onFinal", 'must be "release"');
  return {
    ...(level === undefined ? {} : { dangerLevel: level }),
    ...(typeof captureOutput === "boolean" ? { captureOutput } : {}),
    ...(onFinal === "release" ? { onFinal } : {}),
  };
}

function isPipeline(value: unknown): value is AnyPipeline {
  return isObject(value) && isObject(value.spec) && value.spec.states instanceof Map;
}

/** The guard of a function, which has to return `true`. */
function functionGuard(when: WhenFunction): Guard {
  return {
    opaque: true,
    text: when.name === "" || when.name === "when" ? "a function" : when.name,
    // Typed as synchronous; a promise is awaited all the same, since its rejection would be unhandled.
    evaluate: ({ result, ctx }) => {
      const answer: unknown = when(result, ctx);
      const isPending = isObject(answer) && "then" in answer;
      return isPending ? Promise.resolve<unknown>(answer).then(functionVerdict) : functionVerdict(answer);
    },
  };
}

function functionVerdict(answer: unknown): GuardVerdict {
  if (answer === true) return { fires: true, why: "its condition returned true" };
  const why = answer === false ? "false" : `${typeName(answer)}, not true or false`;
  return { fires: false, why: `its condition returned ${why}` };
}

function typeName(value: unknown): string {
  if (value === undefined) return "nothing";
  return value === null ? "null" : `a ${typeof value}`;
}
