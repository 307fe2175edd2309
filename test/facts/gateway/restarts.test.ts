import { createHost, createMemoryJournals } from "@sluice/core/host";
import { expect, test } from "vitest";
import { ask, gatewayRun, leave, PLAN_FIRST, pipelineOf } from "../../support/gateway.ts";
import { until } from "../../support/mcp.ts";
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

test("a call of a tool that no state lists runs when it is made again in another process, after a person has approved it", async () => {
  const folder = tempFolder();
  const memory = createMemoryJournals();
  const pipeline = await pipelineOf({
    id: "look",
    initial: "look",
    states: {
      look: { instructions: "Look.", allowed_tools: ["Read"], on: { DONE: "done" } },
      done: { type: "final" },
    },
  });
  const write = { tool: "Write", input: { file_path: "a.txt", content: "written\n" } } as const;
  const first = gatewayRun({ pipeline, root: folder.root, host: createHost(memory.connect()), wait: true });
  const asked = first.call(write);
  await until(() => first.now().status === "waiting");
  const { runId = "" } = first;
  await first.close();
  expect((await asked.answer).ok).toBe(false);
  const person = createHost(memory.connect());
  const [request] = await person.requests();
  if (request === undefined) throw new Error("no request is open");
  const { requestId, digest } = request;
  await person.signal(runId, {
    name: `request/${requestId}`,
    payload: { kind: "approve", digest },
    digest,
    by: "test",
  });
  await person.close();
  const second = gatewayRun({
    pipeline,
    root: folder.root,
    host: createHost(memory.connect()),
    wait: true,
    resume: runId,
  });
  expect(await ask(second, write.tool, write.input)).toMatchObject({ ok: true });
  expect(folder.text("a.txt")).toBe("written\n");
});
