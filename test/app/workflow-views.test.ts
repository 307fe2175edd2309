import type { JsonObject, SluiceEvent } from "@sluice/core";
import { expect, test } from "vitest";
import { bodyLines } from "../../packages/tui/src/cards/body.ts";
import { graph } from "../../packages/tui/src/run/graph.ts";
import { progressBar } from "../../packages/tui/src/run/progress-bar.ts";
import { timeline } from "../../packages/tui/src/run/timeline.ts";
import { groupsOf } from "../../packages/view/src/projection/graph/stations.ts";
import { reduceRun } from "../../packages/view/src/projection/reduce-run.ts";
import type { RunView } from "../../packages/view/src/projection/run-view.ts";
import { routeLines } from "../../packages/view/src/words/route-lines.ts";
import { appOverRun } from "../support/app-over-run.ts";
import { printed, textAt } from "../support/command.ts";
import { ctrl, deskOf } from "../support/desk.ts";
import { elementsIn, sectionIn, textIn, valuesOf } from "../support/page-parts.ts";
import { beginRelease, playRelease, RELEASED, type ReleaseRun } from "../support/release-run.ts";
import { reportOf, soundPage } from "../support/report-kit.ts";
import { eventsOf, eventually } from "../support/run-kit.ts";
import { plain, readRecords, textOf, viewOf } from "../support/run-views.ts";
import { NOTE, runNamed, sends } from "../support/workflow-desk.ts";

const viewNow = async ({ live, runId }: ReleaseRun): Promise<RunView> =>
  viewOf(runId, await readRecords(live.host, runId));

test("an event's line says what led on, by which row, and why in the stage's words", async () => {
  const { live, runId } = await playRelease();
  const said = timeline(await eventsOf(live.host, runId)).map(({ who, what, more }) => `${who} ${what} ${more}`);
  expect(said).toContain("planning#1 next working, by LOOKS_GOOD (no row names it): the change is small");
  expect(said).toContain("checking#1 next back to the interrupted state, by OK: the migration is safe");
  expect(said).toContain("run fork tests (unit to tested) and style (lint to styled), then deciding");
  expect(said).toContain("run invokes pipeline scan, then deciding");
  expect(said).toContain("deciding#2 asks deciding -> complete, by DEPLOY: Deploy it?; the stage says: all green");
  expect(said).toContain("deciding#2 next complete, by DEPLOY, approved: all green");
  expect(said.at(-1)).toBe("run ended completed in complete");
  expect(said[0]).toContain("danger level dangerous");
});

test("a decision has every row that was a candidate, with its condition, and why it did not fire", async () => {
  const { routes } = await viewNow(await playRelease());
  const deployed = routes.find(({ event }) => event === "DEPLOY");
  expect(deployed).toMatchObject({ outcome: "moved", approved: true, rationale: "all green" });
  expect(deployed?.rows).toEqual([
    {
      row: 10,
      label: "DEPLOY[0]",
      on: "event DEPLOY",
      when: "tested is false",
      to: "broken",
      approval: false,
      verdict: "did not fire",
      why: "tested is false does not hold",
    },
    expect.objectContaining({
      label: "DEPLOY[1]",
      approval: true,
      verdict: "fired",
      why: "its condition holds, and a person approved it",
    }),
    expect.objectContaining({ label: "DEPLOY[2]", verdict: "not asked", why: "an earlier row fired" }),
  ]);
  expect(routes.find(({ event }) => event === "NOPE")).toMatchObject({ outcome: "stayed", rows: [] });
  const lines = textOf(routeLines({ routes }));
  expect(lines).toContain("deciding#2 by DEPLOY to complete, approved");
  expect(lines).toMatch(
    /✖ did not fire {2}DEPLOY\[0\] {2}tested is false +-> broken\n {4}tested is false does not hold\n/,
  );
  expect(lines).toMatch(/✔ fired .*DEPLOY\[1\] .*-> complete, after an approval\n.*and a person approved it\n/);
  expect(lines).toMatch(/○ not asked +DEPLOY\[2\] {2}no condition +-> broken$/m);
});

test("a denied move stays, and its row says that a person did not approve it", async () => {
  const denied = await playRelease(
    { ...RELEASED, deciding: [...(RELEASED.deciding ?? []), { text: "I give up." }] },
    { answer: "deny" },
  );
  const { routes } = await viewNow(denied);
  const refused = routes.find(({ event }) => event === "DEPLOY");
  expect(refused).toMatchObject({ outcome: "stayed", why: expect.stringContaining("not today") });
  expect(refused?.rows[1]).toMatchObject({
    verdict: "fired",
    why: "its condition holds, but a person did not approve it",
  });
});

