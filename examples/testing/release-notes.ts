// A pipeline to be tested: it reads what changed and writes release notes into one folder.
import { done, pipeline, stage } from "@sluice/core";
import { z } from "zod";

const write = stage({
  prompt: "Read CHANGES.md and write release notes for users to notes/release.md. Leave out what users do not see.",
  allowedTools: ["Read", "Write(notes/**)"],
  completionTool: "submit_notes",
  completionSchema: z.object({ title: z.string() }),
  turnCap: 6,
});

export const releaseNotes = pipeline({
  id: "releaseNotes",
  input: z.object({ task: z.string() }),
  stages: { write },
  initial: "write",
  next: { write: ({ output }) => done(output.title) },
});
