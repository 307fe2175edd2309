import { backToInterrupted, done, final, fork, pipeline, type Row, route, stage, to } from "@sluice/core";
import { loadWorkflow, operatorGuard, pathText, proveProperty, readProperty, verdictLines } from "@sluice/workflows";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { apply, initialState, transition } from "../../packages/core/src/machine.ts";
import { countsAfter, isWithinCaps } from "../../packages/workflows/src/check/properties/steps.ts";
import { loadDocument, loadTexts, ruleLines } from "../support/workflows.ts";

const FULL = new URL("../fixtures/workflows/statewright/deploy-full.json", import.meta.url).pathname;
const END = { done: { type: "final" }, failed: { type: "final" } };

const STATES = {
  plan: { allowed_tools: ["Read"], on: { READY: { target: "execute", requires_approval: true }, FAIL: "failed" } },
  execute: { allowed_tools: ["Edit", "Bash"], on: { DONE: "review", FAIL: "failed" } },
  review: { allowed_tools: ["Read"], on: { OK: "done", AGAIN: "execute" } },
  ...END,
};

/** What comes of properties of a document: the verdict, and the counterexample or the reason. */
async function verdicts(document: object, ...properties: readonly string[]): Promise<readonly string[]> {
  const { pipeline: loaded, diagnostics } = await loadDocument(document);
  if (loaded === undefined) throw new Error(JSON.stringify(diagnostics));
  return properties.map((text) => {
    const reading = readProperty(loaded.spec, text);
    if (!reading.ok) return `${reading.message}${reading.suggestion === undefined ? "" : ` (${reading.suggestion})`}`;
    const verdict = proveProperty(loaded.spec, reading.property);
    if (verdict.verdict === "violated") return pathText(verdict.path);
    return verdict.verdict === "proven" ? "proven" : verdict.why;
  });
}
const documentOf = (states: object, more: object = {}): object => ({
  id: "w",
  initial: Object.keys(states)[0],
  states,
  ...more,
});

test("what holds on every path is proven", async () => {
  expect(
    await verdicts(
      documentOf(STATES),
      "never: Bash before approved",
      "always: review after execute",
      "always: plan before execute",
      "always: approved",
      "never: Write",
      "never: plan after execute",
      "always: approved before execute",
    ),
  ).toEqual(Array(7).fill("proven"));
});

test("what does not hold has a shortest path that breaks it", async () => {
  expect(
    await verdicts(
      documentOf(STATES),
      "never: execute",
      "never: Bash after review",
      "never: execute after execute",
      "always: failed",
      "never: Edit before review",
    ),
  ).toEqual([
    "start in plan, then READY to execute (approved)",
    "start in plan, then READY to execute (approved), then DONE to review, then AGAIN to execute, then use of Bash in execute",
    "start in plan, then READY to execute (approved), then DONE to review, then AGAIN to execute",
    "start in plan, then READY to execute (approved), then DONE to review, then OK to done",
    "start in plan, then READY to execute (approved), then use of Edit in execute",
  ]);
});

test("rows that never apply are on no path", async () => {
  const { pipeline: loaded } = await loadWorkflow(FULL.replace("deploy-full", "deploy"));
  if (loaded === undefined) throw new Error("the example did not load");
  const reading = readProperty(loaded.spec, "never: deploying");
  if (!reading.ok) throw new Error(reading.message);
  expect(proveProperty(loaded.spec, reading.property)).toMatchObject({ verdict: "proven" });
});

test("an interrupt may come in any state, and its handler goes back to where it came", async () => {
  const states = { ...STATES, audit: { allowed_tools: ["Read"], on: { OK: "$return", STOP: "failed" } } };
  const interrupts = { changed: { trigger: { file_pattern: "src/**" }, target: "audit" } };
  expect(
    await verdicts(
      documentOf(states, { interrupts }),
      "never: audit before plan",
      "never: Bash before approved",
      "never: Bash after audit",
      "never: audit after audit",
    ),
  ).toEqual([
    "proven",
    "proven",
    "start in plan, then READY to execute (approved), then interrupt changed to audit, then OK to execute, which continues, then use of Bash in execute",
    "start in plan, then interrupt changed to audit, then OK to plan, which continues, then interrupt changed to audit",
  ]);
});

