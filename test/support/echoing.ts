import { isJsonObject, type Json, type JsonObject, parseJson } from "@sluice/core";
import { secretForms } from "../../packages/stages/src/secrets/encodings.ts";

// What a provider answers, with the key it was called with in the place of what it says.

/** Members that say what an event or a message is: another text there is another protocol. */
const STRUCTURE = new Set(["type", "object", "role"]);

/** Where a string stands in a stream: the number of its event, and the members that lead to it. */
export interface StringPlace {
  readonly event: number;
  readonly path: readonly string[];
}

/** Every string of a stream of events. */
export function stringsOf(events: readonly string[]): readonly StringPlace[] {
  return events.flatMap((event, at) => pathsOf(dataOf(event), []).map((path): StringPlace => ({ event: at, path })));
}

/** The stream with one of its strings replaced. */
export function withString(events: readonly string[], place: StringPlace, said: string): readonly string[] {
  return events.map((event, at) =>
    at === place.event ? withData(event, replaced(dataOf(event), place.path, said)) : event,
  );
}

/** The stream with this behind each of its strings, and as a further member of each of its objects. */
export function withEverywhere(events: readonly string[], said: string): readonly string[] {
  return events.map((event) => {
    const data = dataOf(event);
    return data === undefined ? event : withData(event, everywhere(data, said));
  });
}

/** What a key can be recognized by: the ends of every form that it is looked for in, half of which is too much already. */
export function tracesOf(key: string): readonly string[] {
  return [...secretForms(new Map([[key, "key"]])).keys()].flatMap((form) => [form.slice(0, 12), form.slice(-12)]);
}

function dataOf(event: string): Json | undefined {
  const parsed = parseJson(/^data: (.*)$/m.exec(event)?.[1] ?? "");
  return parsed.ok ? parsed.value : undefined;
}

function withData(event: string, data: Json | undefined): string {
  return data === undefined ? event : event.replace(/^data: .*$/m, () => `data: ${JSON.stringify(data)}`);
}

function pathsOf(value: Json | undefined, path: readonly string[]): readonly (readonly string[])[] {
  if (typeof value === "string") return [path];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) => pathsOf(member, [...path, key]));
}

function replaced(value: Json | undefined, [key, ...rest]: readonly string[], said: string): Json {
  if (key === undefined) return said;
  if (typeof value !== "object" || value === null) return value ?? null;
  if (!isJsonObject(value))
    return value.map((member, at) => (String(at) === key ? replaced(member, rest, said) : member));
  const members = Object.entries(value).map(([name, member]) => [
    name,
    name === key ? replaced(member, rest, said) : member,
  ]);
  return Object.fromEntries(members);
}

function everywhere(value: Json, said: string): Json {
  if (typeof value === "string") return `${value} ${said}`;
  if (typeof value !== "object" || value === null) return value;
  if (!isJsonObject(value)) return value.map((member) => everywhere(member, said));
  const members = Object.entries(value).map(([name, member]): [string, Json] =>
    STRUCTURE.has(name) ? [name, member] : [name, everywhere(member, said)],
  );
  const more: JsonObject = { echoed: said, [said]: "echoed" };
  return { ...Object.fromEntries(members), ...more };
}
