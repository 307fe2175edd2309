import { messageOf } from "../base/errors.ts";
import { deepFreeze, isJson, isPromiseLike, type Json, type JsonObject } from "../base/json.ts";
import { thrownAt } from "../base/source-place.ts";
import { declaredTargets, readPatch, sentEventFault } from "../definition/choice.ts";
import { isRowOf, routesPause } from "../definition/graph.ts";
import type { Completed, StageContext, StageResult } from "../definition/result.ts";
import type { GuardScope, GuardVerdict, PipelineSpec, RowSpec, RowTrigger, StateRoutes } from "../definition/spec.ts";
import { type Choosing, type ConsideredTarget, consideredBy, endedState, readChosenRoute } from "./chosen-route.ts";
import { executionIdOf } from "./machine-state.ts";
import { type LedBy, type ResolvedChoice, type ResolvedChoiceResult, resolveChoice } from "./resolve-choice.ts";

/** What comes next and what decided it. JSON, because it is recorded. */
export type NextDecision = {
  /**
   * `default`: no route is declared for this result. `event`: a row of the event. `safe_next`: a row for events that no other row
   * names. `interrupt`: a changed file. `model`: the state itself named what follows. `fallback`: it failed, and its fallback
   * says what follows.
   */
  readonly by: "function" | "table" | "default" | "event" | "safe_next" | "interrupt" | "model" | "fallback";
  /** Why a model chose it, in its own words: at most 2,000 characters. */
  readonly reason?: string;
  /** Of a state that chooses: its targets, with why some were refused. At most 40. */
  readonly considered?: readonly ConsideredTarget[];
  /** The event that the state sent. */
  readonly event?: string;
  /** `data.rationale` of the event: at most 2,000 characters. */
  readonly rationale?: string;
  /** The data of the event, which merges into the shared object when the machine moves. */
  readonly context?: JsonObject;
  /** Of a row that needs a person's approval, while there is no answer. */
  readonly approval?: { readonly message?: string; readonly row: number };
  /** A person approved the row. */
  readonly approved?: true;
  /** The code of a failed end. */
  readonly code?: "approval_denied";
  /** The table row that fired, from 0. */
  readonly row?: number;
  /** Earlier rows for this state that did not fire: the first 20. */
  readonly rejectedRows?: readonly RejectedRow[];
  /** How many more there were. */
  readonly moreRejectedRows?: number;
  /** Why the route's return value is invalid; the choice is then to fail. */
  readonly rejected?: string;
  /** Where the route threw: `src/pipeline.ts:41:9`. */
  readonly at?: string;
  readonly choice: ResolvedChoice;
};
export type RejectedRow = {
  readonly row: number;
  /** The row's own name. */
  readonly label?: string;
  readonly why: string;
  /** Where its condition threw: `src/pipeline.ts:41:9`. */
  readonly at?: string;
};
type Refusal = Pick<RejectedRow, "why" | "at">;

const TRIGGERS = { completed: "success", failed: "failure", skipped: "skipped", paused: "pause" } as const;

/**
 * Decides what follows a state from its result and the context. The only side effects are those of user code (routes, `when`);
 * whatever that code does, the result is a valid choice. `mayReturn`: an execution is suspended.
 */
export function decideNext(
  spec: PipelineSpec,
  state: string,
  result: StageResult<unknown>,
  ctx: StageContext,
  mayReturn: boolean,
  choosing?: Choosing,
): Promise<NextDecision> | NextDecision {
  if (result.status === "cancelled") return byDefault({ kind: "cancel", reason: result.reason });
  const question: Question = { spec, state, result, mayReturn, workspace: ctx.workspace };
  if (choosing === undefined) return byRoutes(question, ctx);
  return byItself(question, choosing).then((chosen) => chosen ?? byRoutes(question, ctx));
}

function byRoutes(question: Question, ctx: StageContext): Promise<NextDecision> | NextDecision {
  const { spec, state, result } = question;
  const { routes, orchestrator } = spec;
  if (orchestrator !== undefined && state !== orchestrator)
    return byDefault({ kind: "to", state: orchestrator, input: endedState(state, result) });
  if (result.status === "paused" && !routesPause(spec, state))
    return byDefault(failure(`${state} paused, and a pause has no route`));
  if (routes.kind === "table") return byTable(routes.rows, question, ctx);
  const route = result.status === "paused" ? undefined : routeFor(routes.next.get(state), result, ctx);
  if (route === undefined) return byDefault(unhandled(state, result));
  return decisionOf(question, { by: "function" }, route);
}