test("branches run in any order, and their join is reached after all of them", async () => {
  const branches = { one: { initial: "a", terminal: "a_done" }, two: { initial: "b", terminal: "b_done" } };
  const states = {
    start: { allowed_tools: [], on: { GO: { fork: { branches, on_complete: "last", on_fail: "failed" } } } },
    a: { allowed_tools: [], on: { OK: "a_done" } },
    a_done: { type: "final" },
    b: { allowed_tools: [], on: { OK: "b_done" } },
    b_done: { type: "final" },
    last: { allowed_tools: [], on: { OK: "done" } },
    ...END,
  };
  expect(
    await verdicts(
      documentOf(states),
      "always: a before last",
      "always: b_done before done",
      "never: b before a",
      "never: last before b",
    ),
  ).toEqual(["proven", "proven", "start in start, then GO to one and two, then in two: start in b", "proven"]);
  const any = {
    ...states,
    start: {
      allowed_tools: [],
      on: { GO: { fork: { branches, join: "any", on_complete: "last", on_fail: "failed" } } },
    },
  };
  expect((await verdicts(documentOf(any), "always: b before last"))[0]).toContain("join to last");
});

test("a pipeline that a row invokes may use what its states list", async () => {
  const child = JSON.stringify({
    id: "c",
    initial: "x",
    states: { x: { allowed_tools: ["Bash"], on: { OK: "done" } }, done: { type: "final" } },
  });
  const w = JSON.stringify({
    id: "w",
    initial: "a",
    states: {
      a: { allowed_tools: ["Read"], on: { GO: { invoke: "./c.json", on_complete: "done", on_fail: "failed" } } },
      ...END,
    },
  });
  const { pipeline: loaded } = await loadTexts("w.json", { "w.json": w, "c.json": child });
  if (loaded === undefined) throw new Error("it did not load");
  const reading = readProperty(loaded.spec, "never: Bash");
  if (!reading.ok) throw new Error(reading.message);
  const verdict = proveProperty(loaded.spec, reading.property);
  expect(verdictLines(reading.property.text, verdict)).toEqual([
    "never: Bash: does not hold. A shortest path that breaks it:",
    "  1. start in a",
    "  2. a: GO to pipeline c",
    "  3. in GO: use of Bash in pipeline c",
  ]);
});

describe("functions", () => {
  const o = z.object({ ok: z.boolean() });
  const agent = (allowedTools: readonly string[] = []) =>
    stage({ prompt: "A", completionTool: "submit", completionSchema: o, turnCap: 1, allowedTools: [...allowedTools] });
  const own = {
    id: "p",
    input: z.object({}),
    stages: { a: agent(), b: agent(["Bash"]), c: agent() },
    initial: "a",
  } as const;
  const why = (spec: Parameters<typeof readProperty>[0], text: string): string => {
    const reading = readProperty(spec, text);
    if (!reading.ok) return reading.message;
    const verdict = proveProperty(spec, reading.property);
    return verdict.verdict === "unknown" ? verdict.why : verdict.verdict;
  };

  test("a bare function may lead anywhere, so nothing is proven that depends on it", () => {
    const { spec } = pipeline({
      ...own,
      next: { a: route(["b"], () => to("b")), b: () => to("c"), c: route([], () => done(1)) },
    });
    expect(why(spec, "never: b")).toBe("violated");
    expect(why(spec, "never: c")).toBe("a function decides what follows b; declare its targets with route()");
    expect(why(spec, "always: a before b")).toBe("proven");
  });

  test("declared targets are all that may follow, and every route may end the run", () => {
    const { spec } = pipeline({
      ...own,
      next: { a: route(["b"], () => to("b")), b: route(["c"], () => to("c")), c: route([], () => done(1)) },
    });
    expect(why(spec, "never: b before a")).toBe("proven");
    expect(why(spec, "always: b before c")).toBe("proven");
    expect(why(spec, "never: Bash after c")).toBe("proven");
    expect(why(spec, "always: c after b")).toBe("the function that routes b may lead to a completed end");
  });

  test("several declared targets may run side by side", () => {
    const { spec } = pipeline({
      ...own,
      next: { a: route(["b", "c"], () => to("b")), b: route([], () => done(1)), c: route([], () => done(1)) },
    });
    expect(why(spec, "never: c after b")).toBe("the function that routes a may lead to several states side by side");
    expect(why(spec, "never: a after b")).toBe("proven");
  });
});

