import { type OptionSpec, type Options, valuesOf } from "./options.ts";

/** The argument spec of a program that is described by its options alone. */
export interface Reader extends OptionSpec {
  /** `text`: not paths. `pattern`: a pattern unless an option gave it, then paths. Paths when omitted. */
  readonly operands?: "text" | "pattern";
  /** Options that give the pattern, so that all operands are paths. */
  readonly patternBy?: readonly string[];
  /** Whether it reads the current folder if it has no operands. */
  readonly folder?: true | ((options: Options) => boolean);
  /** Whether it opens files below a given folder; `leaveOut` then excludes the store. */
  readonly opensTree?: (options: Options) => boolean;
  /** Whether it shows something else of what is below a given folder, such as the names. */
  readonly showsTree?: true | ((options: Options) => boolean);
  /** An option, up to its value, that excludes files and folders by name. */
  readonly leaveOut?: string;
  /** The same for a path relative to the current folder. */
  readonly leaveOutPath?: string;
  /** Words to add. */
  readonly adds?: readonly string[];
  /** Prevents following links in folders; added unless all operands are files. */
  readonly noFollow?: string;
  /** Maximum number of operands; a further one would be written or mean something else. */
  readonly max?: number;
  /** Why it is refused even though all its options are listed. */
  readonly why?: (options: Options, args: readonly string[]) => string | undefined;
}

const WRITES = "writes a file";
const RUNS = "starts a program";
const LISTS = "reads files that a file lists";
const FOLLOWS = "follows links out of the workspace";
const HANGS = "does not end on its own";

function recurses(options: Options): boolean {
  const { seen } = options;
  return seen.has("r") || seen.has("recursive") || valuesOf(options, "d", "directories").includes("recurse");
}

const GREP: Reader = {
  short: "EFGPivwxcLlnHhoqsabTZUzrRIy0123456789e:m:A:B:C:d:D:f@",
  long:
    "extended-regexp fixed-strings basic-regexp perl-regexp regexp: file@ ignore-case no-ignore-case invert-match " +
    "word-regexp line-regexp count color? colour? files-without-match files-with-matches max-count: only-matching quiet " +
    "silent no-messages byte-offset with-filename no-filename label: line-number initial-tab null after-context: " +
    "before-context: context: text binary-files: devices: directories: exclude: exclude-from@ exclude-dir: include: " +
    "recursive dereference-recursive line-buffered binary null-data",
  numeric: true,
  // `-r` does not follow links below the named folders.
  instead: { R: "r", "dereference-recursive": "recursive" },
  operands: "pattern",
  patternBy: ["e", "f", "regexp", "file"],
  folder: recurses,
  opensTree: recurses,
  leaveOut: "--exclude-dir=",
  why: (options) =>
    valuesOf(options, "d", "directories").every((how) => /^(?:read|skip|recurse)$/.test(how))
      ? undefined
      : "-d takes read, skip or recurse",
};

/** Wide stops would fill the memory. */
function tabsFault(options: Options): string | undefined {
  const isNarrow = valuesOf(options, "t", "tabs").every((stops) => /^[0-9]{1,3}(?:[, ][0-9]{1,3})*$/.test(stops));
  return isNarrow ? undefined : "-t takes a few numbers";
}

const CHECKSUMS = "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum".split(" ");
const CHECKSUM: Reader = {
  short: "btz",
  long: "binary text tag zero",
  refuses: { [LISTS]: "c check" },
};

