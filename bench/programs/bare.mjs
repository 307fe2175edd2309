// Three model calls, each answer checked, without any library but Zod.
import { z } from "zod";
import { instantModel, PROMPT, STAGES, schema, TASK, TOOL } from "./review.mjs";

const model = instantModel();
const inputSchema = z.toJSONSchema(schema, { target: "draft-7", io: "input" });
const tools = [{ type: "function", name: TOOL, description: "Ends this stage with its result.", inputSchema }];
const audit = [];
for (const stage of STAGES) {
  const prompt = [
    { role: "system", content: PROMPT },
    { role: "user", content: [{ type: "text", text: TASK }] },
  ];
  audit.push({ at: Date.now(), type: "started", stage });
  const { stream } = await model.doStream({ prompt, tools });
  let input = "";
  for await (const part of stream) if (part.type === "tool-call") input = part.input;
  audit.push({ at: Date.now(), type: "finished", stage, output: schema.parse(JSON.parse(input)) });
}
if (audit.length !== 2 * STAGES.length) throw new Error("a stage is missing");
