import { compileSchema, shape } from "@sluice/core/runtime";
import { expect, test } from "vitest";
import { z } from "zod";

// Zod is the reference: journals hold its messages, and cassettes and fingerprints hold the digests of its JSON Schemas.

const pairs: readonly (readonly [string, shape.Shape<unknown>, z.ZodType])[] = [
  ["a text", shape.text({ min: 2, max: 3 }), z.string().min(2).max(3)],
  [
    "a text with a pattern",
    shape.text({ pattern: { regex: /^a/, message: "is no a" }, description: "Starts with a." }),
    z.string().regex(/^a/, "is no a").describe("Starts with a."),
  ],
  ["a whole number", shape.integer({ min: 1, max: 9 }), z.int().min(1).max(9)],
  ["any whole number", shape.integer(), z.int()],
  ["a number", shape.decimal({ min: 0 }), z.number().min(0)],
  ["a flag", shape.flag(), z.boolean()],
  ["one of several", shape.oneOf(["a", "b"]), z.enum(["a", "b"])],
  ["a list", shape.list(shape.text({ min: 1 }), { min: 1, max: 2 }), z.array(z.string().min(1)).min(1).max(2)],
  ["a map", shape.mapOf(shape.integer()), z.record(z.string(), z.int())],
  [
    "an object",
    shape.object({ a: shape.text(), b: shape.optional(shape.integer()), c: shape.object({ d: shape.flag() }) }),
    z.strictObject({ a: z.string(), b: z.int().optional(), c: z.strictObject({ d: z.boolean() }) }),
  ],
  [
    "an object that drops other members",
    shape.openObject({ a: shape.list(shape.openObject({ b: shape.text() })), c: shape.optional(shape.text()) }),
    z.object({ a: z.array(z.object({ b: z.string() })), c: z.string().optional() }),
  ],
  [
    "a value with a rule",
    shape.holding(shape.text(), (text) => text !== "ab", "is ab"),
    z.string().refine((text) => text !== "ab", "is ab"),
  ],
];

const values: readonly unknown[] = [
  undefined,
  null,
  true,
  0,
  1.5,
  5,
  12,
  -3,
  2 ** 60,
  "",
  "a",
  "ab",
  "abcd",
  [],
  [""],
  ["a"],
  ["a", "b", "c"],
  [1],
  {},
  { a: 1 },
  { a: "x", c: { d: true } },
  { a: "x", b: 1.5, c: { d: 1, e: 2 }, f: 3, g: 4 },
  { a: [{ b: "x", more: 1 }], c: "y", more: { deep: true } },
  { a: [{ b: 1 }, "x"] },
  JSON.parse('{"__proto__": 1, "a": "x", "c": {"d": true}}'),
];

test.for(pairs)("%s accepts, refuses and describes what the same Zod schema does", async ([, own, zod]) => {
  const mine = compileSchema(own, "mine");
  const other = compileSchema(zod, "other");
  expect(mine.digest).toBe(other.digest);
  expect(mine.accepted?.()).toEqual(other.accepted?.());
  for (const value of values) {
    if (value !== null && typeof value === "object" && Object.hasOwn(value, "__proto__")) continue;
    const [now, reference] = [await mine.check(value), await other.check(value)];
    if (now.ok || reference.ok) expect(now, JSON.stringify(value)).toEqual(reference);
    // Zod also measures a text where a list should be.
    else expect(now.issues[0], JSON.stringify(value)).toEqual(reference.issues[0]);
  }
});

test("a member named __proto__ is unknown to an object, and a value of a map", async () => {
  const hostile = JSON.parse('{"a": "x", "__proto__": {"b": 1}}');
  const closed = await compileSchema(shape.object({ a: shape.text() }), "closed").check(hostile);
  expect(closed).toEqual({ ok: false, issues: [{ path: "$", message: 'Unrecognized key: "__proto__"' }] });
  const open = await compileSchema(shape.openObject({ a: shape.text() }), "open").check(hostile);
  expect(open).toEqual({ ok: true, value: { a: "x" } });
  const map = await compileSchema(shape.mapOf(shape.text()), "map").check(hostile);
  expect(map.ok).toBe(false);
});

test("either of two shapes, a pair and a fixed value", () => {
  const both = shape.either(shape.pair(shape.text(), shape.integer()), shape.exactly(true));
  expect(both.fits(["a", 1], [])).toBe(true);
  expect(both.fits(true, [])).toBe(true);
  const found: shape.ShapeIssue[] = [];
  expect(both.fits(["a"], found)).toBe(false);
  expect(found).toEqual([{ path: [], message: "Invalid input" }]);
});

const anything = shape.custom((value): value is unknown => value !== "no", "is no");

test.each([
  ["a map", shape.mapOf(anything)],
  ["an open object", shape.openObject({ a: anything })],
  ["a rule", shape.holding(anything, () => true, "never")],
] as const)("what %s accepts is a copy of plain JSON", async (_name, own) => {
  const given = { a: { deep: [-0] } };
  const verdict = await compileSchema<unknown>(own, "own").check(given);
  given.a.deep.push(1);
  expect(verdict).toEqual({ ok: true, value: { a: { deep: [0] } } });
  const functions = { a: { run: () => 1 } };
  expect(await compileSchema<unknown>(own, "own").check(functions)).toEqual({
    ok: false,
    issues: [{ path: "$.a.run", message: "function is not JSON" }],
  });
});

test("a shape whose rule throws refuses the value", async () => {
  const rule = (): boolean => {
    throw new Error("no rule");
  };
  const verdict = await compileSchema(shape.holding(shape.text(), rule, "never"), "own").check("a");
  const message = "the schema could not check this value: no rule";
  expect(verdict).toMatchObject({ ok: false, issues: [{ path: "$", message }] });
});

test("at most 20 issues of a shape are reported, and none of them is long", async () => {
  const own = compileSchema(shape.list(shape.oneOf(["x".repeat(500)])), "own");
  const verdict = await own.check(Array.from({ length: 50 }, () => "y"));
  const issues = verdict.ok ? [] : verdict.issues;
  expect(issues.length).toBe(20);
  expect(issues.at(-1)?.path).toBe("$[19]");
  expect(issues.every(({ message }) => message.length <= 301)).toBe(true);
});
