import { expect } from "vitest";
import { documentOf, fact, oneState, ours, pipelineOf, rowsOf } from "../../support/statewright.ts";
import { loadDocument, loadTexts, ruleLines } from "../../support/workflows.ts";

// What a document is refused for when it is loaded, and what an edge of one hands on.

/** The messages of a document that cannot run, by rule and path. */
async function refused(document: object): Promise<readonly string[]> {
  const loaded = await loadDocument(document);
  expect(loaded.pipeline).toBeUndefined();
  return ruleLines(loaded).filter((line) => !line.endsWith("(warning)"));
}

fact(29, "an initial state that is missing is refused", async () => {
  expect(await refused(oneState({}, { initial: "aa" }))).toEqual(["unknown-target initial"]);
});

fact(30, "a document without a final state is refused", async () => {
  const document = { id: "w", initial: "a", states: { a: { allowed_tools: [], on: { X: "a" } } } };
  expect(await refused(document)).toEqual(["no-final states"]);
});

fact(31, "a state that cannot be reached is refused", async () => {
  const alone = { allowed_tools: [], on: { B: "done" } };
  const document = documentOf({ a: { allowed_tools: [], on: { A: "done" } }, alone });
  expect(await refused(document)).toEqual(["unreachable states.alone"]);
});

fact(32, "a target that does not exist is refused by its name", async () => {
  const loaded = await loadDocument(oneState({ on: { DONE: "dnoe", MORE: "done", FAIL: "failed" } }));
  expect(loaded.diagnostics).toMatchObject([
    { rule: "unknown-target", message: 'There is no state "dnoe".', suggestion: 'did you mean "done"?' },
  ]);
});

fact(33, "a guard that does not exist is refused by its name", async () => {
  const loaded = await loadDocument(oneState({ on: { DONE: { target: "done", guard: "ok" }, FAIL: "failed" } }));
  expect(loaded.diagnostics).toMatchObject([{ rule: "unknown-guard", message: 'There is no guard "ok".' }]);
});

const handler = { allowed_tools: [], on: { OK: "$return", FAIL: "failed" } };
const interrupts = (target: string) => ({ interrupts: { check: { trigger: { file_pattern: "db/**" }, target } } });

fact(34, "the target of an interrupt must exist; it counts as reached, as states of a fork do", async () => {
  const a = { allowed_tools: [], on: { DONE: "done", FAIL: "failed" } };
  expect(await refused(documentOf({ a, handler }, interrupts("handel")))).toEqual([
    "unknown-target interrupts.check.target",
  ]);
  const fork = { branches: { one: { initial: "run", terminal: "over" } }, on_complete: "done" };
  const states = {
    a: { allowed_tools: [], on: { GO: { fork }, FAIL: "failed" } },
    run: { allowed_tools: [], on: { OK: "over" } },
    over: { type: "final" },
    handler,
  };
  expect(ruleLines(await loadDocument(documentOf(states, interrupts("handler"))))).toEqual([]);
});

fact(35, "the states that a fork names must exist", async () => {
  const fork = { branches: { one: { initial: "x", terminal: "y" } }, on_complete: "z", on_fail: "q" };
  expect(await refused(oneState({ on: { GO: { fork }, DONE: "done", FAIL: "failed" } }))).toEqual([
    "unknown-target states.a.on.GO.fork.branches.one.initial",
    "unknown-target states.a.on.GO.fork.branches.one.terminal",
    "unknown-target states.a.on.GO.fork.on_complete",
    "unknown-target states.a.on.GO.fork.on_fail",
  ]);
});

fact(36, "every target of a list makes its state reachable", async () => {
  const guards = { ok: { field: "x", op: "exists" } };
  const on = { GO: [{ target: "done", guard: "ok" }, { target: "b" }], FAIL: "failed" };
  const document = documentOf(
    { a: { allowed_tools: [], on }, b: { allowed_tools: [], on: { X: "done" } } },
    { guards, context: { x: 1 } },
  );
  expect(ruleLines(await loadDocument(document))).toEqual([]);
});

ours(37, "later targets and guards of a list, safe_next and on_fail are checked as well", async () => {
  const on = {
    GO: [{ target: "done" }, { target: "dnoe", guards: ["no"] }],
    RUN: { invoke: "x.json", on_complete: "done", on_fail: "fail" },
    FAIL: "failed",
  };
  expect(await refused(oneState({ on, safe_next: "nowhere" }))).toEqual([
    "unknown-target states.a.on.GO[1].target",
    "unknown-guard states.a.on.GO[1].guards[0]",
    "invoke-unknown states.a.on.RUN.invoke",
    "unknown-target states.a.on.RUN.on_fail",
    "unknown-target states.a.safe_next",
  ]);
});

ours(47, "a guard that is not defined keeps the document from loading, wherever it is named", async () => {
  const edge = { target: "done", guards: ["gone"] };
  for (const on of [{ GO: edge }, { GO: [{ target: "failed" }, edge] }])
    expect(await refused(oneState({ on: { ...on, FAIL: "failed" } }))).toEqual([
      expect.stringMatching(/^unknown-guard /),
    ]);
});

const child = documentOf({ a: { allowed_tools: [], on: { X: "done" } } }, { id: "child" });
const invoking = async (edge: object) =>
  await loadTexts("w.json", {
    "w.json": JSON.stringify(oneState({ on: { RUN: { invoke: "./child.json", ...edge }, FAIL: "failed" } })),
    "child.json": JSON.stringify(child),
  });

fact(13, "an invoke edge hands on the workflow, where it leads and its input", async () => {
  const loaded = await invoking({ on_complete: "done", on_fail: "failed", input: { suite: "integration" } });
  expect(rowsOf(loaded)[0]?.to).toEqual({
    kind: "invoke",
    pipeline: "child",
    key: "RUN",
    onComplete: "done",
    onFail: "failed",
    input: { suite: "integration" },
  });
  expect(pipelineOf(loaded).spec.pipelines.get("child")?.id).toBe("child");
});

fact(14, "on_fail and the input of an invoke edge may be absent", async () => {
  expect(rowsOf(await invoking({ on_complete: "done" }))[0]?.to).toEqual({
    kind: "invoke",
    pipeline: "child",
    key: "RUN",
    onComplete: "done",
  });
});

fact(15, "an edge without invoke invokes nothing", async () => {
  const loaded = await loadDocument(oneState({}));
  expect(rowsOf(loaded).map(({ to }) => to)).toEqual([
    { kind: "to", state: "done" },
    { kind: "to", state: "failed" },
  ]);
  expect(pipelineOf(loaded).spec.pipelines.size).toBe(0);
});
