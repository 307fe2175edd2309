import { expect, test } from "vitest";
import { isSluiceError } from "../../packages/core/src/base/errors.ts";
import { readTemplate } from "../../packages/core/src/definition/template.ts";

const CTX = {
  task: "refactor auth",
  attempt: 1,
  input: { focus: "tests", list: [{ value: "first" }, 2], "a key": null, empty: {}, yes: true },
  upstream: { "my-plan": { steps: ["one", "two"] } },
  context: {},
};

function template(text: string) {
  const reading = readTemplate(text);
  if (!reading.ok) throw new Error(reading.faults.map(({ message }) => message).join("\n"));
  return reading.value;
}

function rendered(text: string): string {
  return template(text).render(CTX);
}

function refusalOf(text: string): string {
  const reading = readTemplate(text);
  if (reading.ok) return "accepted";
  return reading.faults.map(({ message, suggestion }) => `${message} (${suggestion})`).join("\n");
}

function unresolved(text: string): unknown {
  try {
    return rendered(text);
  } catch (thrown) {
    return isSluiceError(thrown, "prompt_unresolved") ? { message: thrown.message, ...thrown.detail } : thrown;
  }
}

test.each([
  ["no template at all", "Plan it.", "Plan it."],
  ["a string as it is", "Do: {{ctx.task}}!", "Do: refactor auth!"],
  ["spaces inside the braces", "{{ ctx.task }}", "refactor auth"],
  ["a number as JSON", "{{ctx.attempt}}", "1"],
  ["a boolean as JSON", "{{ctx.input.yes}}", "true"],
  ["an object as JSON", "{{ctx.input.list[0]}}", '{"value":"first"}'],
  ["a list as JSON", '{{ctx.upstream["my-plan"].steps}}', '["one","two"]'],
  ["a path through lists and names with a dash", "{{ctx.upstream.my-plan.steps[1]}}", "two"],
  ["a quoted key", '{{ctx.input["a key"]}}', "null"],
  ["several side by side", "{{ctx.task}}{{ctx.attempt}}", "refactor auth1"],
  ["single braces", "{ctx.task} { {", "{ctx.task} { {"],
  ["closing braces alone", 'JSON like {"a":{"b":1}}', 'JSON like {"a":{"b":1}}'],
  ["an escape", "\\{{ctx.task}} is {{ctx.task}}", "{{ctx.task}} is refactor auth"],
])("%s renders", (_name, text, wanted) => {
  expect(rendered(text)).toBe(wanted);
});

test("a template lists its paths, each once", () => {
  const { paths } = template(
    '{{ctx.task}} {{ ctx.task }} {{ctx.input.list[0].value}} {{ctx.input["a key"]}} \\{{ctx.visit}}',
  );
  expect(paths).toEqual(["ctx.task", "ctx.input.list[0].value", 'ctx.input["a key"]']);
});

test.each([
  ["{{ctx.input.focus.deep}}", "ctx.input.focus", "is a string"],
  ["{{ctx.input.focsu}}", "ctx.input", "has focus, list, a key, empty, yes"],
  ["{{ctx.input.list[2]}}", "ctx.input.list", "has 2 elements"],
  ["{{ctx.input.list.length}}", "ctx.input.list", "has 2 elements"],
  ["{{ctx.input.empty.x}}", "ctx.input.empty", "is empty"],
  ['{{ctx.input["a key"].x}}', 'ctx.input["a key"]', "is null"],
  ["{{ctx.upstream.review.verdict}}", "ctx.upstream", "has my-plan"],
  ["{{ctx.setup}}", "ctx", "has task, attempt, input, upstream, context"],
])("%s leads nowhere, and the error says what is there", (text, at, found) => {
  expect(unresolved(text)).toMatchObject({ at, message: expect.stringContaining(`${at} ${found}`) });
});

test.each([
  "{{ctx.input.constructor}}",
  "{{ctx.input.__proto__}}",
  "{{ctx.context.toString}}",
  "{{ctx.input.list.push}}",
])("%s: what objects inherit is not there", (text) => {
  expect(unresolved(text)).toMatchObject({ path: text.slice(2, -2) });
});

test.each([
  ["{{input.focus}}", "write {{ctx.input.focus}}"],
  ["{{ task }}", "write {{ctx.task}}"],
  ["{{ctx}}", "names no field"],
  ["{{ctx.inptu.focus}}", 'ctx has no "inptu"'],
  ["{{ctx.feedback}}", "not there on the first attempt"],
  ["{{ctx.input.}}", 'not a path after "ctx.input"'],
  ["{{ctx.input[x]}}", 'not a path after "ctx.input"'],
  ["{{ctx.input[-1]}}", 'not a path after "ctx.input"'],
  ["{{ctx.input || 1}}", "not a path"],
  ["{{name}}", "\\{{ for two braces"],
  ["{{}}", "not a path"],
  ["open {{ctx.task", "never closed"],
])("%s is refused when it is compiled", (text, reason) => {
  expect(refusalOf(text)).toContain(reason);
});

test("all faults of a template are reported at once", () => {
  expect(refusalOf("{{input.a}} {{ctx.task}} {{nope}}").split("\n")).toHaveLength(2);
});

test("the error about a path into a value with many keys is short", () => {
  const wide = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`${"k".repeat(500)}${index}`, 1]));
  expect(() => template("{{ctx.input.x}}").render({ input: wide })).toThrow(/, …$/);
  try {
    template("{{ctx.input.x}}").render({ input: wide });
  } catch (thrown) {
    expect(String(thrown).length).toBeLessThan(2000);
  }
});
