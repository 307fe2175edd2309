import { readFileSync } from "node:fs";
import { readSource } from "@sluice/workflows";
import fc from "fast-check";
import { expect, test } from "vitest";
import { loadTexts } from "../support/workflows.ts";

const fixture = new URL("../fixtures/workflows/statewright/deploy-full.json", import.meta.url);
const seed: unknown = JSON.parse(readFileSync(fixture, "utf8"));

/** Words that mean something somewhere in a document, at random places of it. */
const words = fc.constantFrom(
  "done",
  "$return",
  "*",
  "planning",
  "",
  "toString",
  "{{ctx.x}}",
  "Bash",
  "all",
  "final",
  "exists",
  "a b",
  "_x",
);
const values = fc.oneof(
  words,
  fc.constant(null),
  fc.integer({ min: -1, max: 3 }),
  fc.boolean(),
  fc.constant([]),
  fc.constant({}),
  fc.jsonValue({ maxDepth: 2 }),
);
const keys = fc.oneof(
  words,
  fc.constantFrom("on", "type", "target", "guard", "fork", "invoke", "maxIterations", "env", "deny_env", "states"),
);
type Change = {
  readonly at: number;
  readonly how: "replace" | "remove" | "add" | "double";
  readonly key: string;
  readonly value: unknown;
};
const changes = fc.array(
  fc.record({ at: fc.nat(), how: fc.constantFrom("replace", "remove", "add", "double"), key: keys, value: values }),
  { minLength: 1, maxLength: 6 },
);

/** Every object and list of a value. */
function holders(value: unknown): readonly object[] {
  if (typeof value !== "object" || value === null) return [];
  return [value, ...Object.values(value).flatMap(holders)];
}

function changed(document: unknown, { at, how, key, value: given }: Change): void {
  const value = structuredClone(given);
  const all = holders(document);
  const holder = all[at % all.length];
  if (holder === undefined) return;
  const names = Object.keys(holder);
  const name = names[at % Math.max(1, names.length)];
  if (how === "add") Object.assign(holder, Array.isArray(holder) ? { [holder.length]: value } : { [key]: value });
  else if (name !== undefined && how === "replace") Object.assign(holder, { [name]: value });
  else if (name !== undefined && how === "double")
    Object.assign(holder, { [key]: structuredClone(Reflect.get(holder, name)) });
  else if (name !== undefined && !Array.isArray(holder)) Reflect.deleteProperty(holder, name);
}

test("whatever a document holds, loading it gives a pipeline or errors, each inside the text", async () => {
  await fc.assert(
    fc.asyncProperty(changes, fc.boolean(), async (list, indented) => {
      const document = structuredClone(seed);
      for (const change of list) changed(document, change);
      const text = JSON.stringify(document, null, indented ? 2 : 0) ?? "null";
      const { pipeline, diagnostics } = await loadTexts("w.json", { "w.json": text });
      const errors = diagnostics.filter(({ severity }) => severity === "error");
      expect(pipeline === undefined).toBe(errors.length > 0);
      const lines = text.split("\n");
      for (const { line, column, length, message } of diagnostics) {
        expect(column - 1 + length).toBeLessThanOrEqual(Math.max(1, lines[line - 1]?.length ?? 0));
        expect(message).toMatch(/\.$/u);
      }
    }),
    { numRuns: 400 },
  );
});

test("text of any kind is read or refused, within a second and without an error that is thrown", () => {
  const pieces = fc.constantFrom(
    "a",
    ": ",
    "- ",
    "\n",
    "  ",
    "[",
    "]",
    "{",
    "}",
    ",",
    '"',
    "'",
    "|\n",
    ">-\n",
    "&x ",
    "*x",
    "!t ",
    "#",
    "\\",
    "? ",
    "\t",
    "---\n",
    "\r\n",
    "%",
    "é",
    "😀",
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 60 }), (parts) => {
      const { source, diagnostics } = readSource("w.yaml", parts.join(""));
      expect(source === undefined).toBe(diagnostics.length === 1);
    }),
    { numRuns: 2_000 },
  );
});

test("the JSON of any value is read as that value", () => {
  const reserved = new Set(["__proto__", "constructor", "prototype"]);
  const key = fc.string({ unit: "grapheme", maxLength: 12 }).filter((name) => !reserved.has(name));
  const json = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 5 },
      fc.string({ unit: "grapheme" }),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => (Object.is(number, -0) ? 0 : number)),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie("value"), { maxLength: 4 }),
      fc.dictionary(key, tie("value"), { maxKeys: 4, noNullPrototype: true }),
    ),
  })).value;
  fc.assert(
    fc.property(json, fc.constantFrom(0, 2, "\t"), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      // Control characters of the second range are refused, whether or not JSON escapes them.
      fc.pre(!/(?![\t\n\r])\p{Cc}/u.test(text));
      const { source, diagnostics } = readSource("w.json", text);
      expect(diagnostics).toEqual([]);
      expect(source?.value).toEqual(value);
    }),
    { numRuns: 500 },
  );
});
