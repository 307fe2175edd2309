// The rows that a decision considered, from what a run recorded of its table and of the decision.
import { field, type Json } from "@sluice/core";
import { listAt, numberAt, textAt } from "./fields.ts";

/** A row of a pipeline's table, as the run recorded it. */
export interface TableRow {
  /** A state, or `*` for every state. */
  readonly from: string;
  /** Its trigger: `success`, or `event READY`. */
  readonly on: string;
  /** The name of its event; undefined for a row after a result. */
  readonly event?: string;
  /** Its condition in words; absent if it has none. */
  readonly when?: string;
  /** Where it leads, in words. */
  readonly to: string;
  readonly approval: boolean;
  readonly label?: string;
}

/** A row that was a candidate of a decision. */
export interface DecidedRow extends Partial<Pick<TableRow, "when" | "to" | "label" | "on">> {
  /** From 0. */
  readonly row: number;
  readonly approval: boolean;
  /** `not asked`: an earlier row fired. */
  readonly verdict: "fired" | "did not fire" | "not asked";
  readonly why: string;
}

/** The rows in `run.started`, by their position; undefined if it has none. */
export function tableRowsIn(rows: Json | undefined): readonly TableRow[] | undefined {
  return Array.isArray(rows) ? rows.map(tableRow) : undefined;
}

function tableRow(row: Json): TableRow {
  const on = field(row, "on");
  const event = textAt(on, "event");
  const [when, label] = [textAt(row, "when"), textAt(row, "label")];
  return {
    from: textAt(row, "from"),
    on: typeof on === "string" ? on : `event ${event}`,
    ...(typeof on === "string" ? {} : { event }),
    ...(when === "" ? {} : { when }),
    to: textAt(row, "to"),
    approval: field(row, "approval") === true,
    ...(label === "" ? {} : { label }),
  };
}

/** What a decision recorded, and its state. */
interface Decision {
  readonly from: string;
  readonly by: string;
  /** The event that the state sent; empty for a result. */
  readonly event: string;
  /** The row that fired. */
  readonly fired?: number;
  readonly approved: boolean;
  /** Whether a person refused the row that fired. */
  readonly denied: boolean;
  /** The rows that did not fire: `{ row, label?, when?, why }`. */
  readonly rejected: readonly Json[];
}

/** The candidates of a `route.decided` event, in their order. `rows` is the table, as far as it is known. */
export function routeTable(data: Json, rows: readonly TableRow[] | undefined): readonly DecidedRow[] {
  const why = field(data, "why");
  const row = field(why, "row");
  return decidedRows(rows, {
    from: textAt(data, "from"),
    by: textAt(why, "by"),
    event: textAt(why, "event"),
    ...(typeof row === "number" ? { fired: row } : {}),
    approved: field(why, "approved") === true,
    denied: textAt(why, "code") === "approval_denied",
    rejected: listAt(why, "rejectedRows"),
  });
}

/** The candidates of a `transition.rejected` event of a state. */
export function refusalTable(data: Json, from: string, rows: readonly TableRow[] | undefined): readonly DecidedRow[] {
  const row = field(data, "row");
  return decidedRows(rows, {
    from,
    by: "event",
    event: textAt(data, "event"),
    ...(typeof row === "number" ? { fired: row } : {}),
    approved: false,
    denied: typeof row === "number",
    rejected: listAt(data, "rows"),
  });
}

function decidedRows(rows: readonly TableRow[] = [], decision: Decision): readonly DecidedRow[] {
  const { fired, rejected } = decision;
  const known = new Map(rejected.map((one) => [numberAt(one, "row"), one]));
  const others = isByTable(decision) ? rows.flatMap((row, at) => (isCandidate(row, rows, decision) ? [at] : [])) : [];
  const at = [...new Set([...known.keys(), ...(fired === undefined ? [] : [fired]), ...others])].sort((a, b) => a - b);
  return at.map((index): DecidedRow => {
    const recorded = known.get(index);
    const { from: _from, event: _event, approval = false, ...facts } = rows[index] ?? { from: "" };
    const [when, label] = [textAt(recorded, "when"), textAt(recorded, "label")];
    const own = {
      row: index,
      ...facts,
      ...(when === "" ? {} : { when }),
      ...(label === "" ? {} : { label }),
    };
    return { ...own, approval, ...verdictOf(index, recorded, own.when, decision) };
  });
}

function verdictOf(
  row: number,
  recorded: Json | undefined,
  when: string | undefined,
  { fired, approved, denied }: Decision,
): Pick<DecidedRow, "verdict" | "why"> {
  if (row === fired) {
    const holds = when === undefined ? "it has no condition" : "its condition holds";
    const answer = denied ? ", but a person did not approve it" : approved ? ", and a person approved it" : "";
    return { verdict: "fired", why: `${holds}${answer}` };
  }
  if (recorded !== undefined) return { verdict: "did not fire", why: textAt(recorded, "why") };
  if (fired !== undefined && row > fired) return { verdict: "not asked", why: "an earlier row fired" };
  return { verdict: "did not fire", why: "the reason is not recorded" };
}

function isByTable({ by, rejected }: Decision): boolean {
  return by === "table" || by === "event" || by === "safe_next" || rejected.length > 0;
}

/** Whether a decision considered a row: rows of `*` decide only about an event that no other row of the state names. */
function isCandidate(row: TableRow, rows: readonly TableRow[], { from, event }: Decision): boolean {
  const isOf = (one: TableRow): boolean => one.from === from || one.from === "*";
  if (!isOf(row)) return false;
  if (event === "") return row.event === undefined;
  if (row.event === event) return event !== "*";
  return row.event === "*" && !rows.some((one) => isOf(one) && one.event === event && event !== "*");
}
