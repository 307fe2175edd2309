import { ownWords } from "./options.ts";
import { type CommandPlace, type Reading, reads, unknown } from "./reading.ts";

const MOST_LINES = 1_000_000;
const SEQ_NUMBER = /^-?(?:[0-9]{1,7}|[0-9]{1,4}\.[0-9]{1,3})$/;

/** Its output is bounded only by its operands. */
export function readSeq(args: readonly string[]): Reading {
  const pair = /^(?:-s (?!-).{0,100}|-f [^%]{0,50}%0?[0-9]{0,3}(?:\.[0-9]{1,2})?[gef][^%]{0,50})$/s;
  const own = ownWords(args, /^(?:-w|--equal-width)$/, pair, /^-[^0-9]/);
  if (typeof own === "string") return unknown(`seq ${own} is not on the list of options that only read`);
  const numbers = args.slice(own);
  const values = numbers.map(Number);
  const first = values.length > 1 ? (values[0] ?? 1) : 1;
  const step = values.length > 2 ? (values[1] ?? 1) : 1;
  const lines = ((values.at(-1) ?? 1) - first) / step;
  const fits = numbers.length >= 1 && numbers.length <= 3 && numbers.every((word) => SEQ_NUMBER.test(word));
  if (!fits || step === 0 || lines >= MOST_LINES)
    return unknown(`seq prints more than ${MOST_LINES} lines, or has unusual numbers`);
  return reads(["seq", ...args]);
}

const SHOWS_ONLY = /^-(?:[eEFiInNrRsSwX]+|[0-9]+)$/;

/** Without a terminal, a pager only prints, so cat runs instead: in a terminal, a pager can start programs. */
export function readPager(args: readonly string[], place: CommandPlace): Reading {
  const own = ownWords(args, SHOWS_ONLY, /^$/, /^[-+]./);
  if (typeof own === "string")
    return unknown(`less or more with ${own}, which is not on the list of options that only read`);
  return place.inner(["cat", "--", ...args.slice(own)]);
}

const TREE_LONG =
  /^--(?:noreport|gitignore|dirsfirst|filesfirst|prune|du|si|inodes|device|matchdirs|ignore-case|metafirst|nolinks|(?:filelimit|charset|timefmt)=[^/]*|sort=[a-z]+)$/;

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
  return reads(["tree", ...args], [], paths.length === 0 ? ["."] : paths);
}

/** Parsed by hand: options are known by their first letters, and a second operand is written. */
export function readXxd(args: readonly string[]): Reading {
  const flag = /^-(?:[abeipuEv]|ps|[clgos](?:0x)?[0-9a-f]+)$/;
  const own = ownWords(args, flag, /^-[clgos] [-+]{0,2}(?:0x)?[0-9a-f]+$/, /^-./s);
  if (typeof own === "string")
    return unknown(`xxd ${own} ${/^--?r/.test(own) ? "writes" : "is not on the list of options that only read"}`);
  const operands = args.slice(own);
  if (operands.length > 1) return unknown("xxd writes its second operand");
  return reads(["xxd", ...args], operands);
}
