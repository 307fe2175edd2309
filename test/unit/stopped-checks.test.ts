import { done, type Json, pipeline, type StandardSchema, type State, stage, state } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { replayRun, script, scriptedModel } from "@sluice/stages";
import { expect, test } from "vitest";
import { handClock } from "../support/hand-clock.ts";
import { completed, dataOf, eventsOf, eventually, quiet, session, tool } from "../support/run-kit.ts";

// A schema of one's own may ask a service that does not answer: what ends a state ends it then, too.

const kind = { kind: "own", act: () => Promise.resolve(completed({ version: 1 })) };
const OBJECT = { type: "object" } as const;

/** A schema whose check does not end until `ends` says so. */
function asking() {
  const asked = { ends: false, times: 0 };
  const validate = (value: unknown): Promise<{ readonly value: unknown }> => {
    asked.times += 1;
    return asked.ends ? Promise.resolve({ value }) : new Promise(() => undefined);
  };
  const json = { input: () => OBJECT, output: () => OBJECT };
  const types: { readonly output: Json } | undefined = undefined;
  const schema = { "~standard": { version: 1, vendor: "own", validate, jsonSchema: json, types } };
  return { asked, schema };
}

const COMMAND = "the output of a command";
const limits = { timeoutMs: 1_000 };
/** States that end with such a check. */
const ending: Readonly<Record<string, (schema: StandardSchema<Json>) => State<unknown, undefined>>> = {
  "an output": (output) => state({ kind: "own", output, limits }),
  "the call of a completion tool": (completionSchema) =>
    stage({ prompt: "Review.", completionTool: "finish", completionSchema, turnCap: 1, allowedTools: [], limits }),
  "a call of a completion tool beside another": (completionSchema) =>
    stage({
      prompt: "Review.",
      completionTool: "finish",
      completionSchema,
      turnCap: 3,
      allowedTools: ["Look"],
      limits,
    }),
  [COMMAND]: (output) => script({ command: ["echo", '{"version":1}'], output, limits }),
};

const finish = { tool: "finish", input: { version: 1 } };
/** The calls of the model's reply. */
const replies: Readonly<Record<string, readonly { readonly tool: string; readonly input: Json }[]>> = {
  "a call of a completion tool beside another": [{ tool: "Look", input: {} }, finish],
};

/** A run whose check was asked for. */
async function checking(place: string) {
  const { asked, schema } = asking();
  const check = ending[place]?.(schema);
  if (check === undefined) throw new Error(`there is no state for ${place}`);
  const checked = pipeline({
    id: "checked",
    input: OBJECT,
    stages: { check },
    initial: "check",
    next: { check: { completed: () => done("checked"), failed: ({ code, message }) => done(`${code}: ${message}`) } },
  });
  const clock = handClock();
  const reply = { calls: replies[place] ?? [finish] };
  const live = session({
    clock,
    executors: [kind],
    tools: [tool("Look")],
    model: scriptedModel({ stages: { check: [reply, reply, reply] } }),
    env: { PATH: process.env.PATH ?? "/usr/bin:/bin" },
    sandbox: "off",
    host: createHost(createMemoryJournals().connect(), { clock }),
  });
  const run = live.start(checked, {});
  await eventually(() => asked.times === 1);
  await quiet();
  /** Lets later checks end, and expects a replay to read what was stopped. */
  const isSame = async (): Promise<void> => {
    asked.ends = true;
    const journal = await live.host.journal(run.runId);
    expect(await replayRun(checked, journal, { env: {}, executors: [kind] })).toMatchObject({ identical: true });
  };
  return { asked, checked, clock, live, run, isSame };
}

const places = Object.keys(ending);

test.each(places)("a cancel ends a run that checks %s", async (place) => {
  const { run, isSame } = await checking(place);
  await run.cancel("not needed");
  expect(await run).toMatchObject({ status: "cancelled", error: { message: "not needed" } });
  await isSame();
});

test.each(places)("a time limit ends a state that checks %s", async (place) => {
  const { run, live, clock, isSame } = await checking(place);
  clock.turn(1_000);
  expect(await run).toMatchObject({ status: "completed", output: expect.stringMatching(/^timeout: /) });
  const reached = dataOf(await eventsOf(live.host, run.runId), "limit.reached");
  expect(reached).toMatchObject(place === COMMAND ? [] : [{ limit: "state.timeoutMs" }]);
  await isSame();
});

test.each(places)("an interruption ends a state that checks %s, which is entered again", async (place) => {
  const { asked, checked, live, run, isSame } = await checking(place);
  await run.interrupt("not that");
  expect(await run).toMatchObject({ status: "suspended" });
  asked.ends = true;
  expect(await live.resume(checked, run.runId)).toMatchObject({
    status: "completed",
    output: "checked",
    stages: [{ status: "cancelled" }, { status: "completed" }],
  });
  await isSame();
});

// A command is not run again, since it has run.
test.each(places.filter((place) => place !== COMMAND))(
  "a run that is suspended while it checks %s checks it again",
  async (place) => {
    const { asked, checked, live, run, isSame } = await checking(place);
    await run.suspend();
    expect(await run).toMatchObject({ status: "suspended" });
    asked.ends = true;
    expect(await live.resume(checked, run.runId)).toMatchObject({
      status: "completed",
      output: "checked",
      stages: [{ status: "completed" }],
    });
    await isSame();
  },
);

test.each([
  ["a cancel", "cancelled"],
  ["an interruption", "suspended"],
])("%s that comes with the check of an output keeps what the state returned, and is replayed", async (how, status) => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  let hasBegun = false;
  const works = {
    kind: "own",
    act: async () => {
      hasBegun = true;
      await released;
      return completed({ version: 1 });
    },
  };
  const checked = pipeline({
    id: "checked",
    input: OBJECT,
    stages: { check: state({ kind: "own", output: OBJECT }) },
    initial: "check",
    next: { check: () => done("checked") },
  });
  const live = session({ executors: [works] });
  const run = live.start(checked, {});
  await eventually(() => hasBegun);
  const ending = how === "a cancel" ? run.cancel("not needed") : run.interrupt("not that");
  await quiet();
  release();
  await ending;
  expect((await run).status).toBe(status);
  const journal = await live.host.journal(run.runId);
  expect(await replayRun(checked, journal, { env: {}, executors: [works] })).toMatchObject({ identical: true });
  if (how === "a cancel") return;
  expect(await live.resume(checked, run.runId)).toMatchObject({
    stages: [{ status: "cancelled", partial: { version: 1 } }, { status: "completed" }],
  });
});
