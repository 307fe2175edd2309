// The rows of a pipeline as the transitions of a document's states, and their guards.

import type { AnyChoice, Guard, JsonObject, PipelineSpec, RowSpec, StateSpec } from "@sluice/core";
import { canonicalJson, idFault, type Report } from "@sluice/core/runtime";
import { ANY_EVENT } from "../check/moves.ts";
import { conditionsOf } from "../expressions/guard.ts";
import { eventsOfKind } from "../kinds/compile.ts";
import { RETURN } from "../kinds/ends.ts";
import { kindOfState } from "../kinds/write.ts";
import { idFor } from "../read/names.ts";

/** What a document writes for what a pipeline has by id. */
export interface DocumentNames {
  readonly states: ReadonlyMap<string, string>;
  /** Of the pipelines that it invokes. */
  readonly references: ReadonlyMap<string, string>;
}

interface WrittenRows {
  /** `on` and `safe_next` by the id of the state. */
  readonly transitions: ReadonlyMap<string, JsonObject>;
  readonly guards: ReadonlyMap<string, JsonObject>;
}

interface Writing {
  readonly report: Report;
  readonly names: DocumentNames;
  readonly guards: Map<string, JsonObject>;
}

/** A row with its place in the table. */
interface PlacedRow {
  readonly row: RowSpec;
  readonly index: number;
  readonly path: string;
}

/** What documents cannot say of rows is added to the report. */
export function writeRows(report: Report, { states, routes }: PipelineSpec, names: DocumentNames): WrittenRows {
  const guards = new Map<string, JsonObject>();
  if (routes.kind === "functions") {
    report.add("next", "routes with functions", "write a table: transitions");
    return { transitions: new Map(), guards };
  }
  const byState = new Map<string, Map<string, PlacedRow[]>>();
  for (const [index, row] of routes.rows.entries()) {
    const placed = { row, index, path: `transitions[${index}]` };
    const event = eventOf(report, placed, states.get(row.from));
    if (event === undefined) continue;
    const events = byState.get(row.from) ?? new Map<string, PlacedRow[]>();
    byState.set(row.from, events.set(event, [...(events.get(event) ?? []), placed]));
  }
  const writing: Writing = { report, names, guards };
  const transitions = new Map<string, JsonObject>();
  const inOrder: PlacedRow[] = [];
  for (const id of idsInOrder(states.keys(), names.states)) {
    const events = byState.get(id) ?? new Map<string, PlacedRow[]>();
    const others = events.get(ANY_EVENT) ?? [];
    events.delete(ANY_EVENT);
    const written = Object.fromEntries([...events].map(([event, rows]) => [event, transitionOf(writing, event, rows)]));
    // The keys of an object are not always in the order in which they were added.
    inOrder.push(...Object.keys(written).flatMap((event) => events.get(event) ?? []), ...others);
    transitions.set(id, {
      ...(events.size === 0 ? {} : { on: written }),
      ...(others.length === 0 ? {} : { safe_next: safeNext(writing, others) }),
    });
  }
  const moved = inOrder.find(({ index }, place) => index !== place);
  if (moved !== undefined && inOrder.length === routes.rows.length)
    report.add(
      moved.path,
      "has a place that it would not have in a document",
      "list the rows state by state, those of an event together, and those of any other event last",
    );
  return { transitions, guards };
}

/** The ids of states as a document lists their names. */
function idsInOrder(ids: Iterable<string>, names: ReadonlyMap<string, string>): readonly string[] {
  return Object.values(Object.fromEntries([...ids].map((id) => [names.get(id) ?? id, id])));
}

/** The event of a row that a document can have. */
function eventOf(
  report: Report,
  { row: { from, on, input }, path }: PlacedRow,
  state: StateSpec | undefined,
): string | undefined {
  const kind = state === undefined ? undefined : kindOfState(state);
  const events: readonly string[] = kind === undefined ? [] : eventsOfKind(kind);
  const isWritten = typeof on !== "string" || events.includes(on);
  if (from === "*") report.add(`${path}.from`, "stands for every state", "write a row for each state");
  if (!isWritten) report.add(`${path}.on`, `is ${on}, and the transitions of a document wait for events`);
  if (input !== undefined) report.add(`${path}.input`, "is a function");
  if (from === "*" || !isWritten || input !== undefined) return undefined;
  return typeof on === "string" ? on : on.event;
}

