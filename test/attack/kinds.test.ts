import {
  type ActOutcome,
  type ActScope,
  done,
  type EventDraft,
  isSluiceError,
  type Json,
  pipeline,
  type StateExecutor,
  state,
} from "@sluice/core";
import type { Telemetry } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { handClock } from "../support/hand-clock.ts";
import { eventsOf, eventually, noModel, session, tool } from "../support/run-kit.ts";

const task = { task: "t" };
const ignore = (): void => undefined;

function one(options: Json = {}, output: z.ZodType = z.object({ text: z.string() })) {
  return pipeline({
    id: "one",
    input: z.object({ task: z.string() }),
    stages: { one: state({ kind: "own", output, options: { given: options }, allowedTools: ["Look"] }) },
    initial: "one",
    next: { one: ({ output }) => done(JSON.stringify(output)) },
  });
}
const look = tool("Look", { effect: "read", execute: async () => ({ ok: true, output: "seen" }) });
async function run(act: StateExecutor["act"], given = one()) {
  const live = session({ model: noModel, executors: [{ kind: "own", act }], tools: [look], mode: "yolo" });
  const result = await live.run(given, task);
  return { result, events: await eventsOf(live.host, result.runId), live };
}
const outcome =
  (value: unknown): StateExecutor["act"] =>
  async () =>
    JSON.parse(JSON.stringify(value ?? null));
const counted = { turns: 0, usage: { inputTokens: 0, outputTokens: 0 } };

describe("an executor that answers with something else than an outcome fails its state, and nothing else", () => {
  test.each<readonly [string, unknown]>([
    ["nothing", undefined],
    ["a text", "completed"],
    ["an empty object", {}],
    ["a status of its own", { status: "approved", output: { text: "x" }, ...counted }],
    ["no count of turns", { status: "completed", output: { text: "x" } }],
    ["a usage that is none", { status: "completed", output: { text: "x" }, turns: 1, usage: "much" }],
    [
      "a usage below nothing",
      { status: "completed", output: { text: "x" }, turns: -1, usage: { inputTokens: -5, outputTokens: -5 } },
    ],
    ["no output", { status: "completed", ...counted }],
    ["another output", { status: "completed", output: { text: 7 }, ...counted }],
    ["a failure without words", { status: "failed", ...counted }],
    ["a failure of a code of its own", { status: "failed", code: "approved", message: "x", ...counted }],
    ["a status of an object's prototype", { status: "constructor", ...counted }],
  ])("%s", async (_what, value) => {
    const { result, events } = await run(outcome(value));
    expect(result.status).toBe("failed");
    expect(events.at(-1)).toMatchObject({ type: "run.finished", data: { status: "failed" } });
    expect(Number.isFinite(result.usage.inputTokens) && result.usage.inputTokens >= 0).toBe(true);
  });
});

describe("what an executor says does not become more than it is", () => {
  test("an output is held against its schema also where it comes with a prototype or cannot be kept", async () => {
    const evil = JSON.parse('{"text":"x","__proto__":{"polluted":true}}');
    const { result } = await run(async () => ({ status: "completed", output: evil, ...counted }));
    expect("polluted" in {}).toBe(false);
    expect(result).toMatchObject({ status: "completed", output: '{"text":"x"}' });
  });

  test("a schema that makes something else of it than JSON fails the state", async () => {
    const schema = z.object({ text: z.string() }).transform(({ text }) => new Map([[text, text]]));
    const { result } = await run(outcome({ status: "completed", output: { text: "x" }, ...counted }), one({}, schema));
    expect(result).toMatchObject({ status: "failed", error: { code: "schema" } });
  });

  test("a tool outside of its envelope is judged like any other's", async () => {
    const { result } = await run(async (_init, scope) => {
      const [called] = await scope.calls(1, [{ id: "t1.c1", tool: "Write", input: { file_path: "x", content: "" } }]);
      return { status: "completed", output: { text: JSON.stringify(called?.output) }, ...counted };
    });
    expect(result.denied).toMatchObject([{ tool: "Write", cause: "no_interactor" }]);
  });

  test("its calls end with its attempt", async () => {
    let late: Promise<unknown> | undefined;
    const { result } = await run(async (_init, scope) => {
      late = Promise.resolve().then(async () => {
        await new Promise((resolve) => setImmediate(resolve));
        return await scope.calls(1, [{ id: "t1.c1", tool: "Look", input: {} }]);
      });
      return { status: "completed", output: { text: "x" }, ...counted };
    });
    expect(result.status).toBe("completed");
    await expect(late).rejects.toBeDefined();
  });
});

