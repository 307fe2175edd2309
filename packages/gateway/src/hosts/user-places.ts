import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { isJsonObject, isSluiceError, type JsonObject } from "@sluice/core";
import type { UserPlaces } from "./host.ts";
import { jsonValue, parseJsonText } from "./install/json-text.ts";

/** The files of a user, as the hosts find them. */
export function userPlaces(env: UserPlaces["env"], home: string = env.HOME ?? homedir()): UserPlaces {
  return { home, env, exists: existsSync, read: readSettings };
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
