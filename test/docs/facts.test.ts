import { EVENT_TYPES } from "@sluice/core";
import { compileEnvelope } from "@sluice/core/gate";
import { eventData } from "@sluice/core/schemas";
import { builtinTools, DEFAULT_MODELS, DEFAULT_MODELS_DATE, MODEL_PROVIDERS } from "@sluice/stages/runtime";
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
  expect(firstCodes(after)).toEqual(unionIn("packages/core/src/definition/result.ts", "FailureCode"));
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

test("docs/models.md lists the models that are chosen by key, with their date", () => {
  const section = sectionOf(readPage("docs/models.md"), "## Without `--model`");
  expect(tableOf(section)).toEqual(DEFAULT_MODELS.map(({ variable, id }) => [`\`${variable}\``, `\`${id}\``]));
  expect(section).toContain(`As of ${DEFAULT_MODELS_DATE}`);
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

/** The names of an interface's members, from its source. */
function membersIn(path: string, name: string): readonly string[] {
  const [source] = readSources(path);
  const [, body = ""] =
    new RegExp(`export interface ${name}[^{]*\\{\\n([\\s\\S]*?)\\n\\}`).exec(source?.text ?? "") ?? [];
  return [...body.matchAll(/^ {2}(?:readonly )?(\w+)[?(:<]/gm)].map(([, member = ""]) => member);
}

const sessions = readPage("docs/sessions.md");
const bare = (codes: readonly string[]): readonly string[] => codes.map((code) => code.replace(/\(.*$/, ""));

test("docs/sessions.md lists the options of a session", () => {
  const documented = firstCodes(sectionOf(sessions, "## Options"));
  expect(documented).toEqual(membersIn("packages/stages/src/session/options.ts", "SessionOptions"));
});

test("docs/sessions.md lists what a handle can do, and names only methods a host has", () => {
  const handle = bare(firstCodes(sectionOf(sessions, "## Runs")));
  expect(handle).toEqual(membersIn("packages/stages/src/session/run-handle.ts", "RunHandle"));
  const methods = tableOf(sectionOf(sessions, "## The host")).flatMap(([method = ""]) => bare(codesIn(method)));
  const known = membersIn("packages/core/src/journal/seam.ts", "RunHost");
  expect(methods.filter((method) => !known.includes(method))).toEqual([]);
});

test("the patterns of docs/gate-and-grants.md can be used, and what it says is refused is refused", () => {
  const envelopes = sectionOf(readPage("docs/gate-and-grants.md"), "## Envelopes");
  const patterns = tableOf(envelopes).map(([pattern = ""]) => codesIn(pattern)[0] ?? "");
  const plain = patterns.filter((pattern) => !pattern.startsWith("{"));
  expect(compileEnvelope(plain).allowedTools).toEqual(plain);
  const refused = ["!Bash", "Bash(npm:*)", "Edit(/etc/**)", "Edit(~/x)", "Edit(../x)", "Edit(./src/**)", "Edit(src/)"];
  for (const pattern of [...refused, "Edit({a/b,c})", "*(src/**)", "Edit(src", "Edit(a\u200b)"]) {
    expect(() => compileEnvelope([pattern]), pattern).toThrow(expect.objectContaining({ code: "pattern_invalid" }));
  }
});
