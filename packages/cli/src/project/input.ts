import { text as readAll } from "node:stream/consumers";
import {
  field,
  isJsonObject,
  type Json,
  type JsonObject,
  type PipelineSpec,
  parseJson,
  SluiceError,
} from "@sluice/core";

/** Reads --input options: `key=text`, `key:=json`, a JSON object, or `-` for one on stdin. */
export async function readInput(
  task: readonly string[],
  given: readonly string[],
  stdin: NodeJS.ReadableStream,
): Promise<JsonObject> {
  if (given.filter((one) => one === "-").length > 1)
    throw invalid("--input - is set twice, but stdin can be read only once");
  const members: (readonly [key: string, value: Json])[] = [];
  for (const one of given) {
    if (one === "-") members.push(...Object.entries(objectIn(await readAll(stdin), "--input -: stdin")));
    else
      members.push(...(one.startsWith("{") ? Object.entries(objectIn(one, `--input ${one}: it`)) : [memberFrom(one)]));
  }
  if (task.length > 0) members.push(["task", task.join(" ")]);
  const keys = members.map(([key]) => key);
  const twice = keys.find((key, index) => keys.indexOf(key) !== index);
  if (twice !== undefined) throw invalid(`the input ${JSON.stringify(twice)} is set twice`);
  return Object.fromEntries(members);
}

function memberFrom(text: string): readonly [key: string, value: Json] {
  const [, key, kind, value = ""] = /^([^:=]+)(:=|=)(.*)$/s.exec(text) ?? [];
  if (key === undefined)
    throw invalid(`--input ${text}: write key=text, key:=json, a JSON object, or - for one on stdin`);
  if (kind === "=") return [key, value];
  const json = parseJson(value);
  if (!json.ok) throw invalid(`--input ${key}:= is not JSON: ${json.fault}`);
  return [key, json.value];
}

function objectIn(text: string, what: string): JsonObject {
  const json = parseJson(text);
  if (!json.ok) throw invalid(`${what} is not JSON: ${json.fault}`);
  if (!isJsonObject(json.value)) throw invalid(`${what} is not a JSON object`);
  return json.value;
}

/** Throws Validation `task_missing` if the pipeline needs a task and has none: a clearer message than its schema's. */
export function requireTask(name: string, { input }: PipelineSpec, given: JsonObject): void {
  const required = field(input.jsonSchema, "required");
  if (!Array.isArray(required) || !required.includes("task")) return;
  const task = field(given, "task");
  if (task !== undefined && task !== "") return;
  throw new SluiceError(
    "Validation",
    "task_missing",
    `${name} needs a task: sluice run ${name} "<what to do>", or --input task=…`,
  );
}

function invalid(message: string): SluiceError {
  return new SluiceError("Validation", "input_invalid", message);
}
