import { done, forEach, pipeline, type StageOptions, stage } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { failingWorld, followed, START } from "../support/outage.ts";
import { completed, dataOf, eventsOf, json, session, tool, work } from "../support/run-kit.ts";
import type { RecordedRequest, ServerReply } from "../support/sse-server.ts";

const input = z.object({ task: z.string() });
const task = { task: "Find the bug." };
const schema = z.object({ summary: z.string() });
const finish: ServerReply = { calls: [{ name: "finish", input: { summary: "found it" } }] };
const look = (at: number): ServerReply => ({ calls: [{ name: "Look", input: { at } }] });
const down: ServerReply = { status: 503, error: { message: "no upstream" } };

type Options = Partial<StageOptions<Record<never, never>, z.infer<typeof schema>, undefined>>;

function worker(options: Options = {}) {
  return stage({
    prompt: "You find bugs.",
    allowedTools: ["Look"],
    completionTool: "finish",
    completionSchema: schema,
    turnCap: 9,
    ...options,
  });
}

function one(options: Options = {}) {
  return pipeline({
    id: "one",
    input,
    stages: { work: worker(options) },
    initial: "work",
    next: { work: ({ output }) => done(output) },
  });
}

/** Two calls of Look, then the end. */
const story = (answered: number): ServerReply => (answered < 2 ? look(answered) : finish);

describe.each(["anthropic", "openai"] as const)("a stage over %s", (provider) => {
  test("survives an outage of a minute in its middle", async () => {
    const back = START + 60_000;
    const world = await failingWorld(provider, ({ answered, now }) =>
      answered === 1 && now < back ? down : story(answered),
    );
    const live = world.process();
    const result = await followed(world.clock, live.start(one(), task));
    expect(result).toMatchObject({ status: "completed", output: { summary: "found it" }, stages: [{ turns: 3 }] });
    expect(world.statuses).toEqual([200, 503, 503, 503, 503, 503, 503, 200, 200]);
    expect(world.ran).toEqual([{ at: 0 }, { at: 1 }]);
    expect(world.clock.now()).toBe(START + 63_000);
  });

  test("is suspended by a longer one, and continues in its middle when the run is resumed", async () => {
    let isDown = true;
    const world = await failingWorld(provider, ({ answered }) => (answered === 1 && isDown ? down : story(answered)));
    const handle = world.process().start(one(), task);
    const suspended = await followed(world.clock, handle);
    expect(suspended).toMatchObject({
      status: "suspended",
      reason: "provider",
      suspended: { reason: "provider", code: "overloaded", message: expect.stringContaining("HTTP 503") },
    });
    expect(world.clock.now()).toBe(START + 300_000);
    expect(await world.host().get(handle.runId)).toMatchObject({
      status: "suspended",
      suspended: "provider",
      faults: [{ executionId: "work#1", code: "overloaded" }],
    });
    const before = world.statuses.length;
    isDown = false;
    const live = world.process();
    const result = await live.resume(one(), handle.runId);
    expect(result).toMatchObject({ status: "completed", stages: [{ turns: 3, attempts: 1 }] });
    expect(world.statuses.slice(before)).toEqual([200, 200]);
    expect(world.ran).toEqual([{ at: 0 }, { at: 1 }]);
    const events = await eventsOf(live.host, handle.runId);
    expect(dataOf(events, "execution.suspended")).toMatchObject([{ reason: "provider", code: "overloaded" }]);
    expect(dataOf(events, "execution.continued")).toEqual([{ by: "resume" }]);
    expect(dataOf(events, "run.suspended")).toMatchObject([
      { reason: "provider", code: "overloaded", faults: [{ code: "overloaded" }] },
    ]);
  });

  test("counts its tries from the first after each resume", async () => {
    const world = await failingWorld(provider, () => down);
    const retry = { maxAttempts: 2, initialMs: 500 };
    const first = world.process({ retry }).start(one(), task);
    await followed(world.clock, first);
    expect(world.statuses).toHaveLength(2);
    for (const tries of [4, 6]) {
      const result = await followed(world.clock, world.process({ retry }).resume(one(), first.runId));
      expect(result).toMatchObject({ status: "suspended", reason: "provider" });
      expect(world.statuses).toHaveLength(tries);
    }
  });
});