/** What a state writes for an event: a name, a transition or a list of them. */
function transitionOf(writing: Writing, event: string, rows: readonly PlacedRow[]): JsonObject[string] {
  const written = rows.map((row) => moveOf(writing, event, row));
  const [only] = written;
  const isList = rows.length > 1 || rows[0]?.row.label === `${event}[0]`;
  return only === undefined || isList ? written : bareTarget(only);
}

function bareTarget(move: JsonObject): JsonObject[string] {
  const { target, ...more } = move;
  return target !== undefined && Object.keys(more).length === 0 ? target : move;
}

/** The one transition for every event that a state does not name. */
function safeNext(writing: Writing, rows: readonly PlacedRow[]): JsonObject[string] {
  const [first, second] = rows;
  if (second !== undefined)
    writing.report.add(`${second.path}.on`, "is a second row for any other event, and a state of a document has one");
  if (first === undefined) return "";
  const move = moveOf(writing, ANY_EVENT, first);
  if ("invoke" in move || "fork" in move)
    writing.report.add(`${first.path}.to`, "runs others first, which a document does only for an event with a name");
  return bareTarget(move);
}

function moveOf(writing: Writing, event: string, { row, path }: PlacedRow): JsonObject {
  const { when, to, approval } = row;
  const message = approval?.message;
  return {
    ...actionOf(writing, event, to, `${path}.to`),
    ...(when === undefined ? {} : guardsOf(writing, when, `${path}.when`)),
    ...(approval === undefined ? {} : { requires_approval: true }),
    ...(message === undefined ? {} : { approval_message: message }),
  };
}

function actionOf({ report, names }: Writing, event: string, choice: AnyChoice, path: string): JsonObject {
  const nameOf = (id: string): string => names.states.get(id) ?? id;
  const refuse = (message: string): JsonObject => {
    report.add(path, message);
    return {};
  };
  if ("stages" in choice) return refuse("is a list of stages, which documents do not have");
  switch (choice.kind) {
    case "to":
      if (choice.input !== undefined) return refuse(`gives ${choice.state} an input, which documents do not`);
      if (choice.context !== undefined) return refuse("changes the context, which only data does in a document");
      return { target: nameOf(choice.state) };
    case "return":
      return { target: RETURN };
    case "fork": {
      const entries = Object.entries(choice.branches);
      const odd = entries.find(([key]) => idFault(key) !== undefined)?.[0];
      if (odd !== undefined) return refuse(`has a branch ${JSON.stringify(odd)}, whose key is not an id`);
      if (choice.input !== undefined || entries.some(([, { input }]) => input !== undefined))
        return refuse("gives inputs, which the forks of documents do not");
      const branches = entries.map(([key, { initial, terminal }]) => [
        key,
        { initial: nameOf(initial), terminal: nameOf(terminal) },
      ]);
      const join = choice.join === undefined ? {} : { join: choice.join };
      return { fork: { branches: Object.fromEntries(branches), ...join, ...afterOf(choice, nameOf) } };
    }
    case "invoke": {
      const key = idFor(event);
      if (choice.key !== key) return refuse(`has another key than ${key}, which a document gives it`);
      const input = choice.input === undefined ? {} : { input: choice.input };
      return { invoke: names.references.get(choice.pipeline) ?? choice.pipeline, ...afterOf(choice, nameOf), ...input };
    }
    default:
      return refuse(`is ${choice.kind}, which documents do not have`);
  }
}

function afterOf(
  { onComplete, onFail }: { readonly onComplete: string; readonly onFail?: string },
  nameOf: (id: string) => string,
): JsonObject {
  return { on_complete: nameOf(onComplete), ...(onFail === undefined ? {} : { on_fail: nameOf(onFail) }) };
}

/** The names of a row's guards, which are added to the guards of the document. */
function guardsOf({ report, guards }: Writing, when: Guard, path: string): JsonObject {
  const known = conditionsOf(when);
  if (known === undefined || known.asksMore === true) {
    report.add(path, when.opaque === true ? "is a function" : "is not made of named guards", "use operatorGuard()");
    return {};
  }
  const names: string[] = [];
  for (const { name, field, op, value } of known.conditions) {
    if (name === undefined) {
      report.add(path, "has a condition without a name");
      return {};
    }
    const guard: JsonObject = { field, op, ...(value === undefined ? {} : { value }) };
    const before = guards.get(name);
    if (before !== undefined && canonicalJson(before) !== canonicalJson(guard))
      report.add(path, `has another guard that is called ${JSON.stringify(name)} than an earlier row`);
    guards.set(name, guard);
    names.push(name);
  }
  return names.length === 1 && names[0] !== undefined ? { guard: names[0] } : { guards: names };
}
