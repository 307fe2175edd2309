import { lstatSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { SkillFacts, Workspace } from "@sluice/core";
import { readUpTo, withFile } from "../files/open.ts";
import { displayPath, realPath } from "../files/paths.ts";
import { asFault, withFallback } from "../files/results.ts";
import { readSkillText } from "./skill-text.ts";

/** Where a workspace keeps skills, each in a folder of its own with a SKILL.md. A name in an earlier one wins. */
export const SKILL_ROOTS: readonly string[] = [".agents/skills", ".claude/skills", ".sluice/skills"];
export const SKILL_FILE = "SKILL.md";

/** What the Agent Skills format allows as a name, and capital letters, `_` and `.` inside. */
export const SKILL_NAME = /^(?!.*\.\.)[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$/;
const MAX_SKILLS = 100;
/** Enough of a SKILL.md for its frontmatter. */
const HEADER_BYTES = 16_384;

/** The absolute paths of all folders that may hold skills, whether they exist or not. */
export function skillRoots(root: string): readonly string[] {
  return SKILL_ROOTS.map((folder) => join(root, ...folder.split("/")));
}

/**
 * The real path of a skill's folder; undefined if there is none. Links lead only from one of the skill folders to another, so
 * that a link in a project does not turn some other folder into a skill.
 */
export function skillFolder(root: string, name: string): string | undefined {
  if (!SKILL_NAME.test(name)) return undefined;
  const roots = skillRoots(root);
  return roots
    .map((parent) => realPath(join(parent, name)))
    .find((real) => real !== undefined && roots.includes(dirname(real)) && isSkillFolder(real));
}

function isSkillFolder(real: string): boolean {
  return withFallback(() => lstatSync(join(real, SKILL_FILE)).isFile(), false);
}

/** The names of a workspace's skills, sorted, at most 100. */
export function skillNames(root: string): readonly string[] {
  const names = skillRoots(root).flatMap((folder) => withFallback(() => readdirSync(folder), []));
  const skills = [...new Set(names)].filter((name) => skillFolder(root, name) !== undefined);
  return skills.toSorted().slice(0, MAX_SKILLS);
}

/** The skills of a workspace with their descriptions. */
export async function findSkills(workspace: Workspace): Promise<readonly SkillFacts[]> {
  const found = skillNames(workspace.root).map(async (name): Promise<readonly SkillFacts[]> => {
    const folder = skillFolder(workspace.root, name);
    if (folder === undefined) return [];
    return [{ name, description: await descriptionIn(folder), path: displayPath(folder, workspace) }];
  });
  return (await Promise.all(found)).flat();
}

async function descriptionIn(folder: string): Promise<string> {
  try {
    const bytes = await withFile(join(folder, SKILL_FILE), (file) => readUpTo(file, HEADER_BYTES));
    return readSkillText(new TextDecoder().decode(bytes)).description;
  } catch (thrown) {
    return `cannot be read: ${asFault(thrown, SKILL_FILE).message}`;
  }
}