describe("a fan-out of five", () => {
  const parts = ["a", "b", "c", "d", "e"];
  const review = stage({
    inputSchema: z.object({ part: z.string() }),
    prompt: "You review part-{{ctx.input.part}}.",
    allowedTools: ["Look"],
    completionTool: "finish",
    completionSchema: schema,
    turnCap: 9,
  });
  const five = pipeline({
    id: "five",
    input,
    stages: {
      list: work({ act: () => completed(null) }),
      review,
      join: work({ act: (scope) => completed(json(scope.ctx.items)) }),
    },
    initial: "list",
    next: {
      list: () =>
        forEach(
          "review",
          parts.map((part) => ({ part })),
          { join: "join", key: ({ part }) => part, maxParallel: 2, onFailure: "cancel" },
        ),
      join: ({ output }) => done(output),
    },
  });
  const partOf = ({ body }: RecordedRequest): string => /You review part-(\w)/.exec(JSON.stringify(body))?.[1] ?? "";

  /** Each part looks once and then ends; `failing` says which requests fail, and `held` which take long. */
  async function reviews(
    failing: (part: string, number: number) => ServerReply | undefined,
    held: (part: string, number: number) => Promise<unknown> | undefined = () => undefined,
  ) {
    const answered = new Map<string, number>();
    const requests: string[] = [];
    const world = await failingWorld("openai", async ({ request }) => {
      const part = partOf(request);
      const number = (answered.get(part) ?? 0) + 1;
      const failure = failing(part, number);
      requests.push(`${part}${number}${failure === undefined ? "" : " failed"}`);
      await held(part, number);
      if (failure !== undefined) return failure;
      answered.set(part, number);
      return number === 1
        ? { calls: [{ name: "Look", input: { part } }] }
        : { calls: [{ name: "finish", input: { summary: part } }] };
    });
    return { world, requests };
  }

  test("is suspended when nothing else in it can work, and repeats nothing that has ended", async () => {
    let isDown = true;
    let afterOutage = (): void => undefined;
    const outage = new Promise<void>((resolve) => {
      afterOutage = resolve;
    });
    const { world, requests } = await reviews(
      (part, number) => (part === "c" && number === 2 && isDown ? down : undefined),
      (part, number) => (part === "e" && number === 2 && isDown ? outage : undefined),
    );
    const live = world.process();
    const handle = live.start(five, task);
    const following = followed(world.clock, handle);
    const suspensions: string[] = [];
    for await (const { type, runId } of handle.events) {
      if (type !== "execution.suspended") continue;
      suspensions.push(runId);
      // The last call of another part is still open: it is not aborted, and the run is not suspended before its end.
      expect((await live.host.get(handle.runId))?.status).toBe("running");
      afterOutage();
    }
    const result = await following;
    const child = `${handle.runId}/fan-1/c`;
    expect(suspensions).toEqual([child]);
    expect(result).toMatchObject({
      status: "suspended",
      suspended: { reason: "provider", code: "overloaded", faults: [{ runId: child, executionId: "review#1" }] },
    });
    expect(requests.filter((request) => !request.startsWith("c")).sort()).toEqual([
      "a1",
      "a2",
      "b1",
      "b2",
      "d1",
      "d2",
      "e1",
      "e2",
    ]);
    const before = requests.length;
    isDown = false;
    const resumed = await world.process().resume(five, handle.runId);
    expect(resumed).toMatchObject({ status: "completed" });
    expect(requests.slice(before)).toEqual(["c2"]);
    expect(world.ran).toHaveLength(5);
  });

  test("names all faults, and continues all of them", async () => {
    let isDown = true;
    const { world, requests } = await reviews((part, number) => {
      if (!isDown || number !== 2) return undefined;
      if (part === "b") return { status: 401, error: { message: "wrong key" } };
      return part === "d" ? down : undefined;
    });
    const handle = world.process().start(five, task);
    const result = await followed(world.clock, handle);
    if (result.status !== "suspended") throw new Error(JSON.stringify(result));
    const faults = result.suspended.faults ?? [];
    expect(faults.map(({ runId, code }) => `${runId.slice(-1)} ${code}`).sort()).toEqual([
      "b unauthorized",
      "d overloaded",
    ]);
    const before = requests.length;
    isDown = false;
    expect(await world.process().resume(five, handle.runId)).toMatchObject({ status: "completed" });
    expect(requests.slice(before).sort()).toEqual(["b2", "d2"]);
  });

  test("cancels a part that waits when another one fails for good", async () => {
    const { world } = await reviews((part, number) => {
      if (part === "a" && number === 2) return { status: 401, error: { message: "wrong key" } };
      return part === "e" ? { status: 400, error: { message: "no such thing" } } : undefined;
    });
    const result = await followed(world.clock, world.process().start(five, task));
    expect(result).toMatchObject({ status: "failed", error: { code: "fan_out" } });
  });
});

