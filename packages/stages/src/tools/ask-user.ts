import type { ToolSpec } from "@sluice/core";
import { z } from "zod";
import { failure } from "./files/results.ts";

const MAX_ANSWER = 20_000;

const input = z.strictObject({
  question: z
    .string()
    .trim()
    .min(1)
    .max(4_000)
    .describe("One self-contained question: the person sees nothing else of this conversation."),
  options: z
    .array(z.string().trim().min(1).max(200))
    .min(2)
    .max(12)
    .refine((options) => new Set(options).size === options.length, "options must be distinct")
    .optional()
    .describe("If given, the answer is exactly one of these."),
});
type AskUserInput = z.infer<typeof input>;

export const askUserTool: ToolSpec<AskUserInput> = {
  name: "AskUser",
  description: `Asks the user a question and waits for the answer.
- Ask only what you can neither find out with your tools nor decide yourself.
- With options the answer is one of them, otherwise free text.
- If no one can answer, the call fails with no_interactor: continue with what you know.`,
  input,
  effect: "ask",
  subjects: () => [],
  question: ({ question, options }) => ({
    question,
    answer:
      options === undefined
        ? { type: "string", minLength: 1, maxLength: MAX_ANSWER }
        : { type: "string", enum: [...options] },
  }),
  // The answer comes from the queue of requests; a call is executed only if no one was asked.
  execute: () =>
    Promise.resolve(failure("no_interactor", "No one is available to answer. Continue with what you know.")),
};
