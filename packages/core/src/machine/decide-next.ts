import { messageOf } from "../base/errors.ts";
import { isJson } from "../base/json.ts";
import { declaredTargets } from "../definition/choice.ts";
import type { StageContext, StageResult } from "../definition/result.ts";
import type { PipelineSpec, RowSpec, StateRoutes } from "../definition/spec.ts";
import { type ResolvedChoice, resolveChoice } from "./resolve-choice.ts";

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
