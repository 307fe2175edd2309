import type { GuardScope, JsonObject } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { celGuard } from "../../packages/workflows/src/expressions/cel-guard.ts";
import type { CelTypes } from "../../packages/workflows/src/expressions/variables.ts";

const context: JsonObject = {
  n: 5,
  retries: 2,
  ratio: 0.5,
  text: "hello",
  blank: "",
  flag: true,
  off: false,
  zero: 0,
  nothing: null,
  none: [],
  empty: {},
  list: [1, 2, 3],
  findings: [
    { severity: "high", fixed: true },
    { severity: "low", fixed: false },
  ],
  scratchpad: { cohort_definition: "adults", "a-b": 1 },
  version: "1.10",
};
const usage = { inputTokens: 0, outputTokens: 0 };
const base = { executionId: "review#2", attempts: 3, turns: 4, usage, ms: 0 };

function scopeOf(output: unknown, own: JsonObject = context): GuardScope {
  return {
    result: { ...base, status: "completed", output },
    ctx: {
      runId: "run",
      workspace: "/",
      task: "",
      run: { input: {} },
      input: {},
      upstream: { plan: { steps: ["a"] } },
      context: own,
      setup: null,
      attempt: 3,
      visit: 2,
    },
  };
}

function guardOf(expression: string, types?: CelTypes) {
  const made = celGuard(expression, types);
  if (made.problems !== undefined) throw new Error(JSON.stringify(made.problems));
  return made.guard;
}
const verdictOf = async (expression: string, output: unknown = { clean: true, coverage: 81 }, own = context) =>
  await guardOf(expression).evaluate(scopeOf(output, own));
const problemsOf = (expression: string, types?: CelTypes) => celGuard(expression, types).problems ?? [];

describe("a condition fires", () => {
  test.each([
    // A bare path means present and not empty.
    "context.text",
    "context.scratchpad.cohort_definition",
    'context["scratchpad"]["a-b"]',
    "context.flag && context.n",
    "!context.missing",
    "!context.missing.deeper",
    "!context.blank && !context.zero && !context.nothing && !context.none && !context.empty && !context.off",
    "context.missing || context.text",
    "context.missing ? false : true",
    "context.findings.exists(f, f.fixed)",
    "!context.findings.all(f, f.fixed)",
    // Numbers of JSON and integers of CEL.
    "context.n == 5",
    "context.n == 5.0",
    "5 == context.n",
    "context.n + 1 == 6",
    "10 - context.n == 5",
    "10 - context.retries == 8",
    "context.n * 2 == 10",
    "context.n / 2 == 2.5",
    "context.n % 2 == 1",
    "-context.n == -5",
    "context.ratio * 2 == 1",
    "context.n > 4 && context.n >= 5 && context.n < 5.5 && context.n <= 5",
    "context.n in [1, 5]",
    "2 in context.list",
    "context.list == [1, 2, 3]",
    "context.list[0] == 1",
    "context.list[context.n - 4] == 2",
    "context.list.map(x, x + 1) == [2, 3, 4]",
    "size(context.list) == context.n - 2",
    "1 == 1.0",
    // Texts.
    'context.text.startsWith("he") && context.text.endsWith("o") && context.text.contains("ell")',
    'context.text.size() == 5 && context.text.upperAscii() == "HELLO"',
    'context.version == "1.10"',
    "context.version != '1.1'",
    'context.text + "!" == "hello!"',
    // Missing fields.
    "has(context.text) && !has(context.missing)",
    "context.?missing.orValue(3) == 3",
    'context.?text.orValue("") == "hello"',
    "context.nothing == null",
    // Lists.
    'context.findings.exists(f, f.severity == "high")',
    "context.findings.filter(f, f.fixed).size() == 1",
    "context.findings.exists_one(f, f.fixed)",
    '"a-b" in context.scratchpad',
    // The other variables.
    "output.clean && output.coverage > 80",
    "output.last_output.coverage == 81",
    'output.last_step.name == "review" && output.last_step.success',
    "output.last_step && output.last_output",
    "has(output.last_output) && has(output.last_step.name)",
    "!output.last_step.feedback",
    'event == "success"',
    "attempt == 3",
    "upstream.plan.steps.size() == 1",
    "steps.plan.steps[0] == 'a'",
    "previous_step.clean",
    // CEL ignores an error where the other operand decides.
    "context.missing == 1 || true",
    "  context.flag // with a comment\n && true",
  ])("%s", async (expression) => {
    expect(await verdictOf(expression)).toMatchObject({ fires: true });
  });
});

