import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import * as mini from "zod/mini";
import { z as z3 } from "zod-v3";
import { digestOf } from "../../packages/core/src/base/canonical.ts";
import { isSluiceError, messageOf } from "../../packages/core/src/base/errors.ts";
import { compileSchema, withJsonSchema } from "../../packages/core/src/schema/compile-schema.ts";
import type { Schema } from "../../packages/core/src/schema/schema.ts";

const PLAN = {
  type: "object",
  properties: { summary: { type: "string" }, steps: { type: "array", items: { type: "string" }, minItems: 1 } },
  required: ["summary", "steps"],
} as const;

/** One contract, said in four ways. */
const plans: readonly (readonly [string, Schema<unknown>])[] = [
  ["Zod 4", z.object({ summary: z.string(), steps: z.array(z.string()).min(1) })],
  ["Zod 4 mini", mini.object({ summary: mini.string(), steps: mini.array(mini.string()).check(mini.minLength(1)) })],
  ["Zod 3", z3.object({ summary: z3.string(), steps: z3.array(z3.string()).min(1) })],
  ["JSON Schema", PLAN],
];

/** A Standard Schema of a library that is not Zod. */
function standard(validate: (value: unknown) => unknown, extras: object = {}): Schema<unknown> {
  const schema = { "~standard": { version: 1, vendor: "homemade", validate, types: undefined, ...extras } };
  return schema;
}

function refusalOf(schema: Schema<unknown>): string {
  try {
    compileSchema(schema, "stages.plan.completionSchema");
    return "accepted";
  } catch (thrown) {
    return isSluiceError(thrown, "schema_invalid") && thrown.class === "Validation"
      ? thrown.message
      : `another error: ${messageOf(thrown)}`;
  }
}

async function issuesOf(schema: Schema<unknown>, value: unknown): Promise<readonly string[]> {
  const verdict = await compileSchema(schema, "it").check(value);
  return verdict.ok ? [] : verdict.issues.map(({ path, message }) => `${path} ${message}`);
}

test.each(plans)(
  "%s describes itself to a model as draft-07, without a dialect to spend tokens on",
  (_name, schema) => {
    const { jsonSchema } = compileSchema(schema, "it");
    expect(jsonSchema).toMatchObject(PLAN);
    expect(jsonSchema).not.toHaveProperty("$schema");
  },
);

test.each(plans)("%s accepts what fits and gives back a copy of its own", async (_name, schema) => {
  const given = { summary: "s", steps: ["a"] };
  const verdict = await compileSchema(schema, "it").check(given);
  expect(verdict).toEqual({ ok: true, value: given });
  given.steps.push("later");
  expect(verdict).toEqual({ ok: true, value: { summary: "s", steps: ["a"] } });
});

test.each(plans)("%s says where a value does not fit", async (_name, schema) => {
  const paths = (await issuesOf(schema, { summary: "s", steps: ["a", 2] })).map((issue) => issue.split(" ")[0]);
  expect(paths).toEqual(["$.steps[1]"]);
  expect((await issuesOf(schema, { steps: ["a"] })).map((issue) => issue.split(" ")[0])).toEqual(["$.summary"]);
  expect((await issuesOf(schema, "text")).map((issue) => issue.split(" ")[0])).toEqual(["$"]);
});

test.each(plans)("%s refuses what is not JSON and does not throw", async (_name, schema) => {
  const cycle: Record<string, unknown> = { summary: "s", steps: ["a"] };
  cycle.self = cycle;
  for (const value of [
    undefined,
    1n,
    new Date(),
    cycle,
    { summary: "s", steps: ["a"], at: new Date() },
    { summary: () => 1 },
  ]) {
    expect((await compileSchema(schema, "it").check(value)).ok).toBe(false);
  }
});

test("the digest is that of the JSON Schema, so a changed contract is another contract", () => {
  const compiled = compileSchema(PLAN, "it");
  expect(compiled.digest).toBe(digestOf(compiled.jsonSchema));
  expect(compileSchema({ ...PLAN, required: ["summary"] }, "it").digest).not.toBe(compiled.digest);
});

test("an optional member that is undefined counts as absent", async () => {
  const schema = z.object({ a: z.string(), b: z.string().optional() });
  expect(await compileSchema(schema, "it").check({ a: "x", b: undefined })).toEqual({ ok: true, value: { a: "x" } });
  const strict: Schema<unknown> = { type: "object", properties: { a: {} }, additionalProperties: false };
  expect(await issuesOf(strict, { a: 1, b: undefined })).toEqual([]);
});

