import assert from "node:assert/strict";
import type { Json } from "../../base/json.ts";
import type { ProgramEnd, StepRunner } from "../../journal/seam.ts";
import {
  ask,
  child,
  completed,
  createGate,
  endOf,
  expectWhole,
  type Facts,
  fanOutOptions,
  rejects,
  start,
  stepsOf,
  turns,
  until,
  untilAsked,
} from "../world.ts";

const news = (payload: Json) => ({ name: "news", payload, by: "test" });
const answer = (requestId: string, payload: Json, by = "test") => ({
  name: `request/${requestId}`,
  payload,
  by,
  digest: "d1",
});

async function askOne(steps: StepRunner): Promise<ProgramEnd> {
  const answered = await ask(steps, "q1");
  return completed(answered === undefined ? null : { ...answered });
}

/** Signals from processes that do not own the run, and the outcome that the sender receives. */
export const signalFacts: Facts = {
  "an answer is accepted once, and only for an open request with its digest": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    assert.equal(await second.host.signal("r1", answer("q1", 1)), "unknown");
    const task = await start(first.host, askOne);
    await untilAsked(second.host);
    assert.equal(await second.host.signal("r1", answer("q2", 1)), "unknown");
    assert.equal(await second.host.signal("r1", { ...answer("q1", 1), digest: "other" }), "digest_mismatch");
    assert.equal(await second.host.signal("r1", answer("q1", "yes")), "accepted");
    assert.equal(await second.host.signal("r1", answer("q1", "no")), "already_answered");
    assert.equal(await first.host.signal("r1", { ...answer("q1", "no"), digest: "other" }), "already_answered");
    assert.deepEqual((await endOf(task)).value, {
      payload: "yes",
      by: "test",
      at: (await first.host.get("r1"))?.createdAt,
    });
    assert.equal(await second.host.signal("r1", answer("q1", "late")), "unknown");
    assert.equal(await second.host.signal("r1", news(1)), "unknown");
    await expectWhole(first.host);
  },

  "a request that is opened again takes another answer": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const data = { requestId: "q1", kind: "askUser", digest: "d1", body: { question: "again" } };
    const waiting = createGate();
    const asking = async (steps: StepRunner): Promise<ProgramEnd> => {
      const before = await ask(steps, "q1");
      const open = { events: [{ type: "request.opened", data }] } as const;
      await steps.run("again", () => null, { open });
      waiting.open();
      const again = await steps.waitForSignal("request/q1");
      return completed([before?.payload ?? null, again?.payload ?? null]);
    };
    const task = await start(first.host, asking);
    await untilAsked(second.host);
    assert.equal(await second.host.signal("r1", answer("q1", "first")), "accepted");
    await waiting.passed;
    assert.equal((await second.host.requests()).length, 1);
    assert.equal(await second.host.signal("r1", answer("q1", "second")), "accepted");
    assert.equal(await second.host.signal("r1", answer("q1", "third")), "already_answered");
    assert.deepEqual((await endOf(task)).value, ["first", "second"]);
    await expectWhole(second.host);
  },

  "an answer after the deadline of its request is refused, and the run is due then": async ({ connect, clock }) => {
    const [first, second] = [await connect(), await connect()];
    const deadline = clock.now() + 60_000;
    const asking = async (steps: StepRunner): Promise<ProgramEnd> =>
      completed((await ask(steps, "q1", "d1", deadline))?.payload ?? "no answer");
    await start(first.host, asking);
    await clock.untilArmed(1);
    await first.crash();
    assert.deepEqual(await second.host.due(10), { runs: [], next: deadline });
    clock.advance(60_001);
    assert.deepEqual((await second.host.due(10)).runs, ["r1"]);
    assert.equal(await second.host.signal("r1", answer("q1", "late")), "expired");
    assert.equal((await endOf(await second.host.resume("r1", asking))).value, "no answer");
    await expectWhole(second.host);
  },

  "if two hosts answer at the same time, the first commit wins": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const questions = Array.from({ length: 10 }, (_, index) => `q${index}`);
    const task = await start(first.host, async (steps) => {
      const answers: Json[] = [];
      for (const question of questions) answers.push((await ask(steps, question))?.payload ?? null);
      return completed(answers);
    });
    const winners: Json[] = [];
    for (const question of questions) {
      await until(second.host, async () => (await second.host.requests()).some((each) => each.requestId === question));
      const sent = ["a", "b", "c", "d"].map((by, index) => {
        const { host } = index % 2 === 0 ? first : second;
        return host.signal("r1", answer(question, by, by)).then((outcome) => ({ by, outcome }));
      });
      const outcomes = await Promise.all(sent);
      winners.push(...outcomes.filter(({ outcome }) => outcome === "accepted").map(({ by }) => by));
      assert.equal(outcomes.filter(({ outcome }) => outcome === "already_answered").length, 3);
    }
    assert.equal(winners.length, questions.length);
    assert.deepEqual((await endOf(task)).value, winners);
  },

  "a signal that arrives before the run waits for it is kept": async ({ connect }) => {
    const [first, second] = [await connect(), await connect()];
    const gate = createGate();
    const task = await start(first.host, async (steps) => {
      await steps.run("busy", async () => {
        await gate.wait();
        return null;
      });
      return completed((await steps.waitForSignal("news"))?.payload ?? null);
    });
    await gate.reached;
    assert.equal(await second.host.signal("r1", news("early")), "accepted");
    gate.open();
    assert.equal((await endOf(task)).value, "early");
  },

  "a signal that arrives while the run has no owner is delivered when the run resumes": async ({ connect }) => {
    const first = await connect();
    await start(first.host, askOne);
    await untilAsked(first.host);
    await first.crash();
    const second = await connect();
    assert.equal(await second.host.signal("r1", answer("q1", "yes", "operator")), "accepted");
    const end = await endOf(await second.host.resume("r1", askOne));
    assert.deepEqual(end.value, { payload: "yes", by: "operator", at: (await second.host.get("r1"))?.createdAt });
    await expectWhole(second.host);
  },

  "the n-th wait for a name receives the n-th signal of that name, also after a kill": async ({ connect }) => {
    const first = await connect();
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      const payloads: Json[] = [];
      for (let n = 0; n < 4; n += 1) {
        payloads.push((await steps.waitForSignal("news"))?.payload ?? null);
        if (n === 0) payloads.push((await steps.waitForSignal("other"))?.payload ?? null);
      }
      return completed(payloads);
    };
    await start(first.host, program);
    for (const payload of [1, 2]) await first.host.signal("r1", news(payload));
    await first.host.signal("r1", { name: "other", payload: "other", by: "test" });
    await turns();
    await first.crash();
    const second = await connect();
    await second.host.signal("r1", news(3));
    const task = await second.host.resume("r1", program);
    await second.host.signal("r1", news(4));
    assert.deepEqual((await endOf(task)).value, [1, "other", 2, 3, 4]);
  },

  "takeSignals takes all signals that have arrived, without waiting, and each only once": async ({ connect }) => {
    const first = await connect();
    const gates = [createGate(), createGate()];
    let holds = true;
    const program = async (steps: StepRunner): Promise<ProgramEnd> => {
      const payloads: Json[] = [];
      const take = async (id: string): Promise<void> => {
        for (const { payload } of await steps.takeSignals(id, "news")) payloads.push(payload);
      };
      for (const [index, gate] of gates.entries()) {
        await steps.run(`busy/${index}`, async () => {
          if (holds) await gate.wait();
          return null;
        });
        await take(`take/${index}`);
      }
      // Independent of the number of signals taken so far, a wait gets the next one.
      while (payloads.length < 4) payloads.push((await steps.waitForSignal("news"))?.payload ?? null);
      await take("take/last");
      return completed(payloads);
    };
    await start(first.host, program);
    await gates[0]?.reached;
    for (const payload of [1, 2]) await first.host.signal("r1", news(payload));
    gates[0]?.open();
    await gates[1]?.reached;
    await first.crash();
    gates[1]?.open();
    holds = false;
    const second = await connect();
    const task = await second.host.resume("r1", program);
    for (const payload of [3, 4]) await second.host.signal("r1", news(payload));
    assert.deepEqual((await endOf(task)).value, [1, 2, 3, 4]);
    await expectWhole(second.host);
  },

  "the record of a wait holds the payload, sender and time of its signal": async ({ connect, clock }) => {
    const [first, second] = [await connect(), await connect()];
    const task = await start(first.host, async (steps) =>
      completed((await steps.waitForSignal("news"))?.payload ?? null),
    );
    clock.advance(1_234);
    const at = clock.now();
    await second.host.signal("r1", { name: "news", payload: { text: "hello" }, by: "process 7" });
    await endOf(task);
    const [journal] = await first.host.journal("r1");
    const received = journal?.records.find((record) => record.stepId === "wait/news");
    assert.deepEqual(JSON.parse(received?.value ?? ""), { payload: { text: "hello" }, by: "process 7", at });
  },

  "a payload that is not JSON is rejected": async ({ connect }) => {
    const { host } = await connect();
    const task = await start(host, askOne);
    await untilAsked(host);
    const loop: Record<string, Json> = {};
    loop.self = loop;
    await rejects(host.signal("r1", answer("q1", loop)), "not_json", "Validation");
    assert.deepEqual(await stepsOf(host), ["open ask/q1", "done ask/q1"]);
    await host.signal("r1", answer("q1", null));
    assert.equal((await endOf(task)).status, "completed");
  },

  "a signal to a child reaches only that child": async ({ connect }) => {
    const { host } = await connect();
    const task = await start(host, async (steps) => {
      if (steps.runId !== "r1") return await askOne(steps);
      const ends = await steps.runChildren("fan", [child("a"), child("b")], fanOutOptions());
      return completed(Object.values(ends).map(({ value }) => value));
    });
    await untilAsked(host, 2);
    assert.equal(await host.signal("r1", answer("q1", 0)), "unknown");
    assert.equal(await host.signal("r1/fan/b", answer("q1", "for b")), "accepted");
    assert.equal(await host.signal("r1/fan/a", answer("q1", "for a")), "accepted");
    const { value } = await endOf(task);
    assert.match(JSON.stringify(value), /"for a".*"for b"/);
    assert.deepEqual(await host.requests(), []);
    await expectWhole(host);
  },
};
