import { type OptionSpec, parseOptions } from "./options.ts";
import type { ShellWord } from "./word.ts";

/** How a text is read: as bash does, or as some other shell whose differences must not matter. */
export type Dialect = "bash" | "posix" | "other";

/** Something a command runs in turn. */
export type Inner =
  | {
      readonly kind: "words";
      readonly words: readonly ShellWord[];
      readonly via: string;
      /** Names it finds changed in its environment; `*` when that is emptied. */
      readonly assignments?: readonly string[];
      /** Runs with another user, host or root: what is harmless here need not be there. */
      readonly foreign?: boolean;
      /** Runs in a folder the text does not tell. */
      readonly elsewhere?: boolean;
      /** Runs in this very shell, so that a `cd` in it lasts. */
      readonly inShell?: boolean;
    }
  | {
      readonly kind: "text";
      readonly text: string;
      readonly dialect: Dialect;
      readonly via: string;
      readonly foreign?: boolean;
      readonly inShell?: boolean;
    }
  /** Runs something that the text does not tell. */
  | { readonly kind: "unseen"; readonly text: string; readonly via: string };

export interface Unwrapped {
  /** Does nothing itself besides running what it was given: harmless where that is harmless. */
  readonly transparent: boolean;
  readonly inner: readonly Inner[];
  /** Files it reads. */
  readonly files?: readonly ShellWord[];
}

const SHELLS: Readonly<Record<string, Dialect>> = {
  bash: "bash",
  rbash: "bash",
  sh: "posix",
  dash: "posix",
  ash: "posix",
  ksh: "other",
  mksh: "other",
  zsh: "other",
  fish: "other",
  csh: "other",
  tcsh: "other",
};

const SHELL_OPTIONS: OptionSpec = {
  short: "ceuxvlafhmnio:O:s",
  long: "login norc noprofile posix verbose rcfile@ init-file@ noediting restricted",
  stopsAtOperand: true,
};
/** Options that do not change how the text is read. */
const HARMLESS = new Set(["c", "e", "u", "x", "v", "l", "f", "login", "norc", "noprofile", "o"]);

/** `sh -c text`. Without `-c` a script file or standard input runs, which no rule on words can judge. */
export function unwrapShell(name: string, words: readonly ShellWord[]): Unwrapped | undefined {
  const dialect = SHELLS[name];
  if (dialect === undefined) return undefined;
  const options = parseOptions(words.slice(1), SHELL_OPTIONS);
  const via = `${name} -c`;
  const line = words.map((word) => word.text).join(" ");
  if (!options.known || options.unsure) {
    return { transparent: false, inner: [{ kind: "unseen", text: line, via }], files: options.files };
  }
  if (!options.seen.has("c")) return { transparent: false, inner: [], files: options.files };
  const text = options.operands[0];
  const setting = options.seen.get("o") ?? [];
  const plain =
    [...options.seen.keys()].every((option) => HARMLESS.has(option)) &&
    setting.every((value) => /^(?:pipefail|errexit|nounset)$/.test(value.text));
  const inner: Inner[] = [];
  if (text === undefined || text.dynamic || !plain) inner.push({ kind: "unseen", text: line, via });
  if (text !== undefined && !text.dynamic) inner.push({ kind: "text", text: text.text, dialect, via });
  return { transparent: false, inner, files: options.files };
}

/** Words that something joins with blanks and hands to a shell. */
export function joined(words: readonly ShellWord[], dialect: Dialect, via: string, foreign = false): Inner {
  const text = words.map((word) => word.text).join(" ");
  if (words.some((word) => word.dynamic)) return { kind: "unseen", text, via };
  return { kind: "text", text, dialect, via, foreign };
}
