import { digestOf } from "../../base/canonical.ts";
import { ownJson } from "../../base/clone-json.ts";
import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import type { CompiledSchema } from "../../schema/schema.ts";
import { declaredTargets } from "../choice.ts";
import type { AgentSpec, PipelineSpec, RoutesSpec, RowSpec, StateRoutes, StateSpec } from "../spec.ts";

/**
 * What the fingerprint covers, part by part, so that a later reader can say what changed: of the pipeline itself (`of` is empty)
 * and of each state. A list, since names under keys that read like a secret's would be redacted.
 */
export type PipelineParts = readonly PartsOf[];
export type PartsOf = {
  /** A state's id; empty for the pipeline. */
  readonly of: string;
  /** Name and value; a value that is not short is a digest, which begins with `#`. */
  readonly facts: readonly Fact[];
};
export type Fact = readonly [name: string, value: string];

/** Values up to this length are kept as they are. */
const SHORT = 60;
/** A schema with more places than this is one digest. */
const MOST_PLACES = 40;
/** A pipeline with more facts than this has one digest a state. */
const MOST_FACTS = 500;

/** The parts of a pipeline: a few hundred bytes a state, and at most some ten kilobytes in all. */
export function pipelineParts(spec: PipelineSpec): PipelineParts {
  const states = [...spec.states].map(([id, state]) => ({ of: id, facts: [...stateFacts(state), ...ways(spec, id)] }));
  const whole = { of: "", facts: pipelineFacts(spec) };
  const count = states.reduce((sum, { facts }) => sum + facts.length, whole.facts.length);
  return count <= MOST_FACTS ? [whole, ...states] : [inOne(whole), ...states.map(inOne)];
}

function inOne({ of, facts }: PartsOf): PartsOf {
  return { of, facts: [["definition", digest(facts)]] };
}

function pipelineFacts({ input, initial, context, limits, onCall, routes }: PipelineSpec): readonly Fact[] {
  return [
    ["initial", short(initial)],
    ...schemaFacts("input", input),
    ...(Object.keys(context).length === 0 ? [] : [["context", digest(context)] as const]),
    ...settings("limits", limits),
    ...(onCall === undefined ? [] : [["hook onCall", "there"] as const]),
    ...(routes.kind === "table" ? rowFacts(routes.rows) : []),
  ];
}

function stateFacts(state: StateSpec): readonly Fact[] {
  const { kind, inputSchema, allowedTools, retryPolicy, limits, sandbox, agent, options, output } = state;
  const hooks = (["setup", "checkGate", "assert", "exit", "onCall"] as const).filter(
    (name) => state[name] !== undefined,
  );
  const own = ownJson(options);
  return [
    ["kind", short(kind)],
    ...(agent === undefined ? [] : agentFacts(agent)),
    ...(allowedTools === undefined ? [] : [["allowedTools", short(allowedTools.map(patternText).join(", "))] as const]),
    ...(inputSchema === undefined ? [] : schemaFacts("inputSchema", inputSchema)),
    ...(output === undefined ? [] : schemaFacts("output", output)),
    ...settings("retryPolicy", retryPolicy),
    ...settings("limits", limits),
    ...settings("sandbox", sandbox),
    ...(options === undefined || !own.ok ? [] : [["options", digest(own.value)] as const]),
    ...hooks.map((name): Fact => [`hook ${name}`, "there"]),
  ];
}

function patternText(entry: string | { readonly tool: string }): string {
  return typeof entry === "string" ? entry : `${entry.tool} (optional)`;
}

function agentFacts(agent: AgentSpec): readonly Fact[] {
  const { promptText, visibility, model, temperature, maxOutputTokens, completionTool, completionSchema } = agent;
  return [
    // A function's text is empty: what it returns is not known beforehand.
    ["prompt", promptText === "" ? "a function" : digest(promptText)],
    ["completionTool", short(completionTool)],
    ...schemaFacts("out", completionSchema),
    ["turnCap", String(agent.turnCap)],
    ...(visibility === "allowed" ? [] : [["visibility", visibility] as const]),
    ...settings("", { model, temperature, maxOutputTokens }),
  ];
}

/** Where a state's routes may lead; a table's rows are facts of the pipeline. */
function ways({ routes }: { readonly routes: RoutesSpec }, id: string): readonly Fact[] {
  const next: StateRoutes | undefined = routes.kind === "functions" ? routes.next.get(id) : undefined;
  if (next === undefined) return [];
  return (["completed", "failed", "skipped"] as const).flatMap((on): readonly Fact[] => {
    const route = next[on];
    return route === undefined ? [] : [[`route when ${on}`, short(declaredTargets(route)?.join(", ") ?? "anywhere")]];
  });
}

/** A row is told by what it says, so that one more row does not make all that follow it others. */
function rowFacts(rows: readonly RowSpec[]): readonly Fact[] {
  const texts = rows.map(({ from, on, when, to }) => {
    const own = ownJson(to);
    const target = own.ok ? JSON.stringify(own.value) : "a choice";
    return `row ${short(`${from} on ${on}${when === undefined ? "" : " when …"}: ${target}`)}`;
  });
  return [...new Set(texts)].map((text): Fact => [text, "there"]).concat([["order of rows", digest(texts)]]);
}

function settings(name: string, values: object | undefined): readonly Fact[] {
  const given = Object.entries(values ?? {}).filter((entry) => entry[1] !== undefined);
  return given.map(([key, value]): Fact => [name === "" ? key : `${name} ${key}`, short(String(value))]);
}

/** Each place of a schema with what it says about it; names are short, since every run keeps them: `out` is a completion's. */
function schemaFacts(name: string, { jsonSchema, digest: whole }: CompiledSchema<unknown>): readonly Fact[] {
  const places: Fact[] = [];
  const isSmall = addPlaces(places, name, "$", jsonSchema, true);
  return isSmall ? places : [[name, `#${whole.slice(0, DIGITS)}`]];
}

/** False when there are too many. */
function addPlaces(places: Fact[], name: string, path: string, schema: JsonObject, required: boolean): boolean {
  if (places.length >= MOST_PLACES) return false;
  const { $schema: _dialect, properties, items, required: named, type, ...rest } = schema;
  const more = Object.keys(rest).length === 0 ? "" : ` ${clipped(JSON.stringify(rest), rest)}`;
  const what = typeof type === "string" ? type : type === undefined ? "any" : JSON.stringify(type);
  // That a schema is of an object goes without saying.
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
