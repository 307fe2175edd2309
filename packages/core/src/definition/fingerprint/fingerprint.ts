import { digestOf } from "../../base/canonical.ts";
import { type JsonObject, toJsonValue } from "../../base/json.ts";
import { declaredTargets } from "../choice.ts";
import type { PipelineSpec, RoutesSpec, RowSpec, StateSpec } from "../spec.ts";
import { digest, digestPart, type Fact, type Part, schemaPart, settingParts, short, textPart } from "./parts.ts";

/**
 * What the fingerprint covers, for the pipeline itself (`state` is empty) and each state, so that changes can be named. Lists,
 * since redaction would replace values under keys that look like names of secrets.
 */
export type PipelineParts = readonly StateParts[];
export type StateParts = {
  /** A state's id; empty for the pipeline. */
  readonly state: string;
  /** Names and values; a long value is a digest that starts with `#`. */
  readonly facts: readonly Fact[];
};

interface FullParts {
  readonly state: string;
  readonly parts: readonly Part[];
}

/** The version of the digest's input. Fingerprints of different versions cannot be compared. */
const FORM = 3;
/** A pipeline with more facts is recorded as one digest per state. */
const MOST_FACTS = 500;

type Spec = Omit<PipelineSpec, "fingerprint">;

/**
 * SHA-256 over what a resume relies on: ids, edges, envelopes, limits, schemas, prompt text and which hooks exist. Function
 * bodies are not included, so user code may change between deploys.
 */
export function fingerprint(spec: Spec): string {
  const states = fullParts(spec).map(({ state, parts }) => [state, valuesOf(state, parts)] as const);
  return digestOf({ form: FORM, id: spec.id, parts: Object.fromEntries(states) });
}

/** Throws for two parts of one name, since a change of the first would not change the fingerprint. */
function valuesOf(state: string, parts: readonly Part[]): JsonObject {
  const values = new Map(parts.map(({ name, value }) => [name, value]));
  if (values.size < parts.length) throw new Error(`two parts of state ${state} have one name`);
  return Object.fromEntries(values);
}

/** The parts of a pipeline as a run records them: a few hundred bytes per state, at most about ten kilobytes in all. */
export function pipelineParts(spec: Spec): PipelineParts {
  const all = fullParts(spec).map(({ state, parts }) => ({ state, facts: parts.flatMap(({ shown }) => shown) }));
  const count = all.reduce((sum, { facts }) => sum + facts.length, 0);
  return count <= MOST_FACTS ? all : all.map(({ state, facts }) => ({ state, facts: [["definition", digest(facts)]] }));
}

function fullParts(spec: Spec): readonly FullParts[] {
  const states = [...spec.states].map(([id, state]) => ({
    state: id,
    parts: [...partsOfState(state), ...partsOfRoutes(spec.routes, id)],
  }));
  return [{ state: "", parts: partsOfPipeline(spec) }, ...states];
}

function partsOfPipeline({ input, initial, context, limits, onCall, routes }: Spec): readonly Part[] {
  return [
    textPart("initial", initial),
    schemaPart("input", input),
    ...(Object.keys(context).length === 0 ? [] : [digestPart("context", context)]),
    ...settingParts("limits", limits),
    ...(onCall === undefined ? [] : [textPart("hook onCall", "there")]),
    ...(routes.kind === "table" ? partsOfRows(routes.rows) : []),
  ];
}

function partsOfState(state: StateSpec): readonly Part[] {
  const { kind, inputSchema, allowedTools, retryPolicy, limits, sandbox, options, output } = state;
  const hooks = (["setup", "precondition", "assert", "exit", "onCall"] as const).filter(
    (name) => state[name] !== undefined,
  );
  const own = state.parts?.();
  const data = toJsonValue(own === undefined ? options : undefined);
  return [
    textPart("kind", kind),
    ...(own ?? []),
    ...(allowedTools === undefined ? [] : [textPart("allowedTools", allowedTools.map(patternText).join(", "))]),
    ...(inputSchema === undefined ? [] : [schemaPart("inputSchema", inputSchema)]),
    ...(own !== undefined || output === undefined ? [] : [schemaPart("output", output)]),
    ...settingParts("retryPolicy", retryPolicy),
    ...settingParts("limits", limits),
    ...settingParts("sandbox", sandbox),
    ...(own !== undefined || options === undefined || !data.ok ? [] : [digestPart("options", data.value)]),
    ...hooks.map((name) => textPart(`hook ${name}`, "there")),
  ];
}

function patternText(entry: string | { readonly tool: string }): string {
  return typeof entry === "string" ? entry : `${entry.tool} (optional)`;
}

/** A state's route targets; the rows of a table are facts of the pipeline. */
function partsOfRoutes(routes: RoutesSpec, id: string): readonly Part[] {
  const next = routes.kind === "functions" ? routes.next.get(id) : undefined;
  if (next === undefined) return [];
  return (["completed", "failed", "skipped"] as const).flatMap((on) => {
    const route = next[on];
    return route === undefined ? [] : [textPart(`route when ${on}`, declaredTargets(route)?.join(", ") ?? "anywhere")];
  });
}

/** Names rows by content, so that an added row does not change the names of later ones. */
function partsOfRows(rows: readonly RowSpec[]): readonly Part[] {
  const texts = rows.map(({ from, on, when, to }) => {
    const own = toJsonValue(to);
    const target = own.ok ? JSON.stringify(own.value) : "a choice";
    return `${from} on ${on}${when === undefined ? "" : " when …"}: ${target}`;
  });
  const shown = texts.map((text): Fact => [`row ${short(text)}`, "there"]);
  const order = digestPart("order of rows", texts);
  return [...new Map(shown.map((row) => [row[0], row])).values()]
    .map((row): Part => ({ name: row[0], value: row[1], shown: [row] }))
    .concat([order]);
}
