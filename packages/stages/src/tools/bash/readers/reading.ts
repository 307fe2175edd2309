import type { Workspace } from "@sluice/core";

/** A path in the words of a command. A relative one starts in the command's folder. */
export interface NamedPath {
  readonly path: string;
  readonly access: "read" | "write";
}

/**
 * What a command does according to its words. `reads`: it changes nothing and opens only `paths`; `argv` is what must run for
 * that, which may contain added words (`git -c …`, `grep --exclude-dir=…`). `unknown`: it may do more; `why` completes
 * "<command> needs a grant: …".
 */
export type Reading =
  | { readonly kind: "reads"; readonly argv: readonly string[]; readonly paths: readonly NamedPath[] }
  | { readonly kind: "unknown"; readonly why: string };

/** The folder of a command, and what is needed to judge its words. */
export interface CommandPlace {
  /** Absolute, links resolved. */
  readonly cwd: string;
  readonly workspace: Workspace;
  /** Judges only the words, not where paths lead or what a repository's settings change. */
  readonly wordsOnly?: true;
  /** Judges a command that this one runs; the program in the resulting `argv` is an absolute path. */
  readonly inner: (argv: readonly string[]) => Reading;
}

/** Marks paths that are known only when the command runs. */
export const FOUND_MARK = "\u0001";

export function unknown(why: string): Reading {
  return { kind: "unknown", why };
}

/** A command that reads these paths; "-" is standard input. */
export function reads(argv: readonly string[], paths: readonly string[] = []): Reading {
  return { kind: "reads", argv, paths: paths.filter((path) => path !== "-").map(readPath) };
}

export function readPath(path: string): NamedPath {
  return { path, access: "read" };
}

export function words(text: string): ReadonlySet<string> {
  return new Set(text.split(" "));
}
