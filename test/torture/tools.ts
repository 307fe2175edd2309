import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineTool, type Tool, type ToolCall } from "@sluice/core";
import { z } from "zod";
import type { Points } from "./points.ts";
import { placeOf } from "./watched-store.ts";

/** Works until another process lets it go on, and leaves a trace of how far it came. */
export const LINT_COMMAND = "echo began >> lint.log; until [ -e go ]; do sleep 0.02; done; echo ended >> lint.log";

/** The fact that a call's end is recorded. */
function finishedCall(runId: string, executionId: string, attempt: number, callId: string): string {
  return `call.finished ${placeOf(runId)} ${executionId}/a${attempt} ${callId}`;
}

const text = z.strictObject({ text: z.string() });

/** Three tools whose every effect is seen from outside. */
export function torturedTools(points: Points): readonly Tool[] {
  const begin = (tool: string, { runId, executionId, attempt, proposalId }: ToolCall): void => {
    points.deed(`${tool} ${proposalId}`, finishedCall(runId, executionId, attempt, proposalId));
    points.at(`${tool} begins`);
  };
  const entryOf = ({ idempotencyKey }: ToolCall): string => `${idempotencyKey}\n`;
  return [
    defineTool({
      name: "Long",
      description: "Returns more than a row holds.",
      input: z.strictObject({}),
      effect: "read",
      subjects: () => [],
      execute: async (_input, call) => {
        begin("Long", call);
        await new Promise((resolve) => setImmediate(resolve));
        points.at("Long works");
        return { ok: true, output: "long", full: "x".repeat(300_000) };
      },
    }),
    defineTool({
      name: "Ledger",
      description: "Adds an entry once, and can tell whether it did.",
      input: text,
      effect: "write",
      subjects: () => [],
      prepare: (_input, call) => ({ entry: entryOf(call) }),
      execute: async (_input, call) => {
        begin("Ledger", call);
        appendFileSync(join(call.workspace.root, "ledger.txt"), entryOf(call));
        await new Promise((resolve) => setImmediate(resolve));
        points.at("Ledger acted");
        return { ok: true, output: "entered" };
      },
      recover: (_intent, call) => {
        const file = join(call.workspace.root, "ledger.txt");
        return existsSync(file) && readFileSync(file, "utf8").includes(entryOf(call)) ? "done" : "not_started";
      },
    }),
    defineTool({
      name: "Post",
      description: "Sends something, and cannot tell whether it did.",
      input: text,
      effect: "write",
      subjects: () => [],
      execute: async (input, call) => {
        begin("Post", call);
        appendFileSync(join(call.workspace.root, "posts.log"), `${input.text}\n`);
        await new Promise((resolve) => setImmediate(resolve));
        points.at("Post acted");
        return { ok: true, output: "sent" };
      },
    }),
  ];
}
