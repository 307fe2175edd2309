import { expect, test } from "vitest";
import { canonicalJson, digestOf, sha256 } from "../../packages/core/src/base/canonical.ts";
import { isSluiceError } from "../../packages/core/src/base/errors.ts";
import type { Json } from "../../packages/core/src/base/json.ts";

/** What canonicalJson says of a value that the compiler would not let through. */
function refusalOf(value: unknown): string {
  const smuggled: Json = JSON.parse("null");
  const holder: { value: Json } = { value: smuggled };
  Object.assign(holder, { value });
  try {
    return `accepted as ${canonicalJson(holder.value)}`;
  } catch (thrown) {
    return isSluiceError(thrown, "not_json") && thrown.class === "Validation"
      ? thrown.message
      : `another error: ${String(thrown)}`;
  }
}

test("members are ordered by UTF-16 code unit, so a surrogate pair comes before U+FB33", () => {
  const value = { "\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\u{1f600}": 5, "\u0080": 6, "\u00f6": 7 };
  expect(canonicalJson(value)).toBe('{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\u{1f600}":5,"\ufb33":3}');
});

test.each([
  [Number("333333333.33333329"), "333333333.3333333"],
  [1e30, "1e+30"],
  [4.5, "4.5"],
  [2e-3, "0.002"],
  [0.000000000000000000000000001, "1e-27"],
  [-0, "0"],
  [1e21, "1e+21"],
  [100000000000000000000, "100000000000000000000"],
  [5e-324, "5e-324"],
])("the number %d is written %s", (value, text) => {
  expect(canonicalJson(value)).toBe(text);
});

test("strings escape quotes, backslashes and control characters and nothing else", () => {
  expect(canonicalJson("\u20ac$\u000f\nA'B\"\\/\u2028")).toBe('"\u20ac$\\u000f\\nA\'B\\"\\\\/\u2028"');
});

test("elements keep their order, nested members are ordered, and there is no white space", () => {
  expect(canonicalJson({ b: [3, 1, { z: null, a: true }], a: {} })).toBe('{"a":{},"b":[3,1,{"a":true,"z":null}]}');
});

test.each<readonly [string, unknown, string]>([
  ["undefined", undefined, "$: undefined is not JSON"],
  ["an undefined member", { a: undefined }, "$.a: undefined is not JSON"],
  ["a hole in a list", Object.assign([], { 1: 1 }), "$[0]: undefined is not JSON"],
  ["a BigInt", { n: 1n }, "$.n: bigint is not JSON"],
  ["a function", [() => 1], "$[0]: function is not JSON"],
  ["a symbol", Symbol("s"), "$: symbol is not JSON"],
  ["a Date", { at: new Date(0) }, "$.at: only plain objects are JSON"],
  ["a Map", new Map(), "$: only plain objects are JSON"],
  ["NaN", [Number.NaN], "$[0]: NaN is not a JSON number"],
  ["Infinity", Number.POSITIVE_INFINITY, "$: Infinity is not a JSON number"],
  ["a lone surrogate", { a: ["\ud800"] }, "$.a[0]: a lone surrogate is not valid Unicode"],
])("%s is refused with its place", (_name, value, message) => {
  expect(refusalOf(value)).toBe(message);
});

test("a lone surrogate in a key is refused", () => {
  expect(refusalOf({ "\udc00": 1 })).toContain("lone surrogate");
});

test("a cycle is refused instead of overflowing the stack", () => {
  const cycle: { self?: unknown } = {};
  cycle.self = { back: cycle };
  expect(refusalOf(cycle)).toContain("nested deeper than 256 levels, or a cycle");
});

test("256 levels are written and 257 are refused", () => {
  const nested = (levels: number): unknown => (levels === 0 ? 0 : [nested(levels - 1)]);
  expect(refusalOf(nested(256))).toContain("accepted as");
  expect(refusalOf(nested(257))).toContain("nested deeper");
});

test("a digest is the SHA-256 of the canonical text, in hex", () => {
  expect(sha256("")).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  expect(digestOf({})).toBe("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
  expect(digestOf({ a: 1, b: 2 })).toBe(digestOf({ b: 2, a: 1 }));
});
