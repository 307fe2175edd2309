import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { withOwnersHome } from "./own-home.ts";

const root = join(import.meta.dirname, "../..");
const manifest: { readonly packageManager: string } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

export const MANAGERS = ["npm", "pnpm", "yarn"] as const;
export type Manager = (typeof MANAGERS)[number];

/** The command line of each package manager. */
const INSTALL: Readonly<Record<Manager, readonly [string, ...(readonly string[])]>> = {
  npm: ["npm", "install", "--prefer-offline", "--no-audit", "--no-fund"],
  pnpm: ["npx", "--yes", manifest.packageManager, "install", "--prefer-offline", "--config.engineStrict=false"],
  yarn: ["npx", "--yes", "@yarnpkg/cli-dist@4.18.1", "install"],
};

export interface Ran {
  readonly status: number | null;
  readonly output: string;
}

/** Runs a program outside of this repository: it gets nothing of the settings of these tests. */
export function runOutside(command: string, args: readonly string[], cwd: string, node = process.execPath): Ran {
  const path = [dirname(node), ...(process.env.PATH ?? "").split(delimiter)].filter(
    (folder) => !folder.startsWith(root),
  );
  const env = {
    ...process.env,
    PATH: path.join(delimiter),
    NO_COLOR: "1",
    NODE_PATH: undefined,
    NODE_OPTIONS: undefined,
  };
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: "utf8", env });
  return { status, output: `${stdout}${stderr}${error?.message ?? ""}` };
}

/** Writes the tarballs of all packages, and returns each one's by the name of its package. */
export function pack(folder: string): ReadonlyMap<string, string> {
  const { status, stderr } = spawnSync(process.execPath, [join(root, "scripts/pack.mjs"), "--to", folder], {
    encoding: "utf8",
    env: withOwnersHome(process.env),
  });
  if (status !== 0) throw new Error(`the packages cannot be packed:\n${stderr}`);
  return packedIn(folder);
}

/** The tarballs of a folder, by the name of their package. */
export function packedIn(folder: string): ReadonlyMap<string, string> {
  const files = readdirSync(folder).flatMap((file) => {
    const [, name] = /^sluice-(\w+)-.*\.tgz$/.exec(file) ?? [];
    return name === undefined ? [] : [[`@sluice/${name}`, join(folder, file)] as const];
  });
  return new Map(files);
}

/** Installs tarballs, and `more` from a registry, into an empty project, as docs/install.md says. */
export function installInto(
  folder: string,
  manager: Manager,
  packed: ReadonlyMap<string, string>,
  more: Readonly<Record<string, string>>,
): void {
  mkdirSync(folder, { recursive: true });
  const ours = Object.fromEntries([...packed].map(([name, file]) => [name, `file:${file}`]));
  const settings = { name: "user", private: true, type: "module", dependencies: { ...ours, ...more } };
  const write = (file: string, text: string): void => writeFileSync(join(folder, file), text);
  write("package.json", JSON.stringify(manager === "yarn" ? { ...settings, resolutions: ours } : settings, null, 2));
  if (manager === "pnpm") {
    const overrides = Object.entries(ours).map(([name, file]) => `  "${name}": "${file}"\n`);
    write("pnpm-workspace.yaml", `pmOnFail: ignore\noverrides:\n${overrides.join("")}`);
  }
  if (manager === "yarn") {
    write(".yarnrc.yml", "nodeLinker: node-modules\nenableTelemetry: false\n");
    // Yarn works in the nearest folder with a lockfile.
    write("yarn.lock", "");
  }
  const [command, ...args] = INSTALL[manager];
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd: folder,
    encoding: "utf8",
    env: withOwnersHome(process.env),
  });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} failed:\n${stdout}${stderr}`);
}