describe("a condition does not fire, and says why", () => {
  test.each([
    ["context.blank", "context.blank is missing or empty"],
    ["context.flag && context.missing", "context.missing is missing or empty"],
    ["context.n > 4 && context.n > 5", "context.n > 5 is false"],
    ["context.missing > 3", "context.missing > 3 cannot be evaluated: there is no missing"],
    ["context.missing == null", "context.missing == null cannot be evaluated: there is no missing"],
    ["context.missing == 1 && context.off", "context.off is missing or empty"],
    ['context.n < "a"', 'context.n < "a" cannot be evaluated: no such overload: dyn<double> < string'],
    ["context.text == 5", "context.text == 5 is false"],
    [
      "context.?text.orValue(true)",
      "context.?text.orValue(true) cannot be evaluated: it gives a string, not true or false",
    ],
    [
      "context.list[7] == 1",
      "context.list[7] == 1 cannot be evaluated: there is no index out of bounds, index 7 >= size 3",
    ],
    ["context[context.text] == 1", "context[context.text] == 1 cannot be evaluated: there is no hello"],
    ["'5' == context.n", "'5' == context.n is false"],
    ["context.version == '1.1'", "context.version == '1.1' is false"],
  ])("%s", async (expression, why) => {
    expect(await verdictOf(expression)).toEqual({ fires: false, why });
  });

  test("a failed state has no output, and its message is the feedback", async () => {
    const { ctx } = scopeOf(null);
    const scope: GuardScope = {
      result: { ...base, status: "failed", code: "turn_cap", message: "too many turns" },
      ctx,
    };
    const fires = async (text: string) => (await guardOf(text).evaluate(scope)).fires;
    expect(await fires('event == "failure" && output.last_step.feedback == "too many turns"')).toBe(true);
    expect(await fires("output == null && !output.last_step.success && !output.last_output")).toBe(true);
    expect(await guardOf("output.clean == true").evaluate(scope)).toEqual({
      fires: false,
      why: "output.clean == true cannot be evaluated: there is no clean",
    });
  });
});

describe("a spelling of another language is reported with the CEL form", () => {
  test.each([
    ["context.a and context.b", "and", "write &&, as in: context.a && context.b"],
    ["context.a or context.b", "or", "write ||, as in: context.a || context.b"],
    ["not context.a", "not", "write !(…), as in: !context.a"],
    ["not context.a == 1", "not", "write !(…), as in: !(context.a == 1)"],
    ["not (context.a == 1)", "not", "write !(…), as in: !(context.a == 1)"],
    ["context.a == None", "None", "write null, as in: context.a == null"],
    ["context.a == True", "True", "write true, as in: context.a == true"],
    ["context.a == False", "False", "write false, as in: context.a == false"],
    ["context.a = 1", "=", "write ==, as in: context.a == 1"],
    ["context.a === 1", "===", "write ==, as in: context.a == 1"],
    ["context.a is 1", "is", "write ==, as in: context.a == 1"],
  ])("%s", (expression, word, suggestion) => {
    const [problem, ...more] = problemsOf(expression);
    expect(more).toEqual([]);
    expect(problem).toEqual({
      rule: "expression-syntax",
      message: `"${word}" is not CEL`,
      suggestion,
      offset: expression.indexOf(word),
      length: word.length,
    });
  });

  test("each one has its own position", () => {
    const expression = "not context.a and context.b is not None";
    const found = problemsOf(expression);
    expect(found.map(({ offset, length }) => expression.slice(offset, offset + length))).toEqual([
      "not",
      "and",
      "is",
      "not",
      "None",
    ]);
    expect(found[0]?.suggestion).toBe("write !(…), as in: !context.a && context.b != null");
  });

  test("at most ten of them are reported", () => {
    expect(problemsOf("not ".repeat(1_000)).length).toBe(10);
  });

  test("words in texts, comments and field names are no spellings", async () => {
    const own = { and: "a and b", not: { or: 1 } };
    const expression = `context.and == "a and b" && context.not.or == 1 // = or not`;
    expect(await verdictOf(expression, null, own)).toMatchObject({ fires: true });
  });

  test.each([
    ["len(context.list) > 1", "len(context.list)", "write size(x)"],
    ["context.text.lower() == 'a'", "context.text.lower()", "write x.lowerAscii()"],
    ["context.text.startswith('a')", "context.text.startswith('a')", "write x.startsWith(y)"],
    ["context.get('a') == 1", "context.get('a')", "write x.?key.orValue(y)"],
    ["context.list.sizes() == 1", "context.list.sizes()", 'did you mean "size"?'],
  ])("%s names the function that CEL has", (expression, at, suggestion) => {
    const [problem] = problemsOf(expression);
    expect(problem).toMatchObject({ rule: "expression-name", suggestion, offset: expression.indexOf(at) });
  });
});

