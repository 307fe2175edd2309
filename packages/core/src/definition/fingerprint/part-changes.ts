import { field, type Json } from "../../base/json.ts";
import type { Fact, PipelineParts, StateParts } from "./fingerprint.ts";

const MOST_CHANGES = 40;

/**
 * The changes between recorded parts and a pipeline, as text. Undefined if nothing comparable was recorded; empty if the parts
 * are equal.
 */
export function partChanges(recorded: Json | undefined, now: PipelineParts): readonly string[] | undefined {
  const before = readParts(recorded);
  if (before === undefined) return undefined;
  const after = new Map(now.map(({ state, facts }) => [state, facts]));
  const changes = [...new Set([...before.keys(), ...after.keys()])].flatMap((state) =>
    changesOf(state, before.get(state), after.get(state)),
  );
  if (changes.length <= MOST_CHANGES) return changes;
  return [...changes.slice(0, MOST_CHANGES), `and ${changes.length - MOST_CHANGES} more`];
}

function changesOf(
  state: string,
  before: StateParts["facts"] | undefined,
  after: StateParts["facts"] | undefined,
): readonly string[] {
  const where = state === "" ? "the pipeline" : `state ${state}`;
  if (before === undefined) return [`${where} was added`];
  if (after === undefined) return [`${where} was removed`];
  const [was, is] = [new Map(before), new Map(after)];
  return [...new Set([...was.keys(), ...is.keys()])].flatMap((name) => {
    const words = wordsOf(was.get(name), is.get(name));
    return words === undefined ? [] : [`${where}: ${name.replace(/^out(?= |$)/, "completionSchema")} ${words}`];
  });
}

function wordsOf(was: string | undefined, is: string | undefined): string | undefined {
  if (was === is) return undefined;
  if (was === undefined) return isPlain(is) ? `was added (${is})` : "was added";
  if (is === undefined) return "was removed";
  return isPlain(was) && isPlain(is) ? `changed from ${was || "empty"} to ${is || "empty"}` : "changed";
}

/** Whether a value is readable, rather than a digest or a mark. */
function isPlain(value: string | undefined): boolean {
  return value !== undefined && value !== "there" && !/(?:^|[ ])#[0-9a-f]+$/.test(value);
}

/** Undefined for parts that were never written like this. */
function readParts(recorded: Json | undefined): ReadonlyMap<string, StateParts["facts"]> | undefined {
  if (!Array.isArray(recorded)) return undefined;
  const parts = new Map<string, StateParts["facts"]>();
  for (const part of recorded) {
    const [state, facts] = [field(part, "state"), field(part, "facts")];
    if (typeof state !== "string" || !Array.isArray(facts)) return undefined;
    const read = facts.flatMap(factOf);
    if (read.length !== facts.length) return undefined;
    parts.set(state, read);
  }
  return parts;
}

function factOf(fact: Json): readonly Fact[] {
  if (!Array.isArray(fact) || fact.length !== 2) return [];
  const [name, value]: readonly Json[] = fact;
  return typeof name === "string" && typeof value === "string" ? [[name, value]] : [];
}
