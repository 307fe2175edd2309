import { compileGlob, type Glob } from "./glob.ts";

/** Whether a path relative to the workspace is in scope; with `tree`, whether every path below it is too. */
export type PathScope = (relativePath: string, tree?: boolean) => boolean;
export type ScopeReading<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly message: string; readonly suggestion?: string };

const TREE = "**";
type Rules = readonly (Glob | typeof TREE)[];

/** Reads the scope of a path rule, such as `src/**` or `docs/*.md`. */
export function readPathScope(scope: string): ScopeReading<PathScope> {
  const refused = refusal(scope);
  if (refused !== undefined) return { ok: false, ...refused };
  try {
    const rules = rulesOf(scope);
    const above = aboveAll(scope, rules);
    const covers: PathScope = (path, tree = false) =>
      inScope(rules, path) && (!tree || (above !== undefined && inScope(above, path)));
    return { ok: true, value: covers };
  } catch (thrown) {
    return { ok: false, message: thrown instanceof Error ? thrown.message : String(thrown) };
  }
}

function rulesOf(scope: string): Rules {
  return scope.split("/").map((piece) => (piece === TREE ? TREE : compileGlob(piece)));
}

/** The first rules of a scope, up to the `**` after which it takes any name: it covers every path below one that they match. */
function aboveAll(scope: string, rules: Rules): Rules | undefined {
  const takesAny = (piece: string): boolean => piece === TREE || piece === "*";
  const pieces = scope.split("/");
  const last = pieces.findLastIndex((piece) => !takesAny(piece));
  const tree = pieces.indexOf(TREE, last + 1);
  return tree === -1 ? undefined : rules.slice(0, tree + 1);
}

/** Whether a path below this folder may be in a scope that `readPathScope` accepts. Both are relative to the workspace. */
export function mayHoldPaths(scope: string): (folder: string) => boolean {
  const rules = rulesOf(scope);
  return (folder) => {
    const pieces = folder === "" ? [] : folder.split("/");
    const tree = rules.indexOf(TREE);
    const fixed = rules.slice(0, tree < 0 ? undefined : tree);
    if (tree < 0 && pieces.length >= fixed.length) return false;
    return fixed.every((rule, at) => {
      const piece = pieces[at];
      return piece === undefined || (rule !== TREE && rule(piece));
    });
  };
}

function refusal(scope: string): { readonly message: string; readonly suggestion?: string } | undefined {
  if (scope.startsWith("!")) {
    return { message: "a scope cannot hold a negation", suggestion: "name the folders that are allowed" };
  }
  if (scope.startsWith("/") || scope.startsWith("~") || /^[A-Za-z]:/.test(scope)) {
    return {
      message: "a scope is relative to the workspace",
      suggestion: "start with a folder of the workspace: src/**",
    };
  }
  const pieces = scope.split(/[/{},]/);
  if (pieces.includes("..")) return { message: "a scope cannot climb with ..", suggestion: "name the folder itself" };
  if (pieces.includes("."))
    return { message: "a scope has no . pieces", suggestion: "write src/** instead of ./src/**" };
  if (scope.endsWith("/")) {
    return { message: "a scope does not end with a slash", suggestion: `write ${scope}** for all under that folder` };
  }
  if (scope.includes("//")) return { message: "a scope has no empty pieces", suggestion: "write one slash" };
  if (/\{[^{}]*\/[^{}]*\}/.test(scope)) {
    return { message: "braces cannot hold a slash", suggestion: "list one pattern for each folder" };
  }
  return undefined;
}

/** Matches piece by piece, in time proportional to pieces times rules for any input. */
function inScope(rules: Rules, relativePath: string): boolean {
  const pieces = relativePath === "" || relativePath === "." ? [] : relativePath.split("/");
  if (pieces.some((piece) => piece === "" || piece === "." || piece === "..")) return false;
  let rule = 0;
  let at = 0;
  let tree = -1;
  let treeFrom = 0;
  while (at < pieces.length) {
    const current = rules[rule];
    const piece = pieces[at];
    if (current === TREE) {
      tree = rule;
      treeFrom = at;
      rule += 1;
    } else if (current !== undefined && piece !== undefined && current(piece)) {
      rule += 1;
      at += 1;
    } else if (tree >= 0) {
      treeFrom += 1;
      at = treeFrom;
      rule = tree + 1;
    } else {
      return false;
    }
  }
  return rules.slice(rule).every((left) => left === TREE);
}