test("a key that was refused is replaced, and the run continues with the new one", async () => {
  const good = "sk-new";
  const keyOf = ({ headers }: RecordedRequest): string => headers.authorization ?? "";
  const world = await failingWorld("openai", ({ request, answered }) =>
    answered >= 1 && keyOf(request) !== `Bearer ${good}`
      ? { status: 401, error: { message: "Incorrect API key provided.", code: "invalid_api_key" } }
      : story(answered),
  );
  const handle = world.process().start(one(), task);
  const suspended = await followed(world.clock, handle);
  expect(suspended).toMatchObject({ status: "suspended", suspended: { code: "unauthorized" } });
  // Nothing is tried again with a key that is refused.
  expect(world.statuses).toEqual([200, 401]);
  const still = await world.process().resume(one(), handle.runId);
  expect(still).toMatchObject({ status: "suspended", suspended: { code: "unauthorized" } });
  const env = { ...world.env, OPENAI_API_KEY: good };
  const result = await world.process({ env }).resume(one(), handle.runId);
  expect(result).toMatchObject({ status: "completed", stages: [{ turns: 3 }] });
  expect(world.ran).toEqual([{ at: 0 }, { at: 1 }]);
});

test("a quota with a time at which it ends suspends the run until then, and makes it due", async () => {
  const world = await failingWorld("openai", ({ answered, now }) =>
    answered === 1 && now < START + 11_520_000
      ? {
          status: 429,
          error: { code: "insufficient_quota", message: "You are out of quota. Please try again in 3h12m." },
        }
      : story(answered),
  );
  const handle = world.process().start(one(), task);
  const retryAt = START + 11_520_000;
  expect(await handle).toMatchObject({
    status: "suspended",
    wakeAt: retryAt,
    suspended: { reason: "provider", code: "quota_exhausted", retryAt },
  });
  const host = world.host();
  expect(await host.due(10)).toEqual({ runs: [], next: retryAt });
  world.clock.turn(11_520_000);
  expect(await host.due(10)).toMatchObject({ runs: [handle.runId] });
  expect(await world.process().resume(one(), handle.runId)).toMatchObject({ status: "completed" });
  expect(world.statuses).toEqual([200, 429, 200, 200]);
});

test("a wait that does not fit into the time of the retries is not begun: the run is due when the provider says", async () => {
  const world = await failingWorld("openai", ({ answered }) =>
    answered === 1 ? { refuse: "rate", retryAfterSeconds: 1_800 } : story(answered),
  );
  const result = await world.process().start(one(), task);
  expect(result).toMatchObject({
    status: "suspended",
    suspended: { code: "rate_limited", retryAt: START + 1_800_000 },
  });
  expect(world.clock.now()).toBe(START);
});

test.each([
  ["400", { status: 400, error: { message: "no" } }, "bad_request"],
  ["404", { status: 404, error: { message: "no such model" } }, "not_found"],
] as const)("%s fails the stage, since no wait ends it", async (_what, reply, code) => {
  const world = await failingWorld("openai", () => reply);
  const result = await world.process().start(one(), task);
  expect(result).toMatchObject({ status: "failed", stages: [{ code: "model", detail: { code } }] });
});

