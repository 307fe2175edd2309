import { z } from "zod";
import { type Answer, pieces, type WholeCall } from "./model.ts";

// The one-turn stage of most cells; the bare loop has the same prompt, tool, schema and answer.

export const COMPLETION_TOOL = "submit_review";
export const TASK = "Review the change to the retry policy of the upload client.";
export const PROMPT =
  "You review a change. Compare what was done with what was asked, look for what breaks, and give a verdict with your findings.";

export const reviewSchema = z.object({
  verdict: z.enum(["approve", "request_changes"]),
  summary: z.string().min(1),
  findings: z.array(z.object({ file: z.string(), line: z.number().int(), note: z.string() })),
});
export type Review = z.infer<typeof reviewSchema>;

const REVIEW: Review = {
  verdict: "request_changes",
  summary: "The backoff doubles as asked, but the last attempt is never made because the comparison stops one short.",
  findings: [
    {
      file: "src/upload/retry.ts",
      line: 41,
      note: "attempt < maxAttempts leaves out the last attempt; compare with <=.",
    },
    { file: "test/upload/retry.test.ts", line: 12, note: "No test covers a retry-after header longer than the cap." },
  ],
};

const REASONING =
  "The plan asked for exponential backoff with a cap of sixty seconds. The new loop doubles the delay each time and clamps it. The loop condition compares attempt with maxAttempts, and attempt starts at one, so with three attempts the third is never made. The header is parsed as seconds. A date would give NaN, which clamps to zero and retries at once; the old code ignored dates as well.";
const TEXT =
  "I compared the change with the plan. The delay doubles and is capped as asked, and the jitter is removed on purpose. One thing is off by one: the final attempt is skipped. The tests pass because none of them counts the attempts of a failing upload.";

/** Two tokens per piece, as its usage counts them. */
export const REVIEW_ANSWER: Answer = {
  reasoning: pieces(REASONING, 38),
  text: pieces(TEXT, 25),
  tool: COMPLETION_TOOL,
  input: pieces(JSON.stringify(REVIEW), 44),
};

/** The same completion in one piece. */
export const REVIEW_CALL: WholeCall = { tool: COMPLETION_TOOL, input: JSON.stringify(REVIEW) };
