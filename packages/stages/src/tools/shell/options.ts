import { mayBeOption, type ShellWord, tail } from "./word.ts";

/**
 * What options a program takes, in the notation of getopt. After a letter or a long name: nothing = a flag, `:` = a
 * value, `@` = a value that is a file to read, `!` = a file that names further files, `?` = a value that is only ever
 * attached. What is not listed is unknown, and unknown is never harmless.
 */
export interface OptionSpec {
  /** `nrf@C:` */
  readonly short?: string;
  /** `quiet file@ color? context:` */
  readonly long?: string;
  /** `-5` is a count. */
  readonly numeric?: boolean;
  /** Options end at the first operand, as in builtins and in wrappers. */
  readonly stopsAtOperand?: boolean;
}

export interface ParsedOptions {
  /** Every option was on the list. */
  readonly known: boolean;
  /** Some dynamic word could be an option or add further words. */
  readonly unsure: boolean;
  readonly operands: readonly ShellWord[];
  /** Values that are files, and whatever could be one. */
  readonly files: readonly ShellWord[];
  /** Option names without dashes, with their values. */
  readonly seen: ReadonlyMap<string, readonly ShellWord[]>;
}

type Takes = "" | ":" | "@" | "!" | "?";

/** Names to what they take: letters one character each, long names apart by spaces. */
function takesOf(spec: OptionSpec): ReadonlyMap<string, Takes> {
  const found = new Map<string, Takes>();
  for (const [, name, takes] of (spec.short ?? "").matchAll(/([A-Za-z0-9.#%])([:@!?]?)/g)) {
    if (name !== undefined) found.set(name, asTakes(takes));
  }
  for (const [, name, takes] of (spec.long ?? "").matchAll(/([a-z0-9][a-z0-9-]+)([:@!?]?)/g)) {
    if (name !== undefined) found.set(name, asTakes(takes));
  }
  return found;
}

function asTakes(text: string | undefined): Takes {
  return text === ":" || text === "@" || text === "!" || text === "?" ? text : "";
}

export function parseOptions(args: readonly ShellWord[], spec: OptionSpec): ParsedOptions {
  const takes = takesOf(spec);
  const operands: ShellWord[] = [];
  const files: ShellWord[] = [];
  const seen = new Map<string, ShellWord[]>();
  let known = true;
  let unsure = false;

  const record = (name: string, kind: Takes, value: ShellWord | undefined): void => {
    seen.set(name, [...(seen.get(name) ?? []), ...(value === undefined ? [] : [value])]);
    if (kind === "!") known = false;
    if (value === undefined) return;
    if (kind === "@" || kind === "!") files.push(value);
  };

  /** Only the first of the words it becomes is the value. */
  const separate = (value: ShellWord | undefined): ShellWord | undefined => {
    if (value !== undefined && !value.single) unsure = true;
    return value;
  };

  for (let at = 0; at < args.length; at++) {
    const word = args[at];
    if (word === undefined) break;
    if (!word.dynamic && word.text === "--") {
      operands.push(...args.slice(at + 1));
      break;
    }
    const longName = /^--([A-Za-z0-9][A-Za-z0-9-]*)(=?)/.exec(word.head);
    if (longName !== null && (!word.dynamic || longName[2] === "=")) {
      const name = longName[1] ?? "";
      const kind = takes.get(name);
      const attached = longName[2] === "=" ? tail(word, longName[0].length) : undefined;
      if (kind === undefined || name.length === 1 || (kind === "" && attached !== undefined)) {
        known = false;
        if (attached !== undefined) files.push(attached);
        continue;
      }
      record(name, kind, attached ?? (kind === "" || kind === "?" ? undefined : separate(args[++at])));
      continue;
    }
    if (mayBeOption(word)) {
      unsure = true;
      operands.push(word);
      continue;
    }
    if (word.dynamic || !word.text.startsWith("-") || word.text === "-") {
      operands.push(word);
      if (spec.stopsAtOperand === true) {
        operands.push(...args.slice(at + 1));
        break;
      }
      continue;
    }
    if (spec.numeric === true && /^-[0-9]+$/.test(word.text)) continue;
    for (let letter = 1; letter < word.text.length; letter++) {
      const name = word.text.charAt(letter);
      const kind = takes.get(name);
      const attached = word.text.length > letter + 1 ? tail(word, letter + 1) : undefined;
      if (kind === undefined) {
        known = false;
        if (attached !== undefined) files.push(attached);
        break;
      }
      if (kind === "") {
        record(name, kind, undefined);
        continue;
      }
      record(name, kind, attached ?? (kind === "?" ? undefined : separate(args[++at])));
      break;
    }
  }
  return { known, unsure, operands, files, seen };
}
