import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type ActScope, done, type EventDraft, fanOut, field, type Json, pipeline, to } from "@sluice/core";
import { expect } from "vitest";
import { type Desk, desk, finishes, printed, textAt } from "../support/command.ts";
import {
  calls,
  decided,
  drive,
  fact,
  finish,
  input,
  noting,
  one,
  saying,
  task,
  tools,
  worker,
} from "../support/facts.ts";
import { completed, dataOf, eventually, quiet, session, tool, twoHosts, work } from "../support/run-kit.ts";
import { talker } from "../support/talker.ts";

fact(
  69,
  "no stages, a stage named twice, an unknown first stage or a turn cap below one are refused, all at once",
  () => {
    const refused = (make: () => unknown, ...paths: readonly string[]): void => {
      const problems = paths.map((path) => expect.objectContaining({ path }));
      expect(make).toThrow(
        expect.objectContaining({ code: "definition_invalid", detail: { problems: expect.arrayContaining(problems) } }),
      );
    };
    const none: Record<string, never> = {};
    refused(
      () => pipeline({ id: "p", input, stages: none, initial: JSON.parse('"a"'), next: {} }),
      "stages",
      "initial",
    );
    const stages = { a: worker(), b: worker() };
    const twice = fanOut(["a", "a"], { join: "b" });
    refused(
      () => pipeline({ id: "p", input, stages, initial: "a", transitions: [{ from: "b", on: "success", to: twice }] }),
      "transitions[0].to",
    );
    refused(
      () => pipeline({ id: "p", input, stages, initial: JSON.parse('"c"'), next: { a: () => done(1) } }),
      "initial",
    );
    refused(() => one(worker({ turnCap: 0 })), "stages.one.turnCap");
  },
);

decided(
  70,
  "a run stays with its pipeline: another one, or a changed one, cannot take it up, and the same can",
  async () => {
    const { clock, first, second } = twoHosts();
    const model = talker(({ turn }) => (turn === 0 ? new Promise(() => undefined) : finish()));
    const here = session({ model, clock, host: first, tools });
    const pipe = one(worker());
    const handle = here.start(pipe, task);
    await eventually(() => model.heard.length === 1);
    const busy = session({ model: saying(), clock, host: second, tools });
    await expect(busy.resume(pipe, handle.runId)).rejects.toMatchObject({ code: "run_owned" });
    await handle.suspend();
    const other = pipeline({
      id: "other",
      input,
      stages: { one: worker() },
      initial: "one",
      next: { one: () => done(1) },
    });
    await expect(busy.resume(other, handle.runId)).rejects.toMatchObject({ code: "pipeline_mismatch" });
    await expect(busy.resume(one(worker({ turnCap: 5 })), handle.runId)).rejects.toMatchObject({
      code: "pipeline_changed",
    });
    expect(await busy.resume(one(worker()), handle.runId)).toMatchObject({ status: "completed" });
  },
);

fact(
  71,
  "a resumed run has what it had before its first stage goes on; a run that is not there is refused",
  async () => {
    const { clock, first, second } = twoHosts();
    const states = (prompts: string[]) =>
      pipeline({
        id: "p",
        input,
        context: { round: 0 },
        stages: {
          plan: worker(),
          work: worker({
            setup: ({ upstream, context }) => noting(prompts, JSON.stringify([upstream, context]), null),
          }),
        },
        initial: "plan",
        next: { plan: () => to("work", undefined, { context: { round: 1 } }), work: ({ output }) => done(output) },
      });
    const stuck = talker(({ stage }) => (stage === "work" ? new Promise(() => undefined) : finish("the plan")));
    const here = session({ model: stuck, clock, host: first, tools });
    const handle = here.start(states([]), task);
    await eventually(() => stuck.heard.length === 2);
    await handle.suspend();
    const there = session({ model: saying(finish("the work")), clock, host: second, tools });
    expect(await there.resume(states([]), handle.runId)).toMatchObject({
      status: "completed",
      output: { summary: "the work" },
      stages: [{ executionId: "plan#1", output: { summary: "the plan" } }, { executionId: "work#1" }],
    });
    await expect(there.resume(states([]), "rnowhere")).rejects.toMatchObject({ code: "run_unknown" });
  },
);

/** A run of one state whose executor does this. */
async function acting(act: (scope: ActScope) => Promise<void>) {
  const state = work({
    act: async (scope) => {
      await act(scope);
      return completed(null);
    },
  });
  const live = session({ model: saying(), tools });
  const pipe = pipeline({ id: "p", input, stages: { one: state }, initial: "one", next: { one: () => done(1) } });
  return { live, handle: live.start(pipe, task) };
}

