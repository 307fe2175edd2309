import fc from "fast-check";
import { expect } from "vitest";
import { ListBuilder } from "../../packages/view/src/projection/append-only-list.ts";
import type { ExecutionView, RunView, StateView } from "../../packages/view/src/projection/run-view.ts";
import type { Line } from "../../packages/view/src/text/line.ts";
import { widthOf } from "../../packages/view/src/text/width.ts";
import type { ForkChild } from "../../packages/view/src/words/routes.ts";
import type { ExecutionStatus } from "../../packages/view/src/words/symbols.ts";

/** Names nobody could give a state, and names someone might. */
export const hostileText: fc.Arbitrary<string> = fc.oneof(
  fc.stringMatching(/^[a-z][a-z0-9_-]{0,20}$/),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.constantFrom(
    "\u001b[2J\u001b[H",
    "\u001b]52;c;aGk=\u0007",
    "\u001b]8;;http://x\u0007link\u001b]8;;\u0007",
    "a\u202eb\u2066c",
    "漢字".repeat(40),
    "👩‍👩‍👧‍👦".repeat(10),
    `e${"\u0301".repeat(50)}`,
    "line\nbreak\r\nand\ttab",
    "x".repeat(100_000),
    "\u{e0041}\u200b\ufeff",
    "",
  ),
);

const STATUSES: readonly ExecutionStatus[] = [
  "running",
  "waiting",
  "retrying",
  "completed",
  "failed",
  "skipped",
  "paused",
  "cancelled",
  "suspended",
  "interrupted",
  "sleeping",
];

export function execution(stateId: string, more: Partial<ExecutionView> = {}): ExecutionView {
  const { visit = 1, runId = "r1" } = more;
  return {
    key: `${runId}:${stateId}#${visit}`,
    runId,
    executionId: `${stateId}#${visit}`,
    stateId,
    visit,
    status: "completed",
    attempt: 1,
    turn: 3,
    turns: 3,
    usage: { inputTokens: 12_000, outputTokens: 345, costUsd: 0.1234 },
    spent: [],
    turnLog: [],
    startedAt: 0,
    updatedAt: 0,
    sleeps: 0,
    rests: [],
    restMs: 0,
    items: new ListBuilder<never>().view(),
    ...more,
  };
}

export function states(...ids: readonly string[]): readonly StateView[] {
  return ids.map((id) => ({ id, kind: "agent", turnCap: 40 }));
}

export function runView(more: Partial<RunView> = {}): RunView {
  return {
    runId: "r1",
    pipeline: "p",
    task: "t",
    origin: "",
    models: [],
    mode: "ask",
    cwd: "/w",
    status: "running",
    states: [],
    rows: [],
    interrupts: [],
    invoked: [],
    meta: {},
    executions: [],
    path: [],
    routes: [],
    decisions: [],
    approvals: new Map(),
    people: [],
    messages: [],
    calls: 0,
    spans: new ListBuilder<never>().view(),
    forks: [],
    requests: [],
    caps: [],
    usage: { inputTokens: 0, outputTokens: 0 },
    denied: [],
    startedAt: 0,
    updatedAt: more.endedAt ?? 0,
    last: "",
    streams: false,
    log: new ListBuilder<never>().view(),
    ...more,
  };
}

function branchOf(key: string, at: number): ForkChild {
  return at % 2 === 0 ? { kind: "branch", key, state: key, terminal: key } : { kind: "pipeline", key, pipeline: key };
}

/** Views of runs that could be, and of runs that could not. */
export const randomView: fc.Arbitrary<RunView> = fc
  .uniqueArray(hostileText, { minLength: 0, maxLength: 14 })
  .chain((ids) => {
    const id = ids.length === 0 ? fc.constant("none") : fc.constantFrom(...ids);
    const count = fc.nat({ max: 5_000_000 });
    const entered = fc.record({
      stateId: id,
      status: fc.constantFrom(...STATUSES),
      visit: fc.integer({ min: 1, max: 12 }),
      attempt: fc.integer({ min: 1, max: 3 }),
      turn: fc.nat({ max: 99 }),
      tokens: count,
      startedAt: count,
      nextWakeAt: fc.option(fc.constantFrom(0, 1_000, 1e15, 1e300), { nil: undefined }),
    });
    const hop = fc.record({
      runId: fc.constant("r1"),
      from: id,
      choice: fc.constantFrom("to", "fanOut", "done", "fail", "cancel", "return", "interrupt"),
      to: fc.array(id, { maxLength: 3 }),
      event: id,
    });
    return fc
      .record({
        targets: fc.array(fc.array(id, { maxLength: 3 }), { minLength: ids.length, maxLength: ids.length }),
        executions: fc.array(entered, { maxLength: 16 }),
        path: fc.array(hop, { maxLength: 6 }),
        siblings: fc.uniqueArray(id, { maxLength: 6 }),
        join: id,
        joined: fc.boolean(),
        initial: id,
        children: fc.boolean(),
      })
      .map(({ targets, executions, path, siblings, join, joined, initial, children }) =>
        runView({
          initial,
          states: ids.map((stateId, at) => ({
            id: stateId,
            kind: at % 2 === 0 ? "agent" : stateId,
            turnCap: 20,
            targets: targets[at] ?? [],
          })),
          executions: executions.map(({ tokens, stateId, nextWakeAt, ...rest }) =>
            execution(stateId, {
              ...rest,
              ...(nextWakeAt === undefined ? {} : { nextWakeAt }),
              usage: { inputTokens: tokens, outputTokens: 1, costUsd: tokens / 1e6 },
            }),
          ),
          path,
          forks:
            siblings.length === 0
              ? []
              : [
                  {
                    runId: "r1",
                    fork: "fan-1",
                    siblings,
                    from: join,
                    join,
                    joined,
                    ...(children ? { children: siblings.map(branchOf) } : {}),
                  },
                ],
          caps: [{ limit: join, message: join, reached: joined, used: 1, max: 2 }],
        }),
      );
  });

const UNSAFE = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/u;

/** No row is wider than the terminal, and none holds anything that a terminal would act on. */
export function expectToFit(lines: readonly Line[], width: number, rows = Number.POSITIVE_INFINITY): void {
  expect(lines.length).toBeLessThanOrEqual(rows);
  for (const line of lines) {
    const text = line.map((part) => part.text).join("");
    expect(widthOf(line)).toBeLessThanOrEqual(width);
    expect(text.replaceAll("\u200d", "")).not.toMatch(UNSAFE);
  }
}
