import { basename } from "node:path";
import { realPath } from "../../files/paths.ts";
import { isPlainAwk, isReservedAwkName } from "./awk.ts";
import { parseOptions } from "./options.ts";
import type { NamedPath, Reading } from "./reading.ts";
import { isPlainSed } from "./sed.ts";
import { unknown } from "./special-readers.ts";

function reads(argv: readonly string[], paths: readonly string[]): Reading {
  const named = paths.filter((path) => path !== "-").map((path): NamedPath => ({ path, access: "read" }));
  return { kind: "reads", argv, paths: named };
}

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
  const given = [...(options.seen.get("e") ?? []), ...(options.seen.get("expression") ?? [])];
  const scripts = given.length > 0 ? given : options.operands.slice(0, 1);
  const mixed = options.seen.has("e") && options.seen.has("expression");
  // A backslash at the end of one script reaches into the next.
  if (
    scripts.length === 0 ||
    mixed ||
    scripts.some((script) => script.endsWith("\\")) ||
    !isPlainSed(scripts.join("\n"))
  )
    return unknown("sed with a script that is not one of plain addresses, p, d, s, y and the like");
  const files = given.length > 0 ? options.operands : options.operands.slice(1);
  return reads(["sed", ...(isGnuSed() ? ["--sandbox"] : []), ...options.words, "--", ...options.operands], files);
}

/** GNU sed has a second lock: with `--sandbox` it refuses e, r and w. BusyBox and the seds of other systems do not know it. */
function isGnuSed(): boolean {
  return process.platform === "linux" && basename(realPath("/bin/sed") ?? "") === "sed";
}

/** All options by hand: the awks agree on these, and stop at the program. */
export function readAwk(args: readonly string[]): Reading {
  let at = 0;
  for (; /^-./.test(args[at] ?? ""); at++) {
    const word = args[at] ?? "";
    if (word === "--") {
      at += 1;
      break;
    }
    const letter = word.slice(0, 2);
    const value = word.length > 2 ? word.slice(2) : args[++at];
    if (letter !== "-F" && letter !== "-v") return unknown(`awk ${word} is not on the list of options that only read`);
    if (value === undefined || (word.length === 2 && /^-./.test(value))) return unknown(`awk ${word} has no value`);
    const name = /^([A-Za-z_][A-Za-z0-9_]*)=/.exec(value)?.[1];
    if (letter === "-v" && (name === undefined || isReservedAwkName(name)))
      return unknown(`awk ${word} ${value} sets no variable of its own`);
  }
  const [program, ...files] = args.slice(at);
  if (program === undefined || !isPlainAwk(program))
    return unknown("awk with a program that is not one of plain conditions, arithmetic and print");
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
/** Words of the language that read other files or show the environment. A field of that name (`.include`) is only a field. */
const JQ_REACHES = /(?<!\.)\b(?:import|include|env|input_filename|modulemeta|get_search_list)\b|ENV|__prog/;

/** The filter stands in the line, imports nothing and does not print the environment: `$ENV`, which may stand apart, too. */
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
  if (JQ_REACHES.test(filter)) return unknown("jq with a filter that may import, or show the environment");
  return reads(["jq", ...args], paths);
}