describe("onProviderFault", () => {
  test.each([
    ["of the stage", { onProviderFault: "fail" }, {}, {}, "failed"],
    ["of the stage, over the pipeline's", { onProviderFault: "suspend" }, { onProviderFault: "fail" }, {}, "suspended"],
    ["of the pipeline, over the session's", {}, { onProviderFault: "fail" }, {}, "failed"],
    ["of the session", {}, {}, { onProviderFault: "fail" }, "failed"],
  ] as const)("%s counts", async (_whose, own, common, options, status) => {
    const world = await failingWorld("openai", () => ({ status: 401, error: { message: "no" } }));
    const pipe = pipeline({
      id: "one",
      input,
      stages: { work: worker(own) },
      initial: "work",
      ...common,
      next: { work: ({ output }) => done(output) },
    });
    expect((await world.process(options).start(pipe, task)).status).toBe(status);
  });

  test("is fail without a store on disk, where nothing could resume the run", async () => {
    const world = await failingWorld("openai", () => ({ status: 401, error: { message: "no" } }));
    const live = session({ model: "openai/gpt-5", env: world.env, clock: world.clock, tools: [tool("Look")] });
    expect((await live.start(one(), task)).status).toBe("failed");
  });

  test("may be another one when the run is resumed, and what is recorded stays", async () => {
    const world = await failingWorld("openai", () => ({ status: 401, error: { message: "no" } }));
    const handle = world.process().start(one(), task);
    expect((await handle).status).toBe("suspended");
    const failed = await world.process({ onProviderFault: "fail" }).resume(one(), handle.runId);
    expect(failed).toMatchObject({ status: "failed", error: { code: "model" } });
    expect(world.statuses).toEqual([401, 401]);
  });
});

describe("a fallback model", () => {
  const fallbackModels = ["openai/gpt-5-mini"];
  const modelOf = ({ body }: RecordedRequest): string => String(body.model);

  test("takes over when the retries of the first one are used up, also for the turns that follow", async () => {
    const asked: string[] = [];
    const world = await failingWorld("openai", ({ request, answered }) => {
      asked.push(modelOf(request));
      return answered === 1 && modelOf(request) === "gpt-5"
        ? { status: 500, error: { message: "no" } }
        : story(answered);
    });
    const live = world.process();
    const pipe = one({ fallbackModels, retry: { maxAttempts: 2 } });
    const handle = live.start(pipe, task);
    expect(await followed(world.clock, handle)).toMatchObject({ status: "completed", stages: [{ turns: 3 }] });
    expect(asked).toEqual(["gpt-5", "gpt-5", "gpt-5", "gpt-5-mini", "gpt-5-mini"]);
    const events = await eventsOf(live.host, handle.runId);
    expect(dataOf(events, "model.fallback")).toMatchObject([
      { turn: 2, try: 2, from: "openai/gpt-5", to: "openai/gpt-5-mini", code: "server_error" },
    ]);
    expect(dataOf(events, "turn.started").map(({ model }) => model)).toEqual([
      "openai/gpt-5",
      "openai/gpt-5",
      "openai/gpt-5",
      "openai/gpt-5-mini",
      "openai/gpt-5-mini",
    ]);
  });

  test.each([
    ["an overloaded model", { status: 529, error: { message: "busy" } }],
    ["a refused key", { status: 401, error: { message: "no" } }],
    ["a model that does not exist", { status: 404, error: { message: "no" } }],
  ])("takes the place of %s at once", async (_what, reply) => {
    const world = await failingWorld("openai", ({ request, answered }) =>
      modelOf(request) === "gpt-5" ? reply : story(answered),
    );
    expect(await world.process().start(one({ fallbackModels }), task)).toMatchObject({ status: "completed" });
    expect(world.clock.now()).toBe(START);
  });

  test("that fails too suspends the run, which continues with the first model", async () => {
    let isDown = true;
    const asked: string[] = [];
    const world = await failingWorld("openai", ({ request, answered }) => {
      asked.push(modelOf(request));
      return isDown ? { status: 402, error: { message: "pay" } } : story(answered);
    });
    const handle = world.process().start(one({ fallbackModels }), task);
    expect(await handle).toMatchObject({
      status: "suspended",
      suspended: { code: "payment_required", faults: [{ detail: { model: "openai/gpt-5-mini" } }] },
    });
    isDown = false;
    expect(await world.process().resume(one({ fallbackModels }), handle.runId)).toMatchObject({ status: "completed" });
    expect(asked).toEqual(["gpt-5", "gpt-5-mini", "gpt-5", "gpt-5", "gpt-5"]);
  });

  test("needs a price under a cost cap", async () => {
    const world = await failingWorld("openai", () => finish);
    const pipe = one({ fallbackModels: ["openai/unheard-of"], limits: { maxCostUsd: 1 } });
    await expect(world.process().start(pipe, task)).rejects.toMatchObject({
      code: "price_unknown",
      detail: { models: ["openai/unheard-of"] },
    });
  });
});
