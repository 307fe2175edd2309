import { codeReview } from "@sluice/stages/pipelines";
import { handClock } from "./hand-clock.ts";
import type { ProviderName } from "./providers.ts";
import type { TestSessionOptions } from "./run-kit.ts";
import type { ServerReply } from "./sse-server.ts";
import { tempFolder } from "./tools.ts";
import { turned, wiredSession } from "./wired-session.ts";

// Plan, Execute and Review over one provider, on files that are really changed.

export const task = "let login trim the name";
export const auth = "export function login(name: string) {\n  return check(name);\n}\n";
export const other = "export const other = 1;\n";
export const trim = "export const trim = (text: string) => text.trim();\n";
export const edit = {
  file_path: "src/auth.ts",
  old_string: "return check(name);",
  new_string: "return check(trim(name));",
};
export const planned = { summary: "login() trims.", steps: ["src/auth.ts: trim"], files: ["src/auth.ts"], risks: [] };
export const changed = {
  summary: "login() trims the name.",
  changes: [
    { file: "src/auth.ts", change: "calls trim()" },
    { file: "src/trim.ts", change: "new" },
  ],
  deviations: [],
};
const reviewed = { verdict: "approve", summary: "Does what was asked.", findings: [] };
export const usage = { input: 1_000, output: 100, cacheRead: 400, reasoning: 30 };

/** One entry a request; `SAID` and `THOUGHT` are what no other stage may hear. */
export const SCRIPT: readonly ServerReply[] = [
  {
    reasoning: "PLAN-THOUGHT: look at both files at once.",
    text: "PLAN-SAID: reading.",
    calls: [
      { name: "Read", input: { file_path: "src/auth.ts" } },
      { name: "Grep", input: { pattern: "login", output_mode: "content" } },
      { name: "Read", input: { file_path: "src/other.ts" } },
    ],
  },
  { reasoning: "PLAN-THOUGHT: enough.", calls: [{ name: "submit_plan", input: planned }] },
  { text: "EXECUTE-SAID", calls: [{ name: "Read", input: { file_path: "src/auth.ts" } }] },
  {
    reasoning: "EXECUTE-THOUGHT: one edit, one new file.",
    calls: [
      { name: "Edit", input: edit },
      { name: "Write", input: { file_path: "src/trim.ts", content: trim } },
    ],
  },
  { calls: [{ name: "submit_diff", input: changed }] },
  { reasoning: "REVIEW-THOUGHT", text: "REVIEW-SAID", calls: [{ name: "submit_review", input: reviewed }] },
].map((reply) => ({ ...reply, usage }));

/** The request that meets the trouble: the one that brings the first results back. */
export const AT = 1;
/** Requests of an undisturbed run by the stage that sends them. */
export const STAGES = { plan: [0, 1], execute: [2, 3, 4], review: [5] };

export async function review(name: ProviderName, replies: readonly ServerReply[], options: TestSessionOptions = {}) {
  const workspace = tempFolder();
  workspace.put("src/auth.ts", auth);
  workspace.put("src/other.ts", other);
  const clock = handClock();
  const { live, server, requests } = await wiredSession(name, replies, { cwd: workspace.root, clock, ...options });
  const outcome = await turned(live, clock, live.start(codeReview, { task }));
  const [journal] = await live.host.journal(outcome.result.runId);
  return { ...outcome, workspace, server, requests: requests(), records: journal?.records ?? [] };
}

/** What a run with this in the way of the second request leaves behind. */
export function troubled(name: ProviderName, ...trouble: readonly ServerReply[]) {
  return review(name, [...SCRIPT.slice(0, AT), ...trouble, ...SCRIPT.slice(AT)]);
}
