import { type Diagnostic, type LoadedWorkflow, loadWorkflow, renderText } from "@sluice/workflows";
import { expect, test } from "vitest";
import { z } from "zod";
import { folderFields, stageFields } from "../../packages/workflows/src/markdown/fields.ts";
import { blocksOf, codesIn, readPage, tableOf } from "./pages.ts";

const page = readPage("docs/workflow-markdown.md");
/** The files of the page by their paths. */
const files = new Map(
  blocksOf(page).flatMap(({ note, text }) =>
    note.startsWith("file: ") ? [[note.slice("file: ".length), text] as const] : [],
  ),
);
const STAGE =
  "---\nallowedTools: []\ncompletionTool: submit\ncompletionSchema: { type: object, properties: { ok: { type: boolean } } }\n---\nWork.\n";

/** Loads a folder of the page, with these files in addition. */
async function load(folder: string, more: Readonly<Record<string, string>> = {}): Promise<LoadedWorkflow> {
  const all = new Map([...files, ...Object.entries(more).map(([name, text]) => [`${folder}/${name}`, text] as const)]);
  return await loadWorkflow(folder, {
    list: async (path) =>
      path === folder
        ? [...all.keys()].filter((file) => file.startsWith(`${folder}/`)).map((file) => file.slice(folder.length + 1))
        : undefined,
    read: async (path) => all.get(path) ?? "",
  });
}

function errorsOf({ diagnostics }: LoadedWorkflow): readonly Diagnostic[] {
  return diagnostics.filter(({ severity }) => severity === "error");
}

test("the pipeline of docs/workflow-markdown.md loads without a warning", async () => {
  const loaded = await load("code-review");
  expect(loaded.diagnostics).toEqual([]);
  expect([...(loaded.pipeline?.spec.states.keys() ?? [])]).toEqual(["plan", "execute", "review"]);
});

test("so do its other files", async () => {
  const stages = Object.fromEntries(["build", "test", "lint", "report"].map((name) => [`${name}.md`, STAGE]));
  expect((await load("parallel", stages)).diagnostics).toEqual([]);
  const pipeline = "id: skilled\ninitial: fill\ntransitions:\n  - { from: fill, to: done }\n";
  expect(errorsOf(await load("skilled", { "pipeline.yaml": pipeline }))).toEqual([]);
  expect(files.size).toBe(6);
});

test("a mistake is shown as the page shows it", async () => {
  const execute = files.get("code-review/execute.md")?.replace("plan.summary", "plan.sumary") ?? "";
  const loaded = await load("code-review", { "execute.md": execute });
  const shown = blocksOf(page).find(({ text }) => text.includes("[bad-template]"));
  expect(renderText(loaded.diagnostics, (file) => loaded.files.find(({ path }) => path === file)?.text)).toBe(
    shown?.text,
  );
});

test("every target of the page can be written in a row", async () => {
  const [, section = ""] = page.text.split("`to` is one of these:");
  const targets = tableOf(section.split("<!--")[0] ?? "").flatMap(([codes = ""]) => codesIn(codes));
  expect(targets).toHaveLength(8);
  const rows = targets.map(
    (target) =>
      `  - { from: plan, ${target.replace("reason }", "It is bad. }").replace("input: { … }", "input: { a: 1 }").replace("context: { … }", "context: { a: 1 }")} }`,
  );
  const others = ["plan", "review", "fix", "test", "lint"];
  const after = others.slice(1).map((name) => `  - { from: ${name}, to: done }`);
  const pipeline = ["id: targets", "initial: plan", "final: [shipped]", "transitions:", ...rows, ...after].join("\n");
  const stages = Object.fromEntries(others.map((name) => [`${name}.md`, STAGE]));
  expect(errorsOf(await load("targets", { "pipeline.yaml": pipeline, ...stages }))).toEqual([]);
});

/** The names and the descriptions of an object's fields. */
function fieldsOf(schema: z.ZodObject, without: readonly string[] = []): readonly (readonly [string, string])[] {
  return Object.entries<z.core.$ZodType>(schema.shape)
    .filter(([name]) => !without.includes(name))
    .map(([name, field]) => [`\`${name}\``, descriptionOf(field)]);
}
function descriptionOf(field: z.core.$ZodType): string {
  const own = z.globalRegistry.get(field)?.description;
  return own ?? (field instanceof z.ZodOptional ? descriptionOf(field.unwrap()) : "");
}
function inner(field: z.core.$ZodType): z.ZodObject {
  if (field instanceof z.ZodOptional) return inner(field.unwrap());
  if (field instanceof z.ZodArray) return inner(field.element);
  if (field instanceof z.ZodObject) return field;
  throw new Error("not an object");
}

test.each([
  ["a stage", fieldsOf(stageFields, ["prompt"])],
  ["a stage's limits", fieldsOf(inner(stageFields.shape.limits))],
  ["pipeline.yaml", fieldsOf(folderFields)],
  ["a row", fieldsOf(inner(folderFields.shape.transitions))],
])("docs/workflow-markdown.md lists the fields of %s with the words of the schema", (name, fields) => {
  const [, section = ""] = page.text.split(`<!-- fields of ${name} -->`);
  const [table = ""] = section.trimStart().split("\n\n");
  expect(tableOf(table)).toEqual(fields);
});
