// Pinned hosts, installed with npm into a cache outside of the repository.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { HOSTS } from "@sluice/gateway";

const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "sluice-hosts");

/** Installs the measured version of a host unless it is there. Returns the folder of its program. */
export function installHost(name) {
  const { package: packageName, measured, command } = HOSTS[name];
  const version = measured[1];
  const folder = join(CACHE, `${name}-${version}`);
  const bin = join(folder, "node_modules", ".bin");
  if (!existsSync(join(bin, command))) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
    process.stderr.write(`hosts: installing ${packageName}@${version}\n`);
    execFileSync("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error", `${packageName}@${version}`], {
      cwd: folder,
      stdio: ["ignore", "ignore", "inherit"],
    });
  }
  return bin;
}
