// Runs codeReview headless, like a CI job, and reads the JSON object that it prints.
//   SLUICE_MODEL=anthropic/<model> ANTHROPIC_API_KEY=… node examples/ci-headless/review.ts <folder> "<task>"
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const [folder = ".", task = ""] = process.argv.slice(2);
const sluice = join(import.meta.dirname, "../../packages/cli/bin/sluice.js");
const command = [sluice, "run", "codeReview", task, "--cwd", folder, "--output-format", "json", "--fail-on-denied"];
const { status, stdout } = spawnSync(process.execPath, command, {
  encoding: "utf8",
  maxBuffer: 64 * 1024 * 1024,
  stdio: ["ignore", "pipe", "inherit"], // diagnostics go to stderr, the result to stdout
});

const { runId, status: ended, output, error, denied, usage } = JSON.parse(stdout);
console.log(`run ${runId}: ${ended}, ${usage.inputTokens} tokens in, ${usage.outputTokens} out`);
for (const { executionId, tool, cause } of denied) console.log(`denied in ${executionId}: ${tool} (${cause})`);
if (error !== null) console.log(`${error.code}: ${error.message}`);
if (output !== null) {
  console.log(`${output.verdict}: ${output.summary}`);
  for (const { severity, file, problem } of output.findings) console.log(`- ${severity} in ${file}: ${problem}`);
}
// 0 completed, 1 failed, 2 usage, 3 suspended, 4 environment, 5 completed with denied calls
process.exitCode = status ?? 1;
