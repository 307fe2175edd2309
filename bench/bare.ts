import type { LanguageModelV4, LanguageModelV4FunctionTool, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { z } from "zod";
import { COMPLETION_TOOL, PROMPT, type Review, reviewSchema, TASK } from "./review.ts";

/** What a program without a pipeline would log about a call. */
interface AuditEntry {
  readonly at: number;
  readonly type: "started" | "finished";
  readonly stage: string;
  readonly text?: string;
  readonly output?: Review;
}

const { $schema: _dialect, ...inputSchema } = z.toJSONSchema(reviewSchema, { target: "draft-7", io: "input" });
const tools: LanguageModelV4FunctionTool[] = [
  {
    type: "function",
    name: COMPLETION_TOOL,
    description: "Ends this stage with its result.",
    inputSchema: z.record(z.string(), z.json()).parse(inputSchema),
  },
];

/** The work of one stage without Sluice: a fresh transcript, one call, every part read, the answer checked. */
async function bareStage(model: LanguageModelV4, stage: string, audit: AuditEntry[]): Promise<Review> {
  const prompt: LanguageModelV4Prompt = [
    { role: "system", content: PROMPT },
    { role: "user", content: [{ type: "text", text: TASK }] },
  ];
  audit.push({ at: Date.now(), type: "started", stage });
  const { stream } = await model.doStream({ prompt, tools });
  const reader = stream.getReader();
  let text = "";
  let input: string | undefined;
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    const part = chunk.value;
    if (part.type === "text-delta") text += part.delta;
    else if (part.type === "tool-call") input = part.input;
    else if (part.type === "error") throw new Error("the model failed");
  }
  if (input === undefined) throw new Error("the model called nothing");
  const checked = reviewSchema.safeParse(JSON.parse(input));
  if (!checked.success) throw new Error("the answer does not fit");
  audit.push({ at: Date.now(), type: "finished", stage, text, output: checked.data });
  return checked.data;
}

/** A loop of bare stages that keeps its audit log to the end, like a run's journal. */
export async function bareLoop(model: LanguageModelV4, stages: number): Promise<number> {
  const audit: AuditEntry[] = [];
  for (let stage = 0; stage < stages; stage += 1) await bareStage(model, `stage-${stage}`, audit);
  return audit.length;
}

/** One transcript of `calls` tool calls, one per turn, and an answer: append a message, read the arguments, call, append the result. */
export async function bareCalls(
  model: LanguageModelV4,
  calls: number,
  tool: (input: unknown) => Promise<string>,
): Promise<number> {
  const audit: AuditEntry[] = [];
  const prompt: LanguageModelV4Prompt = [
    { role: "system", content: PROMPT },
    { role: "user", content: [{ type: "text", text: TASK }] },
  ];
  for (let turn = 0; turn <= calls; turn += 1) {
    const { stream } = await model.doStream({ prompt, tools });
    const reader = stream.getReader();
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      const part = chunk.value;
      if (part.type === "error") throw new Error("the model failed");
      if (part.type !== "tool-call") continue;
      const { toolCallId, toolName } = part;
      const input: unknown = JSON.parse(part.input);
      prompt.push({ role: "assistant", content: [{ type: "tool-call", toolCallId, toolName, input }] });
      if (toolName === COMPLETION_TOOL) continue;
      audit.push({ at: Date.now(), type: "started", stage: toolCallId });
      const output = { type: "text", value: await tool(input) } as const;
      prompt.push({ role: "tool", content: [{ type: "tool-result", toolCallId, toolName, output }] });
      audit.push({ at: Date.now(), type: "finished", stage: toolCallId, text: output.value });
    }
  }
  return audit.length;
}

/** Bare stages, `cap` in parallel, and their combined outputs. */
export async function bareFan(model: LanguageModelV4, stages: number, cap: number): Promise<number> {
  const audit: AuditEntry[] = [];
  const outputs = new Map<string, Review>();
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < stages) {
      const stage = `part-${next}`;
      next += 1;
      outputs.set(stage, await bareStage(model, stage, audit));
    }
  };
  await Promise.all(Array.from({ length: cap }, worker));
  return outputs.size;
}
