import { done, type Json, type Pipeline, pipeline, stage, to } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import type { CallReply, GatewayRun, NativeVerdict, PendingCall, PhaseNow } from "@sluice/gateway";
import { sendMessage, subPipeline } from "@sluice/stages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { ask, gatewayRun, leave, pipelineOf } from "../../support/gateway.ts";
import { connect, gateway } from "../../support/gateway-clients.ts";
import { handClock } from "../../support/hand-clock.ts";
import { nativeRun } from "../../support/hooks.ts";
import { until } from "../../support/mcp.ts";
import { dataOf, eventsOf, tool } from "../../support/run-kit.ts";
import { tempFolder } from "../../support/tools.ts";

// An agent reads what its calls have done before another call of it runs, and its person's words.

const PATIENCE = 45_000;
const NEXT = {
  target: "b",
  requires_approval: true,
  approval_message: "Is it ready?",
};
const DOCUMENT = {
  id: "w",
  initial: "a",
  interrupts: { schema: { trigger: { file_pattern: "db/**" }, target: "review" } },
  states: {
    a: { instructions: "Look.", allowed_tools: ["Look", "Count", "Read", "Write(db/**)"], on: { NEXT } },
    b: { instructions: "Count first.", allowed_tools: ["Look", "Count"], on: { NEXT: "done" } },
    review: { instructions: "Review the schema.", allowed_tools: ["Read"], on: { OK: "$return" } },
    done: { type: "final" },
  },
};

/** A run of which a person approves what is asked, once `approved` is called. */
async function opened(of: unknown = DOCUMENT) {
  const clock = handClock();
  const host = createHost(createMemoryJournals().connect(), { clock });
  const { root } = tempFolder();
  const driven = isPipeline(of) ? of : await pipelineOf(of);
  const counted: string[] = [];
  const tools = [
    tool("Look", { effect: "read", execute: async () => ({ ok: true, output: "looked" }) }),
    tool("Count", { execute: async () => ({ ok: true, output: `counted ${counted.push("one")}` }) }),
    tool("Peek", { effect: "read", execute: async () => ({ ok: true, output: "peeked" }) }),
    tool("Danger", { execute: async () => ({ ok: true, output: "danger ran" }) }),
  ];
  const open = (resume?: string): GatewayRun =>
    gatewayRun({
      ...{ pipeline: driven, root, host, clock, wait: true, session: { tools } },
      ...(resume === undefined ? {} : { resume }),
    });
  const first = open();
  await ask(first, "get_state");
  /** Makes calls that wait for a person until their agent reads that. */
  const parked = async (
    run: GatewayRun,
    ...calls: readonly (readonly [string, Json?])[]
  ): Promise<readonly string[]> => {
    const pending = calls.map(([name, input = {}]) => run.call({ tool: name, input }).answer);
    await until(() => run.now().status === "waiting");
    clock.turn(PATIENCE);
    return (await Promise.all(pending)).map(({ text }) => text);
  };
  const approved = async (run: GatewayRun, then: PhaseNow["status"] = "working"): Promise<void> => {
    const [request] = await host.requests();
    if (request === undefined) throw new Error("nothing is asked");
    await run.answer(request, { kind: "approve" }, "test");
    await until(() => run.now().status === then);
  };
  return { clock, host, root, counted, open, first, parked, approved };
}

