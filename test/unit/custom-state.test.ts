import { type ActOutcome, done, type Json, pipeline, type State, type StateExecutor, state, to } from "@sluice/core";
import { createSession } from "@sluice/stages";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";

const nothing = { turns: 0, usage: { inputTokens: 0, outputTokens: 0 } };
const completed = (output: Json): ActOutcome => ({ ...nothing, status: "completed", output });

/** Runs one state of kind `echo`, whose executor does what `act` says. */
async function runEcho(act: StateExecutor["act"], options: Parameters<typeof state>[0]) {
  const echoing = pipeline({
    id: "echoing",
    input: z.object({ task: z.string() }),
    stages: { echo: state(options) },
    initial: "echo",
    next: { echo: ({ output }) => done(output) },
  });
  const executor: StateExecutor = {
    kind: "echo",
    init: (spec) => ({ options: JSON.stringify(spec.options ?? null) }),
    act,
  };
  const session = createSession({ env: {}, executors: [executor] });
  onTestFinished(session.close);
  return { session, result: await session.run(echoing, { task: "echo" }) };
}
const output = z.object({ count: z.number().int() });

test("the session's executor of the kind does the work, with the options as they were checked", async () => {
  const options = { kind: "echo", options: { times: [1, 2] }, output: z.object({ seen: z.string() }) };
  const act: StateExecutor["act"] = async (init) => completed({ seen: JSON.stringify(init) });
  const { result } = await runEcho(act, options);
  expect(result).toMatchObject({
    status: "completed",
    output: { seen: JSON.stringify({ options: JSON.stringify({ times: [1, 2] }) }) },
  });
});

test("what its schema makes of the output is what leaves the state", async () => {
  const rounded = z.object({ count: z.number().transform(Math.round) });
  const { result } = await runEcho(async () => completed({ count: 1.6, more: true }), {
    kind: "echo",
    output: rounded,
  });
  expect(result).toMatchObject({ status: "completed", output: { count: 2 } });
  expect(result).not.toHaveProperty("output.more");
});

test("an output that does not fit fails the state with code schema, and says where", async () => {
  const { result } = await runEcho(async () => completed({ count: "one" }), { kind: "echo", output });
  expect(result.stages).toMatchObject([
    { status: "failed", code: "schema", message: expect.stringContaining("$.count") },
  ]);
});

test("a schema that throws, or makes something that is not JSON, fails the state", async () => {
  const throwing = z.object({
    count: z.number().transform((): number => {
      throw new Error("no counting today");
    }),
  });
  const { result } = await runEcho(async () => completed({ count: 1 }), { kind: "echo", output: throwing });
  expect(result.stages).toMatchObject([{ status: "failed", code: "schema" }]);
  const instance = z.object({ count: z.number().transform(() => new Map()) });
  const other = await runEcho(async () => completed({ count: 1 }), { kind: "echo", output: instance });
  expect(other.result.stages).toMatchObject([{ status: "failed", code: "schema" }]);
});

test("a failure of the executor is not held against the output's schema", async () => {
  const failed: ActOutcome = { ...nothing, status: "failed", code: "tool", message: "the echo is gone" };
  const { result } = await runEcho(async () => failed, { kind: "echo", output });
  expect(result.stages).toMatchObject([{ status: "failed", code: "tool", message: "the echo is gone" }]);
});

test("what the schema said is recorded: a run that is resumed does not ask it again", async () => {
  let asked = 0;
  const counting = z.object({ count: z.number() }).refine(() => {
    asked += 1;
    return true;
  });
  const stages = {
    first: state({ kind: "echo", output: counting }),
    second: state({ kind: "wait", output: z.null() }),
  };
  const two = pipeline({
    id: "two",
    input: z.object({ task: z.string() }),
    stages,
    initial: "first",
    next: { first: () => to("second"), second: () => done("over") },
  });
  const echo: StateExecutor = { kind: "echo", act: async () => completed({ count: 1 }) };
  let ready = false;
  const wait: StateExecutor = {
    kind: "wait",
    act: async (_init, { steps, signal }) => {
      await steps.run("wait", () =>
        ready
          ? null
          : new Promise<null>((_, reject) => signal.addEventListener("abort", () => reject(new Error("left")))),
      );
      return completed(null);
    },
  };
  const session = createSession({ env: {}, executors: [echo, wait] });
  onTestFinished(session.close);
  const run = session.start(two, { task: "echo" });
  for await (const { type, executionId } of run.events) {
    if (type === "stage.act" && executionId === "first#1") break;
  }
  await expect.poll(async () => (await session.host.get(run.runId))?.records).toBeGreaterThan(4);
  await run.suspend();
  const before = asked;
  ready = true;
  expect(await session.resume(two, run.runId)).toMatchObject({ status: "completed", output: "over" });
  expect([before, asked]).toEqual([1, 1]);
});

test("mistakes in its options are reported with all other mistakes", () => {
  /** As a program in JavaScript could. */
  const wrong = (options: object): State<unknown, undefined> => Reflect.apply(state, undefined, [options]);
  const broken = () =>
    pipeline({
      id: "broken",
      input: z.object({}),
      stages: {
        one: wrong({ kind: "agent", output }),
        two: wrong({ kind: "9lives", output: z.object({}), options: { run: () => 1 } }),
        three: wrong({ kind: "echo" }),
        four: wrong({ kind: "echo", output, promt: "" }),
      },
      initial: "one",
      next: { one: () => to("two") },
    });
  expect(broken).toThrow(
    /stages\.one\.kind.*stage\(\)[\s\S]*stages\.two\.kind[\s\S]*stages\.two\.options[\s\S]*stages\.three\.output[\s\S]*stages\.four\.promt/,
  );
});

test("a session without an executor of the kind refuses the pipeline, and names the kinds it has", async () => {
  const echoing = pipeline({
    id: "echoing",
    input: z.object({ task: z.string() }),
    stages: { echo: state({ kind: "ehco", output }) },
    initial: "echo",
    next: { echo: () => done(1) },
  });
  const session = createSession({ env: {}, executors: [{ kind: "echo", act: async () => completed(null) }] });
  onTestFinished(session.close);
  await expect(session.run(echoing, { task: "" })).rejects.toThrow(/kind ehco[\s\S]*echo/);
});

test("its options, kind and output schema are part of the fingerprint", () => {
  const prints = [
    state({ kind: "echo", output, options: { times: 1 } }),
    state({ kind: "echo", output, options: { times: 2 } }),
    state({ kind: "other", output, options: { times: 1 } }),
    state({ kind: "echo", output: z.object({ count: z.string() }), options: { times: 1 } }),
  ].map((echo) => {
    const stages: Record<string, typeof echo> = { echo };
    return pipeline({ id: "p", input: z.object({}), stages, initial: "echo", next: { echo: () => done(1) } }).spec
      .fingerprint;
  });
  expect(new Set(prints).size).toBe(4);
});