describe("handlers that are routed by functions", () => {
  const o = z.object({ ok: z.boolean() });
  const agent = (allowedTools: readonly string[]) =>
    stage({ prompt: "A", completionTool: "submit", completionSchema: o, turnCap: 1, allowedTools: [...allowedTools] });

  test("may return, so what they interrupt may continue", () => {
    const { spec } = pipeline({
      id: "p",
      input: z.object({}),
      stages: { a: agent(["Bash"]), audit: agent([]) },
      initial: "a",
      interrupts: { changed: { files: "**", target: "audit" } },
      next: { a: route([], () => done(1)), audit: route([], () => backToInterrupted()) },
    });
    const reading = readProperty(spec, "never: Bash after audit");
    if (!reading.ok) throw new Error(reading.message);
    expect(proveProperty(spec, reading.property)).toMatchObject({
      verdict: "unknown",
      why: "the function that routes audit may lead to a, which continues",
    });
  });
});

test("a path that a cap cuts does not hide another one that a function may take", () => {
  const o = z.object({ ok: z.boolean() });
  const agent = (allowedTools: readonly string[]) =>
    stage({ prompt: "A", completionTool: "submit", completionSchema: o, turnCap: 1, allowedTools: [...allowedTools] });
  const { spec } = pipeline({
    id: "p",
    input: z.object({}),
    stages: { a: agent(["Bash"]), c: agent([]) },
    initial: "a",
    limits: { maxVisits: 1 },
    interrupts: { changed: { files: "**", target: "c" } },
    next: { a: route(["c"], () => to("c")), c: route(["a"], () => to("a")) },
  });
  const reading = readProperty(spec, "never: Bash after c");
  if (!reading.ok) throw new Error(reading.message);
  expect(proveProperty(spec, reading.property)).toMatchObject({
    verdict: "unknown",
    why: "the function that routes c may lead to a, which continues",
  });
});

test("a failure row sees the data that led to the children that failed", () => {
  const work = () => stage({ prompt: "A", turnCap: 1, allowedTools: [] });
  const { spec } = pipeline({
    id: "p",
    input: z.object({}),
    stages: { a: work(), b: work(), c: work(), end: final("completed") },
    initial: "a",
    transitions: [
      { from: "a", on: { event: "GO" }, to: fork({ one: { initial: "b", terminal: "end" } }, { onComplete: "end" }) },
      { from: "a", on: "failure", when: operatorGuard("risky", { field: "risky", op: "eq", value: true }), to: "c" },
      { from: "b", on: { event: "OK" }, to: "end" },
      { from: "c", on: { event: "OK" }, to: "end" },
    ],
  });
  const reading = readProperty(spec, "never: c");
  if (!reading.ok) throw new Error(reading.message);
  expect(proveProperty(spec, reading.property).verdict).toBe("violated");
});

test("a branch continues the counts of the run that forked", () => {
  const work = () => stage({ prompt: "A", turnCap: 1, allowedTools: [] });
  const verdict = (maxVisits: number): string => {
    const { spec } = pipeline({
      id: "p",
      input: z.object({}),
      stages: { a: work(), b: work(), b_end: final("completed"), end: final("completed") },
      initial: "a",
      limits: { maxVisits },
      transitions: [
        {
          from: "a",
          on: { event: "GO" },
          to: fork({ one: { initial: "b", terminal: "b_end" } }, { onComplete: "end" }),
        },
        { from: "b", on: { event: "BACK" }, to: "a" },
        { from: "b", on: { event: "OK" }, to: "b_end" },
      ],
    });
    const reading = readProperty(spec, "never: a after b");
    return reading.ok ? proveProperty(spec, reading.property).verdict : reading.message;
  };
  expect([verdict(1), verdict(2)]).toEqual(["proven", "violated"]);
});

test("a cap that cuts the shortest path leaves a longer one, or none", () => {
  const work = () => stage({ prompt: "A", turnCap: 1, allowedTools: [] });
  const stages = { a: work(), b: work(), c: work(), end: final("completed") };
  const on = (from: "a" | "b" | "c", event: string, target: "a" | "b" | "c" | "end"): Row<typeof stages, object> => ({
    from,
    on: { event },
    to: target,
  });
  const rows = [on("a", "B", "b"), on("b", "A", "a"), on("a", "END", "end"), on("b", "C", "c"), on("c", "B", "b")];
  const proven = (maxVisits: number): string => {
    const { spec } = pipeline({
      id: "p",
      input: z.object({}),
      stages,
      initial: "a",
      transitions: rows,
      limits: { maxVisits },
    });
    const reading = readProperty(spec, "never: b after b");
    return reading.ok ? proveProperty(spec, reading.property).verdict : reading.message;
  };
  expect([proven(1), proven(2)]).toEqual(["proven", "violated"]);
});

