import { done, pipeline } from "@sluice/core";
import { runInput } from "../format.ts";
import { authored } from "./authored.ts";

const LOOKS = ["Read", "Grep", "Glob"] as const;

/** Lets a model write a pipeline for a task, shows it to a person, and runs it. */
export const auto = pipeline({
  id: "auto",
  input: runInput,
  stages: {
    auto: authored({
      allow: { tools: [...LOOKS, "Edit", "Write", "Bash"] },
      designTools: LOOKS,
      approval: "mode",
    }),
  },
  initial: "auto",
  next: { auto: ({ output }) => done(output.output) },
});