describe("what an expression may not do is an error when it is loaded", () => {
  test.each([
    ["", "expression-syntax", 0],
    ["   ", "expression-syntax", 0],
    ["context.a ==", "expression-syntax", 12],
    ["context..a", "expression-syntax", 8],
    ["context.a == 'open", "expression-syntax", 13],
    ["context.a @ 1", "expression-syntax", 10],
    ["ctx.a", "expression-name", 0],
    ["last_output", "expression-name", 0],
    ["context.a && __import__('os')", "expression-name", 13],
    ["process.exit()", "expression-name", 0],
    ["cel.bind(x, 1, x == 1)", "expression-name", 0],
    ["optional.of(1).hasValue()", "expression-name", 0],
    ["timestamp('2020-01-01T00:00:00Z') == context.a", "expression-name", 0],
    ["context.a.matches('(a+)+$')", "expression-banned", 0],
    ["context.constructor", "expression-banned", 8],
    ["context.a.__proto__ == 1", "expression-banned", 10],
    ['context["__proto__"] == 1', "expression-banned", 8],
    ["context.a[?'constructor'].orValue(1) == 1", "expression-banned", 11],
    ["context.l.exists(x, x.l.exists(y, y == 1))", "expression-banned", 20],
    ["context.l.exists(output, output == 1)", "expression-name", 17],
    ["has(context)", "expression-type", 0],
    ["size(context.l)", "expression-type", 0],
    ["'text'", "expression-type", 0],
    ["1 + 1", "expression-type", 0],
    ["context.a == 1 ? 'a' : 'b'", "expression-type", 0],
    ["1 == 'a'", "expression-type", 0],
    ["'a' + 1 == 'a1'", "expression-type", 0],
    ["event > 5", "expression-type", 0],
  ])("%s", (expression, rule, offset) => {
    expect(problemsOf(expression)).toEqual([expect.objectContaining({ rule, offset })]);
  });

  test("all mistakes of names are reported at once", () => {
    const expression = "ctx.a && outputs.b && context.c";
    expect(problemsOf(expression)).toEqual([
      expect.objectContaining({ offset: 0, length: 3 }),
      expect.objectContaining({ offset: 9, length: 7, suggestion: 'did you mean "output"?' }),
    ]);
  });

  test.each([
    ["characters", `context.a == '${"a".repeat(4096)}'`, "the condition has 4111 characters; 4096 are allowed"],
    ["parts", Array.from({ length: 300 }, () => "true").join(" || "), "the condition has more than 500 parts"],
    ["brackets", `${"(".repeat(40)}true${")".repeat(40)}`, "the condition is nested more than 32 deep"],
    ["fields", `context${".a".repeat(40)} == 1`, "the condition is nested more than 32 deep"],
    ["signs", `${"!".repeat(4000)}true`, "the condition has more than 500 parts"],
  ])("too many %s", (_what, expression, message) => {
    expect(problemsOf(expression)).toEqual([expect.objectContaining({ rule: "expression-limit", message })]);
  });

  test("the largest allowed sizes load and evaluate", async () => {
    expect(
      await verdictOf(
        Array.from({ length: 240 }, () => "false")
          .join(" || ")
          .replace(/false$/, "true"),
      ),
    ).toEqual({
      fires: true,
      why: "its condition is true",
    });
    expect(await verdictOf(`${"(".repeat(30)}context.flag${")".repeat(30)}`)).toMatchObject({ fires: true });
  });
});

