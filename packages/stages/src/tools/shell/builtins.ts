import { parseOptions } from "./options.ts";
import { type Inner, joined, type Unwrapped } from "./shells.ts";
import { listed, mayBeOption, type ShellWord } from "./word.ts";

/** After one of these any name may mean something else, so nothing later can be called harmless by its name. */
const REDEFINES = new Set(["eval", "source", ".", "alias", "unalias", "enable", "hash", "trap", "shopt"]);

export function redefinesNames(name: string): boolean {
  return REDEFINES.has(name);
}

/** These may leave the shell in another folder. */
const MOVES = new Set(["eval", "source", ".", "pushd", "popd"]);

export function mayMove(name: string): boolean {
  return MOVES.has(name);
}

/** Assignments in front of these outlive the command in some shells or reach what they run. */
const SPECIAL = new Set(
  ": . break continue declare eval exec exit export local readonly return set shift source times trap typeset unset".split(
    " ",
  ),
);

export function keepsAssignments(name: string): boolean {
  return SPECIAL.has(name);
}

const DECLARES = new Set(["export", "declare", "typeset", "readonly", "local"]);

/** Names that `export NAME=value` and its kin hand to later commands, or "" for one the text does not tell. */
export function declaredNames(name: string, words: readonly ShellWord[]): readonly string[] {
  if (!DECLARES.has(name)) return [];
  const operands = words.slice(1).filter((word) => word.dynamic || !/^[-+]/.test(word.text));
  return operands.map((word) => /^([A-Za-z_][A-Za-z0-9_]*)(?:\+?=|$)/.exec(word.head)?.[1] ?? "");
}

const ASSIGNS = new Set(["read", "mapfile", "readarray", "getopts", "unset", "printf", "wait"]);

/** Words that may be names of variables which `read NAME` and its kin change, "" for any; more than really are. */
export function assignedNames(name: string, words: readonly ShellWord[]): readonly string[] {
  if (!ASSIGNS.has(name)) return [];
  if (name === "printf") return printedNames(words.slice(1));
  return words.slice(1).flatMap((word) => identifiers(word.text.replace(/^-[a-z]/, "")));
}

/** `printf %n NAME` gives the variable a number: with `PATH`, commands are those of the folder of that name. */
const COUNTS = /%[^%A-Za-z]*[hjlLtz]*n/;

/** What `printf` may assign to: behind `-v`, and behind a format that counts, or that nobody knows. */
function printedNames(args: readonly ShellWord[]): readonly string[] {
  const target = args[0]?.text.startsWith("-v") === true;
  const first = target ? (args[0]?.text === "-v" ? 2 : 1) : 0;
  const at = args[first]?.text === "--" ? first + 1 : first;
  const [format, ...values] = args.slice(at);
  const counts = format !== undefined && (format.dynamic || COUNTS.test(format.text));
  const counted = counts ? values.flatMap(({ text, dynamic }) => (dynamic ? [""] : identifiers(text))) : [];
  const split = counts && !format.single ? [""] : [];
  return [...(target ? args.flatMap(({ text }) => identifiers(text.replace(/^-v/, ""))) : []), ...counted, ...split];
}

function identifiers(text: string): readonly string[] {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(text) ? [text] : [];
}

/** Names that get another meaning: `alias ls=…`, `hash -p path ls`, `enable -n ls`. "" is a name the text hides. */
export function redefinedNames(name: string, words: readonly ShellWord[]): readonly string[] {
  if (name !== "alias" && name !== "hash" && name !== "enable" && name !== "unalias") return [];
  return words
    .slice(1)
    .map((word) => (word.dynamic ? (word.head.split("=")[0] ?? "") : (word.text.split("=")[0] ?? "")));
}

const PARSE_NEUTRAL = /^(?:nullglob|failglob|dotglob|globstar|nocaseglob|nocasematch|inherit_errexit)$/;
const SET_LETTERS = /^[-+](?:[eufxvCbmhET]+|[eufxvCbmhET]*o)$/;
const SET_NAMES =
  /^(?:errexit|nounset|pipefail|noglob|xtrace|verbose|noclobber|errtrace|functrace|monitor|notify|hashall)$/;

/** Whether it changes how bash reads the lines that follow, which this analyser has already read. */
export function changesReading(name: string, words: readonly ShellWord[]): boolean {
  const args = words.slice(1);
  if (name === "shopt") {
    return args.some((word) => word.dynamic || (!/^-[supq]+$/.test(word.text) && !PARSE_NEUTRAL.test(word.text)));
  }
  return name === "set" && !isPlainSet(words);
}

/** `set -euo pipefail` and the like; `set -- words` gives positional parameters. */
export function isPlainSet(words: readonly ShellWord[]): boolean {
  for (let at = 1; at < words.length; at++) {
    const word = words[at];
    if (word === undefined || word.dynamic) return false;
    if (word.text === "--") return true;
    if (!SET_LETTERS.test(word.text)) return false;
    if (!word.text.endsWith("o")) continue;
    const option = words[++at];
    if (option === undefined || option.dynamic || !SET_NAMES.test(option.text)) return false;
  }
  return words.length > 1;
}