/** Programs whose options are parsed like getopt's. Unlisted names and options are unknown. */
export const READERS: ReadonlyMap<string, Reader> = new Map(
  Object.entries<Reader>({
    ls: {
      short: "aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1w:T:I:",
      long:
        "all almost-all author escape block-size: ignore-backups color? directory classify? file-type format: full-time " +
        "group-directories-first no-group human-readable si hide: hyperlink? indicator-style: inode ignore: kibibytes " +
        "numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style: reverse recursive size " +
        "sort: time: time-style: tabsize: width: context zero",
      folder: true,
      showsTree: ({ seen }) => seen.has("R") || seen.has("recursive"),
      why: ({ seen }) =>
        seen.has("L") && (seen.has("R") || seen.has("recursive")) ? `-L with -R ${FOLLOWS}` : undefined,
    },
    cat: {
      short: "AbeEnstTuv",
      long: "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting",
    },
    head: { short: "qvzn:c:", long: "lines: bytes: quiet silent verbose zero-terminated", numeric: true },
    tail: {
      short: "qvzrn:c:",
      long: "lines: bytes: quiet silent verbose zero-terminated",
      numeric: true,
      refuses: { [HANGS]: "f F follow retry pid sleep-interval s" },
      // The old form `tail +5f` also follows.
      why: ({ operands }) => (operands.some((word) => /^\+[0-9]*[^0-9]/.test(word)) ? `+…f ${HANGS}` : undefined),
    },
    wc: {
      short: "clLmw",
      long: "bytes chars lines max-line-length words total:",
      refuses: { [LISTS]: "files0-from" },
    },
    grep: GREP,
    egrep: GREP,
    fgrep: GREP,
    rg: {
      short: "FHINPSUVabchilnopqsuvwx0.A:B:C:E:M:T:d:e:f@g:j:m:r:t:",
      long:
        "regexp: file@ after-context: before-context: context: color: colors: column no-column count count-matches " +
        "case-sensitive crlf encoding: engine: files files-with-matches files-without-match fixed-strings glob: " +
        "glob-case-insensitive heading no-heading hidden no-hidden iglob: ignore-case ignore-file@ include-zero invert-match " +
        "json line-buffered line-number no-line-number line-regexp max-columns: max-columns-preview max-count: max-depth: " +
        "max-filesize: mmap no-mmap multiline multiline-dotall no-config no-follow no-ignore no-ignore-dot no-ignore-exclude " +
        "no-ignore-files no-ignore-global no-ignore-parent no-ignore-vcs no-messages null null-data one-file-system " +
        "only-matching passthru path-separator: pcre2 pretty quiet regex-size-limit: replace: smart-case sort: sortr: stats " +
        "text threads: trim type: type-not: type-add: type-list unrestricted vimgrep with-filename no-filename " +
        "word-regexp no-unicode auto-hybrid-regex field-match-separator: field-context-separator: context-separator:",
      refuses: { [RUNS]: "pre pre-glob hostname-bin z search-zip", [FOLLOWS]: "L follow" },
      operands: "pattern",
      patternBy: ["e", "f", "regexp", "file", "files", "type-list"],
      folder: true,
      opensTree: () => true,
      leaveOut: "--iglob=!",
      leaveOutPath: "--iglob=!/",
      adds: ["--no-config", "--no-follow"],
    },
    stat: { short: "Lftc:", long: "dereference file-system format: printf: terse" },
    file: {
      short: "bhikLNn0rF:e:",
      long: "brief mime mime-type mime-encoding dereference no-dereference no-pad raw separator: print0 keep-going extension exclude:",
      refuses: {
        [WRITES]: "C compile p preserve-date",
        [LISTS]: "f files-from",
        "reads other rules": "m magic-file",
        [RUNS]: "z Z uncompress uncompress-noreport S no-sandbox",
      },
    },
    du: {
      short: "0abcDhHklmPsxSd:B:t:X@",
      long: "null all apparent-size block-size: bytes total human-readable si max-depth: summarize one-file-system separate-dirs count-links no-dereference dereference-args threshold: time? time-style: exclude: exclude-from@ inodes",
      refuses: { [LISTS]: "files0-from", [FOLLOWS]: "L dereference" },
      folder: true,
      showsTree: true,
    },
    df: {
      short: "aBhHiklmPTB:t:x:",
      long: "all block-size: human-readable si inodes local no-sync output? portability total type: exclude-type: print-type",
      refuses: { "flushes the disks": "sync" },
    },
    date: {
      short: "uRI?d:r@",
      long: "date: reference@ utc universal rfc-email iso-8601? rfc-3339:",
      refuses: { "sets the clock": "s set", "reads dates from a file": "f file" },
      operands: "text",
      why: ({ operands }) =>
        operands.length <= 1 && operands.every((word) => /^\+(?!.*%[^A-Za-z%]*[0-9]{4})/s.test(word))
          ? undefined
          : "with an operand other than a plain +FORMAT sets the clock",
    },
    basename: { short: "azs:", long: "multiple suffix: zero", operands: "text" },
    dirname: { short: "z", long: "zero", operands: "text" },
    realpath: {
      short: "eEmLPqsz",
      long: "canonicalize-existing canonicalize-missing logical physical quiet relative-to@ relative-base@ strip no-symlinks zero",
    },
    readlink: {
      short: "femnqsvz",
      long: "canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero",
    },
    sort: {
      short: "bdfghiMnRrVcCmsuzk:t:S:",
      long:
        "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort human-numeric-sort ignore-nonprinting " +
        "month-sort numeric-sort random-sort reverse sort: version-sort check? merge key: stable buffer-size: " +
        "field-separator: unique zero-terminated parallel: batch-size: random-source@",
      refuses: { [WRITES]: "o output T temporary-directory", [RUNS]: "compress-program", [LISTS]: "files0-from" },
    },
    uniq: {
      short: "cdDiuzf:s:w:",
      long: "count repeated all-repeated? skip-fields: group? ignore-case skip-chars: unique zero-terminated check-chars:",
      max: 1,
    },
    cut: {
      short: "nszb:c:d:f:",
      long: "bytes: characters: delimiter: fields: complement only-delimited output-delimiter: zero-terminated",
    },
    tr: { short: "cCdst", long: "complement delete squeeze-repeats truncate-set1", operands: "text" },
    nl: {
      short: "pb:d:f:h:i:l:n:s:v:w:",
      long: "body-numbering: number-format: number-separator: number-width:",
      why: (options) =>
        valuesOf(options, "w", "number-width").some((width) => width.length > 3) ? "-w is too wide" : undefined,
    },
    tac: { short: "brs:", long: "before regex separator:" },
    rev: { short: "0" },
    comm: { short: "123iz", long: "check-order nocheck-order output-delimiter: total zero-terminated" },
    diff: {
      short: "abBcdeEinNpqrstTuwyZC:D:F:I:S:U:W:x:X@",
      long:
        "brief report-identical-files context? unified? side-by-side width: left-column suppress-common-lines " +
        "show-c-function show-function-line: label: expand-tabs initial-tab tabsize: suppress-blank-empty new-file recursive " +
        "no-dereference unidirectional-new-file ignore-case ignore-tab-expansion ignore-trailing-space ignore-space-change " +
        "ignore-all-space ignore-blank-lines ignore-matching-lines: text strip-trailing-cr minimal horizon-lines: " +
        "speed-large-files color? exclude-from@ exclude: starting-file:",
      numeric: true,
      refuses: { [RUNS]: "l paginate", "compares with files of a folder": "from-file to-file" },
      noFollow: "--no-dereference",
      opensTree: ({ seen }) => seen.has("r") || seen.has("recursive"),
      // Of two folders it compares the files, of a folder and a file those of one name.
      showsTree: true,
      leaveOut: "--exclude=",
    },
    cmp: { short: "blsi:n:", long: "print-bytes verbose quiet silent ignore-initial: bytes:" },
    column: {
      short: "txc:s:o:N:R:H:",
      long: "table separator: output-separator: table-columns: output-width:",
    },
    join: {
      short: "iza:e:j:o:t:v:1:2:",
      long: "ignore-case check-order nocheck-order header zero-terminated",
    },
    paste: { short: "szd:", long: "delimiters: serial zero-terminated" },
    fold: { short: "bsw:", long: "bytes spaces width:" },
    expand: { short: "it:", long: "initial tabs:", why: tabsFault },
    unexpand: { short: "at:", long: "all first-only tabs:", why: tabsFault },
    shuf: {
      short: "zn:",
      long: "zero-terminated head-count: random-source@",
      refuses: { [WRITES]: "o output", [HANGS]: "r repeat" },
      max: 1,
    },
    od: {
      short: "abcdfiloxvA:j:N:t:w?",
      long: "address-radix: skip-bytes: read-bytes: format: output-duplicates width?",
    },
    hexdump: { short: "bcCdoxvn:s:", refuses: { "reads formats": "e f" } },
    strings: {
      short: "afown:t:",
      long: "all print-file-name bytes: radix: include-all-whitespace",
      numeric: true,
      // Its parser replaces `@file` with the words in that file.
      why: (_options, args) => (args.some((word) => word.startsWith("@")) ? "@… reads options from a file" : undefined),
    },
    base64: { short: "diw:", long: "decode ignore-garbage wrap:" },
    gzip: {
      short: "123456789cdfklqtvnN",
      long: "stdout to-stdout decompress uncompress force keep list quiet test verbose name no-name",
      refuses: { [LISTS]: "r recursive" },
      why: ({ seen, operands }) => {
        if (!["c", "stdout", "to-stdout", "l", "list", "t", "test"].some((name) => seen.has(name)))
          return `without -c, -l or -t ${WRITES}`;
        // Without a file of the given name, it opens one with a suffix added.
        return operands.every((word) => word === "-" || /\.t?gz$/.test(word))
          ? undefined
          : "reads files named *.gz or *.tgz";
      },
    },
    ...Object.fromEntries(CHECKSUMS.map((name) => [name, CHECKSUM])),
    shasum: { short: "bta:", long: "algorithm: binary text tag", refuses: { [LISTS]: "c check" } },
    cksum: { short: "a:", long: "algorithm:", refuses: { [LISTS]: "c check" } },
    echo: { short: "neE", operands: "text" },
    expr: { operands: "text" },
    whoami: { operands: "text", max: 0 },
    id: { short: "aGgnruZz", long: "group groups name real user zero", operands: "text" },
    groups: { operands: "text" },
    uname: {
      short: "asnrvmpio",
      long: "all kernel-name nodename kernel-release kernel-version machine processor operating-system",
      operands: "text",
      max: 0,
    },
    hostname: {
      short: "s",
      long: "short",
      refuses: { "asks name servers": "f d i A fqdn domain ip-address", "sets the name": "F b file boot" },
      operands: "text",
      max: 0,
    },
    nproc: { long: "all ignore:", operands: "text", max: 0 },
    which: { short: "as", operands: "text" },
    sleep: {
      operands: "text",
      max: 1,
      why: ({ operands }) =>
        /^[0-9]{1,3}(?:\.[0-9]{1,3})?s?$/.test(operands[0] ?? "") ? undefined : "accepts at most 999 seconds",
    },
  }),
);