test("while a call waits for an approval, it is shown as waiting, and what the card says is what approving means", async () => {
  const run = beginRelease();
  await eventually(async () => (await viewNow(run)).requests.length > 0, "the request");
  const view = await viewNow(run);
  const calls = [...(view.executions.at(-1)?.items ?? [])].filter((item) => item.kind === "call");
  expect(calls.at(-1)).toMatchObject({ tool: "transition", state: "asking", why: "Deploy it?" });
  const [request] = view.requests;
  const card = request === undefined ? undefined : deskOf(request).up?.card;
  const shown = card === undefined ? "" : textOf(bodyLines(card, {}, 90, false));
  expect(shown).toContain("│ deciding -> complete");
  expect(shown).toContain("by the event: │ DEPLOY");
  expect(shown).toContain("Why it needs approval: │ Deploy it?");
  expect(shown).toContain("The stage says: │ all green");
  expect(shown).toContain("Approving allows this step once. Denying keeps the stage where it is.");
  await run.live.close();
});

test("an execution waits for the one that handles its interrupt, and both say so", async () => {
  const run = beginRelease({ ...RELEASED, checking: [{ ...RELEASED.checking?.[0], delayMs: 60_000 }] });
  await eventually(async () => (await viewNow(run)).executions.length > 2, "the handler");
  const view = await viewNow(run);
  const [, working, checking] = view.executions;
  expect(working).toMatchObject({ status: "interrupted", interrupted: { interrupt: "migrations", by: "checking" } });
  expect(checking).toMatchObject({ handles: { interrupt: "migrations", files: ["db/001.sql"], of: "working#1" } });
  const rail = textOf(progressBar(view, { width: 120, maxRows: 3, now: 0 }));
  expect(rail).toMatch(/◇ working interrupted.* › ▶ checking running/);
  expect(textOf(graph(view, { width: 120 }))).toContain("⇢ checking, by the interrupt migrations");
  const ended = await viewNow(await playRelease());
  expect(ended.executions[1]).not.toHaveProperty("interrupted");
  const left = [...(ended.executions[1]?.items ?? [])].filter((item) => item.kind === "call")[1];
  expect(left).toMatchObject({ state: "abandoned", why: "not run: the interrupt migrations came first" });
  await run.live.close();
});

test("an execution whose interrupt leads elsewhere is cancelled, and says why", async () => {
  const run = await playRelease({
    ...RELEASED,
    checking: [{ calls: [{ tool: "transition", input: { event: "BAD", data: {} } }] }],
  });
  const view = await viewNow(run);
  expect(view).toMatchObject({ status: "failed", endState: "broken" });
  const fault = "the interrupt migrations did not return to it";
  expect(view.executions[1]).toMatchObject({ executionId: "working#1", status: "cancelled", fault });
  expect(view.executions[1]).not.toHaveProperty("interrupted");
  const events = await eventsOf(run.live.host, run.runId);
  expect(timeline(events).map(({ who, what, more }) => `${who} ${what} ${more}`)).toContain(
    `working#1 cancelled ${fault}`,
  );
});

test("branches and invoked pipelines are groups with their states, and the rail has a row for each", async () => {
  const view = await viewNow(await playRelease());
  const groups = groupsOf(view).flatMap((group) =>
    group.kind === "child" ? [[group.child, group.executions.map(({ executionId }) => executionId)]] : [],
  );
  expect(groups).toEqual([
    [{ kind: "branch", key: "tests", state: "unit", terminal: "tested" }, ["unit#1", "integration#1"]],
    [{ kind: "branch", key: "style", state: "lint", terminal: "styled" }, ["lint#1"]],
    [{ kind: "pipeline", key: "SCAN", pipeline: "scan" }, ["scanning#1"]],
  ]);
  expect(view.states.map(({ id }) => id)).not.toContain("SCAN");
  expect(view.invoked).toMatchObject([{ pipeline: "scan", key: "SCAN", initial: "scanning" }]);
  const rail = textOf(progressBar(view, { width: 160, maxRows: 4, now: 0 }));
  expect(rail).toContain("✔ tests: integration done ∥ ✔ style: lint done");
  expect(rail).toContain("✔ SCAN: scanning");
  expect(rail).toMatch(/✔ complete done$/);
  for (const hidden of ["unit", "tested", "styled", "broken"]) expect(rail).not.toMatch(new RegExp(`[○✔] ${hidden}`));
  const drawn = textOf(graph(view, { width: 160 }));
  expect(drawn).toContain("┗━▶ tests (unit to tested) and style (lint to styled), then deciding by CHECK");
  expect(drawn).toContain("▣ pipeline scan as SCAN\n✔ scanning done · 1 turn · starts here");
  expect(drawn).toContain("✔ complete ended the run: completed");
  expect(drawn).toContain("○ broken final: failed");
});

