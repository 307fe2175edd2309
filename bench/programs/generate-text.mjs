// Three calls of the AI SDK's generateText with a completion tool.
import { generateText } from "ai";
import { instantModel, PROMPT, STAGES, schema, TASK, TOOL } from "./review.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;
const model = instantModel();
const tools = { [TOOL]: { description: "Ends this stage with its result.", inputSchema: schema } };
for (const _stage of STAGES) {
  const request = { model, instructions: PROMPT, prompt: TASK, tools, telemetry: { isEnabled: false } };
  const { toolCalls } = await generateText(request);
  if (toolCalls[0]?.invalid !== undefined) throw new Error("the model did not complete");
}
