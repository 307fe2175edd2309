import { digestOf } from "../../base/canonical.ts";
import { isJsonObject, type Json, type JsonObject, toJsonValue } from "../../base/json.ts";
import type { CompiledSchema } from "../../schema/schema.ts";
import { declaredTargets } from "../choice.ts";
import type { KindFacts, Part, PipelineSpec, RouteChooser, RoutesSpec, RowSpec, StateSpec } from "../spec.ts";
import type { StateEnvironment } from "../state-rules.ts";

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
export type Fact = readonly [name: string, value: string];

/** A fact of the definition: its whole value for the fingerprint, and its recorded form. */
interface FullFact {
  readonly name: string;
  readonly value: Json;
  readonly shown: readonly Fact[];
}
interface FullPart {
  readonly state: string;
  readonly facts: readonly FullFact[];
}

/** The version of the digest's input. Fingerprints of different versions cannot be compared. */
const FORM = 3;
/** Longer values are recorded as digests. */
const SHORT = 60;
/** A schema with more places is recorded as one digest. */
const MOST_PLACES = 40;
/** A pipeline with more facts is recorded as one digest per state. */
const MOST_FACTS = 500;

type Spec = Omit<PipelineSpec, "fingerprint">;

/**
 * SHA-256 over what a resume relies on: ids, edges, envelopes, limits, schemas, prompt text and which hooks exist. Function
 * bodies are not included, so user code may change between deploys.
 */
export function fingerprint(spec: Spec): string {
  const parts = fullParts(spec).map(({ state, facts }) => [state, valuesOf(state, facts)] as const);
  return digestOf({ form: FORM, id: spec.id, parts: Object.fromEntries(parts) });
}

/** Throws for two facts of one name, since the fingerprint would cover only one of them. */
function valuesOf(state: string, facts: readonly FullFact[]): JsonObject {
  const values = new Map<string, Json>();
  for (const { name, value } of facts) {
    if (values.has(name))
      throw new Error(`two parts of ${state} have the same name, ${name}; its kind has to name its part otherwise`);
    values.set(name, value);
  }
  return Object.fromEntries(values);
}

/** The parts of a pipeline as a run records them: a few hundred bytes per state, at most about ten kilobytes in all. */
export function pipelineParts(spec: Spec): PipelineParts {
  const parts = fullParts(spec).map(({ state, facts }) => ({ state, facts: facts.flatMap(({ shown }) => shown) }));
  const count = parts.reduce((sum, { facts }) => sum + facts.length, 0);
  return count <= MOST_FACTS
    ? parts
    : parts.map(({ state, facts }) => ({ state, facts: [["definition", digest(facts)]] }));
}

function fullParts(spec: Spec): readonly FullPart[] {
  const states = [...spec.states].map(([id, state]) => ({
    state: id,
    facts: [...stateFacts(state), ...routeFacts(spec.routes, id)],
  }));
  return [{ state: "", facts: pipelineFacts(spec) }, ...states];
}

function pipelineFacts(spec: Spec): readonly FullFact[] {
  const { input, initial, context, limits, onCall, routes, interrupts, pipelines, meta } = spec;
  return [
    fact("initial", initial),
    schemaFact("input", input),
    ...(Object.keys(context).length === 0 ? [] : [digestFact("context", context)]),
    ...settings("limits", limits),
    // Nothing else of it changes what a run may do.
    ...settings("meta", { onFinal: meta?.onFinal }),
    ...(onCall === undefined ? [] : [fact("hook onCall", "there")]),
    ...(routes.kind === "table" ? rowFacts(routes.rows) : []),
    ...interrupts.map(({ name, files, target }) => fact(`interrupt ${name}`, `${files}: ${target}`)),
    ...(interrupts.length < 2 ? [] : [fact("order of interrupts", interrupts.map(({ name }) => name).join(", "))]),
    ...[...pipelines].map(([name, { fingerprint: digest }]) => digestFact(`pipeline ${name}`, digest)),
  ];
}

function stateFacts(state: StateSpec): readonly FullFact[] {
  const { kind, inputSchema, allowedTools, retryPolicy, limits, sandbox, env, parts, chooses, owns = [] } = state;
  const { options, output }: KindFacts = parts === undefined ? state : {};
  const hooks = (["setup", "precondition", "assert", "exit", "onCall"] as const).filter(
    (name) => state[name] !== undefined,
  );
  const own = toJsonValue(options);
  return [
    fact("kind", kind),
    ...Object.entries(parts ?? {}).map(([name, part]) => partFact(name, part)),
    ...(allowedTools === undefined ? [] : [fact("allowedTools", allowedTools.map(patternText).join(", "))]),
    ...(inputSchema === undefined ? [] : [schemaFact("inputSchema", inputSchema)]),
    ...(output === undefined ? [] : [schemaFact("output", output)]),
    ...settings("retryPolicy", retryPolicy),
    ...settings("limits", limits),
    ...settings("sandbox", sandbox),
    ...(env === undefined ? [] : environmentFacts(env)),
    ...(options === undefined || !own.ok ? [] : [digestFact("options", own.value)]),
    ...(chooses === undefined ? [] : chooserFacts(chooses)),
    ...owns.map(({ id, fingerprint: own }) => digestFact(`own pipeline ${id}`, own)),
    ...hooks.map((name) => fact(`hook ${name}`, "there")),
  ];
}

