import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { list, objects, type RecordedRequest, type Refusal, unknownMember, word } from "./sse-server.ts";

const NAME = /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/;
const BODY = ["contents", "systemInstruction", "tools", "toolConfig", "generationConfig"];
const GENERATION = ["maxOutputTokens", "temperature", "topP", "seed", "stopSequences", "thinkingConfig"];
const PART = ["text", "thought", "thoughtSignature", "functionCall", "functionResponse"];

/** What Google's Gemini API refuses of what a tool loop could get wrong. `signatures` holds the thought signatures it gave. */
export function checkGoogleRequest(
  { headers, body }: RecordedRequest,
  signatures: ReadonlySet<string>,
): Refusal | undefined {
  if (typeof headers["x-goog-api-key"] !== "string" || headers["x-goog-api-key"] === "") {
    const message = "Method doesn't allow unregistered callers. Please use API Key.";
    return { status: 403, type: "PERMISSION_DENIED", message };
  }
  const message = bodyFault(body) ?? toolsFault(body) ?? contentsFault(body, signatures);
  return message === undefined ? undefined : { status: 400, type: "INVALID_ARGUMENT", message };
}

function unknown(value: JsonObject, known: readonly string[], at: string): string | undefined {
  const extra = unknownMember(value, known);
  return extra === undefined ? undefined : `Invalid JSON payload received. Unknown name "${extra}" at '${at}'`;
}

function bodyFault(body: JsonObject): string | undefined {
  const config = isJsonObject(body.generationConfig) ? body.generationConfig : {};
  const extra = unknown(body, BODY, "") ?? unknown(config, GENERATION, "generation_config");
  if (extra !== undefined) return extra;
  const { systemInstruction } = body;
  if (systemInstruction === undefined) return undefined;
  const parts = isJsonObject(systemInstruction) ? objects(systemInstruction.parts) : [];
  return parts.length > 0 && parts.every(({ text }) => typeof text === "string" && text !== "")
    ? undefined
    : "* GenerateContentRequest.system_instruction.parts: must not be empty";
}

function toolsFault(body: JsonObject): string | undefined {
  const names = new Set<string>();
  for (const tool of objects(body.tools)) {
    for (const declared of objects(tool.functionDeclarations)) {
      const extra = unknown(
        declared,
        ["name", "description", "parametersJsonSchema"],
        "tools[0].function_declarations[0]",
      );
      if (extra !== undefined) return extra;
      const name = word(declared.name);
      if (!NAME.test(name)) return `Invalid function name: ${name}`;
      if (names.has(name)) return `Duplicate function declaration found: ${name}`;
      names.add(name);
      const { parametersJsonSchema: schema } = declared;
      if (!isJsonObject(schema) || schema.type !== "object") return `functionDeclaration parameters schema of ${name}`;
    }
  }
  const choice = isJsonObject(body.toolConfig) ? body.toolConfig.functionCallingConfig : undefined;
  if (choice === undefined) return undefined;
  if (!isJsonObject(choice) || !["AUTO", "ANY", "NONE", "VALIDATED"].includes(word(choice.mode)))
    return "Invalid function calling config";
  if (names.size === 0) return "Function calling config is set without function_declarations.";
  const stranger = list(choice.allowedFunctionNames).find((name) => !names.has(word(name)));
  return stranger === undefined ? undefined : `allowed_function_names holds ${word(stranger)}, which is not declared`;
}

function contentsFault(body: JsonObject, signatures: ReadonlySet<string>): string | undefined {
  const contents = list(body.contents);
  if (contents.length === 0) return "* GenerateContentRequest.contents: contents is not specified";
  let pending: readonly JsonObject[] = [];
  let before = "";
  for (const [index, content] of contents.entries()) {
    const at = `contents[${index}]`;
    if (!isJsonObject(content)) return `Invalid value at '${at}'`;
    const role = word(content.role);
    if (role !== "user" && role !== "model") return "Please use a valid role: user, model.";
    if (index === 0 && role !== "user") return "Please ensure that multiturn requests begin with a user turn.";
    const parts = objects(content.parts);
    if (parts.length === 0) return `* GenerateContentRequest.${at}.parts: contents.parts must not be empty.`;
    for (const part of parts) {
      const fault = partFault(part, at, signatures);
      if (fault !== undefined) return fault;
    }
    const calls = parts.flatMap(({ functionCall }) => (isJsonObject(functionCall) ? [functionCall] : []));
    const responses = parts.flatMap(({ functionResponse }) =>
      isJsonObject(functionResponse) ? [functionResponse] : [],
    );
    if (calls.length > 0 && (role !== "model" || before === "model"))
      return "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
    const unpaired = pairFault(pending, responses);
    if (unpaired !== undefined) return unpaired;
    const [first] = parts.filter(({ functionCall }) => functionCall !== undefined);
    if (first !== undefined && !signatures.has(word(first.thoughtSignature)))
      return `Function call is missing a thought_signature in functionCall parts. Function call '${word(calls[0]?.name)}', position ${index}.`;
    pending = calls;
    before = role;
  }
  return pending.length > 0 ? pairFault(pending, []) : undefined;
}

function pairFault(calls: readonly JsonObject[], responses: readonly JsonObject[]): string | undefined {
  if (calls.length !== responses.length)
    return "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";
  const ids = calls.map(({ id }) => word(id));
  if (new Set(ids).size < ids.length) return `Function call ids are not unique: ${ids.join(", ")}`;
  const stranger = responses.find(({ id, name }) => !calls.some((call) => call.id === id && call.name === name));
  return stranger === undefined ? undefined : `Function response ${word(stranger.id)} answers no function call.`;
}

function partFault(part: JsonObject, at: string, signatures: ReadonlySet<string>): string | undefined {
  const extra = unknown(part, PART, `${at}.parts[0]`);
  if (extra !== undefined) return extra;
  const kinds = ["text", "functionCall", "functionResponse"].filter((kind) => part[kind] !== undefined);
  if (kinds.length !== 1) return `Invalid value at '${at}.parts[0].data' (oneof)`;
  const { thoughtSignature, functionCall, functionResponse } = part;
  if (thoughtSignature !== undefined && !signatures.has(word(thoughtSignature)))
    return "Thought signature is not valid.";
  if (part.text === "" && thoughtSignature === undefined)
    return `Unable to submit request because ${at} has an empty text part.`;
  if (functionCall !== undefined) return namedFault(functionCall, "args", `${at}.parts[0].function_call`);
  if (functionResponse !== undefined)
    return namedFault(functionResponse, "response", `${at}.parts[0].function_response`);
  return undefined;
}

/** Calls and responses: a name, an id, and a struct. */
function namedFault(value: Json, struct: "args" | "response", at: string): string | undefined {
  if (!isJsonObject(value)) return `Invalid value at '${at}'`;
  if (!NAME.test(word(value.name))) return `Invalid function name: ${word(value.name)} at '${at}'`;
  if (!isJsonObject(value[struct]))
    return `Invalid value at '${at}.${struct}' (type.googleapis.com/google.protobuf.Struct)`;
  return unknown(value, struct === "response" ? ["id", "name", struct, "parts"] : ["id", "name", struct], at);
}
