import {
  type AllowedTool,
  type Answer,
  done,
  field,
  type GuardHook,
  type Interactor,
  type Json,
  type PersonRequest,
  pipeline,
  type State,
} from "@sluice/core";
import { digestOf } from "@sluice/core/runtime";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  caller,
  completed,
  dataOf,
  eventsOf,
  eventually,
  noModel,
  quiet,
  session,
  type TestSessionOptions,
  tool,
  twoHosts,
  work,
} from "../support/run-kit.ts";

const input = z.object({ task: z.string() });
const task = { task: "t" };
const never = new Promise<never>(() => undefined);
/** Of the arguments most calls here have. */
const emptyDigest = digestOf({});

function one(state: State<unknown, unknown>, onCall?: GuardHook) {
  return pipeline({
    id: "one",
    input,
    stages: { one: state },
    initial: "one",
    next: { one: ({ output }) => done(output) },
    ...(onCall === undefined ? {} : { onCall }),
  });
}
/** A state that makes these calls, one a turn, and completes with what came back. */
function calling(
  calls: readonly (readonly [tool: string, input?: Json])[],
  allowedTools?: readonly AllowedTool[],
  onCall?: GuardHook,
) {
  return work({
    ...(allowedTools === undefined ? {} : { allowedTools }),
    ...(onCall === undefined ? {} : { onCall }),
    act: async (scope) => {
      const call = caller(scope);
      const results: Json[] = [];
      for (const [name, given] of calls) results.push(await call(name, given));
      return completed(results);
    },
  });
}
/** An interactor that answers every request the same way, and remembers them. */
function interactor(
  answer: Answer | ((request: PersonRequest) => Answer | Promise<Answer>),
  name = "me",
): Interactor & { asked: PersonRequest[] } {
  const asked: PersonRequest[] = [];
  return {
    name,
    asked,
    answer: async (request) => {
      asked.push(request);
      return typeof answer === "function" ? await answer(request) : answer;
    },
  };
}
/** Tools that leave a trace: Note writes, Peek reads. */
function traced() {
  const ran: Json[] = [];
  const execute = (name: string) => async (given: Json) => {
    ran.push([name, given]);
    return { ok: true, output: `${name} ran` };
  };
  return {
    ran,
    tools: [tool("Note", { execute: execute("Note") }), tool("Peek", { effect: "read", execute: execute("Peek") })],
  };
}

