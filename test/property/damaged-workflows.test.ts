import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type LoadedWorkflow, readSource, renderText, writeStatewright } from "@sluice/workflows";
import fc from "fast-check";
import { expect, test } from "vitest";
import { changed, damaged, oddYaml, randomChanges, randomDamage } from "../support/odd-texts.ts";
import { loadTexts } from "../support/workflows.ts";

// Workflow files that were damaged load, or say where the damage is.

const FILES = Number(process.env.SLUICE_TEST_MACHINES ?? 200);
const TIMEOUT = 300_000 + 100 * FILES;
const fixtures = fileURLToPath(new URL("../fixtures/", import.meta.url));

interface Workflow {
  readonly entry: string;
  readonly texts: Readonly<Record<string, string>>;
}
function workflow(entry: string, folder: string, names: readonly string[]): Workflow {
  return {
    entry,
    texts: Object.fromEntries(names.map((name) => [name, readFileSync(join(fixtures, folder, name), "utf8")])),
  };
}
const statewright = ["review.json", "deploy.json", "deploy-full.json"];
const workflows: readonly Workflow[] = [
  ...statewright.map((name) => workflow(name, "workflows/statewright", [name])),
  workflow("orchestrate.yaml", "workflows/flujo", [
    "orchestrate.yaml",
    "imports/clarification.yaml",
    "imports/concept_discovery.yaml",
  ]),
  workflow(
    "code-review",
    "markdown-stages",
    readdirSync(join(fixtures, "markdown-stages/code-review")).map((name) => `code-review/${name}`),
  ),
];

const place = fc.record({ workflow: fc.constantFrom(...workflows), file: fc.nat(10) });
const slowest = { ms: 0 };
const formats = new Map<string, number>();

/** The workflow with another text of one of its files. */
async function loadWith(
  { workflow: { entry, texts }, file }: { readonly workflow: Workflow; readonly file: number },
  change: (text: string, name: string) => string,
): Promise<void> {
  const names = Object.keys(texts);
  const name = names[file % names.length] ?? entry;
  const all = { ...texts, [name]: change(texts[name] ?? "", name) };
  const began = performance.now();
  const loaded = await loadTexts(entry, all);
  slowest.ms = Math.max(slowest.ms, performance.now() - began);
  checkLoaded(loaded, all);
}

function checkLoaded({ pipeline, diagnostics, format }: LoadedWorkflow, texts: Readonly<Record<string, string>>): void {
  const errors = diagnostics.filter(({ severity }) => severity === "error");
  expect(pipeline === undefined, JSON.stringify(diagnostics)).toBe(errors.length > 0);
  for (const { file, line, column, length, message } of diagnostics) {
    expect(message).toMatch(/\.$/u);
    const lines = (texts[file] ?? "").split("\n");
    expect(line).toBeLessThanOrEqual(lines.length);
    // What is missing is shown behind the end of its line.
    expect(column - 1 + length, `${message} ${line}:${column}`).toBeLessThanOrEqual((lines[line - 1]?.length ?? 0) + 1);
    expect(Math.min(line, column, length)).toBeGreaterThanOrEqual(1);
  }
  expect(renderText(diagnostics, (file) => texts[file])).toBeTypeOf("string");
  const what = pipeline === undefined ? "refused" : (format ?? "");
  formats.set(what, (formats.get(what) ?? 0) + 1);
  // Whatever loads as a Statewright document can be written as one, and nothing else of these can.
  if (pipeline !== undefined)
    expect(writeStatewright(pipeline)).toHaveProperty(format === "statewright" ? "text" : "problems");
}

test("files with damaged characters load, or each mistake has its place in a file", { timeout: TIMEOUT }, async () => {
  await fc.assert(
    fc.asyncProperty(place, randomDamage, async (where, damages) => {
      await loadWith(where, (text) => damaged(text, damages));
    }),
    { numRuns: FILES },
  );
});

test("files with damaged values load, or each mistake has its place in a file, in JSON and in any style of YAML", {
  timeout: TIMEOUT,
}, async () => {
  await fc.assert(
    fc.asyncProperty(
      place,
      randomChanges,
      fc.option(fc.array(fc.nat(1_000), { maxLength: 40 })),
      async (where, changes, styles) => {
        await loadWith(where, (text, name) => {
          const [, frontmatter = text, body = ""] = /^---\n([\s\S]*?)\n---\n([\s\S]*)$/u.exec(text) ?? [];
          const value = changed(readSource(name, frontmatter).source?.value ?? null, changes);
          const written = styles === null ? JSON.stringify(value, null, 2) : oddYaml(value, styles);
          return name.endsWith(".md") ? `---\n${written}\n---\n${body}` : written;
        });
      },
    ),
    { numRuns: 2 * FILES },
  );
  for (const what of ["refused", "statewright", "flujo", "markdown"])
    expect(formats.get(what) ?? 0, what).toBeGreaterThan(FILES / 40);
  if (process.env.SLUICE_TEST_MACHINES !== undefined) console.log(slowest, Object.fromEntries(formats));
});
