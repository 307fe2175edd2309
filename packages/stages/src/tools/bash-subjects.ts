import { type Dirent, lstatSync, readdirSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import type { Subject, Workspace } from "@sluice/core";
import { riskyGitSettings } from "./git-settings.ts";
import { compilePath } from "./glob-match.ts";
import { mayShowHidden } from "./hidden-folders.ts";
import { contains, displayPath, resolveReal } from "./paths.ts";
import { systemCode } from "./results.ts";
import { analyseShell, type ShellCommand } from "./shell/analyse.ts";
import type { AllBut, ShellPath } from "./shell/findings.ts";

/** Names a glob may match before it counts as unknown. */
const MAX_MATCHES = 2_000;
/** Characters of a file's name, on all common systems; a longer pattern is not tried. */
const MAX_NAME = 255;

const GLOB = /[*?[]/;

/** What a command line would run and touch, as facts for the gate. */
export function commandSubjects(command: string, workspace: Workspace): readonly Subject[] {
  const facts = analyseShell(command, { root: workspace.root });
  if (!facts.ok) {
    // Text that cannot run as it was written is no question for a person; what we cannot read, a person may.
    const kind = facts.code === "too_long" || facts.code === "nul_byte" ? "refused" : "opaque";
    return [{ kind, reason: facts.reason }];
  }
  const isGit = ({ argv, readOnly }: ShellCommand): boolean => readOnly && argv[0] === "git";
  const risky = facts.commands.some(isGit) && riskyGitSettings(workspace.root);
  const commands = facts.commands.map(
    (found): Subject => ({ kind: "command", ...found, readOnly: found.readOnly && !(risky && isGit(found)) }),
  );
  return [...commands, ...facts.paths.flatMap((path) => pathSubjects(path, workspace))];
}

function pathSubjects(found: ShellPath, workspace: Workspace): readonly Subject[] {
  const { path, access, from, dynamic, within } = found;
  if (!dynamic) {
    const named = resolved(path, found, workspace);
    return [named, ...openedSubjects(found, named, workspace)];
  }
  if (within === undefined || from !== "operand") {
    const reason = `which path ${JSON.stringify(path)} is, is only known when the command runs`;
    return [{ kind: "opaque", reason, ...(from === "operand" && access === "read" ? { from } : {}) }];
  }
  const folder = resolved(within, found, workspace);
  const matches = folder.kind === "path" ? matching(path, found, workspace) : [];
  return [folder, ...matches, ...openedSubjects(found, folder, workspace)];
}

/** What a command opens besides the folder it is given. */
function openedSubjects(found: ShellPath, folder: Subject, workspace: Workspace): readonly Subject[] {
  const { path, opens } = found;
  if (opens === undefined || folder.kind !== "path") return [];
  if (opens === "revision") return isThere(folder.real) ? [] : [resolved(".", found, workspace)];
  if (opens === "entries") return [`${path}/*`, `${path}/.*`].flatMap((pattern) => matching(pattern, found, workspace));
  const { store } = workspace;
  if (store === undefined || store === folder.real || !contains(folder.real, store)) return [];
  const names = relative(folder.real, store).split(sep);
  if (leavesOut(opens, store, names)) return [];
  const shown = displayPath(store, workspace);
  const reason = `it would read the run store in ${shown}: name other folders, or leave ${names[0] ?? shown} out (grep: --exclude-dir=${names[0] ?? shown})`;
  return [{ kind: "opaque", reason, from: "operand" }];
}

/** Whether one of the names on the way to the store keeps the command from opening it. */
function leavesOut({ allBut, unless }: AllBut, store: string, names: readonly string[]): boolean {
  const isLeftOut = allBut.some((pattern) => names.some((name) => compilePath([pattern])([name])));
  return isLeftOut && (unless === undefined || !mayShowHidden(store.split(sep).slice(1), unless, dirname(store)));
}

function matching(pattern: string, { access, from }: ShellPath, workspace: Workspace): readonly Subject[] {
  const reals = linksMatching(pattern, workspace);
  if (reals === undefined)
    return [{ kind: "opaque", reason: `${JSON.stringify(pattern)} may match too much to look at` }];
  return reals.map((real): Subject => ({ kind: "path", real, access, from }));
}

function resolved(path: string, { access, from }: ShellPath, workspace: Workspace): Subject {
  const resolution = resolveReal(path, workspace.root);
  if (resolution.ok) return { kind: "path", real: resolution.real, access, from };
  const reason = `where ${JSON.stringify(path)} leads cannot be told: ${resolution.reason}`;
  return { kind: resolution.anywhere === true ? "refused" : "opaque", reason };
}

/**
 * Where the links lead that a glob matches now, and what it matches of the run store: everything else lies in the folder that
 * is judged, but a link may lead anywhere. Undefined when there is too much to look at.
 */
function linksMatching(pattern: string, { root, store }: Workspace): readonly string[] | undefined {
  const links = new Set<string>();
  let places: string[] = [pattern.startsWith("/") ? "/" : root];
  let seen = 0;
  for (const name of pattern.split("/").filter((part) => part !== "" && part !== ".")) {
    if (name.length > MAX_NAME && GLOB.test(name)) return undefined;
    const next: string[] = [];
    for (const place of places) {
      for (const { path, isLink } of entriesMatching(place, name)) {
        seen += 1;
        if (seen > MAX_MATCHES) return undefined;
        const resolution = isLink ? resolveReal(path, root) : undefined;
        // A link in a circle opens nothing, in bash either.
        if (resolution?.ok === false) continue;
        const real = resolution?.real ?? path;
        if (real !== path || (store !== undefined && contains(store, real))) links.add(real);
        next.push(real);
      }
    }
    places = next;
  }
  return [...links];
}

function entriesMatching(folder: string, name: string): readonly { readonly path: string; readonly isLink: boolean }[] {
  // A literal name is not looked for: whether it is a link shows when it is resolved.
  if (!GLOB.test(name)) return [{ path: join(folder, name), isLink: true }];
  const matches = matcherOf(name);
  return list(folder)
    .filter((entry) => (name.startsWith(".") || !entry.name.startsWith(".")) && matches(entry.name))
    .map((entry) => ({ path: join(folder, entry.name), isLink: entry.isSymbolicLink() }));
}

/** At least all that bash would match. What brackets and backslashes mean depends on quotes, classes and locale: they match anything. */
function matcherOf(name: string): (entry: string) => boolean {
  const sure = /^[^*?[\\]*/.exec(name)?.[0] ?? "";
  if (/[[\\]/.test(name)) return (entry) => entry.startsWith(sure);
  // In bash, without globstar, two stars are one.
  const matches = compilePath([name.replace(/\*+/g, "*")]);
  return (entry) => matches([entry]);
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function list(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (thrown) {
    // Not a folder, or not ours to list: then bash finds no match there either.
    if (systemCode(thrown) === undefined) throw thrown;
    return [];
  }
}
