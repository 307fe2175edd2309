import { symlinkSync } from "node:fs";
import type { Json } from "@sluice/core";
import { expect, test } from "vitest";
import { builtinTools } from "../../packages/stages/src/tools/builtin-tools.ts";
import { judge, word } from "../support/gate.ts";
import { type TestWorkspace, tempFolder } from "../support/tools.ts";

const tools = new Map(builtinTools().map((tool) => [tool.name, tool]));

/** What the gate says of a call of a real tool in a real folder, in one word. */
async function verdict(
  folder: TestWorkspace,
  allowedTools: readonly string[],
  name: string,
  input: Json,
): Promise<string> {
  const tool = tools.get(name);
  const bound = await tool?.bind(input);
  if (tool === undefined || bound?.ok !== true) throw new Error(`${name} does not take ${JSON.stringify(input)}`);
  const workspace = { root: folder.root, store: folder.path(".sluice/store") };
  const subjects = bound.subjects(workspace, { env: {}, mayWrite: false });
  return word(judge(name, { allowedTools, subjects, workspace, tool: { effect: tool.effect } }));
}

function project(): TestWorkspace {
  const folder = tempFolder();
  for (const name of [
    "src/a.ts",
    "src/sub/c.ts",
    "docs/b.md",
    "docs/sub/d.md",
    ".git/config",
    ".sluice/store/runs.db",
    "sluice.config.ts",
  ])
    folder.put(name, "x");
  symlinkSync("/etc", folder.path("etc"));
  symlinkSync(".git/hooks", folder.path("hooks"));
  symlinkSync("docs", folder.path("to-docs"));
  symlinkSync("../src", folder.path("docs/to-src"));
  return folder;
}

test("the tools a coding agent's user knows are there, each with its effect", () => {
  expect([...tools.values()].map(({ name, effect }) => `${name} ${effect}`)).toEqual([
    "Read read",
    "Grep read",
    "Glob read",
    "Edit write",
    "Write write",
    "Bash write",
    "AskUser ask",
    "ReadSkill read",
  ]);
});

test.each([
  ["Read", { file_path: "a", offset: 0 }],
  ["Read", { path: "a" }],
  ["Grep", { pattern: "x", output_mode: "all" }],
  ["Glob", { pattern: "x", follow: true }],
  ["Edit", { file_path: "a", old_string: "", new_string: "x" }],
  ["Write", { file_path: "a" }],
  ["Bash", { command: "x", timeout: 600_001 }],
  ["Bash", { command: "x", run_in_background: true }],
  ["AskUser", { question: " " }],
  ["AskUser", { question: "x", options: ["one"] }],
  ["AskUser", { question: "x", options: ["one", "one"] }],
] as const)("%s does not take %j", async (name, input) => {
  expect(await tools.get(name)?.bind(input)).toMatchObject({ ok: false });
});

test("AskUser asks for one of the options, or for text", async () => {
  const asked = async (input: Json) => {
    const bound = await tools.get("AskUser")?.bind(input);
    return bound?.ok === true ? bound.question : undefined;
  };
  expect(await asked({ question: "Which?", options: ["a", "b"] })).toEqual({
    question: "Which?",
    answer: { type: "string", enum: ["a", "b"] },
  });
  expect(await asked({ question: "Why?" })).toMatchObject({
    question: "Why?",
    answer: { type: "string", minLength: 1 },
  });
});

