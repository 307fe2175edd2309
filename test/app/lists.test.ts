import { done, forEach, pipeline, stage } from "@sluice/core";
import { scriptedModel } from "@sluice/stages";
import { expect, test } from "vitest";
import { z } from "zod";
import { keyAfter } from "../../packages/tui/src/app/watched.ts";
import { askerOf } from "../../packages/tui/src/cards/card.ts";
import { costLines } from "../../packages/tui/src/run/cost.ts";
import { graph } from "../../packages/tui/src/run/graph.ts";
import { logLines } from "../../packages/tui/src/run/log.ts";
import { progressBar } from "../../packages/tui/src/run/progress-bar.ts";
import { timeline, timelineLine } from "../../packages/tui/src/run/timeline.ts";
import { reduceRun } from "../../packages/view/src/projection/reduce-run.ts";
import type { ExecutionView, RunView } from "../../packages/view/src/projection/run-view.ts";
import { describeEvent } from "../../packages/view/src/words/describe-event.ts";
import { elementsIn, sectionIn, textIn } from "../support/page-parts.ts";
import { execution, expectToFit, runView, states } from "../support/random-views.ts";
import { reportOf, soundPage } from "../support/report-kit.ts";
import { eventsOf, session } from "../support/run-kit.ts";
import { textOf } from "../support/run-views.ts";

const now = 65_000;
const HOSTILE = [
  "__proto__",
  "\u001b[31mred\u001b[0m",
  "\u202eevil",
  "<script>x</script>",
  "two\nlines",
  "y".repeat(200),
];

function fileNames(count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => HOSTILE[at - 3] ?? `packages/stages/src/file-${at}.ts`);
}
const submits = (tool: string, input: object) => [{ calls: [{ tool, input: JSON.parse(JSON.stringify(input)) }] }];

/** A run over a list of this length, of which one item fails. */
async function listed(count: number) {
  const files = fileNames(count);
  const common = { allowedTools: [], turnCap: 1, prompt: "p" };
  const pipe = pipeline({
    id: "each",
    input: z.object({}),
    stages: {
      find: stage({ ...common, completionTool: "found", completionSchema: z.object({}) }),
      review: stage({ ...common, inputSchema: z.string(), completionTool: "reviewed", completionSchema: z.object({}) }),
      join: stage({ ...common, completionTool: "joined", completionSchema: z.object({}) }),
    },
    initial: "find",
    next: {
      find: () => forEach("review", [...files], { key: (file) => file, join: "join", onFailure: "settle" }),
      join: () => done("joined"),
    },
  });
  const model = scriptedModel({
    stages: { find: submits("found", {}), review: submits("reviewed", {}), join: submits("joined", {}) },
    items: { review: { [files[1] ?? ""]: [{ text: "no" }] } },
  });
  const live = session({ model });
  const { runId } = await live.run(pipe, {});
  return { files, runId, live, events: await eventsOf(live.host, runId) };
}

const CONTROL = /(?![\n\t])[\p{Cc}\u202a-\u202e\u2066-\u2069]/u;

test.each([3, 200, 500])(
  "a list of %i items is one station, one group of a report, and items in its order",
  async (count) => {
    const { files, runId, live, events } = await listed(count);
    const { page, view } = await reportOf(live.host, runId);
    const items = view.executions.filter(({ stateId }) => stateId === "review");
    expect(items.map(({ item }) => item)).toEqual(files);
    expect(view.states.map(({ id }) => id)).toEqual(["find", "review", "join"]);
    expect(textOf(progressBar(view, { width: 90, maxRows: 4, now }))).toContain(
      `review ${count}/${count} ✔${count - 1} ✖1`,
    );
    expect(textOf(graph(view, { width: 100 }))).toContain(`✖ review 1 failed · ${count} items · ${count - 1} done`);
    expect(costLines(view, { width: 120, now }).length).toBeGreaterThan(count);

    const root = soundPage(page);
    const stages = sectionIn(root, "stages");
    const [list, ...others] = elementsIn(stages).filter(({ attributes }) => attributes.get("class") === "stage list");
    expect(others).toEqual([]);
    if (list === undefined) throw new Error("the report has no list");
    expect(list.attributes.has("open")).toBe(false);
    const text = textIn(list);
    expect(text).toContain(`review#1 for ${count} items`);
    const shown = files.filter((file) => !HOSTILE.includes(file));
    const places = shown.map((file) => text.indexOf(`${file} `));
    expect(places.every((place) => place > 0)).toBe(true);
    expect(places.toSorted((a, b) => a - b)).toEqual(places);
    expect(CONTROL.test(page)).toBe(false);
    expect(page).not.toContain("<script>x");

    const lines = [
      ...timeline(events).map((row) => timelineLine(row, { width: 100, startedAt: 0 })),
      ...logLines(view, 0, 100).lines,
      ...costLines(view, { width: 100, now }),
    ];
    expect(lines.filter((line) => CONTROL.test(textOf([line])))).toEqual([]);
  },
);

