import { fileURLToPath } from "node:url";
import { callbackInteractor, type Json, type PersonRequest } from "@sluice/core";
import { loadWorkflow } from "@sluice/workflows";
import { expect, test } from "vitest";
import { dataOf, eventsOf, session } from "../support/run-kit.ts";
import { type Heard, lastResults, talker } from "../support/talker.ts";
import { tempFolder } from "../support/tools.ts";

const folder = fileURLToPath(new URL("../fixtures/markdown-stages/code-review", import.meta.url));
const system = (heard: Heard | undefined): string => String(heard?.messages[0]?.content);

/** Loads a folder of these files, which has to be without mistakes. */
async function open(files: Readonly<Record<string, string>>) {
  const loaded = await loadWorkflow("w", {
    list: async (path) => (path === "w" ? Object.keys(files) : undefined),
    read: async (path) => files[path.replace("w/", "")] ?? "",
  });
  expect(loaded.diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
  if (loaded.pipeline === undefined) throw new Error("the workflow did not load");
  return loaded.pipeline;
}
const stage = (body: string, more = "allowedTools: []"): string =>
  `---\n${more}\ncompletionTool: submit\ncompletionSchema: { type: object, required: [ok], properties: { ok: { type: boolean } } }\nretries: 0\nturnCap: 3\n---\n${body}\n`;
const submit = (ok: boolean) => ({ calls: [{ tool: "submit", input: { ok } }] });

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
  if (loaded.pipeline === undefined) throw new Error("the workflow did not load");
  const result = await live.run(loaded.pipeline, { task: "refactor auth module" });
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

const PARALLEL = `id: check
initial: build
context: { retried: false }
transitions:
  - { from: build, to: { parallel: [test, lint], join: report } }
  - { from: build, on: failure, when: "!context.retried", to: { state: build, context: { retried: true } } }
  - { from: build, on: failure, to: fail }
  - { from: report, when: output.ok && upstream.lint.ok, to: done }
  - { from: report, to: { fail: Lint failed. } }
`;
const CHECK = {
  "pipeline.yaml": PARALLEL,
  "build.md": stage("Build, visit {{ctx.visit}}."),
  "test.md": stage("Test."),
  "lint.md": stage("Lint."),
  "report.md": stage("Tests: {{ctx.upstream.test.ok}}, lint: {{ctx.upstream.lint.ok}}."),
};

test("stages run side by side, and their join and the conditions after it read what they delivered", async () => {
  const model = talker(({ stage: name }) => submit(name !== "lint"));
  const live = session({ model });
  const result = await live.run(await open(CHECK), {});
  expect(result).toMatchObject({ status: "failed", error: { message: "Lint failed." } });
  expect(system(model.heard.find(({ stage: name }) => name === "report"))).toContain("Tests: true, lint: false.");
  const good = await session({ model: talker(() => submit(true)) }).run(await open(CHECK), {});
  expect(good).toMatchObject({ status: "completed", output: { ok: true } });
});

test("a failure row with a condition on the context is taken once, since it changes the context", async () => {
  const model = talker(() => ({ text: "I only talk." }));
  const live = session({ model });
  const result = await live.run(await open(CHECK), {});
  expect(result).toMatchObject({
    status: "failed",
    error: { message: "build ended with failure, which leads to fail" },
  });
  expect(new Set(model.heard.map((heard) => system(heard).split("\n")[0]))).toEqual(
    new Set(["Build, visit 1.", "Build, visit 2."]),
  );
});

test("a stage sees and reads only the skills that it names", async () => {
  const project = tempFolder();
  for (const name of ["pdf", "docx"])
    project.put(
      `.agents/skills/${name}/SKILL.md`,
      `---\ndescription: About ${name}.\nallowed-tools: Bash\n---\nText of ${name}.`,
    );
  const read = (name: string) => ({ calls: [{ tool: "ReadSkill", input: { name } }] });
  const turns = [read("pdf"), read("docx"), submit(true)];
  const model = talker(({ turn }) => turns[turn] ?? submit(true));
  const live = session({ cwd: project.root, model });
  const pipeline = await open({
    "pipeline.yaml": "id: s\ninitial: one\ntransitions:\n  - { from: one, to: done }\n",
    "one.md": stage("Fill in.", "allowedTools: [ReadSkill]\nskills: [pdf]"),
  });
  const result = await live.run(pipeline, {});
  expect(result).toMatchObject({ status: "completed", denied: [{ tool: "ReadSkill" }] });
  const [first, second] = model.heard;
  expect(first?.tools).toEqual(["ReadSkill", "submit"]);
  expect(system(first)).toContain("- pdf: About pdf.");
  expect(system(first)).not.toContain("docx");
  expect(second && JSON.stringify(lastResults(second))).toContain("Text of pdf.");
});

const EVENTS = `id: deploy
initial: work
final: { shipped: completed, dropped: failed }
transitions:
  - { from: work, on: { event: READY }, when: context.checked, to: check }
  - { from: work, on: { event: SKIP }, to: { state: work, context: { checked: true } } }
  - { from: check, when: output.ok, approval: { message: Ship it? }, to: shipped }
  - { from: check, to: dropped }
context: { checked: false }
`;
const DEPLOY = {
  "pipeline.yaml": EVENTS,
  "work.md": "---\nallowedTools: []\nturnCap: 5\n---\nWork, visit {{ctx.visit}}.\n",
  "check.md": stage("Check."),
};
const send = (event: string) => ({ calls: [{ tool: "transition", input: { event } }] });

test("a stage without a completion tool moves by events whose conditions hold, and a person approves the end", async () => {
  const turns = [send("READY"), send("SKIP"), send("READY")];
  const model = talker(({ stage: name, turn }) => (name === "work" ? (turns[turn] ?? send("SKIP")) : submit(true)));
  const asked: PersonRequest[] = [];
  const answer = (kind: "approve" | "deny") =>
    callbackInteractor("user", (request) => {
      asked.push(request);
      return { kind };
    });
  const live = session({ model, interactors: [answer("approve")] });
  const result = await live.run(await open(DEPLOY), {});
  expect(result).toMatchObject({ status: "completed", output: { ok: true } });
  expect(asked).toMatchObject([{ kind: "approveTransition" }]);
  expect(JSON.stringify(asked[0]?.body)).toContain("Ship it?");
  const [, afterRefusal] = model.heard;
  expect(afterRefusal && JSON.stringify(lastResults(afterRefusal))).toContain("transition_rejected");
  expect(
    model.heard.filter(({ stage: name }) => name === "work").map((heard) => system(heard).match(/visit \d/)?.[0]),
  ).toEqual(["visit 1", "visit 1", "visit 2"]);
  const denied = await session({
    model: talker(({ stage: name, turn }) => (name === "work" ? (turns[turn] ?? send("SKIP")) : submit(true))),
    interactors: [answer("deny")],
  }).run(await open(DEPLOY), {});
  expect(denied).toMatchObject({ status: "failed", error: { code: "approval_denied" } });
  const dropped = await session({
    model: talker(({ stage: name, turn }) => (name === "work" ? (turns[turn] ?? send("SKIP")) : submit(false))),
  }).run(await open(DEPLOY), {});
  expect(dropped).toMatchObject({
    status: "failed",
    error: { message: expect.stringContaining("ended in state dropped, ") },
  });
});

test("a change of a file that matches an interrupt is handled by its stage, and the work goes back", async () => {
  const project = tempFolder();
  project.put("src/auth/a.ts", "old");
  const pipeline = await open({
    "pipeline.yaml": `id: guarded
initial: work
transitions:
  - { from: work, to: done }
  - { from: audit, to: $return }
interrupts:
  auth: { files: "src/auth/**", target: audit }
`,
    "work.md": stage("Work.", "allowedTools: [Read, Write]"),
    "audit.md": stage("Audit {{ctx.input.files}}."),
  });
  const change = {
    calls: [
      { tool: "Read", input: { file_path: "src/auth/a.ts" } },
      { tool: "Write", input: { file_path: "src/auth/a.ts", content: "new" } },
    ],
  };
  const model = talker(({ stage: name, turn }) => (name === "work" && turn === 0 ? change : submit(true)));
  const result = await session({ cwd: project.root, model }).run(pipeline, {});
  expect(result).toMatchObject({ status: "completed" });
  expect(model.heard.map(({ stage: name }) => name)).toEqual(["work", "audit", "work"]);
  expect(system(model.heard[1])).toContain('Audit ["src/auth/a.ts"].');
});
