import { describe, expect, test } from "vitest";
import { pipelineOf } from "../../support/gateway.ts";
import {
  type AgentLife,
  type AgentStep,
  type Habit,
  type LivedRun,
  liveWithAgent,
} from "../../support/gateway-kills.ts";
import { tempFolder } from "../../support/tools.ts";

const DOCUMENT = {
  id: "work",
  initial: "plan",
  interrupts: { schema: { trigger: { file_pattern: "db/**" }, target: "review" } },
  states: {
    plan: { instructions: "Look.", allowed_tools: ["Look"], on: { READY: "build" } },
    build: {
      instructions: "Change it.",
      allowed_tools: ["Look", "Change", "Write"],
      on: { BUILT: { target: "check", requires_approval: true, approval_message: "Is it built?" } },
    },
    review: { instructions: "Review the schema.", allowed_tools: ["Look"], on: { OK: "$return" } },
    check: { instructions: "Check it.", allowed_tools: ["Bash"], allowed_commands: ["cat"], on: { GOOD: "done" } },
    done: { type: "final" },
  },
};

const look = (at: string): AgentStep => ({ tool: "Look", input: { at } });
const change = (id: string): AgentStep => ({ tool: "Change", input: { id } });
const leave = (event: string): AgentStep => ({ tool: "transition", input: { event, data: { rationale: "done" } } });

const STEPS: AgentLife["steps"] = {
  plan: [
    [look("a")],
    // Outside of the envelope of its phase.
    [change("granted")],
    [leave("READY")],
  ],
  build: [
    [change("1")],
    [{ tool: "Write", input: { file_path: "db/a.sql", content: "select 1;\n" } }],
    [look("b"), change("2"), look("c")],
    [leave("BUILT")],
  ],
  review: [[look("db")], [leave("OK")]],
  check: [[{ tool: "Bash", input: { command: "cat db/a.sql" } }], [leave("GOOD")]],
};
/** Starts no process, which takes the longest. */
const QUICK_STEPS: AgentLife["steps"] = { ...STEPS, check: [[leave("GOOD")]] };
const NATIVE_STEPS: AgentLife["steps"] = {
  ...QUICK_STEPS,
  build: [[change("1")], [look("b"), change("2"), look("c")], [leave("BUILT")]],
};

async function lifeOf(habit: Habit, isNative: boolean): Promise<AgentLife> {
  return {
    pipeline: await pipelineOf(DOCUMENT),
    root: tempFolder().root,
    steps: isNative ? NATIVE_STEPS : habit === "repeats it" ? STEPS : QUICK_STEPS,
    habit,
    ...(isNative ? { isNative } : {}),
  };
}

/** What holds wherever a process was killed. */
function expectSound({ status, events, changes, read }: LivedRun, where: string): void {
  expect(status, where).toBe("completed");
  expect(
    changes.filter((one, at) => changes.indexOf(one) !== at),
    `${where}: nothing runs twice`,
  ).toEqual([]);
  const granted = changes.filter((one) => one.includes("granted")).length;
  const consumed = events.filter(({ type }) => type === "grant.consumed").length;
  expect(consumed, `${where}: what a person approved`).toBeGreaterThanOrEqual(granted);
  const unknown = events.filter(({ type, data }) => type === "call.finished" && data.outcome === "outcome_unknown");
  if (unknown.length > 0) expect(read.join("\n"), where).toContain("outcome_unknown");
}

describe.each([
  ["tools of the gateway", false],
  ["tools of the agent's own host", true],
] as const)("a gateway with %s, killed at every record", (_name, isNative) => {
  test.each<Habit>(["repeats it", "leaves it out", "reads the state first"])(
    "and an agent that finds its call unanswered and %s",
    async (habit) => {
      const whole = await liveWithAgent(await lifeOf(habit, isNative));
      expectSound(whole, "not killed");
      expect(whole.changes).toHaveLength(3);
      for (let record = 1; record <= whole.records; record += 1) {
        for (const at of ["before record", "after record"] as const) {
          // After its last record it is over, and nothing resumes it.
          if (at === "after record" && record === whole.records) continue;
          // What the agent does afterwards hardly depends on this.
          if (habit !== "repeats it" && (at === "before record") === (record % 2 === 0)) continue;
          const where = `killed ${at} ${record}`;
          const lived = await liveWithAgent(await lifeOf(habit, isNative), [{ at, number: record }]);
          expectSound(lived, where);
          const isUnknown = lived.read.some((text) => text.includes("outcome_unknown"));
          if (habit === "repeats it" && !isUnknown) expect(lived.changes, where).toEqual(whole.changes);
        }
      }
    },
  );
});
