import { describe, expect, test } from "vitest";
import { missingProgram } from "../support/programs.ts";
import {
  ATTACKS,
  comesOf,
  described,
  ENVELOPES,
  type RunsAs,
  type ShellAttack,
  withoutEffect,
} from "../support/shell-lanes.ts";
import { hasWall } from "../support/walls.ts";

// Writes by Bash in a stage without a tool that writes: in every family of tricks that gets past a check of a line's first word, or
// of its text. The same lines run in plain bash first, where each has its effect.

/** Of each family; `shell-corpus` has all of them. */
const OF_EACH = 4;
const TRICKS = [
  "wrappers",
  "text that becomes a command",
  "traps and hooks",
  "names that get another meaning",
  "variables that other programs obey",
  "quoting that hides a word",
  "commands behind other signs",
  "command substitution",
  "backticks",
  "process substitution",
  "parameter expansion",
  "arithmetic",
  "builtins that take subscripts",
  "here-documents and here-strings",
  "redirections",
  "sed and editors",
  "awk",
  "sort, uniq and their like",
  "find",
  "readers that write or run",
  "names that become options",
  "node, python and perl",
  "databases, compilers and make",
  "npm",
  "git options that run or write",
  "git settings by option",
  "git commands that change files",
];
const BESIDE_RULES = [
  "another command beside the rule",
  "filters behind a rule's command",
  "options of a rule's command",
  "writing beyond a rule",
];
/** Takes seconds until it has its effect. */
const SLOW = /--compress-program/;
const WRITES = new Set(["canary", "victim", "workspace"]);

function chosen(families: readonly string[], stage: string): readonly ShellAttack[] {
  return families.flatMap((family) =>
    ATTACKS.filter(
      (attack) =>
        attack.family === family &&
        attack.stage === stage &&
        WRITES.has(attack.effect) &&
        !SLOW.test(attack.line) &&
        missingProgram(attack.line) === undefined,
    ).slice(0, family.startsWith("filters") ? undefined : OF_EACH),
  );
}

const tricks = chosen(TRICKS, "read-only");
const besideRules = chosen(BESIDE_RULES, "scoped");

test("there are enough of them, of every family", () => {
  expect(tricks.length + besideRules.length).toBeGreaterThanOrEqual(120);
  const families = new Set([...tricks, ...besideRules].map(({ family }) => family));
  expect([...families]).toEqual([...TRICKS, ...BESIDE_RULES]);
});

// Plain bash runs them with the rest of the disk read-only, which takes the program that builds walls.
test.skipIf(!hasWall())("each has its effect in plain bash", async () => {
  const not = await withoutEffect([...tricks, ...besideRules]);
  expect(not.map(({ family, name, line }) => `${family} / ${name}: ${line}`)).toEqual([]);
});

/** Commands that read: a rule with any words behind it must not cover their writing forms. */
const READING_RULES =
  "awk,cat,cut,date,diff,du,echo,file,find,gawk,git diff,git log,git show,git status,grep,head,jq,ls,mawk,nl,od,rg,sed,sort,stat,tail,tree,uniq,wc,xxd".split(
    ",",
  );

describe.each([
  ["may use Bash", tricks, ["Read", "Bash"]],
  ["may use some commands that read", tricks, ["Read", ...READING_RULES.map((rule) => `Bash(${rule} *)`)]],
  ["may use some commands", besideRules, ENVELOPES.scoped ?? []],
] as const)("a stage that %s", (_which, attacks, allowedTools) => {
  const sandboxes: readonly RunsAs["sandbox"][] = hasWall() ? ["off", "try"] : ["off"];
  test.each(sandboxes)("sandbox %s: no line has an effect", async (sandbox) => {
    const came = await comesOf(attacks, { sandbox, allowedTools });
    expect(came).toHaveLength(attacks.length);
    expect(came.filter(({ effects }) => effects.length > 0).map(described)).toEqual([]);
  });
});
