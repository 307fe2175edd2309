import { existsSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname } from "node:path";
import { isJsonObject, isSluiceError, type JsonObject } from "@sluice/core";
import type { UserPlaces } from "./host.ts";
import { jsonValue, parseJsonText } from "./install/json-text.ts";

/** The files of a user, as the hosts find them. */
export function userPlaces(env: UserPlaces["env"], home: string = env.HOME ?? homedir()): UserPlaces {
  return { home, env, exists: existsSync, read: readSettings, isOfRoot };
}

function isOfRoot(path: string): boolean {
  const stats = statSync(path, { throwIfNoEntry: false });
  // Files of a plan are written by this process, with rights for no one else.
  const isSafe = stats === undefined ? process.getuid?.() === 0 : stats.uid === 0 && (stats.mode & 0o022) === 0;
  return isSafe && (dirname(path) === path || isOfRoot(dirname(path)));
}

function readSettings(path: string): JsonObject | undefined {
  if (!existsSync(path)) return undefined;
  try {
    const value = jsonValue(parseJsonText(readFileSync(path, "utf8")));
    return isJsonObject(value) ? value : undefined;
  } catch (thrown) {
    // The host reports what is wrong with its own file.
    if (isSluiceError(thrown, "host_config_invalid")) return undefined;
    throw thrown;
  }
}
