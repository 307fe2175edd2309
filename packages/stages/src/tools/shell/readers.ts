import type { Opens } from "./findings.ts";
import { readGitCommand } from "./git.ts";
import { type OptionSpec, type ParsedOptions, parseOptions } from "./options.ts";
import { type Reading, readSpecial } from "./special-readers.ts";
import { listed, literalWord, type ShellWord } from "./word.ts";

interface Reader extends OptionSpec {
  /** `pattern`: the first operand is what to look for, unless an option gave it. */
  readonly operands: "paths" | "text" | "pattern";
  /** Options that give the pattern, so that all operands are paths. */
  readonly patternBy?: readonly string[];
  /** Without operands it reads the folder it is in: always, or with such options. */
  readonly folder?: true | ((options: ParsedOptions) => boolean);
  /** What it opens of a folder that it is given; nothing when omitted. */
  readonly opens?: (options: ParsedOptions) => Opens | undefined;
  /** At most so many operands; a further one would be written to, or mean something else. */
  readonly max?: number;
  /** None of its options writes, runs a program or follows links, so a dynamic word cannot make it do so. */
  readonly harmless?: boolean;
}

const GREP: Reader = {
  short: "EFGPivwxcLlnHhoqsabTZUzrIye:m:A:B:C:d:D:f@",
  long:
    "extended-regexp fixed-strings basic-regexp perl-regexp regexp: file@ ignore-case no-ignore-case invert-match " +
    "word-regexp line-regexp count color? colour? files-without-match files-with-matches max-count: only-matching quiet " +
    "silent no-messages byte-offset with-filename no-filename label: line-number initial-tab null after-context: " +
    "before-context: context: text binary-files: devices: directories: exclude: exclude-from@ exclude-dir: include: " +
    "recursive line-buffered binary null-data version help",
  numeric: true,
  operands: "pattern",
  patternBy: ["e", "f", "regexp", "file"],
  folder: recurses,
  opens: (options) =>
    recurses(options) || options.unsure ? { allBut: literalValues(options, "exclude-dir") } : undefined,
  harmless: true,
};

/** `-d` takes shortened names of what it does with folders, too. */
function recurses({ seen }: ParsedOptions): boolean {
  const directories = [...(seen.get("d") ?? []), ...(seen.get("directories") ?? [])];
  return (
    seen.has("r") ||
    seen.has("recursive") ||
    directories.some(({ text, dynamic }) => dynamic || !/^(?:read|skip)$/.test(text))
  );
}

function literalValues({ seen }: ParsedOptions, name: string): readonly string[] {
  return (seen.get(name) ?? []).filter((value) => !value.dynamic).map(({ text }) => text);
}

/** Options with which rg looks into what is hidden, too; rules in a file may want it. */
const SHOWS_HIDDEN = ["hidden", ".", "u", "unrestricted", "ignore-file"];

function openedByRipgrep({ seen, unsure }: ParsedOptions): Opens {
  const globs = ["g", "glob", "iglob"].flatMap((name) => seen.get(name) ?? []);
  if (unsure || SHOWS_HIDDEN.some((name) => seen.has(name)) || globs.some(({ dynamic }) => dynamic))
    return { allBut: [] };
  return { allBut: [".*"], unless: globs.map(({ text }) => text).filter((glob) => !glob.startsWith("!")) };
}

const CHECKSUM: Reader = { short: "btz", long: "binary text tag zero", operands: "paths", harmless: true };

