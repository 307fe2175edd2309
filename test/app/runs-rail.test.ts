import fc from "fast-check";
import { expect, test } from "vitest";
import { keyAfter } from "../../packages/tui/src/app/watched.ts";
import { graph } from "../../packages/tui/src/run/graph.ts";
import { progressBar } from "../../packages/tui/src/run/progress-bar.ts";
import type { ExecutionView, RunView } from "../../packages/view/src/projection/run-view.ts";
import { execution, expectToFit, randomView, runView, states } from "../support/random-views.ts";
import { textOf } from "../support/run-views.ts";

const now = 65_000;

function drawn(view: RunView, width: number, maxRows: number, chosen?: string): string {
  return textOf(progressBar(view, { width, maxRows, now, ...(chosen === undefined ? {} : { chosen }) }));
}

const three = runView({
  states: states("plan", "execute", "review"),
  executions: [
    execution("plan", { endedAt: 5_000 }),
    execution("execute", { status: "running", attempt: 2, turnCap: 40 }),
  ],
});

test("every state stands in the rail with its sign, and the one at work with all that it does", () => {
  expect(drawn(three, 100, 2)).toBe(
    "✔ plan done › ▶ execute running · attempt 2 · turn 3 of 40 · 12.3k tokens · $0.1234 · 1m05s\n› ○ review pending",
  );
  expect(drawn(three, 80, 1)).toBe("✔ plan › ▶ execute a2 3/40 12.3k $0.1234 1m05s › ○ review");
  expect(drawn(three, 45, 1)).toBe("✔ plan › ▶ execute 3/40 1m05s › ○ review");
});

test("a row without room leaves out what is far from what is at work, and says how much", () => {
  const twelve = runView({
    states: states(..."a b c d e f g h i j k l".split(" ").map((letter) => `state-${letter}`)),
    executions: "a b c d e f"
      .split(" ")
      .map((letter, at) => execution(`state-${letter}`, { status: at === 5 ? "waiting" : "completed" })),
  });
  const two = drawn(twelve, 80, 2);
  for (const letter of "abcdefghijkl") expect(two).toContain(`state-${letter}`);
  expect(two).toContain("◆ state-f");
  const narrow = drawn(twelve, 40, 2);
  expect(narrow).toMatch(/… \d+ more/);
  expect(narrow).toContain("◆ state-f waiting for you");
  expect(drawn(twelve, 40, 1)).toMatch(/^… \d more › .*◆ state-f.* › … \d more$/);
});

const forked = runView({
  states: states("reproduce", "fix", "test", "lint", "verify"),
  forks: [{ runId: "r1", fork: "fan-1", from: "", siblings: ["test", "lint"], join: "verify", joined: false }],
  executions: [
    execution("reproduce"),
    execution("fix"),
    execution("test", { status: "running", turnCap: 8 }),
    execution("lint", { endedAt: 9_000 }),
  ],
});

test("siblings stand below each other, between what came before and their join", () => {
  expect(drawn(forked, 80, 2).split("\n")).toEqual([
    "✔ reproduce › ✔ fix › ┌ ▶ test 3/8 12.3k $0.1234 1m05s › ○ verify",
    "                      └ ✔ lint",
  ]);
  expect(drawn(forked, 60, 1)).toContain("▶ test 3/8");
  expect(drawn(forked, 60, 1)).toContain(" ∥ ✔ lint");
});

test("more siblings than rows: those at work are shown, the others counted", () => {
  const ids = "a b c d e f".split(" ").map((letter) => `check-${letter}`);
  const many = runView({
    states: states("start", ...ids, "join"),
    forks: [{ runId: "r1", fork: "fan-1", from: "", siblings: ids, join: "join", joined: false }],
    executions: [
      execution("start"),
      ...ids.map((id, at) => execution(id, { status: at > 3 ? "waiting" : "completed" })),
    ],
  });
  const shown = drawn(many, 80, 3);
  expect(shown).toContain("◆ check-e");
  expect(shown).toContain("◆ check-f");
  expect(shown).toContain("… 4 more");
});

