import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";
import { parseYaml, readAction } from "../support/action-job.ts";
import { deskHere } from "../support/command-here.ts";
import { blocksOf, codesIn, readPage, sectionOf, tableOf } from "./pages.ts";

const page = readPage("docs/ci.md");
const action = readAction();

const workflowSchema = z.object({
  jobs: z.record(
    z.string(),
    z.object({
      steps: z.array(z.object({ uses: z.string().optional(), with: z.record(z.string(), z.unknown()).optional() })),
    }),
  ),
});

/** The workflows of the page. */
const workflows = blocksOf(page)
  .filter(({ language, text }) => language === "yaml" && text.startsWith("name:"))
  .map(({ text }) => parseYaml(text));

function rowsOf(heading: string): readonly (readonly string[])[] {
  return tableOf(sectionOf(page, heading)).map((cells) => cells.map((cell) => codesIn(cell)[0] ?? cell));
}

test("docs/ci.md lists the inputs of the action, in its order, with their defaults", () => {
  const rows = rowsOf("## Inputs");
  expect(rows.map(([name]) => name)).toEqual(Object.keys(action.inputs));
  for (const [name = "", , value = ""] of rows) {
    const given = action.inputs[name]?.default ?? "";
    expect([name, given === "" ? "" : value]).toEqual([name, given]);
  }
});

test("docs/ci.md lists the outputs of the action, and each way in which a job ends", () => {
  expect(rowsOf("## Outputs").map(([name]) => name)).toEqual(Object.keys(action.outputs));
  const ends = tableOf(sectionOf(page, "## How a job ends")).flatMap(([cell = ""]) => codesIn(cell));
  const [listed = ""] = action.outputs.conclusion?.description.split(". ") ?? [];
  expect(ends.toSorted()).toEqual(listed.split(/, | or /).toSorted());
});

test("the workflow of docs/ci.md is the one that sluice init writes", async () => {
  const here = deskHere();
  mkdirSync(join(here.folder, ".git"));
  await here.sluice(["init"]);
  expect(workflows[0]).toEqual(parseYaml(readFileSync(join(here.folder, ".github/workflows/sluice.yml"), "utf8")));
});

test("the workflows of docs/ci.md use inputs that the action has", () => {
  expect(workflows).toHaveLength(2);
  for (const workflow of workflows) {
    const { jobs } = workflowSchema.parse(workflow);
    const steps = Object.values(jobs).flatMap((job) => job.steps);
    const given = steps
      .filter(({ uses }) => uses === "./sluice/action")
      .flatMap((step) => Object.keys(step.with ?? {}));
    expect(given.length).toBeGreaterThan(2);
    expect(given.filter((name) => !Object.hasOwn(action.inputs, name))).toEqual([]);
  }
});