describe("the three modes", () => {
  const modes = ["ask", "allowlist", "yolo"] as const;

  test.each(modes)(
    "in mode %s the envelope decides where there is one: inside runs unasked, outside asks",
    async (mode) => {
      const { ran, tools } = traced();
      const person = interactor({ kind: "deny" });
      const live = session({ model: noModel, mode, allow: ["Note", "Peek"], tools, interactors: [person] });
      const result = await live.run(one(calling([["Note"], ["Peek"]], ["Note"])), task);
      expect(ran).toEqual([["Note", {}]]);
      expect(person.asked.map(({ body }) => body.tool)).toEqual(["Peek"]);
      expect(result).toMatchObject({
        output: ["Note ran", { code: "tool_call_denied", cause: "denied", allowedTools: ["Note"] }],
      });
    },
  );

  test.each(modes)(
    "in mode %s and headless, what is outside an envelope is denied and the run goes on",
    async (mode) => {
      const { ran, tools } = traced();
      const live = session({ model: noModel, mode, allow: ["Note"], tools });
      const result = await live.run(one(calling([["Note"], ["Peek"]], [])), task);
      expect(ran).toEqual([]);
      expect(result).toMatchObject({
        status: "completed",
        denied: [
          { tool: "Note", cause: "no_interactor", callId: "t1.c0", executionId: "one#1" },
          { tool: "Peek", cause: "no_interactor", callId: "t2.c0" },
        ],
      });
      const events = await eventsOf(live.host, result.runId);
      expect(dataOf(events, "grant.requested")).toHaveLength(2);
      expect(dataOf(events, "grant.answered")).toMatchObject([{ answer: "none" }, { answer: "none" }]);
      expect(dataOf(events, "call.started")).toEqual([]);
    },
  );

  test("without an envelope: yolo runs everything, but no hard limit is lifted", async () => {
    const { ran, tools } = traced();
    const out = tool("Out", { subjects: () => [{ kind: "path", real: "/etc/passwd", access: "read" }] });
    const result = await session({ model: noModel, mode: "yolo", tools: [...tools, out] }).run(
      one(calling([["Note"], ["Out"]])),
      task,
    );
    expect(ran).toEqual([["Note", {}]]);
    expect(result).toMatchObject({ output: ["Note ran", { code: "tool_call_denied", cause: "limit" }] });
  });

  test("without an envelope: ask puts every call to a person, save the built-in ones that only read", async () => {
    const { ran, tools } = traced();
    const person = interactor({ kind: "approve" });
    const live = session({ model: noModel, mode: "ask", tools, interactors: [person] });
    const result = await live.run(one(calling([["Note"], ["Peek"], ["Glob", { pattern: "*.nothing" }]])), task);
    expect(person.asked.map(({ body }) => body.tool)).toEqual(["Note", "Peek"]);
    expect(ran).toHaveLength(2);
    expect(result.status).toBe("completed");
  });

  test("without an envelope: allowlist asks no one, and refuses what is not listed", async () => {
    const { ran, tools } = traced();
    const person = interactor({ kind: "approve" });
    const live = session({ model: noModel, mode: "allowlist", allow: ["Peek"], tools, interactors: [person] });
    const result = await live.run(one(calling([["Note"], ["Peek"]])), task);
    expect(ran).toEqual([["Peek", {}]]);
    expect(person.asked).toEqual([]);
    expect(result).toMatchObject({
      output: [{ code: "tool_call_denied", cause: "mode" }, "Peek ran"],
      denied: [{ cause: "mode" }],
    });
  });

  test("what decided is in the events: the envelope, the grant or the mode", async () => {
    const { tools } = traced();
    const live = session({ model: noModel, mode: "yolo", tools, interactors: [interactor({ kind: "approve" })] });
    const byOf = async (state: State<unknown, unknown>) => {
      const { runId } = await live.run(one(state), task);
      return dataOf(await eventsOf(live.host, runId), "call.decided").map(({ by }) => by);
    };
    expect(await byOf(calling([["Note"]], ["Note"]))).toEqual(["envelope"]);
    expect(await byOf(calling([["Note"]], []))).toEqual(["grant"]);
    expect(await byOf(calling([["Note"]]))).toEqual(["mode"]);
  });
});