describe("values are hostile", () => {
  test.each(["constructor", "__proto__", "prototype", "toString", "length"])(
    "a computed key cannot reach %s",
    async (key) => {
      const verdict = await verdictOf("context[context.key] != 1", null, { key });
      expect(verdict).toMatchObject({ fires: false, why: expect.stringContaining("cannot be evaluated") });
      expect(await verdictOf("context[context.key]", null, { key })).toMatchObject({ fires: false });
      expect(await verdictOf("context.key[context.key] != 1", null, { key })).toMatchObject({ fires: false });
    },
  );

  test("own fields with such names do not fire", async () => {
    const own: JsonObject = { a: { constructor: "x", b: 1 }, key: "constructor" };
    expect(await verdictOf("context.a.b == 1", null, own)).toMatchObject({ fires: false });
    expect(await verdictOf("context.a", null, own)).toMatchObject({ fires: true });
  });

  test("instances of classes and functions are no values", async () => {
    class Secret {
      readonly key = "x";
    }
    expect(await verdictOf("output.key == 'x'", new Secret())).toMatchObject({ fires: false });
    expect(await verdictOf("output.name == 'x'", { name: () => "x" })).toMatchObject({ fires: false });
  });

  const items = (count: number): JsonObject => ({ l: Array.from({ length: count }, (_, index) => index) });

  test("a comprehension visits at most 1,000 elements", async () => {
    expect(await verdictOf("context.l.all(x, x >= 0)", null, items(1_000))).toMatchObject({ fires: true });
    expect(await verdictOf("context.l.all(x, x >= 0)", null, items(1_001))).toEqual({
      fires: false,
      why: "context.l.all(x, x >= 0) cannot be evaluated: it loops over 1001 elements; 1000 are allowed",
    });
  });

  test.each([
    ["context.a.exists(x, x in context.b)"],
    ["context.a.exists(x, context.b != context.b)"],
    ["context.a.map(x, context.b + context.b).size() == 3"],
    [Array.from({ length: 30 }, () => "context.a.exists(x, x + x + x + x == 1)").join(" || ")],
    [`(${Array.from({ length: 100 }, () => "context.b").join(" + ")}).size() == 1`],
  ])("work on large values ends with the reason: %s", async (expression) => {
    const a = Array.from({ length: 1_000 }, (_, index) => index);
    const b = Array.from({ length: 20_000 }, () => -1);
    expect(await verdictOf(expression, null, { a, b })).toEqual({
      fires: false,
      why: expect.stringMatching(/it looks at too many values$/),
    });
  });

  const many = new Map(Array.from({ length: 2_000 }, (_, index) => [`k${index}`, index]));
  const own: JsonObject = {
    long: "a".repeat(1_000_000),
    needle: `b${"a".repeat(1_000)}`,
    keys: Object.fromEntries(many),
    list: Array.from({ length: 200_000 }, () => 1),
  };
  const repeated = (condition: string, count: number): string =>
    Array.from({ length: count }, () => condition).join(" && ");
  test.each([
    ["one search in a long text for another", "context.long.contains(context.needle)"],
    ["from the end", "context.long.lastIndexOf(context.needle) < 0"],
    ["from a position", "context.long.indexOf(context.needle, 1) < 0"],
    ["many copies of a long text", repeated("context.long.lowerAscii() != 'x'", 40)],
    ["many readings of one", repeated("context.long.size() > 1", 40)],
    ["many concatenations", repeated('context.long + "b" != "c"', 60)],
    ["a search in a long list", "context.needle in context.list"],
    ["many looks into an object", repeated("size(context.keys) > 1", 60)],
    ["a loop that reads a long text", "[1, 2, 3].all(x, context.long.size() > x)"],
    ["a comparison of long lists", "context.list == context.list"],
  ])("%s ends with the reason", async (_what, expression) => {
    const { fires, why } = await verdictOf(expression, null, own);
    expect([fires, why]).toEqual([false, expect.stringMatching(/it looks at too many values$/)]);
  });

  test.each([
    'context.long.contains("b") || context.long.size() == 1000000',
    'context.long.indexOf("b") < 0 && !context.needle.contains("c") && context.needle.indexOf("a", 1) == 1',
    'context.needle.lastIndexOf("b") == 0 && context.needle.indexOf("a") == 1 && context.needle.indexOf("") == 0',
    'context.long.startsWith("a") && context.long != "a"',
    '"k5" in context.keys && size(context.keys) == 2000 && context.keys.k5 == 5',
    "context.list && size(context.list) == 200000 && context.list[7] == 1",
  ])("one look at something long is not too much: %s", async (expression) => {
    expect(await verdictOf(expression, null, own)).toMatchObject({ fires: true });
  });

  const large = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`k${index}`, index]));
  const inside: JsonObject = { deep: { large, copy: { ...large }, other: { ...large, k7: 0 } }, key: "k5" };
  test.each([
    '"k5" in context.deep.large && !("k500" in context.deep.large)',
    "context.deep.large.k5 == 5 && context.deep.large[context.key] == 5",
    "has(context.deep.large.k5) && !has(context.deep.large.k500)",
    "context.deep.large.?k500.orValue(1) == 1 && context.deep.large.?k5.orValue(1) == 5",
    "size(context.deep.large) == 500 && context.deep.large.size() == 500",
    "context.deep.large == context.deep.copy && context.deep.large != context.deep.other",
    'context.deep.large.exists(k, k == "k5") && context.deep.large.all(k, context.deep.large[k] < 500)',
    "context.deep.large && context.deep",
    '!("size" in context.deep.large) && !("constructor" in context.deep.large) && !("get" in context.deep.large)',
    "context.deep.large.filter(k, context.deep.large[k] > 497).size() == 2",
  ])("an object with many fields is like any other: %s", async (expression) => {
    expect(await verdictOf(expression, null, inside)).toEqual({ fires: true, why: "its condition is true" });
  });
  test.each<[string, boolean]>([
    ['!("k5" in context.deep.large || "k6" in context.deep.large)', false],
    ['"k500" in context.deep.large || "k5" in context.deep.large', true],
    ["size(context.deep.large) == 1 || size(context.deep.large) == 0", false],
    ["size(context.deep.large) == 1 || context.deep.large.k7 == 7", true],
  ])("an object with many fields is the same whenever a condition reads it: %s", async (expression, fires) => {
    expect(await verdictOf(expression, null, inside)).toMatchObject({ fires });
  });
  test("the fields of a context with many of them can all be read in one condition", async () => {
    const all = { ...large, flags: large };
    expect(await verdictOf("context.k1 == 0 || context.k2 == 2", null, all)).toMatchObject({ fires: true });
    expect(await verdictOf("!(has(context.k500) || has(context.k1))", null, all)).toMatchObject({ fires: false });
    expect(await verdictOf("context.k1 == 0 || context.flags.k2 == 2", null, all)).toMatchObject({ fires: true });
    expect(await verdictOf("context.k1 == 0 || size(context.flags) == 500", null, all)).toMatchObject({ fires: true });
  });
  test.each(["size", "get", "has", "entries", "constructor", "__proto__"])(
    "an object with many fields has no field %s of its own",
    async (key) => {
      for (const expression of ["context.deep.large[context.key] != 1", "!(context.deep.large[context.key] == 1)"]) {
        const { fires, why } = await verdictOf(expression, null, { ...inside, key });
        expect([fires, why]).toEqual([false, expect.stringContaining(`cannot be evaluated: there is no ${key}`)]);
      }
      expect(await verdictOf("context.deep.large[context.key]", null, { ...inside, key })).toMatchObject({
        fires: false,
      });
    },
  );

  test("the conditions of one guard share the limit, and each evaluation has its own", async () => {
    const once = "context.long.size() == 1000000";
    const guard = guardOf(once);
    for (let count = 0; count < 5; count += 1)
      expect(await guard.evaluate(scopeOf(null, own))).toMatchObject({ fires: true });
    expect(await verdictOf(`${once} && ${once}`, null, own)).toMatchObject({ fires: false });
    expect(await verdictOf(`${once} && context.list == 1`, null, own)).toMatchObject({
      why: "context.list == 1 is false",
    });
  });

  test.each([
    ["context.n / 0 == 1", "it divides by zero"],
    ["context.n / context.zero > 1", "it divides by zero"],
    ["!(context.zero / context.zero < 1)", "it divides by zero"],
    ["context.n % context.zero == 1", "it divides by zero"],
    ["1.0 / 0.0 > 5.0", "it divides by zero"],
    ['!(double("NaN") < 1.0)', "double() gives no number of JSON"],
    ['double("Infinity") > 1.0', "double() gives no number of JSON"],
    ["!(double(context.word) < 80)", "double() gives no number of JSON"],
    ["!(int(context.word) < 80)", ""],
    ["context.n.contains('5')", "contains() is for texts"],
    ["context.word.indexOf('a', 9) == 1", "indexOf() begins outside of the text"],
    ["9223372036854775807 * 2 > 1", "integer overflow"],
  ])("%s is no number, and does not fire", async (expression, cause) => {
    const { fires, why } = await verdictOf(expression, null, { ...context, word: "NaN" });
    expect([fires, why]).toEqual([false, expect.stringContaining(`cannot be evaluated: ${cause}`)]);
  });

  test.each(["present_0", "last_output", "last_step", "steps"])("a loop cannot call its element %s", (name) => {
    const expression = `context.list.all(${name}, context.flag)`;
    expect(problemsOf(expression)).toEqual([expect.objectContaining({ rule: "expression-name", offset: 17 })]);
  });
  test.each(["constructor", "present", "counted", "looped", "measured", "int", "size"])(
    "an element called %s is an element",
    async (name) => {
      const verdict = await verdictOf(`context.list.exists(${name}, ${name} == 2 && context.flag)`);
      expect(verdict).toMatchObject({ fires: true });
    },
  );

  test("a limit in an exists() is no element that does not match", async () => {
    const b = Array.from({ length: 200_000 }, () => 1);
    expect(await verdictOf("!context.a.exists(x, x in context.b)", null, { a: [2], b })).toMatchObject({
      fires: false,
      why: expect.stringMatching(/it looks at too many values$/),
    });
  });
});

