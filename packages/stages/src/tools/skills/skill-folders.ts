import { lstatSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { SkillFacts, TextMask, Workspace } from "@sluice/core";
import { readUpTo, withFile } from "../files/open.ts";
import { displayPath, realPath } from "../files/paths.ts";
import { asFault, withFallback } from "../files/results.ts";
import { SKILL_FILE, SKILL_NAME, skillRoots } from "./skill-names.ts";
import { readSkillText } from "./skill-text.ts";

const MAX_SKILLS = 100;
/** Enough of a SKILL.md for its frontmatter. */
const HEADER_BYTES = 16_384;

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
export async function findSkills(
  workspace: Workspace,
  secrets: Pick<TextMask, "text">,
): Promise<readonly SkillFacts[]> {
  const found = skillNames(workspace.root).map(async (name): Promise<readonly SkillFacts[]> => {
    const folder = skillFolder(workspace.root, name);
    if (folder === undefined) return [];
    return [{ name, description: await descriptionIn(folder, secrets), path: displayPath(folder, workspace) }];
  });
  return (await Promise.all(found)).flat();
}

async function descriptionIn(folder: string, secrets: Pick<TextMask, "text">): Promise<string> {
  try {
    const bytes = await withFile(join(folder, SKILL_FILE), (file) => readUpTo(file, HEADER_BYTES));
    return readSkillText(new TextDecoder().decode(bytes), secrets).description;
  } catch (thrown) {
    return `cannot be read: ${asFault(thrown, SKILL_FILE).message}`;
  }
}