describe("a grant", () => {
  test("tells the person exactly what would run, and covers that one proposal", async () => {
    const { ran, tools } = traced();
    const person = interactor({ kind: "approve" });
    const live = session({ model: noModel, tools, interactors: [person] });
    const result = await live.run(
      one(
        calling(
          [
            ["Note", { to: "a" }],
            ["Note", { to: "a" }],
            ["Note", { to: "b" }],
          ],
          ["Peek"],
        ),
      ),
      task,
    );
    expect(ran).toEqual([
      ["Note", { to: "a" }],
      ["Note", { to: "a" }],
      ["Note", { to: "b" }],
    ]);
    expect(person.asked).toHaveLength(3);
    const events = await eventsOf(live.host, result.runId);
    const decided = dataOf(events, "call.decided");
    expect(person.asked[0]).toMatchObject({
      kind: "grantStageTool",
      requestId: "one#1/a1/t1.c0",
      digest: decided[0]?.argsDigest,
      body: {
        executionId: "one#1",
        attempt: 1,
        proposalId: "t1.c0",
        tool: "Note",
        input: { to: "a" },
        argsSummary: 'Note(to: "a")',
        why: expect.stringContaining("Peek"),
      },
    });
    expect(dataOf(events, "grant.consumed").map(({ callId }) => callId)).toEqual(["t1.c0", "t2.c0", "t3.c0"]);
    const order = events
      .map(({ type }) => type)
      .filter((type) => type.startsWith("grant.") || type.startsWith("call."));
    expect(order.slice(0, 6)).toEqual([
      "grant.requested",
      "grant.answered",
      "call.decided",
      "grant.consumed",
      "call.started",
      "call.finished",
    ]);
  });

  test("that is denied goes back as a typed denial with the reason, and the stage continues", async () => {
    const { ran, tools } = traced();
    const live = session({
      model: noModel,
      tools,
      interactors: [interactor({ kind: "deny", reason: "not on a Friday" })],
    });
    const result = await live.run(one(calling([["Note"], ["Peek"]], ["Peek"])), task);
    expect(ran).toEqual([["Peek", {}]]);
    expect(result).toMatchObject({
      output: [
        {
          code: "tool_call_denied",
          cause: "denied",
          tool: "Note",
          reason: expect.stringContaining("not on a Friday"),
          allowedTools: ["Peek"],
        },
        "Peek ran",
      ],
      denied: [{ cause: "denied" }],
    });
  });

  test("that is put off is denied for now, and says so", async () => {
    const { tools } = traced();
    const live = session({ model: noModel, tools, interactors: [interactor({ kind: "defer" })] });
    expect(await live.run(one(calling([["Note"]], [])), task)).toMatchObject({ output: [{ cause: "deferred" }] });
  });

  test("that is put off while requests wait stays open for someone else", async () => {
    const { ran, tools } = traced();
    const person = interactor({ kind: "defer" });
    const live = session({ model: noModel, tools, wait: true, interactors: [person] });
    const handle = live.start(one(calling([["Note"]], [])), task);
    await eventually(() => person.asked.length === 1);
    await quiet();
    const [request] = await live.host.requests();
    expect(request?.requestId).toBe("one#1/a1/t1.c0");
    const payload = { kind: "approve", digest: request?.digest ?? "" };
    expect(await live.host.signal(handle.runId, { name: "request/one#1/a1/t1.c0", payload, by: "other" })).toBe(
      "accepted",
    );
    expect(await handle).toMatchObject({ output: ["Note ran"] });
    expect(ran).toHaveLength(1);
  });

  test("that no one gives in time is denied with cause timeout; a later answer is refused", async () => {
    const { ran, tools } = traced();
    const live = session({ model: noModel, tools, requestTimeoutMs: 30_000, interactors: [interactor(() => never)] });
    const handle = live.start(one(calling([["Note"]], [])), task);
    await eventually(() => live.clock.waiting() === 1);
    const [request] = await live.host.requests();
    live.clock.turn(30_000);
    expect(await handle).toMatchObject({ output: [{ cause: "timeout" }], denied: [{ cause: "timeout" }] });
    const late = { kind: "approve", digest: request?.digest ?? "" };
    expect(
      await live.host.signal(handle.runId, { name: `request/${request?.requestId}`, payload: late, by: "me" }),
    ).toBe("unknown");
    expect(ran).toEqual([]);
  });

  test.each([
    ["names another digest", { kind: "approve", digest: "0".repeat(64) }],
    ["names no digest", { kind: "approve" }],
    ["is no object", "approve"],
    ["approves in other words", { kind: "Approve", digest: emptyDigest }],
    ["has no kind", { digest: emptyDigest }],
    ["is a value", { kind: "value", value: true, digest: emptyDigest }],
    ["is for nobody", { kind: "none", digest: emptyDigest }],
  ])("is not given by an answer from elsewhere that %s", async (_what, payload: Json) => {
    const { ran, tools } = traced();
    const live = session({ model: noModel, tools, wait: true });
    const handle = live.start(one(calling([["Note"]], [])), task);
    await eventually(async () => (await live.host.requests()).length === 1);
    expect(await live.host.signal(handle.runId, { name: "request/one#1/a1/t1.c0", payload, by: "a program" })).toBe(
      "accepted",
    );
    expect(await handle).toMatchObject({ output: [{ code: "tool_call_denied" }] });
    expect(ran).toEqual([]);
    const events = await eventsOf(live.host, handle.runId);
    expect(dataOf(events, "grant.consumed")).toEqual([]);
    expect(dataOf(events, "grant.expired")).toEqual([]);
  });

  test("with several people: the first answer wins, and the request to the others is withdrawn", async () => {
    const { tools } = traced();
    const withdrawn: string[] = [];
    const slow: Interactor = {
      name: "slow",
      answer: (_request, signal) =>
        new Promise((resolve) =>
          signal.addEventListener("abort", () => {
            withdrawn.push("slow");
            resolve({ kind: "approve" });
          }),
        ),
    };
    const live = session({ model: noModel, tools, interactors: [slow, interactor({ kind: "deny" }, "fast")] });
    const result = await live.run(one(calling([["Note"]], [])), task);
    expect(result).toMatchObject({ output: [{ cause: "denied", reason: expect.stringContaining("fast") }] });
    expect(withdrawn).toEqual(["slow"]);
  });

  test("is not lost when one of those asked crashes; the failure is reported", async () => {
    const { tools } = traced();
    const faults: string[] = [];
    const broken: Interactor = { name: "broken", answer: () => Promise.reject(new Error("no terminal")) };
    const live = session({
      model: noModel,
      tools,
      onFault: ({ by, message }) => void faults.push(`${by}: ${message}`),
      interactors: [broken, interactor({ kind: "approve" })],
    });
    expect(await live.run(one(calling([["Note"]], [])), task)).toMatchObject({ output: ["Note ran"] });
    expect(faults).toEqual(["broken: no terminal"]);
  });

  test("is asked for one at a time, in the order of the calls, before any of a group runs", async () => {
    const { ran, tools } = traced();
    const log: string[] = [];
    let open = 0;
    const person = interactor(async ({ body }) => {
      open += 1;
      log.push(`asked for ${JSON.stringify(body.input)}, ${open} open, ${ran.length} ran`);
      await quiet();
      open -= 1;
      return JSON.stringify(body.input) === '{"n":2}' ? { kind: "deny" } : { kind: "approve" };
    });
    const live = session({ model: noModel, tools, interactors: [person] });
    const state = work({
      allowedTools: [],
      act: async (scope) => {
        const calls = [1, 2, 3].map((n) => ({ id: `t1.c${n}`, tool: "Peek", input: { n } }));
        return completed((await scope.calls(1, calls)).map(({ id, ok }) => [id, ok]));
      },
    });
    const result = await live.run(one(state), task);
    expect(log).toEqual([
      'asked for {"n":1}, 1 open, 0 ran',
      'asked for {"n":2}, 1 open, 0 ran',
      'asked for {"n":3}, 1 open, 0 ran',
    ]);
    expect(result).toMatchObject({
      output: [
        ["t1.c1", true],
        ["t1.c2", false],
        ["t1.c3", true],
      ],
    });
  });

  test("is never asked for a call that cannot run: an unknown tool, wrong arguments, a hard limit", async () => {
    const person = interactor({ kind: "approve" });
    const strict = tool("Strict", {
      input: { type: "object", properties: { n: { type: "number" } }, required: ["n"], additionalProperties: false },
    });
    const out = tool("Out", { subjects: () => [{ kind: "path", real: "/etc/passwd", access: "write" }] });
    const blind = tool("Blind", {
      subjects: () => {
        throw new Error("cannot tell");
      },
    });
    const live = session({ model: noModel, tools: [strict, out, blind], interactors: [person] });
    const result = await live.run(one(calling([["Nothing"], ["Strict", { n: "1" }], ["Out"], ["Blind"]], [])), task);
    expect(person.asked).toEqual([]);
    expect(result).toMatchObject({
      output: [{ code: "unknown_tool" }, { code: "invalid_tool_input" }, { cause: "limit" }, { cause: "limit" }],
    });
  });

  test("is answered in another process, and a second answer is refused", async () => {
    const { ran, tools } = traced();
    const { clock, first, second } = twoHosts();
    const live = session({ model: noModel, tools, wait: true, clock, host: first });
    const handle = live.start(one(calling([["Note"]], [])), task);
    await eventually(async () => (await second.requests(handle.runId)).length === 1);
    const [request] = await second.requests(handle.runId);
    const answer = (kind: string) => ({
      name: `request/${request?.requestId}`,
      payload: { kind, digest: request?.digest ?? "" },
      digest: request?.digest ?? "",
      by: "elsewhere",
    });
    expect(await second.signal(handle.runId, { ...answer("approve"), digest: "1".repeat(64) })).toBe("digest_mismatch");
    expect(await second.signal(handle.runId, answer("approve"))).toBe("accepted");
    expect(await second.signal(handle.runId, answer("deny"))).toBe("already_answered");
    expect(await handle).toMatchObject({ output: ["Note ran"] });
    expect(ran).toHaveLength(1);
    expect(dataOf(await eventsOf(second, handle.runId), "grant.answered")).toMatchObject([{ by: "elsewhere" }]);
  });
});