describe("where types are known", () => {
  const types: CelTypes = {
    output: {
      type: "object",
      properties: {
        verdict: { type: "string", enum: ["approve", "reject"] },
        coverage: { type: "number" },
        clean: { type: "boolean" },
        findings: {
          type: "array",
          items: { type: "object", properties: { severity: { type: "string" } }, additionalProperties: false },
        },
        more: { type: "object", additionalProperties: true },
        either: { anyOf: [{ type: "string" }, { type: "null" }] },
        self: { $ref: "#" },
      },
      required: ["verdict"],
      additionalProperties: false,
    },
    upstream: {
      type: "object",
      properties: {
        plan: { type: "object", properties: { steps: { type: "array" } } },
        "fix-it": { type: "object", properties: { ok: { type: "boolean" } } },
      },
      additionalProperties: false,
    },
  };

  test.each([
    ["output.covrage > 80", "covrage", 'did you mean "coverage"?'],
    ["output.clean && output.verdct == 'approve'", "verdct", 'did you mean "verdict"?'],
    ["!output.missing", "missing", "use one of verdict, coverage, clean, findings, more, either, self"],
    ["has(output.claen)", "claen", 'did you mean "clean"?'],
    ["output.findings.exists(f, f.sevrity == 'high')", "sevrity", 'did you mean "severity"?'],
    ["output.self.self.covrage > 80", "covrage", 'did you mean "coverage"?'],
    ["upstream.plna.steps.size() > 0", "plna", 'did you mean "plan"?'],
    ["upstream.plan.step.size() > 0", "step", 'did you mean "steps"?'],
    ["output.last_step.succes", "succes", 'did you mean "success"?'],
    ["(output.clean || (output.verdict == 'x' && output.zzz > 1))", "zzz", undefined],
  ])("%s is an error at the field", (expression, missing, suggestion) => {
    const [problem, ...more] = problemsOf(expression, types);
    expect(more).toEqual([]);
    expect(problem).toMatchObject({
      rule: "expression-name",
      message: `there is no field "${missing}"`,
      offset: expression.indexOf(missing),
      length: missing.length,
      ...(suggestion === undefined ? {} : { suggestion }),
    });
  });

  test.each([
    ["output.verdict > 5", '"' + '>" is not defined for string and int', 0],
    ["output.clean && output.verdict == 5", '"==" is not defined for string and int', 16],
    ["output.coverage", undefined, 0],
    ["output.findings", undefined, 0],
    ["output.verdict", undefined, 0],
    ["output.coverage == 5 && output.coverage + 1 > 5.5", undefined, 0],
    ["output.more.anything.at.all == 1", undefined, 0],
    ["output.either == null || output.either == 'x'", undefined, 0],
    ['upstream["fix-it"].ok', undefined, 0],
    ["context.anything.at.all", undefined, 0],
    ["output.findings.size() > 0 && output.findings[0].severity == 'high'", undefined, 0],
  ])("%s", (expression, message, offset) => {
    const expected =
      message === undefined ? [] : [expect.objectContaining({ rule: "expression-type", message, offset })];
    expect(problemsOf(expression, types)).toEqual(expected);
  });
});

test("a guard keeps its text", () => {
  expect(guardOf("  context.n > 4 ").text).toBe("context.n > 4");
});
