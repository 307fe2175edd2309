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

type Takes = "" | ":" | "@" | "?" | "~";

const TAKES: ReadonlySet<string> = new Set([":", "@", "?", "~"]);

function isTakes(text: string): text is Takes {
  return text === "" || TAKES.has(text);
}

function takesOf(spec: OptionSpec): ReadonlyMap<string, Takes> {
  const found = new Map<string, Takes>();
  const letters = [...(spec.short ?? "").matchAll(/([^:@?~])([:@?~]?)/g)];
  const names = [...(spec.long ?? "").matchAll(/([a-z0-9][A-Za-z0-9-]+)([:@?~]?)/g)];
  for (const [, name = "", takes = ""] of [...letters, ...names]) if (isTakes(takes)) found.set(name, takes);
  return found;
}

/** Options whose value is a pattern and may begin with a dash. */
const PATTERNS: ReadonlySet<string> = new Set(["e", "regexp", "expression"]);

/** Parses options, or explains why they are not known to only read, to complete "<program> …". */
export function parseOptions(args: readonly string[], spec: OptionSpec): Options | string {
  const takes = takesOf(spec);
  const instead = new Map(Object.entries(spec.instead ?? {}));
  const operands: string[] = [];
  const files: string[] = [];
  const words: string[] = [];
  const seen = new Map<string, string[]>();
  let rewritten = false;
  let dashesAt = -1;

  const record = (given: string, kind: Takes, value: string | undefined): void => {
    const name = instead.get(given) ?? given;
    rewritten ||= name !== given;
    seen.set(name, [...(seen.get(name) ?? []), ...(value === undefined ? [] : [value])]);
    if (value !== undefined && kind === "@" && value !== "-") files.push(value);
  };
  const shown = (name: string): string => `${name.length === 1 ? "-" : "--"}${name}`;
  // Some parsers read a word with a dash as an option even where a value is expected.
  const badValue = (name: string, value: string | undefined): string | undefined => {
    if (value === undefined) return `${shown(name)} has no value`;
    const fits = PATTERNS.has(name) || !/^-./.test(value) || /^-[0-9][0-9,-]*$/.test(value);
    return fits ? undefined : `${shown(name)} has the value ${value}: attach it`;
  };

  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? "";
    if (word === "--") {
      dashesAt = operands.length;
      operands.push(...args.slice(at + 1));
      break;
    }
    if (word === "-" || !word.startsWith("-")) {
      operands.push(word);
      continue;
    }
    rewritten ||= operands.length > 0;
    if (word.startsWith("--")) {
      const equals = word.indexOf("=");
      const name = equals === -1 ? word.slice(2) : word.slice(2, equals);
      const kind = name.length > 1 ? takes.get(name) : undefined;
      const attached = equals === -1 ? undefined : word.slice(equals + 1);
      if (kind === undefined || (kind === "" && attached !== undefined)) return whyNot(spec, name);
      let value = attached;
      if (value === undefined && kind !== "" && kind !== "?") {
        value = args[++at];
        const fault = value === undefined && kind === "~" ? undefined : badValue(name, value);
        if (fault !== undefined) return fault;
      }
      record(name, kind, value);
      words.push(`--${instead.get(name) ?? name}${value === undefined ? "" : `=${value}`}`);
      continue;
    }
    if (spec.numeric === true && /^-[0-9]+$/.test(word)) {
      words.push(word);
      continue;
    }
    let cluster = "-";
    for (let letter = 1; letter < word.length; letter++) {
      const name = word.charAt(letter);
      const kind = takes.get(name);
      if (kind === undefined) return whyNot(spec, name);
      cluster += instead.get(name) ?? name;
      if (kind === "") {
        record(name, kind, undefined);
        continue;
      }
      const attached = letter + 1 < word.length ? word.slice(letter + 1) : undefined;
      if (attached !== undefined || kind === "?") {
        record(name, kind, attached);
        cluster += attached ?? "";
        break;
      }
      const value = args[++at];
      const fault = badValue(name, value);
      if (fault !== undefined || value === undefined) return fault ?? "";
      record(name, kind, value);
      words.push(cluster, value);
      cluster = "";
      break;
    }
    if (cluster !== "") words.push(cluster);
  }
  const afterDashes = dashesAt === -1 ? 0 : operands.length - dashesAt;
  return { operands, afterDashes, hasDashes: dashesAt !== -1, files, seen, words, rewritten };
}

function whyNot({ refuses = {} }: OptionSpec, name: string): string {
  const shown = `${name.length === 1 ? "-" : "--"}${name}`;
  for (const [why, names] of Object.entries(refuses)) if (names.split(" ").includes(name)) return `${shown} ${why}`;
  return `${shown} is not on the list of options that only read`;
}
