import fc from "fast-check";
import { test } from "vitest";
import { comparable, expectedSteps, stepper } from "../support/machine-steps.ts";
import { randomMoves, randomWorkflow } from "../support/random-workflows.ts";
import { walk } from "../support/reference-walk.ts";
const norm = (v: unknown): string => (norm0(v) ?? "").replace(/"execution(Id)?":"[^"]*"/g, '"E"');
const norm0 = (v: unknown): string => JSON.stringify(v, (_k, p: unknown) => typeof p === "object" && p !== null && !Array.isArray(p) ? Object.fromEntries(Object.entries(p).sort(([a], [b]) => a < b ? -1 : 1)) : p);
test("x", async () => {
  const stepsSeen = stepper();
  const seen = new Map<string, [number, string]>();
  let same = 0;
  for (const [m, moves] of fc.sample(fc.tuple(randomWorkflow, randomMoves), { numRuns: Number(process.env.N ?? 1500), seed: Number(process.env.SEED ?? 3) })) {
    const walked = walk(m, moves);
    let key = ""; let ex = "";
    try {
      const wanted = expectedSteps(m, walked); const got = stepsSeen(m, walked);
      for (const [i, w] of wanted.entries()) {
        const g = comparable((await got.next()).value, w);
        if (norm(g) === norm(w)) continue;
        const fields = ["effect", "trace", "asked", "context", "upstream", "joined", "suspended"].filter((f) => norm((g as never)?.[f]) !== norm((w as never)[f]));
        const f = fields[0] ?? "?";
        const short = (x: unknown) => norm(x).replace(/"(plan|b|c2|to-do|Last|fix)"/g, '"S"').slice(0, 300);
        key = `${walked[i]!.happened.kind} ${fields.join(",")} ${w.effect.kind} -> ${(g?.effect as never as {kind: string})?.kind}`;
        ex = `want ${short((w as never)[f])}\n   got ${short((g as never)?.[f])}\n   happened ${JSON.stringify(walked[i]!.happened)} at ${JSON.stringify(walked[i]!.before.at)} susp ${walked[i]!.before.suspended.length} ctx ${JSON.stringify(walked[i]!.before.context)}\n   row ${JSON.stringify(m.routes.kind === "table" ? m.routes.rows[walked[i]!.step.decision?.row ?? -1] : "")} limits ${JSON.stringify(m.limits)} trace ${short(w.trace)} / ${short(g?.trace)}`;
        break;
      }
    } catch (e) { key = `THROW ${String((e as Error).message).slice(0, 200)}`; ex = String((e as Error).stack).slice(0, 600); }
    if (key === "") { same++; continue; }
    const [n, x] = seen.get(key) ?? [0, ex]; seen.set(key, [n + 1, x.length < ex.length ? x : ex]);
  }
  console.log("same", same); for (const [k, [n, x]] of [...seen].sort((a, b) => b[1][0] - a[1][0])) console.log(`${n} ${k}\n   ${x}`);
});
