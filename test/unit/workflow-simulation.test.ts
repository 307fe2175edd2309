import { type AnyPipeline, done, fanOut, field, forEach, invoke, isJson, pipeline, stage, to } from "@sluice/core";
import { loadWorkflow, type Outcome, readOutcomes, simulate, simulationLines } from "@sluice/workflows";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { loadDocument } from "../support/workflows.ts";

const FULL = new URL("../fixtures/workflows/statewright/deploy-full.json", import.meta.url).pathname;

async function specIn(document: object): Promise<AnyPipeline["spec"]> {
  const { pipeline: loaded, diagnostics } = await loadDocument(document);
  if (loaded === undefined) throw new Error(JSON.stringify(diagnostics));
  return loaded.spec;
}
async function lines(spec: AnyPipeline["spec"], outcomes: readonly Outcome[]): Promise<readonly string[]> {
  return simulationLines(spec, await simulate(spec, outcomes));
}

test("the reference example walks to its end, and each decision shows every row that was a candidate", async () => {
  const { pipeline: loaded } = await loadWorkflow(FULL);
  if (loaded === undefined) throw new Error("the example did not load");
  const outcomes: readonly Outcome[] = [
    { event: "READY" },
    { state: "testing", event: "EVALUATE", data: { test_result: "fail" } },
  ];
  // The guards read the context before the data of the event.
  expect(await lines(loaded.spec, outcomes)).toEqual([
    "1. the run starts",
    "   => enters planning",
    "2. planning: event READY",
    "   ✔  READY  -> testing    fired: it has no condition",
    "   => enters testing",
    '3. testing: event EVALUATE {"test_result":"fail"}',
    '   ✘  EVALUATE[0]  -> deploying  when deploy_ready (test_result equals "pass")  did not fire: deploy_ready does not hold: test_result is null, needed: test_result equals "pass"',
    '   ✘  EVALUATE[1]  -> fixing     when tests_failed (test_result equals "fail")  did not fire: tests_failed does not hold: test_result is null, needed: test_result equals "fail"',
    "   ✔  EVALUATE[2]  -> failed                                                    fired: it has no condition",
    "   => the run fails in failed (failed): ended in state failed, by the event EVALUATE of state testing",
    "the run fails in failed (failed): ended in state failed, by the event EVALUATE of state testing",
  ]);
  const approved = await simulate(loaded.spec, [
    { event: "READY", data: { test_result: "pass" } },
    { event: "EVALUATE" },
    { state: "deploying", event: "DONE" },
    { approve: true },
  ]);
  expect(approved.end).toMatchObject({ status: "completed", state: "complete" });
  expect(approved.context).toEqual({ test_result: "pass", coverage: 0, approved: false });
  expect(approved.hops.map(({ rows }) => rows.map(({ verdict }) => verdict))).toEqual([
    [],
    ["fired"],
    ["fired", "not asked", "not asked"],
    ["fired"],
    ["fired"],
  ]);
});

test("a denied approval stays, an unnamed event takes safe_next, and a refused one stays", async () => {
  const { pipeline: loaded } = await loadWorkflow(FULL);
  if (loaded === undefined) throw new Error("the example did not load");
  const { hops, waits, end } = await simulate(loaded.spec, [
    { event: "WHATEVER", data: { test_result: "pass" } },
    { event: "NOTHING" },
    { event: "EVALUATE" },
    { event: "DONE" },
    { approve: false, reason: "too early" },
  ]);
  expect(end).toBeUndefined();
  expect(waits).toMatchObject({ for: "outcome", state: "deploying" });
  expect(hops.map(({ follows }) => follows)).toEqual([
    "enters planning",
    "enters testing",
    'stays: testing has no event "NOTHING"',
    "enters deploying",
    "asks a person: Deployment finished. Approve to mark complete? (deploying to complete)",
    "stays: the move from deploying to complete was not approved: too early",
  ]);
  expect(hops[1]?.rows).toMatchObject([{ on: "event *", verdict: "fired" }]);
});

