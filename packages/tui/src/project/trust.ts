import { hash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { field, isJsonObject, type Json, messageOf, parseJson, SluiceError, sha256 } from "@sluice/core";
import type { Environment } from "./environment.ts";

/** Whose pipelines may be loaded: what lies in a folder is code, and it runs with the user's rights. */
export interface Trust {
  /** Whether the user trusted this folder's pipelines as they are now. */
  holds(folder: string): boolean;
  /** Trusts them as they are now. Returns why it could not be remembered, if so. */
  grant(folder: string): string | undefined;
}

/** The part of a project that trust is about. */
export function pipelinesFolder(cwd: string): string {
  return join(cwd, ".sluice", "pipelines");
}

/** Trust is kept outside of all projects, by folder and digest, so that no project can grant it to itself. */
export function createTrust(env: Environment): Trust {
  const home = env.XDG_STATE_HOME?.trim() || join(env.HOME?.trim() || homedir(), ".local", "state");
  const file = join(home, "sluice", "trust.json");
  return {
    holds: (folder) => field(field(readTrust(file), "folders"), folder) === digestOfFolder(folder),
    grant(folder) {
      const known = field(readTrust(file), "folders");
      const folders = { ...(isJsonObject(known) ? known : {}), [folder]: digestOfFolder(folder) };
      try {
        mkdirSync(join(home, "sluice"), { recursive: true, mode: 0o700 });
        const draft = `${file}.${process.pid}`;
        writeFileSync(draft, `${JSON.stringify({ version: 1, folders }, null, 2)}\n`, { mode: 0o600 });
        renameSync(draft, file);
        return undefined;
      } catch (thrown) {
        return `the trust cannot be remembered: ${messageOf(thrown)}`;
      }
    },
  };
}

/** No file is no trust; one that cannot be read is an error, since writing would lose what is in it. */
function readTrust(file: string): Json {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT") return {};
    throw unreadable(file, messageOf(thrown));
  }
  const json = parseJson(text);
  if (!json.ok) throw unreadable(file, json.fault);
  return json.value;
}

function unreadable(file: string, why: string): SluiceError {
  return new SluiceError("Session", "trust_unreadable", `${file} cannot be read (${why}); mend it or move it away`);
}

/** Every file below the folder counts: pipelines import their neighbours. */
function digestOfFolder(folder: string): string {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const link = entries.find((entry) => entry.isSymbolicLink());
  if (link !== undefined) {
    const path = join(link.parentPath, link.name);
    throw new SluiceError(
      "Validation",
      "folder_untrusted",
      `${path} is a link, and trust cannot cover what it points to; put a file in its place`,
    );
  }
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const facts = paths.sort().map((path) => [path.slice(folder.length), hash("sha256", readFileSync(path))]);
  return sha256(JSON.stringify(facts));
}
