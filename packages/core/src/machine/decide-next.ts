import { messageOf } from "../base/errors.ts";
import { isJson, type Json, type JsonObject, toJsonValue } from "../base/json.ts";
import { declaredTargets, parseChoice, type SiblingShape } from "../definition/choice.ts";
import type { StageContext, StageResult } from "../definition/result.ts";
import type { GuardScope, PipelineSpec, RowSpec, StateRoutes } from "../definition/spec.ts";
import type { Issue } from "../schema/schema.ts";

/** What comes next and what decided it. JSON, because it is recorded. */
export type NextDecision = {
  /**
   * `default`: no route is declared for this result. `event`: a row of the event. `safe_next`: a row for events that no other row
   * names. `interrupt`: a changed file.
   */
  readonly by: "function" | "table" | "default" | "event" | "safe_next" | "interrupt";
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
  readonly choice: ResolvedChoice;
};
export type RejectedRow = { readonly row: number; readonly why: string };

const EVENTS = { completed: "success", failed: "failure", skipped: "skipped" } as const;

/**
 * Decides what follows a state from its result and the context. The only side effects are those of user code (routes, `when`);
 * whatever that code does, the result is a valid choice.
 */
export async function decideNext(
  spec: PipelineSpec,
  state: string,
  result: StageResult<unknown>,
  ctx: StageContext,
): Promise<NextDecision> {
  if (result.status === "cancelled") return byDefault({ kind: "cancel", reason: result.reason });
  if (result.status === "paused") return byDefault(failure(`${state} paused, and a pause has no route`));
  const { routes } = spec;
  if (routes.kind === "table") return await byTable(routes.rows, spec, state, result, ctx);
  const route = routeFor(routes.next.get(state), result, ctx);
  if (route === undefined) return byDefault(unhandled(state, result));
  return await decisionOf(spec, state, result, { by: "function" }, route);
}

type Routable = Extract<StageResult<unknown>, { readonly status: "completed" | "failed" | "skipped" }>;
interface Route {
  readonly name: string;
  /** The targets it declared. */
  readonly targets: readonly string[] | undefined;
  ask(): unknown;
}

function routeFor(routes: StateRoutes | undefined, result: Routable, ctx: StageContext): Route | undefined {
  const name = `the ${result.status} route`;
  const made = (route: object, ask: () => unknown): Route => ({ name, targets: declaredTargets(route), ask });
  switch (result.status) {
    case "completed":
      return routes && made(routes.completed, () => routes.completed(result, ctx));
    case "failed":
      return routes?.failed && made(routes.failed, () => routes.failed?.(result, ctx));
    case "skipped":
      return routes?.skipped && made(routes.skipped, () => routes.skipped?.(result, ctx));
  }
}

/** A decision records no more rows than these, so that a long table does not fill the journal. */
const MOST_ROWS = 20;

async function byTable(
  rows: readonly RowSpec[],
  spec: PipelineSpec,
  state: string,
  result: Routable,
  ctx: StageContext,
): Promise<NextDecision> {
  const rejectedRows: RejectedRow[] = [];
  let more = 0;
  const trace = (): Pick<NextDecision, "rejectedRows" | "moreRejectedRows"> => ({
    ...(rejectedRows.length === 0 ? {} : { rejectedRows }),
    ...(more === 0 ? {} : { moreRejectedRows: more }),
  });
  // By index, since most rows of a long table are for other states.
  for (let row = 0; row < rows.length; row += 1) {
    const rule = rows[row];
    if (rule === undefined || (rule.from !== state && rule.from !== "*")) continue;
    const why = await whyNot(rule, { result, ctx });
    if (why === undefined) {
      const by = { by: "table", row, ...trace() } as const;
      return await decisionOf(spec, state, result, by, { name: `row ${row}`, targets: undefined, ask: () => rule.to });
    }
    if (rejectedRows.length < MOST_ROWS) rejectedRows.push({ row, why });
    else more += 1;
  }
  const listed = rejectedRows.map(({ row, why }) => `row ${row}: ${why}`).join("; ") || `no row is for ${state}`;
  const others = more === 0 ? "" : `; and ${more} more`;
  const choice =
    result.status === "completed"
      ? failure(`${state} completed, and no row says what comes next (${listed}${others})`)
      : unhandled(state, result);
  return { ...byDefault(choice), ...trace() };
}

