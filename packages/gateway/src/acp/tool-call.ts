// Tool calls and commands of a run as tool calls of the protocol.
import { resolve } from "node:path";
import type {
  ToolCall,
  ToolCallContent,
  ToolCallLocation,
  ToolCallStatus,
  ToolCallUpdate,
  ToolKind,
} from "@agentclientprotocol/sdk";
import { field, type Json } from "@sluice/core";
import { shortened, visible, visibleLine } from "@sluice/core/runtime";
import {
  type CallView,
  type CommandView,
  commandLineOf,
  type ExecutionView,
  exitText,
  mainArgument,
  reasonOf,
} from "@sluice/view";
import { textAt } from "@sluice/view/words";

/** UTF-16 units of a result that a client is shown; `sluice show` has all of it. */
const LONGEST_RESULT = 20_000;
const LONGEST_TITLE = 200;

const KINDS: ReadonlyMap<string, ToolKind> = new Map([
  ["Read", "read"],
  ["ReadSkill", "read"],
  ["Grep", "search"],
  ["Glob", "search"],
  ["Edit", "edit"],
  ["Write", "edit"],
  ["Bash", "execute"],
]);

/** The id of a call in its session: the ids of requests about it end in the same way. */
export function toolCallId(runId: string, requestId: string): string {
  return `${runId}/${requestId}`;
}

function idOfCall({ runId, executionId }: ExecutionView, { attempt, callId }: CallView): string {
  return toolCallId(runId, `${executionId}/a${attempt}/${callId}`);
}

function idOfCommand({ runId, executionId }: ExecutionView, { attempt, number }: CommandView): string {
  return toolCallId(runId, `${executionId}/a${attempt}/command-${number}`);
}

export function kindOf(tool: string): ToolKind {
  return KINDS.get(tool) ?? "other";
}

/** One line about a call. */
export function titleOf(tool: string, input: Json | undefined): string {
  const argument = mainArgument({ tool, input })
    .map(({ text }) => text)
    .join("");
  const title = visibleLine(argument === "" ? tool : `${tool} ${argument}`);
  return shortened(title, LONGEST_TITLE);
}

/** The files that a call names. */
export function locationsOf(tool: string, input: Json | undefined, cwd: string): ToolCallLocation[] {
  const path = textAt(input, "file_path") || (tool === "Grep" || tool === "Glob" ? textAt(input, "path") : "");
  return path === "" ? [] : [{ path: resolve(cwd, path) }];
}

/** What a call would change. */
export function diffsOf(tool: string, input: Json | undefined, cwd: string): ToolCallContent[] {
  const [path, after, before] = [field(input, "file_path"), field(input, "new_string"), field(input, "old_string")];
  if (typeof path !== "string") return [];
  const at = resolve(cwd, path);
  if (tool === "Edit" && typeof after === "string" && typeof before === "string")
    return [{ type: "diff", path: at, oldText: before, newText: after }];
  const content = field(input, "content");
  if (tool === "Write" && typeof content === "string") return [{ type: "diff", path: at, newText: content }];
  return [];
}

export function textContent(text: string): ToolCallContent {
  return { type: "content", content: { type: "text", text } };
}

/** A call as it begins. */
export function callOf(execution: ExecutionView, call: CallView, cwd: string): ToolCall {
  const { tool, input } = call;
  return {
    toolCallId: idOfCall(execution, call),
    title: titleOf(tool, input),
    name: tool,
    kind: kindOf(tool),
    status: statusOf(call),
    locations: locationsOf(tool, input, cwd),
    ...(input === undefined ? {} : { rawInput: input }),
    content: contentOf(call, cwd),
  };
}

/** What changed of a call. While a person is asked, its content is what they are shown. */
export function callUpdate(execution: ExecutionView, call: CallView, cwd: string): ToolCallUpdate {
  const content = call.state === "asking" ? {} : { content: contentOf(call, cwd) };
  return { toolCallId: idOfCall(execution, call), status: statusOf(call), ...content };
}

function contentOf(call: CallView, cwd: string): ToolCallContent[] {
  const { tool, input, output, state } = call;
  const diffs = diffsOf(tool, input, cwd);
  const why = reasonOf(call);
  const reason = why === "" ? [] : [textContent(visible(why))];
  // Its diff shows what an edit did.
  const isShown = diffs.length > 0 && state === "ok";
  const result = output === undefined || isShown || reason.length > 0 ? [] : [textContent(resultText(output))];
  return [...diffs, ...reason, ...result];
}

function statusOf({ state }: CallView): ToolCallStatus {
  switch (state) {
    case "proposed":
    case "asking":
      return "pending";
    case "running":
      return "in_progress";
    case "ok":
      return "completed";
    case "error":
    case "refused":
    case "abandoned":
    case "outcome_unknown":
      return "failed";
  }
}

/** The command of a state. */
export function commandOf(execution: ExecutionView, command: CommandView): ToolCall {
  return {
    toolCallId: idOfCommand(execution, command),
    title: titleOf("Bash", { command: commandLineOf(command) }),
    kind: "execute",
    ...commandState(command),
  };
}

export function commandUpdate(execution: ExecutionView, command: CommandView): ToolCallUpdate {
  return { toolCallId: idOfCommand(execution, command), ...commandState(command) };
}

function commandState(command: CommandView): { readonly status: ToolCallStatus; readonly content: ToolCallContent[] } {
  const { state, stdout, stderr, why } = command;
  const status = state === "running" || state === "ended" ? "in_progress" : state === "ok" ? "completed" : "failed";
  const parts = [stdout, stderr, why, status === "in_progress" ? "" : exitText(command)];
  const text = parts.filter((part) => part !== "").join("\n");
  return { status, content: text === "" ? [] : [textContent(cutResult(text))] };
}

function resultText(output: Json): string {
  const text = textAt(output, "content") || textAt(output, "output") || textAt(output, "stdout");
  return cutResult(typeof output === "string" ? output : text === "" ? JSON.stringify(output, null, 2) : text);
}

function cutResult(text: string): string {
  if (text.length <= LONGEST_RESULT) return text;
  return `${text.slice(0, LONGEST_RESULT).toWellFormed()}\n… ${text.length - LONGEST_RESULT} more characters`;
}
