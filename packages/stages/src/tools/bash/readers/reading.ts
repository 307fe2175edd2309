import type { Workspace } from "@sluice/core";

/** A path that a command names in its words. A relative one starts in the folder the command runs in. */
export interface NamedPath {
  readonly path: string;
  readonly access: "read" | "write";
}

/**
 * What a command does, as far as its words tell. `reads`: it changes nothing and opens nothing but `paths`; `argv` is what has to
 * run for that to be true, which may hold more words than were given (`git -c …`, `grep --exclude-dir=…`). `unknown`: it may do
 * more; `why` completes the sentence "<command> needs a grant: …".
 */
export type Reading =
  | { readonly kind: "reads"; readonly argv: readonly string[]; readonly paths: readonly NamedPath[] }
  | { readonly kind: "unknown"; readonly why: string };

/** Where a command runs, and what a spec needs to know to judge its words. */
export interface CommandPlace {
  /** Absolute, links resolved. */
  readonly cwd: string;
  readonly workspace: Workspace;
  /** Asks about the words alone: not where they lead, and not what a repository's settings make of them. */
  readonly wordsOnly?: true;
  /** Judges a command that this one runs; the program in its `argv` is an absolute path. */
  readonly inner: (argv: readonly string[]) => Reading;
}

/** The argument spec of one program. All words are final: nothing expands them any more. */
export type ArgumentSpec = (argv: readonly string[], place: CommandPlace) => Reading;
