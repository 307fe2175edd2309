import {
  accessSync,
  constants,
  type Dirent,
  lstatSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  type Stats,
  statSync,
} from "node:fs";
import { delimiter, dirname, isAbsolute, join, parse, relative, sep } from "node:path";
import type { Subject, ToolCall, Workspace } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { fault, systemCode, withFallback } from "./results.ts";

export type Resolution =
  | {
      readonly ok: true;
      readonly real: string;
      readonly exists: boolean;
      /** What it leads to, if that is neither file nor folder. */
      readonly special?: string | undefined;
    }
  | {
      readonly ok: false;
      readonly reason: string;
      /** The target is unpredictable, so no grant can allow it. */
      readonly anywhere?: true;
    };

/** PATH_MAX of Linux; longer paths cannot be opened. */
const MAX_PATH_BYTES = 4096;
/** The kernel's limit on Linux. */
const MAX_LINKS = 40;
const PROCESS = /^(?:self|thread-self|\d+)$/;
const SYSTEM_FOLDER = process.platform === "win32" ? /(?!)/ : /^\/(?:proc|sys|dev)(?=\/|$)/;

/**
 * Resolves a path as the kernel does: follows every link, also one to a missing target; of a missing path, resolves the nearest
 * existing parent and appends the rest. Relative paths start at `cwd`. Paths through a process (`/proc/self`, `/dev/fd`) are
 * refused, since they lead elsewhere in each process. `onLink` gets every link on the way.
 */
export function resolveReal(path: string, cwd: string, onLink?: (link: string) => void): Resolution {
  if (path === "") return refuse("an empty path");
  if (path.includes("\0")) return refuse("a path with a NUL byte");
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return refuse(`a path longer than ${MAX_PATH_BYTES} bytes`);
  const start = isAbsolute(path) ? parse(path).root : cwd;
  const pending = parts(isAbsolute(path) ? path.slice(start.length) : path);
  let current = start;
  let existing: string | undefined;
  let special: string | undefined;
  let links = 0;
  for (let part = pending.shift(); part !== undefined; part = pending.shift()) {
    if (part === "..") {
      if (existing !== undefined) return refuse("`..` after a folder that does not exist");
      current = dirname(current);
      continue;
    }
    if (current === "/proc" && PROCESS.test(part) && pending[0] !== "root")
      return { ok: false, reason: "a path through a process is refused", anywhere: true };
    const next = join(current, part);
    const stats = existing === undefined ? look(next) : "missing";
    if (typeof stats === "object" && stats.isSymbolicLink()) {
      links += 1;
      onLink?.(next);
      if (links > MAX_LINKS) return refuse("too many links, or a cycle of links");
      const target = withFallback(() => readlinkSync(next), undefined);
      if (target === undefined) return refuse("a link that cannot be read");
      if (isAbsolute(target)) current = parse(target).root;
      pending.unshift(...parts(isAbsolute(target) ? target.slice(current.length) : target));
      continue;
    }
    if (stats === "missing") existing ??= current;
    else if (typeof stats === "string") return refuse(stats);
    else if (!stats.isDirectory() && pending[0] === "..") return refuse("`..` after something that is not a folder");
    else special = specialKind(stats);
    current = next;
  }
  const there = existing ?? current;
  try {
    // The name as stored, on file systems that ignore case or compose letters.
    const real = join(realpathSync.native(there), relative(there, current));
    return existing === undefined ? { ok: true, real, exists: true, special } : { ok: true, real, exists: false };
  } catch (thrown) {
    return refuse(`a path that cannot be resolved (${systemCode(thrown) ?? messageOf(thrown)})`);
  }
}

function refuse(what: string): Resolution {
  return { ok: false, reason: `${what} is refused` };
}

function parts(path: string): string[] {
  const names = process.platform === "win32" ? path.split(/[\\/]/) : path.split("/");
  return names.filter((name) => name !== "" && name !== ".");
}

function look(path: string): Stats | string {
  try {
    return lstatSync(path);
  } catch (thrown) {
    const code = systemCode(thrown);
    if (code === "ENOENT" || code === "ENOTDIR") return "missing";
    return `a path that cannot be inspected (${code ?? messageOf(thrown)})`;
  }
}

/** The real path; undefined if it does not exist or is not visible to this process. */
export function realPath(path: string): string | undefined {
  return withFallback(() => realpathSync.native(path), undefined);
}

/** The real path as a list, empty if there is none. */
export function existing(path: string): readonly string[] {
  const real = realPath(path);
  return real === undefined ? [] : [real];
}

