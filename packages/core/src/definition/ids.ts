/** Ids written by people: of pipelines and states, and names of completion tools. */
const ID_GRAMMAR = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
/** Words with a meaning of their own in routes; none of them can be a state. */
const RESERVED_IDS: ReadonlySet<string> = new Set(["$return", "$end", "*", "interrupted"]);
/** Names that ordinary objects already answer to, so that a lookup by id could find something nobody defined. */
const INHERITED: ReadonlySet<string> = new Set(Object.getOwnPropertyNames(Object.prototype));

/** What is wrong with an id, or undefined. */
export function idFault(id: unknown): string | undefined {
  if (typeof id !== "string") return `an id is a string, not ${id === null ? "null" : typeof id}`;
  if (RESERVED_IDS.has(id)) return `"${id}" is reserved`;
  if (INHERITED.has(id)) return `"${id}" is a name every object has`;
  if (!ID_GRAMMAR.test(id))
    return `${JSON.stringify(id.slice(0, 80))} is not an id: a letter, then up to 63 letters, digits, _ or -`;
  return undefined;
}
