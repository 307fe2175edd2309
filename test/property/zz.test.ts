import fc from "fast-check";
import { test } from "vitest";
import { randomWorkflow } from "../support/random-workflows.ts";
import { machinePipeline, newPlay } from "../support/machine-runs.ts";
test("x", () => {
  const seen = new Map<string, [number, string]>();
  let ok = 0;
  for (const m of fc.sample(randomWorkflow, { numRuns: 1500, seed: 3 })) {
    try { const p = newPlay(m); machinePipeline(m, () => p); ok++; } catch (e) {
      for (const line of String((e as Error).message).split("\n").slice(1)) {
        const k = line.replace(/\[\d+\]/g, "[n]").replace(/\b(plan|b|c2|to-do|Last|fix|finished|failed|gone)\b/g, "S");
        const [n, x] = seen.get(k) ?? [0, JSON.stringify(m)]; seen.set(k, [n + 1, x.length < JSON.stringify(m).length ? x : JSON.stringify(m)]);
      }
    }
  }
  console.log(ok); for (const [k, [n, x]] of [...seen].sort((a, b) => b[1][0] - a[1][0])) console.log(n, k, "\n     ", x.slice(0, 3500));
});