/** Why a row does not fire; undefined if it does. */
async function whyNot(rule: RowSpec, scope: GuardScope & { readonly result: Routable }): Promise<string | undefined> {
  const event = EVENTS[scope.result.status];
  if (rule.on !== event) return `it is for ${rule.on}, this was ${event}`;
  if (rule.when === undefined) return undefined;
  try {
    const verdict = rule.when.evaluate(scope);
    const { fires, why } = "then" in verdict ? await verdict : verdict;
    return fires === true ? undefined : why;
  } catch (thrown) {
    return `its condition failed: ${messageOf(thrown)}`;
  }
}

/** Asks a route and validates its choice. */
async function decisionOf(
  spec: PipelineSpec,
  state: string,
  result: Routable,
  by: Pick<NextDecision, "by" | "row" | "rejectedRows">,
  { name, targets, ask }: Route,
): Promise<NextDecision> {
  const rejected = (reason: string): NextDecision => ({ ...by, rejected: reason, choice: failure(reason) });
  let value: unknown;
  try {
    value = await ask();
  } catch (thrown) {
    return rejected(`${name} of ${state} threw: ${messageOf(thrown)}`);
  }
  const output: unknown = result.status === "completed" ? result.output : null;
  const reading = await resolveChoice(value, spec, isJson(output) ? output : null);
  if (!reading.ok) return rejected(`${name} of ${state} cannot be followed: ${reading.reason}`);
  const undeclared = targets && statesOf(reading.choice).find((target) => !targets.includes(target));
  if (undeclared === undefined) return { ...by, choice: reading.choice };
  return rejected(
    `${name} of ${state} went to ${undeclared}, but was declared for ${targets?.join(", ") || "no state"}`,
  );
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
  }
}

function failure(reason: string): ResolvedChoice {
  return { kind: "fail", reason };
}

function byDefault(choice: ResolvedChoice): NextDecision {
  return { by: "default", choice };
}

/** A valid choice: its states exist, its inputs fit their schemas, and it is JSON, because it is recorded. */
export type ResolvedChoice =
  | { readonly kind: "to"; readonly state: string; readonly input: Json; readonly context?: JsonObject }
  | {
      readonly kind: "fanOut";
      /** In declared order, each state once; of a list, one for each item, all of the same state. */
      readonly siblings: readonly ResolvedSibling[];
      readonly join: string;
      readonly input: Json;
      /** `any`: the first child that completes cancels the others; it fails if all fail. */
      readonly onFailure: "cancel" | "settle" | "any";
      /** The state that continues after a failure. Without it, the failure is one of the state that fanned out. */
      readonly onFail?: string;
      /** The state that runs once for each item of a list. */
      readonly list?: string;
      /** How many items of a list run at the same time at most. */
      readonly maxParallel?: number;
    }
  /** The state goes on: its event was refused. */
  | { readonly kind: "stay"; readonly reason: string }
  /** The suspended execution continues. */
  | { readonly kind: "return" }
  | { readonly kind: "done"; readonly output: Json }
  | { readonly kind: "fail"; readonly reason: string }
  | { readonly kind: "cancel"; readonly reason: string };
/** What one child of a fan-out runs. */
export type ResolvedSibling =
  /** One state. `key` names an item of a list; any other sibling is named by its state. */
  | { readonly kind?: never; readonly state: string; readonly input: Json; readonly key?: string }
  /** From `state` along its routes to `terminal`, which is not entered. */
  | {
      readonly kind: "branch";
      readonly key: string;
      readonly state: string;
      readonly terminal: string;
      readonly input: Json;
    }
  /** Another pipeline. The input is merged into its initial context. */
  | { readonly kind: "invoke"; readonly key: string; readonly pipeline: string; readonly input: JsonObject };
export type FanOutChoice = Extract<ResolvedChoice, { readonly kind: "fanOut" }>;
export type ResolvedChoiceResult =
  | { readonly ok: true; readonly choice: ResolvedChoice }
  | { readonly ok: false; readonly reason: string };

