import fc from "fast-check";
import { expect, test } from "vitest";
import { comparable, expectedSteps, type StepSeen, stepper } from "../support/machine-steps.ts";
import { randomMoves, randomWorkflow } from "../support/random-workflows.ts";
import { walk } from "../support/reference-walk.ts";

const MACHINES = Number(process.env.SLUICE_TEST_MACHINES ?? 1_000);
const TIMEOUT = 300_000 + 100 * MACHINES;
/** What enough random walks come to. */
const REACHED = [
  ...["enter", "fanOut", "stay", "approve", "return", "end"],
  ...["by event", "by safe_next", "by interrupt", "by table", "by default"],
  ...["approved", "denied", "refused rows", "merged data", "final state", "on fail"],
  ...["nested interrupts", "unwound", "code approval_denied", "code limit_visits", "code limit_hops"],
  ...["children branch", "children invoke", "children sibling", "paused"],
];

test(
  "by transition and apply alone, a machine with events, finals, approvals, interrupts, forks and invokes does what files mean",
  async () => {
    const stepsSeen = stepper();
    const seen = new Map<string, number>();
    const count = (what: string): void => void seen.set(what, (seen.get(what) ?? 0) + 1);
    await fc.assert(
      fc.asyncProperty(randomWorkflow, randomMoves, async (machine, moves) => {
        const walked = walk(machine, moves);
        for (const { happened, before, step } of walked) {
          const { effect, decision, after } = step;
          count(effect.kind);
          if (effect.kind === "fanOut") for (const { kind } of effect.children) count(`children ${kind}`);
          if (effect.kind === "end" && effect.state !== undefined) count("final state");
          if (effect.kind === "end" && effect.end.status === "failed") count(`code ${effect.end.code}`);
          if (decision !== undefined) count(`by ${decision.by}`);
          if ((decision?.refused ?? []).length > 0) count("refused rows");
          if (happened.kind === "answer") count(happened.approved ? "approved" : "denied");
          if (happened.kind === "event" && Object.keys(step.merged ?? {}).length > 0) count("merged data");
          if (happened.kind === "result" && happened.outcome.status === "paused") count("paused");
          if (happened.kind === "children" && decision?.by === "default" && effect.kind === "enter") count("on fail");
          if (before.suspended.length > 1) count("nested interrupts");
          if (before.suspended.length > 0 && after.suspended.length === 0 && effect.kind !== "return") count("unwound");
        }
        await expectSteps(stepsSeen(machine, walked), expectedSteps(machine, walked));
      }),
      { numRuns: MACHINES },
    );
    for (const what of REACHED) expect(seen.get(what) ?? 0, what).toBeGreaterThanOrEqual(Math.floor(MACHINES / 500));
    if (process.env.SLUICE_TEST_MACHINES !== undefined)
      console.log(Object.fromEntries([...seen].toSorted(([a], [b]) => (a < b ? -1 : 1))));
  },
  TIMEOUT,
);

/** Step by step, so that a failure shows the first that differs. */
async function expectSteps(seen: AsyncGenerator<StepSeen>, wanted: readonly StepSeen[]): Promise<void> {
  for (const [index, step] of wanted.entries()) {
    const { value } = await seen.next();
    const shown = comparable(value, step);
    if (JSON.stringify(shown) !== JSON.stringify(step)) expect(shown, `step ${index}`).toEqual(step);
  }
  expect(await seen.next()).toMatchObject({ done: true });
}