type Routable = Exclude<StageResult<unknown>, { readonly status: "cancelled" }>;
/** What a route decides about. */
interface Question extends LedBy {
  readonly spec: PipelineSpec;
  readonly state: string;
  readonly result: Routable;
  readonly mayReturn: boolean;
  /** The run's folder, to which places in the pipeline's code are relative. */
  readonly workspace: string;
}
interface Route {
  readonly name: string;
  /** The targets it declared. */
  readonly targets: readonly string[] | undefined;
  ask(): unknown;
}

/** The decision of a state that names what follows; undefined for a failure without a fallback, which a route may handle. */
async function byItself(question: Question, choosing: Choosing): Promise<NextDecision | undefined> {
  const { spec, state, result } = question;
  const { chooser, fellBack } = choosing;
  const trace = consideredBy(choosing);
  if (result.status === "completed") {
    const by = { by: "model", ...trace } as const;
    const reading = readChosenRoute(result.output, chooser);
    if (!reading.ok) {
      const rejected = `the choice of ${state} cannot be followed: ${reading.reason}`;
      return { ...by, rejected, choice: failure(rejected) };
    }
    const { choice, reason, prompt } = reading;
    const said = reason === undefined ? by : { ...by, reason };
    const decision = await decisionOf(question, said, { name: "the choice", targets: undefined, ask: () => choice });
    return prompt === undefined || decision.choice.kind !== "to"
      ? decision
      : { ...decision, choice: { ...decision.choice, prompt } };
  }
  if (result.status !== "failed") return undefined;
  // The run sleeps; an orchestrator that fails to answer a message changes nothing.
  if (question.mayReturn && state === spec.orchestrator) return byDefault({ kind: "return" });
  const { fallback } = chooser;
  if (fallback === undefined || fellBack) return undefined;
  const choice = { kind: "to", state: fallback.to, input: fallback.input } as const;
  const by = { by: "fallback", ...trace } as const;
  return await decisionOf(question, by, { name: "the fallback", targets: undefined, ask: () => choice });
}

function routeFor(
  routes: StateRoutes | undefined,
  result: Exclude<Routable, { readonly status: "paused" }>,
  ctx: StageContext,
): Route | undefined {
  const name = `the ${result.status} route`;
  const made = <R>(route: ((own: R, ctx: StageContext) => unknown) | undefined, own: R): Route | undefined =>
    route && { name, targets: declaredTargets(route), ask: () => route(own, ctx) };
  switch (result.status) {
    case "completed":
      return made(routes?.completed, result);
    case "failed":
      return made(routes?.failed, result);
    case "skipped":
      return made(routes?.skipped, result);
  }
}

async function byTable(rows: readonly RowSpec[], question: Question, ctx: StageContext): Promise<NextDecision> {
  const { state, result } = question;
  const trigger = TRIGGERS[result.status];
  const wrong = ({ on }: RowSpec): string | undefined =>
    on === trigger ? undefined : `it is for ${triggerText(on)}, this was ${trigger}`;
  const found = await firstRow(rows, state, { result, ctx }, { includes: () => true, wrong });
  if (found.rule !== undefined) {
    const isAnswered = result.status === "paused" && isJson(result.request);
    const asked = isAnswered ? { ...question, request: result.request } : question;
    return await byRow(asked, { by: "table", ...found.trace }, found, ctx);
  }
  const { rejectedRows = [], moreRejectedRows: more = 0 } = found.trace;
  const listed = rejectedRows.map(rejectedText).join("; ") || `no row is for ${state}`;
  const others = more === 0 ? "" : `; and ${more} more`;
  const choice =
    result.status === "completed"
      ? failure(`${state} completed, and no row says what comes next (${listed}${others})`)
      : unhandled(state, result);
  return { ...byDefault(choice), ...found.trace };
}

/**
 * Decides whether a state may move by an event. A row that names the event comes first; only if there is none, the rows of `*`
 * decide. Guards see the context as it was before the event's data.
 */
