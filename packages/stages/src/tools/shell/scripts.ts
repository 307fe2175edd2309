import type { Unwrapped } from "./shells.ts";
import { mayBeOption, type ShellWord, tail } from "./word.ts";

function hidden(words: readonly ShellWord[], via: string): Unwrapped {
  return { transparent: false, inner: [{ kind: "unseen", text: words.map((word) => word.text).join(" "), via }] };
}

/** Scripts of sed or awk, and whether it is certain which words they are. */
function scripts(words: readonly ShellWord[], flags: string): readonly ShellWord[] | undefined {
  const found: ShellWord[] = [];
  let given = false;
  let operand: ShellWord | undefined;
  for (let at = 1; at < words.length; at++) {
    const word = words[at];
    if (word === undefined) break;
    if (mayBeOption(word)) return undefined;
    if (!word.text.startsWith("-") || word.text === "-") {
      operand ??= word;
      continue;
    }
    const value = /^-(?:e|-expression$)/.test(word.text)
      ? word.text.length > 2 && !word.text.startsWith("--")
        ? tail(word, 2)
        : words[++at]
      : undefined;
    if (value !== undefined) {
      found.push(value);
      given = true;
    } else if (word.head.startsWith("--expression=")) {
      found.push(tail(word, 13));
      given = true;
    } else if (
      !new RegExp(
        `^-(?:[${flags}]+|i[.~A-Za-z0-9_-]*|-in-place(?:=.*)?|-quiet|-silent|-regexp-extended|-null-data|-)$`,
      ).test(word.text)
    ) {
      return undefined;
    }
  }
  return given ? found : operand === undefined ? [] : [operand];
}

/** A sed script may run commands (`e`, `s///e`) and write files (`w`): one that might is a command of its own. */
export function unwrapSed(words: readonly ShellWord[]): Unwrapped | undefined {
  const found = scripts(words, "nErszub");
  if (found?.every((script) => !script.dynamic && isPlainSed(script.text))) return undefined;
  return hidden(words, "sed script");
}

const SED_ADDRESS = String.raw`(?:[0-9]+|\$|/(?:[^/\\\n]|\\[^\n])*/I?)`;
const SED_STEP = "[0-9]+~[0-9]+";
const SED_FUNCTION = String.raw`(?:[pdDPgGhHxnN=lqQz{}]|[qQ][0-9]+|s(?<d>[/|#,:@!])(?:(?!\k<d>)[^\\\n]|\\[^\n])*\k<d>(?:(?!\k<d>)[^\\\n]|\\[^\n])*\k<d>[gpiI0-9]*)`;
const SED_COMMAND = new RegExp(
  String.raw`^\s*(?:(?:${SED_STEP}|${SED_ADDRESS})(?:\s*,\s*[+~]?${SED_ADDRESS})?\s*!?\s*)?${SED_FUNCTION}\s*(?:[;\n]|(?=\})|$)`,
);

/** Only addresses, printing, deleting, hold space and `s` without `e` and `w`. */
export function isPlainSed(script: string): boolean {
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
