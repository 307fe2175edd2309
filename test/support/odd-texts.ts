import type { Json } from "@sluice/core";
import fc from "fast-check";

// Files that were damaged: at their characters, at the values that they hold, or in the ways in which YAML writes those.

const CHUNKS = [
  ...[
    "\n",
    "\r\n",
    "\r",
    "\t",
    " ",
    "  ",
    ":",
    ": ",
    "- ",
    "? ",
    ",",
    "[",
    "]",
    "{",
    "}",
    '"',
    "'",
    "#",
    "%",
    "@",
    "`",
    "\\",
  ],
  ...[
    "|\n",
    ">-\n",
    "&a ",
    "*a",
    "<<: *a",
    "!!str ",
    "!x ",
    "---\n",
    "...\n",
    "%YAML 1.1\n",
    "~",
    "null",
    "0x1f",
    ".inf",
    "\0",
  ],
  ...[
    "é",
    "😀",
    "\ud800",
    "\udc00",
    "\u0085",
    "\u2028",
    "\ufeff",
    "{{",
    "}}",
    "{{ctx.",
    "__proto__",
    "constructor",
    "$return",
  ],
];

/** What is done to a text at a place, which counts from its start, over and over. */
export type Damage =
  | { readonly how: "remove" | "repeat"; readonly at: number; readonly length: number }
  | { readonly how: "insert" | "replace"; readonly at: number; readonly chunk: string }
  | { readonly how: "flip"; readonly at: number; readonly bit: number };

const at = fc.nat(200_000);
export const randomDamage: fc.Arbitrary<readonly Damage[]> = fc.array(
  fc.oneof(
    fc.record({
      how: fc.constantFrom("remove" as const, "repeat" as const),
      at,
      length: fc.integer({ min: 1, max: 60 }),
    }),
    fc.record({
      how: fc.constantFrom("insert" as const, "replace" as const),
      at,
      chunk: fc.oneof(fc.constantFrom(...CHUNKS), fc.string({ unit: "binary", maxLength: 4 })),
    }),
    fc.record({ how: fc.constant("flip" as const), at, bit: fc.nat(7) }),
  ),
  { minLength: 1, maxLength: 5 },
);

export function damaged(text: string, damages: readonly Damage[]): string {
  return damages.reduce(damagedOnce, text);
}

function damagedOnce(text: string, damage: Damage): string {
  const place = damage.at % (text.length + 1);
  const [start, rest] = [text.slice(0, place), text.slice(place)];
  switch (damage.how) {
    case "remove":
      return start + rest.slice(damage.length);
    case "repeat":
      return start + rest.slice(0, damage.length) + rest;
    case "insert":
      return start + damage.chunk + rest;
    case "replace":
      return start + damage.chunk + rest.slice(damage.chunk.length);
    case "flip": {
      const bytes = Buffer.from(text);
      const byte = damage.at % Math.max(1, bytes.length);
      bytes[byte] = (bytes[byte] ?? 0) ^ (1 << damage.bit);
      return bytes.toString("utf8");
    }
  }
}

/** A change of one of a document's values: of the member at a place, where both count from the start, over and over. */
export interface Change {
  readonly at: number;
  readonly member: number;
  readonly how: "remove" | "replace" | "move" | "rename" | "wrap" | "add";
  /** For `move`: where the value comes from. */
  readonly from: number;
  readonly key: string;
  readonly value: Json;
}
const WORDS = [
  ...["done", "$return", "*", "", "toString", "{{ctx.x}}", "Bash", "all", "final", "exists", "a b", "_x", "./x.yaml"],
  ...["StateMachine", "success", "failure", "pause", "context.a == 1", "ctx.task", "1", "on", "no", "états", "a/../b"],
];
const KEYS = [
  ...[
    "on",
    "type",
    "target",
    "guard",
    "guards",
    "fork",
    "invoke",
    "branches",
    "maxIterations",
    "env",
    "deny_env",
    "states",
  ],
  ...[
    "safe_next",
    "interrupts",
    "properties",
    "meta",
    "transitions",
    "when",
    "from",
    "to",
    "steps",
    "uses",
    "end_states",
  ],
];
export const randomChanges: fc.Arbitrary<readonly Change[]> = fc.array(
  fc.record({
    at: fc.nat(5_000),
    member: fc.nat(40),
    how: fc.constantFrom("remove", "replace", "move", "rename", "wrap", "add"),
    from: fc.nat(5_000),
    key: fc.constantFrom(...WORDS, ...KEYS),
    value: fc.oneof(
      fc.constantFrom<Json>(...WORDS, null, true, -1, 0, 1, 1.5, 1e21, [], {}, [[]], [{}], { a: {} }),
      fc.jsonValue({ maxDepth: 2 }).map((value): Json => JSON.parse(JSON.stringify(value))),
    ),
  }),
  { minLength: 1, maxLength: 3 },
);

