import { expect } from "vitest";
import { calls, decided, drive, fact, finish, noting, saying, tools, worker } from "../support/facts.ts";
import { dataOf, eventually, tool } from "../support/run-kit.ts";
import { talker } from "../support/talker.ts";

fact(22, "a completion that fits its schema ends the stage with its payload", async () => {
  const { result, heard } = await drive(worker(), saying(finish("fixed"), finish("never said")));
  expect(result).toMatchObject({ status: "completed", output: { summary: "fixed" }, stages: [{ turns: 1 }] });
  expect(heard).toHaveLength(1);
});

fact(
  23,
  "a completion that does not fit is a typed error to the model, with paths, and the stage goes on",
  async () => {
    const { result, results, events } = await drive(
      worker(),
      saying(calls(["finish", { summary: 7 }]), finish("fixed")),
    );
    expect(results(0)).toMatchObject([{ code: "completion_schema_invalid", issues: [{ path: "$.summary" }] }]);
    expect(result).toMatchObject({ status: "completed", output: { summary: "fixed" }, stages: [{ turns: 2 }] });
    expect(dataOf(events, "completion.rejected")).toHaveLength(1);
  },
);

fact(24, "the turn cap is a failure of its own that has a route, not a cancellation", async () => {
  const { result } = await drive(worker({ turnCap: 2 }), saying(calls("Look"), calls("Look")));
  expect(result).toMatchObject({
    status: "failed",
    error: { code: "turn_cap" },
    stages: [{ status: "failed", code: "turn_cap" }],
  });
  const invalid = await drive(worker({ turnCap: 1 }), saying(calls(["finish", {}])));
  expect(invalid.result).toMatchObject({ status: "failed", error: { code: "schema" } });
});

fact(25, "turnCap is the number of model calls, exactly", async () => {
  for (const turnCap of [1, 2, 5]) {
    const { heard, result } = await drive(
      worker({ turnCap }),
      talker(({ turn }) => calls(["Look", { turn }])),
    );
    expect([heard.length, result.stages[0]?.status]).toEqual([turnCap, "failed"]);
    // On the last one there is only one way out.
    expect(heard.at(-1)?.tools).toEqual(["finish"]);
  }
  const last = await drive(worker({ turnCap: 2 }), saying(calls("Look"), finish("just in time")));
  expect(last.result.status).toBe("completed");
});

fact(26, "calls of the last turn run to their end, and their results are sent to nobody", async () => {
  const ran: string[] = [];
  const change = tool("Change", { execute: async () => noting(ran, "ran", { ok: true, output: "done" }) });
  const state = worker({ allowedTools: ["Change"], turnCap: 1 });
  const { heard, result, events } = await drive(state, saying(calls("Change")), { tools: [change] });
  expect([ran, heard.length]).toEqual([["ran"], 1]);
  expect(dataOf(events, "call.finished")).toMatchObject([{ outcome: "ok" }]);
  expect(result).toMatchObject({ error: { code: "turn_cap" } });
});

fact(
  27,
  "people are asked one at a time in call order, reads run side by side, and results stand in call order",
  async () => {
    const log: string[] = [];
    const going = new Set<string>();
    let most = 0;
    const read = (name: string, ticks: number) =>
      tool(name, {
        effect: "read",
        execute: async () => {
          going.add(name);
          most = Math.max(most, going.size);
          for (let turn = 0; turn < ticks; turn += 1) await new Promise(setImmediate);
          going.delete(name);
          return noting(log, `${name} ends`, { ok: true, output: name });
        },
      });
    const interactor = {
      name: "me",
      answer: async ({ body }: { readonly body: object }) =>
        noting(log, `asked ${Object(body).tool}`, { kind: "approve" as const }),
    };
    const { results } = await drive(
      worker({ visibility: "session", allowedTools: ["A"] }),
      saying(calls("A", "B", "C")),
      {
        tools: [read("A", 9), read("B", 5), read("C", 1)],
        interactors: [interactor],
      },
    );
    expect(log).toEqual(["asked B", "asked C", "C ends", "B ends", "A ends"]);
    expect([most, results(0)]).toEqual([3, ["A", "B", "C"]]);
  },
);

fact(28, "a tool that fails is a result; its turn, and its neighbours, go on", async () => {
  const broken = tool("Look", {
    effect: "read",
    execute: async (input) =>
      JSON.stringify(input) === "{}" ? Promise.reject(new Error("no")) : { ok: true, output: "fine" },
  });
  const { results, result } = await drive(worker(), saying(calls(["Look", { a: 1 }], "Look", ["Look", { a: 2 }])), {
    tools: [broken],
  });
  expect(results(0)).toMatchObject(["fine", { code: "tool_failed" }, "fine"]);
  expect(result.status).toBe("completed");
});

fact(29, "what a tool throws is a typed failure, also when it is no Error", async () => {
  for (const thrown of ["text", undefined, null, { message: 7 }, Object.create(null), Symbol("s")]) {
    const broken = tool("Look", { effect: "read", execute: () => Promise.reject(thrown) });
    const { results, result } = await drive(worker(), saying(calls("Look")), { tools: [broken] });
    expect(results(0)).toMatchObject([{ code: "tool_failed", message: expect.any(String) }]);
    expect(result.status).toBe("completed");
  }
});

fact(
  30,
  "arguments that are not JSON, or do not fit the tool, are a typed error, and the tool does not run",
  async () => {
    const ran: string[] = [];
    const read = tool("Look", {
      effect: "read",
      input: { type: "object", required: ["path"] },
      execute: async () => noting(ran, "ran", { ok: true, output: 1 }),
    });
    const broken = {
      calls: [
        { tool: "Look", rawInput: '{"path":' },
        { tool: "Look", input: { file: "a" } },
      ],
    };
    const { results, heard } = await drive(worker(), saying(broken), { tools: [read] });
    expect(results(0)).toMatchObject([{ code: "invalid_tool_input" }, { code: "invalid_tool_input" }]);
    expect(ran).toEqual([]);
    await eventually(() => heard.length === 2);
  },
);

decided(32, "a cap without an assert of its own fails the stage: only an assert sends an attempt back", async () => {
  const state = worker({ turnCap: 1, retryPolicy: { maxAttempts: 3 } });
  const { result, heard } = await drive(state, saying(calls("Look")), { tools });
  expect([result.status, heard.length]).toEqual(["failed", 1]);
  const asserting = worker({
    turnCap: 1,
    assert: ({ status }) => (status === "failed" ? { retry: "call finish" } : "ok"),
  });
  const again = await drive(asserting, saying(calls("Look"), finish()));
  expect(again.result).toMatchObject({ status: "completed", stages: [{ attempts: 2 }] });
});