test("a loop says how often a state was entered, and what is chosen has a mark of its own", () => {
  const looped = runView({
    states: states("plan", "execute"),
    executions: [execution("plan"), execution("execute"), execution("plan", { visit: 2, status: "failed" })],
    status: "failed",
  });
  expect(drawn(looped, 80, 1)).toBe("✖ plan ×2 failed › ✔ execute done");
  expect(drawn(three, 80, 2, "r1:plan#1")).toContain("❯✔ plan");
});

test("the rail of any run fits where it is drawn", () => {
  fc.assert(
    fc.property(
      randomView,
      fc.integer({ min: 1, max: 130 }),
      fc.integer({ min: 1, max: 6 }),
      (view, width, maxRows) => {
        const chosen = view.executions.at(0)?.key;
        expectToFit(
          progressBar(view, { width, maxRows, now, ...(chosen === undefined ? {} : { chosen }) }),
          width,
          maxRows,
        );
      },
    ),
    { numRuns: 150 },
  );
});

test("as long as there is room for anything, something of what is at work is shown", () => {
  fc.assert(
    fc.property(fc.integer({ min: 12, max: 130 }), fc.integer({ min: 1, max: 4 }), (width, maxRows) => {
      expect(drawn(three, width, maxRows)).toContain("▶ execute");
      expect(drawn(forked, width, maxRows)).toContain("▶ test");
    }),
    { numRuns: 60 },
  );
});

test("the graph draws the path that was taken, what may be taken, forks, joins and ways back", () => {
  const view = runView({
    ...forked,
    initial: "reproduce",
    states: states("reproduce", "fix", "test", "lint", "verify", "report").map((state) =>
      state.id === "verify" ? { ...state, targets: ["report", "fix"] } : state,
    ),
    path: [
      { runId: "r1", from: "reproduce", choice: "to", to: ["fix"] },
      { runId: "r1", from: "fix", choice: "fanOut", to: ["test", "lint"], join: "verify" },
      { runId: "r1", from: "verify", choice: "to", to: ["fix"] },
      { runId: "r1", from: "fix", choice: "fanOut", to: ["test", "lint"], join: "verify" },
    ],
  });
  const text = textOf(graph(view, { width: 70 })).replaceAll(/ +/g, " ");
  expect(text).toContain("✔ reproduce done · 3 turns · starts here");
  expect(text).toContain("┌ ▶ test running · 3 turns\n└ ✔ lint done · 3 turns\n");
  expect(text).toContain("▼ side by side");
  expect(text).toContain("▽ joined");
  expect(text).toContain("┗━▶ ↺ back to fix");
  expect(text).toContain("○ report pending · turn cap 40");
  expect(textOf(graph(view, { width: 24 }))).toContain("▶ test");
});

test("a way back says how often it was taken, and an end how the run ended", () => {
  const view = runView({
    states: states("work", "check"),
    executions: [execution("work"), execution("check")],
    path: [
      { runId: "r1", from: "check", choice: "to", to: ["work"] },
      { runId: "r1", from: "check", choice: "to", to: ["work"] },
      { runId: "r1", from: "check", choice: "done", to: [] },
    ],
  });
  const text = textOf(graph(view, { width: 60 }));
  expect(text).toContain("↺ back to work ×2");
  expect(text).toContain("✔ the run is done");
});

test("the graph of any run fits where it is drawn", () => {
  fc.assert(
    fc.property(randomView, fc.integer({ min: 1, max: 130 }), (view, width) => {
      expectToFit(graph(view, { width }), width);
    }),
    { numRuns: 100 },
  );
});

test("Shift+Tab reaches every stage of a suspended run, and of an active one the stages at work", () => {
  const shown = (statuses: readonly ExecutionView["status"][]): string => {
    const view = runView({ executions: statuses.map((status, at) => execution("abc".charAt(at), { status })) });
    const second = keyAfter(view, undefined);
    const third = keyAfter(view, second);
    return [second, third, keyAfter(view, third)].join(" ");
  };
  expect(shown(["completed", "completed", "suspended"])).toBe("r1:a#1 r1:b#1 r1:c#1");
  expect(shown(["completed", "waiting", "running"])).toBe("r1:b#1 r1:c#1 r1:b#1");
});