fact(72, "an event of a type that nobody knows is refused, and nothing of it is kept", async () => {
  const unknown: EventDraft = Object.assign({ type: "stage.act" as const, data: {} }, { type: "stage.invented" });
  const { live, handle } = await acting(async ({ note, steps }) => {
    note(unknown);
    await steps.run("mine", () => null);
  });
  await expect(handle).rejects.toMatchObject({ code: "event_unknown" });
  expect(JSON.stringify(await live.host.journal(handle.runId))).not.toContain("invented");
});

fact(
  73,
  "what an executor writes after its attempt has ended is refused, and every event says where it belongs",
  async () => {
    const kept: ActScope[] = [];
    const { live, handle } = await acting(async (scope) => void kept.push(scope));
    const { runId } = await handle;
    const [late] = kept;
    await expect(late?.steps.run("late", () => null)).rejects.toMatchObject({ code: "attempt_over" });
    await expect(late?.calls(1, [{ id: "t1.c0", tool: "Look", input: {} }])).rejects.toMatchObject({
      code: "attempt_over",
    });
    late?.note({ type: "limit.reached", data: { limit: "late", message: "late" } });
    await quiet();
    for await (const event of live.host.events(runId)) {
      expect([event.runId, event.id.startsWith(`${runId}/`), event.type === "limit.reached"]).toEqual([
        runId,
        true,
        false,
      ]);
      if (event.type.startsWith("stage.")) expect([event.executionId, event.attempt ?? 1]).toEqual(["one#1", 1]);
    }
  },
);

fact(
  74,
  "secrets are taken out of the record however deep they lie, long arguments are cut there, and the call itself is not touched",
  async () => {
    const key = `sk-ant-${"a1B2".repeat(8)}`;
    const given = { deep: [{ note: `use ${key}` }], password: "hunter22", long: "x".repeat(100_000) };
    const got: Json[] = [];
    const look = tool("Look", {
      effect: "read",
      execute: async (asked) => ({ ok: true, output: { at: got.push(asked), key } }),
    });
    const { events, results } = await drive(worker(), saying(calls(["Look", given])), { tools: [look] });
    expect(got).toEqual([given]);
    expect(results(0)).toEqual([{ at: 1, key }]);
    const kept = JSON.stringify(events);
    expect(kept).not.toContain(key);
    expect(JSON.stringify(dataOf(events, "call.decided")).length).toBeLessThan(2_000);
  },
);

fact(75, "a listener that throws breaks neither the run nor the other listeners", async () => {
  const warned: string[] = [];
  const onWarning = ({ message }: Error): void => void warned.push(message);
  process.on("warning", onWarning);
  const seen: Json[] = [];
  const { result } = await drive(worker(), saying({ text: "aloud", ...calls("Look") }), {
    during: async (handle) => {
      handle.onLive(() => {
        throw new Error("a watcher's bug");
      });
      handle.onLive(({ chunk }) => void seen.push(field(chunk, "text") ?? ""));
      await handle;
    },
  });
  await quiet();
  process.off("warning", onWarning);
  expect([result.status, seen.join("")]).toEqual(["completed", "aloud"]);
  expect(warned).toEqual(["a watcher's bug"]);
});

const code = (marker: string) => `import { writeFileSync } from "node:fs";
import { done, pipeline, stage } from "@sluice/core";
writeFileSync(${JSON.stringify(marker)}, "");
export default pipeline({
  id: "mine",
  input: { type: "object" },
  stages: { work: stage({ prompt: "Work.", allowedTools: [], completionTool: "finish", completionSchema: { type: "object" }, turnCap: 2 }) },
  initial: "work",
  next: { work: () => done("ours") },
});
`;
const run = (here: Desk, cwd: string, ...flags: readonly string[]) =>
  here.sluice(
    ["run", "mine", "x", "--model", here.script({ work: [finishes()] }), "--output-format", "json", ...flags],
    { cwd },
  );

fact(
  76,
  "code of a project is found in exactly its folder, loaded once that is trusted, and a refusal writes nothing",
  async () => {
    const here = desk();
    const marker = join(here.folder, "..", "loaded");
    here.write(".sluice/pipelines/mine.ts", code(marker));
    here.write("inner/readme.md", "");
    const inner = await run(here, join(here.folder, "inner"), "--trust");
    expect([inner.code, textAt(printed(inner), "error", "code"), existsSync(marker)]).toEqual([
      2,
      "pipeline_not_found",
      false,
    ]);

    const before = readdirSync(join(here.folder, ".."), { recursive: true }).length;
    const refused = await run(here, here.folder);
    expect([refused.code, textAt(printed(refused), "error", "code")]).toEqual([2, "folder_untrusted"]);
    // The script of its model is all that is new.
    expect(readdirSync(join(here.folder, ".."), { recursive: true })).toHaveLength(before + 1);

    expect(printed(await run(here, here.folder, "--trust")).output).toBe("ours");
    expect([printed(await run(here, here.folder)).output, existsSync(marker)]).toEqual(["ours", true]);
  },
);
