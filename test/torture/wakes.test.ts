import { verifyJournal } from "@sluice/core/host";
import { sqliteHost } from "@sluice/sqlite";
import { expect, test } from "vitest";
import { at, printed, textAt } from "../support/command.ts";
import { SLEEPING, sleepingDesk, untilDue } from "../support/sleeping-desk.ts";
import { numbersFrom } from "./random.ts";

const RUNS = 4;
const SLEEPS = 5;
const JSON_OUT = ["--output-format", "json"];

test("twenty sleeps of runs that only short-lived processes wake, some of them killed at a random moment, are each recorded once", async () => {
  const here = sleepingDesk();
  const random = numbersFrom(20);
  const run = ["run", `${SLEEPING}#napping`, "--input", "ms:=1500", "--input", `times:=${SLEEPS}`];
  const runs: string[] = [];
  for (let n = 0; n < RUNS; n += 1)
    runs.push(textAt(printed(await here.start([...run, "--trust", "--suspend-sleeps", ...JSON_OUT]).ended), "runId"));
  let processes = 0;
  for (let open = RUNS; open > 0; ) {
    await untilDue(here.store);
    const waking = here.start(["wake", ...JSON_OUT]);
    processes += 1;
    const kill = processes % 2 === 0 ? setTimeout(() => waking.child.kill("SIGKILL"), 200 + random(1_500)) : undefined;
    await waking.ended;
    clearTimeout(kill);
    const listed = at(printed(await here.sluice(["runs", ...JSON_OUT])), "runs");
    open = Array.isArray(listed) ? listed.filter((one) => at(one, "status") !== "completed").length : RUNS;
  }
  const host = sqliteHost(here.store, { readOnly: true });
  for (const runId of runs) {
    const journals = await host.journal(runId);
    expect(verifyJournal(journals).faults).toEqual([]);
    const steps = journals.flatMap(({ records }) => records).map(({ stepId, phase }) => `${phase} ${stepId}`);
    const sleeps = steps.filter((step) => /sleep\/\d+$/.test(step));
    expect([sleeps.length, new Set(sleeps).size]).toEqual([2 * SLEEPS, 2 * SLEEPS]);
    expect(at((await host.get(runId))?.end?.value, "output")).toHaveLength(SLEEPS);
    expect((await here.start(["replay", runId]).ended).code).toBe(0);
  }
  await host.close();
  // The second one is killed. How many there are depends on how slow they are: what is due meanwhile is woken by the same one.
  expect(processes).toBeGreaterThan(1);
});
