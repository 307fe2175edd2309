import assert from "node:assert/strict";
import type { Json } from "../../base/json.ts";
import type { RunProgram } from "../../journal/seam.ts";
import { forking } from "../programs.ts";
import {
  child,
  completed,
  createGate,
  endOf,
  expectWhole,
  type Facts,
  failed,
  forkOptions,
  start,
  statusesOf,
  until,
} from "../world.ts";

/** A killed fork is taken up child by child, each from its own journal. */
export const forkResumeFacts: Facts = {
  "a run killed in a fork resumes each child where it was: done, failed, at work, never started": async ({
    connect,
  }) => {
    const first = await connect();
    const calls: string[] = [];
    const gate = createGate();
    const hold = { at: "r1/fan/working" };
    const children = (): Record<string, RunProgram> => {
      const two: RunProgram = async (steps) => {
        for (const id of ["one", "two"]) {
          await steps.run(id, async () => {
            calls.push(`${steps.runId.split("/").at(-1)} ${id}`);
            if (id === "two" && steps.runId === hold.at) await gate.wait();
            return id;
          });
        }
        return steps.runId.endsWith("failed") ? failed("failed") : completed("done");
      };
      return { done: two, failed: two, working: two, new: two };
    };
    // The last child's first record is still on its way to the disk when the process is killed.
    const never = createGate<"before">();
    first.failWrites(({ runId }) => (runId === "r1/fan/new" ? never.wait() : undefined));
    const task = await start(first.host, forking(children()));
    await gate.reached;
    await until(first.host, async () => (await first.host.get("r1/fan/failed"))?.status === "failed");
    await never.reached;
    await first.crash();
    never.open("before");
    gate.open();
    await assert.rejects(task.settled);
    const { host } = await connect();
    hold.at = "";
    assert.equal(await host.get("r1/fan/new"), undefined);
    assert.deepEqual((await endOf(await host.resume("r1", forking(children())))).value, [
      ["done", "completed", "done"],
      ["failed", "failed", "failed"],
      ["working", "completed", "done"],
      ["new", "completed", "done"],
    ]);
    const times = (call: string): number => calls.filter((each) => each === call).length;
    for (const key of ["done", "failed", "new"])
      assert.deepEqual([times(`${key} one`), times(`${key} two`)], [1, 1], key);
    assert.deepEqual([times("working one"), times("working two")], [1, 2]);
    await expectWhole(host);
  },

  "onFailure cancel: a failure that was recorded before a kill closes the rest on resume, without their code": async ({
    connect,
  }) => {
    const first = await connect();
    const gate = createGate();
    const program = (rest: RunProgram): RunProgram =>
      forking(
        {
          working: rest,
          bad: async () => {
            await gate.reached;
            return failed("bad");
          },
        },
        "cancel",
      );
    const deaf = createGate();
    await start(
      first.host,
      program(async (steps) => {
        if (steps.runId !== "r1/fan/working") return completed();
        await steps.runChildren("deep", [child("x")], forkOptions());
        await steps.run("deaf", async () => {
          void gate.wait();
          await deaf.passed;
          return null;
        });
        return completed();
      }),
    ).then(() => until(first.host, async () => (await first.host.get("r1/fan/bad"))?.status === "failed"));
    await first.crash();
    deaf.open();
    const { host } = await connect();
    const end = await endOf(
      await host.resume(
        "r1",
        program(() => assert.fail("a sibling was run again")),
      ),
    );
    assert.deepEqual(
      statusesOf(Object.fromEntries((await host.journal("r1")).map(({ runId, end }) => [runId, end ?? assert.fail()]))),
      {
        r1: "completed",
        "r1/fan/working": "cancelled",
        "r1/fan/bad": "failed",
        "r1/fan/working/deep/x": "completed",
      },
    );
    assert.equal(end.status, "completed");
    await expectWhole(host);
  },

  "a child that is taken up has the input that was recorded, whatever its parent asks for now": async ({ connect }) => {
    const first = await connect();
    const gate = createGate();
    const inputs: Json[] = [];
    const program =
      (input: Json): RunProgram =>
      async (steps, own) => {
        if (steps.runId === "r1") {
          await steps.runChildren("fan", [child("a", input)], forkOptions());
          return completed();
        }
        inputs.push(own);
        await steps.run("one", async () => {
          if (inputs.length === 1) await gate.wait();
          return null;
        });
        return completed(own);
      };
    await start(first.host, program({ version: 1 }));
    await gate.reached;
    await first.crash();
    gate.open();
    const { host } = await connect();
    await endOf(await host.resume("r1", program({ version: 2 })));
    assert.deepEqual(inputs, [{ version: 1 }, { version: 1 }]);
    assert.deepEqual((await host.get("r1/fan/a"))?.input, { version: 1 });
    await expectWhole(host);
  },
};
