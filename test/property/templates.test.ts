import fc from "fast-check";
import { expect, test } from "vitest";
import { readTemplate } from "../../packages/core/src/definition/template.ts";

function template(text: string) {
  const reading = readTemplate(text);
  if (!reading.ok) throw new Error(reading.faults.map(({ message }) => message).join("\n"));
  return reading.value;
}

/** Text that looks like templates, escapes and replacement patterns. */
const hostile = fc.array(
  fc.constantFrom("{{", "}}", "ctx", ".input", "\\", "$&", "$1", "$$", "a", "\n", "{{ctx.input.b}}"),
  { maxLength: 8 },
);
const text = hostile.map((pieces) => pieces.join(""));

test("what was put in is never read as a template", () => {
  fc.assert(
    fc.property(text, text, (a, b) => {
      const read = template("<{{ctx.input.a}}|{{ctx.input.b}}|{{ctx.input.a}}>");
      expect(read.render({ input: { a, b } })).toBe(`<${a}|${b}|${a}>`);
    }),
  );
});

test("text with every opening escaped renders as it was written", () => {
  const plain = fc
    .array(fc.constantFrom("{", "}", "a", "ctx.input", " "), { maxLength: 12 })
    .map((all) => all.join(""));
  fc.assert(
    fc.property(plain, (wanted) => {
      // Openings are found from the left, so escaping goes from the left, too.
      const read = template(wanted.replaceAll("{{", "\\{{"));
      expect(read.paths).toEqual([]);
      expect(read.render({})).toBe(wanted);
    }),
  );
});

test("everything that is no string is put in as JSON", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const wanted = typeof value === "string" ? value : JSON.stringify(value);
      expect(template("{{ctx.input.v}}").render({ input: { v: value } })).toBe(wanted);
    }),
  );
});
