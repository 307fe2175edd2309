// A pipeline of three stages, run once in memory.
import { done, pipeline, stage, to } from "@sluice/core";
import { createSession } from "@sluice/stages";
import { z } from "zod";
import { instantModel, PROMPT, schema, TASK, TOOL } from "./review.mjs";

const reviewing = () =>
  stage({ prompt: PROMPT, allowedTools: ["Read"], completionTool: TOOL, completionSchema: schema, turnCap: 8 });
const line = pipeline({
  id: "line",
  input: z.object({ task: z.string() }),
  stages: { plan: reviewing(), implement: reviewing(), review: reviewing() },
  initial: "plan",
  next: { plan: () => to("implement"), implement: () => to("review"), review: ({ output }) => done(output) },
});
const session = createSession({ model: instantModel() });
const result = await session.run(line, { task: TASK });
if (result.status !== "completed") throw new Error(`the run ended as ${result.status}`);
await session.close();
