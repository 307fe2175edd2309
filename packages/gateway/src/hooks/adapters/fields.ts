import { isAbsolute, join } from "node:path";
import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { shortened } from "@sluice/core/runtime";
import { type CallEvent, type EventBase, invalidPayload, type MappedCall } from "../hook-adapter.ts";

/** Characters of a session id, a call id, a tool's name or a folder. */
const LONGEST_ID = 1_024;
const LONGEST_PATH = 4_096;
/** Characters of a tool's input as JSON. */
const LONGEST_INPUT = 2_000_000;

/** The members of one object, each of which has to be read: a member that was not read is refused. */
export interface Fields {
  text(name: string): string;
  optionalText(name: string): string | undefined;
  flag(name: string): boolean;
  texts(name: string): readonly string[] | undefined;
  list(name: string): readonly Json[] | undefined;
  /** A text, or a list of texts. */
  oneOrMore(name: string): readonly string[] | undefined;
  /** The first of these names that is present. */
  oneOf(...names: readonly string[]): string;
  has(name: string): boolean;
  /** Members that change neither what a call touches nor where it runs. They are kept for the record. */
  options(...names: readonly string[]): { readonly options?: JsonObject };
  /** Throws if a member was not asked for. */
  done(): void;
}

/** A call that its adapter understands but does not accept. */
export class RefusedCall extends Error {}

export function fieldsOf(object: JsonObject): Fields {
  const asked = new Set<string>();
  const get = (name: string): Json | undefined => {
    asked.add(name);
    return Object.hasOwn(object, name) ? (object[name] ?? undefined) : undefined;
  };
  const optionalText = (name: string): string | undefined => {
    const value = get(name);
    if (value === undefined || typeof value === "string") return value;
    throw new RefusedCall(`${name} is not a text`);
  };
  const text = (name: string): string => {
    const value = optionalText(name);
    if (value === undefined) throw new RefusedCall(`${name} is missing`);
    return value;
  };
  const has = (name: string): boolean => get(name) !== undefined;
  const list = (name: string): readonly Json[] | undefined => {
    const value = get(name);
    if (value === undefined || Array.isArray(value)) return value;
    throw new RefusedCall(`${name} is not a list`);
  };
  const texts = (name: string): readonly string[] | undefined =>
    list(name)?.map((one) => {
      if (typeof one === "string") return one;
      throw new RefusedCall(`${name} is not a list of texts`);
    });
  return {
    text,
    optionalText,
    texts,
    oneOrMore: (name) => {
      const value = get(name);
      return typeof value === "string" ? [value] : texts(name);
    },
    flag: (name) => {
      const value = get(name);
      if (value === undefined || typeof value === "boolean") return value === true;
      throw new RefusedCall(`${name} is not true or false`);
    },
    list,
    oneOf: (...names) => {
      const present = names.filter(has);
      if (present.length > 1) throw new RefusedCall(`${present.join(" and ")} are the same setting`);
      return text(present[0] ?? names[0] ?? "");
    },
    has,
    options: (...names) => {
      const kept: Record<string, Json> = {};
      for (const name of names) {
        const value = get(name);
        if (value !== undefined) kept[name] = value;
      }
      return Object.keys(kept).length === 0 ? {} : { options: kept };
    },
    done: () => {
      const unknown = Object.keys(object).filter((name) => !asked.has(name) && object[name] !== null);
      if (unknown.length > 0)
        throw new RefusedCall(
          `the gate does not know ${unknown.map(shown).join(", ")}, so what the call does is not certain`,
        );
    },
  };
}

/**
 * A path as the host and the kernel understand alike. Hosts trim paths, expand `~` and resolve `..` by text, where the kernel follows
 * links first.
 */
