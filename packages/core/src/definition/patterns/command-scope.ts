import { isAbsolute, posix } from "node:path";
import { type PathScope, readPathScope, type ScopeReading } from "./path-scope.ts";

/** The words of a command rule. */
export interface CommandScope {
  /**
   * Whether a command's words are in scope; `dynamic` marks words that are known only at run time, and `folder` is where it runs,
   * relative to the workspace.
   */
  covers(argv: readonly string[], dynamic: readonly boolean[], folder: string): boolean;
  /** The only folder whose commands it covers, or the scope of them, of `cd FOLDER && …`; absent if it names none. */
  readonly folder?: string;
  /** The number of words of the command, without a trailing `*`. */
  readonly words: number;
  /** Whether a trailing `*` matches any further words. */
  readonly open: boolean;
  /** The positions of the words that other `*` match. */
  readonly stars: readonly number[];
}

type WordRule = { readonly literal: string } | "one";

/** A run of quoted pieces and plain characters. */
const WORD = /(?:'[^']*'|"[^"]*"|[^\s'"])+/y;
const QUOTED = /'([^']*)'|"([^"]*)"/g;
const IN_FOLDER = new RegExp(`^cd\\s+(${WORD.source})\\s+&&(?:\\s+|$)`);
/** Programs that run the command behind them, which is the one that rules are compared with. */
const WRAPPERS = new RegExp(
  `^(?:(?:${[
    "nohup",
    String.raw`nice(?:\s+(?:-n\s*)?-?\d+)?`,
    String.raw`stdbuf(?:\s+-[ioe](?:[^\s'"]+|\s+[^\s'"]+))+`,
    String.raw`timeout(?:\s+(?:-[ks]\s+[^\s'"-][^\s'"]*|--?[a-z][^\s'"]*))*\s+[\d.]+[smhd]?`,
    String.raw`env(?:\s+[A-Za-z_]\w*=[^\s'"]*)*`,
  ].join("|")})\\s+(?=[^\\s*-]))+`,
);

/**
 * Reads the scope of a command rule, such as `npm test *`. Words are separated by spaces and may be quoted ('a b', "a b").
 * A trailing `*` matches any number of further words; elsewhere `*` matches exactly one static word; `'*'` in quotes is the
 * character. A star inside a word is refused, since it would be ambiguous, and so is an operator of Bash outside quotes, since a
 * rule is about one command. `cd FOLDER &&` in front names the folder that the command runs in, or folders as the scope of a path does
 * (`packages/*`). `timeout 60` and other programs that run the command behind them make no difference.
 */
export function readCommandScope(scope: string): ScopeReading<CommandScope> {
  const text = scope.trim();
  const [start, folder] = IN_FOLDER.exec(text) ?? ["", undefined];
  const words = readWords(text.slice(start.length).replace(WRAPPERS, ""));
  if (!words.ok) return words;
  const [first, ...others] = words.value;
  if (first !== undefined && first !== "one" && /^[A-Za-z_]\w*=/.test(first.literal) && others.length > 0)
    return {
      ok: false,
      message: `a rule names a command without variables, and ${first.literal} sets one`,
      suggestion: "leave it out: lines may set variables that change no program",
    };
  return folder === undefined ? { ok: true, value: scopeOf(words.value) } : readFolderScope(folder, words.value);
}

function scopeOf(words: readonly WordRule[]): CommandScope {
  const open = words.at(-1) === "one";
  const rules = open ? words.slice(0, -1) : words;
  const covers: CommandScope["covers"] = (argv, dynamic) => commandInScope(rules, open, argv, dynamic);
  return { covers, words: rules.length, open, stars: rules.flatMap((rule, at) => (rule === "one" ? [at] : [])) };
}

function readFolderScope(target: string, words: readonly WordRule[]): ScopeReading<CommandScope> {
  const bare = target.replace(QUOTED, "");
  const isScope = /[*?{]/.test(bare);
  const read: ScopeReading<WordRule> = isScope ? { ok: true, value: { literal: target } } : readWord(target);
  if (!read.ok) return read;
  const folder = read.value === "one" ? "." : posix.normalize(read.value.literal).replace(/\/$/, "");
  if (words.length === 0 || folder === "." || /^(?:\/|~|\.\.(?:\/|$))/.test(folder) || (isScope && bare !== target))
    return {
      ok: false,
      message: "a scope with cd names a folder of the workspace and a command",
      suggestion: "write cd packages/a && npm test",
    };
  const folders: ScopeReading<PathScope> = isScope
    ? readPathScope(folder)
    : { ok: true, value: (from) => from === folder };
  if (!folders.ok) return folders;
  const [first, ...rest] = words;
  const scope = scopeOf(words);
  // The gate sees a program of the workspace by its path from the root.
  const isPath = first !== undefined && first !== "one" && /^[^/].*\//.test(first.literal);
  const covers: CommandScope["covers"] = (argv, dynamic, from) => {
    const named = isPath ? scopeOf([{ literal: `./${posix.join(from, first.literal)}` }, ...rest]) : scope;
    // What is outside of the workspace has an absolute path, which `**` would match.
    return !isAbsolute(from) && folders.value(from) && named.covers(argv, dynamic, from);
  };
  return { ok: true, value: { ...scope, covers, folder } };
}

function commandInScope(
  rules: readonly WordRule[],
  open: boolean,
  argv: readonly string[],
  dynamic: readonly boolean[],
): boolean {
  if (argv.length === 0 || argv.length < rules.length) return false;
  if (!open && argv.length !== rules.length) return false;
  // A dynamic word may expand to several words or none, so only a trailing `*` matches it.
  return rules.every((rule, index) => dynamic[index] === false && (rule === "one" || rule.literal === argv[index]));
}

function readWords(scope: string): ScopeReading<readonly WordRule[]> {
  const words: WordRule[] = [];
  let at = 0;
  while (at < scope.length) {
    WORD.lastIndex = at;
    const raw = WORD.exec(scope)?.[0];
    if (raw === undefined) return { ok: false, message: "a quote is not closed" };
    const rule = readWord(raw);
    if (!rule.ok) return rule;
    words.push(rule.value);
    at += raw.length;
    while (/\s/.test(scope.charAt(at))) at += 1;
  }
  return { ok: true, value: words };
}

function readWord(raw: string): ScopeReading<WordRule> {
  if (raw === "*") return { ok: true, value: "one" };
  const bare = raw.replace(QUOTED, "");
  const operator = /[;|&<>]+/.exec(bare)?.[0];
  if (operator !== undefined)
    return {
      ok: false,
      message: `a rule is about one command, and ${operator} is an operator of Bash`,
      suggestion: "write one rule for each command, or quote the word if the character is part of it",
    };
  if (bare.includes("*")) {
    const before = raw.slice(0, raw.indexOf("*")).replace(/:$/, "");
    return {
      ok: false,
      message: `a * must be a separate word, not part of ${raw}`,
      ...(before === "" ? {} : { suggestion: `write "${before} *" for any further words` }),
    };
  }
  if (bare.includes("\\")) return { ok: false, message: "a backslash is not an escape here", suggestion: "use quotes" };
  return { ok: true, value: { literal: raw.replace(QUOTED, "$1$2") } };
}