describe("a call that ended while its agent did not wait for it", () => {
  test("runs once, whichever call comes first", async () => {
    const { counted, first, parked, approved } = await opened();
    await parked(first, ["Danger"], ["Count"]);
    await approved(first);
    const [other, again] = await Promise.all([ask(first, "Look"), ask(first, "Count")]);
    expect([other.output, again.text, counted]).toMatchObject([{ code: "read_first" }, "counted 1", { length: 1 }]);
  });

  test("runs once also if other calls of its batch come before it, one after the other", async () => {
    const { counted, first, parked, approved } = await opened();
    await parked(first, ["Danger"], ["Count"]);
    await approved(first);
    const answers = [await ask(first, "Look"), await ask(first, "Look"), await ask(first, "Count")];
    expect(answers.map(({ ok }) => ok)).toEqual([false, true, true]);
    expect(answers.at(-1)?.text).toContain("was not run a second time");
    expect(counted).toHaveLength(1);
  });

  test("is read before another call runs; made again, it runs once more only after its agent has read that", async () => {
    const { counted, first, parked, approved } = await opened();
    await parked(first, ["Danger"], ["Count"]);
    await approved(first);
    const early = await ask(first, "Danger", { other: 1 });
    expect(early.output).toEqual({ code: "read_first" });
    expect(early.text).toMatch(/danger ran[\s\S]*counted 1/);
    expect((await ask(first, "Count")).text).toContain("was not run a second time");
    expect(counted).toHaveLength(1);
    expect((await ask(first, "Count")).text).toBe("counted 2");
  });

  test("is read in the same way after a restart", async () => {
    const { counted, open, first, parked, approved } = await opened();
    await parked(first, ["Danger"], ["Count"]);
    await approved(first);
    await first.close();
    const second = open(first.runId);
    const early = await ask(second, "Danger", { other: 1 });
    expect(early.output).toEqual({ code: "read_first" });
    expect(early.text).toContain("counted 1");
    await second.close();
    expect((await ask(open(first.runId), "Count")).text).toContain("was not run a second time");
    expect(counted).toHaveLength(1);
  });

  test("is read after a restart also if its state has ended, in a pipeline within the run", async () => {
    const { counted, open, first, parked, approved } = await opened(nested());
    await parked(first, ["Danger"], ["Count"], ["transition", { event: "end", data: {} }]);
    await approved(first);
    expect(first.now().state).toBe("outer");
    await first.close();
    const early = await ask(open(first.runId), "Look");
    expect(early.output).toEqual({ code: "read_first" });
    expect(early.text).toContain("counted 1");
    expect(counted).toHaveLength(1);
  });

  test("is not asked about again after a restart, also if it only reads and another state lists its tool", async () => {
    const { open, host, first, parked, approved } = await opened({
      ...DOCUMENT,
      states: { ...DOCUMENT.states, b: { ...DOCUMENT.states.b, allowed_tools: ["Peek"] } },
    });
    await parked(first, ["Peek"]);
    await approved(first);
    await first.close();
    expect((await ask(open(first.runId), "Peek")).text).toMatch(/from before the gateway was restarted[\s\S]*peeked/);
    expect(await host.requests()).toEqual([]);
  });

  test("is named with its arguments", async () => {
    const { first, parked, approved } = await opened();
    await parked(first, ["Danger", { table: "old" }]);
    await approved(first);
    expect((await ask(first, "get_state")).text).toContain('Your earlier call of Danger {"table":"old"} has ended');
  });

  test("and was denied answers the repeated call, whichever call comes first", async () => {
    const { host, first, parked } = await opened();
    await parked(first, ["Danger"]);
    const [request] = await host.requests();
    if (request === undefined) throw new Error("nothing is asked");
    await first.answer(request, { kind: "deny", reason: "never" }, "test");
    await until(() => first.now().status === "working");
    const [other, again] = await Promise.all([ask(first, "Look"), ask(first, "Danger")]);
    expect(other).toMatchObject({ ok: true });
    expect(again.text).toContain("never");
    expect(await host.requests()).toEqual([]);
  });

  test.each<[string, Json]>([
    ["Danger", {}],
    ["Peek", {}],
    ["transition", { event: "NEXT", data: { rationale: "ready" } }],
  ])(
    "and was denied answers the repeated call of %s after a restart, and the next one asks again",
    async (name, input) => {
      const { host, open, first, parked } = await opened();
      await parked(first, [name, input]);
      const [request] = await host.requests();
      if (request === undefined) throw new Error("nothing is asked");
      await first.answer(request, { kind: "deny", reason: "never" }, "test");
      await until(() => first.now().status === "working");
      await first.close();
      const second = open(first.runId);
      const again = await ask(second, name, input);
      expect(again.text).toMatch(/^This is the answer to the same call from before[\s\S]*never/);
      expect(await host.requests()).toEqual([]);
      await parked(second, [name, input]);
      expect(await host.requests()).toHaveLength(1);
    },
  );

  test("and was a transition does not complete the next phase as well", async () => {
    const { host, first, parked, approved } = await opened();
    const go: Json = { event: "NEXT", data: { rationale: "ready" } };
    await parked(first, ["transition", go]);
    await approved(first);
    const early = await ask(first, "Look");
    expect(early.output).toEqual({ code: "read_first" });
    expect(early.text).toContain("You are now in the phase b");
    await leave(first, "NEXT", { rationale: "ready" });
    expect(first.now().state).toBe("b");
    const accepted = dataOf(await eventsOf(host, first.runId ?? ""), "transition.accepted");
    expect(accepted.map(({ event }) => event)).toEqual(["NEXT"]);
  });

  test("is in the answer of get_state, whatever the text of its result", async () => {
    const { first, parked, approved } = await opened({
      ...DOCUMENT,
      states: { ...DOCUMENT.states, a: { ...DOCUMENT.states.a, instructions: "Until danger ran." } },
    });
    await parked(first, ["Danger"]);
    await approved(first);
    const { parts = [] } = await ask(first, "get_state");
    expect(parts).toContainEqual({ by: "result", text: "danger ran" });
  });
});

