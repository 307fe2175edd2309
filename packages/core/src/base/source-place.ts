// Where an error of a user's code was thrown, read from its stack. Pure: no file is read here.
import { basename, dirname, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** A place in a file of source code. A type alias, because it is part of what is recorded. */
export type SourcePlace = {
  /** Relative to the workspace if it is inside, else absolute. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 code units. */
  readonly column: number;
  /** The lines around it, for people, with known secrets masked; empty if they must not be shown. */
  readonly frame?: string;
};

const MOST_CAUSES = 5;
const MOST_FRAMES = 100;
const LONGEST_STACK = 64_000;
const LONGEST_FRAME = 4_096;

/**
 * Where a thrown value comes from, with an absolute path: the first frame of its stack, or of its causes' stacks, that is neither
 * Node's, nor Sluice's, nor of an installed package; else the package that threw. Undefined if the stack names neither, as for a thrown
 * value that is not an error.
 */
export function sourcePlaceOf(thrown: unknown): SourcePlace | undefined {
  const layers = causesOf(thrown);
  for (const layer of layers) {
    const place =
      layer.at ?? parsedPlace(layer) ?? layer.frames.find(({ file }) => !isInstalled(file) && !isOurs(file));
    if (place !== undefined) return place;
  }
  // Below a frame of Sluice, a package is one that Sluice uses.
  return layers.flatMap(({ frames }) => frames.slice(0, 1)).find(({ file }) => !isOurs(file));
}

/** `src/pipeline.ts:41:9`. Outside of the workspace only the end of the path is shown, which names no home folder. */
export function placeText({ file, line, column }: SourcePlace, workspace: string): string {
  return `${shortPath(file, workspace)}:${line}:${column}`;
}

/** The text of the place where a value was thrown, to be recorded as `{ at }`. Empty if it is unknown. */
export function thrownAt(thrown: unknown, workspace: string): { readonly at?: string } {
  const place = sourcePlaceOf(thrown);
  return place === undefined ? {} : { at: placeText(place, workspace) };
}

/** Reads what `placeText` wrote. */
export function parsePlace(text: string): SourcePlace | undefined {
  const {
    file = "",
    line,
    column,
  } = /^(?<file>.{1,4096}):(?<line>\d{1,9}):(?<column>\d{1,9})$/su.exec(text)?.groups ?? {};
  return file === "" ? undefined : { file, line: Number(line), column: Number(column) };
}

/** A path relative to a folder; undefined if it is not inside. */
export function pathInside(file: string, folder: string): string | undefined {
  const inner = relative(folder, file);
  return inner === "" || inner === ".." || inner.startsWith(`..${sep}`) || inner.startsWith(sep) ? undefined : inner;
}

function shortPath(file: string, workspace: string): string {
  const inside = pathInside(file, workspace);
  if (inside !== undefined) return inside;
  const installed = file.lastIndexOf(`${sep}node_modules${sep}`);
  if (installed !== -1) return file.slice(installed + 1);
  return `…${sep}${basename(dirname(file))}${sep}${basename(file)}`;
}

interface Layer {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
  readonly at: SourcePlace | undefined;
  /** Without those of Node. */
  readonly frames: readonly SourcePlace[];
}

/** An error and its causes. */
function causesOf(thrown: unknown): readonly Layer[] {
  const layers: Layer[] = [];
  try {
    for (let value = thrown; value instanceof Error && layers.length < MOST_CAUSES; value = value.cause) {
      const { name, message, stack } = value;
      const text = typeof stack === "string" ? stack.slice(0, LONGEST_STACK) : "";
      const at = "at" in value && isPlace(value.at) ? value.at : undefined;
      layers.push({ name: `${name}`, message: `${message}`, stack: text, at, frames: framesIn(text, `${message}`) });
    }
  } catch {
    // Whatever reads a thrown value may throw; then it says nothing more about its place.
  }
  return layers;
}

function isPlace(value: unknown): value is SourcePlace {
  if (typeof value !== "object" || value === null || !("file" in value && "line" in value && "column" in value))
    return false;
  if ("frame" in value && value.frame !== undefined && typeof value.frame !== "string") return false;
  return typeof value.file === "string" && typeof value.line === "number" && typeof value.column === "number";
}

const FRAME =
  /^\s+at (?:.*? \(|async |new )?(?<address>(?:file:\/\/|\/|[A-Za-z]:[\\/]).*):(?<line>\d+):(?<column>\d+)\)?$/;

const IS_CODE = /\.[cm]?[jt]sx?$/u;

/** The frames below the message, which may hold any text and so lines that look like frames. */
function framesIn(stack: string, message: string): readonly SourcePlace[] {
  const at = message === "" ? -1 : stack.indexOf(message);
  const lines = stack.slice(at === -1 ? 0 : at + message.length).split("\n", MOST_FRAMES);
  return lines.flatMap((line) => {
    if (line.length > LONGEST_FRAME) return [];
    const { address, line: row, column } = FRAME.exec(line)?.groups ?? {};
    if (address === undefined || line.includes("eval at ")) return [];
    const file = fileOf(address);
    // A message that was changed since is no longer found, and may name any file here.
    return file === undefined || !IS_CODE.test(file) ? [] : [{ file, line: Number(row), column: Number(column) }];
  });
}

const HEADER = /^(?<address>(?:file:\/\/|\/|[A-Za-z]:[\\/])[^\n]*):(?<line>\d+)\n(?:[^\n]*\n){1,8}?(?<before>[\t ]*)\^/;

/** The place of a file that cannot be parsed: Node writes it above the message. */
function parsedPlace({ name, stack }: Layer): SourcePlace | undefined {
  if (name !== "SyntaxError") return undefined;
  const { address = "", line, before = "" } = HEADER.exec(stack)?.groups ?? {};
  const file = address === "" ? undefined : fileOf(address);
  return file === undefined ? undefined : { file, line: Number(line), column: before.length + 1 };
}

/** The path of a module's address, without the query that marks its evaluation. */
function fileOf(address: string): string | undefined {
  if (!address.startsWith("file:")) return address;
  try {
    return fileURLToPath(address.replace(/[?#].*$/s, ""));
  } catch {
    // An address that names no file is not a place.
    return undefined;
  }
}

function isInstalled(file: string): boolean {
  return file.includes(`${sep}node_modules${sep}`);
}

const PACKAGES = "(?:bin|cli|core|gateway|sqlite|stages|tui|view|workflows)";
const OWN = new RegExp(`^(?<packages>.*[\\\\/]packages[\\\\/])${PACKAGES}[\\\\/](?:src|dist)[\\\\/]`, "s");
const OF_A_PACKAGE = new RegExp(`^${PACKAGES}[\\\\/](?:src|dist|bin)[\\\\/]`);

/** Whether a file is Sluice's own: of an installed `@sluice/` package, or of the repository that this file is in. */
function isOurs(file: string): boolean {
  if (file.includes(`${sep}node_modules${sep}@sluice${sep}`)) return true;
  const packages = OWN.exec(fileURLToPath(import.meta.url))?.groups?.packages;
  return packages !== undefined && file.startsWith(packages) && OF_A_PACKAGE.test(file.slice(packages.length));
}
