import { fileURLToPath } from "node:url";
import { type AnyPipeline, callbackInteractor, type Json, type PersonRequest, type Pipeline } from "@sluice/core";
import { loadWorkflow } from "@sluice/workflows";
import { expect, test } from "vitest";
import { dataOf, eventsOf, session } from "../support/run-kit.ts";
import { type Heard, lastResults, talker } from "../support/talker.ts";
import { tempFolder } from "../support/tools.ts";

const folder = fileURLToPath(new URL("../fixtures/markdown-stages/code-review", import.meta.url));
const system = (heard: Heard | undefined): string => String(heard?.messages[0]?.content);

/** A loaded pipeline takes any input that its schema accepts. */
function open(pipeline: AnyPipeline | undefined): Pipeline<Json, Json> {
  if (pipeline === undefined) throw new Error("the workflow did not load");
  return { id: pipeline.id, spec: pipeline.spec };
}

test("the code review of Markdown stages runs from plan to review, with the Edit in plan denied through a grant request", async () => {
  const loaded = await loadWorkflow(folder);
  expect(loaded.diagnostics).toEqual([]);
  const project = tempFolder();
  project.put("AGENTS.md", "Use early returns.");
  project.put("src/auth.ts", "export const auth = (user) => { if (user) { return true; } return false; };\n");
  const call = (tool: string, input: Json) => ({ calls: [{ tool, input }] });
  const edit = {
    file_path: "src/auth.ts",
    old_string: "if (user) { return true; } return false;",
    new_string: "return Boolean(user);",
  };
  const turns: Readonly<Record<string, readonly ReturnType<typeof call>[]>> = {
    plan: [
      call("Edit", edit),
      call("Grep", { pattern: "auth", path: "src" }),
      call("submit_plan", { summary: "Simplify auth.", steps: ["Return a boolean."] }),
    ],
    execute: [
      call("Read", { file_path: "src/auth.ts" }),
      call("Edit", edit),
      call("submit_diff", { changed: ["src/auth.ts"], summary: "auth returns a boolean" }),
    ],
    review: [call("submit_review", { verdict: "approve", findings: [] })],
  };
  const model = talker(({ stage, turn }) => turns[stage]?.[turn] ?? { text: "lost" });
  const asked: PersonRequest[] = [];
  const live = session({
    cwd: project.root,
    model,
    mode: "ask",
    interactors: [
      callbackInteractor("user", (request) => {
        asked.push(request);
        return { kind: "deny", reason: "plan only" };
      }),
    ],
  });
  const run = live.start(open(loaded.pipeline), { task: "refactor auth module" });
  const result = await run;
  expect(result).toMatchObject({ status: "completed", output: { verdict: "approve", findings: [] } });
  expect(asked).toMatchObject([{ kind: "grantStageTool", body: { tool: "Edit", executionId: "plan#1", attempt: 1 } }]);
  expect(result.denied).toMatchObject([{ executionId: "plan#1", tool: "Edit" }]);
  const [, afterEdit] = model.heard;
  expect(afterEdit && JSON.stringify(lastResults(afterEdit))).toContain("plan only");
  expect(project.text("src/auth.ts")).toContain("return Boolean(user);");
  const events = await eventsOf(live.host, result.runId);
  expect(dataOf(events, "route.decided")).toMatchObject([{ to: "execute" }, { to: "review" }, {}]);
  expect(system(model.heard[0])).toMatch(/The task is: refactor auth module[\s\S]*\nUse early returns\.\n/);
  const execute = model.heard.find(({ stage }) => stage === "execute");
  expect(system(execute)).toContain('Plan: Simplify auth.\nSteps: ["Return a boolean."]');
  const review = model.heard.find(({ stage }) => stage === "review");
  expect(review?.tools).toEqual(["submit_review"]);
  expect(system(review)).toContain('The change is: {"changed":["src/auth.ts"],"summary":"auth returns a boolean"}');
});
