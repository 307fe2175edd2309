import { basename } from "node:path";
import { realPath } from "../../files/paths.ts";
import { isPlainAwk, isReservedAwkName } from "./awk.ts";
import { isPlainJq } from "./jq.ts";
import { ownWords, parseOptions, valuesOf } from "./options.ts";
import { type Reading, reads, unknown } from "./reading.ts";
import { isPlainSed } from "./sed.ts";

export function readSed(args: readonly string[]): Reading {
  const options = parseOptions(args, {
    short: "nErsuze:l:",
    long: "quiet silent expression: regexp-extended separate unbuffered null-data line-length: posix sandbox",
    refuses: {
      "writes its files": "i in-place",
      "runs a script from a file": "f file",
      "follows links": "follow-symlinks",
    },
  });
  if (typeof options === "string") return unknown(`sed ${options}`);
  const given = valuesOf(options, "e", "expression");
  const scripts = given.length > 0 ? given : options.operands.slice(0, 1);
  const mixed = options.seen.has("e") && options.seen.has("expression");
  // A backslash at the end of one script continues in the next.
  if (
    scripts.length === 0 ||
    mixed ||
    scripts.some((script) => script.endsWith("\\")) ||
    !isPlainSed(scripts.join("\n"))
  )
    return unknown("sed with a script other than plain addresses, p, d, s, y and the like");
  const files = given.length > 0 ? options.operands : options.operands.slice(1);
  return reads(["sed", ...(isGnuSed() ? ["--sandbox"] : []), ...options.words, "--", ...options.operands], files);
}

/** With `--sandbox` GNU sed itself refuses e, r and w. Other seds do not know the option. */
function isGnuSed(): boolean {
  return process.platform === "linux" && basename(realPath("/bin/sed") ?? "") === "sed";
}

/** Parses only the options that all awks share; they end at the program. */
export function readAwk(args: readonly string[]): Reading {
  const pair = /^-(?:F (?!-.).*|v [A-Za-z_]\w*=.*)$/s;
  const own = ownWords(args, /^-(?:F.+|v[A-Za-z_]\w*=.*)$/s, pair, /^-(?!-$)./);
  if (typeof own === "string") return unknown(`awk ${own} is not on the list of options that only read`);
  const isReserved = (word: string): boolean => isReservedAwkName(/^(?:-v)?(\w+)=/.exec(word)?.[1] ?? "");
  const reserved = args.slice(0, own).find(isReserved);
  if (reserved !== undefined) return unknown(`awk -v ${reserved.replace(/^-v/, "")} does not set a plain variable`);
  const at = args[own] === "--" ? own + 1 : own;
  const [program, ...files] = args.slice(at);
  if (program === undefined || !isPlainAwk(program))
    return unknown("awk with a program other than plain conditions, arithmetic and print");
  if (files.some((file) => /^-./.test(file) || /^[A-Za-z_][\w:]*=/.test(file)))
    return unknown("awk with an operand that is an option or sets a variable");
  return reads(["awk", ...args], files);
}

const JQ_FLAGS =
  /^(?:-[rcesSnMCajR]+|--(?:raw-output|raw-output0|compact-output|exit-status|slurp|sort-keys|null-input|monochrome-output|color-output|ascii-output|join-output|raw-input|tab|stream|seq|unbuffered))$/;
const JQ_TEXTS = new Map([
  ["--arg", 2],
  ["--argjson", 2],
  ["--indent", 1],
]);
/** The filter must be in the line, import nothing, and not print the environment. */
export function readJq(args: readonly string[]): Reading {
  const paths: string[] = [];
  let filter: string | undefined;
  let takesTexts = false;
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? "";
    const texts = JQ_TEXTS.get(word);
    const value = args[at + 2];
    if (word === "--args" || word === "--jsonargs") takesTexts = true;
    else if (texts !== undefined) at += texts;
    else if (word === "--slurpfile" || word === "--rawfile" || word === "--argfile") {
      if (value === undefined) return unknown(`jq ${word} has no value`);
      paths.push(value);
      at += 2;
    } else if (word.startsWith("-")) {
      if (!JQ_FLAGS.test(word)) return unknown(`jq ${word} is not on the list of options that only read`);
    } else if (filter === undefined) filter = word;
    else if (!takesTexts) paths.push(word);
  }
  if (filter === undefined) return unknown("jq without a filter in the line");
  if (!isPlainJq(filter)) return unknown("jq with a filter that may import, or show the environment");
  return reads(["jq", ...args], paths);
}