test("an interrupt is handled and the work continues; several of one change are handled one after another", async () => {
  const on = { OK: "$return", FAIL: "failed" };
  const spec = await specIn({
    id: "w",
    initial: "work",
    states: {
      work: { allowed_tools: ["Edit"], on: { DONE: "done", FAIL: "failed" } },
      audit: { allowed_tools: ["Read"], on },
      lint: { allowed_tools: ["Read"], on },
      done: { type: "final" },
      failed: { type: "final" },
    },
    interrupts: {
      sql: { trigger: { file_pattern: "db/**/*.sql" }, target: "audit" },
      any: { trigger: { file_pattern: "**" }, target: "lint" },
    },
  });
  const { hops, end } = await simulate(spec, [
    { interrupt: "./db/a.sql" },
    { state: "audit", event: "OK" },
    { state: "lint", event: "OK" },
    { state: "work", event: "DONE" },
  ]);
  expect(hops.map(({ what, follows }) => `${what} => ${follows}`)).toEqual([
    "the run starts => enters work",
    "./db/a.sql changed: interrupt sql => enters audit",
    "event OK => continues in work",
    "./db/a.sql changed: interrupt any => enters lint",
    "event OK => continues in work",
    "event DONE => the run completes in done",
  ]);
  expect(end?.status).toBe("completed");
  expect(await simulate(spec, [{ interrupt: "a.txt" }, { event: "OK" }, { event: "OK" }])).toMatchObject({
    hops: [{}, {}, {}, { follows: 'stays: work has no event "OK"' }],
  });
});

test("the files of an interrupt are matched as in a run, with any characters in their names", async () => {
  const spec = await specIn({
    id: "w",
    initial: "work",
    states: {
      work: { allowed_tools: ["Edit"], on: { DONE: "done" } },
      audit: { allowed_tools: ["Read"], on: { OK: "$return" } },
      done: { type: "final" },
    },
    interrupts: { odd: { trigger: { file_pattern: "app/a).ts" }, target: "audit" } },
  });
  expect((await simulate(spec, [{ interrupt: "app/a).ts" }])).waits).toMatchObject({ state: "audit" });
});