/** A PATH with the folders of the workspace last, so that they cannot decide what `env node` finds, and without relative ones. */
export function outsideFirst(path: string, root: string): string {
  const folders = path.split(delimiter).filter((folder) => isAbsolute(folder));
  const inside = folders.filter((folder) => {
    const target = resolveReal(folder, sep);
    return contains(root, folder) || !target.ok || contains(root, target.real);
  });
  return [...folders.filter((folder) => !inside.includes(folder)), ...inside].join(delimiter);
}

/** The links on the way of an absolute path. Replacing one changes what the path leads to. */
export function linksOn(path: string): readonly string[] {
  const links: string[] = [];
  resolveReal(path, sep, (link) => links.push(link));
  return links;
}

/** The subjects of a file tool: one path, or the reason why no grant can allow it. */
export function fileSubjects(path: string, access: "read" | "write", workspace: Workspace): readonly Subject[] {
  const resolution = resolveReal(path, workspace.root);
  if (!resolution.ok) return [{ kind: "refused", reason: resolution.reason }];
  const { real } = resolution;
  const system = SYSTEM_FOLDER.exec(real)?.[0];
  const special = system === undefined ? resolution.special : `a path in ${system}`;
  if (special !== undefined) return [{ kind: "refused", reason: `${special} is refused` }];
  return [{ kind: "path", real, access }];
}

/** The same for a tool that also searches what is below the path. */
export function treeSubjects(path: string, access: "read" | "write", workspace: Workspace): readonly Subject[] {
  return fileSubjects(path, access, workspace).map((subject) =>
    subject.kind === "path" && isTree(subject.real, workspace) ? { ...subject, tree: true } : subject,
  );
}

/** Whether more may be below a resolved path than itself. Of the root that goes without saying: what covers it covers everything. */
export function isTree(real: string, { root }: Workspace): boolean {
  return real !== root && !withFallback(() => lstatSync(real).isFile(), false);
}

/** Names what is neither file, folder nor link: opening it may block or act. */
export function specialKind(
  stats: Pick<Stats, "isFIFO" | "isSocket" | "isCharacterDevice" | "isBlockDevice">,
): string | undefined {
  if (stats.isFIFO()) return "a named pipe";
  if (stats.isSocket()) return "a socket";
  if (stats.isCharacterDevice() || stats.isBlockDevice()) return "a device";
  return undefined;
}

/** The path that the gate judged for this input. Throws `path_changed` if it now leads elsewhere, or to more. */
export function judgedPath(
  path: string,
  access: "read" | "write",
  call: Pick<ToolCall, "workspace" | "judged">,
  subjectsOf: typeof fileSubjects = fileSubjects,
): string {
  const now = subjectsOf(path, access, call.workspace)[0];
  if (now?.kind === "path") {
    const same = call.judged.some(
      (subject) =>
        subject.kind === "path" &&
        subject.access === access &&
        subject.real === now.real &&
        (now.tree === undefined || subject.tree === true),
    );
    if (same) return now.real;
  }
  throw pathChanged(path);
}

export function pathChanged(path: string): Error {
  return fault(
    "path_changed",
    `${path} no longer leads to where it led when the call was checked. Nothing was done. Make the call again.`,
  );
}

/** Whether `path` is `folder` or lies below it. Both are absolute and resolved. */
export function contains(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

/** A path as results show it: relative to the workspace, with `/`; absolute if it lies elsewhere. */
export function displayPath(real: string, workspace: Workspace): string {
  if (!contains(workspace.root, real)) return real;
  const shown = relative(workspace.root, real);
  return shown === "" ? "." : sep === "/" ? shown : shown.split(sep).join("/");
}

/** The names that lead from a folder down to a path below it. */
export function namesBetween(folder: string, path: string): string[] {
  return relative(folder, path)
    .split(sep)
    .filter((name) => name !== "");
}

/** Whether a path, after following links, is a file that may be executed. */
export function isProgram(path: string): boolean {
  return withFallback(() => {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  }, false);
}

/** Whether there is an entry at this path; links are not followed. */
export function exists(path: string): boolean {
  return withFallback(() => lstatSync(path) !== undefined, false);
}

/** Whether a path leads to a file; links are followed. */
export function isFile(path: string): boolean {
  return withFallback(() => statSync(path).isFile(), false);
}

/** Whether a path leads to a folder; links are followed. */
export function isFolder(path: string): boolean {
  return withFallback(() => statSync(path).isDirectory(), false);
}

/** The entries of a folder; none if it cannot be read. */
export function entriesIn(folder: string): readonly Dirent[] {
  return withFallback(() => readdirSync(folder, { withFileTypes: true }), []);
}
