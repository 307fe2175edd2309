import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

/** Facts about Flujo that have no equivalent, and why. */
const WITHOUT: Readonly<Record<number, string>> = {
  56: "A question for each item of a map: a machine has no map steps. They are refused by fact 60.",
  61: "Branches whose later value overwrites an earlier one: a machine has no parallel steps, and no merge.",
  62: "Whether a failed branch is ignored: a machine has no branches. In other pipelines a fan-out says it with onFailure.",
};

/** The facts as they are counted: 66 of Flujo's own tests and behavior, 13 that Flujo has no tests for. */
const FACTS = [
  ...Array.from({ length: 66 }, (_, index) => String(index + 1)),
  ...Array.from({ length: 13 }, (_, index) => `L${index + 1}`),
];

const sources = readdirSync(import.meta.dirname)
  .filter((name) => name.endsWith(".test.ts"))
  .map((name) => readFileSync(new URL(name, import.meta.url), "utf8"));

test("each fact is shown by one test, or listed with the reason why it has no equivalent", () => {
  const tested = sources.flatMap((text) =>
    [...text.matchAll(/^(?:fact|differs)\(\s*"?(L?\d+)"?,/gmu)].map(([, n]) => n),
  );
  const all = [...tested, ...Object.keys(WITHOUT)];
  expect([FACTS.filter((fact) => all.filter((one) => one === fact).length !== 1), all.length]).toEqual([
    [],
    FACTS.length,
  ]);
});
