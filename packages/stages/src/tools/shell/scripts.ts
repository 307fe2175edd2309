import { type OptionSpec, parseOptions } from "./options.ts";
import type { Unwrapped } from "./shells.ts";
import { mayBeOption, type ShellWord } from "./word.ts";

function hidden(words: readonly ShellWord[], via: string): Unwrapped {
  return { transparent: false, inner: [{ kind: "unseen", text: words.map((word) => word.text).join(" "), via }] };
}

const SED_OPTIONS: OptionSpec = {
  short: "nErsuzbe:l:f@i?",
  long: "quiet silent expression: regexp-extended separate unbuffered null-data line-length: posix debug file@ in-place?",
};

export interface SedLine {
  /** Every option is known and every script is in the line and neither runs nor writes anything. */
  readonly plain: boolean;
  /** Files are changed where they are. */
  readonly inPlace: boolean;
  readonly files: readonly ShellWord[];
}

export function readSedLine(words: readonly ShellWord[]): SedLine {
  const options = parseOptions(words.slice(1), SED_OPTIONS);
  const given = [...(options.seen.get("e") ?? []), ...(options.seen.get("expression") ?? [])];
  const fromFile = options.seen.has("f") || options.seen.has("file");
  const scripts = given.length > 0 ? given : options.operands.slice(0, 1);
  const certain = options.known && !options.unsure;
  const plain =
    certain &&
    !fromFile &&
    scripts.length > 0 &&
    scripts.every((script) => !script.dynamic && script.text.trim() !== "" && isPlainSed(script.text));
  const operands = given.length > 0 || fromFile || !certain ? options.operands : options.operands.slice(1);
  const inPlace = options.seen.has("i") || options.seen.has("in-place");
  return { plain, inPlace, files: [...operands, ...options.files].filter((word) => word.text !== "-") };
}

/** A sed script may run commands (`e`, `s///e`) and write files (`w`): one that might is a command of its own. */
export function unwrapSed(words: readonly ShellWord[]): Unwrapped | undefined {
  return readSedLine(words).plain ? undefined : hidden(words, "sed script");
}

/** What stands before the next delimiter. In brackets some seds take it for a letter and others do not: there it is refused. */
function sedPattern(delimiter: string): string {
  const set = String.raw`\[\^?\]?(?:\[:[a-z]+:\]|(?!${delimiter})[^\][\\\n]|\\[^\][\n])*\]`;
  return String.raw`(?:(?!${delimiter})[^[\\\n]|\\[^\n]|${set})*`;
}
const SED_ADDRESS = String.raw`(?:[0-9]+|\$|/${sedPattern("/")}/I?)`;
const SED_STEP = "[0-9]+~[0-9]+";
const SED_FUNCTION = String.raw`(?:[pdDPgGhHxnN=lqQz{}]|[qQ][0-9]+|s(?<d>[/|#,:@!])${sedPattern(String.raw`\k<d>`)}\k<d>(?:(?!\k<d>)[^\\\n]|\\[^\n])*\k<d>[gpiI0-9]*)`;
const SED_COMMAND = new RegExp(
  String.raw`^\s*(?:(?:${SED_STEP}|${SED_ADDRESS})(?:\s*,\s*[+~]?${SED_ADDRESS})?\s*!?\s*)?${SED_FUNCTION}\s*(?:[;\n]|(?=\})|$)`,
);

/** Only addresses, printing, deleting, hold space and `s` without `e` and `w`. */
function isPlainSed(script: string): boolean {
  let rest = script;
  while (rest.trim() !== "") {
    const step = SED_COMMAND.exec(rest)?.[0];
    if (step !== undefined && step !== "") {
      rest = rest.slice(step.length);
      continue;
    }
    const brace = new RegExp(String.raw`^\s*(?:${SED_ADDRESS}(?:\s*,\s*${SED_ADDRESS})?\s*!?\s*)?[{}]\s*;?`).exec(
      rest,
    )?.[0];
    if (brace === undefined || brace === "") return false;
    rest = rest.slice(brace.length);
  }
  return true;
}

/** An awk program may run commands and write files; one that only prints fields may not. */
export function unwrapAwk(words: readonly ShellWord[]): Unwrapped | undefined {
  return isPlainAwk(words) ? undefined : hidden(words, "awk program");
}

const AWK_VALUE = String.raw`(?:\$?[0-9]+|\$?(?:NF|NR|FNR)|"[^"\\\n|]*")`;
const AWK_TEST = String.raw`(?:/(?:[^/\\\n]|\\[^\n])*/|(?:NR|NF|FNR|\$[0-9]+)\s*(?:[<>=!]=|[<>])\s*(?:[0-9]+|"[^"\\\n|]*"))`;
const AWK_PROGRAM = new RegExp(
  String.raw`^\s*(?:!?${AWK_TEST}(?:\s*(?:&&|\|\|)\s*!?${AWK_TEST})*\s*)?(?:\{\s*print(?:\s+${AWK_VALUE}(?:\s*,?\s*${AWK_VALUE})*)?\s*;?\s*\})?\s*$`,
);

/** `awk '{print $1}' file`: fields, line numbers and constant text of lines chosen by a simple test. */
export function isPlainAwk(words: readonly ShellWord[]): boolean {
  const operands = awkOperands(words);
  const program = operands?.[0];
  return program !== undefined && !program.dynamic && program.text.trim() !== "" && AWK_PROGRAM.test(program.text);
}

/** The program and its files, when no option but `-F` is there and no operand assigns a variable. */
export function awkOperands(words: readonly ShellWord[]): readonly ShellWord[] | undefined {
  let at = 1;
  for (let word = words[at]; word?.text.startsWith("-") === true; word = words[at]) {
    if (word.dynamic || !word.text.startsWith("-F")) return undefined;
    if (word.text === "-F" && words[at + 1]?.dynamic === true) return undefined;
    at += word.text === "-F" ? 2 : 1;
  }
  const operands = words.slice(at);
  return operands.some((word, index) => index > 0 && (mayBeOption(word) || /^[A-Za-z_]\w*=/.test(word.text)))
    ? undefined
    : operands;
}