describe("guard hooks", () => {
  /** Hooks of all three owners that write down that they were asked. */
  function guards(log: string[], veto?: string) {
    const guard =
      (name: string): GuardHook =>
      (call) => {
        log.push(`${name} ${call.tool} by ${call.approvedBy}`);
        return name === veto ? { veto: `${name} says no` } : undefined;
      };
    return { session: guard("session"), pipeline: guard("pipeline"), state: guard("state") };
  }
  const run = (options: TestSessionOptions, hooks: ReturnType<typeof guards>, allowedTools?: readonly string[]) => {
    const live = session({ model: noModel, onCall: hooks.session, ...options });
    return { live, result: live.run(one(calling([["Note"]], allowedTools, hooks.state), hooks.pipeline), task) };
  };

  test.each([
    ["envelope", { mode: "ask" as const }, ["Note"]],
    ["grant", { mode: "ask" as const, interactors: [interactor({ kind: "approve" })] }, []],
    ["mode", { mode: "yolo" as const }, undefined],
  ])(
    "are asked once after an approval by %s: the session's, the pipeline's, the state's",
    async (by, options, allowed) => {
      const { ran, tools } = traced();
      const log: string[] = [];
      expect(await run({ ...options, tools }, guards(log), allowed).result).toMatchObject({ output: ["Note ran"] });
      expect(log).toEqual([`session Note by ${by}`, `pipeline Note by ${by}`, `state Note by ${by}`]);
      expect(ran).toHaveLength(1);
    },
  );

  test("are not asked about what was refused or denied", async () => {
    const { tools } = traced();
    const log: string[] = [];
    await run({ tools, interactors: [interactor({ kind: "deny" })] }, guards(log), []).result;
    expect(log).toEqual([]);
  });

  test.each(["session", "pipeline", "state"])(
    "the veto of the %s stands, also against a person's grant, and no later hook is asked",
    async (owner) => {
      const { ran, tools } = traced();
      const log: string[] = [];
      const { live, result } = run({ tools, interactors: [interactor({ kind: "approve" })] }, guards(log, owner), []);
      const { runId, ...rest } = await result;
      expect(rest).toMatchObject({
        output: [{ code: "tool_call_denied", cause: "hook", reason: `${owner} says no` }],
        denied: [{ cause: "hook" }],
      });
      expect(log.at(-1)).toContain(owner);
      expect(ran).toEqual([]);
      const events = await eventsOf(live.host, runId);
      expect(dataOf(events, "hook.vetoed")).toMatchObject([{ hook: owner, tool: "Note" }]);
      // The person's grant was used up by being refused: nothing of it is left.
      expect(dataOf(events, "grant.answered")).toMatchObject([{ answer: "approve" }]);
      expect(dataOf(events, "grant.consumed")).toEqual([]);
    },
  );

  test("that throw, reject, or answer something else veto", async () => {
    const odd: readonly GuardHook[] = [
      () => {
        throw new Error("a bug");
      },
      () => Promise.reject(new Error("a bug")),
      () => JSON.parse('"fine"'),
      () => JSON.parse("true"),
    ];
    for (const onCall of odd) {
      const { ran, tools } = traced();
      const result = await session({ model: noModel, tools, onCall }).run(one(calling([["Note"]], ["Note"])), task);
      expect(result).toMatchObject({ output: [{ cause: "hook" }] });
      expect(ran).toEqual([]);
    }
  });

  test("that take five seconds veto", async () => {
    const { ran, tools } = traced();
    const live = session({ model: noModel, tools, onCall: () => never });
    const handle = live.start(one(calling([["Note"]], ["Note"])), task);
    await eventually(() => live.clock.waiting() === 1);
    live.clock.turn(4_999);
    await quiet();
    expect(live.clock.waiting()).toBe(1);
    live.clock.turn(1);
    expect(await handle).toMatchObject({ output: [{ cause: "hook" }] });
    expect(ran).toEqual([]);
  });

  test("see the call as it will run, and the frozen context of its attempt", async () => {
    const { ran, tools } = traced();
    const seen: unknown[] = [];
    const state = calling([["Note", { b: 1, a: [2] }]], ["Note"], (call, ctx) => {
      seen.push({ ...call }, ctx.attempt, Object.isFrozen(ctx), Object.isFrozen(call.input));
      return undefined;
    });
    // What one hook does to what it is given is nothing to the next, nor to the call.
    const meddling: GuardHook = (call) => {
      Object.assign(call, { input: {}, argsDigest: "0" });
      return undefined;
    };
    const live = session({ model: noModel, tools, onCall: meddling });
    const { runId } = await live.run(one(state), task);
    const [decided] = dataOf(await eventsOf(live.host, runId), "call.decided");
    const about = { tool: "Note", input: { b: 1, a: [2] }, kind: "work" };
    const call = { ...about, executionId: "one#1", attempt: 1, proposalId: "t1.c0" };
    expect(seen).toEqual([{ ...call, argsDigest: decided?.argsDigest, approvedBy: "envelope" }, 1, true, true]);
    expect(ran).toEqual([["Note", { a: [2], b: 1 }]]);
  });
});