/** A fan-out of states whose event may need an approval. */
function forked(
  more: object = {},
  allowed_tools: readonly string[] = ["Look"],
  names: readonly string[] = ["x", "y"],
): unknown {
  const branch = (name: string) => ({ initial: name, terminal: `${name}_end` });
  const state = { instructions: "Look.", allowed_tools };
  return {
    id: "w",
    initial: "a",
    states: {
      a: {
        ...state,
        on: {
          NEXT: {
            fork: {
              branches: Object.fromEntries(names.map((name) => [name, branch(name)])),
              join: "all",
              on_complete: "done",
              on_fail: "done",
            },
          },
        },
      },
      ...Object.fromEntries(
        names.flatMap((name) => [
          [name, { ...state, on: { DONE: { target: `${name}_end`, ...more } } }],
          [`${name}_end`, { type: "final", outcome: "completed" }],
        ]),
      ),
      done: { type: "final" },
    },
  };
}

test("a call in a fan-out whose request was answered says which phase has its turn", async () => {
  const { clock, first } = await opened(forked());
  await leave(first, "NEXT");
  const call = first.call({ tool: "Danger", input: {} });
  await until(() => first.now().waiting !== undefined);
  const { waiting } = first.now();
  if (waiting === undefined) throw new Error("nothing is asked");
  await until(() => first.now().state === "y");
  await first.answer(waiting, { kind: "approve" }, "test");
  await until(() => first.now().waiting === undefined);
  clock.turn(PATIENCE);
  expect(await call.answer).toMatchObject({ ok: false, output: { code: "call_waits" } });
  expect((await leave(first, "DONE")).text).toContain("danger ran");
});

test("a phase of a fan-out that has its turn again is read before another call runs", async () => {
  const { clock, counted, first, host } = await opened(forked({}, ["Look", "Count"]));
  await leave(first, "NEXT");
  const early = first.call({ tool: "Danger", input: { n: 1 } }).answer;
  await until(() => first.now().state === "y");
  await ask(first, "get_state");
  const late = first.call({ tool: "Danger", input: { n: 2 } }).answer;
  let open = 0;
  await until(() => {
    void host.requests().then(({ length }) => {
      open = length;
    });
    return open === 2;
  });
  const [request] = (await host.requests()).filter(({ requestId }) => requestId.startsWith("x"));
  if (request === undefined) throw new Error("nothing is asked");
  clock.turn(PATIENCE);
  await late;
  await first.answer(request, { kind: "approve" }, "test");
  await early;
  await until(() => first.now().state === "x");
  expect((await ask(first, "Count")).text).toContain("You are now in the phase x");
  expect(counted).toEqual([]);
});

test("a call that waits in a fan-out says so for each phase that has its turn before it", async () => {
  const { clock, counted, first, approved } = await opened(forked({}, ["Look", "Count"], ["x", "y", "z"]));
  await leave(first, "NEXT");
  const early = ["Danger", "Count"].map((name) => first.call({ tool: name, input: {} }).answer);
  await until(() => first.now().waiting !== undefined);
  await until(() => first.now().state === "y");
  await approved(first);
  clock.turn(PATIENCE);
  for (const { text } of await Promise.all(early)) expect(text).toContain("phase y");
  await leave(first, "DONE");
  await until(() => first.now().state === "z");
  for (const name of ["Danger", "Count"]) expect((await ask(first, name)).text).toContain("phase z");
  await leave(first, "DONE");
  expect((await ask(first, "Count")).text).toContain("counted 1");
  expect(counted).toHaveLength(1);
});

