import type { ToolSpec } from "@sluice/core";
import { ASK_USER_FACTS, type AskUserInput } from "./builtin-facts.ts";
import { failure } from "./files/results.ts";

const MAX_ANSWER = 20_000;

export const askUserTool: ToolSpec<AskUserInput> = {
  ...ASK_USER_FACTS,
  subjects: () => [],
  question: ({ question, options }) => ({
    question: question.trim(),
    answer:
      options === undefined
        ? { type: "string", minLength: 1, maxLength: MAX_ANSWER }
        : { type: "string", enum: options.map((one) => one.trim()) },
  }),
  // The answer comes from the queue of requests; a call is executed only if no one was asked.
  execute: () =>
    Promise.resolve(failure("no_interactor", "No one is available to answer. Continue with what you know.")),
};
