import { relative, resolve, sep } from "node:path";
import { contains, isFile, resolveReal } from "../../files/paths.ts";
import { readFind } from "./find.ts";
import { hasReadingSubcommand, readGit } from "./git.ts";
import { parseOptions } from "./options.ts";
import { READERS, type Reader } from "./reader-table.ts";
import { type CommandPlace, FOUND_MARK, type Reading, reads, unknown } from "./reading.ts";
import { readAwk, readJq, readSed } from "./scripts.ts";
import { readPager, readSeq, readTree, readXxd } from "./special-readers.ts";

const SPECIAL = new Map<string, (args: readonly string[], place: CommandPlace) => Reading>([
  ["awk", readAwk],
  ["find", readFind],
  ["gawk", readAwk],
  ["git", readGit],
  // Scripts that look up gzip by themselves.
  ["gunzip", (args, place) => place.inner(["gzip", "-d", ...args])],
  ["jq", readJq],
  ["less", readPager],
  ["mawk", readAwk],
  ["more", readPager],
  ["sed", readSed],
  ["seq", readSeq],
  // As an operand, /dev/null writes nothing.
  ["tee", (args) => (args.every((arg) => arg === "/dev/null") ? reads(["tee", ...args]) : unknown("tee writes files"))],
  ["tree", readTree],
  ["xxd", readXxd],
  ["zcat", (args, place) => place.inner(["gzip", "-dc", ...args])],
]);

/** Programs that may only print their version. npm gets options that prevent logs and update checks. */
const VERSIONS = new Map<string, RegExp>([
  ["bash", /^--version$/],
  ["gcc", /^--version$/],
  ["node", /^(?:-v|--version)$/],
  ["npm", /^(?:-v|--version)$/],
  ["python", /^(?:-V|--version)$/],
  ["python3", /^(?:-V|--version)$/],
  ["tsc", /^(?:-v|--version)$/],
]);
const QUIET_NPM = ["--logs-max=0", "--no-update-notifier"];

/** Whether a command, given a bare program name, has forms that count as reading, whatever its other words are. */
export function hasReadingForms([name = "", ...args]: readonly string[]): boolean {
  return name === "git" ? hasReadingSubcommand(args) : isListed(name) || isListed(name.replace(OTHER_BUILD, ""));
}

/** Before the names of other builds of the same programs: `gsed` of GNU on macOS, `nawk` and `mawk`. */
const OTHER_BUILD = /^(?:g(?!rep)|[mn](?=awk$))/;

function isListed(name: string): boolean {
  return READERS.has(name) || SPECIAL.has(name);
}

/** What a command does, given a bare program name; undefined if the program is not listed. */
export function readCommand(argv: readonly string[], place: CommandPlace): Reading | undefined {
  const [name = "", ...args] = argv;
  const version = VERSIONS.get(name);
  if (version !== undefined) {
    if (args.length !== 1 || !version.test(args[0] ?? "")) return unknown(`${name} may run code of the project`);
    return reads([...argv, ...(name === "npm" ? QUIET_NPM : [])]);
  }
  const special = SPECIAL.get(name);
  const spec = READERS.get(name);
  if (special === undefined && spec === undefined) return undefined;
  if (args.length === 1 && args[0] === "--version") return reads(argv);
  if (args.length === 1 && args[0] === "--help" && special === undefined) return reads(argv);
  if (special !== undefined) return special(args, place);
  return spec === undefined ? undefined : readListed(argv, spec, place);
}