test("a report has each pipeline's picture, the groups, and each decision's rows", async () => {
  const { live, runId } = await playRelease();
  const { page } = await reportOf(live.host, runId);
  const root = soundPage(page);
  const path = sectionIn(root, "path");
  expect(elementsIn(path).filter(({ attributes }) => attributes.get("class") === "graph")).toHaveLength(2);
  expect(textIn(path)).toContain("working to checking: taken 1 time, by migrations");
  const stages = textIn(sectionIn(root, "stages"));
  expect(stages).toContain("branch tests unit to tested done");
  expect(stages).toContain("pipeline scan as SCAN done");
  expect(stages).toContain("handles migrations (db/001.sql) for working#1");
  const routes = textIn(sectionIn(root, "routes"));
  expect(routes).toContain("tested is false does not hold");
  expect(routes).toContain("3 rows of the table");
  const head = textIn(root);
  for (const words of ["dangerous", "ended in"]) expect(head).toContain(words);
  expect(textIn(sectionIn(root, "timeline"))).toContain("for an interrupt");
});

test("a view that is read after each record comes to the same as one that is read at the end", async () => {
  const { live, runId } = await playRelease();
  const records = await readRecords(live.host, runId);
  const reducer = reduceRun(runId);
  const rails = records.map((record) => {
    reducer.record(record);
    return textOf(progressBar(reducer.view(), { width: 200, maxRows: 6, now: 0 }));
  });
  expect(plain(reducer.view())).toEqual(plain(viewOf(runId, records)));
  expect(rails.some((rail) => rail.includes("┌ ▶ tests: unit running") && rail.includes("○ style"))).toBe(true);
  expect(rails.some((rail) => rail.includes("◇ working interrupted"))).toBe(true);
});

/** Reduces events that are written by hand, each as a record of its run. */
function reduced(
  ...events: readonly (readonly [runId: string, type: SluiceEvent["type"], data: JsonObject, of?: string])[]
) {
  const reducer = reduceRun("r1");
  const seqs = new Map<string, number>();
  for (const [runId, type, data, executionId] of events) {
    const seq = seqs.get(runId) ?? 0;
    seqs.set(runId, seq + 1);
    const own = executionId === undefined ? {} : { executionId, attempt: 1 };
    reducer.event({ id: `${runId}/${seq}/0`, runId, at: seq, type, data, ...own });
  }
  return reducer.view();
}

const table = (when: string): JsonObject => ({
  shape: { initial: "a", states: [{ id: "a", kind: "agent" }] },
  rows: [{ from: "a", on: { event: "GO" }, when, to: "b" }],
});
const decided: JsonObject = { from: "a", choice: "to", to: "b", why: { by: "event", event: "GO", row: 0 } };

test("a decision is shown with the rows of the pipeline that made it, also after the pipeline changed", () => {
  const { routes } = reduced(
    ["r1", "run.started", { pipeline: "p", ...table("old") }],
    ["r1", "route.decided", decided, "a#1"],
    ["r1", "run.resumed", { incarnation: "i", changed: { changes: [], ...table("new") } }],
    ["r1", "route.decided", decided, "a#2"],
    ["r1", "run.resumed", { incarnation: "i", changed: { changes: [] } }],
    ["r1", "route.decided", decided, "a#3"],
  );
  expect(routes.map(({ rows }) => rows.map(({ when, to }) => [when, to]))).toEqual([
    [["old", "b"]],
    [["new", "b"]],
    [[undefined, undefined]],
  ]);
  const [started, forked] = [
    { pipeline: "p", originalPipeline: {}, ...table("new") },
    { from: "r0", execution: "a#2" },
  ];
  const fork = reduced(
    ["r1", "run.started", started],
    ["r1", "route.decided", decided, "a#1"],
    ["r1", "run.forked", { ...forked, changed: { changes: [], ...table("new") } }],
    ["r1", "route.decided", decided, "a#2"],
  );
  expect(fork.routes.map(({ rows }) => rows.map(({ when }) => when))).toEqual([[undefined], ["new"]]);
});

