import { isSluiceError, type Problem } from "../../packages/core/src/base/errors.ts";
import { field, isJsonObject } from "../../packages/core/src/base/json.ts";
import { stage } from "../../packages/core/src/definition/agents/stage.ts";
import type { Completed, Failed, Skipped, StageContext } from "../../packages/core/src/definition/result.ts";

/** A stage with nothing to say of itself. */
export const plainStage = stage({
  prompt: "Work.",
  completionTool: "submit",
  completionSchema: { type: "object", properties: { ok: { type: "boolean" } } },
  turnCap: 3,
});

/** A stage that wants `{ focus }`. */
export const focusedStage = stage({
  inputSchema: {
    type: "object",
    properties: { focus: { type: "string" } },
    required: ["focus"],
    additionalProperties: false,
  },
  prompt: "Work on {{ctx.input.focus}}.",
  completionTool: "submit",
  completionSchema: { type: "object", properties: { ok: { type: "boolean" } } },
  turnCap: 3,
});

const BASE = { executionId: "plan#1", attempts: 1, turns: 2, usage: { inputTokens: 3, outputTokens: 4 }, ms: 5 };

export function completed(output: unknown): Completed<unknown> {
  return { ...BASE, status: "completed", output };
}
export function failed(message: string): Failed {
  return { ...BASE, status: "failed", code: "tool", message };
}
export function skipped(): Skipped {
  return { ...BASE, status: "skipped" };
}

export const CONTEXT: StageContext = {
  runId: "r1",
  workspace: "/repo",
  task: "",
  run: { input: { task: "" } },
  input: null,
  upstream: {},
  context: { tested: false },
  setup: null,
  attempt: 1,
  visit: 1,
};

/** The problems of a definition that is refused, as `path: message (suggestion)`; none when it is accepted. */
export function problemsOf(define: () => unknown): readonly string[] {
  try {
    define();
    return [];
  } catch (thrown) {
    if (!isSluiceError(thrown, "definition_invalid")) throw thrown;
    const problems = field(thrown.detail, "problems");
    return Array.isArray(problems)
      ? problems.filter(isJsonObject).map((problem) => Object.values(problem).join(" | "))
      : [];
  }
}

export function problemLines(problems: readonly Problem[]): readonly string[] {
  return problems.map(({ path, message, suggestion }) =>
    [path, message, ...(suggestion === undefined ? [] : [suggestion])].join(" | "),
  );
}
