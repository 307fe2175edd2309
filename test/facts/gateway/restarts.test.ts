import { createHost, createMemoryJournals } from "@sluice/core/host";
import { expect, test } from "vitest";
import { ask, gatewayRun, leave, PLAN_FIRST, pipelineOf } from "../../support/gateway.ts";
import { tempFolder } from "../../support/tools.ts";

test("a run that its agent left continues in another process, in the same phase", async () => {
  const folder = tempFolder();
  folder.put("a.txt", "one\n");
  const memory = createMemoryJournals();
  const pipeline = await pipelineOf(PLAN_FIRST);
  const first = gatewayRun({ pipeline, root: folder.root, host: createHost(memory.connect()) });
  await ask(first, "get_state");
  await ask(first, "Read", { file_path: "a.txt" });
  await leave(first, "READY");
  await ask(first, "Write", { file_path: "b.txt", content: "b" });
  await first.close();
  const { runId = "" } = first;

  const second = gatewayRun({ pipeline, root: folder.root, host: createHost(memory.connect()), resume: runId });
  const state = await ask(second, "get_state");
  expect(state.output).toMatchObject({ state: "build", runId });
  expect(state.text).toContain("The last call before that was Write");
  await leave(second, "BUILT");
  await leave(second, "GOOD");
  expect(await second.ended).toMatchObject({ status: "completed" });
});