test.each([
  ["visits", { a: "a" }, {}],
  ["routes", { a: "b", b: "a" }, { maxVisits: 1000 }],
  ["set visits", { a: "a" }, { maxVisits: 3 }],
  ["set routes", { a: "b", b: "a" }, { maxHops: 3 }],
] as const)("a proof has the caps of a run: %s", async (_, rows: Readonly<Record<string, "a" | "b">>, limits) => {
  const work = () =>
    stage({ prompt: "A", completionTool: "submit", completionSchema: z.object({}), turnCap: 1, allowedTools: [] });
  const next = { a: route(["a", "b"], () => to(rows.a ?? "a")), b: route(["a", "b"], () => to(rows.b ?? "b")) };
  const { spec } = pipeline({
    id: "p",
    input: z.object({}),
    stages: { a: work(), b: work() },
    initial: "a",
    limits,
    next,
  });
  const state = initialState(spec, { input: {} });
  let { effect, patch } = await transition(spec, state, { kind: "start" });
  let counts: Parameters<typeof countsAfter>[0] = { visits: { a: 1 }, hops: 0 };
  while (effect.kind === "enter") {
    const step = { visits: [rows[effect.state] ?? "a"], isHop: true } as const;
    apply(state, patch);
    ({ effect, patch } = await transition(spec, state, {
      kind: "result",
      result: {
        executionId: "x#1",
        attempts: 1,
        usage: { inputTokens: 1, outputTokens: 1 },
        ms: 1,
        turns: 1,
        status: "completed",
        output: {},
      },
    }));
    counts = countsAfter(counts, step);
    expect(isWithinCaps(spec, step, counts)).toBe(effect.kind === "enter");
  }
  expect(effect).toMatchObject({ kind: "end" });
});

test("forks inside of themselves have no end, and the proof says so", () => {
  const work = () => stage({ prompt: "A", turnCap: 1, allowedTools: [] });
  const { spec } = pipeline({
    id: "p",
    input: z.object({}),
    stages: { a: work(), b: work(), audit: work(), end: final("completed"), failed: final("failed") },
    initial: "a",
    interrupts: { changed: { files: "**", target: "audit" } },
    transitions: [
      {
        from: "a",
        on: { event: "GO" },
        to: fork({ one: { initial: "a", terminal: "b" } }, { onComplete: "end", onFail: "failed" }),
      },
      { from: "a", on: { event: "B" }, to: "b" },
      { from: "b", on: { event: "END" }, to: "end" },
      { from: "audit", on: { event: "OK" }, to: backToInterrupted() },
    ],
  });
  const reading = readProperty(spec, "never: failed before b");
  if (!reading.ok) throw new Error(reading.message);
  const { property } = reading;
  expect(
    proveProperty(spec, { ...property, what: { kind: "tool", name: "None" } }, { maxSituations: 500 }),
  ).toMatchObject({
    verdict: "unknown",
    why: "the pipeline has more than 500 different situations",
  });
});

test.each([
  ["never", "is not a property"],
  ["sometimes: plan", "is not a property"],
  ["never:", '"" is not a property'],
  ["never: plan before", '"plan before" is not a property'],
  ["never: plan during review", '"during" is neither before nor after'],
  ["never: exceute", 'there is no state or tool "exceute" (did you mean "execute"?)'],
  ["always: Bash", "an agent may leave Bash unused, so nothing can depend on its use (name a state or approved)"],
  [
    "never: plan before Edit",
    "an agent may leave Edit unused, so nothing can depend on its use (name a state or approved)",
  ],
  [
    "always: Read after plan",
    "an agent may leave Read unused, so nothing can depend on its use (name a state or approved)",
  ],
  ["always: plan after plan", "names plan twice (name two things, or write never: A after A)"],
  ["never: state:Bash", 'there is no state or tool "Bash"'],
])("%s is refused", async (text, message) => {
  const [verdict = ""] = await verdicts(documentOf(STATES), text);
  expect(verdict).toContain(message);
});