function chooserFacts({ targets, fallback, ends, prompts }: RouteChooser): readonly FullFact[] {
  return [
    fact("chooses among", targets.join(", ")),
    ...(fallback === undefined ? [] : [digestFact("fallback", { to: fallback.to, input: fallback.input ?? null })]),
    ...(ends === true ? [fact("chooses ends", "yes")] : []),
    ...(prompts === true ? [fact("chooses prompts", "yes")] : []),
  ];
}

/** Names, and a digest in place of the values, which may be secret. */
function environmentFacts({ set = {}, block = [] }: StateEnvironment): readonly FullFact[] {
  const names = Object.keys(set).sort();
  const values = {
    name: "env values",
    value: digestOf({ ...set }),
    shown: [["env values", digest({ ...set })]],
  } as const;
  return [
    ...(names.length === 0 ? [] : [fact("env set", names.join(", ")), values]),
    ...(block.length === 0 ? [] : [fact("env block", [...block].sort().join(", "))]),
  ];
}

function patternText(entry: string | { readonly tool: string }): string {
  return typeof entry === "string" ? entry : `${entry.tool} (optional)`;
}

function partFact(name: string, part: Part): FullFact {
  if (typeof part !== "object") return fact(name, String(part));
  return "data" in part ? digestFact(name, part.data) : schemaFact(name, part);
}

/** A state's route targets; the rows of a table are facts of the pipeline. */
function routeFacts(routes: RoutesSpec, id: string): readonly FullFact[] {
  const next = routes.kind === "functions" ? routes.next.get(id) : undefined;
  if (next === undefined) return [];
  return (["completed", "failed", "skipped"] as const).flatMap((on) => {
    const route = next[on];
    return route === undefined ? [] : [fact(`route when ${on}`, declaredTargets(route)?.join(", ") ?? "anywhere")];
  });
}

/** Names rows by content, so that an added row does not change the names of later ones. */
function rowFacts(rows: readonly RowSpec[]): readonly FullFact[] {
  const texts = rows.map(({ from, on, when, to, approval }) => {
    const own = toJsonValue(to);
    const target = own.ok ? JSON.stringify(own.value) : "a choice";
    const trigger = typeof on === "string" ? on : `event ${JSON.stringify(on.event)}`;
    const condition =
      when === undefined ? "" : ` when ${when.opaque === true ? "…" : JSON.stringify(when.source ?? when.text)}`;
    const approved = approval === undefined ? "" : ` approved ${JSON.stringify(approval.message ?? "")}`;
    return `${from} on ${trigger}${condition}${approved}: ${target}`;
  });
  const shown = texts.map((text): Fact => [`row ${short(text)}`, "there"]);
  const order = digestFact("order of rows", texts);
  return [...new Map(shown.map((row) => [row[0], row])).values()]
    .map((row): FullFact => ({ name: row[0], value: row[1], shown: [row] }))
    .concat([order]);
}

function settings(name: string, values: object | undefined): readonly FullFact[] {
  const given = Object.entries(values ?? {}).filter((entry) => entry[1] !== undefined);
  return given.map(([key, value]) => fact(`${name} ${key}`, settingText(value)));
}

/** A list by its entries; one with a comma in an entry as JSON, since it would look like a list of more entries. */
function settingText(value: unknown): string {
  const isPlain = !Array.isArray(value) || value.every((entry) => !String(entry).includes(","));
  return isPlain ? String(value) : JSON.stringify(value);
}

function fact(name: string, value: string): FullFact {
  return { name, value, shown: [[name, short(value)]] };
}

function digestFact(name: string, value: Json): FullFact {
  return { name, value, shown: [[name, digest(value)]] };
}

/** A schema, recorded as one short fact per place. */
function schemaFact(name: string, { jsonSchema, digest: whole }: CompiledSchema<unknown>): FullFact {
  const places: Fact[] = [];
  const isSmall = addPlaces(places, name, "$", jsonSchema, true);
  return { name, value: whole, shown: isSmall ? places : [[name, `#${whole.slice(0, DIGITS)}`]] };
}

/** Returns false if there are too many places. */
function addPlaces(places: Fact[], name: string, path: string, schema: JsonObject, required: boolean): boolean {
  if (places.length >= MOST_PLACES) return false;
  const { $schema: _dialect, properties, items, required: named, type, ...rest } = schema;
  const more = Object.keys(rest).length === 0 ? "" : ` ${clipped(JSON.stringify(rest), rest)}`;
  const what = typeof type === "string" ? type : type === undefined ? "any" : JSON.stringify(type);
  // A schema describes an object unless it says otherwise.
  if (path !== "$" || what !== "object" || more !== "")
    places.push([`${name} ${short(path)}`, `${short(what)}${required ? "" : ", optional"}${more}`]);
  const needed = new Set(Array.isArray(named) ? named : []);
  for (const [key, member] of Object.entries(isJsonObject(properties) ? properties : {})) {
    const inside = isJsonObject(member) ? member : { is: member };
    if (!addPlaces(places, name, `${path}.${key}`, inside, needed.has(key))) return false;
  }
  if (items === undefined) return true;
  return addPlaces(places, name, `${path}[]`, isJsonObject(items) ? items : { are: items }, true);
}

const DIGITS = 12;

function digest(value: Json): string {
  return `#${digestOf(value).slice(0, DIGITS)}`;
}

function short(text: string): string {
  return clipped(text, text);
}

function clipped(text: string, value: Json): string {
  return text.length <= SHORT ? text : digest(value);
}