/** The value after the changes. */
export function changed(value: Json, changes: readonly Change[]): Json {
  const document: { root: Json } = { root: structuredClone(value) };
  for (const change of changes) changeOne(document, change);
  return document.root;
}

function changeOne(document: object, { at: place, member, how, from, key, value }: Change): void {
  const all = holders(document);
  const holder = all[place % all.length] ?? document;
  const names = Object.keys(holder);
  const name = names[member % Math.max(1, names.length)];
  if (how === "add" || name === undefined) put(holder, Array.isArray(holder) ? String(holder.length) : key, value);
  else if (how === "replace") put(holder, name, value);
  else if (how === "move") put(holder, name, structuredClone(all[from % all.length]));
  else if (how === "wrap")
    put(holder, name, member % 2 === 0 ? [Reflect.get(holder, name)] : { [key]: Reflect.get(holder, name) });
  else if (Array.isArray(holder)) holder.splice(Number(name), 1);
  else {
    if (how === "rename") put(holder, key, Reflect.get(holder, name));
    Reflect.deleteProperty(holder, name);
  }
}

function put(holder: object, name: string, value: unknown): void {
  Object.defineProperty(holder, name, {
    value: structuredClone(value),
    configurable: true,
    enumerable: true,
    writable: true,
  });
}

/** Every object and list of a value. */
function holders(value: unknown): readonly object[] {
  if (typeof value !== "object" || value === null) return [];
  return [value, ...Object.values(value).flatMap(holders)];
}

/** Writes a value as YAML, in styles that the numbers choose, one after the other, over and over. Not always as YAML allows it. */
export function oddYaml(value: Json, styles: readonly number[]): string {
  let next = 0;
  const choose = (of: number): number => {
    next += 1;
    return (styles[next % Math.max(1, styles.length)] ?? 0) % of;
  };
  let anchors = 0;
  const write = (node: Json, indent: number): string => {
    const pad = " ".repeat(indent);
    const style = choose(240);
    if (style === 0 && anchors > 0) return ` *n${1 + choose(anchors)}\n`;
    let props = "";
    if (style === 1) {
      anchors += 1;
      props = ` &n${anchors}`;
    }
    if (style === 2) props = [" !!str", " !!map", " !odd", " !!int", " !!binary"][choose(5)] ?? "";
    const comment = style === 3 ? " # a remark" : "";
    if (typeof node !== "object" || node === null) return `${props} ${scalar(node, indent, choose)}${comment}\n`;
    const entries = Object.entries(node);
    if (style < 60 || entries.length === 0) return `${props} ${JSON.stringify(node)}${comment}\n`;
    const lines = Array.isArray(node)
      ? entries.map(([, entry]) => `${pad}-${write(entry, indent + 2)}`)
      : entries.map(([key, entry]) => `${pad}${keyText(key, choose)}:${write(entry, indent + 2)}`);
    return `${props}${comment}\n${lines.join("")}`;
  };
  const text = write(value, 0);
  return choose(8) === 0 ? text.replaceAll("\n", "\r\n") : text;
}

function keyText(key: string, choose: (of: number) => number): string {
  const style = choose(80);
  if (style < 20) return JSON.stringify(key);
  return style < 40 ? `'${key.replaceAll("'", "''")}'` : style === 79 ? `? ${key}\n` : key;
}

function scalar(value: string | number | boolean | null, indent: number, choose: (of: number) => number): string {
  if (typeof value !== "string") return String(value);
  const pad = " ".repeat(indent + 1);
  switch (choose(6)) {
    case 0:
      return `|\n${value
        .split("\n")
        .map((line) => pad + line)
        .join("\n")}`;
    case 1:
      return `>-\n${value
        .split(" ")
        .map((word) => pad + word)
        .join("\n")}`;
    case 2:
      return `'${value.replaceAll("'", "''")}'`;
    case 3:
      return value;
    default:
      return JSON.stringify(value);
  }
}