const NATIVE = {
  ...DOCUMENT,
  states: {
    ...DOCUMENT.states,
    a: { ...DOCUMENT.states.a, allowed_tools: ["Read", "Write(db/**)"] },
    b: { ...DOCUMENT.states.b, allowed_tools: ["Read"] },
  },
};

/** A pipeline whose first state runs another one. */
function nested(): Pipeline<{ readonly task: string }, unknown> {
  const input = z.object({ task: z.string() });
  const state = () =>
    stage({
      prompt: "Work.",
      allowedTools: ["Look", "Count"],
      completionTool: "end",
      completionSchema: z.object({}),
      turnCap: 5,
    });
  const inner = pipeline({
    id: "inner",
    input,
    stages: { inside: state() },
    initial: "inside",
    next: { inside: () => done(1) },
  });
  const sub = subPipeline({ pipeline: "inner", of: inner, input: { task: "t" } });
  return pipeline({
    id: "w",
    input,
    pipelines: { inner },
    stages: { sub, outer: state() },
    initial: "sub",
    next: { sub: () => to("outer"), outer: () => done(1) },
  });
}

function isPipeline(of: unknown): of is Pipeline<{ readonly task: string }, unknown> {
  return typeof of === "object" && of !== null && "spec" in of;
}

test("a phase of a fan-out makes the call that waits in another one, once it has read that", async () => {
  const { first, parked, approved, host } = await opened(
    forked({ requires_approval: true, approval_message: "Is it ready?" }),
  );
  const go: Json = { event: "DONE", data: {} };
  await leave(first, "NEXT");
  await parked(first, ["transition", go]);
  await until(() => first.now().state === "y");
  await approved(first);
  expect((await ask(first, "transition", go)).output).toEqual({ code: "call_waits" });
  const own = first.call({ tool: "transition", input: go }).answer;
  await until(() => first.now().waiting !== undefined);
  await approved(first, "ended");
  await own;
  const accepted = dataOf(await eventsOf(host, first.runId ?? ""), "transition.accepted");
  expect(accepted.map(({ event }) => event)).toEqual(["NEXT", "DONE", "DONE"]);
});

