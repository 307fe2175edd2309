import { dirname, join, resolve } from "node:path";
import type { CallScene } from "@sluice/core";
import { contains, outsideFirst, resolveReal } from "../../files/paths.ts";
import { readSmallFile } from "../../search/gitignore.ts";

/** Variables that make bash run something else, read the line differently, or find other folders. */
const SHELL_VARIABLES =
  /^(?:BASH_.*|ENV|SHELLOPTS|BASHOPTS|POSIXLY_CORRECT|CDPATH|GLOBIGNORE|EXECIGNORE|PS4|PROMPT_COMMAND|TEXTDOMAIN.*)$/;

/** Variables that make reading programs do more or read something else. */
const READER_VARIABLES =
  /^(?:RIPGREP_CONFIG_PATH|GREP_(?:OPTIONS|COLORS?)|LESSOPEN|LESSCLOSE|JQ_.*|AWKPATH|AWKLIBPATH|TREE_.*|LD_.*|DYLD_.*|TMPDIR)$/;

/** Variables of git that may name a program, a file to write, or another repository. */
const GIT_VARIABLES = /^GIT_(?!CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM)$|CEILING_DIRECTORIES$)/;

/** A text that a program would have edited stays as it is. */
const NO_EDITOR = { EDITOR: "true", VISUAL: "true" };
/** Unlike variables of git, these leave it to a line to name another one. */
const NO_GIT_EDITOR: GitSettings = [
  ["core.editor", "true"],
  ["sequence.editor", "true"],
];

/** Settings that override the repository's in a read-only stage, so that git starts no program. */
const READING_GIT: GitSettings = [
  ["core.fsmonitor", "false"],
  ["core.hooksPath", "/dev/null"],
  ["log.showSignature", "false"],
  ["safe.bareRepository", "explicit"],
];

type GitSettings = readonly (readonly [key: string, value: string])[];

/** The variables that set these, behind those of an environment. */
function gitVariables(settings: GitSettings, { GIT_CONFIG_COUNT }: Readonly<Record<string, string>>) {
  const first = /^\d{1,3}$/.test(GIT_CONFIG_COUNT ?? "") ? Number(GIT_CONFIG_COUNT) : 0;
  const variables = settings.flatMap(([key, value], at) => [
    [`GIT_CONFIG_KEY_${first + at}`, key],
    [`GIT_CONFIG_VALUE_${first + at}`, value],
  ]);
  return Object.fromEntries([...variables, ["GIT_CONFIG_COUNT", String(first + settings.length)]]);
}

/** Locales in which bash reads the letters that were judged; in some others a backslash can be half of a letter. */
const READ_ALIKE = /^(?:C|POSIX|[A-Za-z_]+\.utf-?8(?:@[A-Za-z]+)?)$/i;

const WORD = /^[A-Za-z0-9_.-]*$/;
const PLAIN_VARIABLES = "CI NO_COLOR FORCE_COLOR NODE_ENV PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED RUST_BACKTRACE";

/** Variables that a line may set, and their harmless values. */
const HARMLESS = new Map<string, RegExp>([
  ...PLAIN_VARIABLES.split(" ").map((name) => [name, WORD] as const),
  ["TZ", /^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+)*$/],
  ["LANG", READ_ALIKE],
  ["PAGER", /^cat$/],
  ["GIT_PAGER", /^cat$/],
]);

