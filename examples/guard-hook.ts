// A guard hook checks every call that the envelope, a grant or the mode allows, and can veto it. This one lets a run change at
// most two files.
//   node examples/guard-hook.ts
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { done, field, type GuardHook, pipeline, stage } from "@sluice/core";
import { createSession, scriptedModel } from "@sluice/stages";
import { z } from "zod";

const changed = new Map<string, Set<string>>();
const atMostTwoFiles: GuardHook = ({ tool, input }, { runId }) => {
  const file = field(input, "file_path");
  if ((tool !== "Edit" && tool !== "Write") || typeof file !== "string") return undefined; // no objection
  const files = changed.get(runId) ?? new Set();
  changed.set(runId, files);
  if (!files.has(file) && files.size === 2) return { veto: "this run has changed two files; finish with those" };
  files.add(file);
  return undefined;
};

const write = stage({
  prompt: "Write the notes that the task asks for.",
  allowedTools: ["Read", "Write(notes/**)"],
  completionTool: "submit_notes",
  completionSchema: z.object({ files: z.array(z.string()) }),
  turnCap: 6,
});
const notes = pipeline({
  id: "notes",
  input: z.object({ task: z.string() }),
  stages: { write },
  initial: "write",
  next: { write: ({ output }) => done(output.files) },
});

const note = (name: string) => ({
  calls: [{ tool: "Write", input: { file_path: `notes/${name}.md`, content: `# ${name}\n` } }],
});
const script = scriptedModel({
  stages: {
    write: [
      note("one"),
      note("two"),
      note("three"),
      { calls: [{ tool: "submit_notes", input: { files: ["notes/one.md", "notes/two.md"] } }] },
    ],
  },
});
const workspace = mkdtempSync(join(tmpdir(), "sluice-"));
const session = createSession({
  model: process.env.SLUICE_MODEL ?? script,
  cwd: workspace,
  onCall: atMostTwoFiles, // before the hooks of the pipeline and the stage
});
const result = await session.run(notes, { task: "Write three notes" });
for (const { tool, callId, cause } of result.denied) console.log(`${tool} ${callId}: vetoed by a ${cause}`);
for (const name of ["one", "two", "three"]) console.log(name, existsSync(join(workspace, "notes", `${name}.md`)));
await session.close();