const reading = ["Read", "Grep", "Glob", "Bash"];
const writing = ["Read", "Edit", "Write", "Bash"];
test.each<readonly [readonly string[], string, Json, string]>([
  [reading, "Read", { file_path: "src/a.ts" }, "envelope"],
  [reading, "Read", { file_path: "/etc/passwd" }, "limit"],
  [reading, "Read", { file_path: "etc/passwd" }, "limit"],
  [reading, "Read", { file_path: "../x" }, "limit"],
  [reading, "Read", { file_path: "src/../../x" }, "limit"],
  [reading, "Read", { file_path: ".sluice/store/runs.db" }, "limit"],
  [reading, "Read", { file_path: "/dev/stdin" }, "limit"],
  [reading, "Read", { file_path: "a\0" }, "limit"],
  [reading, "Grep", { pattern: "x", path: "etc" }, "limit"],
  [reading, "Glob", { pattern: "*", path: ".sluice/store" }, "limit"],
  [["Glob(docs/**)"], "Glob", { pattern: "*.md", path: "docs" }, "envelope"],
  [["Glob(docs/**)"], "Glob", { pattern: "docs/**/*.md" }, "envelope"],
  [["Glob(docs/**)"], "Glob", { pattern: "./docs//*.md" }, "envelope"],
  [["Glob(docs/**)"], "Glob", { pattern: "docs/" }, "envelope"],
  [["Glob(docs/**)"], "Glob", { pattern: "docs/sub/**" }, "envelope"],
  [["Glob(docs/sub/**)"], "Glob", { pattern: "sub/*.md", path: "docs" }, "envelope"],
  [["Glob(docs/sub/**)"], "Glob", { pattern: "docs/**" }, "ask"],
  [["Glob(docs/*)"], "Glob", { pattern: "docs/*" }, "ask"],
  [["Glob(docs/**)"], "Glob", { pattern: "docs" }, "ask"],
  [["Glob(docs/**)"], "Glob", { pattern: "src/**" }, "ask"],
  [["Glob(docs/**)"], "Glob", { pattern: "**/*" }, "ask"],
  [["Glob(docs/**)"], "Glob", { pattern: "{docs,src}/**" }, "ask"],
  [["Glob(docs/**)"], "Glob", { pattern: "doc[s]/**" }, "ask"],
  [["Glob(docs/**)"], "Glob", { pattern: "\\docs/**" }, "ask"],
  [["Glob(docs/**)"], "Glob", { pattern: "../docs/**" }, "ask"],
  [["Glob(docs/**)"], "Glob", { pattern: "/docs/**" }, "ask"],
  [["Glob(docs/**)"], "Glob", { pattern: "none/docs/**" }, "ask"],
  [["Glob(docs/**)"], "Glob", { pattern: "to-docs/**" }, "ask"],
  [["Glob(docs/**)"], "Glob", { pattern: "docs/to-src/**" }, "envelope"],
  [["Glob(docs/**)"], "Glob", { pattern: "to-src/**", path: "docs" }, "envelope"],
  [["Glob(docs/**)"], "Glob", { pattern: "sub/**", path: "docs/to-src" }, "ask"],
  [["Glob(etc/**)"], "Glob", { pattern: "etc/**" }, "ask"],
  [reading, "Glob", { pattern: "etc/**" }, "envelope"],
  [["Read(src/**)"], "Read", { file_path: "src/a.ts" }, "envelope"],
  [["Read(src/**)"], "Read", { file_path: "docs/b.md" }, "ask"],
  [reading, "Write", { file_path: "src/new.ts", content: "" }, "ask"],
  [writing, "Write", { file_path: "src/new/deep.ts", content: "" }, "envelope"],
  [writing, "Write", { file_path: ".git/config", content: "" }, "limit"],
  [writing, "Write", { file_path: "hooks/pre-commit", content: "" }, "limit"],
  [writing, "Edit", { file_path: "sluice.config.ts", old_string: "x", new_string: "y" }, "limit"],
  [writing, "Edit", { file_path: "etc/hosts", old_string: "x", new_string: "y" }, "limit"],
  [reading, "Bash", { command: "cat src/a.ts | head -3" }, "envelope"],
  [reading, "Bash", { command: "cat src/*.ts" }, "envelope"],
  [reading, "Bash", { command: "cat etc/passwd" }, "limit"],
  [reading, "Bash", { command: "cat et?/passwd" }, "limit"],
  [reading, "Bash", { command: "cat .sluice/store/runs.db" }, "limit"],
  [reading, "Bash", { command: "cat < /etc/passwd" }, "limit"],
  [reading, "Bash", { command: 'cat "$FILE"' }, "ask"],
  [reading, "Bash", { command: "rm src/a.ts" }, "ask"],
  [reading, "Bash", { command: "cat src/a.ts > out" }, "ask"],
  [reading, "Bash", { command: "cat src/a.ts 2> /dev/null" }, "envelope"],
  [writing, "Bash", { command: "npm test && rm -r dist" }, "envelope"],
  [writing, "Bash", { command: "echo x > out" }, "envelope"],
  [writing, "Bash", { command: "echo x > hooks/pre-commit" }, "limit"],
  [writing, "Bash", { command: "echo x > /tmp/out" }, "limit"],
  [writing, "Bash", { command: "sluice answer r1 x approve" }, "limit"],
  [["Bash(npm test *)"], "Bash", { command: "npm test -- --grep=name" }, "envelope"],
  [["Bash(npm test *)"], "Bash", { command: "npm test; rm -r src" }, "ask"],
])("with %j, %s %j is: %s", async (allowedTools, name, input, expected) => {
  expect(await verdict(project(), allowedTools, name, input)).toBe(expected);
});