export async function decideEvent(
  spec: PipelineSpec,
  state: string,
  { event, data }: { readonly event: string; readonly data: JsonObject },
  ctx: StageContext,
  mayReturn: boolean,
): Promise<NextDecision> {
  const refused = (reason: string, by: Partial<NextDecision> = {}): NextDecision => ({
    by: "event",
    event,
    ...by,
    choice: { kind: "stay", reason },
  });
  const { routes } = spec;
  if (routes.kind !== "table" || spec.states.get(state)?.completesByEvents !== true)
    return refused(`${state} sends no events`);
  const fault = sentEventFault(event);
  if (fault !== undefined)
    return { ...refused(`the name of the event ${fault}`), event: event.slice(0, 80).toWellFormed() };
  const patch = readPatch(data);
  if (!patch.ok) return refused(`the data cannot be used: ${patch.reason}`);
  const named = ({ on }: RowSpec): boolean => typeof on !== "string" && on.event === event && event !== ANY_EVENT;
  const isNamed = routes.rows.some((row) => isRowOf(row, state) && named(row));
  const anyOther = ({ on }: RowSpec): boolean => typeof on !== "string" && on.event === ANY_EVENT;
  const executionId = executionIdOf(state, ctx.visit);
  const result = eventResult(event, patch.value, { executionId, attempts: ctx.attempt });
  const rows = { includes: isNamed ? named : anyOther, wrong: () => undefined };
  const by = isNamed ? "event" : "safe_next";
  const found = await firstRow(routes.rows, state, { result, ctx }, rows);
  if (found.rule === undefined) {
    const { rejectedRows = [] } = found.trace;
    const reason =
      rejectedRows.length === 0
        ? `${state} has no event ${JSON.stringify(event)}`
        : `no condition of the event ${JSON.stringify(event)} holds: ${rejectedRows.map(rejectedText).join("; ")}`;
    return refused(reason, { by: rejectedRows.length === 0 ? "event" : by, ...found.trace });
  }
  const { rationale } = patch.value;
  const trace = {
    by,
    event,
    ...(typeof rationale === "string" ? { rationale: rationale.slice(0, MOST_RATIONALE).toWellFormed() } : {}),
    ...(Object.keys(patch.value).length === 0 ? {} : { context: patch.value }),
    ...found.trace,
  } as const;
  const { workspace } = ctx;
  const question = { spec, state, result, mayReturn, workspace, ...(isNamed ? { event } : {}) };
  const decision = await byRow(question, trace, found, ctx);
  const { choice, rejected } = decision;
  return choice.kind === "fail" && rejected === NOTHING_SUSPENDED ? refused(rejected, found.trace) : decision;
}

/** The event of a row that is for all others. */
const ANY_EVENT = "*";
const MOST_RATIONALE = 2_000;
const NOTHING_SUSPENDED = "nothing is suspended, so there is nothing to return to";

/** What an event counts as: the completion of the execution that sent it. */
export function eventResult(
  event: string,
  data: JsonObject,
  by: { readonly executionId: string; readonly attempts: number },
): Completed<Json> {
  const usage = { inputTokens: 0, outputTokens: 0 };
  return deepFreeze({ ...by, turns: 0, usage, ms: 0, status: "completed", output: { event, data } });
}

/** A decision records no more rows than these, so that a long table does not fill the journal. */
const MOST_ROWS = 20;

interface RowSearch {
  /** Whether a row is looked at. */
  includes(row: RowSpec): boolean;
  /** Why a row is for something else; undefined if it is for this. */
  wrong(row: RowSpec): string | undefined;
}
type FoundRow = { readonly trace: Pick<NextDecision, "rejectedRows" | "moreRejectedRows"> } & (
  | { readonly rule: RowSpec; readonly row: number }
  | { readonly rule?: never }
);

/** The first row for a state that fires, and why the rows before it do not. */
async function firstRow(
  rows: readonly RowSpec[],
  state: string,
  scope: GuardScope,
  { includes, wrong }: RowSearch,
): Promise<FoundRow> {
  const rejectedRows: RejectedRow[] = [];
  let more = 0;
  const trace = (): FoundRow["trace"] => ({
    ...(rejectedRows.length === 0 ? {} : { rejectedRows }),
    ...(more === 0 ? {} : { moreRejectedRows: more }),
  });
  // By index, since most rows of a long table are for other states.
  for (let row = 0; row < rows.length; row += 1) {
    const rule = rows[row];
    if (rule === undefined || !isRowOf(rule, state) || !includes(rule)) continue;
    const other = wrong(rule);
    const reason = other === undefined ? whyNot(rule, scope) : { why: other };
    // Most conditions are not asynchronous, and an await costs more than one of them.
    const refusal = reason instanceof Promise ? await reason : reason;
    if (refusal === undefined) return { rule, row, trace: trace() };
    const label = rule.label === undefined ? {} : { label: rule.label };
    if (rejectedRows.length < MOST_ROWS) rejectedRows.push({ row, ...label, ...refusal });
    else more += 1;
  }
  return { trace: trace() };
}

function triggerText(on: RowTrigger): string {
  return typeof on === "string" ? on : `the event ${on.event}`;
}

function rejectedText({ row, label, why }: RejectedRow): string {
  return `${label ?? `row ${row}`}: ${why}`;
}