describe("an agent whose own program runs its calls", () => {
  type Native = Awaited<ReturnType<typeof native>>;
  async function native(document: unknown = NATIVE) {
    const clock = handClock();
    const host = createHost(createMemoryJournals().connect(), { clock });
    const { root, put } = tempFolder();
    let reads = 0;
    const run = await nativeRun(document, { root, host, wait: true, clock });
    await ask(run, "get_state");
    const call = (name: string, input: Json, agent?: string) =>
      run.call({ tool: name, input, native: true, ...(agent === undefined ? {} : { agent }) });
    const read = async (agent?: string): Promise<string> => {
      reads += 1;
      const reading = call("Read", { file_path: `${root}/${reads}.txt` }, agent);
      const verdict = await reading.verdict;
      if (verdict.kind === "deny") return verdict.text;
      reading.report({ ok: true, output: "one" });
      await reading.answer;
      return verdict.kind;
    };
    return { clock, host, root, put, run, call, read };
  }

  test("reads a person's message with the refusal of its next call", async () => {
    const { host, run, read } = await native();
    await read();
    await sendMessage(host, run.runId ?? "", "Stop here.", "ann");
    const answers = [await read(), await read(), await read()];
    expect(answers.filter((text) => text.includes("Stop here."))).toHaveLength(1);
    expect(answers.at(-1)).toBe("allow");
  });

  test("may run a call in a fan-out that was approved while another phase had its turn, once it makes it again", async () => {
    const { clock, host, root, run, call } = await native(forked({}, ["Read"]));
    await leave(run, "NEXT");
    const write = () => call("Write", { file_path: `${root}/n.txt`, content: "x\n" });
    const early = write();
    await until(() => run.now().waiting !== undefined);
    await until(() => run.now().state === "y");
    const [request] = await host.requests();
    if (request === undefined) throw new Error("nothing is asked");
    await run.answer(request, { kind: "approve" }, "test");
    await until(() => run.now().waiting === undefined);
    clock.turn(PATIENCE);
    expect(await early.verdict).toMatchObject({ kind: "deny", text: expect.stringContaining("has its turn") });
    const left = leave(run, "DONE");
    await until(() => run.now().state !== "y" || run.now().status === "busy");
    const again = write();
    expect(await again.verdict).toMatchObject({ kind: "allow" });
    again.report({ ok: true, output: "written" });
    await left;
  });

  describe("and whose approved call of one phase waits to be made again while another phase needs the turn", () => {
    /** The answer to the call of `y` is that the one of `x` goes first. */
    async function waiting() {
      const { clock, host, root, run, call } = await native(forked({}, ["Read"]));
      await leave(run, "NEXT");
      const write = (name: string) => call("Write", { file_path: `${root}/${name}.txt`, content: "x\n" });
      /** What becomes of a call for which its caller waits as long as it takes. */
      const inTime = async (answer: Promise<NativeVerdict | CallReply>): Promise<string> => {
        let text: string | undefined;
        void answer.then((said) => {
          text = "text" in said ? said.text : said.kind;
        });
        await until(() => {
          clock.turn(PATIENCE);
          return text !== undefined;
        });
        return text ?? "";
      };
      const answered = async (name: string): Promise<string> => {
        const { verdict } = write(name);
        await until(() => run.now().waiting !== undefined);
        const [request] = await host.requests();
        if (request === undefined) throw new Error("nothing is asked");
        await until(() => run.now().state === "y");
        await run.answer(request, { kind: "approve" }, "test");
        await until(() => run.now().waiting === undefined);
        return await inTime(verdict);
      };
      expect(await answered("x")).toContain("the phase y has its turn first");
      const text = await answered("y");
      expect(text).toMatch(/has not run yet[\s\S]*x\.txt[\s\S]*phase x[\s\S]*goes first/);
      return { host, run, write, inTime };
    }

    test("reads which call that is, and both run with one approval each", async () => {
      const { host, run, write, inTime } = await waiting();
      expect((await ask(run, "get_state")).text).toContain("x.txt");
      for (const name of ["x", "y"]) {
        const call = write(name);
        expect(await call.verdict).toMatchObject({ kind: "allow" });
        call.report({ ok: true, output: "written" });
        await call.answer;
        expect(await inTime(leave(run, "DONE"))).toContain(`You are now in the phase ${name}`);
        expect(await inTime(leave(run, "DONE"))).toContain('"event":"DONE"');
      }
      await until(() => run.now().status === "ended");
      const events = await eventsOf(host, run.runId ?? "");
      expect(dataOf(events, "grant.consumed")).toHaveLength(2);
    });

    test("may leave it out: the other call then runs after the same wait", async () => {
      const { write, inTime } = await waiting();
      expect(await inTime(write("y").verdict)).toContain("phase x has its turn");
    });
  });

  test("reads its news itself, and not an agent that it has started", async () => {
    const { clock, host, run, read } = await native();
    const parked = run.call({ tool: "transition", input: { event: "NEXT", data: { rationale: "ready" } } }).answer;
    await until(() => run.now().status === "waiting");
    clock.turn(PATIENCE);
    await parked;
    const [request] = await host.requests();
    if (request === undefined) throw new Error("nothing is asked");
    await run.answer(request, { kind: "approve" }, "test");
    await until(() => run.now().state === "b");
    const started = await read("another");
    expect(started).toContain("the main agent");
    expect(started).not.toContain("phase b");
    expect(await read()).toContain("You are now in the phase b");
    expect(await read("another")).toBe("allow");
  });

  test("reads the phase that its own call has begun with the refusal of its next call", async () => {
    const { root, put, run, call, read } = await native();
    const writing = call("Write", { file_path: `${root}/db/a.sql`, content: "select 1;\n" });
    expect((await writing.verdict).kind).toBe("allow");
    put("db/a.sql", "select 1;\n");
    writing.report({ ok: true, output: "written" });
    await until(() => run.now().state === "review");
    expect(await read()).toContain("Review the schema.");
    expect(await read()).toBe("allow");
  });

  /** A call of a turn that a person has approved while its caller does not wait; made again, it is allowed. */
  async function approvedFirst(second: (calls: Native) => PendingCall) {
    const made = await native();
    const { clock, host, root, run, call } = made;
    const first = () => call("Write", { file_path: `${root}/a.txt`, content: "x\n" });
    const parked = first();
    await until(() => run.now().status === "waiting");
    clock.turn(PATIENCE);
    await parked.verdict;
    const next = second(made);
    const [request] = await host.requests();
    if (request === undefined) throw new Error("nothing is asked");
    await run.answer(request, { kind: "approve" }, "test");
    return { ...made, first, next };
  }

  test.each<[string, (calls: Native) => PendingCall]>([
    ["a reading one", ({ call, root }) => call("Read", { file_path: `${root}/b.txt` })],
    ["another writing one", ({ call, root }) => call("Write", { file_path: `${root}/b.txt`, content: "x\n" })],
    ["a transition", ({ run }) => run.call({ tool: "transition", input: { event: "NEXT", data: { rationale: "r" } } })],
  ])(
    "that makes %s while an approved call waits to be made again reads that this one goes first",
    async (_name, second) => {
      const { root, run, call, first, next } = await approvedFirst(second);
      expect((await next.answer).text).toMatch(/a\.txt.* is approved and goes first/);
      const further = await call("Read", { file_path: `${root}/c.txt` }).verdict;
      expect(further).toMatchObject({ kind: "deny", text: expect.stringContaining("goes first") });
      expect(run.now().state).toBe("a");
      expect(await first().verdict).toMatchObject({ kind: "allow" });
    },
  );

  test("gets the denial of a call that it makes again, however many calls it has made before it could read that", async () => {
    const { clock, host, root, run, call, read } = await native();
    const write = () => call("Write", { file_path: `${root}/a.txt`, content: "x\n" });
    const parked = write();
    await until(() => run.now().status === "waiting");
    clock.turn(PATIENCE);
    await parked.verdict;
    const [request] = await host.requests();
    if (request === undefined) throw new Error("nothing is asked");
    await run.answer(request, { kind: "deny", reason: "never" }, "test");
    await until(() => run.now().status === "working");
    expect([await read(), await read(), await read()]).toEqual(["allow", "allow", "allow"]);
    expect(await write().verdict).toMatchObject({ kind: "deny", text: expect.stringContaining("never") });
    expect(await host.requests()).toEqual([]);
  });

  test("may leave an approved call out by making another one twice", async () => {
    const reading = ({ call, root }: Native) => call("Read", { file_path: `${root}/b.txt` });
    const { clock, next, ...made } = await approvedFirst(reading);
    await next.answer;
    const again = reading({ clock, ...made });
    clock.turn(PATIENCE);
    expect(await again.verdict).toMatchObject({ kind: "allow" });
  });
});

