import assert from "node:assert/strict";
import type { Json } from "../../base/json.ts";
import type { RunProgram } from "../../journal/seam.ts";
import { fanningOut } from "../programs.ts";
import {
  child,
  completed,
  createGate,
  endOf,
  expectWhole,
  type Facts,
  failed,
  fanOutOptions,
  start,
  statusesOf,
  until,
} from "../world.ts";

/** After a kill, each child of a fan-out resumes from its own journal. */
export const fanOutResumeFacts: Facts = {
  "a run killed in a fan-out resumes each child from its state: completed, failed, running or never started": async ({
    connect,
  }) => {
    const first = await connect();
    const calls: string[] = [];
    const gate = createGate();
    const held = { runId: "r1/fan/working" };
    const children = (): Record<string, RunProgram> => {
      const two: RunProgram = async (steps) => {
        for (const id of ["one", "two"]) {
          await steps.run(id, async () => {
            calls.push(`${steps.runId.split("/").at(-1)} ${id}`);
            if (id === "two" && steps.runId === held.runId) await gate.wait();
            return id;
          });
        }
        return steps.runId.endsWith("failed") ? failed("failed") : completed("done");
      };
      return { done: two, failed: two, working: two, new: two };
    };
    // The process is killed before the first record of the last child is stored.
    const never = createGate<"before">();
    first.failWrites(({ runId }) => (runId === "r1/fan/new" ? never.wait() : undefined));
    const task = await start(first.host, fanningOut(children()));
    await gate.reached;
    await until(first.host, async () => (await first.host.get("r1/fan/failed"))?.status === "failed");
    await never.reached;
    await first.crash();
    never.open("before");
    gate.open();
    await assert.rejects(task.settled);
    const { host } = await connect();
    held.runId = "";
    assert.equal(await host.get("r1/fan/new"), undefined);
    assert.deepEqual((await endOf(await host.resume("r1", fanningOut(children())))).value, [
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

  "onFailure cancel: a resume after a recorded failure closes the other children without running their code": async ({
    connect,
  }) => {
    const first = await connect();
    const gate = createGate();
    const program = (working: RunProgram): RunProgram =>
      fanningOut(
        {
          working,
          bad: async () => {
            await gate.reached;
            return failed("bad");
          },
        },
        "cancel",
      );
    const stuck = createGate();
    await start(
      first.host,
      program(async (steps) => {
        if (steps.runId !== "r1/fan/working") return completed();
        await steps.runChildren("deep", [child("x")], fanOutOptions());
        await steps.run("stuck", async () => {
          void gate.wait();
          await stuck.passed;
          return null;
        });
        return completed();
      }),
    ).then(() => until(first.host, async () => (await first.host.get("r1/fan/bad"))?.status === "failed"));
    await first.crash();
    stuck.open();
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

  "a resumed child has its recorded input, even if its parent passes another one": async ({ connect }) => {
    const first = await connect();
    const gate = createGate();
    const inputs: Json[] = [];
    const program =
      (input: Json): RunProgram =>
      async (steps, received) => {
        if (steps.runId === "r1") {
          await steps.runChildren("fan", [child("a", input)], fanOutOptions());
          return completed();
        }
        inputs.push(received);
        await steps.run("one", async () => {
          if (inputs.length === 1) await gate.wait();
          return null;
        });
        return completed(received);
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
