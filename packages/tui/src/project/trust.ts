import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { field, isJsonObject, type Json, messageOf, parseJson, SluiceError } from "@sluice/core";
import type { CodeDigests } from "./code.ts";
import type { Environment } from "./environment.ts";

/** Whether the user trusted a folder's code as it is now. */
export type TrustState =
  | { readonly kind: "trusted" }
  /** Trusted as it was: these files are other, new or gone. */
  | { readonly kind: "changed"; readonly files: readonly string[] }
  | { readonly kind: "unknown" };

/** Whose code may be loaded: config and pipelines run with the user's rights. */
export interface Trust {
  stateOf(root: string, code: CodeDigests): TrustState;
  /** Whether it was ever trusted, in whatever state. */
  knows(root: string): boolean;
  /** Trusts these files as they were read. Returns why it could not be remembered, if so. */
  grant(root: string, code: CodeDigests): string | undefined;
}

/** Trust is kept outside of all projects, by folder and digests, so that no project can grant it to itself. */
export function createTrust(env: Environment): Trust {
  const folder = stateFolder(env);
  const file = join(folder, "trust.json");
  return {
    knows: (root) => isJsonObject(field(field(readTrust(file), "folders"), root)),
    stateOf(root, code) {
      const known = field(field(readTrust(file), "folders"), root);
      if (!isJsonObject(known)) return { kind: "unknown" };
      const paths = new Set([...Object.keys(known), ...code.keys()]);
      const files = [...paths].filter((path) => field(known, path) !== code.get(path)).sort();
      return files.length === 0 ? { kind: "trusted" } : { kind: "changed", files };
    },
    grant(root, code) {
      const known = field(readTrust(file), "folders");
      const folders = { ...(isJsonObject(known) ? known : {}), [root]: Object.fromEntries(code) };
      try {
        mkdirSync(folder, { recursive: true, mode: 0o700 });
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

/** Where a user's own state is kept, outside of all projects. Throws Session `trust_unreadable` where nothing says where. */
export function stateFolder(env: Environment): string {
  return join(absolute(env.XDG_STATE_HOME) ?? join(homeOf(env), ".local", "state"), "sluice");
}

function homeOf(env: Environment): string {
  const home = absolute(env.HOME) ?? absolute(homedir());
  if (home !== undefined) return home;
  throw new SluiceError(
    "Session",
    "trust_unreadable",
    "HOME is no absolute path, so what you trusted cannot be looked up; set it, or XDG_STATE_HOME",
  );
}

/** A relative path would lead into the folder somebody stands in, which may hold a trust of its own making. */
function absolute(path: string | undefined): string | undefined {
  const trimmed = path?.trim() ?? "";
  return isAbsolute(trimmed) ? trimmed : undefined;
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