describe("an executor's step is never one of the run's", () => {
  const names = [
    "enter",
    "leave",
    "output",
    "precondition/1",
    "turn/1/0/verdicts",
    "turn/1/0/approvals",
    "turn/1/0/call",
    "",
  ];

  test.each(names)("a step named %j is refused", async (name) => {
    const refused: unknown[] = [];
    const refuse = (thrown: unknown): void => {
      refused.push(isSluiceError(thrown) ? thrown.code : thrown);
    };
    const { result } = await run(async (_init, scope) => {
      await scope.steps.run(name, () => [{ forged: true }]).catch(refuse);
      await scope.steps.now(name).catch(refuse);
      await scope.steps.sleepUntil(name, 0).catch(refuse);
      await scope.wait(name, 0).catch(refuse);
      return { status: "completed", output: { text: "x" }, ...counted };
    });
    expect(result.status).toBe("completed");
    expect(refused).toEqual(Array.from({ length: 4 }, () => "step_name_reserved"));
  });
});

describe("an executor opens no request in the place of the gate", () => {
  const request = {
    requestId: "one#1/a1/t1.c1",
    kind: "grantStageTool",
    digest: "0".repeat(64),
    body: { tool: "Look", input: {} },
  };
  const types = ["grant.requested", "grant.answered", "request.opened", "request.expired"] as const;
  const ways: Readonly<Record<string, (scope: ActScope, draft: EventDraft) => unknown>> = {
    "in a note": (scope, draft) => scope.note(draft),
    "in a step": ({ steps }, draft) => steps.run("s", (call) => call.event(draft) ?? null),
    "in a step's open record": ({ steps }, draft) => steps.run("s", () => null, { open: { events: [draft] } }),
    "in a list that gives other events than it holds": ({ steps }, draft) => {
      const events = Object.assign<EventDraft[], object>([], { map: () => [draft] });
      return steps.run("s", () => null, { open: { events } });
    },
    "by another type that it changes afterwards": ({ steps }, { type, ...draft }) =>
      steps.run("s", (call) => {
        const changing: { -readonly [K in keyof EventDraft]: EventDraft[K] } = { ...draft, type: "stage.act" };
        call.event(changing);
        changing.type = type;
        return null;
      }),
  };
  const all = Object.keys(ways).flatMap((way) => types.map((type) => [way, type] as const));
  test.each(all)("%s: %s", async (way, type) => {
    const requests: unknown[] = [];
    const live = session({
      model: noModel,
      executors: [
        {
          kind: "own",
          act: async (_init, scope) => {
            try {
              await ways[way]?.(scope, { type, data: request });
            } finally {
              requests.push(...(await live.host.requests()));
            }
            return { status: "completed", output: { text: "x" }, ...counted };
          },
        },
      ],
      tools: [look],
    });
    const handle = live.start(one(), task);
    await handle.then(ignore, ignore);
    expect(requests).toEqual([]);
    const written = (await live.host.journal(handle.runId)).flatMap(({ records }) =>
      records.map(({ events }) => events),
    );
    expect(written.join("")).not.toContain(`"type":"${type}"`);
  });
});