/** The environment of a command line, the same when it is judged and when it runs. */
export function lineEnvironment({ env, mayWrite }: CallScene, root: string): Readonly<Record<string, string>> {
  const dropped = (name: string): boolean =>
    SHELL_VARIABLES.test(name) ||
    name.endsWith("EDITOR") ||
    // It stands above all other settings of git, also that of an editor.
    name === "GIT_CONFIG_PARAMETERS" ||
    (!mayWrite && (GIT_VARIABLES.test(name) || READER_VARIABLES.test(name)));
  const kept = Object.fromEntries(Object.entries(env).filter(([name]) => !dropped(name)));
  return {
    ...kept,
    PATH: outsideFirst(kept.PATH ?? "/usr/local/bin:/usr/bin:/bin", root),
    // Bash trusts a PWD that leads to the same folder, and resolves `..` by its name.
    PWD: root,
    ...(READ_ALIKE.test(kept.LC_ALL || kept.LC_CTYPE || kept.LANG || "C") ? {} : { LC_ALL: "C.UTF-8" }),
    // No colours and no prompts: there is no terminal. An editor would read its commands from a pipe.
    TERM: "dumb",
    PAGER: "cat",
    GIT_PAGER: "cat",
    GIT_TERMINAL_PROMPT: "0",
    ...NO_EDITOR,
    // Reading a repository's state refreshes its index, and may start a program that its settings name.
    ...gitVariables(mayWrite ? NO_GIT_EDITOR : [...NO_GIT_EDITOR, ...READING_GIT], kept),
    ...(mayWrite ? {} : { GIT_OPTIONAL_LOCKS: "0", GIT_NO_LAZY_FETCH: "1", ...foreignGit(kept, root) }),
  };
}

/** Replaces the user's and the system's settings of git where a file of them lies in the workspace, so that a call may have made it. */
function foreignGit(env: Readonly<Record<string, string>>, root: string): Readonly<Record<string, string>> {
  const { HOME: home, XDG_CONFIG_HOME, GIT_CONFIG_GLOBAL, GIT_CONFIG_SYSTEM } = env;
  const folder = XDG_CONFIG_HOME || (home === undefined ? undefined : join(home, ".config"));
  const usual = [
    ...(home === undefined ? [] : [join(home, ".gitconfig")]),
    ...(folder === undefined ? [] : [join(folder, "git/config")]),
  ];
  const isOurs = (files: readonly string[]): boolean =>
    gitSettings(files, root, home).some((file) => contains(root, file));
  return {
    ...(isOurs(GIT_CONFIG_GLOBAL === undefined ? usual : [GIT_CONFIG_GLOBAL])
      ? { GIT_CONFIG_GLOBAL: "/dev/null" }
      : {}),
    ...(GIT_CONFIG_SYSTEM !== undefined && isOurs([GIT_CONFIG_SYSTEM]) ? { GIT_CONFIG_SYSTEM: "/dev/null" } : {}),
  };
}

/** Files of settings, links resolved, with those that they include, also files that do not exist yet. */
function gitSettings(files: readonly string[], root: string, home = root): readonly string[] {
  const found = new Set<string>();
  const pending = [...files];
  for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
    const resolution = resolveReal(file, root);
    if (!resolution.ok || found.has(resolution.real)) continue;
    const { real } = resolution;
    found.add(real);
    const included = (readSmallFile(real) ?? "").replaceAll(/\\\r?\n/g, "").matchAll(/\bpath[ \t]*=([^\r\n]+)/gi);
    for (const path of [...included].flatMap(([, value = ""]) => [value, value.replace(/[#;].*/, "")])) {
      const target = path
        .replaceAll(/["\\]/g, "")
        .trim()
        .replace(/^~(?=\/)/, () => home);
      // Git resolves it by the name of the file, which may be a link.
      pending.push(resolve(root, dirname(file), target), resolve(dirname(real), target));
    }
  }
  return [...found];
}

/** Whether setting this variable has no effect on what the line does. `variables` are allowed with plain values. */
export function isHarmlessSetting(name: string, value: string, variables: readonly string[]): boolean {
  if (/^LC_[A-Z]+$/.test(name)) return READ_ALIKE.test(value);
  const shape = HARMLESS.get(name);
  if (shape !== undefined) return shape.test(value);
  return variables.includes(name) && /^[A-Za-z0-9_.,:/@%+=-]*$/.test(value);
}
