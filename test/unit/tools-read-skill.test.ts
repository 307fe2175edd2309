import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { NO_MASK } from "../../packages/stages/src/secrets/cut-text.ts";
import { builtinTools } from "../../packages/stages/src/tools/builtin-tools.ts";
import { readSkillTool } from "../../packages/stages/src/tools/skills/read-skill.ts";
import { findSkills, skillNames } from "../../packages/stages/src/tools/skills/skill-folders.ts";
import { readSkillText } from "../../packages/stages/src/tools/skills/skill-text.ts";
import { judge, word } from "../support/gate.ts";
import { codeOf, stageIn, type TestWorkspace, tempFolder, textOf } from "../support/tools.ts";

const PDF =
  "---\nname: pdf\ndescription: Fill in PDF forms.\nallowed-tools: Bash, Write\n---\n\n# Forms\n\nRead the form first.\n";

function project(): TestWorkspace {
  const folder = tempFolder();
  folder.put(".agents/skills/pdf/SKILL.md", PDF);
  folder.put(".agents/skills/pdf/references/fields.md", "Fields have names.");
  folder.put(".claude/skills/docx/SKILL.md", "---\ndescription: >\n  Write\n  letters.\n---\nLetters.");
  folder.put(".sluice/skills/own/SKILL.md", "---\nname: own\ndescription: 'It''s: ours'\n---\nOurs.");
  folder.put(".env", "KEY=value");
  return folder;
}

test("skills of the three folders are found by their folder's name, with descriptions", async () => {
  expect(await findSkills(project(), NO_MASK)).toEqual([
    { name: "docx", description: "Write letters.", path: ".claude/skills/docx" },
    { name: "own", description: "It's: ours", path: ".sluice/skills/own" },
    { name: "pdf", description: "Fill in PDF forms.", path: ".agents/skills/pdf" },
  ]);
});

test("of two skills with one name, that in .agents wins", async () => {
  const folder = project();
  folder.put(".sluice/skills/pdf/SKILL.md", "---\ndescription: another\n---\n");
  expect((await findSkills(folder, NO_MASK)).filter(({ name }) => name === "pdf")).toMatchObject([
    { path: ".agents/skills/pdf" },
  ]);
});

test("ReadSkill shows the text without its frontmatter, names the other files and says that listed tools are not added", async () => {
  const text = textOf(await stageIn(project()).use(readSkillTool, { name: "pdf" }));
  expect(text).toBe(
    "Content of .agents/skills/pdf/SKILL.md:\n\n# Forms\n\nRead the form first.\n[The tools that this skill lists are not added: your tools stay as they are. Other files of this skill: references/fields.md.]",
  );
});

test("ReadSkill shows another file of the skill", async () => {
  const result = await stageIn(project()).use(readSkillTool, { name: "pdf", file: "references/fields.md" });
  expect(textOf(result)).toBe("Content of .agents/skills/pdf/references/fields.md:\n\nFields have names.");
});

test("an unknown skill fails with the names of those there are", async () => {
  const result = await stageIn(project()).use(readSkillTool, { name: "pfd" });
  expect(result.output).toEqual({
    code: "skill_unknown",
    message: "There is no skill pfd. The skills are docx, own, pdf.",
  });
});

test("a missing file and a binary one fail with a code", async () => {
  const folder = project();
  folder.put(".agents/skills/pdf/form.pdf", Uint8Array.of(37, 0, 1));
  const stage = stageIn(folder);
  expect(codeOf(await stage.use(readSkillTool, { name: "pdf", file: "no.md" }))).toBe("not_found");
  expect(codeOf(await stage.use(readSkillTool, { name: "pdf", file: "form.pdf" }))).toBe("binary_file");
});

test("a large file is shown only from its start", async () => {
  const folder = project();
  folder.put(".agents/skills/pdf/big.md", "x".repeat(300_000));
  const text = textOf(await stageIn(folder).use(readSkillTool, { name: "pdf", file: "big.md" }));
  expect(text.length).toBeLessThan(61_000);
  expect(text).toMatch(/\[Only the start of \.agents\/skills\/pdf\/big\.md is shown\.\]$/);
});

test.each([
  { name: ".." },
  { name: "." },
  { name: "../pdf" },
  { name: "pdf/../../.." },
  { name: "a..b" },
  { name: "" },
  { name: "pdf\0" },
  { name: "pdf\nx" },
  { name: "x".repeat(65) },
  { name: "pdf", file: "/etc/passwd" },
  { name: "pdf", file: "../docx/SKILL.md" },
  { name: "pdf", file: "references/../../../../.env" },
  { name: "pdf", file: "a\\..\\b" },
])("ReadSkill does not take %j", async (input) => {
  const tool = builtinTools().find(({ name }) => name === "ReadSkill");
  expect(await tool?.bind(input)).toMatchObject({ ok: false });
});

