import { done, fanOut, type JsonObject, pipeline, type RunHost, type SluiceEvent } from "@sluice/core";
import { expect, test } from "vitest";
import { z } from "zod";
import {
  caller,
  completed,
  dataOf,
  eventsOf,
  eventually,
  json,
  noModel,
  quiet,
  session,
  tool,
  twoHosts,
  work,
} from "../support/run-kit.ts";

const TOOLS = ["get_token", "api-key"];

/** Siblings and tools whose names read like those of secrets. */
const guarded = pipeline({
  id: "guarded",
  input: z.object({}),
  stages: {
    start: work(),
    cookie: work({
      allowedTools: TOOLS,
      act: async (scope) => {
        const call = caller(scope);
        const first = await call("get_token");
        await scope.wait("pause", 1_000_000);
        return completed([first, await call("api-key")]);
      },
    }),
    secret: work({ act: () => completed("kept") }),
    join: work({ act: ({ ctx }) => completed(json(ctx.upstream)) }),
  },
  initial: "start",
  next: {
    start: () => fanOut(["cookie", "secret"], { join: "join" }),
    join: ({ output }) => done(output),
  },
});

function lives() {
  const { clock, first, second } = twoHosts();
  const tools = TOOLS.map((name) => tool(name));
  const before = session({ model: noModel, clock, host: first, tools });
  const after = (others = tools) => session({ model: noModel, clock, host: second, tools: others });
  return { clock, host: first, before, after };
}

async function readEvents(host: RunHost, runId: string): Promise<readonly SluiceEvent[]> {
  return (await host.get(runId)) === undefined ? [] : await eventsOf(host, runId);
}

async function suspendedRun({ before }: ReturnType<typeof lives>): Promise<string> {
  const run = before.start(guarded, {});
  await eventually(async () => (await readEvents(before.host, run.runId)).some(({ type }) => type === "call.finished"));
  await run.suspend();
  return run.runId;
}

test("siblings and tools named like secrets stand in the events as they are, and are found again on resume", async () => {
  const here = lives();
  const runId = await suspendedRun(here);
  const live = here.after();
  const resumed = live.resume(guarded, runId);
  await quiet();
  here.clock.turn(2_000_000);
  expect(await resumed).toMatchObject({
    status: "completed",
    output: { cookie: ["get_token ran", "api-key ran"], secret: "kept" },
  });
  const events = await eventsOf(live.host, runId);
  expect(dataOf(events, "fanOut.joined")).toEqual([
    {
      fanOut: "fan-1",
      outcomes: [
        { name: "cookie", status: "completed", head: expect.stringMatching(/^[0-9a-f]{64}$/) },
        { name: "secret", status: "completed", head: expect.stringMatching(/^[0-9a-f]{64}$/) },
      ],
    },
  ]);
  expect(dataOf(events, "run.started")[0]?.tools).toEqual(
    expect.arrayContaining(
      TOOLS.map((name) => ({ name, digest: expect.stringMatching(/^[0-9a-f]{64}$/), effect: expect.any(String) })),
    ),
  );
  expect(JSON.stringify(events)).not.toContain("[redacted:");
});

test("a changed tool named like a secret is reported as changed", async () => {
  const here = lives();
  const runId = await suspendedRun(here);
  const [name = ""] = TOOLS;
  const changed = here.after([tool(name, { input: { type: "object", required: ["more"] } }), tool("api-key")]);
  await expect(changed.resume(guarded, runId)).rejects.toMatchObject({
    code: "tools_changed",
    detail: { tools: ["get_token has a different schema"] },
  });
});

test("a run whose tools were recorded in another shape is resumed only when the caller accepts that", async () => {
  const here = lives();
  const [data] = dataOf(await eventsOf(here.before.host, await suspendedRun(here)), "run.started");
  const older: JsonObject = { ...data, tools: { get_token: "[redacted:get_token]" } };
  const task = await here.host.start({
    runId: "older",
    input: {},
    events: [{ type: "run.started", data: older }],
    program: async (steps) => {
      await steps.sleepUntil("never", 1_000_000);
      return { status: "completed", value: null, events: [] };
    },
  });
  await task.suspend("interrupted");
  const live = here.after();
  await expect(live.resume(guarded, "older")).rejects.toMatchObject({
    code: "tools_changed",
    detail: { tools: ["get_token was not recorded", "api-key was not recorded"] },
  });
});
