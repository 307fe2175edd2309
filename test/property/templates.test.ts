import fc from "fast-check";
import { expect, test } from "vitest";
import { compileTemplate } from "../../packages/core/src/definition/template.ts";

/** Text that looks like templates, escapes and replacement patterns. */
const hostile = fc.array(
  fc.constantFrom("{{", "}}", "ctx", ".input", "\\", "$&", "$1", "$$", "a", "\n", "{{ctx.input.b}}"),
  { maxLength: 8 },
);
const text = hostile.map((pieces) => pieces.join(""));

test("what was put in is never read as a template", () => {
  fc.assert(
    fc.property(text, text, (a, b) => {
      const template = compileTemplate("<{{ctx.input.a}}|{{ctx.input.b}}|{{ctx.input.a}}>");
      expect(template.render({ input: { a, b } })).toBe(`<${a}|${b}|${a}>`);
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
      const template = compileTemplate(wanted.replaceAll("{{", "\\{{"));
      expect(template.paths).toEqual([]);
      expect(template.render({})).toBe(wanted);
    }),
  );
});

test("everything that is no string is put in as JSON", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const wanted = typeof value === "string" ? value : JSON.stringify(value);
      expect(compileTemplate("{{ctx.input.v}}").render({ input: { v: value } })).toBe(wanted);
    }),
  );
});