/** What the gate says of a call in this folder, in one word. */
async function verdict(
  folder: TestWorkspace,
  input: { name: string; file?: string },
  rule = "ReadSkill",
): Promise<string> {
  const tool = builtinTools().find(({ name }) => name === "ReadSkill");
  const bound = await tool?.bind(input);
  if (bound?.ok !== true) throw new Error("ReadSkill does not take this input");
  const workspace = { root: folder.root };
  const subjects = bound.subjects(workspace, { env: {}, mayWrite: false });
  return word(judge("ReadSkill", { allowedTools: [rule], subjects, workspace, tool: { effect: "read" } }));
}

test("a link out of the skill's folder is a hard limit, also one to another file of the workspace", async () => {
  const folder = project();
  symlinkSync("/etc", folder.path(".agents/skills/pdf/etc"));
  symlinkSync("../../../.env", folder.path(".agents/skills/pdf/notes.md"));
  expect(await verdict(folder, { name: "pdf", file: "etc/passwd" })).toBe("limit");
  expect(await verdict(folder, { name: "pdf", file: "notes.md" })).toBe("limit");
  expect(await verdict(folder, { name: "pdf" })).toBe("envelope");
});

test("a link to a folder that is no skill folder makes no skill; a link from one skill folder to another does", async () => {
  const folder = project();
  folder.put("secret/SKILL.md", "---\ndescription: x\n---\n");
  folder.put("secret/key", "k");
  symlinkSync("../../secret", folder.path(".agents/skills/secret"));
  symlinkSync("../..", folder.path(".agents/skills/all"));
  symlinkSync("../../.agents/skills/pdf", folder.path(".claude/skills/forms"));
  expect(skillNames(folder.root)).toEqual(["docx", "forms", "own", "pdf"]);
  expect(codeOf(await stageIn(folder).use(readSkillTool, { name: "secret", file: "key" }))).toBe("skill_unknown");
});

test("a skill folder that is itself a link elsewhere holds no skills", () => {
  const folder = tempFolder();
  folder.put("src/SKILL.md", "x");
  folder.put(".claude/x", "x");
  symlinkSync("..", folder.path(".claude/skills"));
  expect(skillNames(folder.root)).toEqual([]);
});

test("a file that is replaced by a link after the call was judged is not read", async () => {
  const folder = project();
  const judged = stageIn(folder).judge(readSkillTool, { name: "pdf", file: "later/a.md" });
  mkdirSync(dirname(folder.path("out/a.md")), { recursive: true });
  writeFileSync(folder.path("out/a.md"), "secret");
  symlinkSync("../../../out", folder.path(".agents/skills/pdf/later"));
  expect(codeOf(await judged.run())).toBe("path_changed");
});

test("so is not one that is replaced by a link to another file of the skill", async () => {
  const folder = project();
  folder.put(".agents/skills/pdf/a.md", "judged");
  const judged = stageIn(folder).judge(readSkillTool, { name: "pdf", file: "a.md" });
  rmSync(folder.path(".agents/skills/pdf/a.md"));
  symlinkSync("references/fields.md", folder.path(".agents/skills/pdf/a.md"));
  expect(codeOf(await judged.run())).toBe("path_changed");
});

test("a rule with a scope covers the skills in it", async () => {
  const folder = project();
  const rule = "ReadSkill(*/skills/{pdf,own}/**)";
  expect(await verdict(folder, { name: "pdf" }, rule)).toBe("envelope");
  expect(await verdict(folder, { name: "own" }, rule)).toBe("envelope");
  expect(await verdict(folder, { name: "docx" }, rule)).toBe("ask");
});

test.each([
  ["---\ndescription: Use when: a colon\n---\nx", "Use when: a colon"],
  ['---\ndescription: "quoted \\"twice\\""\n---\n', 'quoted "twice"'],
  ["---\ndescription: |\n  two\n  lines\nname: x\n---\n", "two lines"],
  ["---\ndescription: a\u202Eb\u0007c\u2028d\n---\n", "a b c d"],
  ["---\nname: x\n---\n", ""],
  ["no frontmatter", ""],
  ["---\ndescription: never closed\n", ""],
  [`---\ndescription: ${"x".repeat(2_000)}\n---\n`, `${"x".repeat(1_024)}…`],
])("the description of %j is %j", (text, description) => {
  expect(readSkillText(text, NO_MASK).description).toBe(description);
});
