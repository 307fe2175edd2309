import type { Workspace } from "@sluice/core";

/**
 * What a command does according to its words. `reads`: it changes nothing, and opens only `paths`, and `trees` with what is
 * below them; `argv` is what must run for that, which may contain added words (`git -c …`, `grep --exclude-dir=…`). A relative path starts in the command's folder.
 * `unknown`: it may do more; `why` completes "<command> needs a grant: …".
 */
export type Reading =
  | {
      readonly kind: "reads";
      readonly argv: readonly string[];
      readonly paths: readonly string[];
      readonly trees: readonly string[];
    }
  | { readonly kind: "unknown"; readonly why: string };

/** The folder of a command, and what is needed to judge its words. */
export interface CommandPlace {
  /** Absolute, links resolved. */
  readonly cwd: string;
  readonly workspace: Workspace;
  /** Judges a command that this one runs; the program in the resulting `argv` is an absolute path. */
  readonly inner: (argv: readonly string[]) => Reading;
}

/** Marks paths that are known only when the command runs. */
export const FOUND_MARK = "\u0001";

export function unknown(why: string): Reading {
  return { kind: "unknown", why };
}

/** A command that reads these paths, and these with what is below them; "-" is standard input. */
export function reads(
  argv: readonly string[],
  paths: readonly string[] = [],
  trees: readonly string[] = [],
): Extract<Reading, { kind: "reads" }> {
  return { kind: "reads", argv, paths: paths.filter((path) => path !== "-"), trees };
}

export function words(text: string): ReadonlySet<string> {
  return new Set(text.split(" "));
}
