import fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalJson } from "../../packages/core/src/base/canonical.ts";
import type { Json } from "../../packages/core/src/base/json.ts";

const text = fc.string({ unit: "binary" });
const json: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.constant(null),
    fc.boolean(),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    text,
    fc.array(tie("value"), { maxLength: 5 }),
    fc.dictionary(text, tie("value"), { maxKeys: 5 }),
  ),
})).value;

/** The same value with the members of every object in another order. */
function shuffled(value: Json): Json {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, shuffled(member)]),
  );
}

/** RFC 8785 the slow way: every key is compared by its code units. */
function reference(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(reference).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const units = (key: string) => Array.from({ length: key.length }, (_, index) => key.charCodeAt(index));
  const before = (a: string, b: string): number => {
    const [left, right] = [units(a), units(b)];
    const at = left.findIndex((unit, index) => unit !== right[index]);
    return at < 0 ? left.length - right.length : (left[at] ?? 0) - (right[at] ?? -1);
  };
  const members = Object.entries(value).sort(([a], [b]) => before(a, b));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${reference(member)}`).join(",")}}`;
}

/** Holds for every JSON value fast-check can think of. */
function always(fact: (value: Json) => void): void {
  fc.assert(fc.property(json, (value) => fact(value)));
}

test("canonical text does not depend on the order of members", () => {
  always((value) => {
    expect(canonicalJson(shuffled(value))).toBe(canonicalJson(value));
  });
});

test("canonical text is JSON that reads back as the value it was made from", () => {
  always((value) => {
    expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
  });
});

test("canonical text is what RFC 8785 says, member by member", () => {
  always((value) => {
    expect(canonicalJson(value)).toBe(reference(value));
  });
});
