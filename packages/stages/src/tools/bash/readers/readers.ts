import { statSync } from "node:fs";
import { dirname, relative, resolve, sep } from "node:path";
import { contains, resolveReal } from "../../files/paths.ts";
import { systemCode } from "../../files/results.ts";
import { readFind } from "./find.ts";
import { readGit } from "./git.ts";
import { parseOptions } from "./options.ts";
import { READERS, type Reader } from "./reader-table.ts";
import type { CommandPlace, NamedPath, Reading } from "./reading.ts";
import { readAwk, readJq, readSed } from "./scripts.ts";
import { readDate, readSeq, readTee, readTree, readXxd } from "./special-readers.ts";

const SPECIAL = new Map<string, (args: readonly string[], place: CommandPlace) => Reading>([
  ["awk", readAwk],
  ["date", readDate],
  ["find", readFind],
  ["gawk", readAwk],
  ["git", readGit],
  ["jq", readJq],
  ["mawk", readAwk],
  ["sed", readSed],
  ["seq", readSeq],
  ["tee", readTee],
  ["tree", readTree],
  ["xxd", readXxd],
]);

/** Programs that are asked only for their version. npm is told to leave its logs and its look for updates out. */
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

/** What a command does that begins with a bare program name; undefined when the program is not on the list. */
export function readCommand(argv: readonly string[], place: CommandPlace): Reading | undefined {
  const [name = "", ...args] = argv;
  const version = VERSIONS.get(name);
  if (version !== undefined) {
    if (args.length !== 1 || !version.test(args[0] ?? "")) return unknown(`${name} may run code of the project`);
    return { kind: "reads", argv: [...argv, ...(name === "npm" ? QUIET_NPM : [])], paths: [] };
  }
  const special = SPECIAL.get(name);
  const spec = READERS.get(name);
  if (special === undefined && spec === undefined) return undefined;
  if (args.length === 1 && args[0] === "--version") return { kind: "reads", argv, paths: [] };
  if (special !== undefined) return special(args, place);
  return spec === undefined ? undefined : readListed(argv, spec, place);
}

function unknown(why: string): Reading {
  return { kind: "unknown", why };
}

function readListed(argv: readonly string[], spec: Reader, place: CommandPlace): Reading {
  const [name = "", ...args] = argv;
  const options = parseOptions(args, spec);
  if (typeof options === "string") return unknown(`${name} ${options}`);
  const why = spec.why?.(options, args);
  if (why !== undefined) return unknown(`${name} ${why}`);
  const { operands, words } = options;
  if (spec.max !== undefined && operands.length > spec.max)
    return unknown(`${name} takes at most ${spec.max} operands here, a further one may be written`);
  const patternGiven = spec.patternBy?.some((option) => options.seen.has(option)) === true;
  const named =
    spec.operands === "text" ? [] : spec.operands === "pattern" && !patternGiven ? operands.slice(1) : operands;
  const given = named.filter((word) => word !== "-");
  const readsFolder = spec.folder === true || spec.folder?.(options) === true;
  const folders = given.length === 0 && readsFolder ? ["."] : given;
  const added = [...(spec.adds ?? []), ...(spec.noFollow === undefined ? [] : noFollow(spec.noFollow, given, place))];
  if (spec.leaveOut !== undefined && spec.opensTree?.(options) === true) {
    const store = leaveOut(spec, folders, place);
    if (typeof store === "string") return unknown(`${name} ${store}`);
    added.push(...store);
  }
  const paths = [...folders, ...options.files].map((path): NamedPath => ({ path, access: "read" }));
  const rewritten = options.rewritten || added.length > 0;
  if (!rewritten) return { kind: "reads", argv, paths };
  // What is added stands last among the options: of two that contradict each other, ripgrep takes the last.
  return {
    kind: "reads",
    argv: [name, ...words, ...added, ...(operands.length === 0 ? [] : ["--"]), ...operands],
    paths,
  };
}

/** Two files are compared through links, as people expect; entries of folders may be links that lead anywhere. */
function noFollow(option: string, operands: readonly string[], { cwd }: CommandPlace): readonly string[] {
  const isFile = (path: string): boolean => {
    const resolution = resolveReal(path, cwd);
    if (!resolution.ok || !resolution.exists) return false;
    try {
      return statSync(resolution.real).isFile();
    } catch (thrown) {
      if (systemCode(thrown) === undefined) throw thrown;
      return false;
    }
  };
  return operands.every(isFile) ? [] : [option];
}

/** Stands in paths that are only known when the command runs. */
export const FOUND_MARK = "\u0001";
/** Neither a glob nor a separator of words, wherever it stands. */
const SAFE_PATH = /^[\w.@+/-]+$/;

/** Options that leave the run store out of what is read below these folders; or why there are none. */
function leaveOut(spec: Reader, folders: readonly string[], place: CommandPlace): readonly string[] | string {
  const { cwd, workspace } = place;
  const { store } = workspace;
  if (store === undefined) return [];
  const names = new Set<string>();
  for (const path of folders) {
    const isFound = path.includes(FOUND_MARK);
    const resolution = resolveReal(isFound ? dirname(path) : path, cwd);
    if (!resolution.ok || resolution.real === store || !contains(resolution.real, store)) continue;
    // A name on the way that is not what it says would not be left out.
    const isStraight = isFound || resolve(cwd, path) === resolution.real;
    if (!isStraight || /[^./][^/]*\/+\.\./.test(path)) return "would read the run store by another name";
    const fromHere = relative(cwd, store);
    if (spec.leaveOutPath !== undefined && contains(cwd, store) && SAFE_PATH.test(fromHere))
      return [`${spec.leaveOutPath}${fromHere}`];
    const [first = ""] = relative(resolution.real, store).split(sep);
    if (isFound || !SAFE_PATH.test(first)) return "would read the run store: name other folders";
    names.add(first);
  }
  return [...names].map((name) => `${spec.leaveOut}${name}`);
}