test("reducing a list costs about as much for each item, however long the list is", async () => {
  const { runId, events } = await listed(500);
  const started = process.cpuUsage();
  const reducer = reduceRun(runId);
  for (const [at, event] of events.entries()) {
    reducer.event(event);
    if (at % 20 === 0) reducer.view();
  }
  const view = reducer.view();
  progressBar(view, { width: 80, maxRows: 6, now });
  expect(view.executions).toHaveLength(502);
  expect(process.cpuUsage(started).user / 1_000).toBeLessThan(5_000);
});

test("headless lines name the item, and a list's lines count instead of naming everything", async () => {
  const { events, files } = await listed(200);
  const words = events.map((event) => describeEvent(event));
  const said = words.filter(({ isDetail }) => !isDetail).map(({ who, what, more }) => `${who} ${what} ${more}`);
  expect(said.find((line) => line.startsWith("find#1 next"))).toBe("find#1 next review for 200 items");
  expect(said.find((line) => line.startsWith("run fan-out"))).toContain("review for 200 items (");
  expect(said.find((line) => line.startsWith("run joined"))).toBe(
    `run joined review for 200 items: 199 completed, 1 failed (${files[1]})`,
  );
  expect(said.some((line) => line.startsWith("review#1:packages/stages/src/file-150.ts completed"))).toBe(true);
  expect(said.filter((line) => line.length > 400)).toEqual([]);
});

const keys = Array.from({ length: 200 }, (_, at) => `src/module-${at}.ts`);
/** The first 37 items ended, two of them badly; four are at work. */
function inTheMiddle(): RunView {
  const fork = { runId: "r1", fork: "fan-1", from: "", join: "join" };
  const item = (key: string, at: number): ExecutionView =>
    execution("review", {
      key: `r1/fan-1/${encodeURIComponent(key)}:review#1`,
      runId: `r1/fan-1/${encodeURIComponent(key)}`,
      item: key,
      fork,
      status: at > 36 ? (at === 38 ? "waiting" : "running") : at === 3 || at === 9 ? "failed" : "completed",
      ...(at > 36 ? {} : { endedAt: 5_000 }),
    });
  return runView({
    states: states("find", "review", "join"),
    forks: [{ runId: "r1", fork: "fan-1", from: "", siblings: keys, list: "review", join: "join", joined: false }],
    executions: [execution("find"), ...keys.slice(0, 41).map(item)],
  });
}

test("the rail shows a list's counts and below them the items at work, in any size", () => {
  const view = inTheMiddle();
  const wide = textOf(progressBar(view, { width: 120, maxRows: 6, now }));
  expect(wide).toContain("▶ review 37/200 ✔35 ✖2 ◆1 › ○ join");
  for (const at of [37, 38, 39, 40]) expect(wide).toContain(`src/module-${at}.ts`);
  expect(wide).not.toContain("src/module-36.ts");
  const narrow = textOf(progressBar(view, { width: 40, maxRows: 3, now }));
  expect(narrow).toContain("review 37/200");
  expect(narrow).toContain("… 3 more");
  for (let width = 1; width < 130; width += 3)
    for (const maxRows of [1, 2, 4]) expectToFit(progressBar(view, { width, maxRows, now }), width, maxRows);
});

test("the switch between transcripts goes through the items at work", () => {
  const view = inTheMiddle();
  const [, , second] = view.executions.filter(({ endedAt }) => endedAt === undefined);
  const seen = new Set<string | undefined>();
  let chosen = second?.key;
  for (let turn = 0; turn < 4; turn += 1) {
    seen.add(chosen);
    chosen = keyAfter(view, chosen);
  }
  expect(seen.size).toBe(4);
});

test("a card says which item asks", () => {
  const request = {
    runId: "r1/fan-1/src%2Fa%E2%80%AE.ts",
    requestId: "review#1/a1/t1.c0",
    kind: "grantStageTool" as const,
    digest: "d",
    body: { tool: "Bash" },
    openedAt: 0,
  };
  const parts = askerOf(request);
  expect(parts.find((part) => part.startsWith("item "))).toMatch(/^item src\/a.*\.ts$/);
  expect(parts.some((part) => CONTROL.test(part))).toBe(false);
  expect(askerOf({ ...request, runId: "r1/fan-1/review" })).toContain("sibling review");
});