describe("a turn's calls", () => {
  test("reads run together, a write alone and after what came before it; results stand in call order", async () => {
    const log: string[] = [];
    const timed = (name: string, effect: "read" | "write") =>
      tool(name, {
        effect,
        execute: async (given) => {
          const which = `${name} ${String(field(given, "n"))}`;
          log.push(`${which} begins`);
          await quiet();
          log.push(`${which} ends`);
          return { ok: true, output: which };
        },
      });
    const names = ["Peek", "Peek", "Note", "Note", "Peek"];
    const state = work({
      allowedTools: ["Peek", "Note"],
      act: async (scope) => {
        const calls = names.map((name, n) => ({ id: `t1.c${n}`, tool: name, input: { n } }));
        return completed((await scope.calls(1, calls)).map(({ id, output }) => [id, output]));
      },
    });
    const live = session({ model: noModel, tools: [timed("Peek", "read"), timed("Note", "write")] });
    const result = await live.run(one(state), task);
    expect(result).toMatchObject({ output: names.map((name, n) => [`t1.c${n}`, `${name} ${n}`]) });
    expect(log).toEqual([
      ...["Peek 0 begins", "Peek 1 begins", "Peek 0 ends", "Peek 1 ends"],
      ...["Note 2 begins", "Note 2 ends"],
      ...["Note 3 begins", "Note 3 ends"],
      ...["Peek 4 begins", "Peek 4 ends"],
    ]);
  });

  test("an id given to two calls stops the run before the second is judged: a decision is never taken for another's", async () => {
    const { ran, tools } = traced();
    for (const turns of [[["t1.c0"], ["t1.c0"]], [["t1.c0", "t1.c0"]]]) {
      const state = work({
        allowedTools: [],
        act: async (scope) => {
          for (const [turn, ids] of turns.entries())
            await scope.calls(
              turn + 1,
              ids.map((id) => ({ id, tool: "Note", input: {} })),
            );
          return completed(null);
        },
      });
      const live = session({ model: noModel, tools, interactors: [interactor({ kind: "approve" })] });
      await expect(live.run(one(state), task)).rejects.toMatchObject({ code: "call_id_repeated" });
    }
    expect(ran).toHaveLength(1);
  });

  test("of one group run no more than eight at once", async () => {
    let now = 0;
    let most = 0;
    const peek = tool("Peek", {
      effect: "read",
      execute: async () => {
        now += 1;
        most = Math.max(most, now);
        await quiet();
        now -= 1;
        return { ok: true, output: "" };
      },
    });
    const state = work({
      allowedTools: ["Peek"],
      act: async (scope) => {
        const calls = Array.from({ length: 20 }, (_, index) => ({
          id: `t1.c${index}`,
          tool: "Peek",
          input: { index },
        }));
        return completed((await scope.calls(1, calls)).filter(({ ok }) => ok).length);
      },
    });
    expect(await session({ model: noModel, tools: [peek] }).run(one(state), task)).toMatchObject({ output: 20 });
    expect(most).toBe(8);
  });

  test("a tool that throws, or returns what is not JSON, is a failed call and not a failed run", async () => {
    const odd = [
      tool("Throws", { execute: () => Promise.reject(new Error("disk full")) }),
      tool("Nothing", { execute: () => Promise.resolve(JSON.parse("null")) }),
      tool("Dates", { execute: () => Promise.resolve({ ok: true, output: Object(new Date(0)) }) }),
      tool("BadNotes", { execute: () => Promise.resolve({ ok: true, output: 1, notes: Object({ at: new Date(0) }) }) }),
      tool("BadIntent", { prepare: () => Object({ at: 1n }), execute: async () => ({ ok: true, output: "ran" }) }),
      tool("BadSubjects", { subjects: () => [Object({ kind: "path", real: "/x", access: "read", size: 1n })] }),
    ];
    const names = odd.map(({ name }) => name);
    const live = session({ model: noModel, tools: odd });
    const result = await live.run(
      one(
        calling(
          names.map((name) => [name]),
          names,
        ),
      ),
      task,
    );
    expect(result).toMatchObject({
      status: "completed",
      output: [
        { code: "tool_failed", message: expect.stringContaining("disk full") },
        { code: "tool_failed" },
        { code: "tool_failed" },
        { code: "tool_failed" },
        "ran",
        { cause: "limit" },
      ],
    });
    await eventsOf(live.host, result.runId);
  });

  test("what a tool noted is there for later calls of the attempt, and for no other attempt", async () => {
    const seen: Json[] = [];
    const noting = tool("Note", {
      execute: async (_given, { notes }) => {
        seen.push({ ...notes });
        return { ok: true, output: "", notes: { "/a": "hash" } };
      },
    });
    const state = work({
      allowedTools: ["Note"],
      act: async (scope) => {
        const call = caller(scope);
        await call("Note", { n: 1 });
        await call("Note", { n: 2 });
        return completed(null);
      },
      assert: (_result, ctx) => (ctx.attempt === 1 ? { retry: "again" } : "ok"),
    });
    await session({ model: noModel, tools: [noting] }).run(one(state), task);
    expect(seen).toEqual([{}, { "/a": "hash" }, {}, { "/a": "hash" }]);
  });

  test("a note named __proto__ is a note, and says nothing for others", async () => {
    const seen: Json[] = [];
    const noting = tool("Note", {
      execute: async (_given, { notes }) => {
        seen.push([Object.keys(notes), notes.forged ?? null]);
        return { ok: true, output: "", notes: JSON.parse('{ "__proto__": { "forged": "hash" } }') };
      },
    });
    await session({ model: noModel, tools: [noting] }).run(one(calling([["Note"], ["Note"]], ["Note"])), task);
    expect(seen[1]).toEqual([["__proto__"], null]);
  });

  test("an output too long for a model loses its middle; the whole of it is in the journal", async () => {
    const long = tool("Long", { execute: async () => ({ ok: true, output: `begin${"x".repeat(200_000)}end` }) });
    const live = session({ model: noModel, tools: [long] });
    const result = await live.run(one(calling([["Long"]], ["Long"])), task);
    const [output] = z.array(z.string()).parse(result.status === "completed" ? result.output : []);
    expect(output?.length).toBeLessThan(101_000);
    expect([output?.slice(0, 6), output?.slice(-4)]).toEqual(["beginx", "xend"]);
    expect(output?.includes("100008 characters omitted")).toBe(true);
    const [journal] = await live.host.journal(result.runId);
    expect(journal?.records.some(({ value }) => value.length > 200_000)).toBe(true);
  });
});