describe("pipelines with outputs", () => {
  const o = z.object({ ok: z.boolean() });
  const agent = () =>
    stage({ prompt: "A", completionTool: "submit", completionSchema: o, turnCap: 1, allowedTools: [] });
  const child = pipeline({
    id: "child",
    input: z.object({}),
    stages: { a: agent() },
    initial: "a",
    transitions: [{ from: "a", on: "success", to: done(1) }],
  });
  const { spec } = pipeline({
    id: "p",
    input: z.object({}),
    stages: { a: agent(), b: agent(), c: agent(), d: agent() },
    initial: "a",
    pipelines: { child },
    transitions: [
      {
        from: "a",
        on: "success",
        when: (result) =>
          result.status === "completed" && field(isJson(result.output) ? result.output : null, "ok") === true,
        to: fanOut(["b", "c"], { join: "d" }),
      },
      { from: "a", on: "success", to: invoke("child", { onComplete: "d" }) },
      { from: "a", on: "failure", to: done("gave up") },
      { from: "a", on: "pause", to: to("a") },
      { from: "d", on: "success", to: done("joined") },
    ],
  });

  test("fan-outs and invoked pipelines end as the outcomes say", async () => {
    const joined = await simulate(spec, [
      { output: { ok: true } },
      { children: { b: { output: 1 }, c: { skipped: true } } },
      { output: { ok: true } },
    ]);
    expect(joined.end).toEqual({ status: "completed", output: "joined" });
    const failed = await simulate(spec, [
      { output: { ok: true } },
      { children: { b: { output: 1 }, c: { failure: "tool", message: "no" } } },
    ]);
    expect(failed.end).toEqual({ status: "completed", output: "gave up" });
    const invoked = await simulate(spec, [{ output: { ok: false } }]);
    expect(invoked.waits).toMatchObject({ for: "children", children: ["child"] });
    expect(invoked.hops[1]?.rows.map(({ verdict, why }) => [verdict, why])).toEqual([
      ["did not fire", "its condition returned false"],
      ["fired", "it has no condition"],
      ["not asked", "an earlier row fired"],
      ["not asked", "an earlier row fired"],
    ]);
  });

  test("the items of a list may have any keys", async () => {
    const keys = ["constructor", "__proto__"];
    const { spec: listed } = pipeline({
      id: "p",
      input: z.object({}),
      stages: { a: agent(), b: agent(), d: agent() },
      initial: "a",
      transitions: [
        {
          from: "a",
          on: "success",
          to: forEach("b", [undefined, undefined], { key: (_item, index) => keys[index] ?? "", join: "d" }),
        },
        { from: "b", on: "success", to: done(1) },
        { from: "d", on: "success", to: done(1) },
      ],
    });
    const ok = { output: { ok: true } };
    const { fault } = await simulate(listed, [ok, { children: {} }]);
    expect(fault?.message).toBe("it does not say how the child constructor ends");
    const children: unknown = JSON.parse('{ "constructor": { "output": 1 }, "__proto__": { "output": 2 } }');
    const { outcomes, faults } = readOutcomes(isJson(children) ? [ok, { children }] : null);
    expect(faults).toEqual([]);
    expect((await simulate(listed, outcomes)).waits).toMatchObject({ for: "outcome", state: "d" });
  });

  test("a pause leads to its row, with the answer as the input", async () => {
    const { hops } = await simulate(spec, [{ pause: "yes" }, { failure: "model" }]);
    expect(hops[1]).toMatchObject({ what: 'paused, answered "yes"', follows: "enters a" });
    expect(hops[2]?.rows.map(({ verdict }) => verdict)).toEqual(["did not fire", "did not fire", "fired", "not asked"]);
  });

  test.each<[string, readonly Outcome[], string]>([
    [
      "an event of a state that completes with an output",
      [{ event: "X" }],
      "a completes with an output, not by events",
    ],
    ["an output that the schema refuses", [{ output: { ok: 1 } }], "the output does not fit the schema of a: $.ok"],
    ["an outcome for another state", [{ state: "b", output: { ok: true } }], "it is for b, and the run is in a"],
    ["an approval that nothing waits for", [{ approve: true }], "no transition waits for an approval"],
    ["children that do not run", [{ children: {} }], "no children are running"],
    [
      "a child that does not exist",
      [{ output: { ok: true } }, { children: { x: { output: 1 } } }],
      'there is no child "x"; there are b, c',
    ],
    [
      "children without an end",
      [{ output: { ok: true } }, { children: { b: { output: 1 } } }],
      "it does not say how the child c ends",
    ],
    [
      "work of a state whose children run",
      [{ output: { ok: true } }, { output: { ok: true } }],
      "the children b, c have not ended",
    ],
    ["a change that starts no interrupt", [{ interrupt: "a.ts" }], "no interrupt starts by a change of a.ts"],
    ["an outcome after the end", [{ failure: "tool" }, { output: 1 }], "the run has already ended"],
  ])("%s does not fit", async (_name, outcomes, message) => {
    const { fault } = await simulate(spec, outcomes);
    expect(fault?.outcome).toBe(outcomes.length - 1);
    expect(fault?.message).toContain(message);
  });
});

test("a file of outcomes is read with the place of each mistake", () => {
  const read = (value: unknown) => {
    if (!isJson(value)) throw new Error("not JSON");
    return readOutcomes(value).faults.map(({ path, message, suggestion }) =>
      [path, message, suggestion].filter(Boolean).join(" | "),
    );
  };
  expect(
    read([
      { event: "A" },
      { state: "x", output: null, context: {} },
      { failure: "tool" },
      { approve: false, reason: "no" },
    ]),
  ).toEqual([]);
  expect(read({})).toEqual(['is not a list | write [{ "event": "READY" }]']);
  expect(read([1, {}, { evnt: "A" }, { event: 1 }, { event: "A", date: {} }, { event: "A", output: 1 }])).toEqual([
    "[0] | is not an object | use one of event, output, failure, skipped, pause, approve, interrupt, children",
    "[1] | has no outcome | use one of event, output, failure, skipped, pause, approve, interrupt, children",
    expect.stringContaining('[2] | has no outcome | did you mean "event"?'),
    "[3].event | must be the name of an event",
    expect.stringContaining('[4] | cannot have "date" beside event | did you mean "data"?'),
    "[5] | has both event and output | write two outcomes",
  ]);
  expect(read([{ failure: "tol" }, { children: { a: { failure: 1 }, b: 2 } }, { state: 1, event: "A" }])).toEqual([
    expect.stringContaining('[0].failure | must be the code of a failure | did you mean "tool"?'),
    expect.stringContaining("[1].children.a.failure | must be the code of a failure"),
    "[2].state | must be the name of a state",
  ]);
});
