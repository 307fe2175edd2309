import { join } from "node:path";

/** Where a workspace keeps skills, each in a folder of its own with a SKILL.md. A name in an earlier one wins. */
export const SKILL_ROOTS: readonly string[] = [".agents/skills", ".claude/skills", ".sluice/skills"];
export const SKILL_FILE = "SKILL.md";

/** What the Agent Skills format allows as a name, and capital letters, `_` and `.` inside. */
export const SKILL_NAME = /^(?!.*\.\.)[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$/;

/** The absolute paths of all folders that may hold skills, whether they exist or not. */
export function skillRoots(root: string): readonly string[] {
  return SKILL_ROOTS.map((folder) => join(root, ...folder.split("/")));
}