test("words may be quoted, labels, and say what they are", async () => {
  const states = {
    "rolling out": { allowed_tools: ["Bash"], on: { OK: "approved", READ: "Read" } },
    Read: { allowed_tools: ["Bash"], on: { OK: "approved" } },
    approved: { type: "final", outcome: "completed" },
  };
  expect(
    await verdicts(
      documentOf(states),
      'never: "rolling out" after approved',
      "never: 'rolling out' before state:Read",
      "never: Read",
      "never: tool:Read",
      'never: "Bash before state:Read"',
      'always: state:"rolling out"',
    ),
  ).toEqual([
    '"approved" is a state, too (write state:approved, or rename the state)',
    "start in rolling out",
    '"Read" is a state, too (write state:Read or tool:Read)',
    "proven",
    "start in rolling out, then use of Bash in rolling out",
    "proven",
  ]);
});

describe("properties of a document", () => {
  const properties = [{ never: "Bash before approved" }, "always: review after execute", { always: "plan" }];

  test("that hold say nothing; one that does not keeps the workflow from loading", async () => {
    expect(ruleLines(await loadDocument(documentOf(STATES, { properties })))).toEqual([]);
    const broken = await loadDocument(documentOf(STATES, { properties: [...properties, { never: "execute" }] }));
    expect(broken.pipeline).toBeUndefined();
    expect(broken.diagnostics).toMatchObject([
      {
        severity: "error",
        rule: "property-broken",
        path: "properties[3]",
        message: 'The property "never: execute" does not hold: start in plan, then READY to execute (approved).',
      },
    ]);
  });

  test("of an invoked workflow hold with the input that it gets, too", async () => {
    const child = documentOf(
      {
        a: { allowed_tools: [], on: { GO: [{ target: "b", guard: "risky" }, { target: "done" }], FAIL: "failed" } },
        b: { allowed_tools: [], on: { OK: "done" } },
        ...END,
      },
      {
        id: "c",
        context: { risky: false },
        guards: { risky: { field: "risky", op: "eq", value: true } },
        properties: ["never: b"],
      },
    );
    const loadedWith = async (risky: boolean) => {
      const invocation = { invoke: "./c.json", on_complete: "done", on_fail: "failed", input: { risky } };
      const parent = documentOf({ a: { allowed_tools: [], on: { GO: invocation } }, ...END });
      return await loadTexts("w.json", { "w.json": JSON.stringify(parent), "c.json": JSON.stringify(child) });
    };
    expect((await loadedWith(false)).diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
    const { pipeline: none, diagnostics } = await loadedWith(true);
    expect(none).toBeUndefined();
    expect(diagnostics.filter(({ severity }) => severity === "error")).toMatchObject([
      {
        rule: "property-broken",
        path: "states.a.on.GO.invoke",
        message: 'In "./c.json" with this input: The property "never: b" does not hold: start in a, then GO[0] to b.',
      },
    ]);
  });

  test("that cannot be read are errors where they are", async () => {
    const wrong = [{ never: "exceute" }, { sometimes: "plan" }, 3, "never plan"];
    const { pipeline: loaded, diagnostics } = await loadDocument(documentOf(STATES, { properties: wrong }));
    expect(loaded).toBeUndefined();
    expect(diagnostics.map(({ path }) => path)).toEqual(["properties[1]", "properties[1].sometimes", "properties[2]"]);
    const unread = await loadDocument(documentOf(STATES, { properties: [wrong[0], wrong[3]] }));
    expect(ruleLines(unread)).toEqual(["property-invalid properties[0]", "property-invalid properties[1]"]);
  });

  test("hold in the other formats, too", async () => {
    const machine = `kind: StateMachine
start_state: plan
end_states: [done, failed]
states:
  plan: []
  work: []
transitions:
  - { from: plan, on: success, to: work }
  - { from: work, on: success, to: done }
  - { from: work, on: failure, to: failed }
properties:
  - always: plan before work
  - never: work
`;
    const flujo = await loadTexts("w.yaml", { "w.yaml": machine });
    expect(flujo.format).toBe("flujo");
    expect(ruleLines(flujo)).toEqual(["property-broken properties[1]"]);
    const folder = await loadTexts("w", {
      "w/pipeline.yaml":
        "id: w\ninitial: a\ntransitions:\n  - { from: a, to: done }\nproperties:\n  - never: Bash\n  - never: Read\n",
      "w/a.md": "---\nallowedTools: [Read]\ncompletionTool: submit\ncompletionSchema: { type: object }\n---\nWork.\n",
    });
    expect(folder.format).toBe("markdown");
    expect(ruleLines(folder)).toEqual(["property-broken properties[1]"]);
  });
});
