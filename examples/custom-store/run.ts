// A run in a custom store. It is suspended while it waits for an answer, and resumed by another session with the same file.
//   node examples/custom-store/run.ts
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { done, pipeline, stage } from "@sluice/core";
import { createHost, verifyJournal } from "@sluice/core/host";
import { createSession, scriptedModel } from "@sluice/stages";
import { z } from "zod";
import { openLineJournal } from "./lines.ts";

const name = stage({
  prompt: "Ask what the release is called, then hand in the name.",
  allowedTools: ["AskUser"],
  completionTool: "submit_name",
  completionSchema: z.object({ name: z.string() }),
  turnCap: 4,
});
const naming = pipeline({
  id: "naming",
  input: z.object({ task: z.string() }),
  stages: { name },
  initial: "name",
  next: { name: ({ output }) => done(output.name) },
});
const model = scriptedModel({
  stages: {
    name: [
      { calls: [{ tool: "AskUser", input: { question: "What is the release called?" } }] },
      { calls: [{ tool: "submit_name", input: { name: "Weir" } }] },
    ],
  },
});

const workspace = mkdtempSync(join(tmpdir(), "sluice-"));
const file = join(workspace, "runs.jsonl");

const first = openLineJournal(file);
const asking = createSession({ model, cwd: workspace, host: () => createHost(first.connect()), wait: 0 });
const left = await asking.run(naming, { task: "Name the release" });
console.log("first:", left.status);
await asking.close();
first.close();

const second = openLineJournal(file);
const host = createHost(second.connect());
for (const { runId, requestId, digest } of await host.requests()) {
  const payload = { kind: "value", value: "Weir" };
  console.log(
    "answer:",
    await host.signal(runId, { name: `request/${requestId}`, payload, digest, by: "release desk" }),
  );
}
const going = createSession({ model, cwd: workspace, host: host });
const result = await going.resume(naming, left.runId);
console.log("second:", result.status, result.status === "completed" ? result.output : "");
const { faults, records } = verifyJournal(await host.journal(left.runId));
console.log(
  `${records} records, ${faults.length} faults, ${readFileSync(file, "utf8").trim().split("\n").length} lines`,
);
await going.close();
await host.close(); // the opener closes it
second.close();
