import { parseOptions } from "./options.ts";
import { type Reading, reads, unknown } from "./reading.ts";

export function readDate(args: readonly string[]): Reading {
  const options = parseOptions(args, {
    short: "uRI?d:r@",
    long: "date: reference@ utc universal rfc-email iso-8601? rfc-3339:",
    refuses: { "sets the clock": "s set", "reads dates from a file": "f file" },
  });
  if (typeof options === "string") return unknown(`date ${options}`);
  const formats = options.operands.length <= 1 && options.operands.every((word) => word.startsWith("+"));
  if (!formats || options.operands.some((word) => /%[^A-Za-z%]*[0-9]{4}/.test(word)))
    return unknown("date with an operand other than a plain +FORMAT sets the clock");
  return reads(["date", ...options.words, ...options.operands], options.files);
}

/** `/dev/null` as an operand writes nothing. */
export function readTee(args: readonly string[]): Reading {
  return args.every((arg) => arg === "/dev/null") ? reads(["tee", ...args]) : unknown("tee writes files");
}

const MOST_LINES = 1_000_000;
const SEQ_NUMBER = /^-?(?:[0-9]{1,7}|[0-9]{1,4}\.[0-9]{1,3})$/;

/** Its output is bounded only by its operands. */
export function readSeq(args: readonly string[]): Reading {
  let at = 0;
  for (; /^-[^0-9]/.test(args[at] ?? ""); at++) {
    const word = args[at] ?? "";
    if (word === "-w" || word === "--equal-width") continue;
    const value = args[at + 1] ?? "";
    if (
      word === "-s"
        ? value.length > 100 || value.startsWith("-")
        : word !== "-f" || !/^[^%]{0,50}%0?[0-9]{0,3}(?:\.[0-9]{1,2})?[gef][^%]{0,50}$/.test(value)
    )
      return unknown(`seq ${word} is not on the list of options that only read`);
    at += 1;
  }
  const numbers = args.slice(at);
  const [first = 1, step = 1, last = 1] =
    numbers.length === 1
      ? [1, 1, Number(numbers[0])]
      : numbers.length === 2
        ? [Number(numbers[0]), 1, Number(numbers[1])]
        : numbers.map(Number);
  const fits = numbers.length >= 1 && numbers.length <= 3 && numbers.every((word) => SEQ_NUMBER.test(word));
  if (!fits || step === 0 || (last - first) / step >= MOST_LINES)
    return unknown(`seq prints more than ${MOST_LINES} lines, or has unusual numbers`);
  return reads(["seq", ...args]);
}

const TREE_LONG =
  /^--(?:noreport|dirsfirst|filesfirst|prune|du|si|inodes|device|matchdirs|ignore-case|metafirst|nolinks|(?:filelimit|charset|timefmt)=[^/]*|sort=[a-z]+)$/;

/** Parsed by hand: a letter with a value takes the next word, and its cluster continues. */
export function readTree(args: readonly string[]): Reading {
  const paths: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? "";
    if (!word.startsWith("-")) paths.push(word);
    else if (/^-[adfipsughDFqNvtcUrxCAnSQJX]*[LPI]$/.test(word)) {
      const value = args[++at];
      if (value === undefined || value.startsWith("-")) return unknown(`tree ${word} has no value`);
    } else if (!/^-[adfipsughDFqNvtcUrxCAnSQJX]+$/.test(word) && !TREE_LONG.test(word)) {
      const what = /^-[A-Za-z]*[oRH]/.test(word)
        ? "writes a file"
        : /^-[A-Za-z]*l/.test(word)
          ? "follows links"
          : "is not on the list of options that only read";
      return unknown(`tree ${word} ${what}`);
    }
  }
  return reads(["tree", ...args], paths.length === 0 ? ["."] : paths);
}

/** Parsed by hand: options are known by their first letters, and a second operand is written. */
export function readXxd(args: readonly string[]): Reading {
  let at = 0;
  for (; args[at]?.startsWith("-") === true && args[at] !== "-"; at++) {
    const word = args[at] ?? "";
    if (/^-(?:[abeipuEv]|ps|[clgos](?:0x)?[0-9a-f]+)$/.test(word)) continue;
    if (!/^-[clgos]$/.test(word) || !/^[-+]{0,2}(?:0x)?[0-9a-f]+$/.test(args[at + 1] ?? ""))
      return unknown(`xxd ${word} ${/^--?r/.test(word) ? "writes" : "is not on the list of options that only read"}`);
    at += 1;
  }
  const operands = args.slice(at);
  if (operands.length > 1) return unknown("xxd writes its second operand");
  return reads(["xxd", ...args], operands);
}
