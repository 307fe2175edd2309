import { EVENT_TYPES } from "@sluice/core";
import { eventData } from "@sluice/core/schemas";
import { builtinTools, MODEL_PROVIDERS } from "@sluice/stages";
import { expect, test } from "vitest";
import { z } from "zod";
import { codesIn, readPage, sectionOf, tableOf } from "./pages.ts";
import { readSources } from "./sources.ts";

/** The members of a union of texts, from its source. */
function unionIn(path: string, name: string): readonly string[] {
  const [source] = readSources(path);
  const [, members = ""] = new RegExp(`export type ${name} =([^;]*);`).exec(source?.text ?? "") ?? [];
  return [...members.matchAll(/"(\w+)"/g)].map(([, member = ""]) => member);
}

const firstCodes = (text: string): readonly string[] => tableOf(text).map(([code = ""]) => codesIn(code)[0] ?? code);

test("docs/events.md lists every type of event with the fields of its schema", () => {
  const documented = tableOf(sectionOf(readPage("docs/events.md"), "## Types")).map(([type = "", , data = ""]) => [
    codesIn(type)[0],
    codesIn(data).toSorted(),
  ]);
  const known = EVENT_TYPES.map((type) => {
    const schema = eventData[type];
    const shape = schema instanceof z.ZodObject ? Object.entries(schema.shape) : [];
    const fields = shape.map(([field, of]) => (of instanceof z.ZodOptional ? `${field}?` : field));
    return [type, fields.toSorted()];
  });
  expect(Object.fromEntries(documented)).toEqual(Object.fromEntries(known));
});

test("docs/stages.md lists the failure codes", () => {
  const [, after = ""] = readPage("docs/stages.md").text.split("<!-- the codes of FailureCode");
  expect(firstCodes(after)).toEqual(unionIn("packages/core/src/definition/types.ts", "FailureCode"));
});

test("docs/gate-and-grants.md lists the causes of a denial", () => {
  const [, after = ""] = readPage("docs/gate-and-grants.md").text.split("<!-- the causes of DenialCause");
  expect(firstCodes(after)).toEqual(unionIn("packages/core/src/gate/denial.ts", "DenialCause"));
});

test("docs/models.md lists the providers with their variables and packages", () => {
  const documented = tableOf(readPage("docs/models.md").text);
  const known = MODEL_PROVIDERS.map(({ form, variables, package: name }) => [
    `\`${form}\``,
    variables.map((variable) => `\`${variable.name}\`${variable.required ? " (required)" : ""}`).join(", "),
    name === undefined ? "" : `\`${name}\``,
  ]);
  expect(documented).toEqual(known);
});

test("docs/tools.md lists the built-in tools with their effects and inputs", () => {
  const documented = tableOf(readPage("docs/tools.md").text).map(([name = "", effect, input = ""]) => ({
    name: codesIn(name)[0],
    effect,
    input: codesIn(input).toSorted(),
  }));
  const known = builtinTools().map(({ name, effect, inputSchema }) => {
    const { properties, required } = z
      .object({ properties: z.record(z.string(), z.unknown()), required: z.array(z.string()) })
      .parse(inputSchema);
    const fields = Object.keys(properties).map((field) => (required.includes(field) ? field : `${field}?`));
    return { name, effect, input: fields.toSorted() };
  });
  expect(documented).toEqual(known);
});