/** Builtins that run or evaluate what they are given. */
export function unwrapBuiltin(name: string, words: readonly ShellWord[]): Unwrapped | undefined {
  const args = words.slice(1);
  switch (name) {
    case "eval": {
      const operands = args[0]?.text === "--" ? args.slice(1) : args;
      return { transparent: false, inner: operands.length === 0 ? [] : [inShell(joined(operands, "bash", "eval"))] };
    }
    case "trap": {
      const operands = args[0]?.text === "--" ? args.slice(1) : args;
      const text = operands[0];
      if (text === undefined || operands.length < 2 || /^-[lpP]?$/.test(text.text))
        return { transparent: false, inner: [] };
      return { transparent: false, inner: [inShell(joined([text], "bash", "trap"))] };
    }
    case "command":
      return unwrapCommand(words);
    case "exec": {
      const options = parseOptions(args, { short: "cla:", stopsAtOperand: true });
      const { operands } = options;
      const inner: Inner[] = [];
      if (!options.known || options.unsure) inner.push(hidden(words));
      const assignments = options.seen.has("c") ? ["*"] : [];
      if (operands.length > 0) inner.push({ kind: "words", words: operands, via: "exec", assignments });
      return { transparent: options.known && options.seen.size === 0, inner };
    }
    case "alias":
      return { transparent: false, inner: args.flatMap(aliasValue) };
    case "mapfile":
    case "readarray":
    case "complete":
    case "compgen": {
      const at = args.findIndex((word) => word.head.startsWith("-") && /[CF]/.test(word.text));
      const evaluated = evaluatedText(name, words);
      return { transparent: false, inner: at === -1 && evaluated === undefined ? [] : [hidden(words)] };
    }
    case "bind":
    case "fc":
      return { transparent: false, inner: [hidden(words)] };
    case "jobs": {
      const at = args.findIndex((word) => word.text === "-x");
      if (at === -1 || at + 1 === args.length) return undefined;
      return { transparent: false, inner: [{ kind: "words", words: args.slice(at + 1), via: "jobs -x" }] };
    }
    default: {
      const evaluated = evaluatedText(name, words);
      if (evaluated === undefined) return undefined;
      return { transparent: false, inner: [{ kind: "unseen", text: evaluated, via: name }] };
    }
  }
}

function unwrapCommand(words: readonly ShellWord[]): Unwrapped {
  const options = parseOptions(words.slice(1), { short: "pvV", stopsAtOperand: true });
  if (!options.known || options.unsure) {
    const inner: Inner[] = [hidden(words)];
    if (options.operands.length > 0) {
      inner.push({ kind: "words", words: options.operands, via: "command", inShell: true });
    }
    return { transparent: false, inner };
  }
  // `command -v name` only says what the name is; a glob there says which files there are.
  if (options.seen.has("v") || options.seen.has("V") || options.operands.length === 0)
    return { transparent: true, inner: [], files: listed(options.operands) };
  return { transparent: true, inner: [{ kind: "words", words: options.operands, via: "command", inShell: true }] };
}

function inShell(inner: Inner): Inner {
  return inner.kind === "unseen" ? inner : { ...inner, inShell: true };
}

function hidden(words: readonly ShellWord[]): Inner {
  return { kind: "unseen", text: words.map((word) => word.text).join(" "), via: words[0]?.text ?? "" };
}

function aliasValue(word: ShellWord): readonly Inner[] {
  if (word.dynamic) return [{ kind: "unseen", text: word.text, via: "alias" }];
  const equals = word.text.indexOf("=");
  return equals === -1 ? [] : [{ kind: "text", text: word.text.slice(equals + 1), dialect: "bash", via: "alias" }];
}

/** Builtins that take names of variables: a subscript in such a name is evaluated, and may run a command. */
const TAKES_NAMES = new Set(["read", "mapfile", "readarray", "unset", "getopts", "wait", ...DECLARES]);

function evaluatedText(name: string, words: readonly ShellWord[]): string | undefined {
  const args = words.slice(1);
  const line = words.map((word) => word.text).join(" ");
  if (name === "let")
    return args.every((word) => !word.dynamic && /^[0-9\s+\-*/%<>!&|^~?:()]*$/.test(word.text)) ? undefined : line;
  if (name === "printf") {
    const first = args[0];
    if (first === undefined) return undefined;
    const target = /^-v./.test(first.text) ? first.text : first.text === "-v" ? (args[1]?.text ?? "") : "";
    return mayBeOption(first) || target.includes("[") || (first.text === "-v" && args[1]?.dynamic === true)
      ? line
      : undefined;
  }
  if (!TAKES_NAMES.has(name)) return undefined;
  for (const word of args) {
    const option = !word.dynamic && /^-[A-Za-z]+$/.test(word.text);
    // Integer and reference variables evaluate what is assigned to them.
    if (option && DECLARES.has(name) && /[in]/.test(word.text)) return line;
    const target = word.head.split("=")[0] ?? "";
    if (target.includes("[") || (word.dynamic && !word.head.includes("="))) return line;
  }
  return undefined;
}
