import { lstatSync, readlinkSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import { certainPath } from "../tools/files/closed-folders.ts";
import { contains, existing, realPath } from "../tools/files/paths.ts";
import type { SandboxPlan } from "../tools/sandbox.ts";
import type { Mark } from "./folder-marks.ts";
import type { SandboxedRepository } from "./repository.ts";
import type { SystemKeys } from "./system-keys.ts";
import { SYSTEM_FOLDERS, type ToolRoot } from "./tool-roots.ts";

const MB = 1024 * 1024;
/** Capacities of the in-memory file systems, in bytes. */
const SIZES = { temporary: 1024 * MB, home: 512 * MB, shared: 256 * MB, scratch: 1024 * MB };
/** Links into /usr on most systems, folders on others. */
const USR_LINKS = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/** The inputs from which the arguments of one call are computed. */
export interface BubblewrapFacts {
  readonly plan: SandboxPlan;
  readonly cwd: string;
  /** Real path; undefined if the environment names no home folder. */
  readonly home: string | undefined;
  /** As written in the environment. */
  readonly spelledHome: string | undefined;
  /** The environment's folder for temporary files. */
  readonly temporary: string | undefined;
  readonly keys: SystemKeys;
  readonly tools: readonly ToolRoot[];
  readonly repository: SandboxedRepository | undefined;
  readonly marks: readonly Mark[];
  /** False for old versions of bubblewrap and for nested ones, which cannot forbid further user namespaces. */
  readonly forbidsUserNamespaces: boolean;
  /** Whether bubblewrap reports its status on a separate descriptor. */
  readonly status: boolean;
}

type How = "read" | "write" | "tmpfs" | "hidden" | "null";
interface Mount {
  readonly at: string;
  readonly how: How;
  readonly from?: string;
  readonly size?: number;
}

const STATUS_DESCRIPTOR = 3;

/** The arguments of bubblewrap, up to the program that runs in the sandbox. They contain no values of the environment. */
export function bubblewrapArguments(facts: BubblewrapFacts): readonly string[] {
  const { plan, cwd, forbidsUserNamespaces } = facts;
  const mounts = inOrder(mountsOf(facts), facts);
  const readOnlyLast = mounts.filter(({ how }) => how === "hidden").map(({ at }) => at);
  return [
    "--unshare-user",
    ...(forbidsUserNamespaces ? ["--disable-userns"] : []),
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-uts",
    ...(plan.network ? [] : ["--unshare-net"]),
    "--die-with-parent",
    "--new-session",
    "--cap-drop",
    "ALL",
    ...(facts.status ? ["--json-status-fd", String(STATUS_DESCRIPTOR)] : []),
    ...USR_LINKS.flatMap(systemLink),
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--size",
    String(SIZES.shared),
    "--tmpfs",
    "/dev/shm",
    ...mounts.flatMap(toArguments),
    ...spelledHome(facts),
    // Last, since mount points are created in them. The superuser needs no capability to change kernel settings in /proc.
    ...["/proc", "/dev", ...readOnlyLast, "/"].flatMap((path) => ["--remount-ro", path]),
    // A workspace below the top of its repository is mounted as a separate file system.
    ...(facts.repository?.whole === false ? ["--setenv", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "1"] : []),
    "--chdir",
    cwd,
    "--",
  ];
}

function systemLink(path: string): readonly string[] {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return [];
  return stats.isSymbolicLink() ? ["--symlink", readlinkSync(path), path] : ["--ro-bind", path, path];
}

/** Keeps the environment's spelling of the home folder valid where it is a link or lies below one. */
function spelledHome({ home, spelledHome, plan }: BubblewrapFacts): readonly string[] {
  if (home === undefined || spelledHome === undefined || home === resolve(spelledHome)) return [];
  return contains(plan.root, spelledHome) ? [] : ["--symlink", home, resolve(spelledHome)];
}

function toArguments({ at, how, from = at, size }: Mount): readonly string[] {
  switch (how) {
    case "read":
      return ["--ro-bind", from, at];
    case "write":
      return ["--bind", from, at];
    case "null":
      return ["--ro-bind", "/dev/null", at];
    case "tmpfs":
      return ["--size", String(size ?? SIZES.temporary), "--tmpfs", at];
    case "hidden":
      return ["--perms", "0555", "--tmpfs", at];
  }
}

/** All mounts; of two at the same path the later one counts. */
function mountsOf(facts: BubblewrapFacts): readonly Mount[] {
  const { plan, home, keys, tools, repository, temporary, marks } = facts;
  const { root, network } = plan;
  const writable = plan.writes.flatMap((path) => pathsOf(path, facts));
  // A server's code may lie outside the workspace; hidden paths stay hidden.
  const named = plan.reads.flatMap((path) =>
    path.startsWith(sep) && !isHomeIn(path, home) ? existing(path) : pathsOf(path, facts),
  );
  const readable = plan.reads.includes("") ? [root, ...named.filter((path) => !contains(root, path))] : named;
  const written = (path: string): boolean => writable.some((area) => contains(area, path));
  const visible = (path: string): boolean => written(path) || readable.some((area) => contains(area, path));
  const repositoryIsWritten = repository?.whole === true && written(root);
  const outside = visible(root) ? (repository?.outside ?? []) : [];
  const areas = [...writable, ...(repositoryIsWritten ? outside : [])];
  const obeyed = marks.filter(({ path, kind }) => kind === "obeyed" && path !== join(root, ".git"));
  const isWritten = (path: string): boolean => areas.some((area) => area !== path && contains(area, path));
  // Looked up once: another command may close folders at any time.
  const there = (path: string): readonly string[] => certainPath(path, areas);
  const guarded = [...plan.readOnly.flatMap(there), ...(repository?.fixed ?? [])].filter(isWritten);
  // These can be renamed with their folder, but keep their identity.
  const marked = obeyed.flatMap(({ path }) => there(path)).filter(isWritten);
  const absent = [...plan.absent, join(root, ".sluice")].flatMap(there);
  const shown: readonly Mount[] = [
    ...SYSTEM_FOLDERS.flatMap(existing).map((at) => ({ at, how: "read" as const })),
    ...keys.files.map((at) => ({ at, how: "null" as const })),
    ...keys.folders.map((at) => ({ at, how: "hidden" as const })),
    ...(network ? namesOfHosts() : []),
    ...["/tmp", "/var/tmp", ...temporaryFolder(temporary, facts)].map((at) => ({ at, how: "tmpfs" as const })),
    ...(home === undefined || home === "/" ? [] : [{ at: home, how: "tmpfs" as const, size: SIZES.home }]),
    ...tools.map(({ at, from }) => ({ at, from, how: "read" as const })),
    // If only parts of the workspace are readable, the rest is an empty read-only folder.
    { at: root, how: written(root) ? "write" : readable.includes(root) ? "read" : "hidden" },
    ...readable.filter((at) => at !== root && !written(at)).map((at) => ({ at, how: "read" as const })),
    ...writable.filter((at) => at !== root).map((at) => ({ at, how: "write" as const })),
    ...outside.map((at) => ({ at, how: repositoryIsWritten ? ("write" as const) : ("read" as const) })),
    ...anchors([...guarded, ...absent.filter(isWritten)], areas),
    ...[...guarded, ...marked].map((at) => ({ at, how: "read" as const })),
    ...marks
      .filter(({ path, kind }) => kind === "channel" && visible(path))
      .map(({ path: at }) => ({ at, how: "null" as const })),
  ];
  const isShown = (path: string): boolean =>
    shown.some(({ at, how }) => (how === "read" || how === "write") && contains(at, path));
  return [
    ...shown,
    ...absent.filter(isShown).map(hidden),
    ...plan.scratch
      .flatMap((path) => insideOf(root, path))
      .map((at) => ({ at, how: "tmpfs" as const, size: SIZES.scratch })),
  ];
}

/** Mounts the folders between a guarded path and its writable area, since renaming one would move the guard with it. */
function anchors(guarded: readonly string[], areas: readonly string[]): readonly Mount[] {
  const folders = guarded.flatMap((path) => {
    const area = areas.filter((one) => contains(one, path)).toSorted((a, b) => b.length - a.length)[0];
    const between: string[] = [];
    for (let at = dirname(path); area !== undefined && at !== area && contains(area, at); at = dirname(at))
      between.push(at);
    return between;
  });
  const isGuarded = (at: string): boolean => guarded.some((path) => contains(path, at));
  return [...new Set(folders)].filter((at) => !isGuarded(at)).map((at) => ({ at, how: "write" }));
}

function hidden(at: string): Mount {
  return { at, how: lstatSync(at).isDirectory() ? "hidden" : "null" };
}

function isHomeIn(path: string, home: string | undefined): boolean {
  return home !== undefined && contains(path, home);
}

/** Resolves a path of the workspace, or an absolute path elsewhere. */
function pathsOf(path: string, facts: BubblewrapFacts): readonly string[] {
  const { root } = facts.plan;
  if (!path.startsWith(sep)) return insideOf(root, path);
  return existing(path).filter((real) => contains(root, real) || !isTooWide(real, facts));
}

/** Whether a mount of this path would also show the workspace, the home folder or a hidden path. */
function isTooWide(path: string, { plan, home }: BubblewrapFacts): boolean {
  return [plan.root, ...plan.absent, ...(home === undefined ? [] : [home])].some((one) => contains(path, one));
}

function temporaryFolder(folder: string | undefined, { plan, home }: BubblewrapFacts): readonly string[] {
  if (folder === undefined || !folder.startsWith(sep)) return [];
  const precious = [plan.root, ...(home === undefined ? [] : [home]), ...SYSTEM_FOLDERS, "/proc", "/dev"];
  const isOwn = ["/tmp", "/var/tmp", ...precious].some((one) => contains(one, folder));
  return isOwn || precious.some((one) => contains(folder, one)) ? [] : [resolve(folder)];
}

/** With systemd, the file that names the resolver lies outside /etc. */
function namesOfHosts(): readonly Mount[] {
  const at = realPath("/etc/resolv.conf");
  return at === undefined || contains("/etc", at) ? [] : [{ at, how: "read" }];
}

/** Parents come before children. Nothing is mounted inside a hidden path, except the workspace. */
function inOrder(mounts: readonly Mount[], { plan: { root, absent } }: BubblewrapFacts): readonly Mount[] {
  const gone = absent.flatMap(existing);
  const isGone = (at: string): boolean => gone.some((one) => one !== at && contains(one, at) && !contains(one, root));
  const depth = ({ at }: Mount): number => at.split(sep).length;
  const last = new Map(mounts.map((mount) => [mount.at, mount]));
  return [...last.values()].filter(({ at }) => !isGone(at)).toSorted((one, other) => depth(one) - depth(other));
}

/** The real path of a path below `root`, unless a link leads out. */
function insideOf(root: string, path: string): readonly string[] {
  return existing(resolve(root, path)).filter((real) => contains(root, real));
}
