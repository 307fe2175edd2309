import {
  isSluiceError,
  type ProgramEnd,
  type RunChildrenOptions,
  type RunHost,
  type RunTask,
  SluiceError,
  type StepRunner,
} from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { describe, expect, test } from "vitest";
import { type HandClock, handClock } from "../support/hand-clock.ts";
import { completed, endOf, start, turns, waiting } from "../support/journal.ts";

const SETTLE: RunChildrenOptions = { onFailure: "settle", failed: () => false, open: { events: [] }, joined: () => [] };

function newHost(): { readonly host: RunHost; readonly faults: unknown[]; readonly clock: HandClock } {
  const faults: unknown[] = [];
  const onFault = (fault: unknown): void => void faults.push(fault);
  const clock = handClock();
  return { host: createHost(createMemoryJournals().connect(), { clock, onFault }), faults, clock };
}
async function thrownBy(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
}
/** A root that forks into the children named, which do as `child` says. */
function forking(keys: readonly string[], child: (steps: StepRunner, key: string) => Promise<unknown>) {
  return async (steps: StepRunner) => {
    const { runId } = steps;
    if (runId === "r1") {
      const children = keys.map((key) => ({ key, input: null, events: [] }));
      await steps.runChildren("fan", children, SETTLE);
    } else await child(steps, runId.slice("r1/fan/".length));
    return completed();
  };
}

describe("a listener of a run's live output", () => {
  test("that throws is reported and hears no more, while others continue to hear; without a listener nothing is sent", async () => {
    const { host, faults } = newHost();
    const heard: unknown[] = [];
    const hasListeners: unknown[] = [];
    const task = await start(host, async (steps) => {
      steps.emit("text", "nobody");
      hasListeners.push(steps.heard());
      await steps.waitForSignal("go");
      for (const chunk of ["one", "two"]) steps.emit("text", chunk);
      hasListeners.push(steps.heard());
      await steps.waitForSignal("go");
      hasListeners.push(steps.heard());
      return completed();
    });
    await turns();
    task.onLive(() => {
      throw new Error("no");
    });
    const leave = task.onLive(({ chunk }) => heard.push(chunk));
    await host.signal("r1", { name: "go", payload: null, by: "me" });
    await turns();
    leave();
    await host.signal("r1", { name: "go", payload: null, by: "me" });
    await endOf(task);
    expect(heard).toEqual(["one", "two"]);
    expect(faults).toEqual([new Error("no")]);
    expect(hasListeners).toEqual([false, true, false]);
  });
});

describe("a tree", () => {
  test("that is cancelled says who wanted that, and notes it at its root alone", async () => {
    const { host } = newHost();
    const reasons: unknown[] = [];
    const task = await start(
      host,
      forking(["a"], async (steps) => {
        await steps.waitForSignal("never");
        reasons.push(steps.signal.reason);
      }),
    );
    await turns();
    await host.cancel("r1", "enough", "me");
    await endOf(task);
    expect(reasons).toMatchObject([{ code: "run_cancelled", message: "enough" }]);
    const journals = await host.journal("r1");
    const cancels = journals.map(({ runId, records }) => [
      runId,
      records.filter((one) => one.stepId === "cancel").length,
    ]);
    expect(cancels).toEqual([
      ["r1", 1],
      ["r1/fan/a", 0],
    ]);
  });

  test("tells its root by whom it was cancelled", async () => {
    const { host } = newHost();
    let reason: unknown;
    const task = await start(host, async (steps) => {
      await steps.waitForSignal("never");
      reason = steps.signal.reason;
      return completed();
    });
    await turns();
    await host.cancel("r1", "enough", "me");
    await endOf(task);
    expect(isSluiceError(reason) && reason.detail).toEqual({ by: "me" });
  });

  test.each([
    ["a bug", new Error("a bug"), "run_faulted"],
    ["an error of the program", new SluiceError("Validation", "odd", "odd"), "run_faulted"],
    ["an error of the host", new SluiceError("Host", "broken", "broken"), "broken"],
  ])("stops as a whole for %s in one of its runs, and tells the others why", async (_, fault, code) => {
    const { host } = newHost();
    let thrown: unknown;
    const program = forking(["a", "b"], async (steps, key) => {
      if (key === "a") {
        await turns();
        throw fault;
      }
      thrown = await thrownBy(steps.waitForSignal("never"));
      throw thrown;
    });
    const task = await start(host, program);
    expect(await thrownBy(task.settled)).toBe(fault);
    expect(thrown).toMatchObject({ class: "Host", code });
    if (code !== "run_faulted") return;
    const message = `run r1 stopped here and can be resumed: ${fault.message}`;
    expect(thrown).toMatchObject({ message, cause: fault });
  });
});

