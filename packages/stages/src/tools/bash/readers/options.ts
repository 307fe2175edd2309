/**
 * The options of a program in getopt's notation. After a letter or long name: nothing = a flag, `:` = a value, `@` = a file to
 * read, `?` = an attached value only, `~` = a value that may be missing at the end.
 */
export interface OptionSpec {
  /** `nrf@C:` */
  readonly short?: string;
  /** `quiet file@ color? context:` */
  readonly long?: string;
  /** Whether `-5` is a count. */
  readonly numeric?: boolean;
  /** Why unlisted options are refused, by their names: `{ "writes a file": "o output" }`. */
  readonly refuses?: Readonly<Record<string, string>>;
  /** Options that are passed on under another name: `{ R: "r" }`. */
  readonly instead?: Readonly<Record<string, string>>;
}

export interface Options {
  readonly operands: readonly string[];
  /** Number of operands after `--`. */
  readonly afterDashes: number;
  readonly hasDashes: boolean;
  /** Values that are files to read, except "-". */
  readonly files: readonly string[];
  /** Values by option name without dashes. */
  readonly seen: ReadonlyMap<string, readonly string[]>;
  /** The options as parsed, with values of long ones attached, so that no other parser reads them differently. */
  readonly words: readonly string[];
  /** Whether an option was renamed, or came after an operand, where some getopts do not accept it. */
  readonly rewritten: boolean;
}

/** What each option takes, by its name with dashes: nothing, or one of the signs of `OptionSpec`. */
function kindsOf({ short = "", long = "" }: OptionSpec): ReadonlyMap<string, string> {
  const letters = [...short.matchAll(/([^:@?~])([:@?~]?)/g)].map(
    ([, name = "", kind = ""]) => [`-${name}`, kind] as const,
  );
  // A program without long options has none, not one without a name.
  const names = (long === "" ? [] : long.split(" ")).map(
    (name) => [`--${name.replace(/[:@?~]$/, "")}`, /[:@?~]?$/.exec(name)?.[0] ?? ""] as const,
  );
  return new Map([...letters, ...names]);
}

/** Options whose value is a pattern and may begin with a dash. */
const PATTERNS = /^--?(?:e|regexp|expression)$/;

/** Parses options, or explains why they are not known to only read, to complete "<program> …". */
export function parseOptions(args: readonly string[], spec: OptionSpec): Options | string {
  const kinds = kindsOf(spec);
  const operands: string[] = [];
  const files: string[] = [];
  const words: string[] = [];
  const seen = new Map<string, string[]>();
  let rewritten = false;
  let hasDashes = false;
  let afterDashes = 0;
  let at = 0;

  /** Reads an option with what is attached to it, or the next word as its value; or explains why it is refused. */
  const take = (
    name: string,
    attached?: string,
  ): { readonly passed: string; readonly value: string | undefined } | string => {
    const kind = kinds.get(name);
    if (kind === undefined || (kind === "" && attached !== undefined)) return whyNot(spec, name);
    const next = attached !== undefined || kind === "" || kind === "?" ? undefined : args[++at];
    const value = attached ?? next;
    if (value === undefined && (kind === ":" || kind === "@")) return `${name} has no value`;
    // Some parsers read a word with a dash as an option even where a value is expected.
    if (next !== undefined && /^-(?![0-9][0-9,-]*$)./.test(next) && !PATTERNS.test(name))
      return `${name} has the value ${next}: attach it`;
    const bare = name.replace(/^--?/, "");
    const passed = spec.instead?.[bare] ?? bare;
    rewritten ||= passed !== bare;
    seen.set(passed, [...(seen.get(passed) ?? []), ...(value === undefined ? [] : [value])]);
    if (value !== undefined && kind === "@" && value !== "-") files.push(value);
    return { passed, value };
  };

  for (; at < args.length; at++) {
    const word = args[at] ?? "";
    if (word === "--") {
      hasDashes = true;
      afterDashes = args.length - at - 1;
      operands.push(...args.slice(at + 1));
      break;
    }
    if (word === "-" || !word.startsWith("-")) {
      operands.push(word);
      continue;
    }
    rewritten ||= operands.length > 0;
    if (spec.numeric === true && /^-[0-9]+$/.test(word)) {
      words.push(word);
      continue;
    }
    if (word.startsWith("--")) {
      const equals = word.indexOf("=");
      const name = equals === -1 ? word : word.slice(0, equals);
      const taken = take(name, equals === -1 ? undefined : word.slice(equals + 1));
      if (typeof taken === "string") return taken;
      const { passed, value } = taken;
      words.push(`--${passed}${value === undefined ? "" : `=${value}`}`);
      continue;
    }
    let cluster = "-";
    let value: readonly string[] = [];
    for (let letter = 1; letter < word.length; letter++) {
      const name = `-${word.charAt(letter)}`;
      const isFlag = kinds.get(name) === "";
      const attached = isFlag || letter + 1 === word.length ? undefined : word.slice(letter + 1);
      const taken = take(name, attached);
      if (typeof taken === "string") return taken;
      cluster += `${taken.passed}${attached ?? ""}`;
      if (isFlag) continue;
      if (attached === undefined && taken.value !== undefined) value = [taken.value];
      break;
    }
    words.push(cluster, ...value);
  }
  return { operands, afterDashes, hasDashes, files, seen, words, rewritten };
}

/** The values of an option under all its names. */
export function valuesOf({ seen }: Options, ...names: readonly string[]): readonly string[] {
  return names.flatMap((name) => seen.get(name) ?? []);
}

function whyNot({ refuses = {} }: OptionSpec, name: string): string {
  const bare = name.replace(/^--?/, "");
  const why = Object.entries(refuses).find(([, names]) => names.split(" ").includes(bare))?.[0];
  return `${bare.length === 1 ? "-" : "--"}${bare} ${why ?? "is not on the list of options that only read"}`;
}

/**
 * The number of options in front of the operands, with their values; or the first word that is none. `flag` matches a word,
 * `pair` an option and its value with a blank between them.
 */
export function ownWords(args: readonly string[], flag: RegExp, pair: RegExp, option = /^-/): number | string {
  let at = 0;
  for (let word = args[at]; word !== undefined && option.test(word); word = args[at]) {
    if (flag.test(word)) at += 1;
    else if (!word.includes(" ") && pair.test(`${word} ${args[at + 1] ?? ""}`)) at += 2;
    else return word;
  }
  return at;
}
