// Properties: what must hold on every path of a pipeline, in a few words.

import type { PipelineSpec } from "@sluice/core";
import { isObject, suggestOneOf } from "@sluice/core/runtime";
import { builtinTools } from "@sluice/stages/runtime";
import { nameOf } from "../finding.ts";
import { listedTools, mayUse } from "./capabilities.ts";

/** A thing that may happen in a run. */
export type Word =
  /** The state is entered, or ends the run or a branch. */
  | { readonly kind: "state"; readonly id: string }
  /** A state in which the tool needs no grant works. */
  | { readonly kind: "tool"; readonly name: string }
  /** A transition that a person approved is made. */
  | { readonly kind: "approved" };

/** `never: A`, `never: A before B`, `never: A after B`, `always: A`, `always: A before B` or `always: A after B`. */
export interface Property {
  readonly text: string;
  readonly kind: "never" | "always";
  readonly what: Word;
  readonly order?: { readonly is: "before" | "after"; readonly of: Word };
}

export type PropertyReading =
  | { readonly ok: true; readonly property: Property }
  | { readonly ok: false; readonly message: string; readonly suggestion?: string };
type Refused = Extract<PropertyReading, { readonly ok: false }>;

/** A property as it is written: `never: Bash before approved`, or `{ never: "Bash before approved" }`. */
export type PropertySource = string | { readonly never: string } | { readonly always: string };

const FORMS =
  'write "never: A", "never: A before B", "never: A after B", "always: A", "always: A before B" or "always: A after B"';

/**
 * Reads a property of a pipeline. Its words are states, by id or label; tools that states list, or that are among `tools`; and
 * `approved`. A word with spaces is quoted; `state:` or `tool:` in front of one says what it is.
 */
export function readProperty(
  spec: PipelineSpec,
  source: unknown,
  { tools = [] }: { readonly tools?: readonly string[] } = {},
): PropertyReading {
  const given = kindAndText(source);
  if (given === undefined) return { ok: false, message: "it is not a property", suggestion: FORMS };
  const { kind } = given;
  const text = given.text.trim();
  const [first, order, last, ...more] = tokensOf(text);
  if (first === undefined || more.length > 0 || (order !== undefined && last === undefined))
    return { ok: false, message: `${JSON.stringify(text)} is not a property`, suggestion: FORMS };
  const what = readWord(spec, first, tools);
  if ("ok" in what) return what;
  const read = { text: `${kind}: ${text}`, kind, what };
  if (order === undefined || last === undefined)
    return kind === "always" ? required(what, read) : { ok: true, property: read };
  if (order !== "before" && order !== "after")
    return { ok: false, message: `${JSON.stringify(order)} is neither before nor after`, suggestion: FORMS };
  const of = readWord(spec, last, tools);
  if ("ok" in of) return of;
  const property: Property = { ...read, order: { is: order, of } };
  if (sameWord(what, of) && !(kind === "never" && order === "after"))
    return { ok: false, message: `it names ${last} twice`, suggestion: "name two things, or write never: A after A" };
  if (kind === "always") return required(what, property);
  return order === "before" ? required(of, property) : { ok: true, property };
}

/** Nothing makes an agent use a tool, so no path can be relied on to do so. */
function required(word: Word, property: Property): PropertyReading {
  if (word.kind !== "tool") return { ok: true, property };
  const message = `an agent may leave ${word.name} unused, so nothing can depend on its use`;
  return { ok: false, message, suggestion: "name a state or approved" };
}

function kindAndText(source: unknown): { readonly kind: Property["kind"]; readonly text: string } | undefined {
  if (typeof source === "string") {
    const [, kind, text = ""] = /^\s*(never|always)\s*:(.*)$/su.exec(source) ?? [];
    return kind === "never" || kind === "always" ? { kind, text: unquoted(text) } : undefined;
  }
  if (!isObject(source)) return undefined;
  const [entry, ...others] = Object.entries(source);
  if (entry === undefined || others.length > 0) return undefined;
  const [kind, text] = entry;
  if ((kind !== "never" && kind !== "always") || typeof text !== "string") return undefined;
  return { kind, text };
}

/** `never: "Bash before approved"` on a command line. */
function unquoted(text: string): string {
  const [, inside] = /^\s*"([^"]*\s[^"]*)"\s*$/su.exec(text) ?? [];
  return inside !== undefined && /\s(?:before|after)\s/u.test(inside) ? inside : text;
}

function tokensOf(text: string): readonly string[] {
  return text.match(/(?:state:|tool:)?(?:"[^"]*"|'[^']*')|\S+/gu) ?? [];
}

function readWord(spec: PipelineSpec, token: string, tools: readonly string[]): Word | Refused {
  const [, prefix, quoted] = /^(state:|tool:)?(.*)$/su.exec(token) ?? [];
  const name = (quoted ?? "").replace(/^(["'])(.*)\1$/su, "$2");
  const states = [...spec.states.keys()].filter((id) => id === name || nameOf(spec, id) === name);
  const [state, other] = states;
  const isTool =
    builtinNames().includes(name) ||
    tools.includes(name) ||
    listedTools(spec).some((listed) => listed === name) ||
    mayListTool(spec, name);
  if (prefix === "tool:") return { kind: "tool", name };
  if (prefix === "state:" || (state !== undefined && !isTool && name !== "approved")) {
    if (state === undefined) return unknownWord(spec, name, []);
    if (other !== undefined)
      return {
        ok: false,
        message: `${JSON.stringify(name)} is the name of two states`,
        suggestion: `use an id: ${states.join(" or ")}`,
      };
    return { kind: "state", id: state };
  }
  if (state !== undefined) {
    const message = `${JSON.stringify(name)} is a state, too`;
    return {
      ok: false,
      message,
      suggestion:
        name === "approved" ? "write state:approved, or rename the state" : `write state:${name} or tool:${name}`,
    };
  }
  if (name === "approved") return { kind: "approved" };
  if (isTool) return { kind: "tool", name };
  return unknownWord(spec, name, [...listedTools(spec), ...tools, ...builtinNames()]);
}

function builtinNames(): readonly string[] {
  return builtinTools().map(({ name }) => name);
}

/** Whether a pattern with a `*` lists a tool of this name. */
function mayListTool(spec: PipelineSpec, name: string): boolean {
  return (
    /^[\w-]+$/u.test(name) &&
    [...spec.states.keys()].some((id) => spec.states.get(id)?.allowedTools !== undefined && mayUse(spec, id, name))
  );
}

function unknownWord(spec: PipelineSpec, name: string, tools: readonly string[]): Refused {
  const known = [...[...spec.states.keys()].map((id) => nameOf(spec, id)), ...new Set(tools), "approved"];
  const hint = suggestOneOf(name, known);
  const message = `there is no state or tool ${JSON.stringify(name)}`;
  return { ok: false, message, ...(hint === undefined ? {} : { suggestion: hint }) };
}

function sameWord(one: Word, other: Word): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
