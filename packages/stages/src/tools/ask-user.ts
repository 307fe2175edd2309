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
    .describe("One question, complete in itself: the person sees nothing else of this conversation."),
  options: z
    .array(z.string().trim().min(1).max(200))
    .min(2)
    .max(12)
    .refine((options) => new Set(options).size === options.length, "options must differ from each other")
    .optional()
    .describe("When given, the answer is exactly one of these."),
});
type AskUserInput = z.infer<typeof input>;

export const askUserTool: ToolSpec<AskUserInput> = {
  name: "AskUser",
  description: `Asks the person a question and waits for the answer.
- Ask only what you can neither find out with your tools nor decide yourself.
- With options the answer is one of them, otherwise free text.
- When nobody can answer, the error is no_interactor: go on with what you know.`,
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
  // The answer comes through the queue of requests; a call that gets here was asked of nobody.
  execute: () => Promise.resolve(failure("no_interactor", "Nobody was asked. Go on with what you know.")),
};
