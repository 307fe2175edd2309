import { existsSync } from "node:fs";
import { readSmallFile } from "../tools/search/gitignore.ts";

/** Why there is no sandbox, and how to get one. */
export interface MissingSandbox {
  readonly reason: string;
  readonly fix: string;
}

/** Kernel settings that forbid namespaces: the file, the forbidding value, and the fix. */
const SETTINGS: readonly (readonly [file: string, value: string, fix: string])[] = [
  ["/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"],
  ["/proc/sys/user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"],
  [
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "1",
    "give /usr/bin/bwrap an AppArmor profile with `userns,` (Ubuntu: apt install apparmor-profiles and load bwrap-userns-restrict), or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
  ],
];
const IN_CONTAINER =
  "start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined, or with a seccomp profile that permits unshare, clone and mount";

export function noProgram(): MissingSandbox {
  if (process.platform === "linux")
    return {
      reason: "bubblewrap is not installed",
      fix: "apt install bubblewrap (dnf install bubblewrap, pacman -S bubblewrap, apk add bubblewrap)",
    };
  if (process.platform === "darwin")
    return { reason: "/usr/bin/sandbox-exec is missing", fix: "repair macOS, which includes it" };
  return { reason: `${process.platform} has no supported sandbox`, fix: "run Sluice on Linux or macOS, or in WSL 2" };
}

/** Explains a failed canary: what it reported, and the most likely fix. */
export function noProof(program: string, why: string): MissingSandbox {
  const reason = `the sandbox that ${program} creates does not hold: ${why}`;
  const settings = SETTINGS.filter(([file, value]) => readSmallFile(file)?.trim() === value).map(([, , fix]) => fix);
  const isContainer = existsSync("/.dockerenv") || existsSync("/run/.containerenv");
  const fixes = [...settings, ...(isContainer ? [IN_CONTAINER] : [])];
  const other = "run `sluice doctor` for the full message; docs/sandbox.md lists what a sandbox needs";
  return { reason, fix: fixes.length === 0 ? other : fixes.join("; ") };
}
