import type { GuardScope, JsonObject } from "@sluice/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { celGuard } from "../../packages/workflows/src/expressions/cel-guard.ts";
import { isTrue, randomCondition, randomFields, written } from "../support/reference-expressions.ts";

/** What a guard reads of a run. */
function scopeOf(context: JsonObject): GuardScope {
  const ctx = {
    runId: "run",
    workspace: "/",
    task: "",
    run: { input: null },
    input: null,
    upstream: {},
    context,
    setup: null,
    attempt: 1,
    visit: 1,
  };
  const base = { executionId: "s#1", attempts: 1, turns: 0, usage: { inputTokens: 0, outputTokens: 0 }, ms: 0 };
  return { ctx, result: { ...base, status: "skipped" } };
}

test("a condition in CEL fires exactly when it is true, and a fault in it is no match", async () => {
  const fired = { yes: 0, no: 0 };
  await fc.assert(
    fc.asyncProperty(randomCondition, randomFields, async (condition, context) => {
      const made = celGuard(written(condition));
      if (made.guard === undefined) throw new Error(`${written(condition)} is refused: ${JSON.stringify(made)}`);
      const { fires } = await made.guard.evaluate(scopeOf(context));
      expect({ condition: written(condition), fires }).toEqual({
        condition: written(condition),
        fires: isTrue(condition, { context }),
      });
      fired[fires ? "yes" : "no"] += 1;
    }),
    { numRuns: 5_000 },
  );
  expect(Math.min(fired.yes, fired.no)).toBeGreaterThan(500);
});

const WORDS = [
  ...["context", "output", "event", "steps", "upstream", "attempt", "previous_step", "a", "x", "last_output"],
  ...["constructor", "__proto__", "prototype", "present_0", "counted", "has", "size", "int", "double", "string"],
  ...["exists", "all", "map", "filter", "contains", "indexOf", "orValue", "hasValue", "matches", "and", "not", "None"],
  ...[
    ".",
    ".?",
    "(",
    ")",
    "[",
    "]",
    "[?",
    "{",
    "}",
    ",",
    ":",
    "?",
    "!",
    "-",
    "+",
    "*",
    "/",
    "%",
    "==",
    "=",
    "&&",
    "||",
  ],
  ...["0", "1", "2.5", "1e9", "5u", "null", "true", "false", "'t'", '"', "'", "'''", "r'", "b'x'", "in", "<", ">="],
  ...["\\", "\n", "//", "\u{1f600}", "`", ";"],
];
const words = fc.array(fc.constantFrom(...WORDS), { maxLength: 14 });
const anyText = fc.oneof(
  words.map((all) => all.join("")),
  words.map((all) => all.join(" ")),
  fc.string(),
);

test("any text is a guard that gives a verdict, or has mistakes that lie inside of it; nothing is thrown", async () => {
  let guards = 0;
  await fc.assert(
    fc.asyncProperty(anyText, randomFields, async (text, context) => {
      const { guard, problems = [] } = celGuard(text);
      for (const { offset, length, message } of problems) {
        expect(message).not.toBe("");
        const isInside = offset >= 0 && length >= 0 && offset <= text.length;
        expect({ text, isInside }).toEqual({ text, isInside: true });
      }
      if (guard === undefined) {
        expect(problems.length).toBeGreaterThan(0);
        return;
      }
      guards += 1;
      const { fires, why } = await guard.evaluate(scopeOf(context));
      expect([typeof fires, why === ""]).toEqual(["boolean", false]);
    }),
    { numRuns: 10_000 },
  );
  expect(guards).toBeGreaterThan(50);
});
