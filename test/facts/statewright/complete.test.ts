import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

/** What a fact says beyond its test: parts of a gateway, which a workflow that is a file does not have. */
const WITHOUT_EQUIVALENT: Readonly<Record<number, string>> = {
  71: "Nothing deactivates a workflow while it runs, so there is no list of tools without one.",
  72: "Sluice is no JSON-RPC server of its agents: there are no methods, codes and notifications, only calls of tools.",
  73: "A run is found by its id, so there is no session key that loading could keep.",
  78: "There is no debug mode: a fork is a run of its own, and the one before it stays as it was.",
  80: "No process of the agent's could stop before its end, so nothing has to keep it from stopping.",
};

test("each of the facts 1 to 80 has one test, named by its number", () => {
  const here = import.meta.dirname;
  const sources = globSync("*.test.ts", { cwd: here }).map((file) => readFileSync(join(here, file), "utf8"));
  const numbers = sources.flatMap((source) =>
    [...source.matchAll(/^(?:fact|ours)\(\s*(\d+),/gm)].map(([, number]) => Number(number)),
  );
  expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 80 }, (_, at) => at + 1));
  for (const number of Object.keys(WITHOUT_EQUIVALENT)) expect(numbers).toContain(Number(number));
});