describe("a fork that ends with its first failure", () => {
  const FAILED: ProgramEnd = { status: "failed", value: null, events: [] };
  const keys = ["a", "b", "c"];
  /** The root's value is how each child ended. */
  const program =
    (onFailure: RunChildrenOptions["onFailure"], child: (steps: StepRunner, key: string) => Promise<ProgramEnd>) =>
    async (steps: StepRunner): Promise<ProgramEnd> => {
      if (steps.runId !== "r1") return await child(steps, steps.runId.slice("r1/fan/".length));
      const children = keys.map((key) => ({ key, input: null, events: [] }));
      const ends = await steps.runChildren("fan", children, { ...SETTLE, onFailure });
      return completed(
        Object.fromEntries(Object.entries(ends).map(([key, { status, value }]) => [key, [status, value]])),
      );
    };

  test("cancels the others for a child that failed, whatever its end says, and tells them whose fault it is", async () => {
    const reasons: unknown[] = [];
    const { host } = newHost();
    const task = await start(
      host,
      program("cancel", async (steps, key) => {
        if (key === "b") return FAILED;
        await steps.waitForSignal("never");
        reasons.push(steps.signal.reason);
        return { ...FAILED, status: "cancelled" };
      }),
    );
    expect((await endOf(task)).value).toEqual({
      a: ["cancelled", null],
      b: ["failed", null],
      c: ["cancelled", null],
    });
    const reason = { class: "Cancellation", code: "sibling_failed", message: "cancelled because its sibling b failed" };
    expect(reasons).toMatchObject([reason, reason]);
  });

  test("names the first of several that an earlier process saw fail", async () => {
    const { host } = newHost();
    const child = async (steps: StepRunner, key: string): Promise<ProgramEnd> => {
      if (key !== "c") return FAILED;
      await steps.waitForSignal("never");
      return completed();
    };
    const first = await start(host, program("settle", child));
    await turns();
    await first.suspend("interrupted");
    const end = await endOf(await host.resume("r1", program("cancel", child)));
    expect(end.value).toMatchObject({ c: ["cancelled", { reason: "cancelled because its sibling a failed" }] });
  });
});

describe("a run that is suspended", () => {
  test("twice at once is so for the first reason, and says nothing else in its record", async () => {
    const { host } = newHost();
    const task = await start(host, waiting);
    await turns();
    await Promise.all([task.suspend("waiting"), task.suspend("interrupted")]);
    expect(await task.settled).toEqual({ suspended: "waiting" });
    const records = await host.records("r1");
    expect(records.at(-1)).toMatchObject({ stepId: "suspend", value: "0" });
  });

  test("after it met a fault has that fault", async () => {
    const { host } = newHost();
    let suspend: () => Promise<void> = () => expect.fail();
    const task: RunTask = await start(host, async (steps) => {
      await turns();
      const fault = await thrownBy(steps.run("a", () => Promise.reject(new Error("no"))));
      suspend().catch(() => undefined);
      throw fault;
    });
    suspend = () => task.suspend("interrupted");
    expect(await thrownBy(task.settled)).toEqual(new Error("no"));
  });

  test("with work that outlives its host keeps quiet about a store that is closed", async () => {
    const { host, faults, clock } = newHost();
    let end: (value: unknown) => void = () => expect.fail();
    const work = new Promise((resolve) => {
      end = resolve;
    });
    const task = await start(host, async (steps) => {
      await steps.run("a", ({ hold }) => {
        hold(work);
        return null;
      });
      return await waiting(steps);
    });
    await turns();
    void task.suspend("interrupted");
    await turns();
    clock.turn(1_000);
    expect(await task.settled).toEqual({ suspended: "interrupted" });
    await host.close();
    end(null);
    await turns();
    expect(faults).toEqual([]);
  });
});