describe("a client whose form stays open longer than its call waits", () => {
  /** A call was denied while its client waited for no answer; the form about the next one stays open. */
  async function withForm() {
    const { clock, host, first } = await opened();
    const server = await gateway(first, { elicitation: "approve", patienceMs: PATIENCE });
    const closes = Promise.withResolvers<void>();
    let forms = 0;
    const client = await connect("client 2, handshake, HTTP", server, {
      onForm: async () => {
        forms += 1;
        if (forms === 1) return { action: "accept", content: { decision: "leave it open" } };
        await closes.promise;
        return { action: "accept", content: { decision: "deny" } };
      },
    });
    let answers = 0;
    const left = client.call("Danger", { n: 1 }).finally(() => {
      answers += 1;
    });
    await until(() => {
      clock.turn(PATIENCE);
      return answers === 1;
    });
    await left;
    const [request] = await host.requests();
    if (request === undefined) throw new Error("nothing is asked");
    await first.answer(request, { kind: "deny", reason: "never" }, "test");
    await until(() => first.now().status === "working");
    const gaveUp = new AbortController();
    const asked = client.call("Danger", { n: 2 }, { signal: gaveUp.signal });
    let turns = 0;
    await until(() => {
      clock.turn(PATIENCE);
      turns += forms === 2 ? 1 : 0;
      return turns > 3;
    });
    return { clock, client, asked, gaveUp, closes };
  }

  test("gets all that the agent has to read", async () => {
    const { asked, closes } = await withForm();
    closes.resolve();
    expect((await asked).text).toContain("never");
  });

  test("and gives up then leaves to the next answer what the agent has to read", async () => {
    const { clock, client, asked, gaveUp } = await withForm();
    gaveUp.abort();
    await expect(asked).rejects.toThrow("abort");
    let isOver = false;
    const next = client.call("Look").finally(() => {
      isOver = true;
    });
    await until(() => {
      clock.turn(PATIENCE);
      return isOver;
    });
    expect((await next).text).toContain("never");
  });
});
