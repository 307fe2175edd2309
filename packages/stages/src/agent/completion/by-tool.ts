import type { AgentSpec } from "../agent-spec.ts";
import type { CompletionCheck } from "../reply-record.ts";
import { callId } from "../transcript.ts";
import { type Completion, functionTool, rejectArguments, unreadable } from "./completion.ts";
import { firstMessage } from "./contract.ts";

/** A state with a completion tool of its own, whose arguments are the state's output. */
type TypedAgent = AgentSpec & Required<Pick<AgentSpec, "completionTool" | "completionSchema">>;

/** Completes with the first call of the completion tool that fits its schema. */
export function completionByTool({ completionTool, completionSchema }: TypedAgent): Completion {
  return {
    tool: functionTool(
      completionTool,
      "Submits the result of this stage and finishes it.",
      completionSchema.jsonSchema,
    ),
    besides: [],
    rule: `To finish the stage, call ${completionTool} with arguments that match its schema. Nothing else ends the stage, and text alone has no effect.`,
    advice: `call ${completionTool} to finish this stage`,
    about: () => "",
    first: firstMessage,
    check: async ({ calls }) => {
      const checks: CompletionCheck[] = [];
      for (const call of calls) {
        if (call.tool !== completionTool) continue;
        const check = call.input === undefined ? unreadable(call) : await completionSchema.check(call.input);
        checks.push({ index: call.index, ...(check.ok ? { ok: true, output: check.value } : check) });
        if (check.ok) break;
      }
      return checks;
    },
    settle: async (call, check, turn, scope) => {
      if (check?.ok !== true) return rejectArguments(scope, turn, call, check === undefined ? [] : check.issues);
      scope.note({ type: "completion.accepted", data: { turn, callId: callId(turn, call.index) } });
      return { kind: "completed", output: check.output };
    },
    notCompleted: (within, last) =>
      last === undefined
        ? { code: "turn_cap", message: `${completionTool} was not called ${within}` }
        : { code: "schema", message: `no ${completionTool} call matched its schema ${within}` },
  };
}
