import { chmodSync } from "node:fs";
import { codeReview } from "@sluice/stages/pipelines";
import { expect, test } from "vitest";
import { session } from "../support/run-kit.ts";
import { talker } from "../support/talker.ts";
import { tempFolder } from "../support/tools.ts";

// The project's own check in codeReview, which no model runs.

/** codeReview whose plan names this command, with an npm that prints and ends so; what the review read, and who was asked. */
async function reviewing(check: string | undefined, npm: string) {
  const folder = tempFolder();
  const bin = tempFolder();
  chmodSync(bin.put("npm", `#!/bin/sh\necho "npm $* runs"\n${npm}\n`), 0o755);
  folder.put("a.ts", "export const a = 1;\n");
  const submit = (tool: string, input: object) => ({ calls: [{ tool, input: { ...input } }] });
  const prompts: string[] = [];
  const model = talker(({ stage, messages }) => {
    const plan = { summary: "s", steps: ["a.ts: change it"], files: ["a.ts"], risks: [] };
    if (stage === "plan") return submit("submit_plan", check === undefined ? plan : { ...plan, check });
    const changes = [{ file: "a.ts", change: "c" }];
    if (stage === "execute") return submit("submit_diff", { summary: "s", changes, deviations: [] });
    prompts.push(JSON.stringify(messages[0]));
    const isBroken = JSON.stringify(messages[0]).includes("exit code 1");
    const findings = isBroken ? [{ severity: "blocker", file: "a.ts", problem: "p", suggestion: "s" }] : [];
    return submit("submit_review", { verdict: isBroken ? "request_changes" : "approve", summary: "s", findings });
  });
  const env = { PATH: `${bin.root}:/usr/bin:/bin` };
  const live = session({ model, env, cwd: folder.root, sandbox: "off" });
  const result = await live.run(codeReview, { task: "change it" });
  return { result, prompts, asked: model.heard.map(({ stage }) => stage) };
}

test("a command that the plan names runs after the change, and the review reads what it printed", async () => {
  const { result, prompts, asked } = await reviewing(
    "npm test",
    "test -e again || { touch again; echo 1 failed; exit 1; }",
  );
  expect(result).toMatchObject({ status: "completed", output: { verdict: "approve" } });
  expect(asked).toEqual(["plan", "execute", "review", "execute", "review"]);
  expect(prompts[0]).toMatch(/npm test runs.*1 failed/);
  expect(prompts[1]).toMatch(/exit code 0/);
});

test("without one, nothing runs, and the review knows it", async () => {
  const { result, prompts, asked } = await reviewing(undefined, "exit 1");
  expect(result).toMatchObject({ status: "completed", output: { verdict: "approve" } });
  expect(asked).toEqual(["plan", "execute", "review"]);
  expect(prompts[0]).toMatch(/names no command that checks the change/);
});

test("no plan can name another command than the usual ones", async () => {
  const { result } = await reviewing("npm test; touch pwned", "exit 0");
  expect(result).toMatchObject({ status: "failed" });
});
