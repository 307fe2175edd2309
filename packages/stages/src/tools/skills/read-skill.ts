import { join, relative, sep } from "node:path";
import type { Subject, ToolSpec, Workspace } from "@sluice/core";
import { maskedCut, maskedHead, NO_MASK } from "../../secrets/cut-text.ts";
import { READ_SKILL_FACTS, SKILL_CHARACTERS, type SkillInput } from "../builtin-facts.ts";
import { listFolder, readUpTo, withFile } from "../files/open.ts";
import { contains, displayPath, fileSubjects, pathChanged } from "../files/paths.ts";
import { asResult, failure } from "../files/results.ts";
import { isBinary, textOfCut, withRemarks } from "../files/text.ts";
import { skillFolder, skillNames } from "./skill-folders.ts";
import { SKILL_FILE, SKILL_ROOTS } from "./skill-names.ts";
import { readSkillText } from "./skill-text.ts";

const MAX_BYTES = 262_144;
const MAX_LISTED = 50;
const MAX_DEPTH = 4;

export const readSkillTool: ToolSpec<SkillInput> = {
  ...READ_SKILL_FACTS,
  subjects: (read, workspace) => [subjectOf(read, workspace)],
  execute: (read, call) =>
    asResult(async () => {
      const { workspace } = call;
      const folder = skillFolder(workspace.root, read.name);
      if (folder === undefined) return failure("skill_unknown", unknownSkill(read.name, workspace.root));
      const now = subjectOf(read, workspace);
      const same = call.judged.some(
        (judged) => judged.kind === "path" && now.kind === "path" && judged.real === now.real,
      );
      if (now.kind !== "path" || !same) throw pathChanged(displayPath(folder, workspace));
      const shown = displayPath(now.real, workspace);
      const { bytes, size } = await withFile(now.real, async (file) => ({
        bytes: await readUpTo(file, MAX_BYTES, call.signal),
        size: Number(file.stats.size),
      }));
      if (isBinary(bytes))
        return failure("binary_file", `${shown} contains binary data. ${READ_SKILL_FACTS.name} shows only text.`);
      const { secrets = NO_MASK } = call;
      const isCut = bytes.length < size;
      const text = textOfCut(bytes, isCut);
      const isMain = now.real === join(folder, SKILL_FILE);
      const { body, listsTools } = isMain ? readSkillText(text, secrets) : { body: text, listsTools: false };
      const whole = isCut ? maskedCut(body, secrets) : secrets.text(body);
      const page = maskedHead(whole.trim(), SKILL_CHARACTERS, secrets);
      const others = isMain ? await otherFiles(folder) : [];
      const remarks = [
        ...(isCut || page.length < whole.trim().length ? [`Only the start of ${shown} is shown.`] : []),
        ...(listsTools ? ["The tools that this skill lists are not added: your tools stay as they are."] : []),
        ...(others.length > 0 ? [`Other files of this skill: ${others.join(", ")}.`] : []),
      ];
      const output = withRemarks(`Content of ${shown}:\n\n${page}`, remarks);
      return { ok: true, output, facts: { path: shown, bytes: bytes.length } };
    }),
};

/** A file inside the skill's folder. Anything else is a hard limit, because an envelope that lists ReadSkill means skills only. */
function subjectOf({ name, file = SKILL_FILE }: SkillInput, workspace: Workspace): Subject {
  const folder = skillFolder(workspace.root, name);
  // Nothing is there to read; the call fails with the names of the skills.
  if (folder === undefined)
    return { kind: "path", real: join(workspace.root, SKILL_ROOTS[0] ?? "", name), access: "read" };
  const [subject] = fileSubjects(join(folder, file), "read", workspace);
  if (subject?.kind !== "path" || contains(folder, subject.real)) return subject ?? outside(name);
  return outside(name);
}

function outside(name: string): Subject {
  return { kind: "refused", reason: `the file is outside the folder of skill ${name}` };
}

function unknownSkill(name: string, root: string): string {
  const names = skillNames(root);
  const there = names.length === 0 ? "This project has no skills." : `The skills are ${names.join(", ")}.`;
  return `There is no skill ${name}. ${there}`;
}

/** The other files of a skill, without following links. */
async function otherFiles(folder: string): Promise<readonly string[]> {
  const files: string[] = [];
  const walk = async (real: string, depth: number): Promise<void> => {
    const entries = (await listFolder(real)).toSorted((a, b) => (a.name < b.name ? -1 : 1));
    for (const entry of entries) {
      if (files.length >= MAX_LISTED) return;
      const path = join(real, entry.name);
      if (entry.isDirectory() && depth < MAX_DEPTH) await walk(path, depth + 1);
      if (entry.isFile()) files.push(relative(folder, path).split(sep).join("/"));
    }
  };
  await walk(folder, 1);
  return files.filter((file) => file !== SKILL_FILE && SHOWN_NAME.test(file));
}

/** Names that a list shows as they are: a name with other characters could look like text of its own. */
const SHOWN_NAME = /^[\w./+@ -]{1,120}$/;