test("a branch that forks has its branches below it, in the groups and on the rail", () => {
  const branch = (key: string, state: string): JsonObject => ({ key, state, terminal: "z" });
  const begins: JsonObject = { attempt: 1, visit: 1 };
  const view = reduced(
    ["r1", "run.started", { pipeline: "p", ...table("x") }],
    ["r1", "attempt.started", begins, "a#1"],
    ["r1", "stage.exit", { phase: "left", outcome: "completed" }, "a#1"],
    [
      "r1",
      "route.decided",
      { ...decided, choice: "fanOut", to: ["b"], join: "z", children: [branch("left", "b")] },
      "a#1",
    ],
    ["r1", "fanOut.started", { fanOut: "fan-1", siblings: ["left"], join: "z", children: [branch("left", "b")] }],
    ["r1/fan-1/left", "run.started", { pipeline: "p", state: "b", parent: "r1", key: "left" }],
    ["r1/fan-1/left", "attempt.started", begins, "b#1"],
    [
      "r1/fan-1/left",
      "fanOut.started",
      { fanOut: "fan-1", siblings: ["in"], join: "z", children: [branch("in", "c")] },
    ],
    ["r1/fan-1/left/fan-1/in", "run.started", { pipeline: "p", state: "c", parent: "r1/fan-1/left", key: "in" }],
    ["r1/fan-1/left/fan-1/in", "attempt.started", begins, "c#1"],
  );
  const [, left] = groupsOf(view);
  expect(left).toMatchObject({ kind: "child", child: { key: "left" }, groups: [{ kind: "one" }, { kind: "child" }] });
  const rail = textOf(progressBar(view, { width: 120, maxRows: 4, now: 0 }));
  expect(rail).toMatch(/┌ ▶ left: b running.*\n.*└ ▶ left\/in: c running/);
  expect(rail).toContain("○ z pending");
});

const SECRETS = [
  "the change is small",
  "the migration is safe",
  "all green",
  "Working.",
  "ship the change",
  "db/001.sql",
];

test("captureOutput: false keeps what people, models and tools wrote out of a report, and not out of the journal", async () => {
  const { live, runId } = await playRelease(RELEASED, { meta: { captureOutput: false } });
  const { page, events } = await reportOf(live.host, runId);
  const root = soundPage(page);
  for (const text of [...SECRETS, "the file is changed", "does not hold", "Deploy it?", "LOOKS_GOOD", "NOPE"])
    expect(page).not.toContain(text);
  expect(textIn(root)).toContain("keeps prompts, texts, arguments and results out of reports");
  expect(valuesOf(root, "data-call")).toHaveLength(12);
  expect(textIn(sectionIn(root, "routes"))).toContain("another event");
  expect(textIn(sectionIn(root, "routes"))).toContain("DEPLOY");
  expect(textIn(sectionIn(root, "routes"))).toContain("tested is false");
  const journal = JSON.stringify([events, await live.host.journal(runId)]);
  for (const text of SECRETS) expect(journal).toContain(text);
});

test("what an invoked pipeline keeps out of reports stays out of those of its parent", async () => {
  const { live, runId } = await playRelease(RELEASED, { scanMeta: { captureOutput: false } });
  const { page, view } = await reportOf(live.host, runId);
  expect(view.meta).toEqual({ dangerLevel: "dangerous", captureOutput: false });
  for (const text of SECRETS) expect(page).not.toContain(text);
});

const HOSTILE = "\u202e</td><script>alert(1)</script>\u001b[2J";

test("an event, a rationale and a condition with hostile text are visible as text everywhere", async () => {
  const script = {
    ...RELEASED,
    planning: [{ calls: [{ tool: "transition", input: { event: "<b>GO</b>", data: { rationale: HOSTILE } } }] }],
  };
  const { live, runId } = await playRelease(script);
  const { page, view } = await reportOf(live.host, runId);
  const text = textIn(sectionIn(soundPage(page), "routes"));
  expect(text).toContain("<b>GO</b>");
  expect(text).toContain("·U+202E</td><script>alert(1)</script>·U+001B[2J");
  const rows = textOf([...routeLines(view), ...graph(view, { width: 200 })]);
  for (const unseen of ["\u001b", "\u202e"]) expect(rows).not.toContain(unseen);
  expect(rows).toContain("·U+202E");
});

test("Ctrl+T opens the decisions of the run on screen, and Esc closes them", async () => {
  const { app, until, surface, press } = await appOverRun(async (outside) => {
    outside.write("note.yaml", NOTE);
    return textAt(
      printed(await runNamed(outside, "note.yaml", [sends("WRITTEN", { rationale: "it is written" })])),
      "runId",
    );
  });
  surface.key(ctrl("t"));
  expect(app.state().viewer).toBeUndefined();
  app.submit("/runs");
  await until(() => app.state().viewer !== undefined);
  press("enter");
  await until(() => app.state().view?.status === "completed");
  surface.key(ctrl("t"));
  await until(() => app.state().viewer !== undefined);
  const { viewer } = app.state();
  expect(viewer?.title).toMatch(/^Routes of r/);
  const shown = textOf(viewer?.rows.slice(0, 20, 200) ?? []);
  expect(shown).toContain("writing#1 by WRITTEN to complete");
  expect(shown).toContain("the stage says: it is written");
  expect(shown).toMatch(/✔ fired +WRITTEN\[0\] {2}low_risk .* -> complete/);
  expect(shown).toMatch(/○ not asked +WRITTEN\[1\] {2}no condition +-> failed/);
  press("escape");
  expect(app.state().viewer).toBeUndefined();
});
