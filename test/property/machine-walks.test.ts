import { apply, initialState, transition } from "@sluice/core/machine";
import fc from "fast-check";
import { expect, test } from "vitest";
import { randomMachine } from "../support/random-machines.ts";
import { expectedWalk, simulate } from "../support/simulated-machine.ts";

const MACHINES = Number(process.env.SLUICE_TEST_MACHINES ?? 2_000);

test(
  "by transition and apply alone, a machine goes where the documentation says",
  async () => {
    const pure = { initialState, transition, apply };
    await fc.assert(
      fc.asyncProperty(randomMachine, async (machine) => {
        const expected = expectedWalk(machine);
        const { end, ...walk } = await simulate(machine, pure);
        const isWorded = end.status === "completed" || "message" in expected.end;
        const seen = { ...walk, end: isWorded ? end : { status: end.status, code: end.code } };
        if (JSON.stringify(seen) !== JSON.stringify(expected)) expect(seen).toEqual(expected);
      }),
      { numRuns: MACHINES },
    );
  },
  120_000 + 100 * MACHINES,
);
