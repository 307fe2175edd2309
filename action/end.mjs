// Ends the job as the run ended.
import { annotate, step } from "./lib/runner.mjs";

await step(async () => {
  const { CONCLUSION: conclusion = "", REASON: reason = "" } = process.env;
  if (conclusion === "success") return;
  annotate("error", reason === "" ? "the action itself failed: its log shows where" : reason);
  process.exitCode = 1;
});
