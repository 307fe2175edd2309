import { createHost, createMemoryJournals } from "@sluice/core/host";
import { describe, expect, test } from "vitest";
import { ask, gatewayRun, leave, PLAN_FIRST, pipelineOf } from "../../support/gateway.ts";
import { tempFolder } from "../../support/tools.ts";

describe("an agent of another program drives a run", () => {
  test("through three phases to the end, and the gate denies what a phase does not allow", async () => {
    const folder = tempFolder();
    folder.put("a.txt", "one\n");
    const host = createHost(createMemoryJournals().connect());
    const run = gatewayRun({ pipeline: await pipelineOf(PLAN_FIRST), root: folder.root, host });

    expect((await run.tools()).map(({ name }) => name)).toEqual([
      "Bash",
      "Edit",
      "Glob",
      "Grep",
      "Read",
      "Write",
      "get_state",
      "transition",
    ]);
    expect(run.runId).toBeUndefined();
    const state = await ask(run, "get_state");
    expect(state.text).toContain("Read what you need and write a plan. Edit nothing.");
    expect(state.text).toContain("READY");

    const read = await ask(run, "Read", { file_path: "a.txt" });
    expect(read).toMatchObject({ ok: true });
    expect(read.text).toContain("one");
    const denied = await ask(run, "Edit", { file_path: "a.txt", old_string: "one", new_string: "two" });
    expect(denied).toMatchObject({ ok: false, output: { cause: "no_interactor" } });
    expect(folder.text("a.txt")).toBe("one\n");

    const moved = await leave(run, "READY");
    expect(moved.ok).toBe(true);
    expect(moved.text).toContain("Make the change.");
    await ask(run, "Read", { file_path: "a.txt" });
    const edited = await ask(run, "Edit", { file_path: "a.txt", old_string: "one", new_string: "two" });
    expect(edited.text).toContain("a.txt");
    expect(folder.text("a.txt")).toBe("two\n");
    await leave(run, "BUILT");
    const checked = await ask(run, "Bash", { command: "cat a.txt" });
    expect(checked.text).toContain("two");
    const end = await leave(run, "GOOD");
    expect(end.text).toContain("is over: completed (done)");
    expect(await run.ended).toMatchObject({ status: "completed", state: "done" });
    expect((await ask(run, "Read", { file_path: "a.txt" })).output).toMatchObject({ code: "run_ended" });
    const denials = [];
    for await (const event of host.events(run.runId ?? "", { children: true }))
      if (event.type === "call.decided" && event.data.verdict === "refused") denials.push(event.data.tool);
    expect(denials).toEqual(["Edit"]);
  });
});