/** Why the condition of a row does not hold; undefined if it does. */
function whyNot({ when }: RowSpec, scope: GuardScope): Refusal | undefined | Promise<Refusal | undefined> {
  if (when === undefined) return undefined;
  const failed = (thrown: unknown): Refusal => whyFailed(thrown, scope.ctx.workspace);
  try {
    const verdict = when.evaluate(scope);
    return "then" in verdict ? Promise.resolve(verdict).then(whyOf).catch(failed) : whyOf(verdict);
  } catch (thrown) {
    return failed(thrown);
  }
}

function whyOf({ fires, why }: GuardVerdict): Refusal | undefined {
  return fires === true ? undefined : { why: typeof why === "string" ? why : "its condition gave no reason" };
}

function whyFailed(thrown: unknown, workspace: string): Refusal {
  return { why: `its condition failed: ${messageOf(thrown)}`, ...thrownAt(thrown, workspace) };
}

type Trace = Omit<NextDecision, "choice">;

/** The choice of a row that fires. It waits for an approval if the row asks for one. */
async function byRow(
  question: Question,
  by: Trace,
  { rule, row }: { readonly rule: RowSpec; readonly row: number },
  ctx: StageContext,
): Promise<NextDecision> {
  const { to, approval } = rule;
  const { result } = question;
  const ask = (): unknown => (rule.input === undefined ? to : { ...to, input: rule.input(result, ctx) });
  const decision = await decisionOf(question, { ...by, row }, { name: `row ${row}`, targets: undefined, ask });
  // A choice that cannot be followed fails the run, which needs no approval.
  if (approval === undefined || decision.rejected !== undefined) return decision;
  return { ...decision, approval: { ...approval, row } };
}

/** Asks a route and validates its choice. A promise only where the route or a schema is asynchronous. */
function decisionOf(question: Question, by: Trace, route: Route): Promise<NextDecision> | NextDecision {
  const { state, workspace } = question;
  const answered = (value: unknown): Promise<NextDecision> | NextDecision => validated(question, by, route, value);
  const threw = (thrown: unknown): NextDecision => ({
    ...rejectedBy(by, `${route.name} of ${state} threw: ${messageOf(thrown)}`),
    ...thrownAt(thrown, workspace),
  });
  try {
    const value = route.ask();
    const decision = isPromiseLike(value) ? Promise.resolve(value).then(answered) : answered(value);
    return decision instanceof Promise ? decision.catch(threw) : decision;
  } catch (thrown) {
    return threw(thrown);
  }
}

function validated(
  question: Question,
  by: Trace,
  { name, targets }: Route,
  value: unknown,
): Promise<NextDecision> | NextDecision {
  const { spec, state, result, mayReturn } = question;
  const decided = (reading: ResolvedChoiceResult): NextDecision => {
    if (!reading.ok) return rejectedBy(by, `${name} of ${state} cannot be followed: ${reading.reason}`);
    if (reading.choice.kind === "return" && !mayReturn) return rejectedBy(by, NOTHING_SUSPENDED);
    const undeclared = targets && statesOf(reading.choice).find((target) => !targets.includes(target));
    if (undeclared === undefined) return { ...by, choice: reading.choice };
    const declared = targets?.join(", ") || "no state";
    return rejectedBy(by, `${name} of ${state} went to ${undeclared}, but was declared for ${declared}`);
  };
  const output: unknown = result.status === "completed" ? result.output : null;
  const reading = resolveChoice(value, spec, isJson(output) ? output : null, question);
  return reading instanceof Promise ? reading.then(decided) : decided(reading);
}

function rejectedBy(by: Trace, reason: string): NextDecision {
  return { ...by, rejected: reason, choice: failure(reason) };
}

function statesOf(choice: ResolvedChoice): readonly string[] {
  if (choice.kind === "to") return [choice.state];
  if (choice.kind !== "fanOut") return [];
  const { siblings, list, join, onFail } = choice;
  const after = onFail === undefined ? [join] : [join, onFail];
  if (list !== undefined) return [list, ...after];
  const states = siblings.flatMap((sibling): readonly string[] => {
    if (sibling.kind === "invoke") return [];
    return sibling.kind === "branch" ? [sibling.state, sibling.terminal] : [sibling.state];
  });
  return [...states, ...after];
}

function unhandled(state: string, result: Routable): ResolvedChoice {
  switch (result.status) {
    case "completed":
      return failure(`${state} completed, and next says nothing about ${state}`);
    case "failed":
      return failure(`${state} failed (${result.code}): ${result.message}`);
    case "skipped":
      return failure(`${state} was skipped, and no route says what comes next`);
    case "paused":
      return failure(`${state} paused, and no row says what comes next`);
  }
}

function failure(reason: string): ResolvedChoice {
  return { kind: "fail", reason };
}

function byDefault(choice: ResolvedChoice): NextDecision {
  return { by: "default", choice };
}
