// How a run ended, in words for the client.
import type { StopReason } from "@agentclientprotocol/sdk";
import { isJson } from "@sluice/core";
import { redactJson, redactText } from "@sluice/core/runtime";
import type { RunResult } from "@sluice/stages";
import { clean } from "@sluice/view/text";
import { moment, withCode } from "@sluice/view/words";
import type { AcpRun } from "./acp-workspace.ts";
import { RESUME } from "./prompt-text.ts";

/** The end of a prompt: a failed run has no stop reason of its own, so that its text says so. */
export interface PromptEnd {
  readonly stopReason: StopReason;
  readonly text: string;
}

const STOPPED_BY: ReadonlyMap<string, StopReason> = new Map([
  ["turn_cap", "max_turn_requests"],
  ["limit_visits", "max_turn_requests"],
  ["limit_hops", "max_turn_requests"],
  ["context_overflow", "max_tokens"],
]);

export function promptEnd(result: RunResult<unknown>, run: AcpRun): PromptEnd {
  const { runId } = result;
  const more = `\n\nDetails: \`${run.showCommand()}\`\n`;
  switch (result.status) {
    case "completed":
      return { stopReason: "end_turn", text: `\n\nRun ${runId} completed.${outputText(result.output)}${more}` };
    case "failed": {
      const { code } = result.error;
      const why = clean(redactText(withCode(result.error)));
      return { stopReason: STOPPED_BY.get(code) ?? "end_turn", text: `\n\nRun ${runId} failed: ${why}${more}` };
    }
    case "cancelled":
      return { stopReason: "cancelled", text: `\n\nRun ${runId} was cancelled.${more}` };
    case "suspended": {
      const until = result.wakeAt === undefined ? "" : ` until ${moment(result.wakeAt)}`;
      const how = `Continue it with /${RESUME}, or in a terminal: \`${run.resumeCommand()}\``;
      const { message } = result.suspended;
      const why = message === undefined ? "" : `: ${clean(redactText(message))}`;
      return {
        stopReason: "end_turn",
        text: `\n\nRun ${runId} is suspended (${result.reason}${until})${why}. ${how}\n`,
      };
    }
  }
}

function outputText(output: unknown): string {
  if (typeof output === "string") return `\n\n${clean(redactText(output))}`;
  if (output === null || !isJson(output)) return "";
  return `\n\n\`\`\`json\n${JSON.stringify(redactJson(output), null, 2)}\n\`\`\``;
}