test("a value that a schema turns into something else is checked again: it must still be JSON", async () => {
  const dated = z.object({ at: z.string().transform((text) => new Date(text)) });
  expect(await issuesOf(dated, { at: "2020-01-01" })).toEqual(["$.at only plain objects are JSON"]);
  const counted = z.object({ text: z.string() }).transform(({ text }) => ({ length: text.length }));
  expect(await compileSchema(counted, "it").check({ text: "four" })).toEqual({ ok: true, value: { length: 4 } });
});

test("a schema with asynchronous checks is awaited", async () => {
  const schema = z.object({ id: z.string().refine(async (id) => id === "known", "is not known") });
  expect(await issuesOf(schema, { id: "known" })).toEqual([]);
  expect(await issuesOf(schema, { id: "other" })).toEqual(["$.id is not known"]);
});

test.each<readonly [string, Schema<unknown>]>([
  [
    "throws",
    z.object({}).refine(() => {
      throw new Error("the database is gone");
    }),
  ],
  [
    "rejects",
    standard(() => Promise.reject(new Error("the database is gone")), {
      jsonSchema: { input: () => ({ type: "object" }) },
    }),
  ],
])("a schema that %s has not said yes", async (_name, schema) => {
  expect(await issuesOf(schema, {})).toEqual(["$ the schema could not check this value: the database is gone"]);
});

test.each([
  ["a rule", (ask: () => Promise<boolean>) => z.object({ at: z.string().refine(ask) })],
  ["a transform", (ask: () => Promise<boolean>) => z.object({ at: z.string().transform(ask) })],
  ["a rule of Zod 3", (ask: () => Promise<boolean>) => z3.object({ at: z3.string().refine(ask) })],
  ["a rule in mini", (ask: () => Promise<boolean>) => mini.object({ at: mini.string().check(mini.refine(ask)) })],
] as const)("%s that answers later is asked once, and its failure is an issue", async (_what, make) => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on("unhandledRejection", note);
  onTestFinished(() => void process.off("unhandledRejection", note));
  let asked = 0;
  const ask = async (): Promise<boolean> => {
    asked += 1;
    await Promise.resolve();
    throw new Error("the service is down");
  };
  expect(await issuesOf(make(ask), { at: "x" })).toEqual([
    "$ the schema could not check this value: the service is down",
  ]);
  await new Promise((resolve) => setImmediate(resolve));
  expect([asked, unhandled]).toEqual([1, []]);
});

test("at most 20 issues are reported, and none of them is long", async () => {
  const listed: Schema<unknown> = { type: "object", additionalProperties: { type: "number" } };
  const many = Array.from({ length: 500 }, () => "x".repeat(5000));
  for (const schema of [z.array(z.number()), { type: "object", not: {} } as const, z.enum(["a"])]) {
    const issues = await issuesOf(schema, many);
    expect(issues.length).toBeLessThanOrEqual(20);
    expect(Math.max(...issues.map((issue) => issue.length))).toBeLessThan(600);
  }
  expect(await issuesOf(listed, Object.fromEntries(many.entries()))).toHaveLength(20);
  const huge = { ["k".repeat(10_000)]: 1 };
  const strict: Schema<unknown> = { type: "object", properties: {}, additionalProperties: false };
  expect((await issuesOf(strict, huge)).join("").length).toBeLessThan(600);
});

test("issues of JSON Schema name the property that is missing, unknown or not among the choices", async () => {
  const schema: Schema<unknown> = {
    type: "object",
    properties: {
      verdict: { enum: ["approve", "reject"] },
      "a key": { type: "object", properties: { "0": { type: "string" } } },
    },
    required: ["verdict", "reason"],
    additionalProperties: false,
  };
  expect(await issuesOf(schema, { verdict: "maybe", extra: 1, "a key": { 0: 5 } })).toEqual([
    "$.reason is required",
    "$.extra is not a known property",
    '$.verdict must be one of ["approve","reject"]',
    '$["a key"]["0"] must be string',
  ]);
});

test("what an object inherits satisfies no requirement", async () => {
  expect(await issuesOf({ type: "object", required: ["constructor", "toString"] }, {})).toEqual([
    "$.constructor is required",
    "$.toString is required",
  ]);
});

test("a member called __proto__ stays an ordinary member", async () => {
  const value: unknown = JSON.parse('{"__proto__": {"admin": true}}');
  const verdict = await compileSchema({ type: "object" }, "it").check(value);
  expect(JSON.stringify(verdict)).toBe('{"ok":true,"value":{"__proto__":{"admin":true}}}');
  expect({}).not.toHaveProperty("admin");
});

