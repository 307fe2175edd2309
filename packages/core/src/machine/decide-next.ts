import { messageOf } from "../base/errors.ts";
import { isJson, type Json, type JsonObject, toJsonValue } from "../base/json.ts";
import { declaredTargets, parseChoice, type SiblingShape } from "../definition/choice.ts";
import type { StageContext, StageResult } from "../definition/result.ts";
import type { PipelineSpec, RowSpec, StateRoutes } from "../definition/spec.ts";
import type { Issue } from "../schema/schema.ts";

/** What comes next and who said so. JSON: it is journaled, and replay reads it instead of asking again. */
export type NextDecision = {
  /** `default`: nothing was declared for how the state ended. */
  readonly by: "function" | "table" | "default";
  /** The table row that fired, from 0. */
  readonly row?: number;
  /** Rows for this state that were looked at before and did not fire. */
  readonly rejectedRows?: readonly RejectedRow[];
  /** Why what the route returned cannot be followed; the choice is then to fail. */
  readonly rejected?: string;
  readonly choice: ResolvedChoice;
};
export type RejectedRow = { readonly row: number; readonly why: string };

const EVENTS = { completed: "success", failed: "failure", skipped: "skipped" } as const;

/**
 * Decides what follows a state, from its result and the context alone. Calls user code (routes, `when`) and nothing else;
 * whatever that code does, the answer is a choice that can be followed.
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
  const asked = askFunction(routes.next.get(state), result, ctx);
  if (asked === undefined) return byDefault(unhandled(state, result));
  return await followed(spec, state, result, { by: "function" }, asked);
}

type Routable = Extract<StageResult<unknown>, { readonly status: "completed" | "failed" | "skipped" }>;
/** A route, not yet asked. */
interface Asked {
  readonly who: string;
  /** Where it declared it would go. */
  readonly targets: readonly string[] | undefined;
  ask(): unknown;
}

function askFunction(routes: StateRoutes | undefined, result: Routable, ctx: StageContext): Asked | undefined {
  const asked = (route: object, ask: () => unknown): Asked => ({
    who: `the ${result.status} route`,
    targets: declaredTargets(route),
    ask,
  });
  switch (result.status) {
    case "completed":
      return routes === undefined ? undefined : asked(routes.completed, () => routes.completed(result, ctx));
    case "failed":
      return routes?.failed === undefined ? undefined : asked(routes.failed, () => routes.failed?.(result, ctx));
    case "skipped":
      return routes?.skipped === undefined ? undefined : asked(routes.skipped, () => routes.skipped?.(result, ctx));
  }
}

async function byTable(
  rows: readonly RowSpec[],
  spec: PipelineSpec,
  state: string,
  result: Routable,
  ctx: StageContext,
): Promise<NextDecision> {
  const rejectedRows: RejectedRow[] = [];
  for (const [row, rule] of rows.entries()) {
    if (rule.from !== state && rule.from !== "*") continue;
    const why = await whyNot(rule, result, ctx);
    if (why === undefined) {
      const by = { by: "table", row, ...(rejectedRows.length === 0 ? {} : { rejectedRows }) } as const;
      return await followed(spec, state, result, by, { who: `row ${row}`, targets: undefined, ask: () => rule.to });
    }
    rejectedRows.push({ row, why });
  }
  const listed = rejectedRows.map(({ row, why }) => `row ${row}: ${why}`).join("; ") || `no row is for ${state}`;
  const choice =
    result.status === "completed"
      ? failure(`${state} completed, and no row says what comes next (${listed})`)
      : unhandled(state, result);
  return { ...byDefault(choice), ...(rejectedRows.length === 0 ? {} : { rejectedRows }) };
}

/** Why a row does not fire; undefined when it does. A condition that throws, or answers anything but true, has not said yes. */
async function whyNot(rule: RowSpec, result: Routable, ctx: StageContext): Promise<string | undefined> {
  const event = EVENTS[result.status];
  if (rule.on !== event) return `it is for ${rule.on}, this was ${event}`;
  if (rule.when === undefined) return undefined;
  try {
    // Typed as synchronous, awaited all the same: a promise left alone could reject with nobody to hear it.
    const asked: unknown = rule.when(result, ctx);
    const answer = await asked;
    if (answer === true) return undefined;
    return answer === false ? "its condition said no" : `its condition returned ${typeOf(answer)}, not true or false`;
  } catch (thrown) {
    return `its condition failed: ${messageOf(thrown)}`;
  }
}

