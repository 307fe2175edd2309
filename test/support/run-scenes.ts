import { done, fanOut, pipeline, stage, to } from "@sluice/core";
import type { RunHandle, RunResult, Script } from "@sluice/stages";
import { z } from "zod";
import { type HandClock, handClock } from "./hand-clock.ts";
import { eventually, type TestSession, type TestSessionOptions, tool } from "./run-kit.ts";
import { answerAll, scripted } from "./run-views.ts";

const output = z.object({ summary: z.string() });
const agent = (completionTool: string, allowedTools: readonly string[], more: object = {}) =>
  stage({
    prompt: `Work on it.`,
    allowedTools: [...allowedTools],
    completionTool,
    completionSchema: output,
    turnCap: 6,
    ...more,
  });

/** Plan, work on it, then test and lint side by side, then a verdict that may send the work back. */
export const ship = pipeline({
  id: "ship",
  input: z.object({ task: z.string() }),
  stages: {
    plan: agent("submit_plan", ["look"]),
    execute: agent("submit_work", ["look"], {
      assert: (result: { readonly status: string; readonly output?: { readonly summary: string } }) =>
        result.output?.summary === "half" ? { retry: "only half of it" } : "ok",
    }),
    test: agent("submit_test", ["look"]),
    lint: agent("submit_lint", []),
    review: agent("submit_review", []),
  },
  initial: "plan",
  next: {
    plan: () => to("execute"),
    execute: () => fanOut(["test", "lint"], { join: "review" }),
    review: ({ output: { summary } }) => (summary === "again" ? to("execute") : done({ summary })),
  },
});

const say = (name: string, summary = "fine") => ({ calls: [{ tool: name, input: { summary } }] });
const look = { tool: "look", input: { at: "README.md" } };
const change = { tool: "change", input: { file: "a.ts" } };

/** What a run of `ship` says that nothing goes wrong in. */
export const SMOOTH: Script["stages"] = {
  plan: [
    { reasoning: "First I look.", text: "# Plan\n\nLooking at **everything**.", calls: [look, look] },
    say("submit_plan"),
  ],
  execute: [{ text: "On it.", calls: [look] }, say("submit_work")],
  test: [{ text: "Testing.", calls: [look] }, say("submit_test")],
  lint: [say("submit_lint")],
  review: [say("submit_review")],
};
/** Calls that need leave: one in execute, one in each sibling. */
export const ASKING: Script["stages"] = {
  ...SMOOTH,
  execute: [{ text: "On it.", calls: [look, change, look] }, say("submit_work")],
  test: [{ calls: [change] }, say("submit_test")],
  lint: [{ calls: [change] }, say("submit_lint")],
};
/** Sent back by assert, by the schema, by its reviewer; the model's service fails in between. */
export const TROUBLED: Script["stages"] = {
  ...SMOOTH,
  plan: [{ errors: [{ status: 503, message: "busy" }], ...say("submit_plan") }],
  execute: [
    say("submit_work", "half"),
    { calls: [{ tool: "submit_work", input: {} }] },
    { text: "Nothing to call." },
    say("submit_work"),
    say("submit_work"),
  ],
  test: [say("submit_test"), say("submit_test")],
  lint: [say("submit_lint"), say("submit_lint")],
  review: [say("submit_review", "again"), say("submit_review")],
};
/** The planner never hands anything in. */
export const FAILING: Script["stages"] = {
  ...SMOOTH,
  plan: [{ text: "Hm." }, { text: "Hm." }, { text: "Hm." }, { text: "Hm." }, { text: "Hm." }, { text: "Hm." }],
};

const tools = [
  tool("look", { effect: "read", execute: async () => ({ ok: true, output: "line one\nline two" }) }),
  tool("change", { effect: "write", execute: async () => ({ ok: true, output: "changed" }) }),
];

const task = { task: "ship it" };

interface Begun {
  readonly clock: HandClock;
  readonly live: TestSession;
  readonly handle: RunHandle<{ readonly summary: string }>;
}

/** A run of `ship` that has begun. */
export function begin(script: Script["stages"], options: TestSessionOptions = {}): Begun {
  const clock = options.clock ?? handClock();
  const live = scripted(script, { tools, clock, ...options });
  return { clock, live, handle: live.start(ship, task) };
}

interface Played {
  readonly live: TestSession;
  readonly runId: string;
  readonly result: RunResult<{ readonly summary: string }>;
}

/** The same to its end; every request is answered alike. */
export async function play(script: Script["stages"], answer = "approve"): Promise<Played> {
  const { clock, live, handle } = begin(script);
  const ended = { value: false };
  const result = handle.then((value) => {
    ended.value = true;
    return value;
  });
  await eventually(async () => {
    clock.turn(1_000);
    if (ended.value) return true;
    await answerAll(live, handle.runId, answer === "deny" ? { kind: "deny", reason: "not now" } : { kind: answer });
    return ended.value;
  }, "the run's end");
  return { live, runId: handle.runId, result: await result };
}