const READERS: Readonly<Record<string, Reader>> = {
  ls: {
    short: "aAbBcCdfFgGhiklmnNopqQrRsStuUvxXZ1w:T:I:",
    long:
      "all almost-all author escape block-size: ignore-backups color? directory classify? file-type format: full-time " +
      "group-directories-first no-group human-readable si hide: hyperlink? indicator-style: inode ignore: kibibytes " +
      "numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style: reverse recursive size " +
      "sort: time: time-style: tabsize: width: context zero",
    operands: "paths",
    folder: true,
    harmless: true,
  },
  cat: {
    short: "AbeEnstTuv",
    long: "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting",
    operands: "paths",
    harmless: true,
  },
  head: {
    short: "qvzn:c:",
    long: "lines: bytes: quiet silent verbose zero-terminated",
    numeric: true,
    operands: "paths",
    harmless: true,
  },
  tail: {
    short: "fFqvzrn:c:s:",
    long: "lines: bytes: follow? retry pid: sleep-interval: quiet silent verbose zero-terminated max-unchanged-stats:",
    numeric: true,
    operands: "paths",
    harmless: true,
  },
  wc: {
    short: "clLmw",
    long: "bytes chars lines max-line-length words total: files0-from!",
    operands: "paths",
    harmless: true,
  },
  grep: GREP,
  egrep: GREP,
  fgrep: GREP,
  rg: {
    short: "FHINPSUVabchilnopqsuvwx0.A:B:C:E:M:T:d:e:f@g:j:m:r:t:",
    long:
      "regexp: file@ after-context: before-context: context: color: colors: column no-column count count-matches " +
      "case-sensitive crlf debug encoding: engine: files files-with-matches files-without-match fixed-strings glob: " +
      "glob-case-insensitive heading no-heading hidden no-hidden iglob: ignore-case ignore-file@ include-zero invert-match " +
      "json line-buffered line-number no-line-number line-regexp max-columns: max-columns-preview max-count: max-depth: " +
      "max-filesize: mmap no-mmap multiline multiline-dotall no-config no-follow no-ignore no-ignore-dot no-ignore-exclude " +
      "no-ignore-files no-ignore-global no-ignore-parent no-ignore-vcs no-messages null null-data one-file-system " +
      "only-matching passthru path-separator: pcre2 pretty quiet regex-size-limit: replace: smart-case sort: sortr: stats " +
      "text threads: trim type: type-not: type-add: type-list unrestricted version vimgrep with-filename no-filename " +
      "word-regexp no-unicode auto-hybrid-regex field-match-separator: field-context-separator: context-separator:",
    operands: "pattern",
    patternBy: ["e", "f", "regexp", "file", "files", "type-list"],
    folder: true,
    opens: openedByRipgrep,
  },
  stat: { short: "Lftxc:", long: "dereference file-system format: printf: terse", operands: "paths", harmless: true },
  file: {
    short: "bhikLNnp0rF:e:P:f!m!",
    long: "brief mime mime-type mime-encoding dereference no-dereference no-pad raw separator: print0 keep-going extension exclude: files-from! magic-file!",
    operands: "paths",
  },
  du: {
    short: "0abchHklmsxSd:B:t:X@",
    long: "null all apparent-size block-size: bytes total human-readable si max-depth: summarize one-file-system separate-dirs threshold: time? time-style: exclude: exclude-from@ inodes files0-from!",
    operands: "paths",
    folder: true,
    harmless: true,
  },
  df: {
    short: "aBhHiklmPTB:t:x:",
    long: "all block-size: human-readable si inodes local no-sync output? portability total type: exclude-type: print-type",
    operands: "paths",
    harmless: true,
  },
  pwd: { short: "LP", operands: "text", harmless: true },
  basename: { short: "azs:", long: "multiple suffix: zero", operands: "text", harmless: true },
  dirname: { short: "z", long: "zero", operands: "text", harmless: true },
  realpath: {
    short: "eEmLPqsz",
    long: "canonicalize-existing canonicalize-missing logical physical quiet relative-to@ relative-base@ strip no-symlinks zero",
    operands: "paths",
    harmless: true,
  },
  readlink: {
    short: "fempnqsvz",
    long: "canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero",
    operands: "paths",
    harmless: true,
  },
  sort: {
    short: "bdfghiMnRrVcCmsuzk:t:S:",
    long:
      "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort human-numeric-sort ignore-nonprinting " +
      "month-sort numeric-sort random-sort reverse sort: version-sort check? merge key: stable buffer-size: " +
      "field-separator: unique zero-terminated parallel: batch-size: random-source@ files0-from!",
    operands: "paths",
  },
  uniq: {
    short: "cdDiuzf:s:w:",
    long: "count repeated all-repeated? skip-fields: group? ignore-case skip-chars: unique zero-terminated check-chars:",
    operands: "paths",
    max: 1,
  },
  cut: {
    short: "nszb:c:d:f:",
    long: "bytes: characters: delimiter: fields: complement only-delimited output-delimiter: zero-terminated",
    operands: "paths",
    harmless: true,
  },
  tr: { short: "cCdst", long: "complement delete squeeze-repeats truncate-set1", operands: "text", harmless: true },
  nl: {
    short: "pb:d:f:h:i:l:n:s:v:w:",
    long: "body-numbering: number-format: number-separator: number-width:",
    operands: "paths",
    harmless: true,
  },
  tac: { short: "brs:", long: "before regex separator:", operands: "paths", harmless: true },
  rev: { short: "0", operands: "paths", harmless: true },
  comm: {
    short: "123iz",
    long: "check-order nocheck-order output-delimiter: total zero-terminated",
    operands: "paths",
    harmless: true,
  },
  diff: {
    short: "abBcdeEinNpqstTuwyZC:D:F:I:S:U:W:x:X@",
    long:
      "brief report-identical-files context? unified? side-by-side width: left-column suppress-common-lines " +
      "show-c-function show-function-line: label: expand-tabs initial-tab tabsize: suppress-blank-empty new-file " +
      "unidirectional-new-file ignore-case ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space " +
      "ignore-blank-lines ignore-matching-lines: text strip-trailing-cr minimal horizon-lines: speed-large-files color? " +
      "exclude-from@ exclude: starting-file: from-file@ to-file@",
    numeric: true,
    operands: "paths",
    opens: () => "entries",
  },
  cmp: {
    short: "blsi:n:",
    long: "print-bytes verbose quiet silent ignore-initial: bytes:",
    operands: "paths",
    harmless: true,
  },
  column: {
    short: "txc:s:o:N:R:H:",
    long: "table separator: output-separator: table-columns: output-width:",
    operands: "paths",
    harmless: true,
  },
  paste: { short: "szd:", long: "delimiters: serial zero-terminated", operands: "paths", harmless: true },
  fold: { short: "bsw:", long: "bytes spaces width:", operands: "paths", harmless: true },
  od: {
    short: "abcdfiloxvA:j:N:t:w?",
    long: "address-radix: skip-bytes: read-bytes: format: output-duplicates width?",
    operands: "paths",
    harmless: true,
  },
  base64: { short: "diw:", long: "decode ignore-garbage wrap:", operands: "paths", harmless: true },
  md5sum: CHECKSUM,
  sha1sum: CHECKSUM,
  sha224sum: CHECKSUM,
  sha256sum: CHECKSUM,
  sha384sum: CHECKSUM,
  sha512sum: CHECKSUM,
  b2sum: CHECKSUM,
  shasum: { short: "bta:", long: "algorithm: binary text tag", operands: "paths", harmless: true },
  cksum: { short: "a:", long: "algorithm:", operands: "paths", harmless: true },
  tree: {
    short: "adfipsughDFqNvtcUrxCAnSQJXL:P:I:H:T:",
    long: "noreport dirsfirst prune filelimit: gitignore du si inodes device matchdirs ignore-case charset: sort? timefmt: metafirst",
    operands: "paths",
    folder: true,
  },
  whoami: { operands: "text", max: 0 },
  id: { short: "aGgnruZz", long: "group groups name real user zero", operands: "text", harmless: true },
  groups: { operands: "text", harmless: true },
  uname: {
    short: "asnrvmpio",
    long: "all kernel-name nodename kernel-release kernel-version machine processor operating-system",
    operands: "text",
    max: 0,
  },
  hostname: { short: "fsidIA", long: "fqdn short ip-address domain all-ip-addresses", operands: "text", max: 0 },
  nproc: { long: "all ignore:", operands: "text", max: 0 },
  which: { short: "as", operands: "text", harmless: true },
  type: { short: "afptP", operands: "text", harmless: true },
  seq: { short: "ws:f:", long: "equal-width separator: format:", numeric: true, operands: "text", harmless: true },
  sleep: { operands: "text", harmless: true },
};