function readListed(argv: readonly string[], spec: Reader, place: CommandPlace): Reading {
  const [name = "", ...args] = argv;
  const options = parseOptions(args, spec);
  if (typeof options === "string") return unknown(`${name} ${options}`);
  const why = spec.why?.(options, args);
  if (why !== undefined) return unknown(`${name} ${why}`);
  const { operands, words } = options;
  if (spec.max !== undefined && operands.length > spec.max)
    return unknown(`${name} takes at most ${spec.max} operands here; a further one may be written`);
  const patternGiven = spec.patternBy?.some((option) => options.seen.has(option)) === true;
  const named =
    spec.operands === "text" ? [] : spec.operands === "pattern" && !patternGiven ? operands.slice(1) : operands;
  const given = named.filter((word) => word !== "-");
  const readsFolder = spec.folder === true || spec.folder?.(options) === true;
  const folders = given.length === 0 && readsFolder ? ["."] : given;
  const added = [...(spec.adds ?? []), ...(spec.noFollow === undefined ? [] : noFollow(spec.noFollow, given, place))];
  const opensTree = spec.opensTree?.(options) === true;
  if (spec.leaveOut !== undefined && opensTree) {
    const store = leaveOut(spec, folders, place);
    if (typeof store === "string") return unknown(`${name} ${store}`);
    added.push(...store);
  }
  const isDeep = opensTree || spec.showsTree === true || spec.showsTree?.(options) === true;
  const paths = [...(isDeep ? [] : folders), ...options.files];
  const trees = isDeep ? folders : [];
  if (!options.rewritten && added.length === 0) return reads(argv, paths, trees);
  // Added last, since of two contradicting options ripgrep uses the last.
  const tail = operands.length === 0 ? [] : ["--", ...operands];
  return reads([name, ...words, ...added, ...tail], paths, trees);
}

/** Named files may be links, as people expect; entries of folders may be links that lead anywhere. */
function noFollow(option: string, operands: readonly string[], { cwd }: CommandPlace): readonly string[] {
  const isNamedFile = (path: string): boolean => {
    const resolution = resolveReal(path, cwd);
    return resolution.ok && resolution.exists && isFile(resolution.real);
  };
  return operands.every(isNamedFile) ? [] : [option];
}

/** Contains neither glob characters nor word separators. */
const SAFE_PATH = /^[\w.@+/-]+$/;

/** Options that exclude the run store below these folders; or why none can. */
function leaveOut(spec: Reader, folders: readonly string[], place: CommandPlace): readonly string[] | string {
  const { cwd, workspace } = place;
  const { store } = workspace;
  if (store === undefined) return [];
  const added = new Set<string>();
  for (const path of folders) {
    const mark = path.indexOf(FOUND_MARK);
    const isFound = mark !== -1;
    const folder = isFound ? path.slice(0, mark) : path;
    const resolution = resolveReal(folder, cwd);
    if (!resolution.ok || resolution.real === store || !contains(resolution.real, store)) continue;
    // A name that a link or `..` replaces would not be excluded.
    const isStraight = isFound || resolve(cwd, path) === resolution.real;
    if (!isStraight || /[^./][^/]*\/+\.\./.test(path)) return "would read the run store by another name";
    const [first = ""] = relative(resolution.real, store).split(sep);
    const fromHere = spec.leaveOutPath !== undefined && contains(cwd, store) ? relative(cwd, store) : undefined;
    const isByPath = fromHere !== undefined && isPlain(folder, resolution.real, cwd) && SAFE_PATH.test(fromHere);
    if (!isByPath && (isFound || !SAFE_PATH.test(`${first}${fromHere ?? ""}`)))
      return "would read the run store: name other folders";
    if (fromHere !== undefined) added.add(`${spec.leaveOutPath}${fromHere}`);
    if (!isByPath) added.add(`${spec.leaveOut}${first}`);
  }
  return [...added];
}

/** Whether ripgrep compares all that it finds in this folder with paths from the current one. It does so by the spelling. */
function isPlain(path: string, real: string, cwd: string): boolean {
  if (!contains(cwd, real)) return false;
  const below = relative(cwd, real);
  const plain = below === "" ? [".", real] : [below, `./${below}`, real];
  return plain.includes(path.endsWith("/") ? path.slice(0, -1) : path);
}
