import { join, resolve } from "node:path";
import { existing, linksOn } from "../tools/files/paths.ts";
import type { BubblewrapFacts } from "./bubblewrap.ts";

/** Programs, libraries and settings of macOS. */
const SYSTEM = ["/usr", "/bin", "/sbin", "/opt", "/System", "/Library", "/Applications/Xcode.app", "/private/etc"];
const SYSTEM_FILES = ["/", "/private/var/db/timezone", "/private/var/select", "/private/var/run/resolv.conf"];
const DEVICES = ["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/dtracehelper", "/dev/fd"];
/** Services that every program uses; none gives access to files or to other programs' memory. */
const SERVICES = ["com.apple.system.opendirectoryd.libinfo", "com.apple.system.logger", "com.apple.trustd.agent"];

/**
 * The profile for `sandbox-exec`. Weaker than on Linux: /tmp and the home folder are closed instead of empty, processes share
 * one table, and ports of the machine are closed. Of two rules about a path the later one counts.
 */
export function seatbeltProfile({ plan, home, tools, repository, temporary, keys }: BubblewrapFacts): string {
  const { root, reads, writes, scratch, absent, readOnly, network } = plan;
  const within = (paths: readonly string[]): readonly string[] => paths.map((path) => resolve(root, path));
  const written = [...within(writes), ...within(scratch), ...(temporary === undefined ? [] : existing(temporary))];
  const own = writes.includes("") && repository?.whole === true ? repository.folders : [];
  const guarded = [
    ...readOnly.flatMap((path) => [path, ...linksOn(path)]),
    ...(repository?.fixed ?? []),
    ...(home === undefined ? [] : [join(home, ".gitconfig")]),
  ];
  return [
    "(version 1)",
    "(deny default)",
    "(allow process-fork)",
    "(allow process-exec)",
    "(allow signal (target same-sandbox))",
    "(allow process-info* (target same-sandbox))",
    "(allow sysctl-read)",
    "(allow file-read-metadata)",
    '(allow file-ioctl (literal "/dev/null"))',
    ...rule(
      "allow mach-lookup",
      SERVICES.map((name) => `(global-name ${quoted(name)})`),
    ),
    ...rule("allow file-read*", [...SYSTEM.map(below), ...[...SYSTEM_FILES, ...DEVICES].map(exactly)]),
    ...rule("allow file-write*", DEVICES.map(exactly)),
    ...rule(
      "allow file-read*",
      tools.flatMap(({ from, at }) => [below(from), below(at)]),
    ),
    ...rule(
      "allow file-read*",
      [...within(reads), ...(reads.includes("") ? (repository?.outside ?? []) : [])].map(below),
    ),
    ...rule("allow file-read* file-write*", [...written, ...own].map(below)),
    // Names that programs of the host obey, in any folder; the workspace's own .git is allowed again below.
    '(deny file-write* (regex #"/\\.git(/|$)" #"/\\.sluice(/|$)" #"/sluice\\.config\\.[^/]*$"))',
    ...rule("allow file-write*", own.map(below)),
    ...rule("deny file-write*", guarded.map(below)),
    ...rule("deny file-write-unlink", own.map(exactly)),
    ...rule(
      "deny file-read* file-write*",
      [...absent, join(root, ".sluice"), ...keys.files, ...keys.folders].map(below),
    ),
    ...(network
      ? ["(allow network*)", "(allow system-socket)", `(allow file-read* ${below("/private/var/run")})`]
      : []),
    "",
  ].join("\n");
}

function rule(what: string, filters: readonly string[]): readonly string[] {
  return filters.length === 0 ? [] : [`(${what}\n  ${[...new Set(filters)].join("\n  ")})`];
}

function below(path: string): string {
  return `(subpath ${quoted(path)})`;
}

function exactly(path: string): string {
  return `(literal ${quoted(path)})`;
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}
