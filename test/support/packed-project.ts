import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { blocksOf, readPage } from "../docs/pages.ts";
import { withOwnersHome } from "./own-home.ts";

const root = join(import.meta.dirname, "../..");
const manifest: { readonly packageManager: string } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

export const MANAGERS = ["npm", "pnpm", "yarn"] as const;
export type Manager = (typeof MANAGERS)[number];

/** How the package managers of docs/install.md are started here. */
const PROGRAMS: Readonly<Record<Manager, readonly [string, string]>> = {
  npm: ["npm install", "npm install --prefer-offline --no-audit --no-fund"],
  pnpm: ["pnpm add", `npx --yes ${manifest.packageManager} add --prefer-offline --config.engineStrict=false`],
  yarn: ["yarn add", "npx --yes @yarnpkg/cli-dist@4.18.1 add"],
};

export interface Ran {
  readonly status: number | null;
  readonly output: string;
}

/** Runs a program outside of this repository: it gets nothing of the settings of these tests. */
export function runOutside(command: string, args: readonly string[], cwd: string, node = process.execPath): Ran {
  const others = (process.env.PATH ?? "").split(delimiter).filter((folder) => !folder.startsWith(root));
  const path = [dirname(node), ...others];
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

/** Writes the tarballs of all packages into a folder. */
export function pack(folder: string): void {
  const { status, stderr } = spawnSync(process.execPath, [join(root, "scripts/pack.mjs"), "--to", folder], {
    encoding: "utf8",
    env: withOwnersHome(process.env),
  });
  if (status !== 0) throw new Error(`the packages cannot be packed:\n${stderr}`);
}

/** Installs the tarballs of a folder into an empty project as docs/install.md says, and `more` from a registry. */
export function installInto(
  folder: string,
  manager: Manager,
  packed: string,
  more: Readonly<Record<string, string>>,
): void {
  mkdirSync(folder, { recursive: true });
  const write = (file: string, text: string): void => writeFileSync(join(folder, file), text);
  const blocks = blocksOf(readPage("docs/install.md"));
  const block = (note: string): string => {
    const text = blocks.find((one) => one.note === note)?.text;
    if (text === undefined) throw new Error(`docs/install.md has no block "${note}"`);
    return text.replaceAll("<clone>/packed", packed);
  };
  const settings = { name: "user", private: true, type: "module", devDependencies: more };
  write(
    "package.json",
    JSON.stringify(manager === "yarn" ? { ...settings, ...JSON.parse(block("package.json")) } : settings),
  );
  if (manager === "pnpm") write("pnpm-workspace.yaml", `pmOnFail: ignore\n${block("pnpm-workspace.yaml")}`);
  if (manager === "yarn") {
    write(".yarnrc.yml", `enableTelemetry: false\n${block(".yarnrc.yml")}`);
    // Yarn works in the nearest folder with a lockfile.
    write("yarn.lock", "");
  }
  const command = block(`installs with ${manager}`).replace(...PROGRAMS[manager]);
  const { status, stdout, stderr } = spawnSync("sh", ["-ec", command], {
    cwd: folder,
    encoding: "utf8",
    env: withOwnersHome(process.env),
  });
  if (status !== 0) throw new Error(`${command} failed:\n${stdout}${stderr}`);
}