export function nativePath(path: string, cwd: string): string {
  if (path.length > LONGEST_PATH) throw new RefusedCall("a path is too long");
  if (path === "" || path !== path.trim()) throw new RefusedCall("a path is empty, or begins or ends with white space");
  if (path.startsWith("~") || /^@[/.~]/.test(path) || /^[a-z][a-z+.-]+:\/\//i.test(path))
    throw new RefusedCall(`${shown(path)} is not a plain path; use an absolute path`);
  const parts = path.split("/");
  const named = parts.findIndex((part) => part !== "" && part !== "." && part !== "..");
  if (named !== -1 && parts.slice(named).includes(".."))
    throw new RefusedCall(`${shown(path)} has .. after a folder; use a path without it`);
  return isAbsolute(path) ? path : join(cwd, path);
}

/** The payload as an object. Throws `hook_payload_invalid`. */
export function payloadObject(payload: Json): JsonObject {
  if (!isJsonObject(payload)) throw invalidPayload("it is not an object");
  return payload;
}

/** An id: opaque text. Throws `hook_payload_invalid`. */
function idIn(payload: JsonObject, name: string): string {
  const id = optionalId(payload, name);
  if (id === undefined) throw invalidPayload(`${name} is missing`);
  return id;
}

export function optionalId(payload: JsonObject, name: string): string | undefined {
  const value = Object.hasOwn(payload, name) ? payload[name] : undefined;
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string" || value === "" || value.length > LONGEST_ID || !value.isWellFormed())
    throw invalidPayload(`${name} is not a text of 1 to ${LONGEST_ID} characters`);
  return value;
}

/** The folder of the agent. Throws `hook_payload_invalid`. */
function cwdIn(payload: JsonObject): string {
  const cwd = idIn(payload, "cwd");
  if (!isAbsolute(cwd) || cwd.includes("\0")) throw invalidPayload("cwd is not an absolute path");
  return cwd;
}

/** The text of a member. Throws `hook_payload_invalid`. */
export function textIn(payload: JsonObject, name: string): string {
  const value = Object.hasOwn(payload, name) ? payload[name] : undefined;
  if (typeof value !== "string") throw invalidPayload(`${name} is not a text`);
  return value.toWellFormed();
}

/** A tool's input. Throws `hook_payload_invalid`. */
function inputIn(payload: JsonObject, name: string): JsonObject {
  const given = Object.hasOwn(payload, name) ? payload[name] : undefined;
  if (given === undefined || given === null) return {};
  if (!isJsonObject(given)) throw invalidPayload(`${name} is not an object`);
  if (JSON.stringify(given).length > LONGEST_INPUT)
    throw invalidPayload(`${name} is larger than ${LONGEST_INPUT} characters`);
  return given;
}

/** What a host reports of a call's result. */
export function outputIn(payload: JsonObject, name: string): Json {
  const value = Object.hasOwn(payload, name) ? payload[name] : undefined;
  return typeof value === "string" ? value.toWellFormed() : (value ?? null);
}

/** Whose event it is. `names` are the members of the session and of the subagent. Throws `hook_payload_invalid`. */
export function originIn(payload: JsonObject, names: { readonly session: string; readonly agent?: string }): EventBase {
  const agent = names.agent === undefined ? undefined : optionalId(payload, names.agent);
  return {
    session: idIn(payload, names.session),
    cwd: cwdIn(payload),
    ...(agent === undefined ? {} : { agent }),
  };
}

/** The call of an event, as the host sent it and as the gate reads it. Throws `hook_payload_invalid`. */
export function callIn(
  payload: JsonObject,
  names: { readonly tool: string; readonly input: string; readonly id?: string },
  map: (tool: string, input: JsonObject) => MappedCall,
): Pick<CallEvent, "native" | "call" | "callId"> {
  const tool = idIn(payload, names.tool);
  const input = inputIn(payload, names.input);
  const callId = names.id === undefined ? undefined : optionalId(payload, names.id);
  return { native: { tool, input }, call: map(tool, input), ...(callId === undefined ? {} : { callId }) };
}

/** The event's name from the hook's own address or from the payload, which have to agree. Throws `hook_payload_invalid`. */
export function eventName(event: string | undefined, payload: JsonObject, member: string): string {
  const own = optionalId(payload, member);
  if (event !== undefined && own !== undefined && event !== own)
    throw invalidPayload(`it is for ${shown(own)}, and the hook for ${shown(event)}`);
  const name = event ?? own;
  if (name === undefined) throw invalidPayload("it does not name its event");
  return name;
}

export function shown(text: string): string {
  return JSON.stringify(shortened(text, 200));
}