/** Asks a route and checks what it says. */
async function followed(
  spec: PipelineSpec,
  state: string,
  result: Routable,
  by: Pick<NextDecision, "by" | "row" | "rejectedRows">,
  { who, targets, ask }: Asked,
): Promise<NextDecision> {
  const rejected = (reason: string): NextDecision => ({ ...by, rejected: reason, choice: failure(reason) });
  let value: unknown;
  try {
    value = await ask();
  } catch (thrown) {
    return rejected(`${who} of ${state} threw: ${messageOf(thrown)}`);
  }
  const output: unknown = result.status === "completed" ? result.output : null;
  const reading = await resolveChoice(value, spec, isJson(output) ? output : null);
  if (!reading.ok) return rejected(`${who} of ${state} cannot be followed: ${reading.reason}`);
  const stray = targets === undefined ? undefined : statesOf(reading.choice).find((name) => !targets.includes(name));
  if (stray === undefined) return { ...by, choice: reading.choice };
  return rejected(`${who} of ${state} went to ${stray}, but was declared for ${targets?.join(", ") || "no state"}`);
}

function statesOf(choice: ResolvedChoice): readonly string[] {
  if (choice.kind === "to") return [choice.state];
  return choice.kind === "fanOut" ? [...choice.siblings.map(({ state }) => state), choice.join] : [];
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

function typeOf(value: unknown): string {
  if (value === undefined) return "nothing";
  return value === null ? "null" : `a ${typeof value}`;
}

/** A choice that can be followed: its states exist, its inputs fit them, and all of it is JSON, since it is journaled. */
export type ResolvedChoice =
  | { readonly kind: "to"; readonly state: string; readonly input: Json; readonly context?: JsonObject }
  | {
      readonly kind: "fanOut";
      /** In declared order, each state once. */
      readonly siblings: readonly ResolvedSibling[];
      readonly join: string;
      readonly input: Json;
      readonly onFailure: "cancel" | "settle";
    }
  | { readonly kind: "done"; readonly output: Json }
  | { readonly kind: "fail"; readonly reason: string }
  | { readonly kind: "cancel"; readonly reason: string };
export type ResolvedSibling = { readonly state: string; readonly input: Json };
export type ResolvedChoiceResult =
  | { readonly ok: true; readonly choice: ResolvedChoice }
  | { readonly ok: false; readonly reason: string };

/**
 * Turns whatever a route returned into a choice that can be followed, or says why it is none. `output` is what an empty
 * `stages` list ends the run with.
 */
export async function resolveChoice(value: unknown, spec: PipelineSpec, output: Json): Promise<ResolvedChoiceResult> {
  const reading = parseChoice(value, spec.states, output);
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
        for (const sibling of shape.siblings)
          siblings.push({ state: sibling.state, input: await inputFor(spec, sibling) });
        const { join, onFailure } = shape;
        const input = await inputFor(spec, { state: join, input: shape.input });
        return { ok: true, choice: { kind: "fanOut", siblings, join, input, onFailure } };
      }
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

/** Why a payload does not fit; never leaves this file. */
class Refusal extends Error {}

async function inputFor(spec: PipelineSpec, { state, input }: SiblingShape): Promise<Json> {
  const schema = spec.states.get(state)?.inputSchema;
  if (schema === undefined) return jsonOrRefuse(input, `the input of ${state}`);
  const verdict = await schema.check(input);
  if (!verdict.ok)
    throw new Refusal(`the input of ${state} does not fit its inputSchema: ${issuesText(verdict.issues)}`);
  return jsonOrRefuse(verdict.value, `the input of ${state}`);
}

function jsonOrRefuse(value: unknown, what: string): Json {
  const own = toJsonValue(value);
  if (!own.ok) throw new Refusal(`${what} is not JSON: ${own.fault}`);
  return own.value;
}

function issuesText(issues: readonly Issue[]): string {
  return issues.map(({ path, message }) => `${path} ${message}`).join("; ");
}