/** Validates a route's return value. `output` is the run's output if the value is an empty `stages` list. */
export async function resolveChoice(value: unknown, spec: PipelineSpec, output: Json): Promise<ResolvedChoiceResult> {
  const reading = parseChoice(value, spec.states, output, spec.limits.maxItems);
  if (!reading.ok) return { ok: false, reason: reading.reason };
  const { shape } = reading;
  try {
    switch (shape.kind) {
      case "to": {
        const input = await inputFor(spec, shape);
        const patch = shape.context === undefined ? {} : { context: shape.context };
        return { ok: true, choice: { kind: "to", state: shape.state, input, ...patch } };
      }
      case "fanOut": {
        const siblings: ResolvedSibling[] = [];
        for (const sibling of shape.siblings) {
          const { state, key } = sibling;
          siblings.push({ state, input: await inputFor(spec, sibling), ...(key === undefined ? {} : { key }) });
        }
        const { join, onFailure, list, maxParallel } = shape;
        const input = await inputFor(spec, { state: join, input: shape.input });
        const fanOut = { kind: "fanOut", siblings, join, input, onFailure } as const;
        const ofList = {
          ...(list === undefined ? {} : { list }),
          ...(maxParallel === undefined ? {} : { maxParallel }),
        };
        return { ok: true, choice: { ...fanOut, ...ofList } };
      }
      case "fork": {
        const siblings: ResolvedSibling[] = [];
        for (const { key, initial: state, terminal, input } of shape.branches) {
          const own = await inputFor(spec, { state, input, key });
          siblings.push({ kind: "branch", key, state, terminal, input: own });
        }
        const onFailure = shape.join === "any" ? "any" : "cancel";
        return { ok: true, choice: await continuing(spec, { ...shape, onFailure, siblings }) };
      }
      case "invoke": {
        const { pipeline, key = pipeline, input } = shape;
        if (!spec.pipelines.has(pipeline))
          throw new Refusal(`invoke(): there is no pipeline ${JSON.stringify(pipeline)}`);
        const siblings = [{ kind: "invoke", key, pipeline, input }] as const;
        return {
          ok: true,
          choice: await continuing(spec, { ...shape, onFailure: "cancel", siblings, input: undefined }),
        };
      }
      case "return":
        return { ok: true, choice: { kind: "return" } };
      case "done":
        return { ok: true, choice: { kind: "done", output: jsonOrRefuse(shape.output, "the output") } };
      case "fail":
      case "cancel":
        return { ok: true, choice: { kind: shape.kind, reason: shape.reason } };
    }
  } catch (thrown) {
    if (thrown instanceof Refusal) return { ok: false, reason: thrown.message };
    throw thrown;
  }
}

/** The fan-out of a fork or of another pipeline. */
async function continuing(
  spec: PipelineSpec,
  after: Pick<FanOutChoice, "siblings" | "onFailure" | "onFail"> & {
    readonly onComplete: string;
    readonly input: unknown;
  },
): Promise<FanOutChoice> {
  const { siblings, onFailure, onFail, onComplete: join } = after;
  const input = await inputFor(spec, { state: join, input: after.input });
  return {
    kind: "fanOut",
    siblings,
    join,
    input,
    onFailure,
    ...(onFail === undefined ? {} : { onFail }),
  };
}

/** Why a payload is invalid; caught in this file. */
class Refusal extends Error {}

async function inputFor(spec: PipelineSpec, { state, input, key }: SiblingShape): Promise<Json> {
  const schema = spec.states.get(state)?.inputSchema;
  const name = `the input of ${state}${key === undefined ? "" : ` for item ${JSON.stringify(key)}`}`;
  if (schema === undefined) return jsonOrRefuse(input, name);
  const verdict = await schema.check(input);
  if (!verdict.ok) throw new Refusal(`${name} does not fit its inputSchema: ${issuesText(verdict.issues)}`);
  return jsonOrRefuse(verdict.value, name);
}

function jsonOrRefuse(value: unknown, what: string): Json {
  const own = toJsonValue(value);
  if (!own.ok) throw new Refusal(`${what} is not JSON: ${own.fault}`);
  return own.value;
}

function issuesText(issues: readonly Issue[]): string {
  return issues.map(({ path, message }) => `${path} ${message}`).join("; ");
}
