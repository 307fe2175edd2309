import { expect } from "vitest";
import { differs, fact, loadFlujo, machine, runFlujo } from "../../support/flujo.ts";

// What conditions can say. Flujo's are Python; here they are CEL, and what means the same is reported with its form.

const CONTEXT = 'context: { x: here, text: " Ab ", list: [a, b], deep: { n: 1 }, none: null }';
const rows = (when: string): string =>
  `  - { from: a, on: success, to: done, when: ${JSON.stringify(when)} }\n  - { from: a, on: success, to: failed }\n`;
const text = (when: string): string => machine(rows(when), { states: "  a: []\n  b: []", more: CONTEXT });

/** Whether a condition holds. */
async function holds(when: string): Promise<boolean> {
  const { state } = await runFlujo(text(when));
  return state === "done";
}

/** What is wrong with a condition, and what is suggested. */
async function mistakeIn(when: string): Promise<readonly string[]> {
  const found = (await loadFlujo(text(when))).diagnostics.find(({ severity }) => severity === "error");
  return found === undefined ? [] : [found.rule, found.suggestion ?? ""];
}

differs(46, "a default for a missing field is .? and orValue; get is reported with that form", async () => {
  expect(await mistakeIn('context.get("x") == "here"')).toEqual(["expression-name", "write x.?key.orValue(y)"]);
  expect(await holds('context.?x.orValue("other") == "here"')).toBe(true);
  expect(await holds('context.?y.orValue("other") == "other"')).toBe(true);
  expect(await holds("context.?deep.?n.orValue(0) == 1 && context.?deep.?m.orValue(0) == 0")).toBe(true);
  expect(await holds('context["x"] == "here"')).toBe(true);
});

differs(47, "texts have the methods of CEL; those of Python are reported with them", async () => {
  const forms = [
    ["context.text.lower() == ' ab '", "write x.lowerAscii()", "context.text.lowerAscii() == ' ab '"],
    ["context.text.upper() == ' AB '", "write x.upperAscii()", "context.text.upperAscii() == ' AB '"],
    ["context.text.strip() == 'Ab'", "write x.trim()", "context.text.trim() == 'Ab'"],
    ["context.x.startswith('he')", "write x.startsWith(y)", "context.x.startsWith('he')"],
    ["context.x.endswith('re')", "write x.endsWith(y)", "context.x.endsWith('re')"],
    ["len(context.list) == 2", "write size(x)", "size(context.list) == 2"],
  ] as const;
  for (const [python, suggestion, cel] of forms) {
    expect([python, await mistakeIn(python)]).toEqual([python, ["expression-name", suggestion]]);
    expect([cel, await holds(cel)]).toEqual([cel, true]);
  }
});

fact(48, "what changes or reaches anything is refused when the file loads", async () => {
  for (const when of [
    "context.list.pop()",
    "os.system('x')",
    "__import__('os').system('x')",
    "open('/etc/passwd')",
    "context.list.append('c')",
    "context.x = 'y'",
    "(lambda: 1)()",
    "[x for x in context.list]",
    "context.__class__",
    "''.__class__.__mro__",
    "context.json",
    "context['__proto__']",
    "context.x.matches('(a+)+$')",
  ]) {
    const isField = when === "context.json" || when === "context.__class__";
    // A field of such a name is no member of the object: it is missing, like any other.
    if (isField) expect([when, await holds(when)]).toEqual([when, false]);
    else expect([when, (await loadFlujo(text(when))).pipeline]).toEqual([when, undefined]);
  }
});

fact(49, "a path through what is missing or null is not present, at any depth", async () => {
  for (const when of ["context.nope.deeper.still", "context.none.deeper", "context.x.y.z", "context.list.first"])
    expect([when, await holds(when), await holds(`!${when}`)]).toEqual([when, false, true]);
  expect(await holds("context.none == null && !context.none")).toBe(true);
});

fact(50, "an argument of another type is refused when the file loads, or does not match", async () => {
  expect(await mistakeIn("'ab'.startsWith(5)")).toEqual(["expression-type", ""]);
  expect(await mistakeIn("event.contains(1)")).toEqual(["expression-type", ""]);
  // The type of a field of the context is not known before the run.
  expect(await holds("context.x.startsWith(5)")).toBe(false);
  expect(await holds("!context.x.startsWith(5)")).toBe(false);
});
