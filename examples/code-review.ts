// Runs codeReview (plan, execute, review) on a copy of the sample repository and prints every decision.
//   node examples/code-review.ts                      offline, with a scripted model
//   SLUICE_MODEL=anthropic/<model> ANTHROPIC_API_KEY=… node examples/code-review.ts "<task>"
import { cpSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sqliteHost } from "@sluice/sqlite";
import { createSession } from "@sluice/stages";
import { codeReview } from "@sluice/stages/pipelines";

const sample = join(import.meta.dirname, "../packages/cli/sample");
const workspace = mkdtempSync(join(tmpdir(), "sluice-"));
cpSync(join(sample, "repository"), workspace, { recursive: true });

const session = createSession({
  model: process.env.SLUICE_MODEL ?? `scripted:${join(sample, "demo-script.json")}`,
  cwd: workspace,
  host: () => sqliteHost(join(workspace, ".sluice/store")),
});
const task = process.argv[2] ?? "parseDuration reads only the first unit: 1h 30m gives one hour";
const run = session.start(codeReview, { task });
for await (const { type, executionId, data } of run.events) {
  if (type === "call.decided") console.log(executionId, data.verdict, data.tool, data.cause ?? "");
  if (type === "route.decided") console.log(executionId, "->", data.choice, data.to ?? "");
}

const result = await run;
console.log(`${result.status}, ${result.denied.length} denied, ${result.usage.inputTokens} tokens in`);
if (result.status === "completed") console.log(result.output.verdict, result.output.changes);
console.log(`the journal: npx sluice audit ${run.runId} --verify --store ${workspace}/.sluice/store`);
await session.close();
