import { messageOf } from "../base/errors.ts";
import { ownJson } from "../base/own-json.ts";
import type { PipelineSpec, RowSpec, StateRoutes } from "../definition/spec.ts";
import type { StageContext, StageResult } from "../definition/types.ts";
import { readChoice, type ResolvedChoice } from "./choice.ts";

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
  const answer = askFunction(routes.next.get(state), result, ctx);
  if (answer === undefined) return byDefault(unhandled(state, result));
  return await followed(spec, state, result, { by: "function" }, `the route of ${state}`, answer);
}

type Routable = Extract<StageResult<unknown>, { readonly status: "completed" | "failed" | "skipped" }>;
type Ask = () => unknown;

/** The route for how the state ended, not yet called. */
function askFunction(routes: StateRoutes | undefined, result: Routable, ctx: StageContext): Ask | undefined {
  switch (result.status) {
    case "completed":
      return routes === undefined ? undefined : () => routes.completed(result, ctx);
    case "failed":
      return routes?.failed === undefined ? undefined : () => routes.failed?.(result, ctx);
    case "skipped":
      return routes?.skipped === undefined ? undefined : () => routes.skipped?.(result, ctx);
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
      return await followed(spec, state, result, by, `row ${row}`, () => rule.to);
    }
    rejectedRows.push({ row, why });
  }
  const listed = rejectedRows.map(({ row, why }) => `row ${row}: ${why}`).join("; ") || `no row is for ${state}`;
  const choice =
    result.status === "completed" ? failure(`${state} completed, and no row says what comes next (${listed})`) : unhandled(state, result);
  return { ...byDefault(choice), ...(rejectedRows.length === 0 ? {} : { rejectedRows }) };
}

/** Why a row does not fire; undefined when it does. A condition that throws, or answers anything but true, has not said yes. */
async function whyNot(rule: RowSpec, result: Routable, ctx: StageContext): Promise<string | undefined> {
  const event = EVENTS[result.status];
  if (rule.on !== event) return `it is for ${rule.on}, this was ${event}`;
  if (rule.when === undefined) return undefined;
  try {
    // Typed as synchronous, awaited all the same: a promise left alone could reject with nobody to hear it.
    const answer: unknown = await rule.when(result, ctx);
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
  who: string,
  ask: Ask,
): Promise<NextDecision> {
  try {
    const value: unknown = await ask();
    const output = result.status === "completed" ? ownJson(result.output) : ownJson(null);
    const reading = await readChoice(value, spec, state, output.ok ? output.value : null);
    if (reading.ok) return { ...by, choice: reading.choice };
    return { ...by, rejected: reading.reason, choice: failure(`${who} cannot be followed: ${reading.reason}`) };
  } catch (thrown) {
    const reason = `${who} threw: ${messageOf(thrown)}`;
    return { ...by, rejected: reason, choice: failure(reason) };
  }
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
  return value === null ? "null" : `a ${typeof value}`;
}