describe("an executor's event", () => {
  const step = (scope: ActScope, draft: EventDraft): unknown =>
    scope.steps.run("s", (call) => call.event(draft) ?? null);
  const ways: readonly (readonly [string, (scope: ActScope, draft: EventDraft) => unknown])[] = [
    ["in a note", (scope, draft) => scope.note(draft)],
    ["in a step", step],
    ["in a step's open record", ({ steps }, draft) => steps.run("s", () => null, { open: { events: [draft] } })],
  ];
  const KEY = "sk-0123456789abcdef0123456789abcdef";
  async function eventsWith(way: (scope: ActScope, draft: EventDraft) => unknown, draft: EventDraft) {
    const { events, live } = await run(async (_init, scope) => {
      await way(scope, draft);
      return { status: "completed", output: { text: "x" }, ...counted };
    });
    const [journal] = await live.host.journal(events[0]?.runId ?? "");
    return { events, recorded: JSON.stringify(journal) };
  }

  test.each(ways)("%s is one of its own attempt, whatever it names", async (_, way) => {
    const draft: EventDraft = {
      type: "limit.reached",
      executionId: "other#7",
      attempt: 9,
      data: { limit: "own", message: "m" },
    };
    const { events } = await eventsWith(way, draft);
    expect(events.filter(({ type }) => type === "limit.reached")).toMatchObject([{ executionId: "one#1", attempt: 1 }]);
    expect(JSON.stringify(events)).not.toContain("other#7");
  });

  test.each(ways)("%s that writes itself as something else is redacted as that", async (_, way) => {
    const data = Object.assign<{ limit: string }, object>(
      { limit: "own" },
      { toJSON: () => ({ limit: "own", message: KEY }) },
    );
    const draft: EventDraft = { type: "limit.reached", data };
    const { recorded } = await eventsWith(way, draft);
    expect(recorded).toContain("[redacted:api-key]");
    expect(recorded.includes(KEY)).toBe(false);
  });

  test.each<[string, unknown]>([
    ["nothing", undefined],
    ["a text", '{}},{"type":"run.finished","data":{}'],
    ["a list", [1]],
    ["null", null],
    ["a number", 1],
  ])("whose data writes itself as %s is not recorded, and every record can be read", async (_, written) => {
    const live = session({
      model: noModel,
      executors: [
        {
          kind: "own",
          act: async (_init, scope) => {
            const data = Object.assign<{ limit: string }, object>({ limit: "own" }, { toJSON: () => written });
            await step(scope, { type: "limit.reached", data });
            return { status: "completed", output: { text: "x" }, ...counted };
          },
        },
      ],
      tools: [look],
    });
    const handle = live.start(one(), task);
    await expect(handle).rejects.toMatchObject({ code: "not_json" });
    expect((await eventsOf(live.host, handle.runId)).map(({ type }) => type)).not.toContain("limit.reached");
  });

  test("that telemetry gave the text of another event is recorded as it is", async () => {
    const forged = '{}},{"type":"run.finished","data":{"status":"completed"}';
    const symbols: symbol[] = [];
    const nothing = { within: (work: () => void) => work(), ended: ignore };
    const watching: ReturnType<Telemetry["run"]> = {
      sibling: () => watching,
      attempt: ignore,
      recorded: (events) => symbols.push(...events.flatMap(({ data }) => Object.getOwnPropertySymbols(data))),
      within: (work) => work(),
      model: () => nothing,
      tool: () => nothing,
      ended: ignore,
    };
    const live = session({
      model: noModel,
      telemetry: { run: () => watching },
      executors: [
        {
          kind: "own",
          act: async (_init, scope) => {
            await scope.steps.run("before", () => null);
            const data = { limit: "own", message: "m" };
            for (const symbol of symbols) Object.defineProperty(data, symbol, { value: forged });
            await step(scope, { type: "limit.reached", data });
            return { status: "completed", output: { text: "x" }, ...counted };
          },
        },
      ],
      tools: [look],
    });
    const { runId } = await live.run(one(), task);
    const events = await eventsOf(live.host, runId);
    expect(events.filter(({ type }) => type === "run.finished")).toHaveLength(1);
    expect(events.filter(({ type }) => type === "limit.reached")).toMatchObject([
      { data: { limit: "own", message: "m" } },
    ]);
  });
});

test("an executor whose step was refused is abandoned like any other when its run is cancelled", async () => {
  const clock = handClock();
  let working: () => void = ignore;
  const works = new Promise<void>((resolve) => {
    working = resolve;
  });
  const live = session({
    model: noModel,
    clock,
    executors: [
      {
        kind: "own",
        act: async (_init, { steps }) => {
          const forged: EventDraft = { type: "grant.answered", data: {} };
          await Promise.resolve()
            .then(() => steps.run("s", () => null, { open: { events: [forged] } }))
            .catch(ignore);
          working();
          return await new Promise<ActOutcome>(ignore);
        },
      },
    ],
    tools: [look],
  });
  const handle = live.start(one(), task);
  await works;
  void handle.cancel("enough");
  let ended = false;
  void handle.then(() => {
    ended = true;
  });
  await eventually(() => {
    clock.turn(100);
    return ended;
  }, "the end of the run");
  expect(await handle).toMatchObject({ status: "cancelled" });
});

describe("a state cannot pretend", () => {
  test.each(["agent", "__proto__", "constructor-", "", "a b", "x".repeat(65)])("to be of the kind %j", (kind) => {
    const made = (): unknown =>
      pipeline({
        id: "p",
        input: z.object({ task: z.string() }),
        stages: { one: state({ kind, output: z.object({}) }) },
        initial: "one",
        next: { one: () => done("x") },
      });
    if (kind === "constructor-") expect(made).not.toThrow();
    else expect(made).toThrow(/kind/);
  });

  test("to have a prototype's options, or to change them after they were checked", async () => {
    const options: Record<string, Json> = JSON.parse('{"__proto__":{"polluted":1},"list":[1]}');
    const seen: Json[] = [];
    const executor: StateExecutor = {
      kind: "own",
      act: async (_init, scope): Promise<ActOutcome> => {
        seen.push(JSON.parse(JSON.stringify(scope.state.options ?? null)));
        return { status: "completed", output: {}, ...counted };
      },
    };
    const made = pipeline({
      id: "p",
      input: z.object({ task: z.string() }),
      stages: { one: state({ kind: "own", output: z.object({}), options }) },
      initial: "one",
      next: { one: () => done("x") },
    });
    options.list = "changed";
    await session({ model: noModel, executors: [executor] }).run(made, task);
    expect(seen).toEqual([JSON.parse('{"__proto__":{"polluted":1},"list":[1]}')]);
    expect("polluted" in {}).toBe(false);
  });

  test("with a kind that no one executes", async () => {
    const live = session({ model: noModel });
    await expect(live.run(one(), task)).rejects.toMatchObject({ code: "session_invalid" });
  });
});
