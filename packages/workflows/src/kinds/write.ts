// A state that runs no agent as the fields of a file.

import { field, isJsonObject, type Json, type JsonObject, type Part, type StateSpec } from "@sluice/core";
import { canonicalJson } from "@sluice/core/runtime";
import { durationText } from "@sluice/stages/runtime";
import type { KindName } from "./fields.ts";
import { TEXT_ANSWER } from "./make.ts";

/** What a file writes for what a pipeline has by id. */
export interface WrittenNames {
  readonly states: ReadonlyMap<string, string>;
  readonly references: ReadonlyMap<string, string>;
}

/** The kinds of files by the kinds of states. */
const KINDS: Readonly<Record<string, KindName>> = {
  script: "script",
  poll: "poll",
  timer: "timer",
  human: "human",
  subPipeline: "pipeline",
  router: "router",
};

/** The kind that a file has for a state; undefined if it has none. */
export function kindOfState({ kind }: StateSpec): KindName | undefined {
  return Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined;
}

/** The fields of a state, as far as its parts say them. What they do not say shows when the file is read again. */
export function writeKind(kind: KindName, state: StateSpec, names: WrittenNames): JsonObject {
  const parts = partsOf(state);
  switch (kind) {
    case "script":
      return { ...writeCommand(parts), ...(parts.repeat === undefined ? {} : { repeat: true }) };
    case "poll":
      return {
        ...writeCommand(parts),
        ...given("every", parts.every),
        ...given("not_yet_codes", unless(parts["not yet codes"], [1])),
        ...given("total_timeout", parts["total timeout"]),
        ...given("max_attempts", parts.maxAttempts),
      };
    case "timer":
      return { ...given("for", parts.for), ...given("until", parts.until) };
    case "human":
      return {
        ...given("question", parts.question),
        ...given("answer", unless(parts.answer, TEXT_ANSWER)),
        ...(typeof parts.deadline === "number" ? { deadline: durationText(parts.deadline) } : {}),
        ...(parts["answer at the deadline"] === undefined
          ? {}
          : { on_deadline: { answer: parts["answer at the deadline"] } }),
      };
    case "pipeline": {
      const key = typeof parts.pipeline === "string" ? parts.pipeline : "";
      const { task, ...input } = isJsonObject(parts.input) ? parts.input : {};
      const own = task === "{{ctx.task}}" || task === undefined ? input : { task, ...input };
      return {
        workflow: names.references.get(key) ?? key,
        ...(Object.keys(own).length === 0 ? {} : { input: own }),
      };
    }
    case "router":
      return {
        ...writeTargets(state, names),
        ...given("prompt", parts.prompt),
        ...given("model", parts.model),
        ...given("tries", unless(parts.tries, 3)),
      };
  }
}

function writeCommand(parts: Parts): JsonObject {
  const { command } = parts;
  const shell = field(command, "shell");
  return {
    ...(shell === undefined ? given("command", command) : { shell }),
    ...given("stdin", parts.stdin),
    ...given("env", parts.env),
    ...given("cwd", parts.cwd),
    ...given("timeout", unless(parts.timeout, "10m")),
    ...given("success_codes", unless(parts["success codes"], [0])),
    ...given("secrets", parts.secrets),
    ...given("sandbox", parts.sandbox),
    ...given("output", parts.out),
  };
}

function writeTargets({ chooses }: StateSpec, { states }: WrittenNames): JsonObject {
  const nameOf = (id: string): string => states.get(id) ?? id;
  const { targets = [], fallback } = chooses ?? {};
  if (fallback === undefined) return { targets: targets.map(nameOf) };
  const to = nameOf(fallback.to);
  return {
    targets: targets.map(nameOf),
    fallback: fallback.input === undefined ? to : { to, input: fallback.input },
  };
}

type Parts = Readonly<Record<string, Json | undefined>>;

/** The parts of a state as data. */
function partsOf({ parts = {} }: StateSpec): Parts {
  return Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, dataOf(part)]));
}

function dataOf(part: Part): Json {
  if (typeof part !== "object") return part;
  return "data" in part ? part.data : part.jsonSchema;
}

function given(name: string, value: Json | undefined): JsonObject {
  return value === undefined ? {} : { [name]: value };
}

/** A value, unless it is the default. */
function unless(value: Json | undefined, byDefault: Json): Json | undefined {
  return value !== undefined && canonicalJson(value) === canonicalJson(byDefault) ? undefined : value;
}
