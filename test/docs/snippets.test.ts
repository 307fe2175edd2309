import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Block, blocksOf, readPages, root, runNode, scratchInside, sluice } from "./pages.ts";

const blocks = readPages().flatMap(blocksOf);
const snippets = blocks.filter(({ language }) => language === "ts");

/** A snippet as a module of its own: what it goes on from stands before it, and ends where it begins. */
function moduleOf(snippet: Block): string {
  const [, name] = /^after: (\w+)$/.exec(snippet.note) ?? [];
  const [, given] = /^given\n([\s\S]*)$/.exec(snippet.note) ?? [];
  if (name === undefined) return given === undefined ? snippet.text : `${given}\n${snippet.text}`;
  const before = snippets.find(({ page, note }) => page === snippet.page && note === `run: ${name}`);
  if (before === undefined) throw new Error(`${snippet.page}:${snippet.line} goes on from ${name}, which is not there`);
  return `${before.text}\n${snippet.text}`;
}

const nameOf = ({ page, line }: Block): string => `${page.replaceAll(/[/.]/g, "_")}_line_${line}.ts`;
const isProgram = ({ note }: Block): boolean => note === "run" || note.startsWith("run: ");

test("every TypeScript snippet of the documentation type-checks", () => {
  expect(snippets.length).toBeGreaterThan(15);
  const folder = scratchInside();
  for (const snippet of snippets) writeFileSync(join(folder, nameOf(snippet)), `${moduleOf(snippet)}\nexport {};\n`);
  const compilerOptions = {
    composite: false,
    declaration: false,
    declarationMap: false,
    noEmit: true,
    // Snippets show one thing and leave out what uses it; they see the packages as users do, by their build.
    noUnusedLocals: false,
    noUnusedParameters: false,
    customConditions: [],
    rewriteRelativeImportExtensions: false,
  };
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({ extends: join(root, "tsconfig.base.json"), compilerOptions, include: ["*.ts"] }),
  );
  const { status, stdout } = runNode([join(root, "node_modules/typescript/bin/tsc"), "-p", folder], folder);
  expect(stdout).toBe("");
  expect(status).toBe(0);
});

describe("every program of the documentation runs as printed", () => {
  const programs = snippets.filter(isProgram);
  test.each(programs.map((program) => [`${program.page}:${program.line}`, program] as const))(
    "%s",
    (_place, program) => {
      const folder = scratchInside();
      writeFileSync(join(folder, "program.ts"), program.text);
      const { status, stdout, stderr } = runNode(["program.ts"], folder);
      expect({ status, stderr: stderr.includes("Error") ? stderr : "" }).toEqual({ status: 0, stderr: "" });
      const next = blocks[blocks.indexOf(program) + 1];
      if (next?.page === program.page && next.note === "output") expect(stdout).toBe(next.text);
    },
  );
  test("the README has one", () => {
    expect(programs.filter(({ page }) => page === "README.md")).toHaveLength(1);
  });
});

test("the pipeline of docs/first-pipeline.md runs by the command from a file outside of the clone", () => {
  const program = snippets.find(({ page, note }) => page === "docs/first-pipeline.md" && note === "run: note");
  const [pipeline = "", session = ""] = program?.text.split("const script = scriptedModel(") ?? [];
  const [, script = ""] = /^(\{[\s\S]*?\n\})\);/.exec(session) ?? [];
  const folder = mkdtempSync(join(tmpdir(), "sluice-docs-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "pipeline.ts"), pipeline);
  writeFileSync(join(folder, "write-script.mjs"), `console.log(JSON.stringify(${script}));`);
  writeFileSync(join(folder, "script.json"), runNode(["write-script.mjs"], folder).stdout);
  const flags = ["--model", "scripted:script.json", "--output-format", "json"];
  const { status, stdout } = sluice(["run", "./pipeline.ts", "Say what a sluice does", ...flags], folder);
  expect(JSON.parse(stdout)).toMatchObject({
    status: "completed",
    output: { note: expect.stringContaining("sluice") },
  });
  expect(status).toBe(0);
});
