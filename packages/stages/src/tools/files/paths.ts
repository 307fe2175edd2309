import { accessSync, constants, lstatSync, readlinkSync, realpathSync, type Stats, statSync } from "node:fs";
import { dirname, isAbsolute, join, parse, relative, sep } from "node:path";
import { messageOf, type Subject, type ToolCall, type Workspace } from "@sluice/core";
import { fault, systemCode } from "./results.ts";

export type Resolution =
  | { readonly ok: true; readonly real: string; readonly exists: boolean }
  | {
      readonly ok: false;
      readonly reason: string;
      /** It may lead anywhere at all, which no grant can make right. */
      readonly anywhere?: true;
    };

/** PATH_MAX of Linux; a longer path cannot be opened anyway. */
const MAX_PATH_BYTES = 4096;
/** As many as the Linux kernel follows. */
const MAX_LINKS = 40;
const PROCESS = /^(?:self|thread-self|\d+)$/;
const SYSTEM_FOLDERS = process.platform === "win32" ? [] : ["/proc", "/sys", "/dev"];

/**
 * Where a path leads, the way the kernel walks it: every link on the way is followed, also one that points at nothing
 * yet; what does not exist is its nearest existing parent with the rest appended. Relative paths start at `cwd`. Through a
 * process (`/proc/self`, `/dev/fd`) a path leads elsewhere for each that follows it, so it leads nowhere.
 */
export function resolveReal(path: string, cwd: string): Resolution {
  if (path === "") return refuse("an empty path");
  if (path.includes("\0")) return refuse("a path with a NUL byte");
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return refuse(`a path longer than ${MAX_PATH_BYTES} bytes`);
  const start = isAbsolute(path) ? parse(path).root : cwd;
  const pending = parts(isAbsolute(path) ? path.slice(start.length) : path);
  let current = start;
  let existing: string | undefined;
  let links = 0;
  for (let part = pending.shift(); part !== undefined; part = pending.shift()) {
    if (part === "..") {
      if (existing !== undefined) return refuse("`..` behind a folder that does not exist");
      current = dirname(current);
      continue;
    }
    if (current === "/proc" && PROCESS.test(part) && pending[0] !== "root")
      return { ok: false, reason: "a path through a process is refused", anywhere: true };
    const next = join(current, part);
    const stats = existing === undefined ? look(next) : "missing";
    if (typeof stats === "object" && stats.isSymbolicLink()) {
      links += 1;
      if (links > MAX_LINKS) return refuse("too many links, or links in a circle");
      const target = readLink(next);
      if (target === undefined) return refuse("a link that cannot be read");
      if (isAbsolute(target)) current = parse(target).root;
      pending.unshift(...parts(isAbsolute(target) ? target.slice(current.length) : target));
      continue;
    }
    if (stats === "missing") existing ??= current;
    else if (typeof stats === "string") return refuse(stats);
    else if (!stats.isDirectory() && pending[0] === "..") return refuse("`..` behind something that is no folder");
    current = next;
  }
  return canonical(current, existing);
}

/** On file systems that ignore case or compose letters, the name as the disk has it. */
function canonical(current: string, existing: string | undefined): Resolution {
  const there = existing ?? current;
  try {
    return {
      ok: true,
      real: join(realpathSync.native(there), relative(there, current)),
      exists: existing === undefined,
    };
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
    return `a path that cannot be looked at (${code ?? messageOf(thrown)})`;
  }
}

function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    return undefined;
  }
}

/** Where a path leads; undefined when it leads nowhere, or nowhere that this process can see. */
export function realPath(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    return undefined;
  }
}

/** The same as a list, empty when it leads nowhere. */
export function existing(path: string): readonly string[] {
  const real = realPath(path);
  return real === undefined ? [] : [real];
}

/** What a file tool touches: one path, or the reason why no grant could make it right. */
export function fileSubjects(path: string, access: "read" | "write", workspace: Workspace): readonly Subject[] {
  const resolution = resolveReal(path, workspace.root);
  if (!resolution.ok) return [{ kind: "refused", reason: resolution.reason }];
  const special = specialFile(resolution);
  if (special !== undefined) return [{ kind: "refused", reason: `${special} is refused` }];
  return [{ kind: "path", real: resolution.real, access }];
}

function specialFile(resolution: { readonly real: string; readonly exists: boolean }): string | undefined {
  const system = SYSTEM_FOLDERS.find((folder) => contains(folder, resolution.real));
  if (system !== undefined) return `a path in ${system}`;
  const stats = resolution.exists ? look(resolution.real) : "missing";
  return typeof stats === "string" ? undefined : specialKind(stats);
}

/** What an entry is when it is neither file, folder nor link: opening those may block or act. */
export function specialKind(
  stats: Pick<Stats, "isFIFO" | "isSocket" | "isCharacterDevice" | "isBlockDevice">,
): string | undefined {
  if (stats.isFIFO()) return "a named pipe";
  if (stats.isSocket()) return "a socket";
  if (stats.isCharacterDevice() || stats.isBlockDevice()) return "a device";
  return undefined;
}

/** The path the gate judged for this input. Throws `path_changed` when it leads elsewhere by now. */
export function judgedPath(path: string, access: "read" | "write", call: ToolCall): string {
  const now = fileSubjects(path, access, call.workspace)[0];
  if (now?.kind === "path") {
    const same = call.judged.some(
      (subject) => subject.kind === "path" && subject.access === access && subject.real === now.real,
    );
    if (same) return now.real;
  }
  throw pathChanged(path);
}

export function pathChanged(path: string): Error {
  return fault(
    "path_changed",
    `${path} leads elsewhere than when the call was judged. Nothing was done; make the call again.`,
  );
}

/** Whether `path` is `folder` or lies below it. Both absolute and resolved. */
export function contains(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

/** A path as results name it: relative to the workspace, with `/`; absolute when it lies elsewhere. */
export function displayPath(real: string, workspace: Workspace): string {
  if (!contains(workspace.root, real)) return real;
  const shown = relative(workspace.root, real);
  return shown === "" ? "." : sep === "/" ? shown : shown.split(sep).join("/");
}

/** Whether a path is a file that may be run, links followed. */
export function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    return false;
  }
}
