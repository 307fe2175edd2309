import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { refusal } from "../../hooks/launcher.ts";
import type { HostName } from "../../host-names.ts";
import { boundFileName, hookFileName, hookFolder, KEY_LENGTH } from "./published-hooks.ts";

/** Marks our entries in a host's settings: each hook's command line contains it. */
export const HOOK_MARKER = "sluice-hook";

/** What a hook does while no gateway was started for the workspace. */
export type WhenIdle = "deny" | "allow";

export interface HookPlace {
  readonly stateFolder: string;
  /** The folder whose gateway is asked; undefined for the one that the session is in, or the nearest above it. */
  readonly workspace: string | undefined;
  readonly whenIdle: WhenIdle;
  /** Whether the host starts the gateway itself: the first calls then wait for it. */
  readonly waits: boolean;
}

/** Seconds that a hook waits for a gateway that the host starts. */
const STARTS_WITHIN = 15;

const IDLE_TEXT = "No Sluice gateway was started for this folder, so this is refused. Start one: sluice gateway";

/**
 * The command line of an installed hook: runs the file that the gateway wrote, and refuses if that fails in any way. It needs no file
 * of its own, since a missing one would let calls run on some hosts.
 */
export function installedCommand(host: HostName, event: string, decides: boolean, place: HookPlace): string {
  const run = `/bin/sh "$f" ${event} || ${refusal(decides)}`;
  const find = fileOf(hookFileName(host), place, '[ ! -f "$f" ]');
  const wait = `n=0; while [ ! -f "$f" ] && [ $n -lt ${STARTS_WITHIN} ]; do sleep 1; n=$((n+1)); ${find}; done;`;
  const whenIdle = place.whenIdle === "allow" ? unlessBound(host, place, run) : whenDenied(decides);
  return `: ${HOOK_MARKER}; ${find}; ${place.waits ? `${wait} ` : ""}if [ -f "$f" ]; then ${run}; else ${whenIdle}; fi`;
}

function whenDenied(decides: boolean): string {
  return decides ? `echo '${IDLE_TEXT}' >&2; exit 2` : ":";
}

/** Asks what earlier gateways left about sessions that drove their runs. */
function unlessBound(host: HostName, place: HookPlace, run: string): string {
  const ask = `{ [ ! -f "$f" ] || printf '%s\\n' "$p" | ${run}; }`;
  const find = fileOf(boundFileName(host), place, ask);
  return `p=$(cat); ${find}${place.workspace === undefined ? "" : `; ${ask}`}`;
}

/** Sets f to the file of the workspace. Without one, to that of the session's folder, and of those above it while `isNext` holds. */
function fileOf(name: string, { stateFolder, workspace }: HookPlace, isNext: string): string {
  if (workspace !== undefined) return `f=${quoted(join(hookFolder(stateFolder, workspace), name))}`;
  const sum = "{ sha256sum 2>/dev/null || shasum -a 256; }";
  return [
    "d=$(pwd -P);",
    `while k=$(printf %s "$d" | ${sum} | cut -c1-${KEY_LENGTH});`,
    `f=${quoted(join(stateFolder, "gateways"))}/$k/${name};`,
    // Goes up to the root, which is left with an empty name.
    `${isNext} && [ -n "$d" ]; do d=$(printf %s "$d" | sed "s,/[^/]*$,,"); done`,
  ].join(" ");
}

/** The opencode plugin of an installation: loads the one that the gateway wrote, and refuses every call without it. */
export function installedPlugin(place: HookPlace & { readonly workspace: string }): string {
  const file = join(hookFolder(place.stateFolder, place.workspace), hookFileName("opencode"));
  return `// ${HOOK_MARKER}: asks the permission gate of Sluice about every call; removed by: sluice hook remove opencode
import { existsSync } from "node:fs";

const file = ${JSON.stringify(file)};
const refuse = (text) => ({ "tool.execute.before": async () => { throw new Error(text); } });

export const SluiceHook = async (context) => {
  for (let n = 0; n < ${place.waits ? STARTS_WITHIN : 0} && !existsSync(file); n += 1) await new Promise((done) => setTimeout(done, 1000));
  if (!existsSync(file)) return ${place.whenIdle === "allow" ? "{}" : `refuse(${JSON.stringify(IDLE_TEXT)})`};
  try {
    const { SluiceGate } = await import(${JSON.stringify(pathToFileURL(file).href)});
    return await SluiceGate(context);
  } catch (thrown) {
    return refuse("The permission gate could not be loaded, so this is refused: " + String(thrown));
  }
};
`;
}

function quoted(path: string): string {
  return `'${path.replaceAll("'", `'\\''`)}'`;
}
