import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

// Programs keep what is their user's in the home folder and in those of the XDG specification. What tests start gets a home of
// its own, so that neither what they do nor what they find depends on whose machine this is.

const FOLDERS = {
  HOME: "",
  XDG_CONFIG_HOME: ".config",
  XDG_STATE_HOME: ".local/state",
  XDG_DATA_HOME: ".local/share",
  XDG_CACHE_HOME: ".cache",
} as const;
/** Holds what these variables were, as JSON; set while they are others. */
const BEFORE = "SLUICE_HOMES_BEFORE";

/** The variables of a process whose user lives in this folder. */
function homeVariables(home: string): Readonly<Record<string, string>> {
  const places = Object.entries(FOLDERS).map(([name, folder]) => [name, join(home, folder)] as const);
  const before = Object.keys(FOLDERS).map((name) => [name, process.env[name] ?? null] as const);
  return { ...Object.fromEntries(places), [BEFORE]: JSON.stringify(Object.fromEntries(before)) };
}

/** Moves this process, and with it all that it starts, into a new home; the returned function removes that. Once is enough. */
export function setup(): () => void {
  if (process.env[BEFORE] !== undefined) return () => undefined;
  const home = realpathSync(mkdtempSync(join(tmpdir(), "sluice-home-")));
  Object.assign(process.env, homeVariables(home));
  return () => rmSync(home, { recursive: true, force: true });
}

/** The environment with the developer's own home: for package managers, whose caches and settings are there. */
export function withOwnersHome(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const before: Readonly<Record<string, string | null>> = JSON.parse(env[BEFORE] ?? "{}");
  const variables = Object.entries(before).map(([name, value]) => [name, value ?? undefined] as const);
  return { ...env, ...Object.fromEntries(variables), [BEFORE]: undefined };
}