test("formats and keywords no one knows are tolerated in JSON Schema", async () => {
  const schema: Schema<unknown> = {
    type: "object",
    properties: { at: { type: "string", format: "made-up" } },
    "x-note": 1,
    example: {},
  };
  expect(await issuesOf(schema, { at: "whenever" })).toEqual([]);
});

test("a 2020-12 schema is read as one", async () => {
  const schema: Schema<unknown> = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: { pair: { type: "array", prefixItems: [{ type: "string" }, { type: "number" }], items: false } },
    $defs: {},
  };
  expect(await issuesOf(schema, { pair: ["a", 1] })).toEqual([]);
  expect(await issuesOf(schema, { pair: ["a", "b"] })).toEqual(["$.pair[1] must be number"]);
});

test("two schemas with the same $id do not know each other", async () => {
  expect(await issuesOf({ $id: "same", type: "object", required: ["a"] }, { b: 1 })).toEqual(["$.a is required"]);
  expect(await issuesOf({ $id: "same", type: "object", required: ["b"] }, { b: 1 })).toEqual([]);
});

test("a schema that refers to itself is followed, and one that only refers to itself judges nothing", async () => {
  const tree: Schema<unknown> = {
    type: "object",
    properties: { kids: { type: "array", items: { $ref: "#" } } },
    additionalProperties: false,
  };
  expect(await issuesOf(tree, { kids: [{ kids: [] }] })).toEqual([]);
  expect(await issuesOf(tree, { kids: [{ kid: [] }] })).toEqual(["$.kids[0].kid is not a known property"]);
  const loop: Schema<unknown> = { type: "object", allOf: [{ $ref: "#" }] };
  expect((await issuesOf(loop, {}))[0]).toContain("could not check");
});

test.each<readonly [string, Schema<unknown>, string]>([
  [
    "a reference to elsewhere",
    { type: "object", properties: { a: { $ref: "https://example.com/s.json" } } },
    "can't resolve reference",
  ],
  [
    "a broken reference",
    { type: "object", properties: { a: { $ref: "#/definitions/gone" } } },
    "can't resolve reference",
  ],
  [
    "a wrong type",
    { type: "object", properties: { a: { type: "strng" } } },
    "not a valid JSON Schema: /properties/a/type",
  ],
  ["an asynchronous schema", { type: "object", $async: true }, "$async is not JSON Schema"],
  ["a dialect nobody knows", { type: "object", $schema: "http://json-schema.org/draft-04/schema#" }, "is not known"],
  [
    "a broken pattern",
    { type: "object", properties: { a: { type: "string", pattern: "(" } } },
    "Invalid regular expression",
  ],
  ["a schema that is not JSON", { type: "object", default: new Date() }, "not JSON: $.default"],
  ["a huge schema", { type: "object", description: "x".repeat(300_000) }, "longer than"],
  ["a Zod schema of dates", z.object({ at: z.date() }), "Date cannot be represented"],
  [
    "a library that cannot describe itself",
    standard((value) => ({ value })),
    "a homemade schema that cannot describe itself",
  ],
])("%s is refused, with its place", (_name, schema, reason) => {
  const message = refusalOf(schema);
  expect(message).toMatch(/^stages\.plan\.completionSchema: /);
  expect(message).toContain(reason);
});

test("a Zod 3 schema that its converter cannot say is refused instead of becoming one that allows all", () => {
  expect(refusalOf(z3.custom<string>().brand("b").pipe(z3.function()))).toContain("it has no JSON Schema");
  expect(compileSchema(z3.unknown(), "it").jsonSchema).toEqual({});
});

test("another library's schema is shown as its JSON Schema and judges for itself", async () => {
  const jsonSchema = { input: ({ target }: { target: string }) => ({ type: "object", title: target }) };
  const schema = standard(
    (value) =>
      value === "good" ? { value: { fine: true } } : { issues: [{ message: "no", path: ["a", { key: 0 }] }] },
    {
      jsonSchema,
    },
  );
  expect(compileSchema(schema, "it").jsonSchema).toEqual({ type: "object", title: "draft-07" });
  expect(await compileSchema(schema, "it").check("good")).toEqual({ ok: true, value: { fine: true } });
  expect(await issuesOf(schema, "bad")).toEqual(["$.a[0] no"]);
});

test("withJsonSchema gives a library without one a JSON Schema to show", async () => {
  const silent = {
    "~standard": { version: 1, vendor: "homemade", types: undefined, validate: (value: unknown) => ({ value }) },
  };
  const compiled = compileSchema(withJsonSchema(silent, { type: "object" }), "it");
  expect(compiled.jsonSchema).toEqual({ type: "object" });
  expect(await compiled.check({ a: 1 })).toEqual({ ok: true, value: { a: 1 } });
});