/** What the list says, or undefined for a name that is not on it. */
export function readReader(name: string, words: readonly ShellWord[]): Reading | undefined {
  if (name === "git") return readGitCommand(words);
  const special = readSpecial(name, words);
  if (special !== undefined) return special;
  const spec = Object.hasOwn(READERS, name) ? READERS[name] : undefined;
  if (spec === undefined) return undefined;
  const options = parseOptions(words.slice(1), spec);
  const fits =
    spec.max === undefined || (options.operands.length <= spec.max && options.operands.every((word) => word.single));
  const readOnly = options.known && (!options.unsure || spec.harmless === true) && fits;
  if (spec.operands === "text") return { readOnly, paths: [...options.files, ...listed(words.slice(1))] };
  const patternGiven = (spec.patternBy ?? []).some((option) => options.seen.has(option));
  // When the options are not certain, the pattern may be a path as well.
  const skipsPattern = spec.operands === "pattern" && !patternGiven && !options.unsure && options.known;
  const operands = (skipsPattern ? options.operands.slice(1) : options.operands).filter((word) => word.text !== "-");
  const readsFolder = spec.folder === true || spec.folder?.(options) === true;
  const opens = spec.opens?.(options);
  const implied = operands.length === 0 && readsFolder ? [literalWord(".")] : [];
  const paths = [...operands, ...implied, ...options.files.filter((word) => word.text !== "-")];
  return { readOnly, paths, ...(opens === undefined ? {} : { opens }) };
}