describe("AskUser", () => {
  const ask = (question = "Which one?") =>
    calling([["AskUser", { question, options: ["left", "right"] }]], ["AskUser"]);

  test("puts the question to a person, and the answer is the call's result", async () => {
    const person = interactor({ kind: "value", value: "left" });
    const live = session({ model: noModel, interactors: [person] });
    const result = await live.run(one(ask("Which \u001b[31mone?")), task);
    expect(result).toMatchObject({ output: ["left"] });
    // What a terminal would act on is written out.
    expect(person.asked).toMatchObject([
      { kind: "askUser", body: { tool: "AskUser", question: "Which \\u{1b}[31mone?" } },
    ]);
    const events = await eventsOf(live.host, result.runId);
    expect(events.map(({ type }) => type).filter((type) => /^(?:request|call)\./.test(type))).toEqual([
      "call.decided",
      "call.started",
      "request.opened",
      "request.answered",
      "call.finished",
    ]);
  });

  test("with no one there says no_interactor, and the stage continues", async () => {
    const live = session({ model: noModel });
    const result = await live.run(one(ask()), task);
    expect(result).toMatchObject({ status: "completed", output: [{ code: "no_interactor" }] });
    expect(dataOf(await eventsOf(live.host, result.runId), "call.finished")).toMatchObject([{ outcome: "error" }]);
  });

  test.each([
    [{ kind: "deny" as const }, "not_answered"],
    [{ kind: "defer" as const }, "deferred"],
  ])("answered %j is a typed result", async (answer, code) => {
    const live = session({ model: noModel, interactors: [interactor(answer)] });
    expect(await live.run(one(ask()), task)).toMatchObject({ output: [{ code }] });
  });

  test("a value that does not fit the question is refused, here and from elsewhere", async () => {
    const faults: string[] = [];
    const live = session({
      model: noModel,
      wait: true,
      interactors: [interactor({ kind: "value", value: "up" })],
      onFault: ({ message }) => void faults.push(message),
    });
    const handle = live.start(one(ask()), task);
    await eventually(() => faults.length === 1);
    const [request] = await live.host.requests();
    const payload = { kind: "value", value: "down", digest: request?.digest ?? "" };
    await live.host.signal(handle.runId, { name: `request/${request?.requestId}`, payload, by: "elsewhere" });
    expect(await handle).toMatchObject({ output: [{ code: "answer_invalid" }] });
  });

  test("waits across processes: the question stays open when the run is suspended", async () => {
    const { clock, first, second } = twoHosts();
    const here = session({ model: noModel, clock, host: first, wait: true });
    const pipe = one(ask());
    const handle = here.start(pipe, task);
    await eventually(async () => (await second.requests()).length === 1);
    await handle.suspend();
    const there = session({ model: noModel, clock, host: second, wait: true });
    const resumed = there.resume(pipe, handle.runId);
    const [request] = await second.requests();
    await second.signal(handle.runId, {
      name: `request/${request?.requestId}`,
      payload: { kind: "value", value: "right", digest: request?.digest ?? "" },
      by: "me",
    });
    expect(await resumed).toMatchObject({ output: ["right"] });
    expect(dataOf(await eventsOf(second, handle.runId), "request.opened")).toHaveLength(1);
  });
});
